/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs - the part of the engine that looks up jobs and their workers, and changes nothing.
 * (Interface: engine_state.h.)
 */
#include "config.h"
#include "collector/engine/engine_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t
ls_job_workers(const struct ls_engine *e, const struct ls_job *j,
	bool (*are)(const struct ls_engine_worker *w))
{
	size_t n = 0;

	LS_WORKERS (e, j, w)
		n += are(w);
	return n;
}

double
ls_job_clock_err_s(const struct ls_engine *e, const struct ls_job *j)
{
	double most_s = NAN;

	LS_WORKERS (e, j, w)
		most_s = fmax(most_s, w->clock_err_s);
	return most_s;
}

struct ls_job *
ls_engine_find_job(const struct ls_engine *e, const char *name)
{
	uint32_t at = ls_index_find(&e->job_index, name, e->jobs, sizeof(*e->jobs));

	return at == LS_INDEX_NONE ? NULL : &e->jobs[at];
}

uint32_t
ls_engine_find_host(const struct ls_engine *e, const char *name)
{
	return ls_index_find(&e->host_index, name, e->hosts, sizeof(*e->hosts));
}

int32_t
ls_job_chips(const struct ls_engine *e, const struct ls_job *j)
{
	int64_t chips = 0;

	LS_WORKERS (e, j, w) {
		int32_t c = w->info.chips;

		if (c <= 0)
			return 0;
		chips += c;
	}
	return chips > INT32_MAX ? INT32_MAX : (int32_t)chips;
}

void
ls_job_step_source(const struct ls_engine *e, const struct ls_job *j,
	struct ls_worker_info *ret_info)
{
	const struct ls_worker_info *least = NULL;

	LS_WORKERS (e, j, w)
		if (w->info.step_source != LS_STEP_MARKER &&
			(least == NULL ||
				w->info.step_confidence < least->step_confidence))
			least = &w->info;
	ret_info->step_source = least == NULL ? LS_STEP_MARKER : least->step_source;
	ret_info->step_confidence = least == NULL ? 0 : least->step_confidence;
}

struct ls_engine_worker *
ls_job_next_of_rank(const struct ls_engine *e, const struct ls_job *j, int32_t rank,
	size_t *walk)
{
	uint32_t at;

	while ((at = ls_index_next(&j->rank_index, ls_index_hash_number((uint64_t)rank),
			walk)) != LS_INDEX_NONE)
		if (e->workers[j->slots[at]].info.rank == rank)
			return &e->workers[j->slots[at]];
	return NULL;
}

struct ls_engine_worker *
ls_job_rank(const struct ls_engine *e, const struct ls_job *j, int32_t rank)
{
	size_t walk = 0;
	struct ls_engine_worker *w = ls_job_next_of_rank(e, j, rank, &walk);

	return w != NULL && ls_job_next_of_rank(e, j, rank, &walk) == NULL ? w : NULL;
}

static int
job_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void
ls_job_sort(uint32_t *numbers, size_t n)
{
	if (n > 1)
		qsort(numbers, n, sizeof(*numbers), job_compare);
}

static int
job_compare_ranks(const void *a, const void *b, void *workers)
{
	const struct ls_worker_info
		*x = &((struct ls_engine_worker *)workers)[*(const uint32_t *)a].info,
		*y = &((struct ls_engine_worker *)workers)[*(const uint32_t *)b].info;

	return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
				  : strcmp(x->host, y->host);
}

uint32_t *
ls_job_by_rank(const struct ls_engine *e, const struct ls_job *j)
{
	uint32_t *at = j->room.index;

	memcpy(at, j->slots, j->count * sizeof(*at));
	qsort_r(at, j->count, sizeof(*at), job_compare_ranks, e->workers);
	return at;
}

size_t
ls_job_hosts(const struct ls_engine *e, const struct ls_job *j, const uint32_t *of,
	uint32_t group)
{
	uint32_t *host = j->room.index;
	size_t n = 0, once = 0;

	LS_WORKERS (e, j, w)
		if (of == NULL || of[w->slot] == group)
			host[n++] = w->host;
	ls_job_sort(host, n);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || host[i] != host[i - 1])
			host[once++] = host[i];
	return once;
}

bool
ls_worker_same_owner(const struct ls_worker_info *a, const struct ls_worker_info *b)
{
	uint32_t least = a->owner < b->owner ? a->owner : b->owner;

	return strcmp(a->host, b->host) == 0 &&
		(a->owner == b->owner ||
			(least == 0 && a->owner + b->owner != LS_OWNER_APART));
}

struct ls_engine_worker *
ls_job_worker(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_worker_info *who)
{
	struct ls_engine_worker *w, *other = NULL;
	size_t walk = 0;

	while ((w = ls_job_next_of_rank(e, j, who->rank, &walk)) != NULL) {
		if (ls_worker_same_owner(&w->info, who))
			return w;
		if (other == NULL && strcmp(w->info.host, who->host) == 0)
			other = w;
	}
	return other;
}

bool
ls_job_is_contested(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_engine_worker *w)
{
	const struct ls_engine_worker *other;
	size_t walk = 0;

	do
		other = ls_job_next_of_rank(e, j, w->info.rank, &walk);
	while (other != NULL && (other == w || other->host != w->host));
	return other != NULL;
}

const struct ls_job_groups *
ls_job_groups_of(const struct ls_job *j, unsigned way)
{
	return way == LS_WAY_RACK			     ? &j->racks
		: way == LS_WAY_SHARD			     ? &j->shards
		: way == LS_WAY_SLICE && j->slices.count > 1 ? &j->slices
							     : NULL;
}

uint32_t
ls_job_group_of(const struct ls_engine *e, const struct ls_job *j, unsigned way,
	size_t slot)
{
	const struct ls_job_groups *g = ls_job_groups_of(j, way);

	return way == LS_WAY_HOST ? e->workers[j->slots[slot]].host
		: g == NULL	  ? LS_GROUP_NO
				  : g->of[slot];
}

bool
ls_job_same_group(const struct ls_engine *e, const struct ls_job *j, size_t slot,
	size_t other)
{
	unsigned way = j->detect.worker[slot].way;
	uint32_t group = ls_job_group_of(e, j, way, slot);

	return group != LS_GROUP_NO && group == ls_job_group_of(e, j, way, other);
}
