/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int
ls_files_sync(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (fsync(fd) != 0)
		rc = -errno;
	(void)close(fd); /* nothing was written through it */
	return rc;
}

/* Syncs the directory in which a path's last name stands. */
static int
files_sync_parent(const char *path)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int n = slash == NULL ? snprintf(parent, sizeof(parent), ".")
			      : snprintf(parent, sizeof(parent), "%.*s",
					(int)(slash - path) + 1, path);

	return n > 0 && (size_t)n < sizeof(parent) ? ls_files_sync(parent)
						   : -ENAMETOOLONG;
}

int
ls_files_mkdir(const char *path)
{
	char parent[PATH_MAX];
	int n = snprintf(parent, sizeof(parent), "%s/..", path);
	bool exists = mkdir(path, 0750) != 0;
	int rc;

	if (exists && errno != EEXIST)
		return -errno;
	rc = n > 0 && (size_t)n < sizeof(parent) ? ls_files_sync(parent)
						 : -ENAMETOOLONG;
	/* Who may not read the parent did not make the directory. */
	return exists && rc == -EACCES ? 0 : rc;
}

int
ls_files_rename(const char *from, const char *to)
{
	/* A file system may keep the rename and forget what was done before it: for
	 * example a removal of the WAL that must not meet the new file. */
	int rc = files_sync_parent(to);

	if (rc == 0 && rename(from, to) != 0)
		rc = -errno;
	return rc == 0 ? files_sync_parent(to) : rc;
}

int
ls_files_remove(const char *path)
{
	if (unlink(path) != 0)
		return errno == ENOENT ? 0 : -errno;
	return files_sync_parent(path);
}

uint64_t
ls_files_bytes(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}
