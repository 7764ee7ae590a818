/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/read/query_chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "storage/db/db.h"
#include "storage/db/err_sqlite.h"
#include "storage/read/query_day.h"

#define QUERY_CHUNK_COLUMNS                                                                   \
	"c.id, h.name, c.dictionary, c.t_first_us, c.t_last_us, c.ref_mono_ns, c.offset_ns, " \
	"c.drift_ppb, c.uncertainty_ns, c.n, c.at, c.len "

/* Ends a visit: what stopped it, else what SQLite says. */
static int
chunk_end(sqlite3_stmt *stmt, int rc, int step)
{
	(void)sqlite3_finalize(stmt); /* tells the same error again */
	return rc != 0 ? rc : ls_err_sqlite(step);
}

static int
chunk_read(struct ls_query_day *d, sqlite3_stmt *stmt, struct ls_query_chunk *c)
{
	int rc;

	c->id = sqlite3_column_int64(stmt, 0);
	c->dictionary = (uint64_t)sqlite3_column_int64(stmt, 2);
	c->t_first_us = sqlite3_column_int64(stmt, 3);
	c->t_last_us = sqlite3_column_int64(stmt, 4);
	c->map.ref_mono_ns = sqlite3_column_int64(stmt, 5);
	c->map.offset_ns = sqlite3_column_int64(stmt, 6);
	c->map.drift_ppb = sqlite3_column_int64(stmt, 7);
	c->map.uncertainty_ns = sqlite3_column_int64(stmt, 8);
	c->n = (uint32_t)sqlite3_column_int64(stmt, 9);
	rc = ls_query_day_body(d, stmt, 10, &c->body, &c->len);
	return rc != 0 ? rc : ls_db_column_text(stmt, 1, c->host, sizeof(c->host));
}

/* --- chunks --------------------------------------------------------------- */

/* Chunks with ids lo..hi. */
static int
chunk_window(struct ls_query_day *d, sqlite3_stmt *stmt, int32_t day, int64_t lo,
	int64_t hi, ls_query_chunk_fn *fn, void *arg)
{
	struct ls_query_chunk c = { .day = day };
	int rc = 0, step = SQLITE_DONE;

	(void)sqlite3_bind_int64(stmt, 1, lo); /* parameters that are there */
	(void)sqlite3_bind_int64(stmt, 2, hi);
	while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = chunk_read(d, stmt, &c);
		if (rc == 0)
			rc = fn(arg, &c);
	}
	ls_query_day_rest(d);
	(void)sqlite3_reset(stmt); /* lets the snapshot go */
	return rc != 0 ? rc : ls_err_sqlite(step);
}

int
ls_query_chunks(struct ls_query *q, int32_t day, ls_query_chunk_fn *fn, void *arg)
{
	struct ls_query_day *d;
	sqlite3_stmt *stmt = NULL;
	int64_t last = 0, lo;
	int rc = ls_query_day_of(q, day, &d);

	if (rc != 0)
		return rc;
	rc = ls_db_int(ls_query_day_db(d), "SELECT max(id) FROM chunk", &last);
	if (rc == 0)
		rc = ls_db_prepare(ls_query_day_db(d),
			"SELECT " QUERY_CHUNK_COLUMNS "FROM chunk c JOIN chunk_host h "
			"ON h.id = c.host_id WHERE c.id BETWEEN ?1 AND ?2 ORDER BY c.id",
			&stmt);
	for (lo = 1; rc == 0 && lo <= last; lo += LS_QUERY_WINDOW)
		rc = chunk_window(d, stmt, day, lo, lo + LS_QUERY_WINDOW - 1, fn, arg);
	(void)sqlite3_finalize(stmt); /* only read with */
	return rc;
}

/* What was seen of one host, from the chunk that began last back. */
struct chunk_newest {
	int64_t keep_us, newest_us;
	size_t count;
	uint64_t dictionary[LS_GROUPS_MAX];
	ls_query_chunk_fn *fn;
	void *arg;
};

static int
chunk_newest(void *arg, const struct ls_query_chunk *c)
{
	struct chunk_newest *n = arg;
	size_t i;

	for (i = 0; i < n->count; i++) {
		if (n->dictionary[i] == c->dictionary)
			return 0;
	}
	if (n->count == LS_GROUPS_MAX ||
		(n->count > 0 && c->t_last_us < n->newest_us - n->keep_us))
		return 0;
	if (n->count == 0)
		n->newest_us = c->t_last_us;
	n->dictionary[n->count++] = c->dictionary;
	return n->fn(n->arg, c);
}

static int
chunk_newest_of(struct ls_query_day *d, int32_t day, const char *host,
	struct chunk_newest *n)
{
	struct ls_query_chunk c = { .day = day };
	sqlite3_stmt *stmt = NULL;
	int step = SQLITE_DONE;
	int rc = ls_db_prepare(ls_query_day_db(d),
		"SELECT " QUERY_CHUNK_COLUMNS
		"FROM chunk c JOIN chunk_host h ON h.id = c.host_id "
		"WHERE c.host_id = (SELECT id FROM chunk_host WHERE name = ?1) "
		"ORDER BY c.t_first_us DESC, c.id DESC",
		&stmt);

	if (rc == 0)
		rc = ls_err_sqlite(sqlite3_bind_text(stmt, 1, host, -1, SQLITE_STATIC));
	while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = chunk_read(d, stmt, &c);
		if (rc == 0)
			rc = chunk_newest(n, &c);
		if (rc == 0 &&
			c.t_first_us < n->newest_us - n->keep_us - LS_CHUNK_SPAN_US)
			break; /* what began before ended before */
	}
	ls_query_day_rest(d);
	(void)sqlite3_finalize(stmt); /* tells the same error again */
	return rc != 0 ? rc : ls_err_sqlite(step);
}

int
ls_query_newest_chunks(struct ls_query *q, const char *host, int64_t keep_us,
	ls_query_chunk_fn *fn, void *arg)
{
	struct chunk_newest n = { .keep_us = keep_us, .fn = fn, .arg = arg };
	struct ls_days *days = malloc(sizeof(*days));
	struct ls_query_day *d;
	size_t i;
	int rc = days != NULL ? ls_query_days(q, days) : -ENOMEM;

	for (i = rc == 0 ? days->count : 0; i > 0 && rc == 0 && n.count == 0; i--) {
		rc = ls_query_day_of(q, days->day[i - 1], &d);
		if (rc == 0)
			rc = chunk_newest_of(d, days->day[i - 1], host, &n);
	}
	free(days);
	return rc;
}

/* --- dictionaries --------------------------------------------------------- */

void
ls_query_dictionary_fini(struct ls_query_dictionary *d)
{
	free(d->series);
	free(d->text);
	memset(d, 0, sizeof(*d));
}

/* Takes a row (hash, family, series) apart. */
static int
dictionary_read(sqlite3_stmt *stmt, struct ls_query_dictionary *d)
{
	const char *text = sqlite3_column_blob(stmt, 2);
	size_t i, len = (size_t)sqlite3_column_bytes(stmt, 2);
	int rc;

	memset(d, 0, sizeof(*d));
	d->hash = (uint64_t)sqlite3_column_int64(stmt, 0);
	rc = ls_db_column_text(stmt, 1, d->group, sizeof(d->group));
	if (rc != 0)
		return rc;
	if (len == 0 || text == NULL || text[len - 1] != '\0')
		return len == 0 ? 0 : -LS_ECORRUPT;
	d->text = malloc(len);
	d->series = calloc(LS_SERIES_PER_GROUP_MAX, sizeof(*d->series));
	if (d->text == NULL || d->series == NULL) {
		ls_query_dictionary_fini(d);
		return -ENOMEM;
	}
	memcpy(d->text, text, len);
	d->text_len = len;
	for (i = 0; i < len && d->count < LS_SERIES_PER_GROUP_MAX;
		i += strlen(d->text + i) + 1)
		d->series[d->count++] = d->text + i;
	return 0;
}

static int
dictionary_of(struct ls_query_day *day, uint64_t hash, struct ls_query_dictionary *ret)
{
	sqlite3_stmt *stmt = NULL;
	int step = SQLITE_DONE;
	int rc = ls_db_prepare(ls_query_day_db(day),
		"SELECT hash, family, series FROM dictionary WHERE hash = ?1", &stmt);
	if (rc == 0)
		rc = ls_err_sqlite(sqlite3_bind_int64(stmt, 1, (int64_t)hash));
	if (rc == 0) {
		step = sqlite3_step(stmt);
		if (step == SQLITE_ROW)
			rc = dictionary_read(stmt, ret);
		else if (step == SQLITE_DONE)
			rc = -LS_EUNKNOWN;
	}
	return chunk_end(stmt, rc, step);
}

int
ls_query_dictionary(struct ls_query *q, int32_t day, uint64_t hash,
	struct ls_query_dictionary *ret_dictionary)
{
	struct ls_days *days = malloc(sizeof(*days));
	struct ls_query_day *d;
	size_t i, tries = 0;
	int rc = days != NULL ? ls_query_days(q, days) : -ENOMEM;

	if (rc == 0)
		rc = -LS_EUNKNOWN;
	for (i = 0; rc == -LS_EUNKNOWN && i < days->count && tries < 2; i++) {
		if (days->day[i] < day)
			continue;
		tries++;
		rc = ls_query_day_of(q, days->day[i], &d);
		if (rc == 0)
			rc = dictionary_of(d, hash, ret_dictionary);
	}
	free(days);
	return rc;
}

int
ls_query_dictionaries(struct ls_query *q, ls_query_dictionary_fn *fn, void *arg)
{
	struct ls_days *days = malloc(sizeof(*days));
	struct ls_query_dictionary dictionary;
	struct ls_query_day *d = NULL;
	sqlite3_stmt *stmt = NULL;
	int step = SQLITE_DONE;
	int rc = days != NULL ? ls_query_days(q, days) : -ENOMEM;

	if (rc == 0 && days->count > 0)
		rc = ls_query_day_of(q, days->day[days->count - 1], &d);
	free(days);
	if (rc != 0 || d == NULL)
		return rc;
	rc = ls_db_prepare(ls_query_day_db(d),
		"SELECT hash, family, series FROM dictionary ORDER BY t_us, hash",
		&stmt);
	while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = dictionary_read(stmt, &dictionary);
		if (rc != 0)
			break;
		rc = fn(arg, &dictionary);
		ls_query_dictionary_fini(&dictionary);
	}
	return chunk_end(stmt, rc, step);
}

/* --- what is lost, and who hosts are -------------------------------------- */

int
ls_query_lost(struct ls_query *q, int32_t day, ls_query_lost_fn *fn, void *arg)
{
	struct ls_query_lost lost;
	struct ls_query_day *d;
	sqlite3_stmt *stmt = NULL;
	int step = SQLITE_DONE;
	int rc = ls_query_day_of(q, day, &d);

	if (rc != 0)
		return rc;
	rc = ls_db_prepare(ls_query_day_db(d),
		"SELECT h.name, l.t_us, l.family, l.from_us, l.to_us, l.samples, l.reason "
		"FROM lost l JOIN chunk_host h ON h.id = l.host_id ORDER BY l.id",
		&stmt);
	while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		memset(&lost, 0, sizeof(lost));
		lost.t_us = sqlite3_column_int64(stmt, 1);
		lost.from_us = sqlite3_column_int64(stmt, 3); /* null: 0 */
		lost.to_us = sqlite3_column_int64(stmt, 4);
		lost.samples = (uint64_t)sqlite3_column_int64(stmt, 5);
		lost.reason = (unsigned)sqlite3_column_int(stmt, 6);
		rc = ls_db_column_text(stmt, 0, lost.host, sizeof(lost.host));
		if (rc == 0)
			rc = ls_db_column_text(stmt, 2, lost.group, sizeof(lost.group));
		if (rc == 0)
			rc = fn(arg, &lost);
	}
	return chunk_end(stmt, rc, step);
}

int
ls_query_hosts(struct ls_query *q, ls_query_host_fn *fn, void *arg)
{
	sqlite3_stmt *stmt = NULL;
	int step = SQLITE_DONE;
	int rc = ls_db_prepare(ls_query_state_db(q),
		"SELECT host, json, first_us, last_us FROM host_identity ORDER BY last_us, host",
		&stmt);

	while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		const char *host = (const char *)sqlite3_column_text(stmt, 0);
		const char *json = (const char *)sqlite3_column_text(stmt, 1);

		if (host == NULL || json == NULL)
			rc = -ENOMEM;
		else
			rc = fn(arg, host, json, (size_t)sqlite3_column_bytes(stmt, 1),
				sqlite3_column_int64(stmt, 2),
				sqlite3_column_int64(stmt, 3));
	}
	return chunk_end(stmt, rc, step);
}
