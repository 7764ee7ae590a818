/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/procfs.h"

#include <string.h>
#include "proto/base/text.h"

/* What is left of a text, line or word. */
struct span {
	const char *p, *end;
};

struct procfs_key {
	const char *key;
	enum ls_metric metric;
	double scale;
};

/* Takes the next line; false at the end. A last line without its newline may be cut:
 * left out. */
static bool
procfs_line(struct span *text, struct span *ret_line)
{
	const char *nl;

	if (text->p == text->end)
		return false;
	nl = memchr(text->p, '\n', (size_t)(text->end - text->p));
	if (nl == NULL)
		return false;
	ret_line->p = text->p;
	ret_line->end = nl;
	text->p = nl + 1;
	return true;
}

/* Takes the next word (between blanks); false if there is none. */
static bool
procfs_word(struct span *line, struct span *ret_word)
{
	const char *p = line->p;

	while (p < line->end && (*p == ' ' || *p == '\t'))
		p++;
	ret_word->p = p;
	while (p < line->end && *p != ' ' && *p != '\t')
		p++;
	ret_word->end = p;
	line->p = p;
	return ret_word->p < ret_word->end;
}

static bool
procfs_is(struct span word, const char *s)
{
	size_t len = strlen(s);

	return (size_t)(word.end - word.p) == len && memcmp(word.p, s, len) == 0;
}

static bool
procfs_starts(struct span word, const char *s)
{
	size_t len = strlen(s);

	return (size_t)(word.end - word.p) >= len && memcmp(word.p, s, len) == 0;
}

/* A word that is a decimal number below 2^64. */
static bool
procfs_u64(struct span word, uint64_t *ret_v)
{
	size_t len = (size_t)(word.end - word.p);

	return len > 0 && ls_text_digits(word.p, len, UINT64_MAX, ret_v) == len;
}

/* The next word as a number. */
static bool
procfs_next(struct span *line, uint64_t *ret_v)
{
	struct span word;

	return procfs_word(line, &word) && procfs_u64(word, ret_v);
}

/* Numbers of a line up to max; how many there were before the first that is none. */
static size_t
procfs_numbers(struct span *line, uint64_t *v, size_t max)
{
	size_t n = 0;

	while (n < max && procfs_next(line, &v[n]))
		n++;
	return n;
}

/* Lines "key value ..." (or "key: value ..."), of which the keys of a table are wanted.
 */
static void
procfs_keys(const char *text, size_t len, const struct procfs_key *keys, size_t count,
	struct ls_sample *into)
{
	struct span all = { text, text + len }, line, word;
	uint64_t v;

	while (procfs_line(&all, &line)) {
		if (!procfs_word(&line, &word))
			continue;
		if (word.end[-1] == ':')
			word.end--;
		for (size_t i = 0; i < count; i++) {
			if (!procfs_is(word, keys[i].key))
				continue;
			if (procfs_next(&line, &v))
				ls_sample_set(into, keys[i].metric,
					(double)v * keys[i].scale);
			break;
		}
	}
}

#define PROCFS_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What a number of a line is, in so many parts of the unit. Rows of one metric that follow
 * each other add up. */
struct procfs_column {
	enum ls_metric metric;
	unsigned at;
	double per;
};

#define PROCFS_COLUMNS_MAX 12

/* Adds the numbers of a line to the sums; false if there are less than count. */
static bool
procfs_add(struct span line, double *sum, size_t count)
{
	uint64_t v[PROCFS_COLUMNS_MAX];

	if (procfs_numbers(&line, v, count) < count)
		return false;
	while (count-- > 0)
		sum[count] += (double)v[count];
	return true;
}

static void
procfs_columns(const double *sum, const struct procfs_column *c, size_t count,
	struct ls_sample *into)
{
	for (size_t i = 0; i < count; i++)
		ls_sample_set(into, c[i].metric,
			(i > 0 && c[i - 1].metric == c[i].metric
					? into->value[c[i].metric]
					: 0) +
				sum[c[i].at] / c[i].per);
}

/* --- the host ------------------------------------------------------------- */

/* The line of all CPUs: user nice system idle iowait irq softirq steal ... */
static void
procfs_stat_cpu(struct span line, double ticks_hz, struct ls_sample *into)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COUNT };
	const struct procfs_column columns[] = {
		{ LS_METRIC_HOST_CPU_USER, USER, ticks_hz },
		{ LS_METRIC_HOST_CPU_USER, NICE, ticks_hz },
		{ LS_METRIC_HOST_CPU_SYSTEM, SYSTEM, ticks_hz },
		{ LS_METRIC_HOST_CPU_IDLE, IDLE, ticks_hz },
		{ LS_METRIC_HOST_CPU_IOWAIT, IOWAIT, ticks_hz },
		{ LS_METRIC_HOST_CPU_IRQ, IRQ, ticks_hz },
		{ LS_METRIC_HOST_CPU_IRQ, SOFTIRQ, ticks_hz },
		{ LS_METRIC_HOST_CPU_STEAL, STEAL, ticks_hz },
		{ LS_METRIC_HOST_CPU_BUSY, USER, ticks_hz },
		{ LS_METRIC_HOST_CPU_BUSY, NICE, ticks_hz },
		{ LS_METRIC_HOST_CPU_BUSY, SYSTEM, ticks_hz },
		{ LS_METRIC_HOST_CPU_BUSY, IRQ, ticks_hz },
		{ LS_METRIC_HOST_CPU_BUSY, SOFTIRQ, ticks_hz },
		{ LS_METRIC_HOST_CPU_BUSY, STEAL, ticks_hz },
	};
	double v[COUNT] = { 0 };

	if (procfs_add(line, v, COUNT))
		procfs_columns(v, columns, PROCFS_COUNT(columns), into);
}

void
ls_procfs_stat(const char *text, size_t len, double ticks_hz, struct ls_sample *into)
{
	static const struct procfs_key keys[] = {
		{ "ctxt", LS_METRIC_HOST_CONTEXT_SWITCHES, 1 },
		{ "procs_running", LS_METRIC_HOST_PROCS_RUNNING, 1 },
		{ "procs_blocked", LS_METRIC_HOST_PROCS_BLOCKED, 1 },
	};
	struct span all = { text, text + len }, line, word;
	uint64_t cpus = 0;

	while (procfs_line(&all, &line) && procfs_word(&line, &word)) {
		if (!procfs_starts(word, "cpu"))
			break; /* the CPUs come first */
		if (procfs_is(word, "cpu"))
			procfs_stat_cpu(line, ticks_hz, into);
		else
			cpus++;
	}
	if (cpus > 0)
		ls_sample_set(into, LS_METRIC_HOST_CPU_COUNT, (double)cpus);
	procfs_keys(text, len, keys, PROCFS_COUNT(keys), into);
}

void
ls_procfs_meminfo(const char *text, size_t len, struct ls_sample *into)
{
	static const struct procfs_key keys[] = {
		{ "MemTotal", LS_METRIC_HOST_MEM_TOTAL, 1024 },
		{ "MemFree", LS_METRIC_HOST_MEM_FREE, 1024 },
		{ "MemAvailable", LS_METRIC_HOST_MEM_AVAILABLE, 1024 },
		{ "Cached", LS_METRIC_HOST_MEM_CACHED, 1024 },
		{ "Dirty", LS_METRIC_HOST_MEM_DIRTY, 1024 },
		{ "SwapFree", LS_METRIC_HOST_SWAP_FREE, 1024 },
	};

	procfs_keys(text, len, keys, PROCFS_COUNT(keys), into);
}

void
ls_procfs_vmstat(const char *text, size_t len, struct ls_sample *into)
{
	static const struct procfs_key keys[] = {
		{ "pgmajfault", LS_METRIC_HOST_MAJOR_FAULTS, 1 },
		{ "pgpgin", LS_METRIC_HOST_PAGES_IN, 1024 },
		{ "pgpgout", LS_METRIC_HOST_PAGES_OUT, 1024 },
		{ "oom_kill", LS_METRIC_HOST_OOM_KILLS, 1 },
	};

	procfs_keys(text, len, keys, PROCFS_COUNT(keys), into);
}

void
ls_procfs_loadavg(const char *text, size_t len, struct ls_sample *into)
{
	struct span line = { text, text + len }, word, whole, part;
	uint64_t a, b;
	const char *dot;

	if (!procfs_word(&line, &word) || word.end == line.end)
		return; /* a last word may be cut */
	dot = memchr(word.p, '.', (size_t)(word.end - word.p));
	if (dot == NULL)
		return;
	whole.p = word.p;
	whole.end = dot;
	part.p = dot + 1;
	part.end = word.end;
	if (part.end - part.p != 2 || !procfs_u64(whole, &a) || !procfs_u64(part, &b))
		return;
	ls_sample_set(into, LS_METRIC_HOST_LOAD1, (double)a + (double)b / 100);
}

void
ls_procfs_runqueue(const char *text, size_t len, struct ls_sample *into)
{
	/* of the numbers after cpuN; versions 15 to 17 */
	enum { WAIT_NS = 7, COUNT = 9 };
	struct span all = { text, text + len }, line, word;
	double sum[COUNT] = { 0 };
	bool any = false;

	while (procfs_line(&all, &line) && procfs_word(&line, &word))
		any |= procfs_starts(word, "cpu") && !procfs_is(word, "cpu") &&
			procfs_add(line, sum, COUNT);
	if (any)
		ls_sample_set(into, LS_METRIC_HOST_RUNQUEUE_WAIT, sum[WAIT_NS] / 1e9);
}

static bool
procfs_is_disk(struct span name, const struct ls_procfs_disks *disks)
{
	for (size_t i = 0; i < disks->count; i++) {
		if (procfs_is(name, disks->name[i]))
			return true;
	}
	return false;
}

void
ls_procfs_diskstats(const char *text, size_t len, const struct ls_procfs_disks *disks,
	struct ls_sample *into)
{
	/* Fields after the name; a sector is 512 bytes whatever the disk (iostats.rst).
	 */
	enum {
		READS = 0,
		READ_SECTORS = 2,
		READ_MS = 3,
		WRITES = 4,
		WRITE_SECTORS = 6,
		WRITE_MS = 7,
		IN_FLIGHT = 8,
		BUSY_MS = 9,
		COUNT
	};
	static const struct procfs_column columns[] = {
		{ LS_METRIC_HOST_DISK_READS, READS, 1 },
		{ LS_METRIC_HOST_DISK_WRITES, WRITES, 1 },
		{ LS_METRIC_HOST_DISK_READ, READ_SECTORS, 1.0 / 512 },
		{ LS_METRIC_HOST_DISK_WRITE, WRITE_SECTORS, 1.0 / 512 },
		{ LS_METRIC_HOST_DISK_BUSY, BUSY_MS, 1000 },
		{ LS_METRIC_HOST_DISK_READ_TIME, READ_MS, 1000 },
		{ LS_METRIC_HOST_DISK_WRITE_TIME, WRITE_MS, 1000 },
		{ LS_METRIC_HOST_DISK_IN_FLIGHT, IN_FLIGHT, 1 },
	};
	struct span all = { text, text + len }, line, name;
	double sum[COUNT] = { 0 };
	uint64_t v[2]; /* major and minor */
	bool any = false;

	while (procfs_line(&all, &line))
		any |= procfs_numbers(&line, v, 2) == 2 && procfs_word(&line, &name) &&
			procfs_is_disk(name, disks) && procfs_add(line, sum, COUNT);
	if (any)
		procfs_columns(sum, columns, PROCFS_COUNT(columns), into);
}

void
ls_procfs_net_dev(const char *text, size_t len, struct ls_sample *into)
{
	/* Fields after the colon: receive bytes packets errs drop ..., transmit from
	 * the ninth. */
	enum {
		RX_BYTES = 0,
		RX_ERRS = 2,
		RX_DROP = 3,
		TX_BYTES = 8,
		TX_ERRS = 10,
		TX_DROP,
		COUNT
	};
	static const struct procfs_column columns[] = {
		{ LS_METRIC_HOST_NET_RX, RX_BYTES, 1 },
		{ LS_METRIC_HOST_NET_TX, TX_BYTES, 1 },
		{ LS_METRIC_HOST_NET_RX_DROPS, RX_DROP, 1 },
		{ LS_METRIC_HOST_NET_TX_DROPS, TX_DROP, 1 },
		{ LS_METRIC_HOST_NET_ERRORS, RX_ERRS, 1 },
		{ LS_METRIC_HOST_NET_ERRORS, TX_ERRS, 1 },
	};
	struct span all = { text, text + len }, line, head, name;
	double sum[COUNT] = { 0 };
	bool any = false;

	while (procfs_line(&all, &line)) {
		head.p = line.p;
		head.end = memchr(line.p, ':', (size_t)(line.end - line.p));
		if (head.end == NULL)
			continue; /* the two lines of headings */
		line.p = head.end + 1;
		any |= procfs_word(&head, &name) && !procfs_is(name, "lo") &&
			procfs_add(line, sum, COUNT);
	}
	if (any)
		procfs_columns(sum, columns, PROCFS_COUNT(columns), into);
}

void
ls_procfs_snmp(const char *text, size_t len, struct ls_sample *into)
{
	static const struct procfs_key keys[] = {
		{ "RetransSegs", LS_METRIC_HOST_TCP_RETRANSMITS, 1 },
		{ "OutSegs", LS_METRIC_HOST_TCP_SEGMENTS_OUT, 1 },
		{ "CurrEstab", LS_METRIC_HOST_TCP_ESTABLISHED, 1 },
	};
	struct span all = { text, text + len }, names, values, name, value;
	uint64_t v;

	while (procfs_line(&all, &names)) {
		if (procfs_starts(names, "Tcp:"))
			break;
	}
	if (!procfs_line(&all, &values) || !procfs_starts(values, "Tcp:"))
		return;
	while (procfs_word(&names, &name) && procfs_word(&values, &value)) {
		for (size_t i = 0; i < PROCFS_COUNT(keys); i++) {
			if (procfs_is(name, keys[i].key) && procfs_u64(value, &v))
				ls_sample_set(into, keys[i].metric, (double)v);
		}
	}
}

void
ls_procfs_pressure(const char *text, size_t len, enum ls_metric some,
	enum ls_metric full, struct ls_sample *into)
{
	struct span all = { text, text + len }, line, word;
	enum ls_metric m;
	uint64_t us;

	while (procfs_line(&all, &line) && procfs_word(&line, &word)) {
		m = procfs_is(word, "some")	  ? some
			: procfs_is(word, "full") ? full
						  : LS_METRIC_COUNT;
		while (m != LS_METRIC_COUNT && procfs_word(&line, &word)) {
			if (!procfs_starts(word, "total="))
				continue;
			word.p += strlen("total=");
			if (procfs_u64(word, &us))
				ls_sample_set(into, m, (double)us / 1e6);
		}
	}
}

/* --- a worker ------------------------------------------------------------- */

void
ls_procfs_pid_stat(const char *text, size_t len, struct ls_sample *into)
{
	/* The name may hold anything, so fields are counted from its last bracket:
	 * field 3 on. */
	enum { AFTER_NAME = 3, MAJFLT = 12, NUM_THREADS = 20 };
	const char *bracket = len > 0 ? memrchr(text, ')', len) : NULL;
	struct span line = { text, text + len }, word;
	uint64_t v;

	if (bracket == NULL)
		return;
	line.p = bracket + 1;
	for (int field = AFTER_NAME; field <= NUM_THREADS && procfs_word(&line, &word);
		field++) {
		if (word.end == line.end || !procfs_u64(word, &v))
			continue;
		if (field == MAJFLT)
			ls_sample_set(into, LS_METRIC_JOB_MAJOR_FAULTS, (double)v);
		else if (field == NUM_THREADS)
			ls_sample_set(into, LS_METRIC_JOB_THREADS, (double)v);
	}
}

void
ls_procfs_statm(const char *text, size_t len, double page_bytes, enum ls_metric m,
	struct ls_sample *into)
{
	struct span all = { text, text + len }, line;
	uint64_t v[2];

	if (procfs_line(&all, &line) && procfs_numbers(&line, v, 2) == 2)
		ls_sample_set(into, m, (double)v[1] * page_bytes);
}

bool
ls_procfs_schedstat(const char *text, size_t len, struct ls_procfs_thread *into)
{
	struct span all = { text, text + len }, line;
	uint64_t v[3];

	if (!procfs_line(&all, &line) || procfs_numbers(&line, v, 3) < 3)
		return false;
	into->run_ns = v[0];
	into->wait_ns = v[1];
	return true;
}

bool
ls_procfs_switches(const char *text, size_t len, struct ls_procfs_thread *into)
{
	struct span all = { text, text + len }, line, word;
	unsigned found = 0;
	uint64_t v;

	while (procfs_line(&all, &line)) {
		if (!procfs_word(&line, &word) || !procfs_next(&line, &v))
			continue;
		if (procfs_is(word, "voluntary_ctxt_switches:")) {
			into->voluntary = v;
			found |= 1;
		} else if (procfs_is(word, "nonvoluntary_ctxt_switches:")) {
			into->involuntary = v;
			found |= 2;
		}
	}
	return found == 3;
}

/* --- control groups ------------------------------------------------------- */

/* Copies a path; false, and "", if it is too long (it is then as good as not there). */
static bool
procfs_path(char *dst, struct span s)
{
	size_t len = (size_t)(s.end - s.p);

	if (len >= LS_PATH_MAX_BYTES || memchr(s.p, '\0', len) != NULL)
		len = 0;
	memcpy(dst, s.p, len);
	dst[len] = '\0';
	return len > 0;
}

/* True if the comma-separated list holds the word. */
static bool
procfs_list_has(struct span list, const char *s)
{
	struct span word;
	const char *comma;

	while (list.p < list.end) {
		comma = memchr(list.p, ',', (size_t)(list.end - list.p));
		word.p = list.p;
		word.end = comma != NULL ? comma : list.end;
		if (procfs_is(word, s))
			return true;
		list.p = comma != NULL ? comma + 1 : list.end;
	}
	return false;
}

static void
procfs_mount(bool *has, struct ls_procfs_cgroup_mount *m, struct span point,
	struct span root)
{
	if (!*has)
		*has = procfs_path(m->point, point) && procfs_path(m->root, root);
}

void
ls_procfs_mountinfo(const char *text, size_t len, struct ls_procfs_cgroup_mounts *into)
{
	struct span all = { text, text + len }, line, word, root, point, type, super;
	bool ok;

	while (procfs_line(&all, &line)) {
		/* id parent major:minor root point options [optional]... - type source
		 * super */
		ok = procfs_word(&line, &word) && procfs_word(&line, &word) &&
			procfs_word(&line, &word) && procfs_word(&line, &root) &&
			procfs_word(&line, &point);
		while (ok && !procfs_is(word, "-"))
			ok = procfs_word(&line, &word);
		if (!ok || !procfs_word(&line, &type) || !procfs_word(&line, &word) ||
			!procfs_word(&line, &super))
			continue;
		if (procfs_is(type, "cgroup2")) {
			procfs_mount(&into->has_v2, &into->v2, point, root);
		} else if (procfs_is(type, "cgroup")) {
			if (procfs_list_has(super, "cpu"))
				procfs_mount(&into->has_cpu, &into->cpu, point, root);
			if (procfs_list_has(super, "cpuacct"))
				procfs_mount(&into->has_cpuacct, &into->cpuacct, point,
					root);
		}
	}
}

void
ls_procfs_cgroup(const char *text, size_t len, struct ls_procfs_cgroup_paths *into)
{
	struct span all = { text, text + len }, line, controllers;
	const char *colon;

	memset(into, 0, sizeof(*into));
	while (procfs_line(&all, &line)) {
		/* id:controllers:path */
		colon = memchr(line.p, ':', (size_t)(line.end - line.p));
		if (colon == NULL)
			continue;
		controllers.p = colon + 1;
		colon = memchr(controllers.p, ':', (size_t)(line.end - controllers.p));
		if (colon == NULL)
			continue;
		controllers.end = colon;
		line.p = colon + 1;
		if (line.p == line.end || *line.p != '/')
			continue;
		if (controllers.p == controllers.end)
			(void)procfs_path(into->v2, line);
		if (procfs_list_has(controllers, "cpu"))
			(void)procfs_path(into->cpu, line);
		if (procfs_list_has(controllers, "cpuacct"))
			(void)procfs_path(into->cpuacct, line);
	}
}

void
ls_procfs_cpu_stat(const char *text, size_t len, struct ls_sample *into)
{
	static const struct procfs_key keys[] = {
		{ "usage_usec", LS_METRIC_HOST_CGROUP_CPU, 1e-6 }, /* v2 */
		{ "throttled_usec", LS_METRIC_HOST_CPU_THROTTLED, 1e-6 }, /* v2 */
		{ "throttled_time", LS_METRIC_HOST_CPU_THROTTLED, 1e-9 }, /* v1 */
		{ "nr_throttled", LS_METRIC_HOST_CPU_THROTTLED_PERIODS, 1 },
	};

	procfs_keys(text, len, keys, PROCFS_COUNT(keys), into);
}

void
ls_procfs_cpuacct(const char *text, size_t len, struct ls_sample *into)
{
	struct span all = { text, text + len }, line;
	uint64_t ns;

	if (procfs_line(&all, &line) && procfs_next(&line, &ns))
		ls_sample_set(into, LS_METRIC_HOST_CGROUP_CPU, (double)ns / 1e9);
}
