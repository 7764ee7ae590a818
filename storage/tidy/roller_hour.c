/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/roller_hour.h"

#include <errno.h>
#include <stdlib.h>
#include "proto/base/mem.h"
#include "storage/db/sql.h"
#include "storage/tidy/roller_out.h"
#include "storage/columns/rollup_sum.h"

int
ls_roller_hour_open(struct ls_roller_hour *h, sqlite3 *db, int64_t before_us)
{
	int64_t t_us = -1;
	int rc = ls_sql_int_of(db,
		"SELECT ifnull(min(d.t_us - d.t_us % 3600000000), -1) FROM rollup_done d WHERE d.span_s = 60 AND "
		"d.t_us - d.t_us % 3600000000 <= ?1 AND NOT EXISTS (SELECT 1 FROM rollup_done e WHERE "
		"e.span_s = 3600 AND e.t_us = d.t_us - d.t_us % 3600000000)",
		LS_SQL_VALUES(ls_sql_int(before_us - LS_ROLLUP_HOUR_US)), &t_us);

	if (rc == 0 && t_us != -1)
		*h = (struct ls_roller_hour){ .is_open = true, .t_us = t_us };
	return rc;
}

void
ls_roller_hour_fini(struct ls_roller_hour *h)
{
	free(h->row);
	ls_store_rollup_free(&h->out);
	*h = (struct ls_roller_hour){ 0 };
}

/* --- rows ----------------------------------------------------------------- */

/* Adds rows of a body. Most series are there from the minute before, in the same order. */
static int
hour_add(struct ls_roller_hour *h, const struct ls_rollup_row *rows, size_t count)
{
	size_t i, at = h->at, old = h->count;
	int rc = ls_mem_reserve((void **)&h->row, &h->bytes,
		(old + count) * sizeof(*h->row));

	if (rc != 0)
		return rc;
	if (at >= old || ls_rollup_compare(&h->row[at], &rows[0]) > 0)
		at = 0;
	for (i = 0; i < count; i++) {
		while (at < old && ls_rollup_compare(&h->row[at], &rows[i]) < 0)
			at++;
		if (at < old && ls_rollup_compare(&h->row[at], &rows[i]) == 0)
			ls_rollup_merge(&h->row[at], &rows[i]);
		else
			h->row[h->count++] = rows[i];
	}
	h->at = at;
	if (old > 0 && h->count > old &&
		ls_rollup_compare(&h->row[old - 1], &h->row[old]) > 0)
		qsort(h->row, h->count, sizeof(*h->row), ls_rollup_compare);
	return 0;
}

/* --- metrics -------------------------------------------------------------- */

static int
hour_read_metric(struct ls_roller_hour *h, sqlite3 *db, struct ls_rollup_codec *codec,
	uint64_t *bad)
{
	struct ls_sql_rows found = ls_sql_rows(db,
		"SELECT body FROM rollup WHERE metric_id = ?1 AND span_s = 60 AND t_us >= ?2 AND t_us < ?3",
		LS_SQL_VALUES(ls_sql_int(h->metric_id), ls_sql_int(h->t_us),
			ls_sql_int(h->t_us + LS_ROLLUP_HOUR_US)));

	while (ls_sql_next(&found)) {
		const struct ls_rollup_row *rows;
		const uint8_t *body = sqlite3_column_blob(found.stmt, 0);
		size_t count;

		if (body == NULL ||
			ls_rollup_decode(codec, body,
				(size_t)sqlite3_column_bytes(found.stmt, 0),
				LS_ROLLUP_ALL, &rows, &count) != 0)
			(*bad)++;
		else
			found.rc = hour_add(h, rows, count);
	}
	return ls_sql_end(&found);
}

static int
hour_write_metric(struct ls_roller_hour *h, struct ls_rollup_codec *codec)
{
	size_t at, n, i;
	int rc = 0;

	for (i = 0; i < h->count; i++)
		ls_rollup_tidy(&h->row[i]);
	for (at = 0; at < h->count && rc == 0; at += n) {
		n = h->count - at < LS_ROLLUP_ROWS_MAX ? h->count - at
						       : LS_ROLLUP_ROWS_MAX;
		rc = ls_roller_out_rows(&h->out, codec, (uint32_t)h->metric_id, 3600,
			h->t_us, -1, h->row + at, n);
	}
	h->count = 0;
	return rc;
}

int
ls_roller_hour_turn(struct ls_roller_hour *h, sqlite3 *db,
	struct ls_rollup_codec *codec, bool *ret_ready, uint64_t *bad)
{
	int64_t next = 0;
	int i, rc = 0;

	for (i = 0; i < LS_ROLLER_METRICS_PER_TURN && rc == 0; i++) {
		rc = ls_sql_int_of(db,
			"SELECT ifnull(min(id), -1) FROM rollup_metric WHERE id > ?1",
			LS_SQL_VALUES(ls_sql_int(h->metric_id)), &next);
		if (rc != 0 || next == -1)
			break;
		h->metric_id = next;
		rc = hour_read_metric(h, db, codec, bad);
		if (rc == 0)
			rc = hour_write_metric(h, codec);
	}
	*ret_ready = rc == 0 && next == -1;
	return rc;
}

int
ls_roller_hour_take(struct ls_roller_hour *h, struct ls_store_rollup *ret)
{
	/* The chunk's id says nothing here: an hour is made of its minutes, or not at
	 * all. */
	int rc = ls_roller_out_done(&h->out, 3600, h->t_us, 0, 1);

	if (rc != 0)
		return rc;
	*ret = h->out;
	h->out = (struct ls_store_rollup){ 0 };
	ls_roller_hour_fini(h);
	return 0;
}
