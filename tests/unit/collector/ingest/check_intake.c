/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/intake.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "storage/db/days.h"
#include "tests/support/core.h"
#include "tests/support/disk/faultvfs.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"

static char dir[PATH_MAX];
static struct ls_test_core core;

static void
setup(void)
{
	ls_log_set_level(LS_LOG_ERR);
	ls_faultvfs_install();
	ls_faultvfs_heal();
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ls_test_core_open(&core, dir);
}

static void
teardown(void)
{
	ls_test_core_close(&core);
}

static struct ls_intake_stats
stats(void)
{
	struct ls_intake_stats st;

	ls_intake_stats(core.intake, &st);
	return st;
}

/* What was said that cannot be. */
static uint64_t
lies(enum ls_lie why)
{
	struct ls_engine_stats st;

	ls_engine_stats(core.engine, &st);
	return st.lies[why];
}

static int64_t
sql(const char *text)
{
	return ls_test_sql(dir, ls_days_of(ls_clock_wall_ns() / 1000), text);
}

LS_CASE(intake, setup, teardown);

LS_TEST(intake, items_are_acknowledged_when_on_disk)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, 1, 0, 5);
	ls_test_agent_steps(&a, 2, 5, 3);
	ack = ls_test_core_send(&core, &a, true);
	ck_assert_int_eq(ack->status, LS_ACK_OK);
	ck_assert_uint_eq(ack->acked_seq, 2);
	ck_assert_mem_eq(ack->boot, a.report.boot, sizeof(ack->boot));
	ck_assert_int_eq(sql("SELECT sum(n) FROM step_block"), 8);
	ck_assert_int_eq(sql("SELECT seq FROM ledger"), 2);
	ck_assert_uint_eq(stats().records, 8);
	ck_assert_uint_eq(stats().held, 0);
	ck_assert_uint_eq(stats().held_bytes, 0);
}

LS_TEST(intake, a_worker_is_stored_with_its_first_record)
{
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ck_assert_int_eq(ls_test_core_send(&core, &a, true)->status, LS_ACK_OK);
	ls_test_core_close(&core);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM worker"), 0);
	ls_test_core_open(&core, dir);
	ls_test_agent_steps(&a, 1, 0, 5);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, true)->acked_seq, 1);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT id FROM worker"), 1);
}

LS_TEST(intake, a_ring_that_was_forgotten_keeps_its_worker)
{
	struct ls_test_agent a, b;
	struct ls_ring *ring;
	uint8_t id[LS_RING_ID_BYTES] = { 0xee };
	uint32_t i;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_init(&b, 1, true);
	ls_test_agent_steps(&a, 1, 0, 5);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, true)->acked_seq, 1);
	ls_test_agent_steps(&b, 1, 0, 1);
	ck_assert_uint_eq(ls_test_core_send(&core, &b, true)->acked_seq, 1);
	core.now_ns += LS_SESSION_GONE_NS;
	ls_intake_advance(core.intake, core.now_ns, core.cpu_ns);
	for (i = 0; i < LS_RING_MAP_MAX; i++) {
		memcpy(id + 1, &i, sizeof(i));
		ck_assert_int_eq(ls_rings_get(core.rings, id, &ring), 0);
		ring->seen = true; /* one that has a record */
	}
	ck_assert_ptr_null(ls_rings_find(core.rings, a.ring_id));
	ls_test_agent_steps(&a, 2, 5, 3);
	ls_test_agent_gap(&a, 3, 8, 2);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, true)->acked_seq, 3);
	ls_test_agent_steps(&a, 4, 10, 1);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, false)->acked_seq, 4);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM worker"), 2);
	ck_assert_int_eq(sql("SELECT sum(n) FROM step_block WHERE worker_id = 1"), 9);
	ck_assert_int_eq(sql("SELECT sum(n) FROM gap WHERE worker_id = 1"), 2);
	ck_assert_int_eq(sql("SELECT max(worker_id) FROM ring_high"), 2);
}

LS_TEST(intake, a_busy_collector_asks_for_a_longer_beat)
{
	struct ls_test_agent a;
	unsigned i;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, 1, 0, 1);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, true)->beat_ns, 0);
	for (i = 0; i <= LS_PRESSURE_TURNS; i++) {
		core.now_ns += LS_PRESSURE_TURN_NS;
		core.cpu_ns += LS_PRESSURE_TURN_NS;
		ls_intake_advance(core.intake, core.now_ns, core.cpu_ns);
	}
	ls_test_agent_steps(&a, 2, 1, 1);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, false)->beat_ns,
		2 * LS_BEAT_DEFAULT_NS);
	ck_assert_uint_eq(core.ack.acked_seq, 2); /* nothing is refused for that */
	ck_assert_uint_eq(stats().pressure.factor, 2);
}

LS_TEST(intake, times_are_mapped_with_the_anchor)
{
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, 1, 0, 2);
	(void)ls_test_core_send(&core, &a, true);
	ck_assert_int_eq(sql("SELECT t_lo_us FROM step_block"),
		LS_TEST_ANCHOR_NS / 1000 + 1000000);
	ck_assert_int_eq(sql("SELECT t_hi_us FROM step_block"),
		LS_TEST_ANCHOR_NS / 1000 + 1000000 + 2 * 100000 - 1000);
	ck_assert_int_eq(sql("SELECT uncertainty_ns FROM step_block"), 0);
}

LS_TEST(intake, what_comes_again_is_not_stored_again)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, 1, 0, 5);
	(void)ls_test_core_send(&core, &a, true);
	ls_test_agent_steps(&a, 1, 0, 5);
	ls_test_agent_steps(&a, 2, 5, 5);
	ack = ls_test_core_send(&core, &a, false);
	ck_assert_uint_eq(ack->acked_seq, 2);
	ls_test_agent_steps(&a, 1, 0, 5);
	ack = ls_test_core_send(&core, &a, false);
	ck_assert_uint_eq(ack->acked_seq, 2);
	ck_assert_int_eq(ack->status, LS_ACK_OK);
	ck_assert_int_eq(sql("SELECT sum(n) FROM step_block"), 10);
	ck_assert_uint_eq(stats().items, 2);
}

LS_TEST(intake, a_ring_read_again_under_new_numbers_is_not_stored_twice)
{
	struct ls_test_agent a;
	const struct ls_wire_ack *ack;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, 1, 0, 10);
	(void)ls_test_core_send(&core, &a, true);
	memset(a.report.boot, 0x77, sizeof(a.report.boot)); /* a new spool */
	ls_test_agent_steps(&a, 1, 0, 6);
	ls_test_agent_steps(&a, 2, 6, 8);
	ack = ls_test_core_send(&core, &a, false);
	ck_assert_uint_eq(ack->acked_seq, 2);
	ck_assert_int_eq(sql("SELECT sum(n) FROM step_block"), 14);
	ck_assert_int_eq(sql("SELECT count(*) FROM step_block"), 2);
	ck_assert_int_eq(sql("SELECT first_index FROM step_block WHERE n = 4"), 10);
	ck_assert_int_eq(sql("SELECT step_lo FROM step_block WHERE n = 4"), 10);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_STORED], 10);
}

/* h1's agent with a copy of the ring of a. */
static void
copy_of(struct ls_test_agent *copy, const struct ls_test_agent *a)
{
	ls_test_agent_init(copy, 1, true);
	copy->worker = a->worker;
	memcpy(copy->ring_id, a->ring_id, sizeof(copy->ring_id));
}

LS_TEST(intake, a_copy_of_a_ring_on_another_host_takes_no_places)
{
	struct ls_test_agent a, copy;

	ls_test_agent_init(&a, 0, true);
	copy_of(&copy, &a);
	ls_test_agent_steps(&a, 1, 0, 5);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, true)->acked_seq, 1);
	ls_test_agent_steps(&copy, 1, 0, 6);
	ls_test_agent_gap_for(&copy, 2, 6, 4, LS_GAP_INVALID);
	ls_test_agent_end(&copy, 3, LS_END_CRASHED);
	ck_assert_uint_eq(ls_test_core_send(&core, &copy, true)->acked_seq, 3);
	ls_test_agent_steps(&a, 2, 5, 9);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, false)->acked_seq, 2);
	ck_assert_int_eq(sql("SELECT sum(n) FROM step_block"), 14);
	ck_assert_int_eq(sql("SELECT count(*) FROM gap"), 0);
	ck_assert_int_eq(sql("SELECT count(*) FROM worker_end"), 0);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_OTHER_HOST], 11);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_STORED], 0);
	ck_assert_uint_eq(lies(LS_LIE_RING), 11);
	ck_assert_uint_eq(lies(LS_LIE_RECORD), 0);
}

LS_TEST(intake, values_of_a_copied_ring_are_passed_over)
{
	struct ls_test_agent a, copy;

	ls_test_agent_init(&a, 0, true);
	copy_of(&copy, &a);
	ls_test_agent_steps(&a, 1, 0, 5);
	(void)ls_test_core_send(&core, &a, true);
	ls_test_agent_live(&copy, 9, LS_PHASE_INPUT_WAIT, ls_clock_mono_ns());
	ck_assert_uint_eq(ls_test_core_send(&core, &copy, true)->need_count, 0);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_OTHER_HOST], 1);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_NO_WORKER], 0);
}

LS_TEST(intake, the_end_of_a_ring_gives_it_free)
{
	struct ls_test_agent a, copy;

	ls_test_agent_init(&a, 0, true);
	copy_of(&copy, &a);
	ls_test_agent_steps(&copy, 1, 0, 5);
	ls_test_agent_end(&copy, 2, LS_END_CRASHED);
	(void)ls_test_core_send(&core, &copy, true);
	ls_test_agent_steps(&a, 1, 0, 9);
	(void)ls_test_core_send(&core, &a, true);
	ck_assert_int_eq(sql("SELECT sum(n) FROM step_block"), 9);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_OTHER_HOST], 0);
}

LS_TEST(intake, records_lost_without_a_word_become_a_gap)
{
	struct ls_test_agent a;
	struct ls_engine_stats engine;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, 1, 0, 4);
	ls_test_agent_steps(&a, 2, 9, 1);
	ls_test_agent_gap(&a, 3, 10, 5);
	ls_test_agent_steps(&a, 4, 15, 1);
	ls_test_agent_end(&a, 5, LS_END_ENDED);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, true)->acked_seq, 5);
	ck_assert_int_eq(sql("SELECT count(*) FROM gap"), 2);
	ck_assert_int_eq(sql("SELECT n FROM gap WHERE reason = 0"), 5);
	ck_assert_int_eq(sql("SELECT n FROM gap WHERE reason = 1"), 5);
	ls_engine_stats(core.engine, &engine);
	ck_assert_uint_eq(engine.gaps, 10);
	ck_assert_int_eq(sql("SELECT how FROM worker_end"), LS_END_ENDED);
	ck_assert_int_eq(sql("SELECT high FROM ring_high"), 16);
}

LS_TEST(intake, records_of_a_time_that_cannot_be_are_a_gap)
{
	const uint64_t year = 365ull * 86400 * 10; /* steps of 100 ms */
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, 1, year, 3);
	ls_test_agent_hot(&a, 99000000000ull + year * 100000000, 1);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, true)->acked_seq, 1);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_CLOCK], 3 + 1);
	ck_assert_uint_eq(stats().records, 0);
	ck_assert_uint_eq(stats().counters, 0);
	ck_assert_int_eq(sql("SELECT coalesce(sum(records), 0) FROM journal"), 0);
	ck_assert_int_eq(sql("SELECT n FROM gap"), 3);
	ck_assert_int_eq(sql("SELECT reason FROM gap"), LS_GAP_INVALID);
	/* As old as they are now, they are no better. */
	core.now_ns += 2 * year * 100000000;
	ls_test_agent_steps(&a, 2, year + 3, 4);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, false)->acked_seq, 2);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_CLOCK], 3 + 1 + 4);
	ck_assert_int_eq(sql("SELECT sum(n) FROM gap"), 7);
	ck_assert_uint_eq(lies(LS_LIE_TIME), 7);
}

/* What its agent could not believe of a worker is named here, too. */
LS_TEST(intake, records_an_agent_refused_are_counted_as_lies)
{
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, 1, 0, 4);
	ls_test_agent_gap(&a, 2, 4, 5); /* overwritten: no lie */
	ls_test_agent_gap_for(&a, 3, 9, 6, LS_GAP_INVALID);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, true)->acked_seq, 3);
	ck_assert_uint_eq(lies(LS_LIE_RECORD), 6);
	ls_test_agent_gap_for(&a, 3, 9, 6, LS_GAP_INVALID); /* again: counted once */
	ls_ignore((int)ls_test_core_send(&core, &a, false)->status); /* had already */
	ck_assert_uint_eq(lies(LS_LIE_RECORD), 6);
}

LS_TEST(intake, an_unknown_ring_asks_for_its_worker)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, 1, 0, 4);
	ls_test_agent_steps(&a, 2, 4, 4);
	ack = ls_test_core_send(&core, &a, false);
	ck_assert_int_eq(ack->status, LS_ACK_OK);
	ck_assert_uint_eq(ack->acked_seq, 0);
	ck_assert_uint_eq(ack->need_count, 1);
	ck_assert_mem_eq(ack->need[0], a.ring_id, sizeof(a.ring_id));
	ls_test_agent_steps(&a, 1, 0, 4);
	ack = ls_test_core_send(&core, &a, true);
	ck_assert_uint_eq(ack->acked_seq, 1);
	ck_assert_uint_eq(ack->need_count, 0);
}

/* Values of the worker that the agent calls by its number. */
static const struct ls_wire_ack *
send_hot_of(struct ls_test_agent *a, uint32_t number, bool with_worker)
{
	ls_test_agent_hot(a, 99000000000ull, 3.25);
	a->hot.worker = number;
	a->hot.metric[0] = LS_METRIC_JOB_CPU;
	return ls_test_core_send(&core, a, with_worker);
}

LS_TEST(intake, an_unknown_number_asks_for_all_workers)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ack = send_hot_of(&a, 1, false);
	ck_assert_int_eq(ack->status, LS_ACK_OK);
	ck_assert(ack->need_all_workers);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_NO_WORKER], 1);
	ck_assert(!send_hot_of(&a, 1, true)->need_all_workers);
	ck_assert(!send_hot_of(&a, 1, false)->need_all_workers);
	ck_assert_uint_eq(stats().counters, 2);
	/* Started anew, the agent counts from elsewhere; the old number means nothing.
	 */
	a.worker.number = 2;
	ck_assert(!send_hot_of(&a, 2, true)->need_all_workers);
	ck_assert(send_hot_of(&a, 1, false)->need_all_workers);
	ck_assert_uint_eq(stats().counters, 3);
	/* A collector that is started anew knows the ring, but not its number. */
	teardown();
	ls_test_core_open(&core, dir);
	ck_assert(send_hot_of(&a, 2, false)->need_all_workers);
	ck_assert(!send_hot_of(&a, 2, true)->need_all_workers);
	ck_assert_uint_eq(stats().counters, 1);
}

LS_TEST(intake, who_begins_without_its_kernel_is_asked_for_it)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	a.report.has_kernel = false;
	ls_test_agent_steps(&a, 1, 0, 4);
	ack = ls_test_core_send(&core, &a, true);
	ck_assert_int_eq(ack->status, LS_ACK_RETRY);
	ck_assert_uint_eq(ack->retry_after_ns, LS_BEAT_MIN_NS);
	ck_assert_uint_eq(ack->acked_seq, 0);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_NO_KERNEL], 1);
	a.report.has_kernel = true;
	ls_test_agent_steps(&a, 1, 0, 4);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, true)->acked_seq, 1);
	a.report.has_kernel = false;
	ls_test_agent_steps(&a, 2, 4, 4);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, false)->acked_seq, 2);
}

LS_TEST(intake, a_hole_is_refused)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, 1, 0, 4);
	(void)ls_test_core_send(&core, &a, true);
	ls_test_agent_steps(&a, 3, 8, 4);
	ack = ls_test_core_send(&core, &a, false);
	ck_assert_int_eq(ack->status, LS_ACK_RETRY);
	ck_assert_uint_eq(ack->acked_seq, 1);
	ck_assert_uint_gt(ack->retry_after_ns, 0);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_HOLE], 1);
}

LS_TEST(intake, garbage_is_rejected_and_counted)
{
	static const uint8_t garbage[] = "GET / HTTP/1.1\r\n\r\n";
	uint8_t version[] = { 0x08, 0x63 }; /* version 99 and nothing else */
	struct ls_test_agent a;

	ls_test_core_give(&core, garbage, sizeof(garbage), true);
	ck_assert_int_eq(core.ack.status, LS_ACK_REJECT);
	ck_assert_str_ne(core.ack.reason, "");
	ls_test_core_give(&core, garbage, 0, true);
	ck_assert_int_eq(core.ack.status, LS_ACK_REJECT);
	ls_test_core_give(&core, version, sizeof(version), true);
	ck_assert_int_eq(core.ack.status, LS_ACK_REJECT);
	ck_assert_uint_ge(stats().drops[LS_INTAKE_VERSION], 1);
	ck_assert_uint_ge(stats().drops[LS_INTAKE_MALFORMED], 1);
	/* A bad item does not take the good one before it along. */
	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, 1, 0, 4);
	a.items[1].data = garbage;
	a.items[1].len = sizeof(garbage);
	a.report.item_count = 2;
	{
		size_t len;
		uint8_t *buf = ls_test_agent_pack(&a, true, &len);

		ls_test_core_give(&core, buf, len, true);
		free(buf);
	}
	ck_assert_int_eq(core.ack.status, LS_ACK_REJECT);
	ck_assert_uint_eq(core.ack.acked_seq, 1);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_BAD_ITEM], 1);
	ck_assert_uint_eq(lies(LS_LIE_ITEM), 1);
	a.report.item_count = 1;
	ls_test_agent_clear(&a);
}

LS_TEST(intake, number_of_an_item_that_cannot_be_true_is_spent)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_steps(&a, UINT64_MAX, 0, 1); /* it has no number to spend */
	ack = ls_test_core_send(&core, &a, true);
	ck_assert_int_eq(ack->status, LS_ACK_REJECT);
	ck_assert_uint_eq(ack->malformed_seq, 0);
	/* as an agent of 9b5f49c sends the head of a damaged ring; steps follow */
	ls_test_agent_gap(&a, 1, 0, 1ull << 63);
	ls_test_agent_gap(&a, 2, LS_WIRE_NUMBER_MAX, 1);
	ls_test_agent_steps(&a, 3, 0, 4);
	ack = ls_test_core_send(&core, &a, true);
	ck_assert_int_eq(ack->status, LS_ACK_OK);
	ck_assert_uint_eq(ack->acked_seq, 3);
	ck_assert_int_eq(sql("SELECT count(*) FROM gap"), 0);
	ck_assert_uint_eq(stats().records, 4);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_BAD_ITEM], 3);
	ck_assert_uint_eq(lies(LS_LIE_ITEM), 3);
}

LS_TEST(intake, item_that_is_not_understood_is_named)
{
	static const uint8_t cut[] = { 0x08, 0x02, 0x12, 0xff, 0x01 },
			     newer[] = { 0x08, 0x02, 0x7a, 0x00 };
	const uint8_t *const bytes[] = { cut, newer };
	struct ls_test_agent a;
	uint8_t *buf;
	size_t len, i;

	for (i = 0; i < 2; i++) {
		ls_test_agent_init(&a, 0, true);
		ls_test_agent_steps(&a, 1, 0, 4);
		a.items[1].data = bytes[i];
		a.items[1].len = i == 0 ? sizeof(cut) : sizeof(newer);
		a.report.item_count = 2;
		buf = ls_test_agent_pack(&a, true, &len);
		ls_test_core_give(&core, buf, len, true);
		free(buf);
		ck_assert_int_eq(core.ack.status, LS_ACK_REJECT);
		ck_assert_uint_eq(core.ack.acked_seq, 1);
		/* a kind of item that a newer agent knows waits for a newer collector */
		ck_assert_uint_eq(core.ack.malformed_seq, i == 0 ? 2 : 0);
		a.report.item_count = 1;
		ls_test_agent_clear(&a);
	}
}

LS_TEST(intake, a_strange_clock_is_learned_first)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, false);
	ls_test_agent_steps(&a, 1, 0, 4);
	ack = ls_test_core_send(&core, &a, true);
	ck_assert_int_eq(ack->status, LS_ACK_OK);
	ck_assert_uint_eq(ack->acked_seq, 0); /* waits for the stamps */
	a.report.has_last = true;
	a.report.last.t1 = 1000000000;
	a.report.last.t2 = ack->t_receive_mono_ns;
	a.report.last.t3 = ack->t_send_mono_ns;
	a.report.last.t4 = 1000200000;
	core.now_ns += 1000000000;
	ls_test_agent_steps(&a, 1, 0, 4);
	ack = ls_test_core_send(&core, &a, false);
	ck_assert_uint_eq(ack->acked_seq, 1);
	/* t1 = 1 s there was 100 s here, give or take 0.1 ms. */
	ck_assert_int_eq(sql("SELECT t_lo_us FROM step_block"),
		LS_TEST_ANCHOR_NS / 1000 + 100000000 - 100);
	ck_assert_int_ge(sql("SELECT uncertainty_ns FROM step_block"), 100000);
	ck_assert_int_le(sql("SELECT uncertainty_ns FROM step_block"), 200000);
}

LS_TEST(intake, without_stamps_the_clock_is_guessed_in_the_end)
{
	struct ls_test_agent a;
	unsigned i;

	ls_test_agent_init(&a, 0, false);
	a.report.has_last = true; /* of another collector: not ours */
	a.report.last.t4 = 1;
	for (i = 0; i < LS_CLOCK_HELLO_MAX; i++) {
		ls_test_agent_steps(&a, 1, 0, 4);
		ck_assert_uint_eq(ls_test_core_send(&core, &a, true)->acked_seq, 0);
	}
	ls_test_agent_steps(&a, 1, 0, 4);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, true)->acked_seq, 1);
	ck_assert_int_eq(sql("SELECT uncertainty_ns FROM step_block"),
		LS_CLOCK_GUESS_NS);
}

LS_TEST(intake, counters_are_stored_without_waiting)
{
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_hot(&a, 99000000000ull, 3.25);
	ck_assert_int_eq(ls_test_core_send(&core, &a, true)->status, LS_ACK_OK);
	teardown();
	ck_assert_int_eq(sql("SELECT count(*) FROM counters"), 1);
	ck_assert_int_eq(sql("SELECT read_us FROM counters"),
		LS_TEST_ANCHOR_NS / 1000 + 99000000);
	ls_test_core_open(&core, dir);
	ck_assert_uint_eq(core.restored.counters, 1);
}

LS_TEST(intake, a_full_disk_acknowledges_nothing_and_heals)
{
	const struct ls_wire_ack *ack;
	struct ls_engine_stats engine;
	struct ls_test_agent a, b;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_init(&b, 1, true);
	ls_test_agent_steps(&a, 1, 0, 4);
	ck_assert_uint_eq(ls_test_core_send(&core, &a, true)->acked_seq, 1);
	ls_faultvfs_fail(1, SQLITE_FULL);
	ls_test_agent_steps(&a, 2, 4, 4);
	ack = ls_test_core_send(&core, &a, false);
	ck_assert_int_eq(ack->status, LS_ACK_RETRY);
	ck_assert_uint_eq(ack->acked_seq, 1);
	ck_assert_uint_gt(ack->retry_after_ns, 0);
	ls_faultvfs_heal();
	ls_test_agent_steps(&b, 1, 0, 2);
	ck_assert_uint_eq(ls_test_core_send(&core, &b, true)->acked_seq, 1);
	ls_test_agent_steps(&a, 2, 4, 4);
	ls_test_agent_steps(&a, 3, 8, 1);
	ack = ls_test_core_send(&core, &a, false);
	ck_assert_int_eq(ack->status, LS_ACK_OK);
	ck_assert_uint_eq(ack->acked_seq, 3);
	ck_assert_int_eq(sql("SELECT sum(n) FROM step_block WHERE worker_id = 1"), 9);
	ck_assert_int_eq(sql("SELECT count(*) FROM gap"), 0);
	/* The engine had each record once; the other rank's came after their steps were
	 * closed. */
	ls_engine_stats(core.engine, &engine);
	ck_assert_uint_eq(engine.records, 9);
	ck_assert_uint_eq(engine.late, 2);
	ck_assert_uint_eq(engine.duplicates, 0);
}

LS_TEST(intake, drops_have_names)
{
	ck_assert_str_eq(ls_intake_drop_name(LS_INTAKE_HOLE), "hole");
	ck_assert_ptr_null(ls_intake_drop_name(LS_INTAKE_DROP_COUNT));
}

/* --- byte rates ----------------------------------------------------------- */

#define FLOOD_ITEMS 2u
#define FLOOD_BYTES 126000u /* of an item */
static uint8_t flood_body[FLOOD_BYTES];

/* A report of so many items, each of which takes 1.9 s at the rate of one agent. */
static const struct ls_wire_ack *
flood(struct ls_test_agent *a, uint64_t first_seq, uint64_t items)
{
	uint64_t seq;

	for (seq = first_seq; seq < first_seq + items; seq++)
		ls_test_agent_body(a, seq, core.now_ns + seq, core.now_ns + seq + 1,
			flood_body, sizeof(flood_body));
	return ls_test_core_send(&core, a, false);
}

LS_TEST(intake, an_agent_above_its_byte_rate_waits_and_loses_nothing)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;
	uint64_t seq;

	ls_test_agent_init(&a, 0, true);
	for (seq = 1; seq < 4 * FLOOD_ITEMS - 1; seq += FLOOD_ITEMS) {
		ack = flood(&a, seq, FLOOD_ITEMS);
		ck_assert_int_eq(ack->status, LS_ACK_OK);
		ck_assert_uint_eq(ack->acked_chunk_seq, seq + 1);
		/* The stamp is that of sending, else the host's clock would be wrong. */
		ck_assert_uint_eq(ack->t_send_mono_ns,
			core.now_ns + (uint64_t)core.waited_ns);
		if (seq == 1) /* what a new agent begins with */
			ck_assert_int_eq(core.waited_ns, 0);
	}
	ck_assert_int_gt(core.waited_ns, 7000000000ll);
	ck_assert_int_lt(core.waited_ns, LS_RATE_WAIT_MAX_NS);
	ck_assert_uint_eq(stats().slowed, 2);
	/* Who does not wait, by another connection: nothing of it is taken or charged. */
	ack = flood(&a, seq, FLOOD_ITEMS);
	ck_assert_int_eq(ack->status, LS_ACK_RETRY);
	ck_assert_uint_eq(ack->acked_chunk_seq, seq - 1);
	ck_assert_int_eq(core.waited_ns, LS_RATE_WAIT_MAX_NS);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_RATE], FLOOD_ITEMS);
	core.now_ns += LS_RATE_WAIT_MAX_NS;
	ack = flood(&a, seq, FLOOD_ITEMS);
	ck_assert_int_eq(ack->status, LS_ACK_OK);
	ck_assert_uint_eq(ack->acked_chunk_seq, seq + 1);
	ck_assert_int_gt(core.waited_ns, 0);
	/* What is saved is there again. */
	core.now_ns += 2 * LS_RATE_WAIT_MAX_NS;
	(void)flood(&a, seq += FLOOD_ITEMS, FLOOD_ITEMS);
	ck_assert_int_eq(core.waited_ns, 0);
}

LS_TEST(intake, a_known_agent_sends_a_spool_at_once)
{
	const uint64_t items = 8;
	struct ls_test_agent a;
	uint64_t i, n = LS_SPOOL_DEFAULT_BYTES / FLOOD_BYTES / items;

	ls_test_agent_init(&a, 0, true);
	ck_assert_uint_eq(flood(&a, 1, 1)->acked_chunk_seq, 1);
	ls_test_core_close(&core);
	ls_test_core_open(&core, dir);
	for (i = 0; i < n; i++) {
		ck_assert_uint_eq(flood(&a, 2 + i * items, items)->acked_chunk_seq,
			1 + (i + 1) * items);
		ck_assert_int_eq(core.waited_ns, 0);
	}
	(void)flood(&a, 2 + i * items, 4);
	(void)flood(&a, 6 + i * items, 4);
	ck_assert_int_gt(core.waited_ns, 0);
}

LS_TEST(intake, new_names_of_an_address_share_one_allowance)
{
	struct ls_test_agent quiet, a;
	uint64_t taken = 0;
	int32_t rank;

	ls_test_agent_init(&quiet, 0, true);
	(void)ls_test_core_send(&core, &quiet, true);
	core.now_ns += LS_BEAT_DEFAULT_NS;
	for (rank = 1; rank < 60; rank++) {
		ls_test_agent_init(&a, rank, true);
		taken += flood(&a, 1, 6)->status == LS_ACK_OK;
	}
	/* What the address saved, and may owe: 16 s in reports of 0.36 s. */
	ck_assert_uint_eq(taken, 44);
	ck_assert_int_eq(core.waited_ns, LS_RATE_WAIT_MAX_NS);
	/* The first report of a host is small. */
	ls_test_agent_init(&a, rank, true);
	ck_assert_int_eq(ls_test_core_send(&core, &a, true)->status, LS_ACK_OK);
	ck_assert_int_eq(core.waited_ns, 0);
	ls_test_agent_steps(&quiet, 1, 0, 5);
	ck_assert_uint_eq(ls_test_core_send(&core, &quiet, false)->acked_seq, 1);
	ck_assert_int_eq(core.waited_ns, 0);
	/* And another address has its own. */
	core.peer.address = 1;
	ls_test_agent_init(&a, rank + 1, true);
	ck_assert_int_eq(flood(&a, 1, FLOOD_ITEMS)->status, LS_ACK_OK);
	ck_assert_int_eq(core.waited_ns, 0);
}
