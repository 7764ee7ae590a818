/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of storage/salvage: one bad page costs its rows, and they are counted. */
#include "config.h"

#include "storage/db/salvage.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/sql.h"
#include "storage/write/store.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"
#include "tests/support/tree.h"

#define DAY 20261121
#define NOON (ls_days_begin_us(DAY) + 12ll * 3600 * 1000000)
#define PAGE 4096

enum { CLOSINGS = 2000, HOSTS = 400, CHUNKS = 300, BODY = 700, RINGS = 2000 };

static char dir[PATH_MAX], path[PATH_MAX], fresh[PATH_MAX + 16], said[8192];
static uint8_t body[BODY];

static void
hear(void *arg, const char *line)
{
	size_t len = strlen(said);

	(void)arg;
	(void)snprintf(said + len, sizeof(said) - len, "%s\n", line);
}

static struct ls_write *
chunk(size_t i)
{
	struct ls_write *m = ls_write_new_report(0, 0, 1, NOON);

	ck_assert_ptr_nonnull(m);
	(void)snprintf(m->u.report.host, sizeof(m->u.report.host), "host-%zu",
		i % HOSTS);
	m->u.report.boot[0] = (uint8_t)(i % HOSTS);
	m->u.report.boot[1] = (uint8_t)(i % HOSTS >> 8);
	m->u.report.last_chunk_seq = i + 1;
	m->u.report.chunk_count = 1;
	m->u.report.chunks[0].kind = LS_WIRE_CHUNK;
	m->u.report.chunks[0].body = body;
	m->u.report.chunks[0].body_len = BODY;
	return m;
}

/* A closed day of a few hundred pages. */
static void
setup(void)
{
	static struct ls_write *batch[CLOSINGS + CHUNKS];
	/* A table without ids of rows. */
	static const char rings[] =
		"WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 2000) "
		"INSERT INTO ring_high SELECT CAST(printf('%016d', x) AS BLOB), 1, x, 0 FROM n";
	struct ls_store *store;
	sqlite3 *db = NULL;
	size_t i;

	said[0] = '\0';
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(ls_store_open(dir, NOON, &store), 0);
	for (i = 0; i < CLOSINGS; i++)
		batch[i] = ls_test_close(i, NOON);
	for (i = 0; i < CHUNKS; i++)
		batch[CLOSINGS + i] = chunk(i);
	ck_assert_int_eq(ls_store_commit(store, batch, CLOSINGS + CHUNKS, NOON), 0);
	for (i = 0; i < CLOSINGS; i++)
		ls_write_free(batch[i]);
	for (i = 0; i < CHUNKS; i++)
		ls_write_free(batch[CLOSINGS + i]);
	ls_store_close(store);
	ck_assert_int_eq(ls_days_path(path, dir, DAY), 0);
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	ck_assert_int_eq(ls_db_exec(db, rings), 0);
	ls_db_close(db);
	(void)snprintf(fresh, sizeof(fresh), "%s.salvaged", path);
}

/* First column of the first row of a query on a file. */
static int64_t
number(const char *file, const char *sql)
{
	sqlite3 *db = NULL;
	int64_t n = 0;

	ck_assert_int_eq(ls_db_open(file, LS_DB_READ, &db), 0);
	ck_assert_int_eq(ls_sql_int_of(db, sql, NULL, &n), 0);
	ls_db_close(db);
	return n;
}

/* Flips the head of a page, so that SQLite refuses the page; again: heals it. */
static void
flip(size_t page)
{
	FILE *f = fopen(path, "r+");
	uint8_t bytes[64];
	size_t i;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, (long)page * PAGE, SEEK_SET), 0);
	ck_assert_uint_eq(fread(bytes, 1, sizeof(bytes), f), sizeof(bytes));
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] ^= 0x55;
	ck_assert_int_eq(fseek(f, (long)page * PAGE, SEEK_SET), 0);
	ck_assert_uint_eq(fwrite(bytes, 1, sizeof(bytes), f), sizeof(bytes));
	ck_assert_int_eq(fclose(f), 0);
}

/* What the line of a table says. */
static void
counts(const char *table, uint64_t *ret_read, uint64_t *ret_lost)
{
	char begin[64];
	const char *line;

	(void)snprintf(begin, sizeof(begin), "%s: ", table);
	line = strstr(said, begin);
	ck_assert_ptr_nonnull(line);
	*ret_read = strtoull(line + strlen(begin), NULL, 10);
	line = strstr(line, "read, ") + strlen("read, ");
	line += strncmp(line, "at most ", 8) == 0 ? 8 : 0;
	*ret_lost = strncmp(line, "an unknown", 10) == 0 ? UINT64_MAX / 2
							 : strtoull(line, NULL, 10);
}

static uint64_t
left_out(void)
{
	const char *line = strstr(said, " rows left out");

	if (line == NULL)
		return 0;
	while (line[-1] != ' ')
		line--;
	return strtoull(line, NULL, 10);
}

LS_CASE(salvage, setup);

LS_TEST(salvage, a_sound_file_loses_nothing)
{
	size_t len, after_len;
	char *before = ls_test_read(path, &len), *after;
	uint64_t rows, lost;

	ck_assert_int_eq(ls_salvage(path, fresh, hear, NULL), 0);
	counts("step_close", &rows, &lost);
	ck_assert_uint_eq(rows, CLOSINGS);
	ck_assert_uint_eq(lost, 0);
	counts("chunk", &rows, &lost);
	ck_assert_uint_eq(rows, CHUNKS);
	ck_assert_ptr_null(strstr(said, "at most"));
	ck_assert_ptr_null(strstr(said, "left out"));
	ck_assert_int_eq(number(fresh, "SELECT count(*) FROM body_part"),
		number(path, "SELECT count(*) FROM body_part"));
	after = ls_test_read(path, &after_len);
	ck_assert_uint_eq(len, after_len);
	ck_assert_mem_eq(before, after, len);
	free(before);
	free(after);
	/* It is there now, and is not written over. */
	ck_assert_int_eq(ls_salvage(path, fresh, hear, NULL), -EEXIST);
}

/* True if the table is lost as a whole. */
static bool
check_counts(const char *table, uint64_t total, uint64_t page_rows)
{
	uint64_t rows, lost;
	char sql[64];

	counts(table, &rows, &lost);
	(void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
	ck_assert_uint_eq(rows,
		(uint64_t)number(fresh, sql) + (table[0] == 'c' ? left_out() : 0));
	ck_assert_uint_ge(rows + lost, total);
	/* Behind a bad root page nothing can be found. */
	ck_assert(rows == 0 || rows + page_rows >= total);
	return rows == 0;
}

LS_TEST(salvage, one_bad_page_costs_its_rows_alone)
{
	size_t page, len, hit = 0, unread = 0, roots = 0;

	free(ls_test_read(path, &len));
	ck_assert_uint_gt(len / PAGE, 100);
	for (page = 1; page < len / PAGE; page++) {
		int rc;

		said[0] = '\0';
		flip(page);
		rc = ls_salvage(path, fresh, hear, NULL);
		flip(page);
		if (rc != 0) { /* a page of the list of tables, or a root */
			ck_assert_int_eq(rc, -LS_ECORRUPT);
			ck_assert_int_ne(access(fresh, F_OK), 0);
			unread++;
			continue;
		}
		hit += strstr(said, "at most") != NULL ||
			strstr(said, "an unknown") != NULL ||
			strstr(said, "left out") != NULL;
		roots += check_counts("step_close", CLOSINGS, 200);
		roots += check_counts("chunk", CHUNKS, 200);
		roots += check_counts("ring_high", RINGS, 200);
		ck_assert_int_eq(number(fresh, "PRAGMA quick_check"), 0);
		ck_assert_int_eq(unlink(fresh), 0);
	}
	ck_assert_uint_gt(hit, 50);
	ck_assert_uint_le(unread, 8);
	ck_assert_uint_eq(roots, 3);
}

LS_TEST(salvage, what_is_in_the_wal_is_read)
{
	char wal[PATH_MAX + 8];
	uint64_t rows, lost;
	sqlite3 *db = NULL;
	size_t len;

	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	ck_assert_int_eq(ls_db_exec(db, "DELETE FROM step_close WHERE step >= 1000"),
		0);
	(void)snprintf(wal, sizeof(wal), "%s-wal", path);
	free(ls_test_read(wal, &len));
	ck_assert_uint_gt(len, 0);
	ck_assert_int_eq(ls_salvage(path, fresh, hear, NULL), 0);
	ls_db_close(db);
	counts("step_close", &rows, &lost);
	ck_assert_uint_eq(rows, 1000);
}

LS_TEST(salvage, other_files_are_refused)
{
	char state[PATH_MAX], other[PATH_MAX + 16], to[PATH_MAX + 32];

	(void)snprintf(other, sizeof(other), "%s/other.db", dir);
	(void)snprintf(to, sizeof(to), "%s.new", other);
	ck_assert_int_eq(ls_salvage(other, to, hear, NULL), -ENOENT);
	tree_write(dir, "other.db", "no database");
	ck_assert_int_eq(ls_salvage(other, to, hear, NULL), -LS_ECORRUPT);
	ck_assert_int_ne(access(to, F_OK), 0);
	ck_assert_int_eq(ls_days_path(state, dir, 0), 0);
	ck_assert_int_eq(ls_salvage(state, to, hear, NULL), 0);
	ck_assert_ptr_nonnull(strstr(said, "finding: 0 rows read, 0 lost"));
}
