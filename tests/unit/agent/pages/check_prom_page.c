/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/pages/prom_page.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/harness.h"

#define S 1000000000ull

static struct ls_series_table *table;
static struct ls_prom_map *map;
static struct ls_prom_page *page;
static uint64_t now;

static void
setup(void)
{
	char why[128];

	table = ls_series_new();
	ck_assert_int_eq(ls_prom_map_new("", &map, why, sizeof(why)), 0);
	page = ls_prom_page_new(table, map, "device-plugin");
	now = 1000 * S;
}

static void
teardown(void)
{
	ls_prom_page_free(page);
	ls_prom_map_free(map);
	ls_series_free(table);
}

/* With a map that takes everything. */
static void
take_everything(void)
{
	char path[PATH_MAX], why[128];
	FILE *f;

	ls_prom_page_free(page);
	ls_prom_map_free(map);
	(void)snprintf(path, sizeof(path), "%s/map", ls_test_tmpdir());
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs("*\n", f), 0);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(ls_prom_map_new(path, &map, why, sizeof(why)), 0);
	page = ls_prom_page_new(table, map, "device-plugin");
}

/* The group, NULL if there is none. */
static const struct ls_series_group *
group(void)
{
	static struct ls_series_group g;
	size_t i;

	for (i = 0; i < LS_GROUPS_MAX; i++) {
		if (ls_series_look(table, i, &g) &&
			strcmp(g.name, "prom.device-plugin") == 0)
			return &g;
	}
	return NULL;
}

/* A value by its text: NaN not measured, INFINITY no such series. */
static double
value(const char *text)
{
	const struct ls_series_group *g = group();
	size_t i;

	ck_assert_ptr_nonnull(g);
	for (i = 0; i < g->count; i++) {
		if (strcmp(g->text[i], text) == 0)
			return g->present[i] ? g->value[i] : NAN;
	}
	return INFINITY;
}

#define STALE "host.source.stale{source=\"device-plugin\"}"

static int
read_page(const char *text, bool stepped)
{
	now += LS_PROM_INTERVAL_NS;
	return ls_prom_page_take(page, text, strlen(text), stepped, now);
}

static void
read_corpus(const char *name)
{
	char path[128], *text;
	size_t len;

	(void)snprintf(path, sizeof(path), "tests/corpus/prom_text/%s", name);
	text = ls_test_read(ls_test_source(path), &len);
	ck_assert_int_eq(read_page(text, true), 0);
	free(text);
}

LS_CASE(prom_page, setup, teardown);

LS_TEST(prom_page, the_device_plugin_is_read_in_base_units)
{
	const struct ls_prom_page_stats *n = ls_prom_page_get_stats(page);

	ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_ABSENT);
	ck_assert_ptr_null(group());
	read_corpus("device_plugin.prom");
	ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_GOOD);
	ck_assert_uint_eq(group()->count, 5 * 4 + 1);
	ck_assert_uint_eq(group()->t_mono_ns, now);
	ck_assert_uint_eq(n->taken, 20);
	ck_assert_uint_eq(n->twins, 20); /* the _node twins say the same */
	ck_assert_uint_eq(n->left, 10);
	ck_assert_uint_eq(n->samples, 50);
	ck_assert_uint_eq(n->refused + n->odd, 0);
	ck_assert_double_eq(value(STALE), 0);
	ck_assert_double_eq(value("chip.duty_cycle_ratio{chip=\"8\",index=\"0\"}"),
		0.875);
	ck_assert_double_eq(value("chip.duty_cycle_ratio{chip=\"13\",index=\"3\"}"),
		87.75 * 0.01);
	ck_assert_double_eq(value("chip.hbm.total_bytes{chip=\"12\",index=\"2\"}"),
		102803439616);
	/* The page calls these 0 and 3: the n-th chip of the host is the n-th of its
	 * numbers. */
	ck_assert_double_eq(
		value("chip.tensorcore.utilization_ratio{chip=\"8\",index=\"0\"}"),
		52.1 * 0.01);
	ck_assert_double_eq(value("chip.hbm.bandwidth_ratio{chip=\"13\",index=\"3\"}"),
		40.9 * 0.01);
}

LS_TEST(prom_page, without_a_pod_there_are_only_local_numbers)
{
	read_corpus("device_plugin_idle.prom");
	ck_assert_uint_eq(group()->count, 8 + 1);
	ck_assert_double_eq(value("chip.tensorcore.utilization_ratio{index=\"3\"}"), 0);
	read_corpus("device_plugin.prom"); /* a pod comes: both numbers are known */
	ck_assert_double_eq(
		value("chip.tensorcore.utilization_ratio{chip=\"13\",index=\"3\"}"),
		52.07 * 0.01);
	ck_assert(isnan(value("chip.tensorcore.utilization_ratio{index=\"3\"}")));
}

LS_TEST(prom_page, different_counts_are_not_joined)
{
	ck_assert_int_eq(read_page("duty_cycle{accelerator_id=\"i-4\"} 1\n"
				   "duty_cycle{accelerator_id=\"i-5\"} 2\n"
				   "tensorcore_utilization{accelerator_id=\"i-0\"} 3\n",
				 false),
		0);
	ck_assert_double_eq(value("chip.duty_cycle_ratio{chip=\"5\"}"), 0.02);
	ck_assert_double_eq(value("chip.tensorcore.utilization_ratio{index=\"0\"}"),
		0.03);
}

LS_TEST(prom_page, a_chip_that_makes_no_sense_is_left_out)
{
	ck_assert_int_eq(
		read_page("duty_cycle{accelerator_id=\"i-x\"} 1\n"
			  "duty_cycle{accelerator_id=\"\"} 1\n"
			  "duty_cycle{accelerator_id=\"i-99999999999999999999\"} 1\n"
			  "duty_cycle{accelerator_id=\"7\"} 50\n"
			  "duty_cycle{pod=\"p\"} 25\n",
			false),
		0);
	ck_assert_uint_eq(ls_prom_page_get_stats(page)->odd, 3);
	ck_assert_double_eq(value("chip.duty_cycle_ratio{chip=\"7\",index=\"0\"}"),
		0.5);
	ck_assert_double_eq(value("chip.duty_cycle_ratio"), 0.25);
}

LS_TEST(prom_page, orbax_and_grain_are_read)
{
	read_corpus("orbax.prom");
	ck_assert_double_eq(value("job.checkpoint.write_bytes_per_second_sum"),
		2.25 * 1073741824);
	ck_assert_double_eq(value("job.checkpoint.blocking_seconds_count"), 3);
	ck_assert_double_eq(value("job.checkpoint.blocking_seconds_bucket{le=\"0.5\"}"),
		1);
	ck_assert_double_eq(
		value("job.checkpoint.blocking_seconds_bucket{le=\"+Inf\"}"), 3);
	ck_assert_double_eq(value("job.checkpoint.read_seconds_sum"), 14.5);
	ck_assert_double_eq(value("job.input.next_seconds_sum"), 2e7 * 1e-9);
	ck_assert_double_eq(value("job.input.next_seconds_bucket{le=\"0.001\"}"), 40);
	ck_assert_double_eq(value("job.input.prefetch_ready_sum"), 400);
	ck_assert_double_eq(value("job.input.read_bytes_total"), 1.5e9);
}

LS_TEST(prom_page, a_page_of_somebody_else_is_no_source)
{
	ck_assert_int_eq(read_page("up 1\n", true), 0);
	ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_ABSENT);
	ck_assert_ptr_null(group());
	ck_assert_str_eq(ls_prom_page_why(page), "");
}

/* A page of one chip: what changes at each reading, what never does. */
static int
read_values(double tensorcore, double duty, bool stepped)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		"tensorcore_utilization{accelerator_id=\"i-0\"} %.9g\n"
		"tensorcore_utilization{accelerator_id=\"i-1\"} %.9g\n"
		"duty_cycle{accelerator_id=\"i-4\"} %.9g\n"
		"memory_total{accelerator_id=\"i-4\"} 34088157184\n",
		tensorcore, tensorcore / 2, duty);
	return read_page(text, stepped);
}

LS_TEST(prom_page, a_frozen_page_is_not_measured)
{
	unsigned i;

	for (i = 0; i < 60; i++)
		ck_assert_int_eq(read_values(50 + i % 7, 90, true), 0);
	for (i = 0; i < LS_PROM_FROZEN_READINGS; i++) {
		ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_GOOD);
		ck_assert_int_eq(read_values(50 + 59 % 7, 90, true), 0);
	}
	ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_FROZEN);
	ck_assert_uint_eq(ls_prom_page_silent(page), LS_PROM_FROZEN_READINGS);
	ck_assert_double_eq(value(STALE), 1);
	ck_assert(isnan(value("chip.hbm.total_bytes{chip=\"4\"}")));
	/* that it is frozen is measured, too */
	ck_assert_uint_eq(group()->t_mono_ns, now);
	ck_assert_int_eq(read_values(51, 90, true), 0);
	ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_GOOD);
	ck_assert_double_eq(value(STALE), 0);
	ck_assert_double_eq(value("chip.tensorcore.utilization_ratio{index=\"0\"}"),
		0.51);
}

LS_TEST(prom_page, values_that_never_change_make_no_page_stale)
{
	unsigned i;

	for (i = 0; i < 500; i++)
		ck_assert_int_eq(
			read_page("memory_total{accelerator_id=\"i-4\"} 34088157184\n"
				  "memory_used{accelerator_id=\"i-4\"} 17\n",
				true),
			0);
	ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_GOOD);
	/* One that changed a few times at the start is no evidence, either. */
	for (i = 0; i < 500; i++) {
		ck_assert_int_eq(read_values(0, i < 3 ? i : 100, true), 0);
		ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_GOOD);
	}
}

LS_TEST(prom_page, nothing_changes_while_nothing_steps)
{
	unsigned i;

	for (i = 0; i < 60; i++)
		ck_assert_int_eq(read_values(50 + i % 7, 90, true), 0);
	for (i = 0; i < 500; i++)
		ck_assert_int_eq(read_values(0, 0, false), 0);
	ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_GOOD);
	ck_assert_double_eq(value("chip.tensorcore.utilization_ratio{index=\"0\"}"), 0);
}

LS_TEST(prom_page, a_page_that_fails_is_not_measured)
{
	ck_assert_int_eq(read_values(50, 90, true), 0);
	ls_prom_page_fail(page, "no answer", now += LS_PROM_INTERVAL_NS);
	ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_FAILED);
	ck_assert_str_eq(ls_prom_page_why(page), "no answer");
	ck_assert_double_eq(value(STALE), 1);
	ck_assert(isnan(value("chip.hbm.total_bytes{chip=\"4\"}")));
	ck_assert_uint_eq(group()->t_mono_ns, now);
	ck_assert_int_eq(
		read_page("duty_cycle{accelerator_id=\"i-4\"} 1\n<html>\n", true),
		-LS_EPARSE);
	ck_assert_str_eq(ls_prom_page_why(page), "line 2: a sample without a name");
	/* half a page is none */
	ck_assert(isnan(value("chip.duty_cycle_ratio{chip=\"4\"}")));
	ck_assert_int_eq(read_values(50, 90, true), 0);
	ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_GOOD);
	ck_assert_double_eq(value(STALE), 0);
	ck_assert_double_eq(value("chip.duty_cycle_ratio{chip=\"4\"}"), 0.9);
}

LS_TEST(prom_page, a_page_that_is_gone_is_forgotten)
{
	unsigned i;

	ls_prom_page_fail(page, "nobody", now); /* it never was there: nothing to say */
	ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_ABSENT);
	ck_assert_ptr_null(group());
	ck_assert_int_eq(read_values(50, 90, true), 0);
	for (i = 0; i < LS_PROM_GONE_READINGS; i++) {
		ck_assert_ptr_nonnull(group());
		ls_prom_page_fail(page, "nobody", now += LS_PROM_INTERVAL_NS);
	}
	ck_assert_ptr_null(group());
	ck_assert_int_eq(ls_prom_page_state(page), LS_PROM_ABSENT);
}

LS_TEST(prom_page, a_series_that_is_gone_is_forgotten)
{
	unsigned i;

	ck_assert_int_eq(read_values(50, 90, true), 0);
	ck_assert_uint_eq(group()->count, 5);
	for (i = 0; i < LS_PROM_GONE_READINGS; i++) {
		/* chip 4 with its index is a new one */
		ck_assert_uint_eq(group()->count, i == 0 ? 5 : 6);
		ck_assert_int_eq(
			read_page("duty_cycle{accelerator_id=\"i-4\"} NaN\n", false),
			0);
	}
	ck_assert_uint_eq(group()->count, 2);
	ck_assert(isnan(value("chip.duty_cycle_ratio{chip=\"4\",index=\"0\"}")));
}

LS_TEST(prom_page, too_many_labels_find_no_room)
{
	const struct ls_prom_page_stats *n = ls_prom_page_get_stats(page);
	char *text = malloc(2000 * 32);
	unsigned i, round;
	size_t len;

	take_everything();
	n = ls_prom_page_get_stats(page);
	for (round = 0; round < 3; round++) {
		len = 0;
		for (i = 0; i < 2000; i++)
			len += (size_t)snprintf(text + len, 32, "x{pod=\"p%u\"} %u\n",
				i + 5000 * round, i);
		ck_assert_int_eq(read_page(text, true), 0);
		ck_assert_uint_eq(n->samples, 2000);
		ck_assert_uint_eq(n->taken + n->refused, 2000);
		ck_assert_uint_le(group()->count, LS_PROM_SERIES_MAX + 1);
	}
	ck_assert_uint_eq(n->taken, 0); /* old ones hold their places for a while */
	for (i = 0; i < LS_PROM_GONE_READINGS; i++)
		ck_assert_int_eq(read_page(text, true), 0);
	ck_assert_uint_eq(n->taken, LS_PROM_SERIES_MAX);
	free(text);
}

LS_TEST(prom_page, hostile_labels_stay_inside_their_series)
{
	const struct ls_prom_page_stats *n;
	char text[1400], longest[600];

	take_everything();
	memset(longest, 'y', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	(void)snprintf(text, sizeof(text),
		"a{b=\"}\\\"\\n\x1b[2J\xff\",c=\"\"} 1\na{b=\"%s\"} 2\na{b=\"%s\",c=\"d\"} 3\n",
		longest, longest);
	ck_assert_int_eq(read_page(text, true), 0);
	n = ls_prom_page_get_stats(page);
	ck_assert_uint_eq(n->taken + n->twins + n->refused, 3);
	ck_assert_double_eq(value("a{b=\"__\\x0a\\x1b[2J\\xff\",c=\"\"}"), 1);
}

LS_TEST(prom_page, a_full_table_refuses_and_goes_on)
{
	struct ls_prom_page *more[8];
	char name[16], *text = malloc(300 * 32);
	unsigned i;
	size_t len = 0;

	take_everything();
	for (i = 0; i < LS_PROM_SERIES_MAX; i++)
		len += (size_t)snprintf(text + len, 32, "x%u %u\n", i, i);
	for (i = 0; i < 8; i++) { /* LS_SERIES_MAX is four such pages */
		(void)snprintf(name, sizeof(name), "p%u", i);
		more[i] = ls_prom_page_new(table, map, name);
		ck_assert_int_eq(ls_prom_page_take(more[i], text, len, true, now), 0);
	}
	ck_assert_uint_gt(ls_series_refused(table), 0);
	ck_assert_uint_eq(ls_prom_page_get_stats(more[7])->refused, LS_PROM_SERIES_MAX);
	ck_assert_uint_eq(ls_prom_page_get_stats(more[0])->taken, LS_PROM_SERIES_MAX);
	for (i = 0; i < 8; i++)
		ls_prom_page_free(more[i]);
	free(text);
}
