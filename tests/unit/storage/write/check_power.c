/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power loss: a few days of a collector's storage are recorded, write by write and sync
 * by sync; then the power is cut at seeded moments. Whatever the disk forgot, the
 * storage opens again, holds every acknowledged record, chunk and finding once, and
 * goes on.
 *
 * LS_POWER_CUTS and LS_POWER_SEED set how many cuts are made, and which.
 */
#include "config.h"

#include "tests/support/disk/powercut.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "proto/base/log.h"
#include "proto/chunk/chunk.h"
#include "storage/db/backup.h"
#include "storage/db/db.h"
#include "storage/read/query_chunk.h"
#include "storage/tidy/packer.h"
#include "storage/tidy/repacker.h"
#include "storage/write/store.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"
#include "tests/support/stored.h"

#define FIRST_DAY 20261119
#define DAYS 3
#define DAY_US (24ll * 3600 * 1000000)

enum { AGENTS = 3, RECORDS = 3, ROWS = 120, COLUMNS = 3, SEQ_MAX = 100 };

#define STAGES(X)                   \
	X(START, "start")           \
	X(COMMIT, "commit")         \
	X(CHECKPOINT, "checkpoint") \
	X(PACK, "unit")             \
	X(DAY, "day change")        \
	X(ROLLUP, "roll-up")        \
	X(REPACK, "repack")         \
	X(RETAIN, "retention")      \
	X(BACKUP, "backup")
enum stage {
#define X(id, text) STAGE_##id,
	STAGES(X)
#undef X
		STAGE_COUNT
};
static const char *const stage_text[] = {
#define X(id, text) text,
	STAGES(X)
#undef X
};

/* What was promised after so many operations. */
struct mark {
	size_t at;
	uint64_t seq; /* of each agent */
	unsigned findings;
	bool removing; /* the first day may be gone */
	bool copied; /* the backup is made */
};

static char root[PATH_MAX / 2];
static struct mark now, marks[4 * SEQ_MAX], in_copy;
static size_t mark_count;
static uint64_t day_begins[DAYS + 1]; /* number of the first report of each day */
static uint64_t data_seed;
static struct ls_packer *packer;
static sqlite3 *day_db; /* the writer's connection to the newest day */

/* --- the scenario --------------------------------------------------------- */

static void
mark(void)
{
	ck_assert_uint_lt(mark_count, sizeof(marks) / sizeof(marks[0]));
	now.at = ls_powercut_count();
	marks[mark_count++] = now;
}

static void
commit(struct ls_write **batch, size_t count, int64_t wall_us)
{
	size_t i;

	ck_assert_int_eq(ls_store_commit(stored_store, batch, count, wall_us), 0);
	for (i = 0; i < count; i++)
		ls_test_write_free(batch[i]);
}

/* A chunk whose first column is the number of its report; the others do not compress.
 */
static void
add_chunk(struct ls_write *m, uint64_t seq, int64_t t_us)
{
	static double value[AGENTS][COLUMNS * ROWS];
	static uint8_t body[AGENTS][LS_CHUNK_BODY_MAX_BYTES];
	uint64_t t_ns[ROWS];
	bool present[COLUMNS * ROWS];
	int host = m->u.report.host[1] - '0';
	const struct ls_chunk_table table = { ROWS, COLUMNS, ROWS, t_ns, value[host],
		present };
	struct ls_chunk_codec *codec = ls_chunk_codec_new(COLUMNS, ROWS);
	struct ls_store_chunk *c = &m->u.report.chunks[m->u.report.chunk_count++];
	size_t i;

	for (i = 0; i < COLUMNS * ROWS; i++) {
		present[i] = true;
		value[host][i] = i < ROWS ? (double)seq : ls_test_random(&data_seed);
	}
	for (i = 0; i < ROWS; i++)
		t_ns[i] = (5 + i) * 500000000ull;
	*c = (struct ls_store_chunk){ .kind = LS_WIRE_CHUNK,
		.hash = 7,
		.n = ROWS,
		.t_first_us = t_us,
		.t_last_us = t_us + (ROWS - 1) * 500000,
		.map = { .offset_ns = t_us * 1000 - 2500000000 },
		.body = body[host] };
	ck_assert_int_eq(ls_chunk_encode(codec, &table, body[host], sizeof(body[host]),
				 &c->body_len),
		0);
	ls_chunk_codec_free(codec);
	m->u.report.last_chunk_seq = seq;
}

/* The names of a chunk's columns, once a day. */
static void
add_dictionary(struct ls_write *m)
{
	struct ls_store_chunk *c = &m->u.report.chunks[m->u.report.chunk_count++];

	*c = (struct ls_store_chunk){
		.kind = LS_WIRE_DICTIONARY, .hash = 7, .series_len = STORED_THREE_BYTES
	};
	(void)snprintf(c->group, sizeof(c->group), "host.fast");
	c->series = malloc(c->series_len);
	ck_assert_ptr_nonnull(c->series);
	memcpy(c->series, stored_three, c->series_len);
}

static struct ls_write *
make_report(int32_t rank, uint64_t seq, bool names, int64_t t_us)
{
	struct ls_write *m =
		ls_test_report(rank, seq, (seq - 1) * RECORDS, RECORDS, t_us);

	if (names)
		add_dictionary(m);
	add_chunk(m, seq, t_us);
	return m;
}

static void
commit_reports(enum stage stage, int64_t wall_us, int count)
{
	struct ls_write *batch[AGENTS];
	int32_t i;

	ls_powercut_stage((int)stage);
	for (; count > 0; count--, wall_us += 60 * S) {
		for (i = 0; i < AGENTS; i++)
			batch[i] = make_report(i, now.seq + 1,
				now.seq + 1 == day_begins[now.seq > 0], wall_us);
		commit(batch, AGENTS, wall_us);
		now.seq++;
		mark();
	}
}

static void
commit_finding(int64_t wall_us)
{
	char id[16];
	struct ls_write *m;

	ls_powercut_stage(STAGE_COMMIT);
	(void)snprintf(id, sizeof(id), "F-%u", now.findings + 1);
	m = ls_test_finding(id, "open", wall_us);
	commit(&m, 1, wall_us);
	now.findings++;
	mark();
}

static void
checkpoint(void)
{
	ls_powercut_stage(STAGE_CHECKPOINT);
	ck_assert_int_eq(sqlite3_wal_checkpoint_v2(day_db, NULL,
				 SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
		SQLITE_OK);
}

static int
push_pack(void *arg, struct ls_write *m)
{
	(void)arg;
	m->rc = ls_store_pack(stored_store, &m->u.pack);
	ck_assert_int_eq(m->rc, 0);
	ls_packer_told(packer, m);
	ls_write_free(m);
	return 0;
}

static void
pack(void)
{
	const struct ls_packer_options options = {
		.dir = stored_dir, .span_us = 1, .events = 1, .push = push_pack
	};
	bool more = false;

	ls_powercut_stage(STAGE_PACK);
	ck_assert_int_eq(ls_packer_new(&options, &packer), 0);
	do {
		more = false;
		ck_assert_int_eq(ls_packer_turn(packer, &more), 0);
	} while (more);
	ls_packer_free(packer);
}

static struct ls_repacker *repacker;

static int
push_replace(void *arg, struct ls_write *m)
{
	(void)arg;
	ls_repacker_told(repacker, ls_store_replace(stored_store, m->u.day));
	ls_write_free(m);
	return 0;
}

static void
repack(int64_t wall_us)
{
	struct ls_repacker *r = ls_repacker_new(stored_dir, push_replace, NULL);
	struct ls_repacker_stats stats;
	bool more;

	ls_powercut_stage(STAGE_ROLLUP);
	stored_roll(wall_us);
	ls_powercut_stage(STAGE_REPACK);
	ck_assert_ptr_nonnull(r);
	repacker = r;
	ck_assert_int_eq(ls_repacker_step(r, wall_us, LS_REPACK_LOOK_NS, &more), 0);
	ls_repacker_stats(r, &stats);
	ck_assert_uint_eq(stats.days, 1);
	ls_repacker_free(r);
}

static void
retain(int32_t keep_from, int64_t wall_us)
{
	struct ls_write *m = ls_write_new(LS_WRITE_RETAIN, wall_us);
	struct ls_store_stats stats;

	ck_assert_ptr_nonnull(m);
	m->u.retain.keep_from = keep_from;
	ls_powercut_stage(STAGE_RETAIN);
	now.removing = true;
	mark();
	commit(&m, 1, wall_us);
	ls_store_stats(stored_store, &stats);
	ck_assert_uint_eq(stats.removed_days, 1);
}

static void
hear(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

static void
backup(void)
{
	char copy[PATH_MAX];

	ls_powercut_stage(STAGE_BACKUP);
	(void)snprintf(copy, sizeof(copy), "%s/copy", root);
	ck_assert_int_eq(ls_backup(stored_dir, copy, hear, NULL), 0);
	in_copy = now;
	now.copied = true;
	mark();
}

/* Remembers the connection that writes to the newest day. */
static int
on_open(sqlite3 *db, char **why, const struct sqlite3_api_routines *api)
{
	const char *name = sqlite3_db_filename(db, "main");

	(void)why;
	(void)api;
	if (name != NULL && sqlite3_db_readonly(db, "main") == 0 &&
		strstr(name, "/telemetry/") != NULL && strstr(name, ".repack") == NULL)
		day_db = db;
	return SQLITE_OK;
}

/* PRAGMA synchronous = OFF, whatever the product asks for later. */
static int
keep_synchronous(void *arg, int action, const char *what, const char *value,
	const char *db, const char *trigger)
{
	(void)arg;
	(void)value;
	(void)db;
	(void)trigger;
	return action == SQLITE_PRAGMA && strcmp(what, "synchronous") == 0
		? SQLITE_IGNORE
		: SQLITE_OK;
}

static int
never_sync(sqlite3 *db, char **why, const struct sqlite3_api_routines *api)
{
	(void)on_open(db, why, api);
	if (sqlite3_db_readonly(db, "main") != 0)
		return SQLITE_OK;
	(void)sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
	return sqlite3_set_authorizer(db, keep_synchronous, NULL);
}

static int
read_on(void *arg, const struct ls_store_event *event)
{
	(void)arg;
	(void)event;
	return 0;
}

static void
start(int64_t wall_us)
{
	ls_powercut_stage(STAGE_START);
	ck_assert_int_eq(ls_store_open(stored_dir, wall_us, &stored_store), 0);
}

static int64_t
noon(int day)
{
	return ls_days_begin_us(FIRST_DAY) + day * DAY_US + DAY_US / 2;
}

/* Three days: commits, checkpoints, units, day changes, roll-ups, repacking, a restart,
 * a reader, retention, a backup. */
static void
play(void)
{
	struct ls_write *m;
	struct ls_query *q;
	int32_t i;
	int day;

	start(noon(0));
	for (i = 0; i < AGENTS; i++) {
		m = ls_test_worker(i, noon(0));
		commit(&m, 1, noon(0));
	}
	ck_assert_int_eq(ls_query_open(stored_dir, &q), 0);
	for (day = 0; day < DAYS; day++) {
		day_begins[day] = now.seq + 1;
		commit_reports(STAGE_DAY, noon(day), 1);
		ck_assert_int_eq(ls_query_events(q, FIRST_DAY + day, 0, read_on, NULL),
			0);
		commit_reports(STAGE_COMMIT, noon(day) + 60 * S, 3);
		commit_finding(noon(day) + 300 * S);
		checkpoint();
		commit_reports(STAGE_COMMIT, noon(day) + 301 * S, 3);
		pack();
		commit_reports(STAGE_COMMIT, noon(day) + 601 * S, 3);
		if (day > 0)
			repack(noon(day) + 3600 * S);
		commit_reports(STAGE_COMMIT, noon(day) + 3601 * S, 2);
		if (day == 1) {
			/* Until here a reader had the first day open. */
			ls_query_close(q);
			ls_store_close(stored_store);
			start(noon(day) + 3700 * S);
			ck_assert_int_eq(ls_query_open(stored_dir, &q), 0);
		}
		if (day == 2)
			retain(FIRST_DAY + 1, noon(day) + 3800 * S);
		commit_reports(STAGE_COMMIT, noon(day) + 3900 * S, 2);
		if (day == 1)
			backup();
	}
	ls_query_close(q);
	ls_powercut_stage(STAGE_START);
	ls_store_close(stored_store);
	stored_store = NULL;
}

static void
record(int (*hook)(sqlite3 *, char **, const struct sqlite3_api_routines *))
{
	ls_log_set_level(LS_LOG_ERR);
	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	(void)snprintf(stored_dir, sizeof(stored_dir), "%s/state", root);
	now = (struct mark){ 0 };
	mark_count = 0;
	data_seed = 1;
	ck_assert_int_eq(sqlite3_auto_extension((void (*)(void))hook), SQLITE_OK);
	ls_powercut_record(root);
	mark();
	play();
	ls_powercut_stop();
	ck_assert_int_eq(sqlite3_cancel_auto_extension((void (*)(void))hook), 1);
}

/* --- after a cut ---------------------------------------------------------- */

/* What a directory holds, and the first thing that is wrong with it. */
struct found {
	uint64_t next[AGENTS]; /* index of the record expected */
	bool met[AGENTS];
	unsigned rows[AGENTS][SEQ_MAX + 1]; /* of chunks, by number of the report */
	uint64_t ledger[AGENTS], chunk_ledger[AGENTS], high[AGENTS];
	unsigned findings;
	char wrong[PATH_MAX + 256];
};

static void
blame(struct found *f, const char *what, int64_t a, int64_t b)
{
	if (f->wrong[0] == '\0')
		(void)snprintf(f->wrong, sizeof(f->wrong), "%s (%lld, %lld)", what,
			(long long)a, (long long)b);
}

static int
see_event(void *arg, const struct ls_store_event *e)
{
	struct found *f = arg;
	const struct ls_store_steps *s = &e->u.steps;
	int64_t i = s->worker_id - 1;

	if (e->kind != LS_EVENT_STEPS)
		return 0;
	if (i < 0 || i >= AGENTS) {
		blame(f, "records of an unknown worker", i, 0);
		return 0;
	}
	if (!f->met[i])
		f->next[i] = s->first_index;
	f->met[i] = true;
	if (s->first_index != f->next[i])
		blame(f, "a record is missing or stored twice: index, expected",
			(int64_t)s->first_index, (int64_t)f->next[i]);
	f->next[i] = s->first_index + s->count;
	return 0;
}

static int
see_chunk(void *arg, const struct ls_query_chunk *chunk)
{
	struct found *f = arg;
	struct ls_chunk_codec *codec = ls_chunk_codec_new(COLUMNS, LS_CHUNK_ROWS_MAX);
	struct ls_chunk_table t = { 0 };
	int host = chunk->host[1] - '0';
	size_t i;

	ck_assert_ptr_nonnull(codec);
	if (chunk->body == NULL ||
		ls_chunk_decode(codec, chunk->body, chunk->len, &t) != 0)
		blame(f, "a chunk does not read", chunk->id, chunk->day);
	for (i = 0; i < t.rows; i++)
		if (t.value[i] >= 1 && t.value[i] <= SEQ_MAX)
			f->rows[host][(int)t.value[i]]++;
	ls_chunk_codec_free(codec);
	return 0;
}

static int
see_ledger(void *arg, const struct ls_store_ledger *l)
{
	struct found *f = arg;

	f->ledger[l->host[1] - '0'] = l->seq;
	f->chunk_ledger[l->host[1] - '0'] = l->chunk_seq;
	return 0;
}

static int
see_ring(void *arg, const struct ls_store_ring *r)
{
	((struct found *)arg)->high[r->worker_id - 1] = r->high;
	return 0;
}

static int
see_finding(void *arg, const char *id, const char *json, size_t len)
{
	(void)id;
	(void)json;
	(void)len;
	((struct found *)arg)->findings++;
	return 0;
}

/* How far agents are, as a collector learns it at its start. */
static void
look_at_ledger(const char *dir, struct found *f)
{
	struct ls_query *q = NULL;
	int rc = ls_query_open(dir, &q);

	if (rc == 0)
		rc = ls_query_ledgers(q, see_ledger, f);
	if (rc == 0)
		rc = ls_query_rings(q, see_ring, f);
	if (rc == 0)
		rc = ls_query_findings(q, see_finding, f);
	if (rc != 0)
		blame(f, "positions do not read", rc, 0);
	ls_query_close(q);
}

static void
look_at_days(const char *dir, struct found *f)
{
	struct ls_days *days = calloc(1, sizeof(*days));
	struct ls_query *q = NULL;
	int rc = ls_query_open(dir, &q);
	size_t i;

	ck_assert_ptr_nonnull(days);
	if (rc == 0)
		rc = ls_query_days(q, days);
	for (i = 0; i < days->count; i++) {
		if (rc == 0)
			rc = ls_query_events(q, days->day[i], 0, see_event, f);
		if (rc == 0)
			rc = ls_query_chunks(q, days->day[i], see_chunk, f);
	}
	if (rc != 0)
		blame(f, "events do not read", rc, 0);
	ls_query_close(q);
	free(days);
}

/* Sends what an agent would send next: what the ledger does not hold. */
static void
send_next(struct ls_store *store, const struct found *f, int64_t wall_us)
{
	struct ls_write *batch[AGENTS];
	int32_t i;

	for (i = 0; i < AGENTS; i++)
		batch[i] = make_report(i, f->ledger[i] + 1, true, wall_us);
	ck_assert_int_eq(ls_store_commit(store, batch, AGENTS, wall_us), 0);
	for (i = 0; i < AGENTS; i++)
		ls_test_write_free(batch[i]);
}

static bool
may_begin(const struct mark *m, uint64_t seq)
{
	return seq == 1 || (m->removing && seq == day_begins[1]);
}

/* Compares the days with what was promised; the number of records that are lost. */
static uint64_t
judge(struct found *f, const struct mark *m)
{
	uint64_t lost = 0, seq, end;
	int i;

	for (i = 0; i < AGENTS; i++) {
		end = f->ledger[i] + 1;
		seq = m->removing ? day_begins[1] : 1;
		if (f->ledger[i] < m->seq) {
			blame(f, "the ledger lost a report: number, promised",
				(int64_t)f->ledger[i], (int64_t)m->seq);
			lost += m->seq - f->ledger[i];
		}
		if (f->ledger[i] != f->chunk_ledger[i] ||
			f->ledger[i] * RECORDS != f->high[i])
			blame(f, "ledger and ring differ", (int64_t)f->ledger[i],
				(int64_t)f->high[i]);
		if (f->next[i] != end * RECORDS)
			blame(f, "records end at", (int64_t)f->next[i],
				(int64_t)(end * RECORDS));
		for (; seq <= end; seq++) {
			if (f->rows[i][seq] == ROWS)
				continue;
			blame(f, "rows of the chunk of a report", f->rows[i][seq],
				(int64_t)seq);
			lost += f->rows[i][seq] < ROWS && seq <= m->seq;
		}
	}
	if (f->findings < m->findings)
		blame(f, "findings are lost: found, promised", f->findings,
			m->findings);
	return lost + (f->findings < m->findings);
}

static int
see_begin(void *arg, const struct ls_store_event *e)
{
	uint64_t *seq = arg;

	if (e->kind != LS_EVENT_STEPS)
		return 0;
	*seq = e->u.steps.first_index / RECORDS + 1;
	return 1;
}

/* The number of the first report that the days hold. */
static uint64_t
first_seq(const char *dir)
{
	struct ls_days *days = calloc(1, sizeof(*days));
	struct ls_query *q = NULL;
	uint64_t seq = 0;
	size_t i;

	ck_assert_ptr_nonnull(days);
	if (ls_query_open(dir, &q) == 0 && ls_query_days(q, days) == 0)
		for (i = 0; i < days->count && seq == 0; i++)
			ls_ignore(ls_query_events(q, days->day[i], 0, see_begin, &seq));
	ls_query_close(q);
	free(days);
	return seq;
}

/* Takes over the first complaint of ls_store_check. */
static void
hear_check(void *arg, const char *line)
{
	struct found *f = arg;

	if (f->wrong[0] == '\0' && strstr(line, ": ok") == NULL)
		(void)snprintf(f->wrong, sizeof(f->wrong), "%s", line);
}

/* Opens a directory as a collector does at its start, and compares it with a promise.
 * Returns how much of that is lost. */
static uint64_t
look(const char *dir, const struct mark *m, char *ret_wrong, size_t size)
{
	struct found f = { .findings = 0 };
	struct ls_store *store = NULL;
	struct ls_store_stats stats;
	uint64_t lost;
	int rc = ls_store_open(dir, noon(DAYS - 1) + 7200 * S, &store);

	if (rc != 0) {
		(void)snprintf(ret_wrong, size, "%s", ls_err_text(rc));
		return AGENTS * m->seq + m->findings;
	}
	ls_store_stats(store, &stats);
	if (stats.aside.count > 0)
		blame(&f, "files are set aside", (int64_t)stats.aside.count, 0);
	look_at_ledger(dir, &f);
	if (f.wrong[0] == '\0') {
		send_next(store, &f, noon(DAYS - 1) + 7200 * S);
		look_at_days(dir, &f);
	}
	lost = judge(&f, m);
	if (!may_begin(m, first_seq(dir)))
		blame(&f, "the first report is", (int64_t)first_seq(dir), 0);
	ls_store_close(store);
	rc = ls_store_check(dir, hear_check, &f);
	if (rc != 0)
		blame(&f, "a file is not sound", rc, 0);
	(void)snprintf(ret_wrong, size, "%s", f.wrong);
	return lost;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

struct tally {
	unsigned cuts, wrong, sectors, torn, entries;
	uint64_t lost;
	unsigned stage[STAGE_COUNT];
	char first[3 * PATH_MAX]; /* what was wrong first, and where */
};

static const struct mark *
promised(size_t at)
{
	size_t i = mark_count - 1;

	while (marks[i].at > at)
		i--;
	return &marks[i];
}

/* Cuts the power once. */
static void
cut_once(const struct ls_powercut *cut, struct tally *t)
{
	const struct mark *m = promised(cut->at);
	int stage = ls_powercut_stage_of(cut->at - 1);
	char to[PATH_MAX], dir[PATH_MAX + 16], wrong[PATH_MAX + 256];
	struct ls_powercut_loss loss;
	uint64_t lost;

	(void)snprintf(to, sizeof(to), "%s-cut", root);
	(void)snprintf(dir, sizeof(dir), "%s/state", to);
	ls_powercut_restore(cut, to, &loss);
	lost = look(dir, m, wrong, sizeof(wrong));
	if (wrong[0] == '\0' && m->copied) {
		(void)snprintf(dir, sizeof(dir), "%s/copy", to);
		lost = look(dir, &in_copy, wrong, sizeof(wrong));
	}
	ck_assert_int_eq(nftw(to, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	t->cuts++;
	t->stage[stage]++;
	t->sectors += loss.sectors > 0;
	t->torn += loss.sectors_lost > 0 && loss.sectors_lost < loss.sectors;
	t->entries += loss.entries > 0;
	t->lost += lost;
	if (wrong[0] != '\0' && t->wrong++ == 0)
		(void)snprintf(t->first, sizeof(t->first),
			"cut after operation %zu (%s), seed %llu, %s: %s", cut->at,
			stage_text[stage], (unsigned long long)cut->seed, dir, wrong);
}

static uint64_t
number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text != NULL && *text != '\0' ? strtoull(text, NULL, 10) : otherwise;
}

/* An operation of a random stage, so that each stage is cut about as often. */
static size_t
choose(uint64_t *random)
{
	int stage = (int)(ls_test_random(random) * STAGE_COUNT);
	size_t count = ls_powercut_count(), at, tries = 0;

	do {
		ck_assert_msg(++tries < 1000000, "no operation of %s",
			stage_text[stage]);
		at = (size_t)(ls_test_random(random) * (double)count);
	} while (ls_powercut_stage_of(at) != stage);
	return at + 1;
}

static void
print(const struct tally *t)
{
	int i;

	printf("# %u power cuts of %zu operations, seed %llu, during", t->cuts,
		ls_powercut_count(), (unsigned long long)number_of("LS_POWER_SEED", 1));
	for (i = 0; i < STAGE_COUNT; i++)
		printf("%s %s %u", i > 0 ? "," : "", stage_text[i], t->stage[i]);
	printf("\n# unsynced: sectors at %u cuts (torn at %u), directory entries at %u; %u cuts "
	       "went wrong, %llu acknowledged reports lost\n",
		t->sectors, t->torn, t->entries, t->wrong, (unsigned long long)t->lost);
	if (t->wrong > 0)
		printf("# first: %s\n", t->first);
	(void)fflush(stdout);
}

/* Cuts the power so many times; until_lost: or until something is lost. */
static struct tally
cut_power(unsigned cuts, const char *no_sync_of, bool until_lost)
{
	uint64_t seed = number_of("LS_POWER_SEED", 1), random = seed;
	struct tally t = { 0 };

	while (t.cuts < cuts && (!until_lost || t.lost == 0)) {
		struct ls_powercut cut = { choose(&random), seed * 1000003 + t.cuts,
			no_sync_of };

		cut_once(&cut, &t);
	}
	print(&t);
	return t;
}

LS_CASE(power);

LS_TEST(power, nothing_acknowledged_is_lost_at_a_power_cut)
{
	struct tally t;

	record(on_open);
	t = cut_power((unsigned)number_of("LS_POWER_CUTS", 150), NULL, false);
	ck_assert_msg(t.wrong == 0, "%s", t.first);
	ck_assert_uint_eq(t.lost, 0);
}

/* The proof that the test above can fail. */
LS_TEST(power, without_synchronous_losses_are_found)
{
	record(never_sync);
	ck_assert_uint_gt(cut_power(300, NULL, true).lost, 0);
}

LS_TEST(power, without_directory_syncs_losses_are_found)
{
	static const char *const dirs[] = { "", "state", "state/telemetry", "copy",
		"copy/telemetry" };
	size_t i;

	record(on_open);
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		ck_assert_msg(cut_power(300, dirs[i], true).lost > 0,
			"syncs of \"%s\" are not needed", dirs[i]);
}
