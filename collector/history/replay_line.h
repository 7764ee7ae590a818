/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_line - one line of a replay file: parse, then check.
 *
 * Owner:   pure functions on text.
 * Units:   Unix seconds and seconds in the line; microseconds and ns in the result.
 * Errors:  -LS_EPARSE; why holds words for a person.
 * Limits:  LS_REPLAY_LINE_MAX_BYTES, LS_JSON_DEPTH_MAX.
 * Source:  proto/FORMAT.md, "Replay file".
 */
#ifndef LS_COLLECTOR_REPLAY_LINE_H
#define LS_COLLECTOR_REPLAY_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/metrics.h"
#include "proto/ring/record.h"

enum ls_line_kind {
	LS_LINE_STEP,
	LS_LINE_COUNTERS,
	LS_LINE_CLOSE,
	LS_LINE_CLOCK,
	LS_LINE_HANG,
	LS_LINE_END,
	LS_LINE_OTHER
};

#define LS_LINE_WHY_BYTES 192

struct ls_line {
	enum ls_line_kind kind;
	struct ls_worker_info who; /* counters: job, host, rank (-1: not given) */
	struct ls_record record; /* STEP: wall ns, whole microseconds */
	/* COUNTERS (received), CLOSE, CLOCK, HANG, END */
	int64_t t_us;
	enum ls_end_how how; /* END */
	int64_t read_us; /* COUNTERS */
	double uncertainty_s; /* CLOCK */
	size_t count; /* COUNTERS: values */
	uint16_t metric[LS_METRIC_COUNT];
	double value[LS_METRIC_COUNT];
	uint64_t step; /* CLOSE, HANG */
	int64_t since_us; /* HANG: at most t_us */
	uint32_t waiting; /* HANG */
	enum ls_hang_why why; /* HANG */
	/* CLOSE: not judged; HANG: not in the barrier */
	size_t rank_count;
	int32_t ranks[LS_CLOSE_MISSING_MAX];
	char unknown[64]; /* first key we do not know; "" = none */
};

/* Parses one line of len bytes; why (LS_LINE_WHY_BYTES) is set on failure. */
int ls_line_parse(const char *text, size_t len, struct ls_line *ret_line,
	char *why) LS_MUSTCHECK;

#endif
