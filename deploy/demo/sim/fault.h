/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault - a fault in words: KIND:WHO:AMOUNT@FROM-TO.
 *
 *     compute:5:3%@200-600        rank 5, own work x 1.03, in steps 200 <= step < 600
 *     slice:1:0.1@0-              slice 1, from the first step to the end
 *     dcn:0+2:5%@100-300          between slices 0 and 2
 *     starved:all:20%@100-        everybody
 *
 * Owner:   pure functions.
 * Units:   AMOUNT is a ratio, or percent with %.
 * Errors:  -LS_EPARSE, -LS_ERANGE, -LS_ELIMIT; why says what is wrong.
 * Limits:  SIM_FAULTS_MAX in a list, SIM_FAULT_TEXT_BYTES each.
 * Source:  deploy/demo/sim/world_faults.def.
 */
#ifndef LS_TESTS_SIM_FAULT_H
#define LS_TESTS_SIM_FAULT_H

#include <stddef.h>
#include "deploy/demo/sim/world.h"

#define SIM_FAULT_TEXT_BYTES 128u
#define SIM_FAULT_WHY_BYTES 256u

/* Faults separated by commas, or "none"; ret_faults holds SIM_FAULTS_MAX. */
int sim_fault_parse_list(const char *text, struct sim_fault *ret_faults,
	size_t *ret_count, char why[SIM_FAULT_WHY_BYTES]) LS_MUSTCHECK;

/* "compute:5:0.03@200-600". */
void sim_fault_print(const struct sim_fault *f, char text[SIM_FAULT_TEXT_BYTES]);

#endif
