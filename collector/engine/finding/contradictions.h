/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contradictions - what workers of a job say of each other that cannot all be true.
 *
 * Owner:   the engine's thread.
 * Units:   none.
 * Errors:  NULL: out of memory.
 * Limits:  LS_CONTRADICTIONS_SHOWN of each kind.
 * Source:  what launchers set, and leave unset: agent/client/python/lockstep/launchers.def.
 */
#ifndef LS_COLLECTOR_CONTRADICTIONS_H
#define LS_COLLECTOR_CONTRADICTIONS_H

#include <jansson.h>
#include "collector/engine/engine_state.h"

#define LS_CONTRADICTIONS_SHOWN 4

/* The contradictions of the present attempt, those that lose workers first: a list, almost always
 * empty. New reference. */
json_t *ls_contradictions(const struct ls_engine *e, const struct ls_job *j);

/* Of one of them: who says what (claim), what becomes of them (meaning), what to set (todo). */
static inline const char *
ls_contradiction_text(const json_t *c, const char *key)
{
	return json_string_value(json_object_get(c, key));
}

/* The same as a sentence. New reference. */
json_t *ls_contradiction_line(const json_t *c);

#endif
