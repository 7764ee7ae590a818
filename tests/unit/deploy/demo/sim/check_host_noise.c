/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <string.h>
#include "tests/support/harness.h"
#include "deploy/demo/sim/noise/host_noise.h"

LS_CASE(all);

static const struct sim_recorded nothing;

static struct sim_host_noise
noise_of(const char *text)
{
	struct sim_host_noise n;

	ck_assert_int_eq(sim_host_noise_parse(text, strlen(text), &nothing, &n), 0);
	return n;
}

/* Kinds whose mean, deviation, and correlation of a step with the one `lag` later are known. */
static const struct moments {
	const char *text;
	double mean, deviation;
	unsigned lag;
	double correlation;
} moments[] = {
	{ "iid-3", 0, 0.03, 1, 0 },
	{ "wander-5-50", 0, 0.05, 50, 0.5 },
	/* a tenth of the time at 4 %; the states forget each other at a rate of 1/100 + 1/900 a step */
	{ "neighbours", 0.004, 0.012, 90, 0.368 },
	{ "sines-2-100", 0, 0.01414, 50, -1 },
	{ "days-4-100", 0, 0.0294, 100, 1 },
};

LS_TEST_EACH(all, noises_have_the_moments_that_they_are_named_by, moments)
{
	enum { HOSTS = 400, STEPS = 2000 };
	const struct moments *k = &moments[_i];
	const struct sim_host_noise noise = noise_of(k->text);
	static double v[STEPS];
	double sum = 0, square = 0, product = 0, n = HOSTS * (double)STEPS,
	       pairs = HOSTS * (double)(STEPS - k->lag);

	for (uint64_t host = 1; host <= HOSTS; host++) {
		uint64_t random = host * 0x9e3779b97f4a7c15u;
		struct sim_host_noise_state s;

		sim_host_noise_begin(&noise, &random, &s);
		for (unsigned i = 0; i < STEPS; i++) {
			v[i] = sim_host_noise_next(&noise, &random, &s) - k->mean;
			sum += v[i];
			square += v[i] * v[i];
			product += i >= k->lag ? v[i] * v[i - k->lag] : 0;
		}
	}
	ck_assert_double_eq_tol(sum / n, 0, 0.04 * k->deviation);
	ck_assert_double_eq_tol(sqrt(square / n) / k->deviation, 1, 0.04);
	ck_assert_double_eq_tol(product / pairs / (square / n), k->correlation, 0.04);
}

LS_TEST(all, t_with_2_degrees_of_freedom_has_its_quartile_and_its_tail)
{
	const struct sim_host_noise noise = noise_of("tails-1");
	struct sim_host_noise_state s;
	uint64_t random = 1;
	int beyond = 0, far = 0, n = 100000;

	sim_host_noise_begin(&noise, &random, &s);
	for (int i = 0; i < n; i++) {
		double x = fabs(sim_host_noise_next(&noise, &random, &s)) / 0.01;

		beyond += x > 0.8164966; /* t at 3/4 */
		far += x > 22.3271; /* t at 0.999 */
	}
	ck_assert_double_eq_tol(beyond, 0.5 * n, 0.01 * n);
	ck_assert_double_eq_tol(far, 0.002 * n, 0.0005 * n);
}

LS_TEST(all, a_walk_stays_within_its_limit_and_bursts_last_20_steps)
{
	const struct sim_host_noise walk = noise_of("walks-1-3"),
				    bursts = noise_of("bursts-8-100");
	struct sim_host_noise_state a, b;
	uint64_t random = 1;
	double most = 0;
	int in_a_row = 0;

	sim_host_noise_begin(&walk, &random, &a);
	sim_host_noise_begin(&bursts, &random, &b);
	for (int i = 0; i < 10000; i++) {
		bool is = sim_host_noise_next(&bursts, &random, &b) > 0;

		most = fmax(most, fabs(sim_host_noise_next(&walk, &random, &a)));
		ck_assert(is || in_a_row == 0 || in_a_row == 20);
		in_a_row = is ? in_a_row + 1 : 0;
	}
	ck_assert_double_eq_tol(most, 0.03, 1e-12);
}

static const char *const no_noise[] = { "", "wander-", "wander-2-50-3", "wander-0-50",
	"wander-2-0.5", "wander--2", "iid-2-50", "iid-nan", "iid-1e9", "iid-1@",
	"iid-1@host", "iid-1@rack@job", "waves", "wander2", "recorded-10" };

LS_TEST_EACH(all, what_is_no_noise_is_refused, no_noise)
{
	struct sim_host_noise n = { .size = 7 };

	ck_assert_int_eq(
		sim_host_noise_parse(no_noise[_i], strlen(no_noise[_i]), &nothing, &n),
		-LS_EPARSE);
	ck_assert_double_eq(n.size, 7);
}
