/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query - the read side of a state directory: connections of its own, read-only.
 *
 * Rows are read in windows, and events are given when their window is closed, so that a
 * reader never holds a snapshot for long. A read during which a WAL grows beyond
 * LS_WAL_MAX_BYTES is interrupted (-LS_EINTERRUPTED), so that the WAL can be emptied. A
 * day file that cannot be read fails that call alone.
 *
 * Owner:   one thread at a time.
 * Units:   as in storage/db/rows.h.
 * Errors:  those of ls_err_sqlite and ls_migrate_check; -errno; what a visitor returns.
 * Limits:  LS_WAL_MAX_BYTES of a WAL while it is read; LS_QUERY_WINDOW rows of a window; of events, a unit; LS_QUERY_DAYS_OPEN day
 *          files open.
 */
#ifndef LS_STORAGE_QUERY_H
#define LS_STORAGE_QUERY_H

#include <jansson.h>
#include <stdatomic.h>
#include "storage/db/days.h"
#include "storage/db/rows.h"

struct ls_query;

/* Visitors: 0 goes on, anything else ends the visit and is returned by it. */
typedef int ls_query_worker_fn(void *arg, const struct ls_store_worker *w);
typedef int ls_query_finding_fn(void *arg, const char *id, const char *json,
	size_t len);
typedef int ls_query_ledger_fn(void *arg, const struct ls_store_ledger *entry);
typedef int ls_query_ring_fn(void *arg, const struct ls_store_ring *ring);
typedef int ls_query_event_fn(void *arg, const struct ls_store_event *event);

/* Opens state.db below dir, which must outlive it, for reading. */
int ls_query_open(const char *dir, struct ls_query **ret_query) LS_MUSTCHECK;
void ls_query_close(struct ls_query *q);

/*
 * From now on, what is read ends early once it is deadline_mono_ns (0: never) or
 * *cancelled (may be NULL) is true: inside of SQLite, too. What a call returns then is
 * any error: ask ls_query_stopped.
 */
void ls_query_stop_at(struct ls_query *q, uint64_t deadline_mono_ns,
	const atomic_bool *cancelled);

/* 0; -ETIMEDOUT or -ECANCELED if it is time to stop. Long loops ask between rows. */
int ls_query_stopped(const struct ls_query *q) LS_MUSTCHECK;

/* Workers by id; job NULL: of all jobs. */
int ls_query_workers(struct ls_query *q, const char *job, ls_query_worker_fn *fn,
	void *arg) LS_MUSTCHECK;

/* A number that grows with every worker in state.db; 0: it has none. */
int ls_query_last_worker(struct ls_query *q, int64_t *ret_id) LS_MUSTCHECK;

/* The highest worker id in use anywhere, 0 if none. */
int ls_query_max_worker(struct ls_query *q, int64_t *ret_id) LS_MUSTCHECK;

/* The newest LS_FINDINGS_MAX findings, in order of opening. */
int ls_query_findings(struct ls_query *q, ls_query_finding_fn *fn,
	void *arg) LS_MUSTCHECK;

/* A value of meta, exactly size bytes; -LS_EABSENT. */
int ls_query_meta(struct ls_query *q, const char *key, void *ret_value,
	size_t size) LS_MUSTCHECK;

/* The same of any size, to be freed. */
int ls_query_meta_bytes(struct ls_query *q, const char *key, void **ret_bytes,
	size_t *ret_len) LS_MUSTCHECK;

/* All day files, ascending. */
int ls_query_days(struct ls_query *q, struct ls_days *ret_days) LS_MUSTCHECK;

/* Ledger and rings of the newest file, its journal's too, least recent first. */
int ls_query_ledgers(struct ls_query *q, ls_query_ledger_fn *fn,
	void *arg) LS_MUSTCHECK;
int ls_query_rings(struct ls_query *q, ls_query_ring_fn *fn, void *arg) LS_MUSTCHECK;

/*
 * The id from which on the day holds about max_records step records at most, and how
 * many those are. Within a commit or a unit they are taken to be spread evenly.
 */
int ls_query_tail(struct ls_query *q, int32_t day, uint64_t max_records,
	int64_t *ret_from_id, uint64_t *ret_records) LS_MUSTCHECK;

/*
 * Events of a day with id >= from_id, in the order in which they came. What cannot be
 * read is passed over and logged; its error is returned after all the rest was given.
 */
int ls_query_events(struct ls_query *q, int32_t day, int64_t from_id,
	ls_query_event_fn *fn, void *arg) LS_MUSTCHECK;

#endif
