/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/read/query.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "storage/db/db.h"
#include "storage/db/files.h"
#include "storage/db/migrate.h"
#include "storage/db/sql.h"
#include "storage/read/query_day.h"
#include "storage/read/unit_reader.h"

/* of SQLite's machine between two looks at the clock: below a ms */
#define QUERY_STOP_OPS 20000

/* A connection that stops by itself. */
struct query_watch {
	struct ls_query *q;
	sqlite3 *db;
	uint64_t wal_bytes; /* of its WAL when it was last asked for */
};

/* A day's file that is open. The file behind a name may change (repacked) or go
 * (retention). */
struct query_open {
	struct ls_query_day *day; /* NULL: free */
	int32_t number;
	dev_t dev;
	ino_t ino;
	struct query_watch watch;
	uint64_t used; /* when last; the least makes room */
};

struct ls_query {
	const char *dir;
	sqlite3 *state;
	struct query_watch watch; /* of state */
	struct query_open days[LS_QUERY_DAYS_OPEN];
	struct ls_unit_reader reader;
	uint64_t uses;
	int64_t version; /* of state when last_worker was counted; 0: never */
	int64_t last_worker;
	uint64_t deadline_mono_ns;
	const atomic_bool *cancelled;
};

/* --- when to stop --------------------------------------------------------- */

int
ls_query_stopped(const struct ls_query *q)
{
	if (q->cancelled != NULL && atomic_load(q->cancelled))
		return -ECANCELED;
	return q->deadline_mono_ns != 0 && ls_clock_mono_ns() >= q->deadline_mono_ns
		? -ETIMEDOUT
		: 0;
}

static uint64_t
query_wal_bytes(sqlite3 *db)
{
	return ls_files_bytes(sqlite3_filename_wal(sqlite3_db_filename(db, "main")));
}

/* A WAL is emptied when nobody reads in it: a reader that lets it grow beyond its
 * maximum must go. */
static bool
query_holds_wal(const struct query_watch *w)
{
	uint64_t bytes = query_wal_bytes(w->db);

	if (bytes <= LS_WAL_MAX_BYTES || bytes <= w->wal_bytes)
		return false;
	ls_log(LS_LOG_WARN, "storage",
		"%s: interrupted a read: meanwhile the write-ahead log grew to %llu "
		"bytes, more than %llu; read a shorter range",
		sqlite3_db_filename(w->db, "main"), (unsigned long long)bytes,
		(unsigned long long)LS_WAL_MAX_BYTES);
	return true;
}

static int
query_progress(void *arg)
{
	const struct query_watch *w = arg;

	return ls_query_stopped(w->q) != 0 || query_holds_wal(w);
}

static void
query_watch(struct ls_query *q, sqlite3 *db, struct query_watch *watch)
{
	*watch = (struct query_watch){ q, db, query_wal_bytes(db) };
	sqlite3_progress_handler(db, QUERY_STOP_OPS, query_progress, watch);
}

void
ls_query_stop_at(struct ls_query *q, uint64_t deadline_mono_ns,
	const atomic_bool *cancelled)
{
	q->deadline_mono_ns = deadline_mono_ns;
	q->cancelled = cancelled;
}

/* --- life -------------------------------------------------------------- */

int
ls_query_open(const char *dir, struct ls_query **ret_query)
{
	struct ls_query *q = calloc(1, sizeof(*q));
	int rc;

	if (q == NULL)
		return -ENOMEM;
	q->dir = dir;
	rc = ls_db_open_day(dir, 0, LS_DB_READ, &q->state);
	if (rc == 0)
		rc = ls_migrate_check(q->state, ls_migrations_of(LS_SCHEMA_STATE));
	if (rc == 0) {
		query_watch(q, q->state, &q->watch);
		*ret_query = q;
	} else {
		ls_query_close(q);
	}
	return rc;
}

static void
query_forget(struct query_open *o)
{
	ls_query_day_close(o->day);
	o->day = NULL;
}

void
ls_query_close(struct ls_query *q)
{
	if (q == NULL)
		return;
	for (size_t i = 0; i < LS_QUERY_DAYS_OPEN; i++)
		query_forget(&q->days[i]);
	ls_db_close(q->state);
	ls_unit_reader_fini(&q->reader);
	free(q);
}

struct ls_unit_reader *
ls_query_unit_reader(struct ls_query *q)
{
	return &q->reader;
}

/* --- days ----------------------------------------------------------------- */

/* Somebody stands on a row of it. */
static bool
query_is_read(const struct query_open *o)
{
	sqlite3_stmt *stmt = NULL;

	while ((stmt = sqlite3_next_stmt(ls_query_day_db(o->day), stmt)) != NULL) {
		if (sqlite3_stmt_busy(stmt))
			return true;
	}
	return false;
}

/* Room for another file: a free place, else the one used longest ago that nobody reads.
 */
static struct query_open *
query_room(struct ls_query *q)
{
	struct query_open *room = NULL;

	for (size_t i = 0; i < LS_QUERY_DAYS_OPEN; i++) {
		struct query_open *o = &q->days[i];

		if (o->day == NULL)
			return o;
		if ((room == NULL || o->used < room->used) && !query_is_read(o))
			room = o;
	}
	if (room != NULL)
		query_forget(room);
	return room;
}

/* The place of a file that is open, if it still is the one of that name. */
static struct query_open *
query_place(struct ls_query *q, int32_t day, const struct stat *st)
{
	for (size_t i = 0; i < LS_QUERY_DAYS_OPEN; i++) {
		struct query_open *o = &q->days[i];

		if (o->day == NULL || o->number != day)
			continue;
		if ((o->dev == st->st_dev && o->ino == st->st_ino) || query_is_read(o))
			return o;
		query_forget(o);
	}
	return query_room(q);
}

int
ls_query_day_of(struct ls_query *q, int32_t day, struct ls_query_day **ret_day)
{
	struct query_open *o;
	struct stat st;
	char path[PATH_MAX];
	int rc = ls_days_path(path, q->dir, day);

	if (rc == 0 && stat(path, &st) != 0)
		rc = -errno;
	if (rc == 0 && ls_days_wal_is_alone(q->dir, day))
		rc = -LS_ECORRUPT; /* SQLite would delete the WAL */
	if (rc != 0)
		return rc;
	o = query_place(q, day, &st);
	if (o == NULL)
		return -LS_ELIMIT;
	o->used = ++q->uses;
	if (o->day == NULL) {
		rc = ls_query_day_open(path, &o->day);
		if (rc != 0)
			return rc;
		o->number = day;
		o->dev = st.st_dev;
		o->ino = st.st_ino;
		query_watch(q, ls_query_day_db(o->day), &o->watch);
	}
	o->watch.wal_bytes = query_wal_bytes(o->watch.db);
	*ret_day = o->day;
	return 0;
}

sqlite3 *
ls_query_state_db(struct ls_query *q)
{
	q->watch.wal_bytes = query_wal_bytes(q->state);
	return q->state;
}

static int
query_read_worker(sqlite3_stmt *stmt, struct ls_store_worker *w)
{
	struct ls_worker_info *info = &w->info;
	int32_t source = 0, simulated = 0;
	int64_t owner = 0;
	int rc = ls_sql_read(stmt,
		LS_SQL_FIELDS(ls_sql_to_i64(&w->id),
			ls_sql_to_blob(w->ring_id, sizeof(w->ring_id)),
			ls_sql_to_text(info->job, sizeof(info->job)),
			ls_sql_to_i32(&info->attempt), ls_sql_to_i32(&info->rank),
			ls_sql_to_i32(&info->world), ls_sql_to_i32(&info->chips),
			ls_sql_to_text(info->host, sizeof(info->host)),
			ls_sql_to_text(info->slice, sizeof(info->slice)),
			ls_sql_to_text(info->role, sizeof(info->role)),
			ls_sql_to_i64(&w->first_us), ls_sql_to_i32(&source),
			ls_sql_to_double(&info->step_confidence),
			ls_sql_to_text(info->rack, sizeof(info->rack)),
			ls_sql_to_text(info->shard, sizeof(info->shard)),
			ls_sql_to_i32(&simulated), ls_sql_to_i64(&owner)));

	if (rc == 0 &&
		(source < 0 || source >= LS_STEP_SOURCE_COUNT || owner < 0 ||
			owner > UINT32_MAX))
		return -LS_ECORRUPT;
	info->step_source = (enum ls_step_source)source;
	info->simulated = simulated != 0;
	info->owner = (uint32_t)owner;
	return rc;
}

int
ls_query_workers(struct ls_query *q, const char *job, ls_query_worker_fn *fn, void *arg)
{
	struct ls_store_worker w;
	struct ls_sql_rows rows = ls_sql_rows(ls_query_state_db(q),
		"SELECT w.id, w.ring_id, j.name, w.attempt, w.rank, w.world, w.chips, w.host, "
		"w.slice, w.role, w.first_us, w.step_source, w.step_confidence, w.rack, w.shard, w.simulated, w.owner FROM worker w JOIN job j ON j.id = w.job_id "
		"WHERE ?1 IS NULL OR j.name = ?1 ORDER BY w.id",
		LS_SQL_VALUES(ls_sql_text(job)));

	while (ls_sql_next(&rows)) {
		memset(&w, 0, sizeof(w));
		rows.rc = query_read_worker(rows.stmt, &w);
		if (rows.rc == 0)
			rows.rc = fn(arg, &w);
	}
	return ls_sql_end(&rows);
}

int
ls_query_findings(struct ls_query *q, ls_query_finding_fn *fn, void *arg)
{
	struct ls_sql_rows rows = ls_sql_rows(ls_query_state_db(q),
		"SELECT id, json FROM (SELECT n, id, json FROM finding"
		" ORDER BY n DESC LIMIT ?) ORDER BY n",
		LS_SQL_VALUES(ls_sql_int(LS_FINDINGS_MAX)));

	while (ls_sql_next(&rows)) {
		const char *id = (const char *)sqlite3_column_text(rows.stmt, 0);
		const char *json = (const char *)sqlite3_column_text(rows.stmt, 1);

		rows.rc = id == NULL || json == NULL
			? -ENOMEM
			: fn(arg, id, json, (size_t)sqlite3_column_bytes(rows.stmt, 1));
	}
	return ls_sql_end(&rows);
}

int
ls_query_meta(struct ls_query *q, const char *key, void *ret_value, size_t size)
{
	struct ls_sql_rows rows = ls_sql_rows(ls_query_state_db(q),
		"SELECT value FROM meta WHERE key = ?1",
		LS_SQL_VALUES(ls_sql_text(key)));

	if (ls_sql_next(&rows))
		rows.rc = ls_db_column_blob(rows.stmt, 0, ret_value, size);
	else if (rows.rc == 0)
		rows.rc = -LS_EABSENT;
	return ls_sql_end(&rows);
}

int
ls_query_meta_bytes(struct ls_query *q, const char *key, void **ret_bytes,
	size_t *ret_len)
{
	struct ls_sql_rows rows = ls_sql_rows(ls_query_state_db(q),
		"SELECT value FROM meta WHERE key = ?1 AND length(value) > 0",
		LS_SQL_VALUES(ls_sql_text(key)));

	if (ls_sql_next(&rows)) {
		const void *bytes = sqlite3_column_blob(rows.stmt, 0);

		*ret_len = (size_t)sqlite3_column_bytes(rows.stmt, 0);
		*ret_bytes = bytes == NULL ? NULL : malloc(*ret_len);
		if (*ret_bytes == NULL)
			rows.rc = -ENOMEM;
		else
			memcpy(*ret_bytes, bytes, *ret_len);
	} else if (rows.rc == 0) {
		rows.rc = -LS_EABSENT;
	}
	return ls_sql_end(&rows);
}

int
ls_query_days(struct ls_query *q, struct ls_days *ret_days)
{
	return ls_days_newest(q->dir, ret_days);
}

int
ls_query_newest_day(struct ls_query *q, struct ls_query_day **ret_day)
{
	struct ls_days days = { 0 };
	int rc = ls_query_days(q, &days);

	*ret_day = NULL;
	if (rc == 0 && days.count > 0)
		rc = ls_query_day_of(q, days.day[days.count - 1], ret_day);
	return rc;
}

int
ls_query_last_worker(struct ls_query *q, int64_t *ret_id)
{
	sqlite3 *db = ls_query_state_db(q);
	int64_t version = 0;
	int rc = ls_sql_int_of(db, "PRAGMA data_version", NULL, &version);

	if (rc == 0 && version != q->version) /* counting takes long */
		rc = ls_sql_int_of(db, "SELECT max(id) + count(*) FROM worker", NULL,
			&q->last_worker);
	if (rc == 0) {
		q->version = version;
		*ret_id = q->last_worker;
	}
	return rc;
}
