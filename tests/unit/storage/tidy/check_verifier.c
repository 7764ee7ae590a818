/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of storage/verifier: a damaged page sets its day aside, other damage does not. */
#include "config.h"

#include "storage/tidy/verifier.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/sql.h"
#include "storage/read/query.h"
#include "storage/write/store.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"

#define CLOSED 20261120
#define OPEN 20261121
#define CLOSED_NOON (ls_days_begin_us(CLOSED) + 12ll * 3600 * 1000000)
#define NOON (ls_days_begin_us(OPEN) + 12ll * 3600 * 1000000)
#define PAGE 4096

static char dir[PATH_MAX], path[PATH_MAX];
static struct ls_store *store;
static struct ls_verifier *verifier;
static int pushed, refuse;

static int
push(void *arg, struct ls_write *m)
{
	(void)arg;
	if (refuse != 0)
		return refuse;
	ck_assert_int_eq(m->kind, LS_WRITE_ASIDE);
	ck_assert_int_eq(ls_store_set_aside(store, m->u.day, NOON), 0);
	pushed = m->u.day;
	ls_write_free(m);
	return 0;
}

static void
put(struct ls_write *m, int64_t wall_us)
{
	ck_assert_int_eq(ls_store_commit(store, &m, 1, wall_us), 0);
	ls_test_write_free(m);
}

static int
see(void *arg, const struct ls_store_event *event)
{
	(void)event;
	++*(int *)arg;
	return 0;
}

/* How many events of a day are given, and what reading it returns. */
static int
events(int32_t day, int *ret_count)
{
	struct ls_query *q;
	int rc;

	*ret_count = 0;
	ck_assert_int_eq(ls_query_open(dir, &q), 0);
	rc = ls_query_events(q, day, 0, see, ret_count);
	ls_query_close(q);
	return rc;
}

static void
setup(void)
{
	uint64_t i;

	pushed = refuse = 0;
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(ls_store_open(dir, CLOSED_NOON, &store), 0);
	put(ls_test_worker(0, CLOSED_NOON), CLOSED_NOON);
	for (i = 0; i < 300; i++)
		put(ls_test_close(i, CLOSED_NOON), CLOSED_NOON);
	put(ls_test_report(0, 1, 0, 10, CLOSED_NOON), CLOSED_NOON);
	put(ls_test_report(0, 2, 10, 5, NOON), NOON);
	verifier = ls_verifier_new(dir, push, NULL);
	ck_assert_ptr_nonnull(verifier);
	ck_assert_int_eq(ls_days_path(path, dir, CLOSED), 0);
}

static void
teardown(void)
{
	ls_verifier_free(verifier);
	ls_store_close(store);
}

/* Flips the head of a page of step_close: the second leaf of it. */
static void
flip(void)
{
	sqlite3 *db = NULL;
	int64_t root = 0;
	uint8_t bytes[PAGE];
	long page;
	FILE *f;
	size_t i;

	ck_assert_int_eq(ls_db_open(path, LS_DB_READ, &db), 0);
	ck_assert_int_eq(
		ls_sql_int_of(db,
			"SELECT rootpage FROM sqlite_schema WHERE name = 'step_close'",
			NULL, &root),
		0);
	ls_db_close(db);
	f = fopen(path, "r+");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, (long)(root - 1) * PAGE, SEEK_SET), 0);
	ck_assert_uint_eq(fread(bytes, 1, PAGE, f), PAGE);
	ck_assert_uint_eq(bytes[0], 5); /* an interior page: children are its leaves */
	page = bytes[8] << 24 | bytes[9] << 16 | bytes[10] << 8 | bytes[11];
	ck_assert_int_eq(fseek(f, (page - 1) * PAGE, SEEK_SET), 0);
	ck_assert_uint_eq(fread(bytes, 1, 64, f), 64);
	for (i = 0; i < 64; i++)
		bytes[i] ^= 0x55;
	ck_assert_int_eq(fseek(f, (page - 1) * PAGE, SEEK_SET), 0);
	ck_assert_uint_eq(fwrite(bytes, 1, 64, f), 64);
	ck_assert_int_eq(fclose(f), 0);
}

LS_CASE(verifier, setup, teardown);

LS_TEST(verifier, a_day_with_a_bad_page_is_set_aside)
{
	struct ls_store_stats stats;
	int count;

	ck_assert_int_eq(events(CLOSED, &count), 0);
	flip();
	ck_assert_int_eq(events(CLOSED, &count), -LS_ECORRUPT);
	/* Nothing is checked until a read met damage. */
	ck_assert_int_eq(ls_verifier_step(verifier, 0), 0);
	ck_assert_int_eq(pushed, 0);
	ls_verifier_suspect(verifier);
	ck_assert_int_eq(ls_verifier_step(verifier, 0), 0);
	ck_assert_int_eq(pushed, CLOSED);
	ls_store_stats(store, &stats);
	ck_assert_uint_eq(stats.aside.count, 1);
	ck_assert_uint_eq(stats.set_aside, 1);
	ck_assert_str_eq(stats.aside.newest,
		"telemetry/20261120.db.damaged-1795262400");
	ck_assert_int_eq(stats.aside.newest_s, NOON / 1000000);
	ck_assert_int_eq(events(CLOSED, &count), -ENOENT);
	ck_assert_int_eq(events(OPEN, &count), 0);
	ck_assert_int_eq(count, 1);
}

LS_TEST(verifier, damage_of_a_row_sets_nothing_aside)
{
	sqlite3 *db = NULL;
	int count;

	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	ck_assert_int_eq(
		ls_db_exec(db, "UPDATE journal SET body = substr(body, 1, 30)"), 0);
	ls_db_close(db);
	ck_assert_int_eq(events(CLOSED, &count), -LS_ECORRUPT);
	ck_assert_int_eq(count, 300);
	ls_verifier_suspect(verifier);
	ck_assert_int_eq(ls_verifier_step(verifier, 0), 0);
	ck_assert_int_eq(pushed, 0);
	/* The next check waits: each read of that row is a suspicion. */
	flip();
	ls_verifier_suspect(verifier);
	ck_assert_int_eq(ls_verifier_step(verifier, LS_VERIFY_AGAIN_NS - 1), 0);
	ck_assert_int_eq(pushed, 0);
	refuse = -LS_ELIMIT;
	ck_assert_int_eq(ls_verifier_step(verifier, LS_VERIFY_AGAIN_NS), -LS_ELIMIT);
}

LS_TEST(verifier, the_open_day_goes_on_in_a_new_file)
{
	int count;

	ck_assert_int_eq(ls_store_set_aside(store, OPEN, NOON), 0);
	put(ls_test_report(0, 3, 15, 5, NOON), NOON);
	ck_assert_int_eq(events(OPEN, &count), 0);
	ck_assert_int_eq(count, 1);
}

LS_TEST(verifier, a_stop_ends_the_check)
{
	flip();
	ls_verifier_suspect(verifier);
	ls_verifier_stop(verifier);
	ck_assert_int_eq(ls_verifier_step(verifier, 0), 0);
	ck_assert_int_eq(pushed, 0);
}
