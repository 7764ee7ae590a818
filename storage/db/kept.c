/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/kept.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "proto/base/log.h"
#include "storage/db/backup.h"
#include "storage/db/err_sqlite.h"

/* What stands under a name; false: nothing does. */
static bool
kept_stat(const char *dir, int32_t day, size_t i, struct stat *ret_st)
{
	char path[PATH_MAX];
	size_t len;

	if (ls_days_path(path, dir, day) != 0)
		return false;
	len = strlen(path);
	(void)snprintf(path + len, sizeof(path) - len, "%s", ls_days_suffix[i]);
	return stat(path, ret_st) == 0;
}

int
ls_kept_note(struct ls_kept *k, const char *dir, int32_t day)
{
	struct stat st;
	size_t i;

	memset(k, 0, sizeof(*k));
	for (i = 0; i < LS_DAYS_SUFFIXES; i++) {
		if (!kept_stat(dir, day, i, &st))
			continue;
		k->dev[i] = st.st_dev;
		k->ino[i] = st.st_ino;
	}
	return k->ino[0] != 0 ? 0 : -ENOENT;
}

static bool
kept_has(const struct ls_kept *k, const char *dir, int32_t day, size_t i)
{
	struct stat st;

	if (k->ino[i] == 0)
		return true;
	if (!kept_stat(dir, day, i, &st))
		return errno != ENOENT && errno != ENOTDIR;
	return st.st_dev == k->dev[i] && st.st_ino == k->ino[i];
}

const char *
ls_kept_lost(const struct ls_kept *k, const char *dir, int32_t day)
{
	size_t i;

	for (i = 0; i < LS_DAYS_SUFFIXES; i++) {
		if (!kept_has(k, dir, day, i))
			return ls_days_suffix[i];
	}
	return NULL;
}

int
ls_kept_rescue(sqlite3 *db, const struct ls_kept *k, const char *dir, int32_t day)
{
	char path[PATH_MAX];
	size_t len;
	int rc = ls_days_path(path, dir, day);

	if (rc == 0)
		rc = ls_err_sqlite(sqlite3_wal_checkpoint_v2(db, NULL,
			SQLITE_CHECKPOINT_FULL, NULL, NULL));
	if (rc != 0 || kept_has(k, dir, day, 0))
		return rc;
	rc = ls_days_mkdir(dir);
	if (rc == 0)
		rc = ls_backup_pages(db, path);
	if (rc == -EEXIST) {
		len = strlen(path);
		(void)snprintf(path + len, sizeof(path) - len, ".salvaged");
		rc = ls_backup_pages(db, path);
	}
	if (rc == 0)
		ls_log(LS_LOG_WARN, "storage", "%s: written anew from the open file",
			path);
	return rc == 0 ? ls_days_sync(dir) : rc;
}
