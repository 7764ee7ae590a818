/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/contradictions.h"
#include "collector/engine/finding/judged.h"
#include "proto/base/mem.h"

#include <stdio.h>

/* One more, whose claim is to be filled in. */
static struct ls_contradiction *
contradictions_add(struct ls_contradictions *to, const char *meaning, const char *todo)
{
	struct ls_contradiction *c = &to->of[to->count++];

	c->meaning = meaning;
	(void)snprintf(c->todo, sizeof(c->todo), "%s", todo);
	return c;
}

/* Ranks that several workers have; one that is silent while the other reports was
 * replaced. */
static void
contradictions_twins(const struct ls_engine *e, const struct ls_job *j,
	struct ls_contradictions *to)
{
	const uint32_t *by_rank;
	size_t shown = 0;

	if (j->twins == 0)
		return;
	by_rank = ls_job_by_rank(e, j);
	for (size_t i = 1; i < j->count && shown < LS_CONTRADICTIONS_SHOWN; i++) {
		const struct ls_engine_worker *a = &e->workers[by_rank[i - 1]],
					      *b = &e->workers[by_rank[i]];
		struct ls_contradiction *c;
		char users[64] = "";

		if (a->info.rank != b->info.rank ||
			ls_worker_reports(a) != ls_worker_reports(b))
			continue;
		if (a->host == b->host && a->info.owner != 0 && b->info.owner != 0)
			(void)snprintf(users, sizeof(users), " (uid %u and uid %u)",
				a->info.owner - 1, b->info.owner - 1);
		c = contradictions_add(to, "each is judged as a worker of its own",
			"set LOCKSTEP_RANK to ranks that are unique in the job");
		(void)snprintf(c->claim, sizeof(c->claim),
			"rank %d is claimed by %s and %s%s", (int)b->info.rank,
			a->info.host, b->info.host, users);
		shown++;
	}
}

/* A worker that says this number of workers. */
static const char *
contradictions_who(const struct ls_engine *e, const struct ls_job *j, int32_t world)
{
	LS_WORKERS (e, j, w)
		if (w->info.world == world)
			return w->info.host;
	return "";
}

/* Different numbers of workers; a rank above all of them; and a list of the hosts of all
 * slices, taken for that of one: each slice then is said to be as large as the job. */
static void
contradictions_world(const struct ls_engine *e, const struct ls_job *j,
	struct ls_contradictions *to)
{
	size_t slices = j->slices.count;
	struct ls_contradiction *c;

	if (j->world_least != j->world) {
		c = contradictions_add(to, "", "set LOCKSTEP_WORLD to one number");
		(void)snprintf(c->claim, sizeof(c->claim),
			"%s says that the job has %d workers, %s says %d",
			contradictions_who(e, j, j->world_least), (int)j->world_least,
			contradictions_who(e, j, j->world), (int)j->world);
	}
	if (slices > 1 && (size_t)j->world == j->count * slices) {
		c = contradictions_add(to, "", "");
		(void)snprintf(c->claim, sizeof(c->claim),
			"%d workers are expected, and %zu report in %zu slices",
			(int)j->world, j->count, slices);
		(void)snprintf(c->todo, sizeof(c->todo),
			"if TPU_WORKER_HOSTNAMES names the hosts of all slices, set LOCKSTEP_WORLD=%zu and LOCKSTEP_RANK",
			j->count);
	}
	LS_WORKERS (e, j, w) {
		if (j->world <= 0 || w->info.rank < j->world ||
			ls_worker_has_left(j, w))
			continue;
		c = contradictions_add(to, "each is judged",
			"set LOCKSTEP_RANK and LOCKSTEP_WORLD");
		(void)snprintf(c->claim, sizeof(c->claim),
			"%s says that it has rank %d, %s that the job has %d workers",
			w->info.host, (int)w->info.rank,
			contradictions_who(e, j, j->world), (int)j->world);
		break; /* one line says it */
	}
}

/* Whose records are not accepted. */
static void
contradictions_attempt(const struct ls_engine *e, const struct ls_job *j,
	struct ls_contradictions *to)
{
	/* they are the first of the list */
	LS_EACH (const struct ls_job_lost, lost, j->lost, j->lost_count) {
		const struct ls_worker_info *who = &lost->who;
		struct ls_contradiction *c;
		char user[32] = "";

		if (j->count == 0 || to->count >= LS_CONTRADICTIONS_SHOWN ||
			!ls_judged_is_lost(e, j, lost))
			continue;
		if (who->owner != 0 && who->owner != LS_OWNER_APART)
			(void)snprintf(user, sizeof(user), " (uid %u)", who->owner - 1);
		c = contradictions_add(to, "only one attempt is judged",
			"set LOCKSTEP_ATTEMPT to one number, or LOCKSTEP_JOB to names that are unique");
		(void)snprintf(c->claim, sizeof(c->claim),
			"%s%s announces attempt %d, %s attempt %d", who->host, user,
			(int)who->attempt, e->workers[j->slots[0]].info.host,
			(int)j->attempt);
	}
}

void
ls_contradictions(const struct ls_engine *e, const struct ls_job *j,
	struct ls_contradictions *ret_list)
{
	ret_list->count = 0;
	contradictions_attempt(e, j, ret_list);
	contradictions_world(e, j, ret_list);
	contradictions_twins(e, j, ret_list);
}

void
ls_contradiction_line(const struct ls_contradiction *c, char dst[LS_FINDING_SAID_BYTES])
{
	(void)snprintf(dst, LS_FINDING_SAID_BYTES, "%s: %s%s%s", c->claim, c->meaning,
		c->meaning[0] == '\0' ? "" : "; ", c->todo);
}
