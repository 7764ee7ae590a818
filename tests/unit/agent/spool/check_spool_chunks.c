/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/spool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "agent/spool/spool_format.h"
#include "tests/support/harness.h"

#define BODY_BYTES 8000u
#define SAMPLES 60u /* of each chunk */

static char dir[256];
static const uint8_t kernel[16] = { 1, 2, 3 };
static uint8_t chunk_buf[LS_SPOOL_CHUNKS_READ_BYTES], body[LS_CHUNK_BODY_MAX_BYTES];
static struct ls_wire_bytes items[LS_CHUNK_ITEMS_PER_REPORT_MAX];

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s", ls_test_tmpdir());
}

static struct ls_spool *
open_as(uint64_t max_bytes, uint8_t boot)
{
	const uint8_t kernel_boot[16] = { boot, 2, 3 };
	struct ls_spool *s = NULL;

	ck_assert_int_eq(ls_spool_open(dir, max_bytes, kernel_boot, &s), 0);
	return s;
}

static struct ls_spool *
open_spool(void)
{
	return open_as(LS_SPOOL_DEFAULT_BYTES, kernel[0]);
}

/* A chunk of group "g<hash>" that begins at minute t. */
static int
push_sized(struct ls_spool *s, uint64_t hash, uint64_t t, size_t len)
{
	struct ls_wire_chunk_item item = { .kind = LS_WIRE_CHUNK,
		.hash = hash,
		.rows = 60,
		.t_first_mono_ns = t * 60,
		.t_last_mono_ns = t * 60 + 59,
		.samples = SAMPLES,
		.body = body,
		.body_len = len };

	(void)snprintf(item.group, sizeof(item.group), "g%u", (unsigned)hash);
	return ls_spool_push_chunk(s, &item);
}

static int
push_chunk(struct ls_spool *s, uint64_t hash, uint64_t t)
{
	return push_sized(s, hash, t, BODY_BYTES);
}

static int
push_dictionary(struct ls_spool *s, const char *group, uint64_t *ret_hash)
{
	const char *series[] = { "a", "b" };
	struct ls_wire_chunk_item item = {
		.kind = LS_WIRE_DICTIONARY, .series_count = 2, .series = series
	};

	(void)snprintf(item.group, sizeof(item.group), "%s", group);
	*ret_hash = item.hash = ls_wire_dictionary_hash(group, series, 2);
	return ls_spool_push_chunk(s, &item);
}

static void
push_steps(struct ls_spool *s, uint64_t first)
{
	static struct ls_record records[LS_STEPS_PER_ITEM];
	struct ls_wire_item item = { .kind = LS_WIRE_STEPS,
		.ring_id = { 1 },
		.first_index = first,
		.count = LS_STEPS_PER_ITEM,
		.records = records };

	ck_assert_int_eq(ls_spool_push(s, &item), 0);
}

/* Everything that is waiting, summed up. */
struct seen {
	size_t chunks, dictionaries, losses;
	uint64_t samples, lost[LS_LOST_REASON_COUNT], first_t, last_t;
	char loss_group[LS_GROUP_NAME_MAX_BYTES]; /* of the last one */
	uint64_t loss_from, loss_to;
};

static void
see(struct seen *n, const struct ls_wire_chunk_item *item)
{
	switch (item->kind) {
	case LS_WIRE_DICTIONARY:
		n->dictionaries++;
		break;
	case LS_WIRE_CHUNK:
		n->chunks++;
		n->samples += SAMPLES;
		if (n->first_t == 0)
			n->first_t = item->t_first_mono_ns / 60;
		n->last_t = item->t_first_mono_ns / 60;
		break;
	case LS_WIRE_LOST:
		n->losses++;
		n->lost[item->reason] += item->samples;
		memcpy(n->loss_group, item->group, sizeof(n->loss_group));
		n->loss_from = item->t_first_mono_ns;
		n->loss_to = item->t_last_mono_ns;
		break;
	}
}

/* Reads and acknowledges all; numbers must follow each other. */
static struct seen
drain(struct ls_spool *s)
{
	struct seen n = { 0 };
	struct ls_wire_chunk_item item;
	const char *why = "";
	uint64_t seq = ls_spool_chunks_acked(s);
	size_t count, i;

	while (ls_spool_chunks_acked(s) + 1 < ls_spool_chunks_next(s)) {
		ck_assert_int_eq(
			ls_spool_read_chunks(s, chunk_buf, SIZE_MAX, items, &count), 0);
		ck_assert_uint_gt(count, 0);
		for (i = 0; i < count; i++) {
			ck_assert_msg(ls_wire_chunk_item_unpack(items[i].data,
					      items[i].len, &item, &why) == 0,
				"%s", why);
			ck_assert_uint_eq(item.seq, ++seq);
			see(&n, &item);
			ls_wire_chunk_item_clear(&item);
		}
		ls_spool_ack_chunks(s, seq);
	}
	return n;
}

LS_CASE(spool_chunks, setup, NULL);

LS_TEST(spool_chunks, chunks_are_numbered_from_one_and_kept_until_acknowledged)
{
	struct ls_spool *s = open_spool();
	size_t count, len;
	char *first;
	uint64_t hash;

	ck_assert_int_eq(ls_spool_read_chunks(s, chunk_buf, SIZE_MAX, items, &count),
		0);
	ck_assert_uint_eq(count, 0);
	ck_assert_int_eq(push_dictionary(s, "g", &hash), 0);
	push_steps(s, 0); /* the other stream lies between */
	ck_assert_int_eq(push_chunk(s, hash, 1), 0);
	push_steps(s, LS_STEPS_PER_ITEM);
	ck_assert_int_eq(push_chunk(s, hash, 2), 0);
	ck_assert_uint_eq(ls_spool_chunks_next(s), 4);
	ck_assert_uint_eq(ls_spool_next(s), 3);
	ls_spool_ack_chunks(s, 1);
	ls_spool_ack_chunks(s, 99); /* never given out */
	ck_assert_int_eq(ls_spool_read_chunks(s, chunk_buf, SIZE_MAX, items, &count),
		0);
	ck_assert_uint_eq(count, 2);
	len = items[0].len;
	first = malloc(len);
	memcpy(first, items[0].data, len);
	ls_spool_close(s); /* closing writes nothing: the same as kill -9 */
	s = open_spool();
	ck_assert_uint_eq(ls_spool_chunks_acked(s), 1);
	ck_assert_uint_eq(ls_spool_chunks_next(s), 4);
	ck_assert_int_eq(ls_spool_read_chunks(s, chunk_buf, SIZE_MAX, items, &count),
		0);
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(items[0].len, len);
	ck_assert_mem_eq(items[0].data, first, len); /* one number, the same bytes */
	ck_assert_uint_eq(drain(s).chunks, 2);
	ls_spool_close(s);
	free(first);
}

LS_TEST(spool_chunks, as_many_are_read_as_asked_for_but_one_in_any_case)
{
	struct ls_spool *s = open_spool();
	size_t count, i;

	ck_assert_int_eq(push_sized(s, 1, 0, LS_CHUNK_BODY_MAX_BYTES), 0);
	for (i = 1; i < 100; i++)
		ck_assert_int_eq(push_sized(s, 1, i, 10), 0);
	ck_assert_int_eq(ls_spool_read_chunks(s, chunk_buf, 1, items, &count), 0);
	ck_assert_uint_eq(count, 1);
	ls_spool_ack_chunks(s, 1);
	ck_assert_int_eq(ls_spool_read_chunks(s, chunk_buf, 200, items, &count), 0);
	ck_assert_uint_gt(count, 1);
	ck_assert_uint_lt(count, 10);
	ck_assert_int_eq(ls_spool_read_chunks(s, chunk_buf, SIZE_MAX, items, &count),
		0);
	ck_assert_uint_eq(count, LS_CHUNK_ITEMS_PER_REPORT_MAX);
	ck_assert_uint_eq(drain(s).chunks, 99);
	ck_assert_int_eq(push_sized(s, 1, 0, sizeof(body) + 0), 0);
	ls_spool_close(s);
}

LS_TEST(spool_chunks, dictionaries_are_known_over_restarts_and_rewrites)
{
	struct ls_spool *s = open_spool();
	uint64_t hash, t = 0;

	ck_assert_int_eq(push_dictionary(s, "g", &hash), 0);
	ck_assert(ls_spool_dictionary_is_known(s, hash) &&
		ls_spool_dictionary_is_waiting(s, hash));
	ck_assert(!ls_spool_dictionary_is_known(s, hash + 1));
	ls_spool_close(s);
	s = open_spool();
	ck_assert(ls_spool_dictionary_is_waiting(s, hash));
	ls_spool_ack_chunks(s, 1);
	ck_assert(ls_spool_dictionary_is_known(s, hash) &&
		!ls_spool_dictionary_is_waiting(s, hash));
	while (ls_spool_bytes(s) <= LS_SPOOL_COMPACT_BYTES)
		ck_assert_int_eq(push_chunk(s, hash, ++t), 0);
	ck_assert_uint_eq(drain(s).chunks, t);
	ck_assert_uint_lt(ls_spool_bytes(s), 1024); /* written anew */
	ls_spool_close(s);
	s = open_spool();
	ck_assert(ls_spool_dictionary_is_known(s, hash) &&
		!ls_spool_dictionary_is_waiting(s, hash));
	ck_assert_uint_eq(ls_spool_chunks_acked(s), t + 1); /* numbers go on */
	ck_assert_int_eq(push_chunk(s, hash, ++t), 0);
	ck_assert_uint_eq(drain(s).chunks, 1);
	ls_spool_close(s);
}

LS_TEST(spool_chunks, the_newest_chunk_of_a_dictionary_is_known_after_a_crash)
{
	struct ls_spool *s = open_spool();

	ck_assert_int_eq(push_chunk(s, 5, 1), 0);
	ck_assert_int_eq(push_chunk(s, 5, 2), 0);
	ls_spool_ack_chunks(s, 2);
	ls_spool_close(s);
	s = open_spool();
	ck_assert_uint_eq(ls_spool_chunk_newest(s, 5), 2 * 60 + 59);
	ck_assert_uint_eq(ls_spool_chunk_newest(s, 6), 0);
	ls_spool_close(s);
}

LS_TEST(spool_chunks, oldest_chunks_become_losses_that_do_not_grow_and_steps_stay)
{
	struct ls_spool *s = open_as(LS_SPOOL_MIN_BYTES, kernel[0]);
	uint64_t t = 0, hash;
	struct seen n;
	size_t i;

	for (i = 0; i < 20; i++)
		push_steps(s, i * LS_STEPS_PER_ITEM);
	ck_assert_int_eq(push_dictionary(s, "g1", &hash), 0);
	for (t = 1; ls_spool_get_stats(s)->rewrites < 40; t++) {
		ck_assert_int_eq(push_chunk(s, t % 2 + 1, t), 0);
		ck_assert_uint_le(ls_spool_bytes(s), LS_SPOOL_MIN_BYTES);
	}
	ck_assert_uint_eq(ls_spool_get_stats(s)->dropped_records, 0);
	ls_spool_close(s);
	s = open_as(LS_SPOOL_MIN_BYTES, kernel[0]);
	ck_assert_uint_eq(ls_spool_next(s), 21);
	/* In the window each keeps its number; behind it there is one loss a group. */
	ck_assert_uint_lt(ls_spool_chunks_next(s),
		LS_CHUNK_ITEMS_PER_REPORT_MAX + 2 + 130);
	n = drain(s);
	ck_assert_uint_eq(n.dictionaries, 1);
	ck_assert_uint_eq(n.chunks * SAMPLES + n.lost[LS_LOST_SPOOL_FULL],
		(t - 1) * SAMPLES);
	ck_assert_uint_eq(n.last_t, t - 1); /* the newest are there */
	ck_assert_uint_gt(n.chunks, 20);
	ck_assert_uint_gt(n.first_t, t - 1 - 130);
	ck_assert_uint_gt(n.loss_to, n.loss_from);
	ck_assert(n.loss_group[0] == 'g');
	ls_spool_close(s);
}

LS_TEST(spool_chunks, numbers_that_may_have_been_sent_are_kept)
{
	struct ls_spool *s = open_as(LS_SPOOL_MIN_BYTES, kernel[0]);
	struct ls_wire_chunk_item item;
	size_t count, again, i;
	uint64_t t, ids[LS_CHUNK_ITEMS_PER_REPORT_MAX];
	const char *why;

	for (t = 1; t <= 30; t++)
		ck_assert_int_eq(push_chunk(s, t, t), 0);
	ck_assert_int_eq(ls_spool_read_chunks(s, chunk_buf, SIZE_MAX, items, &count),
		0);
	for (i = 0; i < count; i++)
		ids[i] = i + 1;
	while (ls_spool_get_stats(s)->dropped_chunks < 40)
		ck_assert_int_eq(push_chunk(s, 99, ++t), 0);
	/* Each of them is a loss of its own now, of the same group. */
	ck_assert_int_eq(ls_spool_read_chunks(s, chunk_buf, SIZE_MAX, items, &again),
		0);
	ck_assert_uint_ge(again, count);
	for (i = 0; i < count; i++) {
		char group[16];

		ck_assert_int_eq(ls_wire_chunk_item_unpack(items[i].data, items[i].len,
					 &item, &why),
			0);
		(void)snprintf(group, sizeof(group), "g%u", (unsigned)ids[i]);
		ck_assert_int_eq((int)item.kind, LS_WIRE_LOST);
		ck_assert_uint_eq(item.seq, ids[i]);
		ck_assert_str_eq(item.group, group);
		ck_assert_uint_eq(item.samples, SAMPLES);
		ls_wire_chunk_item_clear(&item);
	}
	ls_spool_ack_chunks(s, count); /* of the report that was on its way */
	(void)drain(s);
	ls_spool_close(s);
}

LS_TEST(spool_chunks, steps_are_read_past_many_chunks_that_came_before_them)
{
	static uint8_t buf[LS_REPORT_ITEMS_BYTES];
	struct ls_wire_bytes steps[LS_ITEMS_PER_REPORT_MAX];
	struct ls_spool *s = open_spool();
	size_t count, bytes;
	uint64_t t = 0;

	for (bytes = 0; bytes <= sizeof(buf); bytes += BODY_BYTES)
		ck_assert_int_eq(push_chunk(s, 1, ++t), 0);
	ck_assert_int_eq(ls_spool_read(s, buf, sizeof(buf), steps,
				 LS_ITEMS_PER_REPORT_MAX, &count),
		0);
	ck_assert_uint_eq(count, 0);
	push_steps(s, 0);
	ck_assert_int_eq(ls_spool_read(s, buf, sizeof(buf), steps,
				 LS_ITEMS_PER_REPORT_MAX, &count),
		0);
	ck_assert_uint_eq(count, 1);
	ls_spool_close(s);
}

LS_TEST(spool_chunks, steps_drop_chunks_first)
{
	struct ls_spool *s = open_as(LS_SPOOL_MIN_BYTES, kernel[0]);
	uint64_t first = 0, t = 0, hash;

	ck_assert_int_eq(push_dictionary(s, "g1", &hash), 0);
	for (t = 1; t <= 100; t++)
		ck_assert_int_eq(push_chunk(s, 1, t), 0);
	while (ls_spool_get_stats(s)->dropped_records == 0) {
		push_steps(s, first);
		first += LS_STEPS_PER_ITEM;
		if (ls_spool_get_stats(s)->dropped_records == 0)
			continue;
		ck_assert_uint_eq(ls_spool_get_stats(s)->dropped_chunks, 100);
	}
	ls_spool_close(s);
}

LS_TEST(spool_chunks, a_chunk_drops_no_steps)
{
	struct ls_spool *s = open_as(LS_SPOOL_MIN_BYTES, kernel[0]);
	uint64_t first = 0, t = 0, next;
	int rc = 0;

	while (ls_spool_bytes(s) < LS_SPOOL_MIN_BYTES / 8 * 7) {
		push_steps(s, first);
		first += LS_STEPS_PER_ITEM;
	}
	while (rc == 0 && t < 1000)
		rc = push_chunk(s, 1, ++t);
	ck_assert_int_eq(rc, -ENOSPC);
	ck_assert_uint_eq(ls_spool_get_stats(s)->dropped_records, 0);
	next = ls_spool_next(s);
	ls_spool_ack(s, next - 1); /* now there is room again */
	ck_assert_int_eq(push_chunk(s, 1, ++t), 0);
	ls_spool_close(s);
}

LS_TEST(spool_chunks, another_kernel_boot_and_damage_say_what_is_lost)
{
	struct ls_spool *s = open_spool();
	char path[300];
	FILE *f;
	struct seen n;

	ck_assert_int_eq(push_chunk(s, 1, 1), 0);
	ck_assert_int_eq(push_chunk(s, 2, 1), 0);
	ls_spool_ack_chunks(s, 2);
	ck_assert_int_eq(push_chunk(s, 2, 2), 0);
	ck_assert_int_eq(push_chunk(s, 2, 3), 0);
	ls_spool_close(s);
	s = open_as(LS_SPOOL_DEFAULT_BYTES, 77);
	ck_assert_uint_eq(ls_spool_get_stats(s)->lost_samples, 2 * SAMPLES);
	n = drain(s);
	ck_assert_uint_eq(n.losses, 1);
	ck_assert_uint_eq(n.lost[LS_LOST_REBOOT], 2 * SAMPLES);
	ck_assert_str_eq(n.loss_group, "g2");
	ck_assert_uint_eq(n.loss_from, 0); /* of a clock that is gone */
	ck_assert_int_eq(push_chunk(s, 2, 4), 0);
	ck_assert_int_eq(push_chunk(s, 2, 5), 0);
	ls_spool_close(s);
	(void)snprintf(path, sizeof(path), "%s/spool", dir);
	f = fopen(path, "r+b");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, -1, SEEK_END), 0);
	ck_assert_int_eq(fputc(0x55, f), 0x55);
	ck_assert_int_eq(fclose(f), 0);
	s = open_as(LS_SPOOL_DEFAULT_BYTES, 77);
	n = drain(s);
	ck_assert_uint_eq(n.losses, 2); /* what could be read, and what could not */
	ck_assert_uint_eq(n.lost[LS_LOST_DAMAGED], SAMPLES);
	ls_spool_close(s);
}

/* The disk takes no more from byte n on, for many n: what was refused has not happened.
 */
LS_TEST(spool_chunks, chunks_survive_every_failing_write)
{
	struct rlimit old, small;
	uint64_t limit, pushed, i;
	char path[300];
	struct ls_spool *s;

	signal(SIGXFSZ, SIG_IGN);
	(void)snprintf(path, sizeof(path), "%s/spool", dir);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	for (limit = 0; limit < 900; limit += 7) {
		(void)unlink(path);
		s = open_spool();
		small = old;
		small.rlim_cur = limit;
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
		for (pushed = 0, i = 0; i < 6; i++)
			pushed += push_sized(s, 1, pushed + 1, 20) == 0;
		ls_spool_ack_chunks(s, 1);
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
		ck_assert_uint_eq(ls_spool_chunks_next(s), pushed + 1);
		ck_assert_uint_eq(ls_spool_get_stats(s)->refused_items, 6 - pushed);
		ck_assert_int_eq(push_sized(s, 1, pushed + 1, 20), 0);
		ls_spool_close(s);
		s = open_spool();
		ck_assert_uint_eq(ls_spool_chunks_next(s), pushed + 2);
		(void)drain(s);
		ls_spool_close(s);
	}
}
