/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of chunks, zoomed values and identity of a report; interface in
 * intake_state.h. */
#include "config.h"

#include "collector/ingest/intake_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/log.h"
#include "proto/chunk/chunk.h"
#include "storage/db/days.h"

/* Asks the agent for a dictionary; it comes as an item of its own, later in the stream.
 */
static void
chunks_need_dictionary(struct ls_intake *in, struct ls_intake_held *h, uint64_t hash)
{
	for (size_t i = 0; i < h->ack.need_dictionary_count; i++) {
		if (h->ack.need_dictionary[i] == hash)
			return;
	}
	in->stats.dictionaries_asked++;
	if (h->ack.need_dictionary_count < LS_GROUPS_MAX)
		h->ack.need_dictionary[h->ack.need_dictionary_count++] = hash;
}

static struct ls_store_chunk *
chunks_row(struct ls_intake_held *h, enum ls_wire_chunk_kind kind)
{
	struct ls_store_report *rows = &h->write->u.report;
	struct ls_store_chunk *row = &rows->chunks[rows->chunk_count++];

	row->kind = kind;
	return row;
}

/* Gives a dictionary to the day's file, once a day. */
static int
chunks_store_dictionary(struct ls_intake_held *h, struct ls_dictionary *d)
{
	int32_t today = ls_days_of(h->now_us);
	struct ls_store_chunk *row;
	char *copy;

	if (d->stored_day == today)
		return 0;
	copy = malloc(d->text_len > 0 ? d->text_len : 1);
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, d->text, d->text_len);
	row = chunks_row(h, LS_WIRE_DICTIONARY);
	row->hash = d->hash;
	memcpy(row->group, d->group, sizeof(row->group));
	row->series = copy;
	row->series_len = d->text_len;
	d->stored_day = today;
	return 0;
}

static int
chunks_dictionary(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_wire_chunk_item *item)
{
	struct ls_dictionary *d;
	int rc = ls_dictionaries_put(in->p.core.dictionaries, item->hash, item->group,
		item->series, item->series_count, &d);

	if (rc == 0)
		rc = chunks_store_dictionary(h, d);
	in->stats.dictionaries += rc == 0;
	return rc;
}

/*
 * What is no truth is not stored; that it is missing is: a loss, of `samples` values
 * (0: not known how many), of a time that is known or 0.
 */
static void
chunks_set_apart(struct ls_intake *in, struct ls_intake_held *h,
	enum ls_intake_drop drop, const struct ls_dictionary *d,
	const struct ls_store_chunk *chunk, enum ls_wire_lost_reason reason)
{
	/* one kind of lie does not silence another */
	static struct ls_log_site site[LS_INTAKE_DROP_COUNT];
	struct ls_store_chunk *row = chunks_row(h, LS_WIRE_LOST);

	if (d != NULL)
		memcpy(row->group, d->group, sizeof(row->group));
	row->t_first_us = chunk->t_first_us;
	row->t_last_us = chunk->t_last_us;
	row->samples = d != NULL ? (uint64_t)chunk->n * d->count : 0;
	row->reason = reason;
	in->stats.drops[drop]++;
	ls_log_at(&site[drop], LS_LOG_WARN, "intake",
		"%s: cannot store an item (%s); it is recorded as a loss",
		h->report.host, ls_intake_drop_name(drop));
}

/* Whether a chunk is whole, and as wide as its dictionary; the drop if not,
 * LS_INTAKE_DROP_COUNT if so. */
static enum ls_intake_drop
chunks_judge(const struct ls_wire_chunk_item *item, const struct ls_dictionary *d)
{
	size_t rows, columns;
	int rc = ls_chunk_check(item->body, item->body_len, &rows, &columns);

	if (rc == -LS_ECORRUPT)
		return LS_INTAKE_CHUNK_CHECKSUM;
	if (rc == -LS_EVERSION)
		return LS_INTAKE_CHUNK_VERSION;
	if (rc != 0 || rows != item->rows || (d != NULL && columns != d->count) ||
		(int64_t)(item->t_last_mono_ns - item->t_first_mono_ns) / 1000 >
			LS_CHUNK_SPAN_US)
		return LS_INTAKE_CHUNK_SHAPE;
	return LS_INTAKE_DROP_COUNT;
}

/* A chunk's times on our line; false: they cannot be, and are 0. */
static bool
chunks_times(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_wire_chunk_item *item, struct ls_store_chunk *row)
{
	row->map = ls_intake_map(in, h, (int64_t)item->t_first_mono_ns);
	row->t_first_us = ls_store_map_us(&row->map, (int64_t)item->t_first_mono_ns);
	row->t_last_us = ls_store_map_us(&row->map, (int64_t)item->t_last_mono_ns);
	if (ls_intake_is_time(h, row->t_first_us) &&
		ls_intake_is_time(h, row->t_last_us))
		return true;
	row->t_first_us = row->t_last_us = 0;
	return false;
}

static int
chunks_chunk(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_wire_chunk_item *item)
{
	struct ls_dictionary *d =
		ls_dictionaries_find(in->p.core.dictionaries, item->hash);
	struct ls_store_chunk row = { .kind = LS_WIRE_CHUNK,
		.hash = item->hash,
		.n = item->rows,
		.body = item->body,
		.body_len = item->body_len };
	enum ls_intake_drop drop = chunks_judge(item, d);
	bool timely = chunks_times(in, h, item, &row);
	int rc = 0;

	if (drop != LS_INTAKE_DROP_COUNT) {
		chunks_set_apart(in, h, drop, d, &row, LS_LOST_DAMAGED);
		return 0;
	}
	if (!timely || ls_session_is_apart(h->session)) {
		/* Of two agents under one name, the first is the host. */
		chunks_set_apart(in, h, timely ? LS_INTAKE_APART : LS_INTAKE_CLOCK, d,
			&row, LS_LOST_UNKNOWN);
		return 0;
	}
	if (d != NULL)
		rc = chunks_store_dictionary(h, d);
	else
		chunks_need_dictionary(in, h,
			item->hash); /* stored all the same: it can be named later */
	if (rc != 0)
		return rc;
	*chunks_row(h, LS_WIRE_CHUNK) = row;
	in->stats.chunks++;
	in->stats.chunk_bytes += item->body_len;
	return 0;
}

/* The time of a loss; before a reboot the clock was another: not known. Nor is one that
 * cannot be. */
static int64_t
chunks_lost_us(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_wire_chunk_item *item, uint64_t t_mono_ns)
{
	struct ls_store_map map;
	int64_t t_us;

	if (t_mono_ns == 0 || item->reason == LS_LOST_REBOOT ||
		ls_clock_map(ls_session_clock(h->session), (int64_t)t_mono_ns,
			in->p.anchor_ns, &map) != 0)
		return 0;
	t_us = ls_store_map_us(&map, (int64_t)t_mono_ns);
	return ls_intake_is_time(h, t_us) ? t_us : 0;
}

static int
chunks_lost(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_wire_chunk_item *item)
{
	struct ls_store_chunk *row = chunks_row(h, LS_WIRE_LOST);

	memcpy(row->group, item->group, sizeof(row->group));
	row->t_first_us = chunks_lost_us(in, h, item, item->t_first_mono_ns);
	row->t_last_us = chunks_lost_us(in, h, item, item->t_last_mono_ns);
	row->samples = item->samples;
	row->reason = item->reason;
	in->stats.lost_samples += item->samples;
	in->stats.lost++;
	return 0;
}

/* What an item is worth in rows. */
static int
chunks_take(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_wire_chunk_item *item)
{
	switch (item->kind) {
	case LS_WIRE_DICTIONARY:
		return chunks_dictionary(in, h, item);
	case LS_WIRE_CHUNK:
		return chunks_chunk(in, h, item);
	case LS_WIRE_LOST:
		return chunks_lost(in, h, item);
	}
	return -EINVAL;
}

static void
chunks_lie(struct ls_intake *in, struct ls_intake_held *h, int rc, const char *why)
{
	const struct ls_store_chunk nothing = { 0 };

	ls_log(LS_LOG_DEBUG, "intake", "%s: rejected: %s", h->report.host, why);
	chunks_set_apart(in, h,
		rc == -LS_ECORRUPT ? LS_INTAKE_BAD_DICTIONARY : LS_INTAKE_BAD_ITEM,
		NULL, &nothing, LS_LOST_DAMAGED);
}

/* Whether the item's number is next in its stream; false: it was had (*ret_go_on), or
 * one is missing. */
static bool
chunks_is_next(struct ls_intake *in, struct ls_intake_held *h, uint64_t seq,
	uint32_t print, bool *ret_go_on)
{
	int rc = ls_session_check(h->session, LS_STREAM_CHUNKS, seq, print);

	*ret_go_on = rc != -LS_EBUSY;
	if (rc == -LS_EBUSY) {
		in->stats.drops[LS_INTAKE_HOLE]++;
		ls_intake_refuse(h, LS_ACK_RETRY,
			"a chunk item before these is missing");
	}
	return rc == 0;
}

/* Takes one item; false: neither it nor those after it. */
static bool
chunks_item(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_wire_bytes *bytes)
{
	uint32_t print = ls_session_fingerprint(bytes->data, bytes->len);
	struct ls_wire_chunk_item item = { 0 };
	const char *why = "";
	bool go_on = false;
	int rc = ls_wire_chunk_item_unpack(bytes->data, bytes->len, &item, &why);
	uint64_t seq =
		rc == 0 ? item.seq : ls_wire_item_number(bytes->data, bytes->len);

	if (rc == 0 &&
		(seq == 0 || seq > LS_WIRE_NUMBER_MAX ||
			item.samples > LS_WIRE_NUMBER_MAX)) {
		rc = -LS_ERANGE;
		why = "number of a chunk item";
	}
	if (rc != 0 && !ls_intake_is_lie(rc, seq)) {
		in->stats.drops[LS_INTAKE_BAD_ITEM]++;
		if (rc == -LS_EPARSE && h->ack.status == LS_ACK_OK)
			h->ack.malformed_chunk_seq = seq;
		ls_intake_refuse(h, rc == -ENOMEM ? LS_ACK_RETRY : LS_ACK_REJECT, why);
		goto out;
	}
	if (!chunks_is_next(in, h, seq, print, &go_on))
		goto out;
	if (rc != 0) {
		chunks_lie(in, h, rc, why);
		rc = 0;
	} else {
		rc = chunks_take(in, h, &item);
	}
	if (rc == -ENOMEM) {
		in->stats.drops[LS_INTAKE_MEMORY]++;
		ls_intake_refuse(h, LS_ACK_RETRY, "out of memory");
		go_on = false;
		goto out;
	}
	/* A dictionary that is not what its hash says names nothing, but its number is
	 * spent. */
	in->stats.drops[LS_INTAKE_BAD_DICTIONARY] += rc != 0;
	ls_session_accept(h->session, LS_STREAM_CHUNKS, seq, print);
	h->accepted[LS_STREAM_CHUNKS] = true;
	in->stats.chunk_items++;
out:
	ls_wire_chunk_item_clear(&item);
	return go_on;
}

void
ls_intake_chunks(struct ls_intake *in, struct ls_intake_held *h)
{
	for (size_t i = 0; i < h->report.chunk_item_count; i++) {
		if (!chunks_item(in, h, &h->report.chunk_items[i]))
			break;
	}
}

/* --- zoom ----------------------------------------------------------------- */

static void
chunks_zoomed(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_wire_zoomed *z)
{
	struct ls_dictionary *d =
		ls_dictionaries_find(in->p.core.dictionaries, z->dictionary);
	struct ls_store_map map;

	if (d == NULL) {
		chunks_need_dictionary(in, h, z->dictionary);
		in->stats.drops[LS_INTAKE_NO_DICTIONARY]++;
		return;
	}
	if (ls_clock_map(ls_session_clock(h->session), (int64_t)z->t_mono_ns,
		    in->p.anchor_ns, &map) != 0)
		return; /* as other values: the next report has a clock */
	if (ls_fleet_values(in->p.core.fleet, h->report.host, d, z,
		    ls_store_map_us(&map, (int64_t)z->t_mono_ns)) != 0)
		in->stats.drops[LS_INTAKE_BAD_VALUES]++;
	else
		in->stats.zoomed++;
}

static void
chunks_identity(struct ls_intake *in, struct ls_intake_held *h)
{
	struct ls_write *m;
	bool store = false;

	if (ls_fleet_identify(in->p.core.fleet, &h->report, h->now_us, &store) != 0) {
		in->stats.drops[LS_INTAKE_MEMORY]++;
		return;
	}
	ls_session_identified(h->session);
	if (!store)
		return;
	m = ls_write_new(LS_WRITE_HOST, h->now_us);
	if (m == NULL)
		return; /* not stored this time; it comes again with the next session */
	memcpy(m->u.host.host, h->report.host, sizeof(m->u.host.host));
	m->u.host.json = ls_fleet_identity_text(in->p.core.fleet, h->report.host);
	if (m->u.host.json == NULL || ls_writer_push(in->p.core.writer, m) != 0)
		ls_write_free(m); /* likewise */
}

void
ls_intake_host(struct ls_intake *in, struct ls_intake_held *h)
{
	const struct ls_wire_report *r = &h->report;
	int64_t until_us;

	/* A second agent under one name may be another machine: it says nothing of the
	 * host. */
	if (ls_session_is_apart(h->session)) {
		in->stats.drops[LS_INTAKE_APART] += r->zoomed_count + r->has_identity;
		return;
	}
	if (ls_fleet_report(in->p.core.fleet, r, ls_session_clock(h->session),
		    h->peer->due_mono_ns > 0, h->now_us) != 0) {
		in->stats.drops[LS_INTAKE_MEMORY]++;
		return;
	}
	if (r->has_identity)
		chunks_identity(in, h);
	h->ack.need_identity = !ls_session_is_identified(h->session);
	until_us = ls_zoom_until(in->p.core.zoom, r->host, h->now_us);
	if (until_us == 0) {
		in->stats.drops[LS_INTAKE_UNASKED] += r->zoomed_count;
		return;
	}
	h->ack.zoom_ns = (uint64_t)(until_us - h->now_us) * 1000;
	for (size_t i = 0; i < r->zoomed_count; i++)
		chunks_zoomed(in, h, &r->zoomed[i]);
}
