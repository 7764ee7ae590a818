/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/contradictions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
contradictions_compare_ranks(const void *a, const void *b)
{
	const struct ls_engine_worker *x = *(const struct ls_engine_worker *const *)a,
				      *y = *(const struct ls_engine_worker *const *)b;

	if (x->info.rank != y->info.rank)
		return x->info.rank < y->info.rank ? -1 : 1;
	return strcmp(x->info.host, y->info.host);
}

static void
contradictions_say(json_t *lines, const char *line)
{
	ls_ignore(json_array_append_new(lines, json_string(line)));
}

/* Ranks that several workers have. */
static int
contradictions_twins(const struct ls_engine *e, const struct ls_job *j, json_t *lines)
{
	const struct ls_engine_worker **by_rank =
		malloc((j->count + 1) * sizeof(const struct ls_engine_worker *));
	char line[3 * LS_HOST_NAME_MAX_BYTES];
	size_t shown = 0;

	if (by_rank == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < j->count; i++)
		by_rank[i] = &e->workers[j->slots[i]];
	qsort(by_rank, j->count, sizeof(const struct ls_engine_worker *),
		contradictions_compare_ranks);
	for (size_t i = 1; i < j->count && shown < LS_CONTRADICTIONS_SHOWN; i++) {
		if (by_rank[i]->info.rank != by_rank[i - 1]->info.rank)
			continue;
		(void)snprintf(line, sizeof(line),
			"rank %d is claimed by %s and %s: each is judged as a worker of "
			"its own; set LOCKSTEP_RANK to ranks that are unique in the job",
			(int)by_rank[i]->info.rank, by_rank[i - 1]->info.host,
			by_rank[i]->info.host);
		contradictions_say(lines, line);
		shown++;
	}
	free(by_rank);
	return 0;
}

/* A worker that says this number of workers. */
static const char *
contradictions_who(const struct ls_engine *e, const struct ls_job *j, int32_t world)
{
	for (size_t i = 0; i < j->count; i++)
		if (e->workers[j->slots[i]].info.world == world)
			return e->workers[j->slots[i]].info.host;
	return "";
}

/* A list of the hosts of all slices, taken for that of one: each slice then is said to be
 * as large as the job. */
static void
contradictions_world(const struct ls_engine *e, const struct ls_job *j, json_t *lines)
{
	char line[4 * LS_HOST_NAME_MAX_BYTES];
	size_t slices = j->slices.count;

	if (j->world_least != j->world) {
		(void)snprintf(line, sizeof(line),
			"%s says that the job has %d workers, %s says %d: set "
			"LOCKSTEP_WORLD to one number",
			contradictions_who(e, j, j->world_least), (int)j->world_least,
			contradictions_who(e, j, j->world), (int)j->world);
		contradictions_say(lines, line);
	}
	if (slices > 1 && (size_t)j->world == j->count * slices) {
		(void)snprintf(line, sizeof(line),
			"%d workers are expected, and %zu report in %zu slices: if "
			"TPU_WORKER_HOSTNAMES names the hosts of all slices, set "
			"LOCKSTEP_WORLD=%zu and LOCKSTEP_RANK",
			(int)j->world, j->count, slices, j->count);
		contradictions_say(lines, line);
	}
}

/* Who announces an attempt that is not believed. */
static void
contradictions_attempt(const struct ls_job *j, json_t *lines)
{
	char line[3 * LS_HOST_NAME_MAX_BYTES], user[32] = "";

	if (j->claim == NULL)
		return;
	if (j->claim->owner != 0 && j->claim->owner != LS_OWNER_APART)
		(void)snprintf(user, sizeof(user), " (uid %u)", j->claim->owner - 1);
	(void)snprintf(line, sizeof(line),
		"%s%s announces attempt %d: it is ignored while other workers of attempt "
		"%d report; set LOCKSTEP_JOB to names that are unique",
		j->claim->host, user, (int)j->claim->attempt, (int)j->attempt);
	contradictions_say(lines, line);
}

json_t *
ls_view_contradictions(const struct ls_engine *e, const struct ls_job *j)
{
	json_t *lines = json_array();

	if (lines != NULL && j->twins > 0 && contradictions_twins(e, j, lines) != 0) {
		json_decref(lines);
		return NULL;
	}
	if (lines != NULL) {
		contradictions_attempt(j, lines);
		contradictions_world(e, j, lines);
	}
	return lines;
}
