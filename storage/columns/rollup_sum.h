/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup_sum - least, greatest, sum and count of every series, minute by minute, while
 * samples come in.
 *
 * A layout says which metric and labels the columns of a table are; of every host,
 * layout and minute there is one block of memory with a place a column. So a sample
 * costs no look-up, and a series 28 bytes a minute. Rows are taken out minute by
 * minute, metric by metric; what comes later for the same minute makes rows of its own,
 * which add up with those.
 *
 * Owner:   one thread.
 * Units:   minutes as us since the Unix epoch, values in the unit of the metric.
 * Errors:  -LS_ELIMIT: take a minute out first; -ENOMEM.
 * Limits:  the bytes given at the start (LS_ROLLUP_MEMORY_MAX_BYTES),
 *          LS_ROLLUP_MINUTES_MAX.
 * Source:  proto/FORMAT.md, "Roll-ups".
 */
#ifndef LS_STORAGE_ROLLUP_SUM_H
#define LS_STORAGE_ROLLUP_SUM_H

#include "proto/chunk/chunk.h"
#include "storage/columns/rollup.h"

#define LS_ROLLUP_MINUTE_US 60000000ll
#define LS_ROLLUP_HOUR_US 3600000000ll

/* A column is of what; metric 0: of nothing, it is left out. */
struct ls_rollup_column {
	uint32_t metric_id, labels_id;
};

struct ls_rollup_sums;

/* Empty sums of at most so many bytes; NULL when out of memory. */
struct ls_rollup_sums *ls_rollup_sums_new(size_t bytes_max);
/* Frees; accepts NULL. */
void ls_rollup_sums_free(struct ls_rollup_sums *s);

/* Makes a layout known; *ret_layout is its number. Copies columns. */
int ls_rollup_sums_layout(struct ls_rollup_sums *s,
	const struct ls_rollup_column *columns, size_t count,
	uint32_t *ret_layout) LS_MUSTCHECK;

/*
 * Makes room for what follows in a minute: a block of host and layout. -LS_ELIMIT,
 * -ENOMEM. now_us is kept of the minute's first; chunk_id is the least of the minute if
 * it is not 0.
 */
int ls_rollup_sums_open(struct ls_rollup_sums *s, int64_t minute_us, uint32_t layout,
	uint32_t host_id, int64_t chunk_id, int64_t now_us) LS_MUSTCHECK;

/*
 * Adds rows first .. first + count - 1 of a table to the block last opened; the table
 * has the layout's columns. Returns the samples counted.
 */
size_t ls_rollup_sums_add(struct ls_rollup_sums *s, const struct ls_chunk_table *table,
	size_t first, size_t count);

/* A minute that is open. */
struct ls_rollup_minute {
	int64_t t_us, opened_us;
	int64_t first_id; /* the least chunk that counted; INT64_MAX: none has an id */
	size_t blocks;
};

/* The i-th open minute, by time; false if there are fewer. */
bool ls_rollup_sums_minute(const struct ls_rollup_sums *s, size_t i,
	struct ls_rollup_minute *ret_minute);

/* Bytes in use, and those at most so far. */
size_t ls_rollup_sums_bytes(const struct ls_rollup_sums *s);
size_t ls_rollup_sums_most(const struct ls_rollup_sums *s);

/*
 * Takes a minute out: its rows, tidied, ordered by labels and host, LS_ROLLUP_ROWS_MAX
 * at most at a time, metric by metric. The minute is closed then, also when fn gives an
 * error, which is returned.
 */
typedef int ls_rollup_rows_fn(void *arg, uint32_t metric_id,
	const struct ls_rollup_row *rows, size_t count);
int ls_rollup_sums_take(struct ls_rollup_sums *s, int64_t minute_us,
	ls_rollup_rows_fn *fn, void *arg) LS_MUSTCHECK;

/* Forgets all minutes and layouts. */
void ls_rollup_sums_clear(struct ls_rollup_sums *s);

#endif
