/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/read/query_chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "storage/db/db.h"
#include "storage/db/sql.h"
#include "storage/read/query_day.h"

#define QUERY_CHUNK_COLUMNS                                                                   \
	"c.id, h.name, c.dictionary, c.t_first_us, c.t_last_us, c.ref_mono_ns, c.offset_ns, " \
	"c.drift_ppb, c.uncertainty_ns, c.n, c.at, c.len "

static int
chunk_read(struct ls_query_day *d, sqlite3_stmt *stmt, struct ls_query_chunk *c)
{
	int rc = ls_sql_read(stmt,
		LS_SQL_FIELDS(ls_sql_to_i64(&c->id),
			ls_sql_to_text(c->host, sizeof(c->host)),
			ls_sql_to_u64(&c->dictionary), ls_sql_to_i64(&c->t_first_us),
			ls_sql_to_i64(&c->t_last_us),
			ls_sql_to_i64(&c->map.ref_mono_ns),
			ls_sql_to_i64(&c->map.offset_ns),
			ls_sql_to_i64(&c->map.drift_ppb),
			ls_sql_to_i64(&c->map.uncertainty_ns), ls_sql_to_u32(&c->n)));

	return rc == 0 ? ls_query_day_body(d, stmt, 10, &c->body, &c->len) : rc;
}

/* --- chunks --------------------------------------------------------------- */

/* Chunks with ids lo..hi. */
static int
chunk_window(struct ls_query_day *d, sqlite3_stmt *stmt, int32_t day, int64_t lo,
	int64_t hi, ls_query_chunk_fn *fn, void *arg)
{
	struct ls_query_chunk c = { .day = day };
	struct ls_sql_rows rows =
		ls_sql_again(stmt, LS_SQL_VALUES(ls_sql_int(lo), ls_sql_int(hi)));

	while (ls_sql_next(&rows)) {
		rows.rc = chunk_read(d, stmt, &c);
		if (rows.rc == 0)
			rows.rc = fn(arg, &c);
	}
	ls_query_day_rest(d);
	return ls_sql_end(&rows);
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
	rc = ls_sql_int_of(ls_query_day_db(d), "SELECT max(id) FROM chunk", NULL,
		&last);
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

	for (size_t i = 0; i < n->count; i++) {
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
	struct ls_sql_rows rows = ls_sql_rows(ls_query_day_db(d),
		"SELECT " QUERY_CHUNK_COLUMNS
		"FROM chunk c JOIN chunk_host h ON h.id = c.host_id "
		"WHERE c.host_id = (SELECT id FROM chunk_host WHERE name = ?1) "
		"ORDER BY c.t_first_us DESC, c.id DESC",
		LS_SQL_VALUES(ls_sql_text(host)));

	while (ls_sql_next(&rows)) {
		rows.rc = chunk_read(d, rows.stmt, &c);
		if (rows.rc == 0)
			rows.rc = chunk_newest(n, &c);
		if (rows.rc == 0 &&
			c.t_first_us < n->newest_us - n->keep_us - LS_CHUNK_SPAN_US)
			break; /* what began before ended before */
	}
	ls_query_day_rest(d);
	return ls_sql_end(&rows);
}

int
ls_query_newest_chunks(struct ls_query *q, const char *host, int64_t keep_us,
	ls_query_chunk_fn *fn, void *arg)
{
	struct chunk_newest n = { .keep_us = keep_us, .fn = fn, .arg = arg };
	struct ls_days days = { 0 };
	struct ls_query_day *d;
	int rc = ls_query_days(q, &days);

	for (size_t i = days.count; i > 0 && rc == 0 && n.count == 0; i--) {
		rc = ls_query_day_of(q, days.day[i - 1], &d);
		if (rc == 0)
			rc = chunk_newest_of(d, days.day[i - 1], host, &n);
	}
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
	struct ls_sql_rows rows = ls_sql_rows(ls_query_day_db(day),
		"SELECT hash, family, series FROM dictionary WHERE hash = ?1",
		LS_SQL_VALUES(ls_sql_u64(hash)));

	if (ls_sql_next(&rows))
		rows.rc = dictionary_read(rows.stmt, ret);
	else if (rows.rc == 0)
		rows.rc = -LS_EUNKNOWN;
	return ls_sql_end(&rows);
}

int
ls_query_dictionary(struct ls_query *q, int32_t day, uint64_t hash,
	struct ls_query_dictionary *ret_dictionary)
{
	struct ls_days days = { 0 };
	struct ls_query_day *d;
	size_t i, tries = 0;
	int rc = ls_query_days(q, &days);

	if (rc == 0)
		rc = -LS_EUNKNOWN;
	for (i = 0; rc == -LS_EUNKNOWN && i < days.count && tries < 2; i++) {
		if (days.day[i] < day)
			continue;
		tries++;
		rc = ls_query_day_of(q, days.day[i], &d);
		if (rc == 0)
			rc = dictionary_of(d, hash, ret_dictionary);
	}
	return rc;
}

int
ls_query_dictionaries(struct ls_query *q, ls_query_dictionary_fn *fn, void *arg)
{
	struct ls_query_dictionary dictionary;
	struct ls_query_day *d;
	struct ls_sql_rows rows;
	int rc = ls_query_newest_day(q, &d);

	if (rc != 0 || d == NULL)
		return rc;
	rows = ls_sql_rows(ls_query_day_db(d),
		"SELECT hash, family, series FROM dictionary ORDER BY t_us, hash",
		NULL);
	while (ls_sql_next(&rows)) {
		rows.rc = dictionary_read(rows.stmt, &dictionary);
		if (rows.rc != 0)
			break;
		rows.rc = fn(arg, &dictionary);
		ls_query_dictionary_fini(&dictionary);
	}
	return ls_sql_end(&rows);
}

/* --- what is lost, and who hosts are -------------------------------------- */

int
ls_query_lost(struct ls_query *q, int32_t day, ls_query_lost_fn *fn, void *arg)
{
	struct ls_query_lost lost = { 0 };
	struct ls_query_day *d;
	struct ls_sql_rows rows;
	int rc = ls_query_day_of(q, day, &d);

	if (rc != 0)
		return rc;
	rows = ls_sql_rows(ls_query_day_db(d),
		"SELECT h.name, l.t_us, l.family, l.from_us, l.to_us, l.samples, l.reason "
		"FROM lost l JOIN chunk_host h ON h.id = l.host_id ORDER BY l.id",
		NULL);
	while (ls_sql_next(&rows)) {
		/* from and to: NULL is read as 0 */
		rows.rc = ls_sql_read(rows.stmt,
			LS_SQL_FIELDS(ls_sql_to_text(lost.host, sizeof(lost.host)),
				ls_sql_to_i64(&lost.t_us),
				ls_sql_to_text(lost.group, sizeof(lost.group)),
				ls_sql_to_i64(&lost.from_us),
				ls_sql_to_i64(&lost.to_us),
				ls_sql_to_u64(&lost.samples),
				ls_sql_to_u32(&lost.reason)));
		if (rows.rc == 0)
			rows.rc = fn(arg, &lost);
	}
	return ls_sql_end(&rows);
}

int
ls_query_hosts(struct ls_query *q, ls_query_host_fn *fn, void *arg)
{
	struct ls_sql_rows rows = ls_sql_rows(ls_query_state_db(q),
		"SELECT host, json, first_us, last_us FROM host_identity ORDER BY last_us, host",
		NULL);

	while (ls_sql_next(&rows)) {
		const char *host = (const char *)sqlite3_column_text(rows.stmt, 0);
		const char *json = (const char *)sqlite3_column_text(rows.stmt, 1);

		rows.rc = host == NULL || json == NULL
			? -ENOMEM
			: fn(arg, host, json,
				  (size_t)sqlite3_column_bytes(rows.stmt, 1),
				  sqlite3_column_int64(rows.stmt, 2),
				  sqlite3_column_int64(rows.stmt, 3));
	}
	return ls_sql_end(&rows);
}
