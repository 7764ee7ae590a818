/* SPDX-License-Identifier: Apache-2.0 */
/* What a new day's file begins with, from the one before it; interface in store_sql.h.
 */
#include "config.h"

#include "storage/write/store_sql.h"

#include "storage/db/db.h"
#include "storage/db/sql.h"
#include "storage/columns/positions.h"

enum carry_statement { CARRY_LEDGER, CARRY_RING, CARRY_DICTIONARY, CARRY_STATEMENTS };

static const char *const carry_sql[CARRY_STATEMENTS] = {
	[CARRY_LEDGER] = "INSERT INTO ledger (boot, host, seq, t_us, chunk_seq) "
			 "VALUES (?1, ?2, ?3, ?4, ?5)",
	[CARRY_RING] = "INSERT INTO ring_high (ring_id, worker_id, high, t_us) "
		       "VALUES (?1, ?2, ?3, ?4)",
	[CARRY_DICTIONARY] = "INSERT INTO dictionary SELECT hash, t_us, family, series "
			     "FROM old.dictionary WHERE t_us >= ?1",
};

/* Positions, those of the journal brought in, since a time. */
static int
carry_positions(sqlite3_stmt *const *stmt, sqlite3 *db, int64_t since_us)
{
	struct ls_positions p;
	int rc;

	ls_positions_init(&p);
	rc = ls_positions_load(&p, db, "old");
	for (size_t i = 0; i < p.ledger_count && rc == 0; i++)
		if (p.ledgers[i].t_us >= since_us)
			rc = ls_insert_ledger(stmt[CARRY_LEDGER], &p.ledgers[i]);
	for (size_t i = 0; i < p.ring_count && rc == 0; i++)
		if (p.rings[i].t_us >= since_us)
			rc = ls_insert_ring(stmt[CARRY_RING], &p.rings[i]);
	ls_positions_fini(&p);
	return rc;
}

int
ls_store_carry(sqlite3 *db, int64_t wall_us)
{
	sqlite3_stmt *stmt[CARRY_STATEMENTS] = { NULL };
	int rc = ls_db_prepare_all(db, carry_sql, stmt, CARRY_STATEMENTS);

	if (rc == 0)
		rc = carry_positions(stmt, db, wall_us - LS_LEDGER_KEEP_US);
	if (rc == 0)
		rc = ls_sql_run(stmt[CARRY_DICTIONARY],
			LS_SQL_VALUES(ls_sql_int(wall_us - LS_DICTIONARY_KEEP_US)));
	ls_db_finalize_all(stmt, CARRY_STATEMENTS);
	return rc;
}
