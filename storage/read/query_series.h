/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_series - the values of some series of one host in a range of time, from chunks.
 *
 * Found by (host, time) in every file from the day of `from` on: what a spool sent late
 * is in the file of the day on which it came. A chunk that does not decode, or whose
 * dictionary is not known, is left out and counted.
 *
 * Owner:   one thread at a time.
 * Units:   microseconds since the epoch on the collector's time line.
 * Errors:  as in storage/read/query.h; -ETIMEDOUT, -ECANCELED of ls_query_stopped.
 * Limits:  one chunk in memory at a time; LS_GROUPS_MAX dictionaries of a day are
 *          remembered.
 * Source:  storage/README.md, "Reading".
 */
#ifndef LS_STORAGE_QUERY_SERIES_H
#define LS_STORAGE_QUERY_SERIES_H

#include "storage/read/query_chunk.h"

struct ls_query_series;

/* What of a host is asked. */
struct ls_query_span {
	const char *host;
	int64_t from_us, to_us; /* inclusive */
};

/* One series' part of one chunk: rows at [from, to) are in the span. Holds during the
 * visit. */
struct ls_query_column {
	const char *group, *series;
	size_t from, to;
	const int64_t *t_us; /* of rows; they do not fall */
	const double *value; /* any double */
	const bool *present;
};

/* Is this series wanted? Asked once a dictionary. */
typedef bool ls_query_wanted_fn(void *arg, const char *group, const char *series);
/* 0 goes on, anything else ends the visit and is returned by it. */
typedef int ls_query_column_fn(void *arg, const struct ls_query_column *column);

/* Reads with q, which must outlive it. NULL when out of memory. */
struct ls_query_series *ls_query_series_new(struct ls_query *q);
void ls_query_series_free(struct ls_query_series *s);

/*
 * Which series are meant from now on; `wanted` is called later. Forgets what it
 * remembers of dictionaries.
 */
void ls_query_series_want(struct ls_query_series *s, ls_query_wanted_fn *wanted,
	void *arg);

/*
 * Visits what is wanted of one host, by file, then by time of the chunk. -LS_EUNKNOWN:
 * no file of that time or later names the host.
 */
int ls_query_series_visit(struct ls_query_series *s, const struct ls_query_span *span,
	ls_query_column_fn *fn, void *arg) LS_MUSTCHECK;

/* Chunks left out so far. */
uint64_t ls_query_series_bad(const struct ls_query_series *s);

#endif
