/* SPDX-License-Identifier: Apache-2.0 */
/* The codec, and reading of step rows; writing is in step_rows_put.c. */
#include "config.h"

#include "storage/columns/step_rows.h"

#include <errno.h>
#include <stdlib.h>
#include "storage/columns/step_columns.h"

struct ls_step_codec *
ls_step_codec_new(void)
{
	struct ls_step_codec *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->residual = c->column_words[0];
	c->best = c->column_words[1];
	return c;
}

void
ls_step_codec_free(struct ls_step_codec *c)
{
	if (c == NULL)
		return;
	ls_body_fini(&c->body);
	free(c);
}

/* --- runs, steps, shapes -------------------------------------------------- */

static bool
step_shape_is_sound(uint64_t shape)
{
	unsigned barriers = (unsigned)(shape >> 16 & 7);

	return barriers <= LS_BARRIERS_MAX && (shape >> 19 & 7) <= LS_PEERS_MAX &&
		shape >> (22 + 2 * barriers) == 0;
}

/* The parts of a record that its shape tells; all else is 0. */
static void
step_from_shape(struct ls_record *r, uint64_t shape)
{
	memset(r, 0, sizeof(*r));
	r->phase_mask = (uint32_t)(shape & 0x7ff);
	r->work_mask = shape >> 11 & 0x1f;
	r->barrier_count = shape >> 16 & 7;
	r->peer_count = shape >> 19 & 7;
	for (unsigned b = 0; b < r->barrier_count; b++)
		r->barrier[b].kind = shape >> (22 + 2 * b) & 3;
}

/* Records of one run: u holds residuals of steps and, LS_STEP_ROWS_RECORDS_MAX further,
 * of shapes. */
static bool
step_get_records(struct ls_step_codec *c, size_t at, size_t n, uint16_t worker,
	uint64_t *u, uint32_t *count)
{
	for (size_t i = at; i < at + n; i++) {
		struct ls_record *r = &c->records[i];
		uint64_t step = 0, shape = 0, columns;

		step_run_record(&c->index, true, worker, i == at, &step, &u[i], &shape,
			&u[LS_STEP_ROWS_RECORDS_MAX + i]);
		if (!step_shape_is_sound(shape))
			return false;
		step_from_shape(r, shape);
		r->step = step;
		c->place[i] =
			(struct step_place){ worker, step_index_step(&c->index, step) };
		columns = step_shape_columns(shape);
		c->columns |= columns;
		for (size_t column = 0; columns != 0; column++, columns >>= 1)
			count[column] += columns & 1;
	}
	return true;
}

/* Everything that is not predicted by columns; counts their values. */
static bool
step_get_runs(struct ls_step_codec *c, struct ls_bits_in *in, size_t runs,
	size_t records, uint32_t *count)
{
	uint64_t *u = c->words, run_u[STEP_RUN_COLUMNS];
	size_t n = LS_STEP_ROWS_RECORDS_MAX, i, k, at = 0;

	for (k = 0; k < STEP_RUN_COLUMNS; k++)
		if (!ls_column_get(in, u + (k + 2) * n, runs))
			return false;
	if (!ls_column_get(in, u, records) || !ls_column_get(in, u + n, records))
		return false;
	step_index_start(&c->index);
	c->columns = 0;
	for (i = 0; i < runs; i++) {
		struct ls_step_run *run = &c->runs[i];
		uint16_t worker;
		bool fresh;

		for (k = 0; k < STEP_RUN_COLUMNS; k++)
			run_u[k] = u[(k + 2) * n + i];
		step_run_begin(&c->index, true, run, run_u, &worker, &fresh);
		if (run->count == 0 || run->count > records - at ||
			(i > 0 && run->id <= c->runs[i - 1].id) ||
			!step_get_records(c, at, run->count, worker, u, count))
			return false;
		step_run_end(&c->index, true, run, run_u, worker, c->records[at].step,
			fresh);
		at += run->count;
	}
	return at == records;
}

/* --- columns -------------------------------------------------------------- */

/* Residuals of all columns, one behind the other. */
static bool
step_get_columns(struct ls_step_codec *c, struct ls_bits_in *in, const uint32_t *count,
	uint64_t **ret_u, bool *ret_option)
{
	uint64_t *u = c->words;

	for (unsigned column = 0; column < STEP_COLUMNS; column++) {
		ret_u[column] = u;
		if (count[column] == 0)
			continue;
		ret_option[column] = ls_bits_get(in, 1) != 0;
		step_predictor_start(&c->predictor[column],
			(enum step_mode)ls_bits_get(in, 2), &c->index);
		if (!ls_column_get(in, u, count[column]))
			return false;
		u += count[column];
	}
	return ls_bits_in_end(in);
}

/* What the values of a record are taken from. */
struct step_reader {
	struct ls_step_codec *c;
	uint64_t *u[STEP_COLUMNS];
	bool option[STEP_COLUMNS];
	struct step_place place;
	bool bad;
};

static inline uint64_t
step_get(struct step_reader *s, unsigned column, uint64_t base)
{
	struct step_predictor *p = &s->c->predictor[column];
	uint64_t v = step_predict(p, base, s->place) + ls_bits_unfold(*s->u[column]++);

	step_learn(p, base, s->place, v);
	return v;
}

/* A time or a span in us; beyond ns is nonsense. */
static inline int64_t
step_get_ns(struct step_reader *s, unsigned column, uint64_t base)
{
	int64_t us = (int64_t)step_get(s, column, base);

	if (us > STEP_US_MAX || us < -STEP_US_MAX) {
		s->bad = true;
		return 0;
	}
	return us * 1000;
}

static inline uint64_t
step_get_span(struct step_reader *s, unsigned column, uint64_t base)
{
	int64_t ns = step_get_ns(s, column, base);

	s->bad |= ns < 0;
	return (uint64_t)ns;
}

static uint64_t
step_get_wait(struct step_reader *s, unsigned column)
{
	uint64_t v = step_get(s, column, 0);

	if (v == 0)
		return UINT64_MAX;
	s->bad |= v - 1 > STEP_US_MAX;
	return (v - 1) * 1000;
}

static double
step_get_work(struct step_reader *s, unsigned column)
{
	uint64_t v = step_get(s, column, 0);
	double work;

	if (s->option[column]) {
		work = (double)(int64_t)v;
		s->bad |= !(work > -STEP_WORK_EXACT && work < STEP_WORK_EXACT);
		return work;
	}
	v = step_work_order(v);
	memcpy(&work, &v, sizeof(work));
	return work;
}

static void
step_get_peers(struct step_reader *s, struct ls_record *r)
{
	for (unsigned p = 0; p < r->peer_count; p++) {
		uint64_t rank = step_get(s, STEP_RANK + p, s->place.worker);

		s->bad |= rank > UINT32_MAX;
		r->peer[p].rank = (uint32_t)rank;
		r->peer[p].recv_wait_ns = step_get_wait(s, STEP_RECV + p);
		r->peer[p].send_wait_ns = step_get_wait(s, STEP_SEND + p);
	}
}

/* Fields in the order in which they are guessed from each other. */
static void
step_get_record(struct step_reader *s, struct ls_record *r)
{
	uint32_t phases = r->phase_mask & ~(1u << LS_PHASE_SYNC_WAIT);

	r->t_begin_ns = step_get_ns(s, STEP_BEGIN,
		step_base_begin(&s->c->index, s->place.worker));
	for (unsigned i = 0; phases != 0; i++, phases >>= 1)
		if (phases & 1)
			r->phase_ns[i] = step_get_span(s, STEP_PHASE + i, 0);
	for (unsigned i = 0; i < r->barrier_count; i++) {
		struct ls_record_barrier *b = &r->barrier[i];

		b->enter_ns = step_get_ns(s, STEP_ENTER + i, step_base_enter(r, i));
		b->exit_ns =
			step_get_ns(s, STEP_EXIT + i, step_us((uint64_t)b->enter_ns));
	}
	if (r->phase_mask >> LS_PHASE_SYNC_WAIT & 1)
		r->phase_ns[LS_PHASE_SYNC_WAIT] =
			step_get_span(s, STEP_SYNC, step_base_sync(r));
	r->duration_ns = step_get_span(s, STEP_DURATION,
		step_base_duration(r, s->option[STEP_DURATION]));
	for (unsigned i = 0; i < LS_WORK_COUNT; i++)
		if (r->work_mask >> i & 1)
			r->work[i] = step_get_work(s, STEP_WORK + i);
	step_get_peers(s, r);
}

static bool
step_get_table(struct ls_step_codec *c, struct ls_bits_in *in, size_t runs,
	size_t records)
{
	uint32_t count[STEP_COLUMNS] = { 0 };
	struct step_reader s = { .c = c };
	size_t i, k, at = 0;

	if (!step_get_runs(c, in, runs, records, count) ||
		!step_get_columns(c, in, count, s.u, s.option))
		return false;
	step_index_again(&c->index);
	for (i = 0; i < runs; i++)
		for (k = 0; k < c->runs[i].count; k++, at++) {
			s.place = c->place[at];
			step_get_record(&s, &c->records[at]);
			step_note_begin(&c->index, s.place.worker, k == 0,
				&c->records[at]);
		}
	return !s.bad;
}

int
ls_step_rows_decode(struct ls_step_codec *c, const uint8_t *body, size_t len,
	struct ls_step_table *ret_table)
{
	struct ls_bits_in in;
	size_t runs, records;
	int rc = ls_body_open(body, len, STEP_VERSION, STEP_HEAD_BYTES, &in);

	if (rc != 0)
		return rc;
	runs = ls_bytes_get(body + 2, 4);
	records = ls_bytes_get(body + 6, 4);
	if (records > LS_STEP_ROWS_RECORDS_MAX)
		return -LS_ELIMIT;
	if (body[1] != 0 || runs == 0 || runs > records ||
		!step_get_table(c, &in, runs, records))
		return -LS_EPARSE;
	*ret_table = (struct ls_step_table){ runs, records, c->runs, c->records };
	return 0;
}
