/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/minute_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/support/harness.h"

#define S 1000000000ull

static char dir[256];
static uint8_t kernel[16] = { 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8,
	0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf };
static size_t seen[4];
static struct ls_minute_record last_row;

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s", ls_test_tmpdir());
	memset(seen, 0, sizeof(seen));
}

static struct ls_minute_file *
open_file(enum ls_minute_found expected, bool damaged)
{
	struct ls_minute_file *f = NULL;
	enum ls_minute_found found;
	bool is_damaged;

	ck_assert_int_eq(ls_minute_file_open(dir, kernel, &found, &is_damaged, &f), 0);
	ck_assert_int_eq((int)found, (int)expected);
	ck_assert_int_eq(is_damaged, damaged);
	return f;
}

static int
see(void *arg, const struct ls_minute_record *r)
{
	(void)arg;
	seen[r->type]++;
	if (r->type == LS_MINUTE_ROW)
		last_row = *r;
	return r->id == 666 ? -LS_ERANGE : 0;
}

LS_CASE(minute_file, setup, NULL);

LS_TEST(minute_file, minute_format_is_pinned)
{
	const double value[3] = { 1.5, 0, -2 };
	const bool present[3] = { true, false, true };
	char path[300], *bytes, *golden;
	struct ls_minute_file *f;
	size_t len, golden_len;

	f = open_file(LS_MINUTE_EMPTY, false);
	ck_assert_int_eq(ls_minute_file_group(f, 5, 0x0102030405060708, 3, "g"), 0);
	ck_assert_int_eq(ls_minute_file_row(f, 5, 60 * S, value, present, 3), 0);
	ck_assert_int_eq(ls_minute_file_sealed(f, 5), 0);
	ls_minute_file_write(f);
	ls_minute_file_close(f);
	(void)snprintf(path, sizeof(path), "%s/minute", dir);
	bytes = ls_test_read(path, &len);
	golden =
		ls_test_read(ls_test_source("tests/golden/minute_v1.bin"), &golden_len);
	ck_assert_uint_eq(len, golden_len);
	ck_assert_mem_eq(bytes, golden, len);
	free(bytes);
	free(golden);
}

LS_TEST(minute_file, what_was_written_is_read_by_the_next_process)
{
	static double value[LS_SERIES_PER_GROUP_MAX];
	static bool present[LS_SERIES_PER_GROUP_MAX];
	struct ls_minute_file *f = open_file(LS_MINUTE_EMPTY, false);
	uint64_t end, i;

	memset(present, true, sizeof(present));
	ck_assert_int_eq(ls_minute_file_group(f, 1, 9, LS_SERIES_PER_GROUP_MAX, "wide"),
		0);
	for (i = 0; i < 100; i++) /* more than one piece */
		ck_assert_int_eq(ls_minute_file_row(f, 1, i, value, present,
					 LS_SERIES_PER_GROUP_MAX),
			0);
	ls_minute_file_write(f);
	ls_minute_file_close(f);
	f = open_file(LS_MINUTE_ROWS, false);
	ck_assert_int_eq(
		ls_minute_file_walk(f, LS_MINUTE_HEADER_BYTES, see, NULL, &end), 0);
	ck_assert_uint_eq(end, ls_minute_file_end(f));
	ck_assert_uint_eq(seen[LS_MINUTE_GROUP], 1);
	ck_assert_uint_eq(seen[LS_MINUTE_ROW], 100);
	ck_assert_uint_eq(last_row.number, 99);
	ck_assert_uint_eq(last_row.value_count, LS_SERIES_PER_GROUP_MAX);
	ls_minute_file_clear(f);
	ls_minute_file_write(f);
	ls_minute_file_close(f);
	ls_minute_file_close(open_file(LS_MINUTE_EMPTY, false));
	ls_minute_file_close(NULL);
}

LS_TEST(minute_file, a_walk_ends_with_the_first_failure)
{
	struct ls_minute_file *f = open_file(LS_MINUTE_EMPTY, false);
	uint64_t end;

	ck_assert_int_eq(ls_minute_file_sealed(f, 1), 0);
	ck_assert_int_eq(ls_minute_file_sealed(f, 666), 0);
	ck_assert_int_eq(ls_minute_file_sealed(f, 2), 0);
	ck_assert_int_eq(
		ls_minute_file_walk(f, LS_MINUTE_HEADER_BYTES, see, NULL, &end),
		-LS_ERANGE);
	ck_assert_uint_eq(seen[LS_MINUTE_SEALED], 2);
	ck_assert_uint_eq(end, LS_MINUTE_HEADER_BYTES + LS_MINUTE_RECORD_BYTES);
	ls_minute_file_close(f);
}

LS_TEST(minute_file, a_full_file_refuses_rows)
{
	static double value[LS_SERIES_PER_GROUP_MAX];
	static bool present[LS_SERIES_PER_GROUP_MAX];
	struct ls_minute_file *f = open_file(LS_MINUTE_EMPTY, false);
	int rc = 0;
	uint64_t n;

	memset(present, true, sizeof(present));
	for (n = 0; rc == 0; n++)
		rc = ls_minute_file_row(f, 1, n, value, present,
			LS_SERIES_PER_GROUP_MAX);
	ck_assert_int_eq(rc, -ENOSPC);
	ck_assert_uint_gt(n, 240);
	ck_assert_uint_le(ls_minute_file_end(f), LS_MINUTE_MAX_BYTES);
	ls_minute_file_close(f);
}

LS_TEST(minute_file, other_files_are_told_apart)
{
	struct ls_minute_file *f = open_file(LS_MINUTE_EMPTY, false);
	enum ls_minute_found found;
	char path[300];
	bool damaged;
	FILE *text;

	ck_assert_int_eq(ls_minute_file_sealed(f, 1), 0);
	ls_minute_file_write(f);
	ls_minute_file_close(f);
	kernel[0] ^= 1;
	ls_minute_file_close(open_file(LS_MINUTE_OTHER_BOOT, false));
	kernel[0] ^= 1;
	(void)snprintf(path, sizeof(path), "%s/minute", dir);
	text = fopen(path, "w");
	ck_assert_int_gt(fprintf(text, "%100s", "something else"), 0);
	ck_assert_int_eq(fclose(text), 0);
	f = open_file(LS_MINUTE_EMPTY, true);
	ck_assert_int_eq(ls_minute_file_sealed(f, 1), 0); /* begins anew */
	ls_minute_file_write(f);
	ls_minute_file_close(f);
	ls_minute_file_close(open_file(LS_MINUTE_ROWS, false));
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink("elsewhere", path), 0);
	ck_assert_int_eq(ls_minute_file_open(dir, kernel, &found, &damaged, &f),
		-ELOOP);
	ck_assert_int_eq(
		ls_minute_file_open("/no/such/place", kernel, &found, &damaged, &f),
		-ENOENT);
}

LS_TEST(minute_file, a_failed_open_closes_no_other_descriptor)
{
	char longest[LS_PATH_MAX_BYTES];
	struct ls_minute_file *f;
	enum ls_minute_found found;
	bool damaged;
	int own = open("/dev/null", O_RDONLY), before = dup(0);

	ck_assert_int_ge(dup2(own, 0), 0);
	memset(longest, 'd', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	ck_assert_int_eq(ls_minute_file_open(longest, kernel, &found, &damaged, &f),
		-ENAMETOOLONG);
	ck_assert_int_ge(fcntl(0, F_GETFD), 0);
	if (before >= 0)
		(void)dup2(before, 0);
}
