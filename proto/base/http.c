/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "proto/limits.h"

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

	errno = 0;
	socket = evhttp_bind_socket_with_handle(http, address, port);
	if (socket == NULL)
		return errno != 0 ? -errno : -EADDRNOTAVAIL;
	if (getsockname(evhttp_bound_socket_get_fd(socket), (struct sockaddr *)&bound,
		    &len) != 0)
		return -errno;
	*ret_listener = evhttp_bound_socket_get_listener(socket);
	*ret_port = ntohs(bound.ss_family == AF_INET6
			? ((const struct sockaddr_in6 *)&bound)->sin6_port
			: ((const struct sockaddr_in *)&bound)->sin_port);
	return 0;
}

bool
ls_http_host_is_local(struct evhttp_request *req)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]", "::1" };
	const char *host = evhttp_request_get_host(req); /* without the port */
	size_t i;

	for (i = 0; host != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(host, names[i]) == 0)
			return true;
	}
	return false;
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
