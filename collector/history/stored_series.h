/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored_series - the latest stored value of each series of a host, and its stored
 * series as lines.
 *
 * Bodies of chunks are decoded here and nowhere else in the collector. A chunk that
 * does not decode, or whose dictionary is not known, is left out and counted in the
 * log.
 *
 * Owner:   one thread (the reader).
 * Units:   as in storage/db/rows.h.
 * Errors:  -ENOMEM; -ECANCELED the sink wants no more; those of
 *          storage/read/query_chunk.h.
 * Limits:  one chunk in memory at a time; LS_STORED_SERIES_KEEP_US between a host's
 *          newest chunks.
 * Source:  storage/README.md, "Chunks"; collector/README.md, "Export".
 */
#ifndef LS_COLLECTOR_STORED_SERIES_H
#define LS_COLLECTOR_STORED_SERIES_H

#include <jansson.h>
#include "collector/history/export.h"
#include "collector/history/lines.h"
#include "storage/read/query_chunk.h"

/* Groups whose newest chunk is older than the host's newest by more are not shown: they
 * ended. */
#define LS_STORED_SERIES_KEEP_US 300000000ll

/*
 * The latest value of each series of a host, as an array in the form of
 * ls_fleet_series: as JSON text, in pieces. Empty if nothing is stored.
 */
int ls_stored_series(const char *dir, const char *host, ls_export_sink *sink,
	void *arg) LS_MUSTCHECK;

/* What reads chunks as rows. */
struct ls_stored_rows;

/* A reader of chunks below dir; NULL when out of memory or storage cannot be read. */
struct ls_stored_rows *ls_stored_rows_new(const char *dir);
void ls_stored_rows_free(struct ls_stored_rows *r);

/* One row of a chunk: the values that were measured, with the text of their series. */
struct ls_stored_row {
	const struct ls_query_chunk *chunk;
	int64_t t_us;
	size_t count;
	const char **series;
	const double *value;
};

/* 0 goes on, anything else ends the visit and is returned by it. */
typedef int ls_stored_row_fn(void *arg, const struct ls_stored_row *row);

/* Visits the rows of a chunk; what cannot be read has none. */
int ls_stored_rows_visit(struct ls_stored_rows *r, const struct ls_query_chunk *chunk,
	ls_stored_row_fn *fn, void *arg) LS_MUSTCHECK;

#endif
