/* SPDX-License-Identifier: Apache-2.0 */
/* What a new day's file begins with, from the one before it; interface in store_sql.h.
 */
#include "config.h"

#include "storage/db/err_sqlite.h"
#include "storage/write/store_sql.h"

#include "storage/db/db.h"
#include "storage/columns/positions.h"

/* Runs one statement that copies rows of `old` since a time. */
static int
carry_copy(sqlite3 *db, const char *sql, int64_t since_us)
{
	sqlite3_stmt *stmt = NULL;
	int rc = ls_db_prepare(db, sql, &stmt);

	if (rc == 0)
		rc = ls_err_sqlite(sqlite3_bind_int64(stmt, 1, since_us));
	if (rc == 0)
		rc = ls_db_run(stmt);
	(void)sqlite3_finalize(stmt); /* its error is known */
	return rc;
}

/* Positions, those of the journal brought in, since a time. */
static int
carry_positions(sqlite3 *db, int64_t since_us)
{
	static const char *const sql[2] = {
		"INSERT INTO ledger (boot, host, seq, chunk_seq, t_us) VALUES (?1, ?2, ?3, ?4, ?5)",
		"INSERT INTO ring_high (ring_id, worker_id, high, t_us) VALUES (?1, ?2, ?3, ?4)"
	};
	sqlite3_stmt *stmt[2] = { NULL, NULL };
	struct ls_positions p;
	size_t i;
	int rc;

	ls_positions_init(&p);
	rc = ls_positions_load(&p, db, "old");
	for (i = 0; i < 2 && rc == 0; i++)
		rc = ls_db_prepare(db, sql[i], &stmt[i]);
	for (i = 0; i < p.ledger_count && rc == 0; i++) {
		const struct ls_store_ledger *l = &p.ledgers[i];

		if (l->t_us < since_us)
			continue;
		ls_insert_blob(stmt[0], 1, l->boot, sizeof(l->boot));
		ls_insert_text(stmt[0], 2, l->host);
		ls_insert_int(stmt[0], 3, (int64_t)l->seq);
		ls_insert_int(stmt[0], 4, (int64_t)l->chunk_seq);
		ls_insert_int(stmt[0], 5, l->t_us);
		rc = ls_db_run(stmt[0]);
	}
	for (i = 0; i < p.ring_count && rc == 0; i++) {
		const struct ls_store_ring *r = &p.rings[i];

		if (r->t_us < since_us)
			continue;
		ls_insert_blob(stmt[1], 1, r->ring_id, sizeof(r->ring_id));
		ls_insert_int(stmt[1], 2, r->worker_id);
		ls_insert_int(stmt[1], 3, (int64_t)r->high);
		ls_insert_int(stmt[1], 4, r->t_us);
		rc = ls_db_run(stmt[1]);
	}
	for (i = 0; i < 2; i++)
		(void)sqlite3_finalize(stmt[i]); /* its errors were told when it ran */
	ls_positions_fini(&p);
	return rc;
}

int
ls_store_carry(sqlite3 *db, int64_t wall_us)
{
	int rc = carry_positions(db, wall_us - LS_LEDGER_KEEP_US);

	return rc != 0
		? rc
		: carry_copy(db,
			  "INSERT INTO dictionary SELECT hash, t_us, family, series FROM old.dictionary "
			  "WHERE t_us >= ?1",
			  wall_us - LS_DICTIONARY_KEEP_US);
}
