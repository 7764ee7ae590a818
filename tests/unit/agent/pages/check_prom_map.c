/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/pages/prom_map.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/harness.h"

static struct ls_prom_map *map;
static struct ls_prom_taken taken;
static char why[128];

static void
teardown(void)
{
	ls_prom_map_free(map);
	map = NULL;
}

/* The rules of a text, as a file; with its length, so that it may hold anything. */
static int
load_bytes(const char *text, size_t len)
{
	char path[PATH_MAX];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/map", ls_test_tmpdir());
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, len, f), len);
	ck_assert_int_eq(fclose(f), 0);
	return ls_prom_map_new(path, &map, why, sizeof(why));
}

static int
load(const char *text)
{
	return load_bytes(text, strlen(text));
}

static bool
take(const char *name, enum ls_prom_type type, double value)
{
	const struct ls_prom_sample s = { .name = name, .type = type, .value = value };

	return ls_prom_map_take(map, &s, &taken);
}

LS_CASE(prom_map, NULL, teardown);

LS_TEST(prom_map, the_built_in_rules_give_base_units)
{
	ck_assert_int_eq(ls_prom_map_new("", &map, why, sizeof(why)), 0);
	ck_assert(take("duty_cycle", LS_PROM_GAUGE, 87.5));
	ck_assert_str_eq(taken.name, "chip.duty_cycle_ratio");
	ck_assert_double_eq(taken.value, 0.875);
	ck_assert_int_eq(taken.rule->keep[0].id, LS_PROM_ID_CHIP);
	ck_assert(take("tensorcore_utilization_node", LS_PROM_GAUGE, 50));
	ck_assert_str_eq(taken.name, "chip.tensorcore.utilization_ratio");
	ck_assert_int_eq(taken.rule->keep[0].id, LS_PROM_ID_INDEX);
	ck_assert(take("memory_total", LS_PROM_GAUGE, 34088157184));
	ck_assert_double_eq(taken.value, 34088157184);
	ck_assert(take("jax_orbax_write_gbytes_per_sec_sum", LS_PROM_SUMMARY, 0.5));
	ck_assert_str_eq(taken.name, "job.checkpoint.write_bytes_per_second_sum");
	ck_assert_double_eq(taken.value, 536870912);
	ck_assert(take("grain_python_dataset_next_duration_ns_bucket",
		LS_PROM_HISTOGRAM, 40));
	ck_assert_str_eq(taken.name, "job.input.next_seconds_bucket");
	ck_assert_double_eq(taken.value, 40); /* a count */
	ck_assert_double_eq(taken.le_scale, 1e-9);
	ck_assert(
		take("grain_python_data_sources_bytes_read_total", LS_PROM_COUNTER, 3));
	ck_assert_str_eq(taken.name, "job.input.read_bytes_total");
}

LS_TEST(prom_map, what_no_rule_names_is_left)
{
	static const char *const left[] = { "go_goroutines",
		"grpc_tcp_packets_sent_count", "bamm2_bits_received_count",
		"accelerator_request", "duty_cycle_total", "duty_cycles", "duty" };
	size_t i;

	ck_assert_int_eq(ls_prom_map_new("", &map, why, sizeof(why)), 0);
	for (i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		ck_assert_msg(!take(left[i], LS_PROM_GAUGE, 1), "%s", left[i]);
	ck_assert(!take("jax_orbax_write_gbytes_per_sec_created", LS_PROM_SUMMARY, 1));
	ck_assert(!take("jax_orbax_write_gbytes_per_sec_sum", LS_PROM_GAUGE, 1));
}

LS_TEST(prom_map, a_file_comes_before_the_built_in_rules)
{
	ck_assert_int_eq(
		load("# ours\n\n"
		     "  duty_cycle  chip.busy_ratio\t*1e-2 accelerator_id pod # and why\n"
		     "memory_used -\n"
		     "my_gauge host.mine_bytes x\r\n"),
		0);
	ck_assert(take("duty_cycle", LS_PROM_GAUGE, 50));
	ck_assert_str_eq(taken.name, "chip.busy_ratio");
	ck_assert_double_eq(taken.value, 0.5);
	ck_assert_uint_eq(taken.rule->keep_count, 2);
	ck_assert_int_eq(taken.rule->keep[0].id, LS_PROM_ID_NONE);
	ck_assert_str_eq(taken.rule->keep[1].name, "pod");
	ck_assert(!take("memory_used", LS_PROM_GAUGE, 1));
	ck_assert(take("memory_used_node", LS_PROM_GAUGE, 1));
	ck_assert(take("my_gauge", LS_PROM_UNTYPED, 7));
	ck_assert_double_eq(taken.value, 7);
	ck_assert_str_eq(taken.rule->to, "host.mine_bytes");
}

LS_TEST(prom_map, a_star_takes_the_rest_as_it_is)
{
	char name[LS_SERIES_NAME_MAX_BYTES + 1];

	ck_assert_int_eq(load("secret -\n*\n"), 0);
	ck_assert(take("go_goroutines", LS_PROM_GAUGE, 42));
	ck_assert_str_eq(taken.name, "go_goroutines");
	ck_assert_ptr_null(taken.rule);
	ck_assert(!take("secret", LS_PROM_GAUGE, 1));
	ck_assert(take("duty_cycle", LS_PROM_GAUGE, 1));
	ck_assert_str_eq(taken.name, "chip.duty_cycle_ratio");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ck_assert(!take(name, LS_PROM_GAUGE, 1));
	ck_assert(take(name + 1, LS_PROM_GAUGE, 1));
}

static const struct {
	const char *text, *why;
} bad[] = {
	{ "a\n", "line 1: the second word is missing" },
	{ "\n9a b\n", "line 2: the first word is not a name" },
	{ "a.b c\n", "line 1: the first word is not a name" },
	{ "* a\n", "line 1: the first word is not a name" },
	{ "a b{c}\n", "line 1: the second word is not the name of a" },
	{ "a b *x\n", "line 1: the scale is not a number" },
	{ "a b *\n", "line 1: the scale is not a number" },
	{ "a b *0\n", "line 1: the scale is not a number" },
	{ "a b *inf\n", "line 1: the scale is not a number" },
	{ "a b c d e f g\n", "line 1: too many labels" },
	{ "a b c:core\n", "line 1: expected chip or index after the ':'" },
	{ "a b c-d\n", "line 1: a label is not a name" },
	{ "a b \xff\n", "line 1: a label is not a name" },
};

LS_TEST_EACH(prom_map, a_bad_line_is_said, bad)
{
	ck_assert_int_eq(load(bad[_i].text), -LS_EPARSE);
	ck_assert_msg(strncmp(why, bad[_i].why, strlen(bad[_i].why)) == 0, "%s", why);
}

LS_TEST(prom_map, files_have_their_maxima)
{
	char *text = malloc(2 * LS_PROM_MAP_MAX_BYTES);
	size_t len = 0, i;

	ck_assert_int_eq(load_bytes("a b\0c", 5), -LS_EPARSE);
	for (i = 0; i < LS_PROM_RULES_MAX; i++)
		len += (size_t)snprintf(text + len, 32, "n%zu x\n", i);
	ck_assert_int_eq(load(text), -LS_ELIMIT);
	ck_assert_ptr_nonnull(strstr(why, "built-in"));
	len += (size_t)snprintf(text + len, 32, "n%zu x\n", i);
	ck_assert_int_eq(load(text), -LS_ELIMIT);
	ck_assert_str_eq(why, "line 129: too many rules");
	memset(text, ' ', LS_PROM_MAP_MAX_BYTES + 1);
	ck_assert_int_eq(load_bytes(text, LS_PROM_MAP_MAX_BYTES + 1), -LS_ELIMIT);
	ck_assert_int_eq(load_bytes(text, LS_PROM_MAP_MAX_BYTES), 0);
	ls_prom_map_free(map);
	map = NULL;
	ck_assert_int_eq(ls_prom_map_new("/nonexistent", &map, why, sizeof(why)),
		-ENOENT);
	free(text);
}
