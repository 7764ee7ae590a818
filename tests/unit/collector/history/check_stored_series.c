/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/history/stored_series.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "collector/history/replay.h"
#include "proto/base/json.h"
#include "proto/base/log.h"
#include "proto/chunk/chunk.h"
#include "tests/support/core.h"
#include "tests/support/harness.h"

#define T0 1000000000ull /* as the first step of a ring */

static char dir[PATH_MAX];
static struct ls_test_core core;
static struct ls_test_agent agent;

struct text {
	char *text;
	size_t len, pieces, wanted; /* wanted: stop after so many; 0: all */
};

static void
setup(void)
{
	ls_log_set_level(LS_LOG_ERR);
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ls_test_core_open(&core, dir);
	ls_test_agent_init(&agent, 0, true);
}

static void
teardown(void)
{
	ls_test_core_close(&core);
}

static bool
keep(void *arg, const char *text, size_t len)
{
	struct text *t = arg;

	t->text = realloc(t->text, t->len + len + 1);
	ck_assert_ptr_nonnull(t->text);
	memcpy(t->text + t->len, text, len);
	t->len += len;
	t->text[t->len] = '\0';
	return ++t->pieces != t->wanted;
}

static json_t *
latest(const char *host)
{
	struct text t = { 0 };
	json_t *all = NULL;

	ck_assert_int_eq(ls_stored_series(dir, host, keep, &t), 0);
	ck_assert_int_eq(ls_json_parse(t.text, t.len, &all, NULL, 0), 0);
	ck_assert(json_is_array(all));
	free(t.text);
	return all;
}

/* Steps, then a dictionary and chunks beside them. */
static void
fill(void)
{
	ls_test_agent_steps(&agent, 1, 0, 20);
	ls_test_agent_dictionary(&agent, 1);
	ls_test_agent_encoded(&agent, 2, T0);
	ls_test_agent_encoded(&agent, 3, T0 + 2000000000);
	ls_test_agent_lost(&agent, 4, 9);
	ck_assert_uint_eq(ls_test_core_send(&core, &agent, true)->acked_chunk_seq, 4);
}

LS_CASE(latest, setup, teardown);

LS_TEST(latest, the_latest_value_of_each_series_is_found)
{
	json_t *all, *one;

	fill();
	all = latest("h0");
	ck_assert_uint_eq(json_array_size(all), LS_TEST_SERIES);
	one = json_array_get(all, 0);
	ck_assert_str_eq(json_string_value(json_object_get(one, "name")),
		"host.cpu.busy_seconds_total");
	ck_assert(json_number_value(json_object_get(one, "value")) == 2.5);
	ck_assert_str_eq(json_string_value(json_object_get(one, "t")),
		"2026-11-21T00:00:04.000Z");
	ck_assert_str_eq(json_string_value(json_object_get(one, "group")), "host.fast");
	ck_assert(json_is_false(json_object_get(one, "live")));
	/* NaN was measured and is no number; the third was there a row earlier. */
	ck_assert(json_is_null(json_object_get(json_array_get(all, 1), "value")));
	one = json_array_get(all, 2);
	/* Shown with 15 digits; an export gives all. */
	ck_assert(json_number_value(json_object_get(one, "value")) ==
		9.00719925474099e15);
	ck_assert_str_eq(json_string_value(json_object_get(one, "t")),
		"2026-11-21T00:00:03.000Z");
	json_decref(all);
	all = latest("nobody");
	ck_assert_uint_eq(json_array_size(all), 0);
	json_decref(all);
}

LS_TEST(latest, a_group_that_changed_is_shown_once)
{
	static const char *const series[] = { "old.count" };
	const uint64_t hash = ls_wire_dictionary_hash("host.fast", series, 1);
	struct ls_wire_chunk_item item = { .seq = 1,
		.kind = LS_WIRE_DICTIONARY,
		.hash = hash,
		.group = "host.fast",
		.series_count = 1 };
	const char *names[1];
	uint8_t *buf = malloc(LS_CHUNK_ITEM_MAX_BYTES);
	json_t *all;
	size_t len = 0;

	memcpy(names, series, sizeof(names));
	item.series = names;
	ck_assert_int_eq(
		ls_wire_chunk_item_pack(&item, buf, LS_CHUNK_ITEM_MAX_BYTES, &len), 0);
	agent.chunk_items[0].data = buf;
	agent.chunk_items[0].len = len;
	agent.report.chunk_item_count = 1;
	ck_assert_uint_eq(ls_test_core_send(&core, &agent, true)->acked_chunk_seq, 1);
	{
		struct ls_chunk_codec *codec = ls_chunk_codec_new(1, 1);
		uint64_t t = T0;
		double value = 7;
		bool present = true;
		const struct ls_chunk_table table = { 1, 1, 1, &t, &value, &present };
		uint8_t body[256];

		ck_assert_int_eq(
			ls_chunk_encode(codec, &table, body, sizeof(body), &len), 0);
		ls_chunk_codec_free(codec);
		item = (struct ls_wire_chunk_item){ .seq = 2,
			.kind = LS_WIRE_CHUNK,
			.hash = hash,
			.rows = 1,
			.t_first_mono_ns = T0,
			.t_last_mono_ns = T0,
			.body = body,
			.body_len = len };
		buf = malloc(LS_CHUNK_ITEM_MAX_BYTES);
		ck_assert_int_eq(ls_wire_chunk_item_pack(&item, buf,
					 LS_CHUNK_ITEM_MAX_BYTES, &len),
			0);
	}
	agent.chunk_items[0].data = buf;
	agent.chunk_items[0].len = len;
	agent.report.chunk_item_count = 1;
	ls_test_agent_dictionary(&agent, 3);
	ck_assert_uint_eq(ls_test_core_send(&core, &agent, false)->acked_chunk_seq, 3);
	all = latest("h0");
	ck_assert_uint_eq(json_array_size(all), 1);
	ck_assert_str_eq(
		json_string_value(json_object_get(json_array_get(all, 0), "name")),
		"old.count");
	json_decref(all);
	ls_test_agent_encoded(&agent, 4, T0 + 1000000000);
	ck_assert_uint_eq(ls_test_core_send(&core, &agent, false)->acked_chunk_seq, 4);
	all = latest("h0");
	ck_assert_uint_eq(json_array_size(all), LS_TEST_SERIES);
	json_decref(all);
}

LS_TEST(latest, a_chunk_that_does_not_decode_is_left_out)
{
	static const uint8_t nothing[] = { 1, 0, 2, 0, LS_TEST_SERIES, 0, 0xff, 0xff,
		0xff, 0xff };
	uint32_t sum = (uint32_t)crc32_z(0, nothing, sizeof(nothing));
	uint8_t body[sizeof(nothing) + 4];
	json_t *all;
	size_t i;

	/* Its checksum is right, as is its header: what takes it in sees no more. */
	memcpy(body, nothing, sizeof(nothing));
	for (i = 0; i < 4; i++)
		body[sizeof(nothing) + i] = (uint8_t)(sum >> (8 * i));
	fill();
	ls_log_set_level(LS_LOG_ERR);
	ls_test_agent_body(&agent, 5, T0 + 4000000000, T0 + 5000000000, body,
		sizeof(body));
	ck_assert_uint_eq(ls_test_core_send(&core, &agent, false)->acked_chunk_seq, 5);
	all = latest("h0");
	/* the newest of its group, and unreadable */
	ck_assert_uint_eq(json_array_size(all), 0);
	json_decref(all);
}

LS_TEST(latest, a_receiver_may_stop)
{
	struct text t = { .wanted = 1 };

	fill();
	ck_assert_int_eq(ls_stored_series(dir, "h0", keep, &t), -ECANCELED);
	free(t.text);
}

/* --- export --counters ---------------------------------------------------- */

static size_t
count(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)) != NULL; text++)
		n++;
	return n;
}

/* Names that replay does not know are passed over, and said to be so once. */
static void
complain(void *arg, const char *text)
{
	(void)arg;
	ck_assert_msg(strstr(text, "unknown key \"chip.hbm") != NULL,
		"replay complains: %s", text);
}

LS_CASE(export, setup, teardown);

LS_TEST(export, an_export_has_every_series_if_asked)
{
	static const char first[] =
		"{\"host\":\"h0\",\"job\":\"train\",\"t\":1795219201.000000,"
		"\"type\":\"counters\",\"values\":{\"host.cpu.busy_seconds_total\":1.5,"
		"\"chip.hbm.used_bytes{chip=\\\"1\\\"}\":9007199254740992}}\n";
	static const char lost[] =
		"{\"from\":1795219201.000000,\"group\":\"host.fast\",\"host\":\"h0\",\"job\":\"train\","
		"\"reason\":\"spool_full\",\"samples\":9,\"t\":1795219300.000000,"
		"\"to\":1795219202.000000,\"type\":\"lost\"}\n";
	struct text plain = { 0 }, all = { 0 };
	struct ls_replay_stats st;
	json_t *result = NULL;

	fill();
	ck_assert_int_eq(ls_export_job(dir, "train", false, keep, &plain), 0);
	ck_assert_uint_eq(count(plain.text, "\"type\":\"counters\""), 0);
	ck_assert_int_eq(ls_export_job(dir, "train", true, keep, &all), 0);
	ck_assert_mem_eq(all.text, plain.text, plain.len); /* the same, and then more */
	ck_assert_uint_eq(count(all.text, "\"type\":\"counters\""), 4);
	ck_assert_msg(strstr(all.text, first) != NULL, "%s", all.text + plain.len);
	ck_assert_msg(strstr(all.text, lost) != NULL, "%s", all.text + plain.len);
	ck_assert_int_eq(
		ls_replay_text(all.text, all.len, 0, complain, NULL, &st, &result), 0);
	ck_assert_uint_eq(st.bad_lines, 0);
	ck_assert_uint_eq(st.counters, 4);
	json_decref(result);
	free(plain.text);
	free(all.text);
}

LS_TEST(export, a_zoom_is_exported_and_taken_by_replay)
{
	struct text t = { 0 };
	struct ls_replay_stats st;
	json_t *result = NULL;
	int64_t until_us = 0;

	fill();
	ck_assert_int_eq(ls_zoom_ask(core.zoom, "h0", "", 30000000,
				 LS_TEST_ANCHOR_NS / 1000 + 2000000, &until_us),
		0);
	ck_assert_int_eq(ls_zoom_ask(core.zoom, "other", "", 30000000,
				 LS_TEST_ANCHOR_NS / 1000 + 2000000, &until_us),
		0);
	ls_outbox_flush(core.outbox);
	ls_test_core_close(&core);
	ls_test_core_open(&core, dir);
	ck_assert_int_eq(ls_export_job(dir, "train", false, keep, &t), 0);
	ck_assert_uint_eq(
		count(t.text,
			"{\"cause\":\"asked\",\"event\":\"begin\",\"host\":\"h0\","
			"\"job\":\"train\",\"t\":1795219202.000000,\"type\":\"zoom\","
			"\"until\":1795219232.000000}\n"),
		1);
	ck_assert_uint_eq(count(t.text, "\"type\":\"zoom\""), 1);
	ck_assert_int_eq(ls_replay_text(t.text, t.len, 0, complain, NULL, &st, &result),
		0);
	ck_assert_uint_eq(st.bad_lines, 0);
	json_decref(result);
	free(t.text);
}

LS_TEST(export, a_long_row_takes_several_lines)
{
	static char series[LS_SERIES_PER_GROUP_MAX][LS_SERIES_TEXT_MAX_BYTES];
	const char *names[LS_SERIES_PER_GROUP_MAX];
	double value[LS_SERIES_PER_GROUP_MAX];
	static char buf[3 * LS_REPLAY_LINE_MAX_BYTES];
	struct ls_lines l = { .text = buf, .size = sizeof(buf) };
	size_t i, done = 0, lines = 0;

	for (i = 0; i < LS_SERIES_PER_GROUP_MAX; i++) {
		memset(series[i], '"', sizeof(series[i]) - 1); /* each is escaped */
		names[i] = series[i];
		value[i] = i % 7 == 0 ? INFINITY : -1.2345678901234567e-300;
	}
	while (done < LS_SERIES_PER_GROUP_MAX) {
		size_t start = l.len;

		done += ls_lines_series(&l, "train", "h0", 1, names + done,
			value + done, LS_SERIES_PER_GROUP_MAX - done);
		ck_assert(!l.full);
		ck_assert_uint_le(l.len - start, LS_REPLAY_LINE_MAX_BYTES);
		lines++;
		if (l.len > LS_REPLAY_LINE_MAX_BYTES)
			l.len = 0;
	}
	ck_assert_uint_gt(lines, 3);
}
