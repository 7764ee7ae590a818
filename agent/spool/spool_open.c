/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/collect/procfile.h"
#include "agent/spool/spool_file.h"
#include "agent/spool/spool_state.h"
#include "proto/base/log.h"

/* the columns of LS_STEPS_PER_ITEM records; touched as far as used */
#define SPOOL_SCRATCH_BYTES 131072u
#define SPOOL_GAP_SCRATCH_BYTES 4096u /* a gap */

/* What there is to go on with. */
enum spool_start {
	SPOOL_GOES_ON,
	SPOOL_IS_NEW,
	SPOOL_IS_DAMAGED,
	SPOOL_IS_OF_ANOTHER_BOOT
};

/* --- the log that is there ------------------------------------------------ */

/* The numbers of stream two go on from here, or are acknowledged up to here. */
static int
spool_replay_chunk_ack(struct ls_spool *s, uint64_t seq)
{
	if (s->chunk_live_bytes == 0) { /* no item yet in this file */
		s->log.chunk_acked = seq;
		s->chunk_next = seq + 1;
		s->chunks.base_seq = s->chunks.front_seq = seq + 1;
		return 0;
	}
	if (seq < s->log.chunk_acked || seq >= s->chunk_next)
		return -LS_ECORRUPT;
	s->log.chunk_acked = seq;
	return 0;
}

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
		s->live_bytes += LS_SPOOL_RECORD_BYTES + r->len;
		if (!ls_spool_is_possible(r->first_index, r->count))
			s->impossible = r->seq;
		return ls_spool_ring_move(s, r) ? 0 : -LS_ECORRUPT;
	case LS_SPOOL_ACK:
		if (r->seq < s->log.acked || r->seq >= s->next)
			return -LS_ECORRUPT;
		s->log.acked = r->seq;
		return 0;
	case LS_SPOOL_RING:
		return ls_spool_ring_move(s, r) ? 0 : -LS_ECORRUPT;
	case LS_SPOOL_FORGET:
		ls_spool_ring_remove(s, r->ring_id);
		return 0;
	case LS_SPOOL_DICTIONARY:
	case LS_SPOOL_CHUNK:
	case LS_SPOOL_LOST:
		if (r->len <= r->name_len ||
			(r->type == LS_SPOOL_LOST && r->seq >= LS_LOST_REASON_COUNT))
			return -LS_ECORRUPT;
		ls_spool_chunk_note(s, r);
		return 0;
	case LS_SPOOL_CHUNK_ACK:
		return spool_replay_chunk_ack(s, r->seq);
	case LS_SPOOL_KNOWN:
		ls_spool_know(s, r->hash, false);
		return 0;
	}
	return -LS_ECORRUPT;
}

/* --- what is lost with it ------------------------------------------------- */

/* A walk over a log that cannot be gone on with. */
struct spool_last_look {
	const struct ls_spool *s;
	struct ls_spool_legacy *legacy;
	enum ls_wire_lost_reason reason;
	bool with_gaps;
	uint64_t chunk_seq; /* number of the chunk item before */
	bool chunk_begun;
};

static void
spool_look_at_steps(struct spool_last_look *look, const struct ls_spool_record *r)
{
	struct ls_spool_legacy *l = look->legacy;
	const struct ls_spool_ring *ring = ls_spool_ring_find(look->s, r->ring_id);
	struct ls_wire_item *gap;

	if (r->seq <= look->s->log.acked || r->type == LS_SPOOL_END || ring == NULL)
		return;
	for (size_t i = 0; i < l->gap_count; i++) {
		if (memcmp(l->gap[i].ring_id, r->ring_id, LS_RING_ID_BYTES) == 0)
			return; /* its first one is the least, and the rest follows */
	}
	if (ring->next <= r->first_index || l->gap_count == LS_SPOOL_RINGS_MAX)
		return;
	gap = &l->gap[l->gap_count++];
	*gap = (struct ls_wire_item){ .kind = LS_WIRE_GAP,
		.reason = LS_GAP_REBOOT,
		.first_index = r->first_index,
		.count = ring->next - r->first_index };
	memcpy(gap->ring_id, r->ring_id, sizeof(gap->ring_id));
}

static int
spool_look(void *arg, const struct ls_spool_record *r)
{
	struct spool_last_look *look = arg;
	struct ls_loss one;

	if (ls_spool_is_item(r) && look->with_gaps)
		spool_look_at_steps(look, r);
	if (r->type == LS_SPOOL_CHUNK_ACK && !look->chunk_begun)
		look->chunk_seq = r->seq;
	if (!ls_spool_is_chunk_item(r))
		return 0;
	look->chunk_begun = true;
	if (++look->chunk_seq <= look->s->log.chunk_acked ||
		r->type == LS_SPOOL_DICTIONARY)
		return 0;
	/* The clock of these times is gone with the boot; with damage it may be. */
	one = ls_spool_loss_of(r,
		r->type == LS_SPOOL_LOST ? (enum ls_wire_lost_reason)r->seq
					 : look->reason);
	one.t_from = one.t_to = 0;
	ls_losses_add(&look->legacy->losses, &one);
	return 0;
}

/* Workers that did not come to an acknowledged end keep their cursor: so they get an
 * End. */
static void
spool_keep_unended(struct ls_spool *s)
{
	size_t i = s->log.ring_count;

	while (i-- > 0) {
		if (s->log.ring[i].end_seq != 0 &&
			s->log.ring[i].end_seq <= s->log.acked)
			s->log.ring[i] = s->log.ring[--s->log.ring_count];
		else
			s->log.ring[i].end_seq = 0;
	}
}

/* Starts with a new boot, and with what is to be said of the log before, if there was
 * one. */
static int
spool_fresh(struct ls_spool *s, const uint8_t kernel_boot_id[16], enum spool_start why)
{
	const struct ls_loss unknown = { .reason = LS_LOST_DAMAGED };
	bool rebooted = why == SPOOL_IS_OF_ANOTHER_BOOT,
	     is_damaged = why == SPOOL_IS_DAMAGED;
	struct ls_spool_legacy *legacy = calloc(1, sizeof(*legacy));
	struct spool_last_look look = { .s = s,
		.legacy = legacy,
		.with_gaps = rebooted,
		.reason = rebooted ? LS_LOST_REBOOT : LS_LOST_DAMAGED };
	uint64_t end = s->end;
	int rc = legacy != NULL ? 0 : -ENOMEM;

	/* of what lies behind the damage nobody knows how much it was */
	if (rc == 0 && is_damaged)
		ls_losses_add(&legacy->losses, &unknown);
	if (rc == 0 && s->fd >= 0 && s->end > LS_SPOOL_HEADER_BYTES)
		rc = ls_spool_walk(s, LS_SPOOL_HEADER_BYTES, s->end, spool_look, &look,
			&end);
	if (s->fd >= 0)
		(void)close(s->fd); /* set aside or outlived */
	s->fd = -1;
	if (rebooted)
		spool_keep_unended(s);
	else
		s->log.ring_count = 0; /* rings are read again from their beginning */
	s->log.acked = s->log.chunk_acked = 0;
	s->next = s->chunk_next = 1;
	ls_spool_windows_reset(s, LS_SPOOL_HEADER_BYTES, 1);
	s->live_bytes = s->chunk_live_bytes = 0;
	s->log.known_count = s->known_at = s->newest_at = 0;
	memset(s->newest, 0, sizeof(s->newest));
	memcpy(s->log.header.kernel_boot_id, kernel_boot_id,
		sizeof(s->log.header.kernel_boot_id));
	if (rc == 0 &&
		getrandom(s->log.header.boot, sizeof(s->log.header.boot), 0) !=
			sizeof(s->log.header.boot))
		rc = -EIO;
	if (rc == 0)
		rc = ls_spool_write_fresh(s, legacy);
	free(legacy);
	return rc;
}

/* --- opening -------------------------------------------------------------- */

static uint64_t
spool_unacked(const struct ls_spool *s)
{
	return s->next - 1 - s->log.acked + s->chunk_next - 1 - s->log.chunk_acked;
}

/* Reads header and log. 0 or as ls_spool_header_get and ls_spool_walk. */
static int
spool_read_log(struct ls_spool *s, uint64_t size)
{
	ssize_t n = ls_procfile_pread(s->fd, s->buf, LS_SPOOL_HEADER_BYTES, 0);
	int rc;

	if (n < 0)
		return (int)n;
	rc = ls_spool_header_get(s->buf, (size_t)n, &s->log.header);
	if (rc != 0)
		return rc;
	s->log.acked = s->log.header.base - 1;
	s->next = s->log.header.base;
	return ls_spool_walk(s, LS_SPOOL_HEADER_BYTES, size, spool_replay, s, &s->end);
}

static int
spool_load(struct ls_spool *s, const uint8_t kernel_boot_id[16],
	enum spool_start *ret_start)
{
	struct stat st;
	int rc;

	s->fd = openat(s->dir_fd, "spool", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (s->fd < 0) {
		*ret_start = SPOOL_IS_NEW;
		return errno == ENOENT ? 0 : -errno;
	}
	if (fstat(s->fd, &st) != 0)
		return -errno;
	rc = spool_read_log(s, (uint64_t)st.st_size);
	if (rc == -LS_EPARSE || rc == -LS_ECORRUPT) {
		s->stats.discarded_items += spool_unacked(s);
		ls_log(LS_LOG_WARN, "spool",
			"damaged after %llu bytes; set aside as spool.damaged, "
			"numbering starts again",
			(unsigned long long)s->end);
		*ret_start = SPOOL_IS_DAMAGED;
		return renameat(s->dir_fd, "spool", s->dir_fd, "spool.damaged") != 0
			? -errno
			: 0;
	}
	if (rc != 0)
		return rc;
	if (memcmp(s->log.header.kernel_boot_id, kernel_boot_id, 16) != 0) {
		s->stats.discarded_items += spool_unacked(s);
		ls_log(LS_LOG_WARN, "spool",
			"written before the machine restarted; %llu items become "
			"gaps, numbering starts again",
			(unsigned long long)s->stats.discarded_items);
		*ret_start = SPOOL_IS_OF_ANOTHER_BOOT;
		return 0;
	}
	s->torn = s->end != (uint64_t)st.st_size;
	*ret_start = SPOOL_GOES_ON;
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
	s->lock_fd = openat(s->dir_fd, "lock",
		O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
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
	enum spool_start start = SPOOL_IS_NEW;
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->dir_fd = s->lock_fd = s->fd = -1;
	s->max_bytes = max_bytes;
	s->next = s->chunk_next = 1;
	s->chunks.is_chunks = true;
	ls_spool_windows_reset(s, LS_SPOOL_HEADER_BYTES, 1);
	ls_spool_use_disk(s, NULL, NULL, NULL);
	s->scratch = ls_arena_new(SPOOL_SCRATCH_BYTES, LS_REPORT_MAX_BYTES);
	s->rewrite.scratch = ls_arena_new(SPOOL_GAP_SCRATCH_BYTES, LS_REPORT_MAX_BYTES);
	rc = s->scratch != NULL && s->rewrite.scratch != NULL ? spool_claim(s, dir)
							      : -ENOMEM;
	if (rc == 0)
		rc = spool_load(s, kernel_boot_id, &start);
	if (rc == 0 && start != SPOOL_GOES_ON)
		rc = spool_fresh(s, kernel_boot_id, start);
	if (rc != 0) {
		ls_spool_close(s);
		return rc;
	}
	s->stats.damaged_bytes = ls_spool_damaged_bytes(s->dir_fd);
	if (s->impossible > s->log.acked) {
		ls_log(LS_LOG_WARN, "spool",
			"holds items with impossible numbers; gaps replace them");
		s->rewrite_wanted = true;
	}
	ls_spool_kick(s);
	*ret_spool = s;
	return 0;
}

void
ls_spool_close(struct ls_spool *s)
{
	if (s == NULL)
		return;
	if (s->fd >= 0 && s->unwritten_len > 0)
		ls_spool_kick(s);
	if (s->fd >= 0)
		(void)close(s->fd); /* written, never synced: see spool.h */
	if (s->lock_fd >= 0)
		(void)close(s->lock_fd);
	if (s->dir_fd >= 0)
		(void)close(s->dir_fd);
	ls_arena_free(s->scratch);
	ls_arena_free(s->rewrite.scratch);
	free(s);
}
