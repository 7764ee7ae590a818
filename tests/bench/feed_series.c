/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the series of noisy40 to a collector, as agents do: chunks of the real encoder
 * in reports of the real wire, numbered, each answered before the next one is sent.
 *
 *   feed_series URL AGENTS COLUMNS TICKS
 *
 * AGENTS hosts with a connection each; COLUMNS series a host, 40 or 120 (three hosts of
 * the file side by side); TICKS seconds of each, in chunks of 60 rows and at most 60
 * series. Prints "name value unit", and for each report `report START END`: when it was
 * sent and answered, in ns of the wall clock. Ends with 1 unless all of it was
 * acknowledged as durable.
 */
#include "config.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "proto/wire/arena.h"
#include "proto/base/clock.h"
#include "proto/chunk/chunk.h"
#include "proto/wire/wire.h"
#include "tests/bench/noisy40.h"

enum {
	ROWS = 60,
	GROUP = 60,
	GROUPS_MAX = 2,
	COLUMNS_MAX = GROUPS_MAX * GROUP,
	AGENTS_MAX = 2048
};
enum { ITEMS_MAX = 2 * GROUPS_MAX };

/* What all agents share: read-only once they run. */
struct feed {
	struct noisy40 data;
	const char *url;
	size_t agents, columns, ticks;
	uint64_t start_mono_ns; /* of the first tick, by our clock */
	uint8_t kernel[LS_BOOT_ID_BYTES];
};

struct feed_agent {
	const struct feed *feed;
	pthread_t thread;
	size_t number;
	nng_socket socket;
	struct ls_chunk_codec *codec;
	struct ls_arena *scratch;
	uint64_t seq; /* of the last item packed */
	uint64_t hash[GROUPS_MAX];
	size_t item_count;
	struct ls_wire_bytes items[ITEMS_MAX];
	uint8_t item_bytes[ITEMS_MAX][LS_CHUNK_ITEM_MAX_BYTES];
	uint8_t body[LS_CHUNK_BODY_MAX_BYTES];
	uint8_t report[LS_REPORT_MAX_BYTES];
	uint64_t samples, body_bytes, wire_bytes, retries;
	size_t times;
	uint64_t (*time)[2]; /* of each report: sent, answered */
	const char *why; /* it failed */
};

static bool
feed_fail(struct feed_agent *a, const char *why)
{
	a->why = why;
	return false;
}

/* --- what is sent --------------------------------------------------------- */

/* Columns of a group: the first, as a column of the file's hosts side by side, and how
 * many. */
static size_t
feed_group(const struct feed_agent *a, size_t g, size_t *ret_count)
{
	const struct feed *f = a->feed;
	size_t left = f->columns - g * GROUP;

	*ret_count = left < GROUP ? left : GROUP;
	return a->number * f->columns % ((size_t)NOISY40_HOSTS * NOISY40_COLUMNS) +
		g * GROUP;
}

static bool
feed_pack_item(struct feed_agent *a, struct ls_wire_chunk_item *item)
{
	struct ls_wire_bytes *to = &a->items[a->item_count];
	uint8_t *bytes = a->item_bytes[a->item_count++];

	item->seq = ++a->seq;
	to->data = bytes;
	return ls_wire_chunk_item_pack(item, bytes, LS_CHUNK_ITEM_MAX_BYTES,
		       &to->len) == 0 ||
		feed_fail(a, "an item does not fit");
}

static bool
feed_dictionary(struct feed_agent *a, size_t g)
{
	const struct noisy40 *d = &a->feed->data;
	struct ls_wire_chunk_item item = { .kind = LS_WIRE_DICTIONARY };
	char text[GROUP][LS_SERIES_TEXT_MAX_BYTES];
	const char *series[GROUP];
	size_t i;

	/* names are the same for all hosts */
	(void)feed_group(a, g, &item.series_count);
	(void)snprintf(item.group, sizeof(item.group), "tpu.%zu", g);
	for (i = 0; i < item.series_count; i++) {
		size_t part = (g * GROUP + i) / NOISY40_COLUMNS,
		       c = (g * GROUP + i) % NOISY40_COLUMNS;

		if (d->chip[c] >= 0)
			(void)snprintf(text[i], sizeof(text[i]), "%s{chip=\"%zu\"}",
				d->name[c], (size_t)d->chip[c] + 4 * part);
		else
			(void)snprintf(text[i], sizeof(text[i]), "%s{part=\"%zu\"}",
				d->name[c], part);
		series[i] = text[i];
	}
	item.series = series;
	a->hash[g] = item.hash =
		ls_wire_dictionary_hash(item.group, series, item.series_count);
	return feed_pack_item(a, &item);
}

static bool
feed_chunk(struct feed_agent *a, size_t g, size_t tick, size_t rows)
{
	const struct feed *f = a->feed;
	const struct noisy40 *d = &f->data;
	struct ls_wire_chunk_item item = { .kind = LS_WIRE_CHUNK,
		.rows = (uint32_t)rows,
		.hash = a->hash[g],
		.body = a->body };
	uint64_t t[ROWS];
	struct ls_chunk_table table = {
		.rows = rows, .stride = NOISY40_TICKS, .t_mono_ns = t
	};
	size_t first = feed_group(a, g, &table.columns), r;
	const uint64_t *from = d->t_ns + first / NOISY40_COLUMNS * NOISY40_TICKS;

	for (r = 0; r < rows; r++)
		t[r] = from[tick + r] - d->t_ns[0] + f->start_mono_ns;
	table.value = d->value + first * NOISY40_TICKS + tick;
	table.present = d->present + first * NOISY40_TICKS + tick;
	if (ls_chunk_encode(a->codec, &table, a->body, sizeof(a->body),
		    &item.body_len) != 0)
		return feed_fail(a, "a chunk cannot be encoded");
	item.t_first_mono_ns = t[0];
	item.t_last_mono_ns = t[rows - 1];
	a->samples += rows * table.columns;
	a->body_bytes += item.body_len;
	return feed_pack_item(a, &item);
}

/* --- sending -------------------------------------------------------------- */

/* One exchange; *ret_ack is the answer. */
static bool
feed_exchange(struct feed_agent *a, size_t len, struct ls_wire_ack *ret_ack)
{
	nng_msg *msg = NULL;
	const char *why;
	bool good = false;

	if (nng_msg_alloc(&msg, 0) != 0)
		return feed_fail(a, "out of memory");
	if (nng_msg_append(msg, a->report, len) != 0 ||
		nng_sendmsg(a->socket, msg, 0) != 0) {
		nng_msg_free(msg);
		return feed_fail(a, "cannot be sent");
	}
	if (nng_recvmsg(a->socket, &msg, 0) != 0)
		return feed_fail(a, "no answer");
	good = ls_wire_ack_unpack(nng_msg_body(msg), nng_msg_len(msg), ret_ack, &why) ==
		0;
	nng_msg_free(msg);
	return good || feed_fail(a, "the answer makes no sense");
}

static bool
feed_pack_report(struct feed_agent *a, size_t *ret_len)
{
	const struct feed *f = a->feed;
	struct ls_wire_report r = { .has_kernel = true,
		.t_send_mono_ns = ls_clock_mono_ns(),
		.chunk_item_count = a->item_count,
		.chunk_items = a->items };

	(void)snprintf(r.host, sizeof(r.host), "host-%04zu", a->number);
	(void)snprintf(r.agent_version, sizeof(r.agent_version), "feed");
	memcpy(r.kernel_boot_id, f->kernel, sizeof(r.kernel_boot_id));
	memset(r.boot, 0xfe, sizeof(r.boot));
	r.boot[0] = (uint8_t)(a->number >> 8);
	r.boot[1] = (uint8_t)a->number;
	return ls_wire_report_pack_to(&r, a->scratch, a->report, sizeof(a->report),
		       ret_len) == 0 ||
		feed_fail(a, "a report does not fit");
}

/* Sends what is packed until it is acknowledged as durable. */
static bool
feed_send(struct feed_agent *a)
{
	struct ls_wire_ack ack;
	size_t len;

	a->time[a->times][0] = (uint64_t)ls_clock_wall_ns();
	for (;;) {
		if (!feed_pack_report(a, &len) || !feed_exchange(a, len, &ack))
			return false;
		a->wire_bytes += len;
		if (ack.status != LS_ACK_RETRY)
			break;
		a->retries++;
		(void)nanosleep(
			&(struct timespec){
				.tv_nsec = (long)(ack.retry_after_ns % 1000000000) },
			NULL); /* cut short: asked again sooner */
	}
	a->time[a->times++][1] = (uint64_t)ls_clock_wall_ns();
	a->item_count = 0;
	return (ack.status == LS_ACK_OK && ack.acked_chunk_seq == a->seq) ||
		feed_fail(a, "not acknowledged");
}

static void *
feed_run(void *arg)
{
	struct feed_agent *a = arg;
	const struct feed *f = a->feed;
	size_t groups = (f->columns + GROUP - 1) / GROUP, tick, g;
	bool good = true;

	for (g = 0; g < groups && good; g++)
		good = feed_dictionary(a, g);
	for (tick = 0; tick < f->ticks && good; tick += ROWS) {
		size_t left = f->ticks - tick;

		for (g = 0; g < groups && good; g++)
			good = feed_chunk(a, g, tick, left < ROWS ? left : ROWS);
		good = good && feed_send(a);
	}
	return NULL;
}

/* --- all of them ---------------------------------------------------------- */

/*
 * Connects from an address of its own, as hosts do: those of one address share what new
 * agents may send (LS_RATE_ADDRESS_BYTES_PER_S).
 */
static bool
feed_dial(struct feed_agent *a, const struct feed *f, size_t number)
{
	char url[128];

	(void)snprintf(url, sizeof(url), "tcp://127.1.%zu.%zu;%s", number >> 8,
		number & 255, f->url + strlen("tcp://"));
	return nng_dial(a->socket, url, NULL, 0) == 0;
}

static bool
feed_open(struct feed_agent *a, const struct feed *f, size_t number)
{
	a->feed = f;
	a->number = number;
	a->codec = ls_chunk_codec_new(GROUP, ROWS);
	a->scratch = ls_arena_new(65536, LS_REPORT_MAX_BYTES);
	a->time = calloc(f->ticks / ROWS + 1, sizeof(*a->time));
	if (a->codec == NULL || a->scratch == NULL || a->time == NULL)
		return feed_fail(a, "out of memory");
	return (nng_req0_open(&a->socket) == 0 &&
		       nng_socket_set_size(a->socket, NNG_OPT_RECVMAXSZ,
			       LS_ACK_MAX_BYTES) == 0 &&
		       feed_dial(a, f, number)) ||
		feed_fail(a, "cannot connect");
}

static void
feed_print(const struct feed *f, const struct feed_agent *agents, uint64_t took_ns)
{
	uint64_t samples = 0, body = 0, wire = 0, retries = 0, reports = 0;
	size_t i, k;

	for (i = 0; i < f->agents; i++) {
		samples += agents[i].samples;
		body += agents[i].body_bytes;
		wire += agents[i].wire_bytes;
		retries += agents[i].retries;
		reports += agents[i].times;
		for (k = 0; k < agents[i].times; k++)
			printf("report %llu %llu\n",
				(unsigned long long)agents[i].time[k][0],
				(unsigned long long)agents[i].time[k][1]);
	}
	printf("feed_recorded %d bool\n", f->data.recorded);
	printf("feed_entropy_bytes_per_sample %.2f bytes\n", NOISY40_ENTROPY_BYTES);
	printf("feed_samples %llu 1\n", (unsigned long long)samples);
	printf("feed_requests %llu 1\n", (unsigned long long)reports);
	printf("feed_retries %llu 1\n", (unsigned long long)retries);
	printf("feed_chunk_bytes_per_sample %.3f bytes\n",
		(double)body / (double)samples);
	printf("feed_wire_bytes_per_sample %.3f bytes\n",
		(double)wire / (double)samples);
	printf("feed_wall_s %.3f s\n", (double)took_ns * 1e-9);
}

/* Runs all agents; false if one of them failed. */
static bool
feed_all(const struct feed *f, struct feed_agent *agents)
{
	size_t i, started = 0;
	bool good = true;

	for (i = 0; i < f->agents && good; i++)
		good = feed_open(&agents[i], f, i);
	for (i = 0; i < f->agents && good; i++, started++)
		good = pthread_create(&agents[i].thread, NULL, feed_run, &agents[i]) ==
			0;
	for (i = 0; i < started; i++)
		(void)pthread_join(agents[i].thread,
			NULL); /* it was made, and is joined once */
	for (i = 0; i < f->agents; i++) {
		if (agents[i].why != NULL)
			(void)fprintf(stderr, "agent %zu: %s\n", i, agents[i].why);
		good = good && agents[i].why == NULL;
	}
	return good;
}

static size_t
feed_number(const char *text, size_t max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	return *end == '\0' && n <= max ? n : 0;
}

int
main(int argc, char **argv)
{
	struct feed f = { 0 };
	struct feed_agent *agents;
	uint64_t now = ls_clock_mono_ns(), span, begin;
	bool good;
	size_t i;

	if (argc == 5) {
		f.url = argv[1];
		f.agents = feed_number(argv[2], AGENTS_MAX);
		f.columns = feed_number(argv[3], COLUMNS_MAX);
		f.ticks = feed_number(argv[4], NOISY40_TICKS);
	}
	if (f.agents == 0 || f.ticks == 0 ||
		(f.columns != NOISY40_COLUMNS && f.columns != 3 * NOISY40_COLUMNS)) {
		(void)fprintf(stderr, "usage: feed_series URL AGENTS 40|120 TICKS\n");
		return 2;
	}
	/* The last of it is measured now, if the machine runs that long. */
	span = (f.ticks + 1) * 1000000000ull;
	f.start_mono_ns = now > span ? now - span : 1000000000ull;
	agents = calloc(f.agents, sizeof(*agents));
	if (agents == NULL || ls_clock_boot_id("/proc", f.kernel) != 0 ||
		noisy40_open(&f.data) != 0)
		return EXIT_FAILURE;
	begin = ls_clock_mono_ns();
	good = feed_all(&f, agents);
	if (good)
		feed_print(&f, agents, ls_clock_mono_ns() - begin);
	for (i = 0; i < f.agents; i++) {
		/* not opened: an error that says no more */
		ls_ignore(nng_close(agents[i].socket));
		ls_chunk_codec_free(agents[i].codec);
		ls_arena_free(agents[i].scratch);
		free(agents[i].time);
	}
	free(agents);
	noisy40_close(&f.data);
	return good && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
