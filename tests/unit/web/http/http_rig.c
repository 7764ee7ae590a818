/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/unit/web/http/http_rig.h"
#include "tests/support/harness.h"
#include <arpa/inet.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct ls_loop *rig_loop;
struct ls_httpd *rig_httpd;
struct fake_backend rig_backend;
char rig_answer[RIG_ANSWER_MAX];

void
rig_start(unsigned timeout_s)
{
	struct ls_httpd_options options = { .address = "127.0.0.1",
		.timeout_s = timeout_s };
	struct ls_backend functions;

	rig_loop = ls_loop_new();
	fake_backend_init(&rig_backend, ls_test_source("tests/golden/web/run"),
		&functions);
	ck_assert_int_eq(ls_httpd_new(rig_loop, &options, &functions, &rig_httpd), 0);
}

void
rig_setup(void)
{
	rig_start(0);
}

void
rig_teardown(void)
{
	ls_httpd_free(rig_httpd);
	fake_backend_let_go(&rig_backend);
	ls_loop_free(rig_loop);
}

void
rig_pump(void)
{
	(void)event_base_loop(ls_loop_base(rig_loop), EVLOOP_NONBLOCK);
}

int
rig_connect(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)ls_httpd_port(rig_httpd)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	rig_pump();
	return fd;
}

void
rig_send(int fd, const char *text)
{
	ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL),
		(ssize_t)strlen(text));
}

/* Turns the server's loop once; true if there is something to read. */
bool
rig_turn(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	rig_pump();
	return poll(&p, 1, 2) > 0;
}

/* Runs the server until the peer has closed. */
void
rig_read(int fd, size_t *len)
{
	ssize_t n = 1;

	while (n > 0) {
		if (!rig_turn(fd))
			continue;
		n = recv(fd, rig_answer + *len, RIG_ANSWER_MAX - 1 - *len, 0);
		*len += n > 0 ? (size_t)n : 0;
		rig_answer[*len] = '\0';
	}
}

/* Runs the server until the backend holds so many answers back. */
void
rig_hold(size_t count)
{
	while (rig_backend.held_count < count)
		rig_pump();
}

/* One exchange on one connection; the status. */
int
rig_ask_raw(const char *text)
{
	int fd = rig_connect();
	size_t len = 0;

	rig_answer[0] = '\0';
	rig_send(fd, text);
	rig_read(fd, &len);
	(void)close(fd);
	rig_pump();
	return len > 12 ? (int)strtol(rig_answer + 9, NULL, 10) : 0;
}

int
rig_ask(const char *method, const char *path, const char *headers)
{
	char text[8192];

	(void)snprintf(text, sizeof(text),
		"%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n%s\r\n",
		method, path, ls_httpd_port(rig_httpd), headers);
	return rig_ask_raw(text);
}

int
rig_get(const char *path)
{
	return rig_ask("GET", path, "");
}

bool
rig_has(const char *text)
{
	return strcasestr(rig_answer, text) != NULL;
}

const char *
rig_body(void)
{
	const char *end = strstr(rig_answer, "\r\n\r\n");

	ck_assert_ptr_nonnull(end);
	return end + 4;
}
