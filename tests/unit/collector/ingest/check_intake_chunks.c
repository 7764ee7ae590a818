/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/intake.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "storage/db/days.h"
#include "storage/read/query_chunk.h"
#include "tests/support/core.h"
#include "tests/support/disk/faultvfs.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"

#define T0 99000000000ull
#define YEAR_NS (365ull * 86400 * 1000000000)

static char dir[PATH_MAX];
static struct ls_test_core core;

static void
setup(void)
{
	ls_log_set_level(LS_LOG_ERR);
	ls_faultvfs_install();
	ls_faultvfs_heal();
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ls_test_core_open(&core, dir);
}

static void
teardown(void)
{
	ls_test_core_close(&core);
}

static void
restart(void)
{
	teardown();
	ls_test_core_open(&core, dir);
}

static struct ls_intake_stats
stats(void)
{
	struct ls_intake_stats st;

	ls_intake_stats(core.intake, &st);
	return st;
}

static int64_t
sql(const char *text)
{
	return ls_test_sql(dir, ls_days_of(ls_clock_wall_ns() / 1000), text);
}

static const struct ls_wire_ack *
send(struct ls_test_agent *a)
{
	return ls_test_core_send(&core, a, false);
}

/* --- the stream of chunks ------------------------------------------------- */

LS_CASE(chunks, setup, teardown);

LS_TEST(chunks, chunk_items_are_acknowledged_when_on_disk)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_dictionary(&a, 1);
	ls_test_agent_chunk(&a, 2, T0);
	ls_test_agent_lost(&a, 3, 55);
	ls_test_agent_steps(&a, 1, 0, 4);
	ack = ls_test_core_send(&core, &a, true);
	ck_assert_int_eq(ack->status, LS_ACK_OK);
	ck_assert_uint_eq(ack->acked_chunk_seq, 3);
	ck_assert_uint_eq(ack->acked_seq, 1);
	ck_assert_uint_eq(ack->need_dictionary_count, 0);
	ck_assert_int_eq(sql("SELECT count(*) FROM dictionary"), 1);
	ck_assert_int_eq(sql("SELECT n FROM chunk"), 2);
	ck_assert_int_eq(
		sql("SELECT substr(bytes, at + 1, 6) = x'010002000300' FROM chunk, body_part"),
		1);
	ck_assert_int_eq(sql("SELECT t_first_us FROM chunk"),
		LS_TEST_ANCHOR_NS / 1000 + 99000000);
	ck_assert_int_eq(sql("SELECT t_last_us FROM chunk"),
		LS_TEST_ANCHOR_NS / 1000 + 100000000);
	ck_assert_int_eq(
		sql("SELECT h.name = 'h0' FROM chunk c JOIN chunk_host h ON h.id = c.host_id"),
		1);
	ck_assert_int_eq(sql("SELECT c.dictionary = d.hash FROM chunk c, dictionary d"),
		1);
	ck_assert_int_eq(sql("SELECT samples FROM lost WHERE reason = 1"), 55);
	ck_assert_int_eq(sql("SELECT from_us FROM lost"),
		LS_TEST_ANCHOR_NS / 1000 + 1000000);
	ck_assert_int_eq(sql("SELECT chunk_seq FROM ledger"), 3);
	ck_assert_int_eq(sql("SELECT seq FROM ledger"), 1);
	ck_assert_uint_eq(stats().chunks, 1);
	ck_assert_int_eq(sql("SELECT len FROM chunk"), (int64_t)stats().chunk_bytes);
	ck_assert_uint_eq(stats().lost_samples, 55);
	ck_assert_uint_eq(stats().held_bytes, 0);
}

LS_TEST(chunks, chunk_items_that_come_again_are_not_stored_again)
{
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_dictionary(&a, 1);
	ls_test_agent_chunk(&a, 2, T0);
	ck_assert_uint_eq(send(&a)->acked_chunk_seq, 2);
	ls_test_agent_chunk(&a, 2, T0);
	ls_test_agent_chunk(&a, 3, T0 + 1);
	ck_assert_uint_eq(send(&a)->acked_chunk_seq, 3);
	ck_assert_int_eq(sql("SELECT count(*) FROM chunk"), 2);
	ck_assert_uint_eq(stats().chunk_items, 3);
}

LS_TEST(chunks, a_hole_in_the_chunks_is_refused_and_steps_go_on)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_dictionary(&a, 1);
	(void)send(&a);
	ls_test_agent_chunk(&a, 3, T0);
	ls_test_agent_steps(&a, 1, 0, 4);
	ack = ls_test_core_send(&core, &a, true);
	ck_assert_int_eq(ack->status, LS_ACK_RETRY);
	ck_assert_uint_eq(ack->acked_chunk_seq, 1);
	ck_assert_uint_eq(ack->acked_seq, 1);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_HOLE], 1);
	ck_assert_int_eq(sql("SELECT count(*) FROM chunk"), 0);
}

LS_TEST(chunks, an_unknown_dictionary_is_asked_for_and_nothing_is_lost)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_chunk(&a, 40, T0);
	ls_test_agent_chunk(&a, 41, T0);
	ack = send(&a);
	ck_assert_uint_eq(ack->acked_chunk_seq, 41);
	ck_assert_uint_eq(ack->need_dictionary_count, 1);
	ck_assert(ack->need_dictionary[0] == ls_test_dictionary());
	ck_assert_int_eq(sql("SELECT count(*) FROM chunk"), 2);
	ck_assert_int_eq(sql("SELECT count(*) FROM dictionary"), 0);
	ls_test_agent_dictionary(&a, 42);
	ls_test_agent_chunk(&a, 43, T0);
	ack = send(&a);
	ck_assert_uint_eq(ack->acked_chunk_seq, 43);
	ck_assert_uint_eq(ack->need_dictionary_count, 0);
	ck_assert_int_eq(sql("SELECT count(*) FROM dictionary"), 1);
	ck_assert_uint_eq(stats().dictionaries_asked, 1);
}

LS_TEST(chunks, a_bad_chunk_item_does_not_take_the_good_one_along)
{
	static const uint8_t garbage[] = { 0x08, 0x02, 0x1a, 0xff, 0x01 };
	struct ls_test_agent a;
	uint8_t *buf;
	size_t len;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_dictionary(&a, 1);
	a.chunk_items[1].data = garbage;
	a.chunk_items[1].len = sizeof(garbage);
	a.report.chunk_item_count = 2;
	buf = ls_test_agent_pack(&a, false, &len);
	ls_test_core_give(&core, buf, len, true);
	free(buf);
	a.report.chunk_item_count = 1;
	ls_test_agent_clear(&a);
	ck_assert_int_eq(core.ack.status, LS_ACK_REJECT);
	ck_assert_uint_eq(core.ack.acked_chunk_seq, 1);
	ck_assert_uint_eq(core.ack.malformed_chunk_seq, 2);
	ck_assert_uint_eq(core.ack.malformed_seq, 0);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_BAD_ITEM], 1);
	ls_test_agent_lost(&a, UINT64_MAX, 1);
	ck_assert_int_eq(send(&a)->status, LS_ACK_REJECT);
	/* What is understood and cannot be true never will be: its number is spent. */
	ls_test_agent_lost(&a, 2, UINT64_MAX);
	ck_assert_int_eq(send(&a)->status, LS_ACK_OK);
	ck_assert_uint_eq(core.ack.acked_chunk_seq, 2);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_BAD_ITEM], 3);
	ck_assert_int_eq(sql("SELECT samples FROM lost"), 0);
}

/* --- chunks that lie ------------------------------------------------------ */

/* Gives a dictionary and a good chunk, then that body, then a good one; the middle one
 * is not stored. */
static void
lie(uint64_t t_first_ns, uint64_t t_last_ns, const uint8_t *body, size_t len,
	enum ls_intake_drop drop)
{
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_dictionary(&a, 1);
	ls_test_agent_chunk(&a, 2, T0);
	ls_test_agent_body(&a, 3, t_first_ns, t_last_ns, body, len);
	ls_test_agent_chunk(&a, 4, T0);
	ck_assert_int_eq(send(&a)->status, LS_ACK_OK);
	ck_assert_uint_eq(core.ack.acked_chunk_seq, 4);
	ck_assert_uint_eq(stats().drops[drop], 1);
	ck_assert_uint_eq(stats().chunks, 2);
	ck_assert_int_eq(sql("SELECT count(*) FROM chunk"), 2);
	ck_assert_int_eq(sql("SELECT count(*) FROM lost"), 1);
	ck_assert_int_eq(sql("SELECT samples FROM lost"), 2 * LS_TEST_SERIES);
	ck_assert_int_eq(sql("SELECT chunk_seq FROM ledger"), 4);
}

LS_TEST(chunks, a_chunk_with_a_wrong_checksum_is_a_loss)
{
	uint8_t body[256];
	size_t len = ls_test_body(T0, LS_TEST_SERIES, 1, body, sizeof(body));

	body[len / 2] ^= 1;
	lie(T0, T0 + 1000000000, body, len, LS_INTAKE_CHUNK_CHECKSUM);
	ck_assert_int_eq(sql("SELECT reason FROM lost"), LS_LOST_DAMAGED);
	ck_assert_int_eq(sql("SELECT from_us FROM lost"),
		LS_TEST_ANCHOR_NS / 1000 + 99000000);
}

LS_TEST(chunks, a_chunk_of_another_version_is_a_loss)
{
	uint8_t body[256];
	size_t len = ls_test_body(T0, LS_TEST_SERIES, 1, body, sizeof(body));

	body[0]++;
	lie(T0, T0 + 1000000000, body, len, LS_INTAKE_CHUNK_VERSION);
}

LS_TEST(chunks, a_chunk_wider_than_its_dictionary_is_a_loss)
{
	uint8_t body[256];
	size_t len = ls_test_body(T0, LS_TEST_SERIES + 1, 1, body, sizeof(body));

	lie(T0, T0 + 1000000000, body, len, LS_INTAKE_CHUNK_SHAPE);
}

LS_TEST(chunks, a_chunk_cut_short_is_a_loss)
{
	uint8_t body[256];

	(void)ls_test_body(T0, LS_TEST_SERIES, 1, body, sizeof(body));
	lie(T0, T0 + 1000000000, body, 7, LS_INTAKE_CHUNK_SHAPE);
}

LS_TEST(chunks, a_chunk_longer_than_any_is_a_loss)
{
	uint8_t body[256];
	size_t len = ls_test_body(T0, LS_TEST_SERIES, 1, body, sizeof(body));

	lie(T0, T0 + ((uint64_t)LS_CHUNK_SPAN_US + 1) * 1000, body, len,
		LS_INTAKE_CHUNK_SHAPE);
}

LS_TEST(chunks, a_chunk_a_year_ahead_is_a_loss_of_no_known_time)
{
	uint8_t body[256];
	size_t len = ls_test_body(T0 + YEAR_NS, LS_TEST_SERIES, 1, body, sizeof(body));

	lie(T0 + YEAR_NS, T0 + YEAR_NS + 1000000000, body, len, LS_INTAKE_CLOCK);
	ck_assert_int_eq(sql("SELECT from_us IS NULL AND to_us IS NULL FROM lost"), 1);
	ck_assert_int_eq(sql("SELECT reason FROM lost"), LS_LOST_UNKNOWN);
}

LS_TEST(chunks, a_chunk_a_year_behind_is_a_loss_of_no_known_time)
{
	uint8_t body[256];
	size_t len = ls_test_body(T0, LS_TEST_SERIES, 1, body, sizeof(body));
	struct ls_test_agent a;

	core.now_ns += YEAR_NS;
	ls_test_agent_init(&a, 0, true);
	ls_test_agent_body(&a, 1, T0, T0 + 1000000000, body, len);
	ck_assert_uint_eq(send(&a)->acked_chunk_seq, 1);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_CLOCK], 1);
	ck_assert_int_eq(sql("SELECT count(*) FROM chunk"), 0);
}

LS_TEST(chunks, losses_of_a_time_that_cannot_be_have_none)
{
	struct ls_test_agent a;

	core.now_ns += YEAR_NS;
	ls_test_agent_init(&a, 0, true);
	ls_test_agent_lost(&a, 1, 7);
	ck_assert_uint_eq(send(&a)->acked_chunk_seq, 1);
	ck_assert_int_eq(sql("SELECT samples FROM lost WHERE from_us IS NULL"), 7);
}

LS_TEST(chunks, a_dictionary_whose_hash_lies_names_nothing_and_goes_on)
{
	struct ls_test_agent a;
	uint8_t item[512], *buf;
	size_t len, i;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_dictionary(&a, 1);
	ck_assert_uint_le(a.chunk_items[0].len, sizeof(item));
	memcpy(item, a.chunk_items[0].data, a.chunk_items[0].len);
	/* The last byte is of a name. */
	item[a.chunk_items[0].len - 1] ^= 1;
	a.chunk_items[1].data = item;
	a.chunk_items[1].len = a.chunk_items[0].len;
	for (i = 0; i < 2; i++) {
		a.report.chunk_items = a.chunk_items + 1;
		a.report.chunk_item_count = 1;
		buf = ls_test_agent_pack(&a, false, &len);
		ls_test_core_give(&core, buf, len, true);
		free(buf);
		ck_assert_int_eq(core.ack.status, LS_ACK_OK);
		ck_assert_uint_eq(core.ack.acked_chunk_seq, 1);
	}
	a.report.chunk_items = a.chunk_items;
	ls_test_agent_clear(&a);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_BAD_DICTIONARY], 1);
	ck_assert_uint_eq(stats().dictionaries, 0);
	ck_assert_int_eq(sql("SELECT count(*) FROM dictionary"), 0);
	ck_assert_int_eq(sql("SELECT count(*) FROM lost"), 1);
}

LS_TEST(chunks, of_two_agents_under_one_name_only_the_first_has_chunks)
{
	struct ls_test_agent a, twin;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_dictionary(&a, 1);
	ls_test_agent_chunk(&a, 2, T0);
	ck_assert_uint_eq(send(&a)->acked_chunk_seq, 2);
	ls_test_agent_init(&twin, 0, true);
	memset(twin.report.boot, 0x55, sizeof(twin.report.boot));
	ls_test_agent_chunk(&twin, 1, T0);
	ck_assert_uint_eq(send(&twin)->acked_chunk_seq, 1);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_APART], 1);
	ck_assert_int_eq(sql("SELECT count(*) FROM chunk"), 1);
	ck_assert_int_eq(sql("SELECT samples FROM lost"), 2 * LS_TEST_SERIES);
}

LS_TEST(chunks, numbers_that_jump_back_with_other_items_are_counted)
{
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_chunk(&a, 1, T0);
	ls_test_agent_chunk(&a, 2, T0);
	ck_assert_uint_eq(send(&a)->acked_chunk_seq, 2);
	ls_test_agent_chunk(&a, 1, T0 + 7);
	ck_assert_uint_eq(send(&a)->acked_chunk_seq, 2);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_CHANGED], 1);
	ck_assert_int_eq(sql("SELECT count(*) FROM chunk"), 2);
}

LS_TEST(chunks, chunks_wait_for_the_clock)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, false);
	ls_test_agent_dictionary(&a, 1);
	ls_test_agent_chunk(&a, 2, 1000000000);
	ack = send(&a);
	ck_assert_uint_eq(ack->acked_chunk_seq, 0);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_NO_CLOCK], 2);
	a.report.has_last = true;
	a.report.last.t1 = 1000000000;
	a.report.last.t2 = ack->t_receive_mono_ns;
	a.report.last.t3 = ack->t_send_mono_ns;
	a.report.last.t4 = 1000200000;
	core.now_ns += 1000000000;
	ls_test_agent_dictionary(&a, 1);
	ls_test_agent_chunk(&a, 2, 1000000000);
	ck_assert_uint_eq(send(&a)->acked_chunk_seq, 2);
	ck_assert_int_eq(sql("SELECT t_first_us FROM chunk"),
		LS_TEST_ANCHOR_NS / 1000 + 100000000 - 100);
}

LS_TEST(chunks, a_full_disk_acknowledges_no_chunk_and_heals)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_lost(&a, 1, 1);
	ck_assert_uint_eq(send(&a)->acked_chunk_seq, 1);
	ls_faultvfs_fail(1, SQLITE_FULL);
	ls_test_agent_dictionary(&a, 2);
	ls_test_agent_chunk(&a, 3, T0);
	ack = send(&a);
	ck_assert_int_eq(ack->status, LS_ACK_RETRY);
	ck_assert_uint_eq(ack->acked_chunk_seq, 1);
	ls_faultvfs_heal();
	/* The dictionary is in memory, but not on disk: the chunk brings it along. */
	ls_test_agent_dictionary(&a, 2);
	ls_test_agent_chunk(&a, 3, T0);
	ack = send(&a);
	ck_assert_int_eq(ack->status, LS_ACK_OK);
	ck_assert_uint_eq(ack->acked_chunk_seq, 3);
	ck_assert_int_eq(sql("SELECT count(*) FROM chunk"), 1);
	ck_assert_int_eq(sql("SELECT count(*) FROM dictionary"), 1);
}

LS_TEST(chunks, a_restart_knows_ledger_dictionaries_and_hosts)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;
	json_t *host = NULL;

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_dictionary(&a, 1);
	ls_test_agent_chunk(&a, 2, T0);
	ls_test_agent_identity(&a, "7");
	ck_assert_uint_eq(send(&a)->acked_chunk_seq, 2);
	restart();
	ck_assert_uint_eq(core.restored.dictionaries, 1);
	ck_assert_uint_eq(core.restored.hosts, 1);
	ck_assert_int_eq(ls_fleet_view(core.fleet, "h0", 0, &host), 0);
	ck_assert_str_eq(
		json_string_value(json_object_get(
			json_object_get(json_object_get(host, "identity"), "worker"),
			"value")),
		"7");
	/* it has not reported since */
	ck_assert(json_is_null(json_object_get(host, "agent")));
	json_decref(host);
	ls_test_agent_chunk(&a, 2, T0);
	ls_test_agent_chunk(&a, 3, T0 + 5);
	ack = send(&a);
	ck_assert_uint_eq(ack->acked_chunk_seq, 3);
	ck_assert_uint_eq(ack->need_dictionary_count, 0);
	ck_assert_int_eq(sql("SELECT count(*) FROM chunk"), 2);
}

/* --- identity and zoom ---------------------------------------------------- */

LS_CASE(identity_and_zoom, setup, teardown);

LS_TEST(identity_and_zoom, identity_is_asked_for_and_stored_when_it_changes)
{
	struct ls_test_agent a;

	ls_test_agent_init(&a, 0, true);
	ck_assert(send(&a)->need_identity);
	ls_test_agent_identity(&a, "7");
	ck_assert(!send(&a)->need_identity);
	ls_test_agent_identity(&a, "7");
	(void)send(&a);
	ls_test_agent_identity(&a, "8");
	(void)send(&a);
	teardown();
	ck_assert_int_eq(ls_test_sql(dir, 0, "SELECT count(*) FROM host_identity"), 1);
	ck_assert_int_eq(
		ls_test_sql(dir, 0,
			"SELECT json = '{\"slice\":{\"source\":\"metadata\",\"value\":\"s-1\"},"
			"\"worker\":{\"source\":\"ring\",\"value\":\"8\"}}' FROM host_identity"),
		1);
	ck_assert_int_eq(
		ls_test_sql(dir, 0, "SELECT first_us <= last_us FROM host_identity"),
		1);
	ls_test_core_open(&core, dir);
}

LS_TEST(identity_and_zoom, a_zoomed_host_is_told_and_its_values_are_live)
{
	const struct ls_wire_ack *ack;
	struct ls_test_agent a;
	json_t *series = NULL, *one;
	int64_t until_us = 0, now_us = ls_intake_time_us(core.intake, core.now_ns);

	ls_test_agent_init(&a, 0, true);
	ls_test_agent_dictionary(&a, 1);
	ls_test_agent_zoomed(&a, T0);
	ck_assert_uint_eq(send(&a)->zoom_ns, 0);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_UNASKED], 1);
	ck_assert_int_eq(ls_zoom_ask(core.zoom, "h0", "", 60000000, now_us, &until_us),
		0);
	ls_test_agent_zoomed(&a, T0);
	ack = send(&a);
	/* Each report has a time of its own: this one is 1 us later. */
	ck_assert_uint_eq(ack->zoom_ns, 60000000000ull - 1000);
	ck_assert_uint_eq(stats().zoomed, 1);
	ck_assert_int_eq(ls_fleet_series(core.fleet, "h0", now_us, &series), 0);
	ck_assert_uint_eq(json_array_size(series), LS_TEST_SERIES);
	one = json_array_get(series, 2);
	ck_assert_str_eq(json_string_value(json_object_get(one, "name")),
		"chip.hbm.used_bytes");
	ck_assert_str_eq(json_string_value(json_object_get(
				 json_object_get(one, "labels"), "chip")),
		"1");
	ck_assert_str_eq(json_string_value(json_object_get(one, "unit")), "bytes");
	ck_assert(json_number_value(json_object_get(one, "value")) == 1e9 + 1);
	ck_assert(json_is_null(json_object_get(json_array_get(series, 1), "value")));
	json_decref(series);
	/* Old values are not live, and after the end none are taken. */
	ck_assert_int_eq(
		ls_fleet_series(core.fleet, "h0", now_us + LS_ZOOM_LIVE_US, &series),
		0);
	ck_assert_uint_eq(json_array_size(series), 0);
	json_decref(series);
	core.now_ns += 61000000000ull;
	ls_intake_advance(core.intake, core.now_ns, 0);
	ck_assert_int_eq(ls_fleet_series(core.fleet, "h0", now_us, &series), 0);
	ck_assert_uint_eq(json_array_size(series), 0); /* forgotten at the end */
	json_decref(series);
	ls_test_agent_zoomed(&a, T0);
	ck_assert_uint_eq(send(&a)->zoom_ns, 0);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_UNASKED], 2);
	teardown();
	ck_assert_int_eq(sql("SELECT count(*) FROM zoom"), 2);
	ck_assert_int_eq(sql("SELECT event FROM zoom ORDER BY id DESC LIMIT 1"),
		LS_ZOOM_END);
	ls_test_core_open(&core, dir);
}

LS_TEST(identity_and_zoom, zoomed_values_must_fit_their_dictionary)
{
	struct ls_test_agent a;
	int64_t until_us = 0;

	ls_test_agent_init(&a, 0, true);
	ck_assert_int_eq(ls_zoom_ask(core.zoom, "h0", "", 60000000,
				 ls_intake_time_us(core.intake, core.now_ns),
				 &until_us),
		0);
	ls_test_agent_zoomed(&a, T0);
	ck_assert_uint_eq(send(&a)->need_dictionary_count, 1);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_NO_DICTIONARY], 1);
	ls_test_agent_dictionary(&a, 1);
	(void)send(&a);
	ls_test_agent_zoomed(&a, T0);
	a.zoomed.count--;
	(void)send(&a);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_BAD_VALUES], 1);
}

LS_TEST(identity_and_zoom, a_second_agent_of_a_name_says_nothing_of_the_host)
{
	struct ls_test_agent a, b;

	ls_test_agent_init(&a, 0, true);
	b = a;
	ls_test_agent_init(&b, 0, true);
	memset(b.report.boot, 0x33, sizeof(b.report.boot));
	(void)send(&a);
	ls_test_agent_identity(&b, "9");
	ck_assert(!send(&b)->need_identity);
	ck_assert_uint_eq(stats().drops[LS_INTAKE_APART], 1);
	ck_assert_ptr_null(ls_fleet_identity_text(core.fleet, "h0"));
}

LS_TEST(identity_and_zoom, a_suspect_is_zoomed_with_its_peers)
{
	struct ls_test_agent agents[4];
	uint64_t n;
	int32_t i;

	for (i = 0; i < 4; i++)
		ls_test_agent_init(&agents[i], i, true);
	for (n = 0; n < 300; n++)
		ls_test_core_round(&core, agents, 4, n, 2);
	ck_assert_int_gt(ls_zoom_until(core.zoom, "h2",
				 ls_intake_time_us(core.intake, core.now_ns)),
		0);
	teardown();
	ck_assert_int_eq(
		sql("SELECT count(*) FROM zoom WHERE host = 'h2' AND job = 'train' "
		    "AND event = 0"),
		1);
	/* Two at a time; another one, where one of them looked suspect itself for a
	 * while. */
	ck_assert_int_ge(sql("SELECT count(*) FROM zoom WHERE cause = 'peer of h2'"),
		2);
	ck_assert_int_eq(
		sql("SELECT count(*) FROM zoom WHERE host <> 'h2' AND cause <> 'peer of h2'"),
		0);
	ls_test_core_open(&core, dir);
}
