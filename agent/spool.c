/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/spool_file.h"
#include "agent/spool_format.h"
#include "proto/base/log.h"

#define SPOOL_BUF_BYTES (LS_REPORT_ITEMS_BYTES) /* holds at least one record of any size */
_Static_assert(SPOOL_BUF_BYTES >= LS_ITEM_MAX_BYTES + LS_SPOOL_RECORD_BYTES, "any record fits");

struct ls_spool {
	int dir_fd, lock_fd, fd;
	uint64_t max_bytes;
	struct ls_spool_header header;
	uint64_t end;       /* of the last whole record */
	uint64_t head;      /* of the first record that may be an unacknowledged item */
	uint64_t acked, next;
	bool torn;          /* bytes beyond end must be cut before anything is appended */
	bool full;          /* a rewrite found nothing to free; until the next ack */
	size_t ring_count;
	struct ls_spool_ring ring[LS_SPOOL_RINGS_MAX];
	struct ls_spool_stats stats;
	uint8_t buf[SPOOL_BUF_BYTES];
};

/* --- cursors ----------------------------------------------------------------------- */

static size_t
spool_ring_index(const struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES])
{
	size_t i;

	for (i = 0; i < s->ring_count; i++) {
		if (memcmp(s->ring[i].id, id, LS_RING_ID_BYTES) == 0)
			break;
	}
	return i;
}

static struct ls_spool_ring *
spool_ring(struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES])
{
	size_t i = spool_ring_index(s, id);

	return i < s->ring_count ? &s->ring[i] : NULL;
}

static void
spool_ring_remove(struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES])
{
	struct ls_spool_ring *r = spool_ring(s, id);

	if (r != NULL)
		*r = s->ring[--s->ring_count];
}

/* Moves the cursor by one record of the log. False if there are too many rings. */
static bool
spool_ring_move(struct ls_spool *s, const struct ls_spool_record *rec)
{
	struct ls_spool_ring *r = spool_ring(s, rec->ring_id);
	uint64_t next = 0;

	if (r == NULL) {
		if (s->ring_count == LS_SPOOL_RINGS_MAX)
			return false;
		r = &s->ring[s->ring_count++];
		memset(r, 0, sizeof(*r));
		memcpy(r->id, rec->ring_id, sizeof(r->id));
	}
	switch (rec->type) {
	case LS_SPOOL_STEPS:
	case LS_SPOOL_GAP:
		next = rec->first_index + rec->count;
		break;
	case LS_SPOOL_RING:
		next = rec->first_index;
		r->end_seq = rec->seq;
		break;
	case LS_SPOOL_END:
		r->end_seq = rec->seq;
		break;
	case LS_SPOOL_ACK:
	case LS_SPOOL_FORGET:
		break;
	}
	if (next > r->next)
		r->next = next;
	return true;
}

/* --- bytes ------------------------------------------------------------------------- */

/* Appends one record; on failure the file ends where it did. */
static int
spool_append(struct ls_spool *s, const struct ls_spool_record *r)
{
	int rc;

	if (s->torn && ftruncate(s->fd, (off_t)s->end) != 0)
		return -errno;
	s->torn = false;
	rc = ls_spool_write_record(s->fd, r, s->end);
	if (rc != 0) {
		s->torn = ftruncate(s->fd, (off_t)s->end) != 0;
		return rc;
	}
	s->end += LS_SPOOL_RECORD_BYTES + r->len;
	return 0;
}

/*
 * Calls each(arg, record) for the whole records from offset to limit; *ret_end is where the last one
 * ended. Stops at the first failure of each. -LS_ECORRUPT: damage; a record cut short is no failure.
 */
static int
spool_walk(struct ls_spool *s, uint64_t offset, uint64_t limit,
	int (*each)(void *arg, const struct ls_spool_record *r), void *arg, uint64_t *ret_end)
{
	struct ls_spool_record r;
	size_t pos, len;
	ssize_t n;
	int rc = 0;

	*ret_end = offset;
	while (rc == 0 && offset < limit) {
		len = limit - offset < sizeof(s->buf) ? (size_t)(limit - offset) : sizeof(s->buf);
		n = ls_spool_pread(s->fd, s->buf, len, offset);
		if (n < 0)
			return (int)n;
		len = (size_t)n;
		for (pos = 0; rc == 0; pos += LS_SPOOL_RECORD_BYTES + r.len) {
			rc = ls_spool_record_get(s->buf + pos, len - pos, &r);
			if (rc == 0)
				rc = each(arg, &r);
			if (rc != 0)
				break;
		}
		*ret_end = offset += pos;
		if (rc == -LS_EPARSE && pos > 0)
			rc = 0; /* go on with what follows the last whole one */
	}
	return rc == -LS_EPARSE ? 0 : rc;
}

/* --- rewriting --------------------------------------------------------------------- */

/* A rewrite under way: unacknowledged items are copied, the oldest as gaps while too much. */
struct spool_rewrite {
	struct ls_spool *s;
	int fd;
	uint64_t end;
	uint64_t excess;   /* bytes still to be saved */
	uint64_t dropped;  /* records that became gaps */
};

/* Writes the gap that stands for an item of steps: same number, same records. */
static int
spool_copy_as_gap(struct spool_rewrite *w, const struct ls_spool_record *r)
{
	struct ls_wire_item gap = { .seq = r->seq, .kind = LS_WIRE_GAP,
		.first_index = r->first_index, .count = r->count,
		.reason = LS_GAP_SPOOL_FULL };
	struct ls_spool_record rec = *r;
	uint8_t *bytes = NULL;
	size_t len;
	int rc;

	memcpy(gap.ring_id, r->ring_id, sizeof(gap.ring_id));
	rc = ls_wire_item_pack(&gap, &bytes, &len);
	if (rc != 0)
		return rc;
	rec.type = LS_SPOOL_GAP;
	rec.payload = bytes;
	rec.len = len;
	rc = ls_spool_write_record(w->fd, &rec, w->end);
	free(bytes);
	if (rc != 0)
		return rc;
	w->end += LS_SPOOL_RECORD_BYTES + len;
	w->excess -= r->len - len < w->excess ? r->len - len : w->excess;
	w->dropped += r->count;
	return 0;
}

#define SPOOL_GAP_BYTES 64u /* an encoded gap is shorter; steps below that are not worth dropping */

static int
spool_copy(void *arg, const struct ls_spool_record *r)
{
	struct spool_rewrite *w = arg;
	int rc;

	if (!ls_spool_is_item(r) || r->seq <= w->s->acked)
		return 0;
	if (w->excess > 0 && r->type == LS_SPOOL_STEPS && r->len > SPOOL_GAP_BYTES)
		return spool_copy_as_gap(w, r);
	rc = ls_spool_write_record(w->fd, r, w->end);
	if (rc == 0)
		w->end += LS_SPOOL_RECORD_BYTES + r->len;
	return rc;
}

/* Writes header and cursors of the new file. */
static int
spool_begin(struct spool_rewrite *w, const struct ls_spool_header *h)
{
	size_t i;
	int rc;

	rc = ls_spool_write_header(w->fd, h);
	w->end = LS_SPOOL_HEADER_BYTES;
	for (i = 0; i < w->s->ring_count && rc == 0; i++) {
		struct ls_spool_record r = { .type = LS_SPOOL_RING,
			.first_index = w->s->ring[i].next, .seq = w->s->ring[i].end_seq };

		memcpy(r.ring_id, w->s->ring[i].id, sizeof(r.ring_id));
		rc = ls_spool_write_record(w->fd, &r, w->end);
		w->end += LS_SPOOL_RECORD_BYTES;
	}
	return rc;
}

/*
 * Writes the spool anew (cursors and what is not acknowledged, saving `excess` bytes of it) beside the
 * old file and puts it in its place. On failure the old file is still there, untouched.
 */
static int
spool_rewrite(struct ls_spool *s, uint64_t excess)
{
	struct spool_rewrite w = { .s = s, .fd = -1, .excess = excess };
	struct ls_spool_header h = s->header;
	uint64_t start, at;
	int rc;

	h.base = s->acked + 1;
	w.fd = openat(s->dir_fd, "spool.new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		0600);
	if (w.fd < 0)
		return -errno;
	rc = spool_begin(&w, &h);
	start = w.end;
	if (rc == 0 && s->fd >= 0)
		rc = spool_walk(s, s->head, s->end, spool_copy, &w, &at);
	if (rc == 0 && renameat(s->dir_fd, "spool.new", s->dir_fd, "spool") != 0)
		rc = -errno;
	if (rc != 0) {
		(void)close(w.fd); /* given up */
		(void)unlinkat(s->dir_fd, "spool.new", 0);
		return rc;
	}
	if (s->fd >= 0)
		(void)close(s->fd); /* replaced */
	s->fd = w.fd;
	s->header = h;
	s->head = start;
	s->end = w.end;
	s->torn = false;
	s->stats.dropped_records += w.dropped;
	s->stats.rewrites++;
	return 0;
}

/* Makes room for size bytes, if need be by dropping the oldest. -ENOSPC. */
static int
spool_make_room(struct ls_spool *s, uint64_t size)
{
	uint64_t live = s->end - s->head, half = s->max_bytes / 2, before;
	int rc;

	if (s->end + size <= s->max_bytes)
		return 0;
	if (s->full)
		return -ENOSPC;
	before = s->stats.dropped_records;
	rc = spool_rewrite(s, live + size > half ? live + size - half : 0);
	if (rc != 0)
		return rc;
	if (s->stats.dropped_records != before)
		ls_log(LS_LOG_WARN, "spool",
			"full: %llu step records dropped, their gap will be reported",
			(unsigned long long)(s->stats.dropped_records - before));
	s->full = s->end + size > s->max_bytes;
	return s->full ? -ENOSPC : 0;
}

/* --- opening ----------------------------------------------------------------------- */

/* One record of the log at start. */
static int
spool_replay(void *arg, const struct ls_spool_record *r)
{
	struct ls_spool *s = arg;

	switch (r->type) {
	case LS_SPOOL_STEPS:
	case LS_SPOOL_GAP:
	case LS_SPOOL_END:
		if (r->seq != s->next || r->len == 0)
			return -LS_ECORRUPT;
		s->next++;
		return spool_ring_move(s, r) ? 0 : -LS_ECORRUPT;
	case LS_SPOOL_ACK:
		if (r->seq < s->acked || r->seq >= s->next)
			return -LS_ECORRUPT;
		s->acked = r->seq;
		return 0;
	case LS_SPOOL_RING:
		return spool_ring_move(s, r) ? 0 : -LS_ECORRUPT;
	case LS_SPOOL_FORGET:
		spool_ring_remove(s, r->ring_id);
		return 0;
	}
	return -LS_ECORRUPT;
}

/* Starts with nothing and a new boot. */
static int
spool_fresh(struct ls_spool *s, const uint8_t kernel_boot_id[16])
{
	if (s->fd >= 0)
		(void)close(s->fd); /* set aside or outlived */
	s->fd = -1;
	s->ring_count = 0;
	s->acked = 0;
	s->next = 1;
	memcpy(s->header.kernel_boot_id, kernel_boot_id, sizeof(s->header.kernel_boot_id));
	if (getrandom(s->header.boot, sizeof(s->header.boot), 0) != sizeof(s->header.boot))
		return -EIO;
	return spool_rewrite(s, 0);
}

/* Moves head over what is acknowledged. */
static void
spool_skip_acked(struct ls_spool *s)
{
	uint8_t head[LS_SPOOL_RECORD_BYTES];
	struct ls_spool_record r;

	while (s->head < s->end) {
		if (ls_spool_pread(s->fd, head, sizeof(head), s->head) != sizeof(head) ||
			ls_spool_record_peek(head, &r) != 0)
			return; /* reading the items will say so */
		if (ls_spool_is_item(&r) && r.seq > s->acked)
			return;
		s->head += LS_SPOOL_RECORD_BYTES + r.len;
	}
}

/* Reads the log that is there. 0, 1 if there is none to go on with, or -errno. */
static int
spool_load(struct ls_spool *s, const uint8_t kernel_boot_id[16])
{
	struct stat st;
	uint64_t size;
	ssize_t n;
	int rc;

	s->fd = openat(s->dir_fd, "spool", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (s->fd < 0)
		return errno == ENOENT ? 1 : -errno;
	if (fstat(s->fd, &st) != 0)
		return -errno;
	size = (uint64_t)st.st_size;
	n = ls_spool_pread(s->fd, s->buf, LS_SPOOL_HEADER_BYTES, 0);
	if (n < 0)
		return (int)n;
	rc = ls_spool_header_get(s->buf, (size_t)n, &s->header);
	if (rc == 0) {
		s->acked = s->header.base - 1;
		s->next = s->header.base;
		rc = spool_walk(
			s, LS_SPOOL_HEADER_BYTES, size, spool_replay, s, &s->end);
	}
	if (rc == -LS_EPARSE || rc == -LS_ECORRUPT) {
		s->stats.discarded_items += s->next - 1 - s->acked;
		ls_log(LS_LOG_WARN, "spool",
			"damaged after %llu bytes: set aside as spool.damaged, numbering anew",
			(unsigned long long)s->end);
		return renameat(s->dir_fd, "spool", s->dir_fd, "spool.damaged") != 0 ? -errno : 1;
	}
	if (rc != 0)
		return rc;
	if (memcmp(s->header.kernel_boot_id, kernel_boot_id, 16) != 0) {
		s->stats.discarded_items += s->next - 1 - s->acked;
		ls_log(LS_LOG_WARN, "spool",
			"from before the machine started: %llu items dropped, numbering anew",
			(unsigned long long)s->stats.discarded_items);
		return 1;
	}
	s->torn = s->end != size;
	s->head = LS_SPOOL_HEADER_BYTES;
	return 0;
}

/* Opens directory and lock. */
static int
spool_claim(struct ls_spool *s, const char *dir)
{
	if (mkdir(dir, 0750) != 0 && errno != EEXIST)
		return -errno;
	s->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return -errno;
	s->lock_fd = openat(s->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0)
		return -errno;
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK ? -LS_EBUSY : -errno;
	return 0;
}

int
ls_spool_open(const char *dir, uint64_t max_bytes, const uint8_t kernel_boot_id[16],
	struct ls_spool **ret_spool)
{
	struct ls_spool *s = calloc(1, sizeof(*s));
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->dir_fd = s->lock_fd = s->fd = -1;
	s->max_bytes = max_bytes;
	s->next = 1;
	rc = spool_claim(s, dir);
	if (rc == 0)
		rc = spool_load(s, kernel_boot_id);
	if (rc == 1)
		rc = spool_fresh(s, kernel_boot_id);
	if (rc != 0) {
		ls_spool_close(s);
		return rc;
	}
	spool_skip_acked(s);
	*ret_spool = s;
	return 0;
}

void
ls_spool_close(struct ls_spool *s)
{
	if (s == NULL)
		return;
	if (s->fd >= 0)
		(void)close(s->fd); /* written through, never synced: see spool.h */
	if (s->lock_fd >= 0)
		(void)close(s->lock_fd);
	if (s->dir_fd >= 0)
		(void)close(s->dir_fd);
	free(s);
}

/* --- use --------------------------------------------------------------------------- */

int
ls_spool_push(struct ls_spool *s, struct ls_wire_item *item)
{
	static const enum ls_spool_type types[] = { [LS_WIRE_STEPS] = LS_SPOOL_STEPS,
		[LS_WIRE_GAP] = LS_SPOOL_GAP, [LS_WIRE_END] = LS_SPOOL_END };
	struct ls_spool_record r = { .type = types[item->kind], .seq = s->next,
		.first_index = item->first_index, .count = item->count };
	uint8_t *bytes = NULL;
	int rc;

	memcpy(r.ring_id, item->ring_id, sizeof(r.ring_id));
	if (spool_ring(s, item->ring_id) == NULL && s->ring_count == LS_SPOOL_RINGS_MAX) {
		s->stats.refused_items++;
		return -LS_ELIMIT;
	}
	item->seq = s->next;
	rc = ls_wire_item_pack(item, &bytes, &r.len);
	if (rc == 0) {
		r.payload = bytes;
		rc = spool_make_room(s, LS_SPOOL_RECORD_BYTES + r.len);
	}
	if (rc == 0)
		rc = spool_append(s, &r);
	free(bytes);
	if (rc != 0) {
		s->stats.refused_items++;
		return rc;
	}
	(void)spool_ring_move(s, &r); /* room was checked above */
	s->next++;
	s->stats.pushed_items++;
	return 0;
}

int
ls_spool_read(struct ls_spool *s, uint8_t *buf, size_t size, struct ls_wire_bytes *ret_items,
	size_t max, size_t *ret_count)
{
	struct ls_spool_record r;
	size_t pos = 0, count = 0, len;
	ssize_t n;

	len = s->end - s->head < size ? (size_t)(s->end - s->head) : size;
	n = ls_spool_pread(s->fd, buf, len, s->head);
	if (n < 0)
		return (int)n;
	len = (size_t)n;
	while (count < max && pos < len) {
		int rc = ls_spool_record_get(buf + pos, len - pos, &r);

		if (rc == -LS_EPARSE && count > 0)
			break; /* the next report begins with it */
		if (rc != 0)
			return -LS_ECORRUPT;
		pos += LS_SPOOL_RECORD_BYTES + r.len;
		if (!ls_spool_is_item(&r) || r.seq <= s->acked)
			continue;
		ret_items[count].data = r.payload;
		ret_items[count++].len = r.len;
	}
	*ret_count = count;
	return 0;
}

void
ls_spool_ack(struct ls_spool *s, uint64_t seq)
{
	struct ls_spool_record r = { .type = LS_SPOOL_ACK, .seq = seq };
	int rc;

	if (seq <= s->acked || seq >= s->next)
		return;
	s->acked = seq;
	s->full = false;
	spool_skip_acked(s);
	if (s->acked + 1 == s->next && s->end > LS_SPOOL_COMPACT_BYTES)
		rc = spool_rewrite(s, 0);
	else
		rc = spool_append(s, &r);
	if (rc != 0)
		ls_log(LS_LOG_WARN, "spool",
			"acknowledgement not noted (%s): sent again after a restart",
			ls_err_text(rc));
}

const struct ls_spool_ring *
ls_spool_ring_find(const struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES])
{
	return ls_spool_ring_at(s, spool_ring_index(s, id));
}

const struct ls_spool_ring *
ls_spool_ring_at(const struct ls_spool *s, size_t i)
{
	return i < s->ring_count ? &s->ring[i] : NULL;
}

void
ls_spool_ring_forget(struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES])
{
	struct ls_spool_record r = { .type = LS_SPOOL_FORGET };

	if (spool_ring(s, id) == NULL)
		return;
	memcpy(r.ring_id, id, sizeof(r.ring_id));
	/* Where the disk refuses it is forgotten again after a restart. */
	if (spool_append(s, &r) == 0)
		spool_ring_remove(s, id);
}

const uint8_t *
ls_spool_boot(const struct ls_spool *s)
{
	return s->header.boot;
}

uint64_t
ls_spool_acked(const struct ls_spool *s)
{
	return s->acked;
}

uint64_t
ls_spool_next(const struct ls_spool *s)
{
	return s->next;
}

uint64_t
ls_spool_bytes(const struct ls_spool *s)
{
	return s->end;
}

const struct ls_spool_stats *
ls_spool_get_stats(const struct ls_spool *s)
{
	return &s->stats;
}
