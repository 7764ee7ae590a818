/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/workload/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "deploy/demo/workload/workload.h"

static void
netns_path(const char *prefix, unsigned rank, char *dst, size_t size)
{
	(void)snprintf(dst, size, "/run/netns/%s%u", prefix, rank);
}

int
netns_check(const char *prefix, unsigned ranks, char *err, unsigned err_size)
{
	char path[WORKLOAD_PATH_BYTES];

	for (unsigned r = 0; r < ranks; r++) {
		netns_path(prefix, r, path, sizeof(path));
		if (access(path, R_OK) == 0)
			continue;
		(void)snprintf(err, err_size, "--netns %s: %s: %s", prefix, path,
			strerror(errno));
		return -1;
	}
	return 0;
}

int
netns_enter(const char *prefix, unsigned rank)
{
	char path[WORKLOAD_PATH_BYTES];
	int fd, rc = 0;

	netns_path(prefix, rank, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (setns(fd, CLONE_NEWNET) != 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* The address by which others reach this namespace: the first that is not loopback's.
 */
static int
netns_address(struct sockaddr_in *ret)
{
	struct ifaddrs *list, *i;
	int rc = -EADDRNOTAVAIL;

	if (getifaddrs(&list) != 0)
		return -errno;
	for (i = list; i != NULL && rc != 0; i = i->ifa_next) {
		if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET ||
			(i->ifa_flags & IFF_LOOPBACK) != 0)
			continue;
		memcpy(ret, i->ifa_addr, sizeof(*ret));
		ret->sin_port = 0;
		rc = 0;
	}
	freeifaddrs(list);
	return rc;
}

/* Listens in the namespace of this rank; *ret_fd is the caller's even if this fails,
 * once it is there. */
static int
netns_listen(const char *prefix, unsigned rank, int *ret_fd, struct sockaddr_in *ret_at)
{
	socklen_t len = sizeof(*ret_at);
	int rc = netns_enter(prefix, rank);

	if (rc == 0)
		rc = netns_address(ret_at);
	if (rc != 0)
		return rc;
	*ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*ret_fd < 0 ||
		bind(*ret_fd, (struct sockaddr *)ret_at, sizeof(*ret_at)) != 0 ||
		listen(*ret_fd, 1) != 0 ||
		getsockname(*ret_fd, (struct sockaddr *)ret_at, &len) != 0)
		return -errno;
	return 0;
}

/* Connects from the namespace of this rank; *ret_fd as above. */
static int
netns_call(const char *prefix, unsigned rank, const struct sockaddr_in *at, int *ret_fd)
{
	struct pollfd fd = { .events = POLLOUT };
	socklen_t len = sizeof(int);
	int error = 0, rc = netns_enter(prefix, rank);

	if (rc != 0)
		return rc;
	*ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*ret_fd < 0)
		return -errno;
	if (connect(*ret_fd, (const struct sockaddr *)at, sizeof(*at)) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	fd.fd = *ret_fd;
	if (poll(&fd, 1, NETNS_CONNECT_MS) != 1)
		return -ETIMEDOUT;
	if (getsockopt(*ret_fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		return -errno;
	return -error;
}

int
netns_connect(const char *prefix, unsigned from, unsigned to, int ret_fds[2])
{
	int home, listen_fd = -1, fds[2] = { -1, -1 }, one = 1, rc;
	struct sockaddr_in at;

	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0)
		return -errno;
	rc = netns_listen(prefix, to, &listen_fd, &at);
	if (rc == 0)
		rc = netns_call(prefix, from, &at, &fds[0]);
	if (rc == 0) {
		fds[1] = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		/* As training libraries do: pieces of a ring are not to wait for each
		 * other. */
		if (fds[1] < 0 ||
			setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &one,
				sizeof(one)) != 0 ||
			setsockopt(fds[1], IPPROTO_TCP, TCP_NODELAY, &one,
				sizeof(one)) != 0)
			rc = -errno;
	}
	if (setns(home, CLONE_NEWNET) != 0 && rc == 0)
		rc = -errno;
	close(home);
	if (listen_fd >= 0)
		close(listen_fd);
	if (rc == 0) {
		memcpy(ret_fds, fds, sizeof(fds));
		return 0;
	}
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	return rc;
}
