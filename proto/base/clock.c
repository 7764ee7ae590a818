/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/clock.h"

#include "proto/base/err.h"
#include "proto/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_UUID_CHARS 36

static int64_t
clock_read(clockid_t id)
{
	struct timespec ts;

	LS_ASSERT(clock_gettime(id, &ts) == 0);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

uint64_t
ls_clock_mono_ns(void)
{
	return (uint64_t)clock_read(CLOCK_MONOTONIC);
}

int64_t
ls_clock_wall_ns(void)
{
	return clock_read(CLOCK_REALTIME);
}

uint64_t
ls_clock_cpu_ns(void)
{
	return (uint64_t)clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t
ls_clock_thread_ns(void)
{
	return (uint64_t)clock_read(CLOCK_THREAD_CPUTIME_ID);
}

/* "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" to 16 bytes. */
static int
clock_parse_uuid(const char *s, uint8_t ret_id[LS_BOOT_ID_BYTES])
{
	char hex[2 * LS_BOOT_ID_BYTES + 1];
	size_t n = 0;

	for (size_t i = 0; i < CLOCK_UUID_CHARS; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (s[i] != '-')
				return -LS_EPARSE;
			continue;
		}
		hex[n++] = s[i];
	}
	hex[n] = '\0';
	return ls_text_unhex(ret_id, LS_BOOT_ID_BYTES, hex);
}

int
ls_clock_boot_id(const char *proc_root, uint8_t ret_id[LS_BOOT_ID_BYTES])
{
	char path[PATH_MAX];
	char text[CLOCK_UUID_CHARS + 2];
	ssize_t len;
	int fd, n, rc = 0;

	n = snprintf(path, sizeof(path), "%s/sys/kernel/random/boot_id", proc_root);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	if (len < 0)
		rc = -errno;
	(void)close(fd); /* only read from */
	if (rc != 0)
		return rc;
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (strlen(text) != CLOCK_UUID_CHARS)
		return -LS_EPARSE;
	return clock_parse_uuid(text, ret_id);
}
