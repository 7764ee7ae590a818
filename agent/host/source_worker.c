/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/source_worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "agent/collect/procfile.h"
#include "agent/host/procfs.h"

#define WORKER_TEXT_BYTES 16384 /* /proc/TID/status, with the masks of a large host */
#define WORKER_TID_MAX_BYTES 16

static const enum ls_metric worker_group_metrics[] = { LS_METRIC_HOST_CPU_THROTTLED,
	LS_METRIC_HOST_CGROUP_CPU, LS_METRIC_HOST_CPU_THROTTLED_PERIODS };
#define WORKER_GROUP_METRICS \
	(sizeof(worker_group_metrics) / sizeof(worker_group_metrics[0]))

/* The files of a process, then those of its control group. */
enum {
	WORKER_STAT,
	WORKER_STATM,
	WORKER_CGROUP,
	WORKER_CPU_STAT,
	WORKER_CPUACCT,
	WORKER_MEMORY, /* events of its group, */
	WORKER_MEMORY_ABOVE, /* and of the group above, which outlives it: a pod's */
	WORKER_FILES
};

struct worker_thread {
	pid_t tid;
	uint32_t turn; /* of the reading that saw it last */
	struct ls_procfs_thread used;
};

struct worker {
	struct ls_source_worker_id id;
	struct ls_sample sample;
	struct ls_procfile file[WORKER_FILES];
	DIR *tasks;
	uint32_t turn;
	size_t thread_count;
	struct worker_thread *threads; /* LS_THREADS_PER_WORKER_MAX of them */
	struct ls_procfs_thread ended; /* what threads that ended had used */
	struct ls_procfs_cgroup_paths paths;
	bool group_read; /* group_last holds a reading of this group */
	double group_last[WORKER_GROUP_METRICS];
	/* kills for lack of memory, by file; NaN: not read yet. When they rose, last; 0:
	 * never */
	double kills[WORKER_FILES - WORKER_MEMORY];
	uint64_t killed_ns;
};

struct source_worker {
	char proc_root[LS_PATH_MAX_BYTES], sys_root[LS_PATH_MAX_BYTES];
	double page_bytes;
	struct ls_procfs_cgroup_mounts mounts;
	size_t count;
	struct worker *workers[LS_RINGS_MAX];
	bool group_started[WORKER_GROUP_METRICS];
	double group_total[WORKER_GROUP_METRICS];
	char text[WORKER_TEXT_BYTES];
};

/* --- life of a worker ----------------------------------------------------- */

static void
worker_free(struct worker *w)
{
	if (w == NULL)
		return;
	for (size_t i = 0; i < WORKER_FILES; i++)
		ls_procfile_fini(&w->file[i]);
	if (w->tasks != NULL)
		(void)closedir(w->tasks); /* only read from */
	free(w->threads);
	free(w);
}

static struct worker *
worker_new(struct source_worker *s, const struct ls_source_worker_id *id)
{
	static const char *const names[] = { "stat", "statm", "cgroup" };
	struct worker *w = calloc(1, sizeof(*w));
	char path[64];

	if (w == NULL)
		return NULL;
	w->threads = calloc(LS_THREADS_PER_WORKER_MAX, sizeof(*w->threads));
	if (w->threads == NULL) {
		free(w);
		return NULL;
	}
	w->id = *id;
	for (size_t i = 0; i < WORKER_CPU_STAT; i++) {
		(void)snprintf(path, sizeof(path), "%ld/%s", (long)id->pid, names[i]);
		ls_procfile_init(&w->file[i], s->proc_root, path);
	}
	for (size_t i = WORKER_CPU_STAT; i < WORKER_FILES; i++)
		w->file[i].fd = -1;
	return w;
}

/* --- threads -------------------------------------------------------------- */

/* The entry of a thread; a new one where it is not known. NULL: too many. `hint` is
 * where to look. */
static struct worker_thread *
worker_find_thread(struct worker *w, pid_t tid, size_t hint)
{
	struct worker_thread *t;

	if (hint < w->thread_count && w->threads[hint].tid == tid)
		return &w->threads[hint];
	for (size_t i = 0; i < w->thread_count; i++) {
		if (w->threads[i].tid == tid)
			return &w->threads[i];
	}
	if (w->thread_count == LS_THREADS_PER_WORKER_MAX)
		return NULL;
	t = &w->threads[w->thread_count++];
	memset(t, 0, sizeof(*t));
	t->tid = tid;
	return t;
}

static void
worker_add_thread(struct ls_procfs_thread *sum, const struct ls_procfs_thread *one)
{
	sum->run_ns += one->run_ns;
	sum->wait_ns += one->wait_ns;
	sum->voluntary += one->voluntary;
	sum->involuntary += one->involuntary;
}

static void
worker_end_thread(struct worker *w, struct worker_thread *t)
{
	worker_add_thread(&w->ended, &t->used);
	memset(&t->used, 0, sizeof(t->used));
}

/* Reads one thread. Its switches are looked at only if it ran since: most threads
 * sleep. */
static bool
worker_read_thread(struct source_worker *s, struct worker *w, const char *name,
	size_t hint)
{
	struct ls_procfs_thread now = { 0 };
	char path[WORKER_TID_MAX_BYTES + sizeof("/schedstat")];
	struct worker_thread *t;
	size_t len;

	(void)snprintf(path, sizeof(path), "%.*s/schedstat", WORKER_TID_MAX_BYTES,
		name);
	if (ls_procfile_read_once(dirfd(w->tasks), path, s->text, sizeof(s->text),
		    &len) != 0 ||
		!ls_procfs_schedstat(s->text, len, &now))
		return true; /* ended while we looked */
	t = worker_find_thread(w, (pid_t)strtol(name, NULL, 10), hint);
	if (t == NULL)
		return false;
	t->turn = w->turn;
	if (now.run_ns == t->used.run_ns && now.wait_ns == t->used.wait_ns)
		return true;
	if (now.run_ns < t->used.run_ns || now.wait_ns < t->used.wait_ns)
		worker_end_thread(w, t); /* its number was given to a new thread */
	now.voluntary = t->used.voluntary;
	now.involuntary = t->used.involuntary;
	(void)snprintf(path, sizeof(path), "%.*s/status", WORKER_TID_MAX_BYTES, name);
	if (ls_procfile_read_once(dirfd(w->tasks), path, s->text, sizeof(s->text),
		    &len) == 0)
		(void)ls_procfs_switches(s->text, len,
			&now); /* else they stay as they were */
	t->used = now;
	return true;
}

/* Sums over the threads there are and were. */
static void
worker_sum_threads(struct worker *w)
{
	struct ls_procfs_thread sum;
	size_t i = 0, kept = 0;

	for (i = 0; i < w->thread_count; i++) {
		if (w->threads[i].turn != w->turn)
			worker_end_thread(w, &w->threads[i]);
		else
			w->threads[kept++] = w->threads[i];
	}
	w->thread_count = kept;
	sum = w->ended;
	for (i = 0; i < kept; i++)
		worker_add_thread(&sum, &w->threads[i].used);
	if (kept == 0)
		return;
	ls_sample_set(&w->sample, LS_METRIC_JOB_CPU, (double)sum.run_ns / 1e9);
	ls_sample_set(&w->sample, LS_METRIC_JOB_RUNQUEUE_WAIT,
		(double)sum.wait_ns / 1e9);
	ls_sample_set(&w->sample, LS_METRIC_JOB_VOLUNTARY, (double)sum.voluntary);
	ls_sample_set(&w->sample, LS_METRIC_JOB_INVOLUNTARY, (double)sum.involuntary);
}

static void
worker_read_threads(struct source_worker *s, struct worker *w)
{
	char path[LS_PATH_MAX_BYTES + 32];
	struct dirent *e;
	size_t hint = 0;

	if (w->tasks == NULL) {
		(void)snprintf(path, sizeof(path), "%s/%ld/task", s->proc_root,
			(long)w->id.pid);
		w->tasks = opendir(path);
		if (w->tasks == NULL)
			return;
	}
	w->turn++;
	rewinddir(w->tasks);
	while ((e = readdir(w->tasks)) != NULL) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		if (!worker_read_thread(s, w, e->d_name, hint++))
			return; /* too many: a part of a sum would mislead */
	}
	worker_sum_threads(w);
}

/* --- cgroups -------------------------------------------------------------- */

/*
 * Where the files of a group are: mount point + (path - root of the mount) + name. Not
 * visible where the group lies outside what is mounted here.
 */
static bool
worker_group_file(const struct source_worker *s, const struct ls_procfs_cgroup_mount *m,
	const char *group, const char *name, struct ls_procfile *ret_file)
{
	static const char sys[] = "/sys/";
	size_t root_len = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);
	char path[3 * LS_PATH_MAX_BYTES];
	const char *prefix = "", *point = m->point;

	if (group[0] != '/' || strncmp(group, m->root, root_len) != 0 ||
		(group[root_len] != '\0' && group[root_len] != '/') ||
		strstr(group, "/..") != NULL)
		return false;
	/* A /sys that is mounted elsewhere (--sys-root) holds the same hierarchy. */
	if (strncmp(point, sys, sizeof(sys) - 1) == 0) {
		prefix = s->sys_root;
		point += sizeof(sys) - 2;
	}
	(void)snprintf(path, sizeof(path), "%s%s/%s", point, group + root_len, name);
	ls_procfile_init(ret_file, prefix, path + (path[0] == '/'));
	return true;
}

/* Finds the files of a worker's cgroup; called when it begins and when it is moved. */
static void
worker_find_group(struct source_worker *s, struct worker *w)
{
	const struct ls_procfs_cgroup_mounts *m = &s->mounts;
	bool v1 = m->has_cpu && w->paths.cpu[0] != '\0';
	bool acct = m->has_cpuacct && w->paths.cpuacct[0] != '\0';
	const char *above = strrchr(w->paths.v2, '/');
	char group[sizeof(w->paths.v2)];

	for (size_t i = WORKER_CPU_STAT; i < WORKER_FILES; i++) {
		ls_procfile_fini(&w->file[i]);
		w->file[i].path[0] = '\0';
	}
	w->kills[0] = w->kills[1] = NAN;
	if (m->has_v2 && above != NULL) {
		(void)worker_group_file(s, &m->v2, w->paths.v2, "memory.events",
			&w->file[WORKER_MEMORY]);
		(void)snprintf(group, sizeof(group), "%.*s", (int)(above - w->paths.v2),
			w->paths.v2);
		if (group[0] != '\0')
			(void)worker_group_file(s, &m->v2, group, "memory.events",
				&w->file[WORKER_MEMORY_ABOVE]);
	}
	w->group_read = false;
	if (v1)
		(void)worker_group_file(s, &m->cpu, w->paths.cpu, "cpu.stat",
			&w->file[WORKER_CPU_STAT]);
	else if (m->has_v2)
		(void)worker_group_file(s, &m->v2, w->paths.v2, "cpu.stat",
			&w->file[WORKER_CPU_STAT]);
	if (acct)
		(void)worker_group_file(s, &m->cpuacct, w->paths.cpuacct,
			"cpuacct.usage", &w->file[WORKER_CPUACCT]);
}

/* Notes when a count of kills rose. The kernel counts before the process ends. */
static void
worker_read_kills(struct source_worker *s, struct worker *w, uint64_t now_mono_ns)
{
	size_t len;

	for (size_t i = 0; i < WORKER_FILES - WORKER_MEMORY; i++) {
		struct ls_sample one = { 0 };
		double kills;

		if (ls_procfile_read(&w->file[WORKER_MEMORY + i], s->text,
			    sizeof(s->text), &len) != 0)
			continue;
		/* its line oom_kill is that of vmstat */
		ls_procfs_vmstat(s->text, len, &one);
		kills = one.present[LS_METRIC_HOST_OOM_KILLS]
			? one.value[LS_METRIC_HOST_OOM_KILLS]
			: NAN;
		if (kills > w->kills[i])
			w->killed_ns = now_mono_ns;
		w->kills[i] = kills;
	}
}

static void
worker_read_group(struct source_worker *s, struct worker *w)
{
	struct ls_procfs_cgroup_paths paths;
	size_t len;

	if (ls_procfile_read(&w->file[WORKER_CGROUP], s->text, sizeof(s->text), &len) ==
		0) {
		ls_procfs_cgroup(s->text, len, &paths);
		if (memcmp(&paths, &w->paths, sizeof(paths)) != 0) {
			w->paths = paths;
			worker_find_group(s, w);
		}
	}
	if (ls_procfile_read(&w->file[WORKER_CPU_STAT], s->text, sizeof(s->text),
		    &len) == 0)
		ls_procfs_cpu_stat(s->text, len, &w->sample);
	if (ls_procfile_read(&w->file[WORKER_CPUACCT], s->text, sizeof(s->text),
		    &len) == 0)
		ls_procfs_cpuacct(s->text, len, &w->sample);
	worker_read_kills(s, w, w->sample.t_mono_ns);
}

/* True if a worker before this one is in the same cgroup. */
static bool
worker_group_counted(const struct source_worker *s, size_t me)
{
	for (size_t i = 0; i < me; i++) {
		if (strcmp(s->workers[i]->file[WORKER_CPU_STAT].path,
			    s->workers[me]->file[WORKER_CPU_STAT].path) == 0)
			return true;
	}
	return false;
}

/* Adds what the different cgroups grew by; the very first value starts the total. */
static void
worker_sum_groups(struct source_worker *s, struct ls_sample *into)
{
	for (size_t k = 0; k < WORKER_GROUP_METRICS; k++)
		ls_sample_unset(into, worker_group_metrics[k]);
	for (size_t i = 0; i < s->count; i++) {
		struct worker *w = s->workers[i];
		bool counted = worker_group_counted(s, i);

		for (size_t k = 0; k < WORKER_GROUP_METRICS; k++) {
			enum ls_metric m = worker_group_metrics[k];
			double v = w->sample.value[m];

			if (!w->sample.present[m])
				continue;
			if (!s->group_started[k])
				s->group_total[k] = v;
			else if (!counted && w->group_read && v > w->group_last[k])
				s->group_total[k] += v - w->group_last[k];
			s->group_started[k] = true;
			w->group_last[k] = v;
			ls_sample_set(into, m, s->group_total[k]);
		}
		w->group_read = true;
	}
}

/* --- the source ----------------------------------------------------------- */

static void
worker_read(struct source_worker *s, struct worker *w, uint64_t now_mono_ns)
{
	size_t len;

	memset(w->sample.present, 0, sizeof(w->sample.present));
	w->sample.t_mono_ns = now_mono_ns;
	worker_read_threads(s, w);
	if (ls_procfile_read(&w->file[WORKER_STAT], s->text, sizeof(s->text), &len) ==
		0)
		ls_procfs_pid_stat(s->text, len, &w->sample);
	if (ls_procfile_read(&w->file[WORKER_STATM], s->text, sizeof(s->text), &len) ==
		0)
		ls_procfs_statm(s->text, len, s->page_bytes, LS_METRIC_JOB_RSS,
			&w->sample);
	worker_read_group(s, w);
}

static int
source_worker_probe(void *self)
{
	struct source_worker *s = self;
	struct ls_procfile f;
	/* hosts with many containers: many mounts */
	char *text = malloc(LS_PROC_FILE_MAX_BYTES);
	size_t len;
	int rc;

	if (text == NULL)
		return -ENOMEM;
	ls_procfile_init(&f, s->proc_root, "self/mountinfo");
	rc = ls_procfile_read(&f, text, LS_PROC_FILE_MAX_BYTES, &len);
	memset(&s->mounts, 0, sizeof(s->mounts));
	if (rc == 0)
		ls_procfs_mountinfo(text, len, &s->mounts);
	ls_procfile_fini(&f);
	free(text);
	return rc == 0 ? 0 : -LS_EABSENT;
}

static void
source_worker_read(void *self, unsigned due, uint64_t now_mono_ns,
	struct ls_sample *into)
{
	struct source_worker *s = self;

	if (!(due & LS_CADENCE_FAST))
		return;
	for (size_t i = 0; i < s->count; i++)
		worker_read(s, s->workers[i], now_mono_ns);
	worker_sum_groups(s, into);
}

static void
source_worker_free(void *self)
{
	struct source_worker *s = self;

	if (s == NULL)
		return;
	for (size_t i = 0; i < s->count; i++)
		worker_free(s->workers[i]);
	free(s);
}

/* --- what there is to say ------------------------------------------------- */

static void
source_worker_tell(const void *self, struct ls_doctor *d)
{
	const struct source_worker *s = self;
	const struct ls_procfs_cgroup_mounts *m = &s->mounts;
	const char *subject;

	if (m->has_v2 || m->has_cpu || m->has_cpuacct)
		ls_doctor_addf(d, LS_DOCTOR_OK, "worker", "cgroups", "", "%s",
			m->has_cpu || m->has_cpuacct ? "version 1" : "version 2");
	else
		ls_doctor_add(d, LS_DOCTOR_WARN, "worker", "cgroups",
			"no cgroup with CPU counters is mounted: throttling is not measured",
			"mount the host's /sys/fs/cgroup, and name its /sys with --sys-root");
	for (size_t i = 0; i < s->count; i++) {
		const struct worker *w = s->workers[i];
		const bool *has = w->sample.present;

		if (w->sample.t_mono_ns == 0)
			continue; /* not read yet */
		subject = ls_doctor_text(d, "process %ld", (long)w->id.pid);
		if (!has[LS_METRIC_JOB_RUNQUEUE_WAIT])
			ls_doctor_addf(d, LS_DOCTOR_WARN, "worker", subject,
				"a kernel with CONFIG_SCHED_INFO, and at most "
				"1024 threads a worker",
				"its threads cannot be read (%zu known): run-queue wait is not "
				"measured",
				w->thread_count);
		else if (!has[LS_METRIC_HOST_CGROUP_CPU] &&
			!has[LS_METRIC_HOST_CPU_THROTTLED])
			ls_doctor_addf(d, LS_DOCTOR_WARN, "worker", subject,
				"mount the host's /sys and name it with --sys-root (in Kubernetes "
				"a hostPath)",
				"its cgroup is not visible here (%.120s): throttling is not "
				"measured",
				w->file[WORKER_CPU_STAT].path[0] != '\0'
					? w->file[WORKER_CPU_STAT].path
					: "not below what is mounted");
		else
			ls_doctor_addf(d, LS_DOCTOR_OK, "worker", subject, "",
				"%zu threads and its cgroup are measured",
				w->thread_count);
	}
}

int
ls_source_worker_new(const char *proc_root, const char *sys_root,
	struct ls_source *ret_source)
{
	struct source_worker *s = calloc(1, sizeof(*s));
	struct ls_source source = { "worker", s, source_worker_probe,
		source_worker_read, source_worker_tell, source_worker_free };

	if (s == NULL)
		return -ENOMEM;
	(void)snprintf(s->proc_root, sizeof(s->proc_root), "%s", proc_root);
	(void)snprintf(s->sys_root, sizeof(s->sys_root), "%s", sys_root);
	s->page_bytes = (double)sysconf(_SC_PAGESIZE);
	*ret_source = source;
	return 0;
}

static bool
worker_is(const struct ls_source_worker_id *a, const struct ls_source_worker_id *b)
{
	return a->pid == b->pid &&
		memcmp(a->ring_id, b->ring_id, LS_RING_ID_BYTES) == 0;
}

void
ls_source_worker_watch(const struct ls_source *source,
	const struct ls_source_worker_id *ids, size_t count)
{
	struct source_worker *s = source->self;
	struct worker *kept[LS_RINGS_MAX];
	size_t i, k, n = 0;

	LS_ASSERT(count <= LS_RINGS_MAX);
	for (i = 0; i < count; i++) {
		struct worker *w = NULL;

		for (k = 0; k < s->count && w == NULL; k++) {
			if (s->workers[k] == NULL ||
				!worker_is(&s->workers[k]->id, &ids[i]))
				continue;
			w = s->workers[k];
			s->workers[k] = NULL;
		}
		if (w == NULL && ids[i].pid > 0)
			w = worker_new(s, &ids[i]);
		if (w != NULL)
			kept[n++] =
				w; /* without memory it is not measured, and tried again */
	}
	for (k = 0; k < s->count; k++)
		worker_free(s->workers[k]);
	memcpy(s->workers, kept, n * sizeof(kept[0]));
	s->count = n;
}

static struct worker *
worker_find(const struct source_worker *s, const uint8_t ring_id[LS_RING_ID_BYTES])
{
	for (size_t i = 0; i < s->count; i++) {
		if (memcmp(s->workers[i]->id.ring_id, ring_id, LS_RING_ID_BYTES) == 0)
			return s->workers[i];
	}
	return NULL;
}

bool
ls_source_worker_killed(const struct ls_source *source,
	const uint8_t ring_id[LS_RING_ID_BYTES], uint64_t now_mono_ns)
{
	struct worker *w = worker_find(source->self, ring_id);

	if (w != NULL)
		worker_read_kills(source->self, w, now_mono_ns);
	return w != NULL && w->killed_ns > 0 &&
		now_mono_ns - w->killed_ns <= LS_WORKER_KILLED_NS;
}

const struct ls_sample *
ls_source_worker_sample(const struct ls_source *source,
	const uint8_t ring_id[LS_RING_ID_BYTES])
{
	const struct worker *w = worker_find(source->self, ring_id);

	return w != NULL ? &w->sample : NULL;
}
