/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/metrics.h"

#include "proto/base/err.h"
#include "proto/limits.h"
#include "tests/support/harness.h"

#include <stddef.h>
#include <string.h>

START_TEST(every_metric_is_found_by_its_name)
{
	for (unsigned i = 0; i < LS_METRIC_COUNT; i++)
		ck_assert_int_eq(ls_metric_by_name(ls_metric_info(i)->name), (int)i);
}
END_TEST

START_TEST(unknown_metrics_are_refused)
{
	ck_assert_ptr_null(ls_metric_info(LS_METRIC_COUNT));
	ck_assert_ptr_null(ls_metric_info(~0u));
	ck_assert_int_eq(ls_metric_by_name("host.nothing"), -LS_EUNKNOWN);
	ck_assert_int_eq(ls_metric_by_name(""), -LS_EUNKNOWN);
}
END_TEST

START_TEST(table_keeps_its_limits)
{
	unsigned hot = 0;

	for (unsigned i = 0; i < LS_METRIC_COUNT; i++)
		hot += ls_metric_info(i)->hot;
	ck_assert_uint_le(LS_METRIC_COUNT, LS_METRICS_MAX);
	ck_assert_uint_le(hot, LS_HOT_MAX);
}
END_TEST

START_TEST(hot_metrics_have_places_in_their_order)
{
	unsigned place = 0;

	for (unsigned m = 0; m < LS_METRIC_COUNT; m++) {
		if (!ls_metric_info(m)->hot) {
			ck_assert_int_eq(ls_metric_hot_place(m), -1);
			continue;
		}
		ck_assert_int_eq(ls_metric_hot_place(m), (int)place);
		ck_assert_uint_eq(ls_metric_hot(place), m);
		place++;
	}
	ck_assert_uint_gt(place, 0);
	ck_assert_uint_eq(ls_metric_hot(place), LS_METRIC_COUNT);
	ck_assert_int_eq(ls_metric_hot_place(LS_METRIC_COUNT), -1);
}
END_TEST

START_TEST(table_is_complete)
{
	static const char *const scopes[] = { [LS_METRIC_SCOPE_HOST] = "host.",
		[LS_METRIC_SCOPE_JOB] = "job.",
		[LS_METRIC_SCOPE_CHIP] = "chip.",
		[LS_METRIC_SCOPE_LINK] = "link." };

	for (unsigned i = 0; i < LS_METRIC_COUNT; i++) {
		const struct ls_metric_info *m = ls_metric_info(i);
		size_t len = strlen(m->name);
		bool total = len > 6 && strcmp(m->name + len - 6, "_total") == 0;
		const char *scope = scopes[m->scope];

		ck_assert_msg(strncmp(m->name, scope, strlen(scope)) == 0, "%s",
			m->name);
		ck_assert_msg(total == (m->kind == LS_METRIC_KIND_COUNTER), "%s",
			m->name);
		ck_assert_msg(strspn(m->name,
				      "abcdefghijklmnopqrstuvwxyz0123456789._") == len,
			"%s", m->name);
		ck_assert_msg(*m->unit && *m->help && *m->source, "%s", m->name);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("metrics");
	TCase *tc = tcase_create("metrics");

	tcase_add_test(tc, every_metric_is_found_by_its_name);
	tcase_add_test(tc, unknown_metrics_are_refused);
	tcase_add_test(tc, table_keeps_its_limits);
	tcase_add_test(tc, hot_metrics_have_places_in_their_order);
	tcase_add_test(tc, table_is_complete);
	suite_add_tcase(s, tc);
	return ls_test_run(s);
}
