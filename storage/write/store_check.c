/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/write/store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "storage/db/bodies.h"
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/migrate.h"

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

int
ls_store_check(const char *dir, void (*say)(void *arg, const char *line), void *arg)
{
	struct ls_days *days = malloc(sizeof(*days));
	size_t i;
	int rc, worst;

	if (days == NULL)
		return -ENOMEM;
	worst = ls_days_list(dir, days);
	if (worst == 0) {
		worst = store_check_file(dir, 0, say, arg);
		for (i = 0; i < days->count; i++) {
			rc = store_check_file(dir, days->day[i], say, arg);
			if (rc != 0)
				worst = rc;
		}
	}
	free(days);
	return worst;
}
