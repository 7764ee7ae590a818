/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/err_sqlite.h"
#include "storage/db/migrate.h"

/* Whether there is nothing at a path, or an empty directory; else -EEXIST. */
static int
backup_check_target(const char *to)
{
	DIR *d = opendir(to);
	struct dirent *entry;
	int rc = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = readdir(d)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = -EEXIST;
	}
	(void)closedir(d); /* only read from */
	return rc;
}

int
ls_backup_pages(sqlite3 *from, const char *path)
{
	sqlite3 *to = NULL;
	sqlite3_backup *b;
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	int rc;

	if (fd < 0)
		return -errno;
	(void)close(fd); /* nothing was written */
	rc = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE, NULL);
	if (rc == SQLITE_OK)
		(void)sqlite3_extended_result_codes(to, 1); /* cannot fail */
	b = rc == SQLITE_OK ? sqlite3_backup_init(to, "main", from, "main") : NULL;
	if (b != NULL) {
		(void)sqlite3_backup_step(b, -1); /* finish tells the same error */
		rc = sqlite3_backup_finish(b);
	} else if (rc == SQLITE_OK) {
		rc = sqlite3_errcode(to);
	}
	(void)sqlite3_close(to); /* no statements: cannot be busy */
	return ls_err_sqlite(rc);
}

/* Copies one file and verifies the copy. */
static int
backup_file(const char *dir, const char *to, int32_t day)
{
	const struct ls_migrations *schema =
		ls_migrations_of(day > 0 ? LS_SCHEMA_TELEMETRY : LS_SCHEMA_STATE);
	char path[PATH_MAX], copy[PATH_MAX];
	sqlite3 *db = NULL;
	int64_t version;
	int rc = ls_days_path(path, dir, day);

	if (rc == 0)
		rc = ls_days_path(copy, to, day);
	if (rc == 0)
		rc = ls_db_open(path, LS_DB_READ, &db);
	if (rc == 0)
		rc = ls_migrate_version(db, schema, &version);
	if (rc == 0)
		rc = ls_backup_pages(db, copy);
	ls_db_close(db);
	db = NULL;
	if (rc == 0)
		rc = ls_db_open(copy, LS_DB_WRITE,
			&db); /* a reader would leave its WAL behind */
	if (rc == 0)
		rc = ls_db_check(db, 0, NULL, 0);
	ls_db_close(db);
	return rc;
}

static int
backup_tell(const char *dir, const char *to, int32_t day,
	void (*say)(void *arg, const char *line), void *arg)
{
	char path[PATH_MAX] = "", line[PATH_MAX + 256];
	int rc = backup_file(dir, to, day);

	ls_ignore(ls_days_path(path, dir, day)); /* if it does not fit, rc says so */
	(void)snprintf(line, sizeof(line), "%s: %s", path,
		rc == 0 ? "copied" : ls_err_text(rc));
	say(arg, line);
	return rc;
}

static int
backup_all(const char *dir, const char *to, const struct ls_days *days,
	void (*say)(void *arg, const char *line), void *arg)
{
	int rc, worst = 0;

	for (size_t i = 0; i < days->count; i++) {
		rc = backup_tell(dir, to, days->day[i], say, arg);
		if (worst == 0)
			worst = rc;
	}
	rc = backup_tell(dir, to, 0, say, arg);
	return worst == 0 ? rc : worst;
}

int
ls_backup(const char *dir, const char *to, void (*say)(void *arg, const char *line),
	void *arg)
{
	struct ls_days days;
	int rc = ls_days_newest(dir, &days);

	if (rc == 0)
		rc = backup_check_target(to);
	if (rc == 0)
		rc = ls_days_mkdir(to);
	if (rc == 0)
		rc = backup_all(dir, to, &days, say, arg);
	return rc == 0 ? ls_days_sync(to) : rc;
}
