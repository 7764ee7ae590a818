/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/wire_examples.h"

#include <math.h>
#include <string.h>

static void
example_bytes(uint8_t *dst, size_t len, uint8_t first)
{
	size_t i;

	for (i = 0; i < len; i++)
		dst[i] = (uint8_t)(first + i);
}

static void
example_phase(struct ls_record *r, enum ls_phase p, uint64_t ns)
{
	r->phase_mask |= 1u << p;
	r->phase_ns[p] = ns;
}

void
wire_example_records(struct ls_record records[WIRE_EXAMPLE_RECORDS])
{
	const int64_t t = 5000000000000;
	struct ls_record *r = records;

	memset(records, 0, WIRE_EXAMPLE_RECORDS * sizeof(*records));
	r->step = 40;
	r->t_begin_ns = t;
	r->duration_ns = 20000000;
	example_phase(r, LS_PHASE_INPUT_WAIT, 0); /* measured, and none */
	example_phase(r, LS_PHASE_COMPUTE, 12000000);
	example_phase(r, LS_PHASE_SYNC_WAIT, 8000000);
	r->barrier_count = 1;
	r->barrier[0] = (struct ls_record_barrier){ LS_BARRIER_ICI, t + 12000000,
		t + 20000000 };
	r->work_mask = 1u << LS_WORK_TOKENS;
	r->work[LS_WORK_TOKENS] = 8192;
	r->peer_count = 2;
	r->peer[0] = (struct ls_record_peer){ 1, 300000, UINT64_MAX };
	r->peer[1] = (struct ls_record_peer){ 3, 0, 250000 };
	r++;
	r->step = 41;
	r->t_begin_ns = t + 20100000;
	r->duration_ns = 21000000;
	example_phase(r, LS_PHASE_COMPUTE, 13000000);
	r->barrier_count = 2;
	r->barrier[0] = (struct ls_record_barrier){ LS_BARRIER_ICI, r->t_begin_ns,
		r->t_begin_ns + 1000 };
	r->barrier[1] = (struct ls_record_barrier){ LS_BARRIER_DCN,
		r->t_begin_ns + 2000, r->t_begin_ns + 21000000 };
	r->work_mask = 1u << LS_WORK_BATCH;
	r->work[LS_WORK_BATCH] = 16.5;
	r++;
	r->step = 7; /* a new attempt may begin anywhere */
	r->t_begin_ns = t + 99000000;
	r->duration_ns = 1;
}

struct ls_wire_item
wire_example_steps(struct ls_record records[WIRE_EXAMPLE_RECORDS])
{
	struct ls_wire_item item = { .seq = 17,
		.kind = LS_WIRE_STEPS,
		.first_index = 1000,
		.count = WIRE_EXAMPLE_RECORDS,
		.records = records };

	wire_example_records(records);
	example_bytes(item.ring_id, sizeof(item.ring_id), 0x10);
	return item;
}

struct ls_wire_item
wire_example_gap(void)
{
	struct ls_wire_item item = { .seq = 18,
		.kind = LS_WIRE_GAP,
		.first_index = 1003,
		.count = 97,
		.reason = LS_GAP_OVERRUN };

	example_bytes(item.ring_id, sizeof(item.ring_id), 0x10);
	return item;
}

struct ls_wire_item
wire_example_end(void)
{
	struct ls_wire_item item = { .seq = 19,
		.kind = LS_WIRE_END,
		.count = 1100,
		.how = LS_END_CRASHED,
		.t_mono_ns = 5000200000000 };

	example_bytes(item.ring_id, sizeof(item.ring_id), 0x10);
	return item;
}

struct ls_wire_report
wire_example_report(void)
{
	static struct ls_wire_worker worker = { .info = { .job = "llm-7b",
							.slice = "slice-0",
							.host = "tpu-vm-3",
							.role = "stage-1",
							.attempt = 2,
							.rank = 3,
							.world = 8,
							.chips = 4 },
		.created_mono_ns = 4000000000000,
		.number = 1 };
	static struct ls_wire_hot hot[2] = {
		{ .t_mono_ns = 5000000000000,
			.count = 2,
			.metric = { LS_METRIC_HOST_CPU_BUSY, LS_METRIC_HOST_NET_TX },
			.value = { 1234.5, 1e12 } },
		{ .worker = 1,
			.t_mono_ns = 4999900000001,
			.count = 1,
			.metric = { LS_METRIC_JOB_CPU },
			.value = { 77.25 } },
	};
	static struct ls_wire_live live = { .worker = 1,
		.live = { 42, LS_PHASE_SYNC_WAIT, 5000000100000 } };
	struct ls_wire_report r = { .host = "tpu-vm-3",
		.t_send_mono_ns = 5000001000000,
		.has_last = true,
		.last = { 4999000000000, 70000, 71000, 4999000500000 },
		.worker_count = 1,
		.workers = &worker,
		.hot_count = 2,
		.hot = hot,
		.live_count = 1,
		.live = &live,
		.spooled_items = 5,
		.dropped_records = 97,
		.has_kernel = true,
		.agent_version = "0.1.0" };

	example_bytes(worker.ring_id, sizeof(worker.ring_id), 0x10);
	example_bytes(r.boot, sizeof(r.boot), 0xb0);
	example_bytes(r.kernel_boot_id, sizeof(r.kernel_boot_id), 0xc0);
	return r;
}

struct ls_wire_ack
wire_example_ack(void)
{
	struct ls_wire_ack a = { .acked_seq = 19,
		.status = LS_ACK_RETRY,
		.reason = "disk is full",
		.t_receive_mono_ns = 80000,
		.t_send_mono_ns = 81000,
		.beat_ns = 2000000000,
		.retry_after_ns = 3000000000,
		.need_count = 1 };

	example_bytes(a.boot, sizeof(a.boot), 0xb0);
	example_bytes(a.need[0], sizeof(a.need[0]), 0x10);
	return a;
}

static const char *example_series[] = { "host.cpu.busy_seconds_total",
	"chip.hbm.used_bytes{chip=\"0\"}", "chip.hbm.used_bytes{chip=\"1\"}" };

struct ls_wire_chunk_item
wire_example_dictionary(void)
{
	struct ls_wire_chunk_item item = { .seq = 1,
		.kind = LS_WIRE_DICTIONARY,
		.group = "host.fast",
		.series_count = 3,
		.series = example_series };

	item.hash = ls_wire_dictionary_hash(item.group, item.series, item.series_count);
	return item;
}

struct ls_wire_chunk_item
wire_example_chunk(void)
{
	static const uint8_t body[] = { 1, 2, 3, 4, 5 };

	return (struct ls_wire_chunk_item){ .seq = 2,
		.kind = LS_WIRE_CHUNK,
		.hash = wire_example_dictionary().hash,
		.t_first_mono_ns = 5000000000000,
		.t_last_mono_ns = 5059000000000,
		.rows = 60,
		.body = body,
		.body_len = sizeof(body) };
}

struct ls_wire_chunk_item
wire_example_lost(void)
{
	return (struct ls_wire_chunk_item){ .seq = 3,
		.kind = LS_WIRE_LOST,
		.group = "host.fast",
		.t_first_mono_ns = 5060000000000,
		.t_last_mono_ns = 5119000000000,
		.samples = 180,
		.reason = LS_LOST_SPOOL_FULL };
}

struct ls_wire_report
wire_example_report_series(void)
{
	static const double value[] = { 1234.5, NAN, INFINITY };
	static struct ls_wire_zoomed zoomed = {
		.t_mono_ns = 5000000500000, .count = 3, .value = value
	};
	static struct ls_wire_identity identity[] = { { "slice", "v5e-16", "metadata" },
		{ "worker", "", "environment" } };
	struct ls_wire_report r = wire_example_report();

	zoomed.dictionary = wire_example_dictionary().hash;
	r.waiting_chunk_items = 4;
	r.lost_samples = 180;
	r.zoomed_count = 1;
	r.zoomed = &zoomed;
	r.has_identity = true;
	r.identity_count = 2;
	r.identity = identity;
	r.slowed = 4;
	return r;
}

struct ls_wire_ack
wire_example_ack_series(void)
{
	struct ls_wire_ack a = wire_example_ack();

	a.acked_chunk_seq = 3;
	a.need_dictionary_count = 2;
	a.need_dictionary[0] = wire_example_dictionary().hash;
	a.need_dictionary[1] = 1;
	a.zoom_ns = 60000000000;
	a.need_identity = true;
	a.need_all_workers = true;
	return a;
}
