/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_arbiter - which of several claims about one thing is shown, and until when.
 *
 * Several detectors see one fault. The first in this order that still sees it is shown:
 *
 *     of workers   what joins them (a slice, rack, shard, host, stage) > the host that a net's
 *                  counters name > the worker, by the first of its channels in the order of enum
 *                  ls_detect_kind > its period
 *     of the job   a worker or group that is found > all wait for a collective > somebody else each
 *                  time (rotation; not during a standstill) > all steps take longer
 *
 * Standstills and contradictions of identity are findings of their own, beside all others. A finding
 * stays open while any claim holds it, whichever opened it.
 *
 * Owner:   the engine's thread. Pure: it changes nothing.
 * Units:   none.
 * Errors:  none.
 * Limits:  none of its own.
 * Source:  design section 7.
 */
#ifndef LS_COLLECTOR_JUDGE_ARBITER_H
#define LS_COLLECTOR_JUDGE_ARBITER_H

#include "collector/engine/engine_state.h"

/* Does any detector still say what the finding says? */
bool ls_arbiter_holds(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_finding *f);

/* Is what is found of this worker told of the host that a net names? */
bool ls_arbiter_is_of_net(const struct ls_job *j, struct ls_suspect who);

/*
 * Does an earlier kind of channel, which tells more, still find what this finding is about? Of a
 * group: of any of its members, perhaps.
 */
bool ls_arbiter_is_of_earlier(const struct ls_job *j, struct ls_suspect who,
	const struct ls_finding *f, enum ls_detect_kind kind);

/* Is what a period, or a rotation (slot SIZE_MAX), says told by another claim about the same subject? */
bool ls_arbiter_is_of_other(const struct ls_engine *e, const struct ls_job *j,
	size_t slot, const struct ls_finding *subject, enum ls_detect_kind kind);

#endif
