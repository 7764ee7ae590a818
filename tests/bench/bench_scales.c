/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom the test of slow workers (detect/scales.h) names, fed with residuals alone: no records, no
 * findings. A job of 16 hosts and 20 minutes takes .03 s, so false names can be counted over
 * thousands of host-weeks.
 *
 *   bench_scales [--runs N] [--hours H] [--seed N] [--tell] [--found] [--recorded FILE] [CASE]...
 *
 * A CASE is NOISE/HOSTS/FAULT[/SECONDS A STEP[/GROUPS]], as in bench_noise.py; without one, a short table.
 * As in a job, each host is compared with the median of the others that are not named (residual/blame.h).
 * FAULT: `none`; `N%` of a step from the middle on, or up to 63 steps later; `N%-born` from the first step; `least` (below). NOISE: a
 * kind of deploy/demo/sim/noise/host_noise.def, such as wander-5-50, with independent noise of 0.3 % beside it (but recorded noise: FILE is
 * of residuals.py); @rack: of racks of eight hosts.
 *
 * GROUPS: `racks-N`, racks of N hosts, or `slices-N`, N slices, judged after each step, as in a job. A second line of a row counts
 * healthy groups, also a week and 10,000 hosts. A group counts when it is named, and one of its members is named or found; a host,
 * unless its group is named by then. The culprit is a whole group: if its single members are named first, that is not counted.
 * `job`: not the hosts are judged, but the job, whose step ends with the last of them, against its own past (detect/pulse.h). Each time
 * that it is found slow counts; FAULT N% is of all hosts.
 *
 * Columns: runs; host-weeks; healthy hosts named for 2 % of a step or more, which would be a warning; the same a week and
 * 10,000 hosts, with the upper end of its one-sided 95 % interval (Poisson; hosts of one run count as independent); both
 * again for less, an info; runs in which the culprit was named, before any other host; steps from the onset until then, median
 * and 95 %. With --tell, each name on standard error. With --found, a host counts when detect.h finds it, and not yet when
 * scales.h names it: what is over by then is no finding.
 *
 * FAULT `least` asks how small a slowdown can be. A healthy job goes on for 64 times n steps and four host-hours,
 * where n is what 10 minutes have, at most 200; its age is then set to four host-hours, so that the error rate is
 * that of a job that is no longer young. Then a worker drawn at random becomes slower, N times (--runs), by the same noise
 * for every size of the fault. A new job begins after 20 trials. Printed:
 *
 *   least     the smallest slowdown that is named before any other host within n steps of its onset, in 95 % of
 *             the trials; `none`: above 100 % of a step
 *   possible  the same of the best test that knows the level before the onset, the covariance of the noise, the
 *             onset, and all of the past. What it sees are innovations: residuals less their best linear prediction
 *             from those before, w_k = sum over j of a_j r_(k-j), a_0 = 1, of variance v. A shift d from the onset
 *             on shifts the k-th of them by d g_k, g_k = a_0 + ... + a_k. They are independent, so generalised least
 *             squares has the deviation sigma_n = sqrt(v / (g_0^2 + ... + g_(n-1)^2)), and a test that errs with LS_SCALES_TAIL /
 *             (hosts, or groups) at one look finds 95 % of the shifts d = (z_tail + 1.645) sigma_n. Independent noise: g_k = 1,
 *             sigma_n = s / sqrt(n). AR(1): g_0 = 1, later 1 - keep, v = s^2 (1 - keep^2): the first step tells most of it.
 *             Only the difference from the other hosts is seen: for a fault of m of n hosts, sigma_n times sqrt(1/m + 1/(n - m)).
 *             The a_j come from the covariances (Levinson-Durbin recursion, 64 of them). For recorded noise, which has
 *             longer tails than a Gaussian, it is the best linear test, and its error rate is not kept.
 *   ratio     least / possible
 *
 * Exit status: 0, or 2 on wrong usage.
 * Source:  Politis and Romano (1994), stationary bootstrap; Durbin (1960), recursion; Kailath (1968), innovations.
 */
#include "config.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/engine/detect/detect.h"
#include "collector/engine/detect/pulse.h"
#include "collector/engine/detect/scales.h"
#include "deploy/demo/sim/noise/host_noise.h"
#include "proto/limits.h"

#define NOISE_BESIDE 0.003 /* independent noise beside all but recorded noise */

enum {
	RACK = 8,
	PATIENCE_S = 60,
	WEEK_S = 7 * 86400,
	TRIALS = 20, /* of one job */
	ORDER = 64 /* steps that a prediction knows */
};

struct bench_case {
	struct sim_host_noise noise;
	unsigned hosts;
	unsigned members, groups; /* hosts of a group; 1 and 0: there are no groups */
	double excess; /* of host 0, or group 0; 0 = healthy */
	bool born, least, racks, job;
	double step_s;
};

struct bench_job {
	const struct bench_case *c;
	struct ls_scales scales, groups;
	struct ls_detect detect;
	struct ls_pulse pulse;
	bool finds; /* detect is asked, too */
	uint64_t step;
	struct ls_blame_room room, parted; /* hosts by role, and by group */
	uint32_t *group; /* of each host; without groups, its own number */
	struct sim_host_noise_state *host;
	struct ls_cell *cell;
	struct ls_blame *blame;
	bool *ever; /* named: groups, then hosts */
	unsigned culprit; /* group */
};

struct bench_options {
	bool tell, found;
};

struct bench_sum {
	unsigned found;
	/* of hosts, and of groups: healthy ones, and those of them that a warning names */
	unsigned healthy[2], warned[2];
	double *delay; /* steps; of each run that is found */
};

static uint64_t bench_random; /* one sequence for all */

static int
bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int
bench_compare_down(const void *a, const void *b)
{
	return bench_compare(b, a);
}

static void
bench_close(struct bench_job *j)
{
	ls_scales_fini(&j->scales);
	ls_scales_fini(&j->groups);
	ls_detect_fini(&j->detect);
	ls_pulse_fini(&j->pulse);
	ls_blame_fini(&j->room);
	ls_blame_fini(&j->parted);
	free(j->group);
	free(j->host);
	free(j->cell);
	free(j->blame);
	free(j->ever);
}

static void
bench_open(struct bench_job *j, const struct bench_case *c)
{
	*j = (struct bench_job){ .c = c,
		.group = calloc(c->hosts, sizeof(*j->group)),
		.host = calloc(c->hosts, sizeof(*j->host)),
		.cell = calloc(c->hosts, sizeof(*j->cell)),
		.blame = calloc(c->hosts, sizeof(*j->blame)),
		.ever = calloc(c->groups + c->hosts, sizeof(*j->ever)) };
	if (j->group == NULL || j->host == NULL || j->cell == NULL ||
		j->blame == NULL || j->ever == NULL ||
		ls_scales_reserve(&j->scales, c->hosts) != 0 ||
		ls_scales_reserve(&j->groups, c->groups) != 0 ||
		ls_detect_reserve(&j->detect, c->hosts) != 0 ||
		ls_blame_reserve(&j->room, c->hosts) != 0 ||
		ls_blame_reserve(&j->parted, c->hosts) != 0)
		abort();
	ls_blame_group(&j->room, j->group, 1, c->hosts); /* all of one role */
	for (unsigned i = 0; i < c->hosts; i++) {
		j->group[i] = i / c->members;
		sim_host_noise_begin(&c->noise, &bench_random, &j->host[i]);
	}
	ls_blame_group(&j->parted, j->group, c->groups, c->hosts);
}

/* Works for a step, in which the culprit is slower by excess; who is early waits for the last. */
static void
bench_work(struct bench_job *j, double excess)
{
	const struct bench_case *c = j->c;
	double ratio = 0;
	float longest_s = 0;

	for (unsigned i = 0; i < c->hosts; i++) {
		if (c->noise.scope == SIM_NOISE_OF_HOST || i % RACK == 0)
			ratio = sim_host_noise_next(&c->noise, &bench_random,
				&j->host[i]);
		j->cell[i].own_s = (float)(c->step_s *
			(1 + ratio +
				(c->noise.kind == SIM_HOST_NOISE_RECORDED
						? 0
						: NOISE_BESIDE *
							sim_host_noise_gauss(
								&bench_random)) +
				(j->group[i] == j->culprit ? excess : 0)));
		longest_s = fmaxf(longest_s, j->cell[i].own_s);
	}
	for (unsigned i = 0; i < c->hosts; i++) {
		j->cell[i].present = j->cell[i].has_wait = true;
		j->cell[i].duration_s = longest_s;
		j->cell[i].wait_s = longest_s - j->cell[i].own_s;
	}
}

/* Goes on by a step, as judge.c does. */
static void
bench_step(struct bench_job *j, double excess)
{
	const struct bench_case *c = j->c;
	struct ls_blame_step totals;
	struct ls_row row = { .cell_count = c->hosts, .cells = j->cell };

	bench_work(j, excess);
	ls_blame_judge(&j->room, j->cell, c->hosts, false, j->scales.named, j->blame,
		&totals);
	j->scales.rack = c->racks ? j->group : NULL;
	ls_scales_step(&j->scales, j->blame, c->hosts, false, c->step_s, PATIENCE_S,
		&j->room);
	if (c->groups > 0)
		ls_scales_groups(&j->groups, &j->scales, j->parted.sorted,
			j->parted.start,
			&(struct ls_blame_room){ .sorted = j->room.sorted,
				.start = (uint32_t[]){ 0, c->groups },
				.role_count = 1 });
	if (!j->finds)
		return;
	j->detect.scales = &j->scales;
	j->detect.asked = !ls_scales_is_silent(&j->scales);
	ls_detect_step(&j->detect, j->step,
		(int64_t)((double)j->step * c->step_s * 1e6), false, j->blame, c->hosts,
		&totals);
	row.step = j->step++;
	if (!c->job)
		return;
	ls_detect_costs(&j->detect, &row, &totals);
	ls_pulse_step(&j->pulse, &row, &totals, &j->detect, PATIENCE_S, false);
}

/* Is it named, or found: a group, or by numbers after those of groups, a host? */
static bool
bench_tells(const struct bench_job *j, unsigned i)
{
	unsigned groups = j->c->groups;
	bool told = false;

	if (i >= groups)
		return j->finds
			? ls_detect_found(j->detect.worker[i - groups].channel) != 0
			: j->scales.named[i - groups] != 0;
	for (uint32_t k = j->parted.start[i]; k < j->parted.start[i + 1]; k++)
		told |= bench_tells(j, groups + j->parted.sorted[k]);
	return told && j->groups.named[i] != 0;
}

/* The group of a host by its number, or a group itself. */
static unsigned
bench_group(const struct bench_job *j, unsigned i)
{
	return i < j->c->groups ? i : j->group[i - j->c->groups];
}

/* The same of the job itself. */
static void
bench_run_job(const struct bench_case *c, unsigned steps, const struct bench_options *o,
	struct bench_sum *sum)
{
	unsigned onset = c->born ? 0 : steps / 2;
	bool was = false, missed = false;
	struct bench_job j;
	double at = NAN;

	bench_open(&j, c);
	j.finds = true;
	for (unsigned k = 0; k < steps; k++) {
		double told;
		bool on;

		bench_step(&j, k >= onset ? c->excess : 0);
		on = j.pulse.on;
		told = ls_scales_said(&j.pulse.scales, LS_SCALES_EXCESS, 0);
		if (on && !was) {
			if (o->tell)
				fprintf(stderr,
					"job step %u lengths %04x excess %.4f\n", k,
					j.pulse.scales.named[0], told);
			if (c->excess > 0 && k >= onset) {
				at = isnan(at) ? k - onset : at;
			} else {
				sum->healthy[0]++;
				sum->warned[0] += told >= LS_SEVERITY_WARNING_RATIO;
				missed = true;
			}
		}
		was = on;
	}
	if (!isnan(at) && !missed)
		sum->delay[sum->found++] = at;
	bench_close(&j);
}

static void
bench_run(const struct bench_case *c, unsigned steps, const struct bench_options *o,
	struct bench_sum *sum)
{
	struct bench_job j;
	unsigned onset = c->born ? 0 : steps / 2;
	double at = NAN;
	bool missed = false;

	if (c->excess > 0 && !c->born) /* at any step of a window */
		onset += (unsigned)(64 * sim_host_noise_uniform(&bench_random));
	bench_open(&j, c);
	j.finds = o->found;
	for (unsigned k = 0; k < steps; k++) {
		bench_step(&j, k >= onset ? c->excess : 0);
		for (unsigned i = 0; i < c->groups + c->hosts; i++) {
			bool group = i < c->groups;
			const struct ls_scales *s = group ? &j.groups : &j.scales;
			unsigned of = bench_group(&j, i),
				 slot = group ? i : i - c->groups;
			double told = ls_scales_said(s, LS_SCALES_EXCESS, slot);

			if (j.ever[i] || !bench_tells(&j, i))
				continue;
			j.ever[i] = true;
			if (!group && c->groups > 0 && j.groups.named[of] != 0)
				continue;
			if (o->tell)
				fprintf(stderr,
					"%s %u step %u lengths %04x excess %.4f\n",
					group ? "group" : "host", slot, k,
					s->named[slot], told);
			if (of != 0 || !(c->excess > 0) || k < onset) {
				sum->healthy[group]++;
				sum->warned[group] += told >= LS_SEVERITY_WARNING_RATIO;
				missed |= isnan(at);
			} else if (group == (c->groups > 0))
				at = k - onset;
		}
	}
	if (!isnan(at) && !missed)
		sum->delay[sum->found++] = at;
	bench_close(&j);
}

/* What `from` knows, into the room of another of the same count. */
static void
bench_copy(struct ls_scales *to, const struct ls_scales *from)
{
	struct ls_scales own = *to;

	*to = *from;
	to->row = own.row;
	to->named = own.named;
	to->scratch = own.scratch;
	if (from->count == 0)
		return;
	memcpy(own.row, from->row, LS_SCALES_ROWS * own.capacity * sizeof(*own.row));
	memcpy(own.named, from->named, own.count * sizeof(*own.named));
}

/* Is the culprit named first, if it becomes slower by excess? With the same noise each time. */
static bool
bench_is_named(const struct bench_job *from, struct bench_job *j, uint64_t seed,
	double excess, unsigned steps)
{
	unsigned all = from->c->groups + from->c->hosts;
	bool found = false, other = false;

	bench_copy(&j->scales, &from->scales);
	bench_copy(&j->groups, &from->groups);
	memcpy(j->host, from->host, from->c->hosts * sizeof(*j->host));
	j->culprit = from->culprit;
	bench_random = seed;
	for (unsigned k = 0; k < steps && !found && !other; k++) {
		bench_step(j, excess);
		for (unsigned i = 0; i < all; i++)
			if (bench_tells(j, i) && !bench_tells(from, i)) {
				found |= i == j->culprit;
				other |= bench_group(j, i) != j->culprit;
			}
	}
	return found && !other;
}

/* The least excess above `low` that is named, to 2 %. */
static double
bench_bisect(const struct bench_job *from, struct bench_job *j, uint64_t seed,
	double low, unsigned steps)
{
	double high = low;

	do {
		if (high >= 1)
			return INFINITY;
		low = high;
		high = fmin(1, 2 * low);
	} while (!bench_is_named(from, j, seed, high, steps));
	while (high > 1.02 * low) {
		double middle = sqrt(low * high);

		*(bench_is_named(from, j, seed, middle, steps) ? &high : &low) = middle;
	}
	return high;
}

/* The slowdown of which all but a twentieth of the trials need no more. */
static double
bench_least(const struct bench_case *c, unsigned trials, uint64_t seed, unsigned steps)
{
	unsigned most = trials / 20 + 1, warm = LS_SCALES_PAST * steps,
		 culprits = c->groups > 0 ? c->groups : c->hosts;
	double *need = calloc(most + 1, sizeof(*need)), least;
	struct bench_job from = { 0 }, j;

	if (need == NULL)
		abort();
	if (warm * c->hosts * c->step_s < LS_SCALES_YOUNG_S)
		warm = (unsigned)(LS_SCALES_YOUNG_S / c->hosts / c->step_s) + 1;
	for (unsigned m = 0; m < most; m++)
		need[m] = 0.0005; /* below what is ever named; falling */
	bench_open(&j, c);
	for (unsigned t = 0; t < trials; t++) {
		uint64_t own = (seed << 32 | t) * 0x9e3779b97f4a7c15ull + 1;

		bench_random = own;
		if (t % TRIALS == 0) {
			bench_close(&from);
			bench_open(&from, c);
		}
		/* trials of a job begin apart, at any step of a window */
		for (unsigned k = t % TRIALS == 0 ? warm : 1; k-- > 0;)
			bench_step(&from, 0);
		for (unsigned k =
				(unsigned)(64 * sim_host_noise_uniform(&bench_random));
			k-- > 0;)
			bench_step(&from, 0);
		from.scales.seen_s = LS_SCALES_YOUNG_S;
		do
			from.culprit =
				(unsigned)(sim_host_noise_uniform(&bench_random) *
					culprits);
		while (bench_tells(&from, from.culprit));
		if (bench_is_named(&from, &j, ~own, need[most - 1], steps))
			continue; /* it needs no more than those that are kept */
		need[most] = bench_bisect(&from, &j, ~own, need[most - 1], steps);
		qsort(need, most + 1, sizeof(*need), bench_compare_down);
	}
	least = need[most - 1];
	bench_close(&from);
	bench_close(&j);
	free(need);
	return least;
}

/* Deviations of a Gaussian that are exceeded with this probability. */
static double
bench_deviations(double tail)
{
	double low = 0, high = 40;

	while (high - low > 1e-9) {
		double z = (low + high) / 2;

		*(erfc(z * M_SQRT1_2) / 2 > tail ? &low : &high) = z;
	}
	return low;
}

/* Covariance of noise at a distance of so many steps, with what is beside it; NaN: not known. */
static double
bench_covariance(const struct sim_host_noise *noise, unsigned lag)
{
	double sum = 0, n = 0;

	if (noise->kind == SIM_HOST_NOISE_IID || noise->kind == SIM_HOST_NOISE_WANDER)
		return noise->size * noise->size * pow(noise->keep, lag) +
			(lag == 0 ? NOISE_BESIDE * NOISE_BESIDE : 0);
	if (noise->kind != SIM_HOST_NOISE_RECORDED)
		return NAN;
	for (size_t s = 0; s < noise->recorded.n; s++) {
		const struct sim_series *of = &noise->recorded.of[s];
		double mean = 0;

		for (size_t i = 0; i < of->n; i++)
			mean += of->v[i] / (double)of->n;
		for (size_t i = 0; i < of->n; i++)
			sum += (of->v[i] - mean) * (of->v[(i + lag) % of->n] - mean);
		n += (double)of->n;
	}
	return sum / n * pow(1 - 1 / noise->length, lag);
}

/* What is possible, as the head of this file derives it. */
static double
bench_possible(const struct bench_case *c, unsigned steps)
{
	double gamma[ORDER + 1],
		a[ORDER + 1] = { 1 }, v, shift = 0, told = 0,
			  culprits = c->groups > 0 ? c->groups : c->hosts;

	for (unsigned k = 0; k <= ORDER; k++)
		gamma[k] = bench_covariance(&c->noise, k);
	v = gamma[0];
	for (unsigned m = 1; m <= ORDER; m++) {
		double last[ORDER + 1], mirror = 0;

		memcpy(last, a, sizeof(a));
		for (unsigned k = 0; k < m; k++)
			mirror -= a[k] * gamma[m - k] / v;
		for (unsigned k = 1; k <= m; k++)
			a[k] += mirror * last[m - k];
		v *= 1 - mirror * mirror;
	}
	for (unsigned k = 0; k < steps; k++) {
		shift += k <= ORDER ? a[k] : 0;
		told += shift * shift / v;
	}
	return (bench_deviations(LS_SCALES_TAIL / culprits) + bench_deviations(0.05)) *
		sqrt((1.0 / c->members + 1.0 / (c->hosts - c->members)) / told);
}

/* Reads racks-N, slices-N or job. */
static bool
bench_parse_groups(const char *text, struct bench_case *c)
{
	unsigned n;

	c->job = strcmp(text, "job") == 0;
	if (c->job) {
		c->members = c->hosts;
		return !c->least;
	}
	c->racks = sscanf(text, "racks-%u", &n) == 1;
	if ((!c->racks && sscanf(text, "slices-%u", &n) != 1) || n < 2 || n >= c->hosts)
		return false;
	c->members = c->racks ? n : (c->hosts + n - 1) / n;
	c->groups = (c->hosts + c->members - 1) / c->members;
	return true;
}

/* Reads NOISE/HOSTS/FAULT[/SECONDS[/GROUPS]]. */
static bool
bench_parse(const char *text, const struct sim_recorded *recorded, struct bench_case *c)
{
	char noise[32], fault[16], groups[16];
	int n;

	*c = (struct bench_case){ .step_s = 0.4, .members = 1 };
	n = sscanf(text, "%31[^/]/%u/%15[^/]/%lf/%15s", noise, &c->hosts, fault,
		&c->step_s, groups);
	if (n < 3 || c->hosts < 2 || c->hosts > LS_WORKERS_MAX || !(c->step_s > 0))
		return false;
	c->born = strstr(fault, "-born") != NULL;
	c->least = strcmp(fault, "least") == 0;
	if (n == 5 && !bench_parse_groups(groups, c))
		return false;
	if (sscanf(fault, "%lf%%", &c->excess) == 1)
		c->excess /= 100;
	else if (!c->least && strcmp(fault, "none") != 0)
		return false;
	return sim_host_noise_parse(noise, strlen(noise), recorded, &c->noise) == 0 &&
		c->noise.scope <= SIM_NOISE_OF_RACK;
}

static void
bench_row_least(const char *text, const struct bench_case *c, unsigned trials,
	uint64_t seed)
{
	unsigned steps = (unsigned)fmax(1, fmin(200, round(600 / c->step_s)));
	double possible = bench_possible(c, steps),
	       least = bench_least(c, trials, seed, steps);

	printf("| %s | %u | | | | ", text, trials);
	if (isfinite(least))
		printf("least %.3g %%, ", 100 * least);
	else
		printf("none, ");
	printf("possible %.3g %%, ratio %.2f | %u |\n", 100 * possible,
		least / possible, steps);
	(void)fflush(stdout);
}

/* Healthy hosts named; the same a week and 10,000 hosts, and how many that may be: quantile of chi-square
 * by Wilson and Hilferty (1931). */
static void
bench_print_rate(unsigned named, double weeks)
{
	double n = named + 1,
	       most = n * pow(1 - 1 / (9 * n) + 1.645 / (3 * sqrt(n)), 3);

	printf(" %u | %.3g (%.3g) |", named, named / weeks * 1e4, most / weeks * 1e4);
}

static void
bench_row(const char *text, const struct bench_case *c, unsigned runs, double hours,
	uint64_t seed, const struct bench_options *o)
{
	struct bench_sum sum = { .delay = calloc(runs, sizeof(*sum.delay)) };
	double weeks;

	if (sum.delay == NULL)
		abort();
	for (unsigned r = 0; r < runs; r++) {
		bench_random = (seed << 32 | r) * 0x9e3779b97f4a7c15ull + 1;
		(c->job ? bench_run_job : bench_run)(c,
			(unsigned)(hours * 3600 / c->step_s), o, &sum);
	}
	weeks = (double)runs * hours * 3600 / WEEK_S * c->hosts;
	qsort(sum.delay, sum.found, sizeof(*sum.delay), bench_compare);
	for (unsigned g = 0; g <= (c->groups > 0); g++) {
		printf("| %s%s | %u | %.4g |", text, g > 0 ? ", groups" : "", runs,
			weeks);
		bench_print_rate(sum.warned[g], weeks);
		bench_print_rate(sum.healthy[g] - sum.warned[g], weeks);
		if (sum.found > 0)
			printf(" %u | %.0f, %.0f |\n", sum.found,
				sum.delay[sum.found / 2],
				sum.delay[sum.found * 19 / 20]);
		else
			puts(c->excess > 0 ? " 0 | |" : " | |");
	}
	(void)fflush(stdout);
	free(sum.delay);
}

int
main(int argc, char **argv)
{
	static const char *const usual[] = { "iid-0.3/16/none", "iid-0.3/16/3%",
		"iid-0.3/8/8%-born", "wander-5-50/64/15%", "wander-10-200/16/none",
		"neighbours/32/none", "neighbours/32/15%", "bursts/32/none",
		"iid-1/16/least/1" };
	const char *const *cases = usual;
	double runs = 5, hours = 1.0 / 3, seed = 1;
	struct sim_recorded recorded = { 0 };
	size_t count = sizeof(usual) / sizeof(usual[0]);
	struct bench_options o = { 0 };
	int i, r = 0;

	for (i = 1; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		double *to = strcmp(argv[i], "--runs") == 0 ? &runs
			: strcmp(argv[i], "--hours") == 0   ? &hours
			: strcmp(argv[i], "--seed") == 0    ? &seed
							    : NULL;

		if (strcmp(argv[i], "--tell") == 0 || strcmp(argv[i], "--found") == 0) {
			*(argv[i][2] == 't' ? &o.tell : &o.found) = true;
			continue;
		}
		if (strcmp(argv[i], "--recorded") == 0 && i + 1 < argc) {
			r = sim_recorded_read(argv[++i], &recorded);
			if (r != 0) {
				fprintf(stderr, "bench_scales: %s: %s\n", argv[i],
					ls_err_text(r));
				return 2;
			}
			continue;
		}
		if (to == NULL || i + 1 == argc ||
			!((*to = strtod(argv[++i], NULL)) >=
				(to == &hours ? 0.01 : 1)) ||
			*to > 1e6) {
			fprintf(stderr,
				"usage: bench_scales [--runs N] [--hours H] "
				"[--seed N] [--tell] [--found] [--recorded FILE] "
				"[NOISE/HOSTS/FAULT[/SECONDS[/racks-N|/slices-N|/job]]]...\n");
			return 2;
		}
	}
	if (i < argc) {
		cases = (const char *const *)&argv[i];
		count = (size_t)(argc - i);
	}
	puts("| case | runs | host-weeks | healthy hosts named by a warning | a week and 10,000 hosts (at most) | by info | a "
	     "week and 10,000 hosts (at most) | culprit named first | after (95 %) steps |\n|---|---|---|---|---|---|---|---|---|");
	for (size_t k = 0; r == 0 && k < count; k++) {
		struct bench_case c;

		if (!bench_parse(cases[k], &recorded, &c) ||
			hours * 3600 / c.step_s > 1e9) {
			fprintf(stderr,
				"bench_scales: not NOISE/HOSTS/FAULT[/SECONDS[/GROUPS]]%s: %s\n",
				recorded.n > 0 ? "" : ", or no --recorded FILE",
				cases[k]);
			r = 2;
		} else if (c.least)
			bench_row_least(cases[k], &c, (unsigned)runs, (uint64_t)seed);
		else
			bench_row(cases[k], &c, (unsigned)runs, hours, (uint64_t)seed,
				&o);
	}
	sim_recorded_free(&recorded);
	return r;
}
