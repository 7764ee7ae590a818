/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rowmake - messages for the writer, as tests need them, and counting what is stored.
 *
 * Owner:   test programs; messages given out are the caller's.
 * Units:   microseconds since the epoch.
 * Errors:  a failure fails the test.
 * Limits:  none.
 */
#ifndef LS_TESTS_ROWMAKE_H
#define LS_TESTS_ROWMAKE_H

#include <stdint.h>
#include "storage/db/rows.h"

/* A worker of job "train": rank, host h<rank>, row id rank + 1, a ring of its own. */
struct ls_write *ls_test_worker(int32_t rank, int64_t t_us);

/* A report of that worker's agent with one item: records first..first+count of its
 * ring. */
struct ls_write *ls_test_report(int32_t rank, uint64_t seq, uint64_t first,
	uint64_t count, int64_t t_us);

/* A report with a gap, an end and one host counter. */
struct ls_write *ls_test_report_rest(int32_t rank, uint64_t seq, int64_t t_us);

/* The closing of a step of job "train": 1 of 3 used, ranks 1 and 70000 missing. */
struct ls_write *ls_test_close(uint64_t step, int64_t t_us);

/* Job "train", attempt 2, seen standing still since 11 s: ranks 1 and 70000 are silent,
 * 3 wait. */
struct ls_write *ls_test_hang(uint64_t step, int64_t t_us);

/* A finding of job "train" with a small JSON object. */
struct ls_write *ls_test_finding(const char *id, const char *status, int64_t t_us);

/* Frees what ls_test_report holds, and the message. */
void ls_test_write_free(struct ls_write *m);

/*
 * First column of the first row of a query on a day's file (state.db: day 0); fails if
 * it cannot. What stands in the journal is seen as tables: step_block (id, worker_id,
 * first_index, n, step_lo, step_hi, t_lo_us, t_hi_us, uncertainty_ns), counters (id,
 * host, worker_id, read_us, n); brought in with their tables: ledger (host, seq,
 * chunk_seq), ring_high (worker_id, high). The tables themselves are main.ledger,
 * main.ring_high.
 */
int64_t ls_test_sql(const char *dir, int32_t day, const char *sql);

#endif
