/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/harness.h"
#include "deploy/demo/sim/fault.h"
#include "deploy/demo/sim/world.h"

static struct sim_world *
world_with(const struct sim_world_options *o, const char *faults)
{
	struct sim_fault f[SIM_FAULTS_MAX];
	char why[SIM_FAULT_WHY_BYTES];
	struct sim_world *w = NULL;
	size_t n;

	ck_assert_int_eq(sim_fault_parse_list(faults, f, &n, why), 0);
	ck_assert_int_eq(sim_world_new(o, f, n, &w, NULL), 0);
	return w;
}

static struct sim_world_options
world_of(uint32_t hosts)
{
	struct sim_world_options o;

	sim_world_defaults(&o);
	o.hosts = hosts;
	return o;
}

/* No noise, no dispersion: what can be reckoned by hand. Own work 0.8 s, transfer 0.14
 * s, the rest 0.01 s. */
static struct sim_world_options
world_still(uint32_t hosts)
{
	struct sim_world_options o = world_of(hosts);

	o.noise = 0;
	o.exit_spread_s = 0;
	return o;
}

static struct sim_truth
world_truth_after(struct sim_world *w, size_t steps)
{
	struct sim_world_step s;
	struct sim_truth truth;
	size_t i;

	for (i = 0; i < steps; i++)
		sim_world_next(w, &s);
	sim_world_truth(w, 0, &truth);
	return truth;
}

/* --- noise ---------------------------------------------------------------- */

LS_CASE(noise);

LS_TEST(noise, noise_has_mean_0_and_deviation_1)
{
	struct sim_noise noise;
	int kind, n = 400000, i;

	for (kind = 0; kind < SIM_NOISE_KIND_COUNT; kind++) {
		uint64_t key = sim_noise_key(7, 1, 2);
		double sum = 0, square = 0;
		int beyond = 0;

		sim_noise_init(&noise, (enum sim_noise_kind)kind);
		for (i = 0; i < n; i++) {
			double x = sim_noise_draw(&noise, key, (uint64_t)i);

			sum += x;
			square += x * x;
			beyond += fabs(x) > 4;
		}
		ck_assert_double_lt(fabs(sum / n), 0.01);
		ck_assert_double_lt(fabs(square / n - 1), 0.05);
		/* beyond 4 deviations: 6.3e-5 of a normal's, 4.8e-3 of t4's */
		if (kind == SIM_NOISE_GAUSS)
			ck_assert_int_lt(beyond, 60);
		else
			ck_assert_int_gt(beyond, 1500);
	}
}

LS_TEST(noise, quantiles_are_those_of_the_tables)
{
	ck_assert_double_eq_tol(sim_noise_quantile(SIM_NOISE_GAUSS, 0.975), 1.959963985,
		1e-8);
	ck_assert_double_eq_tol(sim_noise_quantile(SIM_NOISE_GAUSS, 1e-9), -5.997807015,
		1e-6);
	/* t4 at 0.975 is 2.776445; its deviation is the root of 2 */
	ck_assert_double_eq_tol(sim_noise_quantile(SIM_NOISE_T4, 0.975),
		2.776445105 / sqrt(2), 1e-8);
	ck_assert_double_eq_tol(sim_noise_quantile(SIM_NOISE_T4, 0.005),
		-4.604094871 / sqrt(2), 1e-8);
	ck_assert_double_eq(sim_noise_quantile(SIM_NOISE_T4, 0.5), 0);
}

/* --- healthy -------------------------------------------------------------- */

LS_CASE(healthy);

LS_TEST(healthy, a_healthy_world_has_equal_totals)
{
	struct sim_world_options o = world_of(32);
	struct sim_world *w;
	struct sim_world_step s;
	struct ls_record r;
	double least = 1e9, most = 0;
	uint32_t i;

	o.stages = 4;
	o.slices = 2;
	w = world_with(&o, "none");
	sim_world_next(w, &s);
	sim_world_next(w, &s);
	for (i = 0; i < 32; i++) {
		ck_assert(sim_world_record(w, i, &r));
		ck_assert_int_eq(ls_record_check(&r, NULL), 0);
		ck_assert_uint_eq(r.step, 1);
		ck_assert_uint_eq(r.barrier_count, 2);
		least = fmin(least, (double)r.duration_ns * 1e-9);
		most = fmax(most, (double)r.duration_ns * 1e-9);
	}
	/* dispersion of exits, 20 us either way */
	ck_assert_double_lt(most / least, 1.001);
	sim_world_free(w);
}

LS_TEST(healthy, the_same_seed_is_the_same_world)
{
	struct sim_world_options o = world_of(16);
	struct sim_world *a, *b, *c;
	struct sim_world_step sa, sb, sc;
	uint32_t i, step, differ = 0;

	o.burst_steps = 20;
	o.missing = 0.1;
	a = world_with(&o, "cpu:3:10%@2-");
	b = world_with(&o, "cpu:3:10%@2-");
	o.seed = 2;
	c = world_with(&o, "cpu:3:10%@2-");
	for (step = 0; step < 50; step++) {
		sim_world_next(a, &sa);
		sim_world_next(b, &sb);
		sim_world_next(c, &sc);
		ck_assert_mem_eq(&sa, &sb, sizeof(sa));
		differ += sa.end_us != sc.end_us;
		for (i = 0; i < 16; i++) {
			struct ls_record ra = { 0 }, rb = { 0 };

			ck_assert(sim_world_record(a, i, &ra) ==
				sim_world_record(b, i, &rb));
			ck_assert_mem_eq(&ra, &rb, sizeof(ra));
		}
	}
	ck_assert_uint_gt(differ, 40);
	sim_world_free(a);
	sim_world_free(b);
	sim_world_free(c);
}

LS_TEST(healthy, a_fault_changes_nobody_elses_numbers)
{
	struct sim_world_options o = world_of(16);
	struct sim_world *a = world_with(&o, "none"),
			 *b = world_with(&o, "chip:3:10%@5-");
	struct sim_world_step s;
	uint32_t i, step;

	for (step = 0; step < 20; step++) {
		sim_world_next(a, &s);
		sim_world_next(b, &s);
		for (i = 0; i < 16; i++) {
			double own_a, own_b, wait;

			sim_world_split(a, i, &own_a, &wait);
			sim_world_split(b, i, &own_b, &wait);
			ck_assert_double_eq_tol(own_b,
				i == 3 && step >= 5 ? 1.1 * own_a : own_a, 1e-12);
		}
	}
	sim_world_free(a);
	sim_world_free(b);
}

/* Hosts of a rack have the same, others not; and a fault changes nothing of it. */
LS_TEST(healthy, hosts_of_a_rack_share_theirs)
{
	struct sim_world_options o = world_still(8);
	struct sim_world *w, *faulty;
	struct sim_world_step s;
	double own[8], wait, with;

	o.rack_hosts = 4;
	o.host_noise[o.host_noises++] =
		(struct sim_host_noise){ .kind = SIM_HOST_NOISE_WANDER,
			.scope = SIM_NOISE_OF_RACK,
			.size = 0.02,
			.keep = 0.98 };
	w = world_with(&o, "none");
	faulty = world_with(&o, "chip:3:10%");
	for (int step = 0; step < 20; step++) {
		sim_world_next(w, &s);
		sim_world_next(faulty, &s);
		for (uint32_t i = 0; i < 8; i++) {
			sim_world_split(w, i, &own[i], &wait);
			sim_world_split(faulty, i, &with, &wait);
			ck_assert_double_eq_tol(with, i == 3 ? 1.1 * own[i] : own[i],
				1e-9);
		}
		ck_assert_double_eq(own[0], own[3]);
		ck_assert_double_eq(own[4], own[7]);
		ck_assert_double_gt(fabs(own[0] - own[4]), 1e-6);
		ck_assert_double_lt(fabs(own[0] - 0.8), 0.2);
	}
	sim_world_free(w);
	sim_world_free(faulty);
}

/* A clock that ticks says nothing between two ticks, and no phase is longer than its step. */
LS_TEST(healthy, a_clock_that_ticks_reads_whole_ticks)
{
	struct sim_world_options o = world_of(8);
	struct sim_world *w;
	struct sim_world_step s;
	struct ls_record r;
	int64_t tick = 7000000;

	o.slices = 2;
	o.clock_tick_ns = (uint64_t)tick;
	w = world_with(&o, "none");
	for (uint32_t i = 0; i < 80; i++) {
		uint64_t phases = 0;

		if (i % 8 == 0)
			sim_world_next(w, &s);
		ck_assert(sim_world_record(w, i % 8, &r));
		ck_assert_int_eq(ls_record_check(&r, NULL), 0);
		ck_assert_int_eq(r.t_begin_ns % tick, 0);
		ck_assert_int_eq(r.barrier[1].exit_ns % tick, 0);
		ck_assert_uint_eq(r.duration_ns % (uint64_t)tick, 0);
		for (unsigned p = 0; p < LS_PHASE_COUNT; p++)
			phases += r.phase_ns[p];
		ck_assert_uint_le(phases, r.duration_ns);
	}
	sim_world_free(w);
}

/* --- faults --------------------------------------------------------------- */

/* Each fault, with what it adds and costs a step where nothing else happens; own work
 * is 0.8 s of 0.95 s. */
static const struct reckoned {
	const char *fault;
	double extra_s, cost_s;
} reckoned[] = {
	{ "compute:3:10%@1-", 0.08, 0.08 },
	{ "chip:3:10%@1-", 0.08, 0.08 },
	{ "h2d:3:5%@1-", 0.04, 0.04 },
	{ "imbalance:3:100%@1-", 0.8, 0.8 },
	{ "embedding:3:10%@1-", 0.08, 0.08 },
	{ "slice:1:10%@1-", 0.08, 0.08 },
	{ "rack:1:10%@1-", 0.08, 0.08 },
	{ "shard:1:10%@1-", 0.08, 0.08 },
	{ "starved:all:10%@1-", 0.08, 0.08 },
	{ "slower:all:10%@1-", 0.08, 0.08 },
	{ "ici:3:10%@1-", 0.1, 0.1 },
	{ "dcn:0+1:10%@1-", 0.1, 0.1 },
	{ "hang:3:40@1-2", 40, 40 },
	/* own work x 0.1 x hours: on average of the 100 steps 49.5 s */
	{ "drift:3:10%@1-", 0.08 * 49.5 / 3600, 0.08 * 49.5 / 3600 },
	{ "rack_drift:1:10%@1-", 0.08 * 49.5 / 3600, 0.08 * 49.5 / 3600 },
	{ "every:3:50%@1-", 0.005, 0.005 },
	{ "lies:3:0@1-", 0, 0 },
};

LS_CASE(faults);

LS_TEST_EACH(faults, a_fault_costs_what_is_reckoned_by_hand, reckoned)
{
	struct sim_world_options o = world_still(32);
	const struct reckoned *k = &reckoned[_i];
	struct sim_world *w;
	struct sim_truth t;

	o.slices = 2;
	w = world_with(&o, k->fault);
	t = world_truth_after(w, 101);
	ck_assert_uint_eq(t.steps, t.fault.kind == SIM_FAULT_HANG ? 1 : 100);
	ck_assert_double_eq_tol(t.extra_s, k->extra_s, 1e-6);
	ck_assert_double_eq_tol(t.cost_s, k->cost_s, 1e-6);
	sim_world_free(w);
}

LS_TEST(faults, of_two_equal_culprits_each_alone_costs_nothing)
{
	struct sim_world_options o = world_still(16);
	struct sim_world *w = world_with(&o, "chip:3:10%@0-,chip:5:10%@0-");
	struct sim_truth t = world_truth_after(w, 10);

	ck_assert_double_eq_tol(t.cost_s, 0, 1e-9);
	ck_assert_double_eq_tol(t.extra_s, 0.08, 1e-6);
	sim_world_free(w);
}

/* What is random in time comes to its amount on average, in the phase it belongs to. */
static const struct moved {
	const char *fault;
	enum ls_phase phase;
	double extra_s;
} moved[] = {
	{ "cpu:3:10%@0-", LS_PHASE_DISPATCH, 0.08 },
	{ "quota:3:10%@0-", LS_PHASE_COMPUTE, 0.08 },
	{ "input:3:10%@0-", LS_PHASE_INPUT_WAIT, 0.08 },
	{ "disk:3:10%@0-", LS_PHASE_INPUT_WAIT, 0.08 },
	{ "pause:3:10%@0-", LS_PHASE_COMPUTE, 0.08 },
	{ "compile:3:10%@0-", LS_PHASE_COMPILE, 0.08 },
	{ "saves:3:200%@0-", LS_PHASE_CHECKPOINT, 0.01 },
};

LS_TEST_EACH(faults, a_random_fault_comes_to_its_amount, moved)
{
	struct sim_world_options o = world_still(8);
	const struct moved *k = &moved[_i];
	struct sim_world *w = world_with(&o, k->fault),
			 *healthy = world_with(&o, "none");
	struct sim_world_step s;
	struct sim_truth t;
	double more = 0;
	int i;

	for (i = 0; i < 4000; i++) {
		struct ls_record r, h;

		sim_world_next(w, &s);
		sim_world_next(healthy, &s);
		ck_assert(sim_world_record(w, 3, &r) &&
			sim_world_record(healthy, 3, &h));
		ck_assert_int_eq(ls_record_check(&r, NULL), 0);
		more += (double)(r.phase_ns[k->phase] - h.phase_ns[k->phase]) * 1e-9;
	}
	sim_world_truth(w, 0, &t);
	ck_assert_double_eq_tol(t.extra_s, k->extra_s, 0.25 * k->extra_s);
	ck_assert_double_eq_tol(more / 4000, t.extra_s, 1e-4);
	ck_assert_double_eq_tol(t.cost_s, t.extra_s, 1e-6); /* it alone is late */
	sim_world_free(w);
	sim_world_free(healthy);
}

LS_TEST(faults, replicas_do_not_wait_for_each_other)
{
	struct sim_world_options o = world_still(8);
	struct sim_world *w;
	struct sim_world_step s;
	struct sim_truth t;
	struct ls_record r;
	uint32_t i;

	o.replicas = o.peers = true;
	w = world_with(&o, "chip:3:10%@0-");
	sim_world_next(w, &s);
	for (i = 0; i < 8; i++) {
		double own = 0.04 + 0.76 * 0.3, load;

		ck_assert(sim_world_record(w, i, &r));
		ck_assert_int_eq(ls_record_check(&r, NULL), 0);
		ck_assert_uint_eq(r.barrier_count, 0);
		ck_assert_uint_eq(r.peer_count, 0);
		ck_assert_uint_eq(r.phase_mask & 1u << LS_PHASE_SYNC_WAIT, 0);
		load = r.work[LS_WORK_TOKENS] / 4096;
		ck_assert(load > 0.5 && load < 1.5);
		own = (own + 0.76 * 0.7 * load) * (i == 3 ? 1.1 : 1);
		ck_assert_double_eq_tol((double)r.duration_ns * 1e-9, own, 1e-6);
		if (i == 3) {
			sim_world_truth(w, 0, &t);
			ck_assert_double_eq_tol(t.cost_s, own - own / 1.1, 1e-6);
		}
	}
	sim_world_free(w);
}

LS_TEST(faults, waits_on_peers_tell_both_ends_of_a_slow_link)
{
	struct sim_world_options o = world_still(8);
	struct sim_world *w;
	struct sim_world_step s;
	struct ls_record r;
	uint32_t i;

	o.peers = true;
	w = world_with(&o, "ici:7:20%@0-");
	sim_world_next(w, &s);
	for (i = 0; i < 8; i++) {
		ck_assert(sim_world_record(w, i, &r));
		ck_assert_uint_eq(r.peer_count, 2);
		ck_assert_uint_eq(r.peer[0].rank, (i + 7) % 8);
		ck_assert_uint_eq(r.peer[1].rank, (i + 1) % 8);
		if (i == 7)
			ck_assert_uint_gt(r.peer[1].send_wait_ns, 190000000);
		else
			ck_assert_uint_lt(r.peer[1].send_wait_ns, 1000000);
		if (i != 7)
			ck_assert_uint_gt(r.peer[0].recv_wait_ns, 300000000);
		else
			ck_assert_uint_lt(r.peer[0].recv_wait_ns, 140000000);
	}
	sim_world_free(w);
}

LS_TEST(faults, counters_move_with_their_fault)
{
	static const struct {
		const char *fault;
		uint16_t metric;
	} pairs[] = {
		{ "cpu:3:20%@0-", LS_METRIC_JOB_RUNQUEUE_WAIT },
		{ "quota:3:20%@0-", LS_METRIC_HOST_CPU_THROTTLED },
		{ "disk:3:20%@0-", LS_METRIC_HOST_PSI_IO },
		{ "loss:0+1:20%@0-", LS_METRIC_HOST_TCP_RETRANSMITS },
		{ "imbalance:3:20%@0-", LS_METRIC_JOB_CPU },
	};
	size_t p, i, k;

	for (p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
		struct sim_world_options o = world_of(8);
		struct sim_world *w[2];
		double value[2] = { -1, -1 };
		struct sim_world_step s;

		o.slices = 2;
		w[0] = world_with(&o, "none");
		w[1] = world_with(&o, pairs[p].fault);
		for (i = 0; i < 200; i++)
			for (k = 0; k < 2; k++) {
				uint16_t metric[LS_HOT_MAX];
				double v[LS_HOT_MAX];
				size_t n, m;

				sim_world_next(w[k], &s);
				n = sim_world_counters(w[k], 3, s.end_us, metric, v);
				ck_assert_uint_le(n, LS_HOT_MAX);
				for (m = 0; m < n; m++)
					if (metric[m] == pairs[p].metric) {
						/* they never fall */
						ck_assert_double_ge(v[m], value[k]);
						value[k] = v[m];
					}
			}
		ck_assert_double_gt(value[1], 1.2 * value[0] + 1);
		sim_world_free(w[0]);
		sim_world_free(w[1]);
	}
}

LS_TEST(faults, a_hang_shows_who_is_still_at_work)
{
	struct sim_world_options o = world_of(4);
	struct sim_world *w = world_with(&o, "hang:2:40@1-2");
	struct sim_world_step s;
	struct ls_ring_live live;
	int64_t since;
	uint32_t i;

	sim_world_next(w, &s);
	ck_assert_double_eq(s.hang_s, 0);
	sim_world_next(w, &s);
	ck_assert_double_gt(s.hang_s, 39);
	for (i = 0; i < 4; i++) {
		sim_world_live(w, i, s.begin_us + 20000000, &live, &since);
		ck_assert_uint_eq(live.step, 1);
		ck_assert_uint_eq(live.phase,
			i == 2 ? LS_PHASE_COMPUTE : LS_PHASE_SYNC_WAIT);
		ck_assert_int_lt(since, s.begin_us + 1000000);
	}
	sim_world_free(w);
}

LS_TEST(faults, lies_are_of_four_kinds)
{
	struct sim_world_options o = world_of(4);
	struct sim_world *w = world_with(&o, "lies:2:0@0-");
	struct sim_world_step s;
	struct ls_record lie, truth;
	int step;

	for (step = 0; step < 8; step++) {
		sim_world_next(w, &s);
		ck_assert(!sim_world_lie(w, 1, &lie));
		ck_assert(sim_world_lie(w, 2, &lie));
		ck_assert(sim_world_record(w, 2, &truth));
		ck_assert_int_eq(ls_record_check(&truth, NULL), 0);
		ck_assert_int_eq(ls_record_check(&lie, NULL),
			step % 4 < 2 ? -LS_ERANGE : 0);
		ck_assert_uint_eq(lie.step,
			step % 4 == 3 ? (unsigned)step / 2 : (unsigned)step);
	}
	sim_world_free(w);
}

/* --- options -------------------------------------------------------------- */

LS_CASE(words);

LS_TEST(words, faults_are_read_and_written)
{
	struct sim_fault f[SIM_FAULTS_MAX];
	char why[SIM_FAULT_WHY_BYTES], text[SIM_FAULT_TEXT_BYTES];
	size_t n;

	ck_assert_int_eq(sim_fault_parse_list(
				 "compute:5:3%@200-600,dcn:0+2:0.05,starved:all:20%@7-",
				 f, &n, why),
		0);
	ck_assert_uint_eq(n, 3);
	sim_fault_print(&f[0], text);
	ck_assert_str_eq(text, "compute:5:0.03@200-600");
	sim_fault_print(&f[1], text);
	ck_assert_str_eq(text, "dcn:0+2:0.05@0-");
	sim_fault_print(&f[2], text);
	ck_assert_str_eq(text, "starved:all:0.2@7-");
	ck_assert_int_eq(sim_fault_parse_list("none", f, &n, why), 0);
	ck_assert_uint_eq(n, 0);
}

static const char *const wrong_faults[] = { "compute", "compute:", "compute:5",
	"compute:5:", "compute:-1:3%", "compute:5:nan", "compute:5:inf",
	"compute:5:-3%", "compute:5:3%@", "compute:5:3%@9", "compute:5:3%@-9",
	"compute:5:3%@1-2x", "compute:99999999999999999999:3%",
	"compute:5:3%@99999999999999999999-", "dcn:1:3%", "dcn:1+:3%", "starved:5:3%",
	"nosuch:5:3%", "compute:5:3%,", ",", "compute:5:3%@5-,\x1b[31m:1:1",
	"compute:5:3%%" };

LS_TEST_EACH(words, a_fault_that_is_none_is_refused, wrong_faults)
{
	struct sim_fault f[SIM_FAULTS_MAX];
	char why[SIM_FAULT_WHY_BYTES] = "";
	size_t n = 99;

	ck_assert_int_eq(sim_fault_parse_list(wrong_faults[_i], f, &n, why),
		-LS_EPARSE);
	ck_assert_uint_eq(n, 99);
	ck_assert_uint_gt(strlen(why), 20);
	ck_assert_ptr_null(strchr(why, '\x1b'));
}

LS_TEST(words, too_many_faults_are_refused)
{
	struct sim_fault f[SIM_FAULTS_MAX];
	char why[SIM_FAULT_WHY_BYTES];
	static const char text[] =
		"gc:all:1%,gc:all:1%,gc:all:1%,gc:all:1%,gc:all:1%,gc:all:1%,gc:all:1%,gc:all:1%,gc:all:1%,"
		"gc:all:1%,gc:all:1%,gc:all:1%,gc:all:1%,gc:all:1%,gc:all:1%,gc:all:1%,gc:all:1%";
	size_t n;

	ck_assert_int_eq(sim_fault_parse_list(text, f, &n, why), -LS_ELIMIT);
}

LS_TEST(words, a_world_that_cannot_be_is_refused)
{
	static const char *const faults[] = { "chip:16:3%@0-", "slice:1:3%@0-",
		"rack:1:3%@0-", "stage:1:3%@0-", "shard:16:3%@0-", "dcn:0+0:3%@0-",
		"dcn:0+1:3%@0-", "chip:1:3%@5-5", "chip:1:2000@0-" };
	struct sim_world_options o = world_of(16);
	struct sim_fault f[SIM_FAULTS_MAX];
	char text[SIM_FAULT_WHY_BYTES];
	const char *why = NULL;
	struct sim_world *w = NULL;
	size_t i, n;

	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		ck_assert_int_eq(sim_fault_parse_list(faults[i], f, &n, text), 0);
		ck_assert_int_eq(sim_world_new(&o, f, n, &w, &why), -LS_ERANGE);
		ck_assert_ptr_nonnull(why);
	}
	o.noise = NAN;
	ck_assert_int_eq(sim_world_new(&o, NULL, 0, &w, &why), -LS_ERANGE);
	o = world_of(0);
	ck_assert_int_eq(sim_world_new(&o, NULL, 0, &w, &why), -LS_ERANGE);
	o = world_of(SIM_WORLD_HOSTS_MAX + 1);
	ck_assert_int_eq(sim_world_new(&o, NULL, 0, &w, &why), -LS_ERANGE);
	ck_assert_ptr_null(w);
}
