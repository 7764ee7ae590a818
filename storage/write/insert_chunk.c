/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of the stream of chunks; interface in store_sql.h. */
#include "config.h"

#include "storage/write/store_sql.h"

#include <errno.h>
#include "storage/db/db.h"

static int
insert_dictionary(sqlite3_stmt *s, const struct ls_store_chunk *c, int64_t t_us)
{
	ls_insert_int(s, 1, (int64_t)c->hash);
	ls_insert_int(s, 2, t_us);
	ls_insert_text(s, 3, c->group);
	ls_insert_blob(s, 4, c->series, c->series_len);
	return ls_db_run(s);
}

static int
insert_chunk(struct ls_store_batch *b, const char *host, const struct ls_store_chunk *c,
	int64_t t_us)
{
	sqlite3_stmt *s = b->stmt[LS_STORE_DAY_CHUNK];
	int64_t at;
	int rc = ls_bodies_put(b->bodies, c->body, c->body_len, &at);

	if (rc != 0)
		return rc;
	ls_insert_text(s, 1, host);
	ls_insert_int(s, 2, (int64_t)c->hash);
	ls_insert_int(s, 3, t_us);
	ls_insert_int(s, 4, c->t_first_us);
	ls_insert_int(s, 5, c->t_last_us);
	ls_insert_int(s, 6, c->n);
	ls_insert_int(s, 7, c->map.ref_mono_ns);
	ls_insert_int(s, 8, c->map.offset_ns);
	ls_insert_int(s, 9, c->map.drift_ppb);
	ls_insert_int(s, 10, c->map.uncertainty_ns);
	ls_insert_int(s, 11, at);
	ls_insert_int(s, 12, (int64_t)c->body_len);
	return ls_db_run(s);
}

static void
insert_time(sqlite3_stmt *s, int column, int64_t t_us)
{
	if (t_us != 0)
		ls_insert_int(s, column, t_us);
	else
		(void)sqlite3_bind_null(s,
			column); /* cannot fail on a column that is there */
}

static int
insert_lost(sqlite3_stmt *s, const char *host, const struct ls_store_chunk *c,
	int64_t t_us)
{
	ls_insert_text(s, 1, host);
	ls_insert_int(s, 2, t_us);
	ls_insert_text(s, 3, c->group);
	insert_time(s, 4, c->t_first_us);
	insert_time(s, 5, c->t_last_us);
	ls_insert_int(s, 6, (int64_t)c->samples);
	ls_insert_int(s, 7, c->reason);
	return ls_db_run(s);
}

static int
insert_row(struct ls_store_batch *b, const char *host, const struct ls_store_chunk *c,
	int64_t t_us)
{
	switch (c->kind) {
	case LS_WIRE_DICTIONARY:
		return insert_dictionary(b->stmt[LS_STORE_DAY_DICTIONARY], c, t_us);
	case LS_WIRE_CHUNK:
		return insert_chunk(b, host, c, t_us);
	case LS_WIRE_LOST:
		return insert_lost(b->stmt[LS_STORE_DAY_LOST], host, c, t_us);
	}
	return -EINVAL;
}

int
ls_insert_chunks(struct ls_store_batch *b, const struct ls_store_report *r,
	int64_t t_us)
{
	size_t i;
	int rc;

	if (r->chunk_count == 0)
		return 0;
	ls_insert_text(b->stmt[LS_STORE_DAY_CHUNK_HOST], 1, r->host);
	rc = ls_db_run(b->stmt[LS_STORE_DAY_CHUNK_HOST]);
	for (i = 0; i < r->chunk_count && rc == 0; i++)
		rc = insert_row(b, r->host, &r->chunks[i], t_us);
	return rc;
}
