/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/kept.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "proto/base/log.h"
#include "storage/db/backup.h"
#include "storage/db/err_sqlite.h"
#include "storage/db/files.h"

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

	memset(k, 0, sizeof(*k));
	for (size_t i = 0; i < LS_DAYS_SUFFIXES; i++) {
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
	for (size_t i = 0; i < LS_DAYS_SUFFIXES; i++) {
		if (!kept_has(k, dir, day, i))
			return ls_days_suffix[i];
	}
	return NULL;
}

/* The whole database under a name that nothing has, or else beside it. */
static int
kept_copy(sqlite3 *db, const char *path, int64_t wall_us, bool *ret_beside)
{
	char fresh[PATH_MAX + 32], to[PATH_MAX + 32];
	int rc;

	(void)snprintf(fresh, sizeof(fresh), "%s.rescue", path);
	(void)snprintf(to, sizeof(to), "%s", path);
	rc = ls_files_remove(fresh); /* of an attempt before */
	if (rc == 0)
		rc = ls_backup_pages(db, fresh);
	if (rc == 0 && link(fresh, to) != 0) {
		*ret_beside = errno == EEXIST;
		(void)snprintf(to, sizeof(to), "%s.salvaged-%lld", path,
			(long long)(wall_us / 1000000));
		rc = *ret_beside && link(fresh, to) == 0 ? 0 : -errno;
	}
	if (rc == 0)
		ls_log(LS_LOG_WARN, "storage", "%s: written anew from the open file",
			to);
	ls_ignore(ls_files_remove(fresh)); /* else the next attempt does */
	return rc;
}

int
ls_kept_rescue(sqlite3 *db, struct ls_kept *k, const char *dir, int32_t day,
	int64_t wall_us, bool *ret_beside)
{
	char path[PATH_MAX];
	int rc = ls_days_path(path, dir, day);

	if (rc == 0 && kept_has(k, dir, day, 0))
		rc = ls_err_sqlite(sqlite3_wal_checkpoint_v2(db, NULL,
			SQLITE_CHECKPOINT_FULL, NULL, NULL));
	else if (rc == 0)
		rc = ls_days_mkdir(dir);
	if (rc == 0 && !kept_has(k, dir, day, 0))
		rc = kept_copy(db, path, wall_us, ret_beside);
	if (rc == 0)
		rc = ls_days_sync(dir);
	if (rc == 0)
		memset(k, 0, sizeof(*k));
	return rc;
}
