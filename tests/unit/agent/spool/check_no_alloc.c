/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "agent/spool/chunk_writer.h"
#include "agent/uplink/exchange.h"
#include "agent/sources.h"
#include "agent/uplink/uplink.h"
#include "proto/base/clock.h"
#include "proto/base/loop.h"
#include "proto/wire/frame.h"
#include "tests/support/harness.h"
#include "tests/support/step_ring.h"
#include "tests/support/tree.h"

/*
 * The road sample, encode, spool, report allocates nothing after start. This program
 * brings its own malloc and friends, which count; a sanitizer brings its own, too, and
 * then there is nothing to test.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define COUNTS 0
#endif
#endif
#ifndef COUNTS
#define COUNTS 1
#endif

#define S 1000000000ull

static atomic_ulong allocations;
static atomic_bool counting; /* Check allocates, too: only on the road itself */

#if COUNTS
/* glibc's own, by the names it keeps for this purpose. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *p, size_t size);

void *
malloc(size_t size)
{
	atomic_fetch_add(&allocations, atomic_load(&counting));
	return __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
	atomic_fetch_add(&allocations, atomic_load(&counting));
	return __libc_calloc(count, size);
}

void *
realloc(void *p, size_t size)
{
	atomic_fetch_add(&allocations, atomic_load(&counting));
	return __libc_realloc(p, size);
}
#endif

static const uint8_t kernel[16];
static struct ls_agent_config config;
static struct ls_loop *loop;
static struct ls_spool *spool;
static struct ls_sources *sources;
static struct ls_chunk_writer *writer;
static struct ls_arena *scratch;
static struct step_ring ring;
static uint8_t item_bytes[LS_REPORT_ITEMS_BYTES],
	chunk_bytes[LS_SPOOL_CHUNKS_READ_BYTES];
static uint8_t report_bytes[LS_REPORT_MAX_BYTES];

static unsigned long
count(void)
{
	return atomic_load(&allocations);
}

static void
load_defaults(void)
{
	char name[] = "lockstep-agent", *argv[] = { name, NULL },
	     err[LS_LOG_LINE_MAX_BYTES];
	enum ls_conf_action action;
	int left;

	ck_assert_int_eq(ls_conf_load(&ls_agent_program, 1, argv, &config, &action,
				 &left, err, sizeof(err)),
		0);
}

static void
setup(void)
{
	char root[256];

	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	tree_write(root, "steps/x", "");
	load_defaults();
	(void)snprintf(config.steps_dir, sizeof(config.steps_dir), "%s/steps", root);
	(void)snprintf(config.state_dir, sizeof(config.state_dir), "%s/state", root);
	loop = ls_loop_new();
	scratch = ls_arena_new(65536, LS_REPORT_MAX_BYTES);
	ck_assert_int_eq(
		ls_spool_open(config.state_dir, LS_SPOOL_MIN_BYTES, kernel, &spool), 0);
	ck_assert_int_eq(ls_sources_open(loop, &config, kernel, spool, NULL, &sources),
		0);
	ck_assert_int_eq(ls_chunk_writer_new(config.state_dir, kernel, spool,
				 ls_sources_series(sources), S, &writer),
		0);
	step_ring_make(&ring, config.steps_dir, "a.ring", 7, 4096);
	step_ring_lock(&ring);
}

static void
teardown(void)
{
	ls_chunk_writer_free(writer);
	ls_sources_close(sources);
	ls_spool_close(spool);
	ls_arena_free(scratch);
	ls_loop_free(loop);
	step_ring_fini(&ring);
}

/* A report, as the uplink makes one; acknowledged or not. The first failure. */
static int
report(bool acknowledge, bool zoomed)
{
	static struct ls_wire_bytes items[LS_ITEMS_PER_REPORT_MAX];
	static struct ls_wire_bytes chunks[LS_CHUNK_ITEMS_PER_REPORT_MAX];
	static struct ls_wire_zoomed zoom[LS_GROUPS_MAX];
	struct ls_wire_report r = {
		.host = "h", .items = items, .chunk_items = chunks, .zoomed = zoom
	};
	size_t len;
	int rc;

	ls_sources_fill(sources, &r);
	rc = ls_spool_read(spool, item_bytes, sizeof(item_bytes), items,
		LS_ITEMS_PER_REPORT_MAX, &r.item_count);
	if (rc == 0)
		rc = ls_spool_read_chunks(spool, chunk_bytes, SIZE_MAX, chunks,
			&r.chunk_item_count);
	if (zoomed)
		r.zoomed_count = ls_chunk_writer_zoom(writer, zoom);
	if (rc == 0)
		rc = ls_wire_report_pack_to(&r, scratch, report_bytes,
			sizeof(report_bytes), &len);
	if (rc == 0 && acknowledge) {
		ls_spool_ack(spool, ls_spool_acked(spool) + r.item_count);
		ls_spool_ack_chunks(spool,
			ls_spool_chunks_acked(spool) + r.chunk_item_count);
	}
	return rc;
}

/* One second: a step, a reading, a beat. */
static void
second(uint64_t s, bool acknowledge)
{
	unsigned due =
		LS_CADENCE_FAST | (s % LS_SLOW_FACTOR == 0 ? LS_CADENCE_SLOW : 0u);
	int rc;

	step_ring_put(&ring, s, s + 1);
	atomic_store(&counting, true);
	ls_chunk_writer_turn(writer, s * S);
	ls_sources_read(sources, due, s * S);
	rc = report(acknowledge, s % 3 == 0);
	atomic_store(&counting, false);
	ck_assert_int_eq(rc, 0);
}

LS_CASE(no_alloc, setup, teardown);

LS_TEST(no_alloc, nothing_is_allocated_after_start)
{
	unsigned long before, after;
	uint64_t s = 0;
	size_t i;
	void *volatile p; /* or no compiler would ask for it */

	atomic_store(&counting, true);
	before = count();
	p = malloc(1); /* it does count */
	free(p);
	after = count();
	atomic_store(&counting, false);
	ck_assert_uint_eq(after - before, COUNTS);
	/* all that is measured here was measured, and sealed once */
	for (; s < 130; s++)
		second(s, true);
	i = ls_chunk_writer_get_stats(writer)->chunks;
	before = count();
	for (; s < 500; s++)
		second(s, true);
	for (; s < 560; s++) /* nobody answers */
		second(s, false);
	after = count();
	ck_assert_uint_gt(ls_chunk_writer_get_stats(writer)->chunks, i + 10);
	ck_assert_uint_ge(ls_spool_get_stats(spool)->pushed_items, 500);
	ck_assert_uint_eq(after - before, 0);
}

/* Small enough to be full all the time: what is dropped costs no memory either. */
LS_TEST(no_alloc, a_full_spool_allocates_nothing)
{
	unsigned long before = 0, after;
	uint64_t s;
	int rc;

	for (s = 0; s < 70; s++)
		second(s, true);
	for (s = 70; ls_spool_get_stats(spool)->rewrites < 4; s++) {
		struct ls_record records[LS_STEPS_PER_ITEM] = { 0 };
		struct ls_wire_item item = { .kind = LS_WIRE_STEPS,
			.ring_id = { 99 },
			.first_index = s * LS_STEPS_PER_ITEM,
			.count = LS_STEPS_PER_ITEM,
			.records = records };

		if (s == 70)
			before = count();
		atomic_store(&counting, true);
		rc = ls_spool_push(spool, &item);
		atomic_store(&counting, false);
		ck_assert_int_eq(rc, 0);
	}
	ck_assert_uint_gt(ls_spool_get_stats(spool)->dropped_records, 0);
	after = count();
	ck_assert_uint_eq(after - before, 0);
}

/* --- the exchange: its end is told, the collector is a socket of our own --- */

#define BODY 4000 /* of a request */
#define HEAD (LS_FRAME_LENGTH_BYTES + LS_FRAME_ID_BYTES)

static unsigned ups, answers;
static struct ls_exchange *exchange;

static void
on_event(void *arg, enum ls_exchange_event event, const uint8_t *bytes, size_t len,
	uint64_t t)
{
	(void)arg;
	(void)bytes;
	(void)t;
	ups += event == LS_EXCHANGE_UP;
	answers += event == LS_EXCHANGE_ANSWER && len == 100;
}

static int
listen_here(char *url, size_t size)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	(void)snprintf(url, size, "tcp://127.0.0.1:%d", ntohs(a.sin_port));
	return fd;
}

/* Turns the loop until *what is n. */
static void
turn_until(const unsigned *what, unsigned n)
{
	while (*what < n)
		ls_ignore(event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK));
}

/* A request, and an answer of 100 bytes; true if it came. */
static bool
ask(int peer)
{
	static uint8_t body[BODY], got[HEAD + BODY], said[HEAD + 100];

	if (ls_exchange_send(exchange, body, sizeof(body)) != 0 ||
		recv(peer, got, sizeof(got), MSG_WAITALL) != sizeof(got))
		return false;
	ls_frame_put_length(said, sizeof(said) - LS_FRAME_LENGTH_BYTES);
	memcpy(said + LS_FRAME_LENGTH_BYTES, got + LS_FRAME_LENGTH_BYTES,
		LS_FRAME_ID_BYTES);
	if (send(peer, said, sizeof(said), MSG_NOSIGNAL) != sizeof(said))
		return false;
	turn_until(&answers, answers + 1);
	return true;
}

LS_CASE(exchange);

LS_TEST(exchange, an_exchange_allocates_nothing)
{
	const struct ls_exchange_handler handler = { NULL, on_event };
	uint8_t greeting[LS_FRAME_GREETING_BYTES];
	unsigned long before = 0, after;
	char url[64];
	int listener, peer;
	unsigned i;
	bool done = true;

	loop = ls_loop_new();
	listener = listen_here(url, sizeof(url));
	ck_assert_int_eq(ls_exchange_open(loop, url, NULL, &handler, &exchange), 0);
	peer = accept(listener, NULL, NULL);
	ck_assert_int_ge(peer, 0);
	ls_frame_greet(LS_FRAME_REP, greeting);
	ck_assert_int_eq(send(peer, greeting, sizeof(greeting), 0), sizeof(greeting));
	turn_until(&ups, 1);
	ck_assert_int_eq(recv(peer, greeting, sizeof(greeting), MSG_WAITALL),
		sizeof(greeting));
	atomic_store(&counting, true);
	for (i = 0; i < 200 && done; i++) {
		if (i == 10) /* who does a thing for the first time may need memory */
			before = count();
		done = ask(peer);
	}
	after = count();
	atomic_store(&counting, false);
	ck_assert(done);
	ck_assert_uint_eq(after - before, 0);
	ls_exchange_close(exchange);
	(void)close(peer);
	(void)close(listener);
	ls_loop_free(loop);
}
