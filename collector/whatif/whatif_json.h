/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_json - the answers of whatif as one JSON object.
 *
 * Owner:   the caller; pure.
 * Units:   seconds, ratios.
 * Errors:  NULL when out of memory.
 * Limits:  none.
 * Source:  collector/whatif/README.md, "The object".
 */
#ifndef LS_COLLECTOR_WHATIF_WHATIF_JSON_H
#define LS_COLLECTOR_WHATIF_WHATIF_JSON_H

#include <jansson.h>
#include "collector/whatif/whatif.h"

/* The answers by both references. `name` is the trial's, or "". New reference, or NULL.
 */
json_t *ls_whatif_json(const char *name, const struct ls_whatif_trace *t,
	const struct ls_whatif *w, const struct ls_whatif_result *mean,
	const struct ls_whatif_result *role);

#endif
