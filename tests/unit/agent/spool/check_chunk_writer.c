/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/chunk_writer.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "proto/chunk/chunk.h"
#include "tests/support/harness.h"

#define S 1000000000ull
#define VALUES 4000u

static char dir[256];
static uint8_t boot = 1;
/* just after a minute of the first spool: the next seal is a minute away */
static uint64_t start;
static struct ls_spool *spool;
static struct ls_series_table *table;
static struct ls_chunk_writer *writer;
static struct ls_chunk_codec *codec;
static uint8_t chunk_buf[LS_SPOOL_CHUNKS_READ_BYTES];
static size_t fast, slow;
static int fast_series[3], slow_series;

/* What came out of the spool. */
static struct {
	size_t dictionaries, chunks, losses;
	uint64_t lost, last_t;
	enum ls_wire_lost_reason reason;
	char loss_group[LS_GROUP_NAME_MAX_BYTES];
	size_t rows, samples, chunk_rows[64];
	uint64_t t[VALUES];
	double value[VALUES]; /* of the first column */
	bool present[VALUES];
	uint64_t hash[64], dictionary[64];
} out;

static void
open_all(void)
{
	const uint8_t kernel[16] = { boot };

	ck_assert_int_eq(ls_spool_open(dir, LS_SPOOL_DEFAULT_BYTES, kernel, &spool), 0);
	table = ls_series_new();
	fast = (size_t)ls_series_group(table, "host.fast");
	slow = (size_t)ls_series_group(table, "host.slow");
	fast_series[0] = ls_series_add(table, fast, "a", "");
	fast_series[1] = ls_series_add(table, fast, "b", "x=\"1\"");
	fast_series[2] = ls_series_add(table, fast, "c", "");
	slow_series = ls_series_add(table, slow, "d", "");
	ck_assert_int_eq(ls_chunk_writer_new(dir, kernel, spool, table, start, &writer),
		0);
}

/* The end of a process: nothing is written by it. */
static void
kill_all(void)
{
	ls_chunk_writer_free(writer);
	ls_series_free(table);
	ls_spool_close(spool);
}

/* The spool's boot chooses the second of the minute: its first eight bytes. */
static uint64_t
next_seal_ns(uint64_t now_mono_ns)
{
	uint64_t shift = 0;
	int i;

	for (i = 0; i < 8; i++)
		shift = shift << 8 | ls_spool_boot(spool)[i];
	shift %= LS_CHUNK_NS;
	return now_mono_ns + LS_CHUNK_NS - (now_mono_ns - shift) % LS_CHUNK_NS;
}

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s", ls_test_tmpdir());
	memset(&out, 0, sizeof(out));
	codec = ls_chunk_codec_new(LS_SERIES_PER_GROUP_MAX, LS_CHUNK_ROWS_MAX);
	boot = 1;
	start = 1000 * S;
	open_all();
	start = next_seal_ns(start) + 1;
}

static void
teardown(void)
{
	kill_all();
	ls_chunk_writer_free(NULL);
	ls_chunk_codec_free(codec);
}

static void
take_chunk(const struct ls_wire_chunk_item *item)
{
	struct ls_chunk_table t;
	size_t r, c;

	ck_assert_int_eq(ls_chunk_decode(codec, item->body, item->body_len, &t), 0);
	ck_assert_uint_eq(t.rows, item->rows);
	ck_assert_uint_eq(t.t_mono_ns[0], item->t_first_mono_ns);
	ck_assert_uint_eq(t.t_mono_ns[t.rows - 1], item->t_last_mono_ns);
	out.hash[out.chunks] = item->hash;
	out.chunk_rows[out.chunks++] = t.rows;
	for (r = 0; r < t.rows && out.rows < VALUES; r++) {
		out.t[out.rows] = t.t_mono_ns[r];
		out.value[out.rows] = t.value[r];
		out.present[out.rows++] = t.present[r];
		for (c = 0; c < t.columns; c++)
			out.samples += t.present[c * t.stride + r];
	}
}

/* Takes all that is in the spool's second stream. */
static void
take_all(void)
{
	struct ls_wire_bytes items[LS_CHUNK_ITEMS_PER_REPORT_MAX];
	struct ls_wire_chunk_item item;
	const char *why = "";
	size_t count, i;

	while (ls_spool_chunks_acked(spool) + 1 < ls_spool_chunks_next(spool)) {
		ck_assert_int_eq(
			ls_spool_read_chunks(spool, chunk_buf, SIZE_MAX, items, &count),
			0);
		for (i = 0; i < count; i++) {
			ck_assert_msg(ls_wire_chunk_item_unpack(items[i].data,
					      items[i].len, &item, &why) == 0,
				"%s", why);
			if (item.kind == LS_WIRE_DICTIONARY)
				out.dictionary[out.dictionaries++] = item.hash;
			if (item.kind == LS_WIRE_CHUNK)
				take_chunk(&item);
			if (item.kind == LS_WIRE_LOST) {
				out.losses++;
				out.lost += item.samples;
				out.reason = item.reason;
				memcpy(out.loss_group, item.group,
					sizeof(out.loss_group));
			}
			ls_wire_chunk_item_clear(&item);
		}
		ls_spool_ack_chunks(spool, ls_spool_chunks_acked(spool) + count);
	}
}

/* A reading of host.fast; its first value is that of the time in seconds. */
static void
read_fast(uint64_t t)
{
	ls_chunk_writer_turn(writer, t);
	ls_series_set(table, fast_series[0], (double)t / (double)S);
	ls_series_set(table, fast_series[1], (double)NAN);
	ls_series_read(table, fast, t);
}

static void
read_slow(uint64_t t)
{
	ls_series_set(table, slow_series, 7);
	ls_series_read(table, slow, t);
}

/* Rows came out in order, each once, a second apart from t on. */
static void
assert_rows(uint64_t t, size_t count)
{
	size_t i;

	ck_assert_uint_eq(out.rows, count);
	for (i = 0; i < count; i++, t += S) {
		ck_assert_uint_eq(out.t[i], t);
		ck_assert(out.present[i]);
		ck_assert_double_eq(out.value[i], (double)t / (double)S);
	}
}

LS_CASE(chunk_writer, setup, teardown);

LS_TEST(chunk_writer, rows_of_a_minute_become_a_chunk_of_each_group)
{
	uint64_t t;

	for (t = start; ls_chunk_writer_get_stats(writer)->chunks == 0; t += S) {
		read_fast(t);
		if ((t - start) % (10 * S) == 5 * S)
			read_slow(t);
		ck_assert_uint_le(t, start + LS_CHUNK_NS + S);
	}
	take_all();
	/* before the first chunk: the spool numbers them so */
	ck_assert_uint_eq(out.dictionaries, 2);
	ck_assert_uint_eq(out.chunks, 2);
	ck_assert_uint_eq(out.hash[0], out.dictionary[0]);
	ck_assert_uint_eq(out.hash[1], out.dictionary[1]);
	ck_assert_uint_eq(out.losses, 0);
	ck_assert_uint_eq(ls_chunk_writer_get_stats(writer)->lost_samples, 0);
	out.rows = out.chunk_rows[0]; /* of host.fast; c was never set */
	assert_rows(start, out.rows);
	ck_assert_uint_eq(out.samples, 2 * out.chunk_rows[0] + out.chunk_rows[1]);
	memset(&out, 0, sizeof(out));
	/* the next is a whole minute, and needs no dictionary */
	for (; out.chunks < 2; t += S) {
		read_fast(t);
		take_all();
		if (out.chunks == 1)
			ck_assert_uint_eq(out.chunk_rows[0], 60);
	}
	ck_assert_uint_eq(out.chunk_rows[1], 60);
	ck_assert_uint_eq(out.dictionaries, 0);
}

LS_TEST(chunk_writer, hosts_seal_at_different_seconds_of_the_minute)
{
	uint64_t sealed[8], t;
	size_t i, k, same = 0;

	for (i = 0; i < 8; i++) {
		for (t = start; ls_chunk_writer_get_stats(writer)->chunks == 0; t += S)
			read_fast(t);
		sealed[i] = t;
		kill_all();
		(void)snprintf(dir, sizeof(dir), "%s", ls_test_tmpdir());
		open_all();
	}
	for (i = 1; i < 8; i++) {
		for (k = 0; k < i; k++)
			same += sealed[i] == sealed[k];
	}
	ck_assert_uint_lt(same, 8); /* all the same would be 28 */
}

LS_TEST(chunk_writer, a_full_chunk_is_sealed_at_once)
{
	size_t i;

	ls_chunk_writer_seal(writer);
	for (i = 0; i < LS_CHUNK_ROWS_MAX + 5; i++) {
		ls_series_set(table, fast_series[0], (double)i);
		ls_series_read(table, fast, start + i);
	}
	take_all();
	ck_assert_uint_eq(out.chunks, 1);
	ck_assert_uint_eq(out.chunk_rows[0], LS_CHUNK_ROWS_MAX);
	kill_all();
	open_all();
	take_all();
	ck_assert_uint_eq(out.chunks, 2);
	ck_assert_uint_eq(out.chunk_rows[1], 5);
}

LS_TEST(chunk_writer, a_changed_group_is_sealed_and_has_another_dictionary)
{
	struct ls_series_group view;

	read_fast(start);
	read_fast(start + S);
	read_slow(start);
	ck_assert_int_ge(ls_series_add(table, fast, "e", ""), 0);
	read_fast(start + 2 * S);
	take_all();
	ck_assert_uint_eq(out.chunks, 1); /* the other group goes on */
	ck_assert_uint_eq(out.chunk_rows[0], 2);
	ls_series_remove(table, fast_series[2]);
	ls_series_group_remove(table, slow);
	ck_assert(ls_series_look(table, fast, &view));
	kill_all(); /* and what was sealed is not sealed again */
	open_all();
	take_all();
	ck_assert_uint_eq(out.chunks, 3);
	ck_assert_uint_eq(out.chunk_rows[1] + out.chunk_rows[2], 2);
	ck_assert_uint_eq(out.dictionaries, 3);
	ck_assert_uint_ne(out.dictionary[0], out.dictionary[2]);
	ck_assert_uint_eq(out.losses, 0);
}

LS_TEST(chunk_writer, a_group_of_a_removed_one_s_index_begins_anew)
{
	int handle;

	read_slow(start);
	ls_series_group_remove(table, slow);
	ck_assert_int_eq(ls_series_group(table, "other"), (int)slow);
	handle = ls_series_add(table, slow, "x", "");
	ls_series_set(table, handle, 5);
	ls_series_read(table, slow, start + S);
	ls_chunk_writer_seal(writer);
	take_all();
	ck_assert_uint_eq(out.chunks, 2);
	ck_assert_double_eq(out.value[0], 7);
	ck_assert_double_eq(out.value[1], 5);
	ck_assert_uint_ne(out.hash[0], out.hash[1]);
}

LS_TEST(chunk_writer, unsealed_rows_survive_kill_9)
{
	size_t i;

	for (i = 0; i < 5; i++)
		read_fast(start + i * S);
	kill_all();
	open_all();
	for (; i < 8; i++)
		read_fast(start + i * S);
	kill_all();
	open_all();
	take_all();
	ck_assert_uint_eq(out.dictionaries, 1); /* the same series: the same hash */
	ck_assert_uint_eq(out.losses, 0);
	assert_rows(start, 8);
}

/* Between the push and the emptying of the file. */
LS_TEST(chunk_writer, rows_that_are_in_the_spool_are_not_sealed_again)
{
	char path[300], *bytes;
	size_t len, i;
	FILE *f;

	for (i = 0; i < 5; i++)
		read_fast(start + i * S);
	(void)snprintf(path, sizeof(path), "%s/minute", dir);
	bytes = ls_test_read(path, &len);
	ls_chunk_writer_seal(writer);
	kill_all();
	f = fopen(path, "wb");
	ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
	ck_assert_int_eq(fclose(f), 0);
	free(bytes);
	open_all();
	take_all();
	assert_rows(start, 5);
}

LS_TEST(chunk_writer, minute_file_cut_anywhere_gives_what_is_whole)
{
	char path[300], *bytes;
	size_t len, cut, i, before = 0;
	FILE *f;

	for (i = 0; i < 4; i++)
		read_fast(start + i * S);
	kill_all();
	(void)snprintf(path, sizeof(path), "%s/minute", dir);
	bytes = ls_test_read(path, &len);
	for (cut = 0; cut <= len; cut++) {
		(void)snprintf(dir, sizeof(dir), "%s", ls_test_tmpdir());
		(void)snprintf(path, sizeof(path), "%s/minute", dir);
		f = fopen(path, "wb");
		ck_assert_uint_eq(fwrite(bytes, 1, cut, f), cut);
		ck_assert_int_eq(fclose(f), 0);
		memset(&out, 0, sizeof(out));
		open_all();
		take_all();
		ck_assert_uint_eq(out.losses, 0);
		ck_assert_uint_ge(out.rows, before);
		assert_rows(start, out.rows);
		before = out.rows;
		read_fast(start + 100 * S); /* it goes on */
		kill_all();
		memset(&out, 0, sizeof(out));
		open_all();
		take_all();
		assert_rows(start + 100 * S, 1);
		if (cut < len)
			kill_all();
	}
	ck_assert_uint_eq(before, 4);
	free(bytes);
}

LS_TEST(chunk_writer, damage_anywhere_loses_what_lies_behind_and_says_so)
{
	char path[300], *bytes;
	size_t len, at, i;
	FILE *f;

	for (i = 0; i < 3; i++)
		read_fast(start + i * S);
	kill_all();
	(void)snprintf(path, sizeof(path), "%s/minute", dir);
	bytes = ls_test_read(path, &len);
	for (at = 0; at < len; at++) {
		if (at > 0)
			kill_all();
		bytes[at] = (char)(bytes[at] ^ 0x40);
		(void)snprintf(dir, sizeof(dir), "%s", ls_test_tmpdir());
		(void)snprintf(path, sizeof(path), "%s/minute", dir);
		f = fopen(path, "wb");
		ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
		ck_assert_int_eq(fclose(f), 0);
		memset(&out, 0, sizeof(out));
		open_all();
		take_all();
		assert_rows(start, out.rows);
		ck_assert_uint_lt(out.rows, 3);
		ck_assert_uint_eq(out.losses, 1);
		ck_assert_int_eq((int)out.reason, LS_LOST_DAMAGED);
		bytes[at] = (char)(bytes[at] ^ 0x40);
	}
	free(bytes);
}

LS_TEST(chunk_writer, another_kernel_boot_makes_rows_a_loss)
{
	size_t i;

	for (i = 0; i < 5; i++)
		read_fast(start + i * S);
	take_all();
	kill_all();
	boot = 2;
	open_all();
	memset(&out, 0, sizeof(out));
	take_all();
	ck_assert_uint_eq(out.chunks, 0);
	ck_assert_uint_eq(out.losses, 1);
	ck_assert_uint_eq(out.lost, 10);
	ck_assert_int_eq((int)out.reason, LS_LOST_REBOOT);
	ck_assert_str_eq(out.loss_group, "host.fast");
	ck_assert_uint_eq(ls_chunk_writer_get_stats(writer)->lost_samples, 10);
}

/* The disk takes nothing for a while, from every byte on: rows wait in memory. */
LS_TEST(chunk_writer, a_disk_that_is_full_for_a_while_loses_no_row)
{
	struct rlimit old, small;
	uint64_t limit, t = start;

	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	for (limit = 0; limit < 400; limit += 3) {
		size_t i;

		memset(&out, 0, sizeof(out));
		small = old;
		small.rlim_cur = limit;
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
		for (i = 0; i < 4; i++, t += S)
			read_fast(t);
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
		read_fast(t);
		t += S;
		ls_chunk_writer_seal(writer);
		take_all();
		ck_assert_uint_eq(out.samples, 10);
		ck_assert_uint_eq(out.lost, 0);
	}
}

LS_TEST(chunk_writer, a_row_of_an_earlier_time_is_a_loss)
{
	read_fast(start + 5 * S);
	read_fast(start);
	read_fast(start + 5 * S); /* the same is fine */
	ls_chunk_writer_seal(writer);
	take_all();
	ck_assert_uint_eq(out.rows, 2);
	ck_assert_uint_eq(out.lost, 2);
}

LS_TEST(chunk_writer, series_without_room_are_told)
{
	char name[32];
	size_t i, g = 0;

	for (i = 0; i < LS_SERIES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "g%zu", i / LS_SERIES_PER_GROUP_MAX);
		g = (size_t)ls_series_group(table, name);
		(void)snprintf(name, sizeof(name), "x%zu", i);
		ls_ignore(ls_series_add(table, g, name, ""));
	}
	ls_chunk_writer_seal(writer);
	take_all();
	ck_assert_uint_eq(out.losses, 1);
	ck_assert_uint_eq(out.lost, 4);
	ck_assert_int_eq((int)out.reason, LS_LOST_SERIES_FULL);
}

LS_TEST(chunk_writer, what_does_not_fit_into_a_chunk_becomes_several)
{
	struct ls_series_group view;
	char name[32];
	uint64_t v = 1;
	double d;
	size_t i, r, g = (size_t)ls_series_group(table, "wide");
	int handle[LS_SERIES_PER_GROUP_MAX];

	for (i = 0; i < LS_SERIES_PER_GROUP_MAX; i++) {
		(void)snprintf(name, sizeof(name), "x%zu", i);
		handle[i] = ls_series_add(table, g, name, "");
	}
	for (r = 0; r < 60; r++) {
		for (i = 0; i < LS_SERIES_PER_GROUP_MAX; i++) {
			v = v * 6364136223846793005u + 1442695040888963407u;
			memcpy(&d, &v, sizeof(d));
			ls_series_set(table, handle[i], d);
		}
		ls_series_read(table, g, start + r * S);
	}
	ck_assert(ls_series_look(table, g, &view));
	ls_chunk_writer_seal(writer);
	take_all();
	ck_assert_uint_ge(out.chunks, 2);
	ck_assert_uint_eq(out.rows, 60);
	ck_assert_uint_eq(out.samples, 60 * LS_SERIES_PER_GROUP_MAX);
	ck_assert_uint_eq(out.losses, 0);
}

LS_TEST(chunk_writer, a_dictionary_is_sent_again_when_asked_for)
{
	uint64_t hash;

	read_fast(start);
	take_all();
	ck_assert_uint_eq(out.dictionaries, 1);
	hash = out.dictionary[0];
	ls_chunk_writer_need(writer, hash);
	ls_chunk_writer_need(writer, hash); /* it is on its way */
	take_all();
	ck_assert_uint_eq(out.dictionaries, 2);
	ck_assert_uint_eq(out.dictionary[1], hash);
	ls_chunk_writer_need(writer, hash + 1);
	ls_chunk_writer_need(writer, 0);
	take_all();
	ck_assert_uint_eq(out.dictionaries, 2);
	ck_assert_uint_eq(ls_chunk_writer_get_stats(writer)->unknown_dictionaries, 2);
}

LS_TEST(chunk_writer, zoom_gives_the_latest_values_of_what_was_read)
{
	struct ls_wire_zoomed z[LS_GROUPS_MAX];

	ck_assert_uint_eq(ls_chunk_writer_zoom(writer, z), 0);
	read_fast(start);
	read_fast(start + S);
	ck_assert_uint_eq(ls_chunk_writer_zoom(writer, z), 1);
	take_all();
	/* which is on its way already */
	ck_assert_uint_eq(z[0].dictionary, out.dictionary[0]);
	ck_assert_uint_eq(z[0].t_mono_ns, start + S);
	ck_assert_uint_eq(z[0].count, 3);
	ck_assert_double_eq(z[0].value[0], (double)(start + S) / (double)S);
	ck_assert(isnan(z[0].value[1]) && isnan(z[0].value[2]));
	read_slow(start);
	ck_assert_uint_eq(ls_chunk_writer_zoom(writer, z), 2);
	/* no reading of it yet */
	ck_assert_int_ge(ls_series_add(table, fast, "new", ""), 0);
	ck_assert_uint_eq(ls_chunk_writer_zoom(writer, z), 1);
}
