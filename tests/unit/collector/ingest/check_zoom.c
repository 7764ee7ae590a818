/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/zoom.h"

#include <stdio.h>
#include <string.h>
#include "tests/support/harness.h"

#define S 1000000ll
#define MAX_S ((int64_t)(LS_ZOOM_MAX_NS / 1000000000))
#define TOTAL_S ((int64_t)(LS_ZOOM_TOTAL_NS / 1000000000))
#define REST_S ((int64_t)(LS_ZOOM_REST_NS / 1000000000))

static struct ls_zoom *zoom;
static char told[4096];

static void
sink(void *arg, const struct ls_store_zoom *e, int64_t t_us)
{
	static const char *const names[] = { "begin", "renew", "end" };
	size_t len = strlen(told);

	ck_assert_ptr_eq(arg, told);
	(void)snprintf(told + len, sizeof(told) - len, "%lld %s %s (%s) until %lld\n",
		(long long)(t_us / S), names[e->event], e->host, e->cause,
		(long long)(e->until_us / S));
}

static void
setup(void)
{
	told[0] = '\0';
	zoom = ls_zoom_new(sink, told);
	ck_assert_ptr_nonnull(zoom);
}

static void
teardown(void)
{
	ls_zoom_free(zoom);
}

static struct ls_attention_want
want(const char *host)
{
	struct ls_attention_want w = { .job = "train", .cause = "suspect" };

	(void)snprintf(w.host, sizeof(w.host), "%s", host);
	return w;
}

static struct ls_zoom_stats
stats(void)
{
	struct ls_zoom_stats st;

	ls_zoom_stats(zoom, &st);
	return st;
}

/* Lets a host be wanted each second from one time to another. */
static void
wanted(const char *host, int64_t from_s, int64_t to_s)
{
	struct ls_attention_want w = want(host);
	int64_t t;

	for (t = from_s; t < to_s; t++)
		ls_zoom_turn(zoom, &w, 1, t * S);
}

LS_CASE(zoom, setup, teardown);

LS_TEST(zoom, begins_when_wanted_and_ends_by_itself)
{
	struct ls_attention_want w = want("a");

	ls_zoom_turn(zoom, &w, 1, 1000 * S);
	ck_assert_int_eq(ls_zoom_until(zoom, "a", 1000 * S), (1000 + MAX_S) * S);
	ls_zoom_turn(zoom, NULL, 0, (1000 + MAX_S - 1) * S);
	ck_assert_int_ne(ls_zoom_until(zoom, "a", (1000 + MAX_S - 1) * S), 0);
	ck_assert_int_eq(ls_zoom_until(zoom, "a", (1000 + MAX_S) * S), 0);
	ls_zoom_turn(zoom, NULL, 0, (1000 + MAX_S) * S);
	ck_assert_str_eq(told,
		"1000 begin a (suspect) until 1120\n"
		"1120 end a (suspect) until 1120\n");
	ck_assert_uint_eq(stats().active, 0);
	ck_assert_int_eq(ls_zoom_until(zoom, "b", 1000 * S), 0);
	ck_assert_int_eq(ls_zoom_until(zoom, "", 1000 * S), 0);
}

LS_TEST(zoom, renewed_while_wanted_up_to_a_total)
{
	wanted("a", 1000, 1000 + TOTAL_S + REST_S / 2);
	ck_assert_str_eq(told,
		"1000 begin a (suspect) until 1120\n"
		"1120 renew a (suspect) until 1240\n"
		"1240 renew a (suspect) until 1360\n"
		"1360 renew a (suspect) until 1480\n"
		"1480 renew a (suspect) until 1600\n"
		"1600 end a (suspect) until 1600\n");
	ck_assert_uint_eq(stats().waiting, 1);
	told[0] = '\0';
	wanted("a", 1600 + REST_S, 1601 + REST_S); /* rested */
	ck_assert_str_eq(told, "3400 begin a (suspect) until 3520\n");
}

LS_TEST(zoom, coming_and_going_does_not_get_round_the_total)
{
	int64_t t = 1000, n = 0;

	/* Wanted for a moment each two minutes and a bit: as long as the total lasts.
	 */
	for (; t < 1000 + REST_S; t += MAX_S + 5) {
		wanted("a", t, t + 1);
		ls_zoom_turn(zoom, NULL, 0, (t + MAX_S) * S);
		n++;
	}
	ck_assert_int_gt(n, TOTAL_S / MAX_S);
	ck_assert_uint_eq(stats().begun, (uint64_t)(TOTAL_S / MAX_S));
}

LS_TEST(zoom, at_most_so_many_hosts_at_once)
{
	struct ls_attention_want w[LS_ZOOM_HOSTS_MAX + 3];
	char name[16];
	size_t i;
	int64_t until = -1;

	for (i = 0; i < LS_ZOOM_HOSTS_MAX + 3; i++) {
		(void)snprintf(name, sizeof(name), "h%zu", i);
		w[i] = want(name);
	}
	ls_zoom_turn(zoom, w, LS_ZOOM_HOSTS_MAX + 3, 1000 * S);
	ck_assert_uint_eq(stats().active, LS_ZOOM_HOSTS_MAX);
	ck_assert_uint_eq(stats().waiting, 3);
	/* the weightiest first */
	ck_assert_int_ne(ls_zoom_until(zoom, "h0", 1000 * S), 0);
	ck_assert_int_eq(ls_zoom_until(zoom, name, 1000 * S), 0);
	ck_assert_int_eq(ls_zoom_ask(zoom, "x", "", 10 * S, 1000 * S, &until),
		-LS_EBUSY);
	ck_assert_int_eq(until, -1);
	ck_assert_uint_eq(stats().refused, 1);
	/* A host that is zoomed already can be asked for. */
	ck_assert_int_eq(ls_zoom_ask(zoom, "h0", "", 10 * S, 1119 * S, &until), 0);
	ck_assert_int_eq(until, 1129 * S);
}

LS_TEST(zoom, a_renewal_names_who_asked_and_the_cause_stays)
{
	struct ls_attention_want w = want("a");
	int64_t until;

	ls_zoom_turn(zoom, &w, 1, 1000 * S);
	ck_assert_int_eq(ls_zoom_ask(zoom, "a", "alice", 10 * S, 1119 * S, &until), 0);
	ls_zoom_turn(zoom, NULL, 0, 1129 * S);
	ck_assert_str_eq(told,
		"1000 begin a (suspect) until 1120\n"
		"1119 renew a (asked by alice) until 1129\n"
		"1129 end a (suspect) until 1129\n");
}

LS_TEST(zoom, a_person_may_ask_for_a_host_that_rests)
{
	int64_t until = 0;

	wanted("a", 1000, 1000 + TOTAL_S + 10);
	told[0] = '\0';
	ck_assert_int_eq(ls_zoom_ask(zoom, "a", "", 3600 * S, 1700 * S, &until), 0);
	ck_assert_int_eq(until, (1700 + MAX_S) * S); /* no longer than any */
	wanted("a", 1701, 1700 + MAX_S + 10);
	ck_assert_str_eq(told,
		"1700 begin a (asked) until 1820\n"
		"1820 end a (asked) until 1820\n");
}

LS_TEST(zoom, what_rests_is_forgotten_when_there_are_too_many)
{
	char name[16];
	size_t i;

	for (i = 0; i < 3 * LS_ZOOM_RESTING_MAX; i++) {
		(void)snprintf(name, sizeof(name), "h%zu", i);
		wanted(name, 1000 + (int64_t)i, 1001 + (int64_t)i);
		ls_zoom_turn(zoom, NULL, 0, (1000 + (int64_t)i + MAX_S) * S);
		told[0] = '\0';
	}
	ck_assert_uint_eq(stats().active, 0);
	ck_assert_uint_eq(stats().begun, 3 * LS_ZOOM_RESTING_MAX);
}
