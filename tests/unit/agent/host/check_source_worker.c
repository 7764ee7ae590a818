/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/source_worker.h"

#include <stdio.h>
#include <unistd.h>
#include "tests/support/harness.h"
#include "tests/support/tree.h"

static char root[256], proc[300], sys[300];
static struct ls_source worker;
static struct ls_sample host;
static struct ls_source_worker_id ids[3] = { { { 1 }, 100 }, { { 2 }, 200 },
	{ { 3 }, 300 } };

static const char v1_mounts[] =
	"32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	"33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
static const char v2_mounts[] =
	"41 31 0:38 /pod /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

static void
setup(void)
{
	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	(void)snprintf(proc, sizeof(proc), "%s/proc", root);
	(void)snprintf(sys, sizeof(sys), "%s/sys", root);
	tree_write(root, "proc/self/mountinfo", v1_mounts);
	memset(&host, 0, sizeof(host));
	ck_assert_int_eq(ls_source_worker_new(proc, sys, &worker), 0);
	ck_assert_int_eq(worker.probe(worker.self), 0);
}

static void
teardown(void)
{
	worker.free(worker.self);
}

static void
write_thread(int pid, int tid, unsigned long run, unsigned long wait, int involuntary)
{
	char path[64], text[128];

	(void)snprintf(path, sizeof(path), "%d/task/%d/schedstat", pid, tid);
	(void)snprintf(text, sizeof(text), "%lu %lu 1\n", run, wait);
	tree_write(proc, path, text);
	(void)snprintf(path, sizeof(path), "%d/task/%d/status", pid, tid);
	(void)snprintf(text, sizeof(text),
		"voluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t%d\n",
		involuntary);
	tree_write(proc, path, text);
}

static void
end_thread(int pid, int tid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/task/%d/schedstat", pid, tid);
	tree_remove(proc, path);
}

static void
write_group(const char *group, unsigned throttled_s)
{
	char path[128], text[128];

	(void)snprintf(path, sizeof(path), "fs/cgroup/cpu%s/cpu.stat", group);
	(void)snprintf(text, sizeof(text),
		"nr_throttled 1\nthrottled_time %u000000000\n", throttled_s);
	tree_write(sys, path, text);
}

static const struct ls_sample *
read_first(void)
{
	const struct ls_sample *s;

	worker.read(worker.self, LS_CADENCE_FAST, 9, &host);
	s = ls_source_worker_sample(&worker, ids[0].ring_id);
	ck_assert_ptr_nonnull(s);
	return s;
}

LS_CASE(source_worker, setup, teardown);

LS_TEST(source_worker, threads_are_summed_and_the_sum_never_falls)
{
	const struct ls_sample *s;

	write_thread(100, 100, 1000000000, 500000000, 3);
	write_thread(100, 101, 2000000000, 0, 4);
	ls_source_worker_watch(&worker, ids, 1);
	s = read_first();
	ck_assert_double_eq(s->value[LS_METRIC_JOB_CPU], 3);
	ck_assert_double_eq(s->value[LS_METRIC_JOB_RUNQUEUE_WAIT], 0.5);
	ck_assert_double_eq(s->value[LS_METRIC_JOB_INVOLUNTARY], 7);
	ck_assert_double_eq(s->value[LS_METRIC_JOB_VOLUNTARY], 2);
	end_thread(100, 101);
	s = read_first();
	ck_assert_double_eq(s->value[LS_METRIC_JOB_CPU], 3);
	ck_assert_double_eq(s->value[LS_METRIC_JOB_INVOLUNTARY], 7);
	write_thread(100, 102, 1000000000, 0, 1);
	s = read_first();
	ck_assert_double_eq(s->value[LS_METRIC_JOB_CPU], 4);
	write_thread(100, 102, 500000000, 0, 1); /* its number was used again */
	s = read_first();
	ck_assert_double_eq(s->value[LS_METRIC_JOB_CPU], 4.5);
}

LS_TEST(source_worker, switches_are_read_of_threads_that_ran)
{
	const struct ls_sample *s;

	write_thread(100, 100, 1000, 0, 3);
	ls_source_worker_watch(&worker, ids, 1);
	(void)read_first();
	write_thread(100, 100, 1000, 0, 9); /* cannot be: it did not run */
	s = read_first();
	ck_assert_double_eq(s->value[LS_METRIC_JOB_INVOLUNTARY], 3);
	write_thread(100, 100, 2000, 0, 9);
	s = read_first();
	ck_assert_double_eq(s->value[LS_METRIC_JOB_INVOLUNTARY], 9);
}

LS_TEST(source_worker, process_files_are_read)
{
	const struct ls_sample *s;

	tree_write(proc, "100/stat",
		"100 (x) S 1 1 1 0 -1 0 1 2 17 3 1 2 0 0 20 0 12 0 1\n");
	tree_write(proc, "100/statm", "1000 250 0\n");
	ls_source_worker_watch(&worker, ids, 1);
	s = read_first();
	ck_assert_double_eq(s->value[LS_METRIC_JOB_MAJOR_FAULTS], 17);
	ck_assert_double_eq(s->value[LS_METRIC_JOB_THREADS], 12);
	ck_assert_double_eq(s->value[LS_METRIC_JOB_RSS],
		250.0 * (double)sysconf(_SC_PAGESIZE));
	ck_assert(!s->present[LS_METRIC_JOB_CPU]); /* no schedstat here */
}

LS_TEST(source_worker, worker_that_is_gone_is_not_measured)
{
	write_thread(100, 100, 1000, 0, 3);
	ls_source_worker_watch(&worker, ids, 1);
	(void)read_first();
	ls_source_worker_watch(&worker, ids, 0);
	worker.read(worker.self, LS_CADENCE_FAST, 9, &host);
	ck_assert_ptr_null(ls_source_worker_sample(&worker, ids[0].ring_id));
	ck_assert(!host.present[LS_METRIC_HOST_CPU_THROTTLED]);
}

LS_TEST(source_worker, cgroup_of_version_1_is_found)
{
	tree_write(proc, "100/cgroup", "1:cpu:/job/a\n2:cpuacct:/acct\n0::/u\n");
	write_group("/job/a", 5);
	tree_write(sys, "fs/cgroup/cpuacct/acct/cpuacct.usage", "7000000000\n");
	ls_source_worker_watch(&worker, ids, 1);
	(void)read_first();
	ck_assert_double_eq(host.value[LS_METRIC_HOST_CPU_THROTTLED], 5);
	ck_assert_double_eq(host.value[LS_METRIC_HOST_CPU_THROTTLED_PERIODS], 1);
	ck_assert_double_eq(host.value[LS_METRIC_HOST_CGROUP_CPU], 7);
}

LS_TEST(source_worker, cgroup_of_version_2_is_found_below_the_root_of_its_mount)
{
	tree_write(root, "proc/self/mountinfo", v2_mounts);
	ck_assert_int_eq(worker.probe(worker.self), 0);
	tree_write(proc, "100/cgroup", "0::/pod/c1\n");
	tree_write(sys, "fs/cgroup/c1/cpu.stat",
		"usage_usec 1500000\nthrottled_usec 250000\n");
	ls_source_worker_watch(&worker, ids, 1);
	(void)read_first();
	ck_assert_double_eq(host.value[LS_METRIC_HOST_CGROUP_CPU], 1.5);
	ck_assert_double_eq(host.value[LS_METRIC_HOST_CPU_THROTTLED], 0.25);
	/* Outside of what is mounted here: not visible, not measured. */
	tree_write(proc, "100/cgroup", "0::/podium\n");
	(void)read_first();
	ck_assert(!host.present[LS_METRIC_HOST_CGROUP_CPU]);
	tree_write(proc, "100/cgroup", "0::/../other\n");
	(void)read_first();
	ck_assert(!host.present[LS_METRIC_HOST_CGROUP_CPU]);
}

LS_TEST(source_worker, different_cgroups_add_up_and_shared_ones_count_once)
{
	tree_write(proc, "100/cgroup", "1:cpu:/a\n");
	tree_write(proc, "200/cgroup", "1:cpu:/a\n");
	tree_write(proc, "300/cgroup", "1:cpu:/b\n");
	write_group("/a", 10);
	write_group("/b", 100);
	ls_source_worker_watch(&worker, ids, 3);
	(void)read_first();
	ck_assert_double_eq(host.value[LS_METRIC_HOST_CPU_THROTTLED], 10);
	write_group("/a", 11);
	write_group("/b", 102);
	(void)read_first();
	ck_assert_double_eq(host.value[LS_METRIC_HOST_CPU_THROTTLED], 13);
	/* The first worker leaves: what remains goes on from there. */
	write_group("/a", 12);
	ls_source_worker_watch(&worker, ids + 1, 2);
	worker.read(worker.self, LS_CADENCE_FAST, 9, &host);
	ck_assert_double_eq(host.value[LS_METRIC_HOST_CPU_THROTTLED], 14);
}

LS_TEST(source_worker, worker_moved_to_another_cgroup_goes_on)
{
	tree_write(proc, "100/cgroup", "1:cpu:/a\n");
	write_group("/a", 10);
	write_group("/b", 500);
	ls_source_worker_watch(&worker, ids, 1);
	(void)read_first();
	tree_write(proc, "100/cgroup", "1:cpu:/b\n");
	(void)read_first();
	ck_assert_double_eq(host.value[LS_METRIC_HOST_CPU_THROTTLED], 10);
	write_group("/b", 501);
	(void)read_first();
	ck_assert_double_eq(host.value[LS_METRIC_HOST_CPU_THROTTLED], 11);
}

static void
write_kills(const char *group, int kills)
{
	char path[64], text[64];

	(void)snprintf(path, sizeof(path), "fs/cgroup%s/memory.events", group);
	(void)snprintf(text, sizeof(text), "low 0\noom 3\noom_kill %d\n", kills);
	tree_write(sys, path, text);
}

/* In its own group, or, once that is gone, in the group above; not long ago. */
LS_TEST_LOOP(source_worker, kill_for_lack_of_memory_is_seen_as_it_ends, 0, 2)
{
	const uint64_t now_ns = 5 * LS_WORKER_KILLED_NS;

	tree_write(root, "proc/self/mountinfo", v2_mounts);
	ck_assert_int_eq(worker.probe(worker.self), 0);
	tree_write(root, "proc/100/cgroup", "0::/pod/c0\n");
	tree_write(root, "proc/200/cgroup", "0::/pod\n");
	write_kills("", 7);
	write_kills("/c0", 2);
	ls_source_worker_watch(&worker, ids, 2);
	(void)read_first();
	ck_assert(!ls_source_worker_killed(&worker, ids[0].ring_id, now_ns));
	if (_i == 1)
		tree_remove(root, "sys/fs/cgroup/c0/memory.events");
	write_kills(_i == 0 ? "/c0" : "", 8);
	ck_assert(ls_source_worker_killed(&worker, ids[0].ring_id, now_ns));
	ck_assert(!ls_source_worker_killed(&worker, ids[0].ring_id,
		now_ns + LS_WORKER_KILLED_NS + 1));
	ck_assert(!ls_source_worker_killed(&worker, ids[2].ring_id, now_ns));
}

LS_TEST(source_worker, too_many_threads_are_not_measured)
{
	int i;

	for (i = 0; i <= LS_THREADS_PER_WORKER_MAX; i++)
		write_thread(100, 1000 + i, 1000, 0, 0);
	ls_source_worker_watch(&worker, ids, 1);
	ck_assert(!read_first()->present[LS_METRIC_JOB_CPU]);
}

LS_TEST(source_worker, this_process_is_measured)
{
	const struct ls_source_worker_id me = { { 5 }, getpid() };
	const struct ls_sample *s;
	struct ls_source real;

	ck_assert_int_eq(ls_source_worker_new("/proc", "/sys", &real), 0);
	ck_assert_int_eq(real.probe(real.self), 0);
	ls_source_worker_watch(&real, &me, 1);
	real.read(real.self, LS_CADENCE_FAST, 1, &host);
	s = ls_source_worker_sample(&real, me.ring_id);
	ck_assert_ptr_nonnull(s);
	ck_assert(s->present[LS_METRIC_JOB_THREADS]);
	ck_assert(s->present[LS_METRIC_JOB_RSS]);
	real.free(real.self);
	real.free(NULL);
}
