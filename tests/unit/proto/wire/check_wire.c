/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/wire/wire.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "proto/lockstep.pb-c.h"
#include "tests/support/harness.h"
#include "tests/support/wire_examples.h"
#include "tests/support/wire_pack.h"

static const char *why;
/* Kept from report to report, as in the collector. */
static struct ls_arena *arena;

static void
assert_golden(const char *path, const uint8_t *buf, size_t len)
{
	size_t want;
	char *golden = ls_test_read(ls_test_source(path), &want);

	ck_assert_uint_eq(len, want);
	ck_assert_mem_eq(buf, golden, len);
	free(golden);
}

static void
assert_item(const struct ls_wire_item *item, const char *golden)
{
	struct ls_wire_item back;
	uint8_t *buf;
	size_t len, i;

	ck_assert_int_eq(ls_test_item_pack(item, &buf, &len), 0);
	assert_golden(golden, buf, len);
	ck_assert_int_eq(ls_wire_item_unpack(buf, len, &back, &why), 0);
	ck_assert_uint_eq(back.seq, item->seq);
	ck_assert_int_eq((int)back.kind, (int)item->kind);
	ck_assert_mem_eq(back.ring_id, item->ring_id, LS_RING_ID_BYTES);
	ck_assert_uint_eq(back.first_index, item->first_index);
	ck_assert_uint_eq(back.count, item->count);
	ck_assert_int_eq((int)back.reason, (int)item->reason);
	ck_assert_int_eq((int)back.how, (int)item->how);
	ck_assert_uint_eq(back.t_mono_ns, item->t_mono_ns);
	for (i = 0; item->kind == LS_WIRE_STEPS && i < item->count; i++)
		ck_assert_mem_eq(&back.records[i], &item->records[i],
			sizeof(struct ls_record));
	ls_wire_item_clear(&back);
	ls_wire_item_clear(&back); /* harmless twice */
	free(buf);
}

LS_CASE(item);

LS_TEST(item, item_keeps_every_field_and_its_golden_bytes)
{
	struct ls_record records[WIRE_EXAMPLE_RECORDS];
	struct ls_wire_item item = wire_example_steps(records);

	assert_item(&item, "tests/golden/item_steps.bin");
	item = wire_example_gap();
	assert_item(&item, "tests/golden/item_gap.bin");
	item = wire_example_end();
	assert_item(&item, "tests/golden/item_end.bin");
}

LS_TEST(item, item_refuses_to_pack_what_is_too_much)
{
	struct ls_record r = { 0 };
	struct ls_wire_item item = { .seq = 1, .kind = LS_WIRE_STEPS, .records = &r };
	uint8_t *buf;
	size_t len;

	ck_assert_int_eq(ls_test_item_pack(&item, &buf, &len), -LS_ELIMIT);
	item.count = LS_RECORDS_PER_ITEM_MAX + 1;
	ck_assert_int_eq(ls_test_item_pack(&item, &buf, &len), -LS_ELIMIT);
}

/* The largest records there can be, as many as the agent puts into one item. */
LS_TEST(item, item_of_the_largest_records_fits)
{
	struct ls_record *r = calloc(LS_STEPS_PER_ITEM, sizeof(*r));
	struct ls_wire_item item = { .seq = UINT64_MAX,
		.kind = LS_WIRE_STEPS,
		.first_index = 1,
		.count = LS_STEPS_PER_ITEM,
		.records = r },
			    back;
	const int64_t last = INT64_MAX - 2 * (int64_t)LS_PHASE_MAX_NS;
	uint8_t *buf;
	size_t len, i, k;

	for (i = 0; i < LS_STEPS_PER_ITEM; i++) {
		r[i].step = i % 2 ? UINT64_MAX / 2 : 0;
		r[i].t_begin_ns = i % 2 ? last : 0;
		r[i].duration_ns = LS_PHASE_MAX_NS - 1;
		r[i].phase_mask = (1u << LS_PHASE_COUNT) - 1;
		for (k = 0; k < LS_PHASE_COUNT; k++)
			r[i].phase_ns[k] = LS_PHASE_MAX_NS / LS_PHASE_COUNT - 1;
		r[i].work_mask = (1u << LS_WORK_COUNT) - 1;
		r[i].barrier_count = r[i].peer_count = 4;
		for (k = 0; k < 4; k++) {
			r[i].barrier[k].exit_ns =
				r[i].t_begin_ns + (int64_t)LS_PHASE_MAX_NS;
			r[i].barrier[k].enter_ns = r[i].barrier[k].exit_ns;
			r[i].peer[k].rank = LS_WORKERS_MAX - 1;
			r[i].peer[k].recv_wait_ns = r[i].peer[k].send_wait_ns =
				LS_PHASE_MAX_NS - 1;
		}
		ck_assert_int_eq(ls_record_check(&r[i], &why), 0);
	}
	ck_assert_int_eq(ls_test_item_pack(&item, &buf, &len), 0);
	ck_assert_int_eq(ls_wire_item_unpack(buf, len, &back, &why), 0);
	ck_assert_mem_eq(back.records, r, LS_STEPS_PER_ITEM * sizeof(*r));
	ls_wire_item_clear(&back);
	free(buf);
	free(r);
}

LS_TEST(item, item_cut_short_is_refused)
{
	struct ls_record records[WIRE_EXAMPLE_RECORDS];
	struct ls_wire_item item = wire_example_steps(records), back;
	uint8_t *buf, *part;
	size_t len, i;

	ck_assert_int_eq(ls_test_item_pack(&item, &buf, &len), 0);
	for (i = 0; i < len; i++) {
		part = malloc(i + 1);
		memcpy(part, buf, i);
		why = NULL;
		ck_assert_int_lt(ls_wire_item_unpack(part, i, &back, &why), 0);
		ck_assert_ptr_nonnull(why);
		free(part);
	}
	free(buf);
}

/* Packs a message as it is, valid or not, and gives the answer of ls_wire_item_unpack.
 */
static int
unpack_raw(const Lockstep__Item *m)
{
	size_t len = lockstep__item__get_packed_size(m);
	uint8_t *buf = malloc(len + 1);
	struct ls_wire_item item;
	int rc;

	lockstep__item__pack(m, buf);
	rc = ls_wire_item_unpack(buf, len, &item, &why);
	if (rc == 0)
		ls_wire_item_clear(&item);
	free(buf);
	return rc;
}

static uint8_t raw_id[LS_RING_ID_BYTES];

LS_TEST(item, item_with_impossible_contents_is_refused)
{
	int64_t one[] = { 1, 1 };
	uint64_t duration[] = { 5, 5 }, ns_plus1[] = { 1, 1 };
	Lockstep__Steps steps = LOCKSTEP__STEPS__INIT;
	Lockstep__Item m = LOCKSTEP__ITEM__INIT;

	ck_assert_int_eq(unpack_raw(&m), -LS_ERANGE); /* no number */
	m.seq = 1;
	ck_assert_int_eq(unpack_raw(&m), -LS_EVERSION); /* of no kind */
	m.body_case = LOCKSTEP__ITEM__BODY_STEPS;
	m.steps = &steps;
	ck_assert_int_eq(unpack_raw(&m), -LS_EPARSE); /* no ring */
	steps.ring_id.data = raw_id;
	steps.ring_id.len = sizeof(raw_id);
	ck_assert_int_eq(unpack_raw(&m), -LS_ELIMIT); /* no records */
	steps.step = steps.t_begin_ns = one;
	steps.duration_ns = duration;
	steps.n_step = steps.n_t_begin_ns = 2;
	steps.n_duration_ns = 1;
	ck_assert_int_eq(unpack_raw(&m), -LS_EPARSE); /* columns of different lengths */
	steps.n_duration_ns = 2;
	ck_assert_int_eq(unpack_raw(&m), 0);
	steps.first_index = UINT64_MAX;
	ck_assert_int_eq(unpack_raw(&m), -LS_ERANGE);
	steps.first_index = 0;
	steps.phase_ns_plus1 = ns_plus1;
	steps.n_phase_ns_plus1 = 2;
	ck_assert_int_eq(unpack_raw(&m), -LS_EPARSE); /* times of no phase */
	steps.phase_mask = 1;
	ck_assert_int_eq(unpack_raw(&m), 0);
	steps.n_phase_ns_plus1 = 1;
	ck_assert_int_eq(unpack_raw(&m), -LS_EPARSE); /* a short column */
	steps.n_phase_ns_plus1 = 2;
	steps.phase_mask = 3;
	ck_assert_int_eq(unpack_raw(&m), -LS_EPARSE); /* a column is missing */
	steps.phase_mask = 1u << LS_PHASE_COUNT;
	ck_assert_int_eq(unpack_raw(&m), -LS_ERANGE);
	steps.phase_mask = 1;
	ns_plus1[1] = UINT64_MAX;
	ck_assert_int_eq(unpack_raw(&m), -LS_ERANGE); /* longer than the step */
}

LS_TEST(item, item_with_impossible_columns_is_refused)
{
	int64_t one[] = { 1 }, enter[] = { INT64_MAX };
	uint64_t duration[] = { 5 }, inside[] = { UINT64_MAX };
	uint64_t wait[LS_PEERS_MAX + 1] = { 1, 1 };
	uint32_t kind[] = { 1 }, rank[LS_PEERS_MAX + 1] = { 5 };
	double value[] = { -1 };
	Lockstep__BarrierColumn barrier = LOCKSTEP__BARRIER_COLUMN__INIT,
				empty = LOCKSTEP__BARRIER_COLUMN__INIT,
				*barriers[5] = { &barrier, &barrier, &barrier, &barrier,
					&barrier };
	Lockstep__WorkColumn work = LOCKSTEP__WORK_COLUMN__INIT, *works[] = { &work };
	Lockstep__Steps steps = LOCKSTEP__STEPS__INIT;
	Lockstep__Item m = LOCKSTEP__ITEM__INIT;
	uint32_t none[] = { 0 };

	m.seq = 1;
	m.body_case = LOCKSTEP__ITEM__BODY_STEPS;
	m.steps = &steps;
	steps.ring_id.data = raw_id;
	steps.ring_id.len = sizeof(raw_id);
	steps.step = steps.t_begin_ns = one;
	steps.duration_ns = duration;
	steps.n_step = steps.n_t_begin_ns = steps.n_duration_ns = 1;
	steps.barriers = barriers;
	steps.n_barriers = 5;
	ck_assert_int_eq(unpack_raw(&m), -LS_ELIMIT);
	steps.n_barriers = 1;
	barrier.kind_plus1 = kind;
	barrier.enter_ns = enter;
	barrier.inside_ns = inside;
	barrier.n_kind_plus1 = barrier.n_enter_ns = barrier.n_inside_ns = 1;
	ck_assert_int_eq(unpack_raw(&m), -LS_ERANGE); /* far outside the step */
	enter[0] = 1;
	ck_assert_int_eq(unpack_raw(&m), -LS_ERANGE); /* left before it was entered */
	inside[0] = 1;
	ck_assert_int_eq(unpack_raw(&m), 0);
	kind[0] = LS_BARRIER_COUNT + 1;
	ck_assert_int_eq(unpack_raw(&m), -LS_ERANGE);
	kind[0] = 1;
	empty = barrier;
	empty.kind_plus1 = none;
	barriers[0] = &empty;
	steps.n_barriers = 2;
	ck_assert_int_eq(unpack_raw(&m), -LS_EPARSE); /* a second without a first */
	steps.n_barriers = 0;
	steps.work = works;
	steps.n_work = 1;
	ck_assert_int_eq(unpack_raw(&m), -LS_EPARSE);
	work.value = value;
	work.n_value = 1;
	ck_assert_int_eq(unpack_raw(&m), -LS_ERANGE); /* negative work */
	value[0] = INFINITY;
	ck_assert_int_eq(unpack_raw(&m), -LS_ERANGE);
	work.work = 99; /* a newer agent's */
	ck_assert_int_eq(unpack_raw(&m), 0);
	steps.n_work = 0;
	steps.peer_rank_plus1 = rank;
	steps.n_peer_rank_plus1 = 1;
	ck_assert_int_eq(unpack_raw(&m), -LS_EPARSE);
	steps.peer_recv_wait_ns_plus1 = steps.peer_send_wait_ns_plus1 = wait;
	steps.n_peer_recv_wait_ns_plus1 = 1;
	ck_assert_int_eq(unpack_raw(&m), -LS_EPARSE);
	steps.n_peer_send_wait_ns_plus1 = 1;
	ck_assert_int_eq(unpack_raw(&m), 0);
	steps.n_peer_rank_plus1 = LS_PEERS_MAX + 1;
	ck_assert_int_eq(unpack_raw(&m), -LS_ELIMIT);
	steps.n_peer_rank_plus1 = 2;
	steps.n_peer_recv_wait_ns_plus1 = steps.n_peer_send_wait_ns_plus1 = 2;
	ck_assert_int_eq(unpack_raw(&m), 0); /* the second is not there */
	rank[0] = 0;
	rank[1] = 5;
	ck_assert_int_eq(unpack_raw(&m), -LS_EPARSE); /* a second without a first */
	steps.n_peer_rank_plus1 = 1;
	steps.n_peer_recv_wait_ns_plus1 = steps.n_peer_send_wait_ns_plus1 = 1;
	rank[0] = UINT32_MAX;
	ck_assert_int_eq(unpack_raw(&m), -LS_ERANGE);
}

LS_CASE(report);

LS_TEST(report, report_keeps_every_field_and_its_golden_bytes)
{
	struct ls_wire_report r = wire_example_report(), back;
	struct ls_wire_item gap = wire_example_gap();
	struct ls_wire_bytes item;
	uint8_t *buf, *bytes;
	size_t len;

	ck_assert_int_eq(ls_test_item_pack(&gap, &bytes, &item.len), 0);
	item.data = bytes;
	r.items = &item;
	r.item_count = 1;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), 0);
	assert_golden("tests/golden/report.bin", buf, len);
	ck_assert_int_eq(ls_wire_report_unpack_in(buf, len, &arena, &back, &why), 0);
	ck_assert_str_eq(back.host, r.host);
	ck_assert_str_eq(back.agent_version, r.agent_version);
	ck_assert_mem_eq(back.boot, r.boot, sizeof(r.boot));
	ck_assert_mem_eq(back.kernel_boot_id, r.kernel_boot_id,
		sizeof(r.kernel_boot_id));
	ck_assert_uint_eq(back.t_send_mono_ns, r.t_send_mono_ns);
	ck_assert(back.has_last);
	ck_assert_mem_eq(&back.last, &r.last, sizeof(r.last));
	ck_assert_uint_eq(back.worker_count, 1);
	ck_assert_mem_eq(back.workers, r.workers, sizeof(*r.workers));
	ck_assert_uint_eq(back.hot_count, 2);
	ck_assert_mem_eq(back.hot, r.hot, 2 * sizeof(*r.hot));
	ck_assert_uint_eq(back.live_count, 1);
	ck_assert_mem_eq(back.live, r.live, sizeof(*r.live));
	ck_assert_uint_eq(back.spooled_items, 5);
	ck_assert_uint_eq(back.dropped_records, 97);
	ck_assert_uint_eq(back.item_count, 1);
	ck_assert_uint_eq(back.items[0].len, item.len);
	ck_assert_mem_eq(back.items[0].data, item.data, item.len);
	free(buf);
	free(bytes);
}

/* Packs the example after one change and gives the answer of ls_wire_report_unpack_in. */
static int
unpack_report(const struct ls_wire_report *r)
{
	struct ls_wire_report back;
	uint8_t *buf;
	size_t len;
	int rc;

	ck_assert_int_eq(ls_test_report_pack(r, &buf, &len), 0);
	rc = ls_wire_report_unpack_in(buf, len, &arena, &back, &why);
	free(buf);
	return rc;
}

LS_TEST(report, report_with_impossible_contents_is_refused)
{
	struct ls_wire_report good = wire_example_report(), r = good;
	struct ls_wire_worker w = *good.workers;
	struct ls_wire_hot hot = good.hot[0];
	struct ls_wire_live live = *good.live;
	struct ls_wire_bytes item = { (const uint8_t *)"", 0 };

	ck_assert_int_eq(unpack_report(&good), 0);
	r.host[0] = '\0';
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	r.host[0] = '\x1b';
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	r = good;
	r.t_send_mono_ns = UINT64_MAX;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	r = good;
	r.last.t4 = r.last.t1 - 1;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	r = good;
	r.last.t3 = r.last.t2 - 1;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	r = good;
	r.last.t1 = r.last.t4 = UINT64_MAX;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	r = good;
	r.last.t4 = LS_WIRE_TIME_MAX_NS + 1;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	r = good;
	r.workers = &w;
	w.info.rank = 8; /* of 8 */
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	w.info.rank = -1;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	w = *good.workers;
	memcpy(w.info.rack, "r\n", 3);
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	w = *good.workers;
	memcpy(w.info.shard, "\x7f", 2);
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	w = *good.workers;
	memcpy(w.info.refused_rank, "R=\x1b", 4);
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	memcpy(w.info.refused_rank, "R=x", 4);
	w.info.slices = LS_SLICES_MAX;
	ck_assert_int_eq(unpack_report(&r), 0);
	w.info.slices++;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	w = *good.workers;
	w.info.step_source = LS_STEP_SOURCE_COUNT;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	w.info.step_source = LS_STEP_LOG;
	w.info.step_confidence = 1.1;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	w.info.step_confidence = NAN;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	w = *good.workers;
	w.info.job[0] = '\0';
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	r = good;
	r.hot = &hot;
	r.hot_count = 1;
	hot.value[1] = NAN;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	hot.value[1] = 1;
	hot.t_mono_ns = UINT64_MAX;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	r = good;
	r.live = &live;
	live.live.since_mono_ns = UINT64_MAX;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	live = *good.live;
	live.worker = 0;
	ck_assert_int_eq(unpack_report(&r), -LS_EPARSE);
	live = *good.live;
	live.live.phase = LS_PHASE_COUNT + 1;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	r = good;
	r.items = &item;
	r.item_count = 1;
	ck_assert_int_eq(unpack_report(&r), -LS_ELIMIT);
}

LS_TEST(report, worker_says_where_its_steps_come_from)
{
	struct ls_wire_report r = wire_example_report(), back;
	struct ls_wire_worker w = *r.workers;
	uint8_t *buf;
	size_t len;

	r.workers = &w;
	w.info.step_source = LS_STEP_LOG;
	w.info.step_confidence = 0.5;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), 0);
	ck_assert_int_eq(ls_wire_report_unpack_in(buf, len, &arena, &back, &why), 0);
	ck_assert_mem_eq(back.workers, &w, sizeof(w));
	free(buf);
}

LS_TEST(report, report_too_large_is_not_packed)
{
	struct ls_wire_report r = wire_example_report();
	struct ls_wire_bytes items[16];
	uint8_t *bytes = calloc(1, LS_ITEM_MAX_BYTES), *buf;
	size_t i, len;

	for (i = 0; i < 16; i++)
		items[i] = (struct ls_wire_bytes){ bytes, LS_ITEM_MAX_BYTES };
	r.items = items;
	r.item_count = 16;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), -LS_ELIMIT);
	r.item_count = LS_ITEMS_PER_REPORT_MAX + 1;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), -LS_ELIMIT);
	free(bytes);
}

LS_TEST(report, report_keeps_series_and_its_golden_bytes)
{
	struct ls_wire_report r = wire_example_report_series(), back;
	struct ls_wire_chunk_item lost = wire_example_lost();
	struct ls_wire_bytes item;
	uint8_t *buf, bytes[128];
	size_t len;

	ck_assert_int_eq(
		ls_wire_chunk_item_pack(&lost, bytes, sizeof(bytes), &item.len), 0);
	item.data = bytes;
	r.chunk_items = &item;
	r.chunk_item_count = 1;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), 0);
	assert_golden("tests/golden/report_series.bin", buf, len);
	ck_assert_int_eq(ls_wire_report_unpack_in(buf, len, &arena, &back, &why), 0);
	ck_assert_uint_eq(back.chunk_item_count, 1);
	ck_assert_uint_eq(back.chunk_items[0].len, item.len);
	ck_assert_mem_eq(back.chunk_items[0].data, item.data, item.len);
	ck_assert_uint_eq(back.waiting_chunk_items, 4);
	ck_assert_uint_eq(back.lost_samples, 180);
	ck_assert_uint_eq(back.slowed, 4);
	ck_assert_uint_eq(back.zoomed_count, 1);
	ck_assert_uint_eq(back.zoomed[0].dictionary, r.zoomed[0].dictionary);
	ck_assert_uint_eq(back.zoomed[0].t_mono_ns, r.zoomed[0].t_mono_ns);
	ck_assert_uint_eq(back.zoomed[0].count, 3);
	ck_assert_mem_eq(back.zoomed[0].value, r.zoomed[0].value, 3 * sizeof(double));
	ck_assert(back.has_identity);
	ck_assert_uint_eq(back.identity_count, 2);
	ck_assert_str_eq(back.identity[0].key, "slice");
	ck_assert_str_eq(back.identity[0].value, "v5e-16");
	ck_assert_str_eq(back.identity[0].source, "metadata");
	ck_assert_str_eq(back.identity[1].value, "");
	free(buf);
}

LS_TEST(report, report_with_impossible_series_is_refused)
{
	struct ls_wire_report good = wire_example_report_series(), r = good;
	struct ls_wire_zoomed z[LS_GROUPS_MAX + 1] = { good.zoomed[0] };
	struct ls_wire_identity id = good.identity[0];
	struct ls_wire_bytes empty = { (const uint8_t *)"", 0 };
	uint8_t *buf;
	size_t len;

	ck_assert_int_eq(unpack_report(&good), 0);
	r.slowed = LS_SLOWED_MAX + 1;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	r = good;
	r.zoomed = z;
	z[0].count = 0;
	ck_assert_int_eq(unpack_report(&r), -LS_ELIMIT);
	z[0].count = 1;
	z[0].t_mono_ns = UINT64_MAX;
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	z[0].count = LS_SERIES_PER_GROUP_MAX + 1;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), -LS_ELIMIT);
	r.zoomed_count = LS_GROUPS_MAX + 1;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), -LS_ELIMIT);
	r = good;
	r.identity = &id;
	r.identity_count = 1;
	id.key[0] = '\0';
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	id = good.identity[0];
	id.source[0] = '\n';
	ck_assert_int_eq(unpack_report(&r), -LS_ERANGE);
	r.identity_count = LS_IDENTITY_FIELDS_MAX + 1;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), -LS_ELIMIT);
	r = good;
	r.chunk_items = &empty;
	r.chunk_item_count = 1;
	ck_assert_int_eq(unpack_report(&r), -LS_ELIMIT);
	r.chunk_item_count = LS_CHUNK_ITEMS_PER_REPORT_MAX + 1;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), -LS_ELIMIT);
}

/* A name server's or metadata server's odd answer may not cost the whole report. */
LS_TEST(report, report_escapes_an_identity_that_is_no_name)
{
	struct ls_wire_report r = wire_example_report_series(), back;
	struct ls_wire_identity id = r.identity[0];
	uint8_t *buf;
	size_t len;

	memset(id.value, '\x1b', sizeof(id.value) - 1);
	r.identity = &id;
	r.identity_count = 1;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), 0);
	ck_assert_int_eq(ls_wire_report_unpack_in(buf, len, &arena, &back, &why), 0);
	ck_assert_int_eq(strncmp(back.identity[0].value, "\\x1b\\x1b", 8), 0);
	free(buf);
}

/* All lists full, of the smallest entries: the memory to decode them is granted. */
LS_TEST(report, report_with_full_lists_is_read)
{
	struct ls_wire_report r = wire_example_report_series(), back;
	struct ls_wire_worker w[LS_WORKERS_PER_REPORT_MAX];
	struct ls_wire_hot hot[LS_RINGS_MAX + 1];
	struct ls_wire_live live[LS_RINGS_MAX];
	struct ls_wire_zoomed z[LS_GROUPS_MAX];
	struct ls_wire_identity id[LS_IDENTITY_FIELDS_MAX] = { 0 };
	struct ls_wire_bytes item[LS_ITEMS_PER_REPORT_MAX];
	const double one = 1;
	uint8_t *buf;
	size_t i, len;

	for (i = 0; i < LS_ITEMS_PER_REPORT_MAX; i++)
		item[i] = (struct ls_wire_bytes){ (const uint8_t *)"x", 1 };
	for (i = 0; i < LS_RINGS_MAX + 1; i++)
		hot[i] = (struct ls_wire_hot){ 0 };
	for (i = 0; i < LS_RINGS_MAX; i++) {
		w[i] = (struct ls_wire_worker){ .info = { .job = "j" } };
		live[i] = (struct ls_wire_live){ .worker = 1 };
		z[i] = (struct ls_wire_zoomed){ .count = 1, .value = &one };
	}
	for (i = 0; i < LS_IDENTITY_FIELDS_MAX; i++)
		id[i].key[0] = 'k';
	r.workers = w;
	r.worker_count = LS_WORKERS_PER_REPORT_MAX;
	r.hot = hot;
	r.hot_count = LS_RINGS_MAX + 1;
	r.live = live;
	r.live_count = LS_RINGS_MAX;
	r.zoomed = z;
	r.zoomed_count = LS_GROUPS_MAX;
	r.identity = id;
	r.identity_count = LS_IDENTITY_FIELDS_MAX;
	r.items = r.chunk_items = item;
	r.item_count = LS_ITEMS_PER_REPORT_MAX;
	r.chunk_item_count = LS_CHUNK_ITEMS_PER_REPORT_MAX;
	ck_assert_int_eq(ls_test_report_pack(&r, &buf, &len), 0);
	ck_assert_int_eq(ls_wire_report_unpack_in(buf, len, &arena, &back, &why), 0);
	ck_assert_uint_eq(back.identity_count, LS_IDENTITY_FIELDS_MAX);
	ck_assert_uint_eq(back.zoomed_count, LS_GROUPS_MAX);
	free(buf);
}

/* A thousand empty submessages are cheap to send: they must not be dear to read. */
LS_TEST(report, report_that_inflates_is_refused)
{
	const size_t len = LS_REPORT_MAX_BYTES;
	uint8_t *buf = malloc(len + 1);
	struct ls_wire_report r;
	size_t i;

	for (i = 0; i < len; i += 2) {
		buf[i] = 9 << 3 | 2; /* hot, of length */
		buf[i + 1] = 0;
	}
	ck_assert_int_eq(ls_wire_report_unpack_in(buf, len, &arena, &r, &why),
		-LS_ELIMIT);
	ck_assert_int_eq(ls_wire_report_unpack_in(buf, len + 1, &arena, &r, &why),
		-LS_ELIMIT);
	free(buf);
}

LS_TEST(report, unknown_version_is_told_apart)
{
	const uint8_t two[] = { 1 << 3, 2 };
	struct ls_wire_report r;
	struct ls_wire_ack a;

	ck_assert_int_eq(ls_wire_report_unpack_in(two, sizeof(two), &arena, &r, &why),
		-LS_EVERSION);
	ck_assert_str_eq(why, "the report is not of version 1");
	ck_assert_int_eq(ls_wire_ack_unpack(two, sizeof(two), &a, &why), -LS_EVERSION);
	ck_assert_str_eq(why, "the answer is not of version 1");
}

LS_CASE(ack);

LS_TEST(ack, ack_keeps_every_field_and_its_golden_bytes)
{
	struct ls_wire_ack a = wire_example_ack(), back;
	uint8_t *buf;
	size_t len;

	ck_assert_int_eq(ls_wire_ack_pack(&a, &buf, &len), 0);
	assert_golden("tests/golden/ack.bin", buf, len);
	ck_assert_int_eq(ls_wire_ack_unpack(buf, len, &back, &why), 0);
	ck_assert_mem_eq(&back, &a, sizeof(a));
	free(buf);
}

LS_TEST(ack, ack_keeps_series_and_its_golden_bytes)
{
	struct ls_wire_ack a = wire_example_ack_series(), back;
	uint8_t *buf;
	size_t len;

	ck_assert_int_eq(ls_wire_ack_pack(&a, &buf, &len), 0);
	assert_golden("tests/golden/ack_series.bin", buf, len);
	ck_assert_int_eq(ls_wire_ack_unpack(buf, len, &back, &why), 0);
	ck_assert_uint_eq(back.acked_chunk_seq, 3);
	ck_assert_uint_eq(back.need_dictionary_count, 2);
	ck_assert_mem_eq(back.need_dictionary, a.need_dictionary,
		sizeof(a.need_dictionary));
	ck_assert_uint_eq(back.zoom_ns, 60000000000);
	ck_assert(back.need_identity);
	free(buf);
	a.zoom_ns = LS_ZOOM_MAX_NS + 1;
	ck_assert_int_eq(ls_wire_ack_pack(&a, &buf, &len), 0);
	ck_assert_int_eq(ls_wire_ack_unpack(buf, len, &back, &why), -LS_ERANGE);
	free(buf);
	a.need_dictionary_count = LS_GROUPS_MAX + 1;
	ck_assert_int_eq(ls_wire_ack_pack(&a, &buf, &len), -LS_ELIMIT);
}

LS_TEST(ack, ack_with_impossible_contents_is_refused)
{
	struct ls_wire_ack good = wire_example_ack(), a = good, back;
	uint8_t *buf;
	size_t len, i;

	for (i = 0; i < 3; i++) {
		a = good;
		if (i == 0)
			a.status = LS_ACK_STATUS_COUNT;
		else if (i == 1)
			a.t_send_mono_ns = a.t_receive_mono_ns - 1;
		else
			a.t_send_mono_ns = UINT64_MAX;
		ck_assert_int_eq(ls_wire_ack_pack(&a, &buf, &len), 0);
		ck_assert_int_eq(ls_wire_ack_unpack(buf, len, &back, &why), -LS_ERANGE);
		free(buf);
	}
	a = good;
	a.need_count = LS_RINGS_MAX + 1;
	ck_assert_int_eq(ls_wire_ack_pack(&a, &buf, &len), -LS_ELIMIT);
}
