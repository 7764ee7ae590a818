/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/sim/shape.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/chunk/chunk.h"
#include "proto/metrics.h"

enum shape_kind { COUNTER, WALK, LEVEL, NET };
enum shape_chip_kind {
	CHIP_CONSTANT,
	CHIP_RATIO,
	CHIP_PLATEAU,
	CHIP_SUM,
	CHIP_COUNT,
	CHIP_LEVEL,
	CHIP_SECONDS
};

static const struct shape_row {
	const char *name;
	enum shape_kind kind;
	double start, per, q[6];
} shape_rows[] = {
#define BENCH_ROW(name, kind, start, per, q0, q10, q50, q90, q99, q100) \
	{ name, kind, start, per, { q0, q10, q50, q90, q99, q100 } },
#include "tests/bench/host_series.def"
#undef BENCH_ROW
};

static const struct shape_chip {
	enum ls_metric metric;
	enum shape_chip_kind kind;
	double a, b;
} shape_chips[] = {
#define SIM_CHIP(metric, kind, a, b) { LS_METRIC_##metric, CHIP_##kind, a, b },
#include "deploy/demo/sim/chip_series.def"
#undef SIM_CHIP
};

enum {
	SHAPE_ROWS = sizeof(shape_rows) / sizeof(shape_rows[0]),
	SHAPE_CHIPS = sizeof(shape_chips) / sizeof(shape_chips[0])
};

struct shape_kept {
	uint64_t minute_plus1; /* 0: none */
	uint64_t t_first_ns, t_last_ns;
	size_t len;
	uint8_t *data;
};

struct shape_source {
	uint64_t random[SIM_GROUPS], next[SIM_GROUPS]; /* minute */
};

struct shape_hot {
	uint16_t metric;
	bool job; /* of the worker, not of the host */
	const struct shape_row *row;
};

struct sim_shape {
	size_t hot_count;
	struct shape_hot hot[LS_HOT_MAX];
	struct sim_group group[SIM_GROUPS];
	uint32_t sources, keep;
	size_t columns; /* of a source: all groups */
	struct shape_source *source;
	double *level; /* sources x columns */
	struct shape_kept *kept; /* sources x groups x keep */
	struct ls_chunk_codec *codec;
	struct ls_chunk_table table; /* of the following three */
	uint64_t t_ns[SIM_ROWS];
	double value[LS_SERIES_PER_GROUP_MAX * SIM_ROWS];
	bool present[LS_SERIES_PER_GROUP_MAX * SIM_ROWS]; /* all are */
	uint8_t body[LS_CHUNK_BODY_MAX_BYTES];
};

/* --- one value after the other -------------------------------------------- */

/* A whole number of a distribution that is known by six quantiles. */
static double
shape_draw(const double q[6], uint64_t bits)
{
	static const double at[6] = { 0, 0.1, 0.5, 0.9, 0.99, 1 };
	double u = sim_unit(bits);
	unsigned i = 0;

	while (i < 4 && u > at[i + 1])
		i++;
	return floor(q[i] + (q[i + 1] - q[i]) * (u - at[i]) / (at[i + 1] - at[i]) +
		0.5);
}

/* What a row of the host goes on by in one reading, or the reading itself. */
static double
shape_host_next(const struct shape_row *row, double level, uint64_t bits)
{
	switch (row->kind) {
	case LEVEL:
		return shape_draw(row->q, bits);
	case NET:
		return level + floor(2e8 * (1 + 0.1 * sim_normal(bits)));
	case COUNTER:
	case WALK:
		break;
	}
	return fabs(level + shape_draw(row->q, bits)); /* a gauge turns round at zero */
}

/* Level and value of a chip's series are one. */
static double
shape_chip_next(const struct shape_chip *row, double value, uint64_t bits)
{
	double u = sim_unit(bits);

	switch (row->kind) {
	case CHIP_RATIO:
		return floor(row->a + row->b * sim_normal(bits)) / 10000;
	case CHIP_PLATEAU:
		return value != 0 && u > 0.1
			? value
			: row->a + 1048576 * floor(row->b * sim_normal(bits * 3));
	case CHIP_SUM:
		return value + floor(row->a * (1 + row->b / 100 * sim_normal(bits)));
	case CHIP_COUNT:
		return value + row->a + (u * row->b < 1);
	case CHIP_LEVEL:
		return row->a + floor((2 * row->b + 1) * u) - row->b;
	case CHIP_SECONDS:
		return u * row->b < 1 ? floor(u * row->b * row->a) / 1000 : 0;
	case CHIP_CONSTANT:
		break;
	}
	return row->a;
}

/* --- names ---------------------------------------------------------------- */

static int
shape_name_host(char *text, size_t size, size_t column)
{
	const struct shape_row *row = &shape_rows[column % SHAPE_ROWS];
	bool neighbour =
		strncmp(row->name, "host.neighbour.", strlen("host.neighbour.")) == 0;

	if (neighbour || column >= SHAPE_ROWS)
		return snprintf(text, size, "%s{cgroup=\"sim-%zu\"}",
			ls_metric_info(LS_METRIC_NEIGHBOUR_CPU)->name, column);
	return snprintf(text, size, "%s", row->name);
}

static int
shape_name_chip(char *text, size_t size, size_t column, size_t per_chip)
{
	size_t i = column % per_chip, chip = column / per_chip;
	const char *name = ls_metric_info(shape_chips[i % SHAPE_CHIPS].metric)->name;

	if (i < SHAPE_CHIPS)
		return snprintf(text, size, "%s{device=\"%zu\"}", name, chip);
	return snprintf(text, size, "%s{core=\"%zu\",device=\"%zu\"}", name,
		i / SHAPE_CHIPS, chip);
}

/* How many series each chip has; the last one may have fewer. */
static size_t
shape_per_chip(const struct sim_options *o, size_t count)
{
	size_t chips = (size_t)o->chips;

	return (count + chips - 1) / chips;
}

static int
shape_make_group(struct sim_shape *s, const struct sim_options *o, unsigned g,
	size_t count)
{
	static const char *const names[SIM_GROUPS] = { "host.fast", "tpu.status" };
	struct sim_group *group = &s->group[g];
	int n;

	if (count > LS_SERIES_PER_GROUP_MAX)
		return -LS_ERANGE;
	group->name = names[g];
	for (size_t i = 0; i < count; i++) {
		char *text = group->text[i];

		n = g == 0 ? shape_name_host(text, sizeof(group->text[i]), i)
			   : shape_name_chip(text, sizeof(group->text[i]), i,
				     shape_per_chip(o, count));
		if (n < 0 || (size_t)n >= sizeof(group->text[i]))
			return -LS_ERANGE;
		group->series[i] = text;
	}
	group->count = count;
	group->hash = ls_wire_dictionary_hash(group->name, group->series, count);
	return 0;
}

/* The rows behind the hot metrics: host_series.def has all of them. */
static int
shape_make_hot(struct sim_shape *s)
{
	size_t i;

	for (unsigned m = 0; m < LS_METRIC_COUNT; m++) {
		const struct ls_metric_info *info = ls_metric_info(m);

		if (!info->hot)
			continue;
		for (i = 0;
			i < SHAPE_ROWS && strcmp(shape_rows[i].name, info->name) != 0;
			i++)
			continue;
		if (i == SHAPE_ROWS || s->hot_count == LS_HOT_MAX)
			return -LS_ERANGE;
		s->hot[s->hot_count++] = (struct shape_hot){ (uint16_t)m,
			info->scope == LS_METRIC_SCOPE_JOB, &shape_rows[i] };
	}
	return 0;
}

/* --- life ----------------------------------------------------------------- */

static int
shape_make_table(struct sim_shape *s, size_t columns)
{
	s->codec = ls_chunk_codec_new(columns, SIM_ROWS);
	s->table = (struct ls_chunk_table){ .rows = SIM_ROWS,
		.stride = SIM_ROWS,
		.t_mono_ns = s->t_ns,
		.value = s->value,
		.present = s->present };
	memset(s->present, true, sizeof(s->present));
	return s->codec != NULL ? 0 : -ENOMEM;
}

static int
shape_make_sources(struct sim_shape *s, uint64_t seed)
{
	size_t i, c, host = s->group[0].count;

	s->source = calloc(s->sources, sizeof(*s->source));
	s->level = calloc(s->sources * (s->columns + 1), sizeof(*s->level));
	s->kept = calloc((size_t)s->sources * SIM_GROUPS * (s->keep + 1),
		sizeof(*s->kept));
	if (s->source == NULL || s->level == NULL || s->kept == NULL)
		return -ENOMEM;
	for (i = 0; i < s->sources; i++) {
		for (c = 0; c < SIM_GROUPS; c++)
			s->source[i].random[c] = sim_hash(seed, i, c, 2) | 1;
		/* Hosts have been up for different times: up to twice as long as the
		 * one measured. */
		for (c = 0; c < host; c++) {
			const struct shape_row *row = &shape_rows[c % SHAPE_ROWS];
			double scale = row->kind == COUNTER
				? 2 * sim_unit(sim_hash(seed, i, c, 3))
				: 1;

			s->level[i * s->columns + c] = floor(row->start * scale);
		}
	}
	return 0;
}

int
sim_shape_new(const struct sim_options *o, uint32_t sources, uint32_t keep,
	struct sim_shape **ret_shape)
{
	struct sim_shape *s = calloc(1, sizeof(*s));
	size_t series = (size_t)o->series, host = (series + 1) / 2;
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->sources = sources;
	s->keep = keep;
	s->columns = series;
	rc = shape_make_hot(s);
	if (rc == 0)
		rc = shape_make_group(s, o, 0, host);
	if (rc == 0)
		rc = shape_make_group(s, o, 1, series - host);
	if (rc == 0)
		rc = shape_make_table(s, host);
	if (rc == 0)
		rc = shape_make_sources(s, (uint64_t)o->seed);
	if (rc == 0)
		*ret_shape = s;
	else
		sim_shape_free(s);
	return rc;
}

void
sim_shape_free(struct sim_shape *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0;
		s->kept != NULL && i < (size_t)s->sources * SIM_GROUPS * (s->keep + 1);
		i++)
		free(s->kept[i].data);
	ls_chunk_codec_free(s->codec);
	free(s->kept);
	free(s->level);
	free(s->source);
	free(s);
}

const struct sim_group *
sim_shape_group(const struct sim_shape *s, unsigned group)
{
	return &s->group[group];
}

/* --- minutes -------------------------------------------------------------- */

static void
shape_fill(struct sim_shape *s, uint32_t source, unsigned g)
{
	uint64_t *random = &s->source[source].random[g];
	double *level = &s->level[(size_t)source * s->columns +
		(g == 0 ? 0 : s->group[0].count)];

	for (size_t c = 0; c < s->group[g].count; c++) {
		double *value = &s->table.value[c * SIM_ROWS], at = level[c];
		const struct shape_row *row = &shape_rows[c % SHAPE_ROWS];
		const struct shape_chip *chip = &shape_chips[c % SHAPE_CHIPS];

		for (size_t r = 0; r < SIM_ROWS && g == 0; r++) {
			at = shape_host_next(row, at, sim_next(random));
			value[r] = at / row->per;
		}
		for (size_t r = 0; r < SIM_ROWS && g != 0; r++)
			value[r] = at = shape_chip_next(chip, at, sim_next(random));
		level[c] = at;
	}
	s->table.columns = s->group[g].count;
}

static void
shape_times(struct sim_shape *s, uint64_t *random, uint64_t begin_ns,
	uint64_t length_ns)
{
	uint64_t row_ns = length_ns / SIM_ROWS;

	/* A timer is late by tens of microseconds: here at most by a thousandth of a
	 * row. */
	for (size_t r = 0; r < SIM_ROWS; r++)
		s->table.t_mono_ns[r] = begin_ns + r * row_ns +
			(sim_next(random) >> 44) % (row_ns / 1000 + 1);
}

int
sim_shape_minute(struct sim_shape *s, uint32_t source, unsigned g, uint64_t minute,
	uint64_t begin_ns, uint64_t length_ns, struct sim_body *ret_body)
{
	struct shape_source *from = &s->source[source];
	struct shape_kept *k =
		&s->kept[((size_t)source * SIM_GROUPS + g) * (s->keep + 1) +
			(s->keep > 0 ? minute % s->keep : 0)];
	uint8_t *copy = NULL;
	int rc;

	if (k->minute_plus1 != minute + 1 || s->keep == 0) {
		if (minute < from->next[g])
			return -LS_ESTALE;
		shape_times(s, &from->random[g], begin_ns, length_ns);
		shape_fill(s, source, g);
		rc = ls_chunk_encode(s->codec, &s->table, s->body, sizeof(s->body),
			&k->len);
		if (rc == 0 && s->keep > 0) {
			copy = realloc(k->data, k->len);
			rc = copy != NULL ? 0 : -ENOMEM;
		}
		if (rc != 0)
			return rc;
		if (copy != NULL) {
			k->data = copy;
			memcpy(copy, s->body, k->len);
		}
		k->t_first_ns = s->table.t_mono_ns[0];
		k->t_last_ns = s->table.t_mono_ns[SIM_ROWS - 1];
		k->minute_plus1 = minute + 1;
		from->next[g] = minute + 1;
	}
	*ret_body = (struct sim_body){ s->keep > 0 ? k->data : s->body, k->len,
		k->t_first_ns, k->t_last_ns };
	return 0;
}

/* --- hot values ----------------------------------------------------------- */

void
sim_hot_init(const struct sim_shape *s, struct sim_hot *h, uint64_t seed)
{
	h->random = seed | 1;
	for (size_t i = 0; i < s->hot_count; i++)
		h->level[i] = floor(s->hot[i].row->start);
}

void
sim_hot_next(const struct sim_shape *s, struct sim_hot *h, double dt_s)
{
	for (size_t i = 0; i < s->hot_count; i++) {
		const struct shape_row *row = s->hot[i].row;
		double next = shape_host_next(row, h->level[i], sim_next(&h->random));

		if (row->kind == COUNTER || row->kind == NET)
			next = h->level[i] + floor((next - h->level[i]) * dt_s);
		h->level[i] = next;
	}
}

void
sim_hot_tell(const struct sim_shape *s, const struct sim_hot *h, bool job,
	struct ls_wire_hot *ret_hot)
{
	ret_hot->count = 0;
	for (size_t i = 0; i < s->hot_count; i++) {
		if (s->hot[i].job != job)
			continue;
		ret_hot->metric[ret_hot->count] = s->hot[i].metric;
		ret_hot->value[ret_hot->count++] = h->level[i] / s->hot[i].row->per;
	}
}
