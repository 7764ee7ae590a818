/* SPDX-License-Identifier: Apache-2.0 */
/* questions_step - the part of questions about one step of all workers of a job. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/answer/questions_state.h"
#include "proto/base/mem.h"
#include "storage/read/query_step.h"

struct ls_step_row {
	const struct ls_store_worker *worker;
	int64_t id;
	int64_t t_begin_ns;
	uint64_t duration_ns;
	double wait_s;
	uint32_t phase_mask;
	uint64_t phase_ns[LS_PHASE_COUNT];
};

struct step {
	struct ls_questions *q;
	struct ls_step_answer *a; /* its memory, kept from one question to the next */
	const struct ls_ask *ask;
	size_t found; /* records */
	size_t count; /* ranks, of which the place of their row stands in a->chosen */
	uint64_t bad;
};

void
ls_step_answer_fini(struct ls_step_answer *a)
{
	free(a->rows);
	free(a->chosen);
	memset(a, 0, sizeof(*a));
}

/* Time in barriers: their own, else the phase; NaN: neither was marked. As the engine
 * counts it. */
static double
step_wait_s(const struct ls_record *r)
{
	double wait_s = 0;

	for (unsigned b = 0; b < r->barrier_count; b++)
		wait_s +=
			(double)(r->barrier[b].exit_ns - r->barrier[b].enter_ns) * 1e-9;
	if (r->barrier_count > 0)
		return wait_s;
	return (r->phase_mask & 1u << LS_PHASE_SYNC_WAIT) != 0
		? (double)r->phase_ns[LS_PHASE_SYNC_WAIT] * 1e-9
		: NAN;
}

static int
step_record(void *arg, int64_t id, int64_t worker_id, const struct ls_record *record)
{
	struct step *s = arg;
	const struct ls_store_worker *w =
		ls_job_members_worker(&s->q->members, worker_id);
	struct ls_step_row *row;
	int rc;

	if (w == NULL)
		return 0; /* of another job */
	rc = ls_mem_grow((void **)&s->a->rows, s->found, &s->a->rows_max, sizeof(*row));
	if (rc != 0)
		return rc;
	row = &s->a->rows[s->found++];
	*row = (struct ls_step_row){ .worker = w,
		.id = id,
		.t_begin_ns = record->t_begin_ns,
		.duration_ns = record->duration_ns,
		.wait_s = step_wait_s(record),
		.phase_mask = record->phase_mask };
	memcpy(row->phase_ns, record->phase_ns, sizeof(row->phase_ns));
	return 0;
}

/* The newest row of each member, by its place in members.by_rank: one more than that of
 * the row; 0: none. */
static void
step_newest(struct step *s)
{
	const struct ls_job_members *m = &s->q->members;
	uint32_t *newest = s->a->chosen;

	memset(newest, 0, m->count * sizeof(*newest));
	for (size_t i = 0; i < s->found; i++) {
		uint32_t *at =
			&newest[m->rank_place[s->a->rows[i].worker - m->workers]];

		if (*at == 0 || s->a->rows[*at - 1].id < s->a->rows[i].id)
			*at = (uint32_t)i + 1;
	}
}

/* Leaves the newest record of each rank of the latest attempt. */
static int
step_choose(struct step *s)
{
	const struct ls_step_row *row, *last = NULL;
	size_t i, n = 0;
	uint32_t *chosen =
		reallocarray(s->a->chosen, s->q->members.count, sizeof(*chosen));

	if (chosen == NULL)
		return -ENOMEM;
	s->a->chosen = chosen;
	step_newest(s);
	for (i = 0; i < s->q->members.count; i++) {
		if (chosen[i] == 0)
			continue;
		row = &s->a->rows[chosen[i] - 1];
		if (last != NULL &&
			row->worker->info.attempt != last->worker->info.attempt)
			break;
		if (last == NULL || row->worker->info.rank != last->worker->info.rank)
			chosen[n++] = chosen[i] - 1;
		else if (row->id > last->id)
			chosen[n - 1] = chosen[i] - 1;
		last = &s->a->rows[chosen[n - 1]];
	}
	s->count = n;
	return 0;
}

/* From the newest day back, to one day before the first that has any: a step may cross
 * midnight. */
static int
step_read(struct step *s)
{
	const struct ls_query_step_ask ask = { s->ask->job, s->ask->step };
	struct ls_days *days = malloc(sizeof(*days));
	int rc = days != NULL ? ls_query_days(s->q->query, days) : -ENOMEM;
	bool last = false;

	for (size_t i = rc == 0 ? days->count : 0; i > 0 && rc == 0 && !last; i--) {
		last = s->found > 0;
		rc = ls_query_step(s->q->query, days->day[i - 1], &ask, step_record, s,
			&s->bad);
	}
	free(days);
	return rc;
}

/* --- the answer ----------------------------------------------------------- */

static void
step_number(struct ls_json_out *o, const char *name, double v)
{
	/* whole microseconds */
	ls_json_out_number(o, name, isnan(v) ? v : round(v * 1e6) / 1e6);
}

static void
step_row_json(const struct ls_step_row *row, uint64_t step, struct ls_json_out *o)
{
	double duration_s = (double)row->duration_ns * 1e-9, wait_s = row->wait_s;

	ls_json_out_whole(o, "step", (int64_t)step);
	ls_json_out_whole(o, "rank", row->worker->info.rank);
	ls_json_out_string(o, "host", row->worker->info.host);
	ls_json_out_string(o, "slice", row->worker->info.slice);
	ls_json_out_time(o, "at", row->t_begin_ns / 1000);
	step_number(o, "duration_s", duration_s);
	step_number(o, "own_s", duration_s - (isnan(wait_s) ? 0 : wait_s));
	step_number(o, "wait_s", wait_s);
	step_number(o, "lateness_s", NAN);
	step_number(o, "blame_s", NAN);
	ls_json_out_json(o, "phases", "{");
	for (unsigned p = 0; p < LS_PHASE_COUNT; p++)
		if ((row->phase_mask & 1u << p) != 0)
			ls_json_out_number(o, ls_phase_name(p),
				(double)(row->phase_ns[p] / 1000) / 1e6);
	ls_json_out_raw(o, "}");
}

static void
step_json(const struct step *s, struct ls_json_out *o)
{
	size_t i, from = s->ask->skip < s->count ? s->ask->skip : s->count,
		  to = s->count;

	if (to - from > s->ask->limit)
		to = from + s->ask->limit;
	ls_json_out_raw(o, "{\"schema_version\":1,\"source\":\"stored\"");
	ls_json_out_string(o, "job", s->ask->job);
	ls_json_out_whole(o, "step", (int64_t)s->ask->step);
	ls_json_out_whole(o, "attempt",
		s->a->rows[s->a->chosen[0]].worker->info.attempt);
	ls_json_out_whole(o, "workers", (int64_t)s->count);
	ls_json_out_whole(o, "left_out", (int64_t)s->bad);
	ls_json_out_json(o, "items", "[");
	for (i = from; i < to; i++) {
		ls_json_out_json(o, NULL, "{");
		step_row_json(&s->a->rows[s->a->chosen[i]], s->ask->step, o);
		ls_json_out_raw(o, "}");
	}
	ls_question_end_json(to < s->count ? to : 0, o);
}

int
ls_question_step(struct ls_questions *q, const struct ls_ask *ask,
	struct ls_json_out *o)
{
	struct step s = { .q = q, .a = &q->step, .ask = ask };
	int rc = ls_question_members(q, ask->job);

	if (rc == 0)
		rc = step_read(&s);
	if (rc == 0 && s.found == 0)
		rc = -LS_EUNKNOWN;
	if (rc == 0)
		rc = step_choose(&s);
	if (rc == 0)
		step_json(&s, o);
	return rc;
}
