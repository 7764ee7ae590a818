/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_integer - what writing and reading integers of a column have in common:
 * predictors and codes.
 *
 * Owner:   chunk_integer.c and chunk_integer_read.c, nobody else.
 * Units:   none; arithmetic is modulo 2^64.
 * Errors:  none.
 * Limits:  none.
 * Source:  proto/FORMAT.md, "Chunk".
 */
#ifndef LS_PROTO_CHUNK_INTEGER_H
#define LS_PROTO_CHUNK_INTEGER_H

#include "proto/chunk/chunk_column.h"

#define INTEGER_FLAG_RUN_K 4u /* a source that fails does so for some rows */
/* of 0 to 4 the best on noisy40, as bench_chunk sees it */
#define INTEGER_BASE_FINE 2u

/* Two at a time, where the compiler does not see it by itself. */
typedef uint64_t integer_pair __attribute__((vector_size(16)));

/*
 * Predictors work on the multiples m (order 0) or on their differences (order 1), both
 * called s: s[i] is guessed as base + (s[i-1] - base) * halves / 2. These four are for
 * levels with noise, for walks, for counters, and for counters whose rate wanders.
 * Other weights, and differences of differences, were tried on noisy40 and on the
 * counters of a host: they saved about a thousandth.
 */
struct integer_predictor {
	unsigned order;
	unsigned halves;
	bool has_base;
};

#define INTEGER_PREDICTORS 4u
static const struct integer_predictor integer_predictors[INTEGER_PREDICTORS] = {
	{ 0, 0, true },
	{ 0, 2, false },
	{ 1, 0, true },
	{ 1, 1, true },
};

/* The product may wrap: both sides wrap alike. */
static inline uint64_t
integer_guess(uint64_t s, uint64_t base, unsigned halves)
{
	return base + (uint64_t)((int64_t)((s - base) * halves) >> 1);
}

/* How residuals are coded: all in Rice(k), or runs of zeros in Rice(run_k) between
 * them. */
struct integer_code {
	bool runs;
	unsigned k, run_k;
};

/* Low bits of a base that are left out: where all residuals are coarse, it may be so,
 * too. */
static inline unsigned
integer_base_shift(const struct integer_code *c)
{
	return !c->runs && c->k > INTEGER_BASE_FINE ? c->k - INTEGER_BASE_FINE : 0;
}

#endif
