/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/self_finding.h"

#include "proto/base/json.h"

/* What is said of a file: its title, a cause, and what to do about STATE_DIR/FILE. */
struct self_words {
	const char *title, *cause, *text, *action, *todo, *then;
};

static const struct self_words self_aside = {
	"damaged, so it is set aside; the collector goes on without it",
	"damaged_file",
	"a page of the file does not read: a fault of the disk, of memory or of a copy",
	"salvage",
	"lockstep-collector --salvage",
	"; then move the damaged file away",
};

static const struct self_words self_notes[LS_STORE_EVENTS] = {
	[LS_STORE_REMOVED] = { "removed or replaced while it was in use; the collector goes on "
			       "with all that was stored",
		"file_removed",
		"a person or another program changed files of the state directory",
		"find_remover", "find what removed",
		"; to free space use --retain-age or --retain-bytes" },
	[LS_STORE_REPLACED] = { "another file took its name while it was in use; what was "
				"stored before is beside it (*.salvaged-*), not shown",
		"file_removed",
		"a person or another program changed files of the state directory",
		"find_remover", "find what replaced",
		"; to go back, stop the collector and rename the salvaged file" },
	[LS_STORE_FUTURE] = { "a day in the future; its file is renamed", "clock_jump",
		"the clock of the collector's host was more than a day ahead",
		"check_clock", "check the time synchronization of the host that made",
		"" },
	[LS_STORE_FULL] = { "the oldest day, is removed soon: the disk is getting full",
		"disk_full",
		"without --retain-bytes the limit is 80 % of the file system, or 90 % of what "
		"lockstep has and what is free, if that is less",
		"set_retention", "to keep",
		", give the state directory more space or set --retain-bytes" },
};

/* NULL as well if no memory is left. */
static json_t *
self_finding(const struct self_words *w, const char *name, int64_t at_us,
	int64_t now_us)
{
	return json_pack(
		"{s:i, s:s, s:s, s:s, s:s, s:o, s:n, s:n, s:{s:s}, s:s, s:{s:o, s:n}, s:o, s:o, "
		"s:n, s:n, s:[], s:[{s:s, s:s, s:f, s:[]}], s:[{s:s, s:o, s:n, s:n, s:n}], s:{s:s}}",
		"schema_version", 1, "id", LS_SELF_FINDING_ID, "kind", "self_storage",
		"severity", "warning", "status", "open", "title",
		json_sprintf("%s: %s", name, w->title), "job", "slice", "subject",
		"scope", "self", "role", "none", "onset", "at", ls_json_time(at_us),
		"step", "first_detected_at", ls_json_time(at_us), "updated_at",
		ls_json_time(now_us), "cleared_at", "impact", "evidence", "hypotheses",
		"cause", w->cause, "text", w->text, "confidence", 1.0, "because",
		"actions", "id", w->action, "title",
		json_sprintf("%s STATE_DIR/%s%s", w->todo, name, w->then),
		"cost_chip_hours", "predicted", "break_even_s", "links", "self",
		"/api/v1/findings/" LS_SELF_FINDING_ID);
}

json_t *
ls_self_finding(const struct ls_days_aside *aside, const struct ls_store_note *note,
	int64_t now_us)
{
	if (aside->count > 0)
		return self_finding(&self_aside, aside->newest,
			aside->newest_s * 1000000, now_us);
	if (note->event == LS_STORE_QUIET || now_us - note->t_us > LS_SELF_NOTE_US)
		return NULL;
	return self_finding(&self_notes[note->event], note->name, note->t_us, now_us);
}
