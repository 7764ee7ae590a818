/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contradictions - what workers of a job say of each other that cannot all be true.
 *
 * Owner:   the engine's thread.
 * Units:   none.
 * Errors:  NULL: out of memory.
 * Limits:  LS_CONTRADICTIONS_SHOWN ranks.
 * Source:  what launchers set, and leave unset: agent/client/python/lockstep/launchers.def.
 */
#ifndef LS_COLLECTOR_CONTRADICTIONS_H
#define LS_COLLECTOR_CONTRADICTIONS_H

#include <jansson.h>
#include "collector/engine/engine_state.h"

#define LS_CONTRADICTIONS_SHOWN 4

/*
 * Sentences, with who says what and what to set; [] almost always. Workers of two hosts
 * that claim one rank are each judged.
 */
json_t *ls_view_contradictions(const struct ls_engine *e, const struct ls_job *j);

#endif
