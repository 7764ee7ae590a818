/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/source_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/collect/dirlist.h"
#include "agent/collect/procfile.h"
#include "agent/host/procfs.h"
#include "proto/base/clock.h"

#define HOST_FILE_METRICS_MAX 12
/* Kernel, include/linux/proc_ns.h: PROC_PID_INIT_INO, the same on every machine. */
#define HOST_FIRST_PID_NAMESPACE "pid:[4026531836]"

#define HOST_FILES ((size_t)11)

struct source_host;

/* One file: what it gives, how often it is read, and how. */
struct host_file {
	const char *path;
	enum ls_cadence cadence;
	void (*parse)(const char *text, size_t len, struct ls_sample *into);
	/* in place of parse, where the text alone does not say it */
	void (*parse_of)(const struct source_host *h, const struct host_file *f,
		size_t len, struct ls_sample *into);
	size_t metric_count;
	enum ls_metric metric[HOST_FILE_METRICS_MAX];
};

/* A counter that continues over a change of its source. */
struct host_splice {
	enum ls_metric metric;
	bool started;
	double total, offset;
};

struct source_host {
	char proc_root[LS_PATH_MAX_BYTES], sys_root[LS_PATH_MAX_BYTES];
	double ticks_hz, page_bytes;
	struct ls_procfile file[HOST_FILES];
	int read_rc[HOST_FILES]; /* how the last reading of each went */
	struct ls_procfile own_snmp, job_snmp;
	pid_t net_pid;
	bool net_of_job; /* the last reading was the job's */
	bool net_changed; /* the next one is of another process */
	struct host_splice splice[2];
	struct ls_procfs_disks disks;
	char text[LS_PROC_FILE_MAX_BYTES];
};

static void
host_parse_stat(const struct source_host *h, const struct host_file *f, size_t len,
	struct ls_sample *into)
{
	(void)f;
	ls_procfs_stat(h->text, len, h->ticks_hz, into);
}

static void
host_parse_disks(const struct source_host *h, const struct host_file *f, size_t len,
	struct ls_sample *into)
{
	(void)f;
	ls_procfs_diskstats(h->text, len, &h->disks, into);
}

static void
host_parse_pressure(const struct source_host *h, const struct host_file *f, size_t len,
	struct ls_sample *into)
{
	ls_procfs_pressure(h->text, len, f->metric[0],
		f->metric_count > 1 ? f->metric[1] : LS_METRIC_COUNT, into);
}

static void
host_parse_own(const struct source_host *h, const struct host_file *f, size_t len,
	struct ls_sample *into)
{
	ls_procfs_statm(h->text, len, h->page_bytes, f->metric[1], into);
	ls_sample_set(into, f->metric[0], (double)ls_clock_cpu_ns() / 1e9);
}

#define M(id) LS_METRIC_##id
static const struct host_file host_files[HOST_FILES] = {
	{ "stat", LS_CADENCE_FAST, NULL, host_parse_stat, 11,
		{ M(HOST_CPU_BUSY), M(HOST_CPU_STEAL), M(HOST_CPU_USER),
			M(HOST_CPU_SYSTEM), M(HOST_CPU_IDLE), M(HOST_CPU_IOWAIT),
			M(HOST_CPU_IRQ), M(HOST_CPU_COUNT), M(HOST_CONTEXT_SWITCHES),
			M(HOST_PROCS_RUNNING), M(HOST_PROCS_BLOCKED) } },
	{ "meminfo", LS_CADENCE_FAST, ls_procfs_meminfo, NULL, 6,
		{ M(HOST_MEM_AVAILABLE), M(HOST_MEM_TOTAL), M(HOST_MEM_FREE),
			M(HOST_MEM_CACHED), M(HOST_MEM_DIRTY), M(HOST_SWAP_FREE) } },
	{ "vmstat", LS_CADENCE_SLOW, ls_procfs_vmstat, NULL, 4,
		{ M(HOST_MAJOR_FAULTS), M(HOST_PAGES_IN), M(HOST_PAGES_OUT),
			M(HOST_OOM_KILLS) } },
	{ "schedstat", LS_CADENCE_FAST, ls_procfs_runqueue, NULL, 1,
		{ M(HOST_RUNQUEUE_WAIT) } },
	{ "diskstats", LS_CADENCE_FAST, NULL, host_parse_disks, 8,
		{ M(HOST_DISK_READ), M(HOST_DISK_WRITE), M(HOST_DISK_READS),
			M(HOST_DISK_WRITES), M(HOST_DISK_BUSY), M(HOST_DISK_READ_TIME),
			M(HOST_DISK_WRITE_TIME), M(HOST_DISK_IN_FLIGHT) } },
	{ "net/dev", LS_CADENCE_FAST, ls_procfs_net_dev, NULL, 5,
		{ M(HOST_NET_RX), M(HOST_NET_TX), M(HOST_NET_RX_DROPS),
			M(HOST_NET_TX_DROPS), M(HOST_NET_ERRORS) } },
	{ "loadavg", LS_CADENCE_FAST, ls_procfs_loadavg, NULL, 1, { M(HOST_LOAD1) } },
	{ "pressure/cpu", LS_CADENCE_FAST, NULL, host_parse_pressure, 1,
		{ M(HOST_PSI_CPU) } },
	{ "pressure/io", LS_CADENCE_FAST, NULL, host_parse_pressure, 2,
		{ M(HOST_PSI_IO), M(HOST_PSI_IO_FULL) } },
	{ "pressure/memory", LS_CADENCE_FAST, NULL, host_parse_pressure, 2,
		{ M(HOST_PSI_MEMORY), M(HOST_PSI_MEMORY_FULL) } },
	{ "self/statm", LS_CADENCE_FAST, NULL, host_parse_own, 2,
		{ M(AGENT_CPU), M(AGENT_RSS) } },
};

static const enum ls_metric host_tcp[] = { M(HOST_TCP_RETRANSMITS),
	M(HOST_TCP_SEGMENTS_OUT), M(HOST_TCP_ESTABLISHED) };
#define HOST_TCP (sizeof(host_tcp) / sizeof(host_tcp[0]))

/* Whole disks are the entries of /sys/block; what is stacked or made of memory counts
 * twice. */
static bool
host_is_whole_disk(const char *name)
{
	static const char *const not_disks[] = { ".", "loop", "ram", "zram", "dm-",
		"md", "sr", "fd", "nbd" };

	for (size_t i = 0; i < sizeof(not_disks) / sizeof(not_disks[0]); i++) {
		if (strncmp(name, not_disks[i], strlen(not_disks[i])) == 0)
			return false;
	}
	return strlen(name) < LS_DISK_NAME_MAX_BYTES;
}

static void
host_list_disks(struct source_host *h)
{
	char path[LS_PATH_MAX_BYTES];
	const struct dirent64 *e;
	struct ls_dirlist dir;

	h->disks.count = 0;
	if (ls_procfile_path(path, sizeof(path), h->sys_root, "block") != 0)
		return;
	if (ls_dirlist_open(&dir, path) != 0)
		return;
	while (h->disks.count < LS_DISKS_MAX && (e = ls_dirlist_next(&dir)) != NULL) {
		if (host_is_whole_disk(e->d_name))
			memcpy(h->disks.name[h->disks.count++], e->d_name,
				strlen(e->d_name) + 1);
	}
	ls_dirlist_close(&dir);
}

static void
host_read_file(struct source_host *h, size_t i, struct ls_sample *into)
{
	const struct host_file *f = &host_files[i];
	size_t k, len;

	for (k = 0; k < f->metric_count; k++)
		ls_sample_unset(into, f->metric[k]);
	h->read_rc[i] = ls_procfile_read(&h->file[i], h->text, sizeof(h->text), &len);
	if (h->read_rc[i] != 0)
		return;
	if (f->parse != NULL)
		f->parse(h->text, len, into);
	else
		f->parse_of(h, f, len, into);
}

/* Continues a counter: the first reading of a new source stands for the last of the
 * old. */
static void
host_splice(struct host_splice *s, bool changed, struct ls_sample *into)
{
	double v = into->value[s->metric];

	if (!into->present[s->metric])
		return;
	if (s->started && changed)
		s->offset = s->total - v;
	s->started = true;
	s->total = v + s->offset;
	into->value[s->metric] = s->total;
}

static void
host_read_tcp(struct source_host *h, struct ls_sample *into)
{
	bool of_job = false, changed;
	size_t i, len;
	int rc = -ENOENT;

	for (i = 0; i < HOST_TCP; i++)
		ls_sample_unset(into, host_tcp[i]);
	if (h->net_pid > 0)
		rc = ls_procfile_read(&h->job_snmp, h->text, sizeof(h->text), &len);
	if (rc == 0)
		of_job = true;
	else
		rc = ls_procfile_read(&h->own_snmp, h->text, sizeof(h->text), &len);
	if (rc != 0)
		return;
	ls_procfs_snmp(h->text, len, into);
	changed = of_job != h->net_of_job || h->net_changed;
	h->net_of_job = of_job;
	h->net_changed = false;
	host_splice(&h->splice[0], changed, into);
	host_splice(&h->splice[1], changed, into);
}

static int
host_probe(void *self)
{
	struct source_host *h = self;
	int rc = -LS_EABSENT;
	size_t i, len;

	host_list_disks(h);
	for (i = 0; i < HOST_FILES; i++) {
		h->read_rc[i] =
			ls_procfile_read(&h->file[i], h->text, sizeof(h->text), &len);
		if (h->read_rc[i] == 0)
			rc = 0;
	}
	return rc;
}

static void
host_read(void *self, unsigned due, uint64_t now_mono_ns, struct ls_sample *into)
{
	struct source_host *h = self;

	if (due & LS_CADENCE_SLOW)
		host_list_disks(h);
	for (size_t i = 0; i < HOST_FILES; i++) {
		if (due & (unsigned)host_files[i].cadence)
			host_read_file(h, i, into);
	}
	if (!(due & LS_CADENCE_FAST))
		return;
	host_read_tcp(h, into);
	into->t_mono_ns = now_mono_ns;
}

static void
host_free(void *self)
{
	struct source_host *h = self;

	if (h == NULL)
		return;
	for (size_t i = 0; i < HOST_FILES; i++)
		ls_procfile_fini(&h->file[i]);
	ls_procfile_fini(&h->own_snmp);
	ls_procfile_fini(&h->job_snmp);
	free(h);
}

/* --- what there is to say ------------------------------------------------- */

static bool
host_is_pressure(size_t file)
{
	return strncmp(host_files[file].path, "pressure/", 9) == 0;
}

static void
host_tell_files(const struct source_host *h, struct ls_doctor *d)
{
	size_t i, readable = 0, pressure = 0;
	const char *subject;

	for (i = 0; i < HOST_FILES; i++) {
		readable += h->read_rc[i] == 0;
		pressure += host_is_pressure(i) && h->read_rc[i] == 0;
	}
	for (i = 0; i < HOST_FILES; i++) {
		/* none of them: the row below says why */
		if (h->read_rc[i] == 0 || (host_is_pressure(i) && pressure == 0))
			continue;
		subject =
			ls_doctor_text(d, "%.40s/%s", h->proc_root, host_files[i].path);
		if (readable > 0 && host_files[i].parse == ls_procfs_runqueue) {
			ls_doctor_add(d, LS_DOCTOR_NONE, "host", subject,
				"this kernel has no run-queue wait for the whole "
				"host (CONFIG_SCHEDSTATS); the wait of the workers' "
				"threads is still measured",
				"");
			continue;
		}
		ls_doctor_addf(d, LS_DOCTOR_WARN, "host", subject,
			"mount the host's /proc and name it with --proc-root",
			"cannot be read (%s): its counters are not measured",
			ls_err_text(h->read_rc[i]));
	}
	if (readable == 0)
		ls_doctor_addf(d, LS_DOCTOR_FAIL, "host", "/proc",
			"mount the host's /proc and name it with --proc-root",
			"nothing can be read below %.100s", h->proc_root);
	else
		ls_doctor_addf(d, LS_DOCTOR_OK, "host", "/proc", "",
			"%zu of %zu files read below %.100s", readable, HOST_FILES,
			h->proc_root);
	if (pressure > 0)
		ls_doctor_addf(d, LS_DOCTOR_OK, "host", "/proc/pressure", "",
			"%zu of 3 files read", pressure);
	else
		ls_doctor_add(d, LS_DOCTOR_WARN, "host", "/proc/pressure",
			"no pressure stall information: contention for CPU, memory and disk is "
			"not measured",
			"add psi=1 to the kernel's command line (GRUB_CMDLINE_LINUX in "
			"/etc/default/grub, then update-grub) and reboot");
	if (h->disks.count == 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "host", "disks",
			"mount the host's /sys and name it with --sys-root",
			"no disk below %.100s/block: disk counters are not measured",
			h->sys_root);
}

bool
ls_source_host_has_pids(const char *proc_root)
{
	char path[2 * LS_PATH_MAX_BYTES], link[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/self/ns/pid", proc_root);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	return strcmp(link, HOST_FIRST_PID_NAMESPACE) == 0;
}

/*
 * Whether our network devices are those of the host: a file below net/ has another
 * inode in each namespace, and unlike /proc/PID/ns/net anybody may ask for it. Only pid
 * 1 of the host's own pid namespace is the host's.
 */
static void
host_tell_network(const struct source_host *h, struct ls_doctor *d)
{
	char path[2 * LS_PATH_MAX_BYTES];
	struct stat first, own;

	if (!ls_source_host_has_pids(h->proc_root)) {
		ls_doctor_add(d, LS_DOCTOR_NONE, "host", "namespaces",
			"this container has its own process ids: its network "
			"namespace cannot be identified",
			"if this is Kubernetes: hostPID: true in the DaemonSet");
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/1/net/dev", h->proc_root);
	if (stat(path, &first) != 0)
		return; /* nothing is known, nothing is said */
	(void)snprintf(path, sizeof(path), "%s/self/net/dev", h->proc_root);
	if (stat(path, &own) != 0)
		return;
	if (first.st_ino == own.st_ino)
		ls_doctor_add(d, LS_DOCTOR_OK, "host", "network namespace",
			"the host's", "");
	else
		ls_doctor_add(d, LS_DOCTOR_WARN, "host", "network namespace",
			"not the host's: host.net.* counts this container's own devices",
			"hostNetwork: true in the DaemonSet, or run the agent outside the container");
}

static void
host_tell(const void *self, struct ls_doctor *d)
{
	host_tell_files(self, d);
	host_tell_network(self, d);
}

int
ls_source_host_new(const char *proc_root, const char *sys_root,
	struct ls_source *ret_source)
{
	struct source_host *h = calloc(1, sizeof(*h));
	struct ls_source s = { "host", h, host_probe, host_read, host_tell, host_free };

	if (h == NULL)
		return -ENOMEM;
	(void)snprintf(h->proc_root, sizeof(h->proc_root), "%s", proc_root);
	(void)snprintf(h->sys_root, sizeof(h->sys_root), "%s", sys_root);
	h->ticks_hz = (double)sysconf(_SC_CLK_TCK);
	h->page_bytes = (double)sysconf(_SC_PAGESIZE);
	h->splice[0].metric = M(HOST_TCP_RETRANSMITS);
	h->splice[1].metric = M(HOST_TCP_SEGMENTS_OUT);
	for (size_t i = 0; i < HOST_FILES; i++)
		ls_procfile_init(&h->file[i], proc_root, host_files[i].path);
	ls_procfile_init(&h->own_snmp, proc_root, "net/snmp");
	ls_procfile_init(&h->job_snmp, proc_root, "0/net/snmp");
	*ret_source = s;
	return 0;
}

void
ls_source_host_net_of(const struct ls_source *source, pid_t pid)
{
	struct source_host *h = source->self;
	char path[64];

	if (pid == h->net_pid)
		return;
	ls_procfile_fini(&h->job_snmp);
	(void)snprintf(path, sizeof(path), "%ld/net/snmp", (long)pid);
	ls_procfile_init(&h->job_snmp, h->proc_root, path);
	h->net_pid = pid;
	h->net_changed = true;
}
