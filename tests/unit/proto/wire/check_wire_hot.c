/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire/wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "proto/lockstep.pb-c.h"
#include "tests/support/harness.h"
#include "tests/support/wire_examples.h"
#include "tests/support/wire_pack.h"

static const char *why;
/* Kept from report to report, as in the collector. */
static struct ls_arena *arena;

/* The one hot reading of a report as it comes out, with one value. */
static double
hot_back(unsigned metric, double value)
{
	struct ls_wire_hot hot = {
		.count = 1, .metric = { (uint16_t)metric }, .value = { value }
	};
	struct ls_wire_report r = wire_example_report(), back;
	uint8_t *buf;
	size_t len;
	double v;

	r.hot = &hot;
	r.hot_count = 1;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), 0);
	ck_assert_int_eq(ls_wire_report_unpack_in(buf, len, &arena, &back, &why), 0);
	ck_assert_uint_eq(back.hot[0].count, 1);
	ck_assert_uint_eq(back.hot[0].metric[0], metric);
	v = back.hot[0].value[0];
	free(buf);
	return v;
}

LS_CASE(hot);

LS_TEST(hot, hot_values_are_whole_numbers_or_doubles)
{
	const unsigned seconds = LS_METRIC_HOST_CPU_BUSY, bytes = LS_METRIC_HOST_NET_TX;
	const double odd[] = { -1, 0.5, 9007199254740994.0, 1e300, -1e300, 0,
		9007199254740992.0 };
	size_t i;

	ck_assert(hot_back(seconds, 1.7) == 1.7);
	ck_assert(hot_back(seconds, 86400.123456) == 86400.123456);
	ck_assert(hot_back(seconds, 1.0000004) == 1); /* to the microsecond */
	ck_assert(hot_back(seconds, 9007199254.740993) == 9007199254.740993);
	ck_assert(hot_back(seconds, 1e17) == 1e17); /* too many of them */
	ck_assert(hot_back(seconds, -0.25) == -0.25);
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		ck_assert(hot_back(bytes, odd[i]) == odd[i]);
}

LS_TEST(hot, hot_values_in_disorder_are_not_packed)
{
	struct ls_wire_hot hot = { .count = 2,
		.metric = { LS_METRIC_HOST_CPU_BUSY, LS_METRIC_HOST_CPU_BUSY } };
	struct ls_wire_report r = wire_example_report();
	uint8_t *buf;
	size_t len;

	r.hot = &hot;
	r.hot_count = 1;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), -LS_ERANGE);
	hot.metric[1] = LS_METRIC_HOST_CPU_THROTTLED;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), -LS_ERANGE);
	hot.metric[1] = LS_METRIC_HOST_CPU_IDLE; /* not hot */
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), -LS_ERANGE);
}

/* A report of nothing but one hot reading, as it is, valid or not. */
static int
unpack_hot(const Lockstep__Hot *hot, struct ls_wire_report *ret_report)
{
	Lockstep__Report m = LOCKSTEP__REPORT__INIT;
	Lockstep__Hot one = *hot, *list[] = { &one };
	char host[] = "h";
	uint8_t boot[LS_BOOT_BYTES] = { 0 }, buf[512];
	size_t len;
	int rc;

	m.version = LS_WIRE_VERSION;
	m.host = host;
	m.boot.data = boot;
	m.boot.len = sizeof(boot);
	m.hot = list;
	m.n_hot = 1;
	m.t_send_mono_ns = 1000;
	ck_assert_uint_le(lockstep__report__get_packed_size(&m), sizeof(buf));
	len = lockstep__report__pack(&m, buf);
	memset(ret_report, 0, sizeof(*ret_report));
	rc = ls_wire_report_unpack_in(buf, len, &arena, ret_report, &why);
	if (rc == 0)
		ck_assert(!ret_report->has_kernel); /* it may be left out */
	return rc;
}

LS_TEST(hot, hot_values_that_do_not_fit_their_masks_are_refused)
{
	uint64_t value[] = { 7, 2000000, 5 };
	double odd[] = { 0.5 };
	Lockstep__Hot hot = LOCKSTEP__HOT__INIT;
	struct ls_wire_report r;

	hot.value = value;
	hot.odd = odd;
	hot.mask = 6; /* the second and third of the hot ones */
	hot.n_value = 2;
	hot.age_ns = 400;
	ck_assert_int_eq(unpack_hot(&hot, &r), 0);
	ck_assert_uint_eq(r.hot[0].t_mono_ns, 600);
	ck_assert_uint_eq(r.hot[0].metric[0], LS_METRIC_HOST_CGROUP_CPU);
	ck_assert_uint_eq(r.hot[0].metric[1], LS_METRIC_HOST_CPU_BUSY);
	ck_assert(r.hot[0].value[1] == 2);
	hot.n_value = 1;
	ck_assert_int_eq(unpack_hot(&hot, &r), -LS_EPARSE);
	hot.n_value = 3;
	ck_assert_int_eq(unpack_hot(&hot, &r), -LS_EPARSE);
	hot.odd_mask = 1; /* not measured */
	ck_assert_int_eq(unpack_hot(&hot, &r), -LS_EPARSE);
	hot.odd_mask = 2;
	hot.n_value = 1;
	ck_assert_int_eq(unpack_hot(&hot, &r), -LS_EPARSE);
	hot.n_odd = 1;
	ck_assert_int_eq(unpack_hot(&hot, &r), 0);
	ck_assert(r.hot[0].value[0] == 0.5);
	odd[0] = INFINITY;
	ck_assert_int_eq(unpack_hot(&hot, &r), -LS_ERANGE);
	odd[0] = 0;
	value[0] = (1ull << 53) + 1;
	ck_assert_int_eq(unpack_hot(&hot, &r), -LS_ERANGE);
	value[0] = 7;
	hot.age_ns = 1001; /* before the clock began */
	ck_assert_int_eq(unpack_hot(&hot, &r), -LS_ERANGE);
	hot.age_ns = 0;
	hot.mask |= 1u << 31; /* a newer agent's */
	hot.n_value = 2;
	ck_assert_int_eq(unpack_hot(&hot, &r), 0);
	ck_assert_uint_eq(r.hot[0].count, 2);
}
