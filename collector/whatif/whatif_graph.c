/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/whatif/whatif_graph.h"
#include "collector/whatif/whatif_wires.h"
#include "proto/base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Nodes are known by the least of their operations until they are in order. */
struct graph_maker {
	const struct ls_whatif_trace *t;
	const struct ls_whatif_wires *w;
	struct ls_whatif_graph *g;
	uint32_t *members; /* operations, by node: next of the same node, or NONE */
	uint32_t *waiting; /* by node: for how many edges it still waits */
	/* by operation: its first edge in out; one more at the end */
	uint32_t *first_out;
	uint32_t *out; /* edges, by the operation that they come from */
	uint32_t *ready; /* nodes that may run */
	uint32_t *free_slots;
	uint32_t *last_use; /* by operation: position in nodes */
	/* edges by the node that they go to: operations, with repeats */
	uint32_t *deps;
	uint32_t *first_in; /* by node */
	uint32_t *order; /* nodes as they run */
	/* by operation: the node that took it as a dep last, plus one */
	uint32_t *mark;
};

#define GRAPH_NONE UINT32_MAX

static bool
graph_leads(const struct graph_maker *m, uint32_t op)
{
	return m->w->leader[op] == op;
}

static int
graph_allocate(struct graph_maker *m)
{
	size_t n = (size_t)m->t->op_count + 1, edges = m->w->edge_count + 1;
	struct ls_whatif_graph *g = m->g;

	m->members = malloc(n * sizeof(uint32_t));
	m->waiting = calloc(n, sizeof(uint32_t));
	m->first_out = calloc(n + 1, sizeof(uint32_t));
	m->out = malloc(edges * sizeof(uint32_t));
	m->ready = malloc(n * sizeof(uint32_t));
	m->free_slots = malloc(n * sizeof(uint32_t));
	m->last_use = malloc(n * sizeof(uint32_t));
	m->deps = malloc(edges * sizeof(uint32_t));
	m->first_in = calloc(n + 1, sizeof(uint32_t));
	m->order = malloc(n * sizeof(uint32_t));
	m->mark = calloc(n, sizeof(uint32_t));
	g->nodes = calloc(n, sizeof(*g->nodes));
	g->deps = malloc((edges + n) * sizeof(uint32_t)); /* and those of the end */
	g->ops = malloc(n * sizeof(uint32_t));
	g->slots = malloc(n * sizeof(uint32_t));
	if (m->members == NULL || m->waiting == NULL || m->first_out == NULL ||
		m->out == NULL || m->ready == NULL || m->free_slots == NULL ||
		m->last_use == NULL || m->deps == NULL || m->first_in == NULL ||
		m->order == NULL || m->mark == NULL || g->nodes == NULL ||
		g->deps == NULL || g->ops == NULL || g->slots == NULL)
		return -ENOMEM;
	return 0;
}

static void
graph_drop(struct graph_maker *m)
{
	free(m->members);
	free(m->waiting);
	free(m->first_out);
	free(m->out);
	free(m->ready);
	free(m->free_slots);
	free(m->last_use);
	free(m->deps);
	free(m->first_in);
	free(m->order);
	free(m->mark);
}

/* Sorts the edges twice by counting: by the operation they come from, by the node they
 * go to. */
static void
graph_sort_edges(struct graph_maker *m)
{
	const struct ls_whatif_edge *e = m->w->edges;
	size_t n = m->t->op_count;

	for (size_t i = 0; i < m->w->edge_count; i++) {
		m->first_out[e[i].from + 1]++;
		m->first_in[m->w->leader[e[i].to] + 1]++;
		m->waiting[m->w->leader[e[i].to]]++;
	}
	for (size_t k = 0; k < n; k++) {
		m->first_out[k + 1] += m->first_out[k];
		m->first_in[k + 1] += m->first_in[k];
	}
	/* backwards: ends become begins */
	for (size_t i = m->w->edge_count; i-- > 0;) {
		m->out[--m->first_out[e[i].from + 1]] = m->w->leader[e[i].to];
		m->deps[--m->first_in[m->w->leader[e[i].to] + 1]] = e[i].from;
	}
	/* first_x[k + 1] is now where k begins, and that of k = n - 1 ends at the
	 * number of edges */
	memmove(m->first_out, m->first_out + 1, n * sizeof(uint32_t));
	memmove(m->first_in, m->first_in + 1, n * sizeof(uint32_t));
	m->first_out[n] = m->first_in[n] = (uint32_t)m->w->edge_count;
}

/* Lists of operations by node, least first. */
static void
graph_list_members(struct graph_maker *m)
{
	uint32_t *next = m->members;

	for (uint32_t k = m->t->op_count; k-- > 0;) {
		uint32_t lead = m->w->leader[k];

		if (lead == k)
			continue;
		/* the leader is less than k and its own link is set last: keep the
		 * chain in `mark` */
		next[k] = m->mark[lead] == 0 ? GRAPH_NONE : m->mark[lead] - 1;
		m->mark[lead] = k + 1;
	}
	for (uint32_t k = 0; k < m->t->op_count; k++) {
		if (graph_leads(m, k))
			next[k] = m->mark[k] == 0 ? GRAPH_NONE : m->mark[k] - 1;
		m->mark[k] = 0;
	}
}

static uint32_t
graph_release(struct graph_maker *m, uint32_t op, uint32_t ready_count)
{
	for (uint32_t i = m->first_out[op]; i < m->first_out[op + 1]; i++) {
		if (--m->waiting[m->out[i]] == 0)
			m->ready[ready_count++] = m->out[i];
	}
	return ready_count;
}

static int
graph_say_circle(const struct graph_maker *m, struct ls_whatif_error *ret_error)
{
	const struct ls_whatif_op *op = m->t->ops;
	uint32_t k = 0;

	while (k + 1 < m->t->op_count && (!graph_leads(m, k) || m->waiting[k] == 0))
		k++;
	return ls_whatif_bad(ret_error, 0,
		"by the order of computes in step %" PRId64
		" of dp 0, operations wait for each other in a "
		"circle: %s %" PRIu32 " of stage %" PRIu32 " never begins",
		m->t->steps[0], ls_whatif_type_name(op[k].type), op[k].seq,
		op[k].stage);
}

/*
 * What was made ready last runs first, so that few ends are held at a time (Kahn's
 * order, with a stack).
 */
static int
graph_order(struct graph_maker *m, struct ls_whatif_error *ret_error)
{
	uint32_t ready = 0, done = 0, nodes = 0;

	for (uint32_t k = m->t->op_count; k-- > 0;) {
		if (!graph_leads(m, k))
			continue;
		nodes++;
		if (m->waiting[k] == 0)
			m->ready[ready++] = k;
	}
	while (ready > 0) {
		uint32_t node = m->ready[--ready];

		m->order[done++] = node;
		for (uint32_t op = node; op != GRAPH_NONE; op = m->members[op])
			ready = graph_release(m, op, ready);
	}
	m->g->node_count = done + 1;
	return done == nodes ? 0 : graph_say_circle(m, ret_error);
}

/* Where the end of each operation is needed last; by those that nobody waits for, at
 * the step's end. */
static void
graph_find_last_use(struct graph_maker *m)
{
	for (uint32_t k = 0; k < m->t->op_count; k++)
		m->last_use[k] = m->g->node_count - 1;
	for (uint32_t i = 0; i + 1 < m->g->node_count; i++) {
		uint32_t node = m->order[i];

		for (uint32_t d = m->first_in[node]; d < m->first_in[node + 1]; d++)
			m->last_use[m->deps[d]] = i;
	}
}

/* Adds one node: its deps once each, its operations, a slot for each; then slots nobody
 * needs are free. */
static void
graph_add_node(struct graph_maker *m, uint32_t at, uint32_t *deps, uint32_t *ops,
	uint32_t *free_count)
{
	struct ls_whatif_graph *g = m->g;
	struct ls_whatif_node *n = &g->nodes[at];
	uint32_t node = m->order[at];

	*n = (struct ls_whatif_node){
		.first_dep = *deps, .first_op = *ops, .across = m->w->across[node]
	};
	for (uint32_t d = m->first_in[node]; d < m->first_in[node + 1]; d++) {
		if (m->mark[m->deps[d]] == at + 1)
			continue;
		m->mark[m->deps[d]] = at + 1;
		g->deps[(*deps)++] = g->slots[m->deps[d]];
	}
	for (uint32_t op = node; op != GRAPH_NONE; op = m->members[op]) {
		g->slots[op] = *free_count > 0 ? m->free_slots[--*free_count]
					       : g->slot_count++;
		g->ops[(*ops)++] = op;
	}
	for (uint32_t d = m->first_in[node]; d < m->first_in[node + 1]; d++) {
		uint32_t op = m->deps[d];

		if (m->last_use[op] == at && m->mark[op] == at + 1) {
			m->mark[op] = 0;
			m->free_slots[(*free_count)++] = g->slots[op];
		}
	}
	n->dep_count = *deps - n->first_dep;
	n->op_count = *ops - n->first_op;
}

static void
graph_lay_out(struct graph_maker *m)
{
	struct ls_whatif_graph *g = m->g;
	uint32_t deps = 0, ops = 0, free_count = 0, end = g->node_count - 1;

	for (uint32_t at = 0; at < end; at++)
		graph_add_node(m, at, &deps, &ops, &free_count);
	g->nodes[end] = (struct ls_whatif_node){
		.first_dep = deps, .first_op = ops, .across = true
	};
	for (uint32_t k = 0; k < m->t->op_count; k++) {
		if (m->first_out[k] == m->first_out[k + 1])
			g->deps[deps++] = g->slots[k];
	}
	g->nodes[end].dep_count = deps - g->nodes[end].first_dep;
}

int
ls_whatif_graph_new(const struct ls_whatif_trace *t, struct ls_whatif_graph **ret_graph,
	struct ls_whatif_error *ret_error)
{
	struct ls_whatif_wires w = { 0 };
	struct graph_maker m = { .t = t, .w = &w, .g = calloc(1, sizeof(*m.g)) };
	int rc = m.g == NULL ? -ENOMEM : ls_whatif_wires_init(&w, t, ret_error);

	if (rc == 0)
		rc = graph_allocate(&m);
	if (rc == 0) {
		graph_sort_edges(&m);
		graph_list_members(&m);
		rc = graph_order(&m, ret_error);
	}
	if (rc == 0) {
		graph_find_last_use(&m);
		graph_lay_out(&m);
		*ret_graph = m.g;
		m.g = NULL;
	}
	graph_drop(&m);
	ls_whatif_wires_fini(&w);
	ls_whatif_graph_free(m.g);
	return rc;
}

void
ls_whatif_graph_free(struct ls_whatif_graph *g)
{
	if (g == NULL)
		return;
	free(g->nodes);
	free(g->deps);
	free(g->ops);
	free(g->slots);
	free(g);
}
