/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger - what a collector has acknowledged to each agent, to be compared with what it
 * has stored.
 *
 * One JSON object a line and agent:
 * {"simulated":true,"host","boot","acked_seq","acked_chunk_seq","next_seq",
 * "next_chunk_seq","ring_id","records_made","records_acked"}. boot and ring_id are hex;
 * acked_* are the highest numbers acknowledged, next_* the ones that were not given
 * yet; of the ring all records with an index below records_acked are on disk, or told
 * as a gap.
 *
 * Owner:   none.
 * Units:   counts.
 * Errors:  -errno.
 * Limits:  none.
 */
#ifndef LS_TESTS_SIM_LEDGER_H
#define LS_TESTS_SIM_LEDGER_H

#include <stdio.h>
#include "deploy/demo/sim/agent.h"

/* Writes the line of one agent; -EIO. */
int sim_ledger_line(FILE *out, const struct sim_agent *a) LS_MUSTCHECK;

#endif
