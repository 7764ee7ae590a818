/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/source_neighbours.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/collect/dirlist.h"
#include "agent/collect/procfile.h"
#include "agent/host/procfs.h"
#include "proto/base/text.h"

#define NEIGHBOURS_TEXT_BYTES 4096
#define NEIGHBOURS_LABEL_BYTES 100 /* of a path: its end, which tells groups apart */

/* One leaf of the hierarchy. */
struct neighbour {
	char path[LS_CGROUP_PATH_MAX_BYTES]; /* below the root of the hierarchy */
	bool seen; /* by the listing under way */
	bool read; /* used_s is of a reading */
	double used_s; /* CPU seconds at the last reading */
	double grown_s; /* since the one before */
	int handle; /* of its series; -1: it has none */
	unsigned quiet; /* readings since it was last among the top */
};

struct source_neighbours {
	char proc_root[LS_PATH_MAX_BYTES], root[LS_PATH_MAX_BYTES];
	const char *file; /* what is read of a group */
	struct ls_series_table *table;
	int group; /* negative: the table has no room for it, and for no series */
	unsigned turn; /* slow readings so far */
	size_t count, left_out;
	struct neighbour n[LS_CGROUPS_MAX];
	char text[NEIGHBOURS_TEXT_BYTES];
};

/* --- which groups there are ----------------------------------------------- */

static void
neighbours_found(struct source_neighbours *s, const char *path)
{
	struct neighbour *n;

	for (size_t i = 0; i < s->count; i++) {
		if (strcmp(s->n[i].path, path) == 0) {
			s->n[i].seen = true;
			return;
		}
	}
	if (s->count == LS_CGROUPS_MAX || strlen(path) >= sizeof(n->path)) {
		s->left_out++;
		return;
	}
	n = &s->n[s->count++];
	memset(n, 0, sizeof(*n));
	(void)snprintf(n->path, sizeof(n->path), "%s", path);
	n->seen = true;
	n->handle = -1;
}

/* Finds the leaves below a directory; what is at the last level counts as one. */
static void
neighbours_walk(struct source_neighbours *s, char *path, unsigned depth)
{
	char full[LS_PATH_MAX_BYTES];
	size_t len = strlen(path), children = 0;
	const struct dirent64 *e;
	struct ls_dirlist dir;
	bool is_open = depth < LS_CGROUP_DEPTH_MAX &&
		ls_procfile_path(full, sizeof(full), s->root, path) == 0 &&
		ls_dirlist_open(&dir, full) == 0;

	while (is_open && (e = ls_dirlist_next(&dir)) != NULL) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		children++;
		if (len + strlen(e->d_name) + 2 > LS_PATH_MAX_BYTES)
			continue;
		(void)snprintf(path + len, LS_PATH_MAX_BYTES - len, "/%s", e->d_name);
		neighbours_walk(s, path, depth + 1);
		path[len] = '\0';
	}
	if (is_open)
		ls_dirlist_close(&dir);
	if (children == 0 && len > 0)
		neighbours_found(s, path);
}

static void
neighbours_forget(struct source_neighbours *s, size_t i)
{
	if (s->n[i].handle >= 0)
		ls_series_remove(s->table, s->n[i].handle);
	s->n[i] = s->n[--s->count];
}

static void
neighbours_list(struct source_neighbours *s)
{
	char path[LS_PATH_MAX_BYTES] = "";

	for (size_t i = 0; i < s->count; i++)
		s->n[i].seen = false;
	s->left_out = 0;
	neighbours_walk(s, path, 0);
	for (size_t i = s->count; i-- > 0;) {
		if (!s->n[i].seen)
			neighbours_forget(s, i);
	}
}

/* --- what they used ------------------------------------------------------- */

static bool
neighbours_parse(const struct source_neighbours *s, size_t len, double *ret_used_s)
{
	struct ls_sample sample = { 0 };

	if (strcmp(s->file, "cpu.stat") == 0)
		ls_procfs_cpu_stat(s->text, len, &sample);
	else
		ls_procfs_cpuacct(s->text, len, &sample);
	*ret_used_s = sample.value[LS_METRIC_HOST_CGROUP_CPU];
	return sample.present[LS_METRIC_HOST_CGROUP_CPU];
}

static void
neighbours_read_one(struct source_neighbours *s, struct neighbour *n)
{
	char path[LS_PATH_MAX_BYTES];
	double used = 0;
	size_t len;

	if (snprintf(path, sizeof(path), "%s%s/%s", s->root, n->path, s->file) >=
			(int)sizeof(path) ||
		ls_procfile_read_once(AT_FDCWD, path, s->text, sizeof(s->text), &len) !=
			0 ||
		!neighbours_parse(s, len, &used)) {
		n->read = false;
		n->grown_s = 0;
		return;
	}
	n->grown_s = n->read && used > n->used_s ? used - n->used_s : 0;
	n->used_s = used;
	n->read = true;
}

/* Name of the first process of a group; "" if there is none to be seen. */
static void
neighbours_comm(struct source_neighbours *s, const struct neighbour *n, char *ret_comm,
	size_t size)
{
	char path[LS_PATH_MAX_BYTES];
	size_t len;
	long pid;

	ret_comm[0] = '\0';
	if (snprintf(path, sizeof(path), "%s%s/cgroup.procs", s->root, n->path) >=
			(int)sizeof(path) ||
		ls_procfile_read_once(AT_FDCWD, path, s->text, sizeof(s->text) - 1,
			&len) != 0)
		return;
	s->text[len] = '\0';
	pid = strtol(s->text, NULL, 10);
	if (pid <= 0)
		return;
	if (snprintf(path, sizeof(path), "%s/%ld/comm", s->proc_root, pid) >=
			(int)sizeof(path) ||
		ls_procfile_read_once(AT_FDCWD, path, s->text, sizeof(s->text) - 1,
			&len) != 0)
		return;
	s->text[len] = '\0';
	s->text[strcspn(s->text, "\n")] = '\0';
	if (ls_text_copy(ret_comm, size, s->text) != 0)
		ret_comm[0] = '\0'; /* longer than any name of the kernel: not one */
}

/* --- the top ones --------------------------------------------------------- */

static void
neighbours_add(struct source_neighbours *s, struct neighbour *n)
{
	char labels[LS_SERIES_LABELS_MAX_BYTES] = "", comm[32];
	size_t len = strlen(n->path);

	ls_series_label(labels, sizeof(labels), "cgroup",
		n->path +
			(len > NEIGHBOURS_LABEL_BYTES ? len - NEIGHBOURS_LABEL_BYTES
						      : 0));
	neighbours_comm(s, n, comm, sizeof(comm));
	if (comm[0] != '\0')
		ls_series_label(labels, sizeof(labels), "comm", comm);
	n->handle = ls_series_add_metric(s->table, (size_t)s->group,
		LS_METRIC_NEIGHBOUR_CPU, labels);
}

/* How many groups used more than this one. */
static size_t
neighbours_rank(const struct source_neighbours *s, const struct neighbour *n)
{
	size_t i, above = 0;

	for (i = 0; i < s->count; i++)
		above += s->n[i].grown_s > n->grown_s;
	return above;
}

static void
neighbours_choose(struct source_neighbours *s)
{
	size_t i, series = 0;

	for (i = 0; i < s->count; i++) {
		struct neighbour *n = &s->n[i];
		bool top = n->grown_s >= LS_NEIGHBOUR_MIN_S &&
			neighbours_rank(s, n) < LS_NEIGHBOURS_MAX / 2;

		n->quiet = top ? 0 : n->quiet + 1;
		if (n->handle >= 0 && n->quiet > LS_NEIGHBOUR_QUIET) {
			ls_series_remove(s->table, n->handle);
			n->handle = -1;
		}
		series += n->handle >= 0;
	}
	for (i = 0; i < s->count && series < LS_NEIGHBOURS_MAX; i++) {
		if (s->n[i].handle < 0 && s->n[i].quiet == 0) {
			neighbours_add(s, &s->n[i]);
			series += s->n[i].handle >= 0;
		}
	}
}

/* --- the source ----------------------------------------------------------- */

static int
neighbours_probe(void *self)
{
	static const struct {
		const char *dir, *file;
	} places[] = { { "fs/cgroup/cpuacct", "cpuacct.usage" },
		{ "fs/cgroup/cpu,cpuacct", "cpuacct.usage" },
		{ "fs/cgroup", "cpu.stat" } };
	struct source_neighbours *s = self;
	char sys_root[LS_PATH_MAX_BYTES], path[LS_PATH_MAX_BYTES];
	size_t i, len;

	(void)snprintf(sys_root, sizeof(sys_root), "%s", s->root);
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (ls_procfile_path(s->root, sizeof(s->root), sys_root,
			    places[i].dir) != 0 ||
			ls_procfile_path(path, sizeof(path), s->root, places[i].file) !=
				0)
			continue;
		if (ls_procfile_read_once(AT_FDCWD, path, s->text, sizeof(s->text),
			    &len) == 0) {
			s->file = places[i].file;
			return 0;
		}
	}
	return -LS_EABSENT;
}

static void
neighbours_read(void *self, unsigned due, uint64_t now_mono_ns, struct ls_sample *into)
{
	struct source_neighbours *s = self;

	(void)into; /* everything here has labels */
	if (s->file == NULL || !(due & LS_CADENCE_SLOW))
		return;
	if (s->turn % LS_CGROUPS_LIST_TURNS == 0)
		neighbours_list(s);
	if (s->turn++ % 3 != 0 && s->count > LS_CGROUPS_MAX / 4)
		return;
	for (size_t i = 0; i < s->count; i++)
		neighbours_read_one(s, &s->n[i]);
	neighbours_choose(s);
	for (size_t i = 0; i < s->count; i++) {
		if (s->n[i].read)
			ls_series_set(s->table, s->n[i].handle, s->n[i].used_s);
		else if (s->n[i].handle >= 0)
			ls_series_unset(s->table, s->n[i].handle);
	}
	ls_series_read(s->table, (size_t)s->group, now_mono_ns);
}

static void
neighbours_tell(const void *self, struct ls_doctor *d)
{
	const struct source_neighbours *s = self;
	if (s->file == NULL)
		ls_doctor_add(d, LS_DOCTOR_WARN, "neighbours", "control groups",
			"no hierarchy with CPU accounting below the sys root",
			"mount the host's /sys/fs/cgroup and point --sys-root to it");
	else
		ls_doctor_addf(d, s->left_out > 0 ? LS_DOCTOR_WARN : LS_DOCTOR_OK,
			"neighbours", "control groups",
			s->left_out > 0
				? "not available: the first groups in the list are watched"
				: "",
			"%zu groups with %s, %zu not watched", s->count, s->file,
			s->left_out);
}

int
ls_source_neighbours_new(const char *proc_root, const char *sys_root,
	struct ls_series_table *table, struct ls_source *ret_source)
{
	struct source_neighbours *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	(void)snprintf(s->proc_root, sizeof(s->proc_root), "%s", proc_root);
	/* probe makes it the hierarchy's */
	(void)snprintf(s->root, sizeof(s->root), "%s", sys_root);
	s->table = table;
	s->group = ls_series_group(table, "host.neighbours");
	*ret_source = (struct ls_source){ "neighbours", s, neighbours_probe,
		neighbours_read, neighbours_tell, free };
	return 0;
}
