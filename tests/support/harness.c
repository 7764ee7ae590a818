/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/support/harness.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The directory of this run; made before Check forks, so that one process can remove it
 * all. */
static char harness_base[PATH_MAX / 2];

static int
harness_remove(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static int
harness_make_base(void)
{
	const char *parent = getenv("TMPDIR");
	int n;

	n = snprintf(harness_base, sizeof(harness_base), "%s/lockstep-test-XXXXXX",
		parent && *parent ? parent : "/tmp");
	if (n < 0 || (size_t)n >= sizeof(harness_base) || !mkdtemp(harness_base)) {
		perror("a directory for the test");
		return -1;
	}
	return 0;
}

int
ls_test_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	if (harness_make_base() != 0)
		return EXIT_FAILURE;
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
