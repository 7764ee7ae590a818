/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/collect/procfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "tests/support/harness.h"
#include "tests/support/tree.h"

static char root[256];
static char buf[64];
static size_t len;

static void
setup(void)
{
	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
}

LS_CASE(procfile, setup, NULL);

LS_TEST(procfile, file_is_read_again_and_again)
{
	struct ls_procfile f;
	int fd;

	tree_write(root, "a", "one");
	ls_procfile_init(&f, root, "a");
	ck_assert_int_eq(ls_procfile_read(&f, buf, sizeof(buf), &len), 0);
	ck_assert_uint_eq(len, 3);
	fd = f.fd;
	tree_write(root, "a", "three");
	ck_assert_int_eq(ls_procfile_read(&f, buf, sizeof(buf), &len), 0);
	ck_assert_int_eq(f.fd, fd); /* kept open */
	ck_assert_mem_eq(buf, "three", len);
	ls_procfile_fini(&f);
	ls_procfile_fini(&f);
}

LS_TEST(procfile, file_may_come_late)
{
	struct ls_procfile f;

	ls_procfile_init(&f, root, "late");
	ck_assert_int_eq(ls_procfile_read(&f, buf, sizeof(buf), &len), -ENOENT);
	tree_write(root, "late", "x");
	ck_assert_int_eq(ls_procfile_read(&f, buf, sizeof(buf), &len), 0);
	ls_procfile_fini(&f);
}

LS_TEST(procfile, file_that_does_not_fit_is_refused)
{
	struct ls_procfile f;
	char path[2 * LS_PATH_MAX_BYTES];

	tree_write(root, "a", "0123456789");
	ls_procfile_init(&f, root, "a");
	ck_assert_int_eq(ls_procfile_read(&f, buf, 10, &len), -LS_ELIMIT);
	ck_assert_int_eq(ls_procfile_read(&f, buf, 11, &len), 0);
	ls_procfile_fini(&f);
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	ls_procfile_init(&f, root, path);
	ck_assert_int_eq(ls_procfile_read(&f, buf, sizeof(buf), &len), -LS_ELIMIT);
}

LS_TEST(procfile, file_is_read_once)
{
	char path[300];

	tree_write(root, "a", "one");
	ck_assert_int_eq(ls_procfile_path(path, sizeof(path), root, "a"), 0);
	ck_assert_int_eq(ls_procfile_read_once(AT_FDCWD, path, buf, sizeof(buf), &len),
		0);
	ck_assert_uint_eq(len, 3);
	ck_assert_int_eq(ls_procfile_path(path, 5, root, "a"), -LS_ELIMIT);
	ck_assert_int_eq(
		ls_procfile_read_once(AT_FDCWD, "/no/such", buf, sizeof(buf), &len),
		-ENOENT);
}
