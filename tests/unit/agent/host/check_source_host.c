/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/source_host.h"

#include <stdio.h>
#include "tests/support/harness.h"
#include "tests/support/tree.h"

#define BOTH (LS_CADENCE_FAST | LS_CADENCE_SLOW)

static char root[256], proc[300], sys[300];
static struct ls_source host;
static struct ls_sample sample;

static void
setup(void)
{
	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	(void)snprintf(proc, sizeof(proc), "%s/proc", root);
	(void)snprintf(sys, sizeof(sys), "%s/sys", root);
	tree_write(root, "proc/x", "");
	memset(&sample, 0, sizeof(sample));
	ck_assert_int_eq(ls_source_host_new(proc, sys, &host), 0);
}

static void
teardown(void)
{
	host.free(host.self);
}

static void
write_snmp(const char *dir, int retransmits)
{
	char path[64], text[128];

	(void)snprintf(path, sizeof(path), "%s/snmp", dir);
	(void)snprintf(text, sizeof(text), "Tcp: OutSegs RetransSegs\nTcp: 1000 %d\n",
		retransmits);
	tree_write(proc, path, text);
}

static void
assert_retransmits(double want)
{
	host.read(host.self, LS_CADENCE_FAST, 1, &sample);
	ck_assert(sample.present[LS_METRIC_HOST_TCP_RETRANSMITS]);
	ck_assert_double_eq(sample.value[LS_METRIC_HOST_TCP_RETRANSMITS], want);
}

LS_CASE(source_host, setup, teardown);

LS_TEST(source_host, host_without_anything_is_absent)
{
	unsigned m;

	ck_assert_int_eq(host.probe(host.self), -LS_EABSENT);
	host.read(host.self, BOTH, 77, &sample);
	ck_assert_uint_eq(sample.t_mono_ns, 77);
	for (m = 0; m < LS_METRIC_COUNT; m++)
		ck_assert_msg(!sample.present[m], "%s", ls_metric_info(m)->name);
}

LS_TEST(source_host, host_value_that_vanishes_is_no_longer_measured)
{
	tree_write(proc, "loadavg", "1.50 0 0 1/2 3\n");
	ck_assert_int_eq(host.probe(host.self), 0);
	host.read(host.self, BOTH, 1, &sample);
	ck_assert_double_eq(sample.value[LS_METRIC_HOST_LOAD1], 1.5);
	tree_write(proc, "loadavg", "");
	host.read(host.self, BOTH, 2, &sample);
	ck_assert(!sample.present[LS_METRIC_HOST_LOAD1]);
}

LS_TEST(source_host, host_counts_whole_disks_only)
{
	tree_write(sys, "block/sda/size", "1\n");
	tree_write(sys, "block/dm-0/size", "1\n");
	tree_write(sys, "block/loop0/size", "1\n");
	tree_write(proc, "diskstats",
		"8 0 sda 10 0 0 0 0 0 0 0 0 0 0\n8 1 sda1 5 0 0 0 0 0 0 0 0 0 0\n"
		"9 0 dm-0 7 0 0 0 0 0 0 0 0 0 0\n7 0 loop0 9 0 0 0 0 0 0 0 0 0 0\n");
	host.read(host.self, BOTH, 1, &sample);
	ck_assert_double_eq(sample.value[LS_METRIC_HOST_DISK_READS], 10);
}

LS_TEST(source_host, host_reads_slow_files_only_when_due)
{
	tree_write(proc, "vmstat", "oom_kill 1\n");
	host.read(host.self, BOTH, 1, &sample);
	tree_write(proc, "vmstat", "oom_kill 2\n");
	host.read(host.self, LS_CADENCE_FAST, 2, &sample);
	ck_assert_double_eq(sample.value[LS_METRIC_HOST_OOM_KILLS], 1);
	host.read(host.self, BOTH, 3, &sample);
	ck_assert_double_eq(sample.value[LS_METRIC_HOST_OOM_KILLS], 2);
}

/* A file that cannot be read is named; of pressure only if the kernel has it. */
LS_TEST(source_host, files_that_cannot_be_read_are_named)
{
	struct ls_doctor d = { 0 };
	size_t named = 0;

	tree_write(proc, "pressure/cpu", "some avg10=0 avg60=0 avg300=0 total=1\n");
	tree_write(proc, "loadavg", "1.50 0 0 1/2 3\n");
	host.read(host.self, BOTH, 1, &sample);
	host.tell(host.self, &d);
	for (size_t i = 0; i < d.count; i++) {
		ck_assert_ptr_null(strstr(d.check[i].subject, "pressure/cpu"));
		ck_assert_ptr_null(strstr(d.check[i].subject, "loadavg"));
		named += strstr(d.check[i].subject, "pressure/io") != NULL &&
			d.check[i].status == LS_DOCTOR_WARN;
	}
	ck_assert_uint_eq(named, 1);
}

LS_TEST(source_host, tcp_counters_go_on_when_their_namespace_changes)
{
	write_snmp("net", 5);
	assert_retransmits(5);
	write_snmp("net", 8);
	assert_retransmits(8);
	write_snmp("42/net", 1000);
	ls_source_host_net_of(&host, 42);
	assert_retransmits(8); /* another namespace: nothing happened yet */
	write_snmp("42/net", 1003);
	assert_retransmits(11);
	write_snmp("43/net", 50);
	ls_source_host_net_of(&host, 43);
	assert_retransmits(11);
	ls_source_host_net_of(&host, 99); /* not readable: our own again */
	assert_retransmits(11);
	write_snmp("net", 9);
	assert_retransmits(12);
}

LS_TEST(source_host, this_machine_is_measured)
{
	struct ls_source real;

	ck_assert_int_eq(ls_source_host_new("/proc", "/sys", &real), 0);
	ck_assert_int_eq(real.probe(real.self), 0);
	real.read(real.self, BOTH, 1, &sample);
	ck_assert(sample.present[LS_METRIC_HOST_CPU_BUSY]);
	ck_assert(sample.present[LS_METRIC_HOST_MEM_AVAILABLE]);
	ck_assert(sample.present[LS_METRIC_AGENT_CPU]);
	ck_assert_double_gt(sample.value[LS_METRIC_AGENT_RSS], 0);
	real.free(real.self);
	real.free(NULL);
}
