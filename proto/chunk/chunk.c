/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/chunk/chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/bytes.h"
#include "proto/chunk/chunk_column.h"

#define CHUNK_VERSION 1u
#define CHUNK_HEAD_BYTES 6u /* version, zero, rows (2), columns (2) */
#define CHUNK_SUM_BYTES 4u /* CRC-32 of all before */

_Static_assert(sizeof(bool) == 1, "flags: eight a word");
_Static_assert(LS_CHUNK_ROWS_MAX <= LS_CHUNK_WORK_ROWS, "rows of a column");
_Static_assert(LS_CHUNK_ROWS_MAX <= UINT16_MAX && LS_SERIES_PER_GROUP_MAX <= UINT16_MAX,
	"head");

struct ls_chunk_codec {
	size_t columns_max, rows_max;
	struct ls_chunk_work work;
	struct ls_chunk_table table; /* of the last decoding: in words */
	uint64_t words[];
};

struct ls_chunk_codec *
ls_chunk_codec_new(size_t columns_max, size_t rows_max)
{
	struct ls_chunk_codec *c;
	size_t cells = columns_max * rows_max;

	if (rows_max == 0 || rows_max > LS_CHUNK_ROWS_MAX ||
		columns_max > LS_SERIES_PER_GROUP_MAX)
		return NULL;
	/* times, values, presence, eight a word; untouched pages cost nothing */
	c = calloc(1,
		sizeof(*c) + (rows_max + cells + cells / 8 + 1) * sizeof(c->words[0]));
	if (c == NULL)
		return NULL;
	c->columns_max = columns_max;
	c->rows_max = rows_max;
	c->table.t_mono_ns = c->words;
	c->table.value = (double *)(c->words + rows_max);
	c->table.present = (bool *)(c->words + rows_max + cells);
	return c;
}

void
ls_chunk_codec_free(struct ls_chunk_codec *c)
{
	free(c);
}

/* --- writing -------------------------------------------------------------- */

/* Which rows are present where some are not: as in the column before, or told. */
static void
chunk_put_presence(struct ls_bits_out *o, const bool *now, const bool *before,
	size_t rows)
{
	if (before != NULL && memcmp(now, before, rows * sizeof(*now)) == 0) {
		ls_bits_put(o, 1, 2);
	} else {
		ls_bits_put(o, 3, 2);
		ls_chunk_put_flags(o, now, rows);
	}
}

static void
chunk_put_column(struct ls_bits_out *o, struct ls_chunk_work *w,
	const struct ls_chunk_table *t, size_t column)
{
	const double *value = t->value + column * t->stride;
	const bool *present = t->present + column * t->stride;
	size_t i, n = 0;

	if (memchr(present, false, t->rows) == NULL) {
		ls_bits_put(o, 0, 1);
		ls_chunk_put_doubles(o, w, value, t->rows);
		return;
	}
	chunk_put_presence(o, present, column > 0 ? present - t->stride : NULL,
		t->rows);
	for (i = 0; i < t->rows; i++)
		if (present[i])
			w->dense[n++] = value[i];
	if (n > 0)
		ls_chunk_put_doubles(o, w, w->dense, n);
}

static bool
chunk_is_encodable(const struct ls_chunk_codec *c, const struct ls_chunk_table *t)
{
	if (t->rows == 0 || t->rows > c->rows_max || t->columns > c->columns_max ||
		t->stride < t->rows)
		return false;
	for (size_t i = 1; i < t->rows; i++)
		if (t->t_mono_ns[i] < t->t_mono_ns[i - 1])
			return false;
	return true;
}

int
ls_chunk_encode(struct ls_chunk_codec *c, const struct ls_chunk_table *table,
	uint8_t *buf, size_t size, size_t *ret_len)
{
	struct ls_bits_out o = { 0 };
	size_t i, len;

	if (!chunk_is_encodable(c, table))
		return -LS_ERANGE;
	if (size > LS_CHUNK_BODY_MAX_BYTES)
		size = LS_CHUNK_BODY_MAX_BYTES;
	if (size < CHUNK_HEAD_BYTES + CHUNK_SUM_BYTES)
		return -EMSGSIZE;
	buf[0] = CHUNK_VERSION;
	buf[1] = 0;
	ls_bytes_put(buf + 2, table->rows, 2);
	ls_bytes_put(buf + 4, table->columns, 2);
	o.p = buf + CHUNK_HEAD_BYTES;
	o.end = buf + size - CHUNK_SUM_BYTES;
	ls_chunk_put_integers(&o, &c->work, table->t_mono_ns, table->rows);
	for (i = 0; i < table->columns && !o.full; i++)
		chunk_put_column(&o, &c->work, table, i);
	ls_bits_out_end(&o);
	if (o.full)
		return -EMSGSIZE;
	len = (size_t)(o.p - buf);
	ls_bytes_put(o.p, ls_bytes_crc(buf, len), CHUNK_SUM_BYTES);
	*ret_len = len + CHUNK_SUM_BYTES;
	return 0;
}

/* --- reading -------------------------------------------------------------- */

/* Which rows of a column are present, and how many. */
static bool
chunk_get_presence(struct ls_bits_in *in, const struct ls_chunk_table *t, size_t column,
	size_t *ret_count)
{
	bool *now = t->present + column * t->stride;
	size_t i, count = 0;

	if (ls_bits_get(in, 1) == 0) {
		memset(now, true, t->rows * sizeof(*now));
		*ret_count = t->rows;
		return true;
	}
	if (ls_bits_get(in, 1) != 0) {
		if (!ls_chunk_get_flags(in, now, t->rows))
			return false;
	} else if (column == 0) {
		return false;
	} else {
		memcpy(now, now - t->stride, t->rows * sizeof(*now));
	}
	for (i = 0; i < t->rows; i++)
		count += now[i];
	*ret_count = count;
	return true;
}

/* Of a column that is not wanted, which rows are present is, since the next one may say
 * "as before". */
static bool
chunk_get_column(struct ls_bits_in *in, struct ls_chunk_work *w,
	const struct ls_chunk_table *t, size_t column, bool wanted)
{
	double *value = t->value + column * t->stride;
	const bool *present = t->present + column * t->stride;
	size_t i, n;

	if (!chunk_get_presence(in, t, column, &n))
		return false;
	if (!wanted)
		return n == 0 || ls_chunk_skip_doubles(in, w, n);
	if (n == t->rows)
		return ls_chunk_get_doubles(in, w, value, n);
	if (n > 0 && !ls_chunk_get_doubles(in, w, w->dense, n))
		return false;
	n = 0;
	for (i = 0; i < t->rows; i++)
		value[i] = present[i] ? w->dense[n++] : 0;
	return true;
}

static bool
chunk_get_times(struct ls_bits_in *in, const struct ls_chunk_table *t)
{
	if (!ls_chunk_get_integers(in, t->t_mono_ns, t->rows))
		return false;
	for (size_t i = 1; i < t->rows; i++)
		if (t->t_mono_ns[i] < t->t_mono_ns[i - 1])
			return false;
	return true;
}

/* Up to the last column that is wanted; wanted NULL: to the end. */
static bool
chunk_get_table(const struct ls_chunk_table *t, struct ls_chunk_work *w,
	struct ls_bits_in *in, const bool *wanted)
{
	size_t i, end = t->columns;

	while (wanted != NULL && end > 0 && !wanted[end - 1])
		end--;
	if (!chunk_get_times(in, t))
		return false;
	for (i = 0; i < end; i++)
		if (!chunk_get_column(in, w, t, i, wanted == NULL || wanted[i]) ||
			ls_bits_in_over(in))
			return false;
	return wanted == NULL ? ls_bits_in_end(in) : !ls_bits_in_over(in);
}

int
ls_chunk_check(const uint8_t *buf, size_t len, size_t *ret_rows, size_t *ret_columns)
{
	size_t rows, columns;

	if (len > LS_CHUNK_BODY_MAX_BYTES)
		return -LS_ELIMIT;
	if (len > 0 && buf[0] != CHUNK_VERSION)
		return -LS_EVERSION; /* before the sum: it may be another one */
	if (len < CHUNK_HEAD_BYTES + CHUNK_SUM_BYTES)
		return -LS_EPARSE;
	if (ls_bytes_get(buf + len - CHUNK_SUM_BYTES, CHUNK_SUM_BYTES) !=
		ls_bytes_crc(buf, len - CHUNK_SUM_BYTES))
		return -LS_ECORRUPT;
	rows = ls_bytes_get(buf + 2, 2);
	columns = ls_bytes_get(buf + 4, 2);
	if (rows > LS_CHUNK_ROWS_MAX || columns > LS_SERIES_PER_GROUP_MAX)
		return -LS_ELIMIT;
	if (rows == 0 || buf[1] != 0)
		return -LS_EPARSE;
	*ret_rows = rows;
	*ret_columns = columns;
	return 0;
}

int
ls_chunk_decode_some(struct ls_chunk_codec *c, const uint8_t *buf, size_t len,
	const bool *wanted, struct ls_chunk_table *ret_table)
{
	struct ls_bits_in in = { 0 };
	size_t rows, columns;
	int rc = ls_chunk_check(buf, len, &rows, &columns);

	if (rc != 0)
		return rc;
	if (rows > c->rows_max || columns > c->columns_max)
		return -LS_ELIMIT;
	c->table.rows = c->table.stride = rows;
	c->table.columns = columns;
	in.p = buf + CHUNK_HEAD_BYTES;
	in.size = len - CHUNK_SUM_BYTES - CHUNK_HEAD_BYTES;
	if (!chunk_get_table(&c->table, &c->work, &in, wanted))
		return -LS_EPARSE;
	*ret_table = c->table;
	return 0;
}

int
ls_chunk_decode(struct ls_chunk_codec *c, const uint8_t *buf, size_t len,
	struct ls_chunk_table *ret_table)
{
	return ls_chunk_decode_some(c, buf, len, NULL, ret_table);
}
