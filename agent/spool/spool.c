/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/spool.h"

#include <errno.h>
#include <string.h>
#include "agent/collect/procfile.h"
#include "agent/spool/spool_file.h"
#include "agent/spool/spool_state.h"
#include "proto/base/log.h"

/* --- cursors -------------------------------------------------------------- */

static size_t
spool_ring_index(const struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES])
{
	size_t i;

	for (i = 0; i < s->log.ring_count; i++) {
		if (memcmp(s->log.ring[i].id, id, LS_RING_ID_BYTES) == 0)
			break;
	}
	return i;
}

static struct ls_spool_ring *
spool_ring(struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES])
{
	size_t i = spool_ring_index(s, id);

	return i < s->log.ring_count ? &s->log.ring[i] : NULL;
}

void
ls_spool_ring_remove(struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES])
{
	struct ls_spool_ring *r = spool_ring(s, id);

	if (r != NULL)
		*r = s->log.ring[--s->log.ring_count];
}

bool
ls_spool_ring_move(struct ls_spool *s, const struct ls_spool_record *rec)
{
	struct ls_spool_ring *r = spool_ring(s, rec->ring_id);
	uint64_t next = 0;

	if (r == NULL) {
		if (s->log.ring_count == LS_SPOOL_RINGS_MAX)
			return false;
		r = &s->log.ring[s->log.ring_count++];
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
	case LS_SPOOL_DICTIONARY:
	case LS_SPOOL_CHUNK:
	case LS_SPOOL_LOST:
	case LS_SPOOL_CHUNK_ACK:
	case LS_SPOOL_KNOWN:
		break;
	}
	if (next > LS_WIRE_NUMBER_MAX)
		next = LS_WIRE_NUMBER_MAX; /* of a damaged ring, by an earlier version */
	if (next > r->next)
		r->next = next;
	return true;
}

/* --- bytes ---------------------------------------------------------------- */

int
ls_spool_append(struct ls_spool *s, const struct ls_spool_record *r)
{
	uint8_t *to = s->unwritten + s->unwritten_len;

	if (sizeof(s->unwritten) - s->unwritten_len < LS_SPOOL_RECORD_BYTES + r->len) {
		ls_spool_kick(s);
		return -ENOBUFS;
	}
	ls_spool_record_put(to, r);
	if (r->len > 0)
		memcpy(to + LS_SPOOL_RECORD_BYTES, r->payload, r->len);
	s->unwritten_len += LS_SPOOL_RECORD_BYTES + r->len;
	return 0;
}

int
ls_spool_walk(struct ls_spool *s, uint64_t offset, uint64_t limit,
	int (*each)(void *arg, const struct ls_spool_record *r), void *arg,
	uint64_t *ret_end)
{
	struct ls_spool_record r;
	size_t pos, len;
	ssize_t n;
	int rc = 0;

	*ret_end = offset;
	while (rc == 0 && offset < limit) {
		len = limit - offset < sizeof(s->buf) ? (size_t)(limit - offset)
						      : sizeof(s->buf);
		n = ls_procfile_pread(s->fd, s->buf, len, offset);
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

void
ls_spool_note_ack(struct ls_spool *s, enum ls_spool_type type, uint64_t seq)
{
	const struct ls_spool_record r = { .type = type, .seq = seq };
	bool chunks = type == LS_SPOOL_CHUNK_ACK;
	uint64_t *acked = chunks ? &s->log.chunk_acked : &s->log.acked;
	int rc;

	if (seq <= *acked || seq >= (chunks ? s->chunk_next : s->next))
		return;
	*acked = seq;
	rc = ls_spool_append(s, &r);
	s->full = false;
	ls_spool_windows_trim(s);
	if (s->log.acked + 1 == s->next && s->log.chunk_acked + 1 == s->chunk_next &&
		s->end > LS_SPOOL_COMPACT_BYTES && !s->rewriting) {
		s->rewrite.drop_chunk_bytes = s->rewrite.drop_step_bytes = 0;
		s->rewrite_wanted = true;
	}
	ls_spool_kick(s);
	if (rc != 0)
		ls_log(LS_LOG_WARN, "spool",
			"cannot record an acknowledgement%s (%s); after a restart %s sent again",
			chunks ? " of chunks" : "", ls_err_text(rc),
			chunks ? "they are" : "its items are");
}

/* --- use ------------------------------------------------------------------ */

int
ls_spool_push(struct ls_spool *s, struct ls_wire_item *item)
{
	static const enum ls_spool_type types[] = { [LS_WIRE_STEPS] = LS_SPOOL_STEPS,
		[LS_WIRE_GAP] = LS_SPOOL_GAP,
		[LS_WIRE_END] = LS_SPOOL_END };
	struct ls_spool_record r = { .type = types[item->kind],
		.seq = s->next,
		.first_index = item->first_index,
		.count = item->count,
		.payload = s->item };
	int rc;

	memcpy(r.ring_id, item->ring_id, sizeof(r.ring_id));
	item->seq = s->next;
	if (!ls_spool_is_possible(item->first_index, item->count))
		rc = -LS_ERANGE;
	else if (spool_ring(s, item->ring_id) == NULL &&
		s->log.ring_count == LS_SPOOL_RINGS_MAX)
		rc = -LS_ELIMIT;
	else /* A rewrite needs neither the item nor scratch for steps. */
		rc = ls_wire_item_pack_to(item, s->scratch, s->item, LS_ITEM_MAX_BYTES,
			&r.len);
	if (rc == 0)
		rc = ls_spool_make_room(s, LS_SPOOL_RECORD_BYTES + r.len, false);
	if (rc == 0)
		rc = ls_spool_append(s, &r);
	if (rc != 0) {
		s->stats.refused_items++;
		return rc;
	}
	(void)ls_spool_ring_move(s, &r); /* room was checked above */
	s->live_bytes += LS_SPOOL_RECORD_BYTES + r.len;
	s->next++;
	s->stats.pushed_items++;
	ls_spool_kick(s);
	return 0;
}

int
ls_spool_read(struct ls_spool *s, uint8_t *buf, size_t size,
	struct ls_wire_bytes *ret_items, size_t max, size_t *ret_count)
{
	struct ls_spool_window *w = &s->steps;
	struct ls_spool_record r;
	size_t at = w->pos, used = 0, count = 0, one;

	ls_spool_kick(s);
	*ret_count = 0;
	if (w->loading)
		return 0;
	for (at = w->pos; at < w->len && count < max; at += one) {
		if (ls_spool_record_get(w->buf + at, w->len - at, &r) != 0)
			return -LS_ECORRUPT;
		one = LS_SPOOL_RECORD_BYTES + r.len;
		if (one > size - used)
			break; /* the next report begins with it */
		memcpy(buf + used, r.payload, r.len);
		ret_items[count].data = buf + used;
		ret_items[count++].len = r.len;
		used += one;
	}
	*ret_count = count;
	return w->pos == w->len ? w->rc : 0;
}

void
ls_spool_ack(struct ls_spool *s, uint64_t seq)
{
	ls_spool_note_ack(s, LS_SPOOL_ACK, seq);
}

const struct ls_spool_ring *
ls_spool_ring_find(const struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES])
{
	return ls_spool_ring_at(s, spool_ring_index(s, id));
}

const struct ls_spool_ring *
ls_spool_ring_at(const struct ls_spool *s, size_t i)
{
	return i < s->log.ring_count ? &s->log.ring[i] : NULL;
}

void
ls_spool_ring_forget(struct ls_spool *s, const uint8_t id[LS_RING_ID_BYTES])
{
	struct ls_spool_record r = { .type = LS_SPOOL_FORGET };

	if (spool_ring(s, id) == NULL)
		return;
	memcpy(r.ring_id, id, sizeof(r.ring_id));
	/* Without room the ring is forgotten the next time. */
	if (ls_spool_append(s, &r) == 0)
		ls_spool_ring_remove(s, id);
	ls_spool_kick(s);
}

const uint8_t *
ls_spool_boot(const struct ls_spool *s)
{
	return s->log.header.boot;
}

uint64_t
ls_spool_acked(const struct ls_spool *s)
{
	return s->log.acked;
}

uint64_t
ls_spool_next(const struct ls_spool *s)
{
	return s->next;
}

uint64_t
ls_spool_bytes(const struct ls_spool *s)
{
	return s->end + s->unwritten_len;
}

const struct ls_spool_stats *
ls_spool_get_stats(const struct ls_spool *s)
{
	return &s->stats;
}
