/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a replay file: it is refused or replayed, twice to the same bytes. */
#include "config.h"

#include "collector/history/replay.h"
#include "proto/base/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_complain(void *arg, const char *text)
{
	(void)arg;
	LS_ASSERT(strchr(text, '\n') == NULL && strchr(text, '\033') == NULL);
}

static char *
fuzz_run(const char *text, size_t len)
{
	struct ls_replay_stats stats;
	json_t *result = NULL;
	char *canonical = NULL;
	int rc = ls_replay_text(text, len, 0, fuzz_complain, NULL, &stats, &result);

	LS_ASSERT((rc == 0) == (result != NULL));
	if (rc == 0) {
		canonical = ls_json_canonical(result);
		LS_ASSERT(canonical != NULL);
	}
	json_decref(result);
	return canonical;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *one = fuzz_run((const char *)data, size),
	     *two = fuzz_run((const char *)data, size);

	LS_ASSERT((one == NULL) == (two == NULL));
	LS_ASSERT(one == NULL || strcmp(one, two) == 0);
	free(one);
	free(two);
	return 0;
}
