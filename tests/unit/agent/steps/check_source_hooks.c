/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/source_hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proto/ring/ring_events.h"
#include "tests/support/harness.h"
#include "tests/support/step_ring.h"

enum { EVENTS = LS_RING_EVENTS_OFFSET, HEADER = EVENTS + LS_RING_EVENTS_BYTES };
enum { AT_HEADER_BYTES = 12, AT_RANK = 84, AT_FUNCTION = 128, FUNCTION_BYTES = 112 };

static const uint8_t kernel[16];
static char dir[256];
static struct ls_spool *spool;
static struct ls_source_step *rings;
static struct ls_series_table *table;
static struct ls_source source;
static struct ls_sample sample;

static void
setup(void)
{
	char state[300];

	(void)snprintf(dir, sizeof(dir), "%s", ls_test_tmpdir());
	table = ls_series_new();
	ck_assert_ptr_nonnull(table);
	(void)snprintf(state, sizeof(state), "%s/state", dir);
	ck_assert_int_eq(ls_spool_open(state, LS_SPOOL_DEFAULT_BYTES, kernel, &spool),
		0);
	ck_assert_int_eq(ls_source_step_new(dir, kernel, spool, &rings), 0);
	ck_assert_int_eq(ls_source_hooks_new(rings, table, &source), 0);
}

static void
teardown(void)
{
	source.free(source.self);
	ls_source_step_free(rings);
	ls_spool_close(spool);
	ls_series_free(table);
}

/* A ring of rank 0 whose writer has hooks. */
static void
make(struct step_ring *r, const char *name, uint8_t id)
{
	step_ring_make(r, dir, name, id, 4);
	ck_assert_int_eq(ftruncate(r->fd, HEADER + 4 * LS_RING_SLOT_BYTES), 0);
	step_ring_poke(r, AT_HEADER_BYTES, HEADER, 4);
	step_ring_poke(r, EVENTS, (1u << LS_RING_EVENT_COUNT) - 1, 8);
}

static void
put(struct step_ring *r, enum ls_ring_event event, uint64_t value)
{
	step_ring_poke(r, EVENTS + 8 + 8 * (uint64_t)event, value, 8);
}

static void
put_function(struct step_ring *r, unsigned at, const char *name, uint64_t compiles,
	uint64_t ns)
{
	const uint64_t place = EVENTS + AT_FUNCTION + (uint64_t)at * FUNCTION_BYTES;

	ck_assert_int_eq(pwrite(r->fd, name, strlen(name), (off_t)place + 16),
		(ssize_t)strlen(name));
	step_ring_poke(r, place + 8, ns, 8);
	step_ring_poke(r, place, compiles, 8);
}

static void
read_all(unsigned due)
{
	ls_source_step_read(rings, 1);
	source.read(source.self, due, 5, &sample);
}

/* Value of a series; -1: there, but not measured; -2: not there. */
static double
value(const char *text)
{
	struct ls_series_group g;
	size_t i;

	ck_assert(ls_series_look(table, 0, &g));
	for (i = 0; i < g.count; i++) {
		if (strcmp(g.text[i], text) == 0)
			return g.present[i] ? g.value[i] : -1;
	}
	return -2;
}

LS_CASE(source_hooks, setup, teardown);

LS_TEST(source_hooks, counters_and_functions_of_a_worker_are_series)
{
	struct ls_series_group g;
	struct step_ring r;

	make(&r, "a.ring", 1);
	put(&r, LS_RING_EVENT_COMPILES, 15);
	put(&r, LS_RING_EVENT_COMPILE_NS, 31500000000);
	put(&r, LS_RING_EVENT_GC_NS, 250000000);
	put_function(&r, 0, "train_step", 14, 31250000000);
	put_function(&r, 1, "a\"b{c}", 1, 0);
	read_all(LS_CADENCE_FAST);
	ck_assert(ls_series_look(table, 0, &g));
	ck_assert_uint_eq(g.readings, 0);
	read_all(LS_CADENCE_SLOW);
	ck_assert_double_eq(value("job.compiles_total{job=\"job\",rank=\"0\"}"), 15);
	ck_assert_double_eq(value("job.compile_seconds_total{job=\"job\",rank=\"0\"}"),
		31.5);
	ck_assert_double_eq(value("job.gc_seconds_total{job=\"job\",rank=\"0\"}"),
		0.25);
	ck_assert_double_eq(value("job.hook_errors_total{job=\"job\",rank=\"0\"}"), 0);
	ck_assert_double_eq(
		value("job.function.compiles_total{function=\"train_step\",job=\"job\","
		      "rank=\"0\"}"),
		14);
	ck_assert_double_eq(
		value("job.function.compile_seconds_total{function=\"train_step\","
		      "job=\"job\",rank=\"0\"}"),
		31.25);
	ck_assert_double_eq(
		value("job.function.compiles_total{function=\"a_b_c_\",job=\"job\","
		      "rank=\"0\"}"),
		1);
	put_function(&r, 0, "train_step", 20, 40000000000);
	read_all(LS_CADENCE_SLOW);
	ck_assert_double_eq(
		value("job.function.compiles_total{function=\"train_step\",job=\"job\","
		      "rank=\"0\"}"),
		20);
	ck_assert(ls_series_look(table, 0, &g));
	ck_assert_uint_eq(g.readings, 2);
	ck_assert_uint_eq(g.t_mono_ns, 5);
	step_ring_fini(&r);
}

LS_TEST(source_hooks, what_a_writer_does_not_keep_is_not_measured)
{
	struct ls_doctor d = { 0 };
	struct step_ring r;

	step_ring_make(&r, dir, "c.ring", 9, 4); /* the C library: no block */
	read_all(LS_CADENCE_SLOW);
	ck_assert_double_eq(value("job.compiles_total{job=\"job\",rank=\"0\"}"), -2);
	source.tell(source.self, &d);
	ck_assert_int_eq((int)d.check[0].status, LS_DOCTOR_NONE);
	step_ring_fini(&r);
	ck_assert_int_eq(unlink(r.path), 0);

	make(&r, "a.ring", 1);
	/* JAX is not hooked */
	step_ring_poke(&r, EVENTS, 1u << LS_RING_EVENT_GC_NS, 8);
	read_all(LS_CADENCE_SLOW);
	ck_assert_double_eq(value("job.gc_seconds_total{job=\"job\",rank=\"0\"}"), 0);
	ck_assert_double_eq(value("job.compiles_total{job=\"job\",rank=\"0\"}"), -2);
	step_ring_poke(&r, EVENTS, 0, 8);
	read_all(LS_CADENCE_SLOW);
	ck_assert_double_eq(value("job.gc_seconds_total{job=\"job\",rank=\"0\"}"), -1);
	step_ring_fini(&r);
}

LS_TEST(source_hooks,
	series_of_a_worker_go_with_its_ring_and_not_those_of_its_successor)
{
	struct step_ring old, new;

	make(&old, "a.ring", 1); /* nobody holds its lock: it is dead */
	put(&old, LS_RING_EVENT_COMPILES, 1);
	put_function(&old, 0, "gone", 1, 1);
	read_all(LS_CADENCE_SLOW);
	ck_assert_double_eq(
		value("job.function.compiles_total{function=\"gone\",job=\"job\","
		      "rank=\"0\"}"),
		1);
	make(&new, "b.ring", 2); /* the next attempt: the same job and rank */
	step_ring_lock(&new);
	put(&new, LS_RING_EVENT_COMPILES, 2);
	put_function(&new, 0, "f", 2, 1);
	read_all(LS_CADENCE_SLOW);
	ls_spool_ack(spool, ls_spool_next(spool) - 1);
	read_all(LS_CADENCE_SLOW);
	ck_assert_uint_eq(ls_source_step_count(rings), 1);
	ck_assert_double_eq(value("job.compiles_total{job=\"job\",rank=\"0\"}"), 2);
	ck_assert_double_eq(
		value("job.function.compiles_total{function=\"f\",job=\"job\","
		      "rank=\"0\"}"),
		2);
	ck_assert_double_eq(
		value("job.function.compiles_total{function=\"gone\",job=\"job\","
		      "rank=\"0\"}"),
		-2);
	step_ring_fini(&old);
	step_ring_fini(&new);
}

LS_TEST(source_hooks, hostile_blocks_do_no_harm_and_are_told)
{
	struct ls_doctor d = { 0 };
	struct step_ring r;
	char name[LS_RING_FUNCTION_NAME_MAX_BYTES];
	unsigned turn, i;

	make(&r, "a.ring", 1);
	put(&r, LS_RING_EVENT_ERRORS, 3);
	for (turn = 0; turn < 3; turn++) { /* names that change at every reading */
		for (i = 0; i < LS_RING_FUNCTIONS_MAX; i++) {
			memset(name, 'x', sizeof(name) - 1);
			name[sizeof(name) - 1] = '\0';
			name[0] = (char)('a' + turn);
			name[1] = (char)('A' + i % 26);
			name[2] = (char)('0' + i / 26);
			put_function(&r, i, name, UINT64_MAX, UINT64_MAX);
		}
		read_all(LS_CADENCE_SLOW);
	}
	source.tell(source.self, &d);
	ck_assert_int_eq((int)d.check[0].status, LS_DOCTOR_WARN);
	ck_assert_ptr_nonnull(
		strstr(d.check[0].why, "3 events failed, 32 names unreadable"));
	/* cut short while it is read */
	ck_assert_int_eq(ftruncate(r.fd, EVENTS + 10), 0);
	read_all(LS_CADENCE_SLOW);
	step_ring_fini(&r);
}
