/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns - what predictions leave of a column of numbers, as bits; shared by step_rows
 * and hot_rows.
 *
 * Residuals are folded (ls_bits_fold) and written in Rice codes whose k follows the
 * mean of those before: nothing but the first k is told. A column of zeros takes two
 * bits; one of mostly zeros is runs of zeros and what ends them.
 *
 * Owner:   the caller.
 * Units:   none; arithmetic is modulo 2^64.
 * Errors:  writing sets `full` of the stream; reading gives false where there is no
 *          sense.
 * Limits:  the caller's.
 * Source:  proto/FORMAT.md, "Columns". Adaptive k: M. J. Weinberger et al., "The
 *          LOCO-I Lossless Image Compression Algorithm", IEEE Trans. Image Processing 9
 *          (8), 2000, section III.
 */
#ifndef LS_STORAGE_COLUMNS_H
#define LS_STORAGE_COLUMNS_H

#include "proto/base/bytes.h"
#include "proto/base/err.h"
#include "proto/chunk/chunk_bits.h"

/* Writes n folded residuals; none: nothing. */
void ls_column_put(struct ls_bits_out *o, const uint64_t *u, size_t n);

/* Reads n folded residuals. */
bool ls_column_get(struct ls_bits_in *in, uint64_t *u, size_t n) LS_MUSTCHECK;

/* A body being made: a buffer that grows, a head, bits, a CRC-32 of all before it. */
struct ls_body {
	uint8_t *data;
	size_t size, len;
};

/* Makes room for `bytes` at least; -ENOMEM. */
int ls_body_reserve(struct ls_body *b, size_t bytes) LS_MUSTCHECK;
void ls_body_fini(struct ls_body *b);

/* Begins the bits behind a head of so many bytes. */
struct ls_bits_out ls_body_bits(struct ls_body *b, size_t head_bytes);

/* Ends them and adds the checksum; false: the buffer is too small, begin again with a
 * larger one. */
bool ls_body_seal(struct ls_body *b, struct ls_bits_out *o) LS_MUSTCHECK;

/*
 * Looks at a body: version, length, checksum. *ret_bits stands behind the head.
 * -LS_EVERSION, -LS_EPARSE, -LS_ECORRUPT.
 */
int ls_body_open(const uint8_t *body, size_t len, uint8_t version, size_t head_bytes,
	struct ls_bits_in *ret_bits) LS_MUSTCHECK;

/* One number between its value and its folded distance to a guess. */
static inline void
ls_column_code(bool reading, uint64_t *u, uint64_t *value, uint64_t guess)
{
	if (reading)
		*value = guess + ls_bits_unfold(*u);
	else
		*u = ls_bits_fold(*value - guess);
}

static inline void
ls_column_code_i64(bool reading, uint64_t *u, int64_t *value, uint64_t guess)
{
	uint64_t v = (uint64_t)*value;

	ls_column_code(reading, u, &v, guess);
	*value = (int64_t)v;
}

#endif
