/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/bench/detect_sum.h"

#include <math.h>
#include <stdlib.h>
#include "proto/base/mem.h"

#define SUM_COST_MIN 0.001 /* of a step: what costs less is not asked for */

static void
sum_note(struct detect_values *v, double x)
{
	LS_ASSERT(ls_mem_grow((void **)&v->at, v->count, &v->capacity,
			  sizeof(*v->at)) == 0);
	v->at[v->count++] = x;
}

static void
sum_event(struct detect_sum *sum, const struct detect_run *run,
	const struct detect_event *ev)
{
	if (!ev->counts)
		return;
	sum->events++;
	sum->suspected += ev->suspect != DETECT_NEVER;
	if (ev->suspect != DETECT_NEVER)
		sum_note(&sum->suspect, (double)ev->suspect + 1);
	if (ev->finding == DETECT_NEVER)
		return;
	sum->found++;
	sum->in_time += ev->finding < run->deadline;
	sum->causes_named += ev->cause_named;
	sum->causes_right += ev->cause_right;
	sum_note(&sum->finding, (double)ev->finding + 1);
	if (ev->cost_s > SUM_COST_MIN * run->world.step_s && !isnan(ev->cost_found_s))
		sum_note(&sum->cost_error,
			fabs(ev->cost_found_s - ev->cost_s) / ev->cost_s);
}

void
detect_sum_add(struct detect_sum *sum, const struct detect_run *run,
	const struct detect_result *result)
{
	size_t k, i;

	sum->runs++;
	sum->first += result->first;
	sum->third += result->third;
	sum->named += result->named;
	sum->innocent += result->innocent;
	sum->findings += result->findings;
	sum->right += result->right;
	sum->early += result->early;
	sum->hosts_s += (double)run->steps * run->world.hosts * run->world.step_s;
	sum->engine_ns += result->engine_ns;
	sum->world_ns += result->world_ns;
	sum->hosts_steps += result->hosts_steps;
	for (k = 0; k < run->faults; k++)
		sum_event(sum, run, &result->event[k]);
	for (i = 0; i < DETECT_RULE_COUNT; i++) {
		sum->flags[i] += result->flags[i];
		sum->flags_right[i] += result->flags_right[i];
		for (k = 0; k < run->faults; k++)
			sum->rule_found[i] +=
				result->event[k].counts && result->rule_found[i][k];
	}
}

static void
sum_join_values(struct detect_values *v, const struct detect_values *other)
{
	size_t i;

	for (i = 0; i < other->count; i++)
		sum_note(v, other->at[i]);
}

void
detect_sum_join(struct detect_sum *sum, const struct detect_sum *other)
{
	size_t i;

	sum->runs += other->runs;
	sum->first += other->first;
	sum->third += other->third;
	sum->named += other->named;
	sum->innocent += other->innocent;
	sum->events += other->events;
	sum->found += other->found;
	sum->suspected += other->suspected;
	sum->in_time += other->in_time;
	sum->findings += other->findings;
	sum->right += other->right;
	sum->early += other->early;
	sum->causes_named += other->causes_named;
	sum->causes_right += other->causes_right;
	sum->hosts_s += other->hosts_s;
	sum->engine_ns += other->engine_ns;
	sum->world_ns += other->world_ns;
	sum->hosts_steps += other->hosts_steps;
	for (i = 0; i < DETECT_RULE_COUNT; i++) {
		sum->flags[i] += other->flags[i];
		sum->flags_right[i] += other->flags_right[i];
		sum->rule_found[i] += other->rule_found[i];
	}
	sum_join_values(&sum->suspect, &other->suspect);
	sum_join_values(&sum->finding, &other->finding);
	sum_join_values(&sum->cost_error, &other->cost_error);
}

void
detect_sum_fini(struct detect_sum *sum)
{
	free(sum->suspect.at);
	free(sum->finding.at);
	free(sum->cost_error.at);
	*sum = (struct detect_sum){ 0 };
}

static int
sum_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
detect_quantile(struct detect_values *v, double q)
{
	if (v->count == 0)
		return NAN;
	qsort(v->at, v->count, sizeof(*v->at), sum_compare);
	return v->at[(size_t)(q * (double)(v->count - 1) + 0.5)];
}

double
detect_ratio(size_t part, size_t whole)
{
	return whole > 0 ? (double)part / (double)whole : NAN;
}

/* Probability of at most k events where mean ones are expected. */
static double
sum_poisson(size_t k, double mean)
{
	double p = 0;
	size_t i;

	for (i = 0; i <= k; i++)
		p += exp((double)i * log(mean) - mean - lgamma((double)i + 1));
	return p;
}

double
detect_poisson_bound(size_t events)
{
	double lo = (double)events + 1e-9,
	       hi = (double)events + 10 + 4 * sqrt((double)events + 1);
	int i;

	for (i = 0; i < 100; i++) {
		double mid = 0.5 * (lo + hi);

		if (sum_poisson(events, mid) > 0.05)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}
