/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/whatif/whatif_graph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* For whom an operation's end waits. */
enum graph_waits { GRAPH_NONE, GRAPH_PEER, GRAPH_DP, GRAPH_ENDS, GRAPH_ALL };

static const enum graph_waits graph_waits[] = {
#define LS_OPTYPE(id, name, part, reference, waits) GRAPH_##waits,
#include "collector/whatif/optypes.def"
#undef LS_OPTYPE
};

/* What comes after the last compute; the reduce-scatter moves before it if it overlaps.
 */
static const enum ls_whatif_optype graph_tail[] = { LS_WHATIF_GC,
	LS_WHATIF_LAYERNORM_GRADS_ALL_REDUCE, LS_WHATIF_EMBEDDING_GRADS_ALL_REDUCE,
	LS_WHATIF_GRADS_REDUCE_SCATTER, LS_WHATIF_SEPARATE_GRADS_ALL_REDUCE,
	LS_WHATIF_OPTIMIZER_CLIP, LS_WHATIF_OPTIMIZER };

bool
ls_whatif_is_transfer(enum ls_whatif_optype type)
{
	return graph_waits[type] != GRAPH_NONE;
}

/* The node of `to` waits for `from`; nothing if one of them is none. */
static void
graph_edge(struct ls_whatif_graph *g, uint32_t from, uint32_t to)
{
	struct ls_whatif_vertex *node;

	if (from == LS_WHATIF_NONE || to == LS_WHATIF_NONE)
		return;
	LS_ASSERT(g->edge_count < g->edge_capacity);
	node = &g->vertices[g->vertices[to].lead];
	g->edges[g->edge_count] = (struct ls_whatif_edge){ from, node->edge };
	node->edge = (uint32_t)g->edge_count++;
	g->vertices[from].uses++;
}

/* Operation k becomes a part of a node. Both must be nodes of their own. */
static void
graph_join(struct ls_whatif_graph *g, uint32_t lead, uint32_t k)
{
	g->vertices[k].lead = lead;
	g->vertices[k].next = g->vertices[lead].next;
	g->vertices[lead].next = k;
}

/* --- computes ------------------------------------------------------------- */

static int
graph_compare_computes(const void *a, const void *b, void *trace)
{
	const struct ls_whatif_trace *t = trace;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	double x_s = t->start_s[x * t->lane_count], y_s = t->start_s[y * t->lane_count];

	if (x_s != y_s)
		return x_s < y_s ? -1 : 1;
	return (x > y) - (x < y);
}

/* One after the other, as they began in the first step of dp 0. Returns the last. */
static uint32_t
graph_chain_computes(struct ls_whatif_graph *g, const struct ls_whatif_trace *t,
	uint32_t stage)
{
	/* forward and backward stand side by side */
	uint32_t first =
		t->base[(size_t)stage * LS_WHATIF_OPTYPES + LS_WHATIF_FORWARD_COMPUTE];
	uint32_t n = ls_whatif_count(t, stage, LS_WHATIF_FORWARD_COMPUTE) +
		ls_whatif_count(t, stage, LS_WHATIF_BACKWARD_COMPUTE);
	uint32_t *computes = g->order; /* there is no order yet */

	for (uint32_t i = 0; i < n; i++)
		computes[i] = first + i;
	qsort_r(computes, n, sizeof(*computes), graph_compare_computes, (void *)t);
	for (uint32_t i = 1; i < n; i++)
		graph_edge(g, computes[i - 1], computes[i]);
	return n > 0 ? computes[n - 1] : LS_WHATIF_NONE;
}

/* --- hops of the pipeline ------------------------------------------------- */

struct graph_hop {
	enum ls_whatif_optype compute, send, recv;
};

/* One direction between two stages: as many sends as receives as computes on both
 * sides. Both ends of a hop end together: they wait for each other. */
static int
graph_hop(const struct ls_whatif_trace *t, uint32_t from, uint32_t to,
	const struct graph_hop *hop, struct ls_whatif_graph *g,
	struct ls_whatif_error *ret_error)
{
	uint32_t n = ls_whatif_count(t, from, hop->compute);
	uint32_t sends = ls_whatif_count(t, from, hop->send);
	uint32_t recvs = ls_whatif_count(t, to, hop->recv);
	uint32_t m = ls_whatif_count(t, to, hop->compute);

	if (sends != n || recvs != n || m != n)
		return ls_whatif_bad(ret_error, 0,
			"stage %" PRIu32 " has %" PRIu32 " %s and %" PRIu32
			" %s, stage %" PRIu32 " %" PRIu32 " %s and %" PRIu32
			" %s: they must be the same number",
			from, n, ls_whatif_type_name(hop->compute), sends,
			ls_whatif_type_name(hop->send), to, recvs,
			ls_whatif_type_name(hop->recv), m,
			ls_whatif_type_name(hop->compute));
	for (uint32_t seq = 0; seq < n; seq++) {
		uint32_t send = ls_whatif_op(t, from, hop->send, seq);
		uint32_t recv = ls_whatif_op(t, to, hop->recv, seq);

		graph_join(g, send < recv ? send : recv, send < recv ? recv : send);
		graph_edge(g, ls_whatif_op(t, from, hop->compute, seq), send);
		graph_edge(g, recv, ls_whatif_op(t, to, hop->compute, seq));
		if (seq == 0)
			continue;
		/* a receive has room when the compute before has used what came before
		 */
		graph_edge(g, ls_whatif_op(t, from, hop->send, seq - 1), send);
		graph_edge(g, ls_whatif_op(t, to, hop->compute, seq - 1), recv);
	}
	return 0;
}

static int
graph_pipeline(struct ls_whatif_graph *g, const struct ls_whatif_trace *t,
	struct ls_whatif_error *ret_error)
{
	static const struct graph_hop forward = { LS_WHATIF_FORWARD_COMPUTE,
		LS_WHATIF_FORWARD_SEND, LS_WHATIF_FORWARD_RECV };
	static const struct graph_hop backward = { LS_WHATIF_BACKWARD_COMPUTE,
		LS_WHATIF_BACKWARD_SEND, LS_WHATIF_BACKWARD_RECV };
	uint32_t last = t->stage_count - 1;
	/* At the ends of the pipeline nobody is there to send to or receive from. */
	const struct ls_whatif_op ends[] = { { LS_WHATIF_FORWARD_RECV, 0, 0 },
		{ LS_WHATIF_BACKWARD_SEND, 0, 0 }, { LS_WHATIF_FORWARD_SEND, last, 0 },
		{ LS_WHATIF_BACKWARD_RECV, last, 0 } };
	int rc = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (ls_whatif_count(t, ends[i].stage, ends[i].type) > 0)
			return ls_whatif_bad(ret_error, 0,
				"stage %" PRIu32 " of %" PRIu32
				" has %s, without its counterpart",
				ends[i].stage, t->stage_count,
				ls_whatif_type_name(ends[i].type));
	}
	for (uint32_t s = 0; rc == 0 && s < last; s++) {
		rc = graph_hop(t, s, s + 1, &forward, g, ret_error);
		if (rc == 0)
			rc = graph_hop(t, s + 1, s, &backward, g, ret_error);
	}
	return rc;
}

/* --- beginning and end of a step ------------------------------------------ */

/* Chains all operations of a type behind one; returns the last of them. */
static uint32_t
graph_chain(struct ls_whatif_graph *g, const struct ls_whatif_trace *t, uint32_t stage,
	enum ls_whatif_optype type, uint32_t last)
{
	uint32_t n = ls_whatif_count(t, stage, type);

	for (uint32_t seq = 0; seq < n; seq++) {
		uint32_t k = ls_whatif_op(t, stage, type, seq);

		graph_edge(g, last, k);
		last = k;
	}
	return last;
}

/* Beside the computes: the reduce-scatter behind the last backward. */
static void
graph_overlapping(struct ls_whatif_graph *g, const struct ls_whatif_trace *t,
	uint32_t stage)
{
	uint32_t n = ls_whatif_count(t, stage, LS_WHATIF_BACKWARD_COMPUTE);
	uint32_t last = ls_whatif_op(t, stage, LS_WHATIF_BACKWARD_COMPUTE, n - 1);

	last = graph_chain(g, t, stage, LS_WHATIF_GRADS_REDUCE_SCATTER, last);
	/* the layernorm waits for it; without one, what comes next in the tail would */
	graph_edge(g, last,
		ls_whatif_op(t, stage, LS_WHATIF_LAYERNORM_GRADS_ALL_REDUCE, 0));
	graph_edge(g, last,
		ls_whatif_op(t, stage, LS_WHATIF_SEPARATE_GRADS_ALL_REDUCE, 0));
}

static void
graph_stage(struct ls_whatif_graph *g, const struct ls_whatif_trace *t, uint32_t stage)
{
	bool overlaps =
		ls_whatif_count(t, stage, LS_WHATIF_SEPARATE_GRADS_ALL_REDUCE) > 0;
	uint32_t last = graph_chain_computes(g, t, stage);
	uint32_t head =
		graph_chain(g, t, stage, LS_WHATIF_PARAMS_ALL_GATHER, LS_WHATIF_NONE);

	graph_edge(g, head, ls_whatif_op(t, stage, LS_WHATIF_FORWARD_COMPUTE, 0));
	if (overlaps)
		graph_overlapping(g, t, stage);
	for (size_t i = 0; i < sizeof(graph_tail) / sizeof(graph_tail[0]); i++) {
		if (!overlaps || graph_tail[i] != LS_WHATIF_GRADS_REDUCE_SCATTER)
			last = graph_chain(g, t, stage, graph_tail[i], last);
	}
}

/* Nodes of operations that wait for each other in several stages, or in all dp. */
static void
graph_across(struct ls_whatif_graph *g, const struct ls_whatif_trace *t)
{
	for (uint32_t k = 0; k < t->op_count; k++) {
		const struct ls_whatif_op *op = &t->ops[k];
		enum graph_waits waits = graph_waits[op->type];
		uint32_t stages = waits == GRAPH_ALL ? op->stage : 0;

		g->vertices[k].across = waits == GRAPH_DP || waits == GRAPH_ALL;
		if (waits == GRAPH_ENDS && op->stage == t->stage_count - 1)
			stages = op->stage > 0;
		for (uint32_t s = 0; s < stages && g->vertices[k].lead == k; s++) {
			uint32_t twin = ls_whatif_op(t, s, op->type, op->seq);

			if (twin != LS_WHATIF_NONE)
				graph_join(g, twin, k);
		}
	}
}

/* --- the order ------------------------------------------------------------ */

/* Puts a node behind all that it waits for, depth first. */
static int
graph_visit(struct ls_whatif_graph *g, const struct ls_whatif_trace *t, uint32_t node,
	struct ls_whatif_error *ret_error)
{
	struct ls_whatif_vertex *v = g->vertices;
	uint32_t asker = LS_WHATIF_NONE, edge;

	for (;;) {
		if (!v[node].seen) {
			v[node].seen = true;
			v[node].asker = asker;
			v[node].cursor = v[node].edge;
		} else if (!v[node].done) {
			return ls_whatif_bad(ret_error, 0,
				"by the order of computes in step %" PRId64
				" of dp 0, operations wait for each other in a "
				"circle: %s %" PRIu32 " of stage %" PRIu32
				" never begins",
				t->steps[0], ls_whatif_type_name(t->ops[node].type),
				t->ops[node].seq, t->ops[node].stage);
		} else {
			node = asker;
		}
		while (node != LS_WHATIF_NONE && v[node].cursor == LS_WHATIF_NONE) {
			g->order[g->node_count++] = node;
			v[node].done = true;
			node = v[node].asker;
		}
		if (node == LS_WHATIF_NONE)
			return 0;
		edge = v[node].cursor;
		v[node].cursor = g->edges[edge].next;
		asker = node;
		node = v[g->edges[edge].from].lead;
	}
}

/* All nodes, the end last: what it does not wait for waits in a circle. */
static int
graph_order(struct ls_whatif_graph *g, const struct ls_whatif_trace *t,
	struct ls_whatif_error *ret_error)
{
	int rc = 0;

	for (uint32_t k = 0; k < t->op_count; k++) {
		if (g->vertices[k].uses == 0)
			graph_edge(g, k, t->op_count);
	}
	for (uint32_t k = t->op_count + 1; rc == 0 && k-- > 0;) {
		if (g->vertices[k].lead == k && !g->vertices[k].done)
			rc = graph_visit(g, t, k, ret_error);
	}
	return rc;
}

/* A slot for each operation, of one whose end nobody waits for any more if there is
 * one. */
static void
graph_set_slots(struct ls_whatif_graph *g)
{
	struct ls_whatif_vertex *v = g->vertices;
	uint32_t unused = LS_WHATIF_NONE; /* a list of such operations, by asker */

	for (uint32_t i = 0; i < g->node_count; i++) {
		for (uint32_t k = g->order[i]; k != LS_WHATIF_NONE; k = v[k].next) {
			v[k].slot = unused == LS_WHATIF_NONE ? g->slot_count++
							     : v[unused].slot;
			if (unused != LS_WHATIF_NONE)
				unused = v[unused].asker;
		}
		for (uint32_t e = v[g->order[i]].edge; e != LS_WHATIF_NONE;
			e = g->edges[e].next) {
			uint32_t from = g->edges[e].from;

			if (--v[from].uses == 0) {
				v[from].asker = unused;
				unused = from;
			}
		}
	}
}

int
ls_whatif_graph_new(const struct ls_whatif_trace *t, struct ls_whatif_graph **ret_graph,
	struct ls_whatif_error *ret_error)
{
	struct ls_whatif_graph *g = calloc(1, sizeof(*g));
	size_t n = (size_t)t->op_count + 1;
	int rc = -ENOMEM;

	if (g == NULL)
		return rc;
	/* in chains one an operation, in hops two, to the end one; three a stage */
	g->edge_capacity = 4 * n + 3 * (size_t)t->stage_count;
	g->vertices = malloc(n * sizeof(*g->vertices));
	g->edges = malloc(g->edge_capacity * sizeof(*g->edges));
	g->order = malloc(n * sizeof(*g->order));
	if (g->vertices == NULL || g->edges == NULL || g->order == NULL)
		goto out;
	for (uint32_t k = 0; k < n; k++)
		g->vertices[k] = (struct ls_whatif_vertex){
			.lead = k, .next = LS_WHATIF_NONE, .edge = LS_WHATIF_NONE
		};
	g->vertices[t->op_count].across = true;
	graph_across(g, t);
	rc = graph_pipeline(g, t, ret_error);
	if (rc != 0)
		goto out;
	for (uint32_t stage = 0; stage < t->stage_count; stage++)
		graph_stage(g, t, stage);
	rc = graph_order(g, t, ret_error);
	if (rc != 0)
		goto out;
	graph_set_slots(g);
	*ret_graph = g;
	g = NULL;
out:
	ls_whatif_graph_free(g);
	return rc;
}

void
ls_whatif_graph_free(struct ls_whatif_graph *g)
{
	if (g == NULL)
		return;
	free(g->vertices);
	free(g->edges);
	free(g->order);
	free(g);
}
