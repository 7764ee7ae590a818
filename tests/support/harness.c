/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/support/harness.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define HARNESS_ROOM_BYTES (1ull << 30)

/* The directory of this run; made before Check forks, so that one process can remove it
 * all. */
static char harness_base[PATH_MAX / 2];

static Suite *harness_suite; /* made by the first test */

static int
harness_remove(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

/* $TMPDIR; else memory, where a sync costs nothing, if it has room; else /tmp. */
static const char *
harness_parent(void)
{
	const char *dir = getenv("TMPDIR"), *memory = "/dev/shm";
	struct statvfs st;

	if (dir && *dir)
		return dir;
	return statvfs(memory, &st) == 0 && access(memory, W_OK) == 0 &&
			st.f_bavail >= HARNESS_ROOM_BYTES / st.f_frsize
		? memory
		: "/tmp";
}

static int
harness_make_base(void)
{
	int n;

	n = snprintf(harness_base, sizeof(harness_base), "%s/lockstep-test-XXXXXX",
		harness_parent());
	if (n < 0 || (size_t)n >= sizeof(harness_base) || !mkdtemp(harness_base)) {
		perror("a directory for the test");
		return -1;
	}
	return 0;
}

/* "bodies" of check_bodies: CK_RUN_SUITE chooses by it. */
static const char *
harness_suite_name(void)
{
	static const char prefix[] = "check_";
	const char *name = program_invocation_short_name;

	return strncmp(name, prefix, strlen(prefix)) == 0 ? name + strlen(prefix)
							  : name;
}

void
ls_test_register(struct ls_test_case *c, const TTest *test, int signal, int first,
	int end)
{
	const char *fork_mode = getenv("CK_FORK");

	if (signal != 0 && fork_mode && strcmp(fork_mode, "no") == 0)
		return;
	if (!harness_suite)
		harness_suite = suite_create(harness_suite_name());
	if (!c->tcase) {
		c->tcase = tcase_create(c->name);
		tcase_add_checked_fixture(c->tcase, c->setup, c->teardown);
		if (!getenv("CK_DEFAULT_TIMEOUT"))
			tcase_set_timeout(c->tcase, LS_TEST_TIMEOUT_S);
		suite_add_tcase(harness_suite, c->tcase);
	}
	tcase_add_loop_test_raise_signal(c->tcase, test, signal, first, end);
}

int
ls_test_run(void)
{
	SRunner *runner;
	int failed;

	if (!harness_suite) {
		(void)puts("Bail out! no test is registered: a file needs an LS_TEST");
		return EXIT_FAILURE;
	}
	if (harness_make_base() != 0)
		return EXIT_FAILURE;
	/* A line is written as a whole: in a file shared with the log it would be cut. */
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	runner = srunner_create(harness_suite);
	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	if (nftw(harness_base, harness_remove, 16, FTW_DEPTH | FTW_PHYS) != 0)
		perror(harness_base);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

const char *
ls_test_source(const char *path)
{
	static char full[PATH_MAX];
	const char *top = getenv("top_srcdir");
	int n;

	n = snprintf(full, sizeof(full), "%s/%s", top && *top ? top : ".", path);
	ck_assert_msg(n > 0 && (size_t)n < sizeof(full), "path too long: %s", path);
	return full;
}

const char *
ls_test_tmpdir(void)
{
	static char dir[PATH_MAX];

	(void)snprintf(dir, sizeof(dir), "%s/XXXXXX", harness_base);
	ck_assert_msg(mkdtemp(dir) != NULL, "cannot make %s", dir);
	return dir;
}

char *
ls_test_read(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "rb");
	size_t len = 0, room = 4096;
	char *text = malloc(room);

	ck_assert_msg(f != NULL && text != NULL, "cannot read %s", path);
	while (!feof(f)) {
		len += fread(text + len, 1, room - len - 1, f);
		ck_assert_msg(!ferror(f), "cannot read %s", path);
		if (len + 1 == room) {
			room *= 2;
			text = realloc(text, room);
			ck_assert_msg(text != NULL, "no memory for %s", path);
		}
	}
	(void)fclose(f); /* only read from */
	text[len] = '\0';
	*ret_len = len;
	return text;
}

double
ls_test_random(uint64_t *state)
{
	/* Knuth's MMIX */
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}
