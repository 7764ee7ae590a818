/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/disk.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "agent/steps/source_log.h"
#include "proto/base/loop.h"
#include "tests/support/harness.h"
#include "tests/support/tree.h"

#define LOOK_NS 1000000ull

/* A job whose work blocks until somebody writes into its pipe. */
struct gate {
	struct ls_disk_job job;
	int pipe[2];
	pthread_t worked_on;
	bool done;
};

static struct ls_loop *loop;
static struct ls_disk *disk;
static struct gate gate;

static void
gate_work(void *arg)
{
	struct gate *g = arg;
	char byte;

	g->worked_on = pthread_self();
	ck_assert_int_eq(read(g->pipe[0], &byte, 1), 1);
}

static void
gate_done(void *arg)
{
	struct gate *g = arg;

	g->done = true;
	ls_loop_stop(loop);
}

static void
gate_open(void)
{
	ck_assert_int_eq(write(gate.pipe[1], "x", 1), 1);
}

static void
setup(void)
{
	gate = (struct gate){ .job = { gate_work, gate_done, &gate, false } };
	ck_assert_int_eq(pipe(gate.pipe), 0);
	loop = ls_loop_new();
	ck_assert_int_eq(ls_disk_start(loop, "/x", &disk), 0);
}

static void
teardown(void)
{
	ck_assert_int_eq(ls_disk_stop(disk, 60 * 1000000000ull), 0);
	ls_loop_free(loop);
}

static void
stop_loop(void *arg)
{
	ls_loop_stop(arg);
}

/* The loop turns a few times. */
static void
turn(void)
{
	struct ls_loop_timer *t = ls_loop_timer_new(loop, stop_loop, loop);

	ls_loop_timer_start(t, LOOK_NS, 0);
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ls_loop_timer_free(t);
}

LS_CASE(disk, setup, teardown);

LS_TEST(disk, blocked_work_does_not_stop_the_loop)
{
	ls_disk_run(disk, &gate.job);
	turn();
	ck_assert(gate.job.busy && !gate.done);
	ck_assert_uint_ge(ls_disk_stalled_ns(disk, UINT64_MAX), LS_DISK_STALL_NS);
	ck_assert_uint_eq(ls_disk_stalled_ns(disk, ls_loop_now(loop)), 0);
	gate_open();
	ck_assert_int_eq(ls_loop_run(loop), 0);
	ck_assert(gate.done && !gate.job.busy);
	ck_assert(!pthread_equal(gate.worked_on, pthread_self()));
	ck_assert_uint_eq(ls_disk_stalled_ns(disk, UINT64_MAX), 0);
}

LS_TEST(disk, without_a_disk_work_is_done_at_once)
{
	gate_open();
	ls_disk_run(NULL, &gate.job);
	ck_assert(gate.done && !gate.job.busy);
	ck_assert(pthread_equal(gate.worked_on, pthread_self()));
}

LS_TEST(disk, stop_finishes_jobs_but_not_those_that_block)
{
	ls_disk_run(disk, &gate.job);
	ck_assert_int_eq(ls_disk_stop(disk, LOOK_NS), -ETIMEDOUT);
	gate_open();
	ck_assert_int_eq(ls_disk_stop(disk, 60 * 1000000000ull), 0);
	ck_assert(gate.done);
	disk = NULL;
}

LS_TEST(disk, a_log_on_a_blocked_file_system_is_only_late)
{
	char path[512];
	const char *dir = ls_test_tmpdir();
	struct ls_source_log_options o = {
		.path = path, .job = "job", .rank = 1, .disk = disk
	};
	static struct ls_doctor d;
	static struct ls_sample sample;
	struct ls_source log;
	unsigned i;

	tree_write(dir, "log", "");
	(void)snprintf(path, sizeof(path), "%s/log", dir);
	ck_assert_int_eq(ls_source_log_new(&o, &log), 0);
	ls_disk_run(disk, &gate.job); /* as an open that does not return */
	for (i = 0; i < 3; i++) {
		log.read(log.self, LS_CADENCE_FAST, i + 1, &sample);
		turn();
	}
	log.tell(log.self, &d);
	ck_assert_int_eq(d.check[0].status, LS_DOCTOR_WARN);
	ck_assert_str_eq(d.check[0].why, "its file system has not answered yet");
	gate_open();
	ck_assert_int_eq(ls_loop_run(loop), 0);
	do { /* until the loop has heard that the work is done */
		turn();
		d.count = 0;
		log.tell(log.self, &d);
	} while (strcmp(d.check[0].why, "its file system has not answered yet") == 0);
	ck_assert_str_eq(d.check[0].why, "no step in 0 lines read");
	ck_assert_int_eq(ls_disk_stop(disk, 60 * 1000000000ull), 0);
	disk = NULL;
	log.free(log.self);
}
