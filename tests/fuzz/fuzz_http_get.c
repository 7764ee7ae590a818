/* SPDX-License-Identifier: Apache-2.0 */
/* An exchange of the agent with a page that sends anything in any pieces; and any URL. The first byte chooses
 * what is asked. */
#include "config.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "agent/pages/http_get.h"
#include "proto/base/log.h"
#include "proto/limits.h"

#define BODY_MAX_BYTES 8192u
#define SENT_MAX_BYTES (256u * 1024)
#define TURNS_MAX 1000
/* Bits of the first byte. */
#define BY_NAME 1 /* localhost, and a query */
#define EXPECTS 2 /* a header of the answer */
#define LATE 4 /* the deadline has passed */
#define BAD_HEADER 8
#define URL 16 /* the rest is a URL */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ls_loop *loop;
static struct ls_http_get *get;
static int listener = -1;
static unsigned port;
static unsigned told;

static void
on_done(void *arg, int rc, int status, const char *body, size_t len)
{
	(void)arg;
	told++;
	LS_ASSERT(body != NULL && len <= BODY_MAX_BYTES);
	LS_ASSERT(rc == 0 ? status >= 100 : status == 0 && len == 0);
}

static void
start(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);

	ls_log_set_level(LS_LOG_ERR);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	LS_ASSERT(listener >= 0 && bind(listener, (struct sockaddr *)&at, len) == 0 &&
		listen(listener, 4) == 0 &&
		getsockname(listener, (struct sockaddr *)&at, &len) == 0);
	port = ntohs(at.sin_port);
	loop = ls_loop_new();
	LS_ASSERT(loop != NULL);
}

static void
fuzz_url(const uint8_t *data, size_t size)
{
	struct ls_http_get_options options = { .body_max_bytes = BODY_MAX_BYTES,
		.deadline_ns = 10000000000ull,
		.done = on_done };
	char *url = malloc(size + 1);
	int rc;

	LS_ASSERT(url != NULL);
	if (size > 0)
		memcpy(url, data, size);
	url[size] = '\0';
	options.url = url;
	rc = ls_http_get_new(loop, &options, &get);
	LS_ASSERT((rc == 0) == (ls_http_get_check(url) == 0));
	if (rc == 0)
		ls_http_get_free(get);
	free(url);
}

/* False: it cannot be asked so. */
static bool
ask(unsigned setting)
{
	char url[64];
	struct ls_http_get_options options = { .url = url,
		.header = "Metadata-Flavor",
		.value = (setting & BAD_HEADER) != 0 ? "a\r\nb" : "Google",
		.expect = (setting & EXPECTS) != 0 ? "Server" : NULL,
		.expect_value = "x",
		.body_max_bytes = BODY_MAX_BYTES,
		.deadline_ns = (setting & LATE) != 0 ? 1 : 10000000000ull,
		.done = on_done };

	(void)snprintf(url, sizeof(url),
		(setting & BY_NAME) != 0 ? "http://localhost:%u?a=b"
					 : "http://127.0.0.1:%u/",
		port);
	LS_ASSERT(ls_http_get_new(loop, &options, &get) == 0);
	told = 0;
	if ((setting & BAD_HEADER) != 0) {
		LS_ASSERT(ls_http_get_start(get, NULL) == -LS_EPARSE);
		ls_http_get_free(get);
		return false;
	}
	LS_ASSERT(ls_http_get_start(get, NULL) == 0);
	LS_ASSERT(ls_http_get_start(get, NULL) == -LS_EBUSY);
	return true;
}

static void
turn(void)
{
	(void)event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK);
}

/* Behind the first byte, a command is a byte, a length and so many bytes, which are sent 4^(bits 0 to 2) times;
 * the loop turns after each sending (bit 7). Then the page ends. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct linger none = { 1, 0 }; /* or all ports are used up soon */
	unsigned setting = size > 0 ? data[0] : 0;
	size_t times, len, sent = 0;
	int fd, turns;

	if (loop == NULL)
		start();
	data += size > 0;
	size -= size > 0;
	if ((setting & URL) != 0)
		fuzz_url(data, size);
	if ((setting & URL) != 0 || !ask(setting))
		return 0;
	do
		turn();
	while ((setting & LATE) != 0 && told == 0);
	fd = accept(listener, NULL, NULL);
	LS_ASSERT(fd >= 0);
	while (size >= 2 && sent < SENT_MAX_BYTES && told == 0) {
		len = data[1] < size - 2 ? data[1] : size - 2;
		for (times = 1u << (2 * (data[0] & 7));
			times > 0 && sent < SENT_MAX_BYTES; times--) {
			sent += len + 64; /* a sending costs at least as much */
			if (send(fd, data + 2, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
				break;
			if ((data[0] & 128) != 0)
				turn();
		}
		turn();
		data += 2 + len;
		size -= 2 + len;
	}
	(void)shutdown(fd, SHUT_WR);
	for (turns = 0; told == 0 && turns < TURNS_MAX; turns++)
		turn();
	LS_ASSERT(told == 1);
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)); /* as well */
	(void)close(fd);
	turn();
	ls_http_get_free(get);
	return 0;
}
