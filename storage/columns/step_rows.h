/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_rows - step records of many workers of one job as columns: what the journal
 * becomes.
 *
 * A run is what one item brought: consecutive records of one worker. Records are whole
 * microseconds on the collector's time line (ls_store_record). What is decoded is what
 * was encoded.
 *
 * Owner:   a table owns its arrays (ls_step_table_fini); a codec belongs to one thread.
 * Units:   as in storage/db/rows.h; ns of records are multiples of 1,000.
 * Errors:  -ENOMEM; -LS_ERANGE a record is not of whole microseconds; decoding:
 *          -LS_ECORRUPT, -LS_EPARSE, -LS_EVERSION, -LS_ELIMIT.
 * Limits:  LS_STEP_ROWS_RECORDS_MAX.
 * Source:  proto/FORMAT.md, "Step rows".
 */
#ifndef LS_STORAGE_STEP_ROWS_H
#define LS_STORAGE_STEP_ROWS_H

#include "proto/base/err.h"
#include "storage/db/rows.h"

struct ls_step_run {
	int64_t id, t_us, worker_id;
	uint64_t first_index;
	uint32_t count;
	int64_t uncertainty_ns;
};

struct ls_step_table {
	size_t run_count, record_count;
	struct ls_step_run *runs;
	struct ls_record *records; /* of the runs, one behind the other */
};

struct ls_step_codec;
/* A codec, with room for the largest table; NULL: out of memory. */
struct ls_step_codec *ls_step_codec_new(void);

/* Frees it; accepts NULL. */
void ls_step_codec_free(struct ls_step_codec *c);

/* Encodes a table of at most LS_STEP_ROWS_RECORDS_MAX records; *ret_body points into
 * the codec. */
int ls_step_rows_encode(struct ls_step_codec *c, const struct ls_step_table *table,
	const uint8_t **ret_body, size_t *ret_len) LS_MUSTCHECK;

/* Decodes; *ret_table points into the codec and holds until its next use. */
int ls_step_rows_decode(struct ls_step_codec *c, const uint8_t *body, size_t len,
	struct ls_step_table *ret_table) LS_MUSTCHECK;

#endif
