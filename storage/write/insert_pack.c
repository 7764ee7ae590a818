/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of units, and of positions in their tables; interface in store_sql.h.
 */
#include "config.h"

#include "storage/db/err_sqlite.h"
#include "storage/write/store_sql.h"

#include "storage/db/db.h"

int
ls_insert_ledger(sqlite3_stmt *const *stmt, const struct ls_store_ledger *l)
{
	sqlite3_stmt *s = stmt[LS_STORE_DAY_LEDGER];

	ls_insert_blob(s, 1, l->boot, sizeof(l->boot));
	ls_insert_text(s, 2, l->host);
	ls_insert_int(s, 3, (int64_t)l->seq);
	ls_insert_int(s, 4, l->t_us);
	ls_insert_int(s, 5, (int64_t)l->chunk_seq);
	return ls_db_run(s);
}

int
ls_insert_ring(sqlite3_stmt *const *stmt, const struct ls_store_ring *r)
{
	sqlite3_stmt *s = stmt[LS_STORE_DAY_RING];

	ls_insert_blob(s, 1, r->ring_id, sizeof(r->ring_id));
	ls_insert_int(s, 2, r->worker_id);
	ls_insert_int(s, 3, (int64_t)r->high);
	ls_insert_int(s, 4, r->t_us);
	return ls_db_run(s);
}

/* Are exactly those rows of the journal there that the unit stands for? */
static int
insert_pack_check(sqlite3_stmt *s, const struct ls_store_pack *p)
{
	int64_t rows = 0;
	int step;

	ls_insert_int(s, 1, p->from_id);
	ls_insert_int(s, 2, p->last_id);
	step = sqlite3_step(s);
	if (step == SQLITE_ROW)
		rows = sqlite3_column_int64(s, 0);
	(void)sqlite3_reset(s); /* tells the same error again */
	if (step != SQLITE_ROW && step != SQLITE_DONE)
		return ls_err_sqlite(step);
	return rows > 0 && (uint64_t)rows == p->journal_rows ? 0 : -LS_ESTALE;
}

static int
insert_unit(sqlite3_stmt *s, const struct ls_store_pack *p)
{
	ls_insert_int(s, 1, p->from_id);
	ls_insert_int(s, 2, p->last_id);
	ls_insert_int(s, 3, p->t_us);
	ls_insert_int(s, 4, (int64_t)p->records);
	return ls_db_run(s);
}

static int
insert_step_rows(sqlite3_stmt *s, const struct ls_store_step_rows *r)
{
	ls_insert_int(s, 1, r->id);
	ls_insert_int(s, 2, r->last_id);
	ls_insert_int(s, 3, r->job_id);
	ls_insert_int(s, 4, (int64_t)r->records);
	ls_insert_int(s, 5, (int64_t)r->step_lo);
	ls_insert_int(s, 6, (int64_t)r->step_hi);
	ls_insert_int(s, 7, r->t_lo_us);
	ls_insert_int(s, 8, r->t_hi_us);
	ls_insert_blob(s, 9, r->body, r->len);
	return ls_db_run(s);
}

static int
insert_hot_rows(sqlite3_stmt *s, const struct ls_store_hot_rows *r)
{
	ls_insert_int(s, 1, r->id);
	ls_insert_int(s, 2, r->last_id);
	ls_insert_int(s, 3, (int64_t)r->n);
	ls_insert_blob(s, 4, r->body, r->len);
	return ls_db_run(s);
}

int
ls_store_put_pack(sqlite3_stmt *const *stmt, const struct ls_store_pack *p)
{
	sqlite3_stmt *packed = stmt[LS_STORE_DAY_PACKED];
	size_t i;
	int rc = insert_pack_check(stmt[LS_STORE_DAY_WHOLE], p);

	if (rc == 0)
		rc = insert_unit(stmt[LS_STORE_DAY_UNIT], p);
	for (i = 0; i < p->step_rows_count && rc == 0; i++)
		rc = insert_step_rows(stmt[LS_STORE_DAY_STEP_ROWS], &p->step_rows[i]);
	for (i = 0; i < p->hot_rows_count && rc == 0; i++)
		rc = insert_hot_rows(stmt[LS_STORE_DAY_HOT_ROWS], &p->hot_rows[i]);
	for (i = 0; i < p->ledger_count && rc == 0; i++)
		rc = ls_insert_ledger(stmt, &p->ledgers[i]);
	for (i = 0; i < p->ring_count && rc == 0; i++)
		rc = ls_insert_ring(stmt, &p->rings[i]);
	if (rc != 0)
		return rc;
	ls_insert_int(packed, 1, p->from_id);
	ls_insert_int(packed, 2, p->last_id);
	return ls_db_run(packed);
}
