/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/columns/rollup.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "proto/base/bytes.h"
#include "proto/chunk/chunk_column.h"

#define ROLLUP_VERSION 1u
#define ROLLUP_VERSION_SHORT 2u /* of few rows: one sum, short lengths */
#define ROLLUP_BLOCK 1024u /* rows coded together: labels differ in scale */
#define ROLLUP_PLACE_BYTES 8u /* of a column: length, CRC-32 */
#define ROLLUP_TIDY_DECIMALS 9u
#define ROLLUP_EXACT 9007199254740992.0 /* 2^53 */

enum {
	COLUMN_LABELS,
	COLUMN_HOST,
	COLUMN_COUNT,
	COLUMN_MIN,
	COLUMN_MAX,
	COLUMN_SUM,
	COLUMNS
};

#define ROLLUP_HEAD_BYTES (4u + COLUMNS * ROLLUP_PLACE_BYTES + 4u)
#define ROLLUP_SHORT_ROWS 255u /* all columns are summed to read one: 2 kB as a rule */
#define ROLLUP_SHORT_HEAD_BYTES (2u + COLUMNS * 2u + 4u)
/* Doubles take 16 bytes a value at most, integers 12; a block some more for what it is.
 */
#define ROLLUP_COLUMN_MAX \
	(LS_ROLLUP_ROWS_MAX * 16u + LS_ROLLUP_ROWS_MAX / ROLLUP_BLOCK * 64u + 8u)
#define ROLLUP_BODY_MAX (ROLLUP_HEAD_BYTES + COLUMNS * ROLLUP_COLUMN_MAX)

_Static_assert(ROLLUP_BLOCK <= LS_CHUNK_WORK_ROWS, "a block is a column");
_Static_assert(LS_ROLLUP_ROWS_MAX % ROLLUP_BLOCK == 0 && LS_ROLLUP_ROWS_MAX < 1u << 24,
	"head");
_Static_assert(ROLLUP_SHORT_ROWS * 16u + 64u + 8u <= UINT16_MAX &&
		ROLLUP_SHORT_ROWS <= UINT8_MAX,
	"short head");

/* The version and the number of rows, where the columns are, a sum. */
struct rollup_head {
	uint8_t version;
	unsigned count_bytes, len_bytes;
	unsigned place_bytes; /* of a column: the length, and the sum if there is one */
	bool column_sums; /* else the head's sum is that of the columns, too */
	size_t bytes;
};

static const struct rollup_head rollup_long = { ROLLUP_VERSION, 3, 4,
	ROLLUP_PLACE_BYTES, true, ROLLUP_HEAD_BYTES };
static const struct rollup_head rollup_short = { ROLLUP_VERSION_SHORT, 1, 2, 2, false,
	ROLLUP_SHORT_HEAD_BYTES };

struct ls_rollup_codec {
	struct ls_chunk_work work;
	uint64_t words[2][ROLLUP_BLOCK]; /* of a block, in and out */
	double value[2][ROLLUP_BLOCK];
	/* Of the last body that was read. */
	uint32_t id[COLUMN_COUNT + 1][LS_ROLLUP_ROWS_MAX]; /* labels, hosts, counts */
	double number[COLUMNS - COLUMN_MIN][LS_ROLLUP_ROWS_MAX];
	struct ls_rollup_row rows[LS_ROLLUP_ROWS_MAX];
	uint64_t keys; /* how often ids were read; they are those of key */
	size_t key_rows; /* 0: of none */
	size_t key_len[COLUMN_COUNT];
	uint32_t key_sum[COLUMN_COUNT];
	uint8_t key[COLUMN_COUNT][ROLLUP_COLUMN_MAX];
	/* a block coded one way, to see how long it is */
	uint8_t trial[ROLLUP_BLOCK * 32];
	uint8_t body[ROLLUP_BODY_MAX];
};

struct ls_rollup_codec *
ls_rollup_codec_new(void)
{
	/* untouched pages cost nothing */
	return calloc(1, sizeof(struct ls_rollup_codec));
}

void
ls_rollup_codec_free(struct ls_rollup_codec *c)
{
	free(c);
}

/* --- rows ----------------------------------------------------------------- */

static double
rollup_clamp(double v)
{
	return v > DBL_MAX ? DBL_MAX : v < -DBL_MAX ? -DBL_MAX : v;
}

int
ls_rollup_compare(const void *a, const void *b)
{
	const struct ls_rollup_row *x = a, *y = b;

	if (x->labels_id != y->labels_id)
		return x->labels_id < y->labels_id ? -1 : 1;
	return x->host_id < y->host_id ? -1 : x->host_id > y->host_id;
}

void
ls_rollup_merge(struct ls_rollup_row *a, const struct ls_rollup_row *b)
{
	a->min = b->min < a->min ? b->min : a->min;
	a->max = b->max > a->max ? b->max : a->max;
	a->sum = rollup_clamp(a->sum + b->sum);
	a->count = b->count > UINT32_MAX - a->count ? UINT32_MAX : a->count + b->count;
}

void
ls_rollup_tidy(struct ls_rollup_row *row)
{
	static const double power[ROLLUP_TIDY_DECIMALS + 1] = { 1e0, 1e1, 1e2, 1e3, 1e4,
		1e5, 1e6, 1e7, 1e8, 1e9 };
	const double ends[2] = { row->min, row->max };
	double greatest = fmax(fabs(row->min), fabs(row->max)), n = row->count, scaled,
	       tidy;
	unsigned decimals;

	if (!ls_chunk_find_decimals(ends, 2, &decimals) || decimals == 0 ||
		decimals > ROLLUP_TIDY_DECIMALS)
		return;
	scaled = row->sum * power[decimals];
	if (!(fabs(scaled) < ROLLUP_EXACT))
		return;
	tidy = round(scaled) / power[decimals];
	/* n additions of numbers whose sum is below n * greatest: Higham, Accuracy and
	 * Stability, 4.2 */
	if (fabs(tidy - row->sum) <= n * n * greatest * (DBL_EPSILON / 2))
		row->sum = tidy;
}

/* --- writing -------------------------------------------------------------- */

static bool
rollup_is_row(const struct ls_rollup_row *r)
{
	return r->count > 0 && isfinite(r->min) && isfinite(r->max) && isfinite(r->sum);
}

static bool
rollup_is_encodable(const struct ls_rollup_row *rows, size_t count)
{
	if (count == 0 || count > LS_ROLLUP_ROWS_MAX)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!rollup_is_row(&rows[i]) ||
			(i > 0 && ls_rollup_compare(&rows[i - 1], &rows[i]) >= 0))
			return false;
	return true;
}

static void
rollup_put_integers(struct ls_rollup_codec *c, struct ls_bits_out *o, int column,
	const struct ls_rollup_row *rows, size_t n)
{
	uint64_t *v = c->words[0];

	for (size_t i = 0; i < n; i++)
		v[i] = column == COLUMN_LABELS	? rows[i].labels_id
			: column == COLUMN_HOST ? rows[i].host_id
						: rows[i].count;
	ls_chunk_put_integers(o, &c->work, v, n);
}

/* Bits written into trial. */
static size_t
rollup_trial_bits(const struct ls_rollup_codec *c, const struct ls_bits_out *o)
{
	return o->full ? SIZE_MAX : (size_t)(o->p - c->trial) * 8 + o->n;
}

/* The least: as they are, or how far below the greatest; which of the two is shorter is
 * tried. */
static void
rollup_put_min(struct ls_rollup_codec *c, struct ls_bits_out *o, const double *min,
	const double *max, size_t n)
{
	struct ls_bits_out alone = { c->trial, c->trial + sizeof(c->trial), 0, 0,
		false },
			   apart = alone;
	unsigned decimals_min, decimals = 0;
	size_t bits, i;

	ls_chunk_put_doubles(&alone, &c->work, min, n);
	bits = rollup_trial_bits(c, &alone);
	if (ls_chunk_find_decimals(max, n, &decimals) &&
		ls_chunk_find_decimals(min, n, &decimals_min)) {
		decimals = decimals > decimals_min ? decimals : decimals_min;
		if (ls_chunk_to_integers(max, n, decimals, c->words[0]) &&
			ls_chunk_to_integers(min, n, decimals, c->words[1])) {
			for (i = 0; i < n; i++)
				c->words[1][i] = c->words[0][i] - c->words[1][i];
			ls_bits_put(&apart, decimals, 5);
			ls_chunk_put_integers(&apart, &c->work, c->words[1], n);
			if (rollup_trial_bits(c, &apart) < bits) {
				ls_bits_put(o, 1, 1);
				ls_bits_put(o, decimals, 5);
				ls_chunk_put_integers(o, &c->work, c->words[1], n);
				return;
			}
		}
	}
	ls_bits_put(o, 0, 1);
	ls_chunk_put_doubles(o, &c->work, min, n);
}

static void
rollup_put_doubles(struct ls_rollup_codec *c, struct ls_bits_out *o, int column,
	const struct ls_rollup_row *rows, size_t n)
{
	double *v = c->value[0], *max = c->value[1];

	for (size_t i = 0; i < n; i++) {
		v[i] = column == COLUMN_MIN    ? rows[i].min
			: column == COLUMN_MAX ? rows[i].max
					       : rows[i].sum;
		max[i] = rows[i].max;
	}
	if (column == COLUMN_MIN)
		rollup_put_min(c, o, v, max, n);
	else
		ls_chunk_put_doubles(o, &c->work, v, n);
}

/* A column from o->p on. */
static void
rollup_put_column(struct ls_rollup_codec *c, struct ls_bits_out *o, int column,
	const struct ls_rollup_row *rows, size_t count)
{
	size_t at, n;

	for (at = 0; at < count; at += n) {
		n = count - at < ROLLUP_BLOCK ? count - at : ROLLUP_BLOCK;
		if (column <= COLUMN_COUNT)
			rollup_put_integers(c, o, column, rows + at, n);
		else
			rollup_put_doubles(c, o, column, rows + at, n);
	}
	ls_bits_out_end(o);
}

/* Puts the columns behind a head of so many bytes; how long they are, and where they
 * end. */
static void
rollup_put_columns(struct ls_rollup_codec *c, size_t head,
	const struct ls_rollup_row *rows, size_t count, size_t len[COLUMNS],
	struct ls_bits_out *ret_out)
{
	struct ls_bits_out o = { .p = c->body + head,
		.end = c->body + sizeof(c->body) };

	for (int column = 0; column < COLUMNS; column++) {
		const uint8_t *begin = o.p;

		rollup_put_column(c, &o, column, rows, count);
		len[column] = (size_t)(o.p - begin);
	}
	LS_ASSERT(!o.full); /* ROLLUP_COLUMN_MAX */
	*ret_out = o;
}

static uint32_t
rollup_sum(const struct rollup_head *h, const uint8_t *body, size_t len)
{
	uLong sum = crc32_z(0, body, h->bytes - 4);

	return (uint32_t)(h->column_sums
			? sum
			: crc32_z(sum, body + h->bytes, len - h->bytes));
}

static void
rollup_put_head(const struct rollup_head *h, uint8_t *body, size_t body_len,
	size_t count, const size_t len[COLUMNS])
{
	uint8_t *place = body + 1 + h->count_bytes;
	const uint8_t *begin = body + h->bytes;

	body[0] = h->version;
	ls_bytes_put(body + 1, count, h->count_bytes);
	for (int column = 0; column < COLUMNS; column++, place += h->place_bytes) {
		ls_bytes_put(place, len[column], h->len_bytes);
		if (h->column_sums)
			ls_bytes_put(place + 4, crc32_z(0, begin, len[column]), 4);
		begin += len[column];
	}
	ls_bytes_put(place, rollup_sum(h, body, body_len), 4);
}

int
ls_rollup_encode(struct ls_rollup_codec *c, const struct ls_rollup_row *rows,
	size_t count, const uint8_t **ret_body, size_t *ret_len)
{
	const struct rollup_head *h =
		count <= ROLLUP_SHORT_ROWS ? &rollup_short : &rollup_long;
	size_t len[COLUMNS];
	struct ls_bits_out o;

	if (!rollup_is_encodable(rows, count))
		return -LS_ERANGE;
	rollup_put_columns(c, h->bytes, rows, count, len, &o);
	rollup_put_head(h, c->body, (size_t)(o.p - c->body), count, len);
	*ret_body = c->body;
	*ret_len = (size_t)(o.p - c->body);
	return 0;
}

/* --- reading -------------------------------------------------------------- */

struct rollup_column {
	const uint8_t *p;
	size_t len;
	uint32_t sum;
	bool is_checked; /* with the whole body */
};

/* Where the columns are; the head's sum, and that they fill the body. */
static int
rollup_get_head(const uint8_t *body, size_t len, struct rollup_column *column,
	size_t *ret_rows)
{
	const struct rollup_head *h = len > 0 && body[0] == ROLLUP_VERSION_SHORT
		? &rollup_short
		: &rollup_long;
	const uint8_t *place = body + 1 + h->count_bytes;
	size_t at = h->bytes, rows;

	if (len > 0 && body[0] != h->version)
		return -LS_EVERSION;
	if (len < h->bytes)
		return -LS_EPARSE;
	if (rollup_sum(h, body, len) != ls_bytes_get(body + h->bytes - 4, 4))
		return -LS_ECORRUPT;
	rows = ls_bytes_get(body + 1, h->count_bytes);
	if (rows == 0)
		return -LS_EPARSE;
	if (rows > LS_ROLLUP_ROWS_MAX)
		return -LS_ELIMIT;
	for (int i = 0; i < COLUMNS; i++, place += h->place_bytes) {
		column[i].p = body + at;
		column[i].len = ls_bytes_get(place, h->len_bytes);
		column[i].is_checked = !h->column_sums;
		if (h->column_sums)
			column[i].sum = (uint32_t)ls_bytes_get(place + 4, 4);
		if (column[i].len > len - at)
			return -LS_EPARSE;
		at += column[i].len;
	}
	*ret_rows = rows;
	return at == len ? 0 : -LS_EPARSE;
}

/* The stream of a column whose sum is right. */
static int
rollup_get_stream(const struct rollup_column *column, struct ls_bits_in *ret_in)
{
	if (!column->is_checked && crc32_z(0, column->p, column->len) != column->sum)
		return -LS_ECORRUPT;
	*ret_in = (struct ls_bits_in){ .p = column->p, .size = column->len };
	return 0;
}

static bool
rollup_get_integers(struct ls_rollup_codec *c, struct ls_bits_in *in, uint32_t *to,
	size_t n)
{
	uint64_t *v = c->words[0], all = 0;

	if (!ls_chunk_get_integers(in, v, n) || ls_bits_in_over(in))
		return false;
	for (size_t i = 0; i < n; i++) {
		to[i] = (uint32_t)v[i];
		all |= v[i];
	}
	return all <= UINT32_MAX;
}

/* The least that are told by their distance to the greatest. */
static bool
rollup_get_apart(struct ls_rollup_codec *c, struct ls_bits_in *in, const double *max,
	double *v, size_t n)
{
	unsigned decimals = (unsigned)ls_bits_get(in, 5);

	if (!ls_chunk_to_integers(max, n, decimals, c->words[0]) ||
		!ls_chunk_get_integers(in, c->words[1], n))
		return false;
	for (size_t i = 0; i < n; i++)
		c->words[1][i] = c->words[0][i] - c->words[1][i];
	ls_chunk_from_integers(c->words[1], n, decimals, v);
	return true;
}

static bool
rollup_get_doubles(struct ls_rollup_codec *c, struct ls_bits_in *in, int column,
	size_t at, size_t n)
{
	double *v = c->number[column - COLUMN_MIN] + at;
	bool finite = true;

	if (column == COLUMN_MIN && ls_bits_get(in, 1) != 0) {
		if (!rollup_get_apart(c, in, c->number[COLUMN_MAX - COLUMN_MIN] + at, v,
			    n))
			return false;
	} else if (!ls_chunk_get_doubles(in, &c->work, v, n)) {
		return false;
	}
	for (size_t i = 0; i < n; i++)
		finite &= fabs(v[i]) <= DBL_MAX;
	return finite && !ls_bits_in_over(in);
}

static int
rollup_get_column(struct ls_rollup_codec *c, const struct rollup_column *columns,
	int column, size_t count)
{
	struct ls_bits_in in = { 0 };
	size_t at, n;
	int rc = rollup_get_stream(&columns[column], &in);
	bool good = true;

	for (at = 0; at < count && rc == 0 && good; at += n) {
		n = count - at < ROLLUP_BLOCK ? count - at : ROLLUP_BLOCK;
		if (column <= COLUMN_COUNT)
			good = rollup_get_integers(c, &in, c->id[column] + at, n);
		else
			good = rollup_get_doubles(c, &in, column, at, n);
	}
	if (rc != 0)
		return rc;
	return good && ls_bits_in_end(&in) ? 0 : -LS_EPARSE;
}

/* --- ids ------------------------------------------------------------------ */

/* True if the body's ids are, byte for byte, those that were read last. */
static bool
rollup_has_keys(const struct ls_rollup_codec *c, const struct rollup_column *column,
	size_t count)
{
	if (c->key_rows != count)
		return false;
	for (int i = 0; i < COLUMN_COUNT; i++)
		if (column[i].len != c->key_len[i] || column[i].sum != c->key_sum[i] ||
			memcmp(column[i].p, c->key[i], column[i].len) != 0)
			return false;
	return true;
}

/* What no encoder writes: ids not in order. */
static bool
rollup_are_keys(const struct ls_rollup_codec *c, size_t count)
{
	const uint32_t *labels = c->id[COLUMN_LABELS], *host = c->id[COLUMN_HOST];
	bool good = true;

	for (size_t i = 1; i < count; i++)
		good &= labels[i - 1] < labels[i] ||
			(labels[i - 1] == labels[i] && host[i - 1] < host[i]);
	return good;
}

static int
rollup_get_keys(struct ls_rollup_codec *c, const struct rollup_column *column,
	size_t count)
{
	int i, rc;

	if (rollup_has_keys(c, column, count))
		return 0;
	c->key_rows = 0;
	c->keys++;
	rc = rollup_get_column(c, column, COLUMN_LABELS, count);
	if (rc == 0)
		rc = rollup_get_column(c, column, COLUMN_HOST, count);
	if (rc == 0 && !rollup_are_keys(c, count))
		rc = -LS_EPARSE;
	for (i = 0; i < COLUMN_COUNT && rc == 0; i++) {
		if (column[i].len > sizeof(c->key[i]))
			return 0; /* longer than any encoder's: read each time */
		memcpy(c->key[i], column[i].p, column[i].len);
		c->key_len[i] = column[i].len;
		c->key_sum[i] = column[i].sum;
	}
	c->key_rows = rc == 0 ? count : 0;
	return rc;
}

/* --- bodies --------------------------------------------------------------- */

static bool
rollup_are_counts(const uint32_t *n, size_t count)
{
	bool good = true;

	for (size_t i = 0; i < count; i++)
		good &= n[i] > 0;
	return good;
}

int
ls_rollup_decode_columns(struct ls_rollup_codec *c, const uint8_t *body, size_t len,
	unsigned columns, struct ls_rollup_columns *ret_columns)
{
	static const struct {
		unsigned flag;
		int column;
	} order[] = {
		{ LS_ROLLUP_COUNT, COLUMN_COUNT },
		{ LS_ROLLUP_MAX | LS_ROLLUP_MIN, COLUMN_MAX },
		{ LS_ROLLUP_MIN, COLUMN_MIN }, /* stored as MAX - MIN */
		{ LS_ROLLUP_SUM, COLUMN_SUM },
	};
	struct rollup_column column[COLUMNS] = { 0 };
	size_t count = 0, i;
	int rc = rollup_get_head(body, len, column, &count);

	if (rc == 0)
		rc = rollup_get_keys(c, column, count);
	for (i = 0; i < sizeof(order) / sizeof(order[0]) && rc == 0; i++)
		if (columns & order[i].flag)
			rc = rollup_get_column(c, column, order[i].column, count);
	if (rc == 0 && columns & LS_ROLLUP_COUNT &&
		!rollup_are_counts(c->id[COLUMN_COUNT], count))
		rc = -LS_EPARSE;
	if (rc != 0)
		return rc;
	*ret_columns = (struct ls_rollup_columns){ .count = count,
		.labels_id = c->id[COLUMN_LABELS],
		.host_id = c->id[COLUMN_HOST],
		.n = c->id[COLUMN_COUNT],
		.min = c->number[0],
		.max = c->number[1],
		.sum = c->number[2],
		.keys = c->keys };
	return 0;
}

int
ls_rollup_decode(struct ls_rollup_codec *c, const uint8_t *body, size_t len,
	unsigned columns, const struct ls_rollup_row **ret_rows, size_t *ret_count)
{
	struct ls_rollup_columns v;
	int rc = ls_rollup_decode_columns(c, body, len, columns, &v);

	if (rc != 0)
		return rc;
	for (size_t i = 0; i < v.count; i++)
		c->rows[i] = (struct ls_rollup_row){ v.labels_id[i], v.host_id[i],
			columns & LS_ROLLUP_COUNT ? v.n[i] : 0,
			columns & LS_ROLLUP_MIN ? v.min[i] : 0,
			columns & (LS_ROLLUP_MIN | LS_ROLLUP_MAX) ? v.max[i] : 0,
			columns & LS_ROLLUP_SUM ? v.sum[i] : 0 };
	*ret_rows = c->rows;
	*ret_count = v.count;
	return 0;
}
