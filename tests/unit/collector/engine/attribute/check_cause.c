/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/attribute/cause.h"

#include "tests/support/harness.h"

#include <math.h>
#include <string.h>

#define GAP_S 0.01

static struct ls_evidence
row(enum ls_signal signal, double subject, double p50)
{
	return (struct ls_evidence){ .signal = signal,
		.metric = "m",
		.unit = "s",
		.subject = subject,
		.p10 = p50,
		.p50 = p50,
		.p90 = p50,
		.peers = 3,
		.per_step_s = 1,
		.robust_z = NAN };
}

static const struct ls_hypothesis *
first(struct ls_evidence *rows, size_t n, bool ripe, struct ls_diagnosis *d)
{
	ls_cause_diagnose(rows, n, GAP_S, ripe, false, d);
	ck_assert_uint_ge(d->count, 1);
	ck_assert_uint_le(d->count, LS_HYPOTHESES_MAX);
	return &d->hypotheses[0];
}

LS_CASE(all);

LS_TEST(all, coverage_is_the_share_of_the_gap)
{
	struct ls_evidence r = row(LS_SIGNAL_INPUT, 0.012, 0.002);

	ck_assert_double_eq_tol(ls_cause_coverage(&r, 0.02), 0.5, 1e-12);
	ck_assert_double_nan(ls_cause_coverage(&r, 0));
	r.per_step_s = 0;
	ck_assert_double_nan(ls_cause_coverage(&r, 0.02));
	r = row(LS_SIGNAL_INPUT, NAN, 1);
	ck_assert_double_nan(ls_cause_coverage(&r, 0.02));
	r = row(LS_SIGNAL_INPUT, 1, NAN);
	ck_assert_double_nan(ls_cause_coverage(&r, 0.02));
}

LS_TEST_LOOP(all, what_grew_with_the_gap_is_named, 0, 9)
{
	static const struct {
		enum ls_signal signal;
		enum ls_cause cause;
	} table[] = {
		{ LS_SIGNAL_INPUT, LS_CAUSE_INPUT },
		{ LS_SIGNAL_CHECKPOINT, LS_CAUSE_CHECKPOINT },
		{ LS_SIGNAL_COMPILE, LS_CAUSE_COMPILE },
		{ LS_SIGNAL_GC, LS_CAUSE_GC },
		{ LS_SIGNAL_H2D, LS_CAUSE_H2D },
		{ LS_SIGNAL_DISPATCH, LS_CAUSE_DISPATCH },
		{ LS_SIGNAL_THROTTLED, LS_CAUSE_CPU_QUOTA },
		{ LS_SIGNAL_RUNQUEUE, LS_CAUSE_CPU_CONTENTION },
		{ LS_SIGNAL_CPU, LS_CAUSE_COMPUTE },
	};
	struct ls_evidence rows[2] = { row(table[_i].signal, 0.010, 0.001),
		row(LS_SIGNAL_OWN, 0.05, 0.04) };
	struct ls_diagnosis d;
	const struct ls_hypothesis *h = first(rows, 2, true, &d);

	ck_assert_int_eq(h->cause, table[_i].cause);
	ck_assert_double_eq_tol(h->coverage, 0.9, 1e-9);
	ck_assert_double_lt(h->confidence, 1);
	ck_assert_int_eq(rows[0].role, LS_EVIDENCE_SUPPORTS);
	ck_assert_int_eq(d.hypotheses[d.count - 1].cause, LS_CAUSE_UNEXPLAINED);
}

LS_TEST_LOOP(all, what_only_one_worker_does_explains_its_counters_too, 0, 3)
{
	static const enum ls_signal extra[] = { LS_SIGNAL_COMPILE, LS_SIGNAL_CHECKPOINT,
		LS_SIGNAL_GC };
	struct ls_evidence rows[4] = { row(extra[_i], 0.009, 0),
		row(LS_SIGNAL_RUNQUEUE, 0.03, 0.001), row(LS_SIGNAL_CPU, 0.02, 0.001),
		row(LS_SIGNAL_THROTTLED, 0.02, 0) };
	struct ls_diagnosis d;
	enum ls_cause cause = first(rows, 1, true, &d)->cause;

	ck_assert_int_eq(first(rows, 4, true, &d)->cause, cause);
	for (size_t i = 1; i < d.count; i++)
		ck_assert_double_le(d.hypotheses[i].confidence,
			d.hypotheses[i - 1].confidence);
	/* the others do it, too: it is no extra */
	rows[0] = row(extra[_i], 0.012, 0.003);
	ck_assert_int_eq(first(rows, 3, true, &d)->cause, LS_CAUSE_CPU_CONTENTION);
	rows[0] = row(extra[_i], 0.007, 0); /* does not explain enough */
	ck_assert_int_eq(first(rows, 3, true, &d)->cause, LS_CAUSE_CPU_CONTENTION);
}

LS_TEST(all, less_than_80_percent_is_unexplained)
{
	struct ls_evidence rows[] = { row(LS_SIGNAL_INPUT, 0.007, 0),
		row(LS_SIGNAL_GC, 0.001, 0) };
	struct ls_diagnosis d;

	ck_assert_int_eq(first(rows, 2, true, &d)->cause, LS_CAUSE_UNEXPLAINED);
	ck_assert_int_eq(d.hypotheses[1].cause, LS_CAUSE_INPUT); /* but it is told */
	ck_assert_int_eq(rows[0].role, LS_EVIDENCE_SUPPORTS);
	ck_assert_int_eq(rows[1].role, LS_EVIDENCE_EXCLUDES);
	ck_assert_int_eq(rows[1].cause, LS_CAUSE_GC);
}

LS_TEST(all, nothing_known_is_unexplained)
{
	struct ls_evidence rows[] = { row(LS_SIGNAL_INPUT, NAN, 0),
		row(LS_SIGNAL_WORK, NAN, 1), row(LS_SIGNAL_CPU, NAN, 1) };
	struct ls_diagnosis d;

	ck_assert_int_eq(first(NULL, 0, false, &d)->cause, LS_CAUSE_UNEXPLAINED);
	ck_assert_int_eq(first(rows, 3, true, &d)->cause, LS_CAUSE_UNEXPLAINED);
	ck_assert_uint_eq(d.count, 1);
	ck_assert_double_eq(d.hypotheses[0].confidence, 1);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(rows[i].role, LS_EVIDENCE_NOT_MEASURED);
}

LS_TEST(all, counters_that_are_not_ripe_do_not_judge)
{
	struct ls_evidence rows[] = { row(LS_SIGNAL_RUNQUEUE, 0.01, 0) };
	struct ls_diagnosis d;

	ck_assert_int_eq(first(rows, 1, false, &d)->cause, LS_CAUSE_UNEXPLAINED);
	ck_assert_int_eq(rows[0].role, LS_EVIDENCE_CONTEXT);
}

LS_TEST(all, more_work_is_imbalance_and_not_slow_compute)
{
	/* twice the tokens of its peers, whose own work takes 10 ms */
	struct ls_evidence rows[] = { row(LS_SIGNAL_WORK, 1024, 512),
		row(LS_SIGNAL_OWN, 0.020, 0.010), row(LS_SIGNAL_CPU, 0.020, 0.010) };
	struct ls_diagnosis d;

	rows[0].per_step_s = 0;
	ck_assert_int_eq(first(rows, 3, true, &d)->cause, LS_CAUSE_IMBALANCE);
	ck_assert_int_eq(rows[0].role, LS_EVIDENCE_SUPPORTS);
	for (size_t i = 0; i < d.count; i++)
		ck_assert_int_ne(d.hypotheses[i].cause, LS_CAUSE_COMPUTE);
}

/* Twice as much in its fullest expert, which no counter of the host sees. */
LS_TEST(all, a_fuller_expert_is_imbalance_and_not_slow_compute)
{
	struct ls_evidence rows[] = { row(LS_SIGNAL_LOAD, 2.4, 1.2),
		row(LS_SIGNAL_OWN, 0.020, 0.010), row(LS_SIGNAL_COMPUTE, 0.019, 0.009),
		row(LS_SIGNAL_RUNQUEUE, 0.001, 0.001), row(LS_SIGNAL_CPU, 0.009, 0.009),
		row(LS_SIGNAL_WORK, 512, 512) };
	struct ls_diagnosis d;

	rows[0].per_step_s = rows[5].per_step_s = 0;
	ls_cause_diagnose(rows, 6, GAP_S, true, true, &d);
	ck_assert_int_eq(d.hypotheses[0].cause, LS_CAUSE_IMBALANCE);
	ck_assert_int_eq(rows[5].role, LS_EVIDENCE_EXCLUDES);
	for (size_t i = 0; i < d.count; i++)
		ck_assert_int_ne(d.hypotheses[i].cause, LS_CAUSE_COMPUTE);
	rows[0].subject = 1.2;
	ls_cause_diagnose(rows, 6, GAP_S, true, true, &d);
	ck_assert_int_eq(d.hypotheses[0].cause, LS_CAUSE_COMPUTE);
}

/* Why it launched late stands before that it did. */
LS_TEST_LOOP(all, a_late_launch_is_explained_by_what_kept_it, 0, 2)
{
	static const struct {
		enum ls_signal signal;
		enum ls_cause cause;
	} kept[] = { { LS_SIGNAL_RUNQUEUE, LS_CAUSE_CPU_CONTENTION },
		{ LS_SIGNAL_THROTTLED, LS_CAUSE_CPU_QUOTA } };
	struct ls_evidence rows[] = { row(LS_SIGNAL_DISPATCH, 0.011, 0.001),
		row(kept[_i].signal, 0.009, 0), row(LS_SIGNAL_CPU, 0.005, 0.005) };
	struct ls_diagnosis d;

	ck_assert_int_eq(first(rows, 3, true, &d)->cause, kept[_i].cause);
	ck_assert_int_eq(d.hypotheses[1].cause, LS_CAUSE_DISPATCH);
	rows[2].subject = 0.014; /* it did more itself */
	ck_assert_int_eq(first(rows, 3, true, &d)->cause, LS_CAUSE_DISPATCH);
	rows[2].subject = 0.005;
	rows[1].subject = 0.004; /* kept it, but not for so long */
	ck_assert_int_eq(first(rows, 3, true, &d)->cause, LS_CAUSE_DISPATCH);
	rows[1].subject = 0.009; /* nor by counters that are not ripe */
	ck_assert_int_eq(first(rows, 3, false, &d)->cause, LS_CAUSE_DISPATCH);
}

LS_TEST(all, a_slow_copy_is_no_standstill)
{
	struct ls_evidence rows[] = { row(LS_SIGNAL_OWN, 0.020, 0.010),
		row(LS_SIGNAL_H2D, 0.011, 0.001), row(LS_SIGNAL_RUNQUEUE, 0.001, 0.001),
		row(LS_SIGNAL_CPU, 0.009, 0.009) };
	struct ls_diagnosis d;

	ck_assert_int_eq(first(rows, 4, true, &d)->cause, LS_CAUSE_H2D);
	for (size_t i = 0; i < d.count; i++)
		ck_assert_int_ne(d.hypotheses[i].cause, LS_CAUSE_STOPPED);
}

/* What a worker measures of itself, in whatever part of its gap, was no standstill. */
LS_TEST_LOOP(all, what_is_measured_is_no_standstill, 0, 3)
{
	static const enum ls_signal extra[] = { LS_SIGNAL_COMPILE, LS_SIGNAL_CHECKPOINT,
		LS_SIGNAL_GC };
	struct ls_evidence rows[] = { row(LS_SIGNAL_OWN, 0.020, 0.010),
		row(extra[_i], 0.0115, 0.003), row(LS_SIGNAL_RUNQUEUE, 0.001, 0.001),
		row(LS_SIGNAL_CPU, 0.009, 0.009) };
	struct ls_diagnosis d;

	ck_assert_double_eq_tol(first(rows, 4, true, &d)->coverage, 0.85, 1e-9);
	for (size_t i = 0; i < d.count; i++)
		ck_assert_int_ne(d.hypotheses[i].cause, LS_CAUSE_STOPPED);
}

LS_TEST(all, wall_time_without_cpu_or_queue_is_stopped)
{
	struct ls_evidence rows[] = { row(LS_SIGNAL_OWN, 0.020, 0.010),
		row(LS_SIGNAL_RUNQUEUE, 0.001, 0.001), row(LS_SIGNAL_CPU, 0.009, 0.009),
		row(LS_SIGNAL_THROTTLED, 0, 0), row(LS_SIGNAL_INPUT, 0, 0) };
	struct ls_diagnosis d;

	ck_assert_int_eq(first(rows, 5, true, &d)->cause, LS_CAUSE_STOPPED);
	rows[3].subject = 0.009; /* the quota explains it */
	ck_assert_int_eq(first(rows, 5, true, &d)->cause, LS_CAUSE_CPU_QUOTA);
}

/* Steadily so, and in its computation: no counter of the host sees a chip. */
LS_TEST(all, steady_computation_without_cpu_is_a_slow_chip)
{
	struct ls_evidence rows[] = { row(LS_SIGNAL_OWN, 0.020, 0.010),
		row(LS_SIGNAL_COMPUTE, 0.019, 0.009),
		row(LS_SIGNAL_RUNQUEUE, 0.001, 0.001),
		row(LS_SIGNAL_CPU, 0.009, 0.009) };
	struct ls_diagnosis d;

	ls_cause_diagnose(rows, 4, GAP_S, true, true, &d);
	ck_assert_int_eq(d.hypotheses[0].cause, LS_CAUSE_COMPUTE);
	ck_assert_int_eq(rows[1].role, LS_EVIDENCE_SUPPORTS);
	/* in some steps only */
	ck_assert_int_eq(first(rows, 4, true, &d)->cause, LS_CAUSE_STOPPED);
	rows[1].subject = 0.011; /* elsewhere */
	ls_cause_diagnose(rows, 4, GAP_S, true, true, &d);
	ck_assert_int_eq(d.hypotheses[0].cause, LS_CAUSE_STOPPED);
	ls_cause_diagnose(rows, 4, GAP_S, false, true, &d); /* no counters: who knows */
	ck_assert_int_eq(d.hypotheses[0].cause, LS_CAUSE_UNEXPLAINED);
}

LS_TEST(all, best_explanations_come_first_and_unexplained_keeps_its_place)
{
	struct ls_evidence rows[] = { row(LS_SIGNAL_GC, 0.003, 0),
		row(LS_SIGNAL_INPUT, 0.009, 0), row(LS_SIGNAL_COMPILE, 0.004, 0),
		row(LS_SIGNAL_H2D, 0.005, 0), row(LS_SIGNAL_DISPATCH, 0.006, 0) };
	struct ls_diagnosis d;

	ck_assert_int_eq(first(rows, 5, true, &d)->cause, LS_CAUSE_INPUT);
	ck_assert_uint_eq(d.count, LS_HYPOTHESES_MAX);
	ck_assert_int_eq(d.hypotheses[1].cause, LS_CAUSE_DISPATCH);
	ck_assert_int_eq(d.hypotheses[2].cause, LS_CAUSE_H2D);
	ck_assert_int_eq(d.hypotheses[3].cause, LS_CAUSE_UNEXPLAINED);
}

/* One of them is the cause: what the first leaves is shared by all others. */
LS_TEST(all, confidences_add_up_to_one)
{
	struct ls_evidence rows[] = { row(LS_SIGNAL_DISPATCH, 0.0104, 0.001),
		row(LS_SIGNAL_RUNQUEUE, 0.0102, 0.001),
		row(LS_SIGNAL_INPUT, 0.004, 0.001) };
	struct ls_diagnosis d;
	double sum = 0;

	ck_assert_double_gt(first(rows, 3, true, &d)->confidence, 0.8);
	for (size_t i = 0; i < d.count; i++)
		sum += d.hypotheses[i].confidence;
	ck_assert_double_eq_tol(sum, 1, 1e-9);
	ck_assert_uint_ge(d.count, 3);
	ck_assert_double_lt(d.hypotheses[1].confidence, 0.2);
}

LS_TEST(all, every_cause_has_words)
{
	for (unsigned c = 0; c < LS_CAUSE_COUNT; c++) {
		const struct ls_cause_info *info = ls_cause_info((enum ls_cause)c);

		ck_assert_uint_gt(strlen(info->name), 0);
		ck_assert_uint_gt(strlen(info->title), 0);
		ck_assert_uint_gt(strlen(info->action), 0);
		ck_assert_uint_gt(strlen(info->command), 0);
		for (unsigned other = 0; other < c; other++)
			ck_assert_str_ne(info->name,
				ls_cause_info((enum ls_cause)other)->name);
	}
}

/* Its run-queue wait would explain the gap, but peers differ by as much: it is not named. */
LS_TEST_LOOP(all, a_counter_within_its_peers_spread_names_nothing, 0, 2)
{
	static const enum ls_signal counters[] = { LS_SIGNAL_RUNQUEUE, LS_SIGNAL_CPU };
	struct ls_evidence rows[2] = { row(counters[_i], 0.070, 0.060),
		row(LS_SIGNAL_OWN, 0.05, 0.04) };
	struct ls_diagnosis d;

	rows[0].robust_z = 1.6;
	ck_assert_int_eq(first(rows, 2, true, &d)->cause, LS_CAUSE_UNEXPLAINED);
	ck_assert_int_eq(rows[0].role, LS_EVIDENCE_CONTEXT);
	rows[0].robust_z = 4;
	ck_assert_int_ne(first(rows, 2, true, &d)->cause, LS_CAUSE_UNEXPLAINED);
}
