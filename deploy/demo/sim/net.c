/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/sim/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "proto/base/http.h"

#define NET_OTHER_FILES 64u /* what the process has open besides */

int
sim_net_resolve(const char *url, struct sim_address *ret_address)
{
	static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV };
	char name[LS_CONF_VALUE_MAX_BYTES];
	struct addrinfo *found = NULL;
	uint16_t port;

	if (strncmp(url, "tcp://", strlen("tcp://")) != 0 ||
		ls_http_split(url + strlen("tcp://"), name, sizeof(name), &port) != 0 ||
		getaddrinfo(name, strrchr(url, ':') + 1, &hints, &found) != 0 ||
		found == NULL)
		return -LS_ERANGE;
	memcpy(&ret_address->addr, found->ai_addr, found->ai_addrlen);
	ret_address->len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

uint64_t
sim_net_raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0 ||
		getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	return limit.rlim_cur > NET_OTHER_FILES ? limit.rlim_cur - NET_OTHER_FILES : 0;
}

static int
net_bind(int fd, const struct sim_address *to, uint32_t n)
{
	struct sockaddr_in from;
	int yes = 1;

	memcpy(&from, &to->addr, sizeof(from));
	if (from.sin_family != AF_INET ||
		ntohl(from.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
		return 0;
	from.sin_port = 0;
	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + n);
	/* The port is chosen by connect, when it is known where to. */
	if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes)) !=
			0 ||
		bind(fd, (const struct sockaddr *)&from, sizeof(from)) != 0)
		return -errno;
	return 0;
}

int
sim_net_connect(const struct sim_address *to, uint32_t n, int *ret_fd)
{
	int fd = socket(to->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		0);
	int rc, yes = 1;

	if (fd < 0)
		return -errno;
	rc = net_bind(fd, to, n);
	if (rc == 0 && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0)
		rc = -errno;
	if (rc == 0 && connect(fd, (const struct sockaddr *)&to->addr, to->len) != 0 &&
		errno != EINPROGRESS)
		rc = -errno;
	if (rc == 0)
		*ret_fd = fd;
	else
		(void)close(fd);
	return rc;
}
