/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/columns/positions.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/log.h"
#include "proto/base/mem.h"
#include "storage/db/sql.h"

/* Keys: boot and host, which come first in an agent's; the id of a ring. */
#define POSITIONS_LEDGER_KEY offsetof(struct ls_store_ledger, seq)
_Static_assert(offsetof(struct ls_store_ledger, boot) == 0 &&
		offsetof(struct ls_store_ledger, host) == LS_BOOT_BYTES &&
		POSITIONS_LEDGER_KEY == LS_BOOT_BYTES + LS_HOST_NAME_MAX_BYTES &&
		offsetof(struct ls_store_ring, ring_id) == 0,
	"keys are without holes");

void
ls_positions_init(struct ls_positions *p)
{
	memset(p, 0, sizeof(*p));
	ls_table_init(&p->ledger_table, POSITIONS_LEDGER_KEY);
	ls_table_init(&p->ring_table, LS_RING_ID_BYTES);
}

void
ls_positions_fini(struct ls_positions *p)
{
	free(p->ledgers);
	free(p->rings);
	ls_table_fini(&p->ledger_table);
	ls_table_fini(&p->ring_table);
	memset(p, 0, sizeof(*p));
}

/* An array of structs that are found by a table. */
struct positions_array {
	void **items;
	size_t *count, *capacity, size;
	struct ls_table *table;
};

/* Room for one more; if it moves, the table finds them anew. */
static int
positions_room(const struct positions_array *a)
{
	size_t before = *a->capacity, key_len = a->table->key_len, i;
	int rc = ls_mem_grow(a->items, *a->count, a->capacity, a->size);

	if (rc != 0 || *a->capacity == before)
		return rc;
	ls_table_fini(a->table);
	ls_table_init(a->table, key_len);
	for (i = 0; i < *a->count && rc == 0; i++)
		rc = ls_table_put(a->table, (char *)*a->items + i * a->size);
	return rc;
}

static int
positions_add(const struct positions_array *a, const void *item)
{
	char *at;
	int rc = positions_room(a);

	if (rc != 0)
		return rc;
	at = (char *)*a->items + *a->count * a->size;
	memcpy(at, item, a->size);
	rc = ls_table_put(a->table, at);
	if (rc == 0)
		(*a->count)++;
	return rc;
}

static uint64_t
positions_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

int
ls_positions_put_ledger(struct ls_positions *p, const struct ls_store_ledger *ledger)
{
	struct ls_store_ledger key = *ledger, *l;
	size_t len = strnlen(key.host, sizeof(key.host));
	void *items = p->ledgers;
	const struct positions_array array = { &items, &p->ledger_count,
		&p->ledger_capacity, sizeof(key), &p->ledger_table };
	int rc;

	memset(key.host + len, 0, sizeof(key.host) - len);
	l = ls_table_find(&p->ledger_table, &key);
	if (l == NULL) {
		rc = positions_add(&array, &key);
		p->ledgers = items;
		return rc;
	}
	l->seq = positions_max(l->seq, ledger->seq);
	l->chunk_seq = positions_max(l->chunk_seq, ledger->chunk_seq);
	l->t_us = ledger->t_us > l->t_us ? ledger->t_us : l->t_us;
	return 0;
}

int
ls_positions_put_ring(struct ls_positions *p, const struct ls_store_ring *ring)
{
	struct ls_store_ring *r = ls_table_find(&p->ring_table, ring);
	void *items = p->rings;
	const struct positions_array array = { &items, &p->ring_count,
		&p->ring_capacity, sizeof(*ring), &p->ring_table };
	int rc;

	if (r == NULL) {
		rc = positions_add(&array, ring);
		p->rings = items;
		return rc;
	}
	r->worker_id = ring->worker_id;
	r->high = positions_max(r->high, ring->high);
	r->t_us = ring->t_us > r->t_us ? ring->t_us : r->t_us;
	return 0;
}

static int
positions_entry(void *arg, const struct ls_journal_entry *e)
{
	return e->kind == LS_JOURNAL_AGENT ? ls_positions_put_ledger(arg, &e->u.agent)
					   : ls_positions_put_ring(arg, &e->u.ring);
}

int
ls_positions_put_journal(struct ls_positions *p, const uint8_t *body, size_t len)
{
	return ls_journal_read_positions(body, len, positions_entry, p);
}

/* --- a day's file --------------------------------------------------------- */

static int
positions_row_ledger(struct ls_positions *p, sqlite3_stmt *stmt)
{
	struct ls_store_ledger l = { .seq = 0 };
	int rc = ls_sql_read(stmt,
		LS_SQL_FIELDS(ls_sql_to_blob(l.boot, sizeof(l.boot)),
			ls_sql_to_text(l.host, sizeof(l.host)), ls_sql_to_u64(&l.seq),
			ls_sql_to_u64(&l.chunk_seq), ls_sql_to_i64(&l.t_us)));

	return rc == 0 ? ls_positions_put_ledger(p, &l) : rc;
}

static int
positions_row_ring(struct ls_positions *p, sqlite3_stmt *stmt)
{
	struct ls_store_ring r = { .high = 0 };
	int rc = ls_sql_read(stmt,
		LS_SQL_FIELDS(ls_sql_to_blob(r.ring_id, sizeof(r.ring_id)),
			ls_sql_to_i64(&r.worker_id), ls_sql_to_u64(&r.high),
			ls_sql_to_i64(&r.t_us)));

	return rc == 0 ? ls_positions_put_ring(p, &r) : rc;
}

static int
positions_row_journal(struct ls_positions *p, sqlite3_stmt *stmt)
{
	const uint8_t *body = sqlite3_column_blob(stmt, 1);
	int rc = body == NULL ? -LS_ECORRUPT
			      : ls_positions_put_journal(p, body,
					(size_t)sqlite3_column_bytes(stmt, 1));

	if (rc == 0 || rc == -ENOMEM)
		return rc;
	p->bad++;
	ls_log(LS_LOG_ERR, "storage",
		"row %lld of the journal: %s; continuing without its positions",
		(long long)sqlite3_column_int64(stmt, 0), ls_err_text(rc));
	return 0;
}

int
ls_positions_load(struct ls_positions *p, sqlite3 *db, const char *schema)
{
	static const struct {
		const char *columns, *table;
		int (*row)(struct ls_positions *p, sqlite3_stmt *stmt);
	} tables[] = {
		{ "boot, host, seq, chunk_seq, t_us", "ledger", positions_row_ledger },
		{ "ring_id, worker_id, high, t_us", "ring_high", positions_row_ring },
		/* rowid tables come by id */
		{ "id, body", "journal", positions_row_journal },
	};
	char sql[128];
	int rc = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && rc == 0; i++) {
		struct ls_sql_rows rows;

		(void)snprintf(sql, sizeof(sql), "SELECT %s FROM %s.%s",
			tables[i].columns, schema, tables[i].table); /* words of ours */
		rows = ls_sql_rows(db, sql, NULL);
		while (ls_sql_next(&rows))
			rows.rc = tables[i].row(p, rows.stmt);
		rc = ls_sql_end(&rows);
	}
	return rc;
}

static int
positions_compare_ledger(const void *a, const void *b)
{
	const struct ls_store_ledger *x = a, *y = b;

	return (x->t_us > y->t_us) - (x->t_us < y->t_us);
}

static int
positions_compare_ring(const void *a, const void *b)
{
	const struct ls_store_ring *x = a, *y = b;

	return (x->t_us > y->t_us) - (x->t_us < y->t_us);
}

void
ls_positions_sort(struct ls_positions *p)
{
	if (p->ledger_count > 0)
		qsort(p->ledgers, p->ledger_count, sizeof(*p->ledgers),
			positions_compare_ledger);
	if (p->ring_count > 0)
		qsort(p->rings, p->ring_count, sizeof(*p->rings),
			positions_compare_ring);
	ls_table_fini(&p->ledger_table);
	ls_table_fini(&p->ring_table);
}
