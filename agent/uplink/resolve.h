/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve - the addresses of a host name, without blocking and without getaddrinfo(3).
 *
 * libevent's evdns reads /etc/hosts and /etc/resolv.conf at each call, and asks the name
 * servers there. It needs no shared library of glibc, so that a static agent can use it.
 *
 * Owner:   the thread of the event base. Not thread-safe.
 * Units:   port is a number from 0 to 65535.
 * Errors:  -LS_ERANGE not "tcp://HOST:PORT", or HOST is too long; -ENOMEM. A name that cannot be resolved is reported by the callback.
 * Limits:  the time-outs and retries of resolv.conf(5).
 * Source:  libevent 2.1, event2/dns.h.
 */
#ifndef LS_AGENT_RESOLVE_H
#define LS_AGENT_RESOLVE_H

#include <event2/util.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

struct event_base;
struct ls_resolve;

struct ls_resolve_handler {
	void *arg;
	/* Called once, perhaps before ls_resolve_open returns. found: the addresses, valid
	 * during the call, never empty; NULL: there is none, and why says the reason. */
	void (*resolved)(void *arg, const struct evutil_addrinfo *found,
		const char *why);
};

/* The host (without brackets) and port of "tcp://HOST:PORT". */
int ls_resolve_split(const char *url, char *ret_host, size_t size,
	uint16_t *ret_port) LS_MUSTCHECK;

/* Starts to resolve host: a name, or a numeric address, which is answered at once. */
int ls_resolve_open(struct event_base *base, const char *host, uint16_t port,
	const struct ls_resolve_handler *handler,
	struct ls_resolve **ret_resolve) LS_MUSTCHECK;

/* Cancels what is not resolved yet: the callback is not called any more.
 * What libevent still holds is freed when the loop runs. Accepts NULL. */
void ls_resolve_close(struct ls_resolve *r);

#endif
