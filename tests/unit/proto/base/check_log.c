/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/log.h"

#include "proto/base/clock.h"
#include "proto/base/err.h"
#include "proto/limits.h"
#include "tests/support/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char captured[65536];
static int saved_stderr;
static int capture_fd;

/* From here on stderr is a file, until capture_end. */
static void
capture_begin(void)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%.400s/stderr", ls_test_tmpdir());
	capture_fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	saved_stderr = dup(STDERR_FILENO);
	ck_assert(capture_fd >= 0 && saved_stderr >= 0);
	ck_assert_int_ge(dup2(capture_fd, STDERR_FILENO), 0);
}

static const char *
capture_end(void)
{
	ssize_t n;

	ck_assert_int_ge(dup2(saved_stderr, STDERR_FILENO), 0);
	(void)close(saved_stderr);
	n = pread(capture_fd, captured, sizeof(captured) - 1, 0);
	ck_assert_int_ge(n, 0);
	(void)close(capture_fd);
	captured[n] = '\0';
	ls_log_set_level(LS_LOG_INFO);
	return captured;
}

static size_t
count_lines(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += *s == '\n';
	return n;
}

LS_CASE(log);

LS_TEST(log, line_has_priority_module_and_text)
{
	capture_begin();
	ls_log(LS_LOG_ERR, "uplink", "cannot reach %s:%d", "a", 7);
	ls_log(LS_LOG_WARN, "spool", "full");
	ls_log(LS_LOG_INFO, "main", "started");
	ck_assert_str_eq(capture_end(),
		"<3>uplink: cannot reach a:7\n<4>spool: full\n<6>main: started\n");
}

LS_TEST(log, level_decides_what_is_printed)
{
	capture_begin();
	ls_log(LS_LOG_DEBUG, "m", "not by default");
	ls_log_set_level(LS_LOG_DEBUG);
	ls_log(LS_LOG_DEBUG, "m", "debug");
	ls_log_set_level(LS_LOG_ERR);
	ls_log(LS_LOG_WARN, "m", "not now");
	ls_log(LS_LOG_ERR, "m", "err");
	ck_assert_str_eq(capture_end(), "<7>m: debug\n<3>m: err\n");
}

LS_TEST(log, level_by_name)
{
	enum ls_log_level level = LS_LOG_DEBUG;

	ck_assert_int_eq(ls_log_level_parse("err", &level), 0);
	ck_assert_int_eq(level, LS_LOG_ERR);
	ck_assert_int_eq(ls_log_level_parse("warn", &level), 0);
	ck_assert_int_eq(level, LS_LOG_WARN);
	ck_assert_int_eq(ls_log_level_parse("info", &level), 0);
	ck_assert_int_eq(level, LS_LOG_INFO);
	ck_assert_int_eq(ls_log_level_parse("debug", &level), 0);
	ck_assert_int_eq(level, LS_LOG_DEBUG);
	ck_assert_int_eq(ls_log_level_parse("loud", &level), -LS_EUNKNOWN);
	ck_assert_int_eq(ls_log_level_parse("", &level), -LS_EUNKNOWN);
	ck_assert_int_eq(level, LS_LOG_DEBUG);
}

LS_TEST(log, text_is_escaped)
{
	capture_begin();
	ls_log(LS_LOG_INFO, "m", "peer says %s", "a\n<3>forged: b\x1b[2J\xff");
	ck_assert_str_eq(capture_end(),
		"<6>m: peer says a\\x0a<3>forged: b\\x1b[2J\\xff\n");
}

LS_TEST(log, long_text_is_cut)
{
	char text[2 * LS_LOG_LINE_MAX_BYTES];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	capture_begin();
	ls_log(LS_LOG_INFO, "m", "%s", text);
	(void)capture_end();
	ck_assert_uint_le(strlen(captured), LS_LOG_LINE_MAX_BYTES);
	ck_assert_uint_ge(strlen(captured), LS_LOG_LINE_MAX_BYTES - 8);
	ck_assert_uint_eq(count_lines(captured), 1);

	/* Each byte of this one takes four, and the module is cut, too. */
	memset(text, '\n', sizeof(text) - 1);
	capture_begin();
	ls_log(LS_LOG_INFO, "a-module-with-a-name-far-beyond-any-reason", "%s", text);
	(void)capture_end();
	ck_assert_uint_le(strlen(captured), LS_LOG_LINE_MAX_BYTES);
	ck_assert_uint_eq(count_lines(captured), 1);
}

LS_TEST(log, repeats_are_limited_and_told)
{
	struct ls_log_site site = { 0 };

	capture_begin();
	for (int i = 0; i < 30; i++)
		ls_log_at(&site, LS_LOG_INFO, "m", "line %d", i);
	atomic_store(&site.window_start_ns, ls_clock_mono_ns() - LS_LOG_WINDOW_NS);
	ls_log_at(&site, LS_LOG_INFO, "m", "later");
	ls_log_at(&site, LS_LOG_INFO, "m", "and later");
	(void)capture_end();
	ck_assert_uint_eq(count_lines(captured), LS_LOG_BURST + 2);
	ck_assert_ptr_nonnull(strstr(captured, "<6>m: line 9\n"));
	ck_assert_ptr_null(strstr(captured, "line 10"));
	ck_assert_ptr_nonnull(
		strstr(captured, "<6>m: later [20 more like this before]\n"));
	ck_assert_ptr_nonnull(strstr(captured, "<6>m: and later\n"));
}

LS_TEST(log, number_suppressed_survives_a_long_line)
{
	struct ls_log_site site = { .suppressed = 5 };
	char text[LS_LOG_LINE_MAX_BYTES];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	capture_begin();
	ls_log_at(&site, LS_LOG_INFO, "m", "%s", text);
	(void)capture_end();
	ck_assert_uint_le(strlen(captured), LS_LOG_LINE_MAX_BYTES);
	ck_assert_ptr_nonnull(strstr(captured, "x [5 more like this before]\n"));
}

LS_TEST(log, sites_are_limited_apart)
{
	capture_begin();
	for (int i = 0; i < 20; i++)
		ls_log(LS_LOG_INFO, "m", "often");
	ls_log(LS_LOG_INFO, "m", "once");
	ck_assert_uint_eq(count_lines(capture_end()), LS_LOG_BURST + 1);
	ck_assert_ptr_nonnull(strstr(captured, "once"));
}

LS_TEST(log, errno_is_kept)
{
	capture_begin();
	errno = ENOENT;
	ls_log(LS_LOG_INFO, "m", "kept");
	ck_assert_int_eq(errno, ENOENT);
	(void)capture_end();
}

LS_TEST(log, refused_line_is_lost_quietly)
{
	int keep = dup(STDERR_FILENO);

	ck_assert_int_ge(keep, 0);
	(void)close(STDERR_FILENO);
	ls_log(LS_LOG_INFO, "m", "nobody hears this");
	ck_assert_int_ge(dup2(keep, STDERR_FILENO), 0);
	(void)close(keep);
}

#define THREADS 4
#define LINES 200

static void *
log_many(void *arg)
{
	for (int i = 0; i < LINES; i++) {
		struct ls_log_site site = { 0 };

		ls_log_at(&site, LS_LOG_INFO, "m", "%s", (const char *)arg);
	}
	return NULL;
}

LS_TEST(log, lines_of_threads_are_whole)
{
	static char texts[THREADS][20] = { "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb",
		"cccccccccccccccc", "dddddddddddddddd" };
	pthread_t threads[THREADS];
	char *line, *rest = captured;

	capture_begin();
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, log_many, texts[i]),
			0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	(void)capture_end();
	ck_assert_uint_eq(count_lines(captured), THREADS * LINES);
	while ((line = strsep(&rest, "\n")) != NULL && *line) {
		ck_assert_uint_eq(strlen(line), 6 + 16);
		for (size_t i = 7; i < 6 + 16; i++)
			ck_assert_int_eq(line[i], line[6]);
	}
}
