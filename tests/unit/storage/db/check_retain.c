/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/retain.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/support/harness.h"

#define DAY_US (24ll * 3600 * 1000000)

static char dir[PATH_MAX];

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(ls_days_mkdir(dir), 0);
}

static void
put(const char *name, size_t bytes)
{
	char full[PATH_MAX + 64];
	int fd;

	(void)snprintf(full, sizeof(full), "%s/%s", dir, name);
	fd = open(full, O_CREAT | O_WRONLY, 0640);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
	ck_assert_int_eq(close(fd), 0);
}

static bool
there(const char *name)
{
	char full[PATH_MAX + 64];

	(void)snprintf(full, sizeof(full), "%s/%s", dir, name);
	return access(full, F_OK) == 0;
}

LS_CASE(retain, setup, NULL);

LS_TEST(retain, days_are_of_utc)
{
	ck_assert_int_eq(ls_days_of(0), 19700101);
	ck_assert_int_eq(ls_days_of(-5), 19700101);
	ck_assert_int_eq(ls_days_of(DAY_US - 1), 19700101);
	ck_assert_int_eq(ls_days_of(DAY_US), 19700102);
	ck_assert_int_eq(ls_days_of(INT64_MAX), 99991231);
	ck_assert_int_eq(ls_days_begin_us(20261121), 1795219200ll * 1000000);
	ck_assert_int_eq(ls_days_of(ls_days_begin_us(20240229)), 20240229);
}

LS_TEST(retain, only_day_files_are_listed)
{
	struct ls_days *days = malloc(sizeof(*days));

	put("telemetry/20261121.db", 1);
	put("telemetry/20251231.db", 1);
	put("telemetry/20261121.db-wal", 1);
	put("telemetry/20261121.db.damaged-5", 1);
	put("telemetry/20261341.db", 1);
	put("telemetry/2026112a.db", 1);
	put("telemetry/notes", 1);
	ck_assert_int_eq(ls_days_list(dir, days), 0);
	ck_assert_uint_eq(days->count, 2);
	ck_assert_int_eq(days->day[0], 20251231);
	ck_assert_int_eq(days->day[1], 20261121);
	free(days);
}

LS_TEST(retain, a_file_counts_with_its_wal_and_goes_with_it)
{
	put("telemetry/20261121.db", 1000);
	put("telemetry/20261121.db-wal", 200);
	put("telemetry/20261121.db-shm", 50);
	ck_assert_uint_eq(ls_days_bytes(dir, 20261121), 1200);
	ck_assert_uint_eq(ls_days_bytes(dir, 20261122), 0);
	ck_assert_int_eq(ls_days_remove(dir, 20261121), 0);
	ck_assert(!there("telemetry/20261121.db"));
	ck_assert(!there("telemetry/20261121.db-wal"));
	ck_assert(!there("telemetry/20261121.db-shm"));
	ck_assert_int_eq(ls_days_remove(dir, 20261121), 0);
}

LS_TEST(retain, damaged_files_are_set_aside_with_their_wal)
{
	put("telemetry/20261121.db", 1000);
	put("telemetry/20261121.db-wal", 200);
	ck_assert_int_eq(ls_days_set_aside(dir, 20261121, 5000000), 0);
	ck_assert(!there("telemetry/20261121.db"));
	ck_assert(there("telemetry/20261121.db.damaged-5"));
	ck_assert(there("telemetry/20261121.db.damaged-5-wal"));
}

static size_t
count(uint64_t max_bytes, int32_t keep_from)
{
	static const struct ls_days days = { 4,
		{ 20260101, 20260102, 20260103, 20260104 } };
	static const uint64_t bytes[] = { 100, 200, 300, 400 };
	const struct ls_store_retain rule = { .keep_from = keep_from,
		.max_bytes = max_bytes };

	return ls_retain_count(&days, bytes, 50, &rule);
}

LS_TEST(retain, old_days_go)
{
	ck_assert_uint_eq(count(0, 0), 0);
	ck_assert_uint_eq(count(0, 20260101), 0);
	ck_assert_uint_eq(count(0, 20260103), 2);
	ck_assert_uint_eq(count(0, 20270101), 3); /* the newest stays */
}

LS_TEST(retain, the_oldest_go_until_the_rest_fits)
{
	ck_assert_uint_eq(count(1050, 0), 0);
	ck_assert_uint_eq(count(1049, 0), 1);
	ck_assert_uint_eq(count(751, 0), 2);
	ck_assert_uint_eq(count(1, 0), 3);
}

LS_TEST(retain, a_rule_is_made_of_age_and_size)
{
	struct ls_store_retain r;

	r = ls_retain_rule(2 * 86400ull * 1000000000, 7,
		ls_days_begin_us(20260110) + 5);
	ck_assert_int_eq(r.keep_from, 20260108);
	ck_assert_uint_eq(r.max_bytes, 7);
	ck_assert_int_eq(r.history_us, ls_days_begin_us(20260108) + 5);
	r = ls_retain_rule(0, 0, ls_days_begin_us(20260110));
	ck_assert_int_eq(r.keep_from, 0);
	ck_assert_int_eq(r.history_us, 0);
}
