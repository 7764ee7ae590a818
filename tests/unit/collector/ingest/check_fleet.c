/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/fleet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/wire/wire.h"
#include "tests/support/harness.h"

#define NOW 1795219200000000ll

static struct ls_fleet *fleet;
static struct ls_dictionaries *dictionaries;
static struct ls_clock clock_same;

static void
setup(void)
{
	fleet = ls_fleet_new(3);
	dictionaries = ls_dictionaries_new(100, 10 * 1024 * 1024);
	ls_clock_init(&clock_same, true);
}

static void
teardown(void)
{
	ls_fleet_free(fleet);
	ls_dictionaries_free(dictionaries);
}

static struct ls_wire_report
report(const char *host)
{
	struct ls_wire_report r = { .has_kernel = true,
		.t_send_mono_ns = 1000000000,
		.slowed = 4,
		.lost_samples = 10,
		.waiting_chunk_items = 2,
		.spooled_items = 3,
		.dropped_records = 5 };

	(void)snprintf(r.host, sizeof(r.host), "%s", host);
	(void)snprintf(r.agent_version, sizeof(r.agent_version), "1.2");
	return r;
}

static void
tell(const char *host, int64_t now_us)
{
	struct ls_wire_report r = report(host);

	ck_assert_int_eq(
		ls_fleet_report(fleet, &r, &clock_same, host[0] == 'd', now_us), 0);
}

static struct ls_fleet_stats
stats(void)
{
	struct ls_fleet_stats st;

	ls_fleet_stats(fleet, &st);
	return st;
}

LS_CASE(fleet, setup, teardown);

LS_TEST(fleet, a_host_is_shown_as_documented)
{
	json_t *h = NULL;
	char *text;

	ck_assert_int_eq(ls_fleet_view(fleet, "a", 0, &h), -LS_EUNKNOWN);
	tell("a", NOW);
	ck_assert_int_eq(ls_fleet_view(fleet, "a", NOW + 1000000, &h), 0);
	text = json_dumps(h, JSON_COMPACT | JSON_SORT_KEYS);
	ck_assert_str_eq(text,
		"{\"agent\":{\"delayed_answers\":0,\"lost_records\":5,\"lost_samples\":10,\"slowed_factor\":4,"
		"\"version\":\"1.2\",\"waiting_chunk_items\":2,\"waiting_items\":3},"
		"\"clock\":{\"drift_ppm\":0.0,\"offset_s\":0.0,\"uncertainty_s\":0.0},"
		"\"first_seen_at\":\"2026-11-21T00:00:00.000Z\",\"host\":\"a\",\"identity\":null,"
		"\"last_seen_at\":\"2026-11-21T00:00:00.000Z\","
		"\"zoom_until_at\":\"2026-11-21T00:00:01.000Z\"}");
	free(text);
	json_decref(h);
}

LS_TEST(fleet, sums_follow_the_hosts_and_the_silent_make_room)
{
	tell("a", NOW);
	tell("b", NOW);
	tell("a", NOW + 1);
	ck_assert_uint_eq(stats().lost_samples, 20);
	ck_assert_uint_eq(stats().waiting_chunk_items, 4);
	ck_assert_uint_eq(stats().slowed, 2);
	tell("c", NOW + 2);
	tell("d", NOW + 3);
	ck_assert_uint_eq(stats().hosts, 3);
	ck_assert_uint_eq(stats().evicted, 1);
	ck_assert_uint_eq(stats().lost_samples, 30);
	ck_assert(!ls_fleet_has(fleet, "b"));
	ck_assert(ls_fleet_has(fleet, "a"));
	ck_assert_uint_eq(stats().delayed, 1); /* of d */
	tell("d", NOW + 4);
	ck_assert_uint_eq(stats().delayed, 1);
	tell("e", NOW + 5);
	tell("f", NOW + 6);
	tell("g", NOW + 7);
	ck_assert_uint_eq(stats().delayed, 0);
}

static bool
identify(const char *value, int64_t now_us)
{
	struct ls_wire_identity field = { .key = "worker", .source = "ring" };
	struct ls_wire_report r = report("a");
	bool store = false;

	(void)snprintf(field.value, sizeof(field.value), "%s", value);
	r.has_identity = true;
	r.identity_count = 1;
	r.identity = &field;
	ck_assert_int_eq(ls_fleet_identify(fleet, &r, now_us, &store), 0);
	return store;
}

LS_TEST(fleet, an_identity_is_stored_when_it_is_another_or_long_ago)
{
	char *text;

	ck_assert_ptr_null(ls_fleet_identity_text(fleet, "a"));
	ck_assert(identify("7", NOW));
	ck_assert(!identify("7", NOW + 1));
	ck_assert(identify("8", NOW + 2));
	ck_assert(!identify("8", NOW + LS_HOST_STORED_US));
	ck_assert(identify("8", NOW + 2 + LS_HOST_STORED_US));
	text = ls_fleet_identity_text(fleet, "a");
	ck_assert_str_eq(text, "{\"worker\":{\"source\":\"ring\",\"value\":\"8\"}}");
	free(text);
}

LS_TEST(fleet, what_storage_knew_is_there_and_bad_text_is_not)
{
	static const char good[] =
		"{\"slice\":{\"source\":\"config\",\"value\":\"s\"}}";
	json_t *h = NULL;

	ck_assert_int_eq(ls_fleet_seed(fleet, "a", good, strlen(good), NOW, NOW + 5),
		0);
	ck_assert_int_eq(ls_fleet_seed(fleet, "b", "[]", 2, NOW, NOW), -LS_EPARSE);
	ck_assert_int_eq(ls_fleet_seed(fleet, "b", "{", 1, NOW, NOW), -LS_EPARSE);
	ck_assert(!ls_fleet_has(fleet, "b"));
	ck_assert_int_eq(ls_fleet_view(fleet, "a", 0, &h), 0);
	ck_assert(json_is_null(json_object_get(h, "agent")));
	ck_assert(json_is_null(json_object_get(h, "clock")));
	ck_assert_str_eq(
		json_string_value(json_object_get(
			json_object_get(json_object_get(h, "identity"), "slice"),
			"value")),
		"s");
	json_decref(h);
}

/* What libtpu reported of a host, in a standstill from 02:00 to 03:00. */
static const struct {
	const char *at;
	size_t rows; /* of the stall, in the standstill */
} stalls[] = { { "2026-11-21T02:00:30.000Z", 2 }, { "2026-11-21T01:59:59.999Z", 0 },
	{ "2026-11-21T03:00:00.001Z", 0 } };

LS_TEST_EACH(fleet, stall_within_a_standstill_is_told_once, stalls)
{
	json_t *rows = json_array();
	char text[512];

	(void)snprintf(text, sizeof(text),
		"{\"stall.0\":{\"source\":\"stall\",\"value\":\"%s core 3\"},"
		"\"stall.1\":{\"source\":\"stall\",\"value\":\"%s core 4\"}}",
		stalls[_i].at, stalls[_i].at);
	ck_assert_int_eq(ls_fleet_seed(fleet, "a", text, strlen(text), NOW, NOW), 0);
	ls_fleet_stalls(fleet, "b", "2026-11-21T02:00:00.000Z", NULL, rows);
	for (int i = 0; i < 2; i++)
		ls_fleet_stalls(fleet, "a", "2026-11-21T02:00:00.000Z",
			"2026-11-21T03:00:00.000Z", rows);
	ck_assert_uint_eq(json_array_size(rows), stalls[_i].rows);
	if (stalls[_i].rows > 0)
		ck_assert_str_eq(json_string_value(json_object_get(
					 json_array_get(rows, 1), "text")),
			"a: 2026-11-21T02:00:30.000Z core 4");
	json_decref(rows);
}

/* Values of a group with so many series; their number. */
static int
give(const char *group, size_t count, size_t values, int64_t t_us)
{
	static char text[LS_SERIES_PER_GROUP_MAX][16];
	const char *series[LS_SERIES_PER_GROUP_MAX];
	double value[LS_SERIES_PER_GROUP_MAX] = { 0 };
	struct ls_wire_zoomed z = { .count = values, .value = value };
	struct ls_dictionary *d = NULL;

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(text[i], sizeof(text[i]), "s%zu", i);
		series[i] = text[i];
		value[i] = i == 0 ? NAN : (double)i;
	}
	z.dictionary = ls_wire_dictionary_hash(group, series, count);
	ck_assert_int_eq(ls_dictionaries_put(dictionaries, z.dictionary, group, series,
				 count, &d),
		0);
	return ls_fleet_values(fleet, "a", d, &z, t_us);
}

static size_t
live(int64_t now_us)
{
	json_t *all = NULL;
	size_t n;

	ck_assert_int_eq(ls_fleet_series(fleet, "a", now_us, &all), 0);
	n = json_array_size(all);
	json_decref(all);
	return n;
}

LS_TEST(fleet, live_values_are_bounded_and_replaced)
{
	json_t *all = NULL;

	ck_assert_int_eq(give("g", 3, 3, NOW), -LS_EUNKNOWN); /* no such host */
	ck_assert_int_eq(ls_fleet_series(fleet, "a", NOW, &all), -LS_EUNKNOWN);
	tell("a", NOW);
	ck_assert_uint_eq(live(NOW), 0);
	ck_assert_int_eq(give("g", 3, 3, NOW), 0);
	ck_assert_int_eq(give("g", 3, 2, NOW), -LS_ERANGE);
	ck_assert_uint_eq(live(NOW), 3);
	ck_assert_int_eq(give("g", 5, 5, NOW), 0); /* another dictionary of the group */
	ck_assert_uint_eq(live(NOW), 5);
	ck_assert_int_eq(give("h", 512, 512, NOW), 0);
	ck_assert_int_eq(give("i", 512, 512, NOW), -LS_ELIMIT);
	ck_assert_int_eq(give("i", LS_SERIES_MAX - 517, LS_SERIES_MAX - 517, NOW), 0);
	ck_assert_uint_eq(live(NOW), LS_SERIES_MAX);
	ck_assert_uint_eq(live(NOW + LS_ZOOM_LIVE_US + 1), 0);
	ls_fleet_forget_values(fleet, "a");
	ck_assert_uint_eq(live(NOW), 0);
	ls_fleet_forget_values(fleet, "nobody");
}

LS_TEST(fleet, a_series_of_no_known_form_is_shown_as_it_is)
{
	json_t *one = ls_fleet_series_json("what is this", "g", 1, true, NOW, true);

	ck_assert_str_eq(json_string_value(json_object_get(one, "name")),
		"what is this");
	ck_assert_uint_eq(json_object_size(json_object_get(one, "labels")), 0);
	ck_assert(json_is_null(json_object_get(one, "unit")));
	json_decref(one);
}
