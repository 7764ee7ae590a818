/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contradictions - what workers of a job say of each other that cannot all be true.
 *
 * Owner:   the engine's thread.
 * Units:   none.
 * Errors:  none.
 * Limits:  LS_CONTRADICTIONS_SHOWN of each kind.
 * Source:  what launchers set, and leave unset: agent/client/python/lockstep/launchers.def.
 */
#ifndef LS_COLLECTOR_CONTRADICTIONS_H
#define LS_COLLECTOR_CONTRADICTIONS_H

#include "collector/engine/engine_state.h"

#define LS_CONTRADICTIONS_SHOWN 4
/* two kinds that are shown so often, and three that come once */
#define LS_CONTRADICTIONS_MAX (2 * LS_CONTRADICTIONS_SHOWN + 3)

struct ls_contradiction {
	char claim[3 * LS_HOST_NAME_MAX_BYTES + 128]; /* who says what */
	const char *meaning; /* what becomes of them; "": nothing more is known */
	char todo[LS_FINDING_SAID_BYTES / 4]; /* what to set */
};

struct ls_contradictions {
	size_t count;
	struct ls_contradiction of[LS_CONTRADICTIONS_MAX];
};

/* The contradictions of the present attempt, those that lose workers first: almost always none. */
void ls_contradictions(const struct ls_engine *e, const struct ls_job *j,
	struct ls_contradictions *ret_list);

/* One of them as a sentence. */
void ls_contradiction_line(const struct ls_contradiction *c,
	char dst[LS_FINDING_SAID_BYTES]);

#endif
