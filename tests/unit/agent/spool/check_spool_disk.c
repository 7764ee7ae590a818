/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/spool.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/spool/disk.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "tests/support/harness.h"
#include "tests/support/tree.h"

/*
 * The spool on a disk thread: pushes, reports and acknowledgements at any moment of its
 * jobs. Whatever the order, each record and each sample comes out once, as itself or as
 * a loss, and nothing that was sent is missing in a copy of the file.
 */

#define ROUNDS 8000
#define SAMPLES 100
#define BODY_MAX_BYTES 9000

static const uint8_t kernel[16] = { 1 };
static const uint8_t ring_id[LS_RING_ID_BYTES] = { 1 };
static uint64_t seed;
static char dir[256];
static struct ls_loop *loop;
static struct ls_disk *disk;
static struct ls_spool *s;
static uint64_t pushed_records, pushed_samples;
static uint64_t out_records, out_samples; /* acknowledged */
static uint64_t sent, sent_chunks;
static uint8_t steps_buf[LS_REPORT_ITEMS_BYTES], chunk_buf[LS_SPOOL_CHUNKS_READ_BYTES];
static uint8_t body[BODY_MAX_BYTES];

static uint64_t
below(uint64_t n)
{
	return (uint64_t)(ls_test_random(&seed) * (double)n);
}

static void
setup(void)
{
	uint64_t x = 88172645463325252u;
	size_t i;

	ls_log_set_level(LS_LOG_ERR);
	for (i = 0; i < sizeof(body); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		body[i] = (uint8_t)x;
	}
	pushed_records = pushed_samples = out_records = out_samples = 0;
	sent = sent_chunks = 0;
	(void)snprintf(dir, sizeof(dir), "%s", ls_test_tmpdir());
	loop = ls_loop_new();
	ck_assert_int_eq(ls_disk_start(loop, "/x", &disk), 0);
	ck_assert_int_eq(ls_spool_open(dir, LS_SPOOL_MIN_BYTES, kernel, &s), 0);
	ls_spool_use_disk(s, disk, NULL, NULL);
}

static void
teardown(void)
{
	ls_spool_close(s);
	ls_loop_free(loop);
}

static void
push_steps(void)
{
	static struct ls_record records[LS_STEPS_PER_ITEM];
	struct ls_wire_item item = { .kind = LS_WIRE_STEPS,
		.ring_id = { 1 },
		.first_index = pushed_records,
		.count = 1 + below(LS_STEPS_PER_ITEM),
		.records = records };

	if (ls_spool_push(s, &item) == 0) /* else full: it stays in its ring */
		pushed_records += item.count;
}

static void
push_chunk(void)
{
	struct ls_wire_chunk_item item = { .kind = LS_WIRE_CHUNK,
		.group = "g",
		.hash = 1 + below(3),
		.rows = 1,
		.t_first_mono_ns = pushed_samples + 1,
		.t_last_mono_ns = pushed_samples + 1,
		.samples = SAMPLES,
		.body = body,
		.body_len = 1 + below(sizeof(body)) };

	if (ls_spool_push_chunk(s, &item) == 0)
		pushed_samples += SAMPLES;
}

/* Sends what is there; acknowledges some of it, or all. */
static void
report_steps(bool all)
{
	struct ls_wire_bytes items[LS_ITEMS_PER_REPORT_MAX];
	struct ls_wire_item item;
	uint64_t seq = ls_spool_acked(s), index = out_records;
	size_t count, stored, i;
	const char *why;

	ck_assert_int_eq(ls_spool_read(s, steps_buf, sizeof(steps_buf), items,
				 LS_ITEMS_PER_REPORT_MAX, &count),
		0);
	stored = all ? count : below(count + 1);
	for (i = 0; i < count; i++) {
		ck_assert_int_eq(
			ls_wire_item_unpack(items[i].data, items[i].len, &item, &why),
			0);
		ck_assert_uint_eq(item.seq, seq + 1 + i);
		ck_assert_uint_eq(item.first_index, index);
		index += item.count;
		if (i < stored)
			out_records = index;
		ls_wire_item_clear(&item);
	}
	sent = seq + count > sent ? seq + count : sent;
	ls_spool_ack(s, seq + stored);
}

static void
report_chunks(bool all)
{
	struct ls_wire_bytes items[LS_CHUNK_ITEMS_PER_REPORT_MAX];
	struct ls_wire_chunk_item item;
	uint64_t seq = ls_spool_chunks_acked(s);
	size_t count, stored, i;
	const char *why;

	ck_assert_int_eq(ls_spool_read_chunks(s, chunk_buf, SIZE_MAX, items, &count),
		0);
	stored = all ? count : below(count + 1);
	for (i = 0; i < count; i++) {
		ck_assert_int_eq(ls_wire_chunk_item_unpack(items[i].data, items[i].len,
					 &item, &why),
			0);
		ck_assert_uint_eq(item.seq, seq + 1 + i);
		if (i < stored)
			out_samples += item.samples;
		if (i < stored && item.kind == LS_WIRE_CHUNK)
			out_samples += SAMPLES;
		ls_wire_chunk_item_clear(&item);
	}
	sent_chunks = seq + count > sent_chunks ? seq + count : sent_chunks;
	ls_spool_ack_chunks(s, seq + stored);
}

/* What kill -9 would leave: all that was sent, and no cursor before its records. */
static void
look_at_a_copy(void)
{
	const struct ls_spool_ring *ring;
	char from[300], to[300], copy[256], *bytes;
	struct ls_spool *after;
	size_t len;
	FILE *f;

	(void)snprintf(from, sizeof(from), "%s/spool", dir);
	(void)snprintf(copy, sizeof(copy), "%s", ls_test_tmpdir());
	(void)snprintf(to, sizeof(to), "%s/spool", copy);
	bytes = ls_test_read(from, &len);
	f = fopen(to, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
	ck_assert_int_eq(fclose(f), 0);
	free(bytes);
	ck_assert_int_eq(ls_spool_open(copy, LS_SPOOL_MIN_BYTES, kernel, &after), 0);
	ck_assert_mem_eq(ls_spool_boot(after), ls_spool_boot(s), LS_BOOT_BYTES);
	ck_assert_uint_gt(ls_spool_next(after), sent);
	ck_assert_uint_gt(ls_spool_chunks_next(after), sent_chunks);
	ck_assert_uint_eq(ls_spool_get_stats(after)->discarded_items, 0);
	ring = ls_spool_ring_find(after, ring_id);
	ck_assert(ring == NULL || ring->next <= pushed_records);
	ls_spool_close(after);
}

LS_CASE(spool_disk, setup, teardown);

LS_TEST_LOOP(spool_disk, every_record_and_sample_comes_out_once, 0, 4)
{
	size_t i;

	seed = (uint64_t)_i + 1;
	for (i = 0; i < ROUNDS; i++) {
		/* For a while nobody answers: the spool gets full. */
		bool is_down = i / 1000 % 2 == 1;
		uint64_t what = below(100);

		if (what < 30)
			push_steps();
		else if (what < 55)
			push_chunk();
		else if (what < 70 && !is_down)
			report_steps(false);
		else if (what < 85 && !is_down)
			report_chunks(false);
		else if (what < 99)
			ls_ignore(event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK));
		else if (i % 4 == 0)
			look_at_a_copy();
		if (what % 8 == 0)
			while (!ls_spool_is_idle(s))
				ls_ignore(event_base_loop(ls_loop_base(loop),
					EVLOOP_ONCE));
	}
	ck_assert_uint_gt(ls_spool_get_stats(s)->rewrites, 2);
	ck_assert_uint_gt(ls_spool_get_stats(s)->dropped_chunks, 0);
	ck_assert_int_eq(ls_disk_stop(disk, 60 * 1000000000ull), 0);
	ls_spool_use_disk(s, NULL, NULL, NULL);
	while (ls_spool_acked(s) + 1 < ls_spool_next(s))
		report_steps(true);
	while (ls_spool_chunks_acked(s) + 1 < ls_spool_chunks_next(s))
		report_chunks(true);
	ck_assert_uint_eq(out_records, pushed_records);
	ck_assert_uint_eq(out_samples, pushed_samples);
}
