/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect_channel - one statistic that grows with evidence, and its way from quiet to
 * finding and back; alike for workers and for what joins them. Shared by the parts of
 * detect, and nobody else.
 *
 * Owner:   a detector (detect.h).
 * Units:   nats; seconds for excess; steps.
 * Errors:  none.
 * Limits:  none.
 * Source:  detect.h.
 */
#ifndef LS_COLLECTOR_DETECT_CHANNEL_H
#define LS_COLLECTOR_DETECT_CHANNEL_H

#include "collector/engine/detect/detect.h"

#define LS_DETECT_SIGMA_FLOOR 0.003 /* ratio to the step time */
#define LS_DETECT_COMM_FINDING 30.0
#define LS_DETECT_CLIP 3.0 /* one step's vote, in long-run sigmas */
/* of the step time; 2 % of own work is to be found */
#define LS_DETECT_MIN_RATIO 0.01

/* The one place where a level changes. */
void ls_detect_set_level(struct ls_detect *d, struct ls_detect_channel *ch,
	enum ls_detect_level to);

/* Adds to the statistic and keeps the episode: it begins when C leaves the floor and
 * ends there. */
void ls_detect_accumulate(struct ls_detect *d, struct ls_detect_channel *ch, double add,
	double cap, double floor_nats, uint64_t step, int64_t t_us);

/* Suspect, and the way back from suspect and finding, alike for all channels. */
void ls_detect_relax(struct ls_detect *d, struct ls_detect_channel *ch, double suspect,
	uint32_t calm_steps);

/* What stalls are, and how much they say: of 1 in 50 steps against
 * LS_DETECT_STALL_RATE. */
#define LS_DETECT_STALL_RATE (1.0 / 500)
#define LS_DETECT_STALL_SAYS 2.3 /* log likelihood ratio of one */
struct ls_detect_stalls {
	double least_s; /* so much longer is one */
	double says, finding;
};

/* One step of a Bernoulli CUSUM, that took excess_s longer; last_step of the episode is
 * that of the last stall. */
void ls_detect_stall(struct ls_detect *d, struct ls_detect_channel *ch,
	const struct ls_detect_stalls *stalls, double excess_s, uint64_t step,
	int64_t t_us);

/* The nets of one step, and who waits to send; residual[n] of the workers. */
void ls_detect_nets(struct ls_detect *d, uint64_t step, int64_t t_us,
	const struct ls_blame *residual, size_t n, struct ls_blame_step *totals);

#endif
