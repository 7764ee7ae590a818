/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_noise - what healthy hosts take longer or shorter by, step by step: noise that wanders, comes and goes, is shared by
 * the hosts of a rack, or was recorded. host_noise.def lists the kinds.
 *
 * Text: KIND[-NUMBER[-NUMBER]][@rack|@slice|@job], such as wander-2-50 or bursts@rack. Hosts of one rack, slice or job then
 * have the same noise, as those that share a power supply or a network have.
 *
 * Owner:   the caller; each sequence of random numbers is a number of the caller's, never 0.
 * Units:   ratios to the step time; steps.
 * Errors:  -LS_EPARSE; of a file -errno, -ENOMEM, -LS_EPARSE: a line is no row of two numbers or more.
 * Limits:  SIM_HOST_NOISE_MAX: no number is greater.
 * Source:  Vigna (2014), xorshift64*; Shaw (2006) for Student's t; Politis and Romano (1994), stationary bootstrap.
 */
#ifndef LS_DEMO_SIM_HOST_NOISE_H
#define LS_DEMO_SIM_HOST_NOISE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "deploy/demo/sim/sim.h"

#define SIM_HOST_NOISE_MAX 1e6

enum sim_host_noise_kind {
#define SIM_HOST_NOISE(id, name, a, b, numbers, help) SIM_HOST_NOISE_##id,
#include "deploy/demo/sim/noise/host_noise.def"
#undef SIM_HOST_NOISE
	SIM_HOST_NOISE_KINDS
};

/* Who has the same. */
enum sim_host_noise_scope {
	SIM_NOISE_OF_HOST,
	SIM_NOISE_OF_RACK,
	SIM_NOISE_OF_SLICE,
	SIM_NOISE_OF_JOB
};

/* Recorded workers: a series of ratios each. */
struct sim_recorded {
	struct sim_series {
		double *v;
		size_t n;
	} * of;
	size_t n;
};

struct sim_host_noise {
	enum sim_host_noise_kind kind;
	enum sim_host_noise_scope scope;
	double size, length; /* ratio; steps (of a walk: a ratio, too) */
	double keep; /* what AR(1) keeps in a step */
	struct sim_recorded recorded; /* of the caller */
};

/* Where a host is in its noise. */
struct sim_host_noise_state {
	double x, left; /* ratio; steps until the state changes, or a phase */
	bool on;
	const struct sim_series *of;
	size_t at;
};

/* Uniform, 0 < u < 1; and a standard Gaussian. */
static inline double
sim_host_noise_uniform(uint64_t *random)
{
	return ((double)(sim_next(random) >> 11) + 0.5) * 0x1p-53;
}

static inline double
sim_host_noise_gauss(uint64_t *random)
{
	double radius = sqrt(-2 * log(sim_host_noise_uniform(random)));

	return radius * cos(2 * M_PI * sim_host_noise_uniform(random));
}

/* Reads len bytes of the text above. The kind `recorded` needs records. */
int sim_host_noise_parse(const char *text, size_t len,
	const struct sim_recorded *recorded,
	struct sim_host_noise *ret_noise) LS_MUSTCHECK;

void sim_host_noise_begin(const struct sim_host_noise *noise, uint64_t *random,
	struct sim_host_noise_state *ret_state);

/* Goes on by a step; what the host takes longer. */
double sim_host_noise_next(const struct sim_host_noise *noise, uint64_t *random,
	struct sim_host_noise_state *state);

/* Adds the lines of a file, numbers of a worker each (tests/record/residuals.py writes them). */
int sim_recorded_read(const char *path, struct sim_recorded *recorded) LS_MUSTCHECK;
void sim_recorded_free(struct sim_recorded *recorded);

#endif
