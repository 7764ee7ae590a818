/* SPDX-License-Identifier: Apache-2.0 */
/*
 * misbehave - which of the simulated agents lie, and how.
 *
 * Owner:   plain data.
 * Units:   agents.
 * Errors:  -LS_EPARSE, -LS_EUNKNOWN, -LS_ERANGE.
 * Limits:  each kind once; together at most all hosts but the first (whose name a twin
 *          may take).
 */
#ifndef LS_TESTS_SIM_MISBEHAVE_H
#define LS_TESTS_SIM_MISBEHAVE_H

#include "deploy/demo/sim/sim.h"

enum sim_misbehaviour {
	SIM_BEHAVES,
#define SIM_MISBEHAVE(id, name, help) SIM_MISBEHAVES_##id,
#include "deploy/demo/sim/misbehave.def"
#undef SIM_MISBEHAVE
	SIM_MISBEHAVIOURS
};

struct sim_misbehave {
	uint32_t hosts;
	uint32_t count[SIM_MISBEHAVIOURS];
};

/* "none" or KIND:COUNT[,KIND:COUNT]...; ret_m is untouched on failure. */
int sim_misbehave_parse(const char *text, int64_t hosts,
	struct sim_misbehave *ret_m) LS_MUSTCHECK;

/* What this agent does: the last ones misbehave, kind after kind from the end. */
enum sim_misbehaviour sim_misbehave_of(const struct sim_misbehave *m, uint32_t index);

#endif
