/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torus - where in a slice's interconnect a chip is, and which chips it is linked to.
 *
 * A device id counts along x first: id = x + X * (y + Y * z). The chips of a host form
 * a block; device ids that do not form the block of their host are not believed, and
 * nothing is said of their place.
 *
 * Owner:   pure functions.
 * Units:   chips.
 * Errors:  -LS_EPARSE no topology or bounds, -LS_ERANGE no such chip or no such block.
 * Limits:  LS_TORUS_SIDE_MAX a side.
 * Source:  inferred from published samples, which fit: devices 404 405 412 413 of a v5p
 *          8x8x16 are (4..5, 2..3, 6), devices 8 9 12 13 of X = 4 are (0..1, 2..3).
 *          Wrap: generation.def. Global worker: jax/_src/clusters/cloud_tpu_cluster.py.
 */
#ifndef LS_AGENT_TORUS_H
#define LS_AGENT_TORUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "agent/identity/generation.h"
#include "proto/base/err.h"
#include "proto/limits.h"

#define LS_TORUS_AXES 3
#define LS_TORUS_NEIGHBOURS_MAX (2 * LS_TORUS_AXES)

struct ls_torus {
	uint32_t size[LS_TORUS_AXES]; /* 1 for an axis that is not there */
	bool wrap_known;
	bool wrap[LS_TORUS_AXES];
};

/* "4x4x8", "8x16": sizes; the wrap is not known yet. */
int ls_torus_parse(const char *text, struct ls_torus *ret_torus) LS_MUSTCHECK;

/* "2,2,1" or "2,4": chips or hosts along each axis. */
int ls_torus_parse_bounds(const char *text,
	uint32_t ret_bounds[LS_TORUS_AXES]) LS_MUSTCHECK;

/* "true,true,false", as tpu-env has it: which axes wrap. */
int ls_torus_parse_wrap(const char *text, struct ls_torus *t) LS_MUSTCHECK;

/* Which axes wrap by the rule of a generation; stays not known where no rule is. */
void ls_torus_wrap_by_rule(struct ls_torus *t, enum ls_generation g);

/* Product of bounds. */
uint64_t ls_torus_volume(const uint32_t bounds[LS_TORUS_AXES]);

/* Coordinates of a device. -LS_ERANGE: no such chip. */
int ls_torus_place(const struct ls_torus *t, uint64_t device,
	uint32_t ret_at[LS_TORUS_AXES]) LS_MUSTCHECK;

/*
 * Coordinates of all devices of one host. -LS_ERANGE unless the blocks fill the torus
 * and the devices are, in any order, just the chips of one of them.
 */
int ls_torus_place_host(const struct ls_torus *t, const uint32_t block[LS_TORUS_AXES],
	const uint64_t *devices, size_t count,
	uint32_t (*ret_at)[LS_TORUS_AXES]) LS_MUSTCHECK;

/* Devices linked to the one at a place, each once, least first. 0 where the wrap is not
 * known. */
size_t ls_torus_neighbours(const struct ls_torus *t, const uint32_t at[LS_TORUS_AXES],
	uint64_t ret_devices[LS_TORUS_NEIGHBOURS_MAX]);

/* Number of a worker among those of all slices, with `workers` of them a slice. */
uint64_t ls_torus_global_worker(uint64_t worker, uint64_t workers, uint64_t slice);

#endif
