/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet - all simulated agents, each with its TCP connection, on one loop.
 *
 * Owner:   the loop thread.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  -LS_ERANGE an address that is none, -LS_ELIMIT more hosts than the process
 *          may have files, -ENOMEM, -errno.
 * Limits:  RLIMIT_NOFILE.
 */
#ifndef LS_TESTS_SIM_FLEET_H
#define LS_TESTS_SIM_FLEET_H

#include "deploy/demo/sim/tally.h"

struct ls_loop;
struct sim_fleet;

/* Makes all agents; they begin to connect within the time of jitter. */
int sim_fleet_new(struct ls_loop *loop, const struct sim_options *o,
	const struct sim_slow *slow, const struct sim_misbehave *misbehave,
	struct sim_fleet **ret_fleet) LS_MUSTCHECK;
void sim_fleet_free(struct sim_fleet *f);

/* Nothing new is measured from here on; what waits is sent, and the loop stopped when
 * all is acknowledged. */
void sim_fleet_drain(struct sim_fleet *f);

/* Prints the final line, and writes the ledger if one is wanted; -errno. */
int sim_fleet_finish(struct sim_fleet *f) LS_MUSTCHECK;

/* True if all agents had an answer by their last connection. */
bool sim_fleet_is_settled(const struct sim_fleet *f);

#endif
