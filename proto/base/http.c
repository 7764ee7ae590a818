/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include "proto/limits.h"

#define HTTP_CONTINUE 100

int
ls_http_split(const char *text, char *ret_address, size_t size, uint16_t *ret_port)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon != NULL ? (size_t)(colon - text) : 0;
	unsigned long port;
	char *end;

	if (colon == NULL || colon[1] < '0' || colon[1] > '9')
		return -LS_EPARSE;
	port = strtoul(colon + 1, &end, 10);
	if (*end != '\0' || port > UINT16_MAX)
		return -LS_EPARSE;
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (len == 0 || len >= size)
		return -LS_EPARSE;
	memcpy(ret_address, text, len);
	ret_address[len] = '\0';
	if (strcmp(ret_address, "localhost") == 0)
		(void)snprintf(ret_address, size, "127.0.0.1");
	*ret_port = (uint16_t)port;
	return 0;
}

int
ls_http_is_loopback(const char *address)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, address, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, address, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6);
	return -LS_EPARSE;
}

int
ls_http_bind(struct evhttp *http, const char *address, uint16_t port,
	struct evconnlistener **ret_listener, int *ret_port)
{
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	struct evhttp_bound_socket *socket;
	int fd;

	errno = 0;
	socket = evhttp_bind_socket_with_handle(http, address, port);
	if (socket == NULL)
		return errno != 0 ? -errno : -EADDRNOTAVAIL;
	fd = evhttp_bound_socket_get_fd(socket);
	/* libevent's 128 are full after some ms, and who comes then waits for a second */
	if (listen(fd, LS_LISTEN_BACKLOG) != 0 ||
		getsockname(fd, (struct sockaddr *)&bound, &len) != 0)
		return -errno;
	*ret_listener = evhttp_bound_socket_get_listener(socket);
	*ret_port = ntohs(bound.ss_family == AF_INET6
			? ((const struct sockaddr_in6 *)&bound)->sin6_port
			: ((const struct sockaddr_in *)&bound)->sin_port);
	return 0;
}

bool
ls_http_host_is_ours(struct evhttp_request *req, bool loopback, const char *names)
{
	const char *host = evhttp_request_get_host(req); /* without the port */
	size_t len = host != NULL ? strlen(host) : 0, n;
	char address[64];

	if (len == 0)
		return false;
	if (host[0] == '[' && host[len - 1] == ']')
		(void)snprintf(address, sizeof(address), "%.*s", (int)len - 2,
			host + 1);
	else
		(void)snprintf(address, sizeof(address), "%s", host);
	if (strcasecmp(host, "localhost") == 0 ||
		ls_http_is_loopback(address) >= (loopback ? 1 : 0))
		return true;
	for (; names[0] != '\0'; names += n + (names[n] == ',')) {
		n = strcspn(names, ",");
		if (n == len && strncasecmp(names, host, n) == 0)
			return true;
	}
	return false;
}

static void
http_on_input(struct evbuffer *in, const struct evbuffer_cb_info *info, void *arg)
{
	struct ls_http_mark *m = arg;

	(void)info;
	if (evbuffer_get_length(in) <= m->max)
		return;
	m->max = SIZE_MAX; /* once */
	(void)bufferevent_disable(m->bev, EV_READ); /* cannot fail */
	m->beyond(m->arg);
}

int
ls_http_mark_start(struct ls_http_mark *m)
{
	m->entry = evbuffer_add_cb(bufferevent_get_input(m->bev), http_on_input, m);
	return m->entry != NULL ? 0 : -ENOMEM;
}

void
ls_http_mark_stop(struct ls_http_mark *m)
{
	if (m->entry != NULL) /* it is there */
		(void)evbuffer_remove_cb_entry(bufferevent_get_input(m->bev), m->entry);
	m->entry = NULL;
}

int
ls_http_interim(struct evhttp_request *req, unsigned *interims)
{
	int status = evhttp_request_get_response_code(req);

	return status == HTTP_CONTINUE && ++*interims > LS_HTTP_INTERIM_MAX ? -1 : 0;
}

const char *
ls_http_bad_length(struct evhttp_request *req)
{
	const struct evkeyvalq *in = evhttp_request_get_input_headers(req);
	const struct evkeyval *header;
	unsigned lengths = 0;

	if (evhttp_find_header(in, "Transfer-Encoding") != NULL)
		return "Transfer-Encoding is not accepted in a request";
	TAILQ_FOREACH (header, in, next)
		lengths += strcasecmp(header->key, "Content-Length") == 0;
	return lengths > 1 ? "Content-Length is there more than once" : NULL;
}

int
ls_http_write_ports(const char *path, const char *line)
{
	char fresh[LS_CONF_VALUE_MAX_BYTES + 8];
	FILE *f;
	int rc = 0;

	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
		return -ENAMETOOLONG;
	f = fopen(fresh, "we");
	if (f == NULL)
		return -errno;
	if (fprintf(f, "%s\n", line) < 0)
		rc = -EIO;
	if (fclose(f) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(fresh, path) != 0)
		rc = -errno;
	return rc;
}
