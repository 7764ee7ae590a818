/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/ring/ring_events.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "proto/ring/ring.h"
#include "tests/support/harness.h"

enum { GOLDEN_HEADER = LS_RING_EVENTS_OFFSET + LS_RING_EVENTS_BYTES };

static uint8_t *golden, *block;
static struct ls_ring_events events;

static void
setup(void)
{
	size_t len;

	golden = (uint8_t *)ls_test_read(
		ls_test_source("tests/golden/ring_v1_events.bin"), &len);
	ck_assert_uint_eq(len, GOLDEN_HEADER + 2 * LS_RING_SLOT_BYTES);
	block = golden + LS_RING_EVENTS_OFFSET;
	memset(&events, 0xa5, sizeof(events));
}

static void
teardown(void)
{
	free(golden);
}

static int
parse(void)
{
	return ls_ring_parse_events(block, LS_RING_EVENTS_BYTES, &events);
}

LS_CASE(ring_events, setup, teardown);

LS_TEST(ring_events, golden_ring_has_the_block_behind_its_header)
{
	struct ls_ring_header header;
	struct ls_ring_live live;
	struct ls_record record;
	const char *why = NULL;

	ck_assert_int_eq(
		ls_ring_parse_header(golden, LS_RING_HEADER_BYTES, &header, &why), 0);
	ck_assert_uint_eq(header.header_bytes, GOLDEN_HEADER);
	ck_assert_int_eq(ls_ring_parse_live(golden, LS_RING_HEADER_BYTES, &live), 0);
	ck_assert_uint_eq(live.step, 42);
	ck_assert_int_eq(ls_ring_parse_slot(golden + GOLDEN_HEADER, LS_RING_SLOT_BYTES,
				 0, &record, &why),
		0);
	ck_assert_uint_eq(record.step, 41);
	ck_assert_int_eq(parse(), 0);
}

LS_TEST(ring_events, counters_and_functions_of_the_golden_ring)
{
	unsigned i;

	ck_assert_int_eq(parse(), 0);
	for (i = 0; i < LS_RING_EVENT_COUNT; i++) {
		ck_assert(events.measured[i] == (i != LS_RING_EVENT_CACHE_MISSES));
		ck_assert_uint_eq(events.counter[i], events.measured[i] ? 100 + i : 0);
	}
	ck_assert_uint_eq(events.function_count, 2);
	ck_assert_uint_eq(events.bad_names, 0);
	ck_assert_str_eq(events.function[0].name, "train_step");
	ck_assert_uint_eq(events.function[0].compiles, 14);
	ck_assert_uint_eq(events.function[0].ns, 31250000000);
	ck_assert_str_eq(events.function[1].name, "Trainer.update");
	ck_assert_uint_eq(events.function[1].compiles, 1);
}

LS_TEST(ring_events, fewer_bytes_than_a_block_are_none)
{
	const struct ls_ring_events before = events;

	ck_assert_int_eq(ls_ring_parse_events(block, LS_RING_EVENTS_BYTES - 1, &events),
		-LS_EPARSE);
	ck_assert_int_eq(ls_ring_parse_events(block, 0, &events), -LS_EPARSE);
	ck_assert_mem_eq(&events, &before, sizeof(events));
}

LS_TEST(ring_events, functions_without_a_name_are_left_out_and_counted)
{
	static const char *const bad[] = { "", "a\nb", "\xff\xfe", "\x1b[31m" };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(block + 128 + 16, 0, LS_RING_FUNCTION_NAME_MAX_BYTES);
		memcpy(block + 128 + 16, bad[i], strlen(bad[i]));
		ck_assert_int_eq(parse(), 0);
		ck_assert_uint_eq(events.bad_names, 1);
		ck_assert_uint_eq(events.function_count, 1);
		ck_assert_str_eq(events.function[0].name, "Trainer.update");
	}
	/* not terminated */
	memset(block + 128 + 16, 'x', LS_RING_FUNCTION_NAME_MAX_BYTES);
	ck_assert_int_eq(parse(), 0);
	ck_assert_uint_eq(events.bad_names, 1);
	memset(block, 0xff, LS_RING_EVENTS_BYTES);
	ck_assert_int_eq(parse(), 0);
	ck_assert_uint_eq(events.bad_names, LS_RING_FUNCTIONS_MAX);
	ck_assert_uint_eq(events.counter[0], UINT64_MAX);
}

LS_TEST(ring_events, every_counter_is_a_metric_of_a_job)
{
	unsigned i;

	for (i = 0; i < LS_RING_EVENT_COUNT; i++) {
		double unit = 0;
		const struct ls_metric_info *m = ls_metric_info(
			ls_ring_event_metric((enum ls_ring_event)i, &unit));

		ck_assert_int_eq(m->scope, LS_METRIC_SCOPE_JOB);
		ck_assert_int_eq(m->kind, LS_METRIC_KIND_COUNTER);
		ck_assert(fabs(unit - (strcmp(m->unit, "s") == 0 ? 1e9 : 1)) < 0.5);
	}
}
