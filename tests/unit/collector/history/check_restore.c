/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/history/restore.h"
#include "collector/answer/finding_json.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/answer/view.h"
#include "proto/base/clock.h"
#include "proto/base/json.h"
#include "proto/base/log.h"
#include "storage/db/days.h"
#include "tests/support/core.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"

#define RANKS 4
#define ROUNDS 300 /* steps; enough for a finding */

static char dir[PATH_MAX];
static struct ls_test_core core;
static struct ls_test_agent agents[RANKS];

static void
setup(void)
{
	int32_t i;

	ls_log_set_level(LS_LOG_ERR);
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	for (i = 0; i < RANKS; i++)
		ls_test_agent_init(&agents[i], i, true);
	ls_test_core_open(&core, dir);
}

static void
teardown(void)
{
	int i;

	ls_test_core_close(&core);
	for (i = 0; i < RANKS; i++)
		ls_test_agent_clear(&agents[i]);
}

static void
restart(void)
{
	uint64_t now_ns = core.now_ns;

	ls_test_core_close(&core);
	ls_test_core_open(&core, dir);
	core.now_ns = now_ns;
}

static void
round_of(uint64_t n)
{
	ls_test_core_round(&core, agents, RANKS, n, 2);
}

static char *
findings(const struct ls_test_core *c)
{
	json_t *list = ls_finding_all(c->engine);
	char *text = ls_json_canonical(list);

	ck_assert_ptr_nonnull(text);
	json_decref(list);
	return text;
}

/* Findings are long: the first difference is shown. */
static void
assert_same(const char *a, const char *b)
{
	size_t i = 0;

	while (a[i] != '\0' && a[i] == b[i])
		i++;
	ck_assert_msg(a[i] == b[i], "findings differ:\n%.200s\n%.200s",
		a + (i > 60 ? i - 60 : 0), b + (i > 60 ? i - 60 : 0));
}

static uint64_t
closed(const struct ls_test_core *c)
{
	struct ls_engine_stats st;

	ls_engine_stats(c->engine, &st);
	return st.steps_closed;
}

static int64_t
sql(int32_t day, const char *text)
{
	return ls_test_sql(dir, day > 0 ? ls_days_of(ls_clock_wall_ns() / 1000) : 0,
		text);
}

LS_CASE(restore, setup, teardown);

LS_TEST(restore, an_empty_directory_restores_nothing)
{
	ck_assert_uint_eq(core.restored.records, 0);
	ck_assert_uint_eq(core.restored.findings, 0);
	ck_assert_int_eq(core.restored.next_worker_id, 1);
}

LS_TEST(restore, detection_goes_on_where_it_was)
{
	char *before, *after;
	int64_t closes, events;
	uint64_t n, steps;

	for (n = 0; n < ROUNDS; n++)
		round_of(n);
	before = findings(&core);
	steps = closed(&core);
	ck_assert_uint_ge(steps, ROUNDS - 1);
	restart();
	after = findings(&core);
	assert_same(after, before);
	ck_assert_uint_eq(core.restored.records, RANKS * ROUNDS);
	ck_assert_uint_eq(core.restored.workers, RANKS);
	ck_assert_uint_eq(core.restored.agents, RANKS);
	ck_assert_int_eq(core.restored.next_worker_id, RANKS + 1);
	ck_assert_uint_eq(core.restored.bad, 0);
	free(after);
	closes = sql(1, "SELECT count(*) FROM step_close");
	events = sql(0, "SELECT count(*) FROM finding_event");
	ck_assert_int_ge(events, 1);
	/* Restoring stores nothing again. */
	restart();
	ck_assert_int_eq(sql(1, "SELECT count(*) FROM step_close"), closes);
	ck_assert_int_eq(sql(0, "SELECT count(*) FROM finding_event"), events);
	/* And the next step is judged as if nothing had been. */
	round_of(ROUNDS);
	ck_assert_uint_gt(closed(&core), 0);
	ck_assert_int_eq(sql(1, "SELECT count(*) FROM gap"), 0);
	free(before);
}

LS_TEST(restore, a_restart_changes_no_finding)
{
	struct ls_test_core whole;
	char *with, *without;
	uint64_t n;

	for (n = 0; n < ROUNDS; n++) {
		if (n == ROUNDS / 4 || n == ROUNDS / 2)
			restart();
		round_of(n);
	}
	with = findings(&core);
	whole = core;
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ls_test_core_open(&core, dir);
	for (n = 0; n < ROUNDS; n++)
		round_of(n);
	without = findings(&core);
	assert_same(with, without);
	ck_assert_ptr_nonnull(strstr(with, "h2"));
	ls_test_core_close(&whole);
	free(with);
	free(without);
}

/* 60 steps, rank 1 keeps the others waiting for so long, 40 more. */
/* Baselines are kept as the server does it; damage: which byte is wrong. */
static void
keep(size_t damage)
{
	struct ls_write *m = ls_write_new(LS_WRITE_META, 0);

	ck_assert_ptr_nonnull(m);
	(void)snprintf(m->u.meta.key, sizeof(m->u.meta.key), "%s",
		LS_RESTORE_REFERENCE);
	ck_assert_int_eq(ls_engine_reference(core.engine, (int64_t)core.now_ns / 1000,
				 &m->u.meta.bytes, &m->u.meta.len),
		0);
	if (damage < m->u.meta.len)
		((uint8_t *)m->u.meta.bytes)[damage] ^= 1;
	ck_assert_int_eq(ls_writer_push(core.writer, m), 0);
}

/* Baselines that were stored twice: the later ones are used. Damaged ones are ignored with a message. */
LS_TEST_LOOP(restore, baselines_are_kept_in_storage, 0, 3)
{
	static const size_t damage[] = { SIZE_MAX, 8, 400 };
	char *before, *after;

	for (uint64_t n = 0; n < ROUNDS; n++)
		round_of(n);
	before = findings(&core);
	keep(_i == 0 ? 40 : SIZE_MAX);
	keep(damage[_i]);
	restart();
	after = findings(&core);
	assert_same(after, before);
	ck_assert_uint_eq(core.restored.bad, _i > 0);
	free(before);
	free(after);
}

static char *
hang_story(int before_restart, int after)
{
	uint64_t n, since_ns;

	for (n = 0; n < 60; n++)
		ls_test_core_round(&core, agents, RANKS, n, SIZE_MAX);
	since_ns = core.now_ns;
	ls_test_core_stand(&core, agents, RANKS, 60, 1, since_ns, before_restart);
	if (after > 0) {
		restart();
		ls_test_core_stand(&core, agents, RANKS, 60, 1, since_ns, after);
	}
	for (; n < 100; n++)
		ls_test_core_round(&core, agents, RANKS, n, SIZE_MAX);
	/* after 11, 21, 31 s */
	ck_assert_int_eq(sql(1, "SELECT count(*) FROM hang"), 3);
	return findings(&core);
}

LS_TEST(restore, a_restart_in_a_standstill_changes_nothing)
{
	struct ls_test_core whole;
	char *with, *without;

	with = hang_story(15, 20);
	ck_assert_ptr_nonnull(strstr(with, "\"kind\":\"hang\""));
	ck_assert_ptr_nonnull(strstr(with, "\"cause\":\"not_entered\""));
	ck_assert_ptr_nonnull(strstr(with, "\"status\":\"cleared\""));
	restart(); /* nothing is stored twice */
	ck_assert_int_eq(sql(1, "SELECT count(*) FROM hang"), 3);
	whole = core;
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ls_test_core_open(&core, dir);
	without = hang_story(35, 0);
	assert_same(with, without);
	ls_test_core_close(&whole);
	free(with);
	free(without);
}

LS_TEST(restore, positions_are_restored)
{
	const struct ls_wire_ack *ack;

	round_of(0);
	round_of(1);
	restart();
	ls_test_agent_steps(&agents[0], 2, 1, 1);
	ack = ls_test_core_send(&core, &agents[0], false);
	ck_assert_int_eq(ack->status, LS_ACK_OK);
	ck_assert_uint_eq(ack->acked_seq, 2);
	ck_assert_uint_eq(ack->need_count, 0);
	ls_test_agent_steps(&agents[0], 4, 3, 1);
	ck_assert_int_eq(ls_test_core_send(&core, &agents[0], false)->status,
		LS_ACK_RETRY);
	/* A new spool that reads the ring from its start brings nothing new. */
	memset(agents[0].report.boot, 0x66, sizeof(agents[0].report.boot));
	ls_test_agent_steps(&agents[0], 1, 0, 2);
	ck_assert_uint_eq(ls_test_core_send(&core, &agents[0], false)->acked_seq, 1);
	ck_assert_int_eq(sql(1, "SELECT sum(n) FROM step_block WHERE worker_id = 1"),
		2);
}

LS_TEST(restore, a_lost_state_keeps_the_numbers_of_workers)
{
	round_of(0);
	ls_test_core_close(&core);
	ck_assert_int_eq(ls_days_set_aside(dir, 0, 1000000), 0);
	ls_test_core_open(&core, dir);
	ck_assert_int_eq(core.restored.next_worker_id, RANKS + 1);
	/* Its worker is asked for again, and is the same row. */
	ls_test_agent_steps(&agents[1], 2, 1, 1);
	ck_assert_uint_eq(ls_test_core_send(&core, &agents[1], false)->need_count, 1);
	ls_test_agent_steps(&agents[1], 2, 1, 1);
	ck_assert_uint_eq(ls_test_core_send(&core, &agents[1], true)->acked_seq, 2);
	ck_assert_int_eq(sql(0, "SELECT id FROM worker"), 2);
}
