/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/whatif/whatif.h"
#include "collector/whatif/whatif_replay.h"
#include "proto/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What-if answers for one step of a large job: 1,250 dp x 8 stages x 32 microbatches,
 * 10,000 workers, all forwards first. Operations have made times of 1 to 2 s. Each line
 * is "name value unit"; times are CPU time.
 *
 *   whatif_replay_op_ns       one operation of a replay, all with their own times
 *   whatif_dp_apart_ms        S_dp of all 1,250 dp
 *   whatif_answer_ms          the graph and all answers by both references, S_w and S_alone of all 10,000
 *                             workers among them
 *   whatif_trace_op_ns        one row put in order
 */

enum { DP = 1250, STAGES = 8, BATCHES = 32, ROUNDS = 5 };

static struct ls_whatif_row *bench_rows;
static size_t bench_count;
static uint32_t bench_state = 1;

static void
bench_op(uint32_t dp, uint32_t stage, enum ls_whatif_optype type, uint32_t seq,
	double start_s)
{
	bench_state = bench_state * 1664525 + 1013904223;
	bench_rows[bench_count++] =
		(struct ls_whatif_row){ .rank = (int64_t)stage * DP + dp,
			.dp = dp,
			.stage = stage,
			.seq = seq,
			.type = type,
			.start_s = start_s,
			.duration_s = 1 + (double)(bench_state >> 8) / (1 << 24) };
}

static void
bench_worker(uint32_t dp, uint32_t stage)
{
	bench_op(dp, stage, LS_WHATIF_PARAMS_ALL_GATHER, 0, 0);
	for (uint32_t seq = 0; seq < BATCHES; seq++) {
		bench_op(dp, stage, LS_WHATIF_FORWARD_COMPUTE, seq, 10 + seq);
		bench_op(dp, stage, LS_WHATIF_BACKWARD_COMPUTE, seq, 1000 + seq);
		if (stage > 0) {
			bench_op(dp, stage, LS_WHATIF_FORWARD_RECV, seq, 10 + seq);
			bench_op(dp, stage, LS_WHATIF_BACKWARD_SEND, seq, 1000 + seq);
		}
		if (stage < STAGES - 1) {
			bench_op(dp, stage, LS_WHATIF_FORWARD_SEND, seq, 10 + seq);
			bench_op(dp, stage, LS_WHATIF_BACKWARD_RECV, seq, 1000 + seq);
		}
	}
	bench_op(dp, stage, LS_WHATIF_GRADS_REDUCE_SCATTER, 0, 2000);
	bench_op(dp, stage, LS_WHATIF_OPTIMIZER_CLIP, 0, 2010);
	bench_op(dp, stage, LS_WHATIF_OPTIMIZER, 0, 2020);
}

/* The best of some rounds, in ns. */
static double
bench_replay(struct ls_whatif_replay *r, const struct ls_whatif_plan *plan,
	const double *ideal_s, double *out_s)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t t0 = ls_clock_cpu_ns(), t;

		ls_whatif_replay_run(r, plan, ideal_s, out_s);
		t = ls_clock_cpu_ns() - t0;
		best = t < best ? t : best;
	}
	return (double)best;
}

static void
bench_replays(const struct ls_whatif_trace *t, struct ls_whatif_error *error)
{
	uint8_t *own = malloc(t->op_count);
	double *ideal_s = malloc(t->op_count * sizeof(double)),
	       *out_s = malloc(t->lane_count * sizeof(double));
	struct ls_whatif_graph *g = NULL;
	struct ls_whatif_replay *r = NULL;
	int rc = ls_whatif_graph_new(t, &g, error);

	LS_ASSERT(rc == 0 && own != NULL && ideal_s != NULL && out_s != NULL);
	rc = ls_whatif_replay_new(t, g, &r);
	LS_ASSERT(rc == 0);
	memset(own, 1, t->op_count);
	for (uint32_t k = 0; k < t->op_count; k++)
		ideal_s[k] = 1.5;
	printf("whatif_replay_op_ns %.2f ns\n",
		bench_replay(r, &(struct ls_whatif_plan){ .own = own }, ideal_s,
			out_s) /
			(double)bench_count);
	printf("whatif_dp_apart_ms %.1f ms\n",
		bench_replay(r, &(struct ls_whatif_plan){ .own = own, .apart = true },
			ideal_s, out_s) *
			1e-6);
	ls_whatif_replay_free(r);
	ls_whatif_graph_free(g);
	free(own);
	free(ideal_s);
	free(out_s);
}

int
main(void)
{
	struct ls_whatif_error error = { 0 };
	struct ls_whatif_trace *t = NULL;
	json_t *result = NULL;
	uint64_t t0, t1;
	int rc;

	bench_rows =
		malloc((size_t)DP * STAGES * (6 * BATCHES + 4) * sizeof(*bench_rows));
	LS_ASSERT(bench_rows != NULL);
	for (uint32_t dp = 0; dp < DP; dp++) {
		for (uint32_t stage = 0; stage < STAGES; stage++)
			bench_worker(dp, stage);
	}
	t0 = ls_clock_cpu_ns();
	rc = ls_whatif_trace_new(bench_rows, bench_count, DP, STAGES, &t, &error);
	t1 = ls_clock_cpu_ns();
	LS_ASSERT(rc == 0);
	printf("whatif_trace_op_ns %.1f ns\n", (double)(t1 - t0) / (double)bench_count);
	bench_replays(t, &error);
	t0 = ls_clock_cpu_ns();
	rc = ls_whatif_answer(t, "", 5, &result, &error);
	t1 = ls_clock_cpu_ns();
	LS_ASSERT(rc == 0 && json_number_value(json_object_get(result, "S")) > 1);
	printf("whatif_answer_ms %.1f ms\n", (double)(t1 - t0) * 1e-6);
	json_decref(result);
	ls_whatif_trace_free(t);
	free(bench_rows);
	return EXIT_SUCCESS;
}
