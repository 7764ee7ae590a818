/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/write/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/queue.h"
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/write/store.h"
#include "tests/support/disk/faultvfs.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"

#define DAY_US (24ll * 3600 * 1000000)
#define NOON (ls_days_begin_us(20261121) + DAY_US / 2)
#define TODAY 20261121

static char dir[PATH_MAX];

static void
setup(void)
{
	ls_log_set_level(LS_LOG_ERR);
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ls_faultvfs_install();
	ls_faultvfs_heal();
}

static struct ls_store *
store_open(int64_t wall_us)
{
	struct ls_store *s = NULL;

	ck_assert_int_eq(ls_store_open(dir, wall_us, &s), 0);
	return s;
}

/* Commits one message and frees it. */
static int
commit(struct ls_store *s, struct ls_write *m, int64_t wall_us)
{
	int rc = ls_store_commit(s, &m, 1, wall_us);

	ck_assert_int_eq(m->rc, rc);
	ls_test_write_free(m);
	return rc;
}

/* --- store ---------------------------------------------------------------- */

LS_CASE(store, setup, NULL);

LS_TEST(store, all_kinds_of_rows_are_stored)
{
	struct ls_store *s = store_open(NOON);

	ck_assert_int_eq(commit(s, ls_test_worker(0, NOON), NOON), 0);
	ck_assert_int_eq(commit(s, ls_test_report(0, 1, 0, 10, NOON), NOON), 0);
	ck_assert_int_eq(commit(s, ls_test_report_rest(0, 3, NOON), NOON), 0);
	ck_assert_int_eq(commit(s, ls_test_close(4, NOON), NOON), 0);
	ck_assert_int_eq(commit(s, ls_test_hang(5, NOON), NOON), 0);
	ck_assert_int_eq(commit(s, ls_test_finding("F-1", "open", NOON), NOON), 0);
	ck_assert_int_eq(commit(s, ls_test_finding("F-1", "cleared", NOON), NOON), 0);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT sum(n) FROM step_block"), 10);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT n FROM gap"), 7);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT how FROM worker_end"),
		LS_END_CRASHED);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT n FROM counters"), 2);
	ck_assert_int_eq(
		ls_test_sql(dir, TODAY, "SELECT length(missing) FROM step_close"), 8);
	ck_assert_int_eq(
		ls_test_sql(dir, TODAY,
			"SELECT count(*) FROM hang WHERE job = 'train' AND "
			"attempt = 2 AND step = 5 AND t_us - since_us = 11000000 AND waiting = 3 AND why = 3 "
			"AND ranks = x'0100000070110100'"),
		1);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT seq FROM ledger"), 3);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT high FROM ring_high"), 107);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM worker"), 1);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM finding"), 1);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT status = 'cleared' FROM finding"),
		1);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM finding_event"), 2);
	ls_store_close(s);
}

LS_TEST(store, chunks_and_their_bytes_are_counted)
{
	static const uint8_t body[100];
	struct ls_store *s = store_open(NOON);
	struct ls_write *m = ls_write_new_report(0, 0, 3, NOON);
	struct ls_store_stats stats = { 0 };

	(void)snprintf(m->u.report.host, sizeof(m->u.report.host), "h0");
	m->u.report.last_chunk_seq = 3;
	m->u.report.chunk_count = 3;
	for (size_t i = 0; i < 3; i++) {
		m->u.report.chunks[i].kind = i < 2 ? LS_WIRE_CHUNK : LS_WIRE_DICTIONARY;
		m->u.report.chunks[i].body = body;
		m->u.report.chunks[i].body_len = i < 2 ? 50 * (i + 1) : 0;
	}
	ck_assert_int_eq(commit(s, m, NOON), 0);
	ls_store_stats(s, &stats);
	ck_assert_uint_eq(stats.chunks, 2);
	ck_assert_uint_eq(stats.chunk_bytes, 150);
	ck_assert_int_eq(commit(s, ls_test_close(4, NOON), NOON), 0);
	ls_store_stats(s, &stats);
	ck_assert_uint_eq(stats.chunks, 2);
	ls_store_close(s);
}

LS_TEST(store, the_day_turns_with_its_ledger)
{
	struct ls_store *s = store_open(NOON);
	struct ls_store_stats st;

	ck_assert_int_eq(commit(s, ls_test_report(0, 5, 0, 10, NOON), NOON), 0);
	ck_assert_int_eq(commit(s, ls_test_report(1, 9, 0, 2, NOON), NOON), 0);
	ck_assert_int_eq(
		commit(s, ls_test_report(0, 6, 10, 1, NOON + DAY_US), NOON + DAY_US),
		0);
	ck_assert_int_eq(ls_test_sql(dir, 20261122, "SELECT count(*) FROM step_block"),
		1);
	ck_assert_int_eq(ls_test_sql(dir, 20261122, "SELECT max(seq) FROM ledger"), 9);
	ck_assert_int_eq(ls_test_sql(dir, 20261122, "SELECT min(seq) FROM ledger"), 6);
	ck_assert_int_eq(ls_test_sql(dir, 20261122, "SELECT max(high) FROM ring_high"),
		11);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT max(high) FROM ring_high"),
		10);
	/* A clock that goes back does not go back to the old file. */
	ck_assert_int_eq(commit(s, ls_test_report(0, 7, 11, 1, NOON), NOON), 0);
	ck_assert_int_eq(ls_test_sql(dir, 20261122, "SELECT count(*) FROM step_block"),
		2);
	ls_store_close(s);
	s = store_open(NOON);
	ck_assert_int_eq(commit(s, ls_test_report(0, 8, 12, 1, NOON), NOON), 0);
	ck_assert_int_eq(ls_test_sql(dir, 20261122, "SELECT max(id) FROM step_block"),
		3);
	ls_store_stats(s, &st);
	ck_assert_uint_eq(st.records, 1);
	ls_store_close(s);
}

LS_TEST(store, the_ledger_forgets_who_is_long_silent)
{
	struct ls_store *s = store_open(NOON);
	int64_t later = NOON + LS_LEDGER_KEEP_US + DAY_US;

	ck_assert_int_eq(commit(s, ls_test_report(0, 5, 0, 10, NOON), NOON), 0);
	ck_assert_int_eq(commit(s, ls_test_report(1, 1, 0, 1, later), later), 0);
	ck_assert_int_eq(
		ls_test_sql(dir, ls_days_of(later), "SELECT count(*) FROM ledger"), 1);
	ls_store_close(s);
}

LS_TEST(store, one_collector_a_directory)
{
	struct ls_store *s = store_open(NOON), *t = NULL;

	ck_assert_int_eq(ls_store_open(dir, NOON, &t), -LS_EBUSY);
	ls_store_close(s);
	t = store_open(NOON);
	ls_store_close(t);
}

static void
scribble(int32_t day)
{
	char path[PATH_MAX];
	char junk[4096];
	int fd;

	ck_assert_int_eq(ls_days_path(path, dir, day), 0);
	memset(junk, 0x5a, sizeof(junk));
	fd = open(path, O_WRONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, junk, sizeof(junk), 0), sizeof(junk));
	ck_assert_int_eq(close(fd), 0);
}

static void
count_line(void *arg, const char *line)
{
	int *bad = arg;

	*bad += strstr(line, ": ok") == NULL;
}

LS_TEST(store, a_damaged_day_is_set_aside)
{
	struct ls_store *s = store_open(NOON);
	struct ls_store_stats st;
	int bad = 0;

	ck_assert_int_eq(commit(s, ls_test_report(0, 5, 0, 10, NOON), NOON), 0);
	ls_store_close(s);
	ck_assert_int_eq(ls_store_check(dir, count_line, &bad), 0);
	ck_assert_int_eq(bad, 0);
	scribble(TODAY);
	ck_assert_int_ne(ls_store_check(dir, count_line, &bad), 0);
	ck_assert_int_eq(bad, 1);
	s = store_open(NOON + 1000000);
	ls_store_stats(s, &st);
	ck_assert_uint_eq(st.set_aside, 1);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT count(*) FROM ledger"), 0);
	ls_store_close(s);
}

LS_TEST(store, a_check_shows_what_older_versions_hid)
{
	struct ls_store *s = store_open(NOON);
	struct ls_write *m = ls_test_report(0, 5, 0, 10, NOON);
	int lines = 0;

	m->u.report.items[0].worker_id = 99; /* the ring came back under this id */
	ck_assert_int_eq(commit(s, ls_test_worker(0, NOON), NOON), 0);
	ck_assert_int_eq(commit(s, m, NOON), 0);
	ck_assert_int_eq(ls_store_check(dir, count_line, &lines), 0);
	ck_assert_int_eq(lines, 0); /* the store is open */
	ls_store_close(s);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM worker"), 1);
	ck_assert_int_eq(ls_store_check(dir, count_line, &lines), 0);
	ck_assert_int_eq(lines, 1);
	ck_assert_int_eq(
		ls_test_sql(dir, 0,
			"SELECT a.job_id = b.job_id AND a.rank = b.rank FROM worker a, "
			"worker b WHERE a.id = 1 AND b.id = 99"),
		1);
	ck_assert_int_eq(ls_store_check(dir, count_line, &lines), 0);
	ck_assert_int_eq(lines, 1);
}

/* Cuts a file to half of it, or makes all of it zeros. */
static void
damage(int32_t day, bool zeros)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	ck_assert_int_eq(ls_days_path(path, dir, day), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	fd = open(path, O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, zeros ? 0 : st.st_size / 2), 0);
	if (zeros)
		ck_assert_int_eq(ftruncate(fd, st.st_size), 0);
	ck_assert_int_eq(close(fd), 0);
}

/* One retention that removes nothing. */
static void
sweep(struct ls_store *s, int64_t t_us)
{
	struct ls_write *m = ls_write_new(LS_WRITE_RETAIN, t_us);

	ck_assert_ptr_nonnull(m);
	ck_assert_int_eq(commit(s, m, t_us), 0);
}

LS_TEST_LOOP(store, a_closed_day_that_cannot_be_opened_is_set_aside_while_running, 0, 2)
{
	const int64_t tomorrow = NOON + 86400ll * 1000000;
	struct ls_store *s = store_open(NOON);
	struct ls_store_stats st;
	struct ls_days days;

	ck_assert_int_eq(commit(s, ls_test_report(0, 5, 0, 10, NOON), NOON), 0);
	ck_assert_int_eq(commit(s, ls_test_report(0, 6, 10, 10, tomorrow), tomorrow),
		0);
	sweep(s, tomorrow);
	ls_store_stats(s, &st);
	ck_assert_uint_eq(st.aside.count, 0);
	damage(TODAY, _i == 1);
	sweep(s, tomorrow);
	ls_store_stats(s, &st);
	ck_assert_uint_eq(st.set_aside, 1);
	ck_assert_uint_eq(st.aside.count, 1);
	ck_assert_int_eq(ls_days_list(dir, &days), 0);
	ck_assert_uint_eq(days.count, 1);
	ck_assert_int_eq(commit(s, ls_test_report(0, 7, 20, 10, tomorrow), tomorrow),
		0);
	ls_store_close(s);
	/* It lies there, and is told, after a restart too. */
	s = store_open(tomorrow);
	ls_store_stats(s, &st);
	ck_assert_uint_eq(st.set_aside, 0);
	ck_assert_uint_eq(st.aside.count, 1);
	ls_store_close(s);
}

LS_TEST(store, the_open_day_is_set_aside_when_a_commit_meets_damage)
{
	struct ls_store *s = store_open(NOON);
	struct ls_store_stats st;

	ck_assert_int_eq(commit(s, ls_test_report(0, 5, 0, 10, NOON), NOON), 0);
	ls_faultvfs_fail(1, SQLITE_CORRUPT);
	ck_assert_int_eq(commit(s, ls_test_report(0, 6, 10, 10, NOON), NOON),
		-LS_ECORRUPT);
	ls_faultvfs_heal();
	ls_store_stats(s, &st);
	ck_assert_uint_eq(st.set_aside, 1);
	ck_assert_uint_eq(st.aside.count, 1);
	ck_assert_int_eq(commit(s, ls_test_report(0, 6, 10, 10, NOON), NOON), 0);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT seq FROM ledger"), 6);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT count(*) FROM step_block"), 1);
	ls_store_close(s);
}

LS_TEST(store, a_damaged_state_is_set_aside)
{
	struct ls_store *s = store_open(NOON);

	ck_assert_int_eq(commit(s, ls_test_worker(0, NOON), NOON), 0);
	ls_store_close(s);
	scribble(0);
	s = store_open(NOON);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM worker"), 0);
	ls_store_close(s);
}

/* The database was renamed, then the power failed: its WAL must not be lost as well. */
LS_TEST(store, setting_aside_that_was_cut_short_is_finished)
{
	char path[PATH_MAX + 64];
	int32_t day;

	for (day = 0; day <= TODAY; day += TODAY) {
		FILE *f;
		struct stat st;
		size_t len;

		ls_store_close(store_open(NOON));
		ck_assert_int_eq(ls_days_path(path, dir, day), 0);
		ck_assert_int_eq(unlink(path), 0);
		len = strlen(path);
		(void)snprintf(path + len, sizeof(path) - len, "-wal");
		f = fopen(path, "w");
		ck_assert_ptr_nonnull(f);
		ck_assert_int_ge(fputs("frames", f), 0);
		ck_assert_int_eq(fclose(f), 0);
		ls_store_close(store_open(NOON));
		(void)snprintf(path + len, sizeof(path) - len, ".damaged-%lld-wal",
			(long long)(NOON / 1000000));
		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_int_eq(st.st_size, 6);
	}
}

LS_TEST(store, a_day_whose_maker_died_is_made_again)
{
	struct ls_store *s = store_open(NOON);
	char path[PATH_MAX];
	int fd;

	ck_assert_int_eq(commit(s, ls_test_report(0, 5, 0, 10, NOON), NOON), 0);
	ls_store_close(s);
	ck_assert_int_eq(ls_days_path(path, dir, 20261122), 0);
	fd = open(path, O_CREAT | O_WRONLY, 0640);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(close(fd), 0);
	s = store_open(NOON + DAY_US);
	ck_assert_int_eq(ls_test_sql(dir, 20261122, "SELECT seq FROM ledger"), 5);
	ls_store_close(s);
}

LS_TEST(store, retention_removes_files)
{
	struct ls_store *s = store_open(NOON);
	struct ls_store_stats st;
	struct ls_write *m;
	int64_t t = NOON;
	uint64_t i;

	ck_assert_int_eq(commit(s, ls_test_finding("F-1", "open", NOON), NOON), 0);
	for (i = 0; i < 4; i++, t += DAY_US)
		ck_assert_int_eq(commit(s, ls_test_report(0, i + 1, i, 1, t), t), 0);
	t -= DAY_US;
	m = ls_write_new(LS_WRITE_RETAIN, t);
	m->u.retain.keep_from = 20261123;
	m->u.retain.history_us = t - DAY_US;
	ck_assert_int_eq(commit(s, m, t), 0);
	ls_store_stats(s, &st);
	ck_assert_uint_eq(st.removed_days, 2);
	ck_assert_uint_gt(st.bytes, 0);
	ck_assert_uint_eq(ls_days_bytes(dir, TODAY), 0);
	ck_assert_uint_gt(ls_days_bytes(dir, 20261123), 0);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM finding_event"), 0);
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM finding"), 1);
	ls_store_close(s);
}

/*
 * The n-th write or sync fails, for every n until a batch goes through: after each
 * failure nothing of the batch is there, and after healing and another attempt all of
 * it, once.
 */
LS_TEST(store, a_batch_is_all_or_nothing_whatever_write_fails)
{
	static const int codes[] = { SQLITE_FULL, SQLITE_IOERR_WRITE };
	bool through = false;
	long n;

	for (n = 1; !through; n++) {
		struct ls_store *s;
		struct ls_write *batch[3];
		size_t i;
		int rc;

		ck_assert_int_lt(n, 200);
		(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
		s = store_open(NOON);
		batch[0] = ls_test_report(0, 1, 0, 300, NOON);
		batch[1] = ls_test_report(1, 1, 0, 300, NOON);
		batch[2] = ls_test_close(1, NOON);
		ls_faultvfs_fail(n, codes[n % 2]);
		rc = ls_store_commit(s, batch, 3, NOON);
		through = !ls_faultvfs_hit();
		ls_faultvfs_heal();
		if (rc != 0) {
			ck_assert(rc == -ENOSPC || rc == -EIO);
			ck_assert_int_eq(batch[0]->rc, rc);
			ck_assert_int_eq(
				ls_test_sql(dir, TODAY, "SELECT count(*) FROM ledger"),
				0);
			ck_assert_int_eq(ls_test_sql(dir, TODAY,
						 "SELECT count(*) FROM step_block"),
				0);
			ck_assert_int_eq(ls_store_commit(s, batch, 3, NOON), 0);
		}
		ck_assert_int_eq(
			ls_test_sql(dir, TODAY, "SELECT sum(n) FROM step_block"), 600);
		ck_assert_int_eq(
			ls_test_sql(dir, TODAY, "SELECT count(*) FROM step_close"), 1);
		for (i = 0; i < 3; i++)
			ls_test_write_free(batch[i]);
		ls_store_close(s);
	}
	ck_assert_int_gt(n, 2);
}

/* --- units ---------------------------------------------------------------- */

static uint8_t *
body(const char *text, size_t *ret_len)
{
	*ret_len = strlen(text);
	return (uint8_t *)strdup(text);
}

/* Three commits of rank 0 make three rows of the journal, ids 1 to 3. */
static struct ls_store *
store_with_journal(void)
{
	struct ls_store *s = store_open(NOON);
	uint64_t i;

	for (i = 0; i < 3; i++)
		ck_assert_int_eq(
			commit(s, ls_test_report(0, i + 1, 10 * i, 10, NOON), NOON), 0);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT count(*) FROM journal"), 3);
	return s;
}

/* A unit for the first two of them. */
static struct ls_write *
unit(void)
{
	struct ls_write *worker = ls_test_worker(0, NOON),
			*m = ls_write_new(LS_WRITE_PACK, 0);
	struct ls_write *report = ls_test_report(0, 2, 10, 10, NOON);
	struct ls_store_pack *p = &m->u.pack;

	ck_assert_ptr_nonnull(m);
	p->step_rows_count = p->ledger_count = p->ring_count = 1;
	p->step_rows = calloc(1, sizeof(*p->step_rows));
	p->ledgers = calloc(1, sizeof(*p->ledgers));
	p->rings = calloc(1, sizeof(*p->rings));
	ck_assert(p->step_rows != NULL && p->ledgers != NULL && p->rings != NULL);
	p->day = TODAY;
	p->from_id = 1;
	p->last_id = 2;
	p->journal_rows = 2;
	p->records = 20;
	p->t_us = NOON;
	p->step_rows[0].id = 1;
	p->step_rows[0].last_id = 2;
	p->step_rows[0].records = 20;
	p->step_rows[0].step_hi = 19;
	p->step_rows[0].body = body("steps", &p->step_rows[0].len);
	p->hot_rows.id = 1;
	p->hot_rows.last_id = 1;
	p->hot_rows.n = 1;
	p->hot_rows.body = body("hot", &p->hot_rows.len);
	memcpy(p->ledgers[0].boot, report->u.report.boot, sizeof(p->ledgers[0].boot));
	memcpy(p->ledgers[0].host, report->u.report.host, sizeof(p->ledgers[0].host));
	p->ledgers[0].seq = 2;
	memcpy(p->rings[0].ring_id, worker->u.worker.ring_id,
		sizeof(p->rings[0].ring_id));
	p->rings[0].worker_id = 1;
	p->rings[0].high = 20;
	ls_test_write_free(worker);
	ls_test_write_free(report);
	return m;
}

/* How much of a unit there is: 0 or 4 tables, and the rows of the journal beside. */
static int64_t
unit_parts(void)
{
	return ls_test_sql(dir, TODAY,
		"SELECT (SELECT count(*) FROM unit) + (SELECT count(*) FROM step_rows WHERE body = "
		"x'7374657073') + (SELECT count(*) FROM hot_rows) + (SELECT count(*) FROM main.ledger "
		"WHERE seq = 2) + 10 * (SELECT count(*) FROM main.journal)");
}

LS_TEST(store, a_unit_takes_the_place_of_its_rows)
{
	struct ls_store *s = store_with_journal();
	struct ls_write *m = unit();
	struct ls_store_stats st;

	ck_assert_int_eq(unit_parts(), 30);
	ck_assert_int_eq(ls_store_pack(s, &m->u.pack), 0);
	ck_assert_int_eq(unit_parts(), 14);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT high FROM main.ring_high"),
		20);
	/* Tables and journal together say what is on disk. */
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT seq FROM ledger"), 3);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT high FROM ring_high"), 30);
	/* The same once more finds no rows. */
	ck_assert_int_eq(ls_store_pack(s, &m->u.pack), -LS_ESTALE);
	ck_assert_int_eq(unit_parts(), 14);
	ls_store_stats(s, &st);
	ck_assert_uint_eq(st.units, 1);
	ck_assert_uint_eq(st.units_refused, 1);
	/* Ids go on, after a restart too, also when nothing but the unit is left. */
	ls_store_close(s);
	s = store_open(NOON);
	ck_assert_int_eq(commit(s, ls_test_report(0, 4, 30, 1, NOON), NOON), 0);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT max(id) FROM journal"), 4);
	/* And the new day's ledger has both. */
	ck_assert_int_eq(commit(s, ls_test_close(1, NOON + DAY_US), NOON + DAY_US), 0);
	ck_assert_int_eq(ls_test_sql(dir, 20261122, "SELECT seq FROM main.ledger"), 4);
	ck_assert_int_eq(ls_test_sql(dir, 20261122, "SELECT high FROM main.ring_high"),
		31);
	ls_write_free(m);
	ls_store_close(s);
}

LS_TEST(store, a_unit_that_does_not_fit_changes_nothing)
{
	struct ls_store *s = store_with_journal();
	struct ls_write *m = unit();
	struct ls_store_pack *p = &m->u.pack;

	p->journal_rows = 3; /* not so many are there */
	ck_assert_int_eq(ls_store_pack(s, p), -LS_ESTALE);
	p->journal_rows = 1; /* one more is there than it holds */
	ck_assert_int_eq(ls_store_pack(s, p), -LS_ESTALE);
	p->journal_rows = 2;
	p->last_id = 4; /* beyond the rows */
	ck_assert_int_eq(ls_store_pack(s, p), -LS_ESTALE);
	p->last_id = 2;
	p->from_id = 0;
	ck_assert_int_eq(ls_store_pack(s, p), -LS_ESTALE);
	p->from_id = 1;
	p->day = TODAY + 1;
	ck_assert_int_eq(ls_store_pack(s, p), -LS_ESTALE);
	p->day = TODAY;
	ck_assert_int_eq(unit_parts(), 30);
	ck_assert_int_eq(ls_store_pack(s, p), 0);
	ck_assert_int_eq(unit_parts(), 14);
	ls_write_free(m);
	ls_store_close(s);
}

LS_TEST(store, a_unit_is_all_or_nothing_whatever_write_fails)
{
	static const int codes[] = { SQLITE_FULL, SQLITE_IOERR_WRITE };
	bool through = false;
	long n;

	for (n = 1; !through; n++) {
		struct ls_write *m = unit();
		struct ls_store *s;
		int rc;

		ck_assert_int_lt(n, 200);
		(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
		s = store_with_journal();
		ls_faultvfs_fail(n, codes[n % 2]);
		rc = ls_store_pack(s, &m->u.pack);
		through = !ls_faultvfs_hit();
		ls_faultvfs_heal();
		ck_assert_int_eq(unit_parts(), rc == 0 ? 14 : 30);
		if (rc != 0) {
			ck_assert(rc == -ENOSPC || rc == -EIO);
			/* A batch of reports goes on; the same unit fits later. */
			ck_assert_int_eq(
				commit(s, ls_test_report(0, 4, 30, 1, NOON), NOON), 0);
			ck_assert_int_eq(ls_store_pack(s, &m->u.pack), 0);
			ck_assert_int_eq(unit_parts(), 24);
		}
		ls_write_free(m);
		ls_store_close(s);
	}
	ck_assert_int_gt(n, 2);
}

LS_TEST(store, a_damaged_row_of_the_journal_does_not_stop_the_day)
{
	struct ls_store *s = store_with_journal();
	char path[PATH_MAX];
	sqlite3 *db = NULL;

	ck_assert_int_eq(ls_days_path(path, dir, TODAY), 0);
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	ck_assert_int_eq(ls_db_exec(db, "UPDATE journal SET body = x'00' WHERE id = 3"),
		0);
	ls_db_close(db);
	ck_assert_int_eq(commit(s, ls_test_close(1, NOON + DAY_US), NOON + DAY_US), 0);
	ck_assert_int_eq(ls_test_sql(dir, 20261122, "SELECT seq FROM main.ledger"), 2);
	ls_store_close(s);
}

LS_TEST(store, a_commit_too_large_for_a_row_makes_several)
{
	enum { REPORTS = 600, RECORDS = 500 };
	struct ls_store *s = store_open(NOON);
	static struct ls_write *batch[REPORTS];
	uint64_t i;

	for (i = 0; i < REPORTS; i++)
		batch[i] = ls_test_report(0, i + 1, i * RECORDS, RECORDS, NOON);
	ck_assert_int_eq(ls_store_commit(s, batch, REPORTS, NOON), 0);
	for (i = 0; i < REPORTS; i++)
		ls_test_write_free(batch[i]);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT count(*) FROM journal"), 2);
	ck_assert_int_le(ls_test_sql(dir, TODAY, "SELECT max(records) FROM journal"),
		LS_UNIT_EVENTS_MAX);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT sum(records) FROM journal"),
		REPORTS * RECORDS);
	ck_assert_int_eq(ls_test_sql(dir, TODAY,
				 "SELECT count(*) FROM journal a JOIN journal b "
				 "ON b.id = a.last_id + 1"),
		1);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT sum(n) FROM step_block"),
		REPORTS * RECORDS);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT seq FROM ledger"), REPORTS);
	ls_store_close(s);
}

/* --- writer --------------------------------------------------------------- */

static struct ls_writer *
writer_open(void)
{
	const struct ls_writer_options options = { dir, 2000000 };
	struct ls_writer *w = NULL;

	ck_assert_int_eq(ls_writer_open(&options, &w), 0);
	return w;
}

static void
push(struct ls_writer *w, struct ls_write *m, uint64_t epoch)
{
	m->epoch = epoch;
	ck_assert_int_eq(ls_writer_push(w, m), 0);
}

/* The next news, waited for. */
static struct ls_write_done *
hear(struct ls_writer *w)
{
	void *item = NULL;

	ck_assert_uint_eq(
		ls_queue_take_wait(ls_writer_done(w), &item, 1, 10000000000ull), 1);
	return item;
}

static void
done_free(struct ls_write_done *d)
{
	while (d->reports != NULL) {
		struct ls_write *m = d->reports;

		d->reports = m->next;
		ls_test_write_free(m);
	}
	ls_write_done_free(d);
}

LS_CASE(writer, setup, NULL);

LS_TEST(writer, reports_come_back_after_their_commit)
{
	struct ls_writer *w = writer_open();
	struct ls_write_done *d;
	int32_t day = ls_days_of(ls_clock_wall_ns() / 1000);

	push(w, ls_test_worker(0, NOON), 0);
	push(w, ls_test_report(0, 1, 0, 10, NOON), 0);
	d = hear(w);
	if (d->reports == NULL) { /* the worker may have gone alone */
		done_free(d);
		d = hear(w);
	}
	ck_assert_int_eq(d->rc, 0);
	ck_assert_ptr_nonnull(d->reports);
	ck_assert_int_eq(d->reports->rc, 0);
	ck_assert_int_eq(ls_test_sql(dir, day, "SELECT seq FROM ledger"), 1);
	done_free(d);
	ls_writer_close(w);
}

/* A full disk, errors of writing and syncing, a file system that became read-only. */
static const struct {
	int code, rc;
} refusals[] = { { SQLITE_FULL, -ENOSPC }, { SQLITE_IOERR_WRITE, -EIO },
	{ SQLITE_IOERR_FSYNC, -EIO }, { SQLITE_READONLY, -EROFS } };

LS_TEST_EACH(writer, a_failure_refuses_all_that_is_under_way, refusals)
{
	struct ls_writer *w = writer_open();
	int32_t day = ls_days_of(ls_clock_wall_ns() / 1000);
	struct ls_write_done *d;

	ls_faultvfs_fail(1, refusals[_i].code);
	push(w, ls_test_report(0, 1, 0, 10, NOON), 0);
	push(w, ls_test_close(1, NOON), 0);
	d = hear(w);
	ck_assert_int_eq(d->rc, refusals[_i].rc);
	ck_assert_uint_eq(d->epoch, 1);
	ck_assert_ptr_nonnull(d->reports);
	ck_assert_int_eq(d->reports->rc, refusals[_i].rc);
	done_free(d);
	ls_faultvfs_heal();
	/* Sent before its sender knew: it would leave a hole. */
	push(w, ls_test_report(0, 2, 10, 10, NOON), 0);
	d = hear(w);
	while (d->reports == NULL) {
		done_free(d);
		d = hear(w);
	}
	ck_assert_int_eq(d->reports->rc, -LS_ESTALE);
	done_free(d);
	push(w, ls_test_report(0, 1, 0, 10, NOON), 1);
	d = hear(w);
	ck_assert_int_eq(d->rc, 0);
	ck_assert_int_eq(d->reports->rc, 0);
	ck_assert_uint_eq(d->epoch, 1);
	done_free(d);
	ck_assert_int_eq(ls_test_sql(dir, day, "SELECT sum(n) FROM step_block"), 10);
	/* The closing was kept and is there once. */
	ck_assert_int_eq(ls_test_sql(dir, day, "SELECT count(*) FROM step_close"), 1);
	ls_writer_close(w);
}

/* A unit comes back with what came of it, and no report is refused for it. */
LS_TEST(writer, units_come_back_and_fail_no_batch)
{
	struct ls_writer *w = writer_open();
	struct ls_write *m = unit(), *back;
	struct ls_write_done *d;
	void *item = NULL;

	m->u.pack.day = ls_days_of(ls_clock_wall_ns() / 1000);
	push(w, m, 0); /* its rows are not there */
	push(w, ls_test_report(0, 1, 0, 10, NOON), 0);
	ck_assert_uint_eq(
		ls_queue_take_wait(ls_writer_packed(w), &item, 1, 10000000000ull), 1);
	back = item;
	ck_assert_ptr_eq(back, m);
	ck_assert_int_eq(back->rc, -LS_ESTALE);
	d = hear(w);
	ck_assert_int_eq(d->rc, 0);
	ck_assert_int_eq(d->reports->rc, 0);
	done_free(d);
	back->u.pack.last_id = 1;
	back->u.pack.journal_rows = 1;
	push(w, back, 0);
	ck_assert_uint_eq(
		ls_queue_take_wait(ls_writer_packed(w), &item, 1, 10000000000ull), 1);
	ck_assert_int_eq(m->rc, 0);
	ck_assert_int_eq(
		ls_test_sql(dir, m->u.pack.day, "SELECT count(*) FROM main.journal"),
		0);
	/* At the end it is refused rather than waited for, and belongs to the writer
	 * again. */
	push(w, m, 0);
	ls_writer_close(w);
}

LS_TEST(writer, stopping_commits_what_waits)
{
	const struct ls_writer_options options = { dir, 10000000000ull };
	struct ls_writer *w = NULL;
	struct ls_write_done *d;
	struct ls_write *late = ls_test_close(1, NOON);
	uint64_t i;

	ck_assert_int_eq(ls_writer_open(&options, &w), 0);
	for (i = 0; i < 1000; i++)
		push(w, ls_test_report(0, i + 1, i, 1, NOON), 0);
	ls_writer_stop(w);
	ck_assert_int_eq(ls_writer_push(w, late), -LS_ECLOSED);
	ls_test_write_free(late);
	for (i = 0; i < 1000;) {
		struct ls_write *m;

		d = hear(w);
		for (m = d->reports; m != NULL; m = m->next, i++)
			ck_assert_int_eq(m->rc, 0);
		done_free(d);
	}
	ls_writer_close(w);
}
