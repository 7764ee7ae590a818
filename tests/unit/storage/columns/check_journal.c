/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/columns/journal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "storage/columns/positions.h"
#include "storage/read/span.h"
#include "tests/support/harness.h"
#include "tests/support/reports.h"

#define T 1795219200000000ll

static struct ls_journal journal;

static void
setup(void)
{
	memset(&journal, 0, sizeof(journal));
}

static void
teardown(void)
{
	ls_journal_fini(&journal);
}

/* Records first..first+count of rank 0's ring, of which the last `kept` are the row's.
 */
static void
put_steps(int64_t id, uint64_t first, uint64_t count, uint64_t kept)
{
	struct ls_test_agent a;
	struct ls_store_item item = {
		.kind = LS_WIRE_STEPS, .worker_id = 7, .count = kept
	};

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, 1, first, count);
	item.first_index = first + count - kept;
	item.step_lo = item.first_index;
	item.step_hi = first + count - 1;
	item.t_lo_us = T - 1000000;
	item.t_hi_us = T - 500000;
	item.map.ref_mono_ns = 5;
	item.map.offset_ns = T * 1000 - 123;
	item.map.drift_ppb = -20;
	item.map.uncertainty_ns = 40000;
	item.data = a.items[0].data;
	item.len = a.items[0].len;
	ck_assert_int_eq(ls_journal_put_steps(&journal, id, T, &item), 0);
	ls_test_agent_clear(&a);
}

static void
put_hot(int64_t id, const char *host, int64_t worker_id)
{
	struct ls_store_counters c = { .worker_id = worker_id,
		.read_us = T - 3,
		.count = 2,
		.metric = { 1, 140 },
		.value = { 12.5, -1e300 } };

	(void)snprintf(c.host, sizeof(c.host), "%s", host);
	ck_assert_int_eq(ls_journal_put_hot(&journal, id, T + 1, &c), 0);
}

static void
put_positions(const char *host, uint64_t seq, uint64_t high)
{
	struct ls_store_ledger agent = { .seq = seq, .chunk_seq = 3, .t_us = T + 2 };
	struct ls_store_ring ring = { .worker_id = 7, .high = high, .t_us = T - 5 };

	memset(agent.boot, 0xb0, sizeof(agent.boot));
	memset(ring.ring_id, 0x81, sizeof(ring.ring_id));
	(void)snprintf(agent.host, sizeof(agent.host), "%s", host);
	ck_assert_int_eq(ls_journal_put_agent(&journal, &agent), 0);
	ck_assert_int_eq(ls_journal_put_ring(&journal, &ring), 0);
}

static void
fill(void)
{
	put_steps(40, 10, 3, 2);
	put_hot(41, "h0", 0);
	put_hot(41 + 300, "h0", 9);
	put_positions("h0", 99, 13);
	ck_assert_int_eq(ls_journal_seal(&journal), 0);
}

struct seen {
	size_t count, stop_at;
	struct ls_journal_entry entry[8];
};

static int
see(void *arg, const struct ls_journal_entry *e)
{
	struct seen *s = arg;

	ck_assert_uint_lt(s->count, 8);
	s->entry[s->count++] = *e;
	return s->count == s->stop_at ? -ECANCELED : 0;
}

LS_CASE(body, setup, teardown);

LS_TEST(body, what_is_put_is_read)
{
	struct seen s = { 0 };
	const struct ls_journal_entry *e = s.entry;

	fill();
	ck_assert_int_eq(ls_journal_read(journal.data, journal.len, see, &s), 0);
	ck_assert_uint_eq(s.count, 5);
	ck_assert_int_eq(e[0].kind, LS_JOURNAL_STEPS);
	ck_assert_int_eq(e[0].id, 40);
	ck_assert_int_eq(e[0].t_us, T);
	ck_assert_int_eq(e[0].u.item.worker_id, 7);
	ck_assert_uint_eq(e[0].u.item.first_index, 11);
	ck_assert_uint_eq(e[0].u.item.count, 2);
	ck_assert_uint_eq(e[0].u.item.step_lo, 11);
	ck_assert_uint_eq(e[0].u.item.step_hi, 12);
	ck_assert_int_eq(e[0].u.item.t_lo_us, T - 1000000);
	ck_assert_int_eq(e[0].u.item.t_hi_us, T - 500000);
	ck_assert_int_eq(e[0].u.item.map.ref_mono_ns, 5);
	ck_assert_int_eq(e[0].u.item.map.offset_ns, T * 1000 - 123);
	ck_assert_int_eq(e[0].u.item.map.drift_ppb, -20);
	ck_assert_int_eq(e[0].u.item.map.uncertainty_ns, 40000);
	ck_assert_int_eq(e[1].kind, LS_JOURNAL_HOT);
	ck_assert_int_eq(e[1].id, 41);
	ck_assert_int_eq(e[1].t_us, T + 1);
	ck_assert_str_eq(e[1].u.counters.host, "h0");
	ck_assert_int_eq(e[1].u.counters.worker_id, 0);
	ck_assert_int_eq(e[1].u.counters.read_us, T - 3);
	ck_assert_uint_eq(e[1].u.counters.count, 2);
	ck_assert_uint_eq(e[1].u.counters.metric[1], 140);
	ck_assert_double_eq(e[1].u.counters.value[1], -1e300);
	ck_assert_int_eq(e[2].id, 341);
	ck_assert_str_eq(e[2].u.counters.host, "h0");
	ck_assert_int_eq(e[2].u.counters.worker_id, 9);
	ck_assert_str_eq(e[3].u.agent.host, "h0");
	ck_assert_uint_eq(e[3].u.agent.boot[15], 0xb0);
	ck_assert_uint_eq(e[3].u.agent.seq, 99);
	ck_assert_uint_eq(e[3].u.agent.chunk_seq, 3);
	ck_assert_int_eq(e[3].u.agent.t_us, T + 2);
	ck_assert_uint_eq(e[4].u.ring.ring_id[0], 0x81);
	ck_assert_uint_eq(e[4].u.ring.high, 13);
	ck_assert_int_eq(e[4].u.ring.t_us, T - 5);
}

LS_TEST(body, positions_alone_are_the_same)
{
	struct seen all = { 0 }, s = { 0 };

	fill();
	ck_assert_int_eq(ls_journal_read(journal.data, journal.len, see, &all), 0);
	ck_assert_int_eq(ls_journal_read_positions(journal.data, journal.len, see, &s),
		0);
	ck_assert_uint_eq(s.count, 2);
	ck_assert_int_eq(s.entry[0].kind, LS_JOURNAL_AGENT);
	ck_assert_str_eq(s.entry[0].u.agent.host, all.entry[3].u.agent.host);
	ck_assert_mem_eq(s.entry[0].u.agent.boot, all.entry[3].u.agent.boot,
		sizeof(s.entry[0].u.agent.boot));
	ck_assert_uint_eq(s.entry[0].u.agent.seq, all.entry[3].u.agent.seq);
	ck_assert_uint_eq(s.entry[0].u.agent.chunk_seq, all.entry[3].u.agent.chunk_seq);
	ck_assert_int_eq(s.entry[0].u.agent.t_us, all.entry[3].u.agent.t_us);
	ck_assert_int_eq(s.entry[1].kind, LS_JOURNAL_RING);
	ck_assert_mem_eq(s.entry[1].u.ring.ring_id, all.entry[4].u.ring.ring_id,
		sizeof(s.entry[1].u.ring.ring_id));
	ck_assert_uint_eq(s.entry[1].u.ring.high, all.entry[4].u.ring.high);
	ck_assert_int_eq(s.entry[1].u.ring.t_us, all.entry[4].u.ring.t_us);
	journal.data[journal.len - 1] ^= 1;
	ck_assert_int_eq(ls_journal_read_positions(journal.data, journal.len, see, &s),
		-LS_ECORRUPT);
}

LS_TEST(body, the_bytes_are_the_golden_ones)
{
	size_t len;
	char *golden;

	fill();
	golden = ls_test_read(ls_test_source("tests/golden/journal_v1.bin"), &len);
	ck_assert_uint_eq(journal.len, len);
	ck_assert_mem_eq(journal.data, golden, len);
	free(golden);
}

LS_TEST(body, an_empty_body_and_one_made_again_are_right)
{
	struct seen s = { 0 };
	size_t len;

	ck_assert_int_eq(ls_journal_seal(&journal), 0);
	ck_assert_int_eq(ls_journal_read(journal.data, journal.len, see, &s), 0);
	ck_assert_uint_eq(s.count, 0);
	ls_journal_reset(&journal);
	fill();
	len = journal.len;
	ls_journal_reset(&journal);
	/* nothing is left of the one before: ids may be lower, names are told again */
	fill();
	ck_assert_uint_eq(journal.len, len);
	ck_assert_int_eq(ls_journal_read(journal.data, journal.len, see, &s), 0);
	ck_assert_uint_eq(s.count, 5);
}

LS_TEST(body, a_visitor_can_stop)
{
	struct seen s = { .stop_at = 2 };

	fill();
	ck_assert_int_eq(ls_journal_read(journal.data, journal.len, see, &s),
		-ECANCELED);
	ck_assert_uint_eq(s.count, 2);
}

LS_TEST(body, every_damaged_byte_is_seen_and_nothing_visited)
{
	struct seen s = { 0 };
	size_t i;

	fill();
	for (i = 0; i < journal.len; i++) {
		journal.data[i] ^= 0x40;
		ck_assert_int_eq(ls_journal_read(journal.data, journal.len, see, &s),
			i == 3 ? -LS_EVERSION : -LS_ECORRUPT);
		journal.data[i] ^= 0x40;
	}
	for (i = 0; i < journal.len; i++)
		ck_assert_int_eq(ls_journal_read(journal.data, i, see, &s),
			-LS_ECORRUPT);
	ck_assert_uint_eq(s.count, 0);
}

/* The body with a byte changed and the checksum made right. */
static int
read_forged(size_t at, uint8_t byte, struct seen *s)
{
	uint8_t kept = journal.data[at];
	uint32_t sum;
	size_t i;
	int rc;

	journal.data[at] = byte;
	sum = (uint32_t)crc32_z(0, journal.data + 8, journal.len - 8);
	for (i = 0; i < 4; i++)
		journal.data[4 + i] = (uint8_t)(sum >> (8 * i));
	rc = ls_journal_read(journal.data, journal.len, see, s);
	journal.data[at] = kept;
	return rc;
}

LS_TEST(body, what_is_not_well_made_is_refused)
{
	struct seen s = { 0 };

	put_hot(1, "h0", 0);
	ck_assert_int_eq(ls_journal_seal(&journal), 0);
	ck_assert_int_eq(read_forged(8, 1, &s), 0);
	ck_assert_int_eq(read_forged(8, 2, &s), -LS_EPARSE); /* an entry more */
	/* bytes behind the last */
	ck_assert_int_eq(read_forged(8, 0, &s), -LS_EPARSE);
	ck_assert_int_eq(read_forged(16, LS_JOURNAL_KIND_COUNT, &s), -LS_EPARSE);
	/* a number longer than need be */
	ck_assert_int_eq(read_forged(24, 0, &s), -LS_EPARSE);
	/* so many values */
	ck_assert_int_eq(read_forged(journal.len - 20, 200, &s), -LS_EPARSE);
	ck_assert_int_eq(read_forged(12, 0, &s), -LS_ECORRUPT);
}

LS_TEST(body, what_reading_would_refuse_is_not_put)
{
	struct ls_store_item item = { .kind = LS_WIRE_STEPS, .count = 0 };
	struct ls_store_counters c = { .count = LS_HOT_MAX + 1, .host = "h" };
	struct ls_store_ledger agent = { .seq = 1 };
	struct ls_store_ring ring = { .worker_id = -1 };

	ck_assert_int_eq(ls_journal_put_steps(&journal, 1, T, &item), -EINVAL);
	item.count = 1;
	item.len = LS_ITEM_MAX_BYTES + 1;
	ck_assert_int_eq(ls_journal_put_steps(&journal, 1, T, &item), -EINVAL);
	ck_assert_int_eq(ls_journal_put_hot(&journal, 1, T, &c), -EINVAL);
	c.count = 1;
	c.metric[0] = LS_METRIC_COUNT;
	ck_assert_int_eq(ls_journal_put_hot(&journal, 1, T, &c), -EINVAL);
	ck_assert_int_eq(ls_journal_put_agent(&journal, &agent), -EINVAL);
	ck_assert_int_eq(ls_journal_put_ring(&journal, &ring), -EINVAL);
	put_hot(5, "h", 0);
	c.metric[0] = 0;
	/* ids do not fall */
	ck_assert_int_eq(ls_journal_put_hot(&journal, 4, T, &c), -EINVAL);
	ck_assert_uint_eq(journal.count, 1);
}

LS_TEST(body, a_full_body_says_so_and_stays_whole)
{
	struct ls_store_item item = {
		.kind = LS_WIRE_STEPS, .count = 1, .len = LS_ITEM_MAX_BYTES
	};
	struct seen s = { .stop_at = 1 };
	int64_t id;
	int rc = 0;

	item.data = calloc(1, LS_ITEM_MAX_BYTES);
	ck_assert_ptr_nonnull(item.data);
	for (id = 1; rc == 0; id++)
		rc = ls_journal_put_steps(&journal, id, T, &item);
	ck_assert_int_eq(rc, -LS_ELIMIT);
	ck_assert_int_gt(id, 500);
	ck_assert_uint_le(journal.len, LS_JOURNAL_BODY_MAX_BYTES);
	ck_assert_int_eq(ls_journal_seal(&journal), 0);
	ck_assert_int_eq(ls_journal_read(journal.data, journal.len, see, &s),
		-ECANCELED);
	free((void *)(uintptr_t)item.data);
}

/* --- what is made of a body ----------------------------------------------- */

LS_CASE(use, setup, teardown);

LS_TEST(use, the_greatest_position_wins)
{
	struct ls_positions p;
	struct ls_store_ledger l = { .seq = 100, .chunk_seq = 1, .t_us = T - 1 };
	struct ls_store_ring r = { .worker_id = 7, .high = 14, .t_us = T + 9 };

	fill();
	ls_positions_init(&p);
	memset(l.boot, 0xb0, sizeof(l.boot));
	(void)snprintf(l.host, sizeof(l.host), "h0");
	memset(r.ring_id, 0x81, sizeof(r.ring_id));
	ck_assert_int_eq(ls_positions_put_ledger(&p, &l), 0);
	ck_assert_int_eq(ls_positions_put_ring(&p, &r), 0);
	ck_assert_int_eq(ls_positions_put_journal(&p, journal.data, journal.len), 0);
	l.host[1] = '1'; /* another agent of the same boot id */
	l.t_us = T;
	ck_assert_int_eq(ls_positions_put_ledger(&p, &l), 0);
	r.ring_id[15] = 0;
	ck_assert_int_eq(ls_positions_put_ring(&p, &r), 0);
	ls_positions_sort(&p);
	ck_assert_uint_eq(p.ledger_count, 2);
	ck_assert_str_eq(p.ledgers[0].host, "h1"); /* least recent first */
	ck_assert_uint_eq(p.ledgers[1].seq, 100);
	ck_assert_uint_eq(p.ledgers[1].chunk_seq, 3);
	ck_assert_int_eq(p.ledgers[1].t_us, T + 2);
	ck_assert_uint_eq(p.ring_count, 2);
	ck_assert_uint_eq(p.rings[0].high, 14);
	ls_positions_fini(&p);
}

static int
see_event(void *arg, const struct ls_store_event *e)
{
	struct ls_store_event *last = arg;

	ck_assert_int_gt(e->id, last->id);
	*last = *e;
	return 0;
}

LS_TEST(use, events_are_decoded_in_whole_microseconds)
{
	struct ls_store_event last = { .id = 0 };
	const struct ls_store_steps *steps = &last.u.steps;
	struct ls_store_map map = { 5, T * 1000 - 123, -20, 40000 };
	struct ls_record r = ls_test_record(12);
	struct ls_span span;

	ck_assert_int_eq(ls_span_init(&span), 0);
	fill();
	ck_assert_int_eq(ls_span_load_journal(&span, journal.data, journal.len), 0);
	memset(journal.data, 0, journal.len); /* the body is needed no more */
	ls_span_sort(&span);
	ck_assert_uint_eq(span.count, 3);
	ck_assert_uint_eq(span.records, 2);
	ck_assert_int_eq(ls_span_give(&span, 40, 40, see_event, &last), 0);
	ck_assert_int_eq(last.kind, LS_EVENT_STEPS);
	ck_assert_int_eq(steps->worker_id, 7);
	ck_assert_uint_eq(steps->first_index, 11);
	ck_assert_uint_eq(steps->count, 2);
	ck_assert_int_eq(steps->uncertainty_ns, 40000);
	ls_store_record(&map, &r, &r);
	ck_assert_mem_eq(&steps->records[1], &r, sizeof(r));
	ck_assert_int_eq(r.t_begin_ns % 1000, 0);
	last.id = 0;
	ck_assert_int_eq(ls_span_give(&span, 41, INT64_MAX, see_event, &last), 0);
	ck_assert_int_eq(last.kind, LS_EVENT_COUNTERS);
	ck_assert_int_eq(last.id, 341);
	ls_span_reset(&span);
	ck_assert_uint_eq(span.count, 0);
	ls_span_fini(&span);
}

LS_TEST(use, an_item_that_does_not_decode_is_left_out)
{
	static const uint8_t junk[] = { 0xff, 0xff, 0xff };
	struct ls_store_item item = {
		.kind = LS_WIRE_STEPS, .count = 1, .data = junk, .len = sizeof(junk)
	};
	struct ls_span span;

	ck_assert_int_eq(ls_span_init(&span), 0);
	ck_assert_int_eq(ls_journal_put_steps(&journal, 1, T, &item), 0);
	put_steps(2, 0, 4, 4);
	ck_assert_int_eq(ls_journal_seal(&journal), 0);
	ck_assert_int_eq(ls_span_load_journal(&span, journal.data, journal.len), 0);
	ck_assert_uint_eq(span.bad, 1);
	ck_assert_uint_eq(span.count, 1);
	ck_assert_uint_eq(span.records, 4);
	ls_span_fini(&span);
}

LS_TEST(use, spans_are_rounded_and_what_is_not_measured_stays_so)
{
	struct ls_store_map map = { .offset_ns = 400 };
	struct ls_record r = { .t_begin_ns = 1099,
		.duration_ns = 1500,
		.phase_mask = 1,
		.phase_ns = { 499 },
		.barrier_count = 1,
		.barrier = { { 0, 1100, 2099 } },
		.peer_count = 1,
		.peer = { { 3, UINT64_MAX, 2501 } } };

	ls_store_record(&map, &r, &r);
	ck_assert_int_eq(r.t_begin_ns, 1000);
	ck_assert_uint_eq(r.duration_ns, 2000);
	ck_assert_uint_eq(r.phase_ns[0], 0);
	ck_assert_int_eq(r.barrier[0].enter_ns, 2000);
	ck_assert_int_eq(r.barrier[0].exit_ns, 2000);
	ck_assert_uint_eq(r.peer[0].recv_wait_ns, UINT64_MAX);
	ck_assert_uint_eq(r.peer[0].send_wait_ns, 3000);
	r.duration_ns = LS_PHASE_MAX_NS - 1; /* not up to what would be too long */
	ls_store_record(&map, &r, &r);
	ck_assert_uint_eq(r.duration_ns, LS_PHASE_MAX_NS - 1000);
}
