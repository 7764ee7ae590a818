/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/intake_state.h"

#include <errno.h>
#include <string.h>
#include "collector/ingest/feed.h"
#include "proto/base/log.h"

static struct ls_store_item *
intake_row(struct ls_intake *in, struct ls_intake_held *h, const struct ls_ring *ring,
	enum ls_wire_item_kind kind, uint64_t first_index, uint64_t count)
{
	struct ls_store_item *row =
		&h->write->u.report.items[h->write->u.report.item_count++];

	row->kind = kind;
	row->worker_id = ls_intake_worker_id(in, h, ring); /* known before the item */
	memcpy(row->ring_id, ring->id, sizeof(row->ring_id));
	row->first_index = first_index;
	row->count = count;
	row->high = ring->high;
	return row;
}

/* How many of a row's records the engine has had: after a failed commit they come
 * again. */
static uint64_t
intake_fed(struct ls_ring *ring, const struct ls_store_item *row)
{
	uint64_t end = row->first_index + row->count, fed = 0;

	if (ring->fed >= end)
		return row->count;
	if (ring->fed > row->first_index)
		fed = ring->fed - row->first_index;
	ring->fed = end;
	return fed;
}

static void
intake_feed_gap(struct ls_intake *in, struct ls_intake_held *h, struct ls_ring *ring,
	const struct ls_store_item *row)
{
	uint64_t fed = intake_fed(ring, row);

	if (fed < row->count)
		ls_engine_gap(in->p.core.engine,
			ls_intake_handle(in, ring, false, h->now_us), row->count - fed);
}

static void
intake_feed_steps(struct ls_intake *in, struct ls_intake_held *h, struct ls_ring *ring,
	const struct ls_store_item *row, const struct ls_store_steps *all)
{
	uint64_t fed = intake_fed(ring, row);
	struct ls_store_steps steps = *all;

	if (fed == row->count)
		return;
	steps.first_index += fed;
	steps.count -= (uint32_t)fed;
	steps.records += fed;
	ls_feed_steps(in->p.core.engine, ls_intake_handle(in, ring, true, h->now_us),
		&steps, h->now_us);
}

static void
intake_add_gap(struct ls_intake *in, struct ls_intake_held *h, struct ls_ring *ring,
	uint64_t from, uint64_t count, unsigned reason)
{
	struct ls_store_item *row = intake_row(in, h, ring, LS_WIRE_GAP, from, count);

	row->reason = reason;
	in->stats.gaps++;
	intake_feed_gap(in, h, ring, row);
}

/* Records that no gap accounts for: the agent lost them without knowing. */
static void
intake_lost(struct ls_intake *in, struct ls_intake_held *h, struct ls_ring *ring,
	uint64_t from, uint64_t count)
{
	ring->high = from + count;
	intake_add_gap(in, h, ring, from, count, LS_GAP_UNKNOWN);
}

/* Where the news of an item begins: a stretch that no item accounts for is lost, what the
 * ring had before is known; its end if all is. */
static uint64_t
intake_news(struct ls_intake *in, struct ls_intake_held *h, struct ls_ring *ring,
	const struct ls_wire_item *item)
{
	uint64_t end = item->first_index + item->count, first = item->first_index;

	if (ring->seen && first > ring->high)
		intake_lost(in, h, ring, ring->high, first - ring->high);
	if (ring->seen && first < ring->high)
		first = ring->high < end ? ring->high : end;
	if (first < end) {
		ring->seen = true;
		ring->high = end;
	}
	return first;
}

/* The item's records become those of the collector's time line. */
static void
intake_steps(struct ls_intake *in, struct ls_intake_held *h, struct ls_ring *ring,
	struct ls_wire_item *item, const struct ls_wire_bytes *bytes)
{
	uint64_t first = intake_news(in, h, ring, item), i;
	uint64_t known = first - item->first_index;
	struct ls_store_item *row;
	struct ls_store_steps steps;
	struct ls_record *records;

	in->stats.drops[LS_INTAKE_STORED] += known;
	if (known == item->count)
		return;
	row = intake_row(in, h, ring, LS_WIRE_STEPS, first, item->count - known);
	row->data = bytes->data;
	row->len = bytes->len;
	row->map = ls_intake_map(in, h, item->records[0].t_begin_ns);
	in->stats.records += row->count;
	records = item->records + known;
	for (i = 0; i < row->count; i++)
		ls_store_record(&row->map, &records[i], &records[i]);
	steps = (struct ls_store_steps){ row->worker_id, first, (uint32_t)row->count,
		row->map.uncertainty_ns, records };
	ls_feed_span(row, &steps);
	intake_feed_steps(in, h, ring, row, &steps);
}

static void
intake_gap(struct ls_intake *in, struct ls_intake_held *h, struct ls_ring *ring,
	const struct ls_wire_item *item)
{
	uint64_t first = intake_news(in, h, ring, item);
	uint64_t known = first - item->first_index;

	if (known < item->count)
		intake_add_gap(in, h, ring, first, item->count - known, item->reason);
}

/* Records of which one is of a time that cannot be are no truth: their place is a gap.
 */
static void
intake_check_times(struct ls_intake *in, struct ls_intake_held *h,
	struct ls_wire_item *item)
{
	struct ls_store_map map = ls_intake_map(in, h, item->records[0].t_begin_ns);
	uint64_t i;

	for (i = 0; i < item->count; i++) {
		if (!ls_intake_is_time(h,
			    ls_store_map_us(&map, item->records[i].t_begin_ns)))
			break;
	}
	if (i == item->count)
		return;
	in->stats.drops[LS_INTAKE_CLOCK] += item->count;
	ls_engine_lie(in->p.core.engine, h->report.host, LS_LIE_TIME, item->count);
	ls_log(LS_LOG_WARN, "intake",
		"%s: step records with an impossible time (%lld s from now); they "
		"become a gap",
		h->report.host,
		(long long)((ls_store_map_us(&map, item->records[i].t_begin_ns) -
				    h->now_us) /
			1000000));
	item->kind = LS_WIRE_GAP;
	item->reason = LS_GAP_INVALID;
}

static void
intake_end(struct ls_intake *in, struct ls_intake_held *h, struct ls_ring *ring,
	const struct ls_wire_item *item)
{
	struct ls_store_item *row =
		intake_row(in, h, ring, LS_WIRE_END, 0, item->count);

	row->reason = item->how;
	in->stats.ends++;
	ls_engine_end(in->p.core.engine, ls_intake_handle(in, ring, false, h->now_us),
		item->how, h->now_us);
	ring->ended = true;
}

/* What an agent says of its ring. */
static void
intake_take(struct ls_intake *in, struct ls_intake_held *h, struct ls_ring *ring,
	struct ls_wire_item *item, const struct ls_wire_bytes *bytes)
{
	if (item->kind == LS_WIRE_GAP && item->reason == LS_GAP_INVALID)
		ls_engine_lie(in->p.core.engine, h->report.host, LS_LIE_RECORD,
			item->count);
	if (item->kind == LS_WIRE_STEPS && item->count > 0)
		intake_check_times(in, h, item);
	if (item->kind == LS_WIRE_STEPS && item->count > 0)
		intake_steps(in, h, ring, item, bytes);
	else if (item->kind == LS_WIRE_GAP)
		intake_gap(in, h, ring, item);
	else if (item->kind == LS_WIRE_END)
		intake_end(in, h, ring, item);
}

/* What it says of a ring that is another host's. */
static void
intake_pass_over(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_ring *ring, const struct ls_wire_item *item)
{
	uint64_t count = item->kind == LS_WIRE_END ? 1 : item->count;

	in->stats.drops[LS_INTAKE_OTHER_HOST] += count;
	ls_engine_lie(in->p.core.engine, h->report.host, LS_LIE_RING, count);
	ls_log(LS_LOG_WARN, "intake",
		"%s: ignoring %llu records of a ring that belongs to %s (%s rank "
		"%d); is the file a copy?",
		h->report.host, (unsigned long long)count, ring->info.host,
		ring->info.job, (int)ring->info.rank);
}

bool
ls_intake_is_lie(int rc, uint64_t seq)
{
	return (rc == -LS_ECORRUPT || rc == -LS_ERANGE || rc == -LS_ELIMIT) &&
		seq > 0 && seq <= LS_WIRE_NUMBER_MAX;
}

/* An item that was not understood: it waits with the agent, which may be newer. */
static void
intake_bad_item(struct ls_intake *in, struct ls_intake_held *h, int rc, uint64_t seq,
	const char *why)
{
	in->stats.drops[LS_INTAKE_BAD_ITEM]++;
	if (rc != -ENOMEM)
		ls_engine_lie(in->p.core.engine, h->report.host, LS_LIE_ITEM, 1);
	if (rc == -LS_EPARSE && h->ack.status == LS_ACK_OK)
		h->ack.malformed_seq = seq;
	ls_intake_refuse(h, rc == -ENOMEM ? LS_ACK_RETRY : LS_ACK_REJECT, why);
}

/* The number of an item is spent. */
static void
intake_spend(struct ls_intake *in, struct ls_intake_held *h, uint64_t seq,
	uint32_t print)
{
	ls_session_accept(h->session, LS_STREAM_STEPS, seq, print);
	h->accepted[LS_STREAM_STEPS] = true;
	in->stats.items++;
}

/* Takes one item; false: neither it nor those after it. */
static bool
intake_item(struct ls_intake *in, struct ls_intake_held *h,
	const struct ls_wire_bytes *bytes)
{
	uint32_t print = ls_session_fingerprint(bytes->data, bytes->len);
	struct ls_wire_item item = { 0 };
	const char *why = "";
	struct ls_ring *ring;
	bool go_on = true;
	uint64_t seq;
	int rc, lie;

	lie = ls_wire_item_unpack_in(bytes->data, bytes->len, &in->scratch, &item,
		&why);
	seq = lie == 0 ? item.seq : ls_wire_item_number(bytes->data, bytes->len);
	if (lie == 0 &&
		(seq > LS_WIRE_NUMBER_MAX || item.count > LS_WIRE_NUMBER_MAX ||
			item.first_index > LS_WIRE_NUMBER_MAX - item.count)) {
		lie = -LS_ERANGE;
		why = "number of an item";
	}
	if (lie != 0 && !ls_intake_is_lie(lie, seq)) {
		intake_bad_item(in, h, lie, seq, why);
		ls_wire_item_clear(&item);
		return false;
	}
	rc = ls_session_check(h->session, LS_STREAM_STEPS, seq, print);
	ring = rc == 0 && lie == 0 ? ls_rings_find(in->p.core.rings, item.ring_id)
				   : NULL;
	if (rc != 0 && rc != -LS_EDUPLICATE) {
		in->stats.drops[LS_INTAKE_HOLE]++;
		ls_intake_refuse(h, LS_ACK_RETRY, "an item before these is missing");
		go_on = false;
	} else if (rc == 0 && lie != 0) {
		in->stats.drops[LS_INTAKE_BAD_ITEM]++;
		ls_engine_lie(in->p.core.engine, h->report.host, LS_LIE_ITEM, 1);
		ls_log(LS_LOG_WARN, "intake",
			"%s: ignoring an item that cannot be true (%s)", h->report.host,
			why);
		intake_spend(in, h, seq, print);
	} else if (rc == 0 && (ring == NULL || !ring->named)) {
		ls_intake_need_worker(in, h, item.ring_id);
		go_on = false;
	} else if (rc == 0 && ls_intake_worker_id(in, h, ring) == 0) {
		in->stats.drops[LS_INTAKE_MEMORY]++;
		ls_intake_refuse(h, LS_ACK_RETRY, "out of memory");
		go_on = false;
	} else if (rc == 0) {
		intake_spend(in, h, seq, print);
		if (ls_ring_hears(ring, h->report.host, h->now_us))
			intake_take(in, h, ring, &item, bytes);
		else
			intake_pass_over(in, h, ring, &item);
	}
	ls_wire_item_clear(&item);
	return go_on;
}

/* May items be taken now? If not, the agent is told why, or waits for its clock. */
static bool
intake_may_take(struct ls_intake *in, struct ls_intake_held *h, size_t count)
{
	struct ls_pressure_load load;

	if (ls_session_state(h->session) == LS_SESSION_HELLO) {
		in->stats.drops[LS_INTAKE_NO_CLOCK] += count;
		return false; /* answered as usual: the next report brings the stamps */
	}
	load = (struct ls_pressure_load){ in->waiting, in->stats.held_bytes + h->len,
		ls_writer_count(in->p.core.writer) };
	if (!ls_pressure_take(&in->pressure, &load)) {
		in->stats.drops[LS_INTAKE_BUSY] += count;
		ls_intake_refuse(h, LS_ACK_RETRY, "the disk is too slow");
		return false;
	}
	return true;
}

void
ls_intake_items(struct ls_intake *in, struct ls_intake_held *h)
{
	size_t i, count = h->report.item_count + h->report.chunk_item_count;

	if (count == 0 || !intake_may_take(in, h, count))
		return;
	for (i = 0; i < h->report.item_count; i++) {
		if (!intake_item(in, h, &h->report.items[i]))
			break;
	}
	ls_intake_chunks(in, h);
}
