/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roller_out - a message of roll-ups being made.
 *
 * Owner:   the roller; the message is its until it is handed on.
 * Units:   as in storage/db/rows.h.
 * Errors:  -ENOMEM; those of ls_rollup_encode.
 * Limits:  none of its own: what is summed up is bounded.
 */
#ifndef LS_STORAGE_ROLLER_OUT_H
#define LS_STORAGE_ROLLER_OUT_H

#include "storage/tidy/roller_names.h"
#include "storage/columns/rollup.h"
#include "storage/db/rows.h"

/* Adds all names that are in no message yet. */
int ls_roller_out_names(struct ls_store_rollup *o,
	struct ls_roller_names *names) LS_MUSTCHECK;

/* Adds a body of rows; and, if also_hour_us is not -1, the same as rows of that hour.
 */
int ls_roller_out_rows(struct ls_store_rollup *o, struct ls_rollup_codec *codec,
	uint32_t metric_id, uint32_t span_s, int64_t t_us, int64_t also_hour_us,
	const struct ls_rollup_row *rows, size_t count) LS_MUSTCHECK;

/* Adds a change of rollup_done. */
int ls_roller_out_done(struct ls_store_rollup *o, int64_t span_s, int64_t t_us,
	int64_t before, int64_t chunk_id) LS_MUSTCHECK;

#endif
