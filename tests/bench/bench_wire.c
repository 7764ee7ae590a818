/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "agent/spool/chunk_writer.h"
#include "proto/wire/arena.h"

/*
 * What a host sends: bytes of reports (the payload of nng), live and durable together,
 * with 120 series read once a second, a step a second, one worker, and a beat a second,
 * over half an hour. Each line is "name value unit"; the parts add up to the first.
 *
 *   wire_series_recorded                1: chips and network as recorded in the file, 0: made
 *   wire_bytes_per_host_second          all of it
 *   wire_head_bytes_per_host_second     host, boots, stamps, counts, workers
 *   wire_hot_bytes_per_host_second      16 hot values
 *   wire_live_bytes_per_host_second     the live slot
 *   wire_step_bytes_per_host_second     step records
 *   wire_chunk_bytes_per_host_second    chunks and dictionaries
 *   wire_bytes_per_sample               of chunks
 *
 * The data: 56 series of the host and 4 of its worker, whose changes a second are
 * drawn, each for itself, from what /proc gave on a busy machine (host_series.def; real
 * ones follow each other more closely, so they are no easier to pack). 60 series of
 * chips, and the network: the columns of hosts 0 and 1 of data/series/noisy40.csv.gz in
 * $LOCKSTEP_SHARED or ../shared; where it is not, like ones are made. The hot values
 * are those of these series that metrics.def says are hot. Steps take 0.95 s with 1 %
 * of noise and phases to the nanosecond.
 */

#define S 1000000000ull
enum { SECONDS = 1800, HOST = 60, FAST = 56, SLOW = 4, CHIPS = 4, PER_CHIP = 15 };
enum { COLUMNS = 40, CHIP_COLUMNS = 32, FILE_TICKS = 2000, NET_COLUMN = 37, PARTS = 5 };

enum bench_kind { COUNTER, WALK, LEVEL, NET };

static const struct bench_row {
	const char *name;
	enum bench_kind kind;
	double start, per, q[6];
} bench_rows[] = {
#define BENCH_ROW(name, kind, start, per, q0, q10, q50, q90, q99, q100) \
	{ name, kind, start, per, { q0, q10, q50, q90, q99, q100 } },
#include "tests/bench/host_series.def"
#undef BENCH_ROW
};
_Static_assert(sizeof(bench_rows) / sizeof(bench_rows[0]) == HOST,
	"series of the host");

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

/* A whole number of a distribution that is known by six quantiles. */
static double
bench_draw(const double q[6])
{
	static const double at[6] = { 0, 0.1, 0.5, 0.9, 0.99, 1 };
	double u = bench_random();
	unsigned i = 0;

	while (i < 4 && u > at[i + 1])
		i++;
	return floor(q[i] + (q[i + 1] - q[i]) * (u - at[i]) / (at[i + 1] - at[i]) +
		0.5);
}

/* --- chips, and the network ----------------------------------------------- */

/* [host][second][column] of noisy40. */
static double bench_file[2][FILE_TICKS][COLUMNS];

static bool
bench_line(const char *line, size_t number)
{
	size_t h = number / FILE_TICKS, c;
	char *end;

	if (strtoul(line, &end, 10) != h || *end != ',')
		return false;
	(void)strtoull(end + 1, &end, 10); /* its time: the bench has its own */
	for (c = 0; c < COLUMNS && *end == ','; c++)
		bench_file[h][number % FILE_TICKS][c] = strtod(end + 1, &end);
	return c == COLUMNS;
}

static bool
bench_load(const char *path)
{
	gzFile f = gzopen(path, "rb");
	char line[4096];
	size_t n = 0;

	if (f == NULL)
		return false;
	(void)gzgets(f, line, sizeof(line)); /* the head */
	while (n < 2 * FILE_TICKS && gzgets(f, line, sizeof(line)) != NULL &&
		bench_line(line, n))
		n++;
	(void)gzclose(f); /* only read from */
	return n == 2 * FILE_TICKS;
}

/* The next value of a column of the kinds that the file has: eight of a chip, then the
 * host's. */
static double
bench_like(size_t column, double before)
{
	if (column >= CHIP_COLUMNS)
		return before + floor(2e8 * (1 + 0.1 * bench_normal()));
	switch (column % 8) {
	case 0:
	case 1:
	case 3: /* percent, two digits */
		return floor(7500 + 100 * bench_normal()) / 100;
	case 2: /* bytes of HBM */
		return before == 0 || bench_random() < 0.1
			? 7e10 + 1048576 * floor(4000 * bench_normal())
			: before;
	case 4:
	case 5: /* bytes of links */
		return before + floor(4e8 * (1 + 0.02 * bench_normal()));
	case 6: /* degrees */
		return floor(61 + bench_normal());
	default: /* watts */
		return floor(1720 + 40 * bench_normal()) / 10;
	}
}

static void
bench_make(void)
{
	size_t h, i, c;

	for (h = 0; h < 2; h++)
		for (i = 0; i < FILE_TICKS; i++)
			for (c = 0; c < COLUMNS; c++)
				bench_file[h][i][c] = bench_like(c,
					i > 0 ? bench_file[h][i - 1][c] : 0);
}

/* --- one host ------------------------------------------------------------- */

struct bench {
	struct ls_spool *spool;
	struct ls_series_table *table;
	struct ls_chunk_writer *writer;
	struct ls_arena *scratch;
	size_t group[3];
	int handle[3][CHIPS * PER_CHIP];
	double level[HOST]; /* whole numbers, `per` of which are a unit */
	double value[HOST];
};

static void
bench_add(struct bench *b, unsigned g, const char *group, size_t first, size_t count)
{
	char text[LS_SERIES_NAME_MAX_BYTES], labels[LS_SERIES_LABELS_MAX_BYTES] = "";
	int rc = ls_series_group(b->table, group);
	size_t i;

	LS_ASSERT(rc >= 0);
	b->group[g] = (size_t)rc;
	for (i = 0; i < count; i++) {
		if (g == 2) {
			(void)snprintf(text, sizeof(text),
				"chip.some_longer_name_%zu_total", i % PER_CHIP);
			(void)snprintf(labels, sizeof(labels), "chip=\"%zu\"",
				i / PER_CHIP);
		} else {
			(void)snprintf(text, sizeof(text), "%s",
				bench_rows[first + i].name);
		}
		b->handle[g][i] = ls_series_add(b->table, b->group[g], text, labels);
		LS_ASSERT(b->handle[g][i] >= 0);
	}
}

/* A reading of the host: what is read next of each row. */
static void
bench_turn(struct bench *b, size_t second)
{
	size_t i, net = NET_COLUMN;

	for (i = 0; i < HOST; i++) {
		const struct bench_row *row = &bench_rows[i];

		if (row->kind == NET)
			b->level[i] = bench_file[0][second][net++];
		else if (row->kind == LEVEL)
			b->level[i] = bench_draw(row->q);
		else
			b->level[i] = fabs((second == 0 ? row->start : b->level[i]) +
				bench_draw(row->q)); /* a gauge turns round at zero */
		b->value[i] = b->level[i] / row->per;
	}
}

static void
bench_read(struct bench *b, unsigned g, const double *values, size_t count, uint64_t t)
{
	size_t i;

	for (i = 0; i < count; i++)
		ls_series_set(b->table, b->handle[g][i], values[i]);
	/* A timer is late by tens of microseconds. */
	ls_series_read(b->table, b->group[g],
		t + (uint64_t)(60000 + 20000 * fabs(bench_normal())));
}

static void
bench_read_chips(struct bench *b, size_t second, uint64_t t)
{
	double values[CHIPS * PER_CHIP];
	size_t i;

	for (i = 0; i < CHIPS * PER_CHIP; i++)
		values[i] = bench_file[i / CHIP_COLUMNS][second][i % CHIP_COLUMNS];
	bench_read(b, 2, values, CHIPS * PER_CHIP, t);
}

/* A step as a training process marks it: five phases, a barrier, its work, two
 * neighbours. */
static void
bench_step(struct bench *b, uint64_t i, uint64_t t)
{
	struct ls_record r = { .step = i,
		.t_begin_ns = (int64_t)(t + (uint64_t)(1e6 * bench_random())),
		.duration_ns = (uint64_t)(9.5e8 + 1e7 * bench_normal()) };
	struct ls_wire_item item = { .kind = LS_WIRE_STEPS,
		.ring_id = { 1, 2, 3 },
		.first_index = i,
		.count = 1,
		.records = &r };
	const enum ls_phase phases[] = { LS_PHASE_INPUT_WAIT, LS_PHASE_H2D,
		LS_PHASE_COMPUTE, LS_PHASE_SYNC_WAIT, LS_PHASE_OTHER };
	size_t p;

	for (p = 0; p < sizeof(phases) / sizeof(phases[0]); p++) {
		r.phase_mask |= 1u << phases[p];
		r.phase_ns[phases[p]] = (uint64_t)(1e8 * bench_random());
	}
	r.barrier_count = 1;
	r.barrier[0] = (struct ls_record_barrier){ LS_BARRIER_ICI,
		r.t_begin_ns + 800000000, r.t_begin_ns + 900000000 };
	r.work_mask = 1u << LS_WORK_TOKENS;
	r.work[LS_WORK_TOKENS] = 8192;
	r.peer_count = 2;
	r.peer[0] = (struct ls_record_peer){ 1, (uint64_t)(1e6 * bench_random()),
		UINT64_MAX };
	r.peer[1] = (struct ls_record_peer){ 3, (uint64_t)(1e6 * bench_random()),
		UINT64_MAX };
	LS_ASSERT(ls_spool_push(b->spool, &item) == 0);
}

/* The hot values of the host and of its worker; beats and readings have phases of their
 * own. */
static void
bench_hot(const struct bench *b, uint64_t t_send, struct ls_wire_hot hot[2])
{
	unsigned m;
	size_t i;

	memset(hot, 0, 2 * sizeof(*hot));
	hot[1].worker = 1;
	for (m = 0; m < LS_METRIC_COUNT; m++) {
		const struct ls_metric_info *info = ls_metric_info(m);
		struct ls_wire_hot *h = &hot[info->scope == LS_METRIC_SCOPE_JOB];

		for (i = 0; i < HOST && strcmp(bench_rows[i].name, info->name) != 0;
			i++)
			continue;
		if (!info->hot)
			continue;
		LS_ASSERT(i < HOST); /* or the bench misses a hot series */
		h->t_mono_ns = t_send - 400000000 - (uint64_t)(1e5 * bench_random());
		h->metric[h->count] = (uint16_t)m;
		h->value[h->count++] = b->value[i];
	}
}

static size_t
bench_pack(struct bench *b, const struct ls_wire_report *r)
{
	static uint8_t bytes[LS_REPORT_MAX_BYTES];
	size_t len;

	LS_ASSERT(ls_wire_report_pack_to(r, b->scratch, bytes, sizeof(bytes), &len) ==
		0);
	return len;
}

/* One report; what each of its parts adds goes into sums. */
static void
bench_report(struct bench *b, uint64_t i, uint64_t t, uint64_t sums[PARTS])
{
	static uint8_t item_bytes[LS_REPORT_ITEMS_BYTES],
		chunk_bytes[LS_SPOOL_CHUNKS_READ_BYTES];
	static struct ls_wire_bytes items[LS_ITEMS_PER_REPORT_MAX];
	static struct ls_wire_bytes chunks[LS_CHUNK_ITEMS_PER_REPORT_MAX];
	/* how long the disk took */
	const uint64_t stored = (uint64_t)(8e7 * bench_random());
	struct ls_wire_hot hot[2];
	struct ls_wire_worker worker = { .ring_id = { 1, 2, 3 },
		.number = 1,
		.info = {
			.job = "train", .slice = "slice-0", .world = 8, .chips = 4 } };
	struct ls_wire_live live = { .worker = 1,
		.live = { i, LS_PHASE_COMPUTE, t - (uint64_t)(8e8 * bench_random()) } };
	struct ls_wire_report r = { .host = "tpu-vm-0123",
		.boot = { 1 },
		.kernel_boot_id = { 2 },
		.has_kernel = i == 0,
		.worker_count = i == 0,
		.workers = &worker,
		.t_send_mono_ns = t,
		.has_last = i > 0,
		.agent_version = PACKAGE_VERSION,
		.last = { t - S, t - S + 5000000, t - S + 5000000 + stored,
			t - S + 1000000 + stored },
		.hot = hot,
		.live = &live,
		.items = items,
		.chunk_items = chunks,
		.slowed = 1 };
	size_t len[PARTS];

	bench_hot(b, t, hot);
	len[0] = bench_pack(b, &r);
	r.hot_count = 2;
	len[1] = bench_pack(b, &r);
	r.live_count = 1;
	len[2] = bench_pack(b, &r);
	LS_ASSERT(ls_spool_read(b->spool, item_bytes, sizeof(item_bytes), items,
			  LS_ITEMS_PER_REPORT_MAX, &r.item_count) == 0);
	len[3] = bench_pack(b, &r);
	LS_ASSERT(ls_spool_read_chunks(b->spool, chunk_bytes, LS_REPORT_CHUNK_BYTES,
			  chunks, &r.chunk_item_count) == 0);
	len[4] = bench_pack(b, &r);
	for (i = 0; i < PARTS; i++)
		sums[i] += len[i] - (i > 0 ? len[i - 1] : 0);
	ls_spool_ack(b->spool, ls_spool_acked(b->spool) + r.item_count);
	ls_spool_ack_chunks(b->spool,
		ls_spool_chunks_acked(b->spool) + r.chunk_item_count);
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

static void
bench_print(const uint64_t sums[PARTS])
{
	static const char *const parts[PARTS] = { "head", "hot", "live", "step",
		"chunk" };
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < PARTS; i++)
		total += sums[i];
	printf("wire_bytes_per_host_second %.1f B/s\n", (double)total / SECONDS);
	for (i = 0; i < PARTS; i++)
		printf("wire_%s_bytes_per_host_second %.1f B/s\n", parts[i],
			(double)sums[i] / SECONDS);
	printf("wire_bytes_per_sample %.3f B\n",
		(double)sums[PARTS - 1] / SECONDS / (HOST + CHIPS * PER_CHIP));
}

static void
bench_data(void)
{
	const char *shared = getenv("LOCKSTEP_SHARED");
	char path[LS_PATH_MAX_BYTES];
	bool recorded;

	(void)snprintf(path, sizeof(path), "%s/data/series/noisy40.csv.gz",
		shared != NULL ? shared : "../shared");
	recorded = bench_load(path);
	if (!recorded)
		bench_make();
	printf("wire_series_recorded %d bool\n", recorded);
}

int
main(void)
{
	static struct bench b;
	const uint8_t kernel[16] = { 1 };
	const char *tmp = getenv("TMPDIR");
	const uint64_t start = 86400 * S;
	uint64_t sums[PARTS] = { 0 }, i;
	char dir[256];

	bench_data();
	(void)snprintf(dir, sizeof(dir), "%s/lockstep-bench-XXXXXX",
		tmp ? tmp : "/tmp");
	LS_ASSERT(mkdtemp(dir) != NULL);
	LS_ASSERT(ls_spool_open(dir, LS_SPOOL_DEFAULT_BYTES, kernel, &b.spool) == 0);
	b.table = ls_series_new();
	b.scratch = ls_arena_new(65536, LS_REPORT_MAX_BYTES);
	LS_ASSERT(b.table != NULL && b.scratch != NULL);
	LS_ASSERT(ls_chunk_writer_new(dir, kernel, b.spool, b.table, start,
			  &b.writer) == 0);
	bench_add(&b, 0, "host.fast", 0, FAST);
	bench_add(&b, 1, "host.slow", FAST, SLOW);
	bench_add(&b, 2, "tpu.chips", 0, CHIPS * PER_CHIP);
	for (i = 0; i < SECONDS; i++) {
		uint64_t t = start + i * S;

		ls_chunk_writer_turn(b.writer, t);
		bench_turn(&b, i);
		bench_read(&b, 0, b.value, FAST, t);
		bench_read(&b, 1, b.value + FAST, SLOW, t);
		bench_read_chips(&b, i, t);
		bench_step(&b, i, t);
		if (i + 1 == SECONDS)
			ls_chunk_writer_seal(
				b.writer); /* or a part of a minute would be missing */
		bench_report(&b, i, t, sums);
	}
	bench_print(sums);
	ls_chunk_writer_free(b.writer);
	ls_series_free(b.table);
	ls_spool_close(b.spool);
	ls_arena_free(b.scratch);
	bench_remove(dir);
	return EXIT_SUCCESS;
}
