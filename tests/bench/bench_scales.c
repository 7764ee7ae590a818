/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom the test of slow workers (detect/scales.h) names, fed with residuals alone: no records, no
 * findings. A job of 16 hosts and 20 minutes takes .03 s, so false names can be counted over
 * thousands of host-weeks.
 *
 *   bench_scales [--runs N] [--hours H] [--seed N] [--tell] [CASE]...
 *
 * A CASE is NOISE/HOSTS/FAULT[/SECONDS A STEP], as in bench_noise.py; without one, a short table.
 * FAULT: `none`; `N%` of a step from the middle on; `N%-born` from the first step. NOISE, as a ratio to
 * the step time, with independent noise of 0.3 % beside it:
 *
 *   iid-P        independent, P %
 *   tails-P      independent, P % times Student's t with two degrees of freedom (infinite variance)
 *   wander-P-L   AR(1) of each host, P %, half-life L steps
 *   racks-P-L    AR(1) of each rack of eight hosts
 *   neighbours   two states of each host: 100 steps at 4 %, 900 steps without, on average
 *   bursts       8 % for 20 steps, 1,000 steps apart on average
 *   walks        a random walk of each host, 0.1 % a step, kept within 6 %
 *   sines        2 %, 1,500 steps long, each host at its own phase
 *
 * Columns: runs; host-weeks; healthy hosts named; the same a week and 10,000 hosts, with the upper end of
 * its one-sided 95 % interval (Poisson; hosts of one run count as independent); runs in which the culprit was named, before
 * any other host; steps from the onset until then, median and 95 %. With --tell, each name on standard error.
 * Exit status: 0, or 2 on wrong usage.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/engine/detect/scales.h"
#include "proto/limits.h"

enum { RACK = 8, PATIENCE_S = 60, WEEK_S = 7 * 86400 };

enum bench_noise {
	IID,
	TAILS,
	WANDER,
	RACKS,
	NEIGHBOURS,
	BURSTS,
	WALKS,
	SINES,
	NOISES
};

static const char *const bench_noises[NOISES] = { "iid", "tails", "wander", "racks",
	"neighbours", "bursts", "walks", "sines" };

struct bench_case {
	enum bench_noise noise;
	double deviation, keep; /* ratio; what AR(1) keeps in a step */
	unsigned hosts;
	double excess; /* of host 0; 0 = healthy */
	bool born;
	double step_s;
};

struct bench_host {
	double x, left; /* ratio; steps until the state changes, or a phase */
	bool on;
};

struct bench_sum {
	unsigned found, healthy;
	double *delay; /* steps; of each run that is found */
};

static uint64_t bench_state;

/* Uniform, 0 < u < 1 (Vigna 2014, xorshift64*). */
static double
bench_uniform(void)
{
	bench_state ^= bench_state >> 12;
	bench_state ^= bench_state << 25;
	bench_state ^= bench_state >> 27;
	return ((double)((bench_state * 2685821657736338717ull) >> 11) + 0.5) * 0x1p-53;
}

static double
bench_gauss(void)
{
	return sqrt(-2 * log(bench_uniform())) * cos(2 * M_PI * bench_uniform());
}

static double
bench_wait(double mean)
{
	return -mean * log(bench_uniform());
}

static void
bench_begin(const struct bench_case *c, struct bench_host *h)
{
	*h = (struct bench_host){ .x = c->deviation * bench_gauss() };
	if (c->noise == NEIGHBOURS)
		h->on = bench_uniform() < 0.1;
	else if (c->noise == BURSTS)
		h->left = bench_wait(1000);
	else if (c->noise == WALKS)
		h->x = 0.06 * (bench_uniform() - 0.5);
	else if (c->noise == SINES)
		h->left = 1500 * bench_uniform();
}

/* Goes on by a step; what the host takes longer, as a ratio to the step time. */
static double
bench_next(const struct bench_case *c, struct bench_host *h)
{
	switch (c->noise) {
	case IID:
		return c->deviation * bench_gauss();
	case TAILS: /* t of two degrees of freedom, by its inverse (Shaw 2006) */
	{
		double u = bench_uniform();

		return c->deviation * (2 * u - 1) / sqrt(2 * u * (1 - u));
	}
	case WANDER:
	case RACKS:
		h->x = c->keep * h->x +
			c->deviation * sqrt(1 - c->keep * c->keep) * bench_gauss();
		return h->x;
	case NEIGHBOURS:
		if (bench_uniform() < (h->on ? 0.01 : 1.0 / 900))
			h->on = !h->on;
		return h->on ? 0.04 : 0;
	case BURSTS:
		if (--h->left < 0) {
			h->on = !h->on;
			h->left = h->on ? 20 : bench_wait(1000);
		}
		return h->on ? 0.08 : 0;
	case WALKS:
		h->x = fmax(-0.06, fmin(0.06, h->x + 0.001 * bench_gauss()));
		return h->x;
	case SINES:
		return 0.02 * sin(2 * M_PI * h->left++ / 1500);
	case NOISES:
		break;
	}
	return 0;
}

/* One job; returns false if memory is gone. */
static bool
bench_run(const struct bench_case *c, unsigned steps, bool tell, struct bench_sum *sum)
{
	struct ls_scales scales = { 0 };
	struct ls_blame_room room = { 0 };
	unsigned onset = c->born ? 0 : steps / 2, healthy = 0;
	double at = NAN;
	bool missed = false;
	uint32_t *role = calloc(c->hosts, sizeof(*role));
	struct bench_host *host = calloc(c->hosts, sizeof(*host));
	struct ls_blame *blame = calloc(c->hosts, sizeof(*blame));
	bool *ever = calloc(c->hosts, sizeof(*ever));
	bool ok = role != NULL && host != NULL && blame != NULL && ever != NULL &&
		ls_scales_reserve(&scales, c->hosts) == 0 &&
		ls_blame_reserve(&room, c->hosts) == 0;

	if (ok)
		ls_blame_group(&room, role, 1, c->hosts);
	for (unsigned i = 0; ok && i < c->hosts; i++)
		bench_begin(c, &host[i]);
	for (unsigned k = 0; ok && k < steps; k++) {
		double ratio = 0;

		for (unsigned i = 0; i < c->hosts; i++) {
			if (c->noise != RACKS || i % RACK == 0)
				ratio = bench_next(c, &host[i]);
			blame[i].wait_s = c->step_s *
				(ratio + 0.003 * bench_gauss() +
					(i == 0 && k >= onset ? c->excess : 0));
			blame[i].late_s = NAN;
		}
		ls_scales_step(&scales, blame, c->hosts, false, c->step_s, PATIENCE_S,
			&room);
		for (unsigned i = 0; i < c->hosts; i++) {
			bool fault = i == 0 && c->excess > 0 && k >= onset;

			if (scales.named[i] == 0 || ever[i])
				continue;
			ever[i] = true;
			if (tell)
				fprintf(stderr,
					"host %u step %u lengths %04x excess %.4f\n", i,
					k, scales.named[i],
					ls_scales_said(&scales, LS_SCALES_EXCESS, i));
			if (fault)
				at = k - onset;
			else
				healthy++;
			missed |= !fault && isnan(at);
		}
	}
	sum->healthy += healthy;
	if (!isnan(at) && !missed)
		sum->delay[sum->found++] = at;
	ls_scales_fini(&scales);
	ls_blame_fini(&room);
	free(role);
	free(host);
	free(blame);
	free(ever);
	return ok;
}

static int
bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Reads NOISE/HOSTS/FAULT[/SECONDS]. */
static bool
bench_parse(const char *text, struct bench_case *c)
{
	char noise[32], fault[16];
	double percent = 0, half_life = 0;
	size_t len;
	int n;

	*c = (struct bench_case){ .step_s = 0.4, .noise = NOISES };
	n = sscanf(text, "%31[^/]/%u/%15[^/]/%lf", noise, &c->hosts, fault, &c->step_s);
	if (n < 3 || c->hosts < 1 || c->hosts > LS_WORKERS_MAX || !(c->step_s > 0))
		return false;
	len = strcspn(noise, "-");
	(void)sscanf(noise + len, "-%lf-%lf", &percent, &half_life);
	for (int i = 0; i < NOISES; i++)
		if (strlen(bench_noises[i]) == len &&
			strncmp(noise, bench_noises[i], len) == 0)
			c->noise = (enum bench_noise)i;
	c->deviation = percent / 100;
	c->keep = half_life > 0 ? pow(0.5, 1 / half_life) : 0;
	c->born = strstr(fault, "-born") != NULL;
	if (sscanf(fault, "%lf%%", &c->excess) == 1)
		c->excess /= 100;
	else if (strcmp(fault, "none") != 0)
		return false;
	return c->noise < NOISES;
}

static int
bench_row(const char *text, unsigned runs, double hours, uint64_t seed, bool tell)
{
	struct bench_case c;
	struct bench_sum sum = { 0 };
	double weeks, n, upper;

	if (!bench_parse(text, &c) || hours * 3600 / c.step_s > 1e9) {
		fprintf(stderr, "bench_scales: not NOISE/HOSTS/FAULT[/SECONDS]: %s\n",
			text);
		return 2;
	}
	sum.delay = calloc(runs, sizeof(*sum.delay));
	for (unsigned r = 0; r < runs; r++) {
		bench_state = (seed << 32 | r) * 0x9e3779b97f4a7c15ull + 1;
		if (sum.delay == NULL ||
			!bench_run(&c, (unsigned)(hours * 3600 / c.step_s), tell, &sum))
			abort();
	}
	weeks = (double)runs * hours * 3600 / WEEK_S * c.hosts;
	n = sum.healthy + 1; /* quantile of chi-square by Wilson and Hilferty (1931) */
	upper = n * pow(1 - 1 / (9 * n) + 1.645 / (3 * sqrt(n)), 3);
	printf("| %s | %u | %.4g | %u | %.3g (%.3g) |", text, runs, weeks, sum.healthy,
		sum.healthy / weeks * 1e4, upper / weeks * 1e4);
	if (c.excess > 0)
		printf(" %u |", sum.found);
	else
		printf(" |");
	qsort(sum.delay, sum.found, sizeof(*sum.delay), bench_compare);
	if (sum.found > 0)
		printf(" %.0f, %.0f |\n", sum.delay[sum.found / 2],
			sum.delay[sum.found * 19 / 20]);
	else
		printf(" |\n");
	(void)fflush(stdout);
	free(sum.delay);
	return 0;
}

int
main(int argc, char **argv)
{
	static const char *const usual[] = { "iid-0.3/16/none", "iid-0.3/16/3%",
		"iid-0.3/8/8%-born", "wander-5-50/64/15%", "wander-10-200/16/none",
		"neighbours/32/none", "neighbours/32/15%", "bursts/32/none" };
	double runs = 5, hours = 1.0 / 3, seed = 1;
	bool tell = false, all = true;
	int i, r = 0;

	for (i = 1; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		double *to = strcmp(argv[i], "--runs") == 0 ? &runs
			: strcmp(argv[i], "--hours") == 0   ? &hours
			: strcmp(argv[i], "--seed") == 0    ? &seed
							    : NULL;

		if (strcmp(argv[i], "--tell") == 0) {
			tell = true;
			continue;
		}
		if (to == NULL || i + 1 == argc ||
			!((*to = strtod(argv[++i], NULL)) >=
				(to == &hours ? 0.01 : 1)) ||
			*to > 1e6) {
			fprintf(stderr,
				"usage: bench_scales [--runs N] [--hours H] "
				"[--seed N] [--tell] [NOISE/HOSTS/FAULT[/SECONDS]]...\n");
			return 2;
		}
	}
	puts("| case | runs | host-weeks | healthy hosts named | a week and 10,000 hosts (at most) | "
	     "culprit named first | after (95 %) steps |\n|---|---|---|---|---|---|---|");
	for (; r == 0 && i < argc; i++, all = false)
		r = bench_row(argv[i], (unsigned)runs, hours, (uint64_t)seed, tell);
	for (size_t u = 0; all && u < sizeof(usual) / sizeof(usual[0]); u++)
		(void)bench_row(usual[u], (unsigned)runs, hours, (uint64_t)seed, tell);
	return r;
}
