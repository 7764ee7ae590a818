/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/uplink/resolve; names are resolved in tests/system/night/distros.sh. */
#include "config.h"

#include "agent/uplink/resolve.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <string.h>
#include "tests/support/harness.h"

static struct event_base *base;
static char answer[64]; /* address and port, or "none" */

static void
on_resolved(void *arg, const struct evutil_addrinfo *found, const char *why)
{
	char host[INET6_ADDRSTRLEN] = "";

	ck_assert_str_eq(answer, "");
	(void)arg;
	if (found == NULL) {
		ck_assert_ptr_nonnull(why);
		(void)snprintf(answer, sizeof(answer), "none");
	} else if (found->ai_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)found->ai_addr;

		ck_assert_ptr_nonnull(
			inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host)));
		(void)snprintf(answer, sizeof(answer), "%s %u", host,
			(unsigned)ntohs(in->sin_port));
	} else {
		const struct sockaddr_in6 *in = (const void *)found->ai_addr;

		ck_assert_ptr_nonnull(
			inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof(host)));
		(void)snprintf(answer, sizeof(answer), "%s %u", host,
			(unsigned)ntohs(in->sin6_port));
	}
}

static struct ls_resolve *
resolve(const char *host)
{
	static const struct ls_resolve_handler handler = { NULL, on_resolved };
	struct ls_resolve *r;

	answer[0] = '\0';
	ck_assert_int_eq(ls_resolve_open(base, host, 7117, &handler, &r), 0);
	return r;
}

static void
setup(void)
{
	base = event_base_new();
	ck_assert_ptr_nonnull(base);
}

static void
teardown(void)
{
	event_base_free(base);
}

LS_CASE(resolve, setup, teardown);

LS_TEST(resolve, numeric_addresses_are_answered_at_once)
{
	ls_resolve_close(resolve("127.0.0.2"));
	ck_assert_str_eq(answer, "127.0.0.2 7117");
	ls_resolve_close(resolve("::1"));
	ck_assert_str_eq(answer, "::1 7117");
}

LS_TEST(resolve, a_name_that_cannot_be_has_a_reason)
{
	char label[65];
	struct ls_resolve *r;

	memset(label, 'a', sizeof(label) - 1); /* RFC 1035: at most 63 */
	label[sizeof(label) - 1] = '\0';
	r = resolve(label);
	ck_assert_int_ge(event_base_dispatch(base), 0);
	ck_assert_str_eq(answer, "none");
	ls_resolve_close(r);
}

LS_TEST(resolve, what_is_closed_calls_nobody)
{
	ls_resolve_close(resolve("lockstep-collector.invalid"));
	answer[0] = '\0'; /* where no name server is, there was an answer */
	ck_assert_int_ge(event_base_dispatch(base), 0);
	ck_assert_str_eq(answer, "");
	ls_resolve_close(NULL);
}

LS_TEST(resolve, host_and_port_of_an_address)
{
	static const struct {
		const char *url, *host;
		uint16_t port;
	} good[] = { { "tcp://a.example:1", "a.example", 1 },
		{ "tcp://[::1]:65535", "::1", 65535 },
		{ "tcp://10.0.0.1:7117", "10.0.0.1", 7117 } };
	static const char *const bad[] = { "", "tcp://", "tcp://a",
		"tcp://a:", "tcp://a:0", "tcp://a:65536", "tcp://:1", "udp://a:1",
		"tcp://a/b:1", "tcp://a b:1", "tcp://a:1/" };
	char host[16];
	uint16_t port;
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_int_eq(
			ls_resolve_split(good[i].url, host, sizeof(host), &port), 0);
		ck_assert_str_eq(host, good[i].host);
		ck_assert_uint_eq(port, good[i].port);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(ls_resolve_split(bad[i], host, sizeof(host), &port),
			-LS_ERANGE);
	ck_assert_int_eq(ls_resolve_split("tcp://a-name-of-16-chars:1", host,
				 sizeof(host), &port),
		-LS_ERANGE);
}
