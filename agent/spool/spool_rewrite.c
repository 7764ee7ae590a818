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

/* Appends one record, head and payload together in bytes. */
static int
spool_put(struct ls_spool_rewrite *w, const struct ls_spool_record *r,
	const uint8_t *bytes)
{
	size_t len = LS_SPOOL_RECORD_BYTES + r->len;
	int rc = ls_spool_pwrite(w->fd, bytes, len, w->new_end);

	if (rc != 0)
		return rc;
	w->new_end += len;
	if (ls_spool_is_item(r))
		w->out.live_bytes += len;
	if (ls_spool_is_chunk_item(r)) {
		w->out.chunk_live_bytes += len;
		w->out.chunk_count++;
	}
	return 0;
}

/* A record of the old file, which ls_spool_walk has in whole. */
static int
spool_copy_record(struct ls_spool_rewrite *w, const struct ls_spool_record *r)
{
	return spool_put(w, r, r->payload - LS_SPOOL_RECORD_BYTES);
}

/* A record that was made here. */
static int
spool_write_record(struct ls_spool_rewrite *w, const struct ls_spool_record *r)
{
	uint8_t bytes[LS_SPOOL_RECORD_BYTES + SPOOL_SMALL_BYTES];

	LS_ASSERT(r->len <= SPOOL_SMALL_BYTES);
	ls_spool_record_put(bytes, r);
	if (r->len > 0)
		memcpy(bytes + LS_SPOOL_RECORD_BYTES, r->payload, r->len);
	return spool_put(w, r, bytes);
}

static void
spool_saved(uint64_t *left, uint64_t bytes)
{
	*left -= bytes < *left ? bytes : *left;
}

/* --- stream one ----------------------------------------------------------- */

static int
spool_write_small(struct ls_spool_rewrite *w, enum ls_spool_type type,
	const struct ls_wire_item *item)
{
	uint8_t bytes[SPOOL_SMALL_BYTES];
	struct ls_spool_record r = { .type = type,
		.seq = item->seq,
		.first_index = item->first_index,
		.count = item->count,
		.payload = bytes };
	int rc;

	memcpy(r.ring_id, item->ring_id, sizeof(r.ring_id));
	rc = ls_wire_item_pack_to(item, w->scratch, bytes, sizeof(bytes), &r.len);
	return rc == 0 ? spool_write_record(w, &r) : rc;
}

/* Writes the gap that stands for an item of steps: same number, same records. */
static int
spool_copy_as_gap(struct ls_spool_rewrite *w, const struct ls_spool_record *r)
{
	struct ls_wire_item gap = { .seq = r->seq,
		.kind = LS_WIRE_GAP,
		.first_index = r->first_index,
		.count = r->count,
		.reason = LS_GAP_SPOOL_FULL };

	memcpy(gap.ring_id, r->ring_id, sizeof(gap.ring_id));
	spool_saved(&w->drop_step_bytes, r->len - SPOOL_GAP_BYTES);
	w->out.dropped_records += r->count;
	return spool_write_small(w, LS_SPOOL_GAP, &gap);
}

/* Writes what stands for an item that no collector can take. */
static int
spool_copy_malformed(struct ls_spool_rewrite *w, const struct ls_spool_record *r)
{
	struct ls_wire_item to = { .seq = r->seq,
		.kind = LS_WIRE_GAP,
		.first_index = r->first_index,
		.count = r->count,
		.reason = LS_GAP_INVALID };

	memcpy(to.ring_id, r->ring_id, sizeof(to.ring_id));
	if (!ls_spool_is_possible(r->first_index, r->count)) {
		to.count = 1; /* how many there were is not known */
		if (to.first_index >= LS_WIRE_NUMBER_MAX)
			to.first_index = LS_WIRE_NUMBER_MAX - 1;
	}
	w->out.malformed_items++;
	if (r->type != LS_SPOOL_END)
		return spool_write_small(w, LS_SPOOL_GAP, &to);
	to.kind = LS_WIRE_END;
	to.how = LS_END_UNKNOWN;
	return spool_write_small(w, LS_SPOOL_END, &to);
}

/* --- stream two ----------------------------------------------------------- */

static int
spool_write_loss(struct ls_spool_rewrite *w, const struct ls_loss *one)
{
	uint8_t bytes[SPOOL_SMALL_BYTES];
	struct ls_spool_record r;
	int rc = ls_spool_loss_record(one, bytes, sizeof(bytes), &r);

	return rc == 0 ? spool_write_record(w, &r) : rc;
}

/* Whether an item may have been sent: then its number is its own for good. */
static bool
spool_in_window(struct ls_spool_rewrite *w, const struct ls_spool_record *r)
{
	bool first = w->out.seq == w->log.chunk_acked + 1;

	if (w->out.seq > w->log.chunk_acked + LS_CHUNK_ITEMS_PER_REPORT_MAX)
		return false;
	w->out.window_bytes += r->len;
	return first || w->out.window_bytes <= LS_REPORT_CHUNK_BYTES;
}

/* The dictionary is sent again with its next chunk. */
static void
spool_forget(struct ls_spool_rewrite *w, uint64_t hash)
{
	if (w->out.forgotten_count < LS_SPOOL_DICTIONARIES_MAX)
		w->out.forgotten[w->out.forgotten_count++] = hash;
}

static int
spool_copy_chunk(struct ls_spool_rewrite *w, const struct ls_spool_record *r)
{
	bool in_window, drop = r->type == LS_SPOOL_CHUNK && w->drop_chunk_bytes > 0;
	struct ls_loss one;

	if (++w->out.seq <= w->log.chunk_acked)
		return 0;
	in_window = spool_in_window(w, r);
	if (in_window && w->out.seq == w->log.chunk_malformed) {
		w->out.malformed_items++;
		w->out.lost_samples += r->count;
		if (r->type == LS_SPOOL_DICTIONARY)
			spool_forget(w, r->hash);
		one = ls_spool_loss_of(r, LS_LOST_DAMAGED);
		return spool_write_loss(w, &one);
	}
	if (drop) {
		spool_saved(&w->drop_chunk_bytes, LS_SPOOL_RECORD_BYTES + r->len);
		w->out.dropped_chunks++;
		w->out.lost_samples += r->count;
	}
	if (in_window) {
		one = ls_spool_loss_of(r, LS_LOST_SPOOL_FULL);
		return drop ? spool_write_loss(w, &one) : spool_copy_record(w, r);
	}
	if (r->type == LS_SPOOL_DICTIONARY && w->drop_dictionaries) {
		spool_forget(w, r->hash);
		return 0;
	}
	if (drop || r->type == LS_SPOOL_LOST) {
		one = ls_spool_loss_of(r,
			drop ? LS_LOST_SPOOL_FULL : (enum ls_wire_lost_reason)r->seq);
		ls_losses_add(&w->out.losses, &one);
		return 0;
	}
	return spool_copy_record(w, r);
}

static int
spool_copy_step(void *arg, const struct ls_spool_record *r)
{
	struct ls_spool_rewrite *w = arg;

	if (!ls_spool_is_item(r) || r->seq <= w->log.acked)
		return 0;
	if (r->seq == w->log.malformed ||
		!ls_spool_is_possible(r->first_index, r->count))
		return spool_copy_malformed(w, r);
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

/* All that is not acknowledged. Before chunk_head there are steps only that are not. */
static int
spool_copy_all(struct ls_spool *s, struct ls_spool_rewrite *w)
{
	uint64_t at;
	int rc = 0;

	if (w->head < w->chunk_head)
		rc = ls_spool_walk(s, w->head, w->chunk_head, spool_copy_step, w, &at);
	if (rc == 0)
		rc = ls_spool_walk(s, w->chunk_head, w->end, spool_copy, w, &at);
	return rc;
}

/* --- the new file --------------------------------------------------------- */

/* Writes header, cursors, and what is known of stream two. */
static int
spool_begin(struct ls_spool_rewrite *w)
{
	struct ls_spool_record ack = { .type = LS_SPOOL_CHUNK_ACK,
		.seq = w->log.chunk_acked };
	uint8_t head[LS_SPOOL_HEADER_BYTES];
	int rc;

	ls_spool_header_put(head, &w->log.header);
	rc = ls_spool_pwrite(w->fd, head, sizeof(head), 0);
	w->new_end = LS_SPOOL_HEADER_BYTES;
	for (size_t i = 0; i < w->log.ring_count && rc == 0; i++) {
		struct ls_spool_record r = { .type = LS_SPOOL_RING,
			.first_index = w->log.ring[i].next,
			.seq = w->log.ring[i].end_seq };

		memcpy(r.ring_id, w->log.ring[i].id, sizeof(r.ring_id));
		rc = spool_write_record(w, &r);
	}
	if (rc == 0 && w->log.chunk_acked > 0)
		rc = spool_write_record(w, &ack);
	for (size_t i = 0; i < w->log.known_count && rc == 0; i++) {
		struct ls_spool_record r = { .type = LS_SPOOL_KNOWN,
			.hash = w->log.known[i].hash };

		if (!w->log.known[i].waiting) /* else its item says so */
			rc = spool_write_record(w, &r);
	}
	w->start = w->new_end;
	return rc;
}

/* What was dropped behind the window, one item a group. */
static int
spool_write_losses(struct ls_spool_rewrite *w, const struct ls_losses *l)
{
	int rc = 0;

	for (size_t i = 0; i < l->count && rc == 0; i++)
		rc = spool_write_loss(w, &l->loss[i]);
	return rc;
}

static int
spool_write_legacy(struct ls_spool_rewrite *w, uint64_t first_seq,
	const struct ls_spool_legacy *l)
{
	struct ls_wire_item gap;
	int rc = 0;

	for (size_t i = 0; i < l->gap_count && rc == 0; i++) {
		gap = l->gap[i];
		gap.seq = first_seq + i;
		w->out.dropped_records += gap.count;
		rc = spool_write_small(w, LS_SPOOL_GAP, &gap);
	}
	for (size_t i = 0; i < l->losses.count; i++)
		w->out.lost_samples += l->losses.loss[i].samples;
	return rc == 0 ? spool_write_losses(w, &l->losses) : rc;
}

int
ls_spool_rewrite_run(struct ls_spool *s, const struct ls_spool_legacy *legacy)
{
	struct ls_spool_rewrite *w = &s->rewrite;
	int rc;

	w->fd = openat(s->dir_fd, "spool.new",
		O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (w->fd < 0)
		return -errno;
	rc = spool_begin(w);
	if (rc == 0 && s->fd >= 0)
		rc = spool_copy_all(s, w);
	if (rc == 0)
		rc = spool_write_losses(w, &w->out.losses);
	if (rc == 0 && legacy != NULL)
		rc = spool_write_legacy(w, w->log.acked + 1, legacy);
	if (rc == 0 && renameat(s->dir_fd, "spool.new", s->dir_fd, "spool") != 0)
		rc = -errno;
	if (rc != 0) {
		(void)close(w->fd); /* given up */
		(void)unlinkat(s->dir_fd, "spool.new", 0);
		return rc;
	}
	if (s->fd >= 0)
		(void)close(s->fd); /* replaced */
	s->fd = w->fd;
	s->torn = false;
	return 0;
}

void
ls_spool_rewrite_prepare(struct ls_spool *s, uint64_t end)
{
	struct ls_spool_rewrite *w = &s->rewrite;

	w->log = s->log;
	w->log.header.base = s->log.acked + 1;
	s->log.malformed = s->log.chunk_malformed = 0;
	w->end = end;
	w->head = s->steps.base;
	w->chunk_head = s->chunks.base;
	w->drop_dictionaries = w->drop_step_bytes > 0;
	memset(&w->out, 0, sizeof(w->out));
	w->out.seq = s->chunks.base_seq - 1;
}

static void
spool_tell_dropped(const struct ls_spool_rewrite *w)
{
	if (w->out.dropped_records > 0 || w->out.dropped_chunks > 0)
		ls_log(LS_LOG_WARN, "spool",
			"full: dropped %llu chunks and %llu step records; they are "
			"reported as lost",
			(unsigned long long)w->out.dropped_chunks,
			(unsigned long long)w->out.dropped_records);
}

static void
spool_apply(struct ls_spool *s)
{
	const struct ls_spool_rewrite *w = &s->rewrite;

	s->log.header = w->log.header;
	s->end = w->new_end;
	s->live_bytes = w->out.live_bytes;
	s->chunk_live_bytes = w->out.chunk_live_bytes;
	s->chunk_next = w->log.chunk_acked + 1 + w->out.chunk_count;
	for (size_t i = 0; i < w->out.forgotten_count; i++)
		ls_spool_unknow(s, w->out.forgotten[i]);
	s->stats.dropped_records += w->out.dropped_records;
	s->stats.dropped_chunks += w->out.dropped_chunks;
	s->stats.lost_samples += w->out.lost_samples;
	s->stats.malformed_items += w->out.malformed_items;
	s->stats.rewrites++;
}

int
ls_spool_write_fresh(struct ls_spool *s, const struct ls_spool_legacy *legacy)
{
	int rc;

	ls_spool_rewrite_prepare(s, LS_SPOOL_HEADER_BYTES);
	rc = ls_spool_rewrite_run(s, legacy);
	if (rc != 0)
		return rc;
	spool_apply(s);
	ls_spool_windows_reset(s, s->rewrite.start, s->rewrite.log.chunk_acked + 1);
	s->next += legacy->gap_count;
	return 0;
}

/* --- room ----------------------------------------------------------------- */

/* So much is kept free for what is pushed while the file is rewritten. */
static uint64_t
spool_margin(const struct ls_spool *s)
{
	uint64_t margin = s->max_bytes / 16;

	return margin < LS_SPOOL_UNWRITTEN_MAX_BYTES ? margin
						     : LS_SPOOL_UNWRITTEN_MAX_BYTES;
}

static uint64_t
spool_used(const struct ls_spool *s)
{
	return s->end + s->unwritten_len;
}

void
ls_spool_rewrite_apply(struct ls_spool *s)
{
	spool_apply(s);
	s->full = spool_used(s) > s->max_bytes - spool_margin(s);
	spool_tell_dropped(&s->rewrite);
}

/*
 * Chunks go first. One that comes does not drop steps, and is refused where steps leave
 * so little room that every chunk would rewrite the file.
 */
static void
spool_free_half(struct ls_spool *s, uint64_t size, bool is_chunk)
{
	uint64_t live = s->live_bytes + s->chunk_live_bytes, half = s->max_bytes / 2;
	uint64_t excess = live + size > half ? live + size - half : 0;
	uint64_t chunk_bytes =
		excess < s->chunk_live_bytes ? excess : s->chunk_live_bytes;

	if (s->full || s->rewriting || s->rewrite_wanted ||
		(is_chunk && s->live_bytes > s->max_bytes / 4 * 3))
		return;
	s->rewrite.drop_chunk_bytes = chunk_bytes;
	s->rewrite.drop_step_bytes = is_chunk ? 0 : excess - chunk_bytes;
	s->rewrite_wanted = true;
	ls_spool_kick(s);
}

int
ls_spool_replace(struct ls_spool *s, uint64_t seq, uint64_t chunk_seq)
{
	if (s->rewriting)
		return -LS_EBUSY;
	if (!s->rewrite_wanted)
		s->rewrite.drop_chunk_bytes = s->rewrite.drop_step_bytes = 0;
	s->log.malformed = seq;
	s->log.chunk_malformed = chunk_seq;
	s->rewrite_wanted = true;
	ls_spool_kick(s);
	return 0;
}

int
ls_spool_make_room(struct ls_spool *s, uint64_t size, bool is_chunk)
{
	if (spool_used(s) + size > s->max_bytes - spool_margin(s))
		spool_free_half(s, size, is_chunk);
	if (spool_used(s) + size <= s->max_bytes)
		return 0;
	return s->rc != 0 ? s->rc : -ENOSPC;
}
