/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/metrics.h"

#include "proto/base/err.h"
#include "proto/limits.h"
#include "tests/support/harness.h"

#include <stddef.h>
#include <string.h>

LS_CASE(metrics);

LS_TEST(metrics, every_metric_is_found_by_its_name)
{
	for (unsigned i = 0; i < LS_METRIC_COUNT; i++)
		ck_assert_int_eq(ls_metric_by_name(ls_metric_info(i)->name), (int)i);
}

LS_TEST(metrics, unknown_metrics_are_refused)
{
	ck_assert_ptr_null(ls_metric_info(LS_METRIC_COUNT));
	ck_assert_ptr_null(ls_metric_info(~0u));
	ck_assert_int_eq(ls_metric_by_name("host.nothing"), -LS_EUNKNOWN);
	ck_assert_int_eq(ls_metric_by_name(""), -LS_EUNKNOWN);
}

LS_TEST(metrics, table_keeps_its_limits)
{
	unsigned hot = 0;

	for (unsigned i = 0; i < LS_METRIC_COUNT; i++)
		hot += ls_metric_info(i)->hot;
	ck_assert_uint_le(LS_METRIC_COUNT, LS_METRICS_MAX);
	ck_assert_uint_le(hot, LS_HOT_MAX);
}

LS_TEST(metrics, hot_metrics_have_places_in_their_order)
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

LS_TEST(metrics, table_is_complete)
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
