/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/judge_arbiter.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/finding/judge_group.h"
#include "collector/engine/finding/judge_net.h"
#include "proto/base/mem.h"

#include <string.h>

bool
ls_arbiter_is_of_net(const struct ls_job *j, struct ls_suspect who)
{
	LS_EACH (const struct ls_detect_net, net, j->detect.net,
		who.net ? 0 : j->detect.net_count)
		if (net->names == LS_NET_HOST && net->slot == who.at &&
			ls_detect_found(net->channel) != 0)
			return j->detect.worker[who.at].way == LS_WAY_NONE;
	return false;
}

bool
ls_arbiter_is_of_earlier(const struct ls_job *j, struct ls_suspect who,
	const struct ls_finding *f, enum ls_detect_kind kind)
{
	return kind > f->detector &&
		((!who.net && j->detect.worker[who.at].way != LS_WAY_NONE) ||
			ls_suspect_channels(j, who)[f->detector].level ==
				LS_LEVEL_FINDING);
}

bool
ls_arbiter_is_of_other(const struct ls_engine *e, const struct ls_job *j, size_t slot,
	const struct ls_finding *subject, enum ls_detect_kind kind)
{
	const struct ls_finding *f = ls_findings_open(e, subject);
	const struct ls_detect_net *all = &j->detect.net[0];

	if (f == NULL || f->detector == kind)
		return false;
	if (slot != SIZE_MAX)
		return j->detect.worker[slot].found != 0 ||
			ls_arbiter_is_of_net(j, (struct ls_suspect){ .at = slot });
	return j->hang.on ||
		(all->names == LS_NET_ALL && ls_detect_found(all->channel) != 0);
}

/* By what joins workers: the host that it names, or all of them. */
static bool
arbiter_net_holds(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_finding *f)
{
	bool one = f->scope == LS_SCOPE_HOST || f->scope == LS_SCOPE_RANK;

	LS_EACH (const struct ls_detect_net, net, j->detect.net, j->detect.net_count) {
		struct ls_finding is;

		if (ls_detect_found(net->channel) == 0 ||
			one != (net->names == LS_NET_HOST))
			continue;
		is = ls_judge_net_subject(e, j, (size_t)(net - j->detect.net));
		if (ls_finding_same_subject(&is, f))
			return true;
	}
	return false;
}

/* Does a worker whose finding is about this group, slice or host still hold it? */
static bool
arbiter_group_holds(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_finding *f)
{
	for (size_t i = 0; i < j->count; i++) {
		struct ls_finding is;

		if (j->detect.worker[i].way == LS_WAY_NONE ||
			j->detect.worker[i].found == 0)
			continue;
		is = ls_judge_group_subject(e, j, i);
		if (ls_finding_same_subject(&is, f) && is.scope == f->scope)
			return true;
	}
	return false;
}

static bool
arbiter_stage_holds(const struct ls_job *j, const struct ls_finding *f)
{
	for (size_t k = 0; k < j->compare.count; k++)
		if (j->compare.stage[k].channel.level == LS_LEVEL_FINDING &&
			strcmp(j->stages.names[k], f->group) == 0)
			return true;
	return false;
}

/* By what is found of the worker alone. */
static bool
arbiter_worker_holds(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_finding *f)
{
	const struct ls_engine_worker *w = ls_job_worker(e, j, &f->who);

	return w != NULL &&
		((j->detect.worker[w->slot].way == LS_WAY_NONE &&
			 j->detect.worker[w->slot].found != 0) ||
			ls_rhythm_period_of(&j->rhythm, w->slot) != NULL);
}

bool
ls_arbiter_holds(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_finding *f)
{
	if (f->kind == LS_KIND_HANG)
		return j->hang.on;
	if (f->kind == LS_KIND_SELF_IDENTITY)
		return j->identity.since_us != 0;
	if (arbiter_net_holds(e, j, f))
		return true;
	switch (f->scope) {
	case LS_SCOPE_JOB:
		return j->pulse.on || j->rhythm.rotating.on;
	case LS_SCOPE_LINK:
		return false;
	case LS_SCOPE_RANK:
		return arbiter_worker_holds(e, j, f);
	case LS_SCOPE_HOST:
		return arbiter_worker_holds(e, j, f) || arbiter_group_holds(e, j, f);
	case LS_SCOPE_SLICE:
	case LS_SCOPE_GROUP:
	case LS_SCOPE_SHARD:
	case LS_SCOPE_COUNT:
	default:
		return f->way == LS_WAY_STAGE ? arbiter_stage_holds(j, f)
					      : arbiter_group_holds(e, j, f);
	}
}
