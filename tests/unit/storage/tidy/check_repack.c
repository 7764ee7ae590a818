/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of storage/repack and storage/repacker: the same values at the same
 * microseconds, in fewer and larger chunks. */
#include "config.h"

#include "storage/tidy/repack.h"
#include "storage/tidy/repacker.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/replace.h"
#include "storage/read/query_chunk.h"
#include "storage/write/store.h"
#include "tests/support/chunk_table.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"

#define CLOSED 20261120
#define OPEN 20261121
#define CLOSED_NOON (ls_days_begin_us(CLOSED) + 12ll * 3600 * 1000000)
#define OPEN_NOON (ls_days_begin_us(OPEN) + 12ll * 3600 * 1000000)
#define MINUTE_NS 60000000000ll
#define BOOT_NS 1000000000000ll /* monotonic time of the first chunk */

enum { HOSTS = 3, DICTIONARIES = 2, MINUTES = 25, CELLS_MAX = 2000000 };

/* One value that is stored; compared as bytes. */
struct cell {
	char host[8];
	uint64_t dictionary;
	int64_t t_us;
	uint64_t column, present, bits;
};

struct cells {
	size_t count, chunks;
	struct cell *cell;
	struct ls_chunk_codec *codec;
};

static char dir[PATH_MAX];
static struct ls_store *store;
static uint8_t body[LS_CHUNK_BODY_MAX_BYTES];
static struct ls_chunk_codec *encoder;
static struct ls_repacker *repacker;

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(ls_store_open(dir, CLOSED_NOON, &store), 0);
	encoder = ls_chunk_codec_new(CHUNK_TABLE_COLUMNS, CHUNK_TABLE_ROWS);
	ck_assert_ptr_nonnull(encoder);
	chunk_table_start();
}

static void
teardown(void)
{
	ls_store_close(store);
	ls_chunk_codec_free(encoder);
}

static void
put(struct ls_write *m, int64_t wall_us)
{
	ck_assert_int_eq(ls_store_commit(store, &m, 1, wall_us), 0);
	ls_test_write_free(m);
}

/* Stores a body as a chunk of a host; its rows begin so many ns after the first of all.
 */
static void
put_chunk(int host, uint64_t dictionary, uint32_t rows, size_t len,
	const struct ls_store_map *map, int64_t first_ns, int64_t last_ns)
{
	static uint64_t seq;
	struct ls_write *m = ls_write_new_report(0, 0, 1, CLOSED_NOON);
	struct ls_store_chunk *c;

	ck_assert_ptr_nonnull(m);
	(void)snprintf(m->u.report.host, sizeof(m->u.report.host), "h%d", host);
	m->u.report.last_chunk_seq = ++seq;
	m->u.report.chunk_count = 1;
	c = &m->u.report.chunks[0];
	c->kind = LS_WIRE_CHUNK;
	c->hash = dictionary;
	c->n = rows;
	c->map = *map;
	c->t_first_us = (ls_store_map_ns(map, first_ns) + 500) / 1000;
	c->t_last_us = (ls_store_map_ns(map, last_ns) + 500) / 1000;
	c->body = body;
	c->body_len = len;
	put(m, CLOSED_NOON);
}

/* Encodes chunk_table at a time and stores it. */
static void
put_table(int host, uint64_t dictionary, int64_t first_ns,
	const struct ls_store_map *map)
{
	size_t len, i, n = chunk_table.rows;

	for (i = 0; i < n; i++)
		chunk_table.t_mono_ns[i] = (uint64_t)(first_ns +
			(int64_t)i * 1000000000 + (int64_t)(i * 137 % 4000) * 1000);
	ck_assert_int_eq(
		ls_chunk_encode(encoder, &chunk_table, body, sizeof(body), &len), 0);
	put_chunk(host, dictionary, (uint32_t)n, len, map, first_ns,
		(int64_t)chunk_table.t_mono_ns[n - 1]);
}

/* The clock of a host: fitted anew each minute. */
static struct ls_store_map
clock_of(int host, int minute)
{
	return (struct ls_store_map){ .ref_mono_ns = BOOT_NS + minute * MINUTE_NS,
		.offset_ns = CLOSED_NOON * 1000 - BOOT_NS + host * 333 + minute * 12345,
		.drift_ppb = 5000 - 100 * minute,
		.uncertainty_ns = 1000 + minute };
}

static void
put_minutes(int host, uint64_t dictionary)
{
	int minute;

	for (minute = 0; minute < MINUTES; minute++) {
		struct ls_store_map map = clock_of(host, minute);

		chunk_table_make_random();
		/* the width changes */
		chunk_table.columns = dictionary == 1 ? 7 : minute < 10 ? 3 : 4;
		chunk_table.rows = 60;
		put_table(host, dictionary, BOOT_NS + minute * MINUTE_NS, &map);
	}
}

/* --- what is stored ------------------------------------------------------- */

static int
see(void *arg, const struct ls_query_chunk *c)
{
	struct cells *all = arg;
	struct ls_chunk_table t;
	size_t i, k;

	all->chunks++;
	if (ls_chunk_decode(all->codec, c->body, c->len, &t) != 0)
		return 0;
	ck_assert_uint_eq(t.rows, c->n);
	for (i = 0; i < t.rows; i++) {
		int64_t t_us =
			(ls_store_map_ns(&c->map, (int64_t)t.t_mono_ns[i]) + 500) /
			1000;

		ck_assert(i > 0 || t_us == c->t_first_us);
		ck_assert(i + 1 < t.rows || t_us == c->t_last_us);
		for (k = 0; k < t.columns; k++) {
			struct cell *cell = &all->cell[all->count++];

			ck_assert_uint_le(all->count, CELLS_MAX);
			memset(cell, 0, sizeof(*cell));
			memcpy(cell->host, c->host, 3);
			cell->dictionary = c->dictionary;
			cell->t_us = t_us;
			cell->column = k;
			cell->present = t.present[k * t.stride + i];
			memcpy(&cell->bits, &t.value[k * t.stride + i],
				sizeof(cell->bits));
		}
	}
	return 0;
}

static int
compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct cell));
}

static struct cells
stored(void)
{
	struct cells all = { .cell = calloc(CELLS_MAX, sizeof(struct cell)),
		.codec = ls_chunk_codec_new(LS_SERIES_PER_GROUP_MAX,
			LS_CHUNK_ROWS_MAX) };
	struct ls_query *q;

	ck_assert_ptr_nonnull(all.cell);
	ck_assert_ptr_nonnull(all.codec);
	ck_assert_int_eq(ls_query_open(dir, &q), 0);
	ck_assert_int_eq(ls_query_chunks(q, CLOSED, see, &all), 0);
	ls_query_close(q);
	qsort(all.cell, all.count, sizeof(struct cell), compare);
	return all;
}

static void
cells_fini(struct cells *all)
{
	free(all->cell);
	ls_chunk_codec_free(all->codec);
}

/* As the roller leaves a file: all its chunks are in roll-ups. */
static void
roll_up(void)
{
	char path[PATH_MAX];
	sqlite3 *db;

	ck_assert_int_eq(ls_days_path(path, dir, CLOSED), 0);
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	ck_assert_int_eq(
		ls_db_exec(db,
			"INSERT INTO rollup_done VALUES (0, 0, (SELECT max(id) FROM chunk))"),
		0);
	ls_db_close(db);
}

/* Begins the next day, so that the first is closed; then repacks it and compares. */
static struct ls_repack_stats
repack_and_compare(void)
{
	struct cells before, after;
	struct ls_repack_stats stats;
	enum ls_repack_state state;

	put(ls_test_report(0, 2, 10, 5, OPEN_NOON), OPEN_NOON);
	before = stored();
	ck_assert_int_eq(ls_repack_look(dir, CLOSED, &state), 0);
	ck_assert_int_eq(state, LS_REPACK_NOT_ROLLED_UP);
	roll_up();
	ck_assert_int_eq(ls_repack_look(dir, CLOSED, &state), 0);
	ck_assert_int_eq(state, LS_REPACK_TO_DO);
	ck_assert_int_eq(ls_repack_day(dir, CLOSED, NULL, NULL, &stats), 0);
	ck_assert_int_eq(ls_store_replace(store, CLOSED), 0);
	ck_assert_int_eq(ls_repack_look(dir, CLOSED, &state), 0);
	ck_assert_int_eq(state, LS_REPACK_DONE);
	after = stored();
	ck_assert_uint_eq(stats.chunks_before, before.chunks);
	ck_assert_uint_eq(stats.chunks_after, after.chunks);
	ck_assert_uint_eq(before.count, after.count);
	ck_assert_mem_eq(before.cell, after.cell, before.count * sizeof(struct cell));
	cells_fini(&before);
	cells_fini(&after);
	return stats;
}

/* --- tests ---------------------------------------------------------------- */

LS_CASE(repack, setup, teardown);

LS_TEST(repack, every_value_stays_at_its_time)
{
	struct ls_repack_stats stats;
	int host;
	uint64_t d;

	put(ls_test_worker(0, CLOSED_NOON), CLOSED_NOON);
	put(ls_test_report(0, 1, 0, 10, CLOSED_NOON), CLOSED_NOON);
	put(ls_test_close(4, CLOSED_NOON), CLOSED_NOON);
	put(ls_test_hang(5, CLOSED_NOON), CLOSED_NOON);
	for (host = 0; host < HOSTS; host++) {
		for (d = 1; d <= DICTIONARIES; d++)
			put_minutes(host, d);
	}
	stats = repack_and_compare();
	ck_assert_uint_eq(stats.chunks_before, HOSTS * DICTIONARIES * MINUTES);
	/* Ten minutes a chunk; the dictionary whose width changes after ten needs no
	 * more for it. */
	ck_assert_uint_eq(stats.chunks_after, HOSTS * DICTIONARIES * 3);
	ck_assert_uint_eq(stats.kept, 0);
	ck_assert_int_eq(ls_test_sql(dir, CLOSED, "SELECT count(*) FROM journal"),
		HOSTS * DICTIONARIES * MINUTES + 1);
	ck_assert_int_eq(ls_test_sql(dir, CLOSED,
				 "SELECT count(*) FROM step_close WHERE step = 4"),
		1);
	ck_assert_int_eq(
		ls_test_sql(dir, CLOSED, "SELECT count(*) FROM hang WHERE step = 5"),
		1);
}

LS_TEST(repack, a_clock_that_falls_begins_a_new_chunk)
{
	struct ls_store_map map = clock_of(0, 0);
	struct ls_repack_stats stats;

	chunk_table_make(60, 2);
	put_table(0, 1, BOOT_NS, &map);
	/* five seconds back: rows of both minutes share times */
	map.offset_ns -= 5000000000;
	put_table(0, 1, BOOT_NS + MINUTE_NS, &map);
	stats = repack_and_compare();
	ck_assert_uint_eq(stats.chunks_after, 2);
}

LS_TEST(repack, what_does_not_decode_is_kept_as_it_was)
{
	struct ls_store_map map = clock_of(0, 0);
	struct ls_repack_stats stats;

	chunk_table_make(60, 2);
	put_table(0, 1, BOOT_NS, &map);
	memset(body, 'x', 100);
	put_chunk(0, 1, 60, 100, &map, BOOT_NS + MINUTE_NS,
		BOOT_NS + 2 * MINUTE_NS - 1);
	chunk_table_make(60, 2);
	put_table(0, 1, BOOT_NS + 2 * MINUTE_NS, &map);
	stats = repack_and_compare();
	ck_assert_uint_eq(stats.kept, 1);
	ck_assert_uint_eq(stats.chunks_after, 3);
}

/* What does not compress makes bodies of half the rows. */
LS_TEST(repack, bodies_keep_their_maximum)
{
	struct ls_store_map map = clock_of(0, 0);
	struct ls_repack_stats stats;
	size_t i, minute;

	for (minute = 0; minute < 10; minute++) {
		chunk_table_make(60, CHUNK_TABLE_COLUMNS);
		for (i = 0; i < (size_t)CHUNK_TABLE_COLUMNS * CHUNK_TABLE_ROWS; i++)
			chunk_table.value[i] =
				chunk_table_double(chunk_table_random() | 1ull << 62);
		put_table(0, 1, BOOT_NS + (int64_t)minute * MINUTE_NS, &map);
	}
	stats = repack_and_compare();
	ck_assert_uint_gt(stats.chunks_after, 2);
	ck_assert_uint_lt(stats.chunks_after, 10);
}

static bool
stop_at_once(void *arg)
{
	++*(int *)arg;
	return true;
}

LS_TEST(repack, what_must_not_be_repacked_stays)
{
	struct ls_store_map map = clock_of(0, 0);
	struct ls_repack_stats stats;
	char fresh[PATH_MAX];
	int asked = 0;

	chunk_table_make(60, 2);
	put_table(0, 1, BOOT_NS, &map);
	/* it is open */
	ck_assert_int_eq(ls_repack_day(dir, CLOSED, NULL, NULL, &stats), -LS_EBUSY);
	ck_assert_int_eq(ls_repack_day(dir, 20261101, NULL, NULL, &stats), -ENOENT);
	put(ls_test_report(0, 2, 10, 5, OPEN_NOON), OPEN_NOON);
	ck_assert_int_eq(ls_repack_day(dir, OPEN, NULL, NULL, &stats), -LS_EBUSY);
	ck_assert_int_eq(ls_repack_day(dir, CLOSED, stop_at_once, &asked, &stats),
		-ECANCELED);
	ck_assert_int_eq(asked, 1);
	ck_assert_int_eq(ls_replace_path(fresh, dir, CLOSED), 0);
	ck_assert_int_ne(access(fresh, F_OK), 0);
	ck_assert_int_eq(ls_repack_day(dir, CLOSED, NULL, NULL, &stats), 0);
	ck_assert_int_eq(access(fresh, F_OK), 0);
	ck_assert_int_eq(ls_store_replace(store, OPEN), -LS_EBUSY);
}

/* A roll-up of a closed day is in rollup_done and nowhere else: enough to be missed. */
static void
late_rollup(int64_t minute)
{
	struct ls_store_rollup_row done = {
		.table = LS_ROLLUP_DONE, .span_s = 60, .t_us = minute, .chunk_id = 7
	};
	const struct ls_store_rollup r = { .day = CLOSED, .count = 1, .rows = &done };

	ck_assert_int_eq(ls_store_rollup(store, &r), 0);
}

static int
read_on(void *arg, const struct ls_query_chunk *c)
{
	(void)c;
	late_rollup(*(int64_t *)arg);
	return 1;
}

/* What the writer may do to the day while it is repacked: rows in the file, or in a WAL
 * that a reader keeps. */
static bool
write_meanwhile(void *arg)
{
	late_rollup(*(int64_t *)arg);
	return false;
}

/* The hook between the repacker's last check and the rename. */
static int
write_before_rename(void *arg, struct ls_write *m)
{
	ck_assert_int_eq(m->u.day, CLOSED);
	late_rollup(*(int64_t *)arg);
	ck_assert_int_eq(ls_store_replace(store, m->u.day), -LS_ESTALE);
	ls_repacker_told(repacker, -LS_ESTALE);
	ls_write_free(m);
	return 0;
}

LS_TEST(repack, late_rollups_are_never_replaced)
{
	struct ls_store_map map = clock_of(0, 0);
	struct ls_repack_stats stats;
	int64_t minute = 60000000;
	struct ls_repacker *r = ls_repacker_new(dir, write_before_rename, &minute);
	char fresh[PATH_MAX];
	struct ls_query *q;
	bool more;

	ck_assert_ptr_nonnull(r);
	chunk_table_make(60, 2);
	put_table(0, 1, BOOT_NS, &map);
	put(ls_test_report(0, 2, 10, 5, OPEN_NOON), OPEN_NOON);
	/* While the chunks are copied, as the roller may after a restart. */
	ck_assert_int_eq(ls_repack_day(dir, CLOSED, write_meanwhile, &minute, &stats),
		0);
	ck_assert_int_ne(ls_store_replace(store, CLOSED), 0);
	/* Between the last check and the rename. */
	minute *= 2;
	roll_up();
	repacker = r;
	ck_assert_int_eq(ls_repacker_step(r, OPEN_NOON + LS_REPACK_FORCE_US, 0, &more),
		-LS_ESTALE);
	/* A reader keeps the frames in the WAL. */
	minute *= 2;
	ck_assert_int_eq(ls_query_open(dir, &q), 0);
	ck_assert_int_eq(ls_repack_day(dir, CLOSED, NULL, NULL, &stats), 0);
	ck_assert_int_eq(ls_query_chunks(q, CLOSED, read_on, &minute), 1);
	ls_query_close(q);
	ck_assert_int_eq(ls_store_replace(store, CLOSED), -LS_EBUSY);
	ck_assert_int_eq(ls_replace_path(fresh, dir, CLOSED), 0);
	ck_assert_int_ne(access(fresh, F_OK), 0);
	ck_assert_int_eq(ls_test_sql(dir, CLOSED,
				 "SELECT count(*) FROM rollup_done WHERE span_s = 60"),
		3);
	ls_repacker_free(r);
}

static void
hear(void *arg, const char *line)
{
	(void)snprintf(arg, 256, "%s", line);
}

LS_TEST(repack, all_closed_days_are_repacked_once)
{
	struct ls_store_map map = clock_of(0, 0);
	char line[256] = "";
	int minute;

	for (minute = 0; minute < 2; minute++) {
		chunk_table_make(60, 2);
		put_table(0, 1, BOOT_NS + minute * MINUTE_NS, &map);
	}
	put(ls_test_report(0, 2, 10, 5, OPEN_NOON), OPEN_NOON);
	ck_assert_int_eq(ls_repack_all(dir, hear, line), -LS_EBUSY);
	ls_store_close(store);
	store = NULL;
	ck_assert_int_eq(ls_repack_all(dir, hear, line), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(line, "not rolled up"));
	roll_up();
	ck_assert_int_eq(ls_repack_all(dir, hear, line), 0);
	ck_assert_ptr_nonnull(strstr(line, "20261120: 2 chunks became 1"));
	line[0] = '\0';
	ck_assert_int_eq(ls_repack_all(dir, hear, line), 0);
	ck_assert_str_eq(line, "");
}

static int
push(void *arg, struct ls_write *m)
{
	(void)arg;
	ls_repacker_told(repacker, ls_store_replace(store, m->u.day));
	ls_write_free(m);
	return 0;
}

LS_TEST(repack, the_repacker_waits_for_its_hour)
{
	const int64_t midnight_us = ls_days_begin_us(OPEN);
	struct ls_store_map map = clock_of(0, 0);
	struct ls_repacker *r = ls_repacker_new(dir, push, NULL);
	struct ls_repacker_stats stats;
	bool more = true;

	ck_assert_ptr_nonnull(r);
	repacker = r;
	chunk_table_make(60, 2);
	put_table(0, 1, BOOT_NS, &map);
	put(ls_test_report(0, 2, 10, 5, OPEN_NOON), OPEN_NOON);
	ck_assert_int_eq(
		ls_repacker_step(r, midnight_us + LS_REPACK_FORCE_US - 1, 0, &more), 0);
	ck_assert(!more); /* not rolled up */
	roll_up();
	ck_assert_int_eq(ls_repacker_step(r, midnight_us + LS_REPACK_WAIT_US - 1,
				 LS_REPACK_LOOK_NS, &more),
		0);
	ck_assert(!more);
	/* It looks again after a while, not at once. */
	ck_assert_int_eq(ls_repacker_step(r, midnight_us + LS_REPACK_WAIT_US,
				 2 * LS_REPACK_LOOK_NS - 1, &more),
		0);
	ls_repacker_stats(r, &stats);
	ck_assert_uint_eq(stats.days, 0);
	ck_assert_int_eq(ls_repacker_step(r, midnight_us + LS_REPACK_WAIT_US,
				 2 * LS_REPACK_LOOK_NS, &more),
		0);
	ck_assert(more);
	ls_repacker_stats(r, &stats);
	ck_assert_uint_eq(stats.days, 1);
	ck_assert_uint_gt(stats.bytes_after, 0);
	ck_assert_int_eq(ls_repacker_step(r, OPEN_NOON, 2 * LS_REPACK_LOOK_NS, &more),
		0);
	ck_assert(!more);
	ls_repacker_free(r);
}

LS_TEST(repack, the_repacker_tries_again_and_stops)
{
	struct ls_store_map map = clock_of(0, 0);
	struct ls_repacker *r = ls_repacker_new(dir, push, NULL);
	struct ls_repacker_stats stats;
	char path[PATH_MAX], wal[PATH_MAX + 8];
	bool more;
	FILE *f;

	ck_assert_ptr_nonnull(r);
	repacker = r;
	chunk_table_make(60, 2);
	put_table(0, 1, BOOT_NS, &map);
	put(ls_test_report(0, 2, 10, 5, OPEN_NOON), OPEN_NOON);
	roll_up();
	ck_assert_int_eq(ls_days_path(path, dir, CLOSED), 0);
	(void)snprintf(wal, sizeof(wal), "%s-wal", path);
	f = fopen(wal, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fputs("a reader's", f) >= 0, 1);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(ls_repacker_step(r, OPEN_NOON, 0, &more), -LS_EBUSY);
	ck_assert_int_eq(remove(wal), 0);
	ck_assert_int_eq(ls_repacker_step(r, OPEN_NOON, LS_REPACK_RETRY_NS - 1, &more),
		0);
	ls_repacker_stats(r, &stats);
	ck_assert_uint_eq(stats.days, 0);
	ck_assert_uint_eq(stats.failures, 1);
	ls_repacker_stop(r);
	ck_assert_int_eq(ls_repacker_step(r, OPEN_NOON, LS_REPACK_RETRY_NS, &more), 0);
	ls_repacker_stats(r, &stats);
	ck_assert_uint_eq(stats.days, 0);
	ls_repacker_free(r);
}
