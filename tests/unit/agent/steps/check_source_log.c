/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/source_log.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/steps/inferred.h"
#include "proto/base/log.h"
#include "tests/support/harness.h"
#include "tests/support/spooled.h"

#define S 1000000000ull
#define HOSTS 2

static const uint8_t boot_id[16] = { 1 };

/* A host: its log, its spool, its source. */
struct host {
	char dir[PATH_MAX], path[PATH_MAX];
	struct ls_spool *spool;
	struct ls_source source;
	bool has_source;
};

static struct host hosts[HOSTS];
static struct host *const h = &hosts[0];
static uint64_t now;
static struct ls_sample sample;

static void
open_host(struct host *x, const char *job, int32_t rank)
{
	const struct ls_source_log_options o = {
		.path = x->path, .job = job, .rank = rank, .spool = x->spool
	};

	if (x->spool == NULL) {
		struct ls_source_log_options with = o;

		ck_assert_int_eq(
			ls_spool_open(x->dir, LS_SPOOL_MIN_BYTES, boot_id, &x->spool),
			0);
		with.spool = x->spool;
		ck_assert_int_eq(ls_source_log_new(&with, &x->source), 0);
	} else {
		ck_assert_int_eq(ls_source_log_new(&o, &x->source), 0);
	}
	x->has_source = true;
}

static void
close_source(struct host *x)
{
	if (x->has_source)
		x->source.free(x->source.self);
	x->has_source = false;
}

static void
close_host(struct host *x)
{
	close_source(x);
	ls_spool_close(x->spool);
	x->spool = NULL;
}

static void
setup(void)
{
	size_t i;

	ls_log_set_level(LS_LOG_ERR);
	now = 1000 * S;
	for (i = 0; i < HOSTS; i++) {
		memset(&hosts[i], 0, sizeof(hosts[i]));
		(void)snprintf(hosts[i].dir, sizeof(hosts[i].dir), "%s/state",
			ls_test_tmpdir());
		(void)snprintf(hosts[i].path, sizeof(hosts[i].path), "%.4000s.log",
			hosts[i].dir);
	}
	open_host(h, "llama", 3);
}

static void
teardown(void)
{
	size_t i;

	for (i = 0; i < HOSTS; i++)
		close_host(&hosts[i]);
}

static void
log_text(struct host *x, const char *text)
{
	FILE *f = fopen(x->path, "ae");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void
log_step(struct host *x, unsigned step, double seconds)
{
	char line[256];

	(void)snprintf(line, sizeof(line),
		"I0317 10:00:13.6 1 metric_logger.py:181] completed step: "
		"%u, seconds: %.3f, TFLOP/s/device: 100.000, Tokens/s/device: 1000.000, "
		"total_weights: 1, loss: 2.5\n",
		step, seconds);
	log_text(x, line);
}

static void
read_log(struct host *x)
{
	now += S;
	x->source.read(x->source.self, LS_CADENCE_FAST, now, &sample);
}

static const struct ls_source_log_stats *
stats(void)
{
	return ls_source_log_get_stats(&h->source);
}

static struct ls_wire_item
item(size_t i)
{
	return spooled_item(h->spool, i);
}

static size_t
items(void)
{
	return (size_t)(ls_spool_next(h->spool) - 1 - ls_spool_acked(h->spool));
}

LS_CASE(source_log, setup, teardown);

LS_TEST(source_log, lines_become_records)
{
	struct ls_wire_item one;
	const struct ls_wire_worker *w;

	log_step(h, 7, 1); /* before the agent came: not taken */
	read_log(h);
	ck_assert_ptr_null(ls_source_log_worker(&h->source));
	ls_source_log_who(&h->source, "", "", -1, 4);
	log_step(h, 8, 0.5);
	log_step(h, 9, 0.25);
	read_log(h);
	ck_assert_uint_eq(items(), 1);
	one = item(0);
	ck_assert_int_eq(one.kind, LS_WIRE_STEPS);
	ck_assert_uint_eq(one.first_index, 8);
	ck_assert_uint_eq(one.count, 2);
	ck_assert_uint_eq(one.records[1].step, 9);
	ck_assert_uint_eq(one.records[1].duration_ns, S / 4);
	/* ends when seen */
	ck_assert_int_eq(one.records[1].t_begin_ns, (int64_t)(now - S / 4));
	ck_assert_int_eq(one.records[0].t_begin_ns, (int64_t)(now - S / 4 - S / 2));
	ck_assert_uint_eq(one.records[0].phase_mask, 0);
	ck_assert_uint_eq(one.records[0].barrier_count, 0);
	ck_assert_double_eq(one.records[0].work[LS_WORK_TOKENS], 1000 * 0.5 * 4);
	ls_wire_item_clear(&one);
	w = ls_source_log_worker(&h->source);
	ck_assert_str_eq(w->info.job, "llama");
	ck_assert_int_eq(w->info.rank, 3);
	ck_assert_int_eq(w->info.chips, 4);
	ck_assert_int_eq(w->info.step_source, LS_STEP_LOG);
	ck_assert_double_eq(w->info.step_confidence, LS_STEP_LOG_CONFIDENCE);
	ck_assert(ls_inferred_is(w->ring_id));
	ck_assert_uint_eq(stats()->records, 2);
}

LS_TEST(source_log, without_chips_work_is_not_known)
{
	struct ls_wire_item one;

	read_log(h);
	log_step(h, 1, 1);
	read_log(h);
	one = item(0);
	ck_assert_uint_eq(one.records[0].work_mask, 0);
	ls_wire_item_clear(&one);
}

LS_TEST(source_log, missing_steps_are_a_gap)
{
	struct ls_wire_item one;

	read_log(h);
	log_step(h, 1, 1);
	log_step(h, 5, 1);
	read_log(h);
	ck_assert_uint_eq(items(), 3);
	one = item(1);
	ck_assert_int_eq(one.kind, LS_WIRE_GAP);
	ck_assert_uint_eq(one.first_index, 2);
	ck_assert_uint_eq(one.count, 3);
	ck_assert_uint_eq(stats()->lost, 3);
}

LS_TEST(source_log, a_lower_step_begins_an_attempt)
{
	uint8_t before[LS_RING_ID_BYTES];
	struct ls_wire_item one;

	read_log(h);
	log_step(h, 1, 1);
	log_step(h, 2, 1);
	read_log(h);
	memcpy(before, ls_source_log_worker(&h->source)->ring_id, sizeof(before));
	log_step(h, 0, 1);
	log_step(h, 1, 1);
	log_step(h, 0, 1); /* and again, within a reading */
	read_log(h);
	ck_assert_uint_eq(stats()->attempts, 2);
	ck_assert_uint_eq(items(), 5); /* steps, end, steps, end, steps */
	one = item(1);
	ck_assert_int_eq(one.kind, LS_WIRE_END);
	ck_assert_mem_eq(one.ring_id, before, sizeof(before));
	one = item(4);
	ck_assert_uint_eq(one.first_index, 0);
	ck_assert_uint_eq(one.count, 1);
	ls_wire_item_clear(&one);
	ck_assert_int_eq(ls_source_log_worker(&h->source)->info.attempt, 2);
	ck_assert(ls_inferred_same(ls_source_log_worker(&h->source)->ring_id, before));
}

LS_TEST(source_log, a_restart_goes_on_where_it_was)
{
	uint8_t before[LS_RING_ID_BYTES];
	unsigned i;

	read_log(h);
	for (i = 0; i < 10; i++)
		log_step(h, i, 1);
	read_log(h);
	memcpy(before, ls_source_log_worker(&h->source)->ring_id, sizeof(before));
	close_host(h);
	for (i = 10; i < 15; i++)
		log_step(h, i, 1);
	open_host(h, "llama", 3);
	read_log(h);
	ck_assert_uint_eq(stats()->records, 5);
	ck_assert_uint_eq(stats()->lost, 0);
	ck_assert_mem_eq(ls_source_log_worker(&h->source)->ring_id, before,
		sizeof(before));
	ck_assert_uint_eq(ls_spool_ring_find(h->spool, before)->next, 15);
}

LS_TEST(source_log, after_a_restart_older_attempts_stay_old)
{
	unsigned i;

	read_log(h);
	for (i = 900; i < 1000; i++)
		log_step(h, i, 1);
	for (i = 0; i < 10; i++)
		log_step(h, i, 1);
	read_log(h);
	ck_assert_int_eq(ls_source_log_worker(&h->source)->info.attempt, 1);
	close_host(h);
	open_host(h, "llama", 3);
	read_log(h); /* sees all of it again */
	ck_assert_uint_eq(stats()->records + stats()->lost + stats()->attempts, 0);
	close_host(h);
	for (i = 0; i < 5; i++)
		log_step(h, i, 1); /* begun anew while the agent was away */
	open_host(h, "llama", 3);
	read_log(h);
	ck_assert_uint_eq(stats()->records, 5);
	ck_assert_uint_eq(stats()->attempts, 1);
	ck_assert_int_eq(ls_source_log_worker(&h->source)->info.attempt, 2);
}

LS_TEST(source_log, another_job_ends_the_one_before)
{
	struct ls_wire_item one;

	read_log(h);
	log_step(h, 1, 1);
	read_log(h);
	close_host(h);
	open_host(h, "other", 3);
	read_log(h);
	ck_assert_uint_eq(items(), 2);
	one = item(1);
	ck_assert_int_eq(one.kind, LS_WIRE_END);
}

LS_TEST(source_log, who_it_is_must_be_known)
{
	static struct ls_doctor d;

	close_source(h);
	open_host(h, "", -1);
	log_step(h, 1, 1);
	read_log(h);
	h->source.tell(h->source.self, &d);
	ck_assert_str_eq(d.check[0].why, "not read: the job is not known");
	ls_source_log_who(&h->source, "found", "s0", 7, 0);
	read_log(h);
	log_step(h, 2, 1);
	read_log(h);
	ck_assert_str_eq(ls_source_log_worker(&h->source)->info.job, "found");
	ck_assert_str_eq(ls_source_log_worker(&h->source)->info.slice, "s0");
	ck_assert_int_eq(ls_source_log_worker(&h->source)->info.rank, 7);
	ls_source_log_who(&h->source, "changed", "", 8, 0); /* it has a ring id now */
	ck_assert_str_eq(ls_source_log_worker(&h->source)->info.job, "found");
}

LS_TEST(source_log, a_log_of_other_lines_is_said)
{
	static struct ls_doctor d;
	char *noise = malloc(200002);
	unsigned i;

	h->source.tell(h->source.self, &d);
	read_log(h);
	h->source.tell(h->source.self, &d);
	ck_assert_int_eq(d.check[1].status, LS_DOCTOR_FAIL);
	ck_assert_ptr_nonnull(strstr(d.check[1].why, "No such file"));
	memset(noise, 'n', 200000);
	memcpy(noise + 200000, "\n", 2);
	for (i = 0; i < 53; i++) {
		log_text(h, noise);
		read_log(h);
	}
	h->source.tell(h->source.self, &d);
	ck_assert_int_eq(d.check[2].status, LS_DOCTOR_WARN);
	ck_assert_ptr_nonnull(
		strstr(d.check[2].why, "no step in 53 lines read; the first: \"nnn"));
	log_step(h, 1, 1);
	read_log(h);
	h->source.tell(h->source.self, &d);
	ck_assert_int_eq(d.check[3].status, LS_DOCTOR_OK);
	ck_assert_str_eq(d.check[3].why, "1 steps taken, 0 missing");
	free(noise);
}

LS_TEST(source_log, a_full_spool_makes_a_gap_later)
{
	struct ls_wire_item filler = { .kind = LS_WIRE_GAP, .count = 1 };
	struct ls_spool *full;
	uint64_t before;
	unsigned i;

	read_log(h);
	log_step(h, 1, 1);
	read_log(h);
	full = h->spool;
	for (i = 0; ls_spool_push(full, &filler) == 0; i++)
		filler.first_index +=
			2; /* gaps cannot be dropped: then pushes are refused */
	before = stats()->records;
	log_step(h, 2, 1);
	read_log(h);
	ck_assert_uint_eq(stats()->records, before);
	ck_assert_uint_eq(stats()->refused, 1);
	ls_spool_ack(full, ls_spool_next(full) - 1);
	log_step(h, 3, 1);
	read_log(h);
	ck_assert_uint_eq(stats()->lost, 1);
	ck_assert_uint_eq(stats()->records, before + 1);
}

LS_TEST(source_log, a_profiled_step_takes_the_spacing_of_lines)
{
	struct ls_wire_item one;

	read_log(h);
	log_step(h, 1, 1);
	read_log(h);
	log_text(h, "completed profiler activation/deactivation step: 2, loss: 1\n");
	now += 2 * S;
	read_log(h); /* 3 s after step 1 */
	ck_assert_uint_eq(stats()->lost, 0);
	one = item(1);
	ck_assert_uint_eq(one.records[0].step, 2);
	ck_assert_uint_eq(one.records[0].duration_ns, 3 * S);
	ck_assert_uint_eq(one.records[0].phase_ns[LS_PHASE_OTHER], 3 * S);
	ls_wire_item_clear(&one);
}

LS_TEST(source_log, a_launch_time_is_not_the_time_of_a_step)
{
	struct ls_wire_item one;
	unsigned i;

	read_log(h);
	log_step(h, 0, 1);
	read_log(h);
	for (i = 0; i < 9; i++)
		read_log(h);
	log_step(h, 1, 0.01); /* seen 10 s after step 0 */
	read_log(h);
	one = item(1);
	ck_assert_uint_eq(one.records[0].duration_ns, 10 * S);
	ck_assert_uint_eq(one.records[0].phase_mask, 1u << LS_PHASE_COMPILE);
	ck_assert_uint_eq(one.records[0].phase_ns[LS_PHASE_COMPILE], 10 * S - S / 100);
	ls_wire_item_clear(&one);
}

LS_TEST(source_log, a_line_may_stand_for_many_steps)
{
	struct ls_wire_item one;

	read_log(h);
	log_text(h, "[titan] INFO - step:  1  loss:  8.1\n");
	read_log(h);
	ck_assert_uint_eq(stats()->first, 1); /* no line before, no duration */
	log_text(h, "[titan] INFO - step: 10  loss:  8.0\n");
	read_log(h);
	log_text(h, "[titan] INFO - step: 20  loss:  7.9\n");
	now += 4 * S;
	read_log(h);
	ck_assert_uint_eq(stats()->lost, 0);
	one = item(1);
	ck_assert_uint_eq(one.first_index, 11);
	ck_assert_uint_eq(one.count, 10);
	ck_assert_uint_eq(one.records[9].duration_ns, S / 2);
	ck_assert_uint_eq(one.records[9].phase_mask, 0);
	ls_wire_item_clear(&one);
}

static void
doctor_says(enum ls_doctor_status status, const char *part)
{
	static struct ls_doctor d;
	const struct ls_doctor_check *last;

	memset(&d, 0, sizeof(d));
	h->source.tell(h->source.self, &d);
	last = &d.check[0];
	ck_assert_msg(last->status == status && strstr(last->why, part) != NULL, "%s",
		last->why);
}

LS_TEST(source_log, one_worker_of_several_is_followed)
{
	char text[96];
	unsigned i;

	read_log(h);
	for (i = 0; i < 20; i++) {
		(void)snprintf(text, sizeof(text),
			"[worker %u] completed step: %u, seconds: 1\n", 3 - i % 4,
			i / 4);
		log_text(h, text);
	}
	read_log(h);
	ck_assert_uint_eq(stats()->records, 5);
	ck_assert_uint_eq(stats()->others, 15);
	ck_assert_uint_eq(stats()->attempts, 0);
	doctor_says(LS_DOCTOR_OK, "5 steps taken, 0 missing");
}

LS_TEST(source_log, a_rank_that_the_log_has_not_is_refused)
{
	read_log(h);
	log_text(h, "[worker 0] completed step: 1, seconds: 1\n");
	read_log(h);
	ck_assert_uint_eq(stats()->records, 0);
	doctor_says(LS_DOCTOR_WARN,
		"several workers write into this log: none of 1 steps is of rank 3");
}

LS_TEST(source_log, workers_without_a_prefix_are_said)
{
	unsigned i;

	read_log(h);
	for (i = 0; i < 8; i++)
		log_step(h, i / 2, 1);
	read_log(h);
	ck_assert_uint_eq(stats()->records, 4);
	ck_assert_uint_eq(stats()->attempts, 0);
	doctor_says(LS_DOCTOR_WARN,
		"several workers write into this log: 4 lines repeat a step");
}

/* Written as transformers 5.24 and tqdm 4.70 write it: a bar is complete where the next begins. */
LS_TEST(source_log, a_progress_bar_tells_steps_but_an_evaluation_does_not)
{
	struct ls_wire_item one;
	char bar[128];
	unsigned i;

	read_log(h);
	log_text(h, "\r  0%|          | 0/9 [00:00<?, ?it/s]"); /* no trainer yet */
	for (i = 1; i <= 9; i++)
		log_text(h, "\r 50%|#####     | 5/9 [00:05<00:04,  1.00s/it]");
	log_text(h, "\r100%|##########| 9/9 [00:09<00:00,  1.00s/it]\n");
	read_log(h);
	for (i = 1; i <= 40; i++) {
		(void)snprintf(bar, sizeof(bar),
			"\r  %u%%|#         | %u/100 [00:%02u<01:40,  1.00s/it]", i, i,
			i);
		log_text(h, bar);
		if (i % 10 == 0) {
			log_text(h, "\r      \r{'loss': 2.5, 'epoch': 0.1}\n");
			log_text(h, bar); /* drawn again */
		}
		if (i % 20 == 0)
			log_text(h,
				"\n\r  0%|          | 0/7 [00:00<?, ?it/s]"
				"\r 43%|####2     | 3/7 [00:01<00:01,  2.00it/s]"
				"\r100%|##########| 7/7 [00:03<00:00,  2.00it/s]"
				"\r{'eval_loss': 2.5, 'epoch': 0.1}\n");
		read_log(h);
	}
	ck_assert_uint_eq(stats()->attempts, 0);
	ck_assert_uint_eq(stats()->repeated, 0);
	ck_assert_uint_eq(stats()->first, 1); /* 11: there is no step before */
	ck_assert_uint_eq(stats()->records, 29);
	one = item(0);
	ck_assert_uint_eq(one.first_index, 12);
	ck_assert_uint_eq(one.records[0].duration_ns, S);
	ls_wire_item_clear(&one);
}

static const struct {
	const char *line, *why;
} unfit[] = { { ":::MLLOG {\"key\": \"block_stop\"}\n",
		      "1 lines are MLPerf's :::MLLOG" },
	{ "{'loss': 0.5, 'grad_norm': 1.0, 'learning_rate': 5e-05, 'epoch': 0.1}\n",
		"1 lines are Hugging Face's Trainer: they have no number of a step" } };

LS_TEST_EACH(source_log, lines_without_a_step_or_a_time_are_refused_by_name, unfit)
{
	read_log(h);
	doctor_says(LS_DOCTOR_FAIL, "No such file");
	log_text(h, unfit[_i].line);
	read_log(h);
	doctor_says(LS_DOCTOR_WARN, unfit[_i].why);
}

/* --- two hosts, and the collector ----------------------------------------- */

LS_TEST(source_log, two_hosts_show_progress_and_blame_nobody)
{
	char dir[PATH_MAX];
	struct ls_test_core core = { 0 };
	struct ls_test_agent agents[HOSTS];
	unsigned i, step;

	close_host(h);
	(void)snprintf(dir, sizeof(dir), "%.4000s.collector", hosts[0].dir);
	ls_test_core_open(&core, dir);
	for (i = 0; i < HOSTS; i++) {
		ls_test_agent_init(&agents[i], (int32_t)i, true);
		open_host(&hosts[i], "maxtext", (int32_t)i);
		memcpy(agents[i].report.boot, ls_spool_boot(hosts[i].spool),
			LS_BOOT_BYTES);
		read_log(&hosts[i]);
	}
	/* The second one is late and long at every step, and much more so from step 150
	 * on. */
	for (step = 0; step < 400; step++) {
		log_step(&hosts[0], step, 0.9 + (step * 7 % 10) * 0.01);
		log_step(&hosts[1], step,
			(step < 150 ? 1.0 : 1.6) + (step * 3 % 10) * 0.01);
		now += S / 5;
		for (i = 0; i < HOSTS; i++) {
			read_log(&hosts[i]);
			spooled_report(hosts[i].spool,
				ls_source_log_worker(&hosts[i].source), &core,
				&agents[i], now);
		}
	}
	spooled_one_job(&core, now, "maxtext", HOSTS, 390, "log");
	ls_test_core_close(&core);
}
