/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "storage/columns/hot_rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/metrics.h"
#include "tests/support/harness.h"
#include "tests/support/seal.h"

#define EVENTS 3000

static struct ls_hot_codec *codec, *other;
static struct ls_store_counters *counters; /* what was added */
static int64_t ids[EVENTS], times[EVENTS];
static size_t count;
static uint64_t seed;

static void
setup(void)
{
	codec = ls_hot_codec_new();
	other = ls_hot_codec_new();
	counters = calloc(EVENTS, sizeof(*counters));
	ck_assert(codec != NULL && other != NULL && counters != NULL);
	count = 0;
	seed = 88172645463325252u;
}

static void
teardown(void)
{
	ls_hot_codec_free(codec);
	ls_hot_codec_free(other);
	free(counters);
}

static uint64_t
random_u64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static struct ls_store_counters *
make(const char *host, int64_t worker_id, int64_t id, int64_t t_us)
{
	struct ls_store_counters *c = &counters[count];

	memset(c, 0, sizeof(*c));
	(void)snprintf(c->host, sizeof(c->host), "%s", host);
	c->worker_id = worker_id;
	c->read_us = t_us - 2000;
	ids[count] = id;
	times[count] = t_us;
	count++;
	return c;
}

static void
value(struct ls_store_counters *c, unsigned metric, double v)
{
	c->metric[c->count] = (uint16_t)metric;
	c->value[c->count++] = v;
}

/* Adds all, encodes, decodes from an exact copy into another codec, compares; returns
 * the length. */
static size_t
round_trip(void)
{
	const struct ls_hot_event *events;
	const uint8_t *body;
	uint8_t *exact;
	size_t i, len, n;

	ls_hot_rows_reset(codec);
	for (i = 0; i < count; i++)
		ck_assert_int_eq(ls_hot_rows_add(codec, ids[i], times[i], &counters[i]),
			0);
	ck_assert_int_eq(ls_hot_rows_encode(codec, &body, &len), 0);
	exact = malloc(len);
	memcpy(exact, body, len);
	ck_assert_int_eq(ls_hot_rows_decode(other, exact, len), 0);
	free(exact);
	events = ls_hot_rows_events(other, &n);
	ck_assert_uint_eq(n, count);
	for (i = 0; i < n; i++) {
		struct ls_store_counters c;

		ls_hot_rows_get(other, i, &c);
		ck_assert_int_eq(events[i].id, ids[i]);
		ck_assert_int_eq(events[i].t_us, times[i]);
		ck_assert_mem_eq(&c, &counters[i], sizeof(c));
	}
	return len;
}

LS_CASE(kept, setup, teardown);

LS_TEST(kept, counters_of_hosts_come_back_and_take_few_bytes)
{
	double at[20][4] = { { 0 } };
	size_t h, t, k;
	int64_t id = 1;

	for (t = 0; t < 60; t++)
		for (h = 0; h < 20; h++) {
			char host[32];
			struct ls_store_counters *c;

			(void)snprintf(host, sizeof(host), "host-%zu", h);
			c = make(host, 0, id,
				(int64_t)(1700000000000000 + t * 1000000 + h * 700));
			id += 3;
			for (k = 0; k < 4; k++) {
				at[h][k] += (double)(100 * k + random_u64() % 8);
				value(c, (unsigned)k, at[h][k] / 100);
			}
		}
	ck_assert_uint_lt(round_trip(), 1200 * 4 * 2);
}

static double
random_double(void)
{
	static const double odd[] = { NAN, -NAN, INFINITY, -INFINITY, -0.0, 5e-324,
		1e308, 0.1 };
	uint64_t bits = random_u64();
	double v;

	if (bits % 4 == 0)
		return odd[bits / 4 % (sizeof(odd) / sizeof(odd[0]))];
	if (bits % 4 == 1)
		return (double)(random_u64() >> (bits / 4 % 64));
	if (bits % 4 == 2)
		return (double)(random_u64() % 100000) / 100;
	bits = random_u64();
	memcpy(&v, &bits, sizeof(v));
	return v;
}

LS_TEST(kept, any_values_come_back_bit_for_bit)
{
	size_t round, k, n;

	for (round = 0; round < 30; round++) {
		int64_t id = (int64_t)random_u64() / 2;

		for (count = 0, n = 1 + random_u64() % 100; count < n;) {
			char host[LS_HOST_NAME_MAX_BYTES];
			struct ls_store_counters *c;

			(void)snprintf(host, sizeof(host), "%.*s%d",
				(int)(random_u64() % 120),
				"a-name-that-is-as-long-as-it-may-be-a-name-that-is-as-long-as-it-may-be-"
				"a-name-that-is-as-long-as-it-may-be-aaaaaaa",
				(int)(random_u64() % 3));
			id += 1 + (int64_t)(random_u64() >> (8 + random_u64() % 50));
			c = make(host, random_u64() % 2 ? 0 : (int64_t)random_u64(), id,
				(int64_t)random_u64());
			c->read_us = (int64_t)random_u64();
			for (k = random_u64() % (LS_HOT_MAX + 1); k > 0; k--)
				value(c,
					(unsigned)(random_u64() %
						(random_u64() % 2 ? 4
								  : LS_METRIC_COUNT)),
					random_double());
		}
		round_trip();
	}
}

/* A value that is no decimal does not spoil its column. */
LS_TEST(kept, a_value_that_is_none_stands_apart)
{
	size_t i, clean, len;

	for (i = 0; i < 1000; i++)
		value(make("h", 0, (int64_t)i + 1, (int64_t)i * 1000000), 3,
			(double)i / 100);
	clean = round_trip();
	counters[0].value[0] = NAN;
	counters[500].value[0] = INFINITY;
	len = round_trip();
	ck_assert_uint_lt(len, clean + 100);
}

LS_CASE(refused, setup, teardown);

LS_TEST(refused, what_is_no_event_is_refused)
{
	const uint8_t *body;
	size_t len;
	struct ls_store_counters c = { .host = "h", .count = LS_HOT_MAX + 1 };

	ck_assert_int_eq(ls_hot_rows_encode(codec, &body, &len), -LS_ERANGE);
	ck_assert_int_eq(ls_hot_rows_add(codec, 5, 0, &c), -LS_ERANGE);
	c.count = 1;
	c.metric[0] = LS_METRIC_COUNT;
	ck_assert_int_eq(ls_hot_rows_add(codec, 5, 0, &c), -LS_ERANGE);
	c.metric[0] = 0;
	ck_assert_int_eq(ls_hot_rows_add(codec, 5, 0, &c), 0);
	/* the id does not grow */
	ck_assert_int_eq(ls_hot_rows_add(codec, 5, 0, &c), -LS_ERANGE);
	memset(c.host, 'x', sizeof(c.host));
	ck_assert_int_eq(ls_hot_rows_add(codec, 6, 0, &c), -LS_ERANGE); /* no end */
	ck_assert_int_eq(ls_hot_rows_encode(codec, &body, &len), 0);
}

LS_TEST(kept, a_full_table_takes_no_more)
{
	struct ls_store_counters c = { .host = "h", .count = 1, .value = { 5 } };
	const uint8_t *body;
	int64_t i;
	size_t len, n;

	for (i = 1; i <= (int64_t)LS_UNIT_EVENTS_MAX; i++)
		ck_assert_int_eq(ls_hot_rows_add(codec, i, i, &c), 0);
	ck_assert_int_eq(ls_hot_rows_add(codec, i, i, &c), -LS_ELIMIT);
	ck_assert_int_eq(ls_hot_rows_encode(codec, &body, &len), 0);
	ck_assert_uint_lt(len, 4096 + LS_UNIT_EVENTS_MAX);
	ck_assert_int_eq(ls_hot_rows_decode(other, body, len), 0);
	(void)ls_hot_rows_events(other, &n);
	ck_assert_uint_eq(n, LS_UNIT_EVENTS_MAX);
}

static void
make_small(void)
{
	struct ls_store_counters *c = make("host-1", 0, 10, 1700000000000000);

	value(c, 2, 12.25);
	value(c, 4, 4096);
	value(make("host-1", 77, 11, 1700000000000000), 5, 0.123456);
	c = make("host-1", 0, 14, 1700000001000100);
	value(c, 2, 13.26);
	value(c, 4, NAN);
}

static int
decode(const uint8_t *body, size_t len)
{
	uint8_t *exact = malloc(len > 0 ? len : 1);
	int rc;

	memcpy(exact, body, len);
	rc = ls_hot_rows_decode(other, exact, len);
	free(exact);
	return rc;
}

LS_TEST(refused, damage_is_told)
{
	const uint8_t *body;
	uint8_t copy[1024];
	size_t len, i, k, n;

	make_small();
	round_trip();
	ck_assert_int_eq(ls_hot_rows_encode(codec, &body, &len), 0);
	ck_assert_uint_lt(len, sizeof(copy));
	memcpy(copy, body, len);
	for (i = 0; i < len; i++) {
		ck_assert_int_ne(decode(copy, i), 0);
		copy[i] ^= 0x10;
		ck_assert_int_eq(decode(copy, len),
			i == 0 ? -LS_EVERSION : -LS_ECORRUPT);
		copy[i] ^= 0x10;
	}
	for (i = 1; i < len - 4; i++)
		for (k = 0; k < 8; k++) {
			int rc;

			copy[i] ^= (uint8_t)(1u << k);
			seal_body(copy, len);
			rc = decode(copy, len);
			ck_assert(rc == 0 || rc == -LS_EPARSE || rc == -LS_ELIMIT);
			(void)ls_hot_rows_events(other, &n);
			ck_assert(rc == 0 || n == 0);
			copy[i] ^= (uint8_t)(1u << k);
		}
	copy[5] = 1; /* 2^24 events */
	seal_body(copy, len);
	ck_assert_int_eq(decode(copy, len), -LS_ELIMIT);
	copy[5] = 0;
	copy[2]++;
	seal_body(copy, len);
	ck_assert_int_eq(decode(copy, len), -LS_EPARSE);
}

LS_TEST(kept, the_format_is_the_golden_one)
{
	const uint8_t *body;
	char *golden;
	size_t len, golden_len;

	make_small();
	round_trip();
	ck_assert_int_eq(ls_hot_rows_encode(codec, &body, &len), 0);
	golden = ls_test_read(ls_test_source("tests/golden/hot_rows_v1.bin"),
		&golden_len);
	ck_assert_uint_eq(len, golden_len);
	ck_assert_mem_eq(body, golden, len);
	free(golden);
}
