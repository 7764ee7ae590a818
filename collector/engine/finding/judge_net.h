/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_net - the subject of a finding about collectives: all workers, a slice, one link, or a host.
 *
 * Where a step is one program, its collectives inside, a worker's own work shows in no
 * mark: all come to the barrier at once and wait for most of the step. One that is kept
 * from a CPU then makes the collective longer for all; its counters alone tell.
 *
 * Owner:   the engine.
 * Units:   microseconds since the epoch.
 * Errors:  none.
 * Limits:  a net's finding speaks of one subject; it is chosen when it opens, and a
 *          host also later, when its counters are there. They are kept for a minute,
 *          and must tell of the time before: steps of more than three seconds are too
 *          long for that.
 * Source:  recorded JAX jobs of one program (tests/record/README.md, jax_fused_*).
 */
#ifndef LS_COLLECTOR_JUDGE_NET_H
#define LS_COLLECTOR_JUDGE_NET_H

#include "collector/engine/engine_state.h"

/* The subject of a net's finding: what tells it from others, and with where steps come from. */
struct ls_finding ls_judge_net_subject(const struct ls_engine *e,
	const struct ls_job *j, size_t at);

/* Chooses it, when the first channel of the net becomes a finding. */
void ls_judge_net_choose(const struct ls_engine *e, struct ls_job *j, size_t at,
	int64_t now_us);

/* One that speaks of all: does it speak of a host now? Asked now and then as long as
 * the net is found. */
bool ls_judge_net_rename(const struct ls_engine *e, struct ls_job *j, size_t at,
	int64_t now_us);

/*
 * Is there evidence of a link? One pair waits for each other longer; slices wait for
 * each other, over the data-centre network; or hosts send more segments again, enough to
 * explain the time. Else what takes longer is inside the program, as far as is known.
 */
bool ls_judge_net_is_link(const struct ls_engine *e, const struct ls_job *j,
	struct ls_suspect who, const struct ls_detect_channel *ch, int64_t now_us);

#endif
