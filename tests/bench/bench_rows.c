/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rows of packed units cost: bytes, and CPU time to write and to read them. Each
 * line is "name value unit".
 *
 *   step_row_bytes           a record of 10,000 workers at a step a second, a row a step
 *   step_row_bytes_small     a record of 16 workers at 10 steps a second, a row a minute
 *   step_row_encode_ns       a record, of the first kind
 *   step_row_decode_ns       likewise
 *   step_row_decode_ms       a row of 16,384 records
 *   hot_value_bytes          a counter's value of 10,000 hosts, nine of each and six of its worker a second, a
 *                            row each ten seconds
 *   hot_value_bytes_small    16 hosts, a row a minute
 *   hot_encode_ns            a value, of the first kind
 *   hot_decode_ns            likewise
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"
#include "proto/metrics.h"
#include "storage/columns/hot_rows.h"
#include "tests/support/job_rows.h"

struct bench_sum {
	size_t bytes, records;
	uint64_t encode_ns, decode_ns;
};

static struct ls_step_table
bench_table(size_t records)
{
	struct ls_step_table t = { 0 };

	t.runs = calloc(records, sizeof(*t.runs));
	t.records = calloc(records, sizeof(*t.records));
	if (t.runs == NULL || t.records == NULL)
		abort();
	return t;
}

static void
bench_append(struct ls_step_table *t, const struct ls_step_table *more)
{
	/* at most LS_STEP_ROWS_RECORDS_MAX: see bench_job */
	memcpy(t->runs + t->run_count, more->runs, more->run_count * sizeof(*t->runs));
	memcpy(t->records + t->record_count, more->records,
		more->record_count * sizeof(*t->records));
	t->run_count += more->run_count;
	t->record_count += more->record_count;
}

static void
bench_one(struct ls_step_codec *c, const struct ls_step_table *t, struct bench_sum *sum)
{
	uint64_t t0 = ls_clock_cpu_ns(), t1;
	struct ls_step_table back;
	const uint8_t *body;
	size_t len;

	if (ls_step_rows_encode(c, t, &body, &len) != 0)
		abort();
	t1 = ls_clock_cpu_ns();
	sum->encode_ns += t1 - t0;
	if (ls_step_rows_decode(c, body, len, &back) != 0)
		abort();
	sum->decode_ns += ls_clock_cpu_ns() - t1;
	if (memcmp(back.records, t->records, t->record_count * sizeof(*t->records)) !=
			0 ||
		memcmp(back.runs, t->runs, t->run_count * sizeof(*t->runs)) != 0)
		abort();
	sum->bytes += len;
	sum->records += t->record_count;
}

static struct bench_sum
bench_job(size_t workers, unsigned rate, unsigned seconds, size_t row_records)
{
	struct ls_step_codec *c = ls_step_codec_new();
	struct job_rows *job = job_rows_new(workers, rate);
	struct ls_step_table t = bench_table(LS_STEP_ROWS_RECORDS_MAX);
	struct bench_sum sum = { 0 };
	unsigned i;

	if (c == NULL)
		abort();
	for (i = 0; i < seconds; i++) {
		bench_append(&t, job_rows_second(job));
		if (t.record_count + workers * rate <= row_records && i + 1 < seconds)
			continue;
		bench_one(c, &t, &sum);
		t.run_count = t.record_count = 0;
	}
	free(t.runs);
	free(t.records);
	job_rows_free(job);
	ls_step_codec_free(c);
	return sum;
}

static double
bench_per(uint64_t what, const struct bench_sum *s)
{
	return (double)what / (double)s->records;
}

/* --- hot counters --------------------------------------------------------- */

enum { HOT_HOST_VALUES = 9, HOT_WORKER_VALUES = 6 };

/* Counters of bytes, seconds of 2 and 6 decimals, and a gauge, as hosts and jobs have
 * them. */
static void
bench_values(struct job_rows *job, double *at, struct ls_store_counters *c)
{
	size_t i;

	for (i = 0; i < c->count; i++) {
		double n = job_rows_normal(job);

		switch (i % 5) {
		case 0:
			at[i] = at[i] + floor(110 + 4 * n);
			c->value[i] = at[i] / 100;
			break;
		case 1:
			at[i] = at[i] + floor(800000 + 3000 * n);
			c->value[i] = at[i] / 1e6;
			break;
		case 2:
			at[i] += n > 1.5 ? 4096 * floor(20 * n) : 0;
			c->value[i] = at[i];
			break;
		case 3:
			at[i] += floor(1.2e6 * (1 + 0.05 * n));
			c->value[i] = at[i];
			break;
		default:
			at[i] += n > 2.3;
			c->value[i] = at[i];
		}
		c->metric[i] = (uint16_t)ls_metric_hot(
			(unsigned)(c->worker_id != 0 ? i + 9 : i));
		if (c->metric[i] >= LS_METRIC_COUNT)
			c->metric[i] = (uint16_t)i;
	}
}

static void
bench_hot_add(struct ls_hot_codec *c, struct job_rows *job, double *at, int64_t id,
	size_t host, int64_t second, bool worker)
{
	int64_t t_us = 1700000000000000ll + second * 1000000 + (int64_t)host * 90;
	struct ls_store_counters counters = { .worker_id =
						      worker ? (int64_t)host + 1 : 0,
		.count = worker ? HOT_WORKER_VALUES : HOT_HOST_VALUES };

	(void)snprintf(counters.host, sizeof(counters.host), "tpu-worker-%05zu", host);
	counters.read_us = t_us - 2500 + (int64_t)(200 * job_rows_normal(job));
	bench_values(job, at, &counters);
	if (ls_hot_rows_add(c, id, t_us, &counters) != 0)
		abort();
}

static void
bench_hot_row(struct ls_hot_codec *c, struct bench_sum *sum)
{
	uint64_t t0 = ls_clock_cpu_ns(), t1;
	const uint8_t *body;
	size_t len, count;

	if (ls_hot_rows_encode(c, &body, &len) != 0)
		abort();
	t1 = ls_clock_cpu_ns();
	sum->encode_ns += t1 - t0;
	if (ls_hot_rows_decode(c, body, len) != 0)
		abort();
	sum->decode_ns += ls_clock_cpu_ns() - t1;
	(void)ls_hot_rows_events(c, &count);
	sum->bytes += len;
	sum->records += count / 2 * (HOT_HOST_VALUES + HOT_WORKER_VALUES);
}

static struct bench_sum
bench_hot(size_t hosts, int64_t seconds, int64_t row_seconds)
{
	struct ls_hot_codec *c = ls_hot_codec_new();
	struct job_rows *job = job_rows_new(1, 1);
	double *at = calloc(hosts * 32, sizeof(*at));
	struct bench_sum sum = { 0 };
	int64_t second, id = 1;
	size_t i;

	if (c == NULL || at == NULL)
		abort();
	for (i = 0; i < hosts * 32; i++)
		at[i] = floor(1e9 * job_rows_uniform(job));
	for (second = 0; second < seconds; second++) {
		for (i = 0; i < hosts; i++, id += 3) {
			bench_hot_add(c, job, at + i * 32, id, i, second, false);
			bench_hot_add(c, job, at + i * 32 + 16, id + 1, i, second,
				true);
		}
		if ((second + 1) % row_seconds != 0)
			continue;
		bench_hot_row(c, &sum);
		ls_hot_rows_reset(c);
	}
	free(at);
	job_rows_free(job);
	ls_hot_codec_free(c);
	return sum;
}

int
main(void)
{
	struct bench_sum hot = bench_hot(10000, 20, 10),
			 hot_small = bench_hot(16, 120, 60);
	struct bench_sum large = bench_job(10000, 1, 20, 10000);
	struct bench_sum small = bench_job(16, 10, 240, 9600);
	struct bench_sum whole = bench_job(8192, 1, 20, LS_STEP_ROWS_RECORDS_MAX);

	printf("step_row_bytes %.2f bytes\n", bench_per(large.bytes, &large));
	printf("step_row_bytes_small %.2f bytes\n", bench_per(small.bytes, &small));
	printf("step_row_encode_ns %.0f ns\n", bench_per(large.encode_ns, &large));
	printf("step_row_decode_ns %.0f ns\n", bench_per(large.decode_ns, &large));
	printf("step_row_decode_ms %.2f ms\n",
		bench_per(whole.decode_ns, &whole) * LS_STEP_ROWS_RECORDS_MAX * 1e-6);
	printf("hot_value_bytes %.2f bytes\n", bench_per(hot.bytes, &hot));
	printf("hot_value_bytes_small %.2f bytes\n",
		bench_per(hot_small.bytes, &hot_small));
	printf("hot_encode_ns %.0f ns\n", bench_per(hot.encode_ns, &hot));
	printf("hot_decode_ns %.0f ns\n", bench_per(hot.decode_ns, &hot));
	return EXIT_SUCCESS;
}
