/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/repack.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proto/chunk/chunk.h"
#include "storage/db/bodies.h"
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/files.h"
#include "storage/db/migrate.h"
#include "storage/db/replace.h"
#include "storage/db/rows.h"
#include "storage/db/sql.h"

#define REPACK_COMMIT_CHUNKS 4096 /* merged ones a transaction */

/* Tables that are copied as they are; those that others name come first. */
static const char *const repack_tables[] = { "journal", "unit", "step_rows", "hot_rows",
	"gap", "worker_end", "step_close", "zoom", "hang", "ledger", "ring_high",
	"chunk_host", "dictionary", "lost", "rollup_metric", "rollup_labels",
	"rollup_done" };

enum repack_statement {
	REPACK_HOSTS,
	REPACK_DICTIONARIES,
	REPACK_CHUNKS,
	REPACK_INSERT,
	REPACK_STATEMENTS
};

static const char *const repack_sql[REPACK_STATEMENTS] = {
	[REPACK_HOSTS] = "SELECT id FROM old.chunk_host ORDER BY id",
	[REPACK_DICTIONARIES] = "SELECT DISTINCT dictionary FROM old.chunk "
				"WHERE host_id = ?1 ORDER BY dictionary",
	[REPACK_CHUNKS] =
		"SELECT t_us, t_first_us, t_last_us, n, ref_mono_ns, offset_ns, drift_ppb, "
		"uncertainty_ns, at, len FROM old.chunk WHERE host_id = ?1 AND dictionary = ?2 "
		"ORDER BY t_first_us, id",
	[REPACK_INSERT] =
		"INSERT INTO main.chunk (host_id, dictionary, t_us, t_first_us, t_last_us, n, "
		"ref_mono_ns, offset_ns, drift_ppb, uncertainty_ns, at, len) VALUES (?1, ?2, ?3, ?4, "
		"?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
};

/* Roll-ups lie by metric, as they are asked for; so the pages of their index are full,
 * too. */
static const char repack_rollups[] =
	"INSERT INTO main.rollup (metric_id, span_s, t_us, n, body) SELECT metric_id, span_s, t_us, n, body "
	"FROM old.rollup ORDER BY metric_id, span_s, t_us, id";

/* Rows of one dictionary of one host, waiting to become a chunk. */
struct repack_rows {
	size_t columns, rows;
	uint64_t t_ns[LS_CHUNK_ROWS_MAX];
	/* columns, LS_CHUNK_ROWS_MAX apart */
	double value[LS_SERIES_PER_GROUP_MAX * LS_CHUNK_ROWS_MAX];
	bool present[LS_SERIES_PER_GROUP_MAX * LS_CHUNK_ROWS_MAX];
	int64_t t_us, uncertainty_ns;
};

struct repack {
	sqlite3 *db; /* the new file; the old one is attached as `old` */
	sqlite3_stmt *stmt[REPACK_STATEMENTS];
	struct ls_chunk_codec *decoder, *encoder;
	uint8_t body[LS_CHUNK_BODY_MAX_BYTES];
	struct ls_bodies *to;
	struct ls_bodies_reader *from;
	struct repack_rows rows;
	int64_t host_id, dictionary;
	ls_repack_stop_fn *stop;
	void *stop_arg;
	uint64_t rows_in, rows_out;
	struct ls_repack_stats *stats;
};

/* --- a chunk of the new file ---------------------------------------------- */

/* What is stored beside a body. */
struct repack_chunk {
	int64_t t_us, t_first_us, t_last_us, n;
	struct ls_store_map map;
	const uint8_t *body;
	size_t len;
};

static int
repack_insert(struct repack *r, const struct repack_chunk *c)
{
	int64_t at = 0;
	int rc = ls_bodies_put(r->to, c->body, c->len, &at);

	if (rc == 0)
		rc = ls_sql_run(r->stmt[REPACK_INSERT],
			LS_SQL_VALUES(ls_sql_int(r->host_id), ls_sql_int(r->dictionary),
				ls_sql_int(c->t_us), ls_sql_int(c->t_first_us),
				ls_sql_int(c->t_last_us), ls_sql_int(c->n),
				ls_sql_int(c->map.ref_mono_ns),
				ls_sql_int(c->map.offset_ns),
				ls_sql_int(c->map.drift_ppb),
				ls_sql_int(c->map.uncertainty_ns), ls_sql_int(at),
				ls_sql_u64(c->len)));
	if (rc != 0)
		return rc;
	r->rows_out += (uint64_t)c->n;
	if (++r->stats->chunks_after % REPACK_COMMIT_CHUNKS != 0)
		return 0;
	rc = ls_bodies_flush(r->to);
	if (rc == 0)
		rc = ls_db_exec(r->db, "COMMIT");
	return rc == 0 ? ls_db_exec(r->db, "BEGIN") : rc;
}

static int64_t
repack_us(uint64_t t_ns)
{
	return (int64_t)((t_ns + 500) / 1000);
}

/* Encodes and inserts rows from `first` on; where they do not fit into a body, in two
 * halves. */
static int
repack_put(struct repack *r, size_t first, size_t count)
{
	struct repack_rows *w = &r->rows;
	const struct ls_chunk_table table = { .rows = count,
		.columns = w->columns,
		.stride = LS_CHUNK_ROWS_MAX,
		.t_mono_ns = w->t_ns + first,
		.value = w->value + first,
		.present = w->present + first };
	struct repack_chunk c = { .t_us = w->t_us,
		.n = (int64_t)count,
		.body = r->body,
		.map = { .uncertainty_ns = w->uncertainty_ns } };
	int rc = ls_chunk_encode(r->encoder, &table, r->body, LS_CHUNK_BODY_MAX_BYTES,
		&c.len);

	if (rc == -EMSGSIZE && count > 1) {
		rc = repack_put(r, first, count / 2);
		return rc == 0 ? repack_put(r, first + count / 2, count - count / 2)
			       : rc;
	}
	if (rc != 0)
		return rc;
	c.t_first_us = repack_us(w->t_ns[first]);
	c.t_last_us = repack_us(w->t_ns[first + count - 1]);
	return repack_insert(r, &c);
}

static int
repack_flush(struct repack *r)
{
	int rc = r->rows.rows > 0 ? repack_put(r, 0, r->rows.rows) : 0;

	r->rows.rows = 0;
	r->rows.uncertainty_ns = 0;
	return rc;
}

/* --- the chunks of a host ------------------------------------------------- */

static int
repack_read(struct repack *r, sqlite3_stmt *stmt, struct repack_chunk *c)
{
	int64_t at, len;
	int rc = ls_sql_read(stmt,
		LS_SQL_FIELDS(ls_sql_to_i64(&c->t_us), ls_sql_to_i64(&c->t_first_us),
			ls_sql_to_i64(&c->t_last_us), ls_sql_to_i64(&c->n),
			ls_sql_to_i64(&c->map.ref_mono_ns),
			ls_sql_to_i64(&c->map.offset_ns),
			ls_sql_to_i64(&c->map.drift_ppb),
			ls_sql_to_i64(&c->map.uncertainty_ns), ls_sql_to_i64(&at),
			ls_sql_to_i64(&len)));

	c->len = (size_t)len;
	return rc == 0 ? ls_bodies_read(r->from, at, len, &c->body) : rc;
}

/* A chunk that is kept as it was. */
static int
repack_keep(struct repack *r, const struct repack_chunk *c)
{
	int rc = repack_flush(r);

	r->stats->kept++;
	return rc == 0 ? repack_insert(r, c) : rc;
}

/* Whether all times of a table, on our time line, can stand behind those that wait. */
static bool
repack_follows(const struct repack_rows *w, const struct ls_chunk_table *t,
	const struct ls_store_map *map)
{
	int64_t last = w->rows > 0 ? (int64_t)w->t_ns[w->rows - 1] : 0;

	for (size_t i = 0; i < t->rows; i++) {
		int64_t ns = ls_store_map_ns(map, (int64_t)t->t_mono_ns[i]);

		if (ns < last)
			return false;
		last = ns;
	}
	return true;
}

static void
repack_add(struct repack_rows *w, const struct ls_chunk_table *t,
	const struct repack_chunk *c)
{
	for (size_t i = 0; i < t->rows; i++)
		w->t_ns[w->rows + i] =
			(uint64_t)ls_store_map_ns(&c->map, (int64_t)t->t_mono_ns[i]);
	for (size_t k = 0; k < t->columns; k++) {
		size_t to = k * LS_CHUNK_ROWS_MAX + w->rows, from = k * t->stride;

		memcpy(w->value + to, t->value + from, t->rows * sizeof(*w->value));
		memcpy(w->present + to, t->present + from,
			t->rows * sizeof(*w->present));
	}
	w->columns = t->columns;
	w->rows += t->rows;
	w->t_us = c->t_us;
	if (c->map.uncertainty_ns > w->uncertainty_ns)
		w->uncertainty_ns = c->map.uncertainty_ns;
}

static int
repack_take(struct repack *r, const struct repack_chunk *c)
{
	struct repack_rows *w = &r->rows;
	struct ls_chunk_table t;
	int rc = ls_chunk_decode(r->decoder, c->body, c->len, &t);

	r->stats->chunks_before++;
	r->rows_in += (uint64_t)c->n;
	if (rc == -ENOMEM)
		return rc;
	if (rc != 0 || t.rows != (uint64_t)c->n)
		return repack_keep(r, c);
	if (w->rows > 0 &&
		(t.columns != w->columns || w->rows + t.rows > LS_CHUNK_ROWS_MAX ||
			!repack_follows(w, &t, &c->map))) {
		rc = repack_flush(r);
		if (rc != 0)
			return rc;
	}
	if (w->rows == 0 && !repack_follows(w, &t, &c->map))
		return repack_keep(r, c); /* a clock that falls within a chunk */
	repack_add(w, &t, c);
	return 0;
}

/* Each row of a statement to fn. */
static int
repack_each(struct repack *r, sqlite3_stmt *stmt, const struct ls_sql_value *values,
	int (*fn)(struct repack *r, sqlite3_stmt *stmt))
{
	struct ls_sql_rows rows = ls_sql_again(stmt, values);

	while (ls_sql_next(&rows))
		rows.rc = fn(r, stmt);
	return ls_sql_end(&rows);
}

static int
repack_chunk(struct repack *r, sqlite3_stmt *stmt)
{
	struct repack_chunk c;
	int rc = repack_read(r, stmt, &c);

	return rc == 0 ? repack_take(r, &c) : rc;
}

static int
repack_dictionary(struct repack *r, sqlite3_stmt *stmt)
{
	int rc;

	r->dictionary = sqlite3_column_int64(stmt, 0);
	rc = repack_each(r, r->stmt[REPACK_CHUNKS],
		LS_SQL_VALUES(ls_sql_int(r->host_id), ls_sql_int(r->dictionary)),
		repack_chunk);
	return rc == 0 ? repack_flush(r) : rc;
}

static int
repack_host(struct repack *r, sqlite3_stmt *stmt)
{
	r->host_id = sqlite3_column_int64(stmt, 0);
	if (r->stop != NULL && r->stop(r->stop_arg))
		return -ECANCELED;
	return repack_each(r, r->stmt[REPACK_DICTIONARIES],
		LS_SQL_VALUES(ls_sql_int(r->host_id)), repack_dictionary);
}

/* --- the file ------------------------------------------------------------- */

static int
repack_prepare(struct repack *r)
{
	int rc;

	r->decoder = ls_chunk_codec_new(LS_SERIES_PER_GROUP_MAX, LS_CHUNK_ROWS_MAX);
	r->encoder = ls_chunk_codec_new(LS_SERIES_PER_GROUP_MAX, LS_CHUNK_ROWS_MAX);
	if (r->decoder == NULL || r->encoder == NULL)
		return -ENOMEM;
	rc = ls_db_prepare_all(r->db, repack_sql, r->stmt, REPACK_STATEMENTS);
	if (rc == 0)
		rc = ls_bodies_open(r->db, &r->to);
	if (rc == 0)
		rc = ls_bodies_reader_new(r->db, "old", &r->from);
	return rc;
}

static void
repack_free(struct repack *r)
{
	ls_db_finalize_all(r->stmt, REPACK_STATEMENTS);
	ls_bodies_close(r->to);
	ls_bodies_reader_free(r->from);
	ls_db_close(r->db);
	ls_chunk_codec_free(r->decoder);
	ls_chunk_codec_free(r->encoder);
	free(r);
}

static int
repack_attach(struct repack *r, const char *path)
{
	const struct ls_migrations *schema = ls_migrations_of(LS_SCHEMA_TELEMETRY);
	int64_t version;
	int rc = ls_sql_attach(r->db, path, "old");

	if (rc == 0)
		rc = ls_sql_int_of(r->db, "PRAGMA old.user_version", NULL, &version);
	return rc == 0 && version != schema->steps[schema->count - 1].to ? -LS_EVERSION
									 : rc;
}

static int
repack_tables_copy(struct repack *r)
{
	char sql[128];
	int rc = 0;

	for (size_t i = 0;
		i < sizeof(repack_tables) / sizeof(repack_tables[0]) && rc == 0; i++) {
		(void)snprintf(sql, sizeof(sql),
			"INSERT INTO main.%s SELECT * FROM old.%s", repack_tables[i],
			repack_tables[i]);
		rc = ls_db_exec(r->db, sql);
	}
	return rc == 0 ? ls_db_exec(r->db, repack_rollups) : rc;
}

/* The new file is of no use until it is renamed, and is on disk before: no log, no
 * waiting. */
static int
repack_fill(struct repack *r, const char *path)
{
	char stamp[64];
	int rc = ls_db_exec(r->db,
		"PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF;");

	if (rc == 0)
		rc = ls_migrate(r->db, ls_migrations_of(LS_SCHEMA_TELEMETRY), NULL);
	if (rc == 0)
		rc = repack_attach(r, path);
	if (rc == 0)
		rc = repack_prepare(r);
	if (rc == 0)
		rc = ls_db_exec(r->db, "BEGIN");
	if (rc == 0)
		rc = repack_tables_copy(r);
	if (rc == 0)
		rc = repack_each(r, r->stmt[REPACK_HOSTS], NULL, repack_host);
	if (rc == 0 && r->rows_in != r->rows_out)
		rc = -LS_ECORRUPT; /* a chunk of no host, or of none that is named */
	(void)snprintf(stamp, sizeof(stamp),
		"INSERT INTO repacked (chunks) VALUES (%" PRIu64 ")",
		r->stats->chunks_before);
	if (rc == 0)
		rc = ls_db_exec(r->db, stamp);
	if (rc == 0)
		rc = ls_bodies_flush(r->to);
	return rc == 0 ? ls_db_exec(r->db, "COMMIT") : rc;
}

int
ls_repack_look(const char *dir, int32_t day, enum ls_repack_state *ret_state)
{
	sqlite3 *db = NULL;
	int64_t state = LS_REPACK_TO_DO;
	int rc = ls_db_open_day(dir, day, LS_DB_READ, &db);

	if (rc == 0)
		rc = ls_migrate_check(db, ls_migrations_of(LS_SCHEMA_TELEMETRY));
	/* Chunks behind the frontier, chunks that were put off, minutes without their
	 * hour. */
	if (rc == 0)
		rc = ls_sql_int_of(db,
			"SELECT CASE WHEN EXISTS (SELECT 1 FROM repacked) THEN ?1 "
			"WHEN (SELECT ifnull(max(id), 0) FROM chunk) > ifnull((SELECT chunk_id FROM rollup_done "
			"WHERE span_s = 0 AND t_us = 0), 0) OR EXISTS (SELECT 1 FROM rollup_done WHERE span_s = -1) "
			"OR EXISTS (SELECT 1 FROM rollup_done d WHERE d.span_s = 60 AND NOT EXISTS (SELECT 1 FROM rollup_done e "
			"WHERE e.span_s = 3600 AND e.t_us = d.t_us - d.t_us % 3600000000)) THEN ?2 ELSE ?3 END",
			LS_SQL_VALUES(ls_sql_int(LS_REPACK_DONE),
				ls_sql_int(LS_REPACK_NOT_ROLLED_UP),
				ls_sql_int(LS_REPACK_TO_DO)),
			&state);
	ls_db_close(db);
	*ret_state = (enum ls_repack_state)state;
	return rc;
}

int
ls_repack_day(const char *dir, int32_t day, ls_repack_stop_fn *stop, void *arg,
	struct ls_repack_stats *ret_stats)
{
	struct repack *r;
	char path[PATH_MAX], fresh[PATH_MAX];
	int rc = ls_days_path(path, dir, day);

	memset(ret_stats, 0, sizeof(*ret_stats));
	if (rc == 0)
		rc = ls_replace_path(fresh, dir, day);
	if (rc == 0)
		rc = ls_replace_check(dir, day);
	if (rc == 0)
		rc = ls_files_remove(fresh); /* of a repacking that was killed */
	if (rc != 0)
		return rc;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	r->stop = stop;
	r->stop_arg = arg;
	r->stats = ret_stats;
	ret_stats->bytes_before = ls_days_bytes(dir, day);
	rc = ls_db_open(fresh, LS_DB_WRITE, &r->db);
	if (rc == 0)
		rc = repack_fill(r, path);
	repack_free(r);
	if (rc == 0)
		rc = ls_files_sync(fresh); /* no connection has the file open */
	if (rc != 0)
		ls_ignore(ls_files_remove(fresh)); /* the next repacking does it */
	if (rc == 0)
		ret_stats->bytes_after = ls_files_bytes(fresh);
	return rc;
}

int
ls_repack_all(const char *dir, void (*say)(void *arg, const char *line), void *arg)
{
	struct ls_days days;
	struct ls_repack_stats stats;
	char line[256];
	enum ls_repack_state state;
	int lock = -1, worst = 0;
	int rc = ls_days_lock(dir, &lock);

	if (rc == 0)
		rc = ls_days_newest(dir, &days);
	for (size_t i = 0; rc == 0 && i + 1 < days.count; i++) {
		int one = ls_repack_look(dir, days.day[i], &state);

		if (one == 0 && state == LS_REPACK_DONE)
			continue;
		if (one == 0 && state == LS_REPACK_NOT_ROLLED_UP)
			one = -EAGAIN;
		if (one == 0)
			one = ls_repack_day(dir, days.day[i], NULL, NULL, &stats);
		if (one == 0)
			one = ls_replace_day(dir, days.day[i]);
		if (one == 0)
			(void)snprintf(line, sizeof(line),
				"%d: %" PRIu64 " chunks became %" PRIu64 ", %" PRIu64
				" bytes %" PRIu64 "; %" PRIu64 " kept as they were",
				(int)days.day[i], stats.chunks_before,
				stats.chunks_after, stats.bytes_before,
				stats.bytes_after, stats.kept);
		else
			(void)snprintf(line, sizeof(line), "%d: %s", (int)days.day[i],
				state == LS_REPACK_NOT_ROLLED_UP
					? "its last minutes are not rolled up; run a "
					  "collector on this directory for a minute"
					: ls_err_text(one));
		say(arg, line);
		worst = worst != 0 ? worst : one;
	}
	if (lock >= 0)
		(void)close(lock); /* gives it back */
	return rc != 0 ? rc : worst;
}
