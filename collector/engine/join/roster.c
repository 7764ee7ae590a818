/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roster - the part of the engine that knows jobs, hosts and workers: who is who, and
 * who gives up its place when all are taken. (Interface: engine.h and engine_state.h.)
 */
#include "config.h"
#include "collector/engine/engine_state.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/detect/reference.h"
#include "proto/base/mem.h"
#include "proto/base/text.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A handle is the position of a worker and, above it, how often the position was given
 * away: handles of workers that are no more stay unknown. The top bit stays 0, so
 * LS_NO_WORKER is none.
 */
#define ROSTER_POSITION_BITS 16
#define ROSTER_POSITION_MASK 0xffffu
#define ROSTER_GENERATION_MASK 0x7fffu
#define ROSTER_CLAIM_US LS_ENGINE_US(LS_LATE_S)

_Static_assert(LS_WORKERS_MAX <= ROSTER_POSITION_MASK + 1,
	"a position must fit its bits");

struct ls_engine_worker *
ls_engine_find_worker(const struct ls_engine *e, uint32_t handle)
{
	uint32_t position = handle & ROSTER_POSITION_MASK;

	if (position >= e->worker_count || !e->workers[position].current ||
		e->workers[position].generation != handle >> ROSTER_POSITION_BITS)
		return NULL;
	return &e->workers[position];
}

bool
ls_engine_has_worker(const struct ls_engine *e, uint32_t worker)
{
	return ls_engine_find_worker(e, worker) != NULL;
}

static uint32_t
roster_handle(const struct ls_engine *e, const struct ls_engine_worker *w)
{
	return w->generation << ROSTER_POSITION_BITS | (uint32_t)(w - e->workers);
}

/* Drops what belongs to one attempt. */
static void
roster_reset_job(struct ls_job *j)
{
	ls_job_drop_rows(j);
	ls_detect_fini(&j->detect);
	ls_replica_fini(&j->replica);
	ls_scales_fini(&j->scales);
	ls_pulse_fini(&j->pulse);
	ls_rhythm_fini(&j->rhythm);
	ls_index_fini(&j->rank_index);
	LS_EACH (struct ls_job_groups, g, j->groups, LS_JOB_GROUPS) {
		ls_index_fini(&g->index);
		ls_scales_fini(&g->scales);
		g->count = 0;
	}
	ls_stages_fini(&j->compare);
	free(j->live);
	free(j->lost);
	memset((char *)j + offsetof(struct ls_job, count), 0,
		sizeof(*j) - offsetof(struct ls_job, count));
}

/* The present attempt is over: its workers give up their places. */
static void
roster_release_workers(struct ls_engine *e, struct ls_job *j)
{
	ls_reference_keep(e, j);
	for (size_t i = 0; i < j->count; i++) {
		struct ls_engine_worker *w = &e->workers[j->slots[i]];

		w->current = false;
		e->unheard -= !w->reported;
		e->hosts[w->host].workers--;
		w->generation = (w->generation + 1) & ROSTER_GENERATION_MASK;
		w->slot = e->free_worker; /* the next free one */
		e->free_worker = j->slots[i];
		ls_counters_fini(&w->counters);
	}
	roster_reset_job(j);
}

void
ls_job_fini(struct ls_job *j)
{
	roster_reset_job(j);
	ls_blame_fini(&j->room);
	free(j->slots);
	LS_EACH (struct ls_job_groups, g, j->groups, LS_JOB_GROUPS) {
		free(g->of);
		free(g->names);
	}
	free(j->residuals);
	free(j->recent);
	free(j->slice_nets);
}

/* Are all places of workers taken? */
static bool
roster_is_full(const struct ls_engine *e)
{
	return e->worker_count == LS_WORKERS_MAX && e->free_worker == LS_INDEX_NONE;
}

static bool
roster_is_heard(const struct ls_engine_worker *w)
{
	return ls_worker_reports(w) || w->reported;
}

/* Of the jobs with at least so many workers, the one that has been quiet for longest gives up its workers. unheard:
 * only a job that never had a record. NULL: there is no such job. */
static struct ls_job *
roster_retire(struct ls_engine *e, size_t least, bool unheard, int64_t now_us)
{
	struct ls_job *oldest = NULL;

	LS_JOBS (e, j)
		if ((oldest == NULL || j->last_us < oldest->last_us) &&
			j->count >= least &&
			ls_job_workers(e, j,
				unheard ? roster_is_heard : ls_worker_reports) == 0)
			oldest = j;
	if (oldest == NULL)
		return NULL;
	ls_findings_clear_job(e, oldest, LS_REASON_NOT_MEASURED, now_us);
	roster_release_workers(e, oldest);
	oldest->attempt = -1;
	return oldest;
}

void
ls_roster_yield(struct ls_engine *e, int64_t now_us)
{
	bool full = roster_is_full(e);

	if (full || e->unheard >= LS_WORKERS_UNHEARD_MAX)
		(void)roster_retire(e, 1, !full, now_us);
}

/* The job of this name, made if new: when all places are taken, the one that has been quiet for longest is forgotten. */
static int
roster_job(struct ls_engine *e, const char *name, int64_t now_us,
	struct ls_job **ret_job)
{
	struct ls_job *j = ls_engine_find_job(e, name);
	bool fresh = e->job_count < LS_JOBS_MAX;

	if (j != NULL) {
		*ret_job = j;
		return 0;
	}
	j = fresh ? &e->jobs[e->job_count] : roster_retire(e, 0, false, now_us);
	if (j == NULL)
		return -LS_ELIMIT;
	if (!fresh) {
		ls_index_remove(&e->job_index, ls_index_hash_text(j->name),
			(uint32_t)(j - e->jobs));
		ls_job_fini(j);
	}
	*j = (struct ls_job){ .attempt = -1, .first_us = now_us, .last_us = now_us };
	/* the name was checked; and only a fresh place can fail: the index has room for a retired one */
	if (ls_text_copy(j->name, sizeof(j->name), name) != 0 ||
		ls_index_put(&e->job_index, ls_index_hash_text(name),
			(uint32_t)(j - e->jobs)) != 0)
		return -ENOMEM;
	e->job_count += fresh;
	ls_reference_shape(e, j);
	e->stats.jobs++;
	*ret_job = j;
	return 0;
}

/* When all places are taken: the host without a worker that was heard of last the
 * longest ago. */
static uint32_t
roster_retire_host(struct ls_engine *e)
{
	struct ls_engine_host *oldest = NULL;

	LS_EACH (struct ls_engine_host, h, e->hosts, e->host_count)
		if (h->workers == 0 && (oldest == NULL || h->seen_us < oldest->seen_us))
			oldest = h;
	if (oldest != NULL) {
		ls_index_remove(&e->host_index, ls_index_hash_text(oldest->name),
			(uint32_t)(oldest - e->hosts));
		ls_counters_fini(&oldest->counters);
	}
	return oldest == NULL ? LS_INDEX_NONE : (uint32_t)(oldest - e->hosts);
}

int
ls_engine_host(struct ls_engine *e, const char *name, int64_t now_us,
	uint32_t *ret_host)
{
	uint32_t at = ls_engine_find_host(e, name);
	bool fresh = e->host_count < LS_AGENTS_MAX;

	if (at != LS_INDEX_NONE) {
		*ret_host = at;
		return 0;
	}
	if (!ls_text_is_name(name, strlen(name), LS_HOST_NAME_MAX_BYTES - 1))
		return -LS_ERANGE;
	if (ls_mem_grow((void **)&e->hosts, e->host_count, &e->host_capacity,
		    sizeof(*e->hosts)) != 0)
		return -ENOMEM;
	at = fresh ? (uint32_t)e->host_count : roster_retire_host(e);
	if (at == LS_INDEX_NONE)
		return -LS_ELIMIT;
	e->hosts[at] = (struct ls_engine_host){ .seen_us = now_us };
	memcpy(e->hosts[at].name, name, strlen(name) + 1);
	if (ls_index_put(&e->host_index, ls_index_hash_text(name), at) != 0)
		return -ENOMEM; /* as for jobs */
	e->host_count += fresh;
	*ret_host = at;
	return 0;
}

/* Room for one more worker in the job's arrays by slot. */
static int
roster_reserve_slot(struct ls_job *j)
{
	size_t capacity = j->capacity == 0 ? 1 : j->capacity * 2;

	if (j->count < j->capacity)
		return 0;
	if (ls_mem_resize((void **)&j->recent, capacity, sizeof(*j->recent)) != 0 ||
		ls_mem_resize((void **)&j->slots, capacity, sizeof(*j->slots)) != 0 ||
		ls_mem_resize((void **)&j->slice_nets, capacity,
			sizeof(*j->slice_nets)) != 0 ||
		ls_mem_resize((void **)&j->residuals, capacity,
			sizeof(*j->residuals)) != 0 ||
		ls_blame_reserve(&j->room, capacity) != 0)
		return -ENOMEM;
	memset(&j->recent[j->capacity], 0,
		(capacity - j->capacity) * sizeof(*j->recent));
	j->grouped = false; /* sorted and start move */
	LS_EACH (struct ls_job_groups, g, j->groups, LS_JOB_GROUPS) {
		if (ls_mem_resize((void **)&g->names, capacity, sizeof(*g->names)) !=
				0 ||
			ls_mem_resize((void **)&g->of, 3 * capacity + 1,
				sizeof(*g->of)) != 0)
			return -ENOMEM;
		g->sorted = g->of + capacity;
		g->start = g->sorted + capacity;
	}
	j->capacity = capacity;
	return 0;
}

/* Puts a slot into the group of this name, new or known; there are never more of them than workers. */
static int
roster_group(struct ls_job_groups *g, uint32_t slot, const char *name)
{
	uint32_t at = ls_index_find(&g->index, name, g->names, sizeof(*g->names));

	if (at == LS_INDEX_NONE) {
		if (g->count > slot || /* names of workers that were refused */
			ls_index_put(&g->index, ls_index_hash_text(name), g->count) !=
				0)
			return -ENOMEM;
		at = g->count++;
		memcpy(g->names[at], name, strlen(name) + 1);
	}
	g->of[slot] = at;
	return 0;
}

/* The same of a name that need not be told. */
static int
roster_place(struct ls_job_groups *g, uint32_t slot, const char *name)
{
	g->of[slot] = LS_GROUP_NO;
	return name[0] == '\0' ? 0 : roster_group(g, slot, name);
}

/* The same of the stage that a role belongs to. */
static int
roster_stage(struct ls_job_groups *g, uint32_t slot, const char *role)
{
	char name[LS_JOB_GROUP_NAME_BYTES];

	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(role, "-"), role);
	return roster_group(g, slot, name);
}

/* The place for a worker of this rank: its own; else that of an ended worker of this rank; else NULL. A silent worker keeps its place: its host may
 * return. Beside a reporting worker, another user on its host is another worker. */
static struct ls_engine_worker *
roster_find(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_worker_info *who)
{
	struct ls_engine_worker *w = ls_job_worker(e, j, who);
	size_t walk = 0;

	if (w != NULL &&
		(w->state != LS_WORKER_REPORTING ||
			ls_worker_same_owner(&w->info, who)))
		return w;
	do
		w = ls_job_next_of_rank(e, j, who->rank, &walk);
	while (w != NULL && !ls_worker_is_gone(w));
	return w;
}

/* Makes room for one more worker of a job, wherever there is a number for each. */
static int
roster_reserve(struct ls_job *j, uint32_t slot, const struct ls_worker_info *info)
{
	return roster_reserve_slot(j) != 0 ||
			ls_detect_reserve(&j->detect, j->count + 1) != 0 ||
			ls_scales_reserve(&j->scales, j->count + 1) != 0 ||
			roster_group(&j->roles, slot, info->role) != 0 ||
			roster_group(&j->slices, slot, info->slice) != 0 ||
			roster_place(&j->racks, slot, info->rack) != 0 ||
			roster_place(&j->shards, slot, info->shard) != 0 ||
			roster_stage(&j->stages, slot, info->role) != 0 ||
			ls_detect_reserve_slices(&j->detect, j->slices.count) != 0
		? -ENOMEM
		: 0;
}

static int
roster_add(struct ls_engine *e, struct ls_job *j, const struct ls_worker_info *info,
	int64_t now_us, struct ls_engine_worker **ret_worker)
{
	struct ls_engine_worker *w;
	uint32_t host, slot = (uint32_t)j->count;
	bool fresh = e->free_worker == LS_INDEX_NONE; /* else a place given up */
	int rc = ls_engine_host(e, info->host, now_us, &host);

	if (rc == 0 &&
		(e->hosts[host].workers >= LS_HOST_WORKERS_MAX || roster_is_full(e)))
		rc = -LS_ELIMIT;
	if (rc == 0)
		rc = roster_reserve(j, slot, info);
	if (rc == 0 && fresh)
		rc = ls_mem_grow((void **)&e->workers, e->worker_count,
			&e->worker_capacity, sizeof(*e->workers));
	if (rc == 0)
		rc = ls_index_put(&j->rank_index,
			ls_index_hash_number((uint64_t)info->rank), slot);
	if (rc != 0)
		return rc;
	j->slots[slot] = fresh ? (uint32_t)e->worker_count++ : e->free_worker;
	w = &e->workers[j->slots[slot]];
	if (!fresh)
		e->free_worker = w->slot; /* the next one */
	*w = (struct ls_engine_worker){ .info = *info,
		.generation = fresh ? 0 : w->generation,
		.job = (uint32_t)(j - e->jobs),
		.host = host,
		.slot = slot,
		.current = true,
		.seen_us = now_us,
		.clock_err_s = NAN };
	w->info.attempt = j->attempt;
	j->count++;
	e->hosts[host].workers++;
	e->unheard++;
	j->active_known = false;
	j->grouped = false;
	if (info->world > j->world)
		j->world = info->world;
	if (info->world > 0 && (j->world_least == 0 || info->world < j->world_least))
		j->world_least = info->world;
	if (info->rank > j->rank_most)
		j->rank_most = info->rank;
	e->stats.workers++;
	ls_reference_worker(e, j, w);
	*ret_worker = w;
	return 0;
}

void
ls_roster_world(const struct ls_engine *e, struct ls_job *j)
{
	int32_t most = 0, least = 0;

	LS_WORKERS (e, j, w) {
		int32_t world = w->info.world;

		if (w->state != LS_WORKER_REPORTING || world == 0)
			continue;
		most = world > most ? world : most;
		least = least == 0 || world < least ? world : least;
	}
	if (most == 0)
		return; /* what was said last holds */
	j->world = most;
	j->world_least = least;
}

void
ls_roster_revive(struct ls_engine *e, struct ls_job *j, struct ls_engine_worker *w,
	int64_t now_us)
{
	j->gone -= ls_worker_is_gone(w);
	w->state = LS_WORKER_REPORTING;
	e->unheard += w->reported;
	w->reported = false; /* it may begin at an earlier step, of a checkpoint */
	w->seen_us = now_us;
	w->missed = 0;
	j->active_known = false;
}

/* A rank that ended is back, perhaps on another host: then its history is another's. */
static int
roster_return(struct ls_engine *e, struct ls_job *j, struct ls_engine_worker *w,
	const struct ls_worker_info *info, int64_t now_us)
{
	uint32_t host;
	int rc = ls_engine_host(e, info->host, now_us, &host);

	if (rc != 0)
		return rc;
	if (host != w->host) {
		ls_detect_reset_worker(&j->detect, w->slot);
		if (w->slot < j->replica.capacity)
			j->replica.worker[w->slot] = (struct ls_replica_worker){ 0 };
		ls_scales_reset_worker(&j->scales, w->slot);
		ls_rhythm_reset_worker(&j->rhythm, w->slot);
		e->hosts[w->host].workers--;
		e->hosts[host].workers++;
		w->host = host;
		memcpy(w->info.host, info->host, sizeof(info->host));
		memcpy(w->info.rack, info->rack, sizeof(info->rack));
		w->info.chips = info->chips;
		/* of a rack that has no other worker here nothing is compared */
		j->racks.of[w->slot] = ls_index_find(&j->racks.index, info->rack,
			j->racks.names, sizeof(*j->racks.names));
		j->grouped = false;
		ls_reference_worker(e, j, w);
	}
	ls_roster_revive(e, j, w, now_us);
	return 0;
}

void
ls_roster_again(struct ls_engine *e, struct ls_job *j, int64_t now_us)
{
	ls_findings_clear_job(e, j, LS_REASON_ATTEMPT_ENDED, now_us);
	ls_reference_keep(e, j);
	ls_job_drop_rows(j);
	ls_job_relearn(j);
	j->identity = (struct ls_job_identity){ 0 };
	j->run_us = now_us;
	j->again = true;
	LS_WORKERS (e, j, w)
		ls_reference_worker(e, j, w);
}

static bool
roster_is_name(const char *name, size_t size, bool needed)
{
	return name[0] == '\0' ? !needed
			       : ls_text_is_name(name, strlen(name), size - 1);
}

static bool
roster_info_ok(const struct ls_worker_info *i)
{
	return roster_is_name(i->job, sizeof(i->job), true) &&
		roster_is_name(i->host, sizeof(i->host), true) &&
		roster_is_name(i->slice, sizeof(i->slice), false) &&
		roster_is_name(i->role, sizeof(i->role), false) &&
		roster_is_name(i->rack, sizeof(i->rack), false) &&
		roster_is_name(i->shard, sizeof(i->shard), false) && i->rank >= 0 &&
		i->rank < (int32_t)LS_WORKERS_MAX && i->chips >= 0 && i->world >= 0 &&
		i->world <= (int32_t)LS_WORKERS_MAX;
}

/* May the owner of a worker end the present attempt? Not against those who report. After a refusal they are looked at again 2 s later. */
static bool
roster_may_end(const struct ls_engine *e, struct ls_job *j,
	const struct ls_worker_info *info, bool far, int64_t now_us)
{
	const struct ls_engine_worker *w = ls_job_worker(e, j, info);
	size_t own = 0, others = 0;

	if (!far && w != NULL && w->reported && ls_worker_same_owner(&w->info, info))
		return true;
	if (now_us < j->claim_us + ROSTER_CLAIM_US)
		return false;
	LS_WORKERS (e, j, one)
		if (one->reported && ls_worker_same_owner(&one->info, info))
			own++;
		else if (one->reported)
			others += j->manual || ls_worker_reports(one);
	if (others == 0 || own > (far ? others : 0))
		return true;
	j->claim_us = now_us;
	return false;
}

/* Remembers a process of another attempt; of too many, the one rejected last the longest
 * ago is forgotten. */
static void
roster_lose(struct ls_job *j, const struct ls_worker_info *info, int32_t attempt,
	int64_t now_us)
{
	size_t at = 0, oldest = 0;

	if (j->lost == NULL)
		j->lost = calloc(LS_JOB_LOST_MAX, sizeof(*j->lost));
	if (j->lost == NULL)
		return; /* no memory: intake counts its records as dropped */
	while (at < j->lost_count &&
		(j->lost[at].who.rank != info->rank ||
			strcmp(j->lost[at].who.host, info->host) != 0)) {
		oldest = j->lost[at].seen_us < j->lost[oldest].seen_us ? at : oldest;
		at++;
	}
	at = at < LS_JOB_LOST_MAX ? at : oldest;
	j->lost_count += at == j->lost_count;
	j->lost[at] = (struct ls_job_lost){ *info, now_us };
	j->lost[at].who.attempt = attempt; /* -1 is decided here */
}

/* Makes the attempt of a worker the present one; -1: the next one, if its rank had ended. A record of a number far below shows that the present
 * number is wrong. */
static int
roster_attempt(struct ls_engine *e, struct ls_job *j, const struct ls_worker_info *info,
	bool record, int64_t now_us)
{
	const struct ls_engine_worker *w = roster_find(e, j, info);
	int32_t attempt = info->attempt;
	bool far;

	if (attempt < 0 && j->attempt < 0)
		attempt = 0;
	else if (attempt < 0)
		attempt = j->attempt +
			(w != NULL && ls_worker_is_gone(w) &&
				!j->replica.on); /* alone */
	if (attempt == j->attempt)
		return 0;
	far = llabs((int64_t)attempt - j->attempt) > LS_ATTEMPT_JUMP_MAX;
	if (attempt < j->attempt &&
		!(far && record && roster_may_end(e, j, info, far, now_us))) {
		if (record) /* else its process may have ended with its attempt */
			roster_lose(j, info, attempt, now_us);
		return -LS_ESTALE;
	}
	if (!roster_may_end(e, j, info, far, now_us)) {
		e->stats.lies[LS_LIE_ATTEMPT]++; /* perhaps of its launcher */
		roster_lose(j, info, attempt, now_us);
		return -LS_EBUSY;
	}
	/* what storage told of the job is not of an attempt before */
	if (j->attempt >= 0)
		ls_findings_clear_job(e, j, LS_REASON_ATTEMPT_ENDED, now_us);
	roster_release_workers(e, j);
	j->attempt = attempt;
	j->run_us = now_us;
	j->again = false;
	return 0;
}

/* Are two names known, and not the same? Another source may know none. */
static bool
roster_differ(const char *a, const char *b)
{
	return a[0] != '\0' && b[0] != '\0' && strcmp(a, b) != 0;
}

static int
roster_declare(struct ls_engine *e, const struct ls_worker_info *info, bool record,
	int64_t now_us, uint32_t *ret_worker)
{
	struct ls_engine_worker *w;
	struct ls_job *j;
	int rc;

	if (!roster_info_ok(info)) {
		ls_engine_lie(e, info->host, LS_LIE_WORKER, 1);
		return -LS_ERANGE;
	}
	rc = roster_job(e, info->job, now_us, &j);
	if (rc == 0)
		rc = roster_attempt(e, j, info, record, now_us);
	if (rc != 0)
		return rc;
	w = roster_find(e, j, info);
	if (w == NULL) {
		size_t walk = 0;
		bool twin = ls_job_next_of_rank(e, j, info->rank, &walk) != NULL;

		rc = roster_add(e, j, info, now_us, &w);
		j->twins += rc == 0 && twin;
		e->stats.duplicate_ranks += rc == 0 && twin;
	} else if (ls_worker_is_gone(w)) {
		rc = roster_return(e, j, w, info, now_us);
	} else if (roster_differ(info->role, w->info.role) ||
		roster_differ(info->slice, w->info.slice)) {
		ls_engine_lie(e, info->host, LS_LIE_ROLE, 1);
	}
	if (rc != 0)
		return rc;
	if (info->world > 0 && info->world != w->info.world) {
		w->info.world = info->world; /* an elastic job has grown or shrunk */
		ls_roster_world(e, j);
	}
	w->info.step_source = info->step_source; /* a worker may come back with marks */
	w->info.step_confidence = info->step_confidence;
	if (info->owner != 0)
		w->info.owner = info->owner; /* a restarted pod may have another */
	w->info.slices = info->slices;
	j->has_slices = j->has_slices || info->slices > 0;
	memcpy(w->info.refused_rank, info->refused_rank, sizeof(info->refused_rank));
	j->has_refused = j->has_refused || info->refused_rank[0] != '\0';
	*ret_worker = roster_handle(e, w);
	return 0;
}

int
ls_engine_worker(struct ls_engine *e, const struct ls_worker_info *info, int64_t now_us,
	uint32_t *ret_worker)
{
	return roster_declare(e, info, true, now_us, ret_worker);
}

int
ls_engine_announce(struct ls_engine *e, const struct ls_worker_info *info,
	int64_t now_us, uint32_t *ret_worker)
{
	return e->unheard >= LS_WORKERS_UNHEARD_MAX
		? -LS_ELIMIT
		: roster_declare(e, info, false, now_us, ret_worker);
}
