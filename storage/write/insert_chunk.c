/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of the stream of chunks; interface in store_sql.h. */
#include "config.h"

#include "storage/write/store_sql.h"

#include <errno.h>
#include "storage/db/sql.h"

static int
insert_dictionary(sqlite3_stmt *s, const struct ls_store_chunk *c, int64_t t_us)
{
	return ls_sql_run(s,
		LS_SQL_VALUES(ls_sql_u64(c->hash), ls_sql_int(t_us),
			ls_sql_text(c->group), ls_sql_blob(c->series, c->series_len)));
}

static int
insert_chunk(struct ls_store_batch *b, const char *host, const struct ls_store_chunk *c,
	int64_t t_us)
{
	int64_t at;
	int rc = ls_bodies_put(b->bodies, c->body, c->body_len, &at);

	return rc != 0 ? rc
		       : ls_sql_run(b->stmt[LS_STORE_DAY_CHUNK],
				 LS_SQL_VALUES(ls_sql_text(host), ls_sql_u64(c->hash),
					 ls_sql_int(t_us), ls_sql_int(c->t_first_us),
					 ls_sql_int(c->t_last_us), ls_sql_int(c->n),
					 ls_sql_int(c->map.ref_mono_ns),
					 ls_sql_int(c->map.offset_ns),
					 ls_sql_int(c->map.drift_ppb),
					 ls_sql_int(c->map.uncertainty_ns),
					 ls_sql_int(at), ls_sql_u64(c->body_len)));
}

static int
insert_lost(sqlite3_stmt *s, const char *host, const struct ls_store_chunk *c,
	int64_t t_us)
{
	return ls_sql_run(s,
		LS_SQL_VALUES(ls_sql_text(host), ls_sql_int(t_us),
			ls_sql_text(c->group), ls_sql_int_or_null(c->t_first_us),
			ls_sql_int_or_null(c->t_last_us), ls_sql_u64(c->samples),
			ls_sql_int(c->reason)));
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
	int rc;

	if (r->chunk_count == 0)
		return 0;
	rc = ls_sql_run(b->stmt[LS_STORE_DAY_CHUNK_HOST],
		LS_SQL_VALUES(ls_sql_text(r->host)));
	for (size_t i = 0; i < r->chunk_count && rc == 0; i++)
		rc = insert_row(b, r->host, &r->chunks[i], t_us);
	return rc;
}
