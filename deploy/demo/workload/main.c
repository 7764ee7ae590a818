/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lockstep-workload - a real synchronous data-parallel training job on CPUs: N
 * processes with real input files, real gradients and a real all-reduce, and if wanted
 * one of them slowed by real means.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "proto/base/clock.h"
#include "proto/base/conf.h"
#include "proto/base/log.h"
#include "deploy/demo/workload/data.h"
#include "deploy/demo/workload/fault.h"
#include "deploy/demo/workload/netns.h"
#include "deploy/demo/workload/rank.h"
#include "deploy/demo/workload/report.h"

/* from SIGTERM until ranks that still run are killed */
#define MAIN_STOP_NS 4000000000u

static const struct ls_conf_option main_options[] = {
#define OPTION(name, type, field, dflt, min, max, unit, help)                        \
	{ name, LS_CONF_##type, offsetof(struct workload_options, field), dflt, min, \
		max, unit, help, 0 },
#include "deploy/demo/workload/options.def"
#undef OPTION
};

static const struct ls_conf_program main_program = {
	.name = "lockstep-workload",
	.section = "workload",
	.summary =
		"A real synchronous training job on CPUs, with one rank slowed by real means.\n"
		"\n"
		"--slow RANK:KIND:AMOUNT[@FROM[-TO]]: from step FROM (after a third of the run) to\n"
		"step TO (to the end of the job):\n"
		"  cpu_hog:N       N busy processes on the rank's CPU, inside its own cgroup\n"
		"  cpu_quota:P     its cgroup gets P percent of one CPU\n"
		"  slow_input:M    its reader scans M MiB, past the page cache, for every batch\n"
		"  pause:MS        it is stopped for MS ms about every 50 steps\n"
		"\n"
		"--netns PREFIX: the namespaces are there already (ip netns add), each with an IPv4\n"
		"address that the others reach. Needs root.\n"
		"\n"
		"--truth DIR: writes a line for each step of rank R to DIR/hR: the step number, and the\n"
		"time that the rank ran or waited for a CPU, in ns, from /proc/self/schedstat.",
	.usage = "lockstep-workload [OPTION]...",
	.options = main_options,
	.option_count = sizeof(main_options) / sizeof(main_options[0]),
};

struct job {
	struct workload_options options;
	struct workload_shared *shared;
	struct cgroup_set cgroups;
	struct fault fault;
	struct rank_place place[WORKLOAD_RANKS_MAX];
	pid_t pid[WORKLOAD_RANKS_MAX]; /* 0: gone, or not yet there */
	int cpu[WORKLOAD_RANKS_MAX];
	unsigned alive;
	int signal_fd;
	bool own_data; /* the data directory is ours to remove */
	pid_t janitor; /* 0: none */
	/* end of file on it, when all processes of the job are gone */
	int alive_fd;
	bool stopping, failed;
	uint64_t stop_at_ns; /* what is alive then is killed */
};

/* Pins rank r to the r-th CPU we may use, around the end of the list. */
static int
main_choose_cpus(struct job *j)
{
	int allowed[CPU_SETSIZE], n = 0, c;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return -errno;
	for (c = 0; c < CPU_SETSIZE; c++) {
		if (CPU_ISSET((size_t)c, &set))
			allowed[n++] = c;
	}
	for (int64_t r = 0; r < j->options.ranks; r++)
		j->cpu[r] = allowed[r % n];
	if (j->options.ranks % n != 0 && j->options.ranks > n)
		ls_log(LS_LOG_WARN, "workload",
			"%lld ranks on %d CPUs: some ranks share a CPU, so their "
			"speed differs",
			(long long)j->options.ranks, n);
	return 0;
}

static int
main_make_dirs(struct job *j)
{
	struct workload_options *o = &j->options;
	char path[WORKLOAD_PATH_BYTES];
	int rc = 0;

	if (o->data[0] == '\0') {
		const char *tmp = getenv("TMPDIR");

		(void)snprintf(o->data, sizeof(o->data), "%s/lockstep-workload-XXXXXX",
			tmp != NULL && *tmp != '\0' ? tmp : "/tmp");
		if (mkdtemp(o->data) == NULL)
			return -errno;
		j->own_data = true;
	} else if (mkdir(o->data, 0755) != 0 && errno != EEXIST) {
		return -errno;
	}
	if (mkdir(o->steps_root, 0755) != 0 && errno != EEXIST)
		ls_log(LS_LOG_WARN, "workload", "%s: %s; continuing without step marks",
			o->steps_root, strerror(errno));
	for (int64_t r = 0; r < o->ranks && rc == 0; r++) {
		(void)snprintf(path, sizeof(path), "%s/h%lld", o->steps_root,
			(long long)r);
		/* if this fails, so does opening the ring, and it says so */
		(void)mkdir(path, 0755);
		rc = data_make_shard(o->data, (unsigned)r, (uint64_t)o->seed);
	}
	return rc;
}

/* Removes what the job made besides its rings. */
static void
main_clean(const struct job *j)
{
	char path[WORKLOAD_PATH_BYTES];

	cgroup_remove(&j->cgroups);
	for (int64_t r = 0; j->own_data && r < j->options.ranks; r++) {
		data_shard_path(path, sizeof(path), j->options.data, (unsigned)r);
		(void)unlink(path);
	}
	if (j->own_data)
		(void)rmdir(j->options.data);
}

/*
 * The janitor is a process that cleans up when all others are gone, however they went:
 * each of them holds the writing end of its pipe. (Without one, the parent does it at
 * its own end.)
 */
static void
main_start_janitor(struct job *j)
{
	int fds[2];
	char c;

	if (pipe(fds) != 0)
		return;
	j->janitor = fork();
	if (j->janitor == 0) {
		(void)setsid(); /* SIGTERM and SIGINT are blocked, and stay so */
		close(fds[1]);
		while (read(fds[0], &c, 1) < 0 && errno == EINTR)
			;
		main_clean(j);
		_exit(0);
	}
	close(fds[0]);
	j->alive_fd = fds[1];
}

static void
main_finish(struct job *j)
{
	if (j->janitor <= 0) {
		main_clean(j);
		return;
	}
	close(j->alive_fd);
	while (waitpid(j->janitor, NULL, 0) < 0 && errno == EINTR)
		;
}

/* A directed ring of sockets over n members; out and in point to the first member's
 * fds. */
static int
main_connect(const char *netns, struct rank_place *first, unsigned n, unsigned stride,
	size_t out, size_t in)
{
	for (unsigned i = 0; n > 1 && i < n; i++) {
		char *from = (char *)(first + i * stride),
		     *to = (char *)(first + (i + 1) % n * stride);
		int fds[2], rc = 0;

		if (netns[0] != '\0')
			rc = netns_connect(netns, ((struct rank_place *)from)->rank,
				((struct rank_place *)to)->rank, fds);
		else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
			rc = -errno;
		if (rc != 0)
			return rc;
		memcpy(from + out, &fds[0], sizeof(int));
		memcpy(to + in, &fds[1], sizeof(int));
	}
	return 0;
}

static int
main_place_ranks(struct job *j)
{
	const unsigned slices = (unsigned)j->options.slices;
	const unsigned size = (unsigned)j->options.ranks / slices;
	int rc = 0;

	for (unsigned r = 0; r < slices * size; r++)
		j->place[r] = (struct rank_place){ .rank = r,
			.slice = r / size,
			.slice_size = size,
			.slices = slices,
			.next_fd = -1,
			.prev_fd = -1,
			.leader_next_fd = -1,
			.leader_prev_fd = -1 };
	for (unsigned s = 0; s < slices && rc == 0; s++)
		rc = main_connect(j->options.netns, &j->place[s * size], size, 1,
			offsetof(struct rank_place, next_fd),
			offsetof(struct rank_place, prev_fd));
	if (rc == 0)
		rc = main_connect(j->options.netns, j->place, slices, size,
			offsetof(struct rank_place, leader_next_fd),
			offsetof(struct rank_place, leader_prev_fd));
	return rc;
}

/* Closes the sockets of all ranks but `keep` (-1: all), so that a dead rank is an end
 * of file. */
static void
main_close_sockets(struct job *j, int keep)
{
	for (int r = 0; r < (int)j->options.ranks; r++) {
		struct rank_place *p = &j->place[r];
		const int fds[] = { p->next_fd, p->prev_fd, p->leader_next_fd,
			p->leader_prev_fd };
		unsigned i;

		for (i = 0; r != keep && i < 4; i++) {
			if (fds[i] >= 0)
				close(fds[i]);
		}
	}
}

/* The life of a rank's process. */
static void
main_be_rank(struct job *j, unsigned r, pid_t parent)
{
	sigset_t none;
	cpu_set_t cpu;
	int rc;

	sigemptyset(&none);
	CPU_ZERO(&cpu);
	CPU_SET((size_t)j->cpu[r], &cpu);
	/* Each rank has its own process group, so that Ctrl-C reaches the parent only. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent ||
		setpgid(0, 0) != 0 || sigprocmask(SIG_SETMASK, &none, NULL) != 0)
		_exit(1);
	/* Idle ranks may use any CPU. Only the slowed rank shares one CPU with its hogs. */
	if ((j->options.device_ms == 0 || (int)r == j->fault.plan.rank) &&
		sched_setaffinity(0, sizeof(cpu), &cpu) != 0)
		_exit(1);
	close(j->signal_fd);
	main_close_sockets(j, (int)r);
	rc = cgroup_join(&j->cgroups, r);
	if (rc == 0 && j->options.netns[0] != '\0')
		rc = netns_enter(j->options.netns, r);
	if (rc == 0)
		rc = rank_run(&j->options, &j->fault.plan, &j->place[r], j->shared);
	if (rc != 0 && rc != -ECONNRESET && rc != -EPIPE)
		ls_log(LS_LOG_ERR, "workload", "rank %u: %s", r, ls_err_text(rc));
	_exit(rc == 0 ? 0 : rc == -ECONNRESET || rc == -EPIPE ? 3 : 1);
}

static int
main_start_ranks(struct job *j)
{
	pid_t parent = getpid();

	for (unsigned r = 0; r < (unsigned)j->options.ranks; r++) {
		pid_t child = fork();

		if (child < 0)
			return -errno;
		if (child == 0)
			main_be_rank(j, r, parent);
		j->pid[r] = child;
		j->alive++;
	}
	main_close_sockets(j, -1);
	if (j->fault.plan.kind != FAULT_NONE) {
		j->fault.victim = j->pid[j->fault.plan.rank];
		j->fault.victim_cpu = j->cpu[j->fault.plan.rank];
	}
	return 0;
}

/* Asks all ranks to stop after the same step, a little ahead of where they are. */
static void
main_stop(struct job *j)
{
	uint64_t top = 0;

	if (j->stopping)
		return;
	j->stopping = true;
	j->stop_at_ns = ls_clock_mono_ns() + MAIN_STOP_NS;
	for (int64_t r = 0; r < j->options.ranks; r++) {
		uint64_t step = atomic_load(&j->shared->rank[r].step);

		if (step > top)
			top = step;
	}
	fault_end(&j->fault);
	atomic_store(&j->shared->stop_after, top + 3);
}

static void
main_kill_all(struct job *j)
{
	for (int64_t r = 0; r < j->options.ranks; r++) {
		if (j->pid[r] > 0)
			(void)kill(j->pid[r], SIGKILL);
	}
}

/* A rank that ends before its last step ends the job. */
static void
main_rank_gone(struct job *j, unsigned r, int status)
{
	unsigned long long step = atomic_load(&j->shared->rank[r].step);

	j->pid[r] = 0;
	j->alive--;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	if (!j->failed && !(WIFEXITED(status) && WEXITSTATUS(status) == 3)) {
		if (WIFSIGNALED(status))
			ls_log(LS_LOG_ERR, "workload",
				"rank %u (h%u) was ended by signal %d in step %llu", r,
				r, WTERMSIG(status), step);
		else
			ls_log(LS_LOG_ERR, "workload",
				"rank %u (h%u) failed in step %llu", r, r, step);
	}
	if (!j->stopping && !j->failed)
		j->stop_at_ns = ls_clock_mono_ns() + j->options.hold_ns;
	j->failed = true;
}

static void
main_reap(struct job *j)
{
	int status;
	pid_t child;

	while ((child = waitpid(-1, &status, WNOHANG)) > 0) {
		for (unsigned r = 0; r < (unsigned)j->options.ranks; r++) {
			if (j->pid[r] == child)
				main_rank_gone(j, r, status);
		}
		if (fault_reap(&j->fault, child) && !j->stopping && !j->failed) {
			ls_log(LS_LOG_ERR, "workload", "a hog process died");
			j->failed = true;
			main_kill_all(j);
		}
	}
}

static void
main_read_signals(struct job *j)
{
	struct signalfd_siginfo info;

	while (read(j->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			main_reap(j);
		else
			main_stop(j);
	}
}

/* Waits for a signal, but at most so long. */
static void
main_wait(struct job *j, uint64_t wait_ns)
{
	struct pollfd fd = { .fd = j->signal_fd, .events = POLLIN };
	const uint64_t most = 1000000000u;
	struct timespec ts = { 0, 0 };

	if (wait_ns > most)
		wait_ns = most;
	ts.tv_sec = (time_t)(wait_ns / 1000000000u);
	ts.tv_nsec = (long)(wait_ns % 1000000000u);
	(void)ppoll(&fd, 1, &ts, NULL);
	main_read_signals(j);
}

static void
main_run(struct job *j)
{
	uint64_t now_ns, wait_ns;
	int rc = main_start_ranks(j);

	if (rc != 0) {
		ls_log(LS_LOG_ERR, "workload", "cannot start the ranks: %s",
			ls_err_text(rc));
		j->failed = true;
		main_kill_all(j);
	}
	while (j->alive > 0) {
		now_ns = ls_clock_mono_ns();
		rc = fault_turn(&j->fault, j->shared, now_ns, &wait_ns);
		if (rc != 0 && !j->failed) {
			ls_log(LS_LOG_ERR, "workload", "cannot slow rank %d: %s",
				j->fault.plan.rank, ls_err_text(rc));
			j->failed = true;
			main_kill_all(j);
		}
		if ((j->stopping || j->failed) && now_ns > j->stop_at_ns)
			main_kill_all(j);
		main_wait(j, wait_ns);
	}
}

static int
main_signals(struct job *j)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return -errno;
	j->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return j->signal_fd < 0 ? -errno : 0;
}

static int
main_prepare(struct job *j)
{
	int rc = main_choose_cpus(j);

	if (rc == 0)
		rc = main_signals(j);
	if (rc == 0)
		rc = main_make_dirs(j);
	if (rc == 0)
		rc = main_place_ranks(j);
	if (rc != 0)
		return rc;
	j->shared = mmap(NULL, sizeof(*j->shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (j->shared == MAP_FAILED) {
		j->shared = NULL;
		return -errno;
	}
	cgroup_open(&j->cgroups, (unsigned)j->options.ranks);
	main_start_janitor(j);
	if (j->cgroups.version == 0)
		ls_log(LS_LOG_WARN, "workload",
			"no CPU cgroups (%s); continuing without: the hog also slows "
			"other ranks on its core",
			j->cgroups.why);
	j->fault.cgroups = &j->cgroups;
	j->fault.seed = (uint64_t)j->options.seed;
	if (j->fault.plan.kind == FAULT_CPU_QUOTA && j->cgroups.version == 0) {
		ls_log(LS_LOG_ERR, "workload",
			"cpu_quota needs a CPU cgroup, and there is none: %s",
			j->cgroups.why);
		return -ENOTSUP;
	}
	return 0;
}

static void
main_report(struct job *j)
{
	int rc;

	for (int64_t r = 0; r < j->options.ranks; r++) {
		if (j->shared->rank[r].ring_rc != 0)
			ls_log(LS_LOG_WARN, "workload",
				"rank %lld made no step ring in %s/h%lld: %s",
				(long long)r, j->options.steps_root, (long long)r,
				ls_err_text(j->shared->rank[r].ring_rc));
	}
	report_print(stdout, &j->options, &j->fault, j->shared);
	if (j->options.report[0] == '\0')
		return;
	rc = report_write(j->options.report, &j->options, &j->fault, j->shared);
	if (rc != 0) {
		ls_log(LS_LOG_ERR, "workload", "%s: %s", j->options.report,
			ls_err_text(rc));
		j->failed = true;
	}
}

static int
main_check_options(struct job *j, char *err, unsigned err_size)
{
	const struct workload_options *o = &j->options;

	if (o->ranks % o->slices != 0) {
		(void)snprintf(err, err_size,
			"--slices %lld does not divide --ranks %lld",
			(long long)o->slices, (long long)o->ranks);
		return -1;
	}
	if (o->netns[0] != '\0' &&
		netns_check(o->netns, (unsigned)o->ranks, err, err_size) != 0)
		return -1;
	return workload_fault_parse(o, &j->fault.plan, err, err_size);
}

int
main(int argc, char **argv)
{
	static struct job j; /* too large for a stack frame */
	char err[LS_LOG_LINE_MAX_BYTES];
	enum ls_conf_action action;
	int rc, rest;

	rc = ls_conf_load(&main_program, argc, argv, &j.options, &action, &rest, err,
		sizeof(err));
	if (rc == 0 && action == LS_CONF_EXIT)
		return 0;
	if (rc != 0 || main_check_options(&j, err, sizeof(err)) != 0) {
		fprintf(stderr, "lockstep-workload: %s\n", err);
		return 2;
	}
	if (action == LS_CONF_CHECK)
		return 0;
	rc = main_prepare(&j);
	if (rc != 0) {
		ls_log(LS_LOG_ERR, "workload", "cannot start: %s", ls_err_text(rc));
		j.failed = true;
	} else {
		main_run(&j);
		fault_end(&j.fault);
		if (!j.failed && j.alive == 0 && j.shared->rank[0].at_end.steps > 0)
			main_report(&j);
	}
	main_finish(&j);
	return j.failed ? 1 : 0;
}
