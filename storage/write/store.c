/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/write/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "proto/base/log.h"
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/kept.h"
#include "storage/db/migrate.h"
#include "storage/read/query_day.h"
#include "storage/db/replace.h"
#include "storage/db/retain.h"
#include "storage/db/settle.h"
#include "storage/db/sql.h"
#include "storage/write/store_sql.h"

#define STORE_NOTE_KEY "store_note"
#define STORE_NOTE_US 86400000000ll /* a note is not replaced by a lesser one before */

struct store_wal {
	int64_t bytes;
	int64_t tried; /* bytes at the last checkpoint that waited for readers */
};

struct ls_store {
	const char *dir;
	int lock_fd;
	sqlite3 *state, *day_db;
	sqlite3_stmt *state_stmt[LS_STORE_STATE_COUNT];
	sqlite3_stmt *day_stmt[LS_STORE_DAY_COUNT];
	int32_t day; /* of day_db; 0: none open */
	int64_t next_id; /* in day_db */
	struct ls_journal journal;
	struct ls_bodies *bodies; /* of day_db */
	struct store_wal day_wal, state_wal;
	struct ls_kept day_kept, state_kept;
	int64_t looked_s; /* second of the last check of them */
	bool future; /* its day stays in the future: renaming failed */
	bool reopen; /* takes nothing more */
	bool told_full; /* people know that days will go by LS_RETAIN_AUTO */
	struct ls_store_stats stats;
};

static const char *const store_state_sql[] = {
#define X(id, sql) sql,
	LS_STORE_STATE_SQL(X)
#undef X
};

static const char *const store_day_sql[] = {
#define X(id, sql) sql,
	LS_STORE_DAY_SQL(X)
#undef X
};

static int
store_on_wal(void *arg, sqlite3 *db, const char *name, int pages)
{
	struct store_wal *w = arg;

	(void)db;
	(void)name;
	w->bytes = (int64_t)pages * LS_DB_PAGE_BYTES;
	return SQLITE_OK;
}

/* True for what a new file in its place would heal. */
static bool
store_is_damage(int rc)
{
	return rc == -LS_ECORRUPT;
}

/* Logs why a file or directory cannot be used, and what to do. */
static void
store_refuse(const char *path, int rc)
{
	ls_log(LS_LOG_ERR, "storage", "%s: %s; %s", path, ls_err_text(rc),
		ls_db_advice(rc));
}

/* Out of the way with a damaged file (state.db: day 0): the rest goes on without it. */
static int
store_set_aside(struct ls_store *s, int32_t day, int64_t wall_us)
{
	int rc = ls_days_set_aside(s->dir, day, wall_us);

	s->stats.set_aside++;
	s->stats.aside = ls_days_aside(s->dir);
	return rc;
}

/* Before a database is made: SQLite would delete a WAL that already has its name. */
static int
store_keep_wal(struct ls_store *s, int32_t day, int64_t wall_us)
{
	return ls_days_wal_is_alone(s->dir, day) ? store_set_aside(s, day, wall_us) : 0;
}

/* --- state.db ------------------------------------------------------------- */

static int
store_try_state(struct ls_store *s, const char *path)
{
	sqlite3 *db = NULL;
	int rc = ls_db_open(path, LS_DB_WRITE, &db);

	if (rc == 0)
		rc = ls_db_check(db, LS_DB_CHECK_NS, NULL, 0);
	if (rc == 0)
		rc = ls_db_begin(db);
	if (rc == 0)
		rc = ls_migrate(db, ls_migrations_of(LS_SCHEMA_STATE), NULL);
	rc = ls_db_end(db, rc);
	if (rc == 0)
		rc = ls_db_prepare_all(db, store_state_sql, s->state_stmt,
			LS_STORE_STATE_COUNT);
	if (rc == 0)
		rc = ls_kept_note(&s->state_kept, s->dir, 0);
	if (rc == 0) {
		(void)sqlite3_wal_hook(db, store_on_wal, &s->state_wal);
		s->state = db;
	} else {
		ls_db_finalize_all(s->state_stmt, LS_STORE_STATE_COUNT);
		ls_db_close(db);
	}
	return rc;
}

/* The last note, if it is one. */
static void
store_recall(struct ls_store *s)
{
	struct ls_store_note note;
	struct ls_sql_rows rows =
		ls_sql_rows(s->state, "SELECT value FROM meta WHERE key = ?1",
			LS_SQL_VALUES(ls_sql_text(STORE_NOTE_KEY)));

	if (ls_sql_next(&rows))
		rows.rc = ls_db_column_blob(rows.stmt, 0, &note, sizeof(note));
	else
		rows.rc = -LS_EABSENT;
	if (ls_sql_end(&rows) == 0 && note.event > LS_STORE_QUIET &&
		note.event < LS_STORE_EVENTS && memchr(note.name, 0, sizeof(note.name)))
		s->stats.note = note;
}

/* Writes a note, durably; name is "state.db" or a day's file, with its suffix. */
static int
store_tell(struct ls_store *s, enum ls_store_news event, int32_t day,
	const char *suffix, int64_t wall_us)
{
	struct ls_store_note note = { .t_us = wall_us, .event = (int32_t)event };

	if (day > 0)
		(void)snprintf(note.name, sizeof(note.name), "telemetry/%08d.db%s",
			(int)day, suffix);
	else
		(void)snprintf(note.name, sizeof(note.name), "state.db%s", suffix);
	s->stats.note = note;
	return ls_sql_run(s->state_stmt[LS_STORE_STATE_META],
		LS_SQL_VALUES(ls_sql_text(STORE_NOTE_KEY),
			ls_sql_blob(&note, sizeof(note))));
}

static int
store_open_state(struct ls_store *s, int64_t wall_us)
{
	char path[PATH_MAX];
	int rc = ls_days_path(path, s->dir, 0);

	if (rc != 0)
		return rc;
	rc = store_keep_wal(s, 0, wall_us);
	if (rc == 0)
		rc = store_try_state(s, path);
	if (store_is_damage(rc)) {
		rc = store_set_aside(s, 0, wall_us);
		if (rc == 0)
			rc = store_try_state(s, path);
	}
	if (rc == 0)
		store_recall(s);
	else
		store_refuse(path, rc);
	return rc;
}

/* --- the day's file ------------------------------------------------------- */

static void
store_close_day(struct ls_store *s)
{
	ls_db_finalize_all(s->day_stmt, LS_STORE_DAY_COUNT);
	ls_bodies_close(s->bodies);
	s->bodies = NULL;
	ls_settle(s->day_db);
	ls_db_close(s->day_db);
	s->day_db = NULL;
	s->day = 0;
}

/* In one transaction: the tables and, in a new file, the ledger of `before` (0: none).
 */
static int
store_begin_day(struct ls_store *s, sqlite3 *db, int32_t before, int64_t wall_us)
{
	char old[PATH_MAX];
	bool fresh = false;
	int rc = before > 0 ? ls_days_path(old, s->dir, before) : 0;

	if (rc == 0 && before > 0)
		rc = ls_sql_attach(db, old, "old");
	if (rc == 0)
		rc = ls_db_begin(db);
	if (rc == 0)
		rc = ls_migrate(db, ls_migrations_of(LS_SCHEMA_TELEMETRY), &fresh);
	if (rc == 0 && fresh && before > 0)
		rc = ls_store_carry(db, wall_us);
	rc = ls_db_end(db, rc);
	if (rc == 0 && before > 0)
		rc = ls_db_exec(db, "DETACH old");
	return rc;
}

static int
store_try_day(struct ls_store *s, int32_t day, int32_t before, int64_t wall_us)
{
	sqlite3 *db = NULL;
	int64_t last_id = 0;
	int rc = ls_db_open_day(s->dir, day, LS_DB_WRITE, &db);

	if (rc == 0)
		rc = store_begin_day(s, db, before, wall_us);
	if (rc == 0)
		rc = ls_query_last_id(db, &last_id);
	if (rc == 0)
		rc = ls_db_prepare_all(db, store_day_sql, s->day_stmt,
			LS_STORE_DAY_COUNT);
	if (rc == 0)
		rc = ls_kept_note(&s->day_kept, s->dir, day);
	if (rc == 0)
		rc = ls_bodies_open(db, &s->bodies);
	if (rc != 0) {
		ls_db_finalize_all(s->day_stmt, LS_STORE_DAY_COUNT);
		ls_db_close(db);
		return rc;
	}
	(void)sqlite3_wal_hook(db, store_on_wal, &s->day_wal);
	s->day_wal = (struct store_wal){ 0 };
	s->day_db = db;
	s->day = day;
	s->next_id = last_id + 1;
	return 0;
}

/* What a day's file is: 0 sound, -ENODATA empty (its maker died), or why it cannot be
 * used. */
static int
store_probe_day(struct ls_store *s, int32_t day, bool check)
{
	sqlite3 *db = NULL;
	int64_t tables = 0, version;
	int rc = ls_db_open_day(s->dir, day, LS_DB_WRITE, &db);

	if (rc == 0)
		rc = ls_sql_int_of(db, "SELECT count(*) FROM sqlite_schema", NULL,
			&tables);
	if (rc == 0 && tables == 0)
		rc = -ENODATA;
	if (rc == 0 && check)
		rc = ls_db_check(db, LS_DB_CHECK_NS, NULL, 0);
	if (rc == 0)
		rc = ls_migrate_version(db, ls_migrations_of(LS_SCHEMA_TELEMETRY),
			&version);
	ls_db_close(db);
	return rc;
}

/* The newest day file that can be used (0: none); damaged ones go aside, empty ones
 * away. */
static int
store_newest_day(struct ls_store *s, int64_t wall_us, bool check, int32_t *ret_newest)
{
	struct ls_days days;
	char path[PATH_MAX];
	int rc = ls_days_newest(s->dir, &days);

	*ret_newest = 0;
	while (rc == 0 && days.count > 0 && *ret_newest == 0) {
		int32_t day = days.day[--days.count];

		rc = ls_days_wal_is_alone(s->dir, day) ? -LS_ECORRUPT
						       : store_probe_day(s, day, check);
		if (rc == 0) {
			*ret_newest = day;
		} else if (rc == -ENODATA) {
			rc = ls_days_remove(s->dir, day);
		} else if (store_is_damage(rc)) {
			rc = store_set_aside(s, day, wall_us);
		} else if (ls_days_path(path, s->dir, day) == 0) {
			store_refuse(path, rc);
		}
	}
	return rc;
}

/* Opens the file that rows of `wall_us` go to. */
static int
store_open_day(struct ls_store *s, int64_t wall_us, bool check)
{
	int32_t day = ls_days_of(wall_us), newest;
	char path[PATH_MAX];
	int rc = store_newest_day(s, wall_us, check, &newest);

	if (rc != 0)
		return rc;
	if (newest > day) {
		ls_log(LS_LOG_WARN, "storage",
			"the newest file is of day %d but today is %d; check the "
			"clock; writing to the newest file",
			(int)newest, (int)day);
		day = newest;
	}
	rc = store_keep_wal(s, day, wall_us);
	if (rc == 0)
		rc = store_try_day(s, day, newest < day ? newest : 0, wall_us);
	if (rc != 0 && check && ls_days_path(path, s->dir, day) == 0)
		store_refuse(path, rc);
	return rc;
}

/* A new day: the old file is closed and left as it is. */
static int
store_turn_day(struct ls_store *s, int64_t wall_us)
{
	if (s->day_db != NULL && ls_days_of(wall_us) <= s->day)
		return 0;
	if (s->day_db != NULL)
		store_close_day(s); /* its last connection: takes the WAL in */
	return store_open_day(s, wall_us, false);
}

/* --- life ----------------------------------------------------------------- */

static uint64_t
store_bytes(const struct ls_store *s)
{
	struct ls_days days;
	uint64_t bytes = ls_days_bytes(s->dir, 0);

	if (ls_days_list(s->dir, &days) == 0) {
		for (size_t i = 0; i < days.count; i++)
			bytes += ls_days_bytes(s->dir, days.day[i]);
	}
	return bytes;
}

/* Makes the directory and takes its lock. */
static int
store_open_dir(struct ls_store *s)
{
	int rc = ls_days_mkdir(s->dir);

	if (rc == 0)
		rc = ls_days_lock(s->dir, &s->lock_fd);
	if (rc == 0)
		ls_replace_clear(s->dir);
	else if (rc == -LS_EBUSY)
		ls_log(LS_LOG_ERR, "storage",
			"%s/lock: another collector uses the directory; stop it, or "
			"choose another --state-dir",
			s->dir);
	else
		store_refuse(s->dir, rc);
	return rc;
}

int
ls_store_open(const char *dir, int64_t wall_us, struct ls_store **ret_store)
{
	struct ls_store *s = calloc(1, sizeof(*s));
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->lock_fd = -1;
	s->dir = dir;
	rc = store_open_dir(s);
	if (rc == 0)
		rc = store_open_state(s, wall_us);
	if (rc == 0) {
		(void)ls_settle_future(dir, wall_us, true); /* it logs them */
		s->future = ls_settle_future(dir, wall_us, false) > 0;
		rc = store_open_day(s, wall_us, true);
	}
	if (rc != 0) {
		ls_store_close(s);
		return rc;
	}
	ls_settle_days(dir, s->day);
	s->stats.bytes = store_bytes(s);
	s->stats.aside = ls_days_aside(s->dir);
	*ret_store = s;
	return 0;
}

void
ls_store_close(struct ls_store *s)
{
	if (s == NULL)
		return;
	if (s->day_db != NULL)
		store_close_day(s);
	ls_db_finalize_all(s->state_stmt, LS_STORE_STATE_COUNT);
	ls_db_close(s->state);
	if (s->lock_fd >= 0)
		(void)close(s->lock_fd); /* gives the lock back */
	ls_journal_fini(&s->journal);
	free(s);
}

/* --- files that lose their names -------------------------------------------- */

/* Everything committed goes where the names are; then all files have to be opened again. */
static int
store_rescue(struct ls_store *s, int32_t day, const char *lost, int64_t wall_us)
{
	bool beside = false;
	int rc;

	ls_log(LS_LOG_ERR, "storage",
		"a file of %s was removed or replaced while it was open; what was "
		"stored is kept; opening all files again",
		s->dir);
	ls_ignore(store_tell(s, LS_STORE_REMOVED, day, lost, wall_us)); /* logged */
	if (s->day_db != NULL)
		rc = ls_kept_rescue(s->day_db, &s->day_kept, s->dir, wall_us, &beside);
	else
		rc = 0;
	if (rc == 0 && beside)
		ls_ignore(store_tell(s, LS_STORE_REPLACED, day, "", wall_us));
	if (rc == 0)
		rc = ls_kept_rescue(s->state, &s->state_kept, s->dir, wall_us, &beside);
	s->reopen = rc == 0;
	return rc == 0 ? -LS_EREOPEN : rc;
}

/* 0: the files are those that were opened, and of a day that is possible. Without `all`,
 * those of state.db are checked once a second. */
static int
store_look(struct ls_store *s, int64_t wall_us, bool all)
{
	const char *lost = NULL;
	int32_t day = 0;

	if (s->reopen)
		return -LS_EREOPEN;
	if (all || wall_us / 1000000 != s->looked_s)
		lost = ls_kept_lost(&s->state_kept);
	s->looked_s = wall_us / 1000000;
	if (lost == NULL && s->day_db != NULL) {
		day = s->day;
		lost = ls_kept_lost(&s->day_kept);
	}
	if (lost != NULL)
		return store_rescue(s, day, lost, wall_us);
	if (s->future || ls_days_of(wall_us) >= s->day ||
		ls_settle_future(s->dir, wall_us, false) == 0)
		return 0;
	ls_ignore(
		store_tell(s, LS_STORE_FUTURE, s->day, "", wall_us)); /* logged then */
	s->reopen = true;
	return -LS_EREOPEN;
}

/* --- commit --------------------------------------------------------------- */

static bool
store_is_of_state(enum ls_write_kind kind)
{
	return kind != LS_WRITE_REPORT && kind != LS_WRITE_CLOSE &&
		kind != LS_WRITE_ZOOM && kind != LS_WRITE_HANG;
}

/*
 * After a commit: moves the WAL into the file when it has grown. Readers that overlap
 * without end keep it from beginning again; so each time that a large one has grown
 * further, new readers are kept out of it until the present ones have ended. Fails
 * without harm: later again.
 */
static void
store_checkpoint(sqlite3 *db, struct store_wal *w)
{
	bool waits;

	if (w->bytes < w->tried)
		w->tried = 0; /* it has begun again */
	if (w->bytes < LS_WAL_CHECKPOINT_BYTES)
		return;
	waits = w->bytes >= LS_WAL_TURN_BYTES &&
		w->bytes - w->tried >= LS_WAL_CHECKPOINT_BYTES;
	if (waits) {
		w->tried = w->bytes;
		(void)sqlite3_busy_timeout(db, LS_WAL_TURN_MS); /* cannot fail */
	}
	(void)sqlite3_wal_checkpoint_v2(db, NULL,
		waits ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE, NULL,
		NULL);
	if (waits)
		(void)sqlite3_busy_timeout(db, LS_DB_BUSY_MS); /* likewise */
}

/* Reports bring rows of workers to state.db, too. */
static bool
store_has_state(const struct ls_write *m)
{
	return store_is_of_state(m->kind) ||
		(m->kind == LS_WRITE_REPORT && m->u.report.workers != NULL);
}

/* Returns how many messages it marked. */
static size_t
store_mark(struct ls_write *const *batch, size_t count, bool of_state, int rc)
{
	size_t i, n = 0;

	for (i = 0; i < count; i++) {
		if (store_is_of_state(batch[i]->kind) != of_state)
			continue;
		batch[i]->rc = rc;
		n++;
	}
	return n;
}

static int
store_commit_state(struct ls_store *s, struct ls_write *const *batch, size_t count)
{
	size_t i, n = 0;
	int rc = 0;

	for (i = 0; i < count; i++)
		n += store_has_state(batch[i]);
	if (n == 0)
		return 0;
	rc = ls_db_begin(s->state);
	for (i = 0; i < count && rc == 0; i++) {
		if (store_has_state(batch[i]))
			rc = ls_store_put_state(s->state_stmt, batch[i]);
	}
	rc = ls_db_end(s->state, rc);
	(void)store_mark(batch, count, true, rc);
	if (rc == 0) {
		s->stats.rows += n;
		store_checkpoint(s->state, &s->state_wal);
	}
	return rc;
}

static void
store_count_chunks(struct ls_store *s, const struct ls_write *m)
{
	if (m->kind != LS_WRITE_REPORT)
		return;
	for (size_t i = 0; i < m->u.report.chunk_count; i++) {
		s->stats.rows++;
		if (m->u.report.chunks[i].kind != LS_WIRE_CHUNK)
			continue;
		s->stats.chunks++;
		s->stats.chunk_bytes += m->u.report.chunks[i].body_len;
	}
}

/* The messages of the day's kinds, in one transaction; *ret_batch says what was put. */
static int
store_put_day(struct ls_store *s, struct ls_write *const *batch, size_t count,
	struct ls_store_batch *ret_batch)
{
	struct ls_store_batch b = { .stmt = s->day_stmt,
		.journal = &s->journal,
		.bodies = s->bodies,
		.next_id = s->next_id };
	int64_t end = ls_bodies_end(s->bodies);
	int rc = ls_db_run(s->day_stmt[LS_STORE_DAY_BEGIN]);

	ls_journal_reset(&s->journal);
	for (size_t i = 0; i < count && rc == 0; i++) {
		if (!store_is_of_state(batch[i]->kind))
			rc = ls_store_put_day(&b, batch[i]);
	}
	if (rc == 0)
		rc = ls_store_put_journal(&b);
	if (rc == 0)
		rc = ls_bodies_flush(s->bodies);
	if (rc == 0)
		rc = ls_db_run(s->day_stmt[LS_STORE_DAY_COMMIT]);
	rc = ls_db_end(s->day_db, rc);
	if (rc != 0)
		ls_bodies_back(s->bodies, end);
	*ret_batch = b;
	return rc;
}

static int
store_commit_day(struct ls_store *s, struct ls_write *const *batch, size_t count,
	int64_t wall_us)
{
	struct ls_store_batch b = { 0 };
	int rc;

	if (store_mark(batch, count, false, -LS_EBUSY) == 0) /* not tried yet */
		return 0;
	rc = store_turn_day(s, wall_us);
	if (rc == 0)
		rc = store_put_day(s, batch, count, &b);
	(void)store_mark(batch, count, false, rc);
	if (store_is_damage(rc) && s->day_db != NULL)
		/* else the next attempt meets the damage again */
		ls_ignore(ls_store_set_aside(s, s->day, wall_us));
	if (rc == 0) {
		s->stats.rows += (uint64_t)(b.next_id - s->next_id);
		s->stats.records += b.records;
		for (size_t i = 0; i < count; i++)
			store_count_chunks(s, batch[i]);
		s->next_id = b.next_id;
		store_checkpoint(s->day_db, &s->day_wal);
	}
	return rc;
}

int
ls_store_pack(struct ls_store *s, const struct ls_store_pack *pack)
{
	int rc = s->day_db != NULL && pack->day == s->day ? 0 : -LS_ESTALE;

	if (rc == 0)
		rc = ls_db_begin(s->day_db);
	if (rc == 0)
		rc = ls_store_put_pack(s->day_stmt, pack);
	rc = ls_db_end(s->day_db, rc);
	if (rc == 0) {
		s->stats.units++;
		store_checkpoint(s->day_db, &s->day_wal);
	} else {
		s->stats.units_refused++;
	}
	return rc;
}

static int
store_rollup_into(sqlite3 *db, const struct ls_store_rollup *rollup)
{
	int rc = ls_db_begin(db);

	if (rc == 0)
		rc = ls_store_put_rollup(db, rollup);
	return ls_db_end(db, rc);
}

int
ls_store_rollup(struct ls_store *s, const struct ls_store_rollup *rollup)
{
	sqlite3 *db = NULL;
	int rc;

	if (s->day_db != NULL && rollup->day == s->day) {
		rc = store_rollup_into(s->day_db, rollup);
		if (rc == 0)
			store_checkpoint(s->day_db, &s->day_wal);
		return rc;
	}
	if (rollup->day <= 0 || ls_days_bytes(s->dir, rollup->day) == 0)
		return -LS_ESTALE;
	rc = ls_db_open_day(s->dir, rollup->day, LS_DB_WRITE, &db);
	if (rc == 0)
		rc = store_rollup_into(db, rollup);
	if (db != NULL)
		ls_settle(db);
	ls_db_close(db);
	return rc;
}

/* Nothing of an open transaction is stored; the next commit makes a new file. */
int
ls_store_set_aside(struct ls_store *s, int32_t day, int64_t wall_us)
{
	if (s->day_db != NULL && day == s->day)
		store_close_day(s);
	return store_set_aside(s, day, wall_us);
}

int
ls_store_replace(struct ls_store *s, int32_t day)
{
	return day != s->day ? ls_replace_day(s->dir, day) : -LS_EBUSY;
}

/* Whether a closed day's file can be opened; what is wrong deeper in it, its readers
 * meet. */
static int
store_look_at_day(const struct ls_store *s, int32_t day)
{
	sqlite3 *db = NULL;
	int64_t tables;
	int rc = ls_days_wal_is_alone(s->dir, day)
		? -LS_ECORRUPT
		: ls_db_open_day(s->dir, day, LS_DB_READ, &db);

	if (rc == 0)
		rc = ls_sql_int_of(db, "SELECT count(*) FROM sqlite_schema", NULL,
			&tables);
	if (rc == 0 && tables == 0)
		rc = -LS_ECORRUPT; /* it is not the newest: nobody is making it */
	ls_db_close(db);
	return rc;
}

/* Closed days that cannot be opened go aside, so that nobody meets them again. */
static void
store_sweep(struct ls_store *s, const struct ls_days *days, int64_t wall_us)
{
	for (size_t i = 0; i < days->count; i++) {
		if (days->day[i] != s->day &&
			store_is_damage(store_look_at_day(s, days->day[i])))
			ls_ignore(store_set_aside(s, days->day[i],
				wall_us)); /* else the next round */
	}
	s->stats.aside = ls_days_aside(s->dir);
}

/*
 * The maximum by default. From nine tenths of it on there is a finding; the first round
 * that reaches the maximum only warns and removes nothing.
 */
static void
store_retain_auto(struct ls_store *s, const struct ls_days *days,
	struct ls_store_retain *rule, int64_t wall_us)
{
	uint64_t own = store_bytes(s);
	struct statvfs fs;

	rule->max_bytes = 0;
	if (statvfs(s->dir, &fs) == 0)
		rule->max_bytes = ls_retain_auto(own, fs.f_blocks * fs.f_frsize,
			fs.f_bavail * fs.f_frsize);
	if (rule->max_bytes == 0 || own <= rule->max_bytes / 10 * 9 || days->count < 2)
		return;
	if (!s->told_full) {
		ls_log(LS_LOG_WARN, "storage",
			"%s has %llu bytes: above %llu the oldest days are removed; "
			"--retain-bytes sets another maximum",
			s->dir, (unsigned long long)own,
			(unsigned long long)rule->max_bytes);
		rule->max_bytes = 0;
	}
	s->told_full = true;
	if (s->stats.note.event == LS_STORE_QUIET ||
		s->stats.note.event == LS_STORE_FULL ||
		wall_us - s->stats.note.t_us > STORE_NOTE_US)
		ls_ignore(store_tell(s, LS_STORE_FULL, days->day[0], "",
			wall_us)); /* logged */
}

static void
store_retain(struct ls_store *s, const struct ls_store_retain *asked, int64_t wall_us)
{
	struct ls_store_retain rule = *asked;
	uint64_t bytes[LS_DAYS_MAX];
	struct ls_days days;
	size_t i, gone;
	int rc;

	ls_settle_days(s->dir, s->day);
	rc = ls_days_newest(s->dir, &days);
	if (rc == 0) {
		store_sweep(s, &days, wall_us);
		rc = ls_days_newest(s->dir, &days);
	}
	if (rc != 0) {
		ls_log(LS_LOG_WARN, "storage",
			"cannot list %s: %s; retention removes nothing", s->dir,
			ls_err_text(rc));
		return;
	}
	if (rule.max_bytes == LS_RETAIN_AUTO)
		store_retain_auto(s, &days, &rule, wall_us);
	for (i = 0; i < days.count; i++)
		bytes[i] = ls_days_bytes(s->dir, days.day[i]);
	gone = ls_retain_count(&days, bytes, ls_days_bytes(s->dir, 0), &rule);
	for (i = 0; i < gone && days.day[i] != s->day; i++) {
		rc = ls_days_remove(s->dir, days.day[i]);
		if (rc != 0) {
			ls_log(LS_LOG_ERR, "storage",
				"cannot remove the file of day %d: %s",
				(int)days.day[i], ls_err_text(rc));
			continue;
		}
		s->stats.removed_days++;
		ls_log(LS_LOG_INFO, "storage",
			"retention removed the file of day %d (%llu bytes)",
			(int)days.day[i], (unsigned long long)bytes[i]);
	}
	s->stats.bytes = store_bytes(s);
}

int
ls_store_commit(struct ls_store *s, struct ls_write *const *batch, size_t count,
	int64_t wall_us)
{
	int rc, looked;

	for (size_t i = 0; i < count; i++)
		batch[i]->rc = -LS_EBUSY; /* not tried yet */
	rc = s->reopen ? -LS_EREOPEN : store_commit_state(s, batch, count);
	if (rc == 0)
		rc = store_commit_day(s, batch, count, wall_us);
	looked = store_look(s, wall_us, count == 0);
	if (looked != 0 && looked != -LS_EREOPEN) {
		for (size_t i = 0; i < count; i++)
			batch[i]->rc = looked; /* stored where nobody finds it */
	}
	if (looked != 0)
		rc = looked;
	if (rc != 0) {
		s->stats.failures++;
		return rc;
	}
	s->stats.commits += count > 0;
	for (size_t i = 0; i < count; i++) {
		if (batch[i]->kind == LS_WRITE_RETAIN)
			store_retain(s, &batch[i]->u.retain, wall_us);
	}
	return 0;
}

void
ls_store_stats(const struct ls_store *s, struct ls_store_stats *ret_stats)
{
	*ret_stats = s->stats;
}

const char *
ls_store_dir(const struct ls_store *s)
{
	return s->dir;
}
