/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack - journal entries in, one message out that puts the same events into columns.
 *
 * Step records go into tables of a job each, a new one where the step changes once a
 * quarter of LS_STEP_ROWS_RECORDS_MAX came together: then a step of a large job is one
 * row, or two. A run that comes late still goes to the table of its step, so ids of two
 * rows may interleave; readers sort by id.
 *
 * Owner:   one thread.
 * Units:   as in storage/db/rows.h.
 * Errors:  -ENOMEM; -LS_ELIMIT more than LS_UNIT_EVENTS_MAX events; -LS_ERANGE ids that
 *          fall; what the journal's items are refused with is counted, not returned.
 * Limits:  LS_UNIT_EVENTS_MAX, LS_STEP_ROWS_RECORDS_MAX.
 * Source:  storage/README.md, "Units".
 */
#ifndef LS_STORAGE_PACK_H
#define LS_STORAGE_PACK_H

#include "storage/columns/journal.h"
#include "storage/db/rows.h"

struct ls_pack;

/* The job of a worker, as state.db numbers them; 0: it is not known. */
typedef int64_t ls_pack_job_fn(void *arg, int64_t worker_id);

/* An empty pack; NULL: out of memory. */
struct ls_pack *ls_pack_new(ls_pack_job_fn *job_of, void *arg);

/* Frees it; accepts NULL. */
void ls_pack_free(struct ls_pack *p);

/* Makes it empty, keeps the memory. */
void ls_pack_reset(struct ls_pack *p);

/* Adds an entry; `pack` is the struct ls_pack *. Fits ls_journal_read. */
int ls_pack_entry(void *pack, const struct ls_journal_entry *entry) LS_MUSTCHECK;

/* Items that could not be read and are left out. */
uint64_t ls_pack_bad(const struct ls_pack *p);

/*
 * The message for the writer, but for the day and the rows of the journal that it
 * stands for. The pack is empty then, also when that fails.
 */
int ls_pack_finish(struct ls_pack *p, struct ls_write **ret_message) LS_MUSTCHECK;

#endif
