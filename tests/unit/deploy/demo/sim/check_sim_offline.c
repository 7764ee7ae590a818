/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/history/replay.h"
#include "proto/base/conf.h"
#include "proto/base/json.h"
#include "tests/support/harness.h"
#include "deploy/demo/sim/offline.h"

/* Options as the program has them. */
static const struct ls_conf_option options_table[] = {
#define OPTION(name, type, field, dflt, min, max, unit, help)              \
	{ name, LS_CONF_##type, offsetof(struct sim_options, field), dflt, \
		(int64_t)(min), (int64_t)(max), unit, help, 0 },
#include "deploy/demo/sim/options.def"
#undef OPTION
};

static const struct ls_conf_program options_program = {
	.name = "lockstep-sim",
	.section = "sim",
	.summary = "",
	.usage = "",
	.options = options_table,
	.option_count = sizeof(options_table) / sizeof(options_table[0]),
};

/* The options of a file's worth of lines. */
static struct sim_options
options_of(const char *ini)
{
	struct sim_options o;
	char err[256], *argv[] = { (char *)"lockstep-sim", NULL };
	enum ls_conf_action action;
	int left;

	ck_assert_int_eq(ls_conf_load(&options_program, 1, argv, &o, &action, &left,
				 err, sizeof(err)),
		0);
	ck_assert_int_eq(ls_conf_parse_file(&options_program, "test", ini, strlen(ini),
				 &o, err, sizeof(err)),
		0);
	return o;
}

static struct sim_offline
offline_of(const char *ini)
{
	struct sim_options o = options_of(ini);
	struct sim_offline off = { .steps = 0 };
	char err[256] = "";

	ck_assert_msg(sim_offline_options(&o, &off, err, sizeof(err)) == 0, "%s", err);
	return off;
}

/* Writes both files into the directory of the test; *path is theirs. */
static void
offline_write(const char *ini, const char *name, char path[256], char truth[256])
{
	struct sim_offline off = offline_of(ini);
	char err[256];

	ck_assert_int_lt(snprintf(path, 256, "%s/%s", ls_test_tmpdir(), name), 256);
	ck_assert_int_lt(snprintf(truth, 256, "%.200s.truth", path), 256);
	ck_assert_int_eq(sim_offline_write(&off, path, truth, err, sizeof(err)), 0);
}

static void
offline_count(void *arg, const char *text)
{
	(void)text;
	(*(size_t *)arg)++;
}

static const char plain[] =
	"hosts = 8\nsteps = 300\nfault = chip:5:20%@150-\nclock_error = 1ms\npeers = true\n";

LS_CASE(files);

LS_TEST_LOOP(files, replay_reads_it_and_finds_the_culprit, 0, 2)
{
	static const char *const names[] = { "run.jsonl", "run.jsonl.gz" };
	struct ls_replay_stats stats;
	char path[256], truth[256];
	json_t *result, *found;
	size_t complaints = 0;

	offline_write(plain, names[_i], path, truth);
	ck_assert_int_eq(
		ls_replay_file(path, 0, offline_count, &complaints, &stats, &result),
		0);
	ck_assert_uint_eq(stats.records, 8 * 300);
	ck_assert_uint_gt(stats.counters, 8 * 250);
	ck_assert_uint_eq(stats.bad_lines, 0);
	found = json_array_get(json_object_get(result, "findings"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(
				 json_object_get(found, "subject"), "host")),
		"sim00006");
	json_decref(result);
}

LS_TEST(files, the_same_seed_makes_the_same_bytes)
{
	static const char ini[] =
		"hosts = 8\nslices = 2\nstages = 2\nsteps = 40\nmissing = 5%\nburst_steps = 10\n"
		"fault = cpu:3:10%@5-,loss:0+1:5%@9-20\n";
	char path[256], truth[256], *bytes[4];
	size_t len[4], i;

	for (i = 0; i < 2; i++) {
		offline_write(ini, "same.jsonl.gz", path, truth);
		bytes[2 * i] = ls_test_read(path, &len[2 * i]);
		bytes[2 * i + 1] = ls_test_read(truth, &len[2 * i + 1]);
	}
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(len[i], len[2 + i]);
		ck_assert_mem_eq(bytes[i], bytes[2 + i], len[i]);
	}
	for (i = 0; i < 4; i++)
		free(bytes[i]);
}

LS_TEST(files, the_first_line_says_that_it_is_simulated)
{
	char path[256], truth[256], *bytes;
	size_t len;

	offline_write(plain, "first.jsonl", path, truth);
	bytes = ls_test_read(path, &len);
	ck_assert(strstr(bytes, "\"simulated\":true") < strchr(bytes, '\n'));
	free(bytes);
}

LS_TEST(files, the_truth_names_culprits_steps_and_cost)
{
	char path[256], truth[256], err[256], *bytes;
	json_t *line, *f;
	size_t len;

	offline_write(
		"hosts = 8\nsteps = 100\nnoise = 0\nfault = chip:5:10%@50-,slice:0:5%@60-70,saves:1:300%@0-,"
		"slower:all:9%@200-\n",
		"truth.jsonl", path, truth);
	bytes = ls_test_read(truth, &len);
	ck_assert_int_eq(ls_json_parse(bytes, len, &line, err, sizeof(err)), 0);
	ck_assert_str_eq(json_string_value(json_object_get(line, "run")), "truth");
	ck_assert_str_eq(json_string_value(json_object_get(line, "file")),
		"truth.jsonl");
	ck_assert(json_is_true(json_object_get(line, "simulated")));
	/* one never began, one is benign */
	ck_assert_uint_eq(json_array_size(json_object_get(line, "faults")), 2);
	ck_assert_uint_eq(json_array_size(json_object_get(line, "benign")), 1);
	f = json_array_get(json_object_get(line, "faults"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(f, "scope")), "rank");
	ck_assert_str_eq(
		json_string_value(json_array_get(json_object_get(f, "culprits"), 0)),
		"sim00006");
	ck_assert_int_eq(json_integer_value(json_object_get(f, "from_step")), 50);
	ck_assert_int_eq(json_integer_value(json_object_get(f, "to_step")), 99);
	ck_assert_double_eq_tol(json_number_value(json_object_get(f, "extra_s")), 0.08,
		1e-3);
	f = json_array_get(json_object_get(line, "faults"), 1);
	ck_assert_str_eq(json_string_value(json_object_get(f, "scope")), "all");
	ck_assert_str_eq(json_string_value(json_object_get(f, "level")), "slice");
	ck_assert_uint_eq(json_array_size(json_object_get(f, "culprits")), 8);
	json_decref(line);
	free(bytes);
}

static const char *const wrong[] = { "noise = -1\n", "noise = 30%\n", "noise = nan\n",
	"noise = 1%%\n", "spread = x\n", "missing = 95%\n", "clock_drift = 1\n",
	"fault = chip:5\n", "hosts = 4\nfault = chip:4:1%\n", "stages = 200\n",
	"slices = 101\n", "hosts = 10000\nsteps = 1000\n",
	"hosts = 20000\nsteps = 10\n", "job = a\"b\n",
	"step = 10ms\nhosts = 2\nfault = dcn:0+1:1%\n", "host_noise = hum\n",
	"host_noise = iid,iid,iid,iid,iid\n", "host_noise = recorded\n",
	"recorded = /nonexistent\n", "recorded = /dev/null\n" };

LS_CASE(options);

LS_TEST_EACH(options, options_that_cannot_be_are_refused, wrong)
{
	struct sim_options o = options_of(wrong[_i]);
	struct sim_offline off = { .steps = 77 };
	char err[256] = "";

	ck_assert_int_lt(sim_offline_options(&o, &off, err, sizeof(err)), 0);
	ck_assert_uint_gt(strlen(err), 10);
	ck_assert_uint_eq(off.steps, 77);
}

/* Hosts replay what was recorded; a file of anything else is refused. */
LS_TEST(files, recorded_noise_is_replayed)
{
	static const char *const text[] = { "0.01 0.01\n0.02 0.02\n", "0.01\n",
		"0.01 nan\n", "0.01 0.02 x\n", "1e300 1\n" };
	char path[256], ini[512], err[256] = "";
	double own, wait, least = 1, most = 0;
	struct sim_world_step s;
	struct sim_world *w;
	struct sim_offline off;
	struct sim_options o;
	FILE *file;

	ck_assert_int_lt(snprintf(path, sizeof(path), "%s/noise", ls_test_tmpdir()),
		256);
	ck_assert_int_lt(
		snprintf(ini, sizeof(ini),
			"hosts = 20\nnoise = 0\nhost_noise = recorded-4\nrecorded = %s\n",
			path),
		512);
	for (size_t i = sizeof(text) / sizeof(text[0]); i-- > 0;) {
		file = fopen(path, "we");
		ck_assert_ptr_nonnull(file);
		ck_assert_int_ge(fputs(text[i], file), 0);
		ck_assert_int_eq(fclose(file), 0);
		if (i == 0)
			break;
		o = options_of(ini);
		ck_assert_int_eq(sim_offline_options(&o, &off, err, sizeof(err)),
			-LS_EPARSE);
		ck_assert_ptr_nonnull(strstr(err, path));
	}
	off = offline_of(ini);
	ck_assert_int_eq(sim_world_new(&off.world, NULL, 0, &w, NULL), 0);
	sim_world_next(w, &s);
	for (uint32_t i = 0; i < 20; i++) {
		sim_world_split(w, i, &own, &wait);
		least = fmin(least, own);
		most = fmax(most, own);
	}
	ck_assert_double_eq_tol(least, 0.81, 1e-6);
	ck_assert_double_eq_tol(most, 0.82, 1e-6);
	sim_world_free(w);
	sim_recorded_free(&off.recorded);
}

LS_TEST(files, a_file_that_cannot_be_written_is_an_error)
{
	struct sim_offline off = offline_of("steps = 2000\nhosts = 20\n");
	char err[256] = "";

	ck_assert_int_lt(
		sim_offline_write(&off, "/nonexistent/x", "", err, sizeof(err)), 0);
	ck_assert_ptr_nonnull(strstr(err, "/nonexistent/x"));
	ck_assert_int_lt(sim_offline_write(&off, "/dev/full", "", err, sizeof(err)), 0);
	off.steps = 1;
	ck_assert_int_lt(sim_offline_write(&off, "/dev/null", "/nonexistent/y", err,
				 sizeof(err)),
		0);
	ck_assert_ptr_nonnull(strstr(err, "/nonexistent/y"));
}
