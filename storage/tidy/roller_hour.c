/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/roller_hour.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "storage/db/db.h"
#include "storage/db/err_sqlite.h"
#include "storage/tidy/roller_out.h"
#include "storage/columns/rollup_sum.h"

/* Rows of a metric by series. */
struct hour_rows {
	struct ls_rollup_row *row;
	size_t count, room;
	/* number of the row + 1, by hash; slots is a power of two, at least twice the
	 * rows */
	uint32_t *slot;
	size_t slots;
};

struct ls_roller_hour {
	int64_t t_us, metric_id; /* the last metric that is in */
	struct ls_store_rollup out;
	struct hour_rows rows;
};

static int
hour_int(sqlite3 *db, const char *sql, int64_t a, int64_t b, bool *ret_is,
	int64_t *ret_value)
{
	sqlite3_stmt *stmt = NULL;
	int step = SQLITE_DONE;
	int rc = ls_db_prepare(db, sql, &stmt);

	*ret_is = false;
	if (rc == 0) {
		(void)sqlite3_bind_int64(stmt, 1, a);
		(void)sqlite3_bind_int64(stmt, 2, b); /* where there is a second one */
		step = sqlite3_step(stmt);
		if (step == SQLITE_ROW && sqlite3_column_type(stmt, 0) != SQLITE_NULL) {
			*ret_is = true;
			*ret_value = sqlite3_column_int64(stmt, 0);
		}
	}
	(void)sqlite3_finalize(stmt); /* tells the same error again */
	return rc != 0 ? rc : step == SQLITE_ROW ? 0 : ls_err_sqlite(step);
}

int
ls_roller_hour_new(sqlite3 *db, int64_t before_us, struct ls_roller_hour **ret_hour)
{
	int64_t t_us = 0;
	bool is;
	int rc = hour_int(db,
		"SELECT min(d.t_us - d.t_us % 3600000000) FROM rollup_done d WHERE d.span_s = 60 AND "
		"d.t_us - d.t_us % 3600000000 <= ?1 AND NOT EXISTS (SELECT 1 FROM rollup_done e WHERE "
		"e.span_s = 3600 AND e.t_us = d.t_us - d.t_us % 3600000000)",
		before_us - LS_ROLLUP_HOUR_US, 0, &is, &t_us);

	*ret_hour = NULL;
	if (rc != 0 || !is)
		return rc;
	*ret_hour = calloc(1, sizeof(**ret_hour));
	if (*ret_hour == NULL)
		return -ENOMEM;
	(*ret_hour)->t_us = t_us;
	return 0;
}

void
ls_roller_hour_free(struct ls_roller_hour *h)
{
	if (h == NULL)
		return;
	free(h->rows.row);
	free(h->rows.slot);
	free(h->out.names);
	free(h->out.bodies);
	free(h->out.done);
	free(h->out.data);
	free(h);
}

/* --- rows ----------------------------------------------------------------- */

static uint32_t *
hour_slot(const struct hour_rows *h, uint32_t labels_id, uint32_t host_id)
{
	size_t i = (size_t)((((uint64_t)labels_id << 32 | host_id) *
				    0x9e3779b97f4a7c15u) >>
			   20) &
		(h->slots - 1);

	while (h->slot[i] != 0 &&
		(h->row[h->slot[i] - 1].labels_id != labels_id ||
			h->row[h->slot[i] - 1].host_id != host_id))
		i = (i + 1) & (h->slots - 1);
	return &h->slot[i];
}

/* Room for n rows more. */
static int
hour_room(struct hour_rows *h, size_t n)
{
	size_t want = h->count + n, slots = h->slots == 0 ? 1024 : h->slots, i;
	struct ls_rollup_row *row;
	uint32_t *slot;

	if (want > h->room) {
		row = realloc(h->row, want * 2 * sizeof(*row));
		if (row == NULL)
			return -ENOMEM;
		h->row = row;
		h->room = want * 2;
	}
	while (slots < 2 * want)
		slots *= 2;
	if (slots == h->slots)
		return 0;
	slot = calloc(slots, sizeof(*slot));
	if (slot == NULL)
		return -ENOMEM;
	free(h->slot);
	h->slot = slot;
	h->slots = slots;
	for (i = 0; i < h->count; i++)
		*hour_slot(h, h->row[i].labels_id, h->row[i].host_id) = (uint32_t)i + 1;
	return 0;
}

static int
hour_add(struct hour_rows *h, const struct ls_rollup_row *rows, size_t count)
{
	size_t i;
	int rc = hour_room(h, count);

	for (i = 0; i < count && rc == 0; i++) {
		uint32_t *slot = hour_slot(h, rows[i].labels_id, rows[i].host_id);

		if (*slot != 0) {
			ls_rollup_merge(&h->row[*slot - 1], &rows[i]);
			continue;
		}
		h->row[h->count++] = rows[i];
		*slot = (uint32_t)h->count;
	}
	return rc;
}

static int
hour_compare(const void *x, const void *y)
{
	const struct ls_rollup_row *a = x, *b = y;

	if (a->labels_id != b->labels_id)
		return a->labels_id < b->labels_id ? -1 : 1;
	return a->host_id < b->host_id ? -1 : a->host_id > b->host_id;
}

/* --- metrics -------------------------------------------------------------- */

static int
hour_read_metric(struct ls_roller_hour *h, sqlite3 *db, struct ls_rollup_codec *codec,
	uint64_t *bad)
{
	sqlite3_stmt *stmt = NULL;
	int step = SQLITE_DONE;
	int rc = ls_db_prepare(db,
		"SELECT body FROM rollup WHERE metric_id = ?1 AND span_s = 60 AND t_us >= ?2 AND t_us < ?3",
		&stmt);

	if (rc == 0) {
		/* parameters that are there */
		(void)sqlite3_bind_int64(stmt, 1, h->metric_id);
		(void)sqlite3_bind_int64(stmt, 2, h->t_us);
		(void)sqlite3_bind_int64(stmt, 3, h->t_us + LS_ROLLUP_HOUR_US);
	}
	while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		const struct ls_rollup_row *rows;
		const uint8_t *body = sqlite3_column_blob(stmt, 0);
		size_t count;

		if (body == NULL ||
			ls_rollup_decode(codec, body,
				(size_t)sqlite3_column_bytes(stmt, 0), LS_ROLLUP_ALL,
				&rows, &count) != 0)
			(*bad)++;
		else
			rc = hour_add(&h->rows, rows, count);
	}
	(void)sqlite3_finalize(stmt); /* tells the same error again */
	return rc != 0 ? rc : ls_err_sqlite(step);
}

static int
hour_write_metric(struct ls_roller_hour *h, struct ls_rollup_codec *codec)
{
	struct hour_rows *rows = &h->rows;
	size_t at, n, i;
	int rc = 0;

	if (rows->count > 0)
		qsort(rows->row, rows->count, sizeof(*rows->row), hour_compare);
	for (i = 0; i < rows->count; i++)
		ls_rollup_tidy(&rows->row[i]);
	for (at = 0; at < rows->count && rc == 0; at += n) {
		n = rows->count - at < LS_ROLLUP_ROWS_MAX ? rows->count - at
							  : LS_ROLLUP_ROWS_MAX;
		rc = ls_roller_out_rows(&h->out, codec, (uint32_t)h->metric_id, 3600,
			h->t_us, -1, rows->row + at, n);
	}
	rows->count = 0;
	if (rows->slot != NULL)
		memset(rows->slot, 0, rows->slots * sizeof(*rows->slot));
	return rc;
}

int
ls_roller_hour_turn(struct ls_roller_hour *h, sqlite3 *db,
	struct ls_rollup_codec *codec, bool *ret_ready, uint64_t *bad)
{
	bool is = true;
	int i, rc = 0;

	for (i = 0; i < LS_ROLLER_METRICS_PER_TURN && is && rc == 0; i++) {
		rc = hour_int(db, "SELECT min(id) FROM rollup_metric WHERE id > ?1",
			h->metric_id, 0, &is, &h->metric_id);
		if (rc == 0 && is)
			rc = hour_read_metric(h, db, codec, bad);
		if (rc == 0 && is)
			rc = hour_write_metric(h, codec);
	}
	*ret_ready = rc == 0 && !is;
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
	memset(&h->out, 0, sizeof(h->out));
	return 0;
}
