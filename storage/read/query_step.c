/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/read/query_step.h"

#include <errno.h>
#include "proto/base/log.h"
#include "storage/db/db.h"
#include "storage/db/sql.h"
#include "storage/read/query_day.h"
#include "storage/read/span.h"
#include "storage/read/unit_reader.h"

struct step_visit {
	struct ls_query *query;
	int32_t day;
	const struct ls_query_step_ask *ask;
	ls_query_step_fn *fn;
	void *arg;
	uint64_t *bad;
	struct ls_span span;
};

static int
step_give(struct step_visit *v, int64_t id, const struct ls_store_steps *steps)
{
	int rc = 0;

	for (uint32_t i = 0; i < steps->count && rc == 0; i++) {
		if (steps->records[i].step == v->ask->step)
			rc = v->fn(v->arg, id, steps->worker_id, &steps->records[i]);
	}
	return rc;
}

/* One commit, decoded. */
static int
step_journal_body(struct step_visit *v, int64_t id, const uint8_t *body, size_t len)
{
	int rc;

	ls_span_reset(&v->span);
	rc = ls_span_load_journal(&v->span, body, len);
	*v->bad += v->span.bad;
	v->span.bad = 0;
	if (rc == -ENOMEM)
		return rc;
	if (rc != 0) {
		(*v->bad)++;
		ls_log(LS_LOG_WARN, "query",
			"row %lld of the journal of day %d: %s; skipped", (long long)id,
			(int)v->day, ls_err_text(rc));
		return 0;
	}
	for (size_t i = 0; i < v->span.count && rc == 0; i++) {
		if (v->span.events[i].kind == LS_EVENT_STEPS)
			rc = step_give(v, v->span.events[i].id, v->span.events[i].what);
	}
	return rc;
}

/* What no unit holds yet. */
static int
step_journal(struct step_visit *v, struct ls_query_day *d)
{
	sqlite3_stmt *stmt = ls_query_day_kept(d, LS_QUERY_STEP_JOURNAL);
	struct ls_sql_rows rows =
		ls_sql_again(stmt, LS_SQL_VALUES(ls_sql_u64(v->ask->step)));

	while (ls_sql_next(&rows)) {
		rows.rc = ls_query_stopped(v->query);
		if (rows.rc == 0)
			rows.rc = step_journal_body(v, sqlite3_column_int64(stmt, 0),
				sqlite3_column_blob(stmt, 1),
				(size_t)sqlite3_column_bytes(stmt, 1));
	}
	return ls_sql_end(&rows);
}

static int
step_packed_body(struct step_visit *v, int64_t id, const uint8_t *body, size_t len)
{
	struct ls_step_table t;
	const struct ls_record *r;
	size_t i;
	int rc = ls_unit_reader_steps(ls_query_unit_reader(v->query), body, len, &t);

	if (rc == -ENOMEM)
		return rc;
	if (rc != 0) {
		(*v->bad)++;
		ls_log(LS_LOG_WARN, "query", "step rows %lld of day %d: %s; skipped",
			(long long)id, (int)v->day, ls_err_text(rc));
		return 0;
	}
	for (i = 0, r = t.records; i < t.run_count && rc == 0; i++) {
		for (uint32_t k = 0; k < t.runs[i].count && rc == 0; k++, r++) {
			if (r->step == v->ask->step)
				rc = v->fn(v->arg, t.runs[i].id, t.runs[i].worker_id,
					r);
		}
	}
	return rc;
}

/* What units hold, found by job and step. */
static int
step_packed(struct step_visit *v, struct ls_query_day *d, int64_t job_id)
{
	struct ls_sql_rows rows;
	sqlite3_stmt *stmt = ls_query_day_kept(d, LS_QUERY_STEP_ROWS);
	int64_t width = 0, last;
	int rc = ls_query_day_step_width(d, &width);

	if (rc != 0)
		return rc;
	if (__builtin_add_overflow((int64_t)v->ask->step, width, &last))
		last = INT64_MAX;
	rows = ls_sql_again(stmt,
		LS_SQL_VALUES(ls_sql_int(job_id), ls_sql_u64(v->ask->step),
			ls_sql_int(last)));
	while (ls_sql_next(&rows)) {
		rows.rc = ls_query_stopped(v->query);
		if (rows.rc == 0)
			rows.rc = step_packed_body(v, sqlite3_column_int64(stmt, 0),
				sqlite3_column_blob(stmt, 1),
				(size_t)sqlite3_column_bytes(stmt, 1));
	}
	return ls_sql_end(&rows);
}

int
ls_query_step(struct ls_query *q, int32_t day, const struct ls_query_step_ask *ask,
	ls_query_step_fn *fn, void *arg, uint64_t *bad)
{
	struct step_visit v = {
		.query = q, .day = day, .ask = ask, .fn = fn, .arg = arg, .bad = bad
	};
	int64_t job_id = 0;
	struct ls_query_day *d;
	int rc = ls_query_day_of(q, day, &d);

	if (rc != 0)
		return rc == -ENOENT ? 0 : rc; /* retention was faster */
	rc = ls_span_init(&v.span);
	if (rc == 0) /* 0: the job has no records */
		rc = ls_sql_int_of(ls_query_state_db(q),
			"SELECT id FROM job WHERE name = ?1",
			LS_SQL_VALUES(ls_sql_text(ask->job)), &job_id);
	/*
	 * The journal first: what is packed in the meantime is found twice rather than
	 * not at all. Such a row may be wider than all those before: its records were
	 * found in the journal.
	 */
	if (rc == 0)
		rc = step_journal(&v, d);
	if (rc == 0)
		rc = step_packed(&v, d, job_id);
	ls_span_fini(&v.span);
	return rc;
}
