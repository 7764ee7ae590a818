/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_line - the line that MaxText logs for each training step.
 *
 *     completed step: N, seconds: S, TFLOP/s/device: X[, Tokens/s/device: Y][, ...]
 *
 * anywhere in a line, behind whatever the logger put before it. Nothing else is taken
 * for a step.
 *
 * Owner:   pure functions.
 * Units:   seconds; tokens a second and device.
 * Errors:  none: a line is one, or it is not.
 * Limits:  steps below 2^53, durations below LS_PHASE_MAX_NS.
 * Source:  MaxText, metric_logger.py, log of training metrics (since 2023; without
 *          tokens until 2024).
 */
#ifndef LS_AGENT_STEP_LINE_H
#define LS_AGENT_STEP_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ls_step_line {
	uint64_t step;
	uint64_t duration_ns;
	double tokens_rate; /* a device; NaN: not said */
};

/* Is it such a line? The text need not end with NUL, and may hold anything. */
bool ls_step_line_parse(const char *text, size_t len, struct ls_step_line *ret_line);

#endif
