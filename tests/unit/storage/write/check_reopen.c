/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of storage/store, /kept and /settle: files that lose their names while they are
 * open, days that a wrong clock made, and the maximum by default. */
#include "config.h"

#include "storage/write/store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "storage/db/retain.h"
#include "storage/db/settle.h"
#include "storage/read/query.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"
#include "tests/support/tree.h"

#define TODAY 20261121
#define TOMORROW 20261122
#define FUTURE 20271230
#define NOON (ls_days_begin_us(TODAY) + 12ll * 3600 * 1000000)
#define DAY_US 86400000000ll

static char dir[PATH_MAX];
static struct ls_store *store;

static int
put_at(struct ls_write *m, int64_t wall_us)
{
	int rc = ls_store_commit(store, &m, 1, wall_us);

	ls_test_write_free(m);
	return rc;
}

static void
remove_file(const char *name)
{
	char path[2 * PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	ck_assert_int_eq(unlink(path), 0);
}

static void
wal_of_state(void)
{
	remove_file("state.db-wal");
}

static void
wal_of_day(void)
{
	remove_file("telemetry/20261121.db-wal");
}

static void
shm_of_day(void)
{
	remove_file("telemetry/20261121.db-shm");
}

static void
both_of_state(void)
{
	wal_of_state();
	remove_file("state.db");
}

static void
day(void)
{
	remove_file("telemetry/20261121.db");
}

static void
everything(void)
{
	day();
	wal_of_day();
	shm_of_day();
	both_of_state();
	remove_file("state.db-shm");
	remove_file("lock");
}

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(ls_store_open(dir, NOON, &store), 0);
	ck_assert_int_eq(put_at(ls_test_worker(0, NOON), NOON), 0);
	ck_assert_int_eq(put_at(ls_test_report(0, 1, 0, 10, NOON), NOON), 0);
}

static int
rename_day(const char *from, const char *to)
{
	char a[2 * PATH_MAX], b[2 * PATH_MAX];

	(void)snprintf(a, sizeof(a), "%s/telemetry/%s", dir, from);
	(void)snprintf(b, sizeof(b), "%s/telemetry/%s", dir, to);
	return rename(a, b);
}

LS_CASE(reopen, setup);

static const struct {
	void (*remove)(void);
	const char *name; /* of the note */
} gone[] = {
	{ wal_of_state, "state.db-wal" },
	{ wal_of_day, "telemetry/20261121.db-wal" },
	{ shm_of_day, "telemetry/20261121.db-shm" },
	{ both_of_state, "state.db" },
	{ day, "telemetry/20261121.db" },
	{ everything, "state.db" },
};

static void
open_again(int64_t wall_us)
{
	ls_store_close(store);
	ck_assert_int_eq(ls_store_open(dir, wall_us, &store), 0);
}

LS_TEST_EACH(reopen, what_was_stored_outlives_its_names, gone)
{
	struct ls_store_stats stats;

	ck_assert_int_eq(ls_store_commit(store, NULL, 0, NOON), 0);
	gone[_i].remove();
	ck_assert_int_eq(ls_store_commit(store, NULL, 0, NOON), -LS_EREOPEN);
	ck_assert_int_eq(put_at(ls_test_report(0, 2, 10, 5, NOON), NOON), -LS_EREOPEN);
	open_again(NOON);
	ls_store_stats(store, &stats);
	ck_assert_int_eq(stats.note.event, LS_STORE_REMOVED);
	ck_assert_str_eq(stats.note.name, gone[_i].name);
	ck_assert_int_eq(stats.note.t_us, NOON);
	ck_assert_uint_eq(stats.set_aside, 0);
	ck_assert_int_eq(put_at(ls_test_report(0, 2, 10, 5, NOON), NOON), 0);
	ls_store_close(store);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM worker"), 1);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT sum(n) FROM step_block"), 15);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT max(seq) FROM ledger"), 2);
}

/* The files of state.db are checked each second, not after each commit. */
LS_TEST(reopen, a_lost_state_is_found_within_a_second)
{
	both_of_state();
	ck_assert_int_eq(put_at(ls_test_report(0, 2, 10, 5, NOON), NOON), 0);
	ck_assert_int_eq(put_at(ls_test_report(0, 3, 15, 5, NOON), NOON + 1000000),
		-LS_EREOPEN);
	open_again(NOON);
	ls_store_close(store);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM worker"), 1);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT sum(n) FROM step_block"), 20);
}

/* A file of another making has the name now: it is left, ours is beside it. */
LS_TEST(reopen, a_file_that_took_the_name_stays)
{
	struct ls_store_stats stats;
	char beside[64];

	day();
	tree_write(dir, "telemetry/20261121.db", "");
	ck_assert_int_eq(ls_store_commit(store, NULL, 0, NOON), -LS_EREOPEN);
	ls_store_stats(store, &stats);
	ck_assert_int_eq(stats.note.event, LS_STORE_REPLACED);
	ls_store_close(store);
	(void)snprintf(beside, sizeof(beside), "20261121.db.salvaged-%lld",
		(long long)(NOON / 1000000));
	ck_assert_int_eq(rename_day(beside, "20261121.db"), 0);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT sum(n) FROM step_block"), 10);
}

/* What stands in the way of the copy is gone at the second attempt. */
LS_TEST(reopen, an_attempt_that_failed_spoils_nothing)
{
	char way[2 * PATH_MAX];

	both_of_state();
	day();
	(void)snprintf(way, sizeof(way), "%s/telemetry/20261121.db.rescue", dir);
	ck_assert_int_eq(mkdir(way, 0700), 0);
	ck_assert_int_eq(put_at(ls_test_report(0, 2, 10, 5, NOON), NOON), -EISDIR);
	ck_assert_int_eq(rmdir(way), 0);
	ck_assert_int_eq(ls_store_commit(store, NULL, 0, NOON), -LS_EREOPEN);
	open_again(NOON);
	ls_store_close(store);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM worker"), 1);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT sum(n) FROM step_block"), 15);
}

/* The clock is a year ahead for one commit. */
LS_TEST(reopen, a_day_of_the_future_becomes_the_next)
{
	struct ls_store_stats stats;
	int64_t ahead = ls_days_begin_us(FUTURE);

	ck_assert_int_eq(put_at(ls_test_report(0, 2, 10, 5, NOON), ahead), 0);
	ck_assert_int_eq(put_at(ls_test_report(0, 3, 15, 5, NOON), NOON), -LS_EREOPEN);
	open_again(NOON);
	ls_store_stats(store, &stats);
	ck_assert_int_eq(stats.note.event, LS_STORE_FUTURE);
	ck_assert_str_eq(stats.note.name, "telemetry/20271230.db");
	ck_assert_int_eq(put_at(ls_test_report(0, 4, 20, 5, NOON), NOON + DAY_US), 0);
	ls_store_close(store);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT sum(n) FROM step_block"), 10);
	ck_assert_int_eq(ls_test_sql(dir, TOMORROW, "SELECT sum(n) FROM step_block"),
		15);
	ck_assert_int_eq(ls_test_sql(dir, TOMORROW, "SELECT max(seq) FROM ledger"), 4);
	ck_assert_uint_eq(ls_days_bytes(dir, FUTURE), 0);
}

/* A machine without a clock starts in 1970: nothing is renamed. */
LS_TEST(reopen, a_clock_that_fell_back_renames_nothing)
{
	ck_assert_int_eq(put_at(ls_test_report(0, 2, 10, 5, NOON), NOON + DAY_US), 0);
	ck_assert_int_eq(put_at(ls_test_report(0, 3, 15, 5, NOON), 0), 0);
	open_again(0);
	ck_assert_int_eq(put_at(ls_test_report(0, 4, 20, 5, NOON), 0), 0);
	/* Nor one that is a minute slow at midnight. */
	ck_assert_uint_eq(
		ls_settle_future(dir, ls_days_begin_us(TOMORROW) - 60000000, false), 0);
	ls_store_close(store);
	ck_assert_int_eq(ls_test_sql(dir, TOMORROW, "SELECT max(seq) FROM ledger"), 4);
}

LS_TEST(reopen, the_maximum_by_default_leaves_room_for_others)
{
	ck_assert_uint_eq(ls_retain_auto(0, 1000, 1000), 800);
	ck_assert_uint_eq(ls_retain_auto(100, 1000, 900), 800);
	ck_assert_uint_eq(ls_retain_auto(100, 1000, 200), 270); /* others have 700 */
	ck_assert_uint_eq(ls_retain_auto(0, 0, 0), 0);
}
