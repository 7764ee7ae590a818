/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "agent/client/lockstep.h"

/*
 * What a step mark costs the training process. Each line is "name value unit".
 *
 *   mark_c_ns             a mark in a tight loop: whole steps of 8 marks, divided by the marks
 *   mark_c_paced_ns       median of one mark when marks are 2 ms apart (cold caches)
 *   mark_datagram_paced_ns  median of one Unix datagram to a sleeping reader, same loop
 *   mark_c_paced_ratio    the two divided
 *   mark_c_allocations    heap bytes that 1,000 steps took
 *   mark_c_syscalls       0: a process that may do nothing but exit survived 1,000 steps
 */

enum { TIGHT_STEPS = 200000, ROUNDS = 9, PACED = 400, MARKS = 8 };

static double
bench_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int
bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
bench_median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), bench_compare);
	return v[n / 2];
}

/* A step as training code marks it: 8 calls. */
static void
bench_step(uint64_t n)
{
	lockstep_step_begin(n);
	lockstep_phase(LOCKSTEP_INPUT_WAIT);
	lockstep_phase(LOCKSTEP_COMPUTE);
	lockstep_sync_enter(LOCKSTEP_BARRIER_ICI);
	lockstep_sync_exit();
	lockstep_work(LOCKSTEP_TOKENS, 4096);
	lockstep_peer(1, 0.001, -1);
	lockstep_step_end();
}

/* The least of several rounds: others on the machine only add. */
static double
bench_tight(void)
{
	double best = 1e18;
	unsigned round;
	uint64_t i;

	for (round = 0; round < ROUNDS; round++) {
		double begin = bench_now(), each;

		for (i = 0; i < TIGHT_STEPS; i++)
			bench_step(i);
		each = (bench_now() - begin) / (double)TIGHT_STEPS / MARKS;
		if (each < best)
			best = each;
	}
	return best;
}

static void
bench_reader(int fd)
{
	char buf[64];

	while (read(fd, buf, sizeof(buf)) > 0)
		;
	_exit(0);
}

/* Marks and datagrams in turn, 2 ms apart; the reader of the datagrams sleeps in
 * read(2). */
static int
bench_paced(double *ret_mark_ns, double *ret_datagram_ns)
{
	static double mark[PACED], datagram[PACED];
	char record[64] = { 0 };
	int pair[2];
	pid_t reader;
	unsigned i;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0)
		return -errno;
	reader = fork();
	if (reader < 0)
		return -errno;
	if (reader == 0) {
		close(pair[0]);
		bench_reader(pair[1]);
	}
	close(pair[1]);
	lockstep_step_begin(0);
	for (i = 0; i < PACED; i++) {
		const struct timespec pause = { 0, 2000000 };
		double begin;

		(void)nanosleep(&pause, NULL);
		begin = bench_now();
		lockstep_phase(i % 2 ? LOCKSTEP_COMPUTE : LOCKSTEP_H2D);
		mark[i] = bench_now() - begin;
		(void)nanosleep(&pause, NULL);
		begin = bench_now();
		if (send(pair[0], record, sizeof(record), 0) < 0)
			break;
		datagram[i] = bench_now() - begin;
	}
	lockstep_step_end();
	(void)send(pair[0], record, 0, 0); /* an empty datagram ends the reader */
	close(pair[0]);
	(void)waitpid(reader, NULL, 0);
	if (i < PACED)
		return -EIO;
	*ret_mark_ns = bench_median(mark, PACED);
	*ret_datagram_ns = bench_median(datagram, PACED);
	return 0;
}

/* From here on any system call but exit_group kills the process. (Strict mode also
 * forbids the TSC.) */
static int
bench_forbid_syscalls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : -errno;
}

/* 0: no system call in 1,000 steps; 1: there was one; else -errno, not measured. */
static int
bench_syscalls(void)
{
	pid_t child = fork();
	int status;
	uint64_t i;

	if (child < 0)
		return -errno;
	if (child == 0) {
		/* The child is a job of its own: it opens its own ring. */
		if (lockstep_open(NULL) != 0 || bench_forbid_syscalls() != 0)
			_exit(3);
		for (i = 0; i < 1000; i++)
			bench_step(i);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child)
		return -errno;
	if (WIFEXITED(status))
		return WEXITSTATUS(status) == 0 ? 0 : -ENOTSUP;
	return 1;
}

static void
bench_remove_dir(const char *dir)
{
	pid_t child = fork();

	if (child == 0) {
		(void)execlp("rm", "rm", "-rf", dir, (char *)NULL);
		_exit(127);
	}
	if (child > 0)
		(void)waitpid(child, NULL, 0);
}

int
main(void)
{
	char dir[] = "/tmp/lockstep-bench-XXXXXX";
	double mark_ns = 0, datagram_ns = 1;
	size_t heap;
	uint64_t i;
	int rc;

	if (mkdtemp(dir) == NULL || setenv("LOCKSTEP_STEPS_DIR", dir, 1) != 0) {
		perror("bench_mark");
		return 1;
	}
	rc = lockstep_open(NULL);
	if (rc != 0) {
		fprintf(stderr, "bench_mark: no ring in %s: %s\n", dir, strerror(-rc));
		bench_remove_dir(dir);
		return 1;
	}
	bench_step(0);
	heap = mallinfo2().uordblks;
	for (i = 0; i < 1000; i++)
		bench_step(i);
	heap = mallinfo2().uordblks - heap;
	printf("mark_c_ns %.1f ns\n", bench_tight());
	rc = bench_paced(&mark_ns, &datagram_ns);
	if (rc == 0) {
		printf("mark_c_paced_ns %.0f ns\n", mark_ns);
		printf("mark_datagram_paced_ns %.0f ns\n", datagram_ns);
		printf("mark_c_paced_ratio %.3f 1\n", mark_ns / datagram_ns);
	}
	printf("mark_c_allocations %zu bytes\n", heap);
	fflush(stdout);
	rc = bench_syscalls();
	if (rc == 0 || rc == 1)
		printf("mark_c_syscalls %d 1\n", rc);
	else
		printf("# mark_c_syscalls not measured: %s\n", strerror(-rc));
	lockstep_close();
	bench_remove_dir(dir);
	return rc == 1;
}
