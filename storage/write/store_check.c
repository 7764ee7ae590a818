/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/write/store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "storage/columns/positions.h"
#include "storage/db/bodies.h"
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/migrate.h"
#include "storage/db/sql.h"
#include "storage/write/store_sql.h"

static int
store_check_file(const char *dir, int32_t day, void (*say)(void *arg, const char *line),
	void *arg)
{
	char path[PATH_MAX], why[200] = "", line[PATH_MAX + 256];
	sqlite3 *db = NULL;
	int64_t version;
	int rc = ls_days_path(path, dir, day);

	if (rc == 0)
		rc = ls_db_open(path, LS_DB_READ, &db);
	if (rc == 0)
		rc = ls_migrate_version(db,
			ls_migrations_of(day > 0 ? LS_SCHEMA_TELEMETRY
						 : LS_SCHEMA_STATE),
			&version);
	if (rc == 0)
		rc = ls_db_check(db, 0, why, sizeof(why));
	if (rc == 0 && day > 0)
		rc = ls_bodies_check(db, why, sizeof(why));
	ls_db_close(db);
	(void)snprintf(line, sizeof(line), "%s: %s", path,
		rc == 0					       ? "ok"
			: rc == -LS_ECORRUPT && why[0] != '\0' ? why
							       : ls_err_text(rc));
	say(arg, line);
	return rc;
}

/*
 * In earlier versions a ring that was forgotten came back under a new
 * worker id, while state.db kept the old one. The row of the ring is copied for such an
 * id, under a ring id of its own. Returns how many there were, or an error.
 */
static int
store_repair_rings(sqlite3 *state, const struct ls_positions *p)
{
	sqlite3_stmt *stmt = NULL;
	int count = 0;
	int rc = ls_db_prepare(state,
		"INSERT INTO worker (id, ring_id, job_id, attempt, rank, world, chips, host, "
		"slice, role, first_us, step_source, step_confidence, rack, shard, simulated, owner) "
		"SELECT ?1, randomblob(16), job_id, attempt, rank, world, chips, host, "
		"slice, role, first_us, step_source, step_confidence, rack, shard, simulated, owner "
		"FROM worker WHERE ring_id = ?2 AND NOT EXISTS (SELECT 1 FROM worker WHERE "
		"id = ?1)",
		&stmt);

	for (size_t i = 0; i < p->ring_count && rc == 0; i++) {
		rc = ls_sql_run(stmt,
			LS_SQL_VALUES(ls_sql_int(p->rings[i].worker_id),
				ls_sql_blob(p->rings[i].ring_id, LS_RING_ID_BYTES)));
		count += rc == 0 && sqlite3_changes(state) > 0;
	}
	(void)sqlite3_finalize(stmt); /* its error is known */
	return rc != 0 ? rc : count;
}

static int
store_repair_day(const char *dir, int32_t day, sqlite3 *state)
{
	struct ls_positions p;
	sqlite3 *db = NULL;
	int rc = ls_db_open_day(dir, day, LS_DB_READ, &db);

	ls_positions_init(&p);
	if (rc == 0)
		rc = ls_positions_load(&p, db, "main");
	if (rc == 0)
		rc = store_repair_rings(state, &p);
	ls_positions_fini(&p);
	ls_db_close(db);
	return rc;
}

/* All files are sound. Nothing is repaired while a collector runs. */
static int
store_repair(const char *dir, const struct ls_days *days,
	void (*say)(void *arg, const char *line), void *arg)
{
	char path[PATH_MAX], line[PATH_MAX + 256];
	sqlite3 *state = NULL;
	int lock_fd = -1, count = 0, rc = ls_days_lock(dir, &lock_fd);

	if (rc == -LS_EBUSY)
		return 0;
	if (rc == 0)
		rc = ls_days_path(path, dir, 0);
	if (rc == 0)
		rc = ls_db_open(path, LS_DB_WRITE, &state);
	for (size_t i = 0; i < days->count && rc == 0; i++) {
		rc = store_repair_day(dir, days->day[i], state);
		count += rc > 0 ? rc : 0;
		rc = rc > 0 ? 0 : rc;
	}
	ls_db_close(state);
	if (lock_fd >= 0)
		(void)close(lock_fd); /* gives the lock back */
	if (count == 0)
		return rc;
	(void)snprintf(line, sizeof(line),
		"%s: repaired: records of %d worker ids were stored but not shown",
		path, count);
	say(arg, line);
	return rc;
}

int
ls_store_check(const char *dir, void (*say)(void *arg, const char *line), void *arg)
{
	struct ls_days days;
	int rc, worst = ls_days_list(dir, &days);

	if (worst != 0)
		return worst;
	worst = store_check_file(dir, 0, say, arg);
	for (size_t i = 0; i < days.count; i++) {
		rc = store_check_file(dir, days.day[i], say, arg);
		if (rc != 0)
			worst = rc;
	}
	return worst == 0 ? store_repair(dir, &days, say, arg) : worst;
}
