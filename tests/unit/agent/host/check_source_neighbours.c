/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/source_neighbours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/harness.h"
#include "tests/support/tree.h"

static char root[256], proc[300], sys[300];
static struct ls_series_table *table;
static struct ls_source source;
static uint64_t now;

static void
setup(void)
{
	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	(void)snprintf(proc, sizeof(proc), "%s/proc", root);
	(void)snprintf(sys, sizeof(sys), "%s/sys", root);
	tree_write(proc, "x", "");
	tree_write(sys, "x", "");
	table = ls_series_new();
	ck_assert_ptr_nonnull(table);
	ck_assert_int_eq(ls_source_neighbours_new(proc, sys, table, &source), 0);
	now = 1;
}

static void
teardown(void)
{
	source.free(source.self);
	ls_series_free(table);
}

static void
use_v2(const char *group, double seconds)
{
	char path[300], text[64];

	(void)snprintf(path, sizeof(path), "fs/cgroup/%s%scpu.stat", group,
		group[0] ? "/" : "");
	(void)snprintf(text, sizeof(text), "usage_usec %.0f\nuser_usec 1\n",
		seconds * 1e6);
	tree_write(sys, path, text);
}

static void
read_once(void)
{
	struct ls_sample sample = { 0 };

	source.read(source.self, LS_CADENCE_FAST | LS_CADENCE_SLOW, now++, &sample);
}

/* The value of a series whose text contains `part`; -1 if there is none, -2 if it was
 * not measured. */
static double
series(const char *part)
{
	struct ls_series_group g;
	size_t i;

	ck_assert(ls_series_look(table, 0, &g));
	for (i = 0; i < g.count; i++) {
		if (strstr(g.text[i], part) != NULL)
			return g.present[i] ? g.value[i] : -2;
	}
	return -1;
}

static size_t
series_count(void)
{
	struct ls_series_group g;

	ck_assert(ls_series_look(table, 0, &g));
	return g.count;
}

LS_CASE(source_neighbours, setup, teardown);

LS_TEST(source_neighbours, neighbours_need_cpu_accounting)
{
	struct ls_doctor d = { 0 };

	ck_assert_int_eq(source.probe(source.self), -LS_EABSENT);
	read_once();
	ck_assert_uint_eq(series_count(), 0);
	source.tell(source.self, &d);
	ck_assert_uint_eq(d.count, 1);
	ck_assert_int_eq((int)d.check[0].status, LS_DOCTOR_WARN);
}

LS_TEST(source_neighbours, neighbours_that_use_the_cpu_are_named)
{
	use_v2("", 100);
	use_v2("system.slice/backup.service", 5);
	use_v2("system.slice/quiet.service", 7);
	tree_write(sys, "fs/cgroup/system.slice/backup.service/cgroup.procs",
		"42\n43\n");
	tree_write(proc, "42/comm", "tar\n");
	ck_assert_int_eq(source.probe(source.self), 0);
	read_once();
	ck_assert_uint_eq(series_count(), 0); /* nothing is known to have grown */
	use_v2("system.slice/backup.service", 8);
	read_once();
	ck_assert_uint_eq(series_count(), 1);
	ck_assert_double_eq(
		series("cgroup=\"/system.slice/backup.service\",comm=\"tar\""), 8);
}

LS_TEST(source_neighbours, neighbours_of_version_1_are_read_from_cpuacct)
{
	tree_write(sys, "fs/cgroup/cpuacct/cpuacct.usage", "9000000000\n");
	tree_write(sys, "fs/cgroup/cpuacct/docker/abc/cpuacct.usage", "1000000000\n");
	ck_assert_int_eq(source.probe(source.self), 0);
	read_once();
	tree_write(sys, "fs/cgroup/cpuacct/docker/abc/cpuacct.usage", "3000000000\n");
	read_once();
	ck_assert_double_eq(series("/docker/abc"), 3);
}

LS_TEST(source_neighbours, neighbours_keep_their_series_for_a_while)
{
	unsigned i;

	use_v2("", 100);
	use_v2("a", 1);
	ck_assert_int_eq(source.probe(source.self), 0);
	read_once();
	use_v2("a", 2);
	read_once();
	for (i = 0; i < LS_NEIGHBOUR_QUIET; i++)
		read_once();
	ck_assert_double_eq(series("/a"), 2);
	read_once();
	ck_assert_double_eq(series("/a"), -1);
}

LS_TEST(source_neighbours, neighbours_are_the_top_ones_only)
{
	char name[32];
	unsigned i, round;

	use_v2("", 100);
	for (round = 1; round <= 2; round++) {
		for (i = 1; i <= LS_NEIGHBOURS_MAX + 4; i++) {
			(void)snprintf(name, sizeof(name), "g%02u", i);
			use_v2(name, i * round);
		}
		if (round == 1)
			ck_assert_int_eq(source.probe(source.self), 0);
		read_once();
	}
	ck_assert_uint_eq(series_count(), LS_NEIGHBOURS_MAX / 2);
	ck_assert_double_gt(series("/g20"), 0);
	ck_assert_double_eq(series("/g01"), -1);
}

LS_TEST(source_neighbours, neighbour_that_ends_loses_its_series)
{
	char path[340];
	unsigned i;

	use_v2("", 100);
	use_v2("a", 1);
	use_v2("b", 1);
	ck_assert_int_eq(source.probe(source.self), 0);
	read_once();
	use_v2("a", 2);
	use_v2("b", 2);
	read_once();
	ck_assert_uint_eq(series_count(), 2);
	tree_remove(sys, "fs/cgroup/a/cpu.stat");
	read_once();
	ck_assert_double_eq(series("/a"), -2); /* not measured, not zero */
	ck_assert_double_eq(series("/b"), 2);
	(void)snprintf(path, sizeof(path), "%s/fs/cgroup/a", sys);
	ck_assert_int_eq(remove(path), 0);
	for (i = 0; i < LS_CGROUPS_LIST_TURNS; i++)
		read_once();
	ck_assert_double_eq(series("/a"), -1);
	ck_assert_uint_eq(series_count(), 1);
}

LS_TEST(source_neighbours, neighbours_have_a_maximum_that_is_told)
{
	struct ls_doctor d = { 0 };
	char name[32];
	unsigned i;

	use_v2("", 100);
	for (i = 0; i < LS_CGROUPS_MAX + 3; i++) {
		(void)snprintf(name, sizeof(name), "g%u", i);
		use_v2(name, 1);
	}
	ck_assert_int_eq(source.probe(source.self), 0);
	read_once();
	source.tell(source.self, &d);
	ck_assert_int_eq((int)d.check[0].status, LS_DOCTOR_WARN);
	ck_assert_ptr_nonnull(strstr(d.check[0].why, " 3 not watched"));
}

LS_TEST(source_neighbours, neighbours_of_this_machine_are_read)
{
	struct ls_source real;
	struct ls_sample sample = { 0 };
	int rc;

	ck_assert_int_eq(ls_source_neighbours_new("/proc", "/sys", table, &real), 0);
	rc = real.probe(real.self);
	ck_assert(rc == 0 || rc == -LS_EABSENT);
	real.read(real.self, LS_CADENCE_SLOW, 1, &sample);
	real.free(real.self);
}
