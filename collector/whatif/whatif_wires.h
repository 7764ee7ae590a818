/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_wires - who waits for whom among the operations of one step; used by
 * whatif_graph only.
 *
 * Owner:   the caller; pure.
 * Units:   none.
 * Errors:  -LS_EPARSE for operations that have no other end; -ENOMEM.
 * Limits:  those of the trace; a few edges an operation.
 * Source:  whatif_graph.h.
 */
#ifndef LS_COLLECTOR_WHATIF_WHATIF_WIRES_H
#define LS_COLLECTOR_WHATIF_WHATIF_WIRES_H

#include <stdbool.h>
#include "collector/whatif/whatif_trace.h"

struct ls_whatif_edge {
	uint32_t from, to; /* operations */
};

struct ls_whatif_wires {
	struct ls_whatif_edge *edges;
	size_t edge_count, edge_capacity;
	/* by operation: the least of those that end together with it */
	uint32_t *leader;
	bool *across; /* by operation: it ends together with its twins in all dp */
};

/* Finds them all. Call _fini whatever is returned. -LS_EPARSE, -ENOMEM. */
int ls_whatif_wires_init(struct ls_whatif_wires *w, const struct ls_whatif_trace *t,
	struct ls_whatif_error *ret_error) LS_MUSTCHECK;

/* Drops them. */
void ls_whatif_wires_fini(struct ls_whatif_wires *w);

#endif
