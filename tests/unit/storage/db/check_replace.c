/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/replace.h"

#include <stdio.h>
#include <unistd.h>
#include "storage/db/days.h"
#include "tests/support/harness.h"
#include "tests/support/tree.h"

static char dir[PATH_MAX];

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(ls_days_mkdir(dir), 0);
}

static bool
there(const char *name)
{
	char full[PATH_MAX + 64];

	(void)snprintf(full, sizeof(full), "%s/%s", dir, name);
	return access(full, F_OK) == 0;
}

LS_CASE(replace, setup, NULL);

LS_TEST(replace, the_rest_of_a_killed_repacking_goes)
{
	tree_write(dir, "telemetry/20261121.db", "a day");
	tree_write(dir, "telemetry/20261121.db.repack", "half of it");
	tree_write(dir, "telemetry/20261121.db.repack-wal", "w");
	tree_write(dir, "telemetry/20261121.db.repack-shm", "s");
	tree_write(dir, "telemetry/20261121.db-wal", "frames");
	ls_replace_clear(dir);
	ck_assert(!there("telemetry/20261121.db.repack"));
	ck_assert(!there("telemetry/20261121.db.repack-wal"));
	ck_assert(!there("telemetry/20261121.db.repack-shm"));
	ck_assert(there("telemetry/20261121.db"));
	ck_assert(there("telemetry/20261121.db-wal"));
}

LS_TEST(replace, what_is_no_rest_stays)
{
	tree_write(dir, "telemetry/20261121.db.repack", "all that there is");
	tree_write(dir, "telemetry/20261122.db", "a day");
	tree_write(dir, "telemetry/20261122.db.repac", "no rest");
	tree_write(dir, "telemetry/2026112.db.repack", "no rest");
	tree_write(dir, "telemetry/20261122.db.salvaged", "a person's");
	ls_replace_clear(dir);
	ck_assert(there("telemetry/20261121.db.repack")); /* without its day */
	ck_assert(there("telemetry/20261122.db.repac"));
	ck_assert(there("telemetry/2026112.db.repack"));
	ck_assert(there("telemetry/20261122.db.salvaged"));
	ls_replace_clear("/nowhere"); /* no directory: nothing to do */
}

LS_TEST(replace, only_a_closed_day_is_replaced)
{
	char path[PATH_MAX];

	tree_write(dir, "telemetry/20261121.db", "old");
	tree_write(dir, "telemetry/20261122.db", "newest");
	ck_assert_int_eq(ls_replace_path(path, dir, 20261121), 0);
	ck_assert_int_ne(ls_replace_check(dir, 20261122), 0);
	tree_write(dir, "telemetry/20261121.db-wal", "frames");
	ck_assert_int_ne(ls_replace_check(dir, 20261121), 0);
	tree_write(dir, "telemetry/20261121.db-wal", "");
	ck_assert_int_eq(ls_replace_check(dir, 20261121), 0);
}
