/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif - what a job lost to stragglers, by replaying its operations with other times.
 *
 * T is the mean step without what hosts lose between operations, T* that of a job in
 * which every operation takes its reference time. S = T / T*. With only some operations
 * as they were and the rest ideal: S_op, S_dp, S_stage. A worker stands where a dp and
 * a stage cross: S_w = min(S_dp, S_stage), as published; and alone, with only its own
 * operations as they were (exact). M_W = (T - T without W) / (T - T*): the share that
 * goes away with the worst 3 % of workers, W, made ideal; M_S with the last stage.
 *
 * The reference of the published analysis is one for all workers: the mean of computes,
 * the median of transfers. It is not a bound: where stages differ by design, mending
 * one may give more than T - T*. The other reference, the median of the stage, asks who
 * is slower than its peers, not what is badly cut.
 *
 * Owner:   the caller; pure.
 * Units:   seconds; ratios. What is not defined is null.
 * Errors:  -LS_EPARSE for a trace that cannot be replayed, or whose steps take no time;
 *          -ENOMEM.
 * Limits:  those of the trace; LS_WHATIF_TOP_MAX workers are mended one by one.
 * Source:  OSDI'25, "Understanding Stragglers in Large Model Training Using What-if
 *          Analysis", sections 3, 5. The object: README.md.
 */
#ifndef LS_COLLECTOR_WHATIF_WHATIF_H
#define LS_COLLECTOR_WHATIF_WHATIF_H

#include <jansson.h>
#include "collector/whatif/whatif_trace.h"
#include "proto/limits.h"

/*
 * Answers all questions by both references, `top` of the workers one by one. `name` is
 * the trial's, or "". The durations of transfers in the trace become what the transfer
 * itself took. -LS_EPARSE, -ENOMEM.
 */
int ls_whatif_answer(struct ls_whatif_trace *t, const char *name, uint32_t top,
	json_t **ret_answer, struct ls_whatif_error *ret_error) LS_MUSTCHECK;

#endif
