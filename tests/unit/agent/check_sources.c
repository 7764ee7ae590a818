/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/sources.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include "proto/base/loop.h"
#include "tests/support/fake_metadata.h"
#include "tests/support/harness.h"
#include "tests/support/step_ring.h"
#include "tests/support/tree.h"

static const uint8_t kernel[16];
static char root[256];
static struct ls_agent_config config;
static struct ls_loop *loop;
static struct ls_sources *sources;
static struct ls_spool *spool;
static struct step_ring ring;
static struct ls_wire_report report;

static void
setup(void)
{
	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	tree_write(root, "steps/x", "");
	(void)snprintf(config.proc_root, sizeof(config.proc_root), "/proc");
	(void)snprintf(config.sys_root, sizeof(config.sys_root), "/sys");
	(void)snprintf(config.steps_dir, sizeof(config.steps_dir), "%s/steps", root);
	(void)snprintf(config.state_dir, sizeof(config.state_dir), "%s/state", root);
	ck_assert_int_eq(
		ls_spool_open(config.state_dir, LS_SPOOL_DEFAULT_BYTES, kernel, &spool),
		0);
	loop = ls_loop_new();
	ck_assert_ptr_nonnull(loop);
	ck_assert_int_eq(ls_sources_open(loop, &config, kernel, spool, NULL, &sources),
		0);
	step_ring_make(&ring, config.steps_dir, "a.ring", 7, 16);
	memset(&report, 0, sizeof(report));
}

static void
teardown(void)
{
	ls_sources_close(sources);
	ls_sources_close(NULL);
	ls_loop_free(loop);
	ls_spool_close(spool);
	step_ring_fini(&ring);
}

LS_CASE(sources, setup, teardown);

LS_TEST(sources, visible_worker_is_measured_and_travels_hot)
{
	const struct ls_sample *s;
	bool threads = false;
	size_t i;

	step_ring_lock(&ring);
	ls_sources_read(sources, LS_CADENCE_FAST | LS_CADENCE_SLOW, 1000);
	s = ls_sources_worker(sources, (const uint8_t[LS_RING_ID_BYTES]){ 7 });
	ck_assert_ptr_nonnull(s);
	threads = s->present[LS_METRIC_JOB_THREADS];
	ck_assert(threads);
	ck_assert_double_eq(s->value[LS_METRIC_JOB_THREADS], 1);
	ck_assert(ls_sources_host(sources)->present[LS_METRIC_HOST_CPU_BUSY]);
	ls_sources_fill(sources, &report);
	ck_assert_uint_eq(report.worker_count, 1);
	ck_assert_str_eq(report.workers[0].info.job, "job");
	ck_assert_uint_eq(report.hot_count, 2);
	ck_assert_uint_eq(report.hot[0].worker, 0);
	ck_assert_uint_ne(report.workers[0].number, 0);
	ck_assert_uint_eq(report.hot[1].worker, report.workers[0].number);
	ck_assert_uint_eq(report.live[0].worker, report.workers[0].number);
	for (i = 0; i < report.hot[1].count; i++)
		ck_assert_int_eq((int)ls_metric_info(report.hot[1].metric[i])->scope,
			LS_METRIC_SCOPE_JOB);
	ck_assert_uint_eq(report.live_count, 1);
}

LS_TEST(sources, worker_without_a_visible_process_is_known_but_not_measured)
{
	ls_sources_read(sources, LS_CADENCE_FAST, 1000);
	ls_sources_fill(sources, &report);
	ck_assert_uint_eq(report.worker_count, 1);
	ck_assert_uint_eq(report.hot_count, 1);
	ck_assert_ptr_null(
		ls_sources_worker(sources, (const uint8_t[LS_RING_ID_BYTES]){ 7 }));
}

LS_TEST(sources, lost_records_are_reported)
{
	uint64_t i;

	step_ring_lock(&ring);
	for (i = 0; i < 100; i++)
		step_ring_put(&ring, i, i + 1);
	ls_sources_read(sources, LS_CADENCE_FAST, 1000);
	ls_sources_fill(sources, &report);
	ck_assert_uint_eq(report.dropped_records, 85);
	ck_assert_uint_eq(ls_spool_next(spool), 4); /* a gap, and two runs of slots */
}

/* The group of this name; false if there is none. */
static bool
find_group(const char *name, struct ls_series_group *ret)
{
	size_t i;

	for (i = 0; i < LS_GROUPS_MAX; i++) {
		if (ls_series_look(ls_sources_series(sources), i, ret) &&
			strcmp(ret->name, name) == 0)
			return true;
	}
	return false;
}

static bool
has_series(const struct ls_series_group *g, const char *text)
{
	size_t i;

	for (i = 0; i < g->count; i++) {
		if (strcmp(g->text[i], text) == 0)
			return true;
	}
	return false;
}

LS_TEST(sources, every_measured_metric_is_in_one_group)
{
	struct ls_series_group fast, slow;
	const struct ls_sample *host;
	unsigned m;

	ls_sources_read(sources, LS_CADENCE_FAST | LS_CADENCE_SLOW, 1000);
	ls_sources_read(sources, LS_CADENCE_FAST, 2000);
	ls_sources_read(sources, 0, 3000); /* rings only */
	ck_assert(find_group("host.fast", &fast) && find_group("host.slow", &slow));
	ck_assert_uint_eq(fast.t_mono_ns, 2000);
	ck_assert_uint_eq(fast.readings, 2);
	ck_assert_uint_eq(slow.t_mono_ns, 1000);
	ck_assert_uint_eq(slow.readings, 1);
	host = ls_sources_host(sources);
	for (m = 0; m < LS_METRIC_COUNT; m++)
		ck_assert_int_eq(host->present[m],
			has_series(&fast, ls_metric_info(m)->name) +
				has_series(&slow, ls_metric_info(m)->name));
	ck_assert(has_series(&slow, "host.memory.paged_in_bytes_total"));
}

LS_TEST(sources, a_worker_is_a_group_while_it_is_measured)
{
	struct ls_series_group g;

	ls_sources_read(sources, LS_CADENCE_FAST, 1000);
	ck_assert(!find_group("worker.0", &g));
	step_ring_lock(&ring);
	ls_sources_read(sources, LS_CADENCE_FAST, 2000);
	ck_assert(find_group("worker.0", &g));
	ck_assert_uint_eq(g.t_mono_ns, 2000);
	ck_assert(has_series(&g, "job.threads{job=\"job\",rank=\"0\"}"));
	step_ring_unlock(&ring);
	ls_sources_read(sources, LS_CADENCE_FAST, 3000);
	ls_sources_read(sources, LS_CADENCE_FAST, 4000);
	ck_assert(!find_group("worker.0", &g));
}

static uint64_t
readings(const char *group)
{
	struct ls_series_group g;
	size_t i;

	for (i = 0; i < LS_GROUPS_MAX; i++) {
		if (ls_series_look(ls_sources_series(sources), i, &g) &&
			strcmp(g.name, group) == 0)
			return g.readings;
	}
	return 0;
}

LS_TEST(sources, lean_agents_read_what_they_cannot_do_without)
{
	uint64_t before;

	ls_sources_read(sources, LS_CADENCE_FAST | LS_CADENCE_SLOW, 1000);
	ls_sources_read(sources, LS_CADENCE_FAST | LS_CADENCE_SLOW, 2000);
	/* 0 on a machine without control groups */
	before = readings("host.neighbours");
	ls_sources_set_lean(sources, true);
	ls_sources_read(sources, LS_CADENCE_FAST | LS_CADENCE_SLOW, 3000);
	ck_assert_uint_eq(readings("host.neighbours"), before);
	ck_assert_uint_eq(readings("host.fast"), 3);
	ls_sources_set_lean(sources, false);
	ls_sources_read(sources, LS_CADENCE_FAST | LS_CADENCE_SLOW, 4000);
	ck_assert(before == 0 || readings("host.neighbours") > before);
}

LS_TEST(sources, workers_wait_for_who_this_host_is)
{
	struct fake_metadata server;
	uint64_t now = ls_loop_now(loop);
	int turns;

	ls_sources_close(sources);
	sources = NULL;
	fake_metadata_open(&server, loop);
	server.text[LS_METADATA_TPU_ENV] =
		"MEGASCALE_SLICE_ID: '1'\nMEGASCALE_NUM_SLICES: '2'\n";
	(void)snprintf(config.metadata_address, sizeof(config.metadata_address), "%s",
		server.address);
	ck_assert_int_eq(ls_sources_open(loop, &config, kernel, spool, NULL, &sources),
		0);
	config.metadata_address[0] = '\0';
	ls_sources_read(sources, LS_CADENCE_FAST | LS_CADENCE_SLOW, now);
	ls_sources_fill(sources, &report);
	ck_assert_uint_eq(report.worker_count, 0);
	for (turns = 0; !ls_place_is_settled(ls_sources_place(sources), now); turns++)
		ck_assert_int_eq(event_base_loop(ls_loop_base(loop), EVLOOP_ONCE), 0);
	ck_assert_int_gt(turns, 0);
	ls_sources_read(sources, LS_CADENCE_FAST | LS_CADENCE_SLOW, now);
	ls_sources_fill(sources, &report);
	ck_assert_uint_eq(report.worker_count, 1);
	ck_assert_str_eq(report.workers[0].info.slice, "1");
	server.text[LS_METADATA_TPU_ENV] = NULL;
	ls_identity_metadata((struct ls_identity *)(uintptr_t)ls_place_identity(
				     ls_sources_place(sources)),
		LS_METADATA_TPU_ENV, NULL, 0);
	ls_sources_fill(sources, &report);
	/* what was said of it stays */
	ck_assert_str_eq(report.workers[0].info.slice, "1");
	fake_metadata_close(&server);
}

/* The kernel kills in the worker's control group before the process has ended; what its
 * End says reaches the spool. */
LS_TEST(sources, worker_killed_for_lack_of_memory_is_told)
{
	struct ls_wire_bytes bytes;
	struct ls_wire_item item;
	static uint8_t buf[LS_REPORT_ITEMS_BYTES];
	const char *why;
	char path[64];
	size_t n;

	ls_sources_close(sources);
	(void)snprintf(config.proc_root, sizeof(config.proc_root), "%s/proc", root);
	(void)snprintf(config.sys_root, sizeof(config.sys_root), "%s/sys", root);
	step_ring_lock(&ring);
	tree_write(root, "proc/self/mountinfo",
		"41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	(void)snprintf(path, sizeof(path), "proc/%ld/cgroup", (long)ring.holder);
	tree_write(root, path, "0::/pod/c0\n");
	tree_write(root, "sys/fs/cgroup/pod/c0/memory.events", "oom_kill 0\n");
	ck_assert_int_eq(ls_sources_open(loop, &config, kernel, spool, NULL, &sources),
		0);
	ls_sources_read(sources, LS_CADENCE_FAST, 1000); /* the ring is found */
	ls_sources_read(sources, LS_CADENCE_FAST, 2000);
	tree_write(root, "sys/fs/cgroup/pod/c0/memory.events", "oom_kill 1\n");
	step_ring_unlock(&ring);
	ls_sources_read(sources, LS_CADENCE_FAST, 3000);
	ls_sources_read(sources, LS_CADENCE_FAST, 4000);
	ck_assert_int_eq(ls_spool_read(spool, buf, sizeof(buf), &bytes, 1, &n), 0);
	ck_assert_uint_eq(n, 1);
	ck_assert_int_eq(ls_wire_item_unpack(bytes.data, bytes.len, &item, &why), 0);
	ck_assert_int_eq((int)item.kind, (int)LS_WIRE_END);
	ck_assert_int_eq((int)item.how, (int)LS_END_MEMORY);
}
