/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/client/ring_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the ring is little-endian and written in place"
#endif

/* The header as it lies in the file, up to the environment. */
struct ring_file_header {
	char magic[8];
	uint32_t version, header_bytes, slot_bytes, slots;
	uint8_t id[LS_RING_ID_BYTES];
	uint8_t boot_id[16];
	uint64_t created_mono_ns;
	int64_t created_wall_ns;
	uint32_t pid, flags;
	int32_t attempt, rank, world, chips;
	uint8_t from[8];
	char job[LS_JOB_NAME_MAX_BYTES];
	char slice[LS_SLICE_NAME_MAX_BYTES];
	char role[LS_ROLE_NAME_MAX_BYTES];
	char host[LS_HOST_NAME_MAX_BYTES];
};

_Static_assert(offsetof(struct ring_file_header, created_mono_ns) == 56,
	"layout of ring.h");
_Static_assert(offsetof(struct ring_file_header, flags) == 76, "layout of ring.h");
_Static_assert(offsetof(struct ring_file_header, job) == 104, "layout of ring.h");
_Static_assert(offsetof(struct ring_file_header, host) == 360, "layout of ring.h");
_Static_assert(sizeof(struct ring_file_header) <= LS_RING_ENV_OFFSET,
	"layout of ring.h");
_Static_assert(sizeof(struct ls_ring_file_slot) == LS_RING_SLOT_BYTES,
	"layout of ring.h");
_Static_assert(offsetof(struct ls_ring_file_slot, barrier) == 136, "layout of ring.h");
_Static_assert(offsetof(struct ls_ring_file_slot, peer) == 248, "layout of ring.h");
_Static_assert(offsetof(struct ls_ring_file_slot, index_again) == 312,
	"layout of ring.h");
_Static_assert(offsetof(struct ls_ring_file_live, sequence_again) == 32,
	"layout of ring.h");

#define RING_FILE_BYTES \
	(LS_RING_HEADER_BYTES + (size_t)LS_RING_SLOTS * LS_RING_SLOT_BYTES)
#define RING_FILE_NAME_BYTES 64

static struct ls_ring_file_live *
ring_file_live_slot(const struct ls_ring_file *f)
{
	return (struct ls_ring_file_live *)(void *)(f->base + LS_RING_LIVE_OFFSET);
}

/* The kernel's boot id; zeros where it cannot be read (the agent then trusts its own).
 */
static void
ring_file_boot_id(uint8_t id[16])
{
	char text[64];
	ssize_t len = -1;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	unsigned digits = 0;

	memset(id, 0, 16);
	if (fd >= 0) {
		len = read(fd, text, sizeof(text));
		close(fd);
	}
	for (ssize_t i = 0; i < len && digits < 32; i++) {
		unsigned c = (unsigned char)text[i], v;

		if (c >= '0' && c <= '9')
			v = c - '0';
		else if (c >= 'a' && c <= 'f')
			v = c - 'a' + 10;
		else
			continue;
		id[digits / 2] = (uint8_t)((unsigned)id[digits / 2] << 4 | v);
		digits++;
	}
}

static void
ring_file_fill(uint8_t *base, const struct ls_client_identity *id,
	const uint8_t *ring_id, uint64_t now_ns)
{
	const struct ls_worker_info *w = &id->worker;
	struct ring_file_header *h = (struct ring_file_header *)(void *)base;
	struct ls_ring_file_live *live = (void *)(base + LS_RING_LIVE_OFFSET);
	struct timespec wall = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &wall); /* for information only */
	*h = (struct ring_file_header){ .version = LS_RING_VERSION,
		.header_bytes = LS_RING_HEADER_BYTES,
		.slot_bytes = LS_RING_SLOT_BYTES,
		.slots = LS_RING_SLOTS,
		.created_mono_ns = now_ns,
		.created_wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec,
		.pid = (uint32_t)getpid(),
		.attempt = w->attempt,
		.rank = w->rank,
		.world = w->world,
		.chips = w->chips };
	memcpy(h->magic, LS_RING_MAGIC, sizeof(h->magic));
	memcpy(h->id, ring_id, sizeof(h->id));
	ring_file_boot_id(h->boot_id);
	memcpy(h->from, id->from, sizeof(h->from));
	memcpy(h->job, w->job, sizeof(h->job));
	memcpy(h->slice, w->slice, sizeof(h->slice));
	memcpy(h->role, w->role, sizeof(h->role));
	memcpy(h->host, w->host, sizeof(h->host));
	memcpy(base + LS_RING_ENV_OFFSET, id->env, sizeof(id->env));
	live->phase = LS_PHASE_COUNT;
	live->since_ns = now_ns;
}

/* Allocates every block. Beyond RLIMIT_FSIZE the kernel would send SIGXFSZ: asked
 * first. */
static int
ring_file_allocate(int fd)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < RING_FILE_BYTES)
		return -EFBIG;
	return -posix_fallocate(fd, 0, (off_t)RING_FILE_BYTES);
}

static int
ring_file_lock(int fd)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1
	};

	return fcntl(fd, F_SETLK, &lock) == 0 ? 0 : -errno;
}

/* Names of the ring: "<pid>-<hex id>.ring", and the same with ".tmp" while it is made.
 */
static void
ring_file_names(const uint8_t *id, char *name, char *tmp)
{
	char hex[2 * LS_RING_ID_BYTES + 1];

	for (unsigned i = 0; i < LS_RING_ID_BYTES; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", id[i]);
	(void)snprintf(name, RING_FILE_NAME_BYTES, "%ld-%s.ring", (long)getpid(), hex);
	(void)snprintf(tmp, RING_FILE_NAME_BYTES, "%ld-%s.tmp", (long)getpid(), hex);
}

int
ls_ring_file_open(struct ls_ring_file *f, const char *dir,
	const struct ls_client_identity *id, uint64_t now_ns)
{
	char name[RING_FILE_NAME_BYTES], tmp[RING_FILE_NAME_BYTES];
	uint8_t ring_id[LS_RING_ID_BYTES];
	void *base = MAP_FAILED;
	int dir_fd, fd = -1, rc;

	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	if (getrandom(ring_id, sizeof(ring_id), GRND_NONBLOCK) != sizeof(ring_id)) {
		rc = -EAGAIN;
		goto out;
	}
	ring_file_names(ring_id, name, tmp);
	fd = openat(dir_fd, tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		0600);
	if (fd < 0) {
		rc = -errno;
		goto out;
	}
	rc = ring_file_allocate(fd);
	if (rc != 0)
		goto out;
	/* Populated: the first lap of the ring takes no page faults either. */
	base = mmap(NULL, RING_FILE_BYTES, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_POPULATE, fd, 0);
	if (base == MAP_FAILED) {
		rc = -errno;
		goto out;
	}
	ring_file_fill(base, id, ring_id, now_ns);
	rc = ring_file_lock(fd);
	if (rc != 0)
		goto out;
	if (fchmod(fd, 0644) != 0 || renameat(dir_fd, tmp, dir_fd, name) != 0) {
		rc = -errno;
		goto out;
	}
	f->base = base;
	f->fd = fd;
	f->head = 0;
	base = MAP_FAILED;
	fd = -1;
out:
	if (base != MAP_FAILED)
		(void)munmap(base, RING_FILE_BYTES);
	if (fd >= 0) {
		/* the failure to report is the first one */
		(void)unlinkat(dir_fd, tmp, 0);
		close(fd);
	}
	close(dir_fd);
	return rc;
}

/*
 * A reader copies the bytes of a slot upwards while we may write. So the last word of a
 * slot is written first and its first word last, both the same number: a copy in which
 * they agree is whole.
 */
void
ls_ring_file_live(struct ls_ring_file *f, uint64_t step, unsigned phase,
	uint64_t since_ns)
{
	struct ls_ring_file_live *live = ring_file_live_slot(f);
	uint64_t sequence = live->sequence_again + 2;

	__atomic_store_n(&live->sequence, sequence - 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&live->sequence_again, sequence, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&live->step, step, __ATOMIC_RELAXED);
	__atomic_store_n(&live->phase, phase, __ATOMIC_RELAXED);
	__atomic_store_n(&live->since_ns, since_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&live->sequence, sequence, __ATOMIC_RELEASE);
}

void
ls_ring_file_push(struct ls_ring_file *f, struct ls_ring_file_slot *slot)
{
	uint8_t *at = f->base + LS_RING_HEADER_BYTES +
		(f->head % LS_RING_SLOTS) * LS_RING_SLOT_BYTES;
	struct ls_ring_file_slot *to = (struct ls_ring_file_slot *)(void *)at;
	const size_t body = offsetof(struct ls_ring_file_slot, step);

	__atomic_store_n(&to->index, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&to->index_again, f->head + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(at + body, (const uint8_t *)slot + body,
		offsetof(struct ls_ring_file_slot, index_again) - body);
	__atomic_store_n(&to->index, f->head + 1, __ATOMIC_RELEASE);
	f->head++;
	__atomic_store_n((uint64_t *)(void *)(f->base + LS_RING_HEAD_OFFSET), f->head,
		__ATOMIC_RELEASE);
}

static void
ring_file_end(struct ls_ring_file *f, uint32_t flag)
{
	if (f->base == NULL)
		return;
	__atomic_store_n(&((struct ring_file_header *)(void *)f->base)->flags, flag,
		__ATOMIC_RELEASE);
	ls_ring_file_abandon(f);
}

void
ls_ring_file_close(struct ls_ring_file *f)
{
	ring_file_end(f, LS_RING_ENDED);
}

void
ls_ring_file_fail(struct ls_ring_file *f)
{
	ring_file_end(f, LS_RING_FAILED);
}

void
ls_ring_file_abandon(struct ls_ring_file *f)
{
	if (f->base == NULL)
		return;
	(void)munmap(f->base, RING_FILE_BYTES);
	close(f->fd); /* drops this process's lock, and no other's */
	f->base = NULL;
}
