/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "storage/columns/step_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/harness.h"
#include "tests/support/seal.h"
#include "tests/support/job_rows.h"

static struct ls_step_codec *codec;
static struct ls_step_run runs[LS_STEP_ROWS_RECORDS_MAX + 1];
static struct ls_record *records;
static struct ls_step_table table;
static uint64_t seed;

static void
setup(void)
{
	codec = ls_step_codec_new();
	records = calloc(LS_STEP_ROWS_RECORDS_MAX + 1, sizeof(*records));
	ck_assert(codec != NULL && records != NULL);
	memset(runs, 0, sizeof(runs));
	table = (struct ls_step_table){ 0, 0, runs, records };
	seed = 88172645463325252u;
}

static void
teardown(void)
{
	ls_step_codec_free(codec);
	free(records);
	codec = NULL;
}

static uint64_t
random_u64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t
random_below(uint64_t n)
{
	return random_u64() % n;
}

/* Whole microseconds of any size, in ns. */
static uint64_t
random_ns(void)
{
	return (random_u64() >> (random_u64() % 64) & INT64_MAX) / 1000 * 1000;
}

static struct ls_step_run *
add_run(int64_t worker_id, uint64_t first_index)
{
	struct ls_step_run *run = &runs[table.run_count];

	*run = (struct ls_step_run){ .id = table.run_count == 0 ? 1 : run[-1].id + 1,
		.t_us = 1700000000000000,
		.worker_id = worker_id,
		.first_index = first_index };
	table.run_count++;
	return run;
}

static struct ls_record *
add_record(uint64_t step)
{
	struct ls_record *r = &records[table.record_count++];

	*r = (struct ls_record){ .step = step,
		.t_begin_ns =
			1700000000000000000 + (int64_t)(step % 1000000000) * 1000000,
		.duration_ns = 1000000 };
	runs[table.run_count - 1].count++;
	return r;
}

static void
fill_random(struct ls_record *r)
{
	unsigned i;

	r->t_begin_ns = (int64_t)random_ns() * (random_below(4) == 0 ? -1 : 1);
	r->duration_ns = random_ns();
	r->phase_mask = (uint32_t)random_below(1u << LS_PHASE_COUNT);
	for (i = 0; i < LS_PHASE_COUNT; i++)
		r->phase_ns[i] = r->phase_mask >> i & 1 ? random_ns() : 0;
	r->barrier_count = (uint8_t)random_below(LS_BARRIERS_MAX + 1);
	for (i = 0; i < r->barrier_count; i++)
		r->barrier[i] = (struct ls_record_barrier){ (uint8_t)random_below(
								    LS_BARRIER_COUNT),
			-(int64_t)random_ns(), (int64_t)random_ns() };
	r->work_mask = (uint8_t)random_below(1u << LS_WORK_COUNT);
	for (i = 0; i < LS_WORK_COUNT; i++)
		if (r->work_mask >> i & 1)
			r->work[i] = random_below(2) ? (double)random_below(1u << 30)
						     : (double)random_u64() * 1e-3;
	r->peer_count = (uint8_t)random_below(LS_PEERS_MAX + 1);
	for (i = 0; i < r->peer_count; i++)
		r->peer[i] = (struct ls_record_peer){ (uint32_t)random_u64(),
			random_below(3) == 0 ? UINT64_MAX : random_ns(),
			random_below(3) == 0 ? UINT64_MAX : random_ns() };
}

/* Encodes, decodes from an exact copy, compares; returns the length. */
static size_t
round_trip(const struct ls_step_table *t)
{
	struct ls_step_table back;
	const uint8_t *body;
	uint8_t *exact;
	size_t len, i;

	ck_assert_int_eq(ls_step_rows_encode(codec, t, &body, &len), 0);
	exact = malloc(len);
	memcpy(exact, body, len);
	ck_assert_int_eq(ls_step_rows_decode(codec, exact, len, &back), 0);
	free(exact);
	ck_assert_uint_eq(back.run_count, t->run_count);
	ck_assert_uint_eq(back.record_count, t->record_count);
	for (i = 0; i < t->run_count; i++) {
		ck_assert_int_eq(back.runs[i].id, t->runs[i].id);
		ck_assert_int_eq(back.runs[i].t_us, t->runs[i].t_us);
		ck_assert_int_eq(back.runs[i].worker_id, t->runs[i].worker_id);
		ck_assert_uint_eq(back.runs[i].first_index, t->runs[i].first_index);
		ck_assert_uint_eq(back.runs[i].count, t->runs[i].count);
		ck_assert_int_eq(back.runs[i].uncertainty_ns,
			t->runs[i].uncertainty_ns);
	}
	for (i = 0; i < t->record_count; i++)
		ck_assert_mem_eq(&back.records[i], &t->records[i],
			sizeof(struct ls_record));
	return len;
}

LS_CASE(kept, setup, teardown);

LS_TEST(kept, a_job_comes_back_and_takes_few_bytes)
{
	struct job_rows *job = job_rows_new(1000, 1);
	size_t len = round_trip(job_rows_second(job));

	ck_assert_uint_lt(len, 1000 * 16);
	len = round_trip(job_rows_second(job));
	ck_assert_uint_lt(len, 1000 * 16);
	job_rows_free(job);
	job = job_rows_new(16, 10);
	ck_assert_uint_lt(round_trip(job_rows_second(job)), 160 * 16);
	job_rows_free(job);
}

LS_TEST(kept, any_values_come_back)
{
	size_t i, k;

	for (i = 0; i < 200; i++) {
		size_t run_count = 1 + random_below(20);

		table.run_count = table.record_count = 0;
		while (table.run_count < run_count) {
			struct ls_step_run *run = add_run(
				(int64_t)(random_below(4) == 0 ? random_u64()
							       : random_below(5)),
				random_u64() >> random_below(64));

			run->id +=
				(int64_t)random_below(1000) * (int64_t)table.run_count;
			run->t_us = (int64_t)random_u64();
			run->uncertainty_ns = (int64_t)random_u64();
			for (k = 1 + random_below(9); k > 0; k--)
				fill_random(
					add_record(random_u64() >> random_below(64)));
		}
		round_trip(&table);
	}
}

/* Workers that miss steps, come late, report several at once; several shapes. */
LS_TEST(kept, gaps_late_steps_and_changing_shapes_come_back)
{
	uint64_t step, index = 0;
	size_t i;

	for (step = 100; step < 400; step++) {
		add_run(7, index += 1 + random_below(2));
		add_record(random_below(10) == 0 ? step - 50 : step);
		add_run(9, step);
		for (i = 0; i < 3; i++) {
			struct ls_record *r = add_record(step * 3 + i);

			r->barrier_count = step % 5 == 0 ? 0 : (uint8_t)(step % 5);
			r->barrier[0].enter_ns =
				r->barrier_count > 0 ? r->t_begin_ns : 0;
			r->barrier[0].exit_ns =
				r->barrier_count > 0 ? r->t_begin_ns + 5000 : 0;
			if (step % 7 == 0) {
				r->phase_mask = 1u << LS_PHASE_CHECKPOINT;
				r->phase_ns[LS_PHASE_CHECKPOINT] = 900000;
			}
		}
	}
	round_trip(&table);
}

LS_TEST(kept, the_largest_values_come_back)
{
	struct ls_step_run *run = add_run(INT64_MIN, UINT64_MAX);
	struct ls_record *r = add_record(UINT64_MAX);
	unsigned i;

	run->id = INT64_MIN;
	run->t_us = INT64_MIN;
	run->uncertainty_ns = INT64_MIN;
	r->t_begin_ns = INT64_MAX / 1000 * 1000;
	r->duration_ns = INT64_MAX / 1000 * 1000;
	r->barrier_count = 1;
	r->barrier[0] =
		(struct ls_record_barrier){ 3, INT64_MIN / 1000 * 1000, 1ll << 62 };
	r->barrier[0].exit_ns = r->barrier[0].exit_ns / 1000 * 1000;
	r->peer_count = 4;
	for (i = 0; i < 4; i++)
		r->peer[i] = (struct ls_record_peer){ UINT32_MAX, UINT64_MAX,
			INT64_MAX / 1000 * 1000 };
	run = add_run(INT64_MAX, 0);
	run->id = INT64_MAX;
	run->t_us = INT64_MAX;
	run->uncertainty_ns = INT64_MAX;
	add_record(0);
	round_trip(&table);
}

LS_TEST(kept, work_comes_back_bit_for_bit)
{
	static const double odd[] = { NAN, -NAN, INFINITY, -INFINITY, -0.0, 0.0, 1e300,
		5e-324, 0.1, 9007199254740992.0, -9007199254740991.0, 32768 };
	size_t i, k;

	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		for (k = 0; k < 2; k++) {
			struct ls_record *r;

			add_run((int64_t)i, 0);
			r = add_record(i);
			r->work_mask = k == 0 ? 1 : 3;
			r->work[0] = odd[i];
			r->work[1] = k == 0 ? 0 : 4096;
			round_trip(&table);
		}
}

LS_TEST(kept, a_full_table_comes_back)
{
	size_t i;

	for (i = 0; i < LS_STEP_ROWS_RECORDS_MAX; i++) {
		add_run((int64_t)(i * 0x9e3779b97f4a7c15u), 0);
		add_record(i);
	}
	round_trip(&table);
	add_run(0, 0);
	add_record(0);
	const uint8_t *body;
	size_t len;
	ck_assert_int_eq(ls_step_rows_encode(codec, &table, &body, &len), -LS_ELIMIT);
}

static int
encode(void)
{
	const uint8_t *body;
	size_t len;

	return ls_step_rows_encode(codec, &table, &body, &len);
}

LS_CASE(refused, setup, teardown);

LS_TEST(refused, what_is_no_table_is_refused)
{
	struct ls_record *r;

	ck_assert_int_eq(encode(), -LS_ERANGE);
	add_run(1, 0);
	ck_assert_int_eq(encode(), -LS_ERANGE); /* no record */
	r = add_record(5);
	ck_assert_int_eq(encode(), 0);
	table.record_count = 2;
	ck_assert_int_eq(encode(), -LS_ERANGE); /* of no run */
	table.record_count = 1;
	runs[0].count = 2;
	ck_assert_int_eq(encode(), -LS_ERANGE);
	runs[0].count = 1;
	add_run(1, 1)->id = runs[0].id;
	add_record(6);
	ck_assert_int_eq(encode(), -LS_ERANGE); /* ids do not grow */
	table.run_count = table.record_count = 1;
	r->phase_mask = 1u << LS_PHASE_COUNT;
	ck_assert_int_eq(encode(), -LS_ERANGE);
	r->phase_mask = 0;
	r->barrier_count = LS_BARRIERS_MAX + 1;
	ck_assert_int_eq(encode(), -LS_ERANGE);
	r->barrier_count = 0;
	r->peer_count = LS_PEERS_MAX + 1;
	ck_assert_int_eq(encode(), -LS_ERANGE);
	r->peer_count = 0;
	ck_assert_int_eq(encode(), 0);
}

LS_TEST(refused, fractions_of_microseconds_are_refused)
{
	struct ls_record *r, whole;

	add_run(1, 0);
	r = add_record(5);
	r->phase_mask = 3 | 1u << LS_PHASE_SYNC_WAIT;
	r->barrier_count = 1;
	r->peer_count = 1;
	whole = *r;
	ck_assert_int_eq(encode(), 0);
#define REFUSE(field, value)                            \
	do {                                            \
		r->field = value;                       \
		ck_assert_int_eq(encode(), -LS_ERANGE); \
		*r = whole;                             \
	} while (0)
	REFUSE(t_begin_ns, -1);
	REFUSE(duration_ns, 1001);
	REFUSE(duration_ns, UINT64_MAX / 1000 * 1000);
	REFUSE(phase_ns[1], 999);
	REFUSE(phase_ns[LS_PHASE_SYNC_WAIT], 1);
	REFUSE(barrier[0].enter_ns, 1);
	REFUSE(barrier[0].exit_ns, -1);
	REFUSE(peer[0].recv_wait_ns, 1);
	REFUSE(peer[0].send_wait_ns, UINT64_MAX - 1);
#undef REFUSE
	ck_assert_int_eq(encode(), 0);
}

/* What a record has beyond its masks and counts is not kept. */
LS_TEST(kept, what_no_mask_tells_comes_back_as_zero)
{
	struct ls_step_table back;
	const uint8_t *body;
	struct ls_record *r;
	size_t len;

	add_run(1, 0);
	r = add_record(5);
	r->phase_ns[2] = 77;
	r->work[1] = NAN;
	r->barrier[2].exit_ns = 5;
	ck_assert_int_eq(ls_step_rows_encode(codec, &table, &body, &len), 0);
	ck_assert_int_eq(ls_step_rows_decode(codec, body, len, &back), 0);
	ck_assert_uint_eq(back.records[0].phase_ns[2], 0);
	ck_assert(back.records[0].work[1] == 0);
	ck_assert_int_eq(back.records[0].barrier[2].exit_ns, 0);
}

static void
make_small(void)
{
	struct ls_record *r;

	add_run(41, 1000)->uncertainty_ns = 52000;
	r = add_record(1100);
	r->phase_mask = 1u << LS_PHASE_COMPUTE | 1u << LS_PHASE_SYNC_WAIT;
	r->phase_ns[LS_PHASE_COMPUTE] = 700000;
	r->phase_ns[LS_PHASE_SYNC_WAIT] = 250000;
	r->barrier_count = 1;
	r->barrier[0] = (struct ls_record_barrier){ LS_BARRIER_ICI,
		r->t_begin_ns + 710000, r->t_begin_ns + 960000 };
	r->work_mask = 1;
	r->work[0] = 4096;
	records[table.record_count] = *r;
	records[table.record_count].step++;
	records[table.record_count].t_begin_ns += 1002000;
	records[table.record_count].barrier[0].enter_ns += 1012000;
	records[table.record_count].barrier[0].exit_ns += 1003000;
	table.record_count++;
	runs[0].count++;
}

static int
decode(const uint8_t *body, size_t len)
{
	struct ls_step_table back;
	uint8_t *exact = malloc(len > 0 ? len : 1);
	int rc;

	memcpy(exact, body, len);
	rc = ls_step_rows_decode(codec, exact, len, &back);
	free(exact);
	return rc;
}

LS_TEST(refused, damage_is_told)
{
	const uint8_t *body;
	uint8_t copy[512];
	size_t len, i, k;

	make_small();
	ck_assert_int_eq(ls_step_rows_encode(codec, &table, &body, &len), 0);
	ck_assert_uint_lt(len, sizeof(copy));
	memcpy(copy, body, len);
	ck_assert_int_eq(decode(copy, len), 0);
	for (i = 0; i < len; i++) {
		ck_assert_int_ne(decode(copy, i), 0);
		copy[i] ^= 0x10;
		ck_assert_int_eq(decode(copy, len),
			i == 0 ? -LS_EVERSION : -LS_ECORRUPT);
		copy[i] ^= 0x10;
	}
	/* with the sum made right it is another table or none, but never a crash */
	for (i = 1; i < len - 4; i++)
		for (k = 0; k < 8; k++) {
			int rc;

			copy[i] ^= (uint8_t)(1u << k);
			seal_body(copy, len);
			rc = decode(copy, len);
			ck_assert(rc == 0 || rc == -LS_EPARSE || rc == -LS_ELIMIT);
			copy[i] ^= (uint8_t)(1u << k);
		}
	copy[8] = 1; /* 65,538 records */
	seal_body(copy, len);
	ck_assert_int_eq(decode(copy, len), -LS_ELIMIT);
	copy[8] = 0;
	copy[6] = 1; /* one record, of a run of two */
	seal_body(copy, len);
	ck_assert_int_eq(decode(copy, len), -LS_EPARSE);
}

LS_TEST(kept, the_format_is_the_golden_one)
{
	const uint8_t *body;
	char *golden;
	size_t len, golden_len;

	make_small();
	ck_assert_int_eq(ls_step_rows_encode(codec, &table, &body, &len), 0);
	golden = ls_test_read(ls_test_source("tests/golden/step_rows_v1.bin"),
		&golden_len);
	ck_assert_uint_eq(len, golden_len);
	ck_assert_mem_eq(body, golden, len);
	free(golden);
}
