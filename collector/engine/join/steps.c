/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/join/steps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/mem.h"

void
ls_steps_fini(struct ls_steps *s)
{
	LS_EACH (struct ls_row, row, s->rows, s->count)
		free(row->cells);
	free(s->rows);
	free(s->spare.cells);
	memset(s, 0, sizeof(*s));
}

size_t
ls_steps_capacity(size_t n)
{
	size_t rows = n == 0 ? LS_OPEN_STEPS_MAX : LS_OPEN_CELLS_MAX / n;

	return rows > LS_OPEN_STEPS_MAX	   ? LS_OPEN_STEPS_MAX
		: rows < LS_OPEN_STEPS_MIN ? LS_OPEN_STEPS_MIN
					   : rows;
}

/* Position of the row of `step`, or where it belongs: almost always the newest, or near it. */
static size_t
steps_find(const struct ls_steps *s, uint64_t step)
{
	size_t at = s->count;

	while (at > 0 && s->rows[at - 1].step >= step)
		at--;
	return at;
}

/* Room for n cells. Those of workers that do not report are never written to: then they take no memory
 * where the allocator has zeroed pages. */
static int
steps_widen(struct ls_steps *s, struct ls_row *row, size_t n)
{
	struct ls_cell *cells;

	if (row->cell_count >= n)
		return 0;
	cells = calloc(n, sizeof(*cells));
	if (cells == NULL)
		return -ENOMEM;
	if (row->cell_count > 0)
		memcpy(cells, row->cells, row->cell_count * sizeof(*cells));
	free(row->cells);
	s->held += n - row->cell_count;
	row->cells = cells;
	row->cell_count = n;
	return 0;
}

static int
steps_insert(struct ls_steps *s, size_t at, uint64_t step, size_t n, int64_t now_us)
{
	struct ls_row row = { .step = step,
		.first_seen_us = now_us,
		.begin_us = INT64_MAX,
		.end_us = INT64_MIN };

	if (s->count >= ls_steps_capacity(n))
		return -LS_ELIMIT;
	if (ls_mem_grow((void **)&s->rows, s->count, &s->capacity, sizeof(*s->rows)) !=
		0)
		return -ENOMEM;
	if (s->spare.cell_count == n) {
		row.cells = s->spare.cells;
		row.cell_count = n;
		s->held += n;
		s->spare = (struct ls_row){ 0 };
	}
	if (steps_widen(s, &row, n) != 0)
		return -ENOMEM;
	memmove(&s->rows[at + 1], &s->rows[at], (s->count - at) * sizeof(*s->rows));
	s->rows[at] = row;
	s->count++;
	s->held += LS_STEPS_ROW_CELLS;
	return 0;
}

static float
steps_work_of(const struct ls_record *r)
{
	static const enum ls_work order[] = { LS_WORK_TOKENS, LS_WORK_SUM_SQ_LEN,
		LS_WORK_BATCH };

	LS_EACH (const enum ls_work, w, order, sizeof(order) / sizeof(order[0]))
		if ((r->work_mask & 1u << *w) != 0)
			return (float)r->work[*w];
	return NAN;
}

/* How far the greatest load of its experts (or parts of a table) is above their mean.
 */
static float
steps_load_of(const struct ls_record *r)
{
	static const unsigned both =
		1u << LS_WORK_EXPERT_LOAD_MAX | 1u << LS_WORK_EXPERT_LOAD_MEAN;

	if ((r->work_mask & both) != both || !(r->work[LS_WORK_EXPERT_LOAD_MEAN] > 0))
		return NAN;
	return (float)(r->work[LS_WORK_EXPERT_LOAD_MAX] /
		r->work[LS_WORK_EXPERT_LOAD_MEAN]);
}

/* Time in barriers: the barriers' own, else the phase sync_wait. NaN: neither was marked. */
static double
steps_wait_of(const struct ls_record *r)
{
	double wait = 0;

	LS_EACH (const struct ls_record_barrier, b, r->barrier, r->barrier_count)
		wait += (double)(b->exit_ns - b->enter_ns) * 1e-9;
	if (r->barrier_count > 0)
		return wait;
	return (r->phase_mask & 1u << LS_PHASE_SYNC_WAIT) == 0
		? NAN
		: (double)r->phase_ns[LS_PHASE_SYNC_WAIT] * 1e-9;
}

/* Microseconds from nanoseconds, rounded to nearest: live and replay round in the same
 * way. */
static int64_t
steps_us(int64_t ns)
{
	return ns >= 0 ? (ns + 500) / 1000 : -((-ns + 500) / 1000);
}

/* To whom it waited longest to send. */
static void
steps_fill_send(struct ls_cell *c, const struct ls_record *r)
{
	c->send_s = NAN;
	LS_EACH (const struct ls_record_peer, p, r->peer, r->peer_count) {
		float send_s = (float)((double)p->send_wait_ns * 1e-9);

		/* true of the first one: nothing is less than NaN */
		if (p->send_wait_ns != UINT64_MAX && !(send_s <= c->send_s)) {
			c->send_s = send_s;
			c->send_rank = p->rank;
		}
	}
}

static void
steps_fill(struct ls_row *row, struct ls_cell *c, const struct ls_record *r)
{
	int64_t begin_us = steps_us(r->t_begin_ns);
	int64_t end_us = begin_us + steps_us((int64_t)r->duration_ns);
	double wait_s = steps_wait_of(r);

	if (begin_us < row->begin_us)
		row->begin_us = begin_us;
	if (end_us > row->end_us)
		row->end_us = end_us;
	*c = (struct ls_cell){ .present = true };
	c->begin_us = begin_us;
	c->duration_s = (float)((double)(end_us - begin_us) * 1e-6);
	c->has_wait = !isnan(wait_s);
	c->wait_s = c->has_wait ? (float)wait_s : 0;
	c->own_s = c->duration_s - c->wait_s;
	c->has_enter = r->barrier_count > 0;
	if (c->has_enter) {
		const struct ls_record_barrier *last =
			&r->barrier[r->barrier_count - 1];

		c->enter_us = steps_us(r->barrier[0].enter_ns);
		c->exit_us = steps_us(last->exit_ns);
		c->has_second = r->barrier_count > 1;
		c->first_s = (float)((double)(steps_us(r->barrier[0].exit_ns) -
					     c->enter_us) *
			1e-6);
		c->last_s =
			(float)((double)(c->exit_us - steps_us(last->enter_ns)) * 1e-6);
	}
	steps_fill_send(c, r);
	c->work = steps_work_of(r);
	c->load = steps_load_of(r);
	c->late_s = c->blame_s = NAN;
	for (unsigned p = 0; p < LS_PHASE_COUNT; p++) /* checked: it fits */
		c->phase_s[p] = (r->phase_mask & 1u << p) != 0
			? (float)((double)(int64_t)r->phase_ns[p] * 1e-9)
			: NAN;
}

int64_t
ls_steps_end_us(const struct ls_record *r)
{
	return steps_us(r->t_begin_ns) + steps_us((int64_t)r->duration_ns);
}

/* Adds what one more record says; a phase that one of them marks counts as 0 in the
 * others. */
static void
steps_add(struct ls_cell *to, const struct ls_cell *c)
{
	to->steps += c->steps;
	to->duration_s += c->duration_s;
	to->own_s += c->own_s;
	to->wait_s += c->wait_s;
	to->work += c->work; /* NaN of one is NaN of all */
	to->load += c->load;
	to->has_wait |= c->has_wait;
	for (unsigned p = 0; p < LS_PHASE_COUNT; p++)
		to->phase_s[p] = isnan(to->phase_s[p])
			? c->phase_s[p]
			: to->phase_s[p] + (isnan(c->phase_s[p]) ? 0 : c->phase_s[p]);
}

void
ls_steps_means(struct ls_cell *c)
{
	float n = (float)c->steps;

	c->duration_s /= n;
	c->own_s /= n;
	c->wait_s /= n;
	c->work /= n;
	c->load /= n;
	for (unsigned p = 0; p < LS_PHASE_COUNT; p++)
		c->phase_s[p] /= n;
}

int
ls_steps_put(struct ls_steps *s, size_t slot, size_t n, uint64_t number,
	const struct ls_record *r, int64_t now_us)
{
	struct ls_cell more, *c;
	struct ls_row *row;
	size_t at = steps_find(s, number);
	int rc = 0;

	LS_ASSERT(slot < n);
	if (number < s->next)
		return -LS_ESTALE;
	if (at == s->count || s->rows[at].step != number)
		rc = steps_insert(s, at, number, n, now_us);
	if (rc == 0)
		rc = steps_widen(s, &s->rows[at], n);
	if (rc != 0)
		return rc;
	row = &s->rows[at];
	if (row->cells[slot].present && !ls_window_is(number))
		return -LS_EDUPLICATE;
	c = row->cells[slot].present ? &more : &row->cells[slot];
	steps_fill(row, c, r);
	if (ls_window_is(number)) {
		c->has_enter = c->has_second = false;
		c->own_step = r->step;
		c->steps = 1;
		c->expected_s = NAN;
	}
	if (c == &more)
		steps_add(&row->cells[slot], &more);
	else
		row->reported++;
	return 0;
}

struct ls_row *
ls_steps_oldest(struct ls_steps *s)
{
	return s->count == 0 ? NULL : &s->rows[0];
}

bool
ls_steps_mostly(const struct ls_row *row, bool (*are)(const struct ls_cell *c))
{
	size_t in = 0, present = 0;

	LS_CELLS (row, c) {
		present++;
		in += are(c);
	}
	return 2 * in > present;
}

bool
ls_steps_overdue(int64_t since_us, double median_step_s, int64_t now_us)
{
	/* a NaN is not taken */
	return now_us - since_us >=
		(int64_t)fmax(LS_STEPS_WAIT_US, 3e6 * median_step_s);
}

/* Takes a row out of the open ones. */
static struct ls_row
steps_out(struct ls_steps *s, size_t at)
{
	struct ls_row row;

	LS_ASSERT(at < s->count);
	row = s->rows[at];
	s->count--;
	memmove(&s->rows[at], &s->rows[at + 1],
		(s->count - at) * sizeof(*s->rows)); /* almost always few */
	return row;
}

void
ls_steps_drop(struct ls_steps *s, size_t at)
{
	struct ls_row row = steps_out(s, at);

	ls_steps_give_back(s, &row);
}

void
ls_steps_take_oldest(struct ls_steps *s, struct ls_row *ret_row)
{
	*ret_row = steps_out(s, 0);
	s->next = ret_row->step + 1;
}

void
ls_steps_give_back(struct ls_steps *s, struct ls_row *row)
{
	LS_CELLS (row, c)
		c->present = false;
	s->held -= LS_STEPS_ROW_CELLS + row->cell_count;
	free(s->spare.cells);
	s->spare = *row;
	*row = (struct ls_row){ 0 };
}
