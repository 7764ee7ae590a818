/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/bodies.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "storage/db/db.h"
#include "storage/db/err_sqlite.h"
#include "storage/db/sql.h"

/* A part's id, and so each position, is a number of SQLite. */
#define BODIES_PARTS_MAX (INT64_MAX / LS_BODY_PART_BYTES - 2)

static int64_t
bodies_part(int64_t at)
{
	return at / LS_BODY_PART_BYTES + 1;
}

static size_t
bodies_offset(int64_t at)
{
	return (size_t)(at % LS_BODY_PART_BYTES);
}

/* A handle on a part. What is not there or does not read is damage; the rest is told as
 * it is. */
static int
bodies_handle(sqlite3 *db, const char *schema, int64_t part, int to_write,
	sqlite3_blob **blob)
{
	int rc;

	if (*blob != NULL)
		rc = sqlite3_blob_reopen(*blob, part);
	else
		rc = sqlite3_blob_open(db, schema, "body_part", "bytes", part, to_write,
			blob);
	if (rc == SQLITE_OK && sqlite3_blob_bytes(*blob) != LS_BODY_PART_BYTES)
		rc = SQLITE_CORRUPT;
	if (rc == SQLITE_OK)
		return 0;
	/* of no more use; nothing was written through it */
	(void)sqlite3_blob_close(*blob);
	*blob = NULL;
	/* ERROR: no such row */
	return rc == SQLITE_ERROR ? -LS_ECORRUPT : ls_err_sqlite(rc);
}

/* --- writing -------------------------------------------------------------- */

struct ls_bodies {
	sqlite3 *db;
	sqlite3_stmt *insert;
	/* bytes before `stored` are in rows, those up to `end` in `part`: at most one
	 * part's */
	int64_t stored, end;
	uint8_t part[LS_BODY_PART_BYTES];
};

/* The end of the last chunk, if it is in the last part; else that part's end: nothing
 * is written over. */
static int
bodies_find_end(struct ls_bodies *b)
{
	int64_t parts;
	int rc = ls_sql_int_of(b->db, "SELECT max(id) FROM body_part", NULL, &parts);

	if (rc == 0 && (parts < 0 || parts > BODIES_PARTS_MAX))
		rc = -LS_ECORRUPT;
	if (rc != 0)
		return rc;
	b->end = parts * LS_BODY_PART_BYTES;
	rc = ls_sql_int_of(b->db,
		"SELECT coalesce((SELECT at + len FROM (SELECT at, len FROM chunk ORDER BY id DESC LIMIT 1) "
		"WHERE at BETWEEN 0 AND ?1 AND len BETWEEN 1 AND ?2 AND at + len <= ?1 AND at + len > ?1 - ?3), ?1)",
		LS_SQL_VALUES(ls_sql_int(b->end), ls_sql_int(LS_CHUNK_BODY_MAX_BYTES),
			ls_sql_int(LS_BODY_PART_BYTES)),
		&b->end);
	b->stored = b->end;
	return rc;
}

int
ls_bodies_open(sqlite3 *db, struct ls_bodies **ret_bodies)
{
	struct ls_bodies *b = calloc(1, sizeof(*b));
	int rc;

	if (b == NULL)
		return -ENOMEM;
	b->db = db;
	rc = ls_db_prepare(db, "INSERT INTO main.body_part (id, bytes) VALUES (?1, ?2)",
		&b->insert);
	if (rc == 0)
		rc = bodies_find_end(b);
	if (rc == 0)
		*ret_bodies = b;
	else
		ls_bodies_close(b);
	return rc;
}

void
ls_bodies_close(struct ls_bodies *b)
{
	if (b == NULL)
		return;
	(void)sqlite3_finalize(b->insert); /* its errors were told when it ran */
	free(b);
}

/* Writes into a part that is there: pages without a change stay as they are. */
static int
bodies_write(struct ls_bodies *b, size_t from, size_t to)
{
	sqlite3_blob *blob = NULL;
	int rc = bodies_handle(b->db, "main", bodies_part(b->stored), 1, &blob), last;

	if (rc != 0)
		return rc;
	rc = sqlite3_blob_write(blob, b->part + from, (int)(to - from), (int)from);
	last = sqlite3_blob_close(blob);
	return ls_err_sqlite(rc != SQLITE_OK ? rc : last);
}

int
ls_bodies_flush(struct ls_bodies *b)
{
	size_t from = bodies_offset(b->stored),
	       to = from + (size_t)(b->end - b->stored);
	int rc;

	if (to == from)
		return 0;
	if (from > 0) {
		rc = bodies_write(b, from, to);
	} else {
		memset(b->part + to, 0, sizeof(b->part) - to);
		rc = ls_sql_run(b->insert,
			LS_SQL_VALUES(ls_sql_int(bodies_part(b->stored)),
				ls_sql_blob(b->part, sizeof(b->part))));
	}
	if (rc == 0)
		b->stored = b->end;
	return rc;
}

int
ls_bodies_put(struct ls_bodies *b, const uint8_t *body, size_t len, int64_t *ret_at)
{
	int64_t at = b->end;
	size_t n, offset;
	int rc = 0;

	if (len > LS_CHUNK_BODY_MAX_BYTES)
		return -EMSGSIZE;
	if (bodies_part(at) > BODIES_PARTS_MAX)
		return -LS_ELIMIT;
	for (; len > 0 && rc == 0; len -= n, body += n) {
		offset = bodies_offset(b->end);
		n = len < sizeof(b->part) - offset ? len : sizeof(b->part) - offset;
		memcpy(b->part + offset, body, n);
		b->end += (int64_t)n;
		if (bodies_offset(b->end) == 0)
			rc = ls_bodies_flush(b);
	}
	if (rc == 0)
		*ret_at = at;
	return rc;
}

int64_t
ls_bodies_end(const struct ls_bodies *b)
{
	return b->end;
}

void
ls_bodies_back(struct ls_bodies *b, int64_t end)
{
	b->end = end;
	b->stored = end;
}

/* --- reading -------------------------------------------------------------- */

struct ls_bodies_reader {
	sqlite3 *db;
	const char *schema;
	sqlite3_blob *blob; /* on the part read last, or NULL */
	int64_t part;
	uint8_t body[LS_CHUNK_BODY_MAX_BYTES];
};

int
ls_bodies_reader_new(sqlite3 *db, const char *schema,
	struct ls_bodies_reader **ret_reader)
{
	struct ls_bodies_reader *r = malloc(sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	r->db = db;
	r->schema = schema;
	r->blob = NULL;
	*ret_reader = r;
	return 0;
}

void
ls_bodies_rest(struct ls_bodies_reader *r)
{
	if (r == NULL)
		return;
	(void)sqlite3_blob_close(r->blob); /* only read with */
	r->blob = NULL;
}

void
ls_bodies_reader_free(struct ls_bodies_reader *r)
{
	ls_bodies_rest(r);
	free(r);
}

int
ls_bodies_read(struct ls_bodies_reader *r, int64_t at, int64_t len,
	const uint8_t **ret_body)
{
	size_t done = 0, n, offset;
	int rc = 0;

	if (at < 0 || len < 1 || len > LS_CHUNK_BODY_MAX_BYTES ||
		bodies_part(at) > BODIES_PARTS_MAX)
		return -LS_ECORRUPT;
	for (; done < (size_t)len && rc == 0; done += n) {
		int64_t part = bodies_part(at + (int64_t)done);

		offset = bodies_offset(at + (int64_t)done);
		n = (size_t)len - done;
		n = n < LS_BODY_PART_BYTES - offset ? n : LS_BODY_PART_BYTES - offset;
		if (r->blob == NULL || part != r->part)
			rc = bodies_handle(r->db, r->schema, part, 0, &r->blob);
		r->part = part;
		if (rc == 0)
			rc = ls_err_sqlite(sqlite3_blob_read(r->blob, r->body + done,
				(int)n, (int)offset));
	}
	if (rc == 0)
		*ret_body = r->body;
	return rc;
}

/* --- checking ------------------------------------------------------------- */

#define BODIES_PART                                              \
	{                                                        \
		.kind = LS_SQL_INT, .number = LS_BODY_PART_BYTES \
	}
#define BODIES_LONGEST                                                \
	{                                                             \
		.kind = LS_SQL_INT, .number = LS_CHUNK_BODY_MAX_BYTES \
	}

/* Each statement counts what must not be. */
static const struct bodies_rule {
	const char *sql, *text;
	struct ls_sql_value values[3];
} bodies_rules[] = {
	{ "SELECT count(*) FROM body_part WHERE length(bytes) != ?1",
		"parts of bodies have another size", { BODIES_PART } },
	{ "SELECT max(id) - count(*) + (min(id) != 1) FROM body_part",
		"parts of bodies are missing", { { 0 } } },
	{ "SELECT count(*) FROM chunk WHERE at < 0 OR len < 0 OR len > ?2 OR at > ?1 * "
	  "(SELECT ifnull(max(id), 0) FROM body_part) - len",
		"chunks have their bodies outside of all parts",
		{ BODIES_PART, BODIES_LONGEST } },
	{ "SELECT count(*) FROM (SELECT at, lag(at + len, 1, 0) OVER (ORDER BY id) AS free FROM chunk) "
	  "WHERE at < free",
		"chunks have bytes of others as bodies", { { 0 } } },
};

int
ls_bodies_check(sqlite3 *db, char *text, size_t size)
{
	int64_t count = 0;
	int rc = 0;

	for (size_t i = 0;
		i < sizeof(bodies_rules) / sizeof(bodies_rules[0]) && rc == 0; i++) {
		rc = ls_sql_int_of(db, bodies_rules[i].sql, bodies_rules[i].values,
			&count);
		if (rc == 0 && count != 0) {
			(void)snprintf(text, size, "%lld %s", (long long)count,
				bodies_rules[i].text);
			rc = -LS_ECORRUPT;
		}
	}
	return rc;
}
