/* SPDX-License-Identifier: Apache-2.0 */
/*
 * positions - how far agents and rings are on disk, gathered from tables and journal:
 * the greatest wins.
 *
 * Owner:   the caller; ls_positions_init makes it empty.
 * Units:   as in storage/db/rows.h.
 * Errors:  -ENOMEM; those of ls_err_sqlite and ls_journal_read.
 * Limits:  none of its own: agents and rings are bounded where they report.
 */
#ifndef LS_STORAGE_POSITIONS_H
#define LS_STORAGE_POSITIONS_H

#include <sqlite3.h>
#include "proto/base/table.h"
#include "storage/columns/journal.h"

struct ls_positions {
	size_t ledger_count, ledger_capacity, ring_count, ring_capacity;
	struct ls_store_ledger *ledgers;
	struct ls_store_ring *rings;
	struct ls_table ledger_table, ring_table; /* where in these arrays each is */
	uint64_t bad; /* rows of the journal that do not read */
};

/* Makes it empty; frees all. */
void ls_positions_init(struct ls_positions *p);
void ls_positions_fini(struct ls_positions *p);

/* Brings in one position: a new one, or what is greater than the one that is there. */
int ls_positions_put_ledger(struct ls_positions *p,
	const struct ls_store_ledger *ledger) LS_MUSTCHECK;
int ls_positions_put_ring(struct ls_positions *p,
	const struct ls_store_ring *ring) LS_MUSTCHECK;

/* Brings in those of a journal's body; its events are passed over. */
int ls_positions_put_journal(struct ls_positions *p, const uint8_t *body,
	size_t len) LS_MUSTCHECK;

/*
 * Brings in those of a day's file: the tables ledger and ring_high, and the journal, of
 * the database named `schema` (main, or an attached one). A row of the journal that
 * does not read is counted as bad and logged: who stood there alone is taken for as far
 * as stood before.
 */
int ls_positions_load(struct ls_positions *p, sqlite3 *db,
	const char *schema) LS_MUSTCHECK;

/* Orders them by time, least recent first. Nothing can be brought in after that. */
void ls_positions_sort(struct ls_positions *p);

#endif
