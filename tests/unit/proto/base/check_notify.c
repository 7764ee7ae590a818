/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "tests/support/harness.h"

/* A manager's socket at `path` ('@' first: abstract), announced in the environment. */
static int
manager(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_uint_lt(len, sizeof(at.sun_path));
	memcpy(at.sun_path, path, len);
	if (*path == '@')
		at.sun_path[0] = '\0';
	ck_assert_int_eq(
		bind(fd, (const struct sockaddr *)&at,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
		0);
	ck_assert_int_eq(setenv("NOTIFY_SOCKET", path, 1), 0);
	return fd;
}

static void
expect(int fd, const char *text)
{
	char buf[64];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	ck_assert_int_eq(n, (ssize_t)strlen(text));
	ck_assert_int_eq(memcmp(buf, text, (size_t)n), 0);
}

LS_CASE(send);

LS_TEST(send, message_reaches_socket_in_file_system)
{
	char path[4096];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/s", ls_test_tmpdir());
	fd = manager(path);
	ck_assert_int_eq(ls_notify_send("READY=1"), 0);
	expect(fd, "READY=1");
	(void)close(fd);
	ck_assert_int_eq(ls_notify_send("READY=1"), -ECONNREFUSED);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(ls_notify_send("READY=1"), -ENOENT);
}

LS_TEST(send, message_reaches_abstract_socket)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "@lockstep-test-%ld", (long)getpid());
	fd = manager(path);
	ck_assert_int_eq(ls_notify_send("STATUS=well\nWATCHDOG=1"), 0);
	expect(fd, "STATUS=well\nWATCHDOG=1");
	(void)close(fd);
}

LS_TEST(send, nobody_to_tell_is_no_failure)
{
	unsetenv("NOTIFY_SOCKET");
	ck_assert_int_eq(ls_notify_send("READY=1"), 0);
	setenv("NOTIFY_SOCKET", "", 1);
	ck_assert_int_eq(ls_notify_send("READY=1"), 0);
}

LS_TEST(send, impossible_address_is_refused)
{
	char path[200];

	setenv("NOTIFY_SOCKET", "relative", 1);
	ck_assert_int_eq(ls_notify_send("READY=1"), -LS_ERANGE);
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	setenv("NOTIFY_SOCKET", path, 1);
	ck_assert_int_eq(ls_notify_send("READY=1"), -LS_ERANGE);
}

LS_TEST(send, full_queue_does_not_block)
{
	char path[64];
	int fd, rc = 0;

	(void)snprintf(path, sizeof(path), "@lockstep-full-%ld", (long)getpid());
	fd = manager(path);
	for (int i = 0; i < 100000 && rc == 0; i++)
		rc = ls_notify_send("WATCHDOG=1");
	ck_assert_int_eq(rc, -EAGAIN);
	(void)close(fd);
}

LS_CASE(watchdog);

LS_TEST(watchdog, watchdog_is_half_of_what_is_asked_of_this_process)
{
	char pid[32];

	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	ck_assert_uint_eq(ls_notify_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "30000000", 1);
	ck_assert_uint_eq(ls_notify_watchdog_ns(), 15000000000u);
	(void)snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	ck_assert_uint_eq(ls_notify_watchdog_ns(), 15000000000u);
	setenv("WATCHDOG_PID", "1", 1);
	ck_assert_uint_eq(ls_notify_watchdog_ns(), 0);
	unsetenv("WATCHDOG_PID");
	setenv("WATCHDOG_USEC", "30s", 1);
	ck_assert_uint_eq(ls_notify_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "18446744073709551615", 1);
	ck_assert_uint_eq(ls_notify_watchdog_ns(), 0);
}
