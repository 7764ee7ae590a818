/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally - what a simulation has measured: rates, latencies, reconnects; one JSON line
 * each time.
 *
 * Latency is the time from sending a report with items until its answer says that all
 * of them are on disk. The time of a storm begins with the loss of connections (or the
 * start); that of its `up` with the first connection after it.
 *
 * Owner:   the thread of the fleet.
 * Units:   ns; in JSON as the names say.
 * Errors:  NULL out of memory.
 * Limits:  latencies beyond SIM_LATENCY_BINS x SIM_LATENCY_BIN_NS count as that long;
 *          the maximum is exact.
 */
#ifndef LS_TESTS_SIM_TALLY_H
#define LS_TESTS_SIM_TALLY_H

#include <stdio.h>
#include "deploy/demo/sim/agent.h"

struct sim_tally;

/* What is counted. The fleet adds to it. */
struct sim_sums {
	struct sim_counts agents;
	uint64_t reports, report_bytes, acks, retries, rejects, bad_acks, timeouts;
	uint64_t connects, connect_failures, disconnects, bad_frames;
	uint64_t unacked_items; /* now */
	uint32_t connected; /* now */
};

struct sim_tally *sim_tally_new(const struct sim_options *o, uint64_t now_ns);
void sim_tally_free(struct sim_tally *t);

/* A report with items is durable, so long after it was sent. */
void sim_tally_latency(struct sim_tally *t, uint64_t latency_ns);

/* Prints what came since the last line ("interval"), or all since the start ("total").
 */
void sim_tally_print(struct sim_tally *t, const struct sim_sums *sums, bool total,
	uint64_t now_ns, FILE *out);

/* --- storms --------------------------------------------------------------- */

/* An agent has lost its connection; it was settled, that is it had an answer by it. */
void sim_tally_lost(struct sim_tally *t, uint64_t now_ns);
/* One is connected again. */
void sim_tally_up(struct sim_tally *t, uint64_t now_ns);
/* And has its first answer. */
void sim_tally_settled(struct sim_tally *t, uint64_t now_ns);

/* True once all are settled; the end of a storm of more than half of the agents is
 * printed to out. */
bool sim_tally_storm_turn(struct sim_tally *t, FILE *out);

#endif
