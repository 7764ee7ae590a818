/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/metadata.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include "proto/limits.h"
#include "tests/support/fake_metadata.h"
#include "tests/support/harness.h"

#define MS 1000000ull

static struct ls_loop *loop;
static struct fake_metadata server;
static struct ls_metadata *metadata;
static struct ls_metadata_options options;
static unsigned rounds, stop_after, answered[LS_METADATA_ITEM_COUNT], absent;
static char last[512];

static void
answer(void *arg, enum ls_metadata_item item, const char *text, size_t len)
{
	ck_assert_ptr_eq(arg, &rounds);
	if (text == NULL) {
		absent++;
		return;
	}
	answered[item]++;
	(void)snprintf(last, sizeof(last), "%.*s", (int)len, text);
}

static void
done(void *arg)
{
	(void)arg;
	if (++rounds >= stop_after)
		ls_loop_stop(loop);
}

static void
setup(void)
{
	loop = ls_loop_new();
	ck_assert_ptr_nonnull(loop);
	fake_metadata_open(&server, loop);
	memset(&options, 0, sizeof(options));
	options.address = server.address;
	options.deadline_ns = 10000 * MS; /* none of these tests waits for it */
	options.retry_ns = 1;
	options.arg = &rounds;
	options.answer = answer;
	options.done = done;
	rounds = absent = 0;
	stop_after = 1;
	memset(answered, 0, sizeof(answered));
}

static void
teardown(void)
{
	ls_metadata_free(metadata);
	ls_metadata_free(NULL);
	metadata = NULL;
	fake_metadata_close(&server);
	ls_loop_free(loop);
}

static void
ask(void)
{
	ck_assert_int_eq(ls_metadata_new(loop, &options, &metadata), 0);
	ck_assert(!ls_metadata_was_asked(metadata));
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert(ls_metadata_was_asked(metadata));
}

static const struct ls_doctor_check *
told(void)
{
	static struct ls_doctor d;

	memset(&d, 0, sizeof(d));
	ls_metadata_tell(metadata, "not asked", &d);
	ck_assert_uint_eq(d.count, 1);
	return &d.check[0];
}

static bool
told_has(const char *text)
{
	return strstr(told()->why, text) != NULL;
}

LS_CASE(rounds, setup, teardown);

LS_TEST(rounds, every_item_is_asked_once_a_round)
{
	unsigned i;

	fake_metadata_v4_256(&server);
	ask();
	for (i = 0; i < LS_METADATA_ITEM_COUNT; i++)
		ck_assert_uint_eq(server.asked[i], 1);
	ck_assert_uint_eq(server.unmarked, 0);
	ck_assert_uint_eq(answered[LS_METADATA_TPU_ENV], 1);
	ck_assert_uint_eq(absent, 2);
	ck_assert(told_has("; 6 answers, 2 not found, 0 failures"));
	ck_assert_int_eq((int)told()->status, LS_DOCTOR_OK);
}

LS_TEST(rounds, machine_that_is_no_tpu_has_no_items)
{
	ask();
	ck_assert_uint_eq(absent, LS_METADATA_ITEM_COUNT);
	ck_assert_int_eq((int)told()->status, LS_DOCTOR_OK);
}

static const struct {
	enum fake_metadata_mode mode;
	const char *why;
} wrong[] = { { FAKE_METADATA_OTHER_FLAVOR, "not a metadata server" },
	{ FAKE_METADATA_HUGE, "too long" }, { FAKE_METADATA_GARBAGE, "cannot be read" },
	{ FAKE_METADATA_FORBIDDEN, "HTTP status" } };

LS_TEST_EACH(rounds, server_that_answers_wrong_is_not_believed, wrong)
{
	fake_metadata_v4_256(&server);
	server.mode = wrong[_i].mode;
	ask();
	ck_assert_uint_eq(server.asked[LS_METADATA_ID], 1);
	ck_assert_uint_eq(server.asked[LS_METADATA_ZONE], 0);
	ck_assert_uint_eq(answered[LS_METADATA_ID] + absent, 0);
	ck_assert_int_eq((int)told()->status, LS_DOCTOR_WARN);
	ck_assert_ptr_nonnull(strstr(told()->why, wrong[_i].why));
	ck_assert_uint_gt(strlen(told()->fix), 0);
}

LS_TEST(rounds, failing_server_is_asked_again_until_it_answers)
{
	stop_after = 3;
	server.mode = FAKE_METADATA_FORBIDDEN;
	ask();
	ck_assert_uint_eq(rounds, 3);
	ck_assert(told_has(", 3 failures"));
	server.mode = FAKE_METADATA_GOOD;
	stop_after = 4;
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert_uint_eq(absent, LS_METADATA_ITEM_COUNT);
	ck_assert_int_eq((int)told()->status, LS_DOCTOR_OK);
}

LS_TEST(rounds, one_bad_item_does_not_hide_the_others)
{
	fake_metadata_v4_256(&server);
	server.mode = FAKE_METADATA_HUGE;
	server.wrong_from = LS_METADATA_SUBSLICES; /* the last one */
	ask();
	ck_assert(told_has(", 1 failures"));
	ck_assert_uint_eq(answered[LS_METADATA_TPU_ENV], 1);
}

LS_TEST(rounds, second_bad_item_ends_the_round)
{
	fake_metadata_v4_256(&server);
	server.mode = FAKE_METADATA_GARBAGE;
	server.wrong_from = LS_METADATA_WORKER;
	ask();
	ck_assert(told_has(", 2 failures"));
	ck_assert_uint_eq(server.asked[LS_METADATA_ENDPOINTS], 1);
	ck_assert_uint_eq(server.asked[LS_METADATA_ACCELERATOR], 0);
}

LS_TEST(rounds, silence_has_a_deadline)
{
	server.mode = FAKE_METADATA_HANG;
	options.deadline_ns = 1;
	ask();
	ck_assert_ptr_nonnull(strstr(told()->why, "in time"));
}

LS_TEST(rounds, nobody_there_is_a_failure)
{
	fake_metadata_close(&server); /* the port is free again */
	ask();
	ck_assert_ptr_nonnull(strstr(told()->why, "nothing answers"));
}

LS_TEST(rounds, free_gives_up_what_is_under_way)
{
	server.mode = FAKE_METADATA_HANG;
	ck_assert_int_eq(ls_metadata_new(loop, &options, &metadata), 0);
	while (server.asked[LS_METADATA_ID] == 0)
		ck_assert_int_eq(event_base_loop(ls_loop_base(loop), EVLOOP_ONCE), 0);
	ls_metadata_free(metadata);
	metadata = NULL;
	ck_assert_int_ge(event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK), 0);
	ck_assert_uint_eq(rounds, 0);
}

LS_TEST(rounds, only_numbers_are_addresses)
{
	static const char *const bad[] = { "", "metadata.google.internal", "localhost",
		"1.2.3", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:8x",
		"1.2.3.4/x", "1.2.3.4@evil", "::1", "1.2.3.4:80:80", " 1.2.3.4",
		"127.0.0.1.127.0.0.1" };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(!ls_metadata_address_is_valid(bad[i]), "%s", bad[i]);
		options.address = bad[i];
		ck_assert_int_eq(ls_metadata_new(loop, &options, &metadata),
			-LS_ERANGE);
	}
	ck_assert(ls_metadata_address_is_valid(LS_METADATA_ADDRESS));
	ck_assert(ls_metadata_address_is_valid("127.0.0.1:65535"));
}

LS_TEST(rounds, not_asking_is_said)
{
	ck_assert_int_eq((int)told()->status, LS_DOCTOR_NONE);
	ck_assert_str_eq(told()->why, "not asked");
}
