/* SPDX-License-Identifier: Apache-2.0 */
/* questions_step - the part of questions about one step of all workers of a job. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "collector/questions_state.h"
#include "storage/query_step.h"

struct step_row {
	const struct ls_store_worker *worker;
	int64_t id;
	int32_t attempt, rank;
	int64_t t_begin_ns;
	uint64_t duration_ns;
	double wait_s;
	uint32_t phase_mask;
	uint64_t phase_ns[LS_PHASE_COUNT];
};

struct step {
	struct ls_questions *q;
	const struct ls_ask *ask;
	size_t count, capacity;
	struct step_row *rows;
	uint64_t bad;
};

/* Time in barriers: their own, else the phase; NaN: neither was marked. As the engine counts it. */
static double
step_wait_s(const struct ls_record *r)
{
	double wait_s = 0;
	unsigned b;

	for (b = 0; b < r->barrier_count; b++)
		wait_s += (double)(r->barrier[b].exit_ns - r->barrier[b].enter_ns) * 1e-9;
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
	const struct ls_store_worker *w = ls_job_members_worker(&s->q->members, worker_id);
	size_t capacity = s->capacity > 0 ? 2 * s->capacity : 256;
	struct step_row *grown, *row;

	if (w == NULL)
		return 0; /* of another job */
	if (s->count == s->capacity) {
		grown = reallocarray(s->rows, capacity, sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		s->rows = grown;
		s->capacity = capacity;
	}
	row = &s->rows[s->count++];
	*row = (struct step_row){ w, id, w->info.attempt, w->info.rank, record->t_begin_ns, record->duration_ns,
		step_wait_s(record), record->phase_mask, { 0 } };
	memcpy(row->phase_ns, record->phase_ns, sizeof(row->phase_ns));
	return 0;
}

/* By attempt, rank, then what came last first. */
static int
step_compare(const void *a, const void *b)
{
	const struct step_row *x = a, *y = b;

	if (x->attempt != y->attempt)
		return x->attempt > y->attempt ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->id < y->id) - (x->id > y->id);
}

/* Leaves the newest record of each rank of the latest attempt. */
static void
step_choose(struct step *s)
{
	size_t i, n = 0;

	qsort(s->rows, s->count, sizeof(*s->rows), step_compare);
	for (i = 0; i < s->count; i++) {
		if (s->rows[i].attempt != s->rows[0].attempt)
			break;
		if (n == 0 || s->rows[n - 1].rank != s->rows[i].rank)
			s->rows[n++] = s->rows[i];
	}
	s->count = n;
}

/* From the newest day back, to one day before the first that has any: a step may cross midnight. */
static int
step_read(struct step *s)
{
	const struct ls_query_step_ask ask = { s->ask->job, s->ask->step };
	struct ls_days *days = malloc(sizeof(*days));
	int rc = days != NULL ? ls_query_days(s->q->query, days) : -ENOMEM;
	bool last = false;
	size_t i;

	for (i = rc == 0 ? days->count : 0; i > 0 && rc == 0 && !last; i--) {
		last = s->count > 0;
		rc = ls_query_step(s->q->query, days->day[i - 1], &ask, step_record, s, &s->bad);
	}
	free(days);
	return rc;
}

/* --- the answer ------------------------------------------------------------------------------ */

static void
step_number(struct ls_json_out *o, const char *name, double v)
{
	ls_json_out_name(o, true, name);
	ls_json_out_number(o, isnan(v) ? v : round(v * 1e6) / 1e6); /* whole microseconds */
}

static void
step_row_json(const struct step_row *row, uint64_t step, struct ls_json_out *o)
{
	double duration_s = (double)row->duration_ns * 1e-9, wait_s = row->wait_s;
	bool comma = false;
	unsigned p;

	ls_json_out_name(o, false, "step");
	ls_json_out_whole(o, (int64_t)step);
	ls_json_out_name(o, true, "rank");
	ls_json_out_whole(o, row->rank);
	ls_json_out_name(o, true, "host");
	ls_json_out_string(o, row->worker->info.host);
	ls_json_out_name(o, true, "slice");
	ls_json_out_string(o, row->worker->info.slice);
	ls_json_out_name(o, true, "at");
	ls_json_out_time(o, row->t_begin_ns / 1000);
	step_number(o, "duration_s", duration_s);
	step_number(o, "own_s", duration_s - (isnan(wait_s) ? 0 : wait_s));
	step_number(o, "wait_s", wait_s);
	step_number(o, "lateness_s", NAN);
	step_number(o, "blame_s", NAN);
	ls_json_out_name(o, true, "phases");
	ls_json_out_raw(o, "{");
	for (p = 0; p < LS_PHASE_COUNT; p++) {
		if ((row->phase_mask & 1u << p) == 0)
			continue;
		ls_json_out_name(o, comma, ls_phase_name(p));
		ls_json_out_number(o, (double)(row->phase_ns[p] / 1000) / 1e6);
		comma = true;
	}
	ls_json_out_raw(o, "}");
}

static void
step_json(const struct step *s, struct ls_json_out *o)
{
	size_t i, from = s->ask->skip < s->count ? s->ask->skip : s->count, to = s->count;

	if (to - from > s->ask->limit)
		to = from + s->ask->limit;
	ls_json_out_raw(o, "{\"schema_version\":1,\"source\":\"stored\",\"job\":");
	ls_json_out_string(o, s->ask->job);
	ls_json_out_name(o, true, "step");
	ls_json_out_whole(o, (int64_t)s->ask->step);
	ls_json_out_name(o, true, "attempt");
	ls_json_out_whole(o, s->rows[0].attempt);
	ls_json_out_name(o, true, "workers");
	ls_json_out_whole(o, (int64_t)s->count);
	ls_json_out_name(o, true, "left_out");
	ls_json_out_whole(o, (int64_t)s->bad);
	ls_json_out_name(o, true, "items");
	ls_json_out_raw(o, "[");
	for (i = from; i < to; i++) {
		ls_json_out_raw(o, i > from ? ",{" : "{");
		step_row_json(&s->rows[i], s->ask->step, o);
		ls_json_out_raw(o, "}");
	}
	ls_json_out_raw(o, "]");
	ls_question_end_json(to < s->count ? to : 0, o);
}

int
ls_question_step(struct ls_questions *q, const struct ls_ask *ask, struct ls_json_out *o)
{
	struct step s = { .q = q, .ask = ask };
	int rc = ls_question_members(q, ask->job);

	if (rc == 0)
		rc = step_read(&s);
	if (rc == 0 && s.count == 0)
		rc = -LS_EUNKNOWN;
	if (rc == 0) {
		step_choose(&s);
		step_json(&s, o);
	}
	free(s.rows);
	return rc;
}
