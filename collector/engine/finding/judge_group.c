/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/judge_group.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/finding/judge_arbiter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The ways in which workers are parted here, in the order in which equals are told. */
static const enum ls_group_way judge_group_ways[] = { LS_WAY_SLICE, LS_WAY_RACK,
	LS_WAY_SHARD, LS_WAY_HOST };
#define JUDGE_GROUP_WAYS (sizeof(judge_group_ways) / sizeof(judge_group_ways[0]))

double
ls_judge_group_excess(const struct ls_job *j, size_t slot)
{
	const struct ls_detect_worker *w = &j->detect.worker[slot];
	const struct ls_detect_channel *ch = &w->channel[LS_DETECT_CHRONIC];
	double excess_s = ch->level == LS_LEVEL_QUIET || ch->ep.steps == 0
		? 0
		: ch->ep.excess_s / (double)ch->ep.steps;

	if (!w->has_last_x)
		return NAN;
	/* its episode may have begun long before it was named, by noise, or be of few steps as yet */
	return !w->said ? excess_s
			: fmax(excess_s,
				  ls_scales_said(&j->scales, LS_SCALES_EXCESS, slot) *
					  j->detect.step_s);
}

/* The way in which the worker is in a late group, or NONE. excess_s: of each worker; 0 if the finding of another group has it. Uses scratch of the
 * job's room. */
static enum ls_group_way
judge_group_test(const struct ls_engine *e, struct ls_job *j, size_t slot,
	double (*excess_s)(const struct ls_job *j, size_t slot))
{
	struct ls_group_part part[JUDGE_GROUP_WAYS];
	enum ls_group_way way[JUDGE_GROUP_WAYS];
	size_t parts = 0, found;

	LS_WORKERS (e, j, w) {
		bool told = j->detect.worker[w->slot].way != LS_WAY_NONE &&
			j->detect.worker[w->slot].found != 0 &&
			!ls_job_same_group(e, j, w->slot, slot);

		j->room.a[w->slot] = told ? 0 : excess_s(j, w->slot);
		j->room.index[w->slot] = w->host;
	}
	for (size_t k = 0; k < JUDGE_GROUP_WAYS; k++) {
		const struct ls_job_groups *g =
			ls_job_groups_of(j, judge_group_ways[k]);
		bool host = judge_group_ways[k] == LS_WAY_HOST;

		if (g == NULL && !host)
			continue;
		way[parts] = judge_group_ways[k];
		part[parts++] = (struct ls_group_part){ host ? j->room.index : g->of,
			host ? 2 : LS_PEERS,
			!host && g->of[slot] < g->scales.count &&
				g->scales.named[g->of[slot]] != 0 };
	}
	found = ls_group_find(j->room.a, j->count, slot, part, parts);
	return found < parts ? way[found] : LS_WAY_NONE;
}

/* What is found of a worker is told in another way from now on; what was told before is
 * over. */
static void
judge_group_move(struct ls_engine *e, struct ls_job *j, size_t slot,
	enum ls_group_way way, uint64_t step, int64_t now_us)
{
	struct ls_finding was = ls_judge_group_subject(e, j, slot), is, *f;

	if (j->detect.worker[slot].way == way)
		return;
	j->detect.worker[slot].way = (uint8_t)way;
	is = ls_judge_group_subject(e, j, slot);
	f = ls_findings_open(e, &was);
	if (f == NULL || ls_arbiter_holds(e, j, f))
		return;
	if (ls_finding_same_subject(&was, &is))
		f->scope = is.scope; /* the host that a rank stands for */
	else
		ls_findings_clear(e, f, step, now_us);
}

/* What is found of the workers of this one's group is told of the group from now on. */
static void
judge_group_take(struct ls_engine *e, struct ls_job *j, size_t slot, uint64_t step,
	int64_t now_us)
{
	enum ls_group_way way = (enum ls_group_way)j->detect.worker[slot].way;

	for (size_t i = 0; i < j->count; i++)
		if (i != slot && j->detect.worker[i].way != way &&
			j->detect.worker[i].found != 0 &&
			ls_job_same_group(e, j, slot, i))
			judge_group_move(e, j, i, way, step, now_us);
}

/* The way by which other members of this worker's group are told already; NONE if there is none, or if the worker is twice as
 * slow as they are. */
static enum ls_group_way
judge_group_joins(const struct ls_engine *e, const struct ls_job *j, size_t slot)
{
	double least_s = LS_HALF * ls_judge_group_excess(j, slot);

	for (size_t i = 0; i < j->count; i++)
		if (i != slot && j->detect.worker[i].found != 0 &&
			ls_job_same_group(e, j, i, slot) &&
			ls_judge_group_excess(j, i) >= least_s)
			return (enum ls_group_way)j->detect.worker[i].way;
	return LS_WAY_NONE;
}

void
ls_judge_group_choose(struct ls_engine *e, struct ls_job *j, size_t slot, uint64_t step,
	int64_t now_us)
{
	enum ls_group_way way = judge_group_test(e, j, slot, ls_judge_group_excess);

	if (way == LS_WAY_NONE)
		way = judge_group_joins(e, j, slot);
	judge_group_move(e, j, slot, way, step, now_us);
	if (way != LS_WAY_NONE)
		judge_group_take(e, j, slot, step, now_us);
}

void
ls_judge_group_adopt(struct ls_engine *e, const struct ls_job *j, size_t slot,
	const struct ls_finding *group, int64_t now_us)
{
	LS_FINDINGS (e, f) {
		const struct ls_engine_worker *w;

		if (ls_finding_is_open(f) || f->cleared_us != now_us ||
			(f->scope != LS_SCOPE_HOST && f->scope != LS_SCOPE_RANK) ||
			strcmp(f->who.job, j->name) != 0)
			continue;
		w = ls_job_worker(e, j, &f->who);
		if (w != NULL && ls_job_same_group(e, j, slot, w->slot))
			ls_findings_part_of(e, f, group, now_us);
	}
}

/* Of the workers that have a finding of their own, the one with the greatest excess; SIZE_MAX: none. */
static size_t
judge_group_worst(const struct ls_job *j)
{
	size_t worst = SIZE_MAX;

	for (size_t i = 0; i < j->count; i++)
		if (j->detect.worker[i].way == LS_WAY_NONE &&
			j->detect.worker[i].found != 0 &&
			ls_judge_group_excess(j, i) >
				(worst == SIZE_MAX ? 0
						   : ls_judge_group_excess(j, worst)))
			worst = i;
	return worst;
}

void
ls_judge_group_scales(struct ls_job *j)
{
	for (size_t k = 0; k < JUDGE_GROUP_WAYS; k++) {
		struct ls_job_groups *g = (struct ls_job_groups *)ls_job_groups_of(j,
			judge_group_ways[k]);
		uint32_t all[] = { 0, g == NULL ? 0 : g->count };

		/* not compared: kinds with so many groups that they would take more than a third of the workers' memory, or
		 * if there is no memory */
		if (all[1] < 2 || all[1] * LS_PEERS > j->count ||
			ls_scales_reserve(&g->scales, all[1]) != 0)
			continue;
		for (uint32_t i = 0; i < g->count; i++)
			j->room.index[i] = i;
		ls_scales_groups(&g->scales, &j->scales, g->sorted, g->start,
			&(struct ls_blame_room){ .sorted = j->room.index,
				.start = all,
				.role_count = 1 });
	}
}

bool
ls_judge_group_has(const struct ls_job *j, const struct ls_finding *f, size_t slot)
{
	bool slice = f->scope == LS_SCOPE_SLICE;
	const struct ls_job_groups *g =
		slice ? &j->slices : ls_job_groups_of(j, f->way);

	return g != NULL && g->of[slot] != LS_GROUP_NO &&
		strcmp(g->names[g->of[slot]], slice ? f->who.slice : f->group) == 0;
}

/* The excess of a worker of which something is found, 0 of the others; NaN of one that did not report. */
static double
judge_group_found_excess(const struct ls_job *j, size_t slot)
{
	double excess_s = ls_judge_group_excess(j, slot);

	return j->detect.worker[slot].found != 0 ? excess_s : 0 * excess_s;
}

size_t
ls_judge_regroup(struct ls_engine *e, struct ls_job *j, uint64_t step, int64_t now_us)
{
	size_t worst;

	if (j->detect.open == 0 || j->detect.judged % LS_LOOK != 0)
		return SIZE_MAX;
	worst = judge_group_worst(j);
	if (worst == SIZE_MAX ||
		judge_group_test(e, j, worst, judge_group_found_excess) == LS_WAY_NONE)
		return SIZE_MAX;
	ls_judge_group_choose(e, j, worst, step, now_us);
	return worst;
}

/* The first worker of the host: it stands for all of them. */
static const struct ls_engine_worker *
judge_group_first(const struct ls_engine *e, const struct ls_job *j, size_t slot)
{
	const struct ls_engine_worker *first = &e->workers[j->slots[slot]];

	LS_WORKERS (e, j, w) {
		if (w->host == first->host && w->info.rank < first->info.rank)
			first = w;
	}
	return first;
}

struct ls_finding
ls_judge_group_subject(const struct ls_engine *e, const struct ls_job *j, size_t slot)
{
	struct ls_finding f = ls_findings_of_worker(e, j, &e->workers[j->slots[slot]]);
	unsigned way = j->detect.worker[slot].way;
	const struct ls_job_groups *groups = ls_job_groups_of(j, way);

	if (way == LS_WAY_HOST) {
		f.scope = LS_SCOPE_HOST;
		f.who = judge_group_first(e, j, slot)->info;
	} else if (way == LS_WAY_SLICE) {
		f.scope = LS_SCOPE_SLICE;
	} else if (groups != NULL) {
		f.scope = way == LS_WAY_SHARD ? LS_SCOPE_SHARD : LS_SCOPE_GROUP;
		f.way = (enum ls_group_way)way;
		memcpy(f.group, groups->names[groups->of[slot]], sizeof(f.group));
	}
	return f;
}

void
ls_judge_hosts_of(const struct ls_engine *e, const struct ls_job *j, const uint32_t *of,
	uint32_t group, struct ls_finding *f)
{
	f->member_hosts = (uint32_t)ls_job_hosts(e, j, of, group);
	if (f->members == NULL)
		f->members = calloc(LS_FINDING_HOSTS_MAX, sizeof(*f->members));
	f->member_count = f->members == NULL		 ? 0
		: f->member_hosts < LS_FINDING_HOSTS_MAX ? f->member_hosts
							 : LS_FINDING_HOSTS_MAX;
	for (uint32_t i = 0; i < f->member_count; i++)
		memcpy(f->members[i], e->hosts[j->room.index[i]].name,
			sizeof(f->members[i]));
}

void
ls_judge_group_members(const struct ls_engine *e, const struct ls_job *j, size_t slot,
	struct ls_finding *f)
{
	const struct ls_job_groups *g = ls_job_groups_of(j, f->way);

	if (g != NULL)
		ls_judge_hosts_of(e, j, g->of, g->of[slot], f);
}
