/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_events - the events block of a step ring: what a runtime did beside the steps,
 * by function.
 *
 * A ring whose header_bytes reach to its end has the block; others have none.
 * Little-endian. Layout, from LS_RING_EVENTS_OFFSET of the file (byte example:
 * proto/FORMAT.md):
 *
 *   0     u64 measured: bit i = counter i is kept (else it is 0 and means nothing)
 *   8     u64 counter[15]: ring_events.def; the rest is room for more
 *   128   functions[LS_RING_FUNCTIONS_MAX]: u64 compilations  u64 ns  char name[96], NUL-terminated UTF-8
 *   3712  0, to 4096
 *
 * Counters only grow, each by single stores of 8 bytes; a function's name is there
 * before its first compilation is counted. Two counters of one moment need not fit each
 * other.
 *
 * Owner:   pure functions on bytes.
 * Units:   counts; ns.
 * Errors:  -LS_EPARSE fewer bytes than a block.
 * Limits:  LS_RING_FUNCTIONS_MAX.
 */
#ifndef LS_PROTO_RING_EVENTS_H
#define LS_PROTO_RING_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"
#include "proto/metrics.h"

#define LS_RING_EVENTS_OFFSET 4096u
#define LS_RING_EVENTS_BYTES 4096u

enum ls_ring_event {
#define LS_RING_EVENT(id, metric, unit, help) LS_RING_EVENT_##id,
#include "proto/ring/ring_events.def"
#undef LS_RING_EVENT
	LS_RING_EVENT_COUNT
};

struct ls_ring_function {
	uint64_t compiles, ns;
	char name[LS_RING_FUNCTION_NAME_MAX_BYTES];
};

struct ls_ring_events {
	bool measured[LS_RING_EVENT_COUNT];
	uint64_t counter[LS_RING_EVENT_COUNT];
	size_t function_count; /* those with a count and a name */
	size_t bad_names; /* with a count, and no name: left out */
	struct ls_ring_function function[LS_RING_FUNCTIONS_MAX];
};

/* The metric of a counter, and how many of it make one of the metric's unit. */
enum ls_metric ls_ring_event_metric(enum ls_ring_event event, double *ret_unit);

/* Reads a block of len bytes. */
int ls_ring_parse_events(const uint8_t *bytes, size_t len,
	struct ls_ring_events *ret_events) LS_MUSTCHECK;

#endif
