/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offline - a simulated job as a file for `lockstep replay`, and the truth about it
 * beside.
 *
 * The replay file has records, clocks, and counters once a second; its first line says
 * that it is simulated. The truth is one line:
 * {"run","file","hosts","steps","collective":"sim","note","simulated":true,"seed","faults":[...],"benign":[...]}.
 * A fault: {"cause","kind","scope","culprits":[hosts],"from_step","to_step" (its last),
 * "args","cost_s","extra_s"}; scope is rank, link, or all: then no single host is to be
 * blamed, and `level` says what it is. What need not be found is in `benign`.
 *
 * Owner:   the caller.
 * Units:   as in the files: Unix seconds and seconds.
 * Errors:  -errno of the files, -LS_ERANGE, -LS_EPARSE, -ENOMEM; err says what is
 *          wrong.
 * Limits:  what replay reads: LS_REPLAY_MAX_RECORDS lines.
 * Source:  proto/FORMAT.md, "Replay file".
 */
#ifndef LS_TESTS_SIM_OFFLINE_H
#define LS_TESTS_SIM_OFFLINE_H

#include <jansson.h>
#include <stddef.h>
#include "deploy/demo/sim/sim.h"
#include "deploy/demo/sim/world.h"

struct sim_offline {
	struct sim_world_options world;
	struct sim_fault fault[SIM_FAULTS_MAX];
	size_t faults;
	uint64_t steps;
	struct sim_recorded recorded; /* sim_recorded_free */
};

/* Reads what the options say of the job; ret_offline is untouched on failure. */
int sim_offline_options(const struct sim_options *o, struct sim_offline *ret_offline,
	char *err, size_t size) LS_MUSTCHECK;

/*
 * Writes both files. path "-" is stdout; one that ends in .gz is compressed; truth "":
 * none. The same options make the same bytes.
 */
int sim_offline_write(const struct sim_offline *off, const char *path,
	const char *truth, char *err, size_t size) LS_MUSTCHECK;

#endif
