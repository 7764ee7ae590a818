/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/stored.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/log.h"
#include "proto/chunk/chunk.h"
#include "storage/read/query.h"
#include "storage/tidy/roller.h"
#include "tests/support/harness.h"

char stored_dir[PATH_MAX];
struct ls_store *stored_store;
struct ls_questions *stored_questions;
static uint64_t chunk_seq;

void
stored_setup(void)
{
	ls_log_set_level(LS_LOG_ERR);
	(void)snprintf(stored_dir, sizeof(stored_dir), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(
		ls_store_open(stored_dir, STORED_MIDNIGHT - 3600 * S, &stored_store),
		0);
	stored_questions = ls_questions_new(stored_dir);
	ck_assert_ptr_nonnull(stored_questions);
	chunk_seq = 0;
}

void
stored_teardown(void)
{
	ls_questions_free(stored_questions);
	ls_store_close(stored_store);
}

/* Commits one row of a host's stream of chunks at wall_us. */
void
stored_put(const char *host, const struct ls_store_chunk *chunk, int64_t wall_us)
{
	struct ls_write *m = ls_write_new_report(0, 0, 1, wall_us);

	ck_assert_ptr_nonnull(m);
	(void)snprintf(m->u.report.host, sizeof(m->u.report.host), "%s", host);
	memset(m->u.report.boot, host[0], sizeof(m->u.report.boot));
	m->u.report.last_chunk_seq = ++chunk_seq;
	m->u.report.chunks[m->u.report.chunk_count++] = *chunk;
	ck_assert_int_eq(ls_store_commit(stored_store, &m, 1, wall_us), 0);
	ls_write_free(m);
}

void
stored_dictionary(const char *host, uint64_t hash, const char *group, const char *text,
	size_t len, int64_t wall_us)
{
	struct ls_store_chunk c = {
		.kind = LS_WIRE_DICTIONARY, .hash = hash, .series_len = len
	};

	(void)snprintf(c.group, sizeof(c.group), "%s", group);
	c.series = malloc(len);
	memcpy(c.series, text, len);
	stored_put(host, &c, wall_us);
}

/*
 * A chunk of `columns` columns from t_us on, a row a second: value of column c, row i
 * is base + i + 1000 c; the third column is there in even rows, its first a NaN.
 */
void
stored_chunk(const char *host, uint64_t hash, size_t columns, double base, int64_t t_us,
	int64_t wall_us)
{
	static double value[3 * STORED_ROWS];
	static bool present[3 * STORED_ROWS];
	static uint64_t t_ns[STORED_ROWS];
	static uint8_t body[LS_CHUNK_BODY_MAX_BYTES];
	const struct ls_chunk_table table = { STORED_ROWS, columns, STORED_ROWS, t_ns,
		value, present };
	struct ls_chunk_codec *codec = ls_chunk_codec_new(columns, STORED_ROWS);
	struct ls_store_chunk c = { .kind = LS_WIRE_CHUNK,
		.hash = hash,
		.n = STORED_ROWS,
		.t_first_us = t_us,
		.t_last_us = t_us + (STORED_ROWS - 1) * S,
		.map = { .offset_ns = (t_us - 5 * S) * 1000 } };

	for (size_t i = 0; i < STORED_ROWS; i++) {
		t_ns[i] = (5 + i) * 1000000000ull;
		for (size_t k = 0; k < columns; k++) {
			present[k * STORED_ROWS + i] = k < 2 || i % 2 == 0;
			value[k * STORED_ROWS + i] =
				base + (double)i + 1000.0 * (double)k;
		}
	}
	if (columns > 2)
		value[2 * STORED_ROWS] = NAN;
	ck_assert_int_eq(
		ls_chunk_encode(codec, &table, body, sizeof(body), &c.body_len), 0);
	ls_chunk_codec_free(codec);
	c.body = body;
	stored_put(host, &c, wall_us);
}

const char stored_three[STORED_THREE_BYTES] =
	"host.one\0chip.two{chip=\"0\",x=\"y\"}\0chip.two{chip=\"1\"}";

struct stored_text_out {
	char *text;
	size_t len;
};

static bool
stored_keep(void *arg, const char *piece, size_t len)
{
	struct stored_text_out *t = arg;

	t->text = realloc(t->text, t->len + len);
	memcpy(t->text + t->len, piece, len);
	t->len += len;
	return true;
}

struct ls_ask
stored_history(const char *host, const char *series, int64_t from_us, int64_t to_us,
	int64_t step_s)
{
	struct ls_ask ask = { .kind = LS_ASK_HISTORY,
		.from_us = from_us,
		.to_us = to_us,
		.step_s = step_s,
		.limit = 100 };

	(void)snprintf(ask.host, sizeof(ask.host), "%s", host);
	(void)snprintf(ask.series, sizeof(ask.series), "%s", series);
	return ask;
}

json_t *
stored_answer(const struct ls_ask *ask)
{
	struct stored_text_out t = { 0 };
	json_t *v;

	ck_assert_int_eq(
		ls_questions_answer(stored_questions, ask, NULL, stored_keep, &t), 0);
	v = json_loadb(t.text, t.len, 0, NULL);
	ck_assert_ptr_nonnull(v);
	free(t.text);
	return v;
}

int
stored_refused(const struct ls_ask *ask)
{
	struct stored_text_out t = { 0 };
	int rc = ls_questions_answer(stored_questions, ask, NULL, stored_keep, &t);

	free(t.text);
	return rc;
}

const json_t *
stored_item(const json_t *v, size_t i)
{
	return json_array_get(json_object_get(v, "items"), i);
}

double
stored_at(const json_t *item, const char *key, size_t i)
{
	return json_number_value(json_array_get(json_object_get(item, key), i));
}

const char *
stored_text(const json_t *v, const char *key)
{
	return json_string_value(json_object_get(v, key));
}

void
stored_worker(int64_t id, const char *job, const char *host)
{
	struct ls_write *m = ls_write_new(LS_WRITE_WORKER, STORED_MIDNIGHT - 3600 * S);

	ck_assert_ptr_nonnull(m);
	m->u.worker.id = id;
	memcpy(m->u.worker.ring_id, &id, sizeof(id));
	(void)snprintf(m->u.worker.info.job, sizeof(m->u.worker.info.job), "%s", job);
	(void)snprintf(m->u.worker.info.host, sizeof(m->u.worker.info.host), "%s",
		host);
	m->u.worker.info.rank = (int32_t)id;
	ck_assert_int_eq(
		ls_store_commit(stored_store, &m, 1, STORED_MIDNIGHT - 3600 * S), 0);
	ls_write_free(m);
}

void
stored_roll(int64_t now_us)
{
	struct ls_query *q = NULL;
	struct ls_roller *roller;
	struct ls_write *m = NULL;
	/* a minute is open for a while before it is written */
	int64_t t_us = now_us - 3 * LS_ROLLUP_LATE_US;
	bool more = false;

	ck_assert_int_eq(ls_query_open(stored_dir, &q), 0);
	roller = ls_roller_new(q);
	ck_assert_ptr_nonnull(roller);
	for (; t_us <= now_us; t_us += more ? 0 : LS_ROLLUP_LATE_US) {
		ck_assert_int_eq(ls_roller_turn(roller, t_us, &m, &more), 0);
		if (m == NULL)
			continue;
		ck_assert_int_eq(ls_store_rollup(stored_store, &m->u.rollup), 0);
		ls_write_free(m);
		ls_roller_told(roller, 0);
		more = true;
	}
	ls_roller_free(roller);
	ls_query_close(q);
}
