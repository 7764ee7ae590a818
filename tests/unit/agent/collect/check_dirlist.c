/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/collect/dirlist.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/harness.h"
#include "tests/support/tree.h"

#define FILES 300u /* more than one piece */

LS_CASE(dirlist);

LS_TEST(dirlist, every_entry_comes_once)
{
	char root[256], name[64];
	unsigned seen[FILES] = { 0 }, i, others = 0;
	const struct dirent64 *e;
	struct ls_dirlist d;

	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	for (i = 0; i < FILES; i++) {
		(void)snprintf(name, sizeof(name), "file-with-a-long-name-%u", i);
		tree_write(root, name, "");
	}
	ck_assert_int_eq(ls_dirlist_open(&d, root), 0);
	while ((e = ls_dirlist_next(&d)) != NULL) {
		if (strncmp(e->d_name, "file", 4) == 0)
			seen[strtoul(strrchr(e->d_name, '-') + 1, NULL, 10)]++;
		else
			others++;
	}
	ck_assert_ptr_null(ls_dirlist_next(&d));
	ck_assert(!d.failed);
	ls_dirlist_close(&d);
	for (i = 0; i < FILES; i++)
		ck_assert_uint_eq(seen[i], 1);
	ck_assert_uint_eq(others, 2); /* "." and ".." */
}

LS_TEST(dirlist, what_is_no_directory_is_not_opened)
{
	char root[256], path[300];
	struct ls_dirlist d;

	(void)snprintf(root, sizeof(root), "%s", ls_test_tmpdir());
	tree_write(root, "x", "");
	(void)snprintf(path, sizeof(path), "%s/x", root);
	ck_assert_int_eq(ls_dirlist_open(&d, path), -ENOTDIR);
	ck_assert_int_eq(ls_dirlist_open(&d, "/no/such/place"), -ENOENT);
}
