/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/uplink/uplink.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"
#include "proto/base/loop.h"
#include "tests/support/fake_collector.h"
#include "tests/support/harness.h"

#define MS 1000000ull

/* What the fake collector does with a report. */
enum deed {
	ACK,
	SILENT,
	GARBAGE,
	WRONG_BOOT,
	BEYOND,
	REJECT,
	RETRY,
	NEED,
	NEED_ALL,
	SLOW_BEAT,
	MALFORMED,
	VERSION_2
};

static char state[300], url[64];
static const uint8_t kernel[16] = { 1 };
static struct ls_loop *loop;
static struct ls_spool *spool;
static struct ls_uplink *uplink;
static struct ls_wire_worker workers[2];
static struct ls_wire_hot hot = { .count = 1, .t_mono_ns = 5 };

/* What the collector does and saw: its thread alone touches what is not atomic until it
 * is stopped. */
static struct {
	enum deed deeds[16]; /* one a report, the last for all that follow */
	size_t deed_count;
	atomic_uint workers_seen, items_seen, stamps_seen;
	atomic_uint_fast64_t stored; /* highest number */
	atomic_uint kernels_seen;
	atomic_bool hole;
} fake;

static bool in_a_hurry; /* no pause lasts longer than 1 ms */

void __real_ls_loop_timer_start(struct ls_loop_timer *t, uint64_t delay_ns,
	uint64_t period_ns);
void __wrap_ls_loop_timer_start(struct ls_loop_timer *t, uint64_t delay_ns,
	uint64_t period_ns);

void
__wrap_ls_loop_timer_start(struct ls_loop_timer *t, uint64_t delay_ns,
	uint64_t period_ns)
{
	if (in_a_hurry && delay_ns == LS_REJECT_HOLD_NS)
		delay_ns = MS;
	__real_ls_loop_timer_start(t, delay_ns, period_ns);
}

/* Stores what comes until an item of steps: that one it cannot take. */
static bool
fake_store_gaps(const struct ls_wire_report *r, struct ls_wire_ack *a)
{
	struct ls_wire_item item;
	const char *why;
	size_t i;

	for (i = 0; i < r->item_count && a->malformed_seq == 0; i++) {
		ck_assert_int_eq(ls_wire_item_unpack(r->items[i].data, r->items[i].len,
					 &item, &why),
			0);
		if (item.kind == LS_WIRE_STEPS)
			a->malformed_seq = item.seq;
		else
			atomic_store(&fake.stored, item.seq);
		ls_wire_item_clear(&item);
	}
	return a->malformed_seq == 0;
}

static void
fake_store(const struct ls_wire_report *r)
{
	struct ls_wire_item item;
	const char *why;
	uint64_t stored = atomic_load(&fake.stored);
	size_t i;

	for (i = 0; i < r->item_count; i++) {
		ck_assert_int_eq(ls_wire_item_unpack(r->items[i].data, r->items[i].len,
					 &item, &why),
			0);
		if (item.seq > stored + 1)
			atomic_store(&fake.hole, true);
		if (item.seq == stored + 1)
			stored++;
		ls_wire_item_clear(&item);
	}
	atomic_store(&fake.stored, stored);
	atomic_fetch_add(&fake.items_seen, (unsigned)r->item_count);
	atomic_fetch_add(&fake.workers_seen, (unsigned)r->worker_count);
	atomic_fetch_add(&fake.stamps_seen, r->has_last);
}

/* The answer to a report; 0 bytes: none. */
static size_t
fake_answer(enum deed deed, const struct ls_wire_report *r, uint8_t **ret_buf)
{
	struct ls_wire_ack a = { .t_receive_mono_ns = 100, .t_send_mono_ns = 200 };
	size_t len = 0;

	atomic_fetch_add(&fake.kernels_seen, r->has_kernel);
	a.need_all_workers = deed == NEED_ALL;
	if (deed == ACK || deed == NEED || deed == NEED_ALL || deed == SLOW_BEAT)
		fake_store(r);
	memcpy(a.boot, r->boot, sizeof(a.boot));
	if (deed == MALFORMED && !fake_store_gaps(r, &a))
		a.status = LS_ACK_REJECT;
	a.acked_seq = atomic_load(&fake.stored);
	if (deed == WRONG_BOOT)
		a.boot[0] ^= 1;
	if (deed == BEYOND)
		a.acked_seq += 1000;
	if (deed == SLOW_BEAT)
		a.beat_ns = 400 * MS;
	if (deed == REJECT || deed == RETRY) {
		a.status = deed == REJECT ? LS_ACK_REJECT : LS_ACK_RETRY;
		a.retry_after_ns = 150 * MS;
		(void)snprintf(a.reason, sizeof(a.reason), "no \x1b[31m room");
	}
	if (deed == NEED) {
		a.need_count = 1;
		memcpy(a.need[0], workers[0].ring_id, LS_RING_ID_BYTES);
	}
	if (deed == SILENT)
		return 0;
	ck_assert_int_eq(ls_wire_ack_pack(&a, ret_buf, &len), 0);
	if (deed == GARBAGE)
		memset(*ret_buf, 0xff, len);
	if (deed == VERSION_2)
		(*ret_buf)[1] = 2;
	return len;
}

static size_t
fake_answer_next(size_t n, const struct ls_wire_report *r, uint8_t **ret_buf)
{
	return fake_answer(fake.deeds[n < fake.deed_count ? n : fake.deed_count - 1], r,
		ret_buf);
}

static void
fake_start(const enum deed *deeds, size_t count)
{
	memcpy(fake.deeds, deeds, count * sizeof(*deeds));
	fake.deed_count = count;
	fake_collector_start(url, sizeof(url), fake_answer_next);
}

static void
fill(void *arg, struct ls_wire_report *r)
{
	(void)arg;
	r->workers = workers;
	r->worker_count = 2;
	r->hot = &hot;
	r->hot_count = 1;
}

static void
start_uplink(void)
{
	struct ls_uplink_options o = { .url = url,
		.host = "host-1",
		.beat_ns = 100 * MS,
		.spool = spool,
		.fill = fill };

	memcpy(o.kernel_boot_id, kernel, sizeof(kernel));
	ck_assert_int_eq(ls_uplink_new(loop, &o, &uplink), 0);
}

static void
push(size_t n)
{
	while (n-- > 0) {
		struct ls_wire_item item = { .kind = LS_WIRE_GAP,
			.ring_id = { 1 },
			.count = 1,
			.first_index = ls_spool_next(spool),
			.reason = LS_GAP_INVALID };

		ck_assert_int_eq(ls_spool_push(spool, &item), 0);
	}
}

static void
setup(void)
{
	memset(&fake, 0, sizeof(fake));
	fake_collector_forget();
	url[0] = '\0';
	(void)snprintf(state, sizeof(state), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(ls_spool_open(state, LS_SPOOL_DEFAULT_BYTES, kernel, &spool),
		0);
	workers[0] =
		(struct ls_wire_worker){ .ring_id = { 1 }, .info = { .job = "j" } };
	workers[1] =
		(struct ls_wire_worker){ .ring_id = { 2 }, .info = { .job = "j" } };
	loop = ls_loop_new();
}

static void
teardown(void)
{
	ls_uplink_free(uplink);
	uplink = NULL;
	fake_collector_stop();
	ls_loop_free(loop);
	ls_spool_close(spool);
}

static const struct ls_uplink_stats *
stats(void)
{
	return ls_uplink_get_stats(uplink);
}

static bool
all_acked(void)
{
	return ls_spool_acked(spool) + 1 == ls_spool_next(spool);
}

static bool
one_ack(void)
{
	return stats()->acks >= 1;
}

static bool
two_acks(void)
{
	return stats()->acks >= 2;
}

static bool
three_acks(void)
{
	return stats()->acks >= 3;
}

static bool
one_bad(void)
{
	return stats()->bad_acks >= 1;
}

static bool
is_holding(void)
{
	return ls_uplink_get_state(uplink) == LS_UPLINK_STATE_HOLD;
}

static bool
is_waiting(void)
{
	return ls_uplink_get_state(uplink) == LS_UPLINK_STATE_AWAIT &&
		fake_collector_reports() >= 1;
}

static bool
is_down(void)
{
	return ls_uplink_get_state(uplink) == LS_UPLINK_STATE_DOWN;
}

LS_CASE(uplink, setup, teardown);

LS_TEST(uplink, items_are_sent_until_acknowledged)
{
	fake_start((const enum deed[]){ ACK }, 1);
	push(5);
	start_uplink();
	fake_collector_until(loop, all_acked);
	ck_assert_uint_eq(ls_spool_acked(spool), 5);
	ck_assert_uint_eq(atomic_load(&fake.items_seen), 5);
	ck_assert(!atomic_load(&fake.hole));
	ck_assert(ls_uplink_is_settled(uplink));
}

LS_TEST(uplink, workers_are_sent_until_known_and_stamps_from_the_second_report_on)
{
	fake_start((const enum deed[]){ ACK }, 1);
	start_uplink();
	fake_collector_until(loop, three_acks);
	ck_assert_uint_eq(atomic_load(&fake.workers_seen), 2);
	ck_assert_uint_ge(atomic_load(&fake.stamps_seen), 2);
}

LS_TEST(uplink, workers_are_sent_again_when_asked_for)
{
	fake_start((const enum deed[]){ ACK, NEED, ACK }, 3);
	start_uplink();
	fake_collector_until(loop, three_acks);
	ck_assert_uint_eq(atomic_load(&fake.workers_seen), 3);
}

LS_TEST(uplink, all_workers_are_sent_again_when_a_number_is_not_known)
{
	fake_start((const enum deed[]){ ACK, NEED_ALL, ACK }, 3);
	start_uplink();
	fake_collector_until(loop, three_acks);
	ck_assert_uint_eq(atomic_load(&fake.workers_seen), 4);
}

LS_TEST(uplink, the_kernel_is_told_until_an_ok_and_after_a_refusal)
{
	fake_start((const enum deed[]){ RETRY, ACK, ACK, RETRY, ACK }, 5);
	start_uplink();
	fake_collector_until(loop, three_acks);
	ck_assert_uint_ge(fake_collector_reports(), 5);
	/* the first, second and fifth */
	ck_assert_uint_eq(atomic_load(&fake.kernels_seen), 3);
}

LS_TEST(uplink, backlog_goes_without_waiting_for_the_beat)
{
	fake_start((const enum deed[]){ ACK }, 1);
	push(20 * LS_ITEMS_PER_REPORT_MAX);
	start_uplink();
	ls_uplink_set_beat(uplink, LS_BEAT_MAX_NS); /* longer than this test may take */
	fake_collector_until(loop, all_acked);
	ck_assert_uint_eq(fake_collector_reports(), 20);
}

LS_TEST(uplink, collector_sets_the_beat_within_limits)
{
	fake_start((const enum deed[]){ SLOW_BEAT, ACK }, 2);
	start_uplink();
	fake_collector_until(loop, one_ack);
	ck_assert_uint_eq(ls_uplink_beat_ns(uplink), 400 * MS);
	ls_uplink_set_beat(uplink, 800 * MS);
	/* not asked to be faster */
	ck_assert_uint_eq(ls_uplink_beat_ns(uplink), 800 * MS);
	ls_uplink_set_beat(uplink, 100 * MS);
	fake_collector_until(loop, two_acks);
	/* nothing is asked any more */
	ck_assert_uint_eq(ls_uplink_beat_ns(uplink), 100 * MS);
	ls_uplink_set_beat(uplink, 1);
	ck_assert_uint_eq(ls_uplink_beat_ns(uplink), LS_BEAT_MIN_NS);
	ls_uplink_set_beat(uplink, UINT64_MAX);
	ck_assert_uint_eq(ls_uplink_beat_ns(uplink), LS_BEAT_MAX_NS);
}

LS_TEST(uplink, retry_waits_and_keeps_the_items)
{
	fake_start((const enum deed[]){ RETRY, ACK }, 2);
	push(3);
	start_uplink();
	fake_collector_until(loop, is_holding);
	ck_assert_uint_eq(stats()->retries, 1);
	ck_assert_uint_eq(ls_spool_acked(spool), 0);
	fake_collector_until(loop, all_acked);
}

LS_TEST(uplink, reject_is_tried_again_slowly)
{
	fake_start((const enum deed[]){ REJECT }, 1);
	push(3);
	start_uplink();
	fake_collector_until(loop, is_holding);
	ck_assert_uint_eq(stats()->rejects, 1);
	fake_collector_turn(loop, 400 * MS);
	ck_assert_uint_eq(fake_collector_reports(), 1);
	ck_assert_uint_eq(ls_spool_acked(spool), 0);
}

/* Pushes an item of steps. */
static void
push_step(void)
{
	struct ls_record record = { .t_begin_ns = 1000, .duration_ns = 5 };
	struct ls_wire_item item = {
		.kind = LS_WIRE_STEPS, .ring_id = { 2 }, .count = 1, .records = &record
	};

	ck_assert_int_eq(ls_spool_push(spool, &item), 0);
}

LS_TEST(uplink, item_that_the_collector_cannot_take_becomes_a_gap)
{
	in_a_hurry = true;
	fake_start((const enum deed[]){ MALFORMED }, 1);
	push(2);
	push_step();
	push(2);
	start_uplink();
	fake_collector_until(loop, all_acked);
	in_a_hurry = false;
	ck_assert_uint_eq(stats()->rejects, LS_MALFORMED_TIMES);
	ck_assert_uint_eq(ls_spool_get_stats(spool)->malformed_items, 1);
}

static bool
is_refused_often(void)
{
	return stats()->rejects > 2 * LS_MALFORMED_TIMES;
}

LS_TEST(uplink, refusal_that_names_no_item_replaces_none)
{
	in_a_hurry = true;
	fake_start((const enum deed[]){ REJECT }, 1);
	push_step();
	start_uplink();
	fake_collector_until(loop, is_refused_often);
	in_a_hurry = false;
	ck_assert_uint_eq(ls_spool_get_stats(spool)->malformed_items, 0);
	ck_assert_uint_eq(ls_spool_acked(spool), 0);
}

static void
assert_survives(enum deed bad)
{
	const enum deed deeds[] = { bad, ACK };

	fake_start(deeds, 2);
	push(3);
	start_uplink();
	fake_collector_until(loop, one_bad);
	ck_assert_uint_eq(ls_spool_acked(spool), 0);
	ck_assert(is_holding());
	fake_collector_until(loop, all_acked);
	ck_assert_uint_eq(stats()->bad_acks, 1);
}

LS_TEST(uplink, garbage_is_no_answer)
{
	assert_survives(GARBAGE);
}

LS_TEST(uplink, an_answer_to_another_agent_is_no_answer)
{
	assert_survives(WRONG_BOOT);
}

LS_TEST(uplink, what_was_never_sent_cannot_be_acknowledged)
{
	assert_survives(BEYOND);
}

LS_TEST(uplink, an_unknown_version_is_no_answer)
{
	assert_survives(VERSION_2);
}

LS_TEST(uplink, silent_collector_blocks_nothing)
{
	fake_start((const enum deed[]){ SILENT }, 1);
	push(3);
	start_uplink();
	fake_collector_until(loop, is_waiting);
	/* the loop turns all the while */
	fake_collector_turn(loop, 300 * MS);
	ck_assert(!all_acked());
	ck_assert(!ls_uplink_is_settled(uplink));
	ck_assert_uint_eq(stats()->reports, 1);
}

LS_TEST(uplink, collector_that_comes_back_gets_everything)
{
	fake_start((const enum deed[]){ SILENT }, 1);
	push(3);
	start_uplink();
	fake_collector_until(loop, is_waiting);
	fake_collector_stop();
	fake_collector_until(loop, is_down);
	ck_assert(ls_uplink_is_settled(uplink));
	push(2);
	fake_collector_forget();
	fake_start((const enum deed[]){ ACK }, 1);
	fake_collector_until(loop, all_acked);
	ck_assert_uint_eq(ls_spool_acked(spool), 5);
	ck_assert_uint_ge(stats()->connects, 2);
	ck_assert(!atomic_load(&fake.hole));
}

LS_TEST(uplink, the_kernel_is_told_again_on_a_new_connection)
{
	fake_start((const enum deed[]){ ACK }, 1);
	start_uplink();
	fake_collector_until(loop, three_acks);
	ck_assert_uint_eq(atomic_load(&fake.kernels_seen), 1);
	fake_collector_stop();
	fake_collector_until(loop, is_down);
	push(2);
	fake_start((const enum deed[]){ ACK }, 1);
	fake_collector_until(loop, all_acked);
	ck_assert_uint_eq(atomic_load(&fake.kernels_seen), 2);
}

LS_TEST(uplink, dead_collector_costs_nothing)
{
	uint64_t cpu;

	(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:1");
	push(3);
	start_uplink();
	cpu = ls_clock_cpu_ns();
	fake_collector_turn(loop, 300 * MS);
	ck_assert(is_down());
	ck_assert_uint_eq(stats()->reports, 0);
	ck_assert_uint_lt(ls_clock_cpu_ns() - cpu, 200 * MS);
}

LS_TEST(uplink, senseless_addresses_are_refused)
{
	static const char *const urls[] = { "", "ipc:///x", "tcp://", "127.0.0.1:7117",
		"http://127.0.0.1:1" };
	struct ls_uplink_options o = {
		.host = "h", .beat_ns = 100 * MS, .spool = spool, .fill = fill
	};
	size_t i;

	for (i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		o.url = urls[i];
		ck_assert_int_lt(ls_uplink_new(loop, &o, &uplink), 0);
	}
	ls_uplink_free(NULL);
}
