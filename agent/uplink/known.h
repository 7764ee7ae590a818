/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known - which workers the collector knows, and by which number: they need not be sent
 * again.
 *
 * Owner:   the agent loop thread. Plain memory.
 * Units:   none.
 * Errors:  none: a worker that finds no place is sent again.
 * Limits:  LS_RINGS_MAX workers.
 */
#ifndef LS_AGENT_KNOWN_H
#define LS_AGENT_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/limits.h"
#include "proto/wire/wire.h"

struct ls_known_worker {
	uint8_t ring_id[LS_RING_ID_BYTES];
	uint32_t number;
};

/* Zeroed: none is known. */
struct ls_known {
	size_t count;
	struct ls_known_worker worker[LS_RINGS_MAX];
};

/* True if it is known, under the number that it has now. */
bool ls_known_has(const struct ls_known *k, const struct ls_wire_worker *w);

/* It is known from now on. Harmless when it is already. */
void ls_known_add(struct ls_known *k, const struct ls_wire_worker *w);

/* It is not known any more. Harmless when it is not. */
void ls_known_forget(struct ls_known *k, const uint8_t ring_id[LS_RING_ID_BYTES]);

/* Forgets all but those of the list, so that there is room for new ones. */
void ls_known_prune(struct ls_known *k, const struct ls_wire_worker *list,
	size_t count);

#endif
