/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of storage/bodies: what is put in comes back whole, whatever fails between;
 * places that lie are refused. */
#include "config.h"

#include "storage/db/bodies.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/migrate.h"
#include "storage/db/sql.h"
#include "storage/write/store.h"
#include "tests/support/disk/faultvfs.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"

#define TODAY 20261121
#define NOON (ls_days_begin_us(TODAY) + 12ll * 3600 * 1000000)

enum { PART = LS_BODY_PART_BYTES, BODY_MAX = LS_CHUNK_BODY_MAX_BYTES };

static char dir[PATH_MAX], path[PATH_MAX + 32], why[200];
static sqlite3 *db;
static struct ls_bodies *bodies;
static uint8_t bytes[BODY_MAX + 1];

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	(void)snprintf(path, sizeof(path), "%s.db", dir);
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	ck_assert_int_eq(ls_migrate(db, ls_migrations_of(LS_SCHEMA_TELEMETRY), NULL),
		0);
	ck_assert_int_eq(ls_bodies_open(db, &bodies), 0);
}

static void
teardown(void)
{
	ls_bodies_close(bodies);
	ls_db_close(db);
}

static void
run(const char *sql)
{
	ck_assert_int_eq(ls_db_exec(db, sql), 0);
}

static int64_t
number(const char *sql)
{
	int64_t value;

	ck_assert_int_eq(ls_sql_int_of(db, sql, NULL, &value), 0);
	return value;
}

/* The bytes of a body that is told by a seed. */
static const uint8_t *
make(unsigned seed, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		bytes[i] = (uint8_t)(seed >> 16);
	}
	return bytes;
}

static void
row(int64_t at, int64_t len)
{
	char sql[200];

	(void)snprintf(sql, sizeof(sql),
		"INSERT INTO chunk VALUES (NULL, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, %lld, %lld)",
		(long long)at, (long long)len);
	run(sql);
}

/* Puts a body in as a chunk. */
static int64_t
put(unsigned seed, size_t len)
{
	int64_t at = -1;

	ck_assert_int_eq(ls_bodies_put(bodies, make(seed, len), len, &at), 0);
	row(at, (int64_t)len);
	return at;
}

static int
read_at(int64_t at, int64_t len, const uint8_t **ret)
{
	static struct ls_bodies_reader *r;
	static uint8_t copy[BODY_MAX];
	const uint8_t *body = NULL;
	int rc;

	ck_assert_int_eq(ls_bodies_reader_new(db, "main", &r), 0);
	rc = ls_bodies_read(r, at, len, &body);
	if (rc == 0)
		memcpy(copy, body, (size_t)len);
	ls_bodies_reader_free(r);
	*ret = copy;
	return rc;
}

static void
see(int64_t at, unsigned seed, size_t len)
{
	const uint8_t *body;

	ck_assert_int_eq(read_at(at, (int64_t)len, &body), 0);
	ck_assert_int_eq(memcmp(body, make(seed, len), len), 0);
}

static void
refused(int64_t at, int64_t len)
{
	const uint8_t *body;

	ck_assert_int_eq(read_at(at, len, &body), -LS_ECORRUPT);
}

static size_t
length_of(unsigned i)
{
	static const size_t some[] = { 1, 5700, PART, PART - 1, PART + 1, 4092,
		3 * PART, 2, BODY_MAX, 6100 };

	return some[i % (sizeof(some) / sizeof(some[0]))];
}

/* --- one after the other -------------------------------------------------- */

LS_CASE(bodies, setup, teardown);

LS_TEST(bodies, bodies_come_back_as_they_were_put_in)
{
	enum { COUNT = 60 };
	int64_t at[COUNT], end = 0;
	unsigned i;

	for (i = 0; i < COUNT; i++) {
		if (i % 3 == 0)
			run("BEGIN");
		at[i] = put(i, length_of(i));
		ck_assert_int_eq(at[i], end); /* without a gap */
		end += (int64_t)length_of(i);
		ck_assert_int_eq(ls_bodies_end(bodies), end);
		if (i % 3 == 2) {
			ck_assert_int_eq(ls_bodies_flush(bodies), 0);
			run("COMMIT");
		}
		if (i % 12 == 11) { /* who opens the file next goes on where it ended */
			ls_bodies_close(bodies);
			ck_assert_int_eq(ls_bodies_open(db, &bodies), 0);
		}
	}
	for (i = 0; i < COUNT; i++)
		see(at[i], i, length_of(i));
	ck_assert_int_eq(ls_bodies_check(db, why, sizeof(why)), 0);
}

LS_TEST(bodies, pages_are_full)
{
	int64_t before = number("PRAGMA page_count"), after, i;

	ck_assert_int_eq(number("PRAGMA page_size"), LS_DB_PAGE_BYTES);
	run("BEGIN");
	for (i = 0; i < 1000; i++)
		(void)put(1, 6100);
	ck_assert_int_eq(ls_bodies_flush(bodies), 0);
	run("DELETE FROM chunk; COMMIT; VACUUM");
	after = number("PRAGMA page_count");
	ck_assert_int_lt((after - before) * 4096, 6100000 / 100 * 101);
}

LS_TEST(bodies, what_was_rolled_back_leaves_no_trace)
{
	int64_t at = put(1, 5000), end, n;

	ck_assert_int_eq(ls_bodies_flush(bodies), 0);
	for (n = 0; n < 3; n++) { /* not flushed; flushed; into another part */
		end = ls_bodies_end(bodies);
		run("BEGIN");
		(void)put(2, n == 2 ? 2 * PART : 3000);
		if (n > 0)
			ck_assert_int_eq(ls_bodies_flush(bodies), 0);
		run("ROLLBACK");
		ls_bodies_back(bodies, end);
		ck_assert_int_eq(put(3, 100), end);
		ck_assert_int_eq(ls_bodies_flush(bodies), 0);
		see(end, 3, 100);
	}
	see(at, 1, 5000);
	ck_assert_int_eq(ls_bodies_check(db, why, sizeof(why)), 0);
}

LS_TEST(bodies, what_is_too_long_is_refused)
{
	int64_t at = 77;

	ck_assert_int_eq(ls_bodies_put(bodies, bytes, BODY_MAX + 1, &at), -EMSGSIZE);
	ck_assert_int_eq(at, 77);
	ck_assert_int_eq(ls_bodies_end(bodies), 0);
}

LS_TEST(bodies, a_reader_at_rest_holds_no_snapshot)
{
	struct ls_bodies_reader *r;
	const uint8_t *body;
	sqlite3 *other;

	(void)put(1, 5000);
	ck_assert_int_eq(ls_bodies_flush(bodies), 0);
	ck_assert_int_eq(ls_db_open(path, LS_DB_READ, &other), 0);
	ck_assert_int_eq(ls_bodies_reader_new(other, "main", &r), 0);
	ck_assert_int_eq(ls_bodies_read(r, 0, 5000, &body), 0);
	ck_assert_int_eq(sqlite3_txn_state(other, "main"), SQLITE_TXN_READ);
	ls_bodies_rest(r);
	ck_assert_int_eq(sqlite3_txn_state(other, "main"), SQLITE_TXN_NONE);
	ck_assert_int_eq(ls_bodies_read(r, 1, 4999, &body), 0);
	ck_assert_int_eq(memcmp(body, make(1, 5000) + 1, 4999), 0);
	ls_bodies_reader_free(r);
	ls_db_close(other);
}

/* --- files that lie ------------------------------------------------------- */

static void
fill(void)
{
	unsigned i;

	for (i = 0; i < 8; i++)
		(void)put(i, 10000);
	ck_assert_int_eq(ls_bodies_flush(bodies), 0);
	ck_assert_int_eq(number("SELECT max(id) FROM body_part"), 5);
}

LS_CASE(lies, setup, teardown);

LS_TEST(lies, places_that_cannot_be_are_damage)
{
	fill();
	refused(-1, 10);
	refused(INT64_MIN, 10);
	refused(0, 0);
	refused(0, -1);
	refused(0, INT64_MAX);
	refused(0, BODY_MAX + 1);
	refused(5 * PART, 1);
	refused(5 * PART - 1, 2);
	refused(INT64_MAX, 1);
	refused(INT64_MAX - 10, BODY_MAX);
	see(0, 0, 10000);
}

LS_TEST(lies, parts_that_are_short_or_gone_are_damage)
{
	fill();
	run("UPDATE body_part SET bytes = substr(bytes, 2) WHERE id = 2");
	refused(PART, 1);
	refused(PART - 1, 2);
	see(0, 0, 10000);
	run("DELETE FROM body_part WHERE id = 1");
	refused(0, 10000);
	see(4 * 10000, 4, 10000);
}

static void
complains(const char *text)
{
	ck_assert_int_eq(ls_bodies_check(db, why, sizeof(why)), -LS_ECORRUPT);
	ck_assert_ptr_nonnull(strstr(why, text));
}

LS_TEST(lies, a_check_sees_what_is_wrong)
{
	static const char *const wrong[][2] = {
		{ "UPDATE body_part SET bytes = x'00' WHERE id = 2", "another size" },
		{ "DELETE FROM body_part WHERE id = 1", "missing" },
		{ "DELETE FROM body_part WHERE id = 3", "missing" },
		{ "UPDATE chunk SET at = -1 WHERE id = 1", "outside" },
		{ "UPDATE chunk SET len = -1 WHERE id = 1", "outside" },
		{ "UPDATE chunk SET len = 131073 WHERE id = 8", "outside" },
		{ "UPDATE chunk SET len = 14261 WHERE id = 8", "outside" },
		{ "UPDATE chunk SET at = 9223372036854775807 WHERE id = 8", "outside" },
		{ "DELETE FROM body_part", "outside" },
		{ "UPDATE chunk SET at = at - 1 WHERE id = 8",
			"1 chunks have bytes of others" },
		{ "UPDATE chunk SET len = len + 1 WHERE id = 1", "bytes of others" },
	};
	size_t i;

	fill();
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		run("BEGIN");
		ck_assert_int_eq(ls_bodies_check(db, why, sizeof(why)), 0);
		run(wrong[i][0]);
		complains(wrong[i][1]);
		run("ROLLBACK");
	}
	ck_assert_int_eq(ls_bodies_check(db, why, sizeof(why)), 0);
}

/* Who goes on behind a last chunk that lies writes over nothing: into a part of its
 * own. */
LS_TEST(lies, a_last_chunk_that_lies_is_not_believed)
{
	static const int64_t places[][2] = { { -5, 10 }, { 0, 10 }, { INT64_MAX, 10 },
		{ 5 * PART, 1 }, { 5 * PART - 1, 2 }, { 4 * PART, -1 },
		{ 4 * PART, INT64_MAX } };
	size_t i;

	fill();
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		run("BEGIN");
		row(places[i][0], places[i][1]);
		ls_bodies_close(bodies);
		ck_assert_int_eq(ls_bodies_open(db, &bodies), 0);
		ck_assert_int_eq(ls_bodies_end(bodies), 5 * PART);
		see(put(9, 20000), 9, PART); /* what is flushed of it */
		run("ROLLBACK");
	}
	run("UPDATE body_part SET id = 9223372036854775807 WHERE id = 5");
	ls_bodies_close(bodies);
	bodies = NULL;
	ck_assert_int_eq(ls_bodies_open(db, &bodies), -LS_ECORRUPT);
}

LS_TEST(lies, a_short_last_part_is_damage_when_written_to)
{
	int64_t at;

	fill();
	run("UPDATE body_part SET bytes = x'00' WHERE id = 5");
	ck_assert_int_eq(ls_bodies_put(bodies, bytes, 10, &at), 0);
	ck_assert_int_eq(ls_bodies_flush(bodies), -LS_ECORRUPT);
}

/* --- in a store ----------------------------------------------------------- */

static struct ls_write *
report(unsigned first, unsigned count)
{
	struct ls_write *m = ls_write_new_report(0, 0, count, NOON);
	static uint8_t body[8][20000];
	unsigned i;

	ck_assert_ptr_nonnull(m);
	(void)snprintf(m->u.report.host, sizeof(m->u.report.host), "h");
	m->u.report.last_chunk_seq = first + count;
	m->u.report.chunk_count = count;
	for (i = 0; i < count; i++) {
		struct ls_store_chunk *c = &m->u.report.chunks[i];

		c->kind = LS_WIRE_CHUNK;
		c->n = first + i;
		c->body_len = length_of(first + i) % 20000;
		memcpy(body[i], make(first + i, c->body_len), c->body_len);
		c->body = body[i];
	}
	return m;
}

static int
commit(struct ls_store *s, unsigned first, unsigned count)
{
	struct ls_write *m = report(first, count);
	int rc = ls_store_commit(s, &m, 1, NOON);

	ls_test_write_free(m);
	return rc;
}

LS_CASE(store);

/* The n-th write fails, for every n: then another batch comes, and all of what was
 * stored is what it should be. */
LS_TEST(store, bodies_are_whole_whatever_write_fails)
{
	static const int codes[] = { SQLITE_FULL, SQLITE_IOERR_WRITE };
	static const int errors[] = { -ENOSPC, -EIO };
	int rc;
	bool through = false;
	int64_t i, chunks;
	long n;

	ls_faultvfs_install();
	for (n = 1; !through; n++) {
		struct ls_store *s;

		ck_assert_int_lt(n, 200);
		(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
		ck_assert_int_eq(ls_store_open(dir, NOON, &s), 0);
		ck_assert_int_eq(commit(s, 0, 2), 0);
		ls_faultvfs_fail(n, codes[n % 2]);
		rc = commit(s, 2, 8);
		through = !ls_faultvfs_hit();
		ls_faultvfs_heal();
		ck_assert(rc == 0 || (!through && rc == errors[n % 2]));
		ck_assert_int_eq(commit(s, 10, 5), 0);
		ls_store_close(s);
		(void)snprintf(path, sizeof(path), "%s/telemetry/%d.db", dir, TODAY);
		ck_assert_int_eq(ls_db_open(path, LS_DB_READ, &db), 0);
		ck_assert_int_eq(ls_bodies_check(db, why, sizeof(why)), 0);
		chunks = number("SELECT count(*) FROM chunk");
		ck_assert_int_eq(chunks,
			rc == 0 ? 15 : 7); /* all of a batch, or none */
		for (i = 1; i <= chunks; i++) {
			char sql[3][64];
			static const char *const columns[] = { "at", "len", "n" };
			size_t k;

			for (k = 0; k < 3; k++)
				(void)snprintf(sql[k], sizeof(sql[k]),
					"SELECT %s FROM chunk WHERE id = %d",
					columns[k], (int)i);
			if (number(sql[1]) > 0)
				see(number(sql[0]), (unsigned)number(sql[2]),
					(size_t)number(sql[1]));
		}
		ls_db_close(db);
	}
	ck_assert_int_gt(n, 5);
}
