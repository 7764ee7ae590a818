/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/settle.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "proto/base/log.h"
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/files.h"
#include "storage/db/sql.h"

#define SETTLE_DAY_US 86400000000ll
#define SETTLE_FAR_US (30 * SETTLE_DAY_US) /* a collector is not off for so long */

void
ls_settle(sqlite3 *db)
{
	/* a reader in the middle is a reason to come back, not to wait */
	(void)sqlite3_busy_timeout(db, 0);
	(void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
		NULL);
}

static void
settle_day(const char *dir, int32_t day)
{
	sqlite3 *db = NULL;
	int rc = ls_db_open_day(dir, day, LS_DB_WRITE, &db);

	if (rc == 0)
		ls_settle(db);
	else
		ls_log(LS_LOG_WARN, "storage", "the WAL of day %d stays: %s", (int)day,
			ls_err_text(rc));
	ls_db_close(db);
}

void
ls_settle_days(const char *dir, int32_t open_day)
{
	struct ls_days days;
	int rc = ls_days_newest(dir, &days);

	for (size_t i = 0; rc == 0 && i < days.count; i++) {
		if (days.day[i] < open_day && ls_days_wal_bytes(dir, days.day[i]) > 0 &&
			!ls_days_wal_is_alone(dir, days.day[i]))
			settle_day(dir, days.day[i]);
	}
}

static int
settle_rename(const char *dir, int32_t day, int32_t to)
{
	char from_path[PATH_MAX], to_path[PATH_MAX];
	int rc = ls_days_path(from_path, dir, day);

	if (rc == 0)
		rc = ls_days_path(to_path, dir, to);
	if (rc == 0 && ls_days_wal_bytes(dir, day) > 0)
		settle_day(dir, day);
	if (rc == 0 &&
		(ls_days_wal_bytes(dir, day) > 0 || ls_days_wal_is_alone(dir, to)))
		rc = -LS_EBUSY;
	if (rc == 0)
		rc = ls_days_remove_wal(dir, day);
	if (rc == 0)
		rc = ls_files_rename(from_path, to_path);
	ls_log(LS_LOG_WARN, "storage",
		"the file of day %d lies in the future: a clock was wrong; renamed to day %d%s%s",
		(int)day, (int)to, rc == 0 ? "" : ": ", rc == 0 ? "" : ls_err_text(rc));
	return rc;
}

/*
 * Was the clock wrong when the file got its name? Its rows were stored by a time line
 * that does not jump: if they are not of the future, it was; and if it lies so far ahead
 * that no pause explains it.
 */
static bool
settle_is_wrong(const char *dir, int32_t day, int64_t wall_us)
{
	sqlite3 *db = NULL;
	int64_t last_us = INT64_MAX;
	int rc = ls_db_open_day(dir, day, LS_DB_READ, &db);

	if (rc == 0)
		rc = ls_sql_int_of(db,
			"SELECT max(t) FROM (SELECT max(t_us) AS t FROM journal "
			"UNION ALL SELECT max(t_us) FROM unit)",
			NULL, &last_us);
	ls_db_close(db);
	return (rc == 0 && last_us < wall_us + SETTLE_DAY_US) ||
		ls_days_begin_us(day) - wall_us > SETTLE_FAR_US;
}

size_t
ls_settle_future(const char *dir, int64_t wall_us, bool apply)
{
	int32_t tomorrow = ls_days_of(wall_us + SETTLE_DAY_US), day, to;
	int64_t after_us = wall_us + SETTLE_DAY_US;
	struct ls_days days;
	size_t i, count = 0;

	if (ls_days_newest(dir, &days) != 0 || days.count == 0 ||
		days.day[0] > tomorrow)
		return 0;
	for (i = 0; i < days.count; i++) {
		day = days.day[i];
		to = ls_days_of(after_us);
		if (day > to && settle_is_wrong(dir, day, wall_us) &&
			(!apply || settle_rename(dir, day, to) == 0)) {
			day = to;
			count++;
		}
		if (after_us < ls_days_begin_us(day) + SETTLE_DAY_US)
			after_us = ls_days_begin_us(day) + SETTLE_DAY_US;
	}
	return count;
}
