/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contradictions - what workers of a job say of each other that cannot all be true.
 *
 * Owner:   the engine's thread.
 * Units:   none.
 * Errors:  NULL: out of memory.
 * Limits:  LS_CONTRADICTIONS_SHOWN of each kind, LS_CONTRADICTIONS_MAX together.
 * Source:  what launchers set, and leave unset: agent/client/python/lockstep/launchers.def.
 */
#ifndef LS_COLLECTOR_CONTRADICTIONS_H
#define LS_COLLECTOR_CONTRADICTIONS_H

#include <jansson.h>
#include "collector/engine/engine_state.h"

#define LS_CONTRADICTIONS_SHOWN 4
#define LS_CONTRADICTIONS_MAX (2 * LS_CONTRADICTIONS_SHOWN + 3)

struct ls_contradiction {
	char claim[3 * LS_HOST_NAME_MAX_BYTES]; /* who says what */
	const char *meaning; /* what becomes of them; "": nothing more is known */
	char todo[LS_HOST_NAME_MAX_BYTES]; /* what to set */
};

/* The contradictions of the present attempt, those that lose workers first; returns how
 * many, at most LS_CONTRADICTIONS_MAX. Almost always 0, which costs nothing. */
size_t ls_contradictions(const struct ls_engine *e, const struct ls_job *j,
	struct ls_contradiction *ret);

/* The same as a sentence. New reference. */
json_t *ls_contradiction_line(const struct ls_contradiction *c);

/*
 * The same as sentences, with who says what and what to set; [] almost always. Workers
 * of two hosts that claim one rank are each judged. Then the number
 * of slices, and workers whose rank was refused, with the value and its variable: nothing
 * that a finding rests on, so it is not exported.
 */
json_t *ls_view_contradictions(const struct ls_engine *e, const struct ls_job *j);

#endif
