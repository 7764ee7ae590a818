/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noise - random numbers of a simulated world that depend on their place alone: seed,
 * stream, step, index.
 *
 * A world with a fault and the same world without it draw the same numbers, whatever
 * else is drawn, so what a fault costs is a difference and not an estimate. Normal and
 * Student's t4 come from a table of the quantile function, their tails from the
 * function itself. Both have standard deviation 1.
 *
 * Owner:   the table belongs to who made it; it is only read.
 * Units:   none.
 * Errors:  none.
 * Limits:  NOISE_BINS of the table; tails reach to 2^-53.
 * Source:  bits: splitmix64 as a counter (Steele, Lea, Flood 2014); quantile of t with
 *          4 degrees of freedom in closed form (Shaw 2006, "Sampling Student's T
 *          distribution").
 */
#ifndef LS_TESTS_SIM_NOISE_H
#define LS_TESTS_SIM_NOISE_H

#include <stdint.h>
#include "deploy/demo/sim/sim.h"

#define SIM_NOISE_BINS 4096
#define SIM_NOISE_TAIL 16 /* bins at either end that are not interpolated */

enum sim_noise_kind { SIM_NOISE_GAUSS, SIM_NOISE_T4, SIM_NOISE_KIND_COUNT };

struct sim_noise {
	enum sim_noise_kind kind;
	/* quantile of i / SIM_NOISE_BINS; the ends are not used */
	double at[SIM_NOISE_BINS + 1];
};

/* Fills the table. */
void sim_noise_init(struct sim_noise *noise, enum sim_noise_kind kind);

/* Quantile of u, 0 < u < 1, reckoned and not looked up. */
double sim_noise_quantile(enum sim_noise_kind kind, double u);

/* The key of a stream of numbers. */
static inline uint64_t
sim_noise_key(uint64_t seed, uint64_t stream, uint64_t step)
{
	return sim_hash(seed, stream, step, 0x6e6f697365);
}

/* Bits number i of the stream. */
static inline uint64_t
sim_noise_bits(uint64_t key, uint64_t i)
{
	uint64_t z = key + (i + 1) * 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Number i of the stream, evenly in 0 to 1 without the ends. */
static inline double
sim_noise_unit(uint64_t key, uint64_t i)
{
	return ((double)(sim_noise_bits(key, i) >> 12) + 0.5) * 0x1p-52;
}

/* Number i of the stream: mean 0, deviation 1. */
static inline double
sim_noise_draw(const struct sim_noise *noise, uint64_t key, uint64_t i)
{
	uint64_t bits = sim_noise_bits(key, i);
	uint32_t bin = (uint32_t)(bits >> 52);
	double x;

	if (bin < SIM_NOISE_TAIL || bin >= SIM_NOISE_BINS - SIM_NOISE_TAIL)
		return sim_noise_quantile(noise->kind,
			((double)(bits >> 12) + 0.5) * 0x1p-52);
	x = (double)(bits & 0xfffffffffffffu) * 0x1p-52;
	return noise->at[bin] + x * (noise->at[bin + 1] - noise->at[bin]);
}

#endif
