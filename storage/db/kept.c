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

int
ls_kept_note(struct ls_kept *k, const char *dir, int32_t day)
{
	char path[PATH_MAX];
	struct stat st;
	int rc = ls_days_path(path, dir, day);

	memset(k->ino, 0, sizeof(k->ino));
	for (size_t i = 0; i < LS_DAYS_SUFFIXES && rc == 0; i++) {
		(void)snprintf(k->path[i], sizeof(k->path[i]), "%s%s", path,
			ls_days_suffix[i]);
		if (stat(k->path[i], &st) != 0)
			continue;
		k->dev[i] = st.st_dev;
		k->ino[i] = st.st_ino;
	}
	return rc != 0 || k->ino[0] != 0 ? rc : -ENOENT;
}

static bool
kept_has(const struct ls_kept *k, size_t i)
{
	struct stat st;

	if (k->ino[i] == 0)
		return true;
	if (stat(k->path[i], &st) != 0)
		return errno != ENOENT && errno != ENOTDIR;
	return st.st_dev == k->dev[i] && st.st_ino == k->ino[i];
}

const char *
ls_kept_lost(const struct ls_kept *k)
{
	for (size_t i = 0; i < LS_DAYS_SUFFIXES; i++) {
		if (!kept_has(k, i))
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
ls_kept_rescue(sqlite3 *db, struct ls_kept *k, const char *dir, int64_t wall_us,
	bool *ret_beside)
{
	int rc;

	if (kept_has(k, 0))
		rc = ls_err_sqlite(sqlite3_wal_checkpoint_v2(db, NULL,
			SQLITE_CHECKPOINT_FULL, NULL, NULL));
	else
		rc = ls_days_mkdir(dir);
	if (rc == 0 && !kept_has(k, 0))
		rc = kept_copy(db, k->path[0], wall_us, ret_beside);
	if (rc == 0)
		rc = ls_days_sync(dir);
	if (rc == 0)
		memset(k->ino, 0, sizeof(k->ino));
	return rc;
}
