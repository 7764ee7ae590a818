/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/chunk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "proto/base/clock.h"

/*
 * What chunks cost: bytes, and CPU time to write and to read them. Each line is "name value unit".
 *
 *   chunk_series_recorded         1: the series of the file, 0: made ones
 *   chunk_bytes_per_sample_60     noisy series of a host, 40 of them, a minute a chunk
 *   chunk_bytes_per_sample_600    the same, ten minutes a chunk
 *   chunk_entropy_ratio_60, _600  divided by the entropy of the series
 *   chunk_encode_ns, chunk_decode_ns  a sample, of the chunks of 60 rows
 *   chunk_encode_minute_us        120 series x 60 rows
 *   chunk_irregular_bytes_per_sample  doubles of full precision
 *
 * The series are those of data/series/noisy40.csv.gz in $LOCKSTEP_SHARED or ../shared; where it is not,
 * like ones are made, whose entropy is not known.
 */

enum { COLUMNS = 40, HOSTS = 12, TICKS = 2000, ROUNDS = 5, MINUTE_COLUMNS = 120 };

static const double bench_entropy_bytes = 1.55; /* of noisy40, a sample: each series modelled alone */

struct bench_data {
	uint64_t *t_ns;  /* [host][tick] */
	double *value;   /* [host][column][tick] */
	bool *present;
	bool real;
};

static double *
bench_at(const struct bench_data *d, size_t host, size_t column)
{
	return d->value + (host * COLUMNS + column) * TICKS;
}

/* --- data -------------------------------------------------------------------------- */

static uint64_t bench_seed = 88172645463325252u;

static double
bench_uniform(void)
{
	bench_seed ^= bench_seed << 13;
	bench_seed ^= bench_seed >> 7;
	bench_seed ^= bench_seed << 17;
	return (double)(bench_seed >> 11) / 9007199254740992.0;
}

static double
bench_normal(void)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += bench_uniform();
	return sum - 6;
}

/* Gauges of two decimals with noise, walks, and counters of bytes: a third of each. */
static void
bench_make(struct bench_data *d)
{
	for (size_t h = 0; h < HOSTS; h++)
		for (size_t c = 0; c < COLUMNS; c++) {
			double *v = bench_at(d, h, c), at = 1e9 * (double)(c + 1);

			for (size_t i = 0; i < TICKS; i++) {
				uint64_t jitter = (uint64_t)(4 * bench_uniform());

				d->t_ns[h * TICKS + i] = (i * 1000 + jitter) * 1000000;
				at += c % 3 == 0 ? 4e7 * (1 + 0.05 * bench_normal())
						 : floor(2 * bench_normal()) * 512;
				v[i] = c % 3 == 2 ? round(5000 + 80 * bench_normal()) / 100 : floor(at);
			}
		}
}

/* One line of the file; false at its end or when it is not what was promised. */
static bool
bench_line(struct bench_data *d, const char *line, size_t number)
{
	size_t h = number / TICKS, i = number % TICKS, c;
	char *end;

	if (number >= (size_t)HOSTS * TICKS || strtoul(line, &end, 10) != h || *end != ',')
		return false;
	d->t_ns[number] = strtoull(end + 1, &end, 10) * 1000000;
	for (c = 0; c < COLUMNS && *end == ','; c++)
		bench_at(d, h, c)[i] = strtod(end + 1, &end);
	return c == COLUMNS;
}

static bool
bench_read(struct bench_data *d, const char *path)
{
	gzFile f = gzopen(path, "rb");
	char line[4096];
	size_t n = 0;

	if (f == NULL)
		return false;
	(void)gzgets(f, line, sizeof(line)); /* the head */
	while (gzgets(f, line, sizeof(line)) != NULL && bench_line(d, line, n))
		n++;
	(void)gzclose(f); /* only read from */
	return n == (size_t)HOSTS * TICKS;
}

/* --- measuring --------------------------------------------------------------------- */

struct bench_sum {
	size_t bytes, samples;
	uint64_t encode_ns, decode_ns;
};

static void
bench_one(struct ls_chunk_codec *codec, const struct ls_chunk_table *t, struct bench_sum *sum)
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
bench_all(const struct bench_data *d, size_t rows)
{
	struct ls_chunk_codec *codec = ls_chunk_codec_new(COLUMNS, rows);
	struct bench_sum sum = { 0 };

	for (size_t h = 0; h < HOSTS; h++)
		for (size_t i = 0; i + rows <= TICKS; i += rows) {
			struct ls_chunk_table t = { rows, COLUMNS, TICKS, d->t_ns + h * TICKS + i,
				bench_at(d, h, 0) + i, d->present };

			bench_one(codec, &t, &sum);
		}
	ls_chunk_codec_free(codec);
	return sum;
}

/* Median of CPU times would hide little here: the least of some rounds. */
static struct bench_sum
bench_best(const struct bench_data *d, size_t rows)
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
bench_minute(const struct bench_data *d)
{
	struct ls_chunk_codec *codec = ls_chunk_codec_new(MINUTE_COLUMNS, 60);
	struct bench_sum best = { .encode_ns = UINT64_MAX };

	for (int i = 0; i < ROUNDS * 10; i++) {
		struct ls_chunk_table t = { 60, MINUTE_COLUMNS, TICKS, d->t_ns,
			bench_at(d, 0, 0), d->present };
		struct bench_sum s = { 0 };

		bench_one(codec, &t, &s);
		if (s.encode_ns < best.encode_ns)
			best = s;
	}
	printf("chunk_encode_minute_us %.1f us\n", (double)best.encode_ns * 1e-3);
	ls_chunk_codec_free(codec);
}

static void
bench_irregular(const struct bench_data *d)
{
	struct ls_chunk_codec *codec = ls_chunk_codec_new(1, 60);
	double value[60];
	struct ls_chunk_table t = { 60, 1, 60, d->t_ns, value, d->present };
	struct bench_sum sum = { 0 };

	for (int i = 0; i < 60; i++)
		value[i] = 50 + bench_normal();
	bench_one(codec, &t, &sum);
	printf("chunk_irregular_bytes_per_sample %.3f bytes\n", (double)sum.bytes / 60);
	ls_chunk_codec_free(codec);
}

static void
bench_size(const struct bench_data *d, size_t rows)
{
	struct bench_sum s = bench_best(d, rows);
	double bytes = (double)s.bytes / (double)s.samples;

	printf("chunk_bytes_per_sample_%zu %.3f bytes\n", rows, bytes);
	if (d->real)
		printf("chunk_entropy_ratio_%zu %.3f ratio\n", rows, bytes / bench_entropy_bytes);
	if (rows != 60)
		return;
	printf("chunk_encode_ns %.1f ns\n", (double)s.encode_ns / (double)s.samples);
	printf("chunk_decode_ns %.1f ns\n", (double)s.decode_ns / (double)s.samples);
}

int
main(void)
{
	size_t cells = (size_t)HOSTS * COLUMNS * TICKS;
	struct bench_data d = { .t_ns = calloc((size_t)HOSTS * TICKS, sizeof(*d.t_ns)),
		.value = calloc(cells, sizeof(*d.value)), .present = malloc(cells) };
	const char *shared = getenv("LOCKSTEP_SHARED");
	char path[LS_PATH_MAX_BYTES];

	if (d.t_ns == NULL || d.value == NULL || d.present == NULL)
		return EXIT_FAILURE;
	memset(d.present, true, cells);
	(void)snprintf(path, sizeof(path), "%s/data/series/noisy40.csv.gz",
		shared != NULL ? shared : "../shared");
	d.real = bench_read(&d, path);
	if (!d.real)
		bench_make(&d);
	printf("chunk_series_recorded %d bool\n", d.real);
	bench_size(&d, 60);
	bench_size(&d, 600);
	bench_minute(&d);
	bench_irregular(&d);
	free(d.t_ns);
	free(d.value);
	free(d.present);
	return EXIT_SUCCESS;
}
