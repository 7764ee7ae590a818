/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/ring/ring.h"

#include <stdlib.h>
#include <string.h>
#include "tests/support/harness.h"

enum { GOLDEN_BYTES = LS_RING_HEADER_BYTES + 2 * LS_RING_SLOT_BYTES };

static uint8_t *golden;
static struct ls_ring_header header;
static struct ls_record record;
static const char *why;

static void
setup(void)
{
	size_t len;

	golden = (uint8_t *)ls_test_read(ls_test_source("tests/golden/ring_v1.bin"),
		&len);
	ck_assert_uint_eq(len, GOLDEN_BYTES);
	memset(&header, 0xa5, sizeof(header));
	memset(&record, 0xa5, sizeof(record));
	why = NULL;
}

static void
teardown(void)
{
	free(golden);
}

static int
parse_header(void)
{
	return ls_ring_parse_header(golden, GOLDEN_BYTES, &header, &why);
}

static uint8_t *
slot(void)
{
	return golden + LS_RING_HEADER_BYTES;
}

static int
parse_slot(void)
{
	return ls_ring_parse_slot(slot(), LS_RING_SLOT_BYTES, 0, &record, &why);
}

static void
put_u32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static void
put_u64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

LS_CASE(ring, setup, teardown);

LS_TEST(ring, impossible_number_of_records_is_rejected)
{
	put_u64(golden + LS_RING_HEAD_OFFSET, LS_RING_HEAD_MAX);
	ck_assert_int_eq(parse_header(), 0);
	put_u64(golden + LS_RING_HEAD_OFFSET, LS_RING_HEAD_MAX + 1);
	ck_assert_int_eq(parse_header(), -LS_ERANGE);
	ck_assert_str_eq(why, "impossible number of records");
}

LS_TEST(ring, header_of_version_1_is_read)
{
	ck_assert_int_eq(parse_header(), 0);
	ck_assert_uint_eq(header.header_bytes, 4096);
	ck_assert_uint_eq(header.slot_bytes, 320);
	ck_assert_uint_eq(header.slots, 2);
	ck_assert_uint_eq(header.flags, 0);
	ck_assert_uint_eq(header.pid, 4242);
	ck_assert_uint_eq(header.id[15], 15);
	ck_assert_uint_eq(header.boot_id[0], 16);
	ck_assert_uint_eq(header.created_mono_ns, 1000000000);
	ck_assert_int_eq(header.created_wall_ns, 1795227133000000000);
	ck_assert_int_eq(header.worker.attempt, 2);
	ck_assert_int_eq(header.worker.rank, 3);
	ck_assert_int_eq(header.worker.world, 4);
	ck_assert_int_eq(header.worker.chips, 4);
	ck_assert_str_eq(header.worker.job, "golden-run");
	ck_assert_str_eq(header.worker.slice, "1");
	ck_assert_str_eq(header.worker.role, "trainer");
	ck_assert_str_eq(header.worker.host, "h3");
	ck_assert_uint_eq(header.from[0], LS_RING_FROM_API);
	ck_assert_uint_eq(header.from[5], LS_RING_FROM_MEGASCALE);
	ck_assert_str_eq(header.env,
		"LOCKSTEP_ATTEMPT=2\nMEGASCALE_SLICE_ID=1\nTPU_CHIPS_PER_HOST_BOUNDS=2,2,1\n");
	ck_assert_uint_eq(header.head, 1);
}

LS_TEST(ring, slot_of_version_1_is_read)
{
	ck_assert_int_eq(parse_slot(), 0);
	ck_assert_uint_eq(record.step, 41);
	ck_assert_int_eq(record.t_begin_ns, 1000500000);
	ck_assert_uint_eq(record.duration_ns, 20000000);
	ck_assert_uint_eq(record.phase_mask,
		1u << LS_PHASE_INPUT_WAIT | 1u << LS_PHASE_COMPUTE |
			1u << LS_PHASE_SYNC_WAIT | 1u << LS_PHASE_OTHER);
	ck_assert_uint_eq(record.phase_ns[LS_PHASE_COMPUTE], 12000000);
	ck_assert_uint_eq(record.phase_ns[LS_PHASE_SYNC_WAIT], 6500000);
	ck_assert_uint_eq(record.phase_ns[LS_PHASE_GC], 0);
	ck_assert_uint_eq(record.barrier_count, 2);
	ck_assert_uint_eq(record.barrier[0].kind, LS_BARRIER_ICI);
	ck_assert_uint_eq(record.barrier[1].kind, LS_BARRIER_DCN);
	ck_assert_int_eq(record.barrier[0].enter_ns, 1013500000);
	ck_assert_int_eq(record.barrier[1].exit_ns, 1020100000);
	ck_assert_uint_eq(record.work_mask, 1u << LS_WORK_TOKENS | 1u << LS_WORK_BATCH);
	ck_assert_double_eq(record.work[LS_WORK_TOKENS], 4096);
	ck_assert_double_eq(record.work[LS_WORK_BATCH], 8);
	ck_assert_uint_eq(record.peer_count, 2);
	ck_assert_uint_eq(record.peer[0].rank, 2);
	ck_assert_uint_eq(record.peer[0].recv_wait_ns, 4900000);
	ck_assert_uint_eq(record.peer[0].send_wait_ns, UINT64_MAX);
	ck_assert_uint_eq(record.peer[1].recv_wait_ns, UINT64_MAX);
	ck_assert_uint_eq(record.peer[1].send_wait_ns, 120000);
}

LS_TEST(ring, live_slot_is_read)
{
	struct ls_ring_live live;

	ck_assert_int_eq(ls_ring_parse_live(golden, GOLDEN_BYTES, &live), 0);
	ck_assert_uint_eq(live.step, 42);
	ck_assert_uint_eq(live.phase, LS_PHASE_COMPUTE);
	ck_assert_uint_eq(live.since_mono_ns, 1040000000);
}

LS_TEST(ring, live_slot_in_the_making_is_stale)
{
	struct ls_ring_live live = { 7, 7, 7 };
	uint8_t *p = golden + LS_RING_LIVE_OFFSET;

	put_u64(p, 3);
	ck_assert_int_eq(ls_ring_parse_live(golden, GOLDEN_BYTES, &live), -LS_ESTALE);
	put_u64(p, 4); /* the twin still says 2 */
	ck_assert_int_eq(ls_ring_parse_live(golden, GOLDEN_BYTES, &live), -LS_ESTALE);
	put_u64(p + 32, 4);
	put_u32(p + 16, LS_PHASE_COUNT);
	ck_assert_int_eq(ls_ring_parse_live(golden, GOLDEN_BYTES, &live), 0);
	put_u32(p + 16, LS_PHASE_COUNT + 1);
	live.step = 7;
	ck_assert_int_eq(ls_ring_parse_live(golden, GOLDEN_BYTES, &live), -LS_ERANGE);
	ck_assert_int_eq(ls_ring_parse_live(golden, LS_RING_HEADER_BYTES - 1, &live),
		-LS_EPARSE);
	ck_assert_uint_eq(live.step, 7);
}

LS_TEST(ring, what_is_no_ring_is_refused)
{
	struct ls_ring_header before = header;

	ck_assert_int_eq(
		ls_ring_parse_header(golden, LS_RING_HEADER_BYTES - 1, &header, &why),
		-LS_EPARSE);
	ck_assert_ptr_nonnull(why);
	ck_assert_int_eq(ls_ring_parse_header(golden, 0, &header, NULL), -LS_EPARSE);
	golden[7] = '2';
	ck_assert_int_eq(parse_header(), -LS_EPARSE);
	golden[7] = '1';
	put_u32(golden + 8, 2);
	ck_assert_int_eq(parse_header(), -LS_EVERSION);
	ck_assert_str_eq(why, "the ring is not of version 1");
	ck_assert_mem_eq(&before, &header, sizeof(header));
}

LS_TEST(ring, impossible_sizes_are_refused)
{
	static const uint32_t bad[][2] = {
		{ 12, 4095 },
		{ 12, 4100 },
		{ 12, 0 },
		{ 12, UINT32_MAX },
		{ 12, LS_RING_HEADER_MAX_BYTES + 8 },
		{ 16, 319 },
		{ 16, 324 },
		{ 16, 0 },
		{ 16, LS_RING_SLOT_MAX_BYTES + 8 },
		{ 16, UINT32_MAX },
		{ 20, 0 },
		{ 20, LS_RING_SLOTS_MAX + 1 },
		{ 20, UINT32_MAX },
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t keep[4];

		memcpy(keep, golden + bad[i][0], 4);
		put_u32(golden + bad[i][0], bad[i][1]);
		ck_assert_int_eq(parse_header(), -LS_EPARSE);
		memcpy(golden + bad[i][0], keep, 4);
	}
	ck_assert_int_eq(parse_header(), 0);
}

LS_TEST(ring, larger_header_and_slot_of_this_version_are_read)
{
	uint8_t larger[LS_RING_SLOT_BYTES + 64] = { 0 };

	put_u32(golden + 12, 8192);
	put_u32(golden + 16, sizeof(larger));
	ck_assert_int_eq(parse_header(), 0);
	ck_assert_uint_eq(header.header_bytes, 8192);
	memcpy(larger, slot(), LS_RING_SLOT_BYTES);
	ck_assert_int_eq(ls_ring_parse_slot(larger, sizeof(larger), 0, &record, &why),
		0);
	ck_assert_uint_eq(record.step, 41);
}

LS_TEST(ring, impossible_workers_are_refused)
{
	static const struct {
		uint32_t at, value;
	} bad[] = {
		{ 80, UINT32_MAX },
		{ 84, UINT32_MAX },
		{ 84, LS_WORKERS_MAX },
		{ 84, 4 },
		{ 88, UINT32_MAX },
		{ 88, LS_WORKERS_MAX + 1 },
		{ 88, 3 },
		{ 92, UINT32_MAX },
		{ 92, LS_CHIPS_PER_WORKER_MAX + 1 },
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t keep[4];

		memcpy(keep, golden + bad[i].at, 4);
		put_u32(golden + bad[i].at, bad[i].value);
		ck_assert_int_eq(parse_header(), -LS_ERANGE);
		ck_assert_ptr_nonnull(why);
		memcpy(golden + bad[i].at, keep, 4);
	}
	put_u32(golden + 88, 0); /* world not known */
	ck_assert_int_eq(parse_header(), 0);
}

LS_TEST(ring, names_must_be_terminated_text)
{
	static const size_t at[] = { 104, 232, 296, 360 };
	static const size_t size[] = { 128, 64, 64, 128 };
	size_t i;

	for (i = 0; i < 4; i++) {
		uint8_t keep[128];

		memcpy(keep, golden + at[i], size[i]);
		memset(golden + at[i], 'x', size[i]);
		ck_assert_int_eq(parse_header(), -LS_ERANGE);
		golden[at[i] + 1] = 0x1b; /* an escape sequence is no name */
		golden[at[i] + 2] = '\0';
		ck_assert_int_eq(parse_header(), -LS_ERANGE);
		golden[at[i] + 1] = 0xff; /* nor is what is not UTF-8 */
		ck_assert_int_eq(parse_header(), -LS_ERANGE);
		memset(golden + at[i], 0, size[i]);
		ck_assert_int_eq(parse_header(), i == 0 ? -LS_ERANGE : 0);
		memcpy(golden + at[i], keep, size[i]);
	}
	memset(golden + LS_RING_ENV_OFFSET, 'x', LS_RING_ENV_MAX_BYTES);
	ck_assert_int_eq(parse_header(), -LS_ERANGE);
}

LS_TEST(ring, unknown_provenance_is_none)
{
	golden[96] = LS_RING_FROM_COUNT;
	golden[97] = 255;
	ck_assert_int_eq(parse_header(), 0);
	ck_assert_uint_eq(header.from[0], LS_RING_FROM_NONE);
	ck_assert_uint_eq(header.from[1], LS_RING_FROM_NONE);
}

LS_TEST(ring, slot_of_another_lap_or_in_the_making_is_stale)
{
	struct ls_record before = record;

	ck_assert_int_eq(
		ls_ring_parse_slot(slot(), LS_RING_SLOT_BYTES, 2, &record, &why),
		-LS_ESTALE);
	ck_assert_int_eq(ls_ring_parse_slot(slot() + LS_RING_SLOT_BYTES,
				 LS_RING_SLOT_BYTES, 1, &record, &why),
		-LS_ESTALE);
	ck_assert_int_eq(ls_ring_parse_slot(slot(), LS_RING_SLOT_BYTES, UINT64_MAX,
				 &record, &why),
		-LS_ESTALE);
	put_u64(slot() + 312, 3); /* copied while the next lap was being written */
	ck_assert_int_eq(parse_slot(), -LS_ESTALE);
	put_u64(slot() + 312, 1);
	put_u64(slot(), 0);
	ck_assert_int_eq(parse_slot(), -LS_ESTALE);
	put_u64(slot(), 1);
	ck_assert_int_eq(
		ls_ring_parse_slot(slot(), LS_RING_SLOT_BYTES - 1, 0, &record, &why),
		-LS_EPARSE);
	ck_assert_mem_eq(&before, &record, sizeof(record));
}

LS_TEST(ring, impossible_slots_are_refused)
{
	static const struct {
		uint32_t at;
		uint64_t value;
	} bad[] = {
		{ 16, UINT64_MAX }, /* negative time */
		{ 24, UINT64_MAX }, /* a duration of centuries */
		{ 48, 21 * 1000000 + 1000000000ull }, /* phases above the duration */
		{ 136, 1 }, /* a barrier before the step */
		{ 144, 1013499999 }, /* left before it was entered */
		{ 200, 0x7ff8000000000000 }, /* NaN tokens */
		{ 200, 0xbff0000000000000 }, /* -1 tokens */
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t keep[8];

		memcpy(keep, slot() + bad[i].at, 8);
		put_u64(slot() + bad[i].at, bad[i].value);
		why = NULL;
		ck_assert_int_eq(parse_slot(), -LS_ERANGE);
		ck_assert_ptr_nonnull(why);
		memcpy(slot() + bad[i].at, keep, 8);
	}
	ck_assert_int_eq(parse_slot(), 0);
}

LS_TEST(ring, impossible_counts_are_refused)
{
	slot()[32] = LS_BARRIERS_MAX + 1;
	ck_assert_int_eq(parse_slot(), -LS_ERANGE);
	slot()[32] = 255;
	ck_assert_int_eq(parse_slot(), -LS_ERANGE);
	slot()[32] = 2;
	slot()[34] = LS_PEERS_MAX + 1;
	ck_assert_int_eq(parse_slot(), -LS_ERANGE);
	slot()[34] = 2;
	slot()[36] = LS_BARRIER_COUNT;
	ck_assert_int_eq(parse_slot(), -LS_ERANGE);
}

LS_TEST(ring, unknown_kind_of_work_is_dropped)
{
	slot()[33] = 0xff;
	ck_assert_int_eq(parse_slot(), 0);
	ck_assert_uint_eq(record.work_mask, (1u << LS_WORK_COUNT) - 1);
}

LS_TEST(ring, unmarked_phase_is_zero_whatever_its_bytes)
{
	put_u64(slot() + 48 + 8 * LS_PHASE_GC, 5000);
	ck_assert_int_eq(parse_slot(), 0);
	ck_assert_uint_eq(record.phase_ns[LS_PHASE_GC], 0);
}
