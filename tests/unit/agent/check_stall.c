/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "agent/agent.h"
#include "proto/base/conf.h"
#include "proto/base/log.h"
#include "tests/support/fake_collector.h"
#include "tests/support/harness.h"
#include "tests/support/step_ring.h"
#include "tests/support/tree.h"

/*
 * A whole agent on a disk that does not answer. Every write of the agent to its state
 * directory is a pwrite, and this program wraps it, and open and pread of the log of a
 * job: while the gate is closed the one that is chosen blocks.
 */

#define RINGS 2

static struct ls_agent_config config;
static char url[64], root[64];
static int manager; /* the socket of a service manager */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: closed */
static atomic_bool gate_is_closed;
static enum { PWRITE, OPEN, PREAD } blocks; /* chosen before the agent starts */
static pthread_t tester;
static char job_log[128];
static atomic_int job_log_fd = -1;
static sem_t blocked, reported; /* a write that waits; each report */
static struct step_ring ring[RINGS];
static atomic_uint items_seen;
static atomic_bool worker_seen[RINGS];
static atomic_uint_fast64_t stored, records_seen;

ssize_t __real_pwrite(int fd, const void *buf, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t size, off_t offset);

static void
pass_gate(void)
{
	if (!atomic_load(&gate_is_closed))
		return;
	(void)sem_post(&blocked);
	(void)pthread_mutex_lock(&gate);
	(void)pthread_mutex_unlock(&gate);
}

/* The test itself writes rings: on its own thread, which no gate stops. */
ssize_t
__wrap_pwrite(int fd, const void *buf, size_t size, off_t offset)
{
	if (blocks == PWRITE && !pthread_equal(pthread_self(), tester))
		pass_gate();
	return __real_pwrite(fd, buf, size, offset);
}

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode);

int
__wrap_open(const char *path, int flags, mode_t mode)
{
	bool is_log = strcmp(path, job_log) == 0;
	int fd;

	if (is_log && blocks == OPEN)
		pass_gate();
	fd = __real_open(path, flags, mode);
	if (is_log)
		atomic_store(&job_log_fd, fd);
	return fd;
}

ssize_t __real_pread(int fd, void *buf, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t size, off_t offset);

ssize_t
__wrap_pread(int fd, void *buf, size_t size, off_t offset)
{
	if (blocks == PREAD && fd == atomic_load(&job_log_fd))
		pass_gate();
	return __real_pread(fd, buf, size, offset);
}

/* On the collector's thread: stores what comes, and notes what it saw. */
static size_t
answer(size_t n, const struct ls_wire_report *r, uint8_t **ret_buf)
{
	struct ls_wire_ack a = { .t_receive_mono_ns = 1, .t_send_mono_ns = 2 };
	struct ls_wire_item item;
	const char *why;
	size_t len = 0, i;

	(void)n;
	for (i = 0; i < r->item_count; i++) {
		ck_assert_int_eq(ls_wire_item_unpack(r->items[i].data, r->items[i].len,
					 &item, &why),
			0);
		ck_assert_uint_eq(item.seq, atomic_load(&stored) + 1);
		atomic_store(&stored, item.seq);
		atomic_fetch_add(&records_seen, item.count);
		ls_wire_item_clear(&item);
	}
	for (i = 0; i < r->worker_count; i++) {
		if (r->workers[i].ring_id[0] <= RINGS)
			atomic_store(&worker_seen[r->workers[i].ring_id[0] - 1], true);
	}
	atomic_fetch_add(&items_seen, (unsigned)r->item_count);
	memcpy(a.boot, r->boot, sizeof(a.boot));
	a.acked_seq = atomic_load(&stored);
	ck_assert_int_eq(ls_wire_ack_pack(&a, ret_buf, &len), 0);
	(void)sem_post(&reported);
	return len;
}

static void
open_manager(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%.64s/notify", root);
	manager = socket(AF_UNIX, SOCK_DGRAM, 0);
	ck_assert_int_eq(bind(manager, (struct sockaddr *)&to, sizeof(to)), 0);
	(void)setenv("NOTIFY_SOCKET", to.sun_path, 1);
	(void)setenv("WATCHDOG_USEC", "100000", 1);
}

static void
setup(void)
{
	char name[] = "lockstep-agent", *argv[] = { name, NULL },
	     err[LS_LOG_LINE_MAX_BYTES];
	enum ls_conf_action action;
	int left;

	atomic_store(&stored, 0);
	atomic_store(&records_seen, 0);
	atomic_store(&items_seen, 0);
	for (size_t i = 0; i < RINGS; i++) {
		atomic_store(&worker_seen[i], false);
		ring[i] = (struct step_ring){ .fd = -1 };
	}
	atomic_store(&job_log_fd, -1);
	job_log[0] = '\0';
	blocks = PWRITE;
	tester = pthread_self();
	config = (struct ls_agent_config){ 0 };
	ck_assert_int_lt(snprintf(root, sizeof(root), "%s", ls_test_tmpdir()),
		sizeof(root));
	tree_write(root, "steps/x", "");
	fake_collector_start(url, sizeof(url), answer);
	ck_assert_int_eq(ls_conf_load(&ls_agent_program, 1, argv, &config, &action,
				 &left, err, sizeof(err)),
		0);
	(void)snprintf(config.collector, sizeof(config.collector), "%s", url);
	(void)snprintf(config.steps_dir, sizeof(config.steps_dir), "%s/steps", root);
	(void)snprintf(config.state_dir, sizeof(config.state_dir), "%s/state", root);
	(void)snprintf(config.log_level, sizeof(config.log_level), "err");
	config.http_address[0] = '\0';
	ck_assert_int_eq(ls_agent_config_finish(&config, err, sizeof(err)), 0);
	config.beat_ns = LS_BEAT_MIN_NS;
	ck_assert_int_eq(sem_init(&blocked, 0, 0), 0);
	ck_assert_int_eq(sem_init(&reported, 0, 0), 0);
	open_manager();
}

static void
teardown(void)
{
	size_t i;

	fake_collector_stop();
	for (i = 0; i < RINGS; i++)
		step_ring_fini(&ring[i]);
	(void)close(manager);
}

LS_CASE(stall, setup, teardown);

static void *
run_agent(void *arg)
{
	*(int *)arg = ls_agent_run(&config, 0, NULL);
	return NULL;
}

static void
await_reports(unsigned n)
{
	while (n-- > 0)
		ck_assert_int_eq(sem_wait(&reported), 0);
}

/* Datagrams of the watchdog that are sent from now on. */
static void
await_watchdog(unsigned n)
{
	char text[64];
	ssize_t len;

	while (recv(manager, text, sizeof(text), MSG_DONTWAIT) > 0)
		; /* before */
	while (n > 0) {
		len = recv(manager, text, sizeof(text), 0);
		ck_assert_int_gt(len, 0);
		n -= len == 10 && memcmp(text, "WATCHDOG=1", 10) == 0;
	}
}

static void
make_ring(uint8_t i, uint64_t records)
{
	char name[16];
	uint64_t k;

	(void)snprintf(name, sizeof(name), "%u.ring", i);
	step_ring_make(&ring[i - 1], config.steps_dir, name, i, 4096);
	step_ring_lock(&ring[i - 1]);
	for (k = 0; k < records; k++)
		step_ring_put(&ring[i - 1], k, k + 1);
}

/* Closes the gate, and waits until the agent stands before it. */
static void
close_gate(void)
{
	(void)pthread_mutex_lock(&gate);
	atomic_store(&gate_is_closed, true);
	ck_assert_int_eq(sem_wait(&blocked), 0);
}

static void
open_gate(void)
{
	atomic_store(&gate_is_closed, false);
	(void)pthread_mutex_unlock(&gate);
}

/* The log of one job does not answer; the steps of another job arrive. */
static void
stall_log(void)
{
	pthread_t agent;
	unsigned beats = 0;
	uint64_t k;
	int rc = -1;

	config.sample_interval_ns = LS_BEAT_MIN_NS;
	(void)snprintf(job_log, sizeof(job_log), "%s/log", root);
	(void)snprintf(config.step_log, sizeof(config.step_log), "%s", job_log);
	(void)snprintf(config.step_log_job, sizeof(config.step_log_job), "other");
	config.step_log_rank_value = 0;
	make_ring(1, 5);
	ck_assert_int_eq(pthread_create(&agent, NULL, run_agent, &rc), 0);
	while (atomic_load(&records_seen) < 5)
		await_reports(1);
	close_gate();
	for (k = 5; k < 8; k++)
		step_ring_put(&ring[0], k, k + 1);
	for (; atomic_load(&records_seen) < 8; beats++)
		await_reports(1);
	ck_assert_uint_le(beats, 20); /* two seconds */
	open_gate();
	ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
	ck_assert_int_eq(pthread_join(agent, NULL), 0);
	ck_assert_int_eq(rc, 0);
}

LS_TEST(stall, open_of_a_log_delays_no_other_job)
{
	blocks = OPEN;
	stall_log();
}

LS_TEST(stall, read_of_a_log_delays_no_other_job)
{
	tree_write(root, "log", "nothing of steps\n");
	blocks = PREAD;
	stall_log();
}

LS_TEST(stall, a_disk_that_does_not_answer_delays_new_items_only)
{
	pthread_t agent;
	unsigned before;
	int rc = -1;

	make_ring(1, 5);
	ck_assert_int_eq(pthread_create(&agent, NULL, run_agent, &rc), 0);
	while (atomic_load(&records_seen) < 5)
		await_reports(1);
	close_gate(); /* the first reading's rows */
	await_reports(2); /* what was on its way is there */
	before = atomic_load(&items_seen);
	make_ring(2, 7);
	while (!atomic_load(&worker_seen[1])) /* rings are read, beats go on */
		await_reports(1);
	await_reports(10);
	await_watchdog(5);
	/* What is not written is not sent. */
	ck_assert_uint_eq(atomic_load(&items_seen), before);
	open_gate();
	while (atomic_load(&records_seen) < 12)
		await_reports(1);
	ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
	ck_assert_int_eq(pthread_join(agent, NULL), 0);
	ck_assert_int_eq(rc, 0);
}
