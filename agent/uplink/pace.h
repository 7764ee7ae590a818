/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace - how much of stream two may be sent now, so that agents that come back do not
 * swamp the collector.
 *
 * Every byte that is pushed brings the allowance to send one: so fresh chunks never
 * wait for long. On top comes the rate of back-fill, by which what waited gets through.
 * It begins with nothing, since many agents come back at once, and never exceeds one
 * report.
 *
 * Owner:   pure functions on the caller's struct.
 * Units:   bytes; ns, CLOCK_MONOTONIC.
 * Errors:  none.
 * Limits:  LS_REPORT_CHUNK_BYTES; time counts for at most LS_BEAT_MAX_NS between two
 *          reckonings.
 */
#ifndef LS_AGENT_PACE_H
#define LS_AGENT_PACE_H

#include <stdint.h>

struct ls_pace {
	int64_t allowance_bytes; /* negative: sent in advance */
	uint64_t t_mono_ns, pushed_bytes;
};

/* Begins with nothing; pushed_bytes is a sum that only grows. */
void ls_pace_start(struct ls_pace *p, uint64_t now_mono_ns, uint64_t pushed_bytes);

/* Adds what time and pushes bring; how much may be sent now, 0 if nothing. */
uint64_t ls_pace_reckon(struct ls_pace *p, uint64_t rate_bytes_per_s,
	uint64_t now_mono_ns, uint64_t pushed_bytes);

/* So much was sent; may be more than was allowed. */
void ls_pace_spend(struct ls_pace *p, uint64_t bytes);

#endif
