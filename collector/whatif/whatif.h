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
 * Units:   seconds; ratios. What is not defined is NaN.
 * Errors:  -LS_EPARSE for a trace that cannot be replayed, -LS_ERANGE if its steps take
 *          no time, -ENOMEM.
 * Limits:  those of the trace; LS_WHATIF_TOP_MAX workers are mended one by one.
 * Source:  OSDI'25, "Understanding Stragglers in Large Model Training Using What-if
 *          Analysis", sections 3, 5.
 */
#ifndef LS_COLLECTOR_WHATIF_WHATIF_H
#define LS_COLLECTOR_WHATIF_WHATIF_H

#include "collector/whatif/whatif_replay.h"
#include "proto/limits.h"

/* A reference: what stands for "ideal". */
enum ls_whatif_reference {
	LS_WHATIF_ALL_MEAN, /* as published */
	LS_WHATIF_STAGE_MEDIAN /* the median of each operation type of the stage */
};

/* One worker, made ideal alone. */
struct ls_whatif_top {
	uint32_t worker;
	double without_s; /* mean step without its own slowness */
};

/* What one reference says. Arrays are by number of dp, stage or worker (stage x
 * dp_count + dp). */
struct ls_whatif_result {
	double ideal_s, s, m_w, m_s;
	/* (T* with only those as they were - T*) / (T - T*): the cross-check */
	double m_w_added, m_s_added;
	/* by the first type of a part; NaN for the others, and if absent */
	double s_op[LS_WHATIF_OPTYPES];
	double *s_dp, *s_stage, *s_worker, *s_alone;
	/* The dp and the stage that alone cost most in the most steps, and in how many.
	 */
	uint32_t first_dp, first_dp_steps, first_stage, first_stage_steps;
	/* by S_w, greatest first; equal ones by rank */
	struct ls_whatif_top top[LS_WHATIF_TOP_MAX];
	uint32_t top_count;
	uint32_t worst_count; /* how many workers W are */
};

struct ls_whatif;

/* Takes the trace apart; it must outlive what is made. */
int ls_whatif_new(const struct ls_whatif_trace *t, struct ls_whatif **ret_whatif,
	struct ls_whatif_error *ret_error) LS_MUSTCHECK;
void ls_whatif_free(struct ls_whatif *w);

/* Means over steps: as measured, and replayed with own times (T). */
double ls_whatif_measured_s(const struct ls_whatif *w);
double ls_whatif_replayed_s(const struct ls_whatif *w);

/* Answers all questions by one reference, `top` of the workers one by one. -LS_ERANGE,
 * -ENOMEM. */
int ls_whatif_ask(struct ls_whatif *w, enum ls_whatif_reference reference, uint32_t top,
	struct ls_whatif_result *ret_result) LS_MUSTCHECK;
void ls_whatif_result_fini(struct ls_whatif_result *result);

/* The name of the part in S_op that a type belongs to, and the first type of that part.
 */
const char *ls_whatif_part_name(enum ls_whatif_optype type);
enum ls_whatif_optype ls_whatif_part(enum ls_whatif_optype type);

#endif
