/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_columns - what both directions of step_rows share: columns, their order, what is
 * predicted.
 *
 * A value is predicted as its base (what the fields before it suggest) plus what values
 * of the column lately had beyond their bases: of all records, of this worker, or of
 * this step; or as what this step's values lately were, without a base. The writer
 * tries them, the column says which.
 *
 * Owner:   step_rows only.
 * Units:   whole microseconds, as integers modulo 2^64.
 * Errors:  none.
 * Limits:  LS_STEP_ROWS_RECORDS_MAX.
 * Source:  proto/FORMAT.md, "Step rows".
 */
#ifndef LS_STORAGE_STEP_COLUMNS_H
#define LS_STORAGE_STEP_COLUMNS_H

#include "proto/ring/record.h"
#include "storage/columns/columns.h"
#include "storage/columns/step_rows.h"

#define STEP_VERSION 1u
#define STEP_HEAD_BYTES 10u /* version, zero, runs (4), records (4) */
#define STEP_RECENT 1024u /* steps told apart at a time; a power of two */
/* places for workers: twice LS_STEP_ROWS_RECORDS_MAX; a power of two */
#define STEP_HASH 32768u
#define STEP_US_MAX (INT64_MAX / 1000)
/* 2^53: doubles below it are exact integers */
#define STEP_WORK_EXACT 9007199254740992.0

/* Columns of records, in order: each may use what those before it hold of the same
 * record. */
enum step_column {
	STEP_BEGIN,
	STEP_PHASE, /* sync_wait's comes after the barriers */
	STEP_ENTER = STEP_PHASE + LS_PHASE_COUNT,
	STEP_EXIT = STEP_ENTER + LS_BARRIERS_MAX,
	STEP_SYNC = STEP_EXIT + LS_BARRIERS_MAX,
	STEP_DURATION,
	STEP_WORK,
	STEP_RANK = STEP_WORK + LS_WORK_COUNT,
	STEP_RECV = STEP_RANK + LS_PEERS_MAX,
	STEP_SEND = STEP_RECV + LS_PEERS_MAX,
	STEP_COLUMNS = STEP_SEND + LS_PEERS_MAX
};

enum step_mode {
	STEP_BY_COLUMN,
	STEP_BY_WORKER,
	STEP_BY_STEP,
	STEP_BY_TIME,
	STEP_MODES
};

/* What is known of a column so far. */
struct step_predictor {
	enum step_mode mode;
	bool any;
	uint64_t column; /* mean of value - base */
	uint64_t value[LS_STEP_ROWS_RECORDS_MAX]; /* of each worker or step */
	/* values behind that, up to a few; 0: none */
	uint8_t count[LS_STEP_ROWS_RECORDS_MAX];
};

/* Where a record belongs: both from 0, in order of appearance. */
struct step_place {
	uint16_t worker, step;
};

/* What is known of a worker from its runs so far. */
struct step_worker {
	int64_t id, uncertainty_ns;
	uint64_t index; /* what its next record should have */
	uint64_t step, stride, shape;
	uint64_t end_us; /* of its last record, if has_end */
	uint16_t next; /* the worker whose run followed its last one */
	/* has_end: it has had a record; once for steps, once for times */
	bool has_next, has_end;
};

/* Workers and steps as they are met, and the last run: both directions go through them
 * alike. */
struct step_index {
	struct step_worker worker[LS_STEP_ROWS_RECORDS_MAX];
	uint16_t hash[STEP_HASH]; /* worker + 1; 0: free */
	/* from here on, empty at the start */
	size_t worker_count, step_count;
	uint64_t recent[STEP_RECENT];
	uint16_t recent_step[STEP_RECENT];
	bool recent_known[STEP_RECENT];
	struct ls_step_run run; /* the last one; zero before the first */
	uint64_t id_stride, run_step, shape;
	uint64_t run_offset; /* first index less first step */
	uint64_t run_begin_us;
	uint16_t run_worker;
};

/* One piece of memory: untouched pages cost nothing, and of all columns, most tables
 * have a dozen. */
struct ls_step_codec {
	struct step_index index;
	struct step_place place[LS_STEP_ROWS_RECORDS_MAX]; /* of each record */
	uint64_t columns; /* bit c set: a record has a value in column c */
	/* residuals of runs and columns; writing: shapes, then those of runs */
	uint64_t words[(STEP_COLUMNS + 2) * LS_STEP_ROWS_RECORDS_MAX];
	struct step_predictor predictor[STEP_COLUMNS]; /* writing: only the first */
	/* Writing. */
	uint64_t column_words[2][LS_STEP_ROWS_RECORDS_MAX];
	uint64_t *residual, *best; /* of one column: these two, in turn */
	uint64_t value[LS_STEP_ROWS_RECORDS_MAX]; /* of one column */
	uint64_t base[LS_STEP_ROWS_RECORDS_MAX]; /* likewise */
	uint64_t begin_base[LS_STEP_ROWS_RECORDS_MAX]; /* of each record */
	/* where the values of a column belong */
	struct step_place at[LS_STEP_ROWS_RECORDS_MAX];
	struct ls_body body;
	/* Of the last decoding. */
	struct ls_step_run runs[LS_STEP_ROWS_RECORDS_MAX];
	struct ls_record records[LS_STEP_ROWS_RECORDS_MAX];
};

static inline uint64_t
step_half(uint64_t from, uint64_t to, unsigned shift)
{
	return from + (uint64_t)((int64_t)(to - from) >> shift);
}

static inline size_t
step_at(const struct step_predictor *p, struct step_place place)
{
	return p->mode == STEP_BY_WORKER ? place.worker : place.step;
}

static inline uint64_t
step_predict(const struct step_predictor *p, uint64_t base, struct step_place place)
{
	size_t at = step_at(p, place);

	if (p->mode == STEP_BY_COLUMN || p->count[at] == 0)
		return base + p->column;
	return p->mode == STEP_BY_TIME ? p->value[at] : base + p->value[at];
}

static inline void
step_learn(struct step_predictor *p, uint64_t base, struct step_place place,
	uint64_t value)
{
	static const uint8_t shift[] = { 0, 1, 2, 2, 3 };
	size_t at = step_at(p, place), n;

	p->column = p->any ? step_half(p->column, value - base, 4) : value - base;
	p->any = true;
	if (p->mode == STEP_BY_COLUMN)
		return;
	n = p->count[at];
	if (p->mode != STEP_BY_TIME)
		value -= base;
	p->value[at] = n == 0 ? value : step_half(p->value[at], value, shift[n]);
	if (n < (p->mode == STEP_BY_WORKER ? 2 : sizeof(shift) - 1))
		p->count[at]++;
}

/* Forgets what is known; of so many workers and steps. */
static inline void
step_predictor_start(struct step_predictor *p, enum step_mode mode,
	const struct step_index *index)
{
	p->mode = mode;
	p->any = false;
	p->column = 0;
	if (mode != STEP_BY_COLUMN)
		memset(p->count, 0,
			mode == STEP_BY_WORKER ? index->worker_count
					       : index->step_count);
}

/* --- bases ---------------------------------------------------------------- */

static inline uint64_t
step_us(uint64_t ns)
{
	return (uint64_t)((int64_t)ns / 1000);
}

/* A worker enters its first barrier when the phases before it are over; the next one
 * after the last. */
static inline uint64_t
step_base_enter(const struct ls_record *r, unsigned barrier)
{
	uint64_t ns = (uint64_t)r->t_begin_ns;
	unsigned p;

	if (barrier > 0)
		return step_us((uint64_t)r->barrier[barrier - 1].exit_ns);
	for (p = 0; p < LS_PHASE_SYNC_WAIT; p++)
		ns += r->phase_ns[p];
	return step_us(ns);
}

static inline uint64_t
step_base_sync(const struct ls_record *r)
{
	uint64_t ns = 0;
	unsigned b;

	for (b = 0; b < r->barrier_count; b++)
		ns += (uint64_t)r->barrier[b].exit_ns -
			(uint64_t)r->barrier[b].enter_ns;
	return step_us(ns);
}

/* The phases are the step; or it ends with its last barrier. */
static inline uint64_t
step_base_duration(const struct ls_record *r, bool barriers)
{
	uint64_t ns = 0;
	unsigned p;

	if (barriers && r->barrier_count > 0)
		return step_us((uint64_t)r->barrier[r->barrier_count - 1].exit_ns -
			(uint64_t)r->t_begin_ns);
	for (p = 0; p < LS_PHASE_COUNT; p++)
		ns += r->phase_ns[p];
	return step_us(ns);
}

/* Bits of a double as an integer that grows with the value. Its own inverse. */
static inline uint64_t
step_work_order(uint64_t bits)
{
	return bits ^ (0 - (bits >> 63)) >> 1;
}

/* --- what a record has ---------------------------------------------------- */

/* phase_mask 11 bits, work_mask 5, barriers 3, peers 3, kinds of barriers 2 each. */
#define STEP_SHAPE_BITS 30u

static inline uint64_t
step_shape(const struct ls_record *r)
{
	uint64_t shape = r->phase_mask | (uint64_t)r->work_mask << 11 |
		(uint64_t)r->barrier_count << 16 | (uint64_t)r->peer_count << 19;
	unsigned b;

	for (b = 0; b < r->barrier_count; b++)
		shape |= (uint64_t)r->barrier[b].kind << (22 + 2 * b);
	return shape;
}

/* Bit c set: a record of this shape has a value in column c. */
static inline uint64_t
step_shape_columns(uint64_t shape)
{
	uint64_t phases = shape & 0x7ff, sync = phases >> LS_PHASE_SYNC_WAIT & 1;
	uint64_t barriers = (1u << (shape >> 16 & 7)) - 1,
		 peers = (1u << (shape >> 19 & 7)) - 1;

	phases &= ~(1ull << LS_PHASE_SYNC_WAIT);
	return 1ull << STEP_BEGIN | phases << STEP_PHASE | barriers << STEP_ENTER |
		barriers << STEP_EXIT | sync << STEP_SYNC | 1ull << STEP_DURATION |
		(shape >> 11 & 0x1f) << STEP_WORK | peers << STEP_RANK |
		peers << STEP_RECV | peers << STEP_SEND;
}

_Static_assert(LS_PHASE_COUNT == 11 && LS_WORK_COUNT == 5, "bits of a shape");
_Static_assert(LS_BARRIERS_MAX == 4 && LS_BARRIER_COUNT == 4 && LS_PEERS_MAX == 4,
	"likewise");
_Static_assert(STEP_COLUMNS <= 64, "a bit a column");
_Static_assert(LS_STEP_ROWS_RECORDS_MAX <= STEP_HASH / 2,
	"half of the places are free");

/* --- runs ----------------------------------------------------------------- */

/* Residuals of one run. */
enum step_run_column {
	STEP_RUN_WORKER,
	STEP_RUN_ID,
	STEP_RUN_TIME,
	STEP_RUN_COUNT,
	STEP_RUN_UNCERTAINTY,
	STEP_RUN_INDEX,
	STEP_RUN_COLUMNS
};

/* Empties the index. */
void step_index_start(struct step_index *x);

/* Runs were gone through; records come now. */
void step_index_again(struct step_index *x);

/* Begins a run: all of it but the first index; *ret_worker is its worker. */
void step_run_begin(struct step_index *x, bool reading, struct ls_step_run *run,
	uint64_t *u, uint16_t *ret_worker, bool *ret_fresh);

/* The step and shape of its next record. */
void step_run_record(struct step_index *x, bool reading, uint16_t worker, bool first,
	uint64_t *step, uint64_t *u_step, uint64_t *shape, uint64_t *u_shape);

/* Ends it: the first index. */
void step_run_end(struct step_index *x, bool reading, struct ls_step_run *run,
	uint64_t *u, uint16_t worker, uint64_t first_step, bool fresh);

/* The number of a step. */
uint16_t step_index_step(struct step_index *x, uint64_t step);

/* When a record of the worker should begin; and noting one that is known. */
static inline uint64_t
step_base_begin(const struct step_index *x, uint16_t worker)
{
	const struct step_worker *w = &x->worker[worker];

	return w->has_end ? w->end_us : x->run_begin_us;
}

static inline void
step_note_begin(struct step_index *x, uint16_t worker, bool first,
	const struct ls_record *r)
{
	struct step_worker *w = &x->worker[worker];

	w->has_end = true;
	w->end_us = step_us((uint64_t)r->t_begin_ns + r->duration_ns);
	if (first)
		x->run_begin_us = step_us((uint64_t)r->t_begin_ns);
}

#endif
