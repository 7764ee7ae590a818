/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_graph - what an operation waits for: the operations of one step as nodes in
 * the order to replay.
 *
 * A node is one operation, or those that end together because they wait for each other:
 * both ends of a pipeline hop, the embedding's all-reduce of first and last stage, the
 * clip of all stages. It begins when all that its operations wait for have ended. If
 * `across` is set, it begins in all dp at once.
 *
 *   forward, backward   wait for the one before them on their worker, and for their receive
 *   send                for the compute of its number, and the send before
 *   receive             for the compute before that of its number (memory for it is free then)
 *   params-all-gather   the last of them comes before the first forward
 *   the tail            last compute, gc, layernorm, embedding, reduce-scatter, clip, optimizer; with
 *                       separate-grads-all-reduce, the reduce-scatter runs beside the computes: it waits for
 *                       the last backward, and the layernorm for it
 *
 * Pure: nothing is read but the order of the computes in the first step of dp 0.
 *
 * Owner:   the caller; not changed after it is made.
 * Units:   none.
 * Errors:  -LS_EPARSE for operations that have no other end, or wait in a circle;
 *          -ENOMEM.
 * Limits:  those of the trace.
 * Source:  OSDI'25, "Understanding Stragglers in Large Model Training Using What-if
 *          Analysis", section 3.
 */
#ifndef LS_COLLECTOR_WHATIF_WHATIF_GRAPH_H
#define LS_COLLECTOR_WHATIF_WHATIF_GRAPH_H

#include <stdbool.h>
#include "collector/whatif/whatif_trace.h"

struct ls_whatif_edge {
	uint32_t from; /* the operation that has to end */
	uint32_t next; /* the next edge into the same node, or LS_WHATIF_NONE */
};

/* An operation; and the node, if it is the least of its node's. */
struct ls_whatif_vertex {
	uint32_t lead; /* the least operation of its node */
	uint32_t next; /* the next operation of its node, or LS_WHATIF_NONE */
	uint32_t slot; /* where its end is held while somebody waits for it */
	uint32_t uses; /* edges that begin here */
	uint32_t edge; /* the node's first edge, or LS_WHATIF_NONE */
	/* for making the order: the next edge to follow; and the node that asked */
	uint32_t cursor, asker;
	bool across; /* the node waits for its twins in all dp */
	bool seen, done;
};

struct ls_whatif_graph {
	/* by operation; one more is the step's end, a node that takes no time */
	struct ls_whatif_vertex *vertices;
	struct ls_whatif_edge *edges;
	size_t edge_count, edge_capacity;
	uint32_t *order; /* nodes as they can be replayed; the last one is the end */
	uint32_t node_count, slot_count;
};

/* True if an operation's own time is a transfer: its end less the begin of the last of
 * its node. */
bool ls_whatif_is_transfer(enum ls_whatif_optype type);

/* Makes the graph of a trace, which is not needed any more afterwards. -LS_EPARSE,
 * -ENOMEM. */
int ls_whatif_graph_new(const struct ls_whatif_trace *t,
	struct ls_whatif_graph **ret_graph,
	struct ls_whatif_error *ret_error) LS_MUSTCHECK;

/* Takes NULL, too. */
void ls_whatif_graph_free(struct ls_whatif_graph *g);

#endif
