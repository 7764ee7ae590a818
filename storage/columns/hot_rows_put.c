/* SPDX-License-Identifier: Apache-2.0 */
/* Writing of hot rows. */
#include "config.h"

#include <errno.h>
#include "proto/chunk/chunk_column.h"
#include "storage/columns/hot_columns.h"

#define HOT_BODY_START_BYTES 65536u
#define HOT_BODY_MAX_BYTES (512u * 1024 * 1024) /* beyond 16 escapes an event */

/* --- keys and shapes ------------------------------------------------------ */

/* Names as what they share with the one before, and the rest; workers after them. */
static void
hot_put_keys(const struct ls_hot_codec *c, struct ls_bits_out *o)
{
	uint64_t *flag = hot_word(c, 0), *u = hot_word(c, 1), last = 0;
	const char *before = "";
	size_t i, workers = 0;

	for (i = 0; i < c->key_count; i++) {
		const struct hot_key *k = &hot_keys(c)[i];
		const char *name = hot_names(c) + k->name;
		size_t same = 0, len = strlen(name);

		while (same < len && name[same] == before[same])
			same++;
		ls_bits_put(o, same, 7);
		ls_bits_put(o, len - same, 7);
		for (; same < len; same++)
			ls_bits_put(o, (uint8_t)name[same], 8);
		before = name;
		flag[i] = k->worker_id != 0;
		if (k->worker_id == 0)
			continue;
		u[workers++] = ls_bits_fold((uint64_t)k->worker_id - last - 1);
		last = (uint64_t)k->worker_id;
	}
	ls_column_put(o, flag, c->key_count);
	ls_column_put(o, u, workers);
}

_Static_assert(LS_HOST_NAME_MAX_BYTES <= 128 && LS_HOT_MAX < 32,
	"7 bits of names, 5 of counts");
_Static_assert(LS_METRIC_COUNT <= 65536, "16 bits of metrics");

static void
hot_put_shapes(const struct ls_hot_codec *c, struct ls_bits_out *o)
{
	for (size_t i = 0; i < c->shape_count; i++) {
		const struct hot_shape *s = &hot_shapes(c)[i];

		ls_bits_put(o, s->count, 5);
		for (size_t k = 0; k < s->count; k++)
			ls_bits_put(o, hot_metrics(c)[s->metric + k], 16);
	}
}

/* --- events --------------------------------------------------------------- */

/* Residuals of all columns into word 0, one behind the other; about the bits of times
 * of reading. */
static int
hot_scan(struct ls_hot_codec *c, bool read_by_key, uint64_t *ret_bits)
{
	struct hot_cursor at = hot_cursor_start(read_by_key);
	uint64_t u[HOT_EVENT_COLUMNS] = { 0 }, *word = hot_word(c, 0), bits = 0;
	int rc = hot_past_start(c);

	for (size_t i = 0; i < c->event_count && rc == 0; i++) {
		struct ls_hot_event e = hot_events(c)[i];

		if (!hot_code_event(c, &at, false, &e, u))
			return -LS_ERANGE; /* no table of ours */
		for (size_t k = 0; k < HOT_EVENT_COLUMNS; k++)
			word[k * c->event_count + i] = u[k];
		bits += ls_bits_length(u[HOT_READ]);
	}
	*ret_bits = bits;
	return rc;
}

static int
hot_put_events(struct ls_hot_codec *c, struct ls_bits_out *o)
{
	uint64_t by_key = 0, by_arrival = 0;
	int rc = hot_scan(c, true, &by_key);

	if (rc == 0)
		rc = hot_scan(c, false, &by_arrival);
	if (rc == 0 && by_key < by_arrival)
		rc = hot_scan(c, true, &by_key);
	ls_bits_put(o, by_key < by_arrival, 1);
	for (size_t k = 0; k < HOT_EVENT_COLUMNS; k++)
		ls_column_put(o, hot_word(c, 0) + k * c->event_count, c->event_count);
	return rc;
}

/* --- values --------------------------------------------------------------- */

/* Integers of the values into word 0, and whether each is a first; those that are none
 * go out at once. */
static size_t
hot_put_odd(struct ls_hot_codec *c, struct ls_bits_out *o, size_t n, unsigned decimals)
{
	const uint32_t *place = c->array[HOT_ARRAY_PLACE].data;
	uint64_t *integer = hot_word(c, 0), *odd = hot_word(c, 1);
	bool *first = c->array[HOT_ARRAY_FIRST].data, pending = false;
	size_t i, count = 0;

	for (i = 0; i < n; i++)
		odd[i] = !ls_chunk_to_integer(hot_values(c)[place[i]], decimals,
			&integer[i]);
	ls_column_put(o, odd, n);
	for (i = 0; i < n; i++) {
		if (odd[i]) {
			uint64_t bits;

			memcpy(&bits, &hot_values(c)[place[i]], sizeof(bits));
			ls_bits_put_low(o, bits, 64);
			pending |= first[i];
			continue;
		}
		pending |= first[i];
		integer[count] = integer[i];
		first[count++] = pending;
		pending = false;
	}
	return count;
}

/* Residuals of the integers into word `to`, firsts apart in word 3; about the bits of
 * the others. */
static uint64_t
hot_try(const struct ls_hot_codec *c, size_t n, enum hot_follow follow, unsigned to,
	size_t *ret_firsts)
{
	const uint64_t *integer = hot_word(c, 0);
	uint64_t *u = hot_word(c, to), *u_first = hot_word(c, 3), bits = 0;
	const bool *first = c->array[HOT_ARRAY_FIRST].data;
	struct hot_value_past past = { 0 };
	size_t i, firsts = 0;

	for (i = 0; i < n; i++) {
		uint64_t r =
			ls_bits_fold(integer[i] - hot_guess(&past, follow, first[i]));

		if (first[i]) {
			u_first[firsts++] = r;
		} else {
			u[i - firsts] = r;
			bits += ls_bits_length(r);
		}
		hot_note(&past, first[i], integer[i]);
	}
	*ret_firsts = firsts;
	return bits;
}

static int
hot_put_metric(struct ls_hot_codec *c, struct ls_bits_out *o, unsigned metric)
{
	uint64_t least = UINT64_MAX, bits;
	unsigned follow, best = HOT_LEVEL, decimals;
	size_t n, i, firsts = 0;
	double *dense;
	int rc = hot_places(c, metric, &n);

	if (rc != 0)
		return rc;
	dense = c->array[HOT_ARRAY_WORD + 2].data;
	for (i = 0; i < n; i++)
		dense[i] = hot_values(
			c)[((const uint32_t *)c->array[HOT_ARRAY_PLACE].data)[i]];
	decimals = ls_chunk_decimals(dense, n);
	ls_bits_put(o, metric, 16);
	ls_bits_put(o, decimals, 5);
	n = hot_put_odd(c, o, n, decimals);
	for (follow = 0; follow < HOT_FOLLOWS; follow++) {
		bits = hot_try(c, n, (enum hot_follow)follow, 1, &firsts);
		if (bits < least) {
			least = bits;
			best = follow;
		}
	}
	if (best != HOT_FOLLOWS - 1) /* else it was tried last */
		(void)hot_try(c, n, (enum hot_follow)best, 1, &firsts);
	ls_bits_put(o, best, 2);
	ls_column_put(o, hot_word(c, 3), firsts);
	ls_column_put(o, hot_word(c, 1), n - firsts);
	return 0;
}

static int
hot_put_values(struct ls_hot_codec *c, struct ls_bits_out *o)
{
	bool there[LS_METRIC_COUNT] = { false };
	int rc = hot_sort(c);

	ls_bits_put_number(o, hot_metrics_there(c, there));
	for (unsigned m = 0; m < LS_METRIC_COUNT && rc == 0; m++)
		if (there[m])
			rc = hot_put_metric(c, o, m);
	return rc;
}

/* --- the table ------------------------------------------------------------ */

static int
hot_put(struct ls_hot_codec *c)
{
	uint8_t *p = c->body.data;
	struct ls_bits_out o = ls_body_bits(&c->body, HOT_HEAD_BYTES);
	int rc;

	p[0] = HOT_VERSION;
	p[1] = 0;
	ls_bytes_put(p + 2, c->event_count, 4);
	ls_bytes_put(p + 6, c->key_count, 4);
	ls_bytes_put(p + 10, c->shape_count, 4);
	ls_bytes_put(p + 14, c->value_count, 4);
	hot_put_keys(c, &o);
	hot_put_shapes(c, &o);
	rc = hot_put_events(c, &o);
	if (rc == 0)
		rc = hot_put_values(c, &o);
	if (rc != 0)
		return rc;
	return ls_body_seal(&c->body, &o) ? 0 : -EMSGSIZE;
}

int
ls_hot_rows_encode(struct ls_hot_codec *c, const uint8_t **ret_body, size_t *ret_len)
{
	size_t words = HOT_EVENT_COLUMNS * c->event_count;
	size_t bytes = HOT_BODY_START_BYTES + 4 * c->value_count + 8 * c->event_count +
		c->name_bytes,
	       i;
	int rc = 0;

	if (c->event_count == 0)
		return -LS_ERANGE;
	if (words < c->value_count)
		words = c->value_count;
	for (i = 0; i < 4 && rc == 0; i++)
		rc = hot_reserve(&c->array[HOT_ARRAY_WORD + i], words,
			sizeof(uint64_t));
	if (rc != 0)
		return rc;
	for (rc = -EMSGSIZE; rc == -EMSGSIZE && bytes <= HOT_BODY_MAX_BYTES;
		bytes *= 2) {
		rc = ls_body_reserve(&c->body, bytes);
		if (rc == 0)
			rc = hot_put(c);
	}
	if (rc == 0) {
		*ret_body = c->body.data;
		*ret_len = c->body.len;
	}
	return rc == -EMSGSIZE ? -LS_ELIMIT : rc;
}
