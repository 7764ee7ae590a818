/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/chunk_writer.h"
#include "proto/arena.h"

/*
 * What a host sends: bytes of reports (the payload of nng), live and durable together, with 120 series read
 * once a second, a step a second, one worker, and a beat a second. Series as of a TPU host: 60 of the
 * host, 4 chips x 15; counters with noise, gauges with the digits their sources have. Each line is "name
 * value unit"; the parts add up to the first.
 *
 *   wire_bytes_per_host_second          all of it, over half an hour
 *   wire_head_bytes_per_host_second     host, boots, stamps, counts
 *   wire_hot_bytes_per_host_second      16 hot values
 *   wire_live_bytes_per_host_second     the live slot
 *   wire_step_bytes_per_host_second     step records
 *   wire_chunk_bytes_per_host_second    chunks and dictionaries
 *   wire_bytes_per_sample               of chunks
 */

#define S 1000000000ull
enum { SECONDS = 1800, FAST = 56, SLOW = 4, CHIPS = 4, PER_CHIP = 15 };

static uint64_t bench_state = 1;

/* 0..1 */
static double
bench_random(void)
{
	bench_state = bench_state * 6364136223846793005u + 1442695040888963407u;
	return (double)(bench_state >> 11) / 9007199254740992.0;
}

static double
bench_normal(void)
{
	double u = bench_random() + 1e-300;

	return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979 * bench_random());
}

static double
bench_round(double v, double unit)
{
	return floor(v / unit + 0.5) * unit;
}

/* The next value of series i of a kind of source. */
static double
bench_host_value(unsigned i, double before)
{
	switch (i % 14) {
	case 0: case 1: case 2: case 3: /* CPU time in ticks */
		return (floor(before * 100 + 0.5) + floor(30 + 10 * fabs(bench_normal()))) / 100;
	case 4: case 5: /* pressure, in us */
		return (floor(before * 1e6 + 0.5) + floor(500 * fabs(bench_normal()))) / 1e6;
	case 6: case 7: case 8: /* bytes of disks and networks */
		return before + floor(2e7 * (1 + 0.1 * bench_normal()));
	case 9: case 10: /* events */
		return before + floor(2000 * (1 + 0.1 * bench_normal()));
	case 11: /* memory, in pages of 4 KiB */
		return before == 0 ? 4e10 : before + 4096 * floor(100 * bench_normal());
	case 12: /* few and rare */
		return before + (bench_random() < 0.05);
	default: /* what never changes */
		return 64;
	}
}

static double
bench_chip_value(unsigned i, double before)
{
	switch (i) {
	case 0: case 1: /* percent, two digits */
		return bench_round(85 + 3 * bench_normal(), 0.01);
	case 2: /* bytes of HBM */
		return bench_random() < 0.1 || before == 0 ? 3e10 + 1048576 * floor(bench_random() * 100)
							   : before;
	case 3:
		return 34359738368;
	case 4: /* degrees */
		return bench_round(62 + 0.4 * bench_normal(), 1);
	case 5: /* watts */
		return bench_round(170 + 4 * bench_normal(), 0.1);
	case 6: case 7: case 8: case 9: /* bytes of links */
		return before + floor(4e8 * (1 + 0.02 * bench_normal()));
	case 10: /* queue */
		return floor(bench_random() * 3);
	case 11: case 12: /* microseconds, as a double has them */
		return 1000 + 50 * bench_normal();
	default: /* errors */
		return 0;
	}
}

struct bench {
	struct ls_spool *spool;
	struct ls_series_table *table;
	struct ls_chunk_writer *writer;
	struct ls_arena *scratch;
	size_t group[3];
	int handle[3][CHIPS * PER_CHIP];
	double value[3][CHIPS * PER_CHIP];
};

static void
bench_add(struct bench *b, unsigned g, const char *name, size_t count)
{
	char text[LS_SERIES_NAME_MAX_BYTES], labels[LS_SERIES_LABELS_MAX_BYTES];
	int rc = ls_series_group(b->table, name);
	size_t i;

	LS_ASSERT(rc >= 0);
	b->group[g] = (size_t)rc;
	for (i = 0; i < count; i++) {
		labels[0] = '\0';
		(void)snprintf(text, sizeof(text), "%s.some_longer_name_%zu_total", name,
			g == 2 ? i % PER_CHIP : i);
		if (g == 2)
			(void)snprintf(labels, sizeof(labels), "chip=\"%zu\"", i / PER_CHIP);
		b->handle[g][i] = ls_series_add(b->table, b->group[g], text, labels);
		LS_ASSERT(b->handle[g][i] >= 0);
	}
}

static void
bench_read(struct bench *b, unsigned g, size_t count, uint64_t t)
{
	size_t i;

	for (i = 0; i < count; i++) {
		double *v = &b->value[g][i];

		*v = g == 2 ? bench_chip_value((unsigned)(i % PER_CHIP), *v)
			    : bench_host_value((unsigned)i, *v);
		ls_series_set(b->table, b->handle[g][i], *v);
	}
	/* A timer is late by tens of microseconds. */
	ls_series_read(b->table, b->group[g], t + (uint64_t)(60000 + 20000 * fabs(bench_normal())));
}

/* A step as a training process marks it: five phases, a barrier, its work, two neighbours. */
static void
bench_step(struct bench *b, uint64_t i, uint64_t t)
{
	struct ls_record r = { .step = i, .t_begin_ns = (int64_t)(t + (uint64_t)(1e6 * bench_random())),
		.duration_ns = (uint64_t)(9.5e8 + 1e7 * bench_normal()) };
	struct ls_wire_item item = { .kind = LS_WIRE_STEPS, .ring_id = { 1, 2, 3 }, .first_index = i,
		.count = 1, .records = &r };
	const enum ls_phase phases[] = { LS_PHASE_INPUT_WAIT, LS_PHASE_H2D, LS_PHASE_COMPUTE,
		LS_PHASE_SYNC_WAIT, LS_PHASE_OTHER };
	size_t p;

	for (p = 0; p < sizeof(phases) / sizeof(phases[0]); p++) {
		r.phase_mask |= 1u << phases[p];
		r.phase_ns[phases[p]] = (uint64_t)(1e8 * bench_random());
	}
	r.barrier_count = 1;
	r.barrier[0] = (struct ls_record_barrier){ LS_BARRIER_ICI, r.t_begin_ns + 800000000,
		r.t_begin_ns + 900000000 };
	r.work_mask = 1u << LS_WORK_TOKENS;
	r.work[LS_WORK_TOKENS] = 8192;
	r.peer_count = 2;
	r.peer[0] = (struct ls_record_peer){ 1, (uint64_t)(1e6 * bench_random()), UINT64_MAX };
	r.peer[1] = (struct ls_record_peer){ 3, (uint64_t)(1e6 * bench_random()), UINT64_MAX };
	LS_ASSERT(ls_spool_push(b->spool, &item) == 0);
}

/* The 16 hot values: 12 of the host, 4 of the worker. */
static void
bench_hot(const struct bench *b, uint64_t t, struct ls_wire_hot hot[2])
{
	unsigned i;

	memset(hot, 0, 2 * sizeof(*hot));
	hot[1].worker = 1;
	for (i = 0; i < LS_HOT_MAX; i++) {
		struct ls_wire_hot *h = &hot[i >= 12];

		h->t_mono_ns = t - 400000000 - (uint64_t)(1e5 * bench_random()); /* beats have their own phase */
		h->metric[h->count] = (uint16_t)i;
		h->value[h->count++] = b->value[0][i];
	}
}

static size_t
bench_pack(struct bench *b, const struct ls_wire_report *r)
{
	static uint8_t bytes[LS_REPORT_MAX_BYTES];
	size_t len;

	LS_ASSERT(ls_wire_report_pack_to(r, b->scratch, bytes, sizeof(bytes), &len) == 0);
	return len;
}

/* One report; what each of its parts adds goes into sums. */
static void
bench_report(struct bench *b, uint64_t i, uint64_t t, uint64_t sums[5])
{
	static uint8_t item_bytes[LS_REPORT_ITEMS_BYTES], chunk_bytes[LS_SPOOL_CHUNKS_READ_BYTES];
	static struct ls_wire_bytes items[LS_ITEMS_PER_REPORT_MAX];
	static struct ls_wire_bytes chunks[LS_CHUNK_ITEMS_PER_REPORT_MAX];
	struct ls_wire_hot hot[2];
	struct ls_wire_live live = { .worker = 1, .live = { i, LS_PHASE_COMPUTE, t - (uint64_t)(8e8 * bench_random()) } };
	struct ls_wire_report r = { .host = "tpu-vm-0123", .boot = { 1 }, .kernel_boot_id = { 2 },
		.t_send_mono_ns = t, .has_last = true, .agent_version = PACKAGE_VERSION,
		.last = { t - S, t - S + 5000000, t - S + 80000000, t - S + 81000000 },
		.hot = hot, .live = &live, .items = items, .chunk_items = chunks, .slowed = 1 };
	size_t len[5];

	bench_hot(b, t, hot);
	len[0] = bench_pack(b, &r);
	r.hot_count = 2;
	len[1] = bench_pack(b, &r);
	r.live_count = 1;
	len[2] = bench_pack(b, &r);
	LS_ASSERT(ls_spool_read(b->spool, item_bytes, sizeof(item_bytes), items,
			  LS_ITEMS_PER_REPORT_MAX, &r.item_count) == 0);
	len[3] = bench_pack(b, &r);
	LS_ASSERT(ls_spool_read_chunks(b->spool, chunk_bytes, LS_REPORT_CHUNK_BYTES, chunks,
			  &r.chunk_item_count) == 0);
	len[4] = bench_pack(b, &r);
	for (i = 0; i < 5; i++)
		sums[i] += len[i] - (i > 0 ? len[i - 1] : 0);
	ls_spool_ack(b->spool, ls_spool_acked(b->spool) + r.item_count);
	ls_spool_ack_chunks(b->spool, ls_spool_chunks_acked(b->spool) + r.chunk_item_count);
}

static void
bench_remove(const char *dir)
{
	static const char *const names[] = { "spool", "lock", "minute" };
	char path[300];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	(void)rmdir(dir); /* left where it was not ours alone */
}

int
main(void)
{
	static const char *const parts[] = { "head", "hot", "live", "step", "chunk" };
	static struct bench b;
	const uint8_t kernel[16] = { 1 };
	const char *tmp = getenv("TMPDIR");
	const uint64_t start = 86400 * S;
	uint64_t sums[5] = { 0 }, total = 0, i;
	char dir[256];

	(void)snprintf(dir, sizeof(dir), "%s/lockstep-bench-XXXXXX", tmp ? tmp : "/tmp");
	LS_ASSERT(mkdtemp(dir) != NULL);
	LS_ASSERT(ls_spool_open(dir, LS_SPOOL_DEFAULT_BYTES, kernel, &b.spool) == 0);
	b.table = ls_series_new();
	b.scratch = ls_arena_new(65536, LS_REPORT_MAX_BYTES);
	LS_ASSERT(b.table != NULL && b.scratch != NULL);
	LS_ASSERT(ls_chunk_writer_new(dir, kernel, b.spool, b.table, start, &b.writer) == 0);
	bench_add(&b, 0, "host.fast", FAST);
	bench_add(&b, 1, "host.slow", SLOW);
	bench_add(&b, 2, "tpu.chips", CHIPS * PER_CHIP);
	for (i = 0; i < SECONDS; i++) {
		uint64_t t = start + i * S;

		ls_chunk_writer_turn(b.writer, t);
		bench_read(&b, 0, FAST, t);
		bench_read(&b, 1, SLOW, t);
		bench_read(&b, 2, CHIPS * PER_CHIP, t);
		bench_step(&b, i, t);
		if (i + 1 == SECONDS)
			ls_chunk_writer_seal(b.writer); /* or a part of a minute would be missing */
		bench_report(&b, i, t, sums);
	}
	for (i = 0; i < 5; i++)
		total += sums[i];
	printf("wire_bytes_per_host_second %.1f B/s\n", (double)total / SECONDS);
	for (i = 0; i < 5; i++)
		printf("wire_%s_bytes_per_host_second %.1f B/s\n", parts[i],
			(double)sums[i] / SECONDS);
	printf("wire_bytes_per_sample %.3f B\n",
		(double)sums[4] / SECONDS / (FAST + SLOW + CHIPS * PER_CHIP));
	ls_chunk_writer_free(b.writer);
	ls_series_free(b.table);
	ls_spool_close(b.spool);
	ls_arena_free(b.scratch);
	bench_remove(dir);
	return EXIT_SUCCESS;
}
