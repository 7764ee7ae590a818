/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/session.h"

#include <stdio.h>
#include <string.h>
#include "collector/engine/engine.h"
#include "collector/ingest/rings.h"
#include "tests/support/harness.h"

#define S 1000000000ull

static struct ls_sessions *table;
static uint32_t begun;

static void
setup(void)
{
	begun = 0;
	table = ls_sessions_new(4);
	ck_assert_ptr_nonnull(table);
}

static void
teardown(void)
{
	ls_sessions_free(table);
}

static struct ls_wire_report
report_of(const char *host, uint8_t boot)
{
	struct ls_wire_report r = { .has_kernel = true };

	(void)snprintf(r.host, sizeof(r.host), "%s", host);
	memset(r.boot, boot, sizeof(r.boot));
	return r;
}

/* A report at a time; the clock is the collector's own, so the session is live. */
static struct ls_session *
meet(const char *host, uint8_t boot, uint64_t now)
{
	struct ls_wire_report r = report_of(host, boot);
	struct ls_session *s = NULL;

	ck_assert_int_eq(ls_sessions_report(table, &r, true, now, &begun, &s), 0);
	ls_session_ready(s);
	return s;
}

static struct ls_session_stats
stats(void)
{
	struct ls_session_stats st;

	ls_sessions_stats(table, &st);
	return st;
}

static void
take(struct ls_session *s, uint64_t seq)
{
	ck_assert_int_eq(ls_session_check(s, LS_STREAM_STEPS, seq, (uint32_t)seq), 0);
	ls_session_accept(s, LS_STREAM_STEPS, seq, (uint32_t)seq);
}

LS_CASE(session, setup, teardown);

LS_TEST(session, items_are_accepted_once_in_order)
{
	struct ls_session *s = meet("a", 1, S);

	take(s, 1);
	take(s, 2);
	ck_assert_int_eq(ls_session_check(s, LS_STREAM_STEPS, 2, 2), -LS_EDUPLICATE);
	ck_assert_int_eq(ls_session_check(s, LS_STREAM_STEPS, 4, 4), -LS_EBUSY);
	ck_assert_uint_eq(ls_session_accepted(s, LS_STREAM_STEPS), 2);
	ck_assert_uint_eq(ls_session_committed(s, LS_STREAM_STEPS), 0);
	ls_session_commit(s, LS_STREAM_STEPS, 2);
	ck_assert_uint_eq(ls_session_committed(s, LS_STREAM_STEPS), 2);
	ck_assert_uint_eq(stats().duplicates, 1);
	ck_assert_uint_eq(stats().holes, 1);
	ck_assert_uint_eq(stats().changed, 0);
}

LS_TEST(session, changed_bytes_are_counted)
{
	struct ls_session *s = meet("a", 1, S);

	take(s, 1);
	take(s, 2);
	ck_assert_int_eq(ls_session_check(s, LS_STREAM_STEPS, 1, 99), -LS_EDUPLICATE);
	ck_assert_uint_eq(stats().changed, 1);
}

LS_TEST(session, a_new_agent_may_begin_anywhere)
{
	struct ls_session *s = meet("a", 1, S);

	take(s, 17);
	take(s, 18);
	ck_assert_int_eq(ls_session_check(s, LS_STREAM_STEPS, 16, 16), -LS_EDUPLICATE);
	ck_assert_uint_eq(stats().changed, 0);
}

LS_TEST(session, a_hole_that_cannot_be_filled_is_given_up)
{
	struct ls_session *s = meet("a", 1, S);
	int i;

	take(s, 1);
	/* 1 may still be on its way to the disk */
	for (i = 0; i < 2 * LS_SESSION_HOLE_TRIES; i++)
		ck_assert_int_eq(ls_session_check(s, LS_STREAM_STEPS, 9, 9), -LS_EBUSY);
	ls_session_commit(s, LS_STREAM_STEPS, 1);
	for (i = 1; i < LS_SESSION_HOLE_TRIES; i++)
		ck_assert_int_eq(ls_session_check(s, LS_STREAM_STEPS, 9, 9), -LS_EBUSY);
	ck_assert_int_eq(ls_session_check(s, LS_STREAM_STEPS, 9, 9), 0);
	ck_assert_uint_eq(stats().skipped, 1);
}

LS_TEST(session, rollback_takes_back_what_is_not_committed)
{
	struct ls_session *s = meet("a", 1, S), *fresh = meet("b", 2, S);

	take(s, 1);
	ls_session_commit(s, LS_STREAM_STEPS, 1);
	take(s, 2);
	take(fresh, 5);
	ls_sessions_rollback(table);
	ck_assert_uint_eq(ls_session_accepted(s, LS_STREAM_STEPS), 1);
	take(s, 2);
	take(fresh, 5);
}

LS_TEST(session, streams_are_numbered_apart)
{
	struct ls_session *s = meet("a", 1, S);

	take(s, 1);
	/* fresh: any number */
	ck_assert_int_eq(ls_session_check(s, LS_STREAM_CHUNKS, 7, 7), 0);
	ls_session_accept(s, LS_STREAM_CHUNKS, 7, 7);
	ck_assert_int_eq(ls_session_check(s, LS_STREAM_CHUNKS, 9, 9), -LS_EBUSY);
	ck_assert_int_eq(ls_session_check(s, LS_STREAM_CHUNKS, 7, 7), -LS_EDUPLICATE);
	take(s, 2);
	ls_session_commit(s, LS_STREAM_STEPS, 2);
	ck_assert(ls_session_is_behind(s));
	ls_session_commit(s, LS_STREAM_CHUNKS, 7);
	ck_assert(!ls_session_is_behind(s));
	ls_session_accept(s, LS_STREAM_CHUNKS, 8, 8);
	ls_sessions_rollback(table);
	ck_assert_uint_eq(ls_session_accepted(s, LS_STREAM_CHUNKS), 7);
	ck_assert_uint_eq(ls_session_accepted(s, LS_STREAM_STEPS), 2);
}

LS_TEST(session, who_a_host_is_is_asked_of_each_session)
{
	struct ls_session *s = meet("a", 1, S);

	ck_assert(!ls_session_is_identified(s));
	ls_session_identified(s);
	ck_assert(ls_session_is_identified(meet("a", 1, 2 * S)));
	ls_sessions_sweep(table, 2 * S + LS_SESSION_GONE_NS);
	ls_sessions_sweep(table, 2 * S + LS_SESSION_GONE_NS + 1);
	ck_assert(!ls_session_is_identified(meet("a", 1, 3 * S + LS_SESSION_GONE_NS)));
}

LS_TEST(session, storage_seeds_what_is_committed)
{
	const uint64_t seeded[LS_STREAM_COUNT] = { 41, 7 };
	uint8_t boot[LS_BOOT_BYTES];
	struct ls_session *s;

	memset(boot, 1, sizeof(boot));
	ck_assert_int_eq(ls_sessions_seed(table, boot, "a", seeded), 0);
	ck_assert_uint_eq(stats().count[LS_SESSION_GONE], 1);
	s = meet("a", 1, S);
	ck_assert_int_eq(ls_session_check(s, LS_STREAM_STEPS, 41, 0), -LS_EDUPLICATE);
	ck_assert_uint_eq(stats().changed, 0); /* its bytes are not known */
	take(s, 42);
	ck_assert_int_eq(ls_session_check(s, LS_STREAM_CHUNKS, 7, 0), -LS_EDUPLICATE);
	ck_assert_int_eq(ls_session_check(s, LS_STREAM_CHUNKS, 8, 0), 0);
}

LS_TEST(session, silence_makes_stale_then_gone)
{
	struct ls_session *s = meet("a", 1, 100 * S);

	ck_assert_int_eq(ls_session_state(s), LS_SESSION_LIVE);
	ls_sessions_sweep(table, 100 * S + LS_SESSION_STALE_NS - 1);
	ck_assert_int_eq(ls_session_state(s), LS_SESSION_LIVE);
	ls_sessions_sweep(table, 100 * S + LS_SESSION_STALE_NS);
	ck_assert_int_eq(ls_session_state(s), LS_SESSION_STALE);
	ck_assert_ptr_eq(meet("a", 1, 115 * S), s);
	ck_assert_int_eq(ls_session_state(s), LS_SESSION_LIVE);
	ls_sessions_sweep(table, 115 * S + LS_SESSION_GONE_NS);
	ck_assert_int_eq(ls_session_state(s), LS_SESSION_GONE);
	ck_assert_uint_eq(stats().count[LS_SESSION_GONE], 1);
	ck_assert_uint_eq(stats().count[LS_SESSION_LIVE], 0);
}

LS_TEST(session, a_rebooted_host_has_a_new_clock)
{
	struct ls_wire_report r = report_of("a", 1);
	struct ls_session *s = meet("a", 1, S);

	ls_session_sent(s, 10, 20);
	ck_assert(ls_session_has_sent(s, 10, 20));
	r.kernel_boot_id[0] = 7;
	ck_assert_int_eq(ls_sessions_report(table, &r, false, 2 * S, &begun, &s), 0);
	ck_assert_int_eq(ls_session_state(s), LS_SESSION_HELLO);
	ck_assert(!ls_clock_is_known(ls_session_clock(s)));
	ck_assert(!ls_session_has_sent(s, 10, 20));
	ck_assert_uint_eq(ls_session_reports(s), 1);
}

LS_TEST(session, a_session_begins_with_the_kernel_and_goes_on_without)
{
	struct ls_wire_report r = report_of("a", 1);
	struct ls_session *s;

	r.has_kernel = false;
	ck_assert_int_eq(ls_sessions_report(table, &r, true, S, &begun, &s),
		-LS_EUNKNOWN);
	ck_assert_uint_eq(stats().count[LS_SESSION_HELLO], 0);
	s = meet("a", 1, S);
	ck_assert_int_eq(ls_sessions_report(table, &r, true, 2 * S, &begun, &s), 0);
	ck_assert_int_eq(ls_session_state(s), LS_SESSION_LIVE);
	ck_assert_uint_eq(ls_session_reports(s), 2);
	ls_sessions_sweep(table, 2 * S + LS_SESSION_STALE_NS);
	ls_sessions_sweep(table, 2 * S + LS_SESSION_GONE_NS);
	ck_assert_int_eq(ls_session_state(s), LS_SESSION_GONE);
	ck_assert_int_eq(ls_sessions_report(table, &r, true, 3 * S + LS_SESSION_GONE_NS,
				 &begun, &s),
		-LS_EUNKNOWN);
}

static struct ls_ring *
ring_of(struct ls_rings *rings, uint8_t n)
{
	uint8_t id[LS_RING_ID_BYTES] = { n };
	struct ls_ring *ring = NULL;

	ck_assert_int_eq(ls_rings_get(rings, id, &ring), 0);
	return ring;
}

LS_TEST(session, numbers_of_rings_hold_while_the_session_does)
{
	struct ls_wire_report r = report_of("a", 1);
	struct ls_session *s = meet("a", 1, S);
	struct ls_rings *rings = ls_rings_new(LS_RINGS_MAX + 3);
	struct ls_ring *one = ring_of(rings, 7), *other = ring_of(rings, 8);
	uint32_t i;

	ck_assert_ptr_null(ls_session_ring(s, 1));
	ls_session_name_ring(s, 1, one);
	ck_assert_ptr_eq(ls_session_ring(s, 1), one);
	ls_session_name_ring(s, 2, one); /* the agent began anew */
	ck_assert_ptr_null(ls_session_ring(s, 1));
	ls_session_name_ring(s, 2, other);
	ck_assert_ptr_eq(ls_session_ring(s, 2), other);
	ls_session_name_ring(s, 0, other); /* has none any more */
	ck_assert_ptr_null(ls_session_ring(s, 2));
	ck_assert_ptr_null(ls_session_ring(s, 0));
	for (i = 1; i <= LS_RINGS_MAX + 1; i++)
		ls_session_name_ring(s, i, ring_of(rings, (uint8_t)(100 + i)));
	ck_assert_ptr_null(ls_session_ring(s, 1)); /* the oldest makes room */
	ck_assert_ptr_eq(ls_session_ring(s, 2), ring_of(rings, 102));
	ck_assert_ptr_eq(ls_session_ring(s, LS_RINGS_MAX + 1),
		ring_of(rings, 101 + LS_RINGS_MAX));
	r.kernel_boot_id[0] = 7; /* rebooted: other rings */
	ck_assert_int_eq(ls_sessions_report(table, &r, false, 2 * S, &begun, &s), 0);
	ck_assert_ptr_null(ls_session_ring(s, 2));
	ls_rings_free(rings);
}

LS_TEST(session, rings_of_a_live_session_are_not_evicted)
{
	struct ls_wire_report r = report_of("a", 1);
	struct ls_session *s = meet("a", 1, S);
	struct ls_rings *rings = ls_rings_new(2);
	struct ls_ring *more;
	uint8_t id[LS_RING_ID_BYTES] = { 3 };
	unsigned i;

	ls_session_name_ring(s, 1, ring_of(rings, 1));
	for (i = 0; i < 100; i++)
		ck_assert_ptr_nonnull(ring_of(rings, (uint8_t)(2 + i)));
	ck_assert_ptr_eq(ls_session_ring(s, 1), ring_of(rings, 1));
	ls_session_name_ring(s, 2, ring_of(rings, 2));
	ck_assert_int_eq(ls_rings_get(rings, id, &more), -LS_ELIMIT);
	ck_assert_uint_eq(ls_rings_count(rings), 2);
	ls_sessions_sweep(table, 2 * S + LS_SESSION_STALE_NS);
	ck_assert_int_eq(ls_rings_get(rings, id, &more), -LS_ELIMIT);
	ls_sessions_sweep(table, 2 * S + LS_SESSION_GONE_NS);
	ck_assert_int_eq(ls_rings_get(rings, id, &more), 0);
	ck_assert_int_eq(ls_sessions_report(table, &r, true, 3 * S + LS_SESSION_GONE_NS,
				 &begun, &s),
		0);
	ck_assert_ptr_null(ls_session_ring(s, 1));
	ls_rings_free(rings);
}

LS_TEST(session, only_our_own_stamps_count)
{
	struct ls_session *s = meet("a", 1, S);

	ck_assert(!ls_session_has_sent(s, 0, 0));
	ls_session_sent(s, 10, 20);
	ls_session_sent(s, 30, 40);
	ck_assert(ls_session_has_sent(s, 10, 20));
	ck_assert(ls_session_has_sent(s, 30, 40));
	ck_assert(!ls_session_has_sent(s, 10, 40));
	ls_session_sent(s, 50, 60);
	ck_assert(!ls_session_has_sent(s, 10, 20));
}

LS_TEST(session, a_second_agent_of_a_name_is_set_apart)
{
	struct ls_session *a = meet("a", 1, S), *b = meet("a", 2, 2 * S);

	ck_assert(!ls_session_is_apart(a));
	ck_assert(ls_session_is_apart(b));
	ck_assert_uint_eq(stats().doubles, 0); /* the first may be gone: a new spool */
	a = meet("a", 1, 3 * S);
	b = meet("a", 2, 4 * S);
	ck_assert_uint_eq(stats().doubles, 1);
	ck_assert(!ls_session_is_apart(a));
	/* When the first falls silent, the name is the second's. */
	ls_sessions_sweep(table, 3 * S + LS_SESSION_STALE_NS);
	b = meet("a", 2, 3 * S + LS_SESSION_STALE_NS);
	ck_assert(!ls_session_is_apart(b));
	ck_assert_uint_eq(stats().doubles, 1);
}

LS_TEST(session, a_full_table_forgets_only_who_is_gone)
{
	struct ls_wire_report r = report_of("e", 5);
	struct ls_session *s;

	s = meet("a", 1, S);
	(void)meet("b", 2, 2 * S);
	(void)meet("c", 3, 3 * S);
	(void)meet("d", 4, 3 * S);
	ck_assert_int_eq(ls_sessions_report(table, &r, true, 4 * S, &begun, &s),
		-LS_ELIMIT);
	ck_assert_uint_eq(stats().refused, 1);
	ls_session_hold(meet("a", 1, 3 * S));
	ls_sessions_sweep(table, 3 * S + LS_SESSION_GONE_NS);
	s = meet("e", 5, 200 * S); /* b goes: a still waits for its commit */
	ck_assert_uint_eq(stats().evicted, 1);
	s = meet("a", 1, 201 * S);
	ls_session_release(s);
	ck_assert_uint_eq(stats().evicted, 1);
}

/* A report without stamps: the session stays without a clock. */
static int
greet(const char *host, uint8_t boot, uint64_t now)
{
	struct ls_wire_report r = report_of(host, boot);
	struct ls_session *s;

	return ls_sessions_report(table, &r, true, now, &begun, &s);
}

LS_TEST(session, session_without_a_clock_makes_room)
{
	struct ls_session *live = meet("a", 1, S);
	uint8_t i;

	for (i = 2; i <= 4; i++)
		ck_assert_int_eq(greet("flood", i, 2 * S), 0);
	ck_assert_int_eq(greet("flood", 2, 3 * S), 0); /* reports again */
	ck_assert_int_eq(greet("e", 5, 3 * S), 0); /* place of the third */
	ck_assert_uint_eq(stats().evicted, 1);
	(void)meet("flood", 2, 3 * S); /* still there, and live from now on */
	(void)meet("e", 5, 3 * S);
	ck_assert_uint_eq(stats().evicted, 1);
	ck_assert_int_eq(greet("f", 6, 3 * S), 0);
	ck_assert_int_eq(ls_session_state(live), LS_SESSION_LIVE);
	ck_assert_uint_eq(stats().evicted, 2);
}

LS_TEST(session, connection_begins_a_limited_number_of_agents)
{
	struct ls_wire_report r = report_of("a", 1);
	struct ls_session *s;

	begun = LS_CONNECTION_AGENTS_MAX - 1;
	ck_assert_int_eq(ls_sessions_report(table, &r, true, S, &begun, &s), 0);
	ck_assert_uint_eq(begun, LS_CONNECTION_AGENTS_MAX);
	ck_assert_int_eq(ls_sessions_report(table, &r, true, S, &begun, &s), 0);
	r = report_of("a", 2); /* the same name, another agent */
	ck_assert_int_eq(ls_sessions_report(table, &r, true, S, &begun, &s), -LS_EBUSY);
	begun = 0; /* by another connection */
	ck_assert_int_eq(ls_sessions_report(table, &r, true, S, &begun, &s), 0);
}

LS_TEST(session, states_have_names)
{
	ck_assert_str_eq(ls_session_state_name(LS_SESSION_HELLO), "hello");
	ck_assert_ptr_null(ls_session_state_name(LS_SESSION_STATE_COUNT));
}

/* --- rings ---------------------------------------------------------------- */

static void
make_id(uint8_t *id, uint8_t n)
{
	memset(id, n, LS_RING_ID_BYTES);
}

LS_CASE(rings);

LS_TEST(rings, rings_are_found_again)
{
	struct ls_rings *t = ls_rings_new(8);
	uint8_t id[LS_RING_ID_BYTES];
	struct ls_ring *r;

	make_id(id, 1);
	ck_assert_ptr_null(ls_rings_find(t, id));
	ck_assert_int_eq(ls_rings_get(t, id, &r), 0);
	ck_assert_uint_eq(r->handle, LS_NO_WORKER);
	ck_assert(!r->named);
	ck_assert_ptr_eq(ls_rings_find(t, id), r);
	ck_assert_uint_eq(ls_rings_count(t), 1);
	ls_rings_free(t);
}

LS_TEST(rings, the_ring_silent_for_longest_makes_room)
{
	struct ls_rings *t = ls_rings_new(2);
	uint8_t id[LS_RING_ID_BYTES];
	struct ls_ring *r;
	uint8_t i;

	for (i = 1; i <= 2; i++) {
		make_id(id, i);
		ck_assert_int_eq(ls_rings_get(t, id, &r), 0);
	}
	make_id(id, 1);
	ck_assert_ptr_nonnull(ls_rings_find(t, id));
	make_id(id, 3);
	ck_assert_int_eq(ls_rings_get(t, id, &r), 0);
	make_id(id, 2);
	ck_assert_ptr_null(ls_rings_find(t, id));
	make_id(id, 1);
	ck_assert_ptr_nonnull(ls_rings_find(t, id));
	ck_assert_uint_eq(ls_rings_evicted(t), 1);
	ls_rings_free(t);
}

/* The greatest number of rings is far away. */
LS_TEST(rings, rings_without_a_record_make_room_for_each_other)
{
	struct ls_rings *t = ls_rings_new(LS_RING_MAP_MAX);
	uint8_t id[LS_RING_ID_BYTES] = { 0 };
	struct ls_ring *r, *held;
	uint32_t i;

	id[0] = 2; /* one that a session holds, two that have records */
	ck_assert_int_eq(ls_rings_get(t, id, &held), 0);
	ls_ring_hold(held);
	id[0] = 3;
	ck_assert_int_eq(ls_rings_get(t, id, &r), 0);
	r->seen = true;
	id[0] = 4;
	ck_assert_int_eq(ls_rings_get(t, id, &r), 0);
	r->worker_id = 7;
	id[0] = 1;
	for (i = 0; i < 3 * LS_RINGS_UNHEARD_MAX; i++) {
		memcpy(id + 1, &i, sizeof(i));
		ck_assert_int_eq(ls_rings_get(t, id, &r), 0);
	}
	ck_assert_uint_eq(ls_rings_count(t), 3 + LS_RINGS_UNHEARD_MAX);
	ck_assert_uint_eq(ls_rings_evicted(t), 2 * LS_RINGS_UNHEARD_MAX);
	ck_assert_ptr_eq(ls_rings_find(t, id), r); /* the newest */
	memset(id, 0, sizeof(id));
	for (uint8_t k = 2; k <= 4; k++) {
		id[0] = k;
		ck_assert_ptr_nonnull(ls_rings_find(t, id));
	}
	ls_ring_release(held);
	ls_rings_free(t);
}

/* A ring that has a record is forgotten only when all places are taken. */
LS_TEST(rings, rings_with_records_make_room_when_all_places_are_taken)
{
	struct ls_rings *t = ls_rings_new(2 * LS_RINGS_UNHEARD_MAX);
	uint8_t id[LS_RING_ID_BYTES] = { 0 };
	struct ls_ring *r;
	uint32_t i;

	for (i = 0; i <= 2 * LS_RINGS_UNHEARD_MAX; i++) {
		ck_assert_uint_eq(ls_rings_evicted(t), 0);
		memcpy(id, &i, sizeof(i));
		ck_assert_int_eq(ls_rings_get(t, id, &r), 0);
		r->seen = true;
	}
	ck_assert_uint_eq(ls_rings_evicted(t), 1);
	ls_rings_free(t);
}

LS_TEST(rings, a_ring_is_one_hosts_until_it_ends_or_nobody_speaks)
{
	struct ls_ring r = { .info = { .host = "h1" } };
	int64_t now_us = 1000;

	ck_assert(!ls_ring_hears(&r, "h0", now_us)); /* its own may be on its way */
	now_us += LS_RING_SILENT_US;
	ck_assert(!ls_ring_hears(&r, "h0", now_us));
	ck_assert(ls_ring_hears(&r, "h1", now_us));
	ck_assert(!ls_ring_hears(&r, "h0", now_us + LS_RING_SILENT_US));
	now_us += LS_RING_SILENT_US + 1;
	ck_assert(ls_ring_hears(&r, "h0", now_us)); /* its host was renamed */
	ck_assert(ls_ring_hears(&r, "h1", now_us)); /* or not */
	ck_assert(!ls_ring_hears(&r, "h0", now_us));
	r.ended = true;
	ck_assert(ls_ring_hears(&r, "h0", now_us));
}

LS_TEST(rings, rings_roll_back_to_the_disk)
{
	struct ls_rings *t = ls_rings_new(2);
	uint8_t id[LS_RING_ID_BYTES];
	struct ls_ring *a, *b;

	make_id(id, 1);
	ck_assert_int_eq(ls_rings_get(t, id, &a), 0);
	make_id(id, 2);
	ck_assert_int_eq(ls_rings_get(t, id, &b), 0);
	a->seen = b->seen = true;
	a->high = 10;
	a->committed = 6;
	b->high = 3;
	ls_rings_rollback(t);
	ck_assert_uint_eq(a->high, 6);
	ck_assert(a->seen);
	ck_assert_uint_eq(b->high, 0);
	ck_assert(!b->seen);
	ls_rings_free(t);
}
