/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "agent/spool/spool_file.h"
#include "agent/spool/spool_state.h"
#include "proto/base/log.h"

#define SPOOL_SMALL_BYTES 256u /* an encoded gap, or a loss with its group's name */
/* an encoded gap is shorter; steps below that are not worth dropping */
#define SPOOL_GAP_BYTES 64u

/* A rewrite under way: unacknowledged items are copied, the oldest as gaps or losses
 * while too much. */
struct spool_rewrite {
	struct ls_spool *s;
	int fd;
	uint64_t end;
	uint64_t drop_chunk_bytes, drop_step_bytes; /* still to be saved */
	bool drop_dictionaries;
	uint64_t dropped_records, dropped_chunks, lost_samples;
	/* Stream two. */
	uint64_t seq; /* of the item before in the old file */
	uint64_t window_bytes; /* of items of the window so far */
	uint64_t chunk_count; /* items in the new file */
	uint64_t live_bytes, chunk_live_bytes;
	struct ls_losses losses;
};

static int
spool_copy_record(struct spool_rewrite *w, const struct ls_spool_record *r)
{
	int rc = ls_spool_write_record(w->fd, r, w->end);

	if (rc != 0)
		return rc;
	w->end += LS_SPOOL_RECORD_BYTES + r->len;
	if (ls_spool_is_item(r))
		w->live_bytes += LS_SPOOL_RECORD_BYTES + r->len;
	if (ls_spool_is_chunk_item(r)) {
		w->chunk_live_bytes += LS_SPOOL_RECORD_BYTES + r->len;
		w->chunk_count++;
	}
	return 0;
}

static void
spool_saved(uint64_t *left, uint64_t bytes)
{
	*left -= bytes < *left ? bytes : *left;
}

/* --- stream one ----------------------------------------------------------- */

static int
spool_write_gap(struct spool_rewrite *w, const struct ls_wire_item *gap)
{
	uint8_t bytes[SPOOL_SMALL_BYTES];
	struct ls_spool_record r = { .type = LS_SPOOL_GAP,
		.seq = gap->seq,
		.first_index = gap->first_index,
		.count = gap->count,
		.payload = bytes };
	int rc;

	memcpy(r.ring_id, gap->ring_id, sizeof(r.ring_id));
	rc = ls_wire_item_pack_to(gap, w->s->scratch, bytes, sizeof(bytes), &r.len);
	return rc == 0 ? spool_copy_record(w, &r) : rc;
}

/* Writes the gap that stands for an item of steps: same number, same records. */
static int
spool_copy_as_gap(struct spool_rewrite *w, const struct ls_spool_record *r)
{
	struct ls_wire_item gap = { .seq = r->seq,
		.kind = LS_WIRE_GAP,
		.first_index = r->first_index,
		.count = r->count,
		.reason = LS_GAP_SPOOL_FULL };

	memcpy(gap.ring_id, r->ring_id, sizeof(gap.ring_id));
	spool_saved(&w->drop_step_bytes, r->len - SPOOL_GAP_BYTES);
	w->dropped_records += r->count;
	return spool_write_gap(w, &gap);
}

/* --- stream two ----------------------------------------------------------- */

static int
spool_write_loss(struct spool_rewrite *w, const struct ls_loss *one)
{
	uint8_t bytes[SPOOL_SMALL_BYTES];
	struct ls_spool_record r;
	int rc = ls_spool_loss_record(one, bytes, sizeof(bytes), &r);

	return rc == 0 ? spool_copy_record(w, &r) : rc;
}

/* Whether an item may have been sent: then its number is its own for good. */
static bool
spool_in_window(struct spool_rewrite *w, const struct ls_spool_record *r)
{
	bool first = w->seq == w->s->chunk_acked + 1;

	if (w->seq > w->s->chunk_acked + LS_CHUNK_ITEMS_PER_REPORT_MAX)
		return false;
	w->window_bytes += r->len;
	return first || w->window_bytes <= LS_REPORT_CHUNK_BYTES;
}

static int
spool_copy_chunk(struct spool_rewrite *w, const struct ls_spool_record *r)
{
	bool in_window, drop = r->type == LS_SPOOL_CHUNK && w->drop_chunk_bytes > 0;
	struct ls_loss one;

	if (++w->seq <= w->s->chunk_acked)
		return 0;
	in_window = spool_in_window(w, r);
	if (drop) {
		spool_saved(&w->drop_chunk_bytes, LS_SPOOL_RECORD_BYTES + r->len);
		w->dropped_chunks++;
		w->lost_samples += r->count;
	}
	if (in_window) {
		one = ls_spool_loss_of(r, LS_LOST_SPOOL_FULL);
		return drop ? spool_write_loss(w, &one) : spool_copy_record(w, r);
	}
	if (r->type == LS_SPOOL_DICTIONARY && w->drop_dictionaries) {
		ls_spool_unknow(w->s, r->hash); /* and sent again with the next chunk */
		return 0;
	}
	if (drop || r->type == LS_SPOOL_LOST) {
		one = ls_spool_loss_of(r,
			drop ? LS_LOST_SPOOL_FULL : (enum ls_wire_lost_reason)r->seq);
		ls_losses_add(&w->losses, &one);
		return 0;
	}
	return spool_copy_record(w, r);
}

static int
spool_copy_step(void *arg, const struct ls_spool_record *r)
{
	struct spool_rewrite *w = arg;

	if (!ls_spool_is_item(r) || r->seq <= w->s->acked)
		return 0;
	if (w->drop_step_bytes > 0 && r->type == LS_SPOOL_STEPS &&
		r->len > SPOOL_GAP_BYTES)
		return spool_copy_as_gap(w, r);
	return spool_copy_record(w, r);
}

static int
spool_copy(void *arg, const struct ls_spool_record *r)
{
	return ls_spool_is_chunk_item(r) ? spool_copy_chunk(arg, r)
					 : spool_copy_step(arg, r);
}

/* All that is not acknowledged. Items of stream two before its head are. */
static int
spool_copy_all(struct spool_rewrite *w)
{
	struct ls_spool *s = w->s;
	uint64_t at;
	int rc = 0;

	if (s->head < s->chunk_head)
		rc = ls_spool_walk(s, s->head, s->chunk_head, spool_copy_step, w, &at);
	if (rc == 0)
		rc = ls_spool_walk(s, s->chunk_head, s->end, spool_copy, w, &at);
	return rc;
}

/* --- the new file --------------------------------------------------------- */

/* Writes header, cursors, and what is known of stream two. */
static int
spool_begin(struct spool_rewrite *w, const struct ls_spool_header *h)
{
	const struct ls_spool *s = w->s;
	struct ls_spool_record ack = { .type = LS_SPOOL_CHUNK_ACK,
		.seq = s->chunk_acked };
	size_t i;
	int rc;

	rc = ls_spool_write_header(w->fd, h);
	w->end = LS_SPOOL_HEADER_BYTES;
	for (i = 0; i < s->ring_count && rc == 0; i++) {
		struct ls_spool_record r = { .type = LS_SPOOL_RING,
			.first_index = s->ring[i].next,
			.seq = s->ring[i].end_seq };

		memcpy(r.ring_id, s->ring[i].id, sizeof(r.ring_id));
		rc = spool_copy_record(w, &r);
	}
	if (rc == 0 && s->chunk_acked > 0)
		rc = spool_copy_record(w, &ack);
	for (i = 0; i < s->known_count && rc == 0; i++) {
		struct ls_spool_record r = { .type = LS_SPOOL_KNOWN,
			.hash = s->known[i].hash };

		if (!s->known[i].waiting) /* or its item says so */
			rc = spool_copy_record(w, &r);
	}
	return rc;
}

/* What was dropped behind the window, one item a group. */
static int
spool_write_losses(struct spool_rewrite *w, const struct ls_losses *l)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < l->count && rc == 0; i++)
		rc = spool_write_loss(w, &l->loss[i]);
	return rc;
}

/* Puts the new file in the place of the old one. */
static int
spool_replace(struct spool_rewrite *w, const struct ls_spool_header *h, uint64_t start)
{
	struct ls_spool *s = w->s;

	if (renameat(s->dir_fd, "spool.new", s->dir_fd, "spool") != 0)
		return -errno;
	if (s->fd >= 0)
		(void)close(s->fd); /* replaced */
	s->fd = w->fd;
	s->header = *h;
	s->head = s->chunk_head = start;
	s->end = w->end;
	s->torn = false;
	s->live_bytes = w->live_bytes;
	s->chunk_live_bytes = w->chunk_live_bytes;
	s->chunk_head_seq = s->chunk_acked + 1;
	s->chunk_next = s->chunk_acked + 1 + w->chunk_count;
	s->stats.dropped_records += w->dropped_records;
	s->stats.dropped_chunks += w->dropped_chunks;
	s->stats.lost_samples += w->lost_samples;
	s->stats.rewrites++;
	return 0;
}

static int
spool_write_legacy(struct spool_rewrite *w, struct ls_spool *s,
	const struct ls_spool_legacy *l)
{
	struct ls_wire_item gap;
	size_t i;
	int rc = 0;

	for (i = 0; i < l->gap_count && rc == 0; i++) {
		gap = l->gap[i];
		gap.seq = s->next + i;
		w->dropped_records += gap.count;
		rc = spool_write_gap(w, &gap);
	}
	for (i = 0; i < l->losses.count; i++)
		w->lost_samples += l->losses.loss[i].samples;
	return rc == 0 ? spool_write_losses(w, &l->losses) : rc;
}

static int
spool_write_anew(struct ls_spool *s, struct spool_rewrite *w,
	const struct ls_spool_legacy *legacy)
{
	struct ls_spool_header h = s->header;
	uint64_t start;
	int rc;

	w->s = s;
	w->seq = s->chunk_head_seq - 1;
	h.base = s->acked + 1;
	w->fd = openat(s->dir_fd, "spool.new",
		O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (w->fd < 0)
		return -errno;
	rc = spool_begin(w, &h);
	start = w->end;
	if (rc == 0 && s->fd >= 0)
		rc = spool_copy_all(w);
	if (rc == 0)
		rc = spool_write_losses(w, &w->losses);
	if (rc == 0 && legacy != NULL)
		rc = spool_write_legacy(w, s, legacy);
	if (rc == 0)
		rc = spool_replace(w, &h, start);
	if (rc != 0) {
		(void)close(w->fd); /* given up */
		(void)unlinkat(s->dir_fd, "spool.new", 0);
	}
	return rc;
}

int
ls_spool_rewrite(struct ls_spool *s, uint64_t drop_chunk_bytes,
	uint64_t drop_step_bytes)
{
	struct spool_rewrite w = { .drop_chunk_bytes = drop_chunk_bytes,
		.drop_step_bytes = drop_step_bytes,
		.drop_dictionaries = drop_step_bytes > 0 };

	return spool_write_anew(s, &w, NULL);
}

int
ls_spool_write_fresh(struct ls_spool *s, const struct ls_spool_legacy *legacy)
{
	struct spool_rewrite w = { 0 };
	int rc = spool_write_anew(s, &w, legacy);

	if (rc == 0)
		s->next += legacy->gap_count;
	return rc;
}

/* --- room ----------------------------------------------------------------- */

static void
spool_tell_dropped(const struct ls_spool *s, const struct ls_spool_stats *before)
{
	if (s->stats.dropped_records != before->dropped_records ||
		s->stats.dropped_chunks != before->dropped_chunks)
		ls_log(LS_LOG_WARN, "spool",
			"full: %llu chunks and %llu step records dropped, which will be reported",
			(unsigned long long)(s->stats.dropped_chunks -
				before->dropped_chunks),
			(unsigned long long)(s->stats.dropped_records -
				before->dropped_records));
}

/*
 * Chunks go first. One that comes does not drop steps, and is refused where steps leave
 * so little room that every chunk would rewrite the file.
 */
int
ls_spool_make_room(struct ls_spool *s, uint64_t size, bool is_chunk)
{
	uint64_t live = s->live_bytes + s->chunk_live_bytes, half = s->max_bytes / 2;
	uint64_t excess = live + size > half ? live + size - half : 0;
	uint64_t chunk_bytes =
		excess < s->chunk_live_bytes ? excess : s->chunk_live_bytes;
	struct ls_spool_stats before = s->stats;
	int rc;

	if (s->end + size <= s->max_bytes)
		return 0;
	if (s->full || (is_chunk && s->live_bytes > s->max_bytes / 4 * 3))
		return -ENOSPC;
	rc = ls_spool_rewrite(s, chunk_bytes, is_chunk ? 0 : excess - chunk_bytes);
	if (rc != 0)
		return rc;
	spool_tell_dropped(s, &before);
	if (s->end + size <= s->max_bytes)
		return 0;
	s->full = !is_chunk;
	return -ENOSPC;
}
