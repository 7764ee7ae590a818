/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/self_finding.h"

#include "proto/base/json.h"

static json_t *
self_action(const struct ls_days_aside *aside)
{
	return json_pack("{s:s, s:o, s:n, s:n, s:n}", "id", "salvage", "title",
		json_sprintf("lockstep-collector --salvage STATE_DIR/%s; then move "
			     "the damaged file away",
			aside->newest),
		"cost_chip_hours", "predicted", "break_even_s");
}

json_t *
ls_self_finding(const struct ls_days_aside *aside, int64_t now_us)
{
	if (aside->count == 0)
		return NULL;
	return json_pack(
		"{s:i, s:s, s:s, s:s, s:s, s:o, s:n, s:n, s:{s:s}, s:s, s:{s:o, s:n}, s:o, s:o, "
		"s:n, s:n, s:[], s:[{s:s, s:s, s:f, s:[]}], s:[o], s:{s:s}}",
		"schema_version", 1, "id", LS_SELF_FINDING_ID, "kind", "self_storage",
		"severity", "warning", "status", "open", "title",
		json_sprintf("the collector set aside %u damaged database file%s; "
			     "newest: %s",
			aside->count, aside->count == 1 ? "" : "s", aside->newest),
		"job", "slice", "subject", "scope", "self", "role", "none", "onset",
		"at", ls_json_time(aside->newest_s * 1000000), "step",
		"first_detected_at", ls_json_time(aside->newest_s * 1000000),
		"updated_at", ls_json_time(now_us), "cleared_at", "impact", "evidence",
		"hypotheses", "cause", "damaged_file", "text",
		"a page of the file does not read: a fault of the disk, of memory or of "
		"a copy",
		"confidence", 1.0, "because", "actions", self_action(aside), "links",
		"self", "/api/v1/findings/" LS_SELF_FINDING_ID);
}
