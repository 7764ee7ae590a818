/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"
#include "storage/columns/rollup_sum.h"

/*
 * What roll-ups cost at 10,000 hosts x 120 series. Each line is "name value unit";
 * times are CPU time.
 *
 *   rollup_add_ns             a sample added, after decoding
 *   rollup_memory_bytes       sums of three minutes, all hosts
 *   rollup_take_ms            a minute taken out and encoded
 *   rollup_bytes              a series and minute, all columns
 *   rollup_column_us          reading ids and greatest of 10,000 hosts
 *   rollup_decode_60_ms       reading ids, sums and counts of one metric, 10,000 hosts, 60 minutes
 *
 * Series are made: a third gauges of two decimals with noise, a third counters with
 * jitter, a sixth walks of whole numbers, a sixth constants of a host.
 */

enum { HOSTS = 10000, SERIES = 120, ROWS = 60, MINUTES = 3 };

static uint64_t bench_seed = 88172645463325252u;

static uint64_t
bench_random(void)
{
	bench_seed ^= bench_seed << 13;
	bench_seed ^= bench_seed >> 7;
	bench_seed ^= bench_seed << 17;
	return bench_seed;
}

/* About normal, deviation 1. */
static double
bench_normal(void)
{
	uint64_t r = bench_random();

	return ((double)(r & 0xffff) + (double)(r >> 16 & 0xffff) +
		       (double)(r >> 32 & 0xffff) + (double)(r >> 48) - 131070) /
		37837;
}

static void
bench_column(double *v, size_t kind, size_t series)
{
	double at = floor((double)(bench_random() >> 24)),
	       rate = 1e5 * (double)(series + 1);
	size_t i;

	for (i = 0; i < ROWS; i++) {
		at += kind == 1	    ? floor(rate * (1 + 0.05 * bench_normal()))
			: kind == 2 ? floor(4096 * bench_normal())
				    : 0;
		v[i] = kind == 0
			? round(100 *
				  (50 + 5 * (double)(series % 7) + bench_normal())) /
				100
			: at;
	}
}

/* One minute of one host. */
static void
bench_host(struct ls_chunk_table *t)
{
	static const size_t kinds[] = { 0, 1, 0, 1, 2, 3 };
	size_t c;

	for (c = 0; c < t->columns; c++)
		bench_column(t->value + c * t->stride, kinds[c % 6], c);
}

struct bench_bodies {
	struct ls_rollup_codec *codec;
	size_t bytes, rows, kept_len;
	uint8_t *kept; /* the body of metric 2, a counter */
};

static int
bench_encode(void *arg, uint32_t metric_id, const struct ls_rollup_row *rows,
	size_t count)
{
	struct bench_bodies *b = arg;
	const uint8_t *body = NULL;
	size_t len = 0;

	if (ls_rollup_encode(b->codec, rows, count, &body, &len) != 0)
		abort();
	b->bytes += len;
	b->rows += count;
	if (metric_id == 2 && b->kept == NULL) {
		b->kept = malloc(len);
		if (b->kept == NULL)
			abort();
		memcpy(b->kept, body, len);
		b->kept_len = len;
	}
	return 0;
}

static void
bench_decode(const struct bench_bodies *b, unsigned columns, size_t times)
{
	const struct ls_rollup_row *rows = NULL;
	size_t i, count = 0;

	for (i = 0; i < times; i++)
		if (ls_rollup_decode(b->codec, b->kept, b->kept_len, columns, &rows,
			    &count) != 0 ||
			count != HOSTS)
			abort();
}

static uint64_t
bench_fill(struct ls_rollup_sums *sums, struct ls_chunk_table *table, uint32_t layout)
{
	uint64_t ns = 0;

	for (uint32_t h = 1; h <= HOSTS; h++) {
		uint64_t t0;

		bench_host(table);
		t0 = ls_clock_cpu_ns();
		for (int64_t m = 0; m < MINUTES; m++) {
			if (ls_rollup_sums_open(sums, m * LS_ROLLUP_MINUTE_US, layout,
				    h, 1, 0) != 0)
				abort();
			(void)ls_rollup_sums_add(sums, table, 0, ROWS);
		}
		ns += ls_clock_cpu_ns() - t0;
	}
	return ns;
}

int
main(void)
{
	static double value[SERIES * ROWS];
	static bool present[SERIES * ROWS];
	static uint64_t t_ns[ROWS];
	struct ls_chunk_table table = { ROWS, SERIES, ROWS, t_ns, value, present };
	struct ls_rollup_column columns[SERIES];
	struct ls_rollup_sums *sums = ls_rollup_sums_new(LS_ROLLUP_MEMORY_MAX_BYTES);
	struct bench_bodies b = { .codec = ls_rollup_codec_new() };
	uint32_t layout = 0;
	uint64_t ns;

	memset(present, true, sizeof(present));
	for (uint32_t c = 0; c < SERIES; c++)
		columns[c] = (struct ls_rollup_column){ c + 1, 1 };
	if (sums == NULL || b.codec == NULL ||
		ls_rollup_sums_layout(sums, columns, SERIES, &layout) != 0)
		return EXIT_FAILURE;
	ns = bench_fill(sums, &table, layout);
	printf("rollup_add_ns %.2f ns\n",
		(double)ns / ((double)HOSTS * SERIES * ROWS * MINUTES));
	printf("rollup_memory_bytes %zu bytes\n", ls_rollup_sums_most(sums));
	ns = ls_clock_cpu_ns();
	if (ls_rollup_sums_take(sums, 0, bench_encode, &b) != 0)
		return EXIT_FAILURE;
	printf("rollup_take_ms %.1f ms\n", (double)(ls_clock_cpu_ns() - ns) * 1e-6);
	printf("rollup_bytes %.2f bytes\n", (double)b.bytes / (double)b.rows);
	ns = ls_clock_cpu_ns();
	bench_decode(&b, LS_ROLLUP_MAX, 100);
	printf("rollup_column_us %.1f us\n", (double)(ls_clock_cpu_ns() - ns) * 1e-5);
	ns = ls_clock_cpu_ns();
	bench_decode(&b, LS_ROLLUP_SUM | LS_ROLLUP_COUNT, 60);
	printf("rollup_decode_60_ms %.2f ms\n",
		(double)(ls_clock_cpu_ns() - ns) * 1e-6);
	ls_rollup_sums_free(sums);
	ls_rollup_codec_free(b.codec);
	free(b.kept);
	return EXIT_SUCCESS;
}
