/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/chunk_table.h"

#include <math.h>
#include <string.h>

static uint64_t chunk_table_times[CHUNK_TABLE_ROWS];
static double chunk_table_values[CHUNK_TABLE_COLUMNS * CHUNK_TABLE_ROWS];
static bool chunk_table_flags[CHUNK_TABLE_COLUMNS * CHUNK_TABLE_ROWS];
static uint64_t chunk_table_seed;
struct ls_chunk_table chunk_table;

void
chunk_table_start(void)
{
	chunk_table_seed = 88172645463325252u;
}

uint64_t
chunk_table_random(void)
{
	chunk_table_seed ^= chunk_table_seed << 13;
	chunk_table_seed ^= chunk_table_seed >> 7;
	chunk_table_seed ^= chunk_table_seed << 17;
	return chunk_table_seed * 0x2545f4914f6cdd1du;
}

size_t
chunk_table_below(size_t n)
{
	return (size_t)(chunk_table_random() >> 33) % n;
}

double
chunk_table_double(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* A fresh table: all present, all zero, a second between rows. */
void
chunk_table_make(size_t rows, size_t columns)
{
	size_t i;

	chunk_table = (struct ls_chunk_table){ rows, columns, CHUNK_TABLE_ROWS,
		chunk_table_times, chunk_table_values, chunk_table_flags };
	memset(chunk_table_values, 0, sizeof(chunk_table_values));
	memset(chunk_table_flags, true, sizeof(chunk_table_flags));
	for (i = 0; i < CHUNK_TABLE_ROWS; i++)
		chunk_table.t_mono_ns[i] = 5000000000000 + i * 1000000000;
}

void
chunk_table_set(size_t column, const double *v, size_t n)
{
	memcpy(chunk_table.value + column * CHUNK_TABLE_ROWS, v, n * sizeof(*v));
}

void
chunk_table_remove(size_t column, size_t row)
{
	chunk_table.value[column * CHUNK_TABLE_ROWS + row] = 0;
	chunk_table.present[column * CHUNK_TABLE_ROWS + row] = false;
}

void
chunk_table_assert_same(const struct ls_chunk_table *a, const struct ls_chunk_table *b)
{
	size_t c;

	ck_assert_uint_eq(a->rows, b->rows);
	ck_assert_uint_eq(a->columns, b->columns);
	ck_assert_mem_eq(a->t_mono_ns, b->t_mono_ns, a->rows * sizeof(*a->t_mono_ns));
	for (c = 0; c < a->columns; c++) {
		ck_assert_mem_eq(a->present + c * a->stride, b->present + c * b->stride,
			a->rows);
		ck_assert_mem_eq(a->value + c * a->stride, b->value + c * b->stride,
			a->rows * sizeof(*a->value));
	}
}

/* One value of a column of a kind that hosts have, or that tries the codec; *at
 * wanders. */
static double
random_value(size_t kind, double *at, double noise)
{
	double u = (double)chunk_table_below(1u << 20) / 0x1p20 - 0.5;

	switch (kind) {
	case 0:
		return *at;
	case 1:
		return round(*at + noise * u * 100) / 100;
	case 2:
		*at = chunk_table_below(50) == 0 ? 0 : *at + floor(1e6 + 1e4 * u);
		return *at;
	case 3:
		return chunk_table_double(chunk_table_random());
	case 4:
		return (double)(float)(*at + noise * u);
	case 5:
		return chunk_table_below(10) == 0 ? floor(u * 1e9) : 0;
	case 6:
		return chunk_table_below(20) == 0 ? NAN : round(u * 1e3) / 10;
	case 7:
		return 0x1p63 * u * 2;
	case 8:
		return chunk_table_double(chunk_table_below(1000));
	case 9:
		return chunk_table_below(2) == 0 ? 100 : 0;
	default:
		*at += u;
		return *at / 3;
	}
}

static void
random_column(double *v, size_t rows)
{
	size_t kind = chunk_table_below(11), r;
	double at = (double)chunk_table_below(1u << 30),
	       noise = (double)(1 + chunk_table_below(1000));

	for (r = 0; r < rows; r++)
		v[r] = random_value(kind, &at, noise);
}

static void
random_presence(size_t column, size_t rows)
{
	size_t kind = chunk_table_below(8), r;
	size_t from = chunk_table_below(rows), to = chunk_table_below(rows);

	for (r = 0; r < rows; r++)
		if (kind == 0 || (kind == 1 && r >= from && r <= to) ||
			(kind == 2 && chunk_table_below(2) == 0) ||
			(kind == 3 && column > 0 &&
				!chunk_table
					 .present[(column - 1) * CHUNK_TABLE_ROWS + r]))
			chunk_table_remove(column, r);
}

void
chunk_table_make_random(void)
{
	size_t rows = 1 +
		chunk_table_below(chunk_table_below(4) == 0 ? CHUNK_TABLE_ROWS : 70),
	       c, r;

	chunk_table_make(rows, chunk_table_below(12));
	for (r = 1; r < rows; r++)
		chunk_table.t_mono_ns[r] = chunk_table.t_mono_ns[r - 1] + 1000000000 +
			chunk_table_below(5000000);
	for (c = 0; c < chunk_table.columns; c++) {
		random_column(chunk_table.value + c * CHUNK_TABLE_ROWS, rows);
		random_presence(c, rows);
	}
}

void
chunk_table_make_small(void)
{
	const double v[] = { 12.5, 12.75, 12.5, 13.25, 12.25 },
		     w[] = { 100, 250, 390, 560, 700 };

	chunk_table_make(5, 2);
	chunk_table_set(0, v, 5);
	chunk_table_set(1, w, 5);
	chunk_table_remove(0, 2);
}
