/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/client/lockstep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/support/harness.h"
#include "tests/support/rings.h"

static struct rings rings;

static void
setup(void)
{
	rings_init(&rings);
}

static void
setup_open(void)
{
	setup();
	ck_assert_int_eq(lockstep_open(NULL), 0);
}

static void
teardown(void)
{
	lockstep_close();
	rings_fini(&rings);
}

/* The first case, because a process opens by itself only once: CK_FORK=no runs all tests
 * in one process. */
LS_CASE(first, setup, teardown);

LS_TEST(first, first_mark_opens_even_outside_a_step)
{
	struct ls_ring_live live;

	lockstep_phase(LOCKSTEP_COMPILE);
	rings_load(&rings);
	ck_assert_int_eq(ls_ring_parse_live(rings.bytes, rings.len, &live), 0);
	ck_assert_uint_eq(live.phase, LS_PHASE_COMPILE);
}

static uint64_t
phase_sum(const struct ls_record *r)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < LS_PHASE_COUNT; i++)
		sum += r->phase_ns[i];
	return sum;
}

LS_CASE(client, setup_open, teardown);

LS_TEST(client, phases_add_up_to_the_step)
{
	struct ls_record r;
	uint64_t i;

	for (i = 0; i < 3; i++)
		rings_step(100 + i);
	rings_load(&rings);
	ck_assert_uint_eq(rings.header.head, 3);
	for (i = 0; i < 3; i++) {
		r = rings_record(&rings, i);
		ck_assert_uint_eq(r.step, 100 + i);
		ck_assert_uint_eq(phase_sum(&r), r.duration_ns);
		ck_assert_uint_eq(r.phase_mask,
			1u << LS_PHASE_INPUT_WAIT | 1u << LS_PHASE_COMPUTE |
				1u << LS_PHASE_SYNC_WAIT | 1u << LS_PHASE_OTHER);
		ck_assert_uint_eq(r.work_mask, 0);
		ck_assert_uint_eq(r.peer_count, 0);
	}
}

LS_TEST(client, barriers_hold_entry_and_exit)
{
	struct ls_record r;
	int i;

	lockstep_step_begin(0);
	lockstep_sync_enter(LOCKSTEP_BARRIER_ICI);
	lockstep_sync_exit();
	lockstep_phase(LOCKSTEP_COMPUTE);
	lockstep_sync_enter(LOCKSTEP_BARRIER_DCN);
	lockstep_sync_enter(LOCKSTEP_BARRIER_STAGE); /* leaves the one before */
	lockstep_step_end(); /* and this one */
	lockstep_step_begin(1);
	for (i = 0; i < 6; i++) {
		lockstep_sync_enter(LOCKSTEP_BARRIER_OTHER);
		lockstep_sync_exit();
	}
	lockstep_sync_enter((enum lockstep_barrier)99);
	lockstep_step_end();
	rings_load(&rings);
	r = rings_record(&rings, 0);
	ck_assert_uint_eq(r.barrier_count, 3);
	ck_assert_uint_eq(r.barrier[0].kind, LS_BARRIER_ICI);
	ck_assert_uint_eq(r.barrier[1].kind, LS_BARRIER_DCN);
	ck_assert_uint_eq(r.barrier[2].kind, LS_BARRIER_STAGE);
	ck_assert_int_eq(r.barrier[1].exit_ns, r.barrier[2].enter_ns);
	ck_assert_int_eq(r.barrier[2].exit_ns, r.t_begin_ns + (int64_t)r.duration_ns);
	ck_assert_int_ge(r.barrier[0].enter_ns, r.t_begin_ns);
	ck_assert_int_le(r.barrier[0].exit_ns, r.barrier[1].enter_ns);
	r = rings_record(&rings, 1);
	ck_assert_uint_eq(r.barrier_count, LS_BARRIERS_MAX);
}

LS_TEST(client, work_adds_up_and_nonsense_is_ignored)
{
	struct ls_record r;

	lockstep_step_begin(0);
	lockstep_work(LOCKSTEP_TOKENS, 1000);
	lockstep_work(LOCKSTEP_TOKENS, 24);
	lockstep_work(LOCKSTEP_TOKENS, NAN);
	lockstep_work(LOCKSTEP_TOKENS, INFINITY);
	lockstep_work(LOCKSTEP_TOKENS, -5);
	lockstep_work(LOCKSTEP_BATCH, 0);
	lockstep_work((enum lockstep_work_kind)77, 1);
	lockstep_step_end();
	rings_load(&rings);
	r = rings_record(&rings, 0);
	ck_assert_uint_eq(r.work_mask, 1u << LS_WORK_TOKENS | 1u << LS_WORK_BATCH);
	ck_assert_double_eq(r.work[LS_WORK_TOKENS], 1024);
	ck_assert_double_eq(r.work[LS_WORK_BATCH], 0);
}

LS_TEST(client, peers_add_up_and_more_than_four_are_ignored)
{
	struct ls_record r;
	uint32_t i;

	lockstep_step_begin(0);
	lockstep_peer(7, 0.001, -1);
	lockstep_peer(7, 0.002, -1);
	lockstep_peer(8, NAN, 0);
	lockstep_peer(9, 1e9, -1);
	for (i = 0; i < 5; i++)
		lockstep_peer(100 + i, 0.5, 0.25);
	lockstep_step_end();
	rings_load(&rings);
	r = rings_record(&rings, 0);
	ck_assert_uint_eq(r.peer_count, LS_PEERS_MAX);
	ck_assert_uint_eq(r.peer[0].rank, 7);
	ck_assert_uint_eq(r.peer[0].recv_wait_ns, 3000000);
	ck_assert_uint_eq(r.peer[0].send_wait_ns, UINT64_MAX);
	ck_assert_uint_eq(r.peer[1].recv_wait_ns, UINT64_MAX);
	ck_assert_uint_eq(r.peer[1].send_wait_ns, 0);
	ck_assert_uint_eq(r.peer[2].recv_wait_ns, (uint64_t)(UINT32_MAX - 1) * 1000);
	ck_assert_uint_eq(r.peer[3].rank, 100);
	ck_assert_uint_eq(r.peer[3].send_wait_ns, 250000000);
}

LS_TEST(client, marks_in_the_wrong_order_do_no_harm)
{
	struct ls_record r;

	lockstep_step_end();
	lockstep_sync_exit();
	lockstep_sync_enter(LOCKSTEP_BARRIER_ICI);
	lockstep_work(LOCKSTEP_TOKENS, 1);
	lockstep_peer(1, 1, 1);
	lockstep_phase((enum lockstep_phase)1000);
	lockstep_phase(LOCKSTEP_CHECKPOINT);
	lockstep_step_begin(5);
	lockstep_phase((enum lockstep_phase)1000);
	lockstep_step_begin(6); /* ends 5 */
	lockstep_step_end();
	lockstep_step_end();
	rings_load(&rings);
	ck_assert_uint_eq(rings.header.head, 2);
	r = rings_record(&rings, 0);
	ck_assert_uint_eq(r.step, 5);
	ck_assert_uint_eq(r.work_mask, 0);
	ck_assert_uint_eq(r.peer_count, 0);
	ck_assert_uint_eq(r.barrier_count, 0);
	ck_assert_int_eq(rings_record(&rings, 1).t_begin_ns,
		r.t_begin_ns + (int64_t)r.duration_ns);
}

LS_TEST(client, live_slot_follows_every_mark)
{
	struct ls_ring_live live, before;

	lockstep_phase(LOCKSTEP_COMPILE);
	rings_load(&rings);
	ck_assert_int_eq(ls_ring_parse_live(rings.bytes, rings.len, &live), 0);
	ck_assert_uint_eq(live.phase, LS_PHASE_COMPILE);
	lockstep_step_begin(9);
	lockstep_phase(LOCKSTEP_COMPUTE);
	rings_load(&rings);
	ck_assert_int_eq(ls_ring_parse_live(rings.bytes, rings.len, &before), 0);
	ck_assert_uint_eq(before.step, 9);
	ck_assert_uint_eq(before.phase, LS_PHASE_COMPUTE);
	lockstep_sync_enter(LOCKSTEP_BARRIER_ICI);
	rings_load(&rings);
	ck_assert_int_eq(ls_ring_parse_live(rings.bytes, rings.len, &live), 0);
	ck_assert_uint_eq(live.phase, LS_PHASE_SYNC_WAIT);
	ck_assert_uint_gt(live.since_mono_ns, before.since_mono_ns);
	ck_assert_uint_eq(rings.header.head, 0);
	lockstep_step_end();
	rings_load(&rings);
	ck_assert_int_eq(ls_ring_parse_live(rings.bytes, rings.len, &live), 0);
	ck_assert_uint_eq(live.phase, LS_PHASE_COUNT);
	ck_assert_uint_eq(live.step, 9);
}

LS_TEST(client, ring_wraps_around)
{
	struct ls_record r;
	const char *why;
	uint64_t n = LS_RING_SLOTS + 1000, i;

	for (i = 0; i < n; i++)
		rings_step(i);
	rings_load(&rings);
	ck_assert_uint_eq(rings.header.head, n);
	for (i = n - rings.header.slots; i < n; i++)
		ck_assert_uint_eq(rings_record(&rings, i).step, i);
	ck_assert_int_eq(ls_ring_parse_slot(rings.bytes + rings.header.header_bytes,
				 rings.header.slot_bytes, 0, &r, &why),
		-LS_ESTALE);
}

LS_TEST(client, burst_of_4096_loses_nothing)
{
	uint64_t i;

	for (i = 0; i < 4096; i++)
		rings_step(i);
	rings_load(&rings);
	for (i = 0; i < 4096; i++)
		ck_assert_uint_eq(rings_record(&rings, i).step, i);
}

LS_TEST(client, options_come_before_the_environment)
{
	struct lockstep_options o = LOCKSTEP_OPTIONS_INIT;

	rings_load(&rings);
	setenv("LOCKSTEP_JOB", "from-env", 1);
	setenv("LOCKSTEP_RANK", "1", 1);
	setenv("LOCKSTEP_WORLD", "8", 1);
	setenv("LOCKSTEP_SLICE", "s1", 1);
	setenv("LOCKSTEP_TOKEN", "secret", 1);
	lockstep_close();
	ck_assert_int_eq(unlink(rings.path), 0);
	o.job = "from-api";
	o.attempt = 3;
	o.host = "h1";
	ck_assert_int_eq(lockstep_open(&o), 0);
	rings_load(&rings);
	ck_assert_str_eq(rings.header.worker.job, "from-api");
	ck_assert_int_eq(rings.header.worker.attempt, 3);
	ck_assert_int_eq(rings.header.worker.rank, 1);
	ck_assert_int_eq(rings.header.worker.world, 8);
	ck_assert_str_eq(rings.header.worker.slice, "s1");
	ck_assert_str_eq(rings.header.worker.host, "h1");
	ck_assert_str_eq(rings.header.worker.role, "");
	ck_assert_int_eq(rings.header.worker.chips, 0);
	ck_assert_uint_eq(rings.header.from[0], LS_RING_FROM_API);
	ck_assert_uint_eq(rings.header.from[2], LS_RING_FROM_LOCKSTEP);
	ck_assert_uint_eq(rings.header.from[4], LS_RING_FROM_NONE);
	ck_assert_str_eq(rings.header.env,
		"LOCKSTEP_JOB=from-env\nLOCKSTEP_RANK=1\nLOCKSTEP_WORLD=8\nLOCKSTEP_SLICE=s1\n");
	ck_assert_uint_eq(rings.header.pid, (uint32_t)getpid());
	unsetenv("LOCKSTEP_TOKEN");
}
