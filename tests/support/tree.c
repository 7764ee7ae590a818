/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/support/harness.h"

static void
tree_path(char *dst, size_t size, const char *root, const char *path)
{
	int n = snprintf(dst, size, "%s/%s", root, path);

	ck_assert(n > 0 && (size_t)n < size);
}

/* Makes root and the directories on the way to the file. */
static void
tree_make_way(char *full, const char *root)
{
	char *slash;

	ck_assert(mkdir(root, 0700) == 0 || errno == EEXIST);
	for (slash = strchr(full + strlen(root) + 1, '/'); slash;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		ck_assert(mkdir(full, 0700) == 0 || errno == EEXIST);
		*slash = '/';
	}
}

void
tree_write(const char *root, const char *path, const char *text)
{
	char full[1024];
	int fd;

	tree_path(full, sizeof(full), root, path);
	tree_make_way(full, root);
	/* In place: sources keep their files open. */
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(close(fd), 0);
}

void
tree_link(const char *root, const char *path, const char *target)
{
	char full[1024];

	tree_path(full, sizeof(full), root, path);
	tree_make_way(full, root);
	ck_assert_int_eq(symlink(target, full), 0);
}

void
tree_remove(const char *root, const char *path)
{
	char full[1024];

	tree_path(full, sizeof(full), root, path);
	ck_assert_int_eq(unlink(full), 0);
}
