/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_state - what agent.c and agent_read.c share: the items of a stream. For these
 * two alone.
 *
 * Owner:   the thread of the fleet.
 * Units:   bytes, counts.
 * Errors:  -ENOMEM.
 * Limits:  the callers keep to SIM_STEP_ITEMS_MAX and SIM_CHUNK_ITEMS_MAX.
 */
#ifndef LS_TESTS_SIM_AGENT_STATE_H
#define LS_TESTS_SIM_AGENT_STATE_H

#include "deploy/demo/sim/agent.h"

/* One encoded item, kept until it is acknowledged. */
struct sim_item {
	struct sim_item *next;
	uint64_t seq;
	uint32_t len;
	uint32_t worth; /* records or samples in it */
	/* of the ring: records below are done with once this is stored */
	uint64_t end_index;
	uint8_t data[];
};

/* Appends an encoded item (copied); it takes the next number of the stream. */
int sim_agent_push(struct sim_stream *s, const uint8_t *bytes, size_t len,
	uint64_t worth, uint64_t end_index) LS_MUSTCHECK;

#endif
