/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/read/query_chunk.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/log.h"
#include "storage/db/db.h"
#include "storage/db/migrate.h"
#include "storage/write/store.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"

#define DAY_US (24ll * 3600 * 1000000)
#define NOON (ls_days_begin_us(20261121) + DAY_US / 2)
#define TODAY 20261121

static char dir[PATH_MAX];
static struct ls_store *store;

static void
setup(void)
{
	ls_log_set_level(LS_LOG_ERR);
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(ls_store_open(dir, NOON, &store), 0);
}

static void
teardown(void)
{
	ls_store_close(store);
}

static void
put(struct ls_write *m, int64_t wall_us)
{
	ck_assert_int_eq(ls_store_commit(store, &m, 1, wall_us), 0);
	ls_write_free(m);
}

/* A report of a host with rows of its stream of chunks. */
static struct ls_write *
report(const char *host, uint64_t chunk_seq, int64_t t_us)
{
	struct ls_write *m = ls_write_new_report(0, 0, 4, t_us);

	ck_assert_ptr_nonnull(m);
	(void)snprintf(m->u.report.host, sizeof(m->u.report.host), "%s", host);
	memset(m->u.report.boot, host[0], sizeof(m->u.report.boot));
	m->u.report.last_chunk_seq = chunk_seq;
	return m;
}

static void
add_dictionary(struct ls_write *m, uint64_t hash, const char *group)
{
	static const char text[] = "one\0two{a=\"b\"}";
	struct ls_store_chunk *c = &m->u.report.chunks[m->u.report.chunk_count++];

	c->kind = LS_WIRE_DICTIONARY;
	c->hash = hash;
	(void)snprintf(c->group, sizeof(c->group), "%s", group);
	c->series = malloc(sizeof(text));
	memcpy(c->series, text, sizeof(text));
	c->series_len = sizeof(text);
}

static void
add_chunk(struct ls_write *m, uint64_t hash, int64_t t_us, const char *body)
{
	struct ls_store_chunk *c = &m->u.report.chunks[m->u.report.chunk_count++];

	c->kind = LS_WIRE_CHUNK;
	c->hash = hash;
	c->t_first_us = t_us - 59000000;
	c->t_last_us = t_us;
	c->map.offset_ns = 5;
	c->map.uncertainty_ns = 7;
	c->n = 60;
	memcpy(&c->body, &body, sizeof(body));
	c->body_len = strlen(body);
}

static struct ls_query *
query(void)
{
	struct ls_query *q = NULL;

	ck_assert_int_eq(ls_query_open(dir, &q), 0);
	return q;
}

static int
see(void *arg, const struct ls_query_chunk *c)
{
	char *text = arg;
	size_t len = strlen(text);

	ck_assert_int_eq(c->map.offset_ns, 5);
	ck_assert_int_eq(c->map.uncertainty_ns, 7);
	ck_assert_uint_eq(c->n, 60);
	(void)snprintf(text + len, 400 - len, "%lld %s %llx %.*s\n", (long long)c->id,
		c->host, (unsigned long long)c->dictionary, (int)c->len,
		(const char *)c->body);
	return 0;
}

LS_CASE(chunks, setup, teardown);

LS_TEST(chunks, chunks_are_read_in_order_of_arrival)
{
	struct ls_write *m = report("a", 3, NOON);
	struct ls_query *q = query();
	char text[400] = "";

	add_dictionary(m, UINT64_MAX, "g");
	add_chunk(m, UINT64_MAX, NOON, "first");
	add_chunk(m, 2, NOON, "second");
	put(m, NOON);
	m = report("b", 1, NOON);
	add_chunk(m, UINT64_MAX, NOON, "third");
	put(m, NOON);
	ck_assert_int_eq(ls_query_chunks(q, TODAY, see, text), 0);
	ck_assert_str_eq(text,
		"1 a ffffffffffffffff first\n2 a 2 second\n3 b ffffffffffffffff third\n");
	ls_query_close(q);
}

LS_TEST(chunks, the_newest_chunk_of_each_dictionary_is_found)
{
	struct ls_query *q = query();
	struct ls_write *m;
	char text[400] = "";
	int i;

	for (i = 0; i < 3; i++) {
		m = report("a", (uint64_t)i + 1, NOON);
		add_chunk(m, 1, NOON + i * 60000000, i == 2 ? "new one" : "old one");
		add_chunk(m, 2, NOON + i * 60000000, i == 2 ? "new two" : "old two");
		put(m, NOON);
		m = report("b", (uint64_t)i + 1, NOON);
		add_chunk(m, 1, NOON + i * 60000000, "of b");
		put(m, NOON);
	}
	m = report("a", 9, NOON);
	/* arrived last, and is of long ago */
	add_chunk(m, 3, NOON - 600000000, "back-filled");
	put(m, NOON);
	ck_assert_int_eq(ls_query_newest_chunks(q, "a", 900000000, see, text), 0);
	ck_assert_str_eq(text, "8 a 2 new two\n7 a 1 new one\n10 a 3 back-filled\n");
	text[0] = '\0';
	ck_assert_int_eq(ls_query_newest_chunks(q, "nobody", 900000000, see, text), 0);
	ck_assert_str_eq(text, "");
	/* Of the newest day that has any. */
	m = report("b", 10, NOON + DAY_US);
	add_chunk(m, 1, NOON + DAY_US, "today");
	put(m, NOON + DAY_US);
	ck_assert_int_eq(ls_query_newest_chunks(q, "b", 900000000, see, text), 0);
	ck_assert_str_eq(text, "1 b 1 today\n");
	text[0] = '\0';
	ck_assert_int_eq(ls_query_newest_chunks(q, "a", 1, see, text), 0);
	ck_assert_str_eq(text, "8 a 2 new two\n7 a 1 new one\n");
	ls_query_close(q);
}

LS_TEST(chunks, each_day_holds_the_dictionaries_of_its_chunks)
{
	struct ls_query_dictionary d;
	struct ls_query *q = query();
	struct ls_write *m = report("a", 2, NOON);

	add_dictionary(m, 1, "used");
	add_dictionary(m, 2, "old");
	put(m, NOON);
	m = report("a", 3, NOON + DAY_US);
	add_dictionary(m, 1, "used"); /* as intake does at the first use of a day */
	add_chunk(m, 1, NOON + DAY_US, "x");
	put(m, NOON + DAY_US);
	m = report("a", 4, NOON + 3 * DAY_US);
	add_chunk(m, 1, NOON + 3 * DAY_US, "x");
	put(m, NOON + 3 * DAY_US);
	ck_assert_int_eq(ls_test_sql(dir, 20261122, "SELECT count(*) FROM dictionary"),
		2);
	ck_assert_int_eq(ls_test_sql(dir, 20261124, "SELECT hash FROM dictionary"), 1);
	ck_assert_int_eq(ls_test_sql(dir, 20261124, "SELECT chunk_seq FROM ledger"), 4);
	ck_assert_int_eq(ls_query_dictionary(q, 20261124, 1, &d), 0);
	ck_assert_str_eq(d.group, "used");
	ck_assert_uint_eq(d.count, 2);
	ck_assert_str_eq(d.series[0], "one");
	ck_assert_str_eq(d.series[1], "two{a=\"b\"}");
	ls_query_dictionary_fini(&d);
	ck_assert_int_eq(ls_query_dictionary(q, 20261124, 2, &d), -LS_EUNKNOWN);
	ls_query_close(q);
}

LS_TEST(chunks, a_dictionary_may_come_a_day_late)
{
	struct ls_query_dictionary d;
	struct ls_query *q = query();
	struct ls_write *m = report("a", 1, NOON);

	add_chunk(m, 7, NOON, "nameless");
	put(m, NOON);
	ck_assert_int_eq(ls_query_dictionary(q, TODAY, 7, &d), -LS_EUNKNOWN);
	m = report("a", 2, NOON + DAY_US);
	add_dictionary(m, 7, "g");
	put(m, NOON + DAY_US);
	ck_assert_int_eq(ls_query_dictionary(q, TODAY, 7, &d), 0);
	ck_assert_str_eq(d.group, "g");
	ls_query_dictionary_fini(&d);
	ls_query_close(q);
}

static int
see_lost(void *arg, const struct ls_query_lost *l)
{
	uint64_t *sum = arg;

	ck_assert_str_eq(l->host, "a");
	ck_assert_str_eq(l->group, "g");
	ck_assert_int_eq(l->from_us, 0);
	ck_assert_int_eq(l->to_us, NOON);
	ck_assert_uint_eq(l->reason, LS_LOST_DAMAGED);
	*sum += l->samples;
	return 0;
}

LS_TEST(chunks, losses_are_read)
{
	struct ls_query *q = query();
	struct ls_write *m = report("a", 1, NOON);
	struct ls_store_chunk *c = &m->u.report.chunks[m->u.report.chunk_count++];
	uint64_t sum = 0;

	c->kind = LS_WIRE_LOST;
	(void)snprintf(c->group, sizeof(c->group), "g");
	c->t_last_us = NOON;
	c->samples = 44;
	c->reason = LS_LOST_DAMAGED;
	put(m, NOON);
	ck_assert_int_eq(ls_query_lost(q, TODAY, see_lost, &sum), 0);
	ck_assert_uint_eq(sum, 44);
	ls_query_close(q);
}

static int
see_host(void *arg, const char *host, const char *json, size_t len, int64_t first_us,
	int64_t last_us)
{
	char *text = arg;

	ck_assert_uint_eq(strlen(json), len);
	ck_assert_int_eq(first_us, NOON);
	ck_assert_int_eq(last_us, NOON + 5);
	(void)snprintf(text, 100, "%s %s", host, json);
	return 0;
}

LS_TEST(chunks, hosts_keep_who_they_are)
{
	struct ls_query *q = query();
	char text[100] = "";
	int i;

	for (i = 0; i < 2; i++) {
		struct ls_write *m = ls_write_new(LS_WRITE_HOST, NOON + 5 * i);

		(void)snprintf(m->u.host.host, sizeof(m->u.host.host), "h");
		m->u.host.json = strdup(i == 0 ? "{}" : "{\"a\":1}");
		put(m, NOON);
	}
	ck_assert_int_eq(ls_query_hosts(q, see_host, text), 0);
	ck_assert_str_eq(text, "h {\"a\":1}");
	ls_query_close(q);
}

static int
see_zoom(void *arg, const struct ls_store_event *e)
{
	int *seen = arg;

	if (e->kind != LS_EVENT_ZOOM)
		return 0;
	ck_assert_int_eq(e->u.zoom.event, LS_ZOOM_RENEW);
	ck_assert_str_eq(e->u.zoom.host, "h");
	ck_assert_str_eq(e->u.zoom.job, "train");
	ck_assert_str_eq(e->u.zoom.cause, "suspect");
	ck_assert_int_eq(e->u.zoom.until_us, NOON + 1);
	(*seen)++;
	return 0;
}

LS_TEST(chunks, zooms_are_events_like_the_others)
{
	struct ls_write *m = ls_write_new(LS_WRITE_ZOOM, NOON);
	struct ls_query *q = query();
	int seen = 0;

	put(ls_test_close(4, NOON), NOON);
	m->u.zoom.event = LS_ZOOM_RENEW;
	(void)snprintf(m->u.zoom.host, sizeof(m->u.zoom.host), "h");
	(void)snprintf(m->u.zoom.job, sizeof(m->u.zoom.job), "train");
	(void)snprintf(m->u.zoom.cause, sizeof(m->u.zoom.cause), "suspect");
	m->u.zoom.until_us = NOON + 1;
	put(m, NOON);
	ck_assert_int_eq(ls_query_events(q, TODAY, 0, see_zoom, &seen), 0);
	ck_assert_int_eq(seen, 1);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT id FROM zoom"), 2);
	ls_query_close(q);
}

/* --- versions that were never released ------------------------------------ */

/* A day's file that says it is of a version; there is a table in it. */
static void
make_day(int32_t day, int version)
{
	char path[PATH_MAX], sql[128];
	sqlite3 *db = NULL;

	ck_assert_int_eq(ls_days_path(path, dir, day), 0);
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	(void)snprintf(sql, sizeof(sql),
		"PRAGMA application_id = 0x4c53746d; PRAGMA user_version = %d; CREATE TABLE gap (id)",
		version);
	ck_assert_int_eq(ls_db_exec(db, sql), 0);
	ls_db_close(db);
}

static int
see_none(void *arg, const struct ls_query_chunk *c)
{
	(void)arg;
	(void)c;
	ck_abort_msg("a chunk in a file of another version");
	return 0;
}

LS_CASE(other_versions, setup, teardown);

LS_TEST(other_versions, a_file_of_another_version_is_refused_and_stays)
{
	const int versions[] = { 1, 2, 3, 5 };
	size_t i;

	ls_store_close(store);
	ck_assert_int_eq(ls_days_remove(dir, TODAY), 0);
	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		struct ls_query *q = query();

		make_day(TODAY, versions[i]);
		ck_assert_int_eq(ls_store_open(dir, NOON, &store), -LS_EVERSION);
		ck_assert_int_eq(ls_query_chunks(q, TODAY, see_none, NULL),
			-LS_EVERSION);
		ck_assert_int_eq(ls_query_events(q, TODAY, 0, NULL, NULL),
			-LS_EVERSION);
		ck_assert_uint_gt(ls_days_bytes(dir, TODAY), 0);
		ls_query_close(q);
		ck_assert_int_eq(ls_days_remove(dir, TODAY), 0);
	}
	ck_assert_int_eq(ls_store_open(dir, NOON, &store), 0);
}
