/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_column - one column of a chunk to bits and back: integers, and the doubles that
 * become integers.
 *
 * Owner:   the codec; its work memory is passed in.
 * Units:   none; arithmetic on integers is modulo 2^64.
 * Errors:  reading gives false where there is no sense; that the stream is too short is
 *          asked later.
 * Limits:  LS_CHUNK_WORK_ROWS values of a column.
 * Source:  proto/FORMAT.md, "Chunk".
 */
#ifndef LS_PROTO_CHUNK_COLUMN_H
#define LS_PROTO_CHUNK_COLUMN_H

#include "proto/chunk/chunk_bits.h"

/* A few more than 1,024: arrays a power of two apart would share lines of the cache. */
#define LS_CHUNK_WORK_ROWS (1024u + 8u)

/* Work memory for one column. */
struct ls_chunk_work {
	uint64_t integer[LS_CHUNK_WORK_ROWS]; /* the values of a column as integers */
	/* their distances to the first one, in steps */
	uint64_t multiple[LS_CHUNK_WORK_ROWS];
	/* what a predictor leaves of them */
	uint64_t residual[LS_CHUNK_WORK_ROWS];
	/* likewise, of the best predictor so far */
	uint64_t best[LS_CHUNK_WORK_ROWS];
	uint64_t sorted[LS_CHUNK_WORK_ROWS];
	double dense[LS_CHUNK_WORK_ROWS]; /* the values that are present */
	/* those of them that are kept as they are, beside the integers */
	bool odd[LS_CHUNK_WORK_ROWS];
};

/* Integers, at least one. */
void ls_chunk_put_integers(struct ls_bits_out *o, struct ls_chunk_work *w,
	const uint64_t *v, size_t n);
bool ls_chunk_get_integers(struct ls_bits_in *in, uint64_t *v, size_t n);

/* Passes over n of them; what is in `work` (n) then means nothing. */
bool ls_chunk_skip_integers(struct ls_bits_in *in, uint64_t *work, size_t n);

/* Doubles, at least one. */
void ls_chunk_put_doubles(struct ls_bits_out *o, struct ls_chunk_work *w,
	const double *v, size_t n);
bool ls_chunk_get_doubles(struct ls_bits_in *in, struct ls_chunk_work *w, double *v,
	size_t n);

/* Passes over n of them. */
bool ls_chunk_skip_doubles(struct ls_bits_in *in, struct ls_chunk_work *w, size_t n);

/* Decimals at which all n values, at least one, are integers / 10^decimals, bit for
 * bit; false if there are none. */
bool ls_chunk_find_decimals(const double *v, size_t n, unsigned *ret_decimals);

/* Values as integers of so many decimals; false if one is none. And back. */
bool ls_chunk_to_integers(const double *v, size_t n, unsigned decimals,
	uint64_t *ret_integers);
void ls_chunk_from_integers(const uint64_t *integers, size_t n, unsigned decimals,
	double *ret_values);

/* Yes and no for n rows, at least one, as runs. */
void ls_chunk_put_flags(struct ls_bits_out *o, const bool *flag, size_t n);
bool ls_chunk_get_flags(struct ls_bits_in *in, bool *flag, size_t n);

/*
 * The same step by step, for columns laid out otherwise: the decimals that suit these
 * doubles; the integer of one, false if it has none; and back, bit for bit.
 */
unsigned ls_chunk_decimals(const double *v, size_t n);
bool ls_chunk_decimals_are_known(unsigned decimals);
bool ls_chunk_to_integer(double v, unsigned decimals, uint64_t *ret_integer);
double ls_chunk_from_integer(uint64_t integer, unsigned decimals);

#endif
