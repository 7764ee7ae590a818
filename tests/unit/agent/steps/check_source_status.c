/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/source_status.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/steps/inferred.h"
#include "proto/base/log.h"
#include "tests/support/harness.h"
#include "tests/support/spooled.h"
#include "tests/support/step_ring.h"
#include "tests/support/tree.h"

#define S 1000000000ull
#define HOSTS 2
#define TRAIN 11u

static const uint8_t boot_id[16];

/* A host: its cores, its rings, its spool, its source. */
struct host {
	char dir[PATH_MAX], rings[PATH_MAX];
	struct ls_tpu_progress *progress;
	struct ls_spool *spool;
	struct ls_source_step *steps;
	struct ls_source source;
	bool has_source;
	int32_t launch;
};

static struct host hosts[HOSTS];
static struct host *const h = &hosts[0];
static uint64_t now;
static struct ls_sample sample;

static void
open_agent(struct host *x, bool has_log)
{
	struct ls_source_status_options o = { .has_log = has_log };

	x->progress = calloc(1, sizeof(*x->progress));
	ck_assert_ptr_nonnull(x->progress);
	ck_assert_int_eq(ls_spool_open(x->dir, LS_SPOOL_MIN_BYTES, boot_id, &x->spool),
		0);
	ck_assert_int_eq(ls_source_step_new(x->rings, boot_id, x->spool, &x->steps), 0);
	o.progress = x->progress;
	o.spool = x->spool;
	o.steps = x->steps;
	ck_assert_int_eq(ls_source_status_new(&o, &x->source), 0);
	x->has_source = true;
}

static void
close_agent(struct host *x)
{
	if (x->has_source)
		x->source.free(x->source.self);
	x->has_source = false;
	ls_source_step_free(x->steps);
	ls_spool_close(x->spool);
	free(x->progress);
	x->steps = NULL;
	x->spool = NULL;
	x->progress = NULL;
}

static void
setup(void)
{
	size_t i;

	ls_log_set_level(LS_LOG_ERR);
	now = 1000 * S;
	for (i = 0; i < HOSTS; i++) {
		memset(&hosts[i], 0, sizeof(hosts[i]));
		(void)snprintf(hosts[i].dir, sizeof(hosts[i].dir), "%s",
			ls_test_tmpdir());
		(void)snprintf(hosts[i].rings, sizeof(hosts[i].rings), "%.4000s/rings",
			hosts[i].dir);
		tree_write(hosts[i].dir, "rings/x", "");
	}
	open_agent(h, false);
	ls_source_status_who(&h->source, "llama", "s0", 3, 4);
}

static void
teardown(void)
{
	size_t i;

	for (i = 0; i < HOSTS; i++)
		close_agent(&hosts[i]);
}

/* Reads what was seen up to now. */
static void
read_status(struct host *x)
{
	ls_source_step_read(x->steps, now);
	x->source.read(x->source.self, LS_CADENCE_FAST, now, &sample);
}

/* A look at a core that launched so often since the look before. */
static void
look(struct host *x, int32_t launches)
{
	struct ls_tpu_status status = { .count = 1 };

	x->launch += launches;
	status.core[0] = (struct ls_tpu_core){ .type = 1,
		.program = TRAIN,
		.has_launch = true,
		.launch_id = x->launch,
		.motion = (uint64_t)x->launch };
	ls_tpu_progress_feed(x->progress, &status, now);
	read_status(x);
}

/* Seconds of a job with so many launches in each. */
static void
run(struct host *x, unsigned seconds, int32_t launches)
{
	while (seconds-- > 0) {
		now += S;
		look(x, launches);
	}
}

static const struct ls_source_status_stats *
stats(void)
{
	return ls_source_status_get_stats(&h->source);
}

static const struct ls_wire_worker *
worker(size_t i)
{
	return ls_source_status_worker(&h->source, i);
}

static size_t
items(void)
{
	return (size_t)(ls_spool_next(h->spool) - 1 - ls_spool_acked(h->spool));
}

static struct ls_wire_item
item(size_t i)
{
	return spooled_item(h->spool, i);
}

static struct ls_doctor_check
tell(void)
{
	static struct ls_doctor d;

	memset(&d, 0, sizeof(d));
	h->source.tell(h->source.self, &d);
	ck_assert_uint_eq(d.count, 1);
	return d.check[0];
}

LS_CASE(source_status, setup, teardown);

LS_TEST(source_status, launches_become_records_of_one_worker)
{
	struct ls_wire_item one;

	/* the first look counts nothing, the second one begins the watch */
	run(h, 11, 2);
	ck_assert_ptr_null(worker(0));
	ck_assert_uint_eq(items(), 0);
	ck_assert_int_eq(tell().status, LS_DOCTOR_NONE);
	run(h, 1, 2);
	ck_assert_str_eq(worker(0)->info.job, "llama");
	ck_assert_str_eq(worker(0)->info.slice, "s0");
	ck_assert_int_eq(worker(0)->info.rank, 3);
	ck_assert_int_eq(worker(0)->info.chips, 4);
	ck_assert_int_eq(worker(0)->info.step_source, LS_STEP_RUNTIME_STATUS);
	/* 22 / 24 of the count, 0.5 / 1.5 of the time */
	ck_assert_double_eq_tol(worker(0)->info.step_confidence, 22.0 / 24 / 3, 1e-9);
	ck_assert(ls_inferred_is(worker(0)->ring_id));
	ck_assert_ptr_null(worker(1));
	run(h, 1, 2);
	ck_assert_uint_eq(items(), 1);
	one = item(0);
	ck_assert_int_eq(one.kind, LS_WIRE_STEPS);
	ck_assert_uint_eq(one.first_index, 0);
	ck_assert_uint_eq(one.count, 2);
	ck_assert_uint_eq(one.records[1].step, 1);
	ck_assert_uint_eq(one.records[1].duration_ns, S / 2);
	/* ends when seen */
	ck_assert_int_eq(one.records[1].t_begin_ns, (int64_t)(now - S / 2));
	ck_assert_int_eq(one.records[0].t_begin_ns, (int64_t)(now - S));
	ck_assert_uint_eq(one.records[0].phase_mask, 0);
	ck_assert_uint_eq(one.records[0].barrier_count, 0);
	ls_wire_item_clear(&one);
	run(h, 2, 0); /* nothing moves: nothing is told */
	ck_assert_uint_eq(items(), 1);
	run(h, 1, 1); /* and that step was long */
	one = item(1);
	ck_assert_uint_eq(one.records[0].step, 2);
	ck_assert_uint_eq(one.records[0].duration_ns, 3 * S);
	ls_wire_item_clear(&one);
	ck_assert_uint_eq(stats()->records, 3);
	ck_assert_int_eq(tell().status, LS_DOCTOR_OK);
}

LS_TEST(source_status, a_few_launches_are_no_job)
{
	run(h, 1, 0);
	run(h, 1, 1);
	run(h, 30, 0);
	run(h, 1, 1);
	run(h, 20, 0);
	ck_assert_ptr_null(worker(0));
	ck_assert_uint_eq(items(), 0);
}

LS_TEST(source_status, who_it_is_must_be_known)
{
	struct ls_doctor_check c;

	ls_source_status_who(&h->source, "", "", -1, 0);
	run(h, 20, 2);
	c = tell();
	ck_assert_int_eq(c.status, LS_DOCTOR_WARN);
	ck_assert_ptr_nonnull(strstr(c.why, "the job is unknown"));
	ck_assert_ptr_nonnull(strstr(c.fix, "--job"));
	ls_source_status_who(&h->source, "found", "", -1, 0);
	run(h, 5, 2);
	c = tell();
	ck_assert_ptr_nonnull(strstr(c.why, "the number of this host is unknown"));
	ck_assert_ptr_nonnull(strstr(c.fix, "--worker-id"));
	ck_assert_ptr_null(worker(0));
	ck_assert_uint_eq(items(), 0);
	ls_source_status_who(&h->source, "found", "", 7, 0);
	run(h, 2, 2);
	ck_assert_str_eq(worker(0)->info.job, "found");
	ck_assert_int_eq(worker(0)->info.rank, 7);
}

LS_TEST(source_status, marks_end_it)
{
	struct step_ring ring;
	struct ls_wire_item one;

	run(h, 15, 2);
	ck_assert_uint_eq(items(), 3);
	step_ring_make(&ring, h->rings, "a.ring", 7, 16);
	step_ring_lock(&ring);
	run(h, 2, 2); /* the reading that sees the ring is the last */
	ck_assert_uint_eq(items(), 5);
	one = item(4);
	ck_assert_int_eq(one.kind, LS_WIRE_END);
	ck_assert_uint_eq(one.count, 8);
	ck_assert_mem_eq(one.ring_id, worker(0)->ring_id, LS_RING_ID_BYTES);
	ck_assert_ptr_nonnull(strstr(tell().why, "the job sends marks"));
	run(h, 30, 2);
	ck_assert_uint_eq(items(), 5); /* and nothing else: no worker twice */
	ck_assert_ptr_nonnull(worker(0)); /* who it was may still be asked */
	ls_spool_ack(h->spool, ls_spool_next(h->spool) - 1);
	run(h, 1, 2);
	ck_assert_ptr_null(worker(0));
	step_ring_fini(&ring);
}

LS_TEST(source_status, marks_before_it_leave_no_worker)
{
	struct step_ring ring;

	step_ring_make(&ring, h->rings, "a.ring", 7, 16);
	step_ring_lock(&ring);
	run(h, 30, 2);
	ck_assert_ptr_null(worker(0));
	ck_assert_uint_eq(items(), 0);
	step_ring_fini(&ring);
}

LS_TEST(source_status, a_log_goes_before)
{
	static struct ls_doctor d;

	close_agent(h);
	open_agent(h, true);
	ls_source_status_who(&h->source, "llama", "", 3, 0);
	run(h, 30, 2);
	ck_assert_ptr_null(worker(0));
	ck_assert_uint_eq(items(), 0);
	h->source.tell(h->source.self, &d);
	ck_assert_uint_eq(d.count, 0); /* the log tells */
}

LS_TEST(source_status, a_restart_goes_on_with_the_next_number)
{
	uint8_t before[LS_RING_ID_BYTES];

	run(h, 17, 2);
	memcpy(before, worker(0)->ring_id, sizeof(before));
	ck_assert_uint_eq(ls_spool_ring_find(h->spool, before)->next, 10);
	close_agent(h);
	open_agent(h, false);
	ls_source_status_who(&h->source, "llama", "", 3, 0);
	run(h, 13, 2);
	ck_assert_mem_eq(worker(0)->ring_id, before, sizeof(before));
	ck_assert_ptr_null(worker(1));
	ck_assert_uint_eq(ls_spool_ring_find(h->spool, before)->next, 12);
	ck_assert_uint_eq(stats()->lost, 0);
}

LS_TEST(source_status, what_nobody_goes_on_with_ends)
{
	uint8_t before[LS_RING_ID_BYTES];
	unsigned i;

	run(h, 15, 2);
	memcpy(before, worker(0)->ring_id, sizeof(before));
	close_agent(h);
	open_agent(h, false); /* and the job is gone meanwhile */
	ls_source_status_who(&h->source, "llama", "", 3, 0);
	for (i = 0; i < 62; i++) {
		ck_assert_uint_eq(ls_spool_ring_find(h->spool, before)->end_seq, 0);
		now += S;
		read_status(h);
	}
	ck_assert_uint_ne(ls_spool_ring_find(h->spool, before)->end_seq, 0);
}

LS_TEST(source_status, without_status_it_ends_and_comes_back_as_another_ring)
{
	uint8_t before[LS_RING_ID_BYTES];
	struct ls_wire_item one;
	unsigned i;

	run(h, 15, 2);
	memcpy(before, worker(0)->ring_id, sizeof(before));
	run(h, 300, 0); /* cores that stand still are no end */
	ck_assert_uint_eq(items(), 3);
	for (i = 0; i < 61; i++) {
		now += S;
		read_status(h);
	}
	ck_assert_uint_eq(items(), 4);
	run(h, 14, 2);
	one = item(4);
	ck_assert_int_eq(one.kind, LS_WIRE_STEPS);
	ck_assert_uint_eq(one.records[0].step, 6); /* numbers go on */
	ck_assert_mem_eq(one.ring_id, worker(0)->ring_id, LS_RING_ID_BYTES);
	ck_assert_mem_ne(one.ring_id, before, sizeof(before));
	/* its End is not acknowledged */
	ck_assert_mem_eq(worker(1)->ring_id, before, sizeof(before));
	ls_wire_item_clear(&one);
	ls_spool_ack(h->spool, ls_spool_next(h->spool) - 1);
	run(h, 1, 2);
	ck_assert_ptr_null(worker(1));
	ck_assert_uint_eq(stats()->begun, 2);
}

LS_TEST(source_status, another_job_is_another_worker)
{
	struct ls_wire_item one;

	run(h, 15, 2);
	ls_source_status_who(&h->source, "other", "", 3, 0);
	run(h, 1, 2);
	/* what was launched before is still the old one's, and its End */
	ck_assert_uint_eq(items(), 5);
	one = item(4);
	ck_assert_int_eq(one.kind, LS_WIRE_END);
	run(h, 14, 2);
	ck_assert_str_eq(worker(0)->info.job, "other");
	ck_assert_str_eq(worker(1)->info.job, "llama");
}

LS_TEST(source_status, very_many_launches_are_a_gap_and_the_last_ones)
{
	struct ls_wire_item one;

	run(h, 13, 2);
	run(h, 1, 1000);
	one = item(1);
	ck_assert_int_eq(one.kind, LS_WIRE_GAP);
	ck_assert_uint_eq(one.count, 1000 - LS_STEPS_PER_ITEM);
	one = item(2);
	ck_assert_uint_eq(one.count, LS_STEPS_PER_ITEM);
	ck_assert_uint_eq(one.records[LS_STEPS_PER_ITEM - 1].step, 1001);
	ls_wire_item_clear(&one);
	ck_assert_uint_eq(stats()->lost, 1000 - LS_STEPS_PER_ITEM);
}

LS_TEST(source_status, a_full_spool_makes_a_gap_later)
{
	struct ls_wire_item filler = { .kind = LS_WIRE_GAP, .count = 1 };
	uint64_t before;

	run(h, 14, 1);
	while (ls_spool_push(h->spool, &filler) == 0)
		filler.first_index +=
			2; /* gaps cannot be dropped: then pushes are refused */
	before = stats()->records;
	run(h, 1, 1);
	ck_assert_uint_eq(stats()->refused, 1);
	ck_assert_uint_eq(stats()->records, before);
	ls_spool_ack(h->spool, ls_spool_next(h->spool) - 1);
	run(h, 1, 1);
	ck_assert_uint_eq(stats()->lost, 1);
	ck_assert_uint_eq(stats()->records, before + 1);
}

/* --- two hosts, and the collector ----------------------------------------- */

LS_TEST(source_status, two_hosts_show_progress_and_no_finding)
{
	char dir[PATH_MAX];
	struct ls_test_core core = { 0 };
	struct ls_test_agent agents[HOSTS];
	unsigned i, second;

	(void)snprintf(dir, sizeof(dir), "%.4000s/collector", hosts[0].dir);
	ls_test_core_open(&core, dir);
	open_agent(&hosts[1], false);
	for (i = 0; i < HOSTS; i++) {
		ls_source_status_who(&hosts[i].source, "plain", "", (int32_t)i, 4);
		ls_test_agent_init(&agents[i], (int32_t)i, true);
		memcpy(agents[i].report.boot, ls_spool_boot(hosts[i].spool),
			LS_BOOT_BYTES);
	}
	/* The second one is seen one look later, counts from elsewhere, and stumbles
	 * again and again. */
	for (second = 0; second < 400; second++) {
		now += S;
		for (i = 0; i < HOSTS; i++) {
			if (i == 1 && second == 0)
				continue;
			look(&hosts[i],
				second % 5 == 4 && i == 1
					? 1
					: 2 + (second % 5 == 0 && i == 1));
			spooled_report(hosts[i].spool,
				ls_source_status_worker(&hosts[i].source, 0), &core,
				&agents[i], now);
		}
	}
	spooled_one_job(&core, now, "plain", HOSTS, 760, "runtime_status");
	ls_test_core_close(&core);
}
