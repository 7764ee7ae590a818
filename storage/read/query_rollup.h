/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_rollup - the read side of roll-ups: rows of one metric in a range of time,
 * column by column.
 *
 * Names of hosts and labels are kept from one read to the next, for LS_ROLLUP_NAME_DAYS
 * files.
 *
 * Owner:   one thread, that of its struct ls_query.
 * Units:   as in storage/db/rows.h; values in the unit of the metric.
 * Errors:  as in storage/read/query.h; -ENOMEM.
 * Limits:  LS_ROLLUP_ROWS_MAX rows of a part.
 * Source:  storage/README.md, "Roll-ups".
 */
#ifndef LS_STORAGE_QUERY_ROLLUP_H
#define LS_STORAGE_QUERY_ROLLUP_H

#include <stdbool.h>
#include "storage/read/query.h"
#include "storage/columns/rollup.h"

struct ls_rollup_reader;

/* What is asked for. */
struct ls_rollup_wanted {
	const char *metric;
	uint32_t span_s; /* 60 or 3600 */
	/* of 60: whole hours in the range that are made come as such, without their
	 * minutes */
	bool hours;
	int64_t from_us, to_us; /* spans that begin in [from_us, to_us) */
	unsigned columns; /* LS_ROLLUP_COUNT, ...; others are not to be read */
	/* Hosts and label sets that are wanted; NULL: all. Asked once a name of a file.
	 */
	bool (*host)(void *arg, const char *name);
	bool (*labels)(void *arg, const char *text);
	void *arg;
};

/*
 * Rows of one span, ordered by labels and host; they hold during the visit. Ids are of
 * the day's file. As a rule the next part is about the same series in the same order:
 * what was made of their names holds as long as `chosen` is the same.
 */
struct ls_rollup_part {
	int32_t day;
	int64_t t_us;
	uint32_t span_s;
	struct ls_rollup_columns columns;
	/* those of the columns' rows that are wanted, ascending */
	const uint32_t *row;
	size_t count;
	uint64_t chosen; /* never 0 */
	const char *const *host; /* names by host_id; NULL: not a name of this file */
	/* texts by labels_id: what is between the braces, "" if none */
	const char *const *labels;
	/* lengths of the two; the ids of all rows wanted are below */
	size_t host_ids, labels_ids;
	/* as long as it is the same, ids mean the same names */
	uint64_t names;
};

/* 0 goes on, anything else ends the visit and is returned by it. */
typedef int ls_rollup_part_fn(void *arg, const struct ls_rollup_part *part);

/* q must outlive it. NULL when out of memory. */
struct ls_rollup_reader *ls_rollup_reader_new(struct ls_query *q);
void ls_rollup_reader_free(struct ls_rollup_reader *r);

/*
 * Visits the parts of each file by time. Several parts may hold the same series and
 * span: late samples come in rows of their own, which add up (ls_rollup_merge), in the
 * same file or a later one. Bodies that cannot be read are left out and counted in
 * *ret_bad.
 */
int ls_rollup_read(struct ls_rollup_reader *r, const struct ls_rollup_wanted *wanted,
	ls_rollup_part_fn *fn, void *arg, uint64_t *ret_bad) LS_MUSTCHECK;

#endif
