/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape - series that look like those of a real host, and the chunks that hold a minute
 * of them.
 *
 * Two groups: half of the series are the host's (the rows of
 * tests/bench/host_series.def, whose changes were taken from a real machine), the other
 * half the chips' (chip_series.def). A row is a second, or a 60th of whatever a minute
 * lasts.
 *
 * A source is the values of one host. Agents with the same source tell the same values
 * (--variants), and the body of a minute is made once for all of them.
 *
 * Owner:   the thread that made it. Pure: the same seed, source and times give the same
 *          bytes.
 * Units:   ns of the host's clock.
 * Errors:  -ENOMEM; -LS_ERANGE more series or chips than limits allow; those of
 *          ls_chunk_encode.
 * Limits:  SIM_SERIES_MAX series, SIM_BODIES_KEPT minutes a source.
 * Source:  tests/bench/host_series.def, chip_series.def.
 */
#ifndef LS_TESTS_SIM_SHAPE_H
#define LS_TESTS_SIM_SHAPE_H

#include "proto/wire/wire.h"
#include "deploy/demo/sim/sim.h"

#define SIM_ROWS 60u

struct sim_shape;

/* The names of a group, as a dictionary says them. */
struct sim_group {
	const char *name;
	uint64_t hash;
	size_t count; /* 0: there is no such group */
	const char *series[LS_SERIES_PER_GROUP_MAX]; /* into text */
	char text[LS_SERIES_PER_GROUP_MAX][LS_SERIES_TEXT_MAX_BYTES];
};

/* For `sources` hosts; bodies of so many minutes are kept of each (0: none, each is
 * asked for once). */
int sim_shape_new(const struct sim_options *o, uint32_t sources, uint32_t keep,
	struct sim_shape **ret_shape) LS_MUSTCHECK;
void sim_shape_free(struct sim_shape *s);

const struct sim_group *sim_shape_group(const struct sim_shape *s, unsigned group);

/* The body of a minute; data is valid until the next call. */
struct sim_body {
	const uint8_t *data;
	size_t len;
	uint64_t t_first_ns, t_last_ns;
};

/*
 * The minute `minute` of a source begins at begin_ns and lasts length_ns. Minutes of a
 * source are asked for in order; -LS_ESTALE: this one was, and is not kept.
 */
int sim_shape_minute(struct sim_shape *s, uint32_t source, unsigned group,
	uint64_t minute, uint64_t begin_ns, uint64_t length_ns,
	struct sim_body *ret_body) LS_MUSTCHECK;

/* --- hot values ----------------------------------------------------------- */

struct sim_hot {
	uint64_t random;
	double level[LS_HOT_MAX]; /* whole numbers */
};

void sim_hot_init(const struct sim_shape *s, struct sim_hot *h, uint64_t seed);

/* Goes on by dt_s seconds and tells the values of the host (job false) or of its
 * worker. */
void sim_hot_next(const struct sim_shape *s, struct sim_hot *h, double dt_s);
void sim_hot_tell(const struct sim_shape *s, const struct sim_hot *h, bool job,
	struct ls_wire_hot *ret_hot);

#endif
