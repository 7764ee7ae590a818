/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/spool/spool_format.h"
#include "tests/support/harness.h"
#include "tests/support/wire_pack.h"

static char dir[256];
static const uint8_t kernel[16] = { 1, 2, 3 };
static uint8_t buf[LS_REPORT_ITEMS_BYTES];
static struct ls_wire_bytes items[LS_ITEMS_PER_REPORT_MAX];

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s", ls_test_tmpdir());
}

static struct ls_spool *
open_sized(uint64_t max_bytes)
{
	struct ls_spool *s = NULL;

	ck_assert_int_eq(ls_spool_open(dir, max_bytes, kernel, &s), 0);
	return s;
}

static struct ls_spool *
open_spool(void)
{
	return open_sized(LS_SPOOL_DEFAULT_BYTES);
}

/* Pushes n records of ring `ring`, from index first. */
static int
push_steps(struct ls_spool *s, uint8_t ring, uint64_t first, size_t n)
{
	struct ls_record records[LS_STEPS_PER_ITEM] = { 0 };
	struct ls_wire_item item = { .kind = LS_WIRE_STEPS,
		.ring_id = { ring },
		.first_index = first,
		.count = n,
		.records = records };
	size_t i;

	for (i = 0; i < n; i++) {
		records[i].step = first + i;
		records[i].t_begin_ns = (int64_t)(1000 + first + i);
		records[i].duration_ns = 5;
	}
	return ls_spool_push(s, &item);
}

static int
push_end(struct ls_spool *s, uint8_t ring, uint64_t records)
{
	struct ls_wire_item item = { .kind = LS_WIRE_END,
		.ring_id = { ring },
		.count = records,
		.how = LS_END_ENDED };

	return ls_spool_push(s, &item);
}

/* Reads what is there and checks that numbers follow each other from first. */
static size_t
read_items(struct ls_spool *s, uint64_t first)
{
	struct ls_wire_item item;
	const char *why;
	size_t count, i;

	ck_assert_int_eq(ls_spool_read(s, buf, sizeof(buf), items,
				 LS_ITEMS_PER_REPORT_MAX, &count),
		0);
	for (i = 0; i < count; i++) {
		ck_assert_int_eq(
			ls_wire_item_unpack(items[i].data, items[i].len, &item, &why),
			0);
		ck_assert_uint_eq(item.seq, first + i);
		ls_wire_item_clear(&item);
	}
	return count;
}

static char *
spool_path(const char *name)
{
	static char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void
write_file(const char *path, const char *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
	ck_assert_int_eq(fclose(f), 0);
}

static uint64_t
cursor(const struct ls_spool *s, uint8_t ring)
{
	const uint8_t id[LS_RING_ID_BYTES] = { ring };
	const struct ls_spool_ring *r = ls_spool_ring_find(s, id);

	return r != NULL ? r->next : UINT64_MAX;
}

LS_CASE(spool, setup, NULL);

LS_TEST(spool, spool_numbers_items_from_one_and_keeps_them)
{
	struct ls_spool *s = open_spool();

	ck_assert_uint_eq(read_items(s, 1), 0);
	ck_assert_int_eq(push_steps(s, 7, 0, 3), 0);
	ck_assert_int_eq(push_steps(s, 7, 3, 1), 0);
	ck_assert_int_eq(push_end(s, 7, 4), 0);
	ck_assert_uint_eq(ls_spool_next(s), 4);
	ck_assert_uint_eq(read_items(s, 1), 3);
	ck_assert_uint_eq(read_items(s, 1), 3); /* until they are acknowledged */
	ls_spool_ack(s, 2);
	ck_assert_uint_eq(ls_spool_acked(s), 2);
	ck_assert_uint_eq(read_items(s, 3), 1);
	ls_spool_ack(s, 1); /* old news */
	ls_spool_ack(s, 99); /* never given out */
	ck_assert_uint_eq(ls_spool_acked(s), 2);
	ls_spool_close(s);
	ls_spool_close(NULL);
}

LS_TEST(spool, spool_reads_as_many_as_asked_for)
{
	struct ls_spool *s = open_spool();
	size_t i, count;

	for (i = 0; i < 20; i++)
		ck_assert_int_eq(push_steps(s, 1, i, 1), 0);
	ck_assert_int_eq(ls_spool_read(s, buf, sizeof(buf), items, 5, &count), 0);
	ck_assert_uint_eq(count, 5);
	ck_assert_int_eq(ls_spool_read(s, buf, 300, items, 100, &count), 0);
	ck_assert_uint_ge(count, 1);
	ck_assert_uint_lt(count, 5);
	ls_spool_close(s);
}

LS_TEST(spool, spool_survives_its_process)
{
	struct ls_spool *s = open_spool();
	uint8_t boot[LS_BOOT_BYTES], first[4096];
	size_t len;

	memcpy(boot, ls_spool_boot(s), sizeof(boot));
	ck_assert_int_eq(push_steps(s, 1, 0, 10), 0);
	ck_assert_int_eq(push_steps(s, 2, 5, 1), 0);
	ck_assert_int_eq(push_end(s, 1, 10), 0);
	ls_spool_ack(s, 1);
	ck_assert_uint_eq(read_items(s, 2), 2);
	len = items[0].len;
	memcpy(first, items[0].data, len);
	ls_spool_close(s); /* closing writes nothing: the same as kill -9 */
	s = open_spool();
	ck_assert_mem_eq(ls_spool_boot(s), boot, sizeof(boot));
	ck_assert_uint_eq(ls_spool_acked(s), 1);
	ck_assert_uint_eq(ls_spool_next(s), 4);
	ck_assert_uint_eq(cursor(s, 1), 10);
	ck_assert_uint_eq(cursor(s, 2), 6);
	ck_assert_uint_eq(ls_spool_ring_at(s, 0)->end_seq, 3);
	ck_assert_uint_eq(read_items(s, 2), 2);
	ck_assert_uint_eq(items[0].len, len);
	ck_assert_mem_eq(items[0].data, first, len); /* one number, the same bytes */
	ls_spool_close(s);
}

LS_TEST(spool, spool_forgets_rings)
{
	const uint8_t one[LS_RING_ID_BYTES] = { 1 };
	struct ls_spool *s = open_spool();

	ck_assert_int_eq(push_steps(s, 1, 0, 1), 0);
	ck_assert_int_eq(push_steps(s, 2, 0, 2), 0);
	ls_spool_ring_forget(s, one);
	ck_assert_uint_eq(cursor(s, 1), UINT64_MAX);
	ls_spool_close(s);
	s = open_spool();
	ck_assert_uint_eq(cursor(s, 1), UINT64_MAX);
	ck_assert_uint_eq(cursor(s, 2), 2);
	ck_assert_ptr_null(ls_spool_ring_at(s, 1));
	ls_spool_close(s);
}

LS_TEST(spool, spool_refuses_too_many_rings)
{
	struct ls_spool *s = open_spool();
	unsigned i;

	for (i = 0; i < LS_SPOOL_RINGS_MAX; i++)
		ck_assert_int_eq(push_steps(s, (uint8_t)i, 0, 1), 0);
	ck_assert_int_eq(push_steps(s, (uint8_t)i, 0, 1), -LS_ELIMIT);
	ck_assert_uint_eq(ls_spool_next(s), LS_SPOOL_RINGS_MAX + 1);
	ls_spool_close(s);
}

LS_TEST(spool, spool_belongs_to_one_agent)
{
	struct ls_spool *s = open_spool(), *second = NULL;

	ck_assert_int_eq(ls_spool_open(dir, LS_SPOOL_MIN_BYTES, kernel, &second),
		-LS_EBUSY);
	ls_spool_close(s);
	s = open_spool();
	ls_spool_close(s);
}

/* Reads the first item of stream one. */
static struct ls_wire_item
first_item(struct ls_spool *s)
{
	struct ls_wire_item item;
	const char *why;
	size_t count;

	ck_assert_int_eq(ls_spool_read(s, buf, sizeof(buf), items, 1, &count), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(ls_wire_item_unpack(items[0].data, items[0].len, &item, &why),
		0);
	return item;
}

LS_TEST(spool, spool_of_another_kernel_boot_begins_anew_with_what_is_lost)
{
	const uint8_t other[16] = { 9 };
	uint8_t boot[LS_BOOT_BYTES];
	struct ls_spool *s = open_spool();
	struct ls_wire_item gap;

	memcpy(boot, ls_spool_boot(s), sizeof(boot));
	ck_assert_int_eq(push_steps(s, 1, 0, 5), 0);
	ck_assert_int_eq(push_steps(s, 2, 0, 1), 0);
	ck_assert_int_eq(push_end(s, 2, 1), 0);
	ck_assert_int_eq(push_steps(s, 3, 7, 1), 0);
	ls_spool_ack(s, 4);
	ck_assert_int_eq(push_steps(s, 1, 5, 2), 0);
	ck_assert_int_eq(push_steps(s, 1, 7, 4), 0);
	ls_spool_close(s);
	ck_assert_int_eq(ls_spool_open(dir, LS_SPOOL_MIN_BYTES, other, &s), 0);
	ck_assert_mem_ne(ls_spool_boot(s), boot, sizeof(boot));
	ck_assert_uint_eq(ls_spool_get_stats(s)->discarded_items, 2);
	ck_assert_uint_eq(ls_spool_get_stats(s)->dropped_records, 6);
	ck_assert_uint_eq(ls_spool_next(s), 2);
	gap = first_item(s);
	ck_assert_int_eq((int)gap.kind, LS_WIRE_GAP);
	ck_assert_int_eq((int)gap.reason, LS_GAP_REBOOT);
	ck_assert_uint_eq(gap.ring_id[0], 1);
	ck_assert_uint_eq(gap.first_index, 5);
	ck_assert_uint_eq(gap.count, 6);
	/* Workers without an acknowledged end are still known, so that they get one. */
	ck_assert_uint_eq(cursor(s, 1), 11);
	ck_assert_uint_eq(cursor(s, 3), 8);
	ck_assert_uint_eq(cursor(s, 2), UINT64_MAX);
	ls_spool_close(s);
	ck_assert_int_eq(ls_spool_open(dir, LS_SPOOL_MIN_BYTES, other, &s), 0);
	ck_assert_uint_eq(first_item(s).count, 6); /* it is on disk, too */
	ls_spool_close(s);
}

LS_TEST(spool, spool_is_emptied_when_all_is_acknowledged)
{
	struct ls_spool *s = open_spool();
	uint64_t first = 0;

	while (ls_spool_bytes(s) <= LS_SPOOL_COMPACT_BYTES) {
		ck_assert_int_eq(push_steps(s, 1, first, LS_STEPS_PER_ITEM), 0);
		first += LS_STEPS_PER_ITEM;
	}
	ls_spool_ack(s, ls_spool_next(s) - 1);
	ck_assert_uint_lt(ls_spool_bytes(s), 1024);
	ck_assert_uint_eq(cursor(s, 1), first);
	ls_spool_close(s);
	s = open_spool();
	ck_assert_uint_eq(cursor(s, 1), first);
	ck_assert_uint_eq(read_items(s, 0), 0);
	ck_assert_int_eq(push_steps(s, 1, first, 1), 0);
	ck_assert_uint_eq(read_items(s, ls_spool_next(s) - 1), 1);
	ls_spool_close(s);
}

LS_TEST(spool, spool_drops_the_oldest_as_gaps_when_full)
{
	struct ls_spool *s = open_sized(LS_SPOOL_MIN_BYTES);
	struct ls_wire_item item;
	uint64_t first = 0, gap_records = 0, next_index = 0, seq = 1;
	const char *why;
	size_t count, i;

	while (ls_spool_get_stats(s)->dropped_records == 0) {
		ck_assert_int_eq(push_steps(s, 1, first, LS_STEPS_PER_ITEM), 0);
		first += LS_STEPS_PER_ITEM;
		ck_assert_uint_le(ls_spool_bytes(s), LS_SPOOL_MIN_BYTES);
	}
	ck_assert_uint_le(ls_spool_bytes(s), LS_SPOOL_MIN_BYTES / 2 + 8192);
	/* No number and no record is missing, and what is gone is said to be. */
	while (ls_spool_acked(s) + 1 < ls_spool_next(s)) {
		ck_assert_int_eq(ls_spool_read(s, buf, sizeof(buf), items,
					 LS_ITEMS_PER_REPORT_MAX, &count),
			0);
		ck_assert_uint_gt(count, 0);
		for (i = 0; i < count; i++, seq++) {
			ck_assert_int_eq(ls_wire_item_unpack(items[i].data,
						 items[i].len, &item, &why),
				0);
			ck_assert_uint_eq(item.seq, seq);
			ck_assert_uint_eq(item.first_index, next_index);
			next_index += item.count;
			if (item.kind == LS_WIRE_GAP) {
				ck_assert_int_eq((int)item.reason,
					(int)LS_GAP_SPOOL_FULL);
				gap_records += item.count;
			}
			ls_wire_item_clear(&item);
		}
		ls_spool_ack(s, seq - 1);
	}
	ck_assert_uint_eq(next_index, first);
	ck_assert_uint_eq(gap_records, ls_spool_get_stats(s)->dropped_records);
	ck_assert_uint_gt(gap_records, 0);
	ls_spool_close(s);
}

LS_TEST(spool, spool_full_of_gaps_refuses_until_acknowledged)
{
	struct ls_spool *s = open_sized(LS_SPOOL_MIN_BYTES);
	uint64_t first = 0, acked;
	int rc;

	/* Gaps cannot be made smaller. */
	for (;;) {
		struct ls_wire_item gap = { .kind = LS_WIRE_GAP,
			.ring_id = { 1 },
			.first_index = first,
			.count = 1,
			.reason = LS_GAP_INVALID };

		rc = ls_spool_push(s, &gap);
		if (rc != 0)
			break;
		first++;
	}
	ck_assert_int_eq(rc, -ENOSPC);
	ck_assert_int_eq(push_steps(s, 1, first, 1), -ENOSPC);
	ck_assert_uint_eq(cursor(s, 1), first);
	ck_assert_uint_eq(ls_spool_next(s), first + 1);
	ck_assert_uint_eq(ls_spool_get_stats(s)->refused_items, 2);
	acked = ls_spool_next(s) / 2;
	ls_spool_ack(s, acked);
	ck_assert_int_eq(push_steps(s, 1, first, 1), 0);
	ck_assert_uint_gt(read_items(s, acked + 1), 0);
	ls_spool_close(s);
}

/* A spool with items, an ack and a forgotten ring; its bytes. */
static char *
make_spool(size_t *ret_len)
{
	const uint8_t two[LS_RING_ID_BYTES] = { 2 };
	struct ls_spool *s = open_spool();

	ck_assert_int_eq(push_steps(s, 1, 0, 2), 0);
	ck_assert_int_eq(push_steps(s, 2, 0, 1), 0);
	ls_spool_ack(s, 1);
	ls_spool_ring_forget(s, two);
	ck_assert_int_eq(push_end(s, 1, 2), 0);
	ls_spool_close(s);
	return ls_test_read(spool_path("spool"), ret_len);
}

/* --- items that no collector takes ---------------------------------------- */

/* The i-th item that is not acknowledged. */
static struct ls_wire_item
nth(struct ls_spool *s, size_t i)
{
	struct ls_wire_item item, copy;
	const char *why;
	size_t count;

	ck_assert_int_eq(ls_spool_read(s, buf, sizeof(buf), items,
				 LS_ITEMS_PER_REPORT_MAX, &count),
		0);
	ck_assert_uint_lt(i, count);
	ck_assert_int_eq(ls_wire_item_unpack(items[i].data, items[i].len, &item, &why),
		0);
	copy = item;
	ls_wire_item_clear(&item); /* its records */
	return copy;
}

LS_TEST(spool, malformed_item_is_replaced_for_good)
{
	struct ls_spool *s = open_spool();
	struct ls_wire_item item;

	ck_assert_int_eq(push_steps(s, 1, 0, 2), 0);
	ck_assert_int_eq(push_steps(s, 1, 2, 3), 0);
	ck_assert_int_eq(push_end(s, 1, 5), 0);
	ls_spool_ack(s, 1);
	ck_assert_int_eq(ls_spool_replace(s, 2, 0), 0);
	ck_assert_int_eq(ls_spool_replace(s, 3, 0), 0);
	ls_spool_close(s);
	s = open_spool();
	ck_assert_uint_eq(read_items(s, 2), 2);
	item = nth(s, 0);
	ck_assert_int_eq((int)item.kind, LS_WIRE_GAP);
	ck_assert_int_eq((int)item.reason, LS_GAP_INVALID);
	ck_assert_uint_eq(item.first_index, 2);
	ck_assert_uint_eq(item.count, 3);
	item = nth(s, 1);
	ck_assert_int_eq((int)item.kind, LS_WIRE_END);
	ck_assert_int_eq((int)item.how, LS_END_UNKNOWN);
	ck_assert_uint_eq(cursor(s, 1), 5);
	ls_spool_close(s);
}

/* Appends an item as a spool of 9b5f49c did, which took any number. */
static void
append_raw(enum ls_spool_type type, struct ls_wire_item *item)
{
	uint8_t head[LS_SPOOL_RECORD_BYTES], *payload;
	struct ls_spool_record r = { .type = type,
		.seq = item->seq,
		.first_index = item->first_index,
		.count = item->count };
	FILE *f = fopen(spool_path("spool"), "ab");

	ck_assert_ptr_nonnull(f);
	memcpy(r.ring_id, item->ring_id, sizeof(r.ring_id));
	ck_assert_int_eq(ls_test_item_pack(item, &payload, &r.len), 0);
	r.payload = payload;
	ls_spool_record_put(head, &r);
	ck_assert_uint_eq(fwrite(head, 1, sizeof(head), f), sizeof(head));
	ck_assert_uint_eq(fwrite(payload, 1, r.len, f), r.len);
	ck_assert_int_eq(fclose(f), 0);
	free(payload);
}

LS_TEST(spool, impossible_numbers_of_an_earlier_version_become_gaps)
{
	const uint64_t far = (1ull << 63) - 15;
	struct ls_spool *s = open_spool();
	struct ls_wire_item item;

	ck_assert_int_eq(push_steps(s, 1, 0, 2), 0);
	ls_spool_close(s);
	item = (struct ls_wire_item){
		.seq = 2, .kind = LS_WIRE_GAP, .ring_id = { 2 }, .count = far
	};
	append_raw(LS_SPOOL_GAP, &item);
	item = (struct ls_wire_item){
		.seq = 3, .kind = LS_WIRE_END, .ring_id = { 2 }, .count = far
	};
	append_raw(LS_SPOOL_END, &item);
	s = open_spool();
	ck_assert_uint_eq(read_items(s, 1), 3);
	item = nth(s, 1);
	ck_assert_int_eq((int)item.kind, LS_WIRE_GAP);
	ck_assert_uint_eq(item.first_index, 0);
	ck_assert_uint_eq(item.count, 1);
	item = nth(s, 2);
	ck_assert_int_eq((int)item.kind, LS_WIRE_END);
	ck_assert_uint_le(item.count, LS_WIRE_NUMBER_MAX);
	/* what is told of the ring later can be true, too */
	ck_assert_uint_eq(cursor(s, 2), LS_WIRE_NUMBER_MAX);
	ck_assert_uint_eq(ls_spool_get_stats(s)->malformed_items, 2);
	ck_assert_int_eq(push_steps(s, 1, 2, 2), 0);
	ls_spool_close(s);
}

LS_TEST(spool, item_with_impossible_numbers_is_refused)
{
	struct ls_spool *s = open_spool();

	ck_assert_int_eq(push_end(s, 1, LS_WIRE_NUMBER_MAX + 1), -LS_ERANGE);
	ck_assert_int_eq(push_end(s, 1, LS_WIRE_NUMBER_MAX), 0);
	ck_assert_uint_eq(ls_spool_get_stats(s)->refused_items, 1);
	ls_spool_close(s);
}

LS_TEST(spool, spool_cut_anywhere_opens_with_what_is_whole)
{
	uint8_t boot[LS_BOOT_BYTES];
	size_t len, cut;
	char *bytes = make_spool(&len);
	struct ls_spool *s = open_spool();
	uint64_t before = 0;

	memcpy(boot, ls_spool_boot(s), sizeof(boot));
	ls_spool_close(s);
	for (cut = 0; cut <= len; cut++) {
		write_file(spool_path("spool"), bytes, cut);
		s = open_spool();
		if (cut < LS_SPOOL_HEADER_BYTES) {
			ck_assert_mem_ne(ls_spool_boot(s), boot, sizeof(boot));
			ck_assert_uint_eq(ls_spool_next(s), 1);
		} else {
			ck_assert_mem_eq(ls_spool_boot(s), boot, sizeof(boot));
			ck_assert_uint_ge(ls_spool_next(s), before);
			before = ls_spool_next(s);
		}
		(void)read_items(s, ls_spool_acked(s) + 1);
		/* It goes on after the cut. */
		ck_assert_int_eq(push_steps(s, 5, 0, 1), 0);
		ls_spool_close(s);
		s = open_spool();
		ck_assert_uint_eq(cursor(s, 5), 1);
		ls_spool_close(s);
	}
	ck_assert_uint_eq(before, 4);
	free(bytes);
}

LS_TEST(spool, spool_damaged_anywhere_is_set_aside)
{
	size_t len, at;
	char *bytes = make_spool(&len);
	struct stat st;
	struct ls_spool *s;

	for (at = 0; at < len; at++) {
		bytes[at] = (char)(bytes[at] ^ 0x40);
		(void)unlink(spool_path("spool.damaged"));
		write_file(spool_path("spool"), bytes, len);
		s = open_spool();
		ck_assert_uint_eq(ls_spool_next(s), 1);
		ck_assert_int_eq(stat(spool_path("spool.damaged"), &st), 0);
		ck_assert_int_eq(push_steps(s, 1, 0, 1), 0);
		ck_assert_uint_eq(read_items(s, 1), 1);
		ls_spool_close(s);
		bytes[at] = (char)(bytes[at] ^ 0x40);
	}
	free(bytes);
}

/* The disk takes no more from byte n on, for every n: what was refused has not
 * happened. */
LS_TEST(spool, spool_survives_every_failing_write)
{
	struct rlimit old, small;
	uint64_t limit, pushed, i;
	struct ls_spool *s;

	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	for (limit = 0; limit < 900; limit += 7) {
		(void)unlink(spool_path("spool"));
		s = open_spool();
		small = old;
		small.rlim_cur = limit;
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
		for (pushed = 0, i = 0; i < 6; i++)
			pushed += push_steps(s, 1, pushed, 1) == 0;
		ls_spool_ack(s, 1);
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
		ck_assert_uint_eq(ls_spool_next(s), pushed + 1);
		ck_assert_uint_eq(ls_spool_get_stats(s)->refused_items, 6 - pushed);
		ck_assert_int_eq(push_steps(s, 1, pushed, 1), 0);
		ls_spool_close(s);
		s = open_spool();
		ck_assert_uint_eq(ls_spool_next(s), pushed + 2);
		ck_assert_uint_eq(cursor(s, 1), pushed + 1);
		(void)read_items(s, ls_spool_acked(s) + 1);
		ls_spool_close(s);
	}
}

LS_TEST(spool, spool_keeps_the_old_file_when_a_rewrite_fails)
{
	struct ls_spool *s = open_spool();
	uint64_t first = 0;

	while (ls_spool_bytes(s) <= LS_SPOOL_COMPACT_BYTES) {
		ck_assert_int_eq(push_steps(s, 1, first, LS_STEPS_PER_ITEM), 0);
		first += LS_STEPS_PER_ITEM;
	}
	ck_assert_int_eq(mkdir(spool_path("spool.new"), 0700),
		0); /* it is in the way */
	ls_spool_ack(s, ls_spool_next(s) - 1);
	ck_assert_int_eq(push_steps(s, 1, first, 1), 0);
	ck_assert_uint_eq(read_items(s, ls_spool_next(s) - 1), 1);
	ck_assert_uint_eq(ls_spool_get_stats(s)->rewrites, 1); /* when it was made */
	ls_spool_close(s);
	s = open_spool();
	ck_assert_uint_eq(cursor(s, 1), first + 1);
	ls_spool_close(s);
}

LS_TEST(spool, spool_says_why_it_cannot_open)
{
	struct ls_spool *s = NULL;

	ck_assert_int_eq(
		ls_spool_open("/nonexistent/deeper", LS_SPOOL_MIN_BYTES, kernel, &s),
		-ENOENT);
	ck_assert_int_eq(symlink("elsewhere", spool_path("spool")), 0);
	ck_assert_int_eq(ls_spool_open(dir, LS_SPOOL_MIN_BYTES, kernel, &s), -ELOOP);
}

LS_TEST(spool, spool_of_version_1_is_read)
{
	struct ls_spool_header h;
	struct ls_spool_record r;
	size_t len;
	char *golden = ls_test_read(ls_test_source("tests/golden/spool_v1.bin"), &len);

	ck_assert_int_eq(ls_spool_header_get((uint8_t *)golden, len, &h), 0);
	ck_assert_uint_eq(h.base, 17);
	ck_assert_int_eq(ls_spool_record_get((uint8_t *)golden + LS_SPOOL_HEADER_BYTES,
				 len - LS_SPOOL_HEADER_BYTES, &r),
		0);
	ck_assert_uint_eq(r.seq, 17);
	ck_assert_uint_eq(r.len, 7);
	ck_assert_int_eq((int)r.type, LS_SPOOL_STEPS);
	free(golden);
}

LS_TEST(spool, spool_format_is_pinned)
{
	struct ls_spool_header h = { .base = 17 }, back;
	struct ls_spool_record r = { .type = LS_SPOOL_STEPS,
		.seq = 17,
		.first_index = 1000,
		.count = 3,
		.payload = (const uint8_t *)"payload",
		.len = 7 },
			       rec;
	struct ls_spool_record c = { .type = LS_SPOOL_CHUNK,
		.name_len = 5,
		.first_index = 6000,
		.count = 120,
		.hash = 0x0102030405060708,
		.t_last = 66000,
		.payload = (const uint8_t *)"grouppayload",
		.len = 12 };
	uint8_t bytes[LS_SPOOL_HEADER_BYTES + 2 * LS_SPOOL_RECORD_BYTES + 7 + 12],
		*at = bytes;
	size_t len, i;
	char *golden = ls_test_read(ls_test_source("tests/golden/spool_v2.bin"), &len);

	for (i = 0; i < 16; i++) {
		h.boot[i] = (uint8_t)(0xb0 + i);
		h.kernel_boot_id[i] = (uint8_t)(0xc0 + i);
		r.ring_id[i] = (uint8_t)(0x10 + i);
	}
	ls_spool_header_put(at, &h);
	ls_spool_record_put(at += LS_SPOOL_HEADER_BYTES, &r);
	memcpy(at += LS_SPOOL_RECORD_BYTES, r.payload, r.len);
	ls_spool_record_put(at += r.len, &c);
	memcpy(at + LS_SPOOL_RECORD_BYTES, c.payload, c.len);
	ck_assert_uint_eq(len, sizeof(bytes));
	ck_assert_mem_eq(bytes, golden, len);
	ck_assert_int_eq(ls_spool_header_get(bytes, len, &back), 0);
	ck_assert_mem_eq(&back, &h, sizeof(h));
	ck_assert_int_eq(ls_spool_record_get(at, len - (size_t)(at - bytes), &rec), 0);
	ck_assert_uint_eq(rec.hash, c.hash);
	ck_assert_uint_eq(rec.t_last, c.t_last);
	ck_assert_uint_eq(rec.name_len, 5);
	ck_assert_uint_eq(rec.len, 12);
	free(golden);
}
