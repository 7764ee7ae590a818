/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/columns/rollup_sum.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/mem.h"

/* Places of the columns of one host and layout: three doubles a column, then counts. */
struct sums_block {
	uint32_t layout, host_id;
	size_t columns;
	/* min[columns], max[columns], sum[columns], uint32_t count[columns] */
	double place[];
};

struct sums_minute {
	struct ls_rollup_minute known;
	/* by hash, open addressing; slots is a power of two */
	struct sums_block **slot;
	size_t slots;
};

struct sums_layout {
	size_t count;
	struct ls_rollup_column *columns;
};

/* One column of one layout, in the order in which rows are taken out. */
struct sums_turn {
	struct ls_rollup_column column;
	uint32_t layout, index;
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
	return sizeof(struct sums_block) +
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
	size_t i;

	for (i = 0; i < m->slots; i++)
		if (m->slot[i] != NULL) {
			s->bytes -= sums_block_bytes(m->slot[i]->columns);
			free(m->slot[i]);
		}
	s->bytes -= m->slots * sizeof(struct sums_block *);
	free(m->slot);
	s->open = NULL;
	s->minute_count--;
	memmove(m, m + 1, (size_t)(s->minute + s->minute_count - m) * sizeof(*m));
}

void
ls_rollup_sums_clear(struct ls_rollup_sums *s)
{
	size_t i;

	while (s->minute_count > 0)
		sums_close(s, &s->minute[s->minute_count - 1]);
	for (i = 0; i < s->layout_count; i++) {
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

static size_t
sums_hash(uint32_t layout, uint32_t host_id)
{
	uint64_t h = ((uint64_t)layout << 32 | host_id) * 0x9e3779b97f4a7c15u;

	return (size_t)(h >> 20);
}

/* The slot of a block: its own or an empty one. */
static struct sums_block **
sums_slot(struct sums_block **slot, size_t slots, uint32_t layout, uint32_t host_id)
{
	size_t i = sums_hash(layout, host_id) & (slots - 1);

	while (slot[i] != NULL &&
		(slot[i]->layout != layout || slot[i]->host_id != host_id))
		i = (i + 1) & (slots - 1);
	return &slot[i];
}

static int
sums_grow(struct ls_rollup_sums *s, struct sums_minute *m)
{
	size_t slots = m->slots == 0 ? 64 : m->slots * 2, i;
	struct sums_block **slot;

	if (s->bytes + slots * sizeof(struct sums_block *) > s->bytes_max)
		return -LS_ELIMIT;
	slot = calloc(slots, sizeof(struct sums_block *));
	if (slot == NULL)
		return -ENOMEM;
	for (i = 0; i < m->slots; i++)
		if (m->slot[i] != NULL)
			*sums_slot(slot, slots, m->slot[i]->layout,
				m->slot[i]->host_id) = m->slot[i];
	s->bytes -= m->slots * sizeof(struct sums_block *);
	sums_used(s, slots * sizeof(struct sums_block *));
	free(m->slot);
	m->slot = slot;
	m->slots = slots;
	return 0;
}

static int
sums_new_block(struct ls_rollup_sums *s, struct sums_minute *m, uint32_t layout,
	uint32_t host_id, struct sums_block **ret_block)
{
	size_t columns = s->layout[layout].count, bytes = sums_block_bytes(columns), i;
	struct sums_block *b;
	int rc = 2 * (m->known.blocks + 1) > m->slots ? sums_grow(s, m) : 0;

	if (rc != 0)
		return rc;
	if (s->bytes + bytes > s->bytes_max)
		return -LS_ELIMIT;
	b = calloc(1, bytes);
	if (b == NULL)
		return -ENOMEM;
	b->layout = layout;
	b->host_id = host_id;
	b->columns = columns;
	for (i = 0; i < columns; i++) {
		b->place[i] = DBL_MAX;
		b->place[columns + i] = -DBL_MAX;
	}
	sums_used(s, bytes);
	*sums_slot(m->slot, m->slots, layout, host_id) = b;
	m->known.blocks++;
	*ret_block = b;
	return 0;
}

int
ls_rollup_sums_open(struct ls_rollup_sums *s, int64_t minute_us, uint32_t layout,
	uint32_t host_id, int64_t chunk_id, int64_t now_us)
{
	size_t i = sums_find_minute(s, minute_us);
	struct sums_minute *m = &s->minute[i];
	struct sums_block *b = NULL;
	int rc = 0;

	s->open = NULL;
	if (i == s->minute_count || m->known.t_us != minute_us) {
		if (s->minute_count == LS_ROLLUP_MINUTES_MAX)
			return -LS_ELIMIT;
		memmove(m + 1, m, (s->minute_count - i) * sizeof(*m));
		*m = (struct sums_minute){ .known = { .t_us = minute_us,
						   .opened_us = now_us,
						   .first_id = INT64_MAX } };
		s->minute_count++;
	}
	if (m->slots > 0)
		b = *sums_slot(m->slot, m->slots, layout, host_id);
	if (b == NULL)
		rc = sums_new_block(s, m, layout, host_id, &b);
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
	size_t i;

	*ret = (struct sums_found){ DBL_MAX, -DBL_MAX, 0, 0 };
	for (i = 0; i < n; i++) {
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
	const struct sums_layout *l = &s->layout[b->layout];
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

	if (a->layout != b->layout)
		return a->layout < b->layout ? -1 : 1;
	return a->host_id < b->host_id ? -1 : a->host_id > b->host_id;
}

static int
sums_compare_turns(const void *x, const void *y)
{
	const struct sums_turn *a = x, *b = y;

	if (a->column.metric_id != b->column.metric_id)
		return a->column.metric_id < b->column.metric_id ? -1 : 1;
	if (a->column.labels_id != b->column.labels_id)
		return a->column.labels_id < b->column.labels_id ? -1 : 1;
	if (a->layout != b->layout)
		return a->layout < b->layout ? -1 : 1;
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
	size_t i;

	if (n == 0)
		return 0;
	n = sums_order(s->rows, n);
	for (i = 0; i < n; i++)
		ls_rollup_tidy(&s->rows[i]);
	return fn(arg, metric_id, s->rows, n);
}

/* Blocks of a minute by layout and host, and where each layout's begin; the columns of
 * those layouts in turn. */
struct sums_plan {
	struct sums_block **block;
	size_t blocks, turns, layouts;
	size_t *from; /* [layouts + 1] */
	struct sums_turn *turn;
};

static void
sums_plan_fini(struct sums_plan *p)
{
	free(p->block);
	free(p->from);
	free(p->turn);
}

static int
sums_plan_init(struct sums_plan *p, const struct ls_rollup_sums *s,
	const struct sums_minute *m)
{
	size_t i, k, l, columns = 0;

	p->layouts = s->layout_count;
	p->block = malloc((m->known.blocks + 1) * sizeof(struct sums_block *));
	p->from = calloc(p->layouts + 1, sizeof(*p->from));
	if (p->block == NULL || p->from == NULL)
		return -ENOMEM;
	for (i = 0; i < m->slots; i++)
		if (m->slot[i] != NULL)
			p->block[p->blocks++] = m->slot[i];
	qsort(p->block, p->blocks, sizeof(struct sums_block *), sums_compare_blocks);
	for (l = 0, i = 0; l < p->layouts; l++) {
		p->from[l] = i;
		while (i < p->blocks && p->block[i]->layout == l)
			i++;
		columns += i > p->from[l] ? s->layout[l].count : 0;
	}
	p->from[l] = i;
	p->turn = malloc((columns + 1) * sizeof(*p->turn));
	if (p->turn == NULL)
		return -ENOMEM;
	for (l = 0; l < p->layouts; l++)
		for (k = 0; p->from[l] < p->from[l + 1] && k < s->layout[l].count; k++)
			if (s->layout[l].columns[k].metric_id != 0)
				p->turn[p->turns++] =
					(struct sums_turn){ s->layout[l].columns[k],
						(uint32_t)l, (uint32_t)k };
	qsort(p->turn, p->turns, sizeof(*p->turn), sums_compare_turns);
	return 0;
}

static int
sums_take_by(struct ls_rollup_sums *s, const struct sums_plan *p, ls_rollup_rows_fn *fn,
	void *arg)
{
	size_t t, i, n = 0;
	int rc = 0;

	for (t = 0; t < p->turns && rc == 0; t++) {
		const struct sums_turn *turn = &p->turn[t];

		for (i = p->from[turn->layout];
			i < p->from[turn->layout + 1] && rc == 0; i++) {
			struct sums_block *b = p->block[i];
			const double *at = b->place + turn->index;
			uint32_t count = sums_counts(b)[turn->index];

			if (count == 0)
				continue;
			s->rows[n++] = (struct ls_rollup_row){ turn->column.labels_id,
				b->host_id, count, at[0], at[b->columns],
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
