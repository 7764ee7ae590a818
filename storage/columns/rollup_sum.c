/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/columns/rollup_sum.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/mem.h"
#include "proto/base/table.h"

/* Of a block in its minute's table: at least a quarter of the places are in use. */
#define SUMS_PLACE_BYTES (4 * (sizeof(uint64_t) + sizeof(void *)))

struct sums_key {
	uint32_t layout, host_id;
};

/* Places of the columns of one host and layout: three doubles a column, then counts. */
struct sums_block {
	struct sums_key key;
	struct sums_block *next; /* in the minute */
	size_t columns;
	/* min[columns], max[columns], sum[columns], uint32_t count[columns] */
	double place[];
};

struct sums_minute {
	struct ls_rollup_minute known;
	struct ls_table table; /* of blocks */
	struct sums_block *blocks;
};

struct sums_layout {
	size_t count;
	struct ls_rollup_column *columns;
};

/* One column of one layout, in the order in which rows are taken out; its blocks are
 * those from..to - 1 of the plan. */
struct sums_turn {
	struct ls_rollup_column column;
	size_t index, from, to;
};

struct ls_rollup_sums {
	size_t bytes, most, bytes_max;
	size_t minute_count, layout_count, layout_room;
	struct sums_minute minute[LS_ROLLUP_MINUTES_MAX]; /* by time */
	struct sums_layout *layout;
	struct sums_block *open; /* the block last opened */
	struct ls_rollup_row rows[LS_ROLLUP_ROWS_MAX];
};

struct ls_rollup_sums *
ls_rollup_sums_new(size_t bytes_max)
{
	struct ls_rollup_sums *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->bytes_max = bytes_max;
	return s;
}

static size_t
sums_block_bytes(size_t columns)
{
	return sizeof(struct sums_block) + SUMS_PLACE_BYTES +
		columns * (3 * sizeof(double) + sizeof(uint32_t));
}

static uint32_t *
sums_counts(struct sums_block *b)
{
	return (uint32_t *)(b->place + 3 * b->columns);
}

/* Lets a minute go. */
static void
sums_close(struct ls_rollup_sums *s, struct sums_minute *m)
{
	struct sums_block *b;

	while ((b = m->blocks) != NULL) {
		m->blocks = b->next;
		s->bytes -= sums_block_bytes(b->columns);
		free(b);
	}
	ls_table_fini(&m->table);
	s->open = NULL;
	s->minute_count--;
	memmove(m, m + 1, (size_t)(s->minute + s->minute_count - m) * sizeof(*m));
}

void
ls_rollup_sums_clear(struct ls_rollup_sums *s)
{
	while (s->minute_count > 0)
		sums_close(s, &s->minute[s->minute_count - 1]);
	for (size_t i = 0; i < s->layout_count; i++) {
		s->bytes -= s->layout[i].count * sizeof(s->layout[i].columns[0]);
		free(s->layout[i].columns);
	}
	s->layout_count = 0;
}

void
ls_rollup_sums_free(struct ls_rollup_sums *s)
{
	if (s == NULL)
		return;
	ls_rollup_sums_clear(s);
	free(s->layout);
	free(s);
}

static void
sums_used(struct ls_rollup_sums *s, size_t bytes)
{
	s->bytes += bytes;
	if (s->bytes > s->most)
		s->most = s->bytes;
}

int
ls_rollup_sums_layout(struct ls_rollup_sums *s, const struct ls_rollup_column *columns,
	size_t count, uint32_t *ret_layout)
{
	struct sums_layout *l;
	int rc;

	if (s->layout_count == LS_DICTIONARIES_MAX ||
		s->bytes + count * sizeof(*columns) > s->bytes_max)
		return -LS_ELIMIT;
	rc = ls_mem_grow((void **)&s->layout, s->layout_count, &s->layout_room,
		sizeof(*l));
	if (rc != 0)
		return rc;
	l = &s->layout[s->layout_count];
	l->count = count;
	l->columns = malloc(count > 0 ? count * sizeof(*columns) : 1);
	if (l->columns == NULL)
		return -ENOMEM;
	if (count > 0)
		memcpy(l->columns, columns, count * sizeof(*columns));
	sums_used(s, count * sizeof(*columns));
	*ret_layout = (uint32_t)s->layout_count++;
	return 0;
}

/* --- minutes and blocks --------------------------------------------------- */

/* Where a minute is or would be. */
static size_t
sums_find_minute(const struct ls_rollup_sums *s, int64_t t_us)
{
	size_t i = s->minute_count;

	while (i > 0 && s->minute[i - 1].known.t_us >= t_us)
		i--; /* the newest are asked for most */
	return i;
}

static int
sums_new_block(struct ls_rollup_sums *s, struct sums_minute *m,
	const struct sums_key *key, struct sums_block **ret_block)
{
	size_t columns = s->layout[key->layout].count,
	       bytes = sums_block_bytes(columns), i;
	struct sums_block *b;

	if (s->bytes + bytes > s->bytes_max)
		return -LS_ELIMIT;
	b = calloc(1, bytes - SUMS_PLACE_BYTES);
	if (b == NULL)
		return -ENOMEM;
	b->key = *key;
	b->columns = columns;
	for (i = 0; i < columns; i++) {
		b->place[i] = DBL_MAX;
		b->place[columns + i] = -DBL_MAX;
	}
	if (ls_table_put(&m->table, b) != 0) {
		free(b);
		return -ENOMEM;
	}
	b->next = m->blocks;
	m->blocks = b;
	m->known.blocks++;
	sums_used(s, bytes);
	*ret_block = b;
	return 0;
}

int
ls_rollup_sums_open(struct ls_rollup_sums *s, int64_t minute_us, uint32_t layout,
	uint32_t host_id, int64_t chunk_id, int64_t now_us)
{
	size_t i = sums_find_minute(s, minute_us);
	struct sums_minute *m = &s->minute[i];
	const struct sums_key key = { layout, host_id };
	struct sums_block *b;
	int rc = 0;

	s->open = NULL;
	if (i == s->minute_count || m->known.t_us != minute_us) {
		if (s->minute_count == LS_ROLLUP_MINUTES_MAX)
			return -LS_ELIMIT;
		memmove(m + 1, m, (s->minute_count - i) * sizeof(*m));
		*m = (struct sums_minute){ .known = { .t_us = minute_us,
						   .opened_us = now_us,
						   .first_id = INT64_MAX } };
		ls_table_init(&m->table, sizeof(key));
		s->minute_count++;
	}
	b = ls_table_find(&m->table, &key);
	if (b == NULL)
		rc = sums_new_block(s, m, &key, &b);
	if (rc != 0) {
		if (m->known.blocks == 0)
			sums_close(s, m);
		return rc;
	}
	if (chunk_id != 0 && chunk_id < m->known.first_id)
		m->known.first_id = chunk_id;
	s->open = b;
	return 0;
}

/* --- samples -------------------------------------------------------------- */

struct sums_found {
	double min, max, sum;
	uint32_t count;
};

/* All n present and finite; two at a time, since an addition waits for the one before.
 */
static bool
sums_of_plain(const double *v, size_t n, struct sums_found *ret)
{
	double min0 = v[0], min1 = v[0], max0 = v[0], max1 = v[0], sum0 = 0, sum1 = 0;
	size_t i;

	for (i = 0; i + 2 <= n; i += 2) {
		double a = v[i], b = v[i + 1];

		sum0 += a;
		sum1 += b;
		min0 = a < min0 ? a : min0;
		min1 = b < min1 ? b : min1;
		max0 = a > max0 ? a : max0;
		max1 = b > max1 ? b : max1;
	}
	if (i < n) {
		sum0 += v[i];
		min0 = v[i] < min0 ? v[i] : min0;
		max0 = v[i] > max0 ? v[i] : max0;
	}
	ret->min = min1 < min0 ? min1 : min0;
	ret->max = max1 > max0 ? max1 : max0;
	ret->sum = sum0 + sum1;
	ret->count = (uint32_t)n;
	/* not so with any NaN or infinity; and when it is too great */
	return isfinite(ret->sum);
}

static void
sums_of_some(const double *v, const bool *present, size_t n, struct sums_found *ret)
{
	*ret = (struct sums_found){ DBL_MAX, -DBL_MAX, 0, 0 };
	for (size_t i = 0; i < n; i++) {
		if (!present[i] || !isfinite(v[i]))
			continue;
		ret->min = v[i] < ret->min ? v[i] : ret->min;
		ret->max = v[i] > ret->max ? v[i] : ret->max;
		ret->sum = fmin(fmax(ret->sum + v[i], -DBL_MAX), DBL_MAX);
		ret->count++;
	}
}

size_t
ls_rollup_sums_add(struct ls_rollup_sums *s, const struct ls_chunk_table *table,
	size_t first, size_t count)
{
	struct sums_block *b = s->open;
	const struct sums_layout *l = &s->layout[b->key.layout];
	uint32_t *counts = sums_counts(b);
	size_t c, total = 0;

	LS_ASSERT(table->columns == b->columns && count > 0 &&
		first + count <= table->rows);
	for (c = 0; c < b->columns; c++) {
		const double *v = table->value + c * table->stride + first;
		const bool *present = table->present + c * table->stride + first;
		struct sums_found f;
		double *min = &b->place[c], *max = min + b->columns,
		       *sum = max + b->columns;

		if (l->columns[c].metric_id == 0)
			continue;
		if (memchr(present, false, count) != NULL ||
			!sums_of_plain(v, count, &f))
			sums_of_some(v, present, count, &f);
		*min = f.min < *min ? f.min : *min;
		*max = f.max > *max ? f.max : *max;
		*sum = fmin(fmax(*sum + f.sum, -DBL_MAX), DBL_MAX);
		counts[c] = f.count > UINT32_MAX - counts[c] ? UINT32_MAX
							     : counts[c] + f.count;
		total += f.count;
	}
	return total;
}

/* --- taking out ----------------------------------------------------------- */

bool
ls_rollup_sums_minute(const struct ls_rollup_sums *s, size_t i,
	struct ls_rollup_minute *ret_minute)
{
	if (i >= s->minute_count)
		return false;
	*ret_minute = s->minute[i].known;
	return true;
}

size_t
ls_rollup_sums_bytes(const struct ls_rollup_sums *s)
{
	return s->bytes;
}

size_t
ls_rollup_sums_most(const struct ls_rollup_sums *s)
{
	return s->most;
}

static int
sums_compare_blocks(const void *x, const void *y)
{
	const struct sums_block *a = *(struct sums_block *const *)x,
				*b = *(struct sums_block *const *)y;

	if (a->key.layout != b->key.layout)
		return a->key.layout < b->key.layout ? -1 : 1;
	return a->key.host_id < b->key.host_id ? -1 : a->key.host_id > b->key.host_id;
}

static int
sums_compare_turns(const void *x, const void *y)
{
	const struct sums_turn *a = x, *b = y;

	if (a->column.metric_id != b->column.metric_id)
		return a->column.metric_id < b->column.metric_id ? -1 : 1;
	if (a->column.labels_id != b->column.labels_id)
		return a->column.labels_id < b->column.labels_id ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* Orders rows and merges those of one series: two layouts may hold it. */
static size_t
sums_order(struct ls_rollup_row *rows, size_t n)
{
	size_t i, kept = 1;

	for (i = 1; i < n && ls_rollup_compare(&rows[i - 1], &rows[i]) < 0; i++)
		;
	if (i >= n)
		return n;
	qsort(rows, n, sizeof(*rows), ls_rollup_compare);
	for (i = 1; i < n; i++) {
		if (ls_rollup_compare(&rows[kept - 1], &rows[i]) == 0)
			ls_rollup_merge(&rows[kept - 1], &rows[i]);
		else
			rows[kept++] = rows[i];
	}
	return kept;
}

static int
sums_give(struct ls_rollup_sums *s, uint32_t metric_id, size_t n, ls_rollup_rows_fn *fn,
	void *arg)
{
	if (n == 0)
		return 0;
	n = sums_order(s->rows, n);
	for (size_t i = 0; i < n; i++)
		ls_rollup_tidy(&s->rows[i]);
	return fn(arg, metric_id, s->rows, n);
}

/* Blocks of a minute by layout and host; the columns of their layouts in turn. */
struct sums_plan {
	struct sums_block **block;
	struct sums_turn *turn;
	size_t blocks, turns, room;
};

static void
sums_plan_fini(struct sums_plan *p)
{
	free(p->block);
	free(p->turn);
}

/* Adds the columns of the layout of the blocks from..to - 1. */
static int
sums_plan_layout(struct sums_plan *p, const struct sums_layout *l, size_t from,
	size_t to)
{
	int rc = 0;

	for (size_t i = 0; i < l->count && rc == 0; i++) {
		if (l->columns[i].metric_id == 0)
			continue;
		rc = ls_mem_grow((void **)&p->turn, p->turns, &p->room,
			sizeof(*p->turn));
		if (rc == 0)
			p->turn[p->turns++] =
				(struct sums_turn){ l->columns[i], i, from, to };
	}
	return rc;
}

static int
sums_plan_init(struct sums_plan *p, const struct ls_rollup_sums *s,
	const struct sums_minute *m)
{
	struct sums_block *b;
	size_t from, to;
	int rc = 0;

	p->block = malloc((m->known.blocks + 1) * sizeof(struct sums_block *));
	if (p->block == NULL)
		return -ENOMEM;
	for (b = m->blocks; b != NULL; b = b->next)
		p->block[p->blocks++] = b;
	qsort(p->block, p->blocks, sizeof(struct sums_block *), sums_compare_blocks);
	for (from = 0; from < p->blocks && rc == 0; from = to) {
		uint32_t layout = p->block[from]->key.layout;

		for (to = from; to < p->blocks && p->block[to]->key.layout == layout;)
			to++;
		rc = sums_plan_layout(p, &s->layout[layout], from, to);
	}
	if (p->turns > 0)
		qsort(p->turn, p->turns, sizeof(*p->turn), sums_compare_turns);
	return rc;
}

static int
sums_take_by(struct ls_rollup_sums *s, const struct sums_plan *p, ls_rollup_rows_fn *fn,
	void *arg)
{
	size_t t, i, n = 0;
	int rc = 0;

	for (t = 0; t < p->turns && rc == 0; t++) {
		const struct sums_turn *turn = &p->turn[t];

		for (i = turn->from; i < turn->to && rc == 0; i++) {
			struct sums_block *b = p->block[i];
			const double *at = b->place + turn->index;
			uint32_t count = sums_counts(b)[turn->index];

			if (count == 0)
				continue;
			s->rows[n++] = (struct ls_rollup_row){ turn->column.labels_id,
				b->key.host_id, count, at[0], at[b->columns],
				at[2 * b->columns] };
			if (n < LS_ROLLUP_ROWS_MAX)
				continue;
			rc = sums_give(s, turn->column.metric_id, n, fn, arg);
			n = 0;
		}
		if (rc == 0 &&
			(t + 1 == p->turns ||
				p->turn[t + 1].column.metric_id !=
					turn->column.metric_id)) {
			rc = sums_give(s, turn->column.metric_id, n, fn, arg);
			n = 0;
		}
	}
	return rc;
}

int
ls_rollup_sums_take(struct ls_rollup_sums *s, int64_t minute_us, ls_rollup_rows_fn *fn,
	void *arg)
{
	size_t i = sums_find_minute(s, minute_us);
	struct sums_plan plan = { 0 };
	int rc;

	if (i == s->minute_count || s->minute[i].known.t_us != minute_us)
		return 0;
	rc = sums_plan_init(&plan, s, &s->minute[i]);
	if (rc == 0)
		rc = sums_take_by(s, &plan, fn, arg);
	sums_plan_fini(&plan);
	sums_close(s, &s->minute[i]);
	return rc;
}
