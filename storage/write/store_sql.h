/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_sql - the statements of the write side, each written once: LS_STORE_SQL(id,
 * file, text).
 *
 * Owner:   storage/write/store.c and storage/write/insert.c.
 * Units:   as in the schema.
 * Errors:  none.
 * Limits:  none.
 */
#ifndef LS_STORAGE_STORE_SQL_H
#define LS_STORAGE_STORE_SQL_H

#include <sqlite3.h>
#include "storage/db/bodies.h"
#include "storage/columns/journal.h"
#include "storage/db/rows.h"

#define LS_STORE_STATE_SQL(X)                                                                        \
	X(JOB, "INSERT INTO job (name, first_us) VALUES (?1, ?2) ON CONFLICT DO NOTHING")            \
	X(WORKER,                                                                                    \
		"INSERT INTO worker (id, ring_id, job_id, attempt, rank, world, chips, host, "       \
		"slice, role, first_us, step_source, step_confidence, rack, shard, simulated, "      \
		"owner) VALUES (?1, ?2, "                                                            \
		"(SELECT id FROM job WHERE name = ?3), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "      \
		"?13, ?14, ?15, ?16, ?17) ON CONFLICT DO NOTHING")                                   \
	X(WORKER_ID, "SELECT id FROM worker WHERE ring_id = ?1")                                     \
	X(FINDING,                                                                                   \
		"INSERT INTO finding (id, job, kind, severity, status, opened_us, updated_us, "      \
		"json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7) ON CONFLICT (id) DO UPDATE "          \
		"SET kind = ?3, severity = ?4, status = ?5, updated_us = ?6, json = ?7")             \
	X(EVENT,                                                                                     \
		"INSERT INTO finding_event (id, t_us, event, severity, status) "                     \
		"VALUES (?1, ?2, ?3, ?4, ?5)")                                                       \
	X(FORGET, "DELETE FROM finding_event WHERE t_us < ?1")                                       \
	X(META,                                                                                      \
		"INSERT INTO meta (key, value) VALUES (?1, ?2) "                                     \
		"ON CONFLICT (key) DO UPDATE SET value = ?2")                                        \
	X(HOST,                                                                                      \
		"INSERT INTO host_identity (host, first_us, last_us, json) VALUES (?1, ?2, ?2, ?3) " \
		"ON CONFLICT (host) DO UPDATE SET last_us = ?2, json = ?3")

#define LS_STORE_DAY_SQL(X)                                                                             \
	X(BEGIN, "BEGIN IMMEDIATE")                                                                     \
	X(COMMIT, "COMMIT")                                                                             \
	X(JOURNAL,                                                                                      \
		"INSERT INTO journal (id, last_id, t_us, records, step_lo, step_hi, body) "             \
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                  \
	X(GAP,                                                                                          \
		"INSERT INTO gap (id, worker_id, t_us, first_index, n, reason) "                        \
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                                                      \
	X(END,                                                                                          \
		"INSERT INTO worker_end (id, worker_id, t_us, how, records) "                           \
		"VALUES (?1, ?2, ?3, ?4, ?5)")                                                          \
	X(CLOSE,                                                                                        \
		"INSERT INTO step_close (id, job, attempt, step, t_us, expected, used, missing) "       \
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                              \
	X(LEDGER,                                                                                       \
		"INSERT INTO ledger (boot, host, seq, t_us, chunk_seq) VALUES (?1, ?2, ?3, ?4, ?5) "    \
		"ON CONFLICT (boot, host) DO UPDATE SET seq = max(seq, ?3), "                           \
		"chunk_seq = max(chunk_seq, ?5), t_us = max(t_us, ?4)")                                 \
	X(RING,                                                                                         \
		"INSERT INTO ring_high (ring_id, worker_id, high, t_us) VALUES (?1, ?2, ?3, ?4) "       \
		"ON CONFLICT (ring_id) DO UPDATE SET worker_id = ?2, high = max(high, ?3), t_us = ?4")  \
	X(ZOOM,                                                                                         \
		"INSERT INTO zoom (id, t_us, host, job, event, cause, until_us) "                       \
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                  \
	X(HANG,                                                                                         \
		"INSERT INTO hang (id, job, attempt, step, since_us, t_us, waiting, why, ranks) "       \
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                          \
	X(CHUNK_HOST,                                                                                   \
		"INSERT INTO chunk_host (name) VALUES (?1) ON CONFLICT DO NOTHING")                     \
	X(CHUNK,                                                                                        \
		"INSERT INTO chunk (host_id, dictionary, t_us, t_first_us, t_last_us, n, ref_mono_ns, " \
		"offset_ns, drift_ppb, uncertainty_ns, at, len) VALUES ((SELECT id FROM chunk_host "    \
		"WHERE name = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")                     \
	X(DICTIONARY,                                                                                   \
		"INSERT INTO dictionary (hash, t_us, family, series) VALUES (?1, ?2, ?3, ?4) "          \
		"ON CONFLICT (hash) DO UPDATE SET t_us = ?2")                                           \
	X(LOST,                                                                                         \
		"INSERT INTO lost (host_id, t_us, family, from_us, to_us, samples, reason) VALUES "     \
		"((SELECT id FROM chunk_host WHERE name = ?1), ?2, ?3, ?4, ?5, ?6, ?7)")                \
	X(UNIT, "INSERT INTO unit (id, last_id, t_us, records) VALUES (?1, ?2, ?3, ?4)")                \
	X(STEP_ROWS,                                                                                    \
		"INSERT INTO step_rows (id, last_id, job_id, records, step_lo, step_hi, "               \
		"t_lo_us, t_hi_us, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                  \
	X(HOT_ROWS,                                                                                     \
		"INSERT INTO hot_rows (id, last_id, n, body) VALUES (?1, ?2, ?3, ?4)")                  \
	X(PACKED, "DELETE FROM journal WHERE id BETWEEN ?1 AND ?2")                                     \
	X(WHOLE,                                                                                        \
		"SELECT count(*) FROM journal WHERE id BETWEEN ?1 AND ?2 "                              \
		"GROUP BY NULL HAVING min(id) = ?1 "                                                    \
		"AND max(last_id) = ?2")

enum ls_store_state_sql {
#define X(id, sql) LS_STORE_STATE_##id,
	LS_STORE_STATE_SQL(X)
#undef X
		LS_STORE_STATE_COUNT
};

enum ls_store_day_sql {
#define X(id, sql) LS_STORE_DAY_##id,
	LS_STORE_DAY_SQL(X)
#undef X
		LS_STORE_DAY_COUNT
};

/*
 * Puts one message of state.db's kinds, or the workers of a report, into its tables,
 * inside the caller's transaction. Sets the ids of workers and of the report's rows.
 */
int ls_store_put_state(sqlite3_stmt *const *stmt, struct ls_write *m) LS_MUSTCHECK;

/* A transaction on the day's file, as it is being made. */
struct ls_store_batch {
	sqlite3_stmt *const *stmt;
	struct ls_journal *journal;
	struct ls_bodies *bodies;
	int64_t next_id;
	uint64_t records; /* step records put */
	/* Of the row of the journal that is being made. */
	int64_t first_id, last_id, t_us; /* first_id 0: it has no event yet */
	uint64_t row_records, step_lo, step_hi;
};

/* Puts one message of the day's kinds into its tables, inside the caller's transaction.
 */
int ls_store_put_day(struct ls_store_batch *b, const struct ls_write *m) LS_MUSTCHECK;

/* Makes a row of what stands in the journal's body; does nothing if that is nothing. */
int ls_store_put_journal(struct ls_store_batch *b) LS_MUSTCHECK;

/*
 * Puts a unit in place of its rows of the journal, inside the caller's transaction.
 * -LS_ESTALE: those are not all there, or not all that is there.
 */
int ls_store_put_pack(sqlite3_stmt *const *stmt,
	const struct ls_store_pack *p) LS_MUSTCHECK;

/* Puts roll-ups into a day's file, inside the caller's transaction. -LS_ESTALE as in
 * ls_store_rollup. */
int ls_store_put_rollup(sqlite3 *db, const struct ls_store_rollup *r) LS_MUSTCHECK;

/* Runs a statement with a position: boot, host, seq, t_us, chunk_seq; or ring, worker,
 * high, t_us. */
int ls_insert_ledger(sqlite3_stmt *stmt, const struct ls_store_ledger *l) LS_MUSTCHECK;
int ls_insert_ring(sqlite3_stmt *stmt, const struct ls_store_ring *r) LS_MUSTCHECK;

/* Puts the rows of chunks of a report. */
int ls_insert_chunks(struct ls_store_batch *b, const struct ls_store_report *r,
	int64_t t_us) LS_MUSTCHECK;

/*
 * Copies positions (those of the journal too) and dictionaries, each as far back as it
 * is kept, from the attached database `old` into a new file.
 */
int ls_store_carry(sqlite3 *db, int64_t wall_us) LS_MUSTCHECK;

#endif
