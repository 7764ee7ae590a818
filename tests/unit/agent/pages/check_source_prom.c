/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/pages/source_prom.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "tests/support/harness.h"

/* What the fake server does. */
enum fake { FAKE_PAGE, FAKE_404, FAKE_SILENT, FAKE_HUGE, FAKE_GARBAGE, FAKE_EMPTY };

static struct ls_loop *loop;
static struct evhttp *http;
static unsigned port;
static enum fake fake;
static unsigned asked, tick;
static struct evhttp_request *held;
static struct ls_series_table *table;
static struct ls_source source;
static struct ls_sample sample;
static uint64_t now;

static void
answer(struct evhttp_request *req, void *arg)
{
	struct evbuffer *body = evbuffer_new();
	static char block[65536];
	unsigned i;

	(void)arg;
	asked++;
	switch (fake) {
	case FAKE_PAGE:
		(void)evbuffer_add_printf(body,
			"# TYPE duty_cycle gauge\n"
			"duty_cycle{accelerator_id=\"1-8\"} %u\nup 1\n",
			tick++ % 100);
		break;
	case FAKE_SILENT:
		held = req;
		evbuffer_free(body);
		return;
	case FAKE_HUGE:
		memset(block, '#', sizeof(block));
		for (i = 0; i <= LS_PROM_PAGE_MAX_BYTES / sizeof(block); i++)
			(void)evbuffer_add(body, block, sizeof(block));
		break;
	case FAKE_GARBAGE:
		(void)evbuffer_add(body,
			"\x7f"
			"ELF\0\1\2",
			7);
		break;
	case FAKE_404:
	case FAKE_EMPTY:
		break;
	}
	evhttp_send_reply(req, fake == FAKE_404 ? 404 : 200, NULL, body);
	evbuffer_free(body);
}

static int
open_source(const char *pages, const char *map)
{
	int rc = ls_source_prom_new(loop, table, pages, map, &source);

	if (rc != 0)
		source.free = NULL;
	return rc;
}

static void
setup(void)
{
	struct evhttp_bound_socket *bound;
	struct sockaddr_in at;
	socklen_t size = sizeof(at);
	char pages[64];

	ls_log_set_level(LS_LOG_ERR);
	(void)signal(SIGPIPE, SIG_IGN); /* as ls_loop_signals does */
	fake = FAKE_PAGE;
	asked = tick = 0;
	held = NULL;
	now = 1000000000000ull;
	loop = ls_loop_new();
	http = evhttp_new(ls_loop_base(loop));
	bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	ck_assert_ptr_nonnull(bound);
	ck_assert_int_eq(getsockname(evhttp_bound_socket_get_fd(bound),
				 (struct sockaddr *)&at, &size),
		0);
	port = ntohs(at.sin_port);
	evhttp_set_gencb(http, answer, NULL);
	table = ls_series_new();
	(void)snprintf(pages, sizeof(pages), "fake=http://127.0.0.1:%u/metrics", port);
	ck_assert_int_eq(open_source(pages, ""), 0);
}

static void
teardown(void)
{
	if (source.free != NULL)
		source.free(source.self);
	evhttp_free(http);
	ls_series_free(table);
	ls_loop_free(loop);
}

static enum ls_prom_state
state(void)
{
	return ls_prom_page_state(ls_source_prom_page(&source, 0));
}

static const char *
why(void)
{
	return ls_prom_page_why(ls_source_prom_page(&source, 0));
}

/* How often the page was read or given up. */
static uint64_t
readings(void)
{
	struct ls_series_group g;
	size_t i;

	for (i = 0; i < LS_GROUPS_MAX; i++) {
		if (ls_series_look(table, i, &g) && strcmp(g.name, "prom.fake") == 0)
			return g.readings;
	}
	return 0;
}

/* The source is read when its time has come, and the loop turns until that is over. */
static void
read_once(void)
{
	uint64_t before = readings();
	unsigned turns;

	now += LS_PROM_ABSENT_NS;
	source.read(source.self, LS_CADENCE_FAST, now, &sample);
	for (turns = 0; readings() == before && turns < 10000 &&
		!(fake == FAKE_EMPTY && turns > 50);
		turns++)
		ck_assert_int_ge(
			event_base_loop(ls_loop_base(loop),
				EVLOOP_ONCE |
					(fake == FAKE_EMPTY ? EVLOOP_NONBLOCK : 0)),
			0);
}

/* What the doctor says of the page. */
static const struct ls_doctor_check *
told(void)
{
	static struct ls_doctor d;

	memset(&d, 0, sizeof(d));
	source.tell(source.self, &d);
	ck_assert_uint_eq(d.count, 1);
	ck_assert_str_eq(d.check[0].source, "prom");
	return &d.check[0];
}

LS_CASE(source_prom, setup, teardown);

LS_TEST(source_prom, a_page_becomes_a_group)
{
	ck_assert_int_eq(told()->status, LS_DOCTOR_NONE);
	read_once();
	ck_assert_int_eq(state(), LS_PROM_GOOD);
	ck_assert_uint_eq(asked, 1);
	ck_assert_int_eq(told()->status, LS_DOCTOR_OK);
	ck_assert_ptr_nonnull(strstr(told()->why, "1 of 2 samples used"));
}

LS_TEST(source_prom, it_is_asked_for_every_10_s)
{
	unsigned i;

	read_once();
	for (i = 0; i < 9; i++)
		source.read(source.self, LS_CADENCE_FAST, now += 1000000000, &sample);
	source.read(source.self, LS_CADENCE_SLOW, now += 1000000000, &sample);
	ck_assert_int_ge(event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK), 0);
	ck_assert_uint_eq(asked, 1);
	source.read(source.self, LS_CADENCE_FAST, now, &sample);
	while (asked < 2)
		ck_assert_int_ge(event_base_loop(ls_loop_base(loop), EVLOOP_ONCE), 0);
}

static const struct {
	enum fake fake;
	const char *why;
} bad[] = {
	{ FAKE_404, "answers with HTTP status 404" },
	{ FAKE_HUGE, "more than 4194304 bytes" },
	{ FAKE_GARBAGE, "line 1: a byte of 0" },
};

LS_TEST_EACH(source_prom, bad_answers_are_not_measured_and_said, bad)
{
	read_once();
	fake = bad[_i].fake;
	read_once();
	ck_assert_int_eq(state(), LS_PROM_FAILED);
	ck_assert_str_eq(why(), bad[_i].why);
	ck_assert_int_eq(told()->status, LS_DOCTOR_FAIL);
	ck_assert_ptr_nonnull(strstr(told()->why, bad[_i].why));
	ck_assert_str_ne(told()->fix, "");
	fake = FAKE_PAGE;
	read_once();
	ck_assert_int_eq(state(), LS_PROM_GOOD);
}

LS_TEST(source_prom, a_server_without_our_names_is_said_to_be_so)
{
	fake = FAKE_EMPTY;
	read_once();
	ck_assert_int_eq(state(), LS_PROM_ABSENT);
	ck_assert_int_eq(told()->status, LS_DOCTOR_NONE);
	ck_assert_ptr_nonnull(strstr(told()->why, "no sample that a rule selects"));
}

LS_TEST(source_prom, where_nobody_listens_is_no_error)
{
	unsigned i;

	source.free(source.self);
	ck_assert_int_eq(open_source("orbax=http://127.0.0.1:1/metrics", ""), 0);
	source.read(source.self, LS_CADENCE_FAST, now, &sample);
	for (i = 0; why()[0] == '\0' && i < 1000; i++)
		ck_assert_int_ge(event_base_loop(ls_loop_base(loop), EVLOOP_ONCE), 0);
	ck_assert_int_eq(state(), LS_PROM_ABSENT);
	ck_assert_int_eq(told()->status, LS_DOCTOR_NONE);
	ck_assert_ptr_nonnull(strstr(told()->why, "nothing listens"));
	ck_assert_ptr_nonnull(strstr(told()->fix, "ENABLE_ORBAX_PROMETHEUS_TELEMETRY"));
}

LS_TEST(source_prom, a_frozen_page_is_said_with_its_fix)
{
	unsigned i;
	uint64_t steps = 0;

	for (i = 0; i < 80 + LS_PROM_FROZEN_READINGS; i++) {
		ls_source_prom_stepped(&source, steps += 10);
		if (i >= 80)
			tick = 42;
		read_once();
	}
	ck_assert_int_eq(state(), LS_PROM_GOOD); /* tick changed once more */
	tick = 42;
	ls_source_prom_stepped(&source, steps += 10);
	read_once();
	ck_assert_int_eq(state(), LS_PROM_FROZEN);
	ck_assert_int_eq(told()->status, LS_DOCTOR_WARN);
	ck_assert_str_eq(told()->why,
		"values have not changed for 300 s while the job made steps");
	ck_assert_str_eq(told()->fix, "restart the program that serves this page");
}

/* Its deadline is check_http_get's. */
LS_TEST(source_prom, a_page_that_hangs_holds_nothing_up)
{
	fake = FAKE_SILENT;
	source.read(source.self, LS_CADENCE_FAST, now, &sample);
	while (held == NULL)
		ck_assert_int_ge(event_base_loop(ls_loop_base(loop), EVLOOP_ONCE), 0);
	source.read(source.self, LS_CADENCE_FAST, now += LS_PROM_ABSENT_NS, &sample);
	ck_assert_int_ge(event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK), 0);
	ck_assert_uint_eq(asked, 1); /* not while it hangs */
	source.free(source.self);
	source.free = NULL;
}

static const struct {
	const char *pages;
	int rc;
} wrong[] = {
	{ "http://h/", -LS_EPARSE },
	{ "=http://h/", -LS_EPARSE },
	{ "A B=http://h/", -LS_EPARSE },
	{ "a=https://h/", -LS_EPARSE },
	{ "a=http://h/,a=http://i/", -LS_EDUPLICATE },
	{ "a=http://h/,,b=http://h/", -LS_EPARSE },
	{ "a=http://h/,b=http://h/,c=http://h/,d=http://h/,e=http://h/,f=http://h/,g=http://h/,"
	  "h=http://h/,i=http://h/",
		-LS_ELIMIT },
};

LS_TEST_EACH(source_prom, wrong_pages_are_refused, wrong)
{
	source.free(source.self);
	ls_log_set_level(LS_LOG_ERR);
	ck_assert_int_eq(open_source(wrong[_i].pages, ""), wrong[_i].rc);
}

LS_TEST(source_prom, no_pages_and_a_map_that_is_not_there)
{
	source.free(source.self);
	ck_assert_int_eq(open_source("", "/nonexistent"), -ENOENT);
	ck_assert_int_eq(open_source("", ""), 0);
	ck_assert_ptr_null(ls_source_prom_page(&source, 0));
	source.read(source.self, LS_CADENCE_FAST, now, &sample);
}
