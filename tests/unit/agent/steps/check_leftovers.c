/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/leftovers.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent/collect/dirlist.h"
#include "tests/support/harness.h"
#include "tests/support/tree.h"

#define ID "00112233445566778899aabbccddeeff"
#define NAME "17-" ID ".tmp"

static char root[256];
static struct ls_leftovers left;
static uint64_t now;

static void
setup(void)
{
	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	memset(&left, 0, sizeof(left));
	now = 1000000000;
}

/* As the source does: all entries, then the end. */
static void
scan(void)
{
	const struct dirent64 *e;
	struct ls_dirlist dir;

	ck_assert_int_eq(ls_dirlist_open(&dir, root), 0);
	while ((e = ls_dirlist_next(&dir)) != NULL) {
		if (ls_leftovers_is_name(e->d_name))
			ls_leftovers_see(&left, e, now);
	}
	ls_leftovers_settle(&left, dir.fd, now);
	ls_dirlist_close(&dir);
}

static bool
exists(const char *name)
{
	char path[512];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	return lstat(path, &st) == 0;
}

LS_CASE(leftovers, setup, NULL);

LS_TEST(leftovers, goes_when_it_is_old_and_not_before)
{
	tree_write(root, NAME, "half a ring");
	scan();
	now += LS_LEFTOVER_AGE_NS - 1;
	scan();
	ck_assert(exists(NAME));
	now++;
	scan();
	ck_assert(!exists(NAME));
	ck_assert_uint_eq(left.removed, 1);
	scan();
	ck_assert_uint_eq(left.count, 0);
}

LS_TEST(leftovers, stays_while_its_lock_is_held)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1
	};
	char path[512], byte;
	int ready[2], end[2], fd;
	pid_t child;

	tree_write(root, NAME, "a ring");
	(void)snprintf(path, sizeof(path), "%s/%s", root, NAME);
	ck_assert(pipe(ready) == 0 && pipe(end) == 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) { /* of another process: our own locks are never in our way */
		(void)close(end[1]);
		fd = open(path, O_RDWR);
		if (fd < 0 || fcntl(fd, F_SETLK, &lock) != 0 ||
			write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(read(end[0], &byte, 1) != 0);
	}
	(void)close(end[0]);
	ck_assert_int_eq((int)read(ready[0], &byte, 1), 1);
	scan();
	now += LS_LEFTOVER_AGE_NS;
	scan();
	ck_assert(exists(NAME));
	(void)close(end[1]);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	now += LS_LEFTOVER_AGE_NS - 1; /* asked again after the same time */
	scan();
	ck_assert(exists(NAME));
	now++;
	scan();
	ck_assert(!exists(NAME));
	ck_assert_uint_eq(left.removed, 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

LS_TEST(leftovers, one_that_became_a_ring_is_forgotten)
{
	char from[512], to[512];

	tree_write(root, NAME, "a ring");
	scan();
	(void)snprintf(from, sizeof(from), "%s/%s", root, NAME);
	(void)snprintf(to, sizeof(to), "%s/17-" ID ".ring", root);
	ck_assert_int_eq(rename(from, to), 0);
	now += LS_LEFTOVER_AGE_NS;
	scan();
	ck_assert_uint_eq(left.count, 0);
	ck_assert(exists("17-" ID ".ring"));
	tree_write(root, NAME, "again"); /* its time begins anew */
	scan();
	ck_assert(exists(NAME));
}

LS_TEST(leftovers, only_names_of_the_client_library)
{
	ck_assert(ls_leftovers_is_name(NAME));
	ck_assert(!ls_leftovers_is_name("17-" ID ".ring"));
	ck_assert(!ls_leftovers_is_name("17-" ID ".tmp~"));
	ck_assert(!ls_leftovers_is_name("-" ID ".tmp"));
	ck_assert(!ls_leftovers_is_name("17" ID ".tmp"));
	ck_assert(!ls_leftovers_is_name("17-" ID "0.tmp"));
	ck_assert(!ls_leftovers_is_name("17-00112233.tmp"));
	ck_assert(!ls_leftovers_is_name("17-00112233445566778899AABBCCDDEEFF.tmp"));
	ck_assert(!ls_leftovers_is_name("important.tmp"));
	ck_assert(!ls_leftovers_is_name("111111111111111111111111111111111111111111-" ID
					".tmp"));
}

LS_TEST(leftovers, links_and_directories_stay)
{
	tree_write(root, "target", "keep");
	tree_link(root, NAME, "target");
	tree_write(root, "18-" ID ".tmp/x", "");
	scan();
	now += LS_LEFTOVER_AGE_NS;
	scan();
	ck_assert_uint_eq(left.count, 0);
	ck_assert(exists(NAME) && exists("target") && exists("18-" ID ".tmp"));
}

LS_TEST(leftovers, more_than_there_is_room_for_go_one_after_the_other)
{
	char name[64];
	unsigned i, gone = 0;

	for (i = 0; i < LS_LEFTOVERS_MAX + 3; i++) {
		(void)snprintf(name, sizeof(name), "%u-" ID ".tmp", i);
		tree_write(root, name, "");
	}
	for (i = 0; i < 3; i++) { /* the first ones, and when they are gone the rest */
		scan();
		ck_assert_uint_le(left.count, LS_LEFTOVERS_MAX);
		now += LS_LEFTOVER_AGE_NS;
		scan();
	}
	for (i = 0; i < LS_LEFTOVERS_MAX + 3; i++) {
		(void)snprintf(name, sizeof(name), "%u-" ID ".tmp", i);
		gone += !exists(name);
	}
	ck_assert_uint_eq(gone, LS_LEFTOVERS_MAX + 3);
	ck_assert_uint_eq(left.removed, gone);
}
