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
	const struct ls_store_note quiet = { 0 };
	json_t *f = ls_self_finding(&aside, &quiet, 1795219300000000);
	const char *kind = NULL, *scope = NULL, *title = NULL, *action = NULL,
		   *at = NULL;

	ck_assert_ptr_null(ls_self_finding(&none, &quiet, 1));
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(json_unpack(f, "{s:s, s:{s:s}, s:s, s:[{s:s}], s:{s:s}}",
				 "kind", &kind, "subject", "scope", &scope, "title",
				 &title, "actions", "title", &action, "onset", "at",
				 &at),
		0);
	ck_assert_str_eq(kind, "self_storage");
	ck_assert_str_eq(scope, "self");
	ck_assert_str_eq(title,
		"telemetry/20261120.db.damaged-1795219200: damaged, so it is set aside; "
		"the collector goes on without it");
	ck_assert_ptr_nonnull(strstr(action,
		"lockstep-collector --salvage STATE_DIR/telemetry/20261120.db.damaged-1795219200;"));
	ck_assert_ptr_nonnull(strstr(at, "2026-11-21T00:00:00"));
	json_decref(f);
}

static const struct {
	enum ls_store_news event;
	const char *title, *action;
} notes[] = {
	{ LS_STORE_REMOVED, "telemetry/20261120.db-wal: removed or replaced ",
		"find what removed STATE_DIR/telemetry/20261120.db-wal;" },
	{ LS_STORE_REPLACED, "telemetry/20261120.db-wal: another file took its name",
		"rename the salvaged file" },
	{ LS_STORE_FUTURE, "telemetry/20261120.db-wal: a day in the future",
		"check the time synchronization " },
	{ LS_STORE_FULL, "telemetry/20261120.db-wal: the oldest day, is removed soon",
		"--retain-bytes" },
};

LS_TEST_EACH(self_finding, a_note_of_the_store_is_told_for_a_day, notes)
{
	const struct ls_days_aside none = { 0 };
	const struct ls_store_note note = { .t_us = 1795219200000000,
		.event = (int32_t)notes[_i].event,
		.name = "telemetry/20261120.db-wal" };
	const char *title = NULL, *action = NULL;
	json_t *f = ls_self_finding(&none, &note, note.t_us + LS_SELF_NOTE_US);

	ck_assert_ptr_null(
		ls_self_finding(&none, &note, note.t_us + LS_SELF_NOTE_US + 1));
	ck_assert_int_eq(json_unpack(f, "{s:s, s:[{s:s}]}", "title", &title, "actions",
				 "title", &action),
		0);
	ck_assert_ptr_nonnull(strstr(title, notes[_i].title));
	ck_assert_ptr_nonnull(strstr(action, notes[_i].action));
	json_decref(f);
}
