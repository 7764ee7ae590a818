/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/collect/series.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/support/harness.h"

static struct ls_series_table *table;
static size_t told, told_group;

static void
reader(void *arg, size_t group)
{
	(void)arg;
	told++;
	told_group = group;
}

static void
setup(void)
{
	told = 0;
	table = ls_series_new();
	ck_assert_ptr_nonnull(table);
}

static void
teardown(void)
{
	ls_series_free(table);
	ls_series_free(NULL);
}

static size_t
group(const char *name)
{
	int g = ls_series_group(table, name);

	ck_assert_int_ge(g, 0);
	return (size_t)g;
}

static int
add(size_t g, const char *name, const char *labels)
{
	int handle = ls_series_add(table, g, name, labels);

	ck_assert_int_ge(handle, 0);
	return handle;
}

static struct ls_series_group
look(size_t g)
{
	struct ls_series_group view;

	ck_assert(ls_series_look(table, g, &view));
	return view;
}

LS_CASE(series, setup, teardown);

LS_TEST(series, a_group_has_one_index_by_its_name)
{
	size_t a = group("host.fast"), b = group("host.slow");

	ck_assert_uint_ne(a, b);
	ck_assert_uint_eq(group("host.fast"), a);
	ck_assert_str_eq(look(b).name, "host.slow");
	ck_assert_uint_eq(look(a).count, 0);
	ck_assert_uint_eq(look(a).t_mono_ns, 0);
}

LS_TEST(series, series_of_one_name_and_labels_have_one_handle)
{
	size_t a = group("a"), b = group("b");
	int x = add(a, "x", "chip=\"0\""), y = add(a, "x", "chip=\"1\"");

	ck_assert_int_ne(x, y);
	ck_assert_int_eq(add(a, "x", "chip=\"0\""), x);
	ck_assert_int_ne(add(b, "x", "chip=\"0\""), x);
	ck_assert_int_ge(ls_series_add_metric(table, b, LS_METRIC_HOST_CPU_BUSY, ""),
		0);
	ck_assert_uint_eq(look(a).count, 2);
	ck_assert_str_eq(look(a).text[1], "x{chip=\"1\"}");
	ck_assert_str_eq(look(b).text[1], "host.cpu.busy_seconds_total");
}

LS_TEST(series, a_reading_tells_its_reader_what_is_set)
{
	size_t g = group("a");
	int x = add(g, "x", ""), y = add(g, "y", ""), z = add(g, "z", "");

	ls_series_set_reader(table, reader, NULL);
	ls_series_set(table, x, -0.0);
	ls_series_set(table, y, (double)NAN);
	ls_series_set(table, z, 5);
	ls_series_unset(table, z);
	ck_assert_uint_eq(told, 0);
	ls_series_read(table, g, 77);
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(told_group, g);
	ck_assert_uint_eq(look(g).t_mono_ns, 77);
	ck_assert_uint_eq(look(g).readings, 1);
	ck_assert(look(g).present[0] && look(g).present[1] && !look(g).present[2]);
	ck_assert(signbit(look(g).value[0]) && isnan(look(g).value[1]));
	ck_assert_double_eq(look(g).value[2], 0);
}

LS_TEST(series, memory_of_0_bytes_in_all_is_not_measured)
{
	size_t g = group("a");
	int total = ls_series_add_metric(table, g, LS_METRIC_CHIP_HBM_TOTAL, "");
	int used = ls_series_add_metric(table, g, LS_METRIC_CHIP_HBM_USED, "");

	ls_series_set(table, total, 0);
	ls_series_set(table, used, 0);
	ck_assert(!look(g).present[0] && look(g).present[1]);
	ls_series_set(table, total, 16e9);
	ck_assert(look(g).present[0]);
}

LS_TEST(series, what_is_no_group_or_handle_is_ignored)
{
	size_t g = group("a");
	int x = add(g, "x", "");
	struct ls_series_group view;

	ls_series_set_reader(table, reader, NULL);
	ls_series_set(table, -LS_ELIMIT, 1);
	ls_series_unset(table, -1);
	ls_series_remove(table, -1);
	ls_series_set(table, (int)LS_SERIES_MAX, 1);
	ls_series_read(table, (size_t)-1, 5);
	ls_series_group_remove(table, (size_t)-1);
	ck_assert_int_eq(ls_series_add(table, (size_t)-1, "x", ""), -LS_ERANGE);
	ck_assert_int_eq(ls_series_add(table, g + 1, "x", ""), -LS_ERANGE);
	ck_assert(!ls_series_look(table, g + 1, &view));
	ck_assert(!ls_series_look(table, LS_GROUPS_MAX, &view));
	ls_series_remove(table, x);
	ls_series_set(table, x, 1); /* its owner did not hear of it */
	ls_series_remove(table, x);
	ck_assert_uint_eq(look(g).count, 0);
	ck_assert_uint_eq(told, 0);
}

LS_TEST(series, the_generation_changes_with_the_series_only)
{
	size_t g = group("a"), b = group("b");
	int x;
	uint32_t before = look(g).generation;

	x = add(g, "x", "");
	ck_assert_uint_ne(look(g).generation, before);
	before = look(g).generation;
	ck_assert_int_eq(add(g, "x", ""), x);
	ls_series_set(table, x, 1);
	ls_series_read(table, g, 1);
	(void)add(b, "x", "");
	ck_assert_uint_eq(look(g).generation, before);
	ls_series_remove(table, x);
	ck_assert_uint_ne(look(g).generation, before);
	before = look(g).generation;
	ls_series_group_remove(table, g);
	/* the index is given out again, the generation never */
	ck_assert_uint_eq(group("c"), g);
	ck_assert_uint_ne(look(g).generation, before);
	ck_assert_uint_eq(look(g).readings, 0);
}

LS_TEST(series, the_last_series_takes_the_place_of_a_removed_one)
{
	size_t g = group("a");
	int x = add(g, "x", ""), y = add(g, "y", ""), z = add(g, "z", "");

	ls_series_set(table, y, 2);
	ls_series_set(table, z, 3);
	ls_series_remove(table, x);
	ck_assert_uint_eq(look(g).count, 2);
	ck_assert_str_eq(look(g).text[0], "z");
	ck_assert_double_eq(look(g).value[0], 3);
	ls_series_set(table, z, 4);
	ck_assert_double_eq(look(g).value[0], 4);
	ck_assert_double_eq(look(g).value[1], 2);
	x = add(g, "x", "");
	ck_assert(!look(g).present[2]); /* nothing of the old one is left */
	ls_series_remove(table, x);
	ls_series_remove(table, y);
	ls_series_remove(table, z);
	ck_assert_uint_eq(look(g).count, 0);
}

LS_TEST(series, a_removed_group_gives_its_series_back)
{
	char name[32];
	unsigned round, i;
	size_t g;

	for (round = 0; round < 4; round++) {
		g = group("a");
		for (i = 0; i < LS_SERIES_PER_GROUP_MAX; i++) {
			(void)snprintf(name, sizeof(name), "x%u", i);
			(void)add(g, name, "");
		}
		ls_series_group_remove(table, g);
	}
	ck_assert_uint_eq(ls_series_refused(table), 0);
}

LS_TEST(series, full_tables_refuse_and_count)
{
	char name[32];
	unsigned i;
	size_t g = 0;

	for (i = 0; i < LS_SERIES_MAX; i++) {
		if (i % LS_SERIES_PER_GROUP_MAX == 0) {
			(void)snprintf(name, sizeof(name), "g%u", i);
			g = group(name);
		}
		(void)snprintf(name, sizeof(name), "x%u", i);
		(void)add(g, name, "");
	}
	/* of a group */
	ck_assert_int_eq(ls_series_add(table, g, "one-more", ""), -LS_ELIMIT);
	/* of all */
	ck_assert_int_eq(ls_series_add(table, group("h"), "one-more", ""), -LS_ELIMIT);
	ck_assert_uint_eq(ls_series_refused(table), 2);
	for (i = 3; i < LS_GROUPS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "more%u", i);
		(void)group(name);
	}
	ck_assert_int_eq(ls_series_group(table, "too-many"), -LS_ELIMIT);
	ck_assert_uint_eq(ls_series_refused(table), 3);
}

LS_TEST(series, senseless_names_and_labels_are_refused)
{
	static const char *const names[] = { "", "a{b", "a}", "a\"", "a\nb", "\xff" };
	static const char *const labels[] = { "a", "a=", "a=\"", "a=\"x", "a=x",
		"=\"x\"", "a=\"x\",", "a=\"x\"b=\"y\"", "b=\"x\",a=\"y\"",
		"a=\"x\",a=\"y\"", "ab=\"x\",a=\"y\"", "a=\"{\"", "a=\"}\"", "a=\"\n\"",
		"a b=\"x\"", "a=\"\xff\"" };
	static const char *const fine[] = { "a=\"\"", "a=\"x\",ab=\"y\"",
		"A=\"x\",a=\"y=,\"", "a.b=\"\xc3\xa4\"" };
	char longest[LS_SERIES_TEXT_MAX_BYTES + 1] = "";
	size_t i, g = group("a");

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_int_eq(ls_series_add(table, g, names[i], ""), -LS_ERANGE);
	for (i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		ck_assert_msg(ls_series_add(table, g, "x", labels[i]) == -LS_ERANGE,
			"%s", labels[i]);
	for (i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		ck_assert_msg(ls_series_add(table, g, "x", fine[i]) >= 0, "%s",
			fine[i]);
	memset(longest, 'x', sizeof(longest) - 1);
	ck_assert_int_eq(ls_series_add(table, g, longest, ""), -LS_ERANGE);
	longest[LS_SERIES_NAME_MAX_BYTES] = '\0';
	ck_assert_int_eq(ls_series_add(table, g, longest, ""), -LS_ERANGE);
	longest[LS_SERIES_NAME_MAX_BYTES - 1] = '\0';
	ck_assert_int_ge(ls_series_add(table, g, longest, ""), 0);
	ck_assert_int_eq(ls_series_group(table, ""), -LS_ERANGE);
	ck_assert_int_eq(ls_series_group(table, longest), -LS_ERANGE);
	ck_assert_uint_eq(ls_series_refused(table), 0);
}

LS_TEST(series, made_labels_are_always_whole)
{
	char labels[LS_SERIES_LABELS_MAX_BYTES], value[2 * LS_SERIES_LABELS_MAX_BYTES];
	size_t size, g = group("a");

	labels[0] = '\0';
	ls_series_label(labels, sizeof(labels), "job", "a\"b{c}\x1b");
	ls_series_label(labels, sizeof(labels), "rank", "3");
	ck_assert_str_eq(labels, "job=\"a_b_c_\\x1b\",rank=\"3\"");
	(void)add(g, "x", labels);
	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	for (size = 1; size <= sizeof(labels); size++) {
		memset(labels, '#', sizeof(labels));
		labels[0] = '\0';
		ls_series_label(labels, size, "job", value);
		ls_series_label(labels, size, "rank", "3");
		ck_assert_uint_lt(strlen(labels), size);
		ck_assert_msg(ls_series_add(table, g, "x", labels) >= 0, "%s", labels);
	}
}
