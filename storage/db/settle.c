/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/settle.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "proto/base/log.h"
#include "storage/db/days.h"
#include "storage/db/db.h"

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
	size_t i;
	int rc = ls_days_newest(dir, &days);

	for (i = 0; rc == 0 && i < days.count; i++) {
		if (days.day[i] < open_day && ls_days_wal_bytes(dir, days.day[i]) > 0 &&
			!ls_days_wal_is_alone(dir, days.day[i]))
			settle_day(dir, days.day[i]);
	}
}
