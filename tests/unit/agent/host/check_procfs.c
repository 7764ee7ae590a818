/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/procfs.h"

#include <stdlib.h>
#include "tests/support/harness.h"

static struct ls_sample sample;

static void
setup(void)
{
	memset(&sample, 0, sizeof(sample));
}

static void
assert_value(enum ls_metric m, double want)
{
	ck_assert_msg(sample.present[m], "%s is not measured", ls_metric_info(m)->name);
	ck_assert_double_eq_tol(sample.value[m], want, 1e-6);
}

static unsigned
count_present(void)
{
	unsigned m, n = 0;

	for (m = 0; m < LS_METRIC_COUNT; m++)
		n += sample.present[m];
	return n;
}

static const char stat_text[] = "cpu  1000 200 300 40000 500 60 70 80 900 10\n"
				"cpu0 500 100 150 20000 250 30 35 40 450 5\n"
				"cpu1 500 100 150 20000 250 30 35 40 450 5\n"
				"intr 123456 7 8 9\n"
				"ctxt 2248890\n"
				"btime 1763690000\n"
				"processes 5678\n"
				"procs_running 3\n"
				"procs_blocked 1\n"
				"softirq 99 1 2 3\n";

LS_CASE(procfs, setup, NULL);

LS_TEST(procfs, schedstat_gives_the_wait_of_all_cpus)
{
	static const char text[] = "version 15\ntimestamp 4295\n"
				   "cpu0 0 0 0 0 0 0 100 1500000000 9\n"
				   "domain0 3 1 2 3 4 5 6 7 8 9\n"
				   "cpu1 0 0 0 0 0 0 100 500000000 9\n"
				   "cpu2 1 2 3\n";
	struct ls_sample s = { 0 };

	ls_procfs_runqueue(text, sizeof(text) - 1, &s);
	ck_assert(s.present[LS_METRIC_HOST_RUNQUEUE_WAIT]);
	ck_assert_double_eq_tol(s.value[LS_METRIC_HOST_RUNQUEUE_WAIT], 2.0, 1e-12);
	memset(&s, 0, sizeof(s));
	ls_procfs_runqueue("version 15\n", 11, &s);
	ck_assert(!s.present[LS_METRIC_HOST_RUNQUEUE_WAIT]);
}

LS_TEST(procfs, stat_gives_cpu_times_in_seconds)
{
	ls_procfs_stat(stat_text, strlen(stat_text), 100, &sample);
	assert_value(LS_METRIC_HOST_CPU_USER, 12);
	assert_value(LS_METRIC_HOST_CPU_SYSTEM, 3);
	assert_value(LS_METRIC_HOST_CPU_IDLE, 400);
	assert_value(LS_METRIC_HOST_CPU_IOWAIT, 5);
	assert_value(LS_METRIC_HOST_CPU_IRQ, 1.3);
	assert_value(LS_METRIC_HOST_CPU_STEAL, 0.8);
	assert_value(LS_METRIC_HOST_CPU_BUSY, 17.1);
	assert_value(LS_METRIC_HOST_CPU_COUNT, 2);
	assert_value(LS_METRIC_HOST_CONTEXT_SWITCHES, 2248890);
	assert_value(LS_METRIC_HOST_PROCS_RUNNING, 3);
	assert_value(LS_METRIC_HOST_PROCS_BLOCKED, 1);
}

LS_TEST(procfs, memory_texts_are_read_by_key)
{
	static const char meminfo[] =
		"MemTotal:       24684084 kB\nMemFree:        24202264 kB\n"
		"MemAvailable:   24219824 kB\nBuffers: 1 kB\n"
		"Cached:           313840 kB\nSwapCached: 5 kB\n"
		"SwapFree:              0 kB\nDirty: 6304 kB\n";
	static const char vmstat[] =
		"pgpgin 100\npgpgout 200\npgfault 9\npgmajfault 6610\n"
		"oom_kill 2\noom_kill_extra 3\n";

	ls_procfs_meminfo(meminfo, strlen(meminfo), &sample);
	assert_value(LS_METRIC_HOST_MEM_TOTAL, 24684084.0 * 1024);
	assert_value(LS_METRIC_HOST_MEM_FREE, 24202264.0 * 1024);
	assert_value(LS_METRIC_HOST_MEM_AVAILABLE, 24219824.0 * 1024);
	assert_value(LS_METRIC_HOST_MEM_CACHED, 313840.0 * 1024);
	assert_value(LS_METRIC_HOST_MEM_DIRTY, 6304.0 * 1024);
	assert_value(LS_METRIC_HOST_SWAP_FREE, 0);
	ls_procfs_vmstat(vmstat, strlen(vmstat), &sample);
	assert_value(LS_METRIC_HOST_MAJOR_FAULTS, 6610);
	assert_value(LS_METRIC_HOST_PAGES_IN, 102400);
	assert_value(LS_METRIC_HOST_PAGES_OUT, 204800);
	assert_value(LS_METRIC_HOST_OOM_KILLS, 2);
}

LS_TEST(procfs, loadavg_is_the_first_number)
{
	ls_procfs_loadavg("12.05 0.30 0.10 2/321 4567\n", 27, &sample);
	assert_value(LS_METRIC_HOST_LOAD1, 12.05);
	setup();
	ls_procfs_loadavg("12.05", 5, &sample); /* may be cut */
	ls_procfs_loadavg("12.5 ", 5, &sample);
	ls_procfs_loadavg("-1.05 ", 6, &sample);
	ck_assert_uint_eq(count_present(), 0);
}

LS_TEST(procfs, diskstats_sums_whole_disks_only)
{
	static const char text[] =
		" 254       0 vda 179214 6 10658586 86436 125778 23 7671732 111 0 20348 1 2 3\n"
		" 254       1 vda1 5 5 5 5 5 5 5 5 5 5 5\n"
		"   7       0 loop0 9 9 9 9 9 9 9 9 9 9 9\n"
		" 259       0 nvme0n1 10 0 2 0 20 0 4 0 0 1000 0\n";
	struct ls_procfs_disks disks = { 2, { "vda", "nvme0n1" } };

	ls_procfs_diskstats(text, strlen(text), &disks, &sample);
	assert_value(LS_METRIC_HOST_DISK_READS, 179224);
	assert_value(LS_METRIC_HOST_DISK_WRITES, 125798);
	assert_value(LS_METRIC_HOST_DISK_READ, 10658588.0 * 512);
	assert_value(LS_METRIC_HOST_DISK_WRITE, 7671736.0 * 512);
	assert_value(LS_METRIC_HOST_DISK_BUSY, 21.348);
	setup();
	disks.count = 0;
	ls_procfs_diskstats(text, strlen(text), &disks, &sample);
	ck_assert_uint_eq(count_present(), 0);
}

LS_TEST(procfs, net_dev_leaves_the_loopback_out)
{
	static const char text[] =
		"Inter-|   Receive                      |  Transmit\n"
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes ...\n"
		"    lo: 9999 9 9 9 0 0 0 0 9999 9 9 9 0 0 0 0\n"
		"  eth0:1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n"
		" veth1: 10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n";

	ls_procfs_net_dev(text, strlen(text), &sample);
	assert_value(LS_METRIC_HOST_NET_RX, 1010);
	assert_value(LS_METRIC_HOST_NET_TX, 2020);
	assert_value(LS_METRIC_HOST_NET_RX_DROPS, 2);
	assert_value(LS_METRIC_HOST_NET_TX_DROPS, 4);
	assert_value(LS_METRIC_HOST_NET_ERRORS, 4);
}

LS_TEST(procfs, snmp_goes_by_the_names_of_columns)
{
	static const char text[] =
		"Ip: Forwarding DefaultTTL\nIp: 1 64\n"
		"Tcp: RtoAlgorithm MaxConn CurrEstab InSegs OutSegs RetransSegs InErrs\n"
		"Tcp: 1 -1 5 100 6814 7 0\nUdp: InDatagrams\nUdp: 1\n";

	ls_procfs_snmp(text, strlen(text), &sample);
	assert_value(LS_METRIC_HOST_TCP_ESTABLISHED, 5);
	assert_value(LS_METRIC_HOST_TCP_SEGMENTS_OUT, 6814);
	assert_value(LS_METRIC_HOST_TCP_RETRANSMITS, 7);
}

LS_TEST(procfs, pressure_gives_totals_in_seconds)
{
	static const char text[] =
		"some avg10=1.00 avg60=0.50 avg300=0.10 total=12221985\n"
		"full avg10=0.00 avg60=0.00 avg300=0.00 total=10841902\n";

	ls_procfs_pressure(text, strlen(text), LS_METRIC_HOST_PSI_IO,
		LS_METRIC_HOST_PSI_IO_FULL, &sample);
	assert_value(LS_METRIC_HOST_PSI_IO, 12.221985);
	assert_value(LS_METRIC_HOST_PSI_IO_FULL, 10.841902);
	setup();
	ls_procfs_pressure(text, strlen(text), LS_METRIC_HOST_PSI_CPU, LS_METRIC_COUNT,
		&sample);
	ck_assert_uint_eq(count_present(), 1);
}

LS_TEST(procfs, pid_stat_survives_any_name)
{
	static const char text[] =
		"4242 (a) R 1 ) b) S 1 4242 4242 0 -1 4194304 100 200 17 3 10 20 0 0 20 0 12 0 "
		"12345 1000 50\n";

	ls_procfs_pid_stat(text, strlen(text), &sample);
	assert_value(LS_METRIC_JOB_MAJOR_FAULTS, 17);
	assert_value(LS_METRIC_JOB_THREADS, 12);
	setup();
	ls_procfs_pid_stat("1 2 3", 5, &sample);
	ls_procfs_pid_stat("", 0, &sample);
	ck_assert_uint_eq(count_present(), 0);
}

LS_TEST(procfs, thread_texts_are_read)
{
	static const char status[] = "Name:\tpython3\nUmask:\t0022\n"
				     "voluntary_ctxt_switches:\t150\n"
				     "nonvoluntary_ctxt_switches:\t25\n";
	struct ls_procfs_thread t = { 0 };

	ck_assert(ls_procfs_schedstat("1500 2500 30\n", 13, &t));
	ck_assert_uint_eq(t.run_ns, 1500);
	ck_assert_uint_eq(t.wait_ns, 2500);
	ck_assert(!ls_procfs_schedstat("1500 2500 3", 11, &t)); /* cut */
	ck_assert(!ls_procfs_schedstat("1500 x 3\n", 9, &t));
	ck_assert(ls_procfs_switches(status, strlen(status), &t));
	ck_assert_uint_eq(t.voluntary, 150);
	ck_assert_uint_eq(t.involuntary, 25);
	ck_assert(!ls_procfs_switches(status, strlen(status) - 1, &t));
	ls_procfs_statm("1000 250 30 1 0 200 0\n", 22, 4096, LS_METRIC_JOB_RSS,
		&sample);
	assert_value(LS_METRIC_JOB_RSS, 250 * 4096);
}

LS_TEST(procfs, mountinfo_finds_both_versions_of_cgroups)
{
	static const char text[] =
		"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
		"32 31 0:29 /a /sys/fs/cgroup/cpu rw shared:3 master:1 - cgroup cgroup rw,cpu\n"
		"33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
		"34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		"42 31 0:38 / /second rw - cgroup2 cgroup2 rw\n"
		"43 31\n";
	struct ls_procfs_cgroup_mounts m = { 0 };

	ls_procfs_mountinfo(text, strlen(text), &m);
	ck_assert(m.has_v2 && m.has_cpu && m.has_cpuacct);
	ck_assert_str_eq(m.v2.point, "/sys/fs/cgroup/unified");
	ck_assert_str_eq(m.cpu.point, "/sys/fs/cgroup/cpu");
	ck_assert_str_eq(m.cpu.root, "/a");
	ck_assert_str_eq(m.cpuacct.point, "/sys/fs/cgroup/cpuacct");
}

LS_TEST(procfs, cgroup_paths_and_counters_are_read)
{
	static const char text[] =
		"4:memory:/m\n3:cpu,cpuacct:/kubepods/pod:1/c\n0::/unified\nx\n";
	static const char v2[] = "usage_usec 1500000\nuser_usec 1\nnr_periods 5\n"
				 "nr_throttled 3\nthrottled_usec 250000\n";
	static const char v1[] =
		"nr_periods 0\nnr_throttled 2\nthrottled_time 5000000000\n";
	struct ls_procfs_cgroup_paths p;

	ls_procfs_cgroup(text, strlen(text), &p);
	ck_assert_str_eq(p.cpu, "/kubepods/pod:1/c");
	ck_assert_str_eq(p.cpuacct, "/kubepods/pod:1/c");
	ck_assert_str_eq(p.v2, "/unified");
	ls_procfs_cpu_stat(v2, strlen(v2), &sample);
	assert_value(LS_METRIC_HOST_CGROUP_CPU, 1.5);
	assert_value(LS_METRIC_HOST_CPU_THROTTLED, 0.25);
	assert_value(LS_METRIC_HOST_CPU_THROTTLED_PERIODS, 3);
	setup();
	ls_procfs_cpu_stat(v1, strlen(v1), &sample);
	assert_value(LS_METRIC_HOST_CPU_THROTTLED, 5);
	assert_value(LS_METRIC_HOST_CPU_THROTTLED_PERIODS, 2);
	ck_assert(!sample.present[LS_METRIC_HOST_CGROUP_CPU]);
	ls_procfs_cpuacct("2500000000\n", 11, &sample);
	assert_value(LS_METRIC_HOST_CGROUP_CPU, 2.5);
}

LS_TEST(procfs, what_cannot_be_read_is_not_measured)
{
	static const char *const bad[] = { "", "\n", "cpu\n", "cpu 1 2 3\n",
		"cpu a b c d e f g h\n", "cpu  99999999999999999999 0 0 0 0 0 0 0\n",
		"ctxt -5\nctxt\nctxt 1e5\n", "MemTotal: x kB\nMemFree:\n",
		"some total=\nfull total=-1\n", "Tcp: OutSegs\n",
		"Tcp: OutSegs\nIp: 5\n", "  eth0: 1 2 3\n", "0:cpu\n", "::::\n" };
	struct ls_procfs_disks disks = { 1, { "vda" } };
	struct ls_procfs_cgroup_mounts mounts = { 0 };
	struct ls_procfs_cgroup_paths paths;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		size_t len = strlen(bad[i]);

		ls_procfs_stat(bad[i], len, 100, &sample);
		ls_procfs_meminfo(bad[i], len, &sample);
		ls_procfs_diskstats(bad[i], len, &disks, &sample);
		ls_procfs_net_dev(bad[i], len, &sample);
		ls_procfs_snmp(bad[i], len, &sample);
		ls_procfs_pressure(bad[i], len, LS_METRIC_HOST_PSI_IO,
			LS_METRIC_HOST_PSI_IO_FULL, &sample);
		ls_procfs_mountinfo(bad[i], len, &mounts);
		ls_procfs_cgroup(bad[i], len, &paths);
		ck_assert_msg(count_present() == 0, "%s", bad[i]);
		ck_assert(!mounts.has_v2 && paths.cpu[0] == '\0');
	}
}

/* Any text may be cut: nothing is read beyond, and no number from a half. */
LS_TEST(procfs, a_text_cut_anywhere_gives_no_wrong_number)
{
	size_t len;

	for (len = 0; len < strlen(stat_text); len++) {
		char *part = malloc(len + 1);

		memcpy(part, stat_text, len);
		setup();
		ls_procfs_stat(part, len, 100, &sample);
		if (sample.present[LS_METRIC_HOST_CONTEXT_SWITCHES])
			assert_value(LS_METRIC_HOST_CONTEXT_SWITCHES, 2248890);
		if (sample.present[LS_METRIC_HOST_CPU_BUSY])
			assert_value(LS_METRIC_HOST_CPU_BUSY, 17.1);
		free(part);
	}
}
