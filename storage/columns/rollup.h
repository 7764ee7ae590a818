/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup - least, greatest, sum and count of a metric's series in one span of time, as
 * columns.
 *
 * One body holds one metric in one span of time of many hosts, ordered by labels, then
 * host. Each column has its own place and checksum, so that a question about means does
 * not pay for peaks.
 *
 * Owner:   a codec belongs to one thread; it holds all memory, so that nothing is
 *          allocated after.
 * Units:   values in the unit of the metric.
 * Errors:  -LS_ERANGE rows that are none; decoding: -LS_ECORRUPT, -LS_EPARSE,
 *          -LS_EVERSION, -LS_ELIMIT.
 * Limits:  LS_ROLLUP_ROWS_MAX rows of a body.
 * Source:  proto/FORMAT.md, "Roll-ups".
 */
#ifndef LS_STORAGE_ROLLUP_H
#define LS_STORAGE_ROLLUP_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

/* Of one series in one span. NaN and infinite samples are not counted. */
struct ls_rollup_row {
	uint32_t labels_id, host_id; /* of the day's file */
	uint32_t count; /* of samples; never 0 */
	double min, max, sum;
};

/* Columns to read; MIN is told by its distance to MAX, which is therefore read, too. */
#define LS_ROLLUP_COUNT 1u
#define LS_ROLLUP_MIN 2u
#define LS_ROLLUP_MAX 4u
#define LS_ROLLUP_SUM 8u
#define LS_ROLLUP_ALL 15u

struct ls_rollup_codec;

/* NULL when out of memory. */
struct ls_rollup_codec *ls_rollup_codec_new(void);
void ls_rollup_codec_free(struct ls_rollup_codec *c);

/* Orders rows by labels, then host, for qsort. */
int ls_rollup_compare(const void *a, const void *b);

/* Adds b to a: of the same series. A sum beyond all doubles is the greatest of them. */
void ls_rollup_merge(struct ls_rollup_row *a, const struct ls_rollup_row *b);

/*
 * Takes from the sum what is only the rounding of additions: if least and greatest have
 * so many decimals, and the sum is within that rounding of a number that has them, it
 * becomes this number.
 */
void ls_rollup_tidy(struct ls_rollup_row *row);

/*
 * Encodes 1 to LS_ROLLUP_ROWS_MAX rows; *ret_body points into the codec until its next
 * use. -LS_ERANGE: not ordered by (labels_id, host_id) or one twice, a count of 0, a
 * number that is not finite.
 */
int ls_rollup_encode(struct ls_rollup_codec *c, const struct ls_rollup_row *rows,
	size_t count, const uint8_t **ret_body, size_t *ret_len) LS_MUSTCHECK;

/*
 * Decodes ids and the columns asked for (others are 0); *ret_rows points into the codec
 * until its next use. Of more than 255 rows, damage in columns that are not read is not
 * seen.
 */
int ls_rollup_decode(struct ls_rollup_codec *c, const uint8_t *body, size_t len,
	unsigned columns, const struct ls_rollup_row **ret_rows,
	size_t *ret_count) LS_MUSTCHECK;

/* Rows as columns: a question about all hosts reads few of them, and reads those in one
 * go. */
struct ls_rollup_columns {
	size_t count;
	const uint32_t *labels_id, *host_id;
	/* of samples; it and the following hold only if they were asked for */
	const uint32_t *n;
	const double *min, *max, *sum;
	/* as long as it is the same, so are the ids: as a rule from one minute to the
	 * next */
	uint64_t keys;
};

/* As ls_rollup_decode, of which ids are not read anew where a body has those of the one
 * before. */
int ls_rollup_decode_columns(struct ls_rollup_codec *c, const uint8_t *body, size_t len,
	unsigned columns, struct ls_rollup_columns *ret_columns) LS_MUSTCHECK;

#endif
