/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/packer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "proto/base/log.h"
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/sql.h"
#include "storage/read/query_day.h"
#include "storage/tidy/pack.h"

/* workers whose job is remembered; ids are given one after the other */
#define PACKER_JOBS 16384

/* The job of a worker: it never changes. */
struct packer_job {
	int64_t worker, job; /* worker 0: none */
};

/* Rows of the journal that become a unit. */
struct packer_span {
	int64_t id, last_id, t_us;
	size_t rows, events;
	bool due;
};

struct ls_packer {
	struct ls_packer_options options;
	struct ls_pack *pack;
	struct ls_query *query; /* opened by the first turn */
	sqlite3_stmt *job; /* of a worker, in state.db */
	int job_rc; /* why a job could not be looked up in this unit */
	int32_t day; /* the newest */
	bool waiting; /* a unit was handed on and its end not told */
	/* last of the day's rows that cannot be read: packing goes on behind them */
	int64_t damaged_id;
	struct packer_job jobs[PACKER_JOBS]; /* at the worker's id modulo that */
	struct ls_packer_stats stats;
};

static int64_t
packer_job_of(void *arg, int64_t worker_id)
{
	struct ls_packer *p = arg;
	struct packer_job *known = &p->jobs[(uint64_t)worker_id % PACKER_JOBS];
	struct ls_sql_rows rows;
	int64_t job = 0; /* not known */

	if (known->worker == worker_id && worker_id != 0)
		return known->job;
	rows = ls_sql_again(p->job, LS_SQL_VALUES(ls_sql_int(worker_id)));
	if (ls_sql_next(&rows)) {
		job = sqlite3_column_int64(p->job, 0);
		*known = (struct packer_job){ worker_id, job };
	}
	if (ls_sql_end(&rows) != 0)
		p->job_rc = rows.rc; /* packer_read gives it back */
	return job;
}

int
ls_packer_new(const struct ls_packer_options *options, struct ls_packer **ret_packer)
{
	struct ls_packer *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	p->options = *options;
	p->pack = ls_pack_new(packer_job_of, p);
	if (p->pack == NULL) {
		ls_packer_free(p);
		return -ENOMEM;
	}
	*ret_packer = p;
	return 0;
}

void
ls_packer_free(struct ls_packer *p)
{
	if (p == NULL)
		return;
	(void)sqlite3_finalize(p->job); /* only read with */
	ls_query_close(p->query);
	ls_pack_free(p->pack);
	free(p);
}

/* --- files ---------------------------------------------------------------- */

/* The newest day's file; NULL: there is no day. */
static int
packer_open_day(struct ls_packer *p, sqlite3 **ret_db)
{
	struct ls_query_day *day;
	struct ls_days days = { 0 };
	int rc = p->query != NULL ? 0 : ls_query_open(p->options.dir, &p->query);

	*ret_db = NULL;
	if (rc == 0 && p->job == NULL)
		rc = ls_db_prepare(ls_query_state_db(p->query),
			"SELECT job_id FROM worker WHERE id = ?1", &p->job);
	if (rc == 0)
		rc = ls_query_days(p->query, &days);
	if (rc != 0 || days.count == 0)
		return rc;
	if (days.day[days.count - 1] != p->day)
		p->damaged_id = 0;
	p->day = days.day[days.count - 1];
	rc = ls_query_day_of(p->query, p->day, &day);
	if (rc == 0)
		*ret_db = ls_query_day_db(day);
	return rc;
}

/* --- one unit ------------------------------------------------------------- */

/* Takes a row into the span; false: it stays. */
static bool
packer_take(const struct ls_packer *p, struct packer_span *s, sqlite3_stmt *row)
{
	int64_t id = sqlite3_column_int64(row, 0),
		last_id = sqlite3_column_int64(row, 1);
	int64_t t_us = sqlite3_column_int64(row, 2),
		newest_us = sqlite3_column_int64(row, 3);
	size_t events = (size_t)(last_id - id) + 1;

	if (newest_us - t_us < p->options.age_us)
		return false;
	if (s->rows > 0 && s->events + events > p->options.events) {
		s->due = true;
		return false;
	}
	if (s->rows++ == 0) {
		s->id = id;
		s->t_us = t_us;
	}
	s->last_id = last_id;
	s->events += events;
	s->due = s->due || t_us - s->t_us >= p->options.span_us ||
		s->events >= p->options.events;
	return !s->due;
}

static int
packer_find(struct ls_packer *p, sqlite3 *db, struct packer_span *ret_span)
{
	struct ls_sql_rows rows = ls_sql_rows(db,
		"SELECT id, last_id, t_us, (SELECT t_us FROM journal ORDER BY id DESC LIMIT 1) "
		"FROM journal WHERE id > ?1 ORDER BY id",
		LS_SQL_VALUES(ls_sql_int(p->damaged_id)));

	*ret_span = (struct packer_span){ 0 };
	while (ls_sql_next(&rows) && packer_take(p, ret_span, rows.stmt))
		;
	return ls_sql_end(&rows);
}

static bool
packer_is_damage(int rc)
{
	return rc == -LS_ECORRUPT || rc == -LS_EPARSE || rc == -LS_EVERSION;
}

/* Reads the rows of a span into the pack; *ret_rows: those before the one that failed,
 * *ret_last_id: the last id of the row where it ended. */
static int
packer_read(struct ls_packer *p, sqlite3 *db, struct packer_span *span,
	size_t *ret_rows, int64_t *ret_last_id)
{
	struct ls_sql_rows rows = ls_sql_rows(db,
		"SELECT last_id, body FROM journal WHERE id >= ?1 ORDER BY id LIMIT ?2",
		LS_SQL_VALUES(ls_sql_int(span->id), ls_sql_u64(span->rows)));
	int rc;

	ls_pack_reset(p->pack);
	p->job_rc = 0;
	*ret_rows = 0;
	while (ls_sql_next(&rows)) {
		*ret_last_id = sqlite3_column_int64(rows.stmt, 0);
		rows.rc = ls_journal_read(sqlite3_column_blob(rows.stmt, 1),
			(size_t)sqlite3_column_bytes(rows.stmt, 1), ls_pack_entry,
			p->pack);
		if (rows.rc != 0)
			break;
		span->last_id = *ret_last_id;
		(*ret_rows)++;
	}
	rc = ls_sql_end(&rows);
	if (rc == 0)
		rc = p->job_rc;
	return rc == 0 && *ret_rows < span->rows ? -LS_ESTALE : rc;
}

/*
 * A row that cannot be read ends the unit before it: that one is read anew, without
 * what of the row came through. If it is the first, it stays in the journal for good.
 * *ret_message NULL: try again.
 */
static int
packer_make(struct ls_packer *p, sqlite3 *db, struct packer_span *span,
	struct ls_write **ret_message)
{
	int64_t last_id = 0;
	size_t rows = 0;
	sqlite3 *state = ls_query_state_db(p->query);
	/* One snapshot for all looks at state.db: taking one costs more than the look.
	 */
	int rc = ls_db_exec(state, "BEGIN");

	if (rc == 0)
		rc = packer_read(p, db, span, &rows, &last_id);
	if (packer_is_damage(rc) && rows > 0) {
		span->rows = rows;
		rc = packer_read(p, db, span, &rows, &last_id);
	}
	rc = ls_db_end(state, rc);
	if (packer_is_damage(rc) && rows == 0) {
		ls_log(LS_LOG_ERR, "storage",
			"journal rows up to %lld of day %d: %s; left unpacked",
			(long long)last_id, (int)p->day, ls_err_text(rc));
		p->stats.bad++;
		p->damaged_id = last_id;
		return 0;
	}
	if (rc == 0)
		rc = ls_pack_finish(p->pack, ret_message);
	if (rc != 0)
		return rc;
	(*ret_message)->u.pack.day = p->day;
	(*ret_message)->u.pack.from_id = span->id;
	(*ret_message)->u.pack.last_id = span->last_id;
	(*ret_message)->u.pack.journal_rows = rows;
	return 0;
}

static int
packer_pack(struct ls_packer *p, sqlite3 *db, struct packer_span *span, bool *ret_more)
{
	struct ls_write *m = NULL;
	int rc = packer_make(p, db, span, &m);

	if (rc != 0 || m == NULL) {
		*ret_more = rc == 0; /* again, behind the row that cannot be read */
		ls_pack_reset(p->pack);
		return rc;
	}
	p->waiting = true; /* its end may be told before push returns */
	rc = p->options.push(p->options.arg, m);
	if (rc != 0) {
		p->waiting = false;
		ls_write_free(m);
	}
	return rc;
}

int
ls_packer_turn(struct ls_packer *p, bool *ret_more)
{
	struct packer_span span;
	sqlite3 *db = NULL;
	int rc = p->waiting ? 0 : packer_open_day(p, &db);

	if (rc == 0 && db != NULL)
		rc = packer_find(p, db, &span);
	return rc == 0 && db != NULL && span.due ? packer_pack(p, db, &span, ret_more)
						 : rc;
}

void
ls_packer_told(struct ls_packer *p, const struct ls_write *m)
{
	const struct ls_store_pack *pack = &m->u.pack;

	p->waiting = false;
	if (m->rc != 0) {
		p->stats.refused++;
		return;
	}
	p->stats.units++;
	p->stats.records += pack->records;
	for (size_t i = 0; i < pack->step_rows_count; i++)
		p->stats.bytes += pack->step_rows[i].len;
	p->stats.hot_bytes += pack->hot_rows.len;
}

void
ls_packer_stats(const struct ls_packer *p, struct ls_packer_stats *ret_stats)
{
	*ret_stats = p->stats;
	ret_stats->bad += ls_pack_bad(p->pack);
}
