/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/support/disk/powercut.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tests/support/harness.h"

enum powercut_kind {
	POWERCUT_CREATE, /* `node` gets a name in `dir` */
	POWERCUT_RENAME, /* what was `name` in `dir` is `to` */
	POWERCUT_UNLINK,
	POWERCUT_WRITE,
	POWERCUT_TRUNCATE,
	POWERCUT_SYNC /* of a file, or of the entries of a directory */
};

struct powercut_op {
	enum powercut_kind kind;
	int stage, node, dir;
	char name[POWERCUT_NAME], to[POWERCUT_NAME];
	size_t at, len; /* TRUNCATE: at is the size */
	uint8_t *data;
};

struct powercut_node {
	bool is_dir;
	int parent; /* of a directory */
	char path[4 * POWERCUT_NAME]; /* below the root */
};

struct powercut_entry {
	int dir, node;
	char name[POWERCUT_NAME];
};

struct powercut_entries {
	size_t count;
	struct powercut_entry at[POWERCUT_FDS];
};

static char powercut_root[PATH_MAX]; /* "": nothing is logged */
static struct powercut_op *powercut_ops;
static size_t powercut_op_count, powercut_op_room;
static struct powercut_node powercut_nodes[POWERCUT_FDS]; /* 0 is the root */
static int powercut_node_count, powercut_stage_now;
static struct powercut_entries powercut_live; /* while recording */
static int powercut_fds[POWERCUT_FDS]; /* node + 1 */

/* --- the log -------------------------------------------------------------- */

static struct powercut_op *
powercut_add(enum powercut_kind kind, int node)
{
	struct powercut_op *op;

	if (powercut_op_count == powercut_op_room) {
		powercut_op_room = powercut_op_room * 2 + 1024;
		powercut_ops = realloc(powercut_ops, powercut_op_room * sizeof(*op));
		ck_assert_ptr_nonnull(powercut_ops);
	}
	op = &powercut_ops[powercut_op_count++];
	*op = (struct powercut_op){
		.kind = kind, .node = node, .stage = powercut_stage_now
	};
	return op;
}

static struct powercut_entry *
powercut_find(struct powercut_entries *e, int dir, const char *name)
{
	size_t i;

	for (i = 0; i < e->count; i++)
		if (e->at[i].dir == dir && strcmp(e->at[i].name, name) == 0)
			return &e->at[i];
	return NULL;
}

/* What an operation of a directory does to its entries. */
static void
powercut_apply(struct powercut_entries *e, const struct powercut_op *op)
{
	struct powercut_entry *old = powercut_find(e, op->dir, op->name), *over;

	if (op->kind == POWERCUT_CREATE) {
		ck_assert(old == NULL && e->count < POWERCUT_FDS);
		old = &e->at[e->count++];
		old->dir = op->dir;
		old->node = op->node;
		memcpy(old->name, op->name, sizeof(old->name));
		return;
	}
	ck_assert_ptr_nonnull(old);
	if (op->kind == POWERCUT_UNLINK) {
		*old = e->at[--e->count];
		return;
	}
	over = powercut_find(e, op->dir, op->to);
	if (over != NULL)
		over->node = old->node;
	if (over != NULL)
		*old = e->at[--e->count];
	else
		memcpy(old->name, op->to, sizeof(old->name));
}

/* The node of a path below the root, or -1; ret_dir and ret_name: of its last part. */
static int
powercut_walk(const char *path, int *ret_dir, char *ret_name)
{
	size_t len = strlen(powercut_root), n;
	int node = 0;

	if (len == 0 || strncmp(path, powercut_root, len) != 0 ||
		(path[len] != '/' && path[len] != '\0')) {
		*ret_dir = -1;
		return -1;
	}
	*ret_dir = 0;
	ret_name[0] = '\0';
	for (path += len; *path == '/'; path += n) {
		struct powercut_entry *e;

		path++;
		n = strcspn(path, "/");
		ck_assert(node >= 0 && n < POWERCUT_NAME);
		if (n == 0)
			continue; /* a slash at the end */
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			node = powercut_nodes[node].parent;
			continue;
		}
		*ret_dir = node;
		memcpy(ret_name, path, n);
		ret_name[n] = '\0';
		e = powercut_find(&powercut_live, node, ret_name);
		node = e != NULL ? e->node : -1;
	}
	return node;
}

static void
powercut_entry_op(enum powercut_kind kind, int node, int dir, const char *name,
	const char *to)
{
	struct powercut_op *op = powercut_add(kind, node);

	op->dir = dir;
	(void)snprintf(op->name, sizeof(op->name), "%s", name);
	(void)snprintf(op->to, sizeof(op->to), "%s", to);
	powercut_apply(&powercut_live, op);
}

static int
powercut_create(int dir, const char *name, bool is_dir)
{
	int node = powercut_node_count++, n;
	char path[sizeof(powercut_nodes[0].path)];

	ck_assert_int_lt(node, POWERCUT_FDS);
	powercut_nodes[node].is_dir = is_dir;
	powercut_nodes[node].parent = dir;
	n = snprintf(path, sizeof(path), "%s%s%s", powercut_nodes[dir].path,
		dir != 0 ? "/" : "", name);
	ck_assert(n > 0 && (size_t)n < sizeof(path));
	memcpy(powercut_nodes[node].path, path, sizeof(path));
	powercut_entry_op(POWERCUT_CREATE, node, dir, name, "");
	return node;
}

/* The node that a descriptor writes to, or -1. */
static int
powercut_of(int fd)
{
	return powercut_root[0] != '\0' && fd >= 0 && fd < POWERCUT_FDS
		? powercut_fds[fd] - 1
		: -1;
}

static void
powercut_wrote(int fd, const void *data, ssize_t len, off_t at)
{
	int node = powercut_of(fd);
	struct powercut_op *op;

	if (node < 0 || len <= 0)
		return;
	op = powercut_add(POWERCUT_WRITE, node);
	op->at = (size_t)at;
	op->len = (size_t)len;
	op->data = malloc(op->len);
	ck_assert_ptr_nonnull(op->data);
	memcpy(op->data, data, op->len);
}

void
ls_powercut_record(const char *root)
{
	size_t i;

	for (i = 0; i < powercut_op_count; i++)
		free(powercut_ops[i].data);
	powercut_op_count = 0;
	powercut_live.count = 0;
	powercut_stage_now = 0;
	memset(powercut_nodes, 0, sizeof(powercut_nodes));
	memset(powercut_fds, 0, sizeof(powercut_fds));
	powercut_nodes[0].is_dir = true;
	powercut_node_count = 1;
	(void)snprintf(powercut_root, sizeof(powercut_root), "%s", root);
}

void
ls_powercut_stop(void)
{
	powercut_root[0] = '\0';
}

size_t
ls_powercut_count(void)
{
	return powercut_op_count;
}

void
ls_powercut_stage(int stage)
{
	powercut_stage_now = stage;
}

int
ls_powercut_stage_of(size_t operation)
{
	return powercut_ops[operation].stage;
}

/* --- libc's functions ----------------------------------------------------- */

/* Own names, so that no header's inline form is in the way. */
int powercut_open(const char *path, int flags, ...) __asm__("open");
int powercut_open64(const char *path, int flags, ...) __asm__("open64");
int powercut_close(int fd) __asm__("close");
ssize_t powercut_write(int fd, const void *data, size_t len) __asm__("write");
ssize_t powercut_pwrite(int fd, const void *data, size_t len,
	off_t at) __asm__("pwrite");
ssize_t powercut_pwrite64(int fd, const void *data, size_t len,
	off_t at) __asm__("pwrite64");
int powercut_ftruncate(int fd, off_t size) __asm__("ftruncate");
int powercut_ftruncate64(int fd, off_t size) __asm__("ftruncate64");
int powercut_fsync(int fd) __asm__("fsync");
int powercut_fdatasync(int fd) __asm__("fdatasync");
int powercut_rename(const char *from, const char *to) __asm__("rename");
int powercut_unlink(const char *path) __asm__("unlink");
int powercut_mkdir(const char *path, mode_t mode) __asm__("mkdir");

static int
powercut_opened(const char *path, int flags, mode_t mode)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode), dir, node;
	char name[POWERCUT_NAME];

	if (fd < 0 || powercut_root[0] == '\0')
		return fd;
	node = powercut_walk(path, &dir, name);
	if (dir < 0)
		return fd;
	ck_assert_int_lt(fd, POWERCUT_FDS);
	if (node < 0)
		node = powercut_create(dir, name, false);
	else if ((flags & O_TRUNC) != 0)
		powercut_add(POWERCUT_TRUNCATE, node)->at = 0;
	powercut_fds[fd] = node + 1;
	return fd;
}

int
powercut_open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return powercut_opened(path, flags, mode);
}

int
powercut_open64(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return powercut_opened(path, flags, mode);
}

int
powercut_close(int fd)
{
	if (fd >= 0 && fd < POWERCUT_FDS)
		powercut_fds[fd] = 0;
	return (int)syscall(SYS_close, fd);
}

ssize_t
powercut_write(int fd, const void *data, size_t len)
{
	off_t at = powercut_of(fd) >= 0 ? lseek(fd, 0, SEEK_CUR) : 0;
	ssize_t n = syscall(SYS_write, fd, data, len);

	powercut_wrote(fd, data, n, at);
	return n;
}

ssize_t
powercut_pwrite(int fd, const void *data, size_t len, off_t at)
{
	ssize_t n = syscall(SYS_pwrite64, fd, data, len, at);

	powercut_wrote(fd, data, n, at);
	return n;
}

ssize_t
powercut_pwrite64(int fd, const void *data, size_t len, off_t at)
{
	return powercut_pwrite(fd, data, len, at);
}

int
powercut_ftruncate(int fd, off_t size)
{
	int rc = (int)syscall(SYS_ftruncate, fd, size);

	if (rc == 0 && powercut_of(fd) >= 0)
		powercut_add(POWERCUT_TRUNCATE, powercut_of(fd))->at = (size_t)size;
	return rc;
}

int
powercut_ftruncate64(int fd, off_t size)
{
	return powercut_ftruncate(fd, size);
}

int
powercut_fsync(int fd)
{
	if (powercut_of(fd) >= 0)
		(void)powercut_add(POWERCUT_SYNC, powercut_of(fd));
	return fcntl(fd, F_GETFD) < 0 ? -1 : 0;
}

int
powercut_fdatasync(int fd)
{
	return powercut_fsync(fd);
}

int
powercut_rename(const char *from, const char *to)
{
	int rc = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0), dir,
	    to_dir, node;
	char name[POWERCUT_NAME], to_name[POWERCUT_NAME];

	node = powercut_walk(from, &dir, name);
	if (rc != 0 || dir < 0)
		return rc;
	(void)powercut_walk(to, &to_dir, to_name);
	ck_assert_int_eq(dir, to_dir);
	powercut_entry_op(POWERCUT_RENAME, node, dir, name, to_name);
	return rc;
}

int
powercut_unlink(const char *path)
{
	int rc = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0), dir, node;
	char name[POWERCUT_NAME];

	node = powercut_walk(path, &dir, name);
	if (rc == 0 && dir >= 0)
		powercut_entry_op(POWERCUT_UNLINK, node, dir, name, "");
	return rc;
}

int
powercut_mkdir(const char *path, mode_t mode)
{
	int rc = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode), dir;
	char name[POWERCUT_NAME];

	(void)powercut_walk(path, &dir, name);
	if (rc == 0 && dir >= 0)
		(void)powercut_create(dir, name, true);
	return rc;
}

/* --- after the cut -------------------------------------------------------- */

/* How entries are forgotten. */
enum powercut_memory {
	POWERCUT_NOTHING, /* of what was not synced */
	POWERCUT_ALL,
	POWERCUT_UNTIL, /* a time, the same in all directories, as ext4 does */
	POWERCUT_SOME,
	POWERCUT_MEMORIES
};

struct powercut_play {
	const struct ls_powercut *cut;
	uint64_t random;
	size_t sector;
	bool garbage; /* where the first write of a sector is forgotten; else zeros */
	enum powercut_memory memory;
	size_t until;
	struct powercut_entries entries;
	struct ls_powercut_loss loss;
};

static size_t
powercut_below(struct powercut_play *p, size_t n)
{
	return (size_t)(ls_test_random(&p->random) * (double)n);
}

/* The operation after the last sync of a file or directory. */
static size_t
powercut_synced(const struct powercut_play *p, int node)
{
	const struct powercut_node *n = &powercut_nodes[node];
	size_t i;

	if (n->is_dir && p->cut->no_sync_of != NULL &&
		strcmp(n->path, p->cut->no_sync_of) == 0)
		return 0;
	for (i = p->cut->at; i > 0; i--)
		if (powercut_ops[i - 1].kind == POWERCUT_SYNC &&
			powercut_ops[i - 1].node == node)
			return i;
	return 0;
}

/* Names of a directory whose first forgotten operation was met. */
struct powercut_blocked {
	size_t count;
	const char *name[2 * POWERCUT_FDS];
};

static bool
powercut_is_blocked(const struct powercut_blocked *b, const char *name)
{
	size_t i;

	for (i = 0; i < b->count; i++)
		if (strcmp(b->name[i], name) == 0)
			return true;
	return false;
}

static bool
powercut_remembers(struct powercut_play *p, const struct powercut_blocked *b,
	const struct powercut_op *op)
{
	size_t i = (size_t)(op - powercut_ops);

	if (powercut_is_blocked(b, op->name) || powercut_is_blocked(b, op->to))
		return false;
	return p->memory == POWERCUT_ALL ||
		(p->memory == POWERCUT_UNTIL && i < p->until) ||
		(p->memory == POWERCUT_SOME && powercut_below(p, 2) == 0);
}

static void
powercut_entries_of(struct powercut_play *p, int dir)
{
	static struct powercut_blocked blocked;
	size_t i, synced = powercut_synced(p, dir);

	blocked.count = 0;
	for (i = 0; i < p->cut->at; i++) {
		const struct powercut_op *op = &powercut_ops[i];

		if (op->kind > POWERCUT_UNLINK || op->dir != dir)
			continue;
		p->loss.entries += i >= synced;
		if (i < synced || powercut_remembers(p, &blocked, op)) {
			powercut_apply(&p->entries, op);
			continue;
		}
		p->loss.entries_lost++;
		ck_assert_uint_lt(blocked.count + 2, 2 * POWERCUT_FDS);
		blocked.name[blocked.count++] = op->name;
		blocked.name[blocked.count++] = op->to[0] != '\0' ? op->to : op->name;
	}
}

struct powercut_file {
	size_t size, room;
	bool size_stays;
	uint8_t *data;
	bool *stays; /* by sector: later writes of the sector are forgotten */
	bool *written;
};

/* One write as far as it is remembered, sector by sector. forget: of 256. */
static void
powercut_write_sectors(struct powercut_play *p, struct powercut_file *f,
	const struct powercut_op *op, bool synced, size_t forget)
{
	size_t at = op->at, end = op->at + op->len, n;

	for (; at < end; at += n) {
		size_t s = at / p->sector;

		n = (s + 1) * p->sector - at;
		n = n < end - at ? n : end - at;
		if (!synced) {
			f->stays[s] = f->stays[s] || powercut_below(p, 256) < forget;
			p->loss.sectors++;
			p->loss.sectors_lost += f->stays[s];
		}
		if (!f->stays[s])
			memcpy(f->data + at, op->data + (at - op->at), n);
		else if (p->garbage && !f->written[s])
			memset(f->data + at, 0xa5, n);
		f->written[s] = f->written[s] || !f->stays[s];
	}
	f->size_stays = f->size_stays || (!synced && powercut_below(p, 256) < forget);
	if (!f->size_stays && end > f->size)
		f->size = end;
}

static void
powercut_truncate(struct powercut_play *p, struct powercut_file *f, size_t size,
	bool synced, size_t forget)
{
	f->size_stays = f->size_stays || (!synced && powercut_below(p, 256) < forget);
	if (f->size_stays)
		return;
	if (size < f->size)
		memset(f->data + size, 0, f->size - size);
	f->size = size;
}

static void
powercut_play_file(struct powercut_play *p, int node, struct powercut_file *f)
{
	static const size_t forgets[] = { 0, 256, 8, 128 };
	size_t i, synced = powercut_synced(p, node);
	size_t forget = forgets[powercut_below(p, 4)];

	for (i = 0; i < p->cut->at; i++) {
		const struct powercut_op *op = &powercut_ops[i];

		if (op->node != node)
			continue;
		if (op->kind == POWERCUT_WRITE)
			powercut_write_sectors(p, f, op, i < synced, forget);
		else if (op->kind == POWERCUT_TRUNCATE)
			powercut_truncate(p, f, op->at, i < synced, forget);
	}
}

static void
powercut_make_file(struct powercut_play *p, int node, const char *path)
{
	struct powercut_file f = { 0 };
	size_t i, sectors;
	FILE *out;

	for (i = 0; i < p->cut->at; i++) {
		const struct powercut_op *op = &powercut_ops[i];

		if (op->node == node && op->kind >= POWERCUT_WRITE &&
			op->at + op->len > f.room)
			f.room = op->at + op->len;
	}
	sectors = f.room / p->sector + 1;
	f.data = calloc(sectors, p->sector);
	f.stays = calloc(sectors, sizeof(*f.stays));
	f.written = calloc(sectors, sizeof(*f.written));
	ck_assert(f.data != NULL && f.stays != NULL && f.written != NULL);
	powercut_play_file(p, node, &f);
	out = fopen(path, "wb");
	ck_assert_msg(out != NULL, "cannot make %s", path);
	ck_assert_uint_eq(fwrite(f.data, 1, f.size, out), f.size);
	ck_assert_int_eq(fclose(out), 0);
	free(f.data);
	free(f.stays);
	free(f.written);
}

static void
powercut_make_dir(struct powercut_play *p, int dir, const char *path)
{
	char below[PATH_MAX];
	size_t i;

	ck_assert_msg(mkdir(path, 0750) == 0, "cannot make %s", path);
	for (i = 0; i < p->entries.count; i++) {
		struct powercut_entry e = p->entries.at[i];

		if (e.dir != dir)
			continue;
		(void)snprintf(below, sizeof(below), "%.*s/%s",
			PATH_MAX - POWERCUT_NAME - 2, path, e.name);
		if (powercut_nodes[e.node].is_dir)
			powercut_make_dir(p, e.node, below);
		else
			powercut_make_file(p, e.node, below);
	}
}

void
ls_powercut_restore(const struct ls_powercut *cut, const char *to,
	struct ls_powercut_loss *ret_loss)
{
	static struct powercut_play p;
	int node;

	p = (struct powercut_play){ .cut = cut, .random = cut->seed };
	(void)powercut_below(&p, 2); /* seeds that follow each other begin alike */
	p.sector = powercut_below(&p, 2) == 0 ? 512 : 4096;
	p.garbage = powercut_below(&p, 2) == 0;
	p.memory = (enum powercut_memory)powercut_below(&p, POWERCUT_MEMORIES);
	p.until = powercut_below(&p, cut->at + 1);
	for (node = 0; node < powercut_node_count; node++)
		if (powercut_nodes[node].is_dir)
			powercut_entries_of(&p, node);
	powercut_make_dir(&p, 0, to);
	*ret_loss = p.loss;
}
