/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/support/reports.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"
#include "proto/chunk/chunk.h"
#include "tests/support/harness.h"
#include "tests/support/wire_pack.h"

void
ls_test_agent_init(struct ls_test_agent *a, int32_t rank, bool same_kernel)
{
	memset(a, 0, sizeof(*a));
	(void)snprintf(a->report.host, sizeof(a->report.host), "h%d", (int)rank);
	memset(a->report.boot, 0x40 + rank, sizeof(a->report.boot));
	memset(a->ring_id, 0x80 + rank, sizeof(a->ring_id));
	if (same_kernel)
		ck_assert_int_eq(ls_clock_boot_id("/proc", a->report.kernel_boot_id),
			0);
	else
		memset(a->report.kernel_boot_id, 0x11 + rank,
			sizeof(a->report.kernel_boot_id));
	memcpy(a->worker.ring_id, a->ring_id, sizeof(a->ring_id));
	(void)snprintf(a->worker.info.job, sizeof(a->worker.info.job), "train");
	memcpy(a->worker.info.host, a->report.host, sizeof(a->report.host));
	a->worker.info.rank = rank;
	a->worker.info.chips = 4;
	a->report.items = a->items;
	a->report.chunk_items = a->chunk_items;
	a->report.zoomed = &a->zoomed;
	a->report.live = &a->live;
	a->report.identity = a->identity;
	a->report.hot = &a->hot;
	a->report.workers = &a->worker;
	a->report.has_kernel = true;
	a->worker.number = 1;
	a->report.t_send_mono_ns = 1000000000;
	(void)snprintf(a->report.agent_version, sizeof(a->report.agent_version),
		"test");
}

void
ls_test_agent_clear(struct ls_test_agent *a)
{
	size_t i;
	void *data;

	for (i = 0; i < a->report.item_count; i++) {
		memcpy(&data, &a->items[i].data, sizeof(data));
		free(data);
	}
	for (i = 0; i < a->report.chunk_item_count; i++) {
		memcpy(&data, &a->chunk_items[i].data, sizeof(data));
		free(data);
	}
	a->report.item_count = 0;
	a->report.chunk_item_count = 0;
	a->report.hot_count = 0;
	a->report.zoomed_count = 0;
	a->report.live_count = 0;
	a->report.has_identity = false;
}

struct ls_record
ls_test_record(uint64_t index)
{
	struct ls_record r = { 0 };

	r.step = index;
	r.t_begin_ns = (int64_t)(1000000000 + index * LS_TEST_STEP_NS);
	r.duration_ns = LS_TEST_STEP_NS - 1000000;
	r.phase_ns[LS_PHASE_COMPUTE] = 60000000;
	r.phase_ns[LS_PHASE_SYNC_WAIT] = 30000000;
	r.phase_mask = 1u << LS_PHASE_COMPUTE | 1u << LS_PHASE_SYNC_WAIT;
	r.barrier_count = 1;
	r.barrier[0].kind = LS_BARRIER_ICI;
	r.barrier[0].enter_ns = r.t_begin_ns + 60000000;
	r.barrier[0].exit_ns = r.t_begin_ns + 90000000;
	r.work_mask = 1u << LS_WORK_TOKENS;
	r.work[LS_WORK_TOKENS] = 4096;
	r.peer_count = 1;
	r.peer[0].rank = 0;
	r.peer[0].recv_wait_ns = 1000000;
	r.peer[0].send_wait_ns = UINT64_MAX;
	return r;
}

static void
reports_add(struct ls_test_agent *a, const struct ls_wire_item *item)
{
	uint8_t *buf = NULL;
	size_t len = 0;

	ck_assert_uint_lt(a->report.item_count, LS_TEST_ITEMS_MAX);
	ck_assert_int_eq(ls_test_item_pack(item, &buf, &len), 0);
	a->items[a->report.item_count].data = buf;
	a->items[a->report.item_count++].len = len;
}

static struct ls_wire_item
reports_item(const struct ls_test_agent *a, uint64_t seq, enum ls_wire_item_kind kind)
{
	struct ls_wire_item item = { .seq = seq, .kind = kind };

	memcpy(item.ring_id, a->ring_id, sizeof(item.ring_id));
	return item;
}

void
ls_test_agent_steps(struct ls_test_agent *a, uint64_t seq, uint64_t first_index,
	uint64_t count)
{
	struct ls_wire_item item = reports_item(a, seq, LS_WIRE_STEPS);
	uint64_t i;

	item.first_index = first_index;
	item.count = count;
	item.records = calloc(count, sizeof(*item.records));
	ck_assert_ptr_nonnull(item.records);
	for (i = 0; i < count; i++)
		item.records[i] = ls_test_record(first_index + i);
	reports_add(a, &item);
	free(item.records);
}

void
ls_test_agent_gap(struct ls_test_agent *a, uint64_t seq, uint64_t first_index,
	uint64_t count)
{
	ls_test_agent_gap_for(a, seq, first_index, count, LS_GAP_OVERRUN);
}

void
ls_test_agent_gap_for(struct ls_test_agent *a, uint64_t seq, uint64_t first_index,
	uint64_t count, enum ls_wire_gap_reason reason)
{
	struct ls_wire_item item = reports_item(a, seq, LS_WIRE_GAP);

	item.first_index = first_index;
	item.count = count;
	item.reason = reason;
	reports_add(a, &item);
}

void
ls_test_agent_end(struct ls_test_agent *a, uint64_t seq, enum ls_end_how how)
{
	struct ls_wire_item item = reports_item(a, seq, LS_WIRE_END);

	item.how = how;
	item.t_mono_ns = 1000;
	reports_add(a, &item);
}

void
ls_test_agent_hot(struct ls_test_agent *a, uint64_t t_mono_ns, double value)
{
	a->hot.worker = 0;
	a->hot.t_mono_ns = t_mono_ns;
	a->hot.count = 1;
	a->hot.metric[0] = LS_METRIC_HOST_CPU_BUSY;
	a->hot.value[0] = value;
	a->report.hot_count = 1;
}

/* --- the stream of chunks ------------------------------------------------- */

const char *const ls_test_series[LS_TEST_SERIES] = { "host.cpu.busy_seconds_total",
	"chip.hbm.used_bytes{chip=\"0\"}", "chip.hbm.used_bytes{chip=\"1\"}" };
#define REPORTS_GROUP "host.fast"

uint64_t
ls_test_dictionary(void)
{
	return ls_wire_dictionary_hash(REPORTS_GROUP, ls_test_series, LS_TEST_SERIES);
}

static void
reports_add_chunk(struct ls_test_agent *a, const struct ls_wire_chunk_item *item)
{
	uint8_t *buf = malloc(LS_CHUNK_ITEM_MAX_BYTES);
	size_t len = 0;

	ck_assert_ptr_nonnull(buf);
	ck_assert_uint_lt(a->report.chunk_item_count, LS_TEST_ITEMS_MAX);
	ck_assert_int_eq(
		ls_wire_chunk_item_pack(item, buf, LS_CHUNK_ITEM_MAX_BYTES, &len), 0);
	a->chunk_items[a->report.chunk_item_count].data = buf;
	a->chunk_items[a->report.chunk_item_count++].len = len;
}

void
ls_test_agent_dictionary(struct ls_test_agent *a, uint64_t seq)
{
	struct ls_wire_chunk_item item = { .seq = seq, .kind = LS_WIRE_DICTIONARY };
	const char *series[LS_TEST_SERIES];

	memcpy(series, ls_test_series, sizeof(series));
	(void)snprintf(item.group, sizeof(item.group), "%s", REPORTS_GROUP);
	item.hash = ls_test_dictionary();
	item.series = series;
	item.series_count = LS_TEST_SERIES;
	reports_add_chunk(a, &item);
}

size_t
ls_test_body(uint64_t t_mono_ns, size_t columns, double value, uint8_t *body,
	size_t size)
{
	struct ls_chunk_codec *codec = ls_chunk_codec_new(LS_TEST_SERIES + 1, 2);
	uint64_t t[2] = { t_mono_ns, t_mono_ns + 1000000000 };
	double values[2 * (LS_TEST_SERIES + 1)];
	bool present[2 * (LS_TEST_SERIES + 1)];
	const struct ls_chunk_table table = { 2, columns, 2, t, values, present };
	size_t i, len = 0;

	for (i = 0; i < 2 * (LS_TEST_SERIES + 1); i++) {
		values[i] = value;
		present[i] = true;
	}
	ck_assert_ptr_nonnull(codec);
	ck_assert_int_eq(ls_chunk_encode(codec, &table, body, size, &len), 0);
	ls_chunk_codec_free(codec);
	return len;
}

void
ls_test_agent_body(struct ls_test_agent *a, uint64_t seq, uint64_t t_first_ns,
	uint64_t t_last_ns, const uint8_t *body, size_t len)
{
	struct ls_wire_chunk_item item = {
		.seq = seq, .kind = LS_WIRE_CHUNK, .rows = 2
	};

	item.hash = ls_test_dictionary();
	item.t_first_mono_ns = t_first_ns;
	item.t_last_mono_ns = t_last_ns;
	item.body = body;
	item.body_len = len;
	reports_add_chunk(a, &item);
}

void
ls_test_agent_chunk(struct ls_test_agent *a, uint64_t seq, uint64_t t_mono_ns)
{
	uint8_t body[256];
	size_t len = ls_test_body(t_mono_ns, LS_TEST_SERIES, (double)seq, body,
		sizeof(body));

	ls_test_agent_body(a, seq, t_mono_ns, t_mono_ns + 1000000000, body, len);
}

/* Row 0: 1.5, absent, 2^53; row 1: 2.5, NaN, absent. */
void
ls_test_agent_encoded(struct ls_test_agent *a, uint64_t seq, uint64_t t_mono_ns)
{
	struct ls_wire_chunk_item item = {
		.seq = seq, .kind = LS_WIRE_CHUNK, .rows = 2
	};
	struct ls_chunk_codec *codec = ls_chunk_codec_new(LS_TEST_SERIES, 2);
	uint64_t t[2] = { t_mono_ns, t_mono_ns + 1000000000 };
	double value[2 * LS_TEST_SERIES] = { 1.5, 2.5, 0, NAN, 9007199254740992.0, 0 };
	bool present[2 * LS_TEST_SERIES] = { true, true, false, true, true, false };
	const struct ls_chunk_table table = { 2, LS_TEST_SERIES, 2, t, value, present };
	uint8_t body[1024];

	ck_assert_ptr_nonnull(codec);
	ck_assert_int_eq(
		ls_chunk_encode(codec, &table, body, sizeof(body), &item.body_len), 0);
	ls_chunk_codec_free(codec);
	item.hash = ls_test_dictionary();
	item.t_first_mono_ns = t[0];
	item.t_last_mono_ns = t[1];
	item.body = body;
	reports_add_chunk(a, &item);
}

void
ls_test_agent_lost(struct ls_test_agent *a, uint64_t seq, uint64_t samples)
{
	struct ls_wire_chunk_item item = {
		.seq = seq, .kind = LS_WIRE_LOST, .samples = samples
	};

	(void)snprintf(item.group, sizeof(item.group), "%s", REPORTS_GROUP);
	item.t_first_mono_ns = 1000000000;
	item.t_last_mono_ns = 2000000000;
	item.reason = LS_LOST_SPOOL_FULL;
	reports_add_chunk(a, &item);
}

void
ls_test_agent_zoomed(struct ls_test_agent *a, uint64_t t_mono_ns)
{
	static const double value[LS_TEST_SERIES] = { 12.5, NAN, 1e9 + 1 };

	a->zoomed.dictionary = ls_test_dictionary();
	a->zoomed.t_mono_ns = t_mono_ns;
	a->zoomed.count = LS_TEST_SERIES;
	a->zoomed.value = value;
	a->report.zoomed_count = 1;
}

void
ls_test_agent_live(struct ls_test_agent *a, uint64_t step, enum ls_phase phase,
	uint64_t since_mono_ns)
{
	a->live = (struct ls_wire_live){ .worker = a->worker.number,
		.live = { .step = step,
			.phase = (uint32_t)phase,
			.since_mono_ns = since_mono_ns } };
	a->report.live_count = 1;
}

void
ls_test_agent_identity(struct ls_test_agent *a, const char *value)
{
	memset(a->identity, 0, sizeof(a->identity));
	(void)snprintf(a->identity[0].key, sizeof(a->identity[0].key), "slice");
	(void)snprintf(a->identity[0].value, sizeof(a->identity[0].value), "s-1");
	(void)snprintf(a->identity[0].source, sizeof(a->identity[0].source),
		"metadata");
	(void)snprintf(a->identity[1].key, sizeof(a->identity[1].key), "worker");
	(void)snprintf(a->identity[1].value, sizeof(a->identity[1].value), "%s", value);
	(void)snprintf(a->identity[1].source, sizeof(a->identity[1].source), "ring");
	a->report.identity_count = 2;
	a->report.has_identity = true;
}

uint8_t *
ls_test_agent_pack(struct ls_test_agent *a, bool with_worker, size_t *ret_len)
{
	uint8_t *buf = NULL;

	a->report.worker_count = with_worker ? 1 : 0;
	ck_assert_int_eq(ls_test_report_pack(&a->report, &buf, ret_len), 0);
	return buf;
}
