/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of storage/backup. */
#include "config.h"

#include "storage/db/backup.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "storage/db/days.h"
#include "storage/read/query.h"
#include "storage/write/store.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"

#define YESTERDAY_NOON (ls_days_begin_us(20261120) + 12ll * 3600 * 1000000)
#define NOON (ls_days_begin_us(20261121) + 12ll * 3600 * 1000000)

static char dir[PATH_MAX], copy[PATH_MAX];
static struct ls_store *store;
static char said[4096];

static void
hear(void *arg, const char *line)
{
	size_t len = strlen(said);

	(void)arg;
	(void)snprintf(said + len, sizeof(said) - len, "%s\n", line);
}

static void
put(struct ls_write *m, int64_t t_us)
{
	ck_assert_int_eq(ls_store_commit(store, &m, 1, t_us), 0);
	ls_test_write_free(m);
}

/* Two days, the second still being written, all of it in the WAL. */
static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	(void)snprintf(copy, sizeof(copy), "%s/copy", ls_test_tmpdir());
	said[0] = '\0';
	ck_assert_int_eq(ls_store_open(dir, YESTERDAY_NOON, &store), 0);
	put(ls_test_worker(0, YESTERDAY_NOON), YESTERDAY_NOON);
	put(ls_test_report(0, 1, 0, 10, YESTERDAY_NOON), YESTERDAY_NOON);
	put(ls_test_report(0, 2, 10, 5, NOON), NOON);
	put(ls_test_finding("F-A", "open", NOON), NOON);
}

static void
teardown(void)
{
	ls_store_close(store);
}

static int
count_records(void *arg, const struct ls_store_ring *ring)
{
	uint64_t *high = arg;

	*high = ring->high;
	return 0;
}

static int
count_findings(void *arg, const char *id, const char *json, size_t len)
{
	(void)json;
	(void)len;
	ck_assert_str_eq(id, "F-A");
	++*(int *)arg;
	return 0;
}

static void
assert_copied(void)
{
	struct ls_query *q;
	uint64_t high = 0;
	int findings = 0;

	ck_assert_int_eq(ls_query_open(copy, &q), 0);
	ck_assert_int_eq(ls_query_rings(q, count_records, &high), 0);
	ck_assert_uint_eq(high, 15);
	ck_assert_int_eq(ls_query_findings(q, count_findings, &findings), 0);
	ck_assert_int_eq(findings, 1);
	ls_query_close(q);
}

LS_CASE(backup, setup, teardown);

LS_TEST(backup, a_directory_in_use_is_copied_whole)
{
	struct ls_store *other;

	ck_assert_int_eq(ls_backup(dir, copy, hear, NULL), 0);
	ck_assert_ptr_nonnull(strstr(said, "20261120.db: copied"));
	ck_assert_ptr_nonnull(strstr(said, "20261121.db: copied"));
	ck_assert_ptr_nonnull(strstr(said, "state.db: copied"));
	ck_assert_int_eq(ls_store_check(copy, hear, NULL), 0);
	assert_copied();
	/* Both go on by themselves. */
	put(ls_test_report(0, 3, 15, 5, NOON), NOON);
	ck_assert_int_eq(ls_store_open(copy, NOON, &other), 0);
	ls_store_close(other);
	assert_copied();
}

LS_TEST(backup, what_is_there_is_not_touched)
{
	char path[PATH_MAX];
	FILE *f;

	ck_assert_int_eq(mkdir(copy, 0700), 0);
	ck_assert_int_eq(snprintf(path, sizeof(path), "%s/mine", copy) > 0, 1);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(ls_backup(dir, copy, hear, NULL), -EEXIST);
	ck_assert_int_eq(remove(path), 0);
	ck_assert_int_eq(ls_backup(dir, copy, hear, NULL), 0);
	assert_copied();
}

LS_TEST(backup, a_damaged_day_is_told_and_the_rest_is_copied)
{
	char path[PATH_MAX];
	FILE *f;

	ck_assert_int_eq(ls_days_path(path, dir, 20261120), 0);
	f = fopen(path, "r+");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fputs("this was a database once", f) >= 0, 1);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(ls_backup(dir, copy, hear, NULL), -LS_ECORRUPT);
	ck_assert_ptr_null(strstr(said, "20261120.db: copied"));
	ck_assert_ptr_nonnull(strstr(said, "20261121.db: copied"));
	assert_copied();
}

LS_TEST(backup, nothing_to_copy_is_an_error)
{
	char none[PATH_MAX + 8];

	(void)snprintf(none, sizeof(none), "%s-none", dir);
	ck_assert_int_eq(ls_backup(none, copy, hear, NULL), -ENOENT);
	ck_assert_int_eq(ls_backup(dir, "/dev/null/copy", hear, NULL), -ENOTDIR);
}
