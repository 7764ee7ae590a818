/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/spool.h"

#include <string.h>
#include "agent/spool/spool_state.h"
#include "proto/base/log.h"
#include "proto/base/text.h"

/* the number of an item: tag, and at most ten bytes of varint */
#define SPOOL_SEQ_BYTES 11u
#define SPOOL_SEQ_TAG 0x08u /* field 1, varint: proto/lockstep.proto, ChunkItem.seq */

_Static_assert(SPOOL_SEQ_BYTES <= LS_SPOOL_RECORD_BYTES,
	"a number fits before any payload");

/* --- dictionaries --------------------------------------------------------- */

/* Where a dictionary is among the known ones; their number: it is not. */
static size_t
spool_known(const struct ls_spool *s, uint64_t hash)
{
	size_t i = 0;

	while (i < s->log.known_count && s->log.known[i].hash != hash)
		i++;
	return i;
}

void
ls_spool_know(struct ls_spool *s, uint64_t hash, bool waiting)
{
	size_t i = spool_known(s, hash);

	/* the oldest is forgotten, and sent again if it is used again */
	if (i == LS_SPOOL_DICTIONARIES_MAX) {
		i = s->known_at;
		s->known_at = (s->known_at + 1) % LS_SPOOL_DICTIONARIES_MAX;
	} else if (i == s->log.known_count) {
		s->log.known_count++;
	}
	s->log.known[i] = (struct ls_spool_known){ hash, waiting };
}

void
ls_spool_unknow(struct ls_spool *s, uint64_t hash)
{
	size_t i = spool_known(s, hash);

	if (i < s->log.known_count)
		s->log.known[i] = s->log.known[--s->log.known_count];
}

bool
ls_spool_dictionary_is_known(const struct ls_spool *s, uint64_t hash)
{
	return spool_known(s, hash) < s->log.known_count;
}

bool
ls_spool_dictionary_is_waiting(const struct ls_spool *s, uint64_t hash)
{
	size_t i = spool_known(s, hash);

	return i < s->log.known_count && s->log.known[i].waiting;
}

/* --- the newest chunks ---------------------------------------------------- */

/* Where the newest chunk of a dictionary is; LS_GROUPS_MAX: there is none. */
static size_t
spool_newest(const struct ls_spool *s, uint64_t hash)
{
	size_t i = 0;

	while (i < LS_GROUPS_MAX &&
		(s->newest[i].t_last == 0 || s->newest[i].hash != hash))
		i++;
	return i;
}

static void
spool_note_newest(struct ls_spool *s, uint64_t hash, uint64_t t_last)
{
	size_t i = spool_newest(s, hash);

	if (i == LS_GROUPS_MAX) {
		s->newest[s->newest_at] = (struct ls_spool_newest){ hash, t_last };
		s->newest_at = (s->newest_at + 1) % LS_GROUPS_MAX;
	} else if (t_last > s->newest[i].t_last) {
		s->newest[i].t_last = t_last;
	}
}

uint64_t
ls_spool_chunk_newest(const struct ls_spool *s, uint64_t hash)
{
	size_t i = spool_newest(s, hash);

	return i < LS_GROUPS_MAX ? s->newest[i].t_last : 0;
}

void
ls_spool_chunk_note(struct ls_spool *s, const struct ls_spool_record *r)
{
	s->chunk_next++;
	s->chunk_live_bytes += LS_SPOOL_RECORD_BYTES + r->len;
	if (r->type == LS_SPOOL_DICTIONARY)
		ls_spool_know(s, r->hash, true);
	if (r->type == LS_SPOOL_CHUNK)
		spool_note_newest(s, r->hash, r->t_last);
}

/* --- losses --------------------------------------------------------------- */

struct ls_loss
ls_spool_loss_of(const struct ls_spool_record *r, enum ls_wire_lost_reason reason)
{
	struct ls_loss one = { .reason = reason, .samples = r->count };

	/* A name that is none and times that are none would be refused by the collector
	 * for ever. */
	if (ls_text_is_name((const char *)r->payload, r->name_len,
		    LS_GROUP_NAME_MAX_BYTES - 1))
		memcpy(one.group, r->payload, r->name_len);
	if (r->first_index <= r->t_last && r->t_last <= LS_WIRE_TIME_MAX_NS) {
		one.t_from = r->first_index;
		one.t_to = r->t_last;
	}
	return one;
}

int
ls_spool_loss_record(const struct ls_loss *one, uint8_t *buf, size_t size,
	struct ls_spool_record *ret_record)
{
	struct ls_wire_chunk_item item = ls_loss_item(one);
	size_t name_len = strlen(one->group), len;
	int rc;

	LS_ASSERT(name_len < LS_GROUP_NAME_MAX_BYTES && name_len < size);
	memcpy(buf, one->group, name_len);
	rc = ls_wire_chunk_item_pack(&item, buf + name_len, size - name_len, &len);
	if (rc != 0)
		return rc;
	*ret_record = (struct ls_spool_record){ .type = LS_SPOOL_LOST,
		.seq = (uint64_t)one->reason,
		.name_len = (uint8_t)name_len,
		.first_index = one->t_from,
		.t_last = one->t_to,
		.payload = buf,
		.len = name_len + len };
	/* The sum of least time and samples must not overflow: see
	 * ls_spool_record_peek. */
	ret_record->count = one->samples < UINT64_MAX - one->t_from
		? one->samples
		: UINT64_MAX - one->t_from;
	return 0;
}

/* --- use ------------------------------------------------------------------ */

/* The record of an item, its payload in s->item. */
static int
spool_chunk_record(struct ls_spool *s, const struct ls_wire_chunk_item *item,
	struct ls_spool_record *ret_record)
{
	static const enum ls_spool_type types[] = { [LS_WIRE_DICTIONARY] =
							    LS_SPOOL_DICTIONARY,
		[LS_WIRE_CHUNK] = LS_SPOOL_CHUNK,
		[LS_WIRE_LOST] = LS_SPOOL_LOST };
	struct ls_wire_chunk_item unnumbered = *item;
	size_t name_len = strlen(item->group), len;
	int rc;

	unnumbered.seq = 0;
	memcpy(s->item, item->group, name_len);
	rc = ls_wire_chunk_item_pack(&unnumbered, s->item + name_len,
		LS_CHUNK_ITEM_MAX_BYTES - SPOOL_SEQ_BYTES, &len);
	if (rc != 0)
		return -LS_ELIMIT;
	*ret_record = (struct ls_spool_record){ .type = types[item->kind],
		.hash = item->hash,
		.name_len = (uint8_t)name_len,
		.payload = s->item,
		.len = name_len + len };
	if (item->kind == LS_WIRE_DICTIONARY)
		return 0;
	ret_record->first_index = item->t_first_mono_ns;
	ret_record->t_last = item->t_last_mono_ns;
	ret_record->count = item->samples;
	if (item->kind == LS_WIRE_LOST)
		ret_record->seq = (uint64_t)item->reason;
	return item->samples > UINT64_MAX - item->t_first_mono_ns ? -LS_ERANGE : 0;
}

int
ls_spool_push_chunk(struct ls_spool *s, const struct ls_wire_chunk_item *item)
{
	struct ls_spool_record r;
	int rc = spool_chunk_record(s, item, &r);

	if (rc == 0)
		rc = ls_spool_make_room(s, LS_SPOOL_RECORD_BYTES + r.len, true);
	if (rc == 0)
		rc = ls_spool_append(s, &r);
	if (rc != 0) {
		s->stats.refused_items++;
		return rc;
	}
	ls_spool_chunk_note(s, &r);
	s->stats.pushed_chunk_bytes += r.len;
	ls_spool_kick(s);
	return 0;
}

/* Puts the number before an encoded item, in the bytes of the record's head. Where it
 * begins. */
static uint8_t *
spool_put_seq(uint8_t *item, uint64_t seq)
{
	uint8_t bytes[SPOOL_SEQ_BYTES];
	size_t n = 0;

	bytes[n++] = SPOOL_SEQ_TAG;
	for (; seq >= 0x80; seq >>= 7)
		bytes[n++] = (uint8_t)(seq | 0x80);
	bytes[n++] = (uint8_t)seq;
	memcpy(item - n, bytes, n);
	return item - n;
}

int
ls_spool_read_chunks(struct ls_spool *s, uint8_t *buf, size_t max_bytes,
	struct ls_wire_bytes ret_items[LS_CHUNK_ITEMS_PER_REPORT_MAX],
	size_t *ret_count)
{
	struct ls_spool_window *w = &s->chunks;
	size_t at, pos = 0, used = 0, count = 0, one;
	struct ls_spool_record r;
	uint8_t *item;

	ls_spool_kick(s);
	*ret_count = 0;
	if (w->loading)
		return 0;
	if (max_bytes > LS_REPORT_CHUNK_BYTES)
		max_bytes = LS_REPORT_CHUNK_BYTES;
	for (at = w->pos; at < w->len && count < LS_CHUNK_ITEMS_PER_REPORT_MAX;
		at += one) {
		if (ls_spool_record_get(w->buf + at, w->len - at, &r) != 0)
			return -LS_ECORRUPT;
		one = LS_SPOOL_RECORD_BYTES + r.len;
		/* A rewrite counts payloads in the same way. */
		if (count > 0 &&
			(used + r.len > max_bytes ||
				pos + one > LS_SPOOL_CHUNKS_READ_BYTES))
			break;
		memcpy(buf + pos, w->buf + at, one);
		item = buf + pos + LS_SPOOL_RECORD_BYTES + r.name_len;
		ret_items[count].data = spool_put_seq(item, w->front_seq + count);
		pos += one;
		used += r.len;
		ret_items[count].len = (size_t)(buf + pos - ret_items[count].data);
		count++;
	}
	*ret_count = count;
	return w->pos == w->len ? w->rc : 0;
}

void
ls_spool_ack_chunks(struct ls_spool *s, uint64_t seq)
{
	ls_spool_note_ack(s, LS_SPOOL_CHUNK_ACK, seq);
}

uint64_t
ls_spool_chunks_acked(const struct ls_spool *s)
{
	return s->log.chunk_acked;
}

uint64_t
ls_spool_chunks_next(const struct ls_spool *s)
{
	return s->chunk_next;
}
