/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/days.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#include "proto/base/log.h"
#include "storage/db/files.h"

#define DAYS_MAX_US 253402300799000000ll /* the last second of 9999 */

const char *const ls_days_suffix[LS_DAYS_SUFFIXES] = { "", "-wal", "-shm" };

int32_t
ls_days_of(int64_t t_us)
{
	struct tm tm;
	time_t t;

	if (t_us < 0)
		t_us = 0;
	if (t_us > DAYS_MAX_US)
		t_us = DAYS_MAX_US;
	t = (time_t)(t_us / 1000000);
	(void)gmtime_r(&t, &tm); /* cannot fail within these bounds */
	return (tm.tm_year + 1900) * 10000 + (tm.tm_mon + 1) * 100 + tm.tm_mday;
}

int64_t
ls_days_begin_us(int32_t day)
{
	struct tm tm = {
		.tm_year = day / 10000 - 1900,
		.tm_mon = day / 100 % 100 - 1,
		.tm_mday = day % 100,
	};

	return (int64_t)timegm(&tm) * 1000000;
}

int
ls_days_path(char *dst, const char *dir, int32_t day)
{
	int n;

	if (day > 0)
		n = snprintf(dst, PATH_MAX, "%s/telemetry/%08d.db", dir, (int)day);
	else
		n = snprintf(dst, PATH_MAX, "%s/state.db", dir);
	/* What SQLite and we append must fit too. */
	return n < 0 || n > PATH_MAX - 64 ? -ENAMETOOLONG : 0;
}

int
ls_days_mkdir(const char *dir)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/telemetry", dir);

	if (n < 0 || n > PATH_MAX - 64)
		return -ENAMETOOLONG;
	n = ls_files_mkdir(dir);
	return n == 0 ? ls_files_mkdir(path) : n;
}

int
ls_days_sync(const char *dir)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/telemetry", dir);
	int rc = n >= 0 && (size_t)n < sizeof(path) ? ls_files_sync(path)
						    : -ENAMETOOLONG;

	return rc == 0 ? ls_files_sync(dir) : rc;
}

int
ls_days_lock(const char *dir, int *ret_fd)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/lock", dir), fd, rc = 0;

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		rc = errno == EWOULDBLOCK ? -LS_EBUSY : -errno;
	if (rc != 0)
		(void)close(fd); /* not ours */
	else
		*ret_fd = fd;
	return rc;
}

/* The day of a file name "YYYYMMDD.db", or 0. */
static int32_t
days_parse(const char *name)
{
	int32_t day = 0;

	if (strspn(name, "0123456789") == 8 && strcmp(name + 8, ".db") == 0)
		day = (int32_t)strtol(name, NULL, 10);
	return ls_days_of(ls_days_begin_us(day)) == day ? day : 0;
}

static int
days_is_file(const struct dirent *entry)
{
	return days_parse(entry->d_name) > 0;
}

int
ls_days_list(const char *dir, struct ls_days *ret_days)
{
	char path[PATH_MAX];
	struct dirent **list;
	int n = snprintf(path, sizeof(path), "%s/telemetry", dir), i;

	if (n < 0 || n > PATH_MAX - 64)
		return -ENAMETOOLONG;
	n = scandir(path, &list, days_is_file, alphasort); /* the order of days, too */
	if (n < 0)
		return -errno;
	ret_days->count = 0;
	for (i = 0; i < n; i++) {
		if (i >= n - LS_DAYS_MAX)
			ret_days->day[ret_days->count++] = days_parse(list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return n > LS_DAYS_MAX ? -LS_ELIMIT : 0;
}

int
ls_days_newest(const char *dir, struct ls_days *ret_days)
{
	int rc = ls_days_list(dir, ret_days);

	return rc == -LS_ELIMIT ? 0 : rc;
}

/* Of a day's file with a suffix; 0 if it is not there. */
static uint64_t
days_size(const char *dir, int32_t day, const char *suffix)
{
	char path[PATH_MAX];
	size_t len;

	if (ls_days_path(path, dir, day) != 0)
		return 0;
	len = strlen(path);
	(void)snprintf(path + len, sizeof(path) - len, "%s", suffix);
	return ls_files_bytes(path);
}

uint64_t
ls_days_wal_bytes(const char *dir, int32_t day)
{
	return days_size(dir, day, "-wal");
}

uint64_t
ls_days_bytes(const char *dir, int32_t day)
{
	return days_size(dir, day, "") + ls_days_wal_bytes(dir, day);
}

bool
ls_days_wal_is_alone(const char *dir, int32_t day)
{
	char path[PATH_MAX];

	return ls_days_path(path, dir, day) == 0 && ls_files_bytes(path) == 0 &&
		ls_days_wal_bytes(dir, day) > 0;
}

int
ls_days_set_aside(const char *dir, int32_t day, int64_t now_us)
{
	char from[PATH_MAX], to[PATH_MAX + 32];
	size_t i, len;
	int rc = ls_days_path(from, dir, day);

	if (rc != 0)
		return rc;
	len = strlen(from);
	for (i = 0; i < LS_DAYS_SUFFIXES; i++) {
		int one;

		from[len] = '\0';
		(void)snprintf(to, sizeof(to), "%s.damaged-%lld%s", from,
			(long long)(now_us / 1000000), ls_days_suffix[i]);
		(void)snprintf(from + len, sizeof(from) - len, "%s", ls_days_suffix[i]);
		one = ls_files_rename(from, to);
		if (one != -ENOENT && rc == 0)
			rc = one;
	}
	from[len] = '\0';
	ls_log(LS_LOG_ERR, "storage",
		"%s is damaged, or not a database of lockstep; set aside as "
		"%s.damaged-%lld; continuing without this file; "
		"lockstep-collector --salvage FILE copies what can be read",
		from, from, (long long)(now_us / 1000000));
	return rc;
}

/* Adds the damaged databases in dir/below. */
static void
days_look_aside(const char *dir, const char *below, struct ls_days_aside *a)
{
	static const char mark[] = ".db.damaged-";
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *d;
	int n = snprintf(path, sizeof(path), "%s/%s", dir, below);

	if (n < 0 || (size_t)n >= sizeof(path) || (d = opendir(path)) == NULL)
		return;
	while ((entry = readdir(d)) != NULL) {
		const char *at = strstr(entry->d_name, mark);
		char *end;
		int64_t t_s;

		if (at == NULL)
			continue;
		t_s = strtoll(at + sizeof(mark) - 1, &end, 10);
		if (*end != '\0') /* -wal, -shm, .salvaged */
			continue;
		if (a->count++ == 0 || t_s > a->newest_s) {
			a->newest_s = t_s;
			(void)snprintf(a->newest, sizeof(a->newest), "%s%.40s", below,
				entry->d_name);
		}
	}
	(void)closedir(d); /* only read from */
}

struct ls_days_aside
ls_days_aside(const char *dir)
{
	struct ls_days_aside a = { 0 };

	days_look_aside(dir, "", &a);
	days_look_aside(dir, "telemetry/", &a);
	return a;
}

/* Removes what has these suffixes: the first `from` of the list stay. */
static int
days_remove(const char *dir, int32_t day, size_t from)
{
	char path[PATH_MAX];
	int rc = ls_days_path(path, dir, day);
	size_t len = rc == 0 ? strlen(path) : 0;

	for (; from < LS_DAYS_SUFFIXES && rc == 0; from++) {
		(void)snprintf(path + len, sizeof(path) - len, "%s",
			ls_days_suffix[from]);
		rc = ls_files_remove(path);
	}
	return rc;
}

int
ls_days_remove(const char *dir, int32_t day)
{
	return days_remove(dir, day, 0);
}

int
ls_days_remove_wal(const char *dir, int32_t day)
{
	return days_remove(dir, day, 1);
}
