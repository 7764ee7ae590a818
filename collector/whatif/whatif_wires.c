/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/whatif/whatif_wires.h"
#include "collector/whatif/whatif_graph.h"
#include "proto/base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* For whom an operation's end waits. */
enum wires_waits { WIRES_NONE, WIRES_PEER, WIRES_DP, WIRES_ENDS, WIRES_ALL };

static const enum wires_waits wires_waits[] = {
#define LS_OPTYPE(id, name, part, reference, waits) WIRES_##waits,
#include "collector/whatif/optypes.def"
#undef LS_OPTYPE
};

/* What comes after the last compute; the reduce-scatter moves before it if it overlaps.
 */
static const enum ls_whatif_optype wires_tail[] = { LS_WHATIF_GC,
	LS_WHATIF_LAYERNORM_GRADS_ALL_REDUCE, LS_WHATIF_EMBEDDING_GRADS_ALL_REDUCE,
	LS_WHATIF_GRADS_REDUCE_SCATTER, LS_WHATIF_SEPARATE_GRADS_ALL_REDUCE,
	LS_WHATIF_OPTIMIZER_CLIP, LS_WHATIF_OPTIMIZER };

/* A compute and when it began. */
struct wires_compute {
	double start_s;
	uint32_t op;
};

#define WIRES_NO_OP UINT32_MAX

bool
ls_whatif_is_transfer(enum ls_whatif_optype type)
{
	return wires_waits[type] != WIRES_NONE;
}

static uint32_t
wires_count(const struct ls_whatif_trace *t, uint32_t stage, enum ls_whatif_optype type)
{
	size_t kind = (size_t)stage * LS_WHATIF_OPTYPES + type;

	return t->base[kind + 1] - t->base[kind];
}

/* The operation of this number, or WIRES_NO_OP. */
static uint32_t
wires_op(const struct ls_whatif_trace *t, uint32_t stage, enum ls_whatif_optype type,
	uint32_t seq)
{
	if (seq >= wires_count(t, stage, type))
		return WIRES_NO_OP;
	return t->base[(size_t)stage * LS_WHATIF_OPTYPES + type] + seq;
}

/* `to` waits for `from`; nothing if one of them is none. */
static int
wires_edge(struct ls_whatif_wires *w, uint32_t from, uint32_t to)
{
	int rc;

	if (from == WIRES_NO_OP || to == WIRES_NO_OP)
		return 0;
	rc = ls_mem_grow((void **)&w->edges, w->edge_count, &w->edge_capacity,
		sizeof(*w->edges));
	if (rc == 0)
		w->edges[w->edge_count++] = (struct ls_whatif_edge){ from, to };
	return rc;
}

/* --- computes ------------------------------------------------------------- */

static int
wires_compare_computes(const void *a, const void *b)
{
	const struct wires_compute *x = a, *y = b;

	if (x->start_s != y->start_s)
		return x->start_s < y->start_s ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

/* One after the other, as they began in the first step of dp 0; *ret_last is the last.
 */
static int
wires_chain_computes(struct ls_whatif_wires *w, const struct ls_whatif_trace *t,
	uint32_t stage, uint32_t *ret_last)
{
	uint32_t first =
		t->base[(size_t)stage * LS_WHATIF_OPTYPES + LS_WHATIF_FORWARD_COMPUTE];
	uint32_t n = wires_count(t, stage, LS_WHATIF_FORWARD_COMPUTE) +
		wires_count(t, stage,
			LS_WHATIF_BACKWARD_COMPUTE); /* they stand side by side */
	struct wires_compute *c = malloc((n + 1) * sizeof(*c));
	int rc = c == NULL ? -ENOMEM : 0;

	*ret_last = WIRES_NO_OP;
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		c[i] = (struct wires_compute){ t->start_s[(first + i) * t->lane_count],
			first + i };
	if (rc == 0 && n > 0) {
		qsort(c, n, sizeof(*c), wires_compare_computes);
		*ret_last = c[n - 1].op;
	}
	for (uint32_t i = 1; rc == 0 && i < n; i++)
		rc = wires_edge(w, c[i - 1].op, c[i].op);
	free(c);
	return rc;
}

/* --- hops of the pipeline ------------------------------------------------- */

struct wires_hop {
	enum ls_whatif_optype compute, send, recv;
};

/* A receive has room when the compute before has used what came before. */
static int
wires_receive(struct ls_whatif_wires *w, const struct ls_whatif_trace *t,
	uint32_t stage, const struct wires_hop *hop, uint32_t seq)
{
	uint32_t recv = wires_op(t, stage, hop->recv, seq);
	int rc = wires_edge(w, recv, wires_op(t, stage, hop->compute, seq));

	if (rc == 0 && seq > 0)
		rc = wires_edge(w, wires_op(t, stage, hop->compute, seq - 1), recv);
	return rc;
}

static int
wires_send(struct ls_whatif_wires *w, const struct ls_whatif_trace *t, uint32_t stage,
	const struct wires_hop *hop, uint32_t seq)
{
	uint32_t send = wires_op(t, stage, hop->send, seq);
	int rc = wires_edge(w, wires_op(t, stage, hop->compute, seq), send);

	if (rc == 0 && seq > 0)
		rc = wires_edge(w, wires_op(t, stage, hop->send, seq - 1), send);
	return rc;
}

/* Both ends of a hop end together: they wait for each other. */
static int
wires_hop(struct ls_whatif_wires *w, const struct ls_whatif_trace *t, uint32_t from,
	uint32_t to, const struct wires_hop *hop)
{
	uint32_t n = wires_count(t, from, hop->compute);
	int rc = 0;

	for (uint32_t seq = 0; rc == 0 && seq < n; seq++) {
		uint32_t send = wires_op(t, from, hop->send, seq);
		uint32_t recv = wires_op(t, to, hop->recv, seq);

		w->leader[send] = w->leader[recv] = send < recv ? send : recv;
		rc = wires_send(w, t, from, hop, seq);
		if (rc == 0)
			rc = wires_receive(w, t, to, hop, seq);
	}
	return rc;
}

/* One direction between two stages: as many sends as receives as computes on both
 * sides. */
static int
wires_check_hop(const struct ls_whatif_trace *t, uint32_t from, uint32_t to,
	const struct wires_hop *hop, struct ls_whatif_error *ret_error)
{
	uint32_t n = wires_count(t, from, hop->compute),
		 sends = wires_count(t, from, hop->send);
	uint32_t recvs = wires_count(t, to, hop->recv),
		 m = wires_count(t, to, hop->compute);

	if (sends == n && recvs == n && m == n)
		return 0;
	return ls_whatif_bad(ret_error, 0,
		"stage %" PRIu32 " has %" PRIu32 " %s and %" PRIu32
		" %s, stage %" PRIu32 " %" PRIu32 " %s and %" PRIu32
		" %s: they must be the same number",
		from, n, ls_whatif_type_name(hop->compute), sends,
		ls_whatif_type_name(hop->send), to, recvs,
		ls_whatif_type_name(hop->recv), m, ls_whatif_type_name(hop->compute));
}

/* At the ends of the pipeline nobody is there to send to or receive from. */
static int
wires_check_end(const struct ls_whatif_trace *t, uint32_t stage,
	enum ls_whatif_optype type, struct ls_whatif_error *ret_error)
{
	if (wires_count(t, stage, type) == 0)
		return 0;
	return ls_whatif_bad(ret_error, 0,
		"stage %" PRIu32 " of %" PRIu32 " has %s, without its counterpart",
		stage, t->stage_count, ls_whatif_type_name(type));
}

static int
wires_pipeline(struct ls_whatif_wires *w, const struct ls_whatif_trace *t,
	struct ls_whatif_error *ret_error)
{
	static const struct wires_hop forward = { LS_WHATIF_FORWARD_COMPUTE,
		LS_WHATIF_FORWARD_SEND, LS_WHATIF_FORWARD_RECV };
	static const struct wires_hop backward = { LS_WHATIF_BACKWARD_COMPUTE,
		LS_WHATIF_BACKWARD_SEND, LS_WHATIF_BACKWARD_RECV };
	uint32_t last = t->stage_count - 1;
	int rc = wires_check_end(t, 0, LS_WHATIF_FORWARD_RECV, ret_error);

	if (rc == 0)
		rc = wires_check_end(t, 0, LS_WHATIF_BACKWARD_SEND, ret_error);
	if (rc == 0)
		rc = wires_check_end(t, last, LS_WHATIF_FORWARD_SEND, ret_error);
	if (rc == 0)
		rc = wires_check_end(t, last, LS_WHATIF_BACKWARD_RECV, ret_error);
	for (uint32_t s = 0; rc == 0 && s < last; s++) {
		rc = wires_check_hop(t, s, s + 1, &forward, ret_error);
		if (rc == 0)
			rc = wires_check_hop(t, s + 1, s, &backward, ret_error);
		if (rc == 0)
			rc = wires_hop(w, t, s, s + 1, &forward);
		if (rc == 0)
			rc = wires_hop(w, t, s + 1, s, &backward);
	}
	return rc;
}

/* --- beginning and end of a step ------------------------------------------ */

/* Chains all operations of a type behind *last, which moves to the last of them. */
static int
wires_chain(struct ls_whatif_wires *w, const struct ls_whatif_trace *t, uint32_t stage,
	enum ls_whatif_optype type, uint32_t *last)
{
	uint32_t n = wires_count(t, stage, type);
	int rc = 0;

	for (uint32_t seq = 0; rc == 0 && seq < n; seq++) {
		rc = wires_edge(w, *last, wires_op(t, stage, type, seq));
		*last = wires_op(t, stage, type, seq);
	}
	return rc;
}

static int
wires_head(struct ls_whatif_wires *w, const struct ls_whatif_trace *t, uint32_t stage)
{
	uint32_t last = WIRES_NO_OP;
	int rc = wires_chain(w, t, stage, LS_WHATIF_PARAMS_ALL_GATHER, &last);

	return rc != 0
		? rc
		: wires_edge(w, last, wires_op(t, stage, LS_WHATIF_FORWARD_COMPUTE, 0));
}

/* Beside the computes: the reduce-scatter behind the last backward. */
static int
wires_overlapping(struct ls_whatif_wires *w, const struct ls_whatif_trace *t,
	uint32_t stage)
{
	uint32_t n = wires_count(t, stage, LS_WHATIF_BACKWARD_COMPUTE), last;
	int rc;

	last = n > 0 ? wires_op(t, stage, LS_WHATIF_BACKWARD_COMPUTE, n - 1)
		     : WIRES_NO_OP;
	rc = wires_chain(w, t, stage, LS_WHATIF_GRADS_REDUCE_SCATTER, &last);
	/* the layernorm waits for it; without one, what comes next in the tail would */
	if (rc == 0)
		rc = wires_edge(w, last,
			wires_op(t, stage, LS_WHATIF_LAYERNORM_GRADS_ALL_REDUCE, 0));
	return rc != 0
		? rc
		: wires_edge(w, last,
			  wires_op(t, stage, LS_WHATIF_SEPARATE_GRADS_ALL_REDUCE, 0));
}

static int
wires_stage(struct ls_whatif_wires *w, const struct ls_whatif_trace *t, uint32_t stage)
{
	bool overlaps = wires_count(t, stage, LS_WHATIF_SEPARATE_GRADS_ALL_REDUCE) > 0;
	uint32_t last;
	int rc = wires_chain_computes(w, t, stage, &last);

	if (rc == 0)
		rc = wires_head(w, t, stage);
	if (rc == 0 && overlaps)
		rc = wires_overlapping(w, t, stage);
	for (size_t i = 0; rc == 0 && i < sizeof(wires_tail) / sizeof(wires_tail[0]);
		i++) {
		if (!overlaps || wires_tail[i] != LS_WHATIF_GRADS_REDUCE_SCATTER)
			rc = wires_chain(w, t, stage, wires_tail[i], &last);
	}
	return rc;
}

/* --- across stages and dp ------------------------------------------------- */

static void
wires_join(struct ls_whatif_wires *w, const struct ls_whatif_trace *t)
{
	uint32_t last = t->stage_count - 1;

	for (uint32_t k = 0; k < t->op_count; k++) {
		const struct ls_whatif_op *op = &t->ops[k];
		enum wires_waits waits = wires_waits[op->type];

		w->across[k] = waits == WIRES_DP || waits == WIRES_ALL;
		if (waits == WIRES_ENDS && op->stage == last) {
			uint32_t first = wires_op(t, 0, op->type, op->seq);

			w->leader[k] = first != WIRES_NO_OP ? first : k;
		}
		for (uint32_t s = 0;
			waits == WIRES_ALL && s < op->stage && w->leader[k] == k; s++) {
			uint32_t twin = wires_op(t, s, op->type, op->seq);

			w->leader[k] = twin != WIRES_NO_OP ? twin : k;
		}
	}
}

int
ls_whatif_wires_init(struct ls_whatif_wires *w, const struct ls_whatif_trace *t,
	struct ls_whatif_error *ret_error)
{
	int rc = 0;

	*w = (struct ls_whatif_wires){ .leader =
					       malloc(t->op_count * sizeof(*w->leader)),
		.across = calloc(t->op_count, sizeof(*w->across)) };
	if (w->leader == NULL || w->across == NULL)
		rc = -ENOMEM;
	for (uint32_t k = 0; rc == 0 && k < t->op_count; k++)
		w->leader[k] = k;
	if (rc == 0)
		wires_join(w, t);
	if (rc == 0)
		rc = wires_pipeline(w, t, ret_error);
	for (uint32_t stage = 0; rc == 0 && stage < t->stage_count; stage++)
		rc = wires_stage(w, t, stage);
	return rc;
}

void
ls_whatif_wires_fini(struct ls_whatif_wires *w)
{
	free(w->edges);
	free(w->leader);
	free(w->across);
}
