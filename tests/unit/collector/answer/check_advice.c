/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/advice.h"

#include "tests/support/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct ls_finding
finding_with(enum ls_cause cause, int32_t chips, double chips_lost)
{
	struct ls_finding f = { .who = { .job = "train", .host = "h3" },
		.chips = chips,
		.chips_lost = chips_lost };

	f.diagnosis.count = 1;
	f.diagnosis.hypotheses[0] = (struct ls_hypothesis){ cause, 0.9, 0.95 };
	return f;
}

static const char *
text_at(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static const char *
filled(const char *text, const char *job, const char *host)
{
	static char dst[512];
	struct ls_worker_info who = { 0 };

	(void)memcpy(who.job, job, strlen(job));
	(void)memcpy(who.host, host, strlen(host));
	ck_assert_uint_eq(ls_advice_fill(dst, sizeof(dst), text, &who), strlen(dst));
	return dst;
}

LS_CASE(all);

LS_TEST(all, names_are_quoted_for_the_shell)
{
	ck_assert_str_eq(filled("x --job %j%H", "train-1", "h0.example:80"),
		"x --job train-1 --host h0.example:80");
	ck_assert_str_eq(filled("%j", "a b", ""), "'a b'");
	ck_assert_str_eq(filled("%j", "$(rm -rf /)", ""), "'$(rm -rf /)'");
	ck_assert_str_eq(filled("%j", "it's", ""), "'it'\\''s'");
	ck_assert_str_eq(filled("%j", "-rf", ""), "'-rf'"); /* no option */
	ck_assert_str_eq(filled("%h%H|%%|%z|%", "", ""), "HOST|%%|%z|%");
}

LS_TEST(all, text_is_cut_to_fit)
{
	struct ls_worker_info who = { .job = "train", .host = "h" };
	char dst[8];

	ck_assert_uint_eq(ls_advice_fill(dst, sizeof(dst), "a %j b %h c", &who), 7);
	ck_assert_str_eq(dst, "a train");
	ck_assert_uint_eq(ls_advice_fill(dst, 1, "abc", &who), 0);
	ck_assert_str_eq(dst, "");
}

LS_TEST(all, longest_names_are_not_cut_in_an_action)
{
	struct ls_finding f = finding_with(LS_CAUSE_INPUT, 32, 2);
	json_t *actions;
	const char *shell;

	memset(f.who.job, '\'', sizeof(f.who.job) - 1);
	memset(f.who.host, '\'', sizeof(f.who.host) - 1);
	actions = ls_advice_render(&f);
	shell = text_at(
		json_array_get(json_object_get(json_array_get(actions, 0), "commands"),
			0),
		"shell");
	ck_assert_ptr_nonnull(strstr(shell, "# input_wait"));
	json_decref(actions);
}

LS_TEST(all, restarts_have_a_price_and_a_break_even)
{
	struct ls_finding f = finding_with(LS_CAUSE_CPU_QUOTA, 36, 6);
	json_t *actions = ls_advice_render(&f);
	const json_t *a = json_array_get(actions, 0);

	ck_assert_uint_eq(json_array_size(actions), 1);
	ck_assert_str_eq(text_at(a, "for"), "cpu_quota");
	ck_assert_str_eq(text_at(a, "state"), "proposed");
	ck_assert_double_eq(json_number_value(json_object_get(a, "cost_chip_hours")),
		6);
	ck_assert_double_eq(json_number_value(json_object_get(a, "downtime_s")),
		LS_ADVICE_RESTART_S);
	ck_assert_double_eq(json_number_value(json_object_get(a, "break_even_s")),
		3600);
	ck_assert_ptr_nonnull(text_at(a, "caveat"));
	json_decref(actions);
}

LS_TEST_LOOP(all, what_only_looks_promises_nothing, 0, 2)
{
	struct ls_finding f = finding_with(
		_i == 0 ? LS_CAUSE_UNEXPLAINED : LS_CAUSE_INSIDE_PROGRAM, 32, 2);
	json_t *actions = ls_advice_render(&f);
	const json_t *a = json_array_get(actions, 0),
		     *predicted = json_object_get(a, "predicted");

	ck_assert_double_eq(json_number_value(json_object_get(a, "cost_chip_hours")),
		0);
	ck_assert(json_is_null(json_object_get(a, "break_even_s")));
	ck_assert(json_is_null(json_object_get(predicted, "saving_chips")));
	ck_assert(json_is_null(json_object_get(predicted, "p_success")));
	json_decref(actions);
}

/* Nobody waits for a replica: its share of the chips restarts. */
LS_TEST(all, a_replica_restarts_alone)
{
	struct ls_finding f = finding_with(LS_CAUSE_CPU_QUOTA, 36, 6);
	json_t *actions;
	const json_t *a;

	f.replica = true;
	f.share = 0.25;
	actions = ls_advice_render(&f);
	a = json_array_get(actions, 0);
	ck_assert_double_eq(json_number_value(json_object_get(a, "cost_chip_hours")),
		1.5);
	ck_assert_ptr_nonnull(strstr(text_at(a, "caveat"), "the worker"));
	json_decref(actions);
}

LS_TEST(all, what_needs_no_restart_is_free)
{
	struct ls_finding f = finding_with(LS_CAUSE_CPU_CONTENTION, 32, 2);
	json_t *actions = ls_advice_render(&f);
	const json_t *a = json_array_get(actions, 0);

	ck_assert_double_eq(json_number_value(json_object_get(a, "cost_chip_hours")),
		0);
	ck_assert_double_eq(json_number_value(json_object_get(a, "break_even_s")), 0);
	ck_assert(json_is_null(json_object_get(a, "caveat")));
	ck_assert_uint_eq(json_array_size(json_object_get(a, "commands")), 2);
	ck_assert_ptr_nonnull(strstr(
		text_at(json_array_get(json_object_get(a, "commands"), 0), "shell"),
		"ps -eo"));
	ck_assert_int_eq(
		strncmp(text_at(json_array_get(json_object_get(a, "commands"), 1),
				"shell"),
			"lockstep series h3 --limit 1000 | grep host.neighbour ", 54),
		0);
	ck_assert_double_eq(json_number_value(json_object_get(
				    json_object_get(a, "predicted"), "saving_chips")),
		2);
	json_decref(actions);
}

LS_TEST(all, unknown_chips_have_no_price)
{
	struct ls_finding f = finding_with(LS_CAUSE_CPU_QUOTA, 0, 0);
	json_t *actions = ls_advice_render(&f);
	const json_t *a = json_array_get(actions, 0);

	ck_assert(json_is_null(json_object_get(a, "cost_chip_hours")));
	ck_assert(json_is_null(json_object_get(a, "break_even_s")));
	ck_assert(json_is_null(
		json_object_get(json_object_get(a, "predicted"), "saving_chips")));
	json_decref(actions);
	f.diagnosis.count = 0;
	actions = ls_advice_render(&f);
	ck_assert_uint_eq(json_array_size(actions), 0);
	json_decref(actions);
}
