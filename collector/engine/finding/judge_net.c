/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/judge_net.h"
#include "collector/engine/attribute/evidence.h"
#include "collector/engine/finding/findings.h"
#include "proto/base/mem.h"

#include <string.h>

struct ls_finding
ls_judge_net_subject(const struct ls_engine *e, const struct ls_job *j, size_t at)
{
	const struct ls_detect_net *net = &j->detect.net[at];
	struct ls_finding f = ls_findings_of_job(e, j, LS_KIND_JOB_SLOW);

	f.scope = at > 0 ? LS_SCOPE_SLICE : LS_SCOPE_JOB;
	if (at > 0)
		memcpy(f.who.slice, j->slices.names[at - 1], sizeof(f.who.slice));
	if (net->names == LS_NET_HOST) {
		f = ls_findings_of_worker(e, j, &e->workers[j->slots[net->slot]]);
		f.kind = LS_KIND_STRAGGLER;
	} else if (net->names == LS_NET_LINK) {
		const struct ls_worker_info *peer =
			&e->workers[j->slots[net->peer]].info;

		f.kind = LS_KIND_LINK;
		f.scope = LS_SCOPE_LINK;
		f.who = e->workers[j->slots[net->slot]].info;
		f.peer_rank = peer->rank;
		memcpy(f.peer_host, peer->host, sizeof(f.peer_host));
	}
	f.comm = true;
	return f;
}

bool
ls_judge_net_rename(const struct ls_engine *e, struct ls_job *j, size_t at,
	int64_t now_us)
{
	const struct ls_suspect who = { .net = true, .at = at };
	struct ls_detect_net *net = &j->detect.net[at];
	size_t slot = SIZE_MAX;

	LS_EACH (const struct ls_detect_channel, ch, net->channel, LS_DETECT_KIND_COUNT)
		/* even who comes last waits for most of a step: it is one program; false for NaN */
		if (slot == SIZE_MAX && ch->level == LS_LEVEL_FINDING &&
			net->wait.base >= LS_HALF * ch->ep.before_s)
			slot = ls_evidence_net_host(e, j, who, ch, now_us);
	if (slot == SIZE_MAX)
		return false;
	net->slot = slot;
	net->names = LS_NET_HOST;
	return true;
}

void
ls_judge_net_choose(const struct ls_engine *e, struct ls_job *j, size_t at,
	int64_t now_us)
{
	struct ls_detect_net *net = &j->detect.net[at];
	uint32_t rank;
	const struct ls_engine_worker *peer =
		ls_detect_link(&j->detect, at, j->slices.of, &net->slot, &rank)
		? ls_job_rank(e, j, (int32_t)rank)
		: NULL;

	net->names = peer != NULL && peer->slot != net->slot ? LS_NET_LINK : LS_NET_ALL;
	net->peer = peer != NULL ? peer->slot : 0;
	if (net->names == LS_NET_ALL)
		(void)ls_judge_net_rename(e, j, at, now_us); /* or it stays so */
}

bool
ls_judge_net_is_link(const struct ls_engine *e, const struct ls_job *j,
	struct ls_suspect who, const struct ls_detect_channel *ch, int64_t now_us)
{
	/* with one barrier a step the job's net is the whole program, and slices have none */
	bool between = who.at == 0 && j->detect.net_count > 1 &&
		j->detect.net[1].arrival.n > 0;

	return between || j->detect.net[who.at].names == LS_NET_LINK ||
		ls_evidence_resends(e, j, who, ch, now_us);
}
