/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/log_tail.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "proto/limits.h"
#include "tests/support/harness.h"

static char path[PATH_MAX], moved[PATH_MAX];
static struct ls_log_tail *tail;
static char seen[8192]; /* lines, each with | behind it */
static uint64_t lines;

static void
each(void *arg, const char *line, size_t len)
{
	(void)arg;
	lines++;
	if (strlen(seen) + len + 2 < sizeof(seen))
		(void)snprintf(seen + strlen(seen), len + 2, "%.*s|", (int)len, line);
}

static void
write_file(const char *mode, const char *text, size_t len)
{
	FILE *f = fopen(path, mode);

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, len, f), len);
	ck_assert_int_eq(fclose(f), 0);
}

static void
append(const char *text)
{
	write_file("ae", text, strlen(text));
}

/* Reads, and says what was told. */
static const char *
told(void)
{
	seen[0] = '\0';
	ck_assert(ls_log_tail_read(tail));
	return seen;
}

static void
setup(void)
{
	(void)snprintf(path, sizeof(path), "%s/log", ls_test_tmpdir());
	(void)snprintf(moved, sizeof(moved), "%.4000s.1", path);
	lines = 0;
	tail = ls_log_tail_new(path, 0, each, NULL);
	ck_assert_ptr_nonnull(tail);
}

static void
teardown(void)
{
	ls_log_tail_free(tail);
}

LS_CASE(log_tail, setup, teardown);

LS_TEST(log_tail, the_first_file_is_followed_from_its_end)
{
	append("old\nolder\n");
	ck_assert_str_eq(told(), "");
	append("new\n");
	ck_assert_str_eq(told(), "new|");
	ck_assert_str_eq(told(), "");
}

LS_TEST(log_tail, a_line_begun_before_is_not_told)
{
	append("half a li");
	ck_assert_str_eq(told(), "");
	append("ne\nwhole\n");
	ck_assert_str_eq(told(), "whole|");
}

LS_TEST(log_tail, it_looks_back_as_far_as_asked)
{
	ls_log_tail_free(tail);
	tail = ls_log_tail_new(path, 8, each, NULL);
	append("one\ntwo\nthree\n"); /* 8 bytes before the end: "o\nthree\n" */
	ck_assert_str_eq(told(), "three|");
	ls_log_tail_free(tail);
	tail = ls_log_tail_new(path, 10, each, NULL);
	ck_assert_str_eq(told(), "two|three|");
	ls_log_tail_free(tail);
	tail = ls_log_tail_new(path, 1000, each, NULL);
	ck_assert_str_eq(told(), "one|two|three|");
}

LS_TEST(log_tail, a_file_that_comes_later_is_read_whole)
{
	ck_assert_str_eq(told(), "");
	ck_assert_int_eq(ls_log_tail_get_stats(tail)->error, -ENOENT);
	append("first\n");
	ck_assert_str_eq(told(), "first|");
	ck_assert_int_eq(ls_log_tail_get_stats(tail)->error, 0);
}

LS_TEST(log_tail, parts_of_lines_are_put_together)
{
	append("x\n");
	ck_assert_str_eq(told(), "");
	append("pa");
	ck_assert_str_eq(told(), "");
	append("rt");
	ck_assert_str_eq(told(), "");
	append("s\n\n");
	ck_assert_str_eq(told(), "parts|");
}

LS_TEST(log_tail, a_return_ends_a_line_and_empty_lines_are_none)
{
	append("x\n");
	ck_assert_str_eq(told(), "");
	append("\r1/9\r2/9\r\n\n\nend\r\n");
	ck_assert_str_eq(told(), "1/9|2/9|end|");
}

LS_TEST(log_tail, a_rotated_file_is_read_to_its_end_first)
{
	append("x\n");
	ck_assert_str_eq(told(), "");
	append("before\n");
	ck_assert_int_eq(rename(path, moved), 0);
	append("after\n");
	ck_assert_str_eq(told(), "before|after|");
	ck_assert_uint_eq(ls_log_tail_get_stats(tail)->rotated, 1);
}

/* Appends a line of so many bytes, most of them a hole. */
static void
append_long(off_t bytes)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(truncate(path, st.st_size + bytes), 0);
	append("\n");
}

/* As told, after as many readings as the last MiB takes. */
static const char *
told_soon(void)
{
	unsigned readings = 0;

	seen[0] = '\0';
	while (!ls_log_tail_read(tail))
		ck_assert_uint_le(++readings,
			LS_STEP_LOG_BACK_BYTES / LS_LOG_TAIL_READ_MAX_BYTES + 1);
	return seen;
}

LS_TEST(log_tail, far_behind_all_but_the_end_is_skipped)
{
	append("x\n");
	ck_assert_str_eq(told(), "");
	append_long(LS_LOG_TAIL_BEHIND_MAX_BYTES);
	append("last\n");
	ck_assert_str_eq(told_soon(), "last|");
	ck_assert_uint_gt(ls_log_tail_get_stats(tail)->skipped,
		LS_LOG_TAIL_BEHIND_MAX_BYTES / 2);
}

LS_TEST(log_tail, rotation_is_seen_before_the_end_of_a_long_file)
{
	append("x\n");
	ck_assert_str_eq(told(), "");
	append_long(LS_LOG_TAIL_BEHIND_MAX_BYTES / 2);
	ck_assert_int_eq(rename(path, moved), 0);
	append("after\n");
	ck_assert_str_eq(told_soon(), "after|");
	ck_assert_uint_eq(ls_log_tail_get_stats(tail)->rotated, 1);
}

LS_TEST(log_tail, a_file_that_went_away_is_still_read)
{
	FILE *f;

	append("x\n");
	ck_assert_str_eq(told(), "");
	f = fopen(path, "ae");
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_ge(fputs("unlinked\n", f), 0);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_str_eq(told(), "unlinked|");
	append("again\n");
	ck_assert_str_eq(told(), "again|");
}

LS_TEST(log_tail, a_truncated_file_is_read_anew)
{
	append("xxxxxxxxxxxxxxx\n");
	ck_assert_str_eq(told(), "");
	append("cut he");
	ck_assert_str_eq(told(), "");
	ck_assert_int_eq(truncate(path, 0), 0);
	ck_assert_str_eq(told(), "");
	append("new\n");
	ck_assert_str_eq(told(), "new|");
	ck_assert_uint_eq(ls_log_tail_get_stats(tail)->truncated, 1);
	write_file("we", "n\n", 2);
	ck_assert_str_eq(told(), "n|"); /* shorter than before */
	ck_assert_uint_eq(ls_log_tail_get_stats(tail)->truncated, 2);
}

LS_TEST(log_tail, a_long_line_is_cut)
{
	size_t len = 3 * LS_LOG_TAIL_LINE_MAX_BYTES;
	char *text = malloc(len + 8);

	append("x\n");
	ck_assert_str_eq(told(), "");
	memset(text, 'y', len);
	memcpy(text + len, "\nnext\n", 7);
	append(text);
	ck_assert_uint_eq(strlen(told()),
		LS_LOG_TAIL_LINE_MAX_BYTES + strlen("|next|"));
	ck_assert_uint_eq(ls_log_tail_get_stats(tail)->cut, 1);
	ck_assert_uint_eq(lines, 2);
	free(text);
}

LS_TEST(log_tail, garbage_is_only_bytes)
{
	char bytes[1024];
	size_t i;

	append("x\n");
	ck_assert_str_eq(told(), "");
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)i;
	write_file("ae", bytes, sizeof(bytes));
	ck_assert(ls_log_tail_read(tail));
	ck_assert_uint_eq(lines, 8); /* a newline and a return in each 256 bytes */
}

LS_TEST(log_tail, a_reading_has_its_limit)
{
	size_t len = 2 * LS_LOG_TAIL_READ_MAX_BYTES, i;
	char *text = malloc(len + 1);

	append("x\n");
	ck_assert_str_eq(told(), "");
	for (i = 0; i < len; i++)
		text[i] = i % 16 == 15 ? '\n' : 'z';
	text[len] = '\0';
	append(text);
	ck_assert(!ls_log_tail_read(tail));
	ck_assert_uint_eq(lines, LS_LOG_TAIL_READ_MAX_BYTES / 16);
	ck_assert(!ls_log_tail_read(tail));
	ck_assert(ls_log_tail_read(tail));
	ck_assert_uint_eq(lines, len / 16);
	free(text);
}

LS_TEST(log_tail, only_regular_files_are_read)
{
	char longest[LS_PATH_MAX_BYTES + 1];

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_str_eq(told(), "");
	ck_assert_int_eq(ls_log_tail_get_stats(tail)->error, -LS_ERANGE);
	memset(longest, 'p', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	ck_assert_ptr_null(ls_log_tail_new(longest, 0, each, NULL));
}
