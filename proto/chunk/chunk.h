/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk - a minute of one group of series as columns: lossless for every double,
 * compressed, checksummed.
 *
 * A group is read as rows: one time, and a value a series that may be missing. Encoded,
 * all values of a series stand together. What is decoded is bit for bit what was
 * encoded: NaN with its payload, infinities, -0, 2^63, resets; a value that is missing
 * is not a NaN.
 *
 * Owner:   a codec belongs to one thread; it holds all work memory, so that encoding
 *          and decoding allocate nothing.
 * Units:   ns, the sender's CLOCK_MONOTONIC.
 * Errors:  -EMSGSIZE the buffer is too small; -LS_EPARSE, -LS_ECORRUPT, -LS_EVERSION,
 *          -LS_ELIMIT on decoding.
 * Limits:  LS_CHUNK_ROWS_MAX rows, LS_SERIES_PER_GROUP_MAX columns,
 *          LS_CHUNK_BODY_MAX_BYTES.
 * Source:  proto/FORMAT.md, "Chunk".
 */
#ifndef LS_PROTO_CHUNK_H
#define LS_PROTO_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

struct ls_chunk_codec;

/* Rows of one group. Column c, row r is at [c * stride + r]. Times must not fall. */
struct ls_chunk_table {
	size_t rows, columns, stride; /* stride >= rows */
	uint64_t *t_mono_ns; /* rows */
	double *value; /* columns * stride */
	bool *present; /* likewise; value is 0 where it is false */
};

/* A codec for tables of at most so many columns and rows; NULL when out of memory. */
struct ls_chunk_codec *ls_chunk_codec_new(size_t columns_max, size_t rows_max);
void ls_chunk_codec_free(struct ls_chunk_codec *c);

/*
 * Encodes a table of at least one row into buf. -EMSGSIZE: does not fit (encode fewer
 * rows); -LS_ERANGE: times fall, or the table exceeds the codec.
 */
int ls_chunk_encode(struct ls_chunk_codec *c, const struct ls_chunk_table *table,
	uint8_t *buf, size_t size, size_t *ret_len) LS_MUSTCHECK;

/*
 * Decodes a body; ret_table points into the codec and holds until its next use.
 * -LS_ECORRUPT: the checksum is wrong; -LS_EVERSION: a later format; -LS_ELIMIT: larger
 * than the codec; -LS_EPARSE: no sense.
 */
int ls_chunk_decode(struct ls_chunk_codec *c, const uint8_t *buf, size_t len,
	struct ls_chunk_table *ret_table) LS_MUSTCHECK;

/*
 * As ls_chunk_decode, but only columns c with wanted[c], of LS_SERIES_PER_GROUP_MAX:
 * the others hold nothing that means anything, and what stands behind the last one that
 * is wanted is not looked at.
 */
int ls_chunk_decode_some(struct ls_chunk_codec *c, const uint8_t *buf, size_t len,
	const bool *wanted, struct ls_chunk_table *ret_table) LS_MUSTCHECK;

/*
 * Whether a body is whole, without decoding it: version, checksum, and what its header
 * says. Errors as of ls_chunk_decode, for the largest codec.
 */
int ls_chunk_check(const uint8_t *buf, size_t len, size_t *ret_rows,
	size_t *ret_columns) LS_MUSTCHECK;

#endif
