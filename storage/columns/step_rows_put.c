/* SPDX-License-Identifier: Apache-2.0 */
/* Writing of step rows: each column is gathered, its predictions tried, the best one's
 * residuals written. */
#include "config.h"

#include <errno.h>
#include "storage/columns/step_columns.h"

#define STEP_BODY_START_BYTES 65536u
/* beyond what 38 columns of escapes can take */
#define STEP_BODY_MAX_BYTES (256u * 1024 * 1024)

/* Bit m set: prediction m is tried. */
#define STEP_TRY_LEVEL (1u << STEP_BY_COLUMN | 1u << STEP_BY_WORKER)
#define STEP_TRY_STEP (STEP_TRY_LEVEL | 1u << STEP_BY_STEP)
#define STEP_TRY_TIME (STEP_TRY_LEVEL | 1u << STEP_BY_TIME)

/* --- one column ----------------------------------------------------------- */

static bool
step_put_ns(uint64_t ns, uint64_t *ret_us)
{
	*ret_us = step_us(ns);
	return *ret_us * 1000 == ns;
}

/* A duration, or UINT64_MAX: 0 */
static bool
step_put_wait(uint64_t ns, uint64_t *ret)
{
	if (ns == UINT64_MAX) {
		*ret = 0;
		return true;
	}
	if (ns > INT64_MAX || !step_put_ns(ns, ret))
		return false;
	*ret += 1;
	return true;
}

static bool
step_put_span(uint64_t ns, uint64_t *ret_us)
{
	return ns <= INT64_MAX && step_put_ns(ns, ret_us);
}

/* The value of a record in a column that it has; false: not of whole microseconds. */
static bool
step_field(const struct ls_record *r, unsigned column, uint64_t *ret)
{
	if (column == STEP_BEGIN)
		return step_put_ns((uint64_t)r->t_begin_ns, ret);
	if (column < STEP_ENTER)
		return step_put_span(r->phase_ns[column - STEP_PHASE], ret);
	if (column < STEP_EXIT)
		return step_put_ns((uint64_t)r->barrier[column - STEP_ENTER].enter_ns,
			ret);
	if (column < STEP_SYNC)
		return step_put_ns((uint64_t)r->barrier[column - STEP_EXIT].exit_ns,
			ret);
	if (column == STEP_SYNC)
		return step_put_span(r->phase_ns[LS_PHASE_SYNC_WAIT], ret);
	if (column == STEP_DURATION)
		return step_put_span(r->duration_ns, ret);
	if (column < STEP_RANK) {
		memcpy(ret, &r->work[column - STEP_WORK], sizeof(*ret));
		return true;
	}
	if (column < STEP_RECV) {
		*ret = r->peer[column - STEP_RANK].rank;
		return true;
	}
	if (column < STEP_SEND)
		return step_put_wait(r->peer[column - STEP_RECV].recv_wait_ns, ret);
	return step_put_wait(r->peer[column - STEP_SEND].send_wait_ns, ret);
}

static uint64_t
step_base(const struct ls_record *r, unsigned column, bool option,
	struct step_place place)
{
	if (column >= STEP_ENTER && column < STEP_EXIT)
		return step_base_enter(r, column - STEP_ENTER);
	if (column >= STEP_EXIT && column < STEP_SYNC)
		return step_us((uint64_t)r->barrier[column - STEP_EXIT].enter_ns);
	if (column == STEP_SYNC)
		return step_base_sync(r);
	if (column == STEP_DURATION)
		return step_base_duration(r, option);
	if (column >= STEP_RANK && column < STEP_RECV)
		return place.worker;
	return 0;
}

static unsigned
step_tries(unsigned column)
{
	if (column == STEP_BEGIN)
		return STEP_TRY_STEP | STEP_TRY_TIME;
	if (column >= STEP_EXIT && column < STEP_SYNC)
		return STEP_TRY_TIME;
	return column < STEP_WORK ? STEP_TRY_STEP : STEP_TRY_LEVEL;
}

/* Fills c->residual; about their bits. */
static uint64_t
step_try(struct ls_step_codec *c, size_t n, enum step_mode mode)
{
	struct step_predictor *p = &c->predictor[0];
	uint64_t bits = 0;

	step_predictor_start(p, mode, &c->index);
	for (size_t i = 0; i < n; i++) {
		uint64_t v = c->value[i], base = c->base[i];
		uint64_t u = ls_bits_fold(v - step_predict(p, base, c->at[i]));

		c->residual[i] = u;
		bits += ls_bits_length(u);
		step_learn(p, base, c->at[i], v);
	}
	return bits;
}

/* The best residuals into c->best, if better than `least`, which is brought down. */
static void
step_choose(struct ls_step_codec *c, size_t n, unsigned tries, uint64_t *least,
	enum step_mode *ret_mode)
{
	for (unsigned mode = 0; mode < STEP_MODES; mode++) {
		uint64_t bits, *t;

		if ((tries >> mode & 1) == 0)
			continue;
		bits = step_try(c, n, (enum step_mode)mode);
		if (bits >= *least)
			continue;
		*least = bits;
		*ret_mode = (enum step_mode)mode;
		t = c->best;
		c->best = c->residual;
		c->residual = t;
	}
}

/* Doubles that are integers become such; else all become their bits, in the order of
 * their values. */
static bool
step_work_is_integer(const uint64_t *bits, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double v, back;

		memcpy(&v, &bits[i], sizeof(v));
		if (!(v > -STEP_WORK_EXACT && v < STEP_WORK_EXACT))
			return false;
		back = (double)(int64_t)v;
		if (memcmp(&back, &v, sizeof(v)) != 0)
			return false;
	}
	return true;
}

static bool
step_work_to_values(uint64_t *value, size_t n)
{
	bool integer = step_work_is_integer(value, n);

	for (size_t i = 0; i < n; i++) {
		double v;

		memcpy(&v, &value[i], sizeof(v));
		value[i] = integer ? (uint64_t)(int64_t)v : step_work_order(value[i]);
	}
	return integer;
}

/* Values, places and bases of a column; false: not of whole microseconds. */
static bool
step_gather(struct ls_step_codec *c, const struct ls_step_table *t, unsigned column,
	size_t *ret_n)
{
	size_t i, n = 0;

	for (i = 0; i < t->record_count; i++) {
		const struct ls_record *r = &t->records[i];

		if ((step_shape_columns(c->words[i]) >> column & 1) == 0)
			continue;
		if (!step_field(r, column, &c->value[n]))
			return false;
		c->base[n] = column == STEP_BEGIN
			? c->begin_base[i]
			: step_base(r, column, false, c->place[i]);
		c->at[n++] = c->place[i];
	}
	*ret_n = n;
	return true;
}

static int
step_put_column(struct ls_step_codec *c, struct ls_bits_out *o,
	const struct ls_step_table *t, unsigned column)
{
	enum step_mode mode = STEP_BY_COLUMN;
	uint64_t least = UINT64_MAX, before;
	bool option = false;
	size_t n, i;

	if (!step_gather(c, t, column, &n))
		return -LS_ERANGE;
	if (column >= STEP_WORK && column < STEP_RANK)
		option = step_work_to_values(c->value, n);
	step_choose(c, n, step_tries(column), &least, &mode);
	if (column == STEP_DURATION && (c->columns >> STEP_ENTER & 1) != 0) {
		for (i = 0; i < n; i++) /* every record has a duration */
			c->base[i] = step_base_duration(&t->records[i], true);
		before = least;
		step_choose(c, n, step_tries(column), &least, &mode);
		option = least < before;
	}
	ls_bits_put(o, option, 1);
	ls_bits_put(o, mode, 2);
	ls_column_put(o, c->best, n);
	return 0;
}

/* --- the table ------------------------------------------------------------ */

static bool
step_is_encodable(const struct ls_step_table *t)
{
	size_t i, records = 0;

	if (t->run_count == 0 || t->run_count > LS_STEP_ROWS_RECORDS_MAX ||
		t->record_count > LS_STEP_ROWS_RECORDS_MAX)
		return false;
	for (i = 0; i < t->run_count; i++) {
		const struct ls_step_run *run = &t->runs[i];

		if (run->count == 0 || run->count > t->record_count - records ||
			(i > 0 && run->id <= t->runs[i - 1].id))
			return false;
		records += run->count;
	}
	for (i = 0; i < t->record_count; i++) {
		const struct ls_record *r = &t->records[i];

		if (r->phase_mask >> LS_PHASE_COUNT != 0 ||
			r->work_mask >> LS_WORK_COUNT != 0 ||
			r->barrier_count > LS_BARRIERS_MAX ||
			r->peer_count > LS_PEERS_MAX)
			return false;
	}
	return records == t->record_count;
}

/* Residuals of runs into words[column][run], of steps into `value`, of shapes into
 * `residual`. */
static void
step_scan_runs(struct ls_step_codec *c, const struct ls_step_table *t)
{
	size_t i, k, at = 0;

	step_index_start(&c->index);
	c->columns = 0;
	for (i = 0; i < t->run_count; i++) {
		struct ls_step_run run = t->runs[i];
		uint64_t u[STEP_RUN_COLUMNS], first = t->records[at].step;
		uint16_t worker;
		bool fresh;

		step_run_begin(&c->index, false, &run, u, &worker, &fresh);
		for (k = 0; k < run.count; k++, at++) {
			uint64_t step = t->records[at].step,
				 shape = step_shape(&t->records[at]);

			step_run_record(&c->index, false, worker, k == 0, &step,
				&c->value[at], &shape, &c->residual[at]);
			c->words[at] = shape;
			c->columns |= step_shape_columns(shape);
			c->place[at] = (struct step_place){ worker,
				step_index_step(&c->index, step) };
		}
		step_run_end(&c->index, false, &run, u, worker, first, fresh);
		for (k = 0; k < STEP_RUN_COLUMNS; k++)
			c->words[(k + 1) * LS_STEP_ROWS_RECORDS_MAX + i] = u[k];
	}
}

/* What begins of records are guessed from. */
static void
step_scan_begins(struct ls_step_codec *c, const struct ls_step_table *t)
{
	size_t i, k, at = 0;

	step_index_again(&c->index);
	for (i = 0; i < t->run_count; i++)
		for (k = 0; k < t->runs[i].count; k++, at++) {
			uint16_t worker = c->place[at].worker;

			c->begin_base[at] = step_base_begin(&c->index, worker);
			step_note_begin(&c->index, worker, k == 0, &t->records[at]);
		}
}

static int
step_put_table(struct ls_step_codec *c, const struct ls_step_table *t,
	struct ls_bits_out *o)
{
	int rc = 0;

	step_scan_runs(c, t);
	for (size_t k = 0; k < STEP_RUN_COLUMNS; k++)
		ls_column_put(o, c->words + (k + 1) * LS_STEP_ROWS_RECORDS_MAX,
			t->run_count);
	ls_column_put(o, c->value, t->record_count);
	ls_column_put(o, c->residual, t->record_count);
	step_scan_begins(c, t);
	for (unsigned column = 0; column < STEP_COLUMNS && rc == 0; column++)
		if ((c->columns >> column & 1) != 0)
			rc = step_put_column(c, o, t, column);
	return rc;
}

int
ls_step_rows_encode(struct ls_step_codec *c, const struct ls_step_table *table,
	const uint8_t **ret_body, size_t *ret_len)
{
	size_t bytes = STEP_BODY_START_BYTES;
	struct ls_bits_out o;
	int rc;

	if (table->record_count > LS_STEP_ROWS_RECORDS_MAX)
		return -LS_ELIMIT;
	if (!step_is_encodable(table))
		return -LS_ERANGE;
	for (bytes += 64 * table->record_count; bytes <= STEP_BODY_MAX_BYTES;
		bytes *= 2) {
		rc = ls_body_reserve(&c->body, bytes);
		if (rc != 0)
			return rc;
		c->body.data[0] = STEP_VERSION;
		c->body.data[1] = 0;
		ls_bytes_put(c->body.data + 2, table->run_count, 4);
		ls_bytes_put(c->body.data + 6, table->record_count, 4);
		o = ls_body_bits(&c->body, STEP_HEAD_BYTES);
		rc = step_put_table(c, table, &o);
		if (rc != 0)
			return rc;
		if (ls_body_seal(&c->body, &o)) {
			*ret_body = c->body.data;
			*ret_len = c->body.len;
			return 0;
		}
	}
	return -LS_ELIMIT;
}
