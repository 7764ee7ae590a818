/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as the CSV of an operation trace of 2 dp and 2 stages (1 dp and 1 stage, if
 * its first byte is a digit): it is refused with a reason that can be shown, or all
 * answers are numbers or null.
 */
#include "config.h"

#include "collector/whatif/whatif.h"
#include "collector/whatif/whatif_csv.h"
#include "collector/whatif/whatif_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_answer(const struct ls_whatif_trace *t, struct ls_whatif *w)
{
	struct ls_whatif_result mean = { 0 }, role = { 0 };
	json_t *o;

	if (ls_whatif_ask(w, LS_WHATIF_ALL_MEAN, 2, &mean) == 0 &&
		ls_whatif_ask(w, LS_WHATIF_STAGE_MEDIAN, 2, &role) == 0) {
		o = ls_whatif_json("", t, w, &mean, &role);
		LS_ASSERT(o != NULL && isfinite(mean.s) && isfinite(role.s) &&
			mean.s > 0);
		json_decref(o);
	}
	ls_whatif_result_fini(&mean);
	ls_whatif_result_fini(&role);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool one = size > 0 && data[0] >= '0' && data[0] <= '9';
	struct ls_whatif_meta meta = { .dp_size = one ? 1 : 2, .pp_size = one ? 1 : 2 };
	struct ls_whatif_error error = { 0 };
	struct ls_whatif_rows rows = { 0 };
	struct ls_whatif_trace *t = NULL;
	struct ls_whatif *w = NULL;
	int rc = ls_whatif_csv_parse((const char *)data + one, size - one, &meta, &rows,
		&error);

	if (rc == 0)
		rc = ls_whatif_trace_new(rows.rows, rows.count, meta.dp_size,
			meta.pp_size, &t, &error);
	if (rc == 0)
		rc = ls_whatif_new(t, &w, &error);
	LS_ASSERT(rc == 0 ||
		(rc == -LS_EPARSE && error.text[0] != '\0' &&
			strchr(error.text, '\033') == NULL));
	if (rc == 0)
		fuzz_answer(t, w);
	ls_whatif_free(w);
	ls_whatif_trace_free(t);
	free(rows.rows);
	return 0;
}
