/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/step_ring.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/support/harness.h"

enum {
	AT_VERSION = 8,
	AT_HEADER = 12,
	AT_SLOT = 16,
	AT_SLOTS = 20,
	AT_ID = 24,
	AT_WORLD = 88
};
enum { AT_JOB = 104, AT_HOST = 360 };

void
step_ring_poke(struct step_ring *r, uint64_t offset, uint64_t value, unsigned bytes)
{
	uint8_t b[8];
	unsigned i;

	for (i = 0; i < bytes; i++)
		b[i] = (uint8_t)(value >> 8 * i);
	ck_assert_int_eq(pwrite(r->fd, b, bytes, (off_t)offset), (ssize_t)bytes);
}

void
step_ring_make(struct step_ring *r, const char *dir, const char *name, uint8_t id,
	uint32_t slots)
{
	memset(r, 0, sizeof(*r));
	(void)snprintf(r->path, sizeof(r->path), "%s/%s", dir, name);
	r->slots = slots;
	r->fd = open(r->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ck_assert_int_ge(r->fd, 0);
	ck_assert_int_eq(
		ftruncate(r->fd,
			LS_RING_HEADER_BYTES + (off_t)slots * LS_RING_SLOT_BYTES),
		0);
	ck_assert_int_eq(pwrite(r->fd, LS_RING_MAGIC, 8, 0), 8);
	step_ring_poke(r, AT_VERSION, LS_RING_VERSION, 4);
	step_ring_poke(r, AT_HEADER, LS_RING_HEADER_BYTES, 4);
	step_ring_poke(r, AT_SLOT, LS_RING_SLOT_BYTES, 4);
	step_ring_poke(r, AT_SLOTS, slots, 4);
	step_ring_poke(r, AT_ID, id, 1);
	step_ring_poke(r, AT_WORLD, 4, 4);
	ck_assert_int_eq(pwrite(r->fd, "job", 3, AT_JOB), 3);
	ck_assert_int_eq(pwrite(r->fd, "host", 4, AT_HOST), 4);
}

void
step_ring_put(struct step_ring *r, uint64_t index, uint64_t head)
{
	const uint64_t at =
		LS_RING_HEADER_BYTES + index % r->slots * LS_RING_SLOT_BYTES;

	step_ring_poke(r, at, index + 1, 8);
	step_ring_poke(r, at + 8, index, 8); /* step */
	step_ring_poke(r, at + 16, 1000 * index, 8); /* begin */
	step_ring_poke(r, at + 24, 900, 8); /* duration */
	step_ring_poke(r, at + 312, index + 1, 8);
	if (head != 0)
		step_ring_poke(r, LS_RING_HEAD_OFFSET, head, 8);
}

void
step_ring_lock(struct step_ring *r)
{
	struct flock l = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1
	};
	int ready[2], fd;
	char c = 0;

	ck_assert_int_eq(pipe(ready), 0);
	r->holder = fork();
	ck_assert_int_ge(r->holder, 0);
	if (r->holder == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the test fails */
		for (fd = 3; fd < 1024; fd++) {
			if (fd != r->fd && fd != ready[1])
				(void)close(
					fd); /* the spool's lock, for one, is not ours */
		}
		if (fcntl(r->fd, F_SETLK, &l) == 0 && write(ready[1], "y", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
}

void
step_ring_unlock(struct step_ring *r)
{
	ck_assert_int_eq(kill(r->holder, SIGKILL), 0);
	ck_assert_int_eq(waitpid(r->holder, NULL, 0), r->holder);
	r->holder = 0;
}

void
step_ring_fini(struct step_ring *r)
{
	if (r->holder > 0)
		step_ring_unlock(r);
	close(r->fd);
}
