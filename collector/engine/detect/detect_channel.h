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

/* The one place where a level changes. */
void ls_detect_set_level(struct ls_detect *d, struct ls_detect_channel *ch,
	enum ls_detect_level to);

/* Adds to the statistic, and the step's excess to the episode, from when C leaves 0 until it is 0 (a finding: is over). */
void ls_detect_accumulate(struct ls_detect *d, struct ls_detect_channel *ch, double add,
	double cap, double excess_s, uint64_t step, int64_t t_us);

/* Makes a channel suspect or quiet, and ends its finding (of stalls: ls_detect_stall). True: it is suspect. */
bool ls_detect_relax(struct ls_detect *d, struct ls_detect_channel *ch, double suspect,
	uint32_t calm_steps);

/* What stalls are, and how much they say. */
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
