/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of units, and of positions in their tables; interface in store_sql.h.
 */
#include "config.h"

#include "storage/write/store_sql.h"

#include "storage/db/sql.h"

int
ls_insert_ledger(sqlite3_stmt *s, const struct ls_store_ledger *l)
{
	return ls_sql_run(s,
		LS_SQL_VALUES(ls_sql_blob(l->boot, sizeof(l->boot)),
			ls_sql_text(l->host), ls_sql_u64(l->seq), ls_sql_int(l->t_us),
			ls_sql_u64(l->chunk_seq)));
}

int
ls_insert_ring(sqlite3_stmt *s, const struct ls_store_ring *r)
{
	return ls_sql_run(s,
		LS_SQL_VALUES(ls_sql_blob(r->ring_id, sizeof(r->ring_id)),
			ls_sql_int(r->worker_id), ls_sql_u64(r->high),
			ls_sql_int(r->t_us)));
}

/* Are exactly those rows of the journal there that the unit stands for? */
static int
insert_pack_check(sqlite3_stmt *s, const struct ls_store_pack *p)
{
	struct ls_sql_rows found = ls_sql_again(s,
		LS_SQL_VALUES(ls_sql_int(p->from_id), ls_sql_int(p->last_id)));
	uint64_t rows = ls_sql_next(&found) ? (uint64_t)sqlite3_column_int64(s, 0) : 0;
	int rc = ls_sql_end(&found);

	return rc != 0 || (rows > 0 && rows == p->journal_rows) ? rc : -LS_ESTALE;
}

static int
insert_step_rows(sqlite3_stmt *s, const struct ls_store_step_rows *r)
{
	return ls_sql_run(s,
		LS_SQL_VALUES(ls_sql_int(r->id), ls_sql_int(r->last_id),
			ls_sql_int(r->job_id), ls_sql_u64(r->records),
			ls_sql_u64(r->step_lo), ls_sql_u64(r->step_hi),
			ls_sql_int(r->t_lo_us), ls_sql_int(r->t_hi_us),
			ls_sql_blob(r->body, r->len)));
}

static int
insert_hot_rows(sqlite3_stmt *s, const struct ls_store_hot_rows *r)
{
	return ls_sql_run(s,
		LS_SQL_VALUES(ls_sql_int(r->id), ls_sql_int(r->last_id),
			ls_sql_u64(r->n), ls_sql_blob(r->body, r->len)));
}

int
ls_store_put_pack(sqlite3_stmt *const *stmt, const struct ls_store_pack *p)
{
	int rc = insert_pack_check(stmt[LS_STORE_DAY_WHOLE], p);

	if (rc == 0)
		rc = ls_sql_run(stmt[LS_STORE_DAY_UNIT],
			LS_SQL_VALUES(ls_sql_int(p->from_id), ls_sql_int(p->last_id),
				ls_sql_int(p->t_us), ls_sql_u64(p->records)));
	for (size_t i = 0; i < p->step_rows_count && rc == 0; i++)
		rc = insert_step_rows(stmt[LS_STORE_DAY_STEP_ROWS], &p->step_rows[i]);
	if (rc == 0 && p->hot_rows.n > 0)
		rc = insert_hot_rows(stmt[LS_STORE_DAY_HOT_ROWS], &p->hot_rows);
	for (size_t i = 0; i < p->ledger_count && rc == 0; i++)
		rc = ls_insert_ledger(stmt[LS_STORE_DAY_LEDGER], &p->ledgers[i]);
	for (size_t i = 0; i < p->ring_count && rc == 0; i++)
		rc = ls_insert_ring(stmt[LS_STORE_DAY_RING], &p->rings[i]);
	return rc != 0 ? rc
		       : ls_sql_run(stmt[LS_STORE_DAY_PACKED],
				 LS_SQL_VALUES(ls_sql_int(p->from_id),
					 ls_sql_int(p->last_id)));
}
