/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "agent/uplink/resolve.h"

#include <errno.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "proto/base/http.h"
#include "proto/base/log.h"

struct ls_resolve {
	struct ls_resolve_handler handler; /* resolved is NULL: closed */
	struct event_base *base;
	struct evdns_base *dns;
	struct evdns_getaddrinfo_request *request; /* NULL: the callback was called */
};

int
ls_resolve_split(const char *url, char *ret_host, size_t size, uint16_t *ret_port)
{
	static const char scheme[] = "tcp://";

	if (strncmp(url, scheme, strlen(scheme)) != 0 ||
		ls_http_split(url + strlen(scheme), ret_host, size, ret_port) != 0 ||
		*ret_port == 0 || ret_host[strcspn(ret_host, "/ @")] != '\0')
		return -LS_ERANGE;
	return 0;
}

static void
resolve_log(int is_warning, const char *text)
{
	(void)is_warning;
	ls_log(LS_LOG_DEBUG, "resolve", "%s", text);
}

static void
resolve_free(evutil_socket_t fd, short what, void *arg)
{
	struct ls_resolve *r = arg;

	(void)fd;
	(void)what;
	evdns_base_free(r->dns, 0);
	free(r);
}

/* libevent 2.1.12 calls this for a cancelled request, too, and later. Its resolver is in
 * use then: it is freed from the loop. */
static void
resolve_done(int rc, struct evutil_addrinfo *found, void *arg)
{
	const struct timeval at_once = { 0, 0 };
	struct ls_resolve *r = arg;

	r->request = NULL;
	if (r->handler.resolved == NULL)
		(void)event_base_once(r->base, -1, EV_TIMEOUT, resolve_free, r,
			&at_once); /* fails without memory: then this one leaks */
	else
		r->handler.resolved(r->handler.arg, rc == 0 ? found : NULL,
			rc == 0 ? NULL : evutil_gai_strerror(rc));
	if (found != NULL)
		evutil_freeaddrinfo(found);
}

int
ls_resolve_open(struct event_base *base, const char *host, uint16_t port,
	const struct ls_resolve_handler *handler, struct ls_resolve **ret_resolve)
{
	/* A numeric address of IPv6 has nothing to do with the addresses of this host. */
	const struct evutil_addrinfo hints = {
		.ai_flags = strchr(host, ':') == NULL ? EVUTIL_AI_ADDRCONFIG : 0,
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM
	};
	struct ls_resolve *r = calloc(1, sizeof(*r));
	char service[8];

	if (r == NULL)
		return -ENOMEM;
	r->handler = *handler;
	r->base = base;
	evdns_set_log_fn(resolve_log);
	r->dns = evdns_base_new(base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (r->dns == NULL) {
		free(r);
		return -ENOMEM;
	}
	/* Where the file is missing, the name server is 127.0.0.1: resolv.conf(5). */
	(void)evdns_base_resolv_conf_parse(r->dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
	(void)snprintf(service, sizeof(service), "%u", (unsigned)port);
	*ret_resolve = r; /* the callback may come at once */
	r->request = evdns_getaddrinfo(r->dns, host, service, &hints, resolve_done, r);
	return 0;
}

void
ls_resolve_close(struct ls_resolve *r)
{
	if (r == NULL)
		return;
	r->handler.resolved = NULL;
	if (r->request != NULL)
		evdns_getaddrinfo_cancel(r->request);
	else
		resolve_free(-1, 0, r);
}
