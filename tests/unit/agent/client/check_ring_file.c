/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/client/ring_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "agent/client/lockstep.h"
#include "tests/support/harness.h"
#include "tests/support/rings.h"

static struct rings rings;
/* what the clock of this program is ahead of the system's */
static time_t clock_ahead_s;

/* The clock that the library sees: ten seconds are waited for without waiting. */
int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	ts->tv_sec += clock_ahead_s;
	return rc;
}

/* In a child that exits: after the library's handler, and before the harness's own. */
static bool stopping;

static void
stop_here(void)
{
	if (stopping)
		_exit(0);
}

static void
setup(void)
{
	static bool registered; /* before the library's: tests may share a process */

	if (!registered)
		ck_assert_int_eq(atexit(stop_here), 0);
	registered = true;
	clock_ahead_s = 0;
	rings_init(&rings);
}

static void
teardown(void)
{
	lockstep_close();
	rings_fini(&rings);
}

static bool
is_locked(const char *path)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1
	};
	/* a process that closes any descriptor of the file drops its lock */
	pid_t child = fork();
	int status;

	if (child == 0) {
		int fd = open(path, O_RDWR);

		_exit(fcntl(fd, F_GETLK, &lock) != 0 ? 2 : lock.l_type != F_UNLCK);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 1;
}

LS_CASE(ring_file, setup, teardown);

LS_TEST(ring_file, file_is_readable_locked_and_named)
{
	char name[64];
	struct stat st;
	mode_t mask = umask(077);

	ck_assert_int_eq(lockstep_open(NULL), 0);
	umask(mask);
	/* Not read here: closing a descriptor of the file would drop our lock. */
	ck_assert_int_eq(rings_count(&rings, ".ring"), 1);
	ck_assert(is_locked(rings.path));
	ck_assert_int_eq(stat(rings.path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0644);
	ck_assert_uint_ge((uint64_t)st.st_blocks * 512, (uint64_t)st.st_size);
	(void)snprintf(name, sizeof(name), "/%ld-", (long)getpid());
	ck_assert_ptr_nonnull(strstr(rings.path, name));
}

/* Runs body in a child that leaves by `end`; the ring stays behind. */
static int
run_child(void (*body)(void), void (*end)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		body();
		end();
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return status;
}

static void
three_steps(void)
{
	if (lockstep_open(NULL) != 0)
		_exit(1);
	rings_step(0);
	rings_step(1);
	rings_step(2);
	lockstep_step_begin(3); /* and one that is never ended */
}

static void
leave_by_exit(void)
{
	/* what the handler of exit(3) does; the harness's own are not for a child */
	lockstep_close();
	_exit(0);
}

static void
leave_by_kill(void)
{
	(void)raise(SIGKILL);
}

LS_TEST(ring_file, clean_end_leaves_the_flag)
{
	ck_assert_int_eq(run_child(three_steps, leave_by_exit), 0);
	rings_load(&rings);
	ck_assert_uint_eq(rings.header.flags & LS_RING_ENDED, LS_RING_ENDED);
	ck_assert_uint_eq(rings.header.head, 3);
	ck_assert(!is_locked(rings.path));
}

static void
three_steps_then_stop(void)
{
	stopping = true;
	three_steps();
}

static void
leave_by_status(void)
{
	exit(3);
}

LS_TEST(ring_file, status_that_is_not_0_leaves_the_flag_of_a_failure)
{
	ck_assert_int_eq(run_child(three_steps_then_stop, leave_by_status), 0);
	rings_load(&rings);
	ck_assert_uint_eq(rings.header.flags, LS_RING_FAILED);
	ck_assert_uint_eq(rings.header.head, 3);
	ck_assert(!is_locked(rings.path));
}

LS_TEST(ring_file, crash_drops_the_lock_without_the_flag)
{
	(void)run_child(three_steps, leave_by_kill);
	rings_load(&rings);
	ck_assert_uint_eq(rings.header.flags & LS_RING_ENDED, 0);
	ck_assert_uint_eq(rings.header.head, 3);
	ck_assert(!is_locked(rings.path));
}

LS_TEST(ring_file, lock_is_held_while_the_job_lives)
{
	int ready[2], go[2];
	char c = 0;
	pid_t child;

	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(go), 0);
	child = fork();
	if (child == 0) {
		pid_t loader;

		close(go[1]); /* so that the end of the test is an end of file */
		three_steps();
		/* a data loader that lives on must not keep the lock */
		loader = fork();
		if (loader == 0) {
			close(ready[1]);
			_exit((int)read(go[0], &c, 1));
		}
		(void)!write(ready[1], "x", 1);
		(void)!read(go[0], &c, 1);
		_exit(0);
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	ck_assert_int_eq(rings_count(&rings, ".ring"), 1);
	ck_assert(is_locked(rings.path));
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert(!is_locked(rings.path));
	close(go[1]);
	close(go[0]);
	close(ready[0]);
}

static void
marks_of_a_child(void)
{
	rings_step(77);
	lockstep_close(); /* as at exit: leaves no flag in the parent's ring */
}

static void
leave_at_once(void)
{
	_exit(0);
}

LS_TEST(ring_file, forked_child_has_no_ring)
{
	ck_assert_int_eq(lockstep_open(NULL), 0);
	rings_step(0);
	ck_assert_int_eq(run_child(marks_of_a_child, leave_at_once), 0);
	rings_step(1);
	rings_load(&rings);
	ck_assert_uint_eq(rings.header.head, 2);
	ck_assert_uint_eq(rings.header.flags, 0);
	ck_assert_uint_eq(rings_record(&rings, 1).step, 1);
}

static void
child_that_is_a_job(void)
{
	if (lockstep_open(NULL) != 0)
		_exit(1);
	rings_step(0);
}

LS_TEST(ring_file, forked_child_may_open_its_own)
{
	ck_assert_int_eq(lockstep_open(NULL), 0);
	rings_step(0);
	ck_assert_int_eq(run_child(child_that_is_a_job, leave_at_once), 0);
	ck_assert_int_eq(rings_count(&rings, ".ring"), 2);
}

LS_TEST(ring_file, opening_again_makes_a_second_ring)
{
	struct lockstep_options o = LOCKSTEP_OPTIONS_INIT;

	o.rank = 4;
	o.steps_dir = rings.dir;
	ck_assert_int_eq(lockstep_open(&o), 0);
	rings_step(0);
	ck_assert_int_eq(lockstep_open(&o), 0);
	rings_step(0);
	ck_assert_int_eq(rings_count(&rings, ".ring"), 2);
}

LS_TEST(ring_file, closed_means_silent_until_opened)
{
	ck_assert_int_eq(lockstep_open(NULL), 0);
	rings_step(0);
	lockstep_close();
	lockstep_close();
	rings_step(1);
	rings_load(&rings);
	ck_assert_uint_eq(rings.header.head, 1);
	ck_assert_uint_eq(rings.header.flags, LS_RING_ENDED);
}

LS_TEST(ring_file, without_a_directory_marks_do_nothing_for_10_s)
{
	struct lockstep_options o = LOCKSTEP_OPTIONS_INIT;
	size_t len = strlen(rings.dir);

	(void)snprintf(rings.dir + len, sizeof(rings.dir) - len, "/missing");
	o.steps_dir = rings.dir;
	ck_assert_int_eq(lockstep_open(&o), -ENOENT);
	rings_step(0);
	ck_assert_int_eq(mkdir(rings.dir, 0755), 0);
	clock_ahead_s = 9;
	rings_step(1);
	ck_assert_int_eq(rings_count(&rings, ".ring"), 0);
	clock_ahead_s = 11;
	rings_step(2); /* tried again after 10 s, and the step that finds it is whole */
	rings_load(&rings);
	ck_assert_uint_eq(rings.header.head, 1);
	ck_assert_uint_eq(rings_record(&rings, 0).step, 2);
}

LS_TEST(ring_file, opening_again_at_once_is_possible_when_told_to)
{
	struct lockstep_options o = LOCKSTEP_OPTIONS_INIT;
	size_t len = strlen(rings.dir);

	(void)snprintf(rings.dir + len, sizeof(rings.dir) - len, "/missing");
	o.steps_dir = rings.dir;
	ck_assert_int_eq(lockstep_open(&o), -ENOENT);
	ck_assert_int_eq(mkdir(rings.dir, 0755), 0);
	ck_assert_int_eq(lockstep_open(&o), 0);
}

LS_TEST(ring_file, what_is_no_directory_is_refused)
{
	struct lockstep_options o = LOCKSTEP_OPTIONS_INIT;
	char path[8192];

	o.steps_dir = "/dev/null";
	ck_assert_int_eq(lockstep_open(&o), -ENOTDIR);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	o.steps_dir = path;
	ck_assert_int_eq(lockstep_open(&o), -ENAMETOOLONG);
	rings_step(0);
}

LS_TEST(ring_file, unwritable_directory_is_refused)
{
	struct lockstep_options o = LOCKSTEP_OPTIONS_INIT;

	o.steps_dir = "/proc/self/fd"; /* refuses new files even of root */
	ck_assert_int_lt(lockstep_open(&o), 0);
	rings_step(0);
}

static void
open_with_a_small_limit(void)
{
	const struct rlimit small = { 65536, 65536 };

	if (setrlimit(RLIMIT_FSIZE, &small) != 0 || lockstep_open(NULL) != -EFBIG)
		_exit(1);
	rings_step(0);
}

LS_TEST(ring_file, file_size_limit_raises_no_signal)
{
	ck_assert_int_eq(run_child(open_with_a_small_limit, leave_at_once), 0);
	ck_assert_int_eq(rings_count(&rings, ".ring"), 0);
	ck_assert_int_eq(rings_count(&rings, ".tmp"), 0);
}

static void
put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(77);
	close(fd);
}

/* A file system of 64 KiB, seen by this child alone. */
static void
open_on_a_full_disk(void)
{
	struct lockstep_options o = LOCKSTEP_OPTIONS_INIT;
	char map[64];
	uid_t uid = geteuid();

	if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0)
		_exit(77);
	if (uid != 0) {
		(void)snprintf(map, sizeof(map), "0 %u 1", (unsigned)uid);
		put_file("/proc/self/uid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("tmpfs", rings.dir, "tmpfs", 0, "size=65536") != 0)
		_exit(77);
	o.steps_dir = rings.dir;
	if (lockstep_open(&o) != -ENOSPC)
		_exit(1);
	rings_step(0);
	_exit(rings_count(&rings, "") != 0);
}

LS_TEST(ring_file, full_disk_is_an_error_and_leaves_nothing)
{
	int status = run_child(open_on_a_full_disk, leave_at_once);

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		printf("# full_disk_is_an_error_and_leaves_nothing: skipped, no mount here\n");
	else
		ck_assert_int_eq(status, 0);
}

/* The golden bytes are written, not only read: header and slot are those of
 * proto/ring/ring.h. */
LS_TEST(ring_file, bytes_are_those_of_the_golden_ring)
{
	struct ls_ring_file f = { 0 };
	struct ls_client_identity id = {
		.worker = { .job = "golden-run",
			.slice = "1",
			.role = "trainer",
			.host = "h3",
			.attempt = 2,
			.rank = 3,
			.world = 4,
			.chips = 4 },
		.from = { 1, 2, 1, 1, 1, 4, 5, 8 },
		.env = "LOCKSTEP_ATTEMPT=2\nMEGASCALE_SLICE_ID=1\n"
		       "TPU_CHIPS_PER_HOST_BOUNDS=2,2,1\n",
	};
	struct ls_ring_file_slot slot = {
		.step = 41,
		.t_begin_ns = 1000500000,
		.duration_ns = 20000000,
		.barrier_count = 2,
		.work_mask = 5,
		.peer_count = 2,
		.barrier_kind = { 0, 1 },
		.phase_mask = 1 << 0 | 1 << 3 | 1 << 4 | 1 << 10,
		.phase_ns = { [0] = 1000000,
			[3] = 12000000,
			[4] = 6500000,
			[10] = 500000 },
		.barrier = { { 1013500000, 1018500000 }, { 1018600000, 1020100000 } },
		.work = { 4096, 0, 8 },
		.peer = { { 2, 4900, UINT32_MAX, 0 }, { 0, UINT32_MAX, 120, 0 } },
	};
	/* What differs from one ring to the next: slots, ids, wall time, pid. */
	static const size_t varies[][2] = { { 20, 36 }, { 64, 12 } };
	size_t len, i;
	uint8_t *golden = (uint8_t *)ls_test_read(
		ls_test_source("tests/golden/ring_v1.bin"), &len);

	ck_assert_int_eq(ls_ring_file_open(&f, rings.dir, &id, 1000000000), 0);
	ls_ring_file_live(&f, 42, LS_PHASE_COMPUTE, 1040000000);
	ls_ring_file_push(&f, &slot);
	rings_load(&rings);
	for (i = 0; i < 2; i++)
		memcpy(rings.bytes + varies[i][0], golden + varies[i][0], varies[i][1]);
	ck_assert_mem_eq(rings.bytes, golden,
		LS_RING_HEADER_BYTES + 2 * LS_RING_SLOT_BYTES);
	ls_ring_file_close(&f);
	free(golden);
}
