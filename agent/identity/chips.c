/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/chips_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/collect/procfile.h"
#include "proto/base/text.h"

#define CHIPS_GVNIC 0x0042u /* Google's network card has the same vendor */
#define CHIPS_TEXT_BYTES 64 /* a number of /sys */
#define CHIPS_FUNCTIONS_MAX (LS_CHIPS_MAX * LS_CHIP_NODES_MAX)
#define CHIPS_PCI_NAME_BYTES 24
#define CHIPS_NODE_MAX 999999999u /* the number in the name of a node */

/* --- reading /sys --------------------------------------------------------- */

/* The number in a file of a PCI function; false if there is none. */
static bool
chips_read_number(int dir_fd, const char *function, const char *file, long *ret_value)
{
	char path[CHIPS_PCI_NAME_BYTES + 32], text[CHIPS_TEXT_BYTES], *end;
	size_t len;
	long v;

	(void)snprintf(path, sizeof(path), "%s/%s", function, file);
	if (ls_procfile_read_once(dir_fd, path, text, sizeof(text), &len) != 0)
		return false;
	/* read_once leaves room: a text must be shorter than the buffer */
	text[len] = '\0';
	errno = 0;
	v = strtol(text, &end, 0);
	if (errno != 0 || end == text || (*end != '\n' && *end != '\0'))
		return false;
	*ret_value = v;
	return true;
}

/* "0000:00:05.0": only hexadecimal digits, colons, and one function digit at the end.
 */
static bool
chips_is_function(const char *name)
{
	size_t len = strlen(name);

	return len >= 7 && len < CHIPS_PCI_NAME_BYTES && name[len - 2] == '.' &&
		strspn(name, "0123456789abcdefABCDEF:") == len - 2;
}

/* A function of an id we do not know may be a chip, but not if it says it is a disk, a network card
   or a bridge (PCI classes 1, 2, 6). */
static bool
chips_may_be_chip(int dir_fd, const char *function)
{
	long class;

	if (!chips_read_number(dir_fd, function, "class", &class))
		return true;
	class >>= 16;
	return class != 1 && class != 2 && class != 6;
}

/* True if the function is one of a TPU; fills in what it says. */
static bool
chips_read_function(int dir_fd, const char *function, struct ls_chip *ret_chip)
{
	long vendor, device, subsystem = 0, node;

	if (!chips_read_number(dir_fd, function, "vendor", &vendor) ||
		vendor != (long)LS_PCI_VENDOR_GOOGLE ||
		!chips_read_number(dir_fd, function, "device", &device) || device < 0 ||
		device > 0xffff || device == (long)CHIPS_GVNIC)
		return false;
	if (!chips_read_number(dir_fd, function, "subsystem_device", &subsystem) ||
		subsystem < 0 || subsystem > 0xffff)
		subsystem = 0;
	memset(ret_chip, 0, sizeof(*ret_chip));
	ret_chip->device_id = (uint32_t)device;
	ret_chip->generation =
		ls_generation_by_pci((uint32_t)device, (uint32_t)subsystem);
	if (ret_chip->generation < 0 && !chips_may_be_chip(dir_fd, function))
		return false;
	if (ret_chip->generation >= 0)
		(void)snprintf(ret_chip->name, sizeof(ret_chip->name), "%s",
			ls_generation_info((enum ls_generation)ret_chip->generation)
				->name);
	else
		(void)snprintf(ret_chip->name, sizeof(ret_chip->name),
			"tpu-unknown(0x%04x)", (unsigned)device);
	ret_chip->numa_node = -1;
	if (chips_read_number(dir_fd, function, "numa_node", &node) && node >= 0 &&
		node <= INT_MAX)
		ret_chip->numa_node = (int)node;
	return true;
}

/* --- nodes ---------------------------------------------------------------- */

static bool
chips_node_is_here(const struct ls_chips *c, const char *node)
{
	char path[LS_PATH_MAX_BYTES + 64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", c->dev_root, node);
	return stat(path, &st) == 0;
}

/* The node of this path: its chip and place in the list. */
static bool
chips_find_node(const struct ls_chip *list, size_t count, const char *path,
	size_t *ret_chip, size_t *ret_node)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t n = 0; n < list[i].node_count; n++) {
			if (strcmp(list[i].node[n].path, path) == 0) {
				*ret_chip = i;
				*ret_node = n;
				return true;
			}
		}
	}
	return false;
}

static void
chips_add_node(struct ls_chips *c, struct ls_chip *chip, const char *path)
{
	struct ls_chip_node *n;
	size_t one, place;

	if (chip->node_count == LS_CHIP_NODES_MAX ||
		chips_find_node(chip, 1, path, &one, &place))
		return; /* two functions in one IOMMU group */
	n = &chip->node[chip->node_count++];
	(void)snprintf(n->path, sizeof(n->path), "%s", path);
	n->here = chips_node_is_here(c, path);
}

/* The node of a function's IOMMU group. */
static void
chips_add_vfio(struct ls_chips *c, int dir_fd, const char *function,
	struct ls_chip *chip)
{
	char path[CHIPS_PCI_NAME_BYTES + 32], target[LS_PATH_MAX_BYTES], node[32];
	const char *base;
	uint64_t group;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/iommu_group", function);
	n = readlinkat(dir_fd, path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = '\0';
	base = strrchr(target, '/');
	if (!ls_text_number(base != NULL ? base + 1 : target, CHIPS_NODE_MAX, &group))
		return;
	(void)snprintf(node, sizeof(node), "vfio/%llu", (unsigned long long)group);
	if (chip->generation >= 0 || chips_node_is_here(c, node))
		chips_add_node(c, chip, node);
}

static int
chips_compare_index(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Numbers of the nodes /dev/accelN, in order. */
static size_t
chips_list_accel(const struct ls_chips *c, uint64_t index[CHIPS_FUNCTIONS_MAX])
{
	DIR *dir = opendir(c->dev_root);
	struct dirent *e;
	size_t n = 0, looked = 0;

	if (dir == NULL)
		return 0;
	while (n < CHIPS_FUNCTIONS_MAX && looked++ < LS_NODES_SCAN_MAX &&
		(e = readdir(dir)) != NULL) {
		if (strncmp(e->d_name, "accel", 5) == 0 &&
			ls_text_number(e->d_name + 5, CHIPS_NODE_MAX, &index[n]))
			n++;
	}
	(void)closedir(dir); /* only read from */
	qsort(index, n, sizeof(index[0]), chips_compare_index);
	return n;
}

static enum ls_generation_nodes
chips_nodes(const struct ls_chip *chip)
{
	return chip->generation < 0
		? LS_NODES_ANY
		: ls_generation_info((enum ls_generation)chip->generation)->nodes;
}

/* Gives the nodes /dev/accelN, which say nothing of PCI, to the chips in order. */
static void
chips_add_accel(struct ls_chips *c)
{
	uint64_t index[CHIPS_FUNCTIONS_MAX];
	size_t have = chips_list_accel(c, index), used = 0, i;
	char node[32];

	for (i = 0; i < c->count; i++) {
		struct ls_chip *chip = &c->chip[i];

		if (chips_nodes(chip) != LS_NODES_ACCEL &&
			(chips_nodes(chip) != LS_NODES_ANY || chip->node_count > 0))
			continue;
		if (used < have)
			(void)snprintf(node, sizeof(node), "accel%llu",
				(unsigned long long)index[used]);
		else if (chip->generation >= 0)
			(void)snprintf(node, sizeof(node), "accel%zu", i);
		else
			continue;
		used++;
		chips_add_node(c, chip, node);
	}
}

/* --- the search ----------------------------------------------------------- */

static int
chips_compare_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* A driver is bound to the function, or it is in an IOMMU group, as one of vfio is. */
static bool
chips_is_bound(int dir_fd, const char *function)
{
	static const char *const links[] = { "driver", "iommu_group" };
	char path[CHIPS_PCI_NAME_BYTES + 32], target[LS_PATH_MAX_BYTES];
	bool bound = false;

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", function, links[i]);
		bound |= readlinkat(dir_fd, path, target, sizeof(target)) > 0;
	}
	return bound;
}

/* Adds a function to its slot's chip, which is the last one: functions come in order.
 */
static void
chips_add_function(struct ls_chips *c, int dir_fd, const char *function)
{
	size_t slot = strlen(function) - 2;
	struct ls_chip one, *chip;

	if (!chips_read_function(dir_fd, function, &one))
		return; /* vanished since it was listed */
	chip = c->count > 0 ? &c->chip[c->count - 1] : NULL;
	if (chip == NULL || strlen(chip->pci) != slot ||
		memcmp(chip->pci, function, slot) != 0) {
		if (c->count == LS_CHIPS_MAX) {
			c->left_out++;
			return;
		}
		chip = &c->chip[c->count++];
		*chip = one;
		memcpy(chip->pci, function, slot);
	}
	chip->functions++;
	chip->bound |= chips_is_bound(dir_fd, function);
	if (chips_nodes(chip) != LS_NODES_ACCEL)
		chips_add_vfio(c, dir_fd, function, chip);
}

/* What was known of owners stays known of nodes that are still there. */
static void
chips_keep_owners(struct ls_chips *c, size_t count)
{
	size_t i, k, n, m;

	for (i = 0; i < c->count; i++) {
		for (n = 0; n < c->chip[i].node_count; n++) {
			struct ls_chip_node *to = &c->chip[i].node[n];
			bool here = to->here;

			if (!chips_find_node(c->before, count, to->path, &k, &m))
				continue;
			*to = c->before[k].node[m];
			to->here = here;
		}
	}
}

static void
chips_end_pass(struct ls_chips *c)
{
	if (c->fds != NULL)
		(void)closedir(c->fds); /* only read from */
	if (c->processes != NULL)
		(void)closedir(c->processes); /* as above */
	c->fds = c->processes = NULL;
}

int
ls_chips_find(struct ls_chips *c)
{
	char name[CHIPS_FUNCTIONS_MAX][CHIPS_PCI_NAME_BYTES];
	DIR *dir = opendir(c->pci_dir);
	size_t n = 0, looked = 0, before = c->count, i;
	struct dirent *e;
	struct ls_chip one;

	c->find_rc = dir == NULL ? -errno : 0;
	chips_end_pass(c); /* it was over the chips as they were */
	memcpy(c->before, c->chip, sizeof(c->before));
	c->count = c->left_out = 0;
	if (dir == NULL)
		return c->find_rc;
	while (looked++ < LS_PCI_SCAN_MAX && (e = readdir(dir)) != NULL) {
		if (!chips_is_function(e->d_name) ||
			!chips_read_function(dirfd(dir), e->d_name, &one))
			continue;
		if (n == CHIPS_FUNCTIONS_MAX)
			c->left_out++;
		else
			(void)snprintf(name[n++], sizeof(name[0]), "%s", e->d_name);
	}
	qsort(name, n, sizeof(name[0]), chips_compare_name);
	for (i = 0; i < n; i++)
		chips_add_function(c, dirfd(dir), name[i]);
	(void)closedir(dir); /* only read from */
	chips_add_accel(c);
	chips_keep_owners(c, before);
	return 0;
}

void
ls_chips_check_nodes(struct ls_chips *c)
{
	for (size_t i = 0; i < c->count; i++) {
		for (size_t n = 0; n < c->chip[i].node_count; n++)
			c->chip[i].node[n].here =
				chips_node_is_here(c, c->chip[i].node[n].path);
	}
}

/* --- owners --------------------------------------------------------------- */

/* The part of a link's target below /dev, or NULL. A container's /dev is called /dev,
 * too. */
static const char *
chips_below_dev(const struct ls_chips *c, const char *target)
{
	size_t len = strlen(c->dev_root);

	if (strncmp(target, c->dev_root, len) == 0 && target[len] == '/')
		return target + len + 1;
	return strncmp(target, "/dev/", 5) == 0 ? target + 5 : NULL;
}

/* The node that a file descriptor is open on: its chip and place. False: none of a
 * chip. */
static bool
chips_match(const struct ls_chips *c, int dir_fd, const char *fd, size_t *ret_chip,
	size_t *ret_node)
{
	char target[LS_PATH_MAX_BYTES];
	ssize_t len = readlinkat(dir_fd, fd, target, sizeof(target) - 1);
	const char *node;

	if (len <= 0)
		return false;
	target[len] = '\0';
	node = chips_below_dev(c, target);
	return node != NULL &&
		chips_find_node(c->chip, c->count, node, ret_chip, ret_node);
}

static DIR *
chips_open_fds(const struct ls_chips *c, pid_t pid)
{
	char path[LS_PATH_MAX_BYTES + 32];

	(void)snprintf(path, sizeof(path), "%s/%ld/fd", c->proc_root, (long)pid);
	return opendir(path);
}

static void
chips_read_command(const struct ls_chips *c, struct ls_chip_holder *h)
{
	char path[LS_PATH_MAX_BYTES + 32], text[CHIPS_TEXT_BYTES];
	size_t len;

	(void)snprintf(path, sizeof(path), "%s/%ld/comm", c->proc_root, (long)h->first);
	if (ls_procfile_read_once(AT_FDCWD, path, text, sizeof(text), &len) != 0)
		return;
	while (len > 0 && text[len - 1] == '\n')
		len--;
	(void)ls_text_escape(h->command, sizeof(h->command), text, len);
}

/* The next process whose descriptors can be listed; false when there is no other. */
static bool
chips_next_process(struct ls_chips *c)
{
	struct dirent *e;
	uint64_t pid;

	while ((e = readdir(c->processes)) != NULL) {
		if (!ls_text_number(e->d_name, INT_MAX, &pid))
			continue;
		c->seen++;
		c->pid = (pid_t)pid;
		c->links = 0;
		c->fds = chips_open_fds(c, c->pid);
		if (c->fds == NULL && (errno == EACCES || errno == EPERM))
			c->denied++;
		return true;
	}
	return false;
}

static void
chips_look_at_link(struct ls_chips *c, const char *fd)
{
	struct ls_chip_holder *h;
	size_t chip, node;

	if (!chips_match(c, dirfd(c->fds), fd, &chip, &node))
		return;
	h = &c->holder[chip][node];
	if (h->first == 0) {
		h->first = c->pid;
		chips_read_command(c, h);
	}
}

static bool
chips_begin_pass(struct ls_chips *c)
{
	c->processes = opendir(c->proc_root);
	if (c->processes == NULL)
		return false;
	memset(c->holder, 0, sizeof(c->holder));
	c->seen = c->denied = 0;
	return true;
}

static void
chips_finish_pass(struct ls_chips *c)
{
	chips_end_pass(c);
	for (size_t i = 0; i < c->count; i++) {
		for (size_t n = 0; n < c->chip[i].node_count; n++) {
			const struct ls_chip_holder *h = &c->holder[i][n];
			struct ls_chip_node *to = &c->chip[i].node[n];

			to->owner = h->first;
			memcpy(to->command, h->command, sizeof(to->command));
		}
	}
	ls_chips_check_nodes(c);
	c->passes++;
	c->last_seen = c->seen;
	c->last_denied = c->denied;
}

bool
ls_chips_find_owners(struct ls_chips *c, size_t max_links)
{
	struct dirent *e;

	if (c->count == 0 || (c->processes == NULL && !chips_begin_pass(c)))
		return true;
	for (; max_links > 0; max_links--) {
		if (c->fds == NULL) {
			if (!chips_next_process(c)) {
				chips_finish_pass(c);
				return true;
			}
			continue;
		}
		e = c->links++ < LS_OWNER_LINKS_PER_PROCESS ? readdir(c->fds) : NULL;
		if (e != NULL) {
			chips_look_at_link(c, e->d_name);
			continue;
		}
		(void)closedir(c->fds); /* only read from */
		c->fds = NULL;
	}
	return false;
}

int
ls_chips_owned_by(const struct ls_chips *c, pid_t pid)
{
	DIR *fds = chips_open_fds(c, pid);
	bool held[LS_CHIPS_MAX] = { false };
	size_t links = 0, chip, node;
	struct dirent *e;
	int count = 0;

	if (fds == NULL)
		return -errno;
	while (links++ < LS_OWNER_LINKS_PER_PROCESS && (e = readdir(fds)) != NULL) {
		if (!chips_match(c, dirfd(fds), e->d_name, &chip, &node) || held[chip])
			continue;
		held[chip] = true;
		count++;
	}
	(void)closedir(fds); /* only read from */
	return count;
}

/* --- life ----------------------------------------------------------------- */

int
ls_chips_new(const char *proc_root, const char *sys_root, const char *dev_root,
	struct ls_chips **ret_chips)
{
	struct ls_chips *c = calloc(1, sizeof(*c));
	int rc;

	if (c == NULL)
		return -ENOMEM;
	rc = ls_procfile_path(c->pci_dir, sizeof(c->pci_dir), sys_root,
		"bus/pci/devices");
	if (rc == 0)
		rc = ls_text_copy(c->proc_root, sizeof(c->proc_root), proc_root);
	if (rc == 0)
		rc = ls_text_copy(c->dev_root, sizeof(c->dev_root), dev_root);
	if (rc == 0)
		*ret_chips = c;
	else
		free(c);
	return rc;
}

void
ls_chips_free(struct ls_chips *c)
{
	if (c == NULL)
		return;
	chips_end_pass(c);
	free(c);
}

size_t
ls_chips_count(const struct ls_chips *c)
{
	return c->count;
}

const struct ls_chip *
ls_chips_get(const struct ls_chips *c, size_t i)
{
	return i < c->count ? &c->chip[i] : NULL;
}
