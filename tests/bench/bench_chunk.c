/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/chunk/chunk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"
#include "tests/bench/noisy40.h"

/*
 * What chunks cost: bytes, and CPU time to write and to read them. Each line is "name
 * value unit".
 *
 *   chunk_series_recorded         1: the series of the file, 0: made ones
 *   chunk_bytes_per_sample_60     noisy series of a host, 40 of them, a minute a chunk
 *   chunk_bytes_per_sample_600    the same, ten minutes a chunk
 *   chunk_entropy_ratio_60, _600  divided by the entropy of the series
 *   chunk_encode_ns, chunk_decode_ns  a sample, of the chunks of 60 rows
 *   chunk_encode_minute_us        120 series x 60 rows
 *   chunk_irregular_bytes_per_sample  doubles of full precision
 *
 * The series are those of data/series/noisy40.csv.gz in $LOCKSTEP_SHARED or ../shared;
 * where it is not, like ones are made, whose entropy is not known.
 */

enum { COLUMNS = NOISY40_COLUMNS, HOSTS = NOISY40_HOSTS, TICKS = NOISY40_TICKS };
enum { ROUNDS = 5, MINUTE_COLUMNS = 120 };

/* --- measuring ------------------------------------------------------------ */

struct bench_sum {
	size_t bytes, samples;
	uint64_t encode_ns, decode_ns;
};

static void
bench_one(struct ls_chunk_codec *codec, const struct ls_chunk_table *t,
	struct bench_sum *sum)
{
	static uint8_t buf[LS_CHUNK_BODY_MAX_BYTES];
	struct ls_chunk_table back;
	uint64_t t0 = ls_clock_cpu_ns(), t1;
	size_t len = 0;

	if (ls_chunk_encode(codec, t, buf, sizeof(buf), &len) != 0)
		abort();
	t1 = ls_clock_cpu_ns();
	sum->encode_ns += t1 - t0;
	if (ls_chunk_decode(codec, buf, len, &back) != 0)
		abort();
	sum->decode_ns += ls_clock_cpu_ns() - t1;
	for (size_t c = 0; c < t->columns; c++)
		if (memcmp(back.value + c * back.stride, t->value + c * t->stride,
			    t->rows * sizeof(double)) != 0)
			abort();
	sum->bytes += len;
	sum->samples += t->rows * t->columns;
}

static struct bench_sum
bench_all(const struct noisy40 *d, size_t rows)
{
	struct ls_chunk_codec *codec = ls_chunk_codec_new(COLUMNS, rows);
	struct bench_sum sum = { 0 };

	for (size_t h = 0; h < HOSTS; h++)
		for (size_t i = 0; i + rows <= TICKS; i += rows) {
			struct ls_chunk_table t = { rows, COLUMNS, TICKS,
				d->t_ns + h * TICKS + i, noisy40_at(d, h, 0) + i,
				d->present };

			bench_one(codec, &t, &sum);
		}
	ls_chunk_codec_free(codec);
	return sum;
}

/* Median of CPU times would hide little here: the least of some rounds. */
static struct bench_sum
bench_best(const struct noisy40 *d, size_t rows)
{
	struct bench_sum best = bench_all(d, rows);

	for (int i = 1; i < ROUNDS; i++) {
		struct bench_sum s = bench_all(d, rows);

		if (s.encode_ns < best.encode_ns)
			best.encode_ns = s.encode_ns;
		if (s.decode_ns < best.decode_ns)
			best.decode_ns = s.decode_ns;
	}
	return best;
}

/* Three hosts side by side: the chunk of a TPU host. */
static void
bench_minute(const struct noisy40 *d)
{
	struct ls_chunk_codec *codec = ls_chunk_codec_new(MINUTE_COLUMNS, 60);
	struct bench_sum best = { .encode_ns = UINT64_MAX };

	for (int i = 0; i < ROUNDS * 10; i++) {
		struct ls_chunk_table t = { 60, MINUTE_COLUMNS, TICKS, d->t_ns,
			noisy40_at(d, 0, 0), d->present };
		struct bench_sum s = { 0 };

		bench_one(codec, &t, &s);
		if (s.encode_ns < best.encode_ns)
			best = s;
	}
	printf("chunk_encode_minute_us %.1f us\n", (double)best.encode_ns * 1e-3);
	ls_chunk_codec_free(codec);
}

static void
bench_irregular(const struct noisy40 *d)
{
	struct ls_chunk_codec *codec = ls_chunk_codec_new(1, 60);
	double value[60];
	uint64_t seed = 88172645463325252u;
	struct ls_chunk_table t = { 60, 1, 60, d->t_ns, value, d->present };
	struct bench_sum sum = { 0 };

	for (int i = 0; i < 60; i++)
		value[i] = 50 + noisy40_normal(&seed);
	bench_one(codec, &t, &sum);
	printf("chunk_irregular_bytes_per_sample %.3f bytes\n", (double)sum.bytes / 60);
	ls_chunk_codec_free(codec);
}

static void
bench_size(const struct noisy40 *d, size_t rows)
{
	struct bench_sum s = bench_best(d, rows);
	double bytes = (double)s.bytes / (double)s.samples;

	printf("chunk_bytes_per_sample_%zu %.3f bytes\n", rows, bytes);
	if (d->recorded)
		printf("chunk_entropy_ratio_%zu %.3f ratio\n", rows,
			bytes / NOISY40_ENTROPY_BYTES);
	if (rows != 60)
		return;
	printf("chunk_encode_ns %.1f ns\n", (double)s.encode_ns / (double)s.samples);
	printf("chunk_decode_ns %.1f ns\n", (double)s.decode_ns / (double)s.samples);
}

int
main(void)
{
	struct noisy40 d;

	if (noisy40_open(&d) != 0)
		return EXIT_FAILURE;
	printf("chunk_series_recorded %d bool\n", d.recorded);
	bench_size(&d, 60);
	bench_size(&d, 600);
	bench_minute(&d);
	bench_irregular(&d);
	noisy40_close(&d);
	return EXIT_SUCCESS;
}
