/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_step - all records of one step in a day's file.
 *
 * Owner:   one thread at a time.
 * Units:   as in storage/db/rows.h.
 * Errors:  as in storage/read/query.h; -ETIMEDOUT, -ECANCELED of ls_query_stopped.
 * Limits:  one body in memory at a time.
 * Source:  storage/README.md, "Reading".
 */
#ifndef LS_STORAGE_QUERY_STEP_H
#define LS_STORAGE_QUERY_STEP_H

#include "storage/read/query.h"

/* A record, and the id of the event that brought it: of two of one worker, the greater
 * id counts. */
typedef int ls_query_step_fn(void *arg, int64_t id, int64_t worker_id,
	const struct ls_record *record);

/* What is asked. */
struct ls_query_step_ask {
	const char *job;
	uint64_t step;
};

/*
 * Visits the records of a step in any order; those that are not packed yet, of all
 * jobs. Bodies that cannot be read are left out and added to *bad.
 */
int ls_query_step(struct ls_query *q, int32_t day, const struct ls_query_step_ask *ask,
	ls_query_step_fn *fn, void *arg, uint64_t *bad) LS_MUSTCHECK;

#endif
