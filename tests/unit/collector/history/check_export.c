/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/history/export.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/history/lines.h"
#include "collector/answer/reader.h"
#include "collector/history/replay.h"
#include "proto/base/clock.h"
#include "proto/base/json.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "tests/support/core.h"
#include "tests/support/harness.h"

#define RANKS 4

static char dir[PATH_MAX];
static struct ls_test_core core;
static struct ls_test_agent agents[RANKS];

struct text {
	char *text;
	size_t len;
	size_t pieces, wanted; /* wanted: stop after so many */
	int rc;
	bool done;
	struct ls_loop *loop;
};

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
	ls_test_core_close(&core);
}

static bool
keep(void *arg, const char *text, size_t len)
{
	struct text *t = arg;

	t->text = realloc(t->text, t->len + len + 1);
	ck_assert_ptr_nonnull(t->text);
	memcpy(t->text + t->len, text, len);
	t->len += len;
	t->text[t->len] = '\0';
	t->pieces++;
	return t->wanted == 0 || t->pieces < t->wanted;
}

static void
complain(void *arg, const char *text)
{
	(void)arg;
	ck_abort_msg("replay complains: %s", text);
}

/* The findings of a replay of the text are those of the engine, to the byte. */
static struct ls_replay_stats
assert_same_findings(const struct text *t)
{
	struct ls_replay_stats st;
	json_t *result = NULL, *live = ls_test_core_findings(&core), *replayed;
	size_t i, n;

	ck_assert_int_eq(
		ls_replay_text(t->text, t->len, 0, complain, NULL, &st, &result), 0);
	ck_assert_uint_eq(st.bad_lines, 0);
	ck_assert_uint_eq(st.unknown_keys, 0);
	replayed = json_object_get(result, "findings");
	ck_assert_uint_ge(json_array_size(live), 1);
	ck_assert_uint_eq(json_array_size(replayed), json_array_size(live));
	for (i = 0; i < json_array_size(live); i++) {
		char *x = ls_json_canonical(json_array_get(live, i));
		char *y = ls_json_canonical(json_array_get(replayed, i));

		for (n = 0; x[n] != '\0' && x[n] == y[n]; n++)
			;
		ck_assert_msg(x[n] == y[n], "differ:\n%.150s\n%.150s",
			x + (n > 50 ? n - 50 : 0), y + (n > 50 ? n - 50 : 0));
		free(x);
		free(y);
	}
	json_decref(live);
	json_decref(result);
	return st;
}

LS_CASE(export, setup, teardown);

LS_TEST(export, live_and_replay_agree)
{
	struct ls_replay_stats st;
	struct text t = { 0 };
	uint64_t n;

	for (n = 0; n < 300; n++) {
		ls_test_agent_hot(&agents[0], 1000000000 + n * LS_TEST_STEP_NS,
			(double)n / 3);
		ls_test_core_round(&core, agents, RANKS, n, 2);
	}
	ck_assert_int_eq(ls_export_job(dir, "train", false, keep, &t), 0);
	st = assert_same_findings(&t);
	ck_assert_uint_eq(st.records, RANKS * 300);
	ck_assert_uint_eq(st.counters, 300);
	free(t.text);
}

/* Evidence is what had come when it was taken: these readings come 54 s late. */
LS_TEST(export, live_and_replay_agree_on_counters_that_come_late)
{
	struct text t = { 0 };
	uint64_t n;

	for (n = 0; n < 300; n++) {
		ls_test_agent_hot(&agents[2], 46000000000 + n * LS_TEST_STEP_NS,
			1e-4 * (double)(n * n));
		agents[2].hot.metric[0] = LS_METRIC_HOST_CPU_THROTTLED;
		ls_test_core_round(&core, agents, RANKS, n, 2);
	}
	ck_assert_int_eq(ls_export_job(dir, "train", false, keep, &t), 0);
	(void)assert_same_findings(&t);
	free(t.text);
}

/* Lines that begin so. */
static size_t
count(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)) != NULL; text++)
		n++;
	return n;
}

/* Live slots are not stored, but what was seen of them is: in mid-standstill, and after
 * it. */
LS_TEST_LOOP(export, live_and_replay_agree_on_a_standstill, 0, 2)
{
	struct text t = { 0 };
	char since[256];
	uint64_t n, since_ns;

	for (n = 0; n < 60; n++)
		ls_test_core_round(&core, agents, RANKS, n, SIZE_MAX);
	since_ns = core.now_ns;
	ls_test_core_stand(&core, agents, RANKS, n, _i == 0 ? 1 : SIZE_MAX, since_ns,
		25);
	/* its reply comes when all before it is on disk */
	ls_test_agent_lost(&agents[0], 1, 5);
	(void)ls_test_core_send(&core, &agents[0], true);
	ck_assert_int_eq(ls_export_job(dir, "train", false, keep, &t), 0);
	ck_assert_uint_eq(count(t.text, "\"type\":\"hang\""), 2);
	/* The newest of four reports of one moment came three microseconds after it,
	 * for they have an order. */
	(void)snprintf(since, sizeof(since),
		"{\"attempt\":0,\"job\":\"train\",\"ranks\":[%s],"
		"\"since\":1795219306.000000,\"step\":60,\"t\":1795219316.000004,\"type\":\"hang\","
		"\"waiting\":%d,\"why\":\"%s\"}\n",
		_i == 0 ? "1" : "", _i == 0 ? RANKS - 1 : RANKS,
		_i == 0 ? "absent" : "collective");
	ck_assert_msg(strstr(t.text, since) != NULL, "%s",
		strstr(t.text, "\"type\":\"hang\"") - 120);
	(void)assert_same_findings(&t);
	free(t.text);
	t = (struct text){ 0 };
	for (; n < 100; n++)
		ls_test_core_round(&core, agents, RANKS, n, SIZE_MAX);
	ck_assert_int_eq(ls_export_job(dir, "train", false, keep, &t), 0);
	(void)assert_same_findings(&t);
	free(t.text);
}

LS_TEST(export, lines_are_as_documented)
{
	static const char step[] =
		"{\"attempt\":0,\"barriers\":[{\"enter\":1795219201.060000,"
		"\"exit\":1795219201.090000,\"name\":\"ici\"}],\"chips\":4,\"duration\":0.099000000,"
		"\"host\":\"h1\",\"job\":\"train\",\"peers\":{\"h0\":{\"recv_wait\":0.001000000}},"
		"\"phases\":{\"compute\":0.060000000,\"sync_wait\":0.030000000},\"rank\":1,"
		"\"step\":0,\"t_begin\":1795219201.000000,\"work\":{\"tokens\":4096}}\n";
	struct text t = { 0 };

	ls_test_agent_steps(&agents[0], 1, 0, 1);
	(void)ls_test_core_send(&core, &agents[0], true);
	ls_test_agent_hot(&agents[1], 99000000000ull, 0.1);
	ls_test_agent_steps(&agents[1], 1, 0, 1);
	ls_test_agent_gap(&agents[1], 2, 1, 5);
	ls_test_agent_end(&agents[1], 3, LS_END_CRASHED);
	(void)ls_test_core_send(&core, &agents[1], true);
	ck_assert_int_eq(ls_export_job(dir, "train", false, keep, &t), 0);
	ck_assert_msg(strstr(t.text, step) != NULL, "%s", t.text);
	ck_assert_uint_eq(
		count(t.text,
			"{\"from\":1795219201.000000,\"job\":\"train\","
			"\"to\":1795219201.099000,\"type\":\"job\",\"workers\":2}\n"),
		1);
	ck_assert_uint_eq(
		count(t.text,
			"{\"attempt\":0,\"count\":5,\"host\":\"h1\",\"job\":\"train\","
			"\"rank\":1,\"reason\":\"overrun\",\"t\":1795219300.000001,"
			"\"type\":\"gap\"}\n"),
		1);
	ck_assert_uint_eq(count(t.text, "\"how\":\"crashed\""), 1);
	ck_assert_uint_eq(
		count(t.text,
			"{\"attempt\":0,\"host\":\"h1\",\"job\":\"train\",\"rank\":1,"
			"\"t\":1795219300.000001,\"type\":\"clock\","
			"\"uncertainty\":0.000000000}\n"),
		1);
	/* Ninety seconds after the last record: no longer the job's. */
	ck_assert_uint_eq(count(t.text, "\"type\":\"counters\""), 0);
	free(t.text);
}

LS_TEST(export, users_that_claim_one_rank_are_told_apart)
{
	struct ls_test_agent *a = &agents[1];
	struct text t = { 0 };

	a->worker.info.owner = 1001;
	ls_test_agent_steps(a, 1, 0, 2);
	(void)ls_test_core_send(&core, a, true);
	ck_assert_int_eq(ls_export_job(dir, "train", false, keep, &t), 0);
	ck_assert_uint_eq(count(t.text, "\"uid\""), 0);
	ls_test_agent_clear(a);
	memset(a->ring_id, 0x99, sizeof(a->ring_id));
	memcpy(a->worker.ring_id, a->ring_id, sizeof(a->ring_id));
	a->worker.info.owner = 1002;
	ls_test_agent_steps(a, 2, 0, 1);
	(void)ls_test_core_send(&core, a, true);
	free(t.text);
	t = (struct text){ 0 };
	ck_assert_int_eq(ls_export_job(dir, "train", false, keep, &t), 0);
	/* Their steps, and what is known of their clock. */
	ck_assert_uint_eq(count(t.text, "\"uid\":1000"), 2 + 1);
	ck_assert_uint_eq(count(t.text, "\"uid\":1001"), 1 + 1);
	free(t.text);
}

LS_TEST(export, hostile_names_stay_data)
{
	char buf[4096];
	struct ls_lines l = { .text = buf, .size = sizeof(buf) };
	struct ls_worker_info who = { .job = "a\"b\\c\n\x01", .host = "h" };
	json_t *v = NULL;

	ls_lines_gap(&l, &who, -5, 1, LS_GAP_UNKNOWN);
	ck_assert(!l.full);
	ck_assert_int_eq(ls_json_parse(buf, l.len, &v, NULL, 0), 0);
	ck_assert_str_eq(json_string_value(json_object_get(v, "job")), "a\"b\\c\n\x01");
	json_decref(v);
}

LS_TEST(export, what_does_not_fit_is_not_begun)
{
	char buf[50];
	struct ls_lines l = { .text = buf, .size = sizeof(buf) };
	struct ls_worker_info who = { .job = "job", .host = "host" };

	ls_lines_end(&l, &who, 0, LS_END_ENDED);
	ck_assert(l.full);
	ck_assert_uint_eq(l.len, 0);
}

LS_TEST(export, an_unknown_job_is_said_to_be_so)
{
	struct text t = { 0 };

	ck_assert_int_eq(ls_export_job(dir, "none", false, keep, &t), -LS_EUNKNOWN);
	ck_assert_uint_eq(t.len, 0);
}

/* --- through the reader's thread ------------------------------------------ */

static bool
on_piece(void *arg, int rc, const char *text, size_t len)
{
	struct text *t = arg;

	ck_assert(!t->done);
	if (len > 0)
		return keep(t, text, len);
	t->done = true;
	t->rc = rc;
	ls_loop_stop(t->loop);
	return false;
}

static void
read_export(struct ls_reader *r, const char *job, ls_reader_piece *piece, void *arg)
{
	struct ls_ask ask = { 0 };

	(void)snprintf(ask.job, sizeof(ask.job), "%s", job);
	ls_reader_read(r, LS_READER_EXPORT, &ask, piece, arg);
}

static struct ls_reader *
reader_open(struct text *t)
{
	struct ls_reader *r = NULL;

	t->loop = ls_loop_new();
	ck_assert_ptr_nonnull(t->loop);
	ck_assert_int_eq(ls_reader_start(t->loop, dir, &r), 0);
	return r;
}

static void
fill(void)
{
	uint64_t n;

	for (n = 0; n < 1000; n++)
		ls_test_core_round(&core, agents, RANKS, n, SIZE_MAX);
}

LS_TEST(export, the_reader_gives_the_same_in_pieces)
{
	struct text t = { 0 }, direct = { 0 };
	struct ls_reader *r = reader_open(&t);

	fill();
	read_export(r, "train", on_piece, &t);
	ck_assert_int_eq(ls_loop_run(t.loop), 0);
	ck_assert(t.done);
	ck_assert_int_eq(t.rc, 0);
	ck_assert_int_eq(ls_export_job(dir, "train", false, keep, &direct), 0);
	ck_assert_uint_eq(t.len, direct.len);
	ck_assert_mem_eq(t.text, direct.text, t.len);
	ck_assert_uint_gt(t.pieces, LS_EXPORT_PIECES);
	ls_reader_stop(r);
	ls_loop_free(t.loop);
	free(t.text);
	free(direct.text);
}

LS_TEST(export, a_receiver_may_stop_and_another_begin)
{
	struct text t = { .wanted = 2 }, next = { 0 };
	struct ls_reader *r = reader_open(&t);

	fill();
	read_export(r, "train", on_piece, &t);
	ck_assert_int_eq(ls_loop_run(t.loop), 0);
	ck_assert_int_eq(t.rc, -ECANCELED);
	ck_assert_uint_eq(t.pieces, 2);
	next.loop = t.loop;
	read_export(r, "none", on_piece, &next);
	ck_assert_int_eq(ls_loop_run(t.loop), 0);
	ck_assert_int_eq(next.rc, -LS_EUNKNOWN);
	ls_reader_stop(r);
	ls_loop_free(t.loop);
	free(t.text);
}

LS_TEST(export, a_question_does_not_wait_behind_an_export)
{
	struct text export = { 0 }, question = { 0 };
	struct ls_reader *r = reader_open(&export);
	struct ls_ask ask = { .kind = LS_ASK_HISTORY,
		.to_us = 1,
		.limit = 1,
		.series = "a",
		.host = "h" };

	fill();
	read_export(r, "train", on_piece, &export);
	question.loop = export.loop;
	/* The export has more pieces than go round, so it cannot end before the loop
	 * runs: the question can. */
	ls_reader_read(r, LS_READER_ANSWER, &ask, on_piece, &question);
	while (!question.done)
		ck_assert_int_eq(ls_loop_run(export.loop), 0);
	ck_assert_int_eq(question.rc, -LS_EUNKNOWN);
	while (!export.done)
		ck_assert_int_eq(ls_loop_run(export.loop), 0);
	ck_assert_int_eq(export.rc, 0);
	ls_reader_stop(r);
	ls_loop_free(export.loop);
	free(export.text);
}

LS_TEST(export, what_nobody_waits_for_ends)
{
	struct text t = { 0 };
	struct ls_reader *r = reader_open(&t);
	struct ls_reader_stats stats = { 0 };

	fill();
	read_export(r, "train", on_piece, &t);
	ls_reader_cancel(r, &t);
	ls_reader_cancel(r, &stats); /* of nobody */
	ck_assert_int_eq(ls_loop_run(t.loop), 0);
	ck_assert(t.done);
	ck_assert_int_eq(t.rc, -ECANCELED);
	ck_assert_uint_eq(t.pieces, 0);
	ls_reader_stats(r, &stats);
	ck_assert_uint_eq(stats.asked, 1);
	ck_assert_uint_eq(stats.failed, 0);
	ls_reader_stop(r);
	ls_loop_free(t.loop);
	free(t.text);
}

LS_TEST(export, stopping_ends_every_export_once)
{
	struct text t[LS_EXPORTS_MAX + 3] = { 0 };
	struct ls_reader *r = reader_open(&t[0]);
	size_t i, busy = 0;

	fill();
	for (i = 0; i < LS_EXPORTS_MAX + 3; i++) {
		t[i].loop = t[0].loop;
		read_export(r, "train", on_piece, &t[i]);
		busy += t[i].done && t[i].rc == -LS_EBUSY;
	}
	ck_assert_uint_ge(busy, 1);
	ls_reader_stop(r);
	for (i = 0; i < LS_EXPORTS_MAX + 3; i++) {
		ck_assert(t[i].done);
		ck_assert_int_ne(t[i].rc, 0);
		free(t[i].text);
	}
	ls_loop_free(t[0].loop);
}
