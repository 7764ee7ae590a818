/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of hot rows. */
#include "config.h"

#include <errno.h>
#include "proto/chunk/chunk_column.h"
#include "storage/columns/hot_columns.h"

#define HOT_KEY_BITS 14u /* that a key takes at least */

/* --- keys and shapes ------------------------------------------------------ */

static int
hot_get_names(struct ls_hot_codec *c, struct ls_bits_in *in, size_t keys)
{
	char name[LS_HOST_NAME_MAX_BYTES] = "";
	size_t i, k, before = 0;
	int rc = 0;

	for (i = 0; i < keys && rc == 0; i++) {
		size_t same = ls_bits_get(in, 7), rest = ls_bits_get(in, 7);

		if (same > before || same + rest >= sizeof(name) || ls_bits_in_over(in))
			return -LS_EPARSE;
		for (k = same; k < same + rest; k++) {
			name[k] = (char)ls_bits_get(in, 8);
			if (name[k] == '\0')
				return -LS_EPARSE;
		}
		before = same + rest;
		rc = hot_add_key(c, name, before, 0);
	}
	return rc;
}

static int
hot_get_keys(struct ls_hot_codec *c, struct ls_bits_in *in, size_t keys)
{
	uint64_t *flag = hot_word(c, 0), *u = hot_word(c, 1), last = 0;
	size_t i, workers = 0;
	int rc = hot_get_names(c, in, keys);

	if (rc != 0)
		return rc;
	if (!ls_column_get(in, flag, keys))
		return -LS_EPARSE;
	for (i = 0; i < keys; i++) {
		if (flag[i] > 1)
			return -LS_EPARSE;
		workers += flag[i];
	}
	if (!ls_column_get(in, u, workers))
		return -LS_EPARSE;
	for (i = 0, workers = 0; i < keys; i++) {
		if (flag[i] == 0)
			continue;
		last += ls_bits_unfold(u[workers++]) + 1;
		hot_keys(c)[i].worker_id = (int64_t)last;
		if (last == 0)
			return -LS_EPARSE;
	}
	return 0;
}

static int
hot_get_shapes(struct ls_hot_codec *c, struct ls_bits_in *in, size_t shapes)
{
	uint16_t metric[LS_HOT_MAX];
	size_t i, k, count;
	int rc = 0;

	for (i = 0; i < shapes && rc == 0; i++) {
		count = ls_bits_get(in, 5);
		if (count > LS_HOT_MAX || ls_bits_in_over(in))
			return -LS_EPARSE;
		for (k = 0; k < count; k++) {
			metric[k] = (uint16_t)ls_bits_get(in, 16);
			if (metric[k] >= LS_METRIC_COUNT)
				return -LS_EPARSE;
		}
		rc = hot_add_shape(c, metric, count);
	}
	return rc;
}

/* --- events --------------------------------------------------------------- */

static int
hot_get_events(struct ls_hot_codec *c, struct ls_bits_in *in, size_t events)
{
	struct hot_cursor at = hot_cursor_start(ls_bits_get(in, 1) != 0);
	uint64_t u[HOT_EVENT_COLUMNS], *word = hot_word(c, 0);
	int rc = hot_past_start(c);

	if (rc != 0)
		return rc;
	for (size_t k = 0; k < HOT_EVENT_COLUMNS; k++)
		if (!ls_column_get(in, word + k * events, events))
			return -LS_EPARSE;
	for (size_t i = 0; i < events; i++) {
		struct ls_hot_event *e = &hot_events(c)[i];

		*e = (struct ls_hot_event){ .value = (uint32_t)c->value_count };
		for (size_t k = 0; k < HOT_EVENT_COLUMNS; k++)
			u[k] = word[k * events + i];
		if (!hot_code_event(c, &at, true, e, u) || (i > 0 && e->id <= e[-1].id))
			return -LS_EPARSE;
		c->value_count += hot_shapes(c)[e->shape].count;
	}
	c->event_count = events;
	return at.keys == c->key_count ? 0 : -LS_EPARSE;
}

/* --- values --------------------------------------------------------------- */

/* Takes values that are no integers; `first` and places of the others move together. */
static bool
hot_get_odd(struct ls_hot_codec *c, struct ls_bits_in *in, size_t *n)
{
	uint64_t *odd = hot_word(c, 0);
	uint32_t *place = c->array[HOT_ARRAY_PLACE].data;
	bool *first = c->array[HOT_ARRAY_FIRST].data, pending = false;
	size_t i, count = 0;

	if (!ls_column_get(in, odd, *n))
		return false;
	for (i = 0; i < *n; i++) {
		pending |= first[i];
		if (odd[i] > 1)
			return false;
		if (odd[i]) {
			uint64_t bits = ls_bits_get(in, 64);

			memcpy(&hot_values(c)[place[i]], &bits, sizeof(bits));
			continue;
		}
		place[count] = place[i];
		first[count++] = pending;
		pending = false;
	}
	*n = count;
	return !ls_bits_in_over(in);
}

static int
hot_get_metric(struct ls_hot_codec *c, struct ls_bits_in *in, unsigned *metric)
{
	unsigned m = (unsigned)ls_bits_get(in, 16),
		 decimals = (unsigned)ls_bits_get(in, 5), follow;
	uint64_t *u_first = hot_word(c, 0), *u = hot_word(c, 1);
	struct hot_value_past past = { 0 };
	const bool *first;
	size_t n, i, firsts = 0;
	int rc;

	if (m >= LS_METRIC_COUNT || (*metric != HOT_NONE && m <= *metric) ||
		!ls_chunk_decimals_are_known(decimals))
		return -LS_EPARSE;
	*metric = m;
	rc = hot_places(c, m, &n);
	if (rc != 0)
		return rc;
	if (n == 0 || !hot_get_odd(c, in, &n))
		return -LS_EPARSE;
	first = c->array[HOT_ARRAY_FIRST].data;
	for (i = 0; i < n; i++)
		firsts += first[i];
	follow = (unsigned)ls_bits_get(in, 2);
	if (follow >= HOT_FOLLOWS || !ls_column_get(in, u_first, firsts) ||
		!ls_column_get(in, u, n - firsts))
		return -LS_EPARSE;
	for (i = 0; i < n; i++) {
		uint64_t r = ls_bits_unfold(first[i] ? *u_first++ : *u++);
		uint64_t v = hot_guess(&past, (enum hot_follow)follow, first[i]) + r;

		hot_note(&past, first[i], v);
		hot_values(c)[((const uint32_t *)c->array[HOT_ARRAY_PLACE].data)[i]] =
			ls_chunk_from_integer(v, decimals);
	}
	return 0;
}

static int
hot_get_values(struct ls_hot_codec *c, struct ls_bits_in *in)
{
	bool there[LS_METRIC_COUNT] = { false };
	unsigned metric = HOT_NONE;
	size_t i, count = hot_metrics_there(c, there);
	int rc = hot_sort(c);

	if (ls_bits_get_number(in) != count) /* all of them: no value stays unset */
		return -LS_EPARSE;
	for (i = 0; i < count && rc == 0; i++)
		rc = hot_get_metric(c, in, &metric);
	return rc;
}

/* --- the table ------------------------------------------------------------ */

static int
hot_get(struct ls_hot_codec *c, struct ls_bits_in *in, const uint8_t *head)
{
	size_t events = ls_bytes_get(head + 2, 4), keys = ls_bytes_get(head + 6, 4);
	size_t shapes = ls_bytes_get(head + 10, 4), values = ls_bytes_get(head + 14, 4),
	       i;
	size_t words = values > HOT_EVENT_COLUMNS * events ? values
							   : HOT_EVENT_COLUMNS * events;
	int rc = 0;

	if (events > LS_UNIT_EVENTS_MAX)
		return -LS_ELIMIT;
	if (head[1] != 0 || events == 0 || keys == 0 || keys > events || shapes == 0 ||
		shapes > events || values > events * LS_HOT_MAX)
		return -LS_EPARSE;
	for (i = 0; i < 2 && rc == 0; i++)
		rc = hot_reserve(&c->array[HOT_ARRAY_WORD + i], words,
			sizeof(uint64_t));
	if (rc == 0)
		rc = hot_reserve(&c->array[HOT_ARRAY_EVENTS], events,
			sizeof(struct ls_hot_event));
	if (rc == 0)
		rc = hot_reserve(&c->array[HOT_ARRAY_VALUES], values, sizeof(double));
	if (rc == 0)
		rc = hot_get_keys(c, in, keys);
	if (rc == 0)
		rc = hot_get_shapes(c, in, shapes);
	if (rc == 0)
		rc = hot_get_events(c, in, events);
	if (rc == 0 && c->value_count != values)
		rc = -LS_EPARSE;
	if (rc == 0)
		rc = hot_get_values(c, in);
	if (rc == 0 && !ls_bits_in_end(in))
		rc = -LS_EPARSE;
	return rc;
}

int
ls_hot_rows_decode(struct ls_hot_codec *c, const uint8_t *body, size_t len)
{
	struct ls_bits_in in;
	int rc = ls_body_open(body, len, HOT_VERSION, HOT_HEAD_BYTES, &in);

	ls_hot_rows_reset(c);
	if (rc == 0)
		rc = hot_get(c, &in, body);
	if (rc != 0)
		ls_hot_rows_reset(c);
	return rc;
}
