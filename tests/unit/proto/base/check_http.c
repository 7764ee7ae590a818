/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/http.h"

#include <errno.h>
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <sys/socket.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/expose.h"
#include "proto/limits.h"
#include "tests/support/harness.h"

LS_CASE(http);

LS_TEST(http, addresses_are_split)
{
	static const struct {
		const char *text, *address;
		uint16_t port;
	} good[] = { { "127.0.0.1:7119", "127.0.0.1", 7119 }, { "[::1]:0", "::1", 0 },
		{ "localhost:65535", "127.0.0.1", 65535 } };
	static const char *const bad[] = { "", ":", ":1", "127.0.0.1",
		"127.0.0.1:", "a:65536", "a:-1", "a:1x", "a: 1", "[]:1x" };
	char address[16];
	uint16_t port = 1;
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_int_eq(
			ls_http_split(good[i].text, address, sizeof(address), &port),
			0);
		ck_assert_str_eq(address, good[i].address);
		ck_assert_uint_eq(port, good[i].port);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(ls_http_split(bad[i], address, sizeof(address), &port) ==
				-LS_EPARSE,
			"%s", bad[i]);
	ck_assert_int_eq(
		ls_http_split("1234567890123456:1", address, sizeof(address), &port),
		-LS_EPARSE);
}

LS_TEST(http, loopback_is_known)
{
	ck_assert_int_eq(ls_http_is_loopback("127.9.9.9"), 1);
	ck_assert_int_eq(ls_http_is_loopback("::1"), 1);
	ck_assert_int_eq(ls_http_is_loopback("0.0.0.0"), 0);
	ck_assert_int_eq(ls_http_is_loopback("::"), 0);
	ck_assert_int_eq(ls_http_is_loopback("name"), -LS_EPARSE);
}

/* Nobody accepts: whoever finds the queue full would wait for a second. */
LS_TEST(http, many_may_come_at_once)
{
	struct event_base *base = event_base_new();
	struct evhttp *http = evhttp_new(base);
	struct evconnlistener *listener;
	struct sockaddr_in to = { .sin_family = AF_INET };
	const struct timeval soon = {
		.tv_usec = 900000
	}; /* before the kernel asks again */
	FILE *f = fopen("/proc/sys/net/core/somaxconn", "re");
	size_t n = 0;
	int fd[500], port;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%zu", &n), 1);
	ck_assert_int_eq(fclose(f), 0);
	n = n < 500 ? n : 500; /* what the kernel allows */
	ck_assert_int_eq(ls_http_bind(http, "127.0.0.1", 0, &listener, &port), 0);
	to.sin_port = htons((uint16_t)port);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (size_t i = 0; i < n; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ck_assert_int_eq(
			setsockopt(fd[i], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon)),
			0);
		ck_assert_int_eq(connect(fd[i], (struct sockaddr *)&to, sizeof(to)), 0);
	}
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(close(fd[i]), 0);
	evhttp_free(http);
	event_base_free(base);
}

LS_TEST(http, port_files_are_whole)
{
	char path[300], *text, longest[LS_CONF_VALUE_MAX_BYTES + 16];
	size_t len;

	(void)snprintf(path, sizeof(path), "%s/port", ls_test_tmpdir());
	ck_assert_int_eq(ls_http_write_ports(path, "http=1"), 0);
	ck_assert_int_eq(ls_http_write_ports(path, "http=23"), 0);
	text = ls_test_read(path, &len);
	ck_assert_str_eq(text, "http=23\n");
	free(text);
	ck_assert_int_eq(ls_http_write_ports("/no/such/place", "x"), -ENOENT);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	ck_assert_int_eq(ls_http_write_ports(longest, "x"), -ENAMETOOLONG);
}

LS_TEST(http, metrics_are_written_as_the_format_wants)
{
	struct evbuffer *out = evbuffer_new();

	ls_expose_number(out, "a_total", "counter", "what it is", 3);
	ls_expose_family(out, "b", "gauge", "other");
	(void)evbuffer_add_printf(out, "b{");
	ls_expose_label(out, "x", "a\"b\\c\nd", 1);
	ls_expose_label(out, "y", "", 0);
	(void)evbuffer_add_printf(out, "} 1\n");
	(void)evbuffer_add(out, "", 1);
	ck_assert_str_eq((const char *)evbuffer_pullup(out, -1),
		"# HELP a_total what it is\n# TYPE a_total counter\na_total 3\n"
		"# HELP b other\n# TYPE b gauge\nb{x=\"a\\\"b\\\\c\\nd\",y=\"\"} 1\n");
	evbuffer_free(out);
}
