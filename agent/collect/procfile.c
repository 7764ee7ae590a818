/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/collect/procfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int
ls_procfile_path(char *dst, size_t size, const char *root, const char *path)
{
	int n = snprintf(dst, size, "%s/%s", root, path);

	return n < 0 || (size_t)n >= size ? -LS_ELIMIT : 0;
}

void
ls_procfile_init(struct ls_procfile *f, const char *root, const char *path)
{
	f->fd = -1;
	if (ls_procfile_path(f->path, sizeof(f->path), root, path) != 0)
		f->path[0] = '\0';
}

void
ls_procfile_fini(struct ls_procfile *f)
{
	if (f->fd >= 0)
		(void)close(f->fd); /* only read from: nothing can be lost */
	f->fd = -1;
}

/* They may come in pieces; the file has ended when a read gives nothing. */
ssize_t
ls_procfile_pread(int fd, void *buf, size_t size, uint64_t offset)
{
	size_t len = 0;
	ssize_t n;

	while (len < size) {
		n = pread(fd, (char *)buf + len, size - len, (off_t)(offset + len));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

static int
procfile_read_fd(int fd, char *buf, size_t size, size_t *ret_len)
{
	ssize_t n = ls_procfile_pread(fd, buf, size, 0);

	if (n < 0 || (size_t)n == size)
		return n < 0 ? (int)n : -LS_ELIMIT;
	*ret_len = (size_t)n;
	return 0;
}

int
ls_procfile_read(struct ls_procfile *f, char *buf, size_t size, size_t *ret_len)
{
	int rc;

	if (f->fd < 0) {
		if (f->path[0] == '\0')
			return -LS_ELIMIT;
		f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (f->fd < 0)
			return -errno;
	}
	rc = procfile_read_fd(f->fd, buf, size, ret_len);
	if (rc != 0)
		ls_procfile_fini(f);
	return rc;
}

int
ls_procfile_read_once(int dir_fd, const char *path, char *buf, size_t size,
	size_t *ret_len)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc;

	if (fd < 0)
		return -errno;
	rc = procfile_read_fd(fd, buf, size, ret_len);
	(void)close(fd); /* only read from: nothing can be lost */
	return rc;
}
