/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/self_finding.h"

#include <string.h>
#include "tests/support/harness.h"

LS_CASE(self_finding);

LS_TEST(self_finding, damaged_files_are_a_finding_with_an_action)
{
	const struct ls_days_aside aside = { .count = 2,
		.newest_s = 1795219200,
		.newest = "telemetry/20261120.db.damaged-1795219200" };
	const struct ls_days_aside none = { 0 };
	json_t *f = ls_self_finding(&aside, 1795219300000000);
	const char *kind = NULL, *scope = NULL, *title = NULL, *action = NULL,
		   *at = NULL;

	ck_assert_ptr_null(ls_self_finding(&none, 1));
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(json_unpack(f, "{s:s, s:{s:s}, s:s, s:[{s:s}], s:{s:s}}",
				 "kind", &kind, "subject", "scope", &scope, "title",
				 &title, "actions", "title", &action, "onset", "at",
				 &at),
		0);
	ck_assert_str_eq(kind, "self_storage");
	ck_assert_str_eq(scope, "self");
	ck_assert_str_eq(title,
		"the collector set aside 2 damaged database files; newest: "
		"telemetry/20261120.db.damaged-1795219200");
	ck_assert_ptr_nonnull(strstr(action,
		"lockstep-collector --salvage STATE_DIR/telemetry/20261120.db.damaged-1795219200;"));
	ck_assert_ptr_nonnull(strstr(at, "2026-11-21T00:00:00"));
	json_decref(f);
}
