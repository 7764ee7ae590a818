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
#define BODY_BYTES 4000u

/* What the fake collector does with a report. */
enum deed { ACK, REJECT_STORED, BEYOND, NEED_DICTIONARY, ZOOM, NEED_IDENTITY };

static char url[64];
static const uint8_t kernel[16] = { 1 };
static struct ls_loop *loop;
static struct ls_spool *spool;
static struct ls_uplink *uplink;
static uint64_t needed_hash, identity_version;
static const double zoom_values[2] = { 1, 2 };
static const struct ls_wire_identity identity[1] = { { "slice", "s-1", "config" } };

/* What the collector does and saw. */
static struct {
	enum deed deeds[8]; /* one a report, the last for all that follow */
	size_t deed_count;
	atomic_uint zoomed, last_zoomed, identities;
	atomic_uint_fast64_t stored, bytes, last_ns;
	atomic_bool hole;
} fake;

static void
fake_store(const struct ls_wire_report *r)
{
	struct ls_wire_chunk_item item;
	const char *why;
	uint64_t stored = atomic_load(&fake.stored);
	size_t i;

	for (i = 0; i < r->chunk_item_count; i++) {
		ck_assert_int_eq(ls_wire_chunk_item_unpack(r->chunk_items[i].data,
					 r->chunk_items[i].len, &item, &why),
			0);
		if (item.seq > stored + 1)
			atomic_store(&fake.hole, true);
		if (item.seq == stored + 1)
			stored++;
		atomic_fetch_add(&fake.bytes, r->chunk_items[i].len);
		ls_wire_chunk_item_clear(&item);
	}
	atomic_store(&fake.stored, stored);
	atomic_fetch_add(&fake.zoomed, r->zoomed_count > 0);
	atomic_store(&fake.last_zoomed, (unsigned)r->zoomed_count);
	atomic_fetch_add(&fake.identities,
		r->has_identity && r->identity_count == 1 &&
			strcmp(r->identity[0].value, "s-1") == 0);
	atomic_store(&fake.last_ns, ls_clock_mono_ns());
}

static size_t
fake_answer(enum deed deed, const struct ls_wire_report *r, uint8_t **ret_buf)
{
	struct ls_wire_ack a = { .t_receive_mono_ns = 100, .t_send_mono_ns = 200 };
	size_t len;

	fake_store(r);
	memcpy(a.boot, r->boot, sizeof(a.boot));
	a.acked_chunk_seq = atomic_load(&fake.stored);
	if (deed == REJECT_STORED)
		a.status = LS_ACK_REJECT;
	if (deed == BEYOND)
		a.acked_chunk_seq += 1000;
	if (deed == NEED_DICTIONARY) {
		a.need_dictionary_count = 1;
		a.need_dictionary[0] = 42;
	}
	if (deed == ZOOM)
		a.zoom_ns = 350 * MS;
	a.need_identity = deed == NEED_IDENTITY;
	ck_assert_int_eq(ls_wire_ack_pack(&a, ret_buf, &len), 0);
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

/* --- what the uplink asks ------------------------------------------------- */

static void
fill(void *arg, struct ls_wire_report *r)
{
	(void)arg;
	(void)r; /* nothing is live here */
}

static void
need_dictionary(void *arg, uint64_t hash)
{
	(void)arg;
	needed_hash = hash;
}

static size_t
zoom(void *arg, struct ls_wire_zoomed *ret_zoomed)
{
	(void)arg;
	ret_zoomed[0] = (struct ls_wire_zoomed){ 7, 5, 2, zoom_values };
	return 1;
}

static const struct ls_wire_identity *
who(void *arg, size_t *ret_count, uint64_t *ret_version)
{
	(void)arg;
	*ret_count = 1;
	*ret_version = identity_version;
	return identity;
}

static void
start_uplink(uint64_t rate)
{
	struct ls_uplink_options o = { .url = url,
		.host = "host-1",
		.beat_ns = 100 * MS,
		.spool = spool,
		.fill = fill,
		.backfill_bytes_per_s = rate,
		.need_dictionary = need_dictionary,
		.zoom = zoom,
		.identity = who };

	memcpy(o.kernel_boot_id, kernel, sizeof(kernel));
	ck_assert_int_eq(ls_uplink_new(loop, &o, &uplink), 0);
}

static void
push(size_t n)
{
	static const uint8_t body[BODY_BYTES];
	struct ls_wire_chunk_item item = { .kind = LS_WIRE_CHUNK,
		.hash = 1,
		.rows = 60,
		.t_first_mono_ns = 1,
		.t_last_mono_ns = 2,
		.body = body,
		.body_len = sizeof(body) };

	while (n-- > 0)
		ck_assert_int_eq(ls_spool_push_chunk(spool, &item), 0);
}

static void
setup(void)
{
	char state[300];

	memset(&fake, 0, sizeof(fake));
	fake_collector_forget();
	needed_hash = 0;
	identity_version = 1;
	(void)snprintf(state, sizeof(state), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(ls_spool_open(state, LS_SPOOL_DEFAULT_BYTES, kernel, &spool),
		0);
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

static bool
all_acked(void)
{
	return ls_spool_chunks_acked(spool) + 1 == ls_spool_chunks_next(spool);
}

static bool
five_acks(void)
{
	return ls_uplink_get_stats(uplink)->acks >= 5;
}

static bool
one_bad(void)
{
	return ls_uplink_get_stats(uplink)->bad_acks >= 1;
}

static bool
one_reject(void)
{
	return ls_uplink_get_stats(uplink)->rejects >= 1;
}

static bool
zoom_began(void)
{
	return ls_uplink_is_zoomed(uplink);
}

static bool
zoom_ended(void)
{
	return !ls_uplink_is_zoomed(uplink) && atomic_load(&fake.last_zoomed) == 0;
}

static bool
two_identities(void)
{
	return atomic_load(&fake.identities) >= 2;
}

LS_CASE(uplink_chunks, setup, teardown);

LS_TEST(uplink_chunks, chunks_are_sent_until_acknowledged)
{
	fake_start((const enum deed[]){ ACK }, 1);
	push(100);
	start_uplink(LS_BACKFILL_MAX_BYTES);
	fake_collector_until(loop, all_acked);
	ck_assert_uint_eq(ls_spool_chunks_acked(spool), 100);
	ck_assert(!atomic_load(&fake.hole));
	ck_assert_uint_eq(ls_uplink_get_stats(uplink)->chunk_items, 100);
	ck_assert_uint_eq(ls_uplink_get_stats(uplink)->chunk_bytes,
		atomic_load(&fake.bytes));
	ck_assert(ls_uplink_is_settled(uplink));
}

LS_TEST(uplink_chunks, backfill_keeps_to_its_rate)
{
	const uint64_t rate = 20000;
	uint64_t begin_ns, ms;

	fake_start((const enum deed[]){ ACK }, 1);
	push(500);
	begin_ns = ls_clock_mono_ns();
	start_uplink(rate);
	fake_collector_turn(loop, 1500 * MS);
	ck_assert(!all_acked());
	ms = (atomic_load(&fake.last_ns) - begin_ns) / MS;
	ck_assert_uint_gt(atomic_load(&fake.bytes), 0);
	/* one item in advance */
	ck_assert_uint_le(atomic_load(&fake.bytes),
		rate * (ms + 1) / 1000 + BODY_BYTES + 100);
}

LS_TEST(uplink_chunks, what_a_refusing_collector_has_stored_is_done_with)
{
	fake_start((const enum deed[]){ REJECT_STORED }, 1);
	push(1);
	start_uplink(LS_BACKFILL_MAX_BYTES);
	fake_collector_until(loop, one_reject);
	push(1);
	ck_assert_uint_eq(ls_spool_chunks_acked(spool), atomic_load(&fake.stored));
}

LS_TEST(uplink_chunks, chunks_never_sent_cannot_be_acknowledged)
{
	fake_start((const enum deed[]){ BEYOND, ACK }, 2);
	push(200);
	start_uplink(LS_BACKFILL_MAX_BYTES);
	fake_collector_until(loop, one_bad);
	ck_assert_uint_eq(ls_spool_chunks_acked(spool), 0);
	fake_collector_until(loop, all_acked);
}

LS_TEST(uplink_chunks, a_dictionary_asked_for_is_passed_on)
{
	fake_start((const enum deed[]){ ACK, NEED_DICTIONARY, ACK }, 3);
	start_uplink(1);
	fake_collector_until(loop, five_acks);
	ck_assert_uint_eq(needed_hash, 42);
}

LS_TEST(uplink_chunks, zoom_begins_when_asked_and_ends_by_itself)
{
	fake_start((const enum deed[]){ ACK, ZOOM, ACK }, 3);
	start_uplink(1);
	fake_collector_until(loop, zoom_began);
	ck_assert_uint_eq(atomic_load(&fake.zoomed), 0);
	fake_collector_until(loop, zoom_ended);
	ck_assert_uint_ge(atomic_load(&fake.zoomed), 1);
	ck_assert_uint_le(atomic_load(&fake.zoomed), 5);
	ck_assert_uint_eq(ls_uplink_get_stats(uplink)->zooms, 1);
}

LS_TEST(uplink_chunks, identity_goes_once_and_when_asked_for_or_changed)
{
	fake_start((const enum deed[]){ ACK, ACK, ACK, ACK, ACK, NEED_IDENTITY, ACK },
		7);
	start_uplink(1);
	fake_collector_until(loop, five_acks);
	ck_assert_uint_eq(atomic_load(&fake.identities), 1);
	fake_collector_until(loop, two_identities);
	fake_collector_turn(loop, 300 * MS);
	ck_assert_uint_eq(atomic_load(&fake.identities), 2);
	identity_version = 2;
	fake_collector_turn(loop, 400 * MS);
	ck_assert_uint_eq(atomic_load(&fake.identities), 3);
}
