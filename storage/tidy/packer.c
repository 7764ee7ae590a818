/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/packer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/log.h"
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/err_sqlite.h"
#include "storage/tidy/pack.h"

enum packer_stmt { PACKER_ROWS, PACKER_BODY, PACKER_NEWEST, PACKER_DAY_STMTS };

static const char *const packer_sql[PACKER_DAY_STMTS] = {
	[PACKER_ROWS] =
		"SELECT id, last_id, t_us FROM journal WHERE id > ?1 ORDER BY id",
	[PACKER_BODY] =
		"SELECT id, last_id, body FROM journal WHERE id > ?1 ORDER BY id LIMIT 1",
	[PACKER_NEWEST] = "SELECT t_us FROM journal ORDER BY id DESC LIMIT 1",
};

/* workers whose job is remembered; ids are given one after the other */
#define PACKER_JOBS 16384

/* The job of a worker: it never changes. */
struct packer_job {
	int64_t worker, job; /* worker 0: none */
};

/* Rows of the journal that become a unit. */
struct packer_span {
	int64_t id, last_id, t_us, last_t_us;
	size_t rows, events;
	bool due;
};

struct ls_packer {
	struct ls_packer_options options;
	char *dir;
	struct ls_pack *pack;
	int32_t day; /* of db; 0: none */
	sqlite3 *db, *state;
	sqlite3_stmt *stmt[PACKER_DAY_STMTS], *job;
	bool waiting; /* a unit was handed on and its end not told */
	/* last of the rows that cannot be read: packing goes on behind them */
	int64_t damaged_id;
	struct packer_job *jobs; /* PACKER_JOBS, at the worker's id modulo that */
	struct ls_packer_stats stats;
};

static void
packer_close_day(struct ls_packer *p)
{
	size_t i;

	for (i = 0; i < PACKER_DAY_STMTS; i++) {
		(void)sqlite3_finalize(p->stmt[i]); /* only read with */
		p->stmt[i] = NULL;
	}
	ls_db_close(p->db);
	p->db = NULL;
	p->day = 0;
	p->damaged_id = 0;
}

static int64_t
packer_job_of(void *arg, int64_t worker_id)
{
	struct ls_packer *p = arg;

	struct packer_job *known = &p->jobs[(uint64_t)worker_id % PACKER_JOBS];
	int64_t job = 0;

	if (known->worker == worker_id && worker_id != 0)
		return known->job;
	if (p->job == NULL)
		return 0;
	(void)sqlite3_bind_int64(p->job, 1, worker_id); /* a parameter that is there */
	if (sqlite3_step(p->job) == SQLITE_ROW) {
		job = sqlite3_column_int64(p->job, 0);
		*known = (struct packer_job){ worker_id, job };
	}
	(void)sqlite3_reset(p->job); /* tells the same error again */
	return job;
}

int
ls_packer_new(const struct ls_packer_options *options, struct ls_packer **ret_packer)
{
	struct ls_packer *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	p->options = *options;
	p->dir = strdup(options->dir);
	p->pack = ls_pack_new(packer_job_of, p);
	p->jobs = calloc(PACKER_JOBS, sizeof(*p->jobs));
	if (p->dir == NULL || p->pack == NULL || p->jobs == NULL) {
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
	packer_close_day(p);
	(void)sqlite3_finalize(p->job); /* only read with */
	ls_db_close(p->state);
	ls_pack_free(p->pack);
	free(p->jobs);
	free(p->dir);
	free(p);
}

/* --- files ---------------------------------------------------------------- */

static int
packer_open_state(struct ls_packer *p)
{
	char path[PATH_MAX];
	int rc;

	if (p->state != NULL)
		return 0;
	rc = ls_days_path(path, p->dir, 0);
	if (rc == 0)
		rc = ls_db_open(path, LS_DB_READ, &p->state);
	if (rc == 0)
		rc = ls_db_prepare(p->state, "SELECT job_id FROM worker WHERE id = ?1",
			&p->job);
	if (rc != 0) {
		ls_db_close(p->state);
		p->state = NULL;
	}
	return rc;
}

static void
packer_end_state(struct ls_packer *p)
{
	if (p->state != NULL && !sqlite3_get_autocommit(p->state))
		(void)sqlite3_exec(p->state, "ROLLBACK", NULL, NULL,
			NULL); /* only read with */
}

/* The newest day's file; there may be none. */
static int
packer_open_day(struct ls_packer *p)
{
	struct ls_days days;
	char path[PATH_MAX];
	size_t i;
	int rc = ls_days_list(p->dir, &days);

	if (rc != 0 && rc != -LS_ELIMIT)
		return rc;
	if (days.count == 0 || days.day[days.count - 1] == p->day)
		return 0;
	packer_close_day(p);
	rc = ls_days_path(path, p->dir, days.day[days.count - 1]);
	if (rc == 0)
		rc = ls_db_open(path, LS_DB_READ, &p->db);
	for (i = 0; i < PACKER_DAY_STMTS && rc == 0; i++)
		rc = ls_db_prepare(p->db, packer_sql[i], &p->stmt[i]);
	if (rc != 0) {
		packer_close_day(p);
		return rc;
	}
	p->day = days.day[days.count - 1];
	return 0;
}

/* --- one unit ------------------------------------------------------------- */

static int
packer_newest(struct ls_packer *p, int64_t *ret_t_us)
{
	sqlite3_stmt *stmt = p->stmt[PACKER_NEWEST];
	int step = sqlite3_step(stmt);

	*ret_t_us = step == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : INT64_MIN;
	(void)sqlite3_reset(stmt); /* tells the same error again */
	return ls_err_sqlite(step);
}

/* Takes a row into the span; false: it stays. */
static bool
packer_take(const struct ls_packer *p, struct packer_span *s, sqlite3_stmt *row,
	int64_t newest_us)
{
	int64_t id = sqlite3_column_int64(row, 0),
		last_id = sqlite3_column_int64(row, 1);
	int64_t t_us = sqlite3_column_int64(row, 2);
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
	s->last_t_us = t_us;
	s->events += events;
	s->due = s->due || t_us - s->t_us >= p->options.span_us ||
		s->events >= p->options.events;
	return !s->due;
}

static int
packer_find(struct ls_packer *p, struct packer_span *ret_span)
{
	sqlite3_stmt *stmt = p->stmt[PACKER_ROWS];
	int64_t newest_us;
	int step = SQLITE_DONE, rc = packer_newest(p, &newest_us);

	*ret_span = (struct packer_span){ 0 };
	/* a parameter that is there */
	(void)sqlite3_bind_int64(stmt, 1, p->damaged_id);
	while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW)
		if (!packer_take(p, ret_span, stmt, newest_us))
			break;
	(void)sqlite3_reset(stmt); /* tells the same error again */
	return rc != 0 ? rc : ls_err_sqlite(step);
}

/* The next row behind an id into the pack. -LS_ECORRUPT, -LS_EPARSE, -LS_EVERSION: it
 * cannot be read. */
static int
packer_read_row(struct ls_packer *p, int64_t after, int64_t *ret_last_id)
{
	sqlite3_stmt *stmt = p->stmt[PACKER_BODY];
	int step, rc;

	(void)sqlite3_bind_int64(stmt, 1, after); /* a parameter that is there */
	step = sqlite3_step(stmt);
	rc = step == SQLITE_ROW	      ? 0
		: step == SQLITE_DONE ? -LS_ESTALE
				      : ls_err_sqlite(step);
	if (rc == 0) {
		*ret_last_id = sqlite3_column_int64(stmt, 1);
		rc = ls_journal_read(sqlite3_column_blob(stmt, 2),
			(size_t)sqlite3_column_bytes(stmt, 2), ls_pack_entry, p->pack);
	}
	(void)sqlite3_reset(stmt); /* tells the same error again */
	return rc;
}

static bool
packer_is_damage(int rc)
{
	return rc == -LS_ECORRUPT || rc == -LS_EPARSE || rc == -LS_EVERSION;
}

/* Reads the rows of a span; *ret_rows: those before the one that failed. */
static int
packer_read(struct ls_packer *p, struct packer_span *span, size_t *ret_rows,
	int64_t *ret_last_id)
{
	size_t rows;
	int rc = 0;

	ls_pack_reset(p->pack);
	span->last_id = span->id - 1;
	for (rows = 0; rows < span->rows; rows++) {
		rc = packer_read_row(p, span->last_id, ret_last_id);
		if (rc != 0)
			break;
		span->last_id = *ret_last_id;
	}
	*ret_rows = rows;
	return rc;
}

/*
 * A row that cannot be read ends the unit before it: that one is read anew, without
 * what of the row came through. If it is the first, it stays in the journal for good.
 * *ret_message NULL: try again.
 */
static int
packer_make(struct ls_packer *p, struct packer_span *span,
	struct ls_write **ret_message)
{
	int64_t last_id = 0;
	size_t rows = 0;
	int rc = packer_open_state(p);

	/* One snapshot for all looks at state.db: taking one costs more than the look.
	 */
	if (rc == 0)
		rc = ls_db_exec(p->state, "BEGIN");
	if (rc == 0)
		rc = packer_read(p, span, &rows, &last_id);
	if (packer_is_damage(rc) && rows > 0) {
		span->rows = rows;
		rc = packer_read(p, span, &rows, &last_id);
	} else if (packer_is_damage(rc)) {
		ls_log(LS_LOG_ERR, "storage",
			"journal rows up to %lld of day %d: %s; left unpacked",
			(long long)last_id, (int)p->day, ls_err_text(rc));
		p->stats.bad++;
		p->damaged_id = last_id;
		packer_end_state(p);
		return 0;
	}
	packer_end_state(p);
	if (rc != 0)
		return rc;
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
packer_pack(struct ls_packer *p, struct packer_span *span, bool *ret_more)
{
	struct ls_write *m = NULL;
	int rc = packer_make(p, span, &m);

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
	int rc = p->waiting ? 0 : packer_open_day(p);

	if (rc != 0 || p->waiting || p->db == NULL)
		return rc;
	rc = packer_find(p, &span);
	if (rc != 0 || !span.due)
		return rc;
	return packer_pack(p, &span, ret_more);
}

void
ls_packer_told(struct ls_packer *p, const struct ls_write *m)
{
	const struct ls_store_pack *pack = &m->u.pack;
	size_t i;

	p->waiting = false;
	if (m->rc != 0) {
		p->stats.refused++;
		return;
	}
	p->stats.units++;
	p->stats.records += pack->records;
	for (i = 0; i < pack->step_rows_count; i++)
		p->stats.bytes += pack->step_rows[i].len;
	for (i = 0; i < pack->hot_rows_count; i++)
		p->stats.hot_bytes += pack->hot_rows[i].len;
}

void
ls_packer_stats(const struct ls_packer *p, struct ls_packer_stats *ret_stats)
{
	*ret_stats = p->stats;
	ret_stats->bad += ls_pack_bad(p->pack);
}
