/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/replace.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proto/base/log.h"
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/files.h"
#include "storage/db/sql.h"

int
ls_replace_path(char *dst, const char *dir, int32_t day)
{
	char path[PATH_MAX];
	int n, rc = ls_days_path(path, dir, day);

	if (rc != 0)
		return rc;
	n = snprintf(dst, PATH_MAX, "%s.repack", path);
	return n > 0 && n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int
ls_replace_check(const char *dir, int32_t day)
{
	struct ls_days days;
	char path[PATH_MAX];
	int rc = ls_days_newest(dir, &days);

	if (rc == 0 && days.count > 0 && day >= days.day[days.count - 1])
		rc = -LS_EBUSY;
	if (rc == 0)
		rc = ls_days_path(path, dir, day);
	if (rc == 0 && access(path, F_OK) != 0)
		rc = -errno;
	/* Frames of the old WAL would be lost, or be applied to the new file. */
	return rc == 0 && ls_days_wal_bytes(dir, day) > 0 ? -LS_EBUSY : rc;
}

/* Each message of roll-ups changes rollup_done, and nothing else writes a closed day. */
static int
replace_compare(const char *fresh, const char *path)
{
	sqlite3 *db = NULL;
	int64_t changed = 0;
	int rc = ls_db_open(path, LS_DB_READ, &db);

	if (rc == 0)
		rc = ls_sql_attach(db, fresh, "fresh");
	if (rc == 0)
		rc = ls_sql_int_of(db,
			"SELECT EXISTS (SELECT * FROM main.rollup_done EXCEPT SELECT * FROM fresh.rollup_done) OR "
			"EXISTS (SELECT * FROM fresh.rollup_done EXCEPT SELECT * FROM main.rollup_done)",
			NULL, &changed);
	ls_db_close(db);
	return rc == 0 && changed != 0 ? -LS_ESTALE : rc;
}

int
ls_replace_day(const char *dir, int32_t day)
{
	char path[PATH_MAX], fresh[PATH_MAX];
	int rc = ls_days_path(path, dir, day);

	if (rc == 0)
		rc = ls_replace_path(fresh, dir, day);
	if (rc != 0)
		return rc;
	rc = ls_replace_check(dir, day);
	if (rc == 0)
		rc = replace_compare(fresh, path);
	/* The old WAL goes first: it is empty, but the truncation was perhaps not
	 * synced. After a power cut its frames would be applied to the new file. */
	if (rc == 0)
		rc = ls_days_remove_wal(dir, day);
	if (rc == 0)
		rc = ls_files_rename(fresh, path);
	if (rc != 0)
		ls_ignore(ls_files_remove(fresh)); /* the next repacking does it */
	return rc;
}

/* A name "YYYYMMDD.db.repack", with or without a suffix of SQLite. */
static void
replace_clear_one(const char *below, const char *name)
{
	char path[PATH_MAX], day[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", below, name);
	int m = snprintf(day, sizeof(day), "%s/%.11s", below, name);

	if (n < 0 || (size_t)n >= sizeof(path) || m < 0 || (size_t)m >= sizeof(day))
		return;
	if (access(day, F_OK) != 0)
		ls_log(LS_LOG_WARN, "storage",
			"%s is a repacked day, but %s is missing; kept; rename it to %s "
			"if lockstep-collector --salvage can read it",
			path, day, day);
	else if (ls_files_remove(path) == 0)
		ls_log(LS_LOG_INFO, "storage",
			"removed %s of an unfinished repacking; %s is whole", path,
			day);
}

void
ls_replace_clear(const char *dir)
{
	static const char mark[] = ".db.repack";
	char below[PATH_MAX];
	struct dirent *entry;
	int n = snprintf(below, sizeof(below), "%s/telemetry", dir);
	DIR *d = n > 0 && (size_t)n < sizeof(below) ? opendir(below) : NULL;

	if (d == NULL)
		return;
	while ((entry = readdir(d)) != NULL) {
		if (strlen(entry->d_name) >= 8 + sizeof(mark) - 1 &&
			strncmp(entry->d_name + 8, mark, sizeof(mark) - 1) == 0)
			replace_clear_one(below, entry->d_name);
	}
	(void)closedir(d); /* only read from */
}
