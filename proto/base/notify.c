/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/notify.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int
ls_notify_send(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len;
	ssize_t sent;
	int fd, rc = 0;

	if (!path || *path == '\0')
		return 0;
	len = strlen(path);
	if ((*path != '/' && *path != '@') || len >= sizeof(to.sun_path))
		return -LS_ERANGE;
	memcpy(to.sun_path, path, len);
	if (*path == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* A full queue must not hold up the loop: the next message comes soon enough.
	 */
	sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
		(const struct sockaddr *)&to,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	if (sent < 0)
		rc = -errno;
	(void)close(fd); /* nothing was buffered */
	return rc;
}

/* A whole decimal number from the environment; 0 if it is not there or not one. */
static uint64_t
notify_number(const char *name)
{
	const char *text = getenv(name);
	char *end;
	unsigned long long v;

	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	return errno != 0 || *end != '\0' ? 0 : v;
}

uint64_t
ls_notify_watchdog_ns(void)
{
	uint64_t pid = notify_number("WATCHDOG_PID");
	uint64_t usec = notify_number("WATCHDOG_USEC");

	if ((pid != 0 && pid != (uint64_t)getpid()) || usec > UINT64_MAX / 1000)
		return 0;
	return usec * 1000 / 2;
}
