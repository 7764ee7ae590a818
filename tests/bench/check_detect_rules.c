/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include "tests/bench/detect_rules.h"
#include "tests/bench/detect_sum.h"
#include "tests/support/harness.h"

LS_CASE(rules);

LS_TEST(rules, xprof_flags_both_directions)
{
	/* deviations from 0.20: median of them 0.01; 0.6745 x 0.06 / 0.01 = 4.05, x
	 * 0.05: 3.37 */
	double ratio[] = { 0.19, 0.20, 0.21, 0.20, 0.14, 0.25, 0.19, 0.21, 0.26 };
	double scratch[9];
	bool flags[9];
	size_t i;

	ck_assert_uint_eq(rule_xprof(ratio, 9, scratch, flags), 2);
	for (i = 0; i < 9; i++)
		ck_assert(flags[i] == (i == 4 || i == 8));
}

LS_TEST(rules, xprof_wants_three_hosts_and_has_a_least_spread)
{
	double two[] = { 0.1, 0.9 }, alike[] = { 0.2, 0.2, 0.2, 0.2051, 0.2053, NAN };
	double scratch[6];
	bool flags[6];

	ck_assert_uint_eq(rule_xprof(two, 2, scratch, flags), 0);
	/* the spread counts as 0.001: 0.6745 x 0.0051 / 0.001 = 3.44 */
	ck_assert_uint_eq(rule_xprof(alike, 6, scratch, flags), 1);
	ck_assert(flags[4] && !flags[3] && !flags[5]);
}

LS_TEST(rules, nvrx_compares_with_the_fastest)
{
	double own[] = { 0.75, 1.0, 1.01, NAN };
	bool flags[4];

	ck_assert_uint_eq(rule_nvrx(own, 4, flags), 1);
	ck_assert(!flags[0] && !flags[1] && flags[2] && !flags[3]);
}

LS_TEST(rules, traceml_blames_who_waits_least)
{
	double wait[] = { 0.30, 0.31, 0.19, 0.29, NAN }, step[] = { 1, 1, 1, 1, NAN },
	       scratch[5];
	size_t worker = 99;

	/* the upper median of four is the third: 0.30 - 0.19 = 11 % */
	ck_assert_int_eq(rule_traceml(wait, step, 5, 40, scratch, &worker), RULE_WARN);
	ck_assert_uint_eq(worker, 2);
	wait[2] = 0.09;
	ck_assert_int_eq(rule_traceml(wait, step, 5, 40, scratch, &worker),
		RULE_CRITICAL);
	ck_assert_int_eq(rule_traceml(wait, step, 5, 19, scratch, &worker), RULE_WARN);
	wait[2] = 0.21;
	ck_assert_int_eq(rule_traceml(wait, step, 5, 40, scratch, &worker), RULE_QUIET);
}

LS_CASE(sums);

LS_TEST(sums, bounds_are_those_of_the_poisson_tables)
{
	ck_assert_double_eq_tol(detect_poisson_bound(0), 2.995732, 1e-5);
	ck_assert_double_eq_tol(detect_poisson_bound(1), 4.743865, 1e-5);
	ck_assert_double_eq_tol(detect_poisson_bound(10), 16.962219, 1e-5);
	ck_assert_double_eq_tol(detect_poisson_bound(1000), 1053.6, 0.1);
}

static struct detect_run
run_of(uint32_t hosts, enum sim_fault_kind kind, double amount)
{
	struct detect_run run = { .steps = 300,
		.deadline = 60,
		.rules = true,
		.counters = true,
		.faults = 1 };

	sim_world_defaults(&run.world);
	run.world.hosts = hosts;
	run.fault[0] = (struct sim_fault){
		.kind = kind, .who = 5, .amount = amount, .from = 150, .to = 260
	};
	return run;
}

LS_CASE(runs);

LS_TEST(runs, a_gross_fault_is_found_and_set_against_the_truth)
{
	struct detect_run run = run_of(16, SIM_FAULT_CHIP, 0.5);
	struct detect_result a, b;

	ck_assert_int_eq(detect_run(&run, &a), 0);
	ck_assert_uint_ge(a.findings, 1);
	ck_assert_uint_eq(a.right, a.findings);
	ck_assert(a.first && a.third && a.named);
	ck_assert_uint_le(a.event[0].suspect, a.event[0].finding);
	ck_assert_uint_lt(a.event[0].finding, 60);
	ck_assert_double_eq_tol(a.event[0].cost_s, 0.4, 0.02);
	ck_assert_double_eq_tol(a.event[0].cost_found_s, a.event[0].cost_s, 0.2);
	/* 0.35 of a step beyond the others: XProf and TraceML see it, NVRx (1 / 1.5 =
	 * 0.67) too */
	ck_assert(a.rule_found[DETECT_XPROF][0] && a.rule_found[DETECT_NVRX][0] &&
		a.rule_found[DETECT_TRACEML][0]);
	ck_assert_int_eq(detect_run(&run, &b), 0);
	a.engine_ns = b.engine_ns = a.world_ns = b.world_ns = 0;
	ck_assert_uint_eq(a.findings, b.findings);
	ck_assert_uint_eq(a.event[0].finding, b.event[0].finding);
	ck_assert_double_eq(a.event[0].cost_found_s, b.event[0].cost_found_s);
}

LS_TEST(runs, a_drift_is_set_against_what_it_costs_now)
{
	struct detect_run run = run_of(16, SIM_FAULT_DRIFT, 0.05);
	struct detect_result r;
	double end;

	run.fault[0].from = 400;
	run.fault[0].to = run.steps = 3000;
	/* if all of a step were computation and no other ever late */
	end = 0.05 * 2600 / 3600 * run.world.step_s;
	ck_assert_int_eq(detect_run(&run, &r), 0);
	ck_assert(r.event[0].drift);
	/* on average, less than half of it */
	ck_assert(r.event[0].cost_s > 0.5 * end && r.event[0].cost_s < end);
	ck_assert_double_eq_tol(r.event[0].cost_found_s, r.event[0].cost_s, 0.1 * end);
}

LS_TEST(runs, where_nothing_tells_why_unexplained_is_right)
{
	struct detect_run run = run_of(16, SIM_FAULT_EVERY, 0.5);
	struct detect_result r;

	run.fault[0].to = run.steps = 1200;
	ck_assert_int_eq(detect_run(&run, &r), 0);
	ck_assert_uint_ne(r.event[0].finding, DETECT_NEVER);
	ck_assert(r.event[0].cause_right && !r.event[0].cause_named);
}

LS_TEST(runs, a_finding_about_another_is_false)
{
	/* the truth says that nothing is wrong with the whole job: whoever is blamed is
	 * blamed falsely */
	struct detect_run run = run_of(16, SIM_FAULT_LIES, 0);
	struct detect_result r;

	ck_assert_int_eq(detect_run(&run, &r), 0);
	ck_assert(!r.event[0].counts);
	ck_assert_uint_eq(r.right, 0);
	run.fault[1] = (struct sim_fault){
		.kind = SIM_FAULT_CHIP, .who = 7, .amount = 0.5, .from = 150, .to = 260
	};
	run.faults = 2;
	ck_assert_int_eq(detect_run(&run, &r), 0);
	ck_assert(!r.named); /* of two faults one is nobody's */
	ck_assert_uint_eq(r.event[0].finding, DETECT_NEVER);
	ck_assert_uint_ne(r.event[1].finding, DETECT_NEVER);
}

LS_TEST(runs, a_world_that_cannot_be_is_an_error)
{
	struct detect_run run = run_of(16, SIM_FAULT_CHIP, 0.5);
	struct detect_result r;

	run.fault[0].who = 16;
	ck_assert_int_eq(detect_run(&run, &r), -LS_ERANGE);
}
