/* SPDX-License-Identifier: Apache-2.0 */
/* What a new day's file begins with, from the one before it; interface in store_sql.h. */
#include "config.h"

#include "storage/store_sql.h"

#include "storage/db.h"

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

int
ls_store_carry(sqlite3 *db, int64_t wall_us)
{
	int64_t since_us = wall_us - LS_LEDGER_KEEP_US, version;
	int rc = ls_db_int(db, "PRAGMA old.user_version", &version);

	if (rc == 0)
		rc = carry_copy(db,
			"INSERT INTO ring_high SELECT ring_id, worker_id, high, t_us "
			"FROM old.ring_high WHERE t_us >= ?1",
			since_us);
	if (rc == 0)
		rc = carry_copy(db,
			version < 2 ? "INSERT INTO ledger (boot, host, seq, t_us) SELECT boot, host, "
				      "seq, t_us FROM old.ledger WHERE t_us >= ?1"
				    : "INSERT INTO ledger (boot, host, seq, t_us, chunk_seq) SELECT "
				      "boot, host, seq, t_us, chunk_seq FROM old.ledger "
				      "WHERE t_us >= ?1",
			since_us);
	if (rc != 0 || version < 2)
		return rc;
	return carry_copy(db,
		"INSERT INTO dictionary SELECT hash, t_us, family, series FROM old.dictionary "
		"WHERE t_us >= ?1",
		wall_us - LS_DICTIONARY_KEEP_US);
}
