/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/spool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Writes all of it at offset, or says why not. */
static int
spool_file_write(int fd, struct iovec *iov, int count, uint64_t offset)
{
	size_t want = 0, done = 0;
	ssize_t n;
	int i;

	for (i = 0; i < count; i++)
		want += iov[i].iov_len;
	while (done < want) {
		n = pwritev(fd, iov, count, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
		for (i = 0; i < count; i++) {
			size_t part =
				iov[i].iov_len < (size_t)n ? iov[i].iov_len : (size_t)n;

			iov[i].iov_base = (uint8_t *)iov[i].iov_base + part;
			iov[i].iov_len -= part;
			n -= (ssize_t)part;
		}
	}
	return 0;
}

int
ls_spool_write_record(int fd, const struct ls_spool_record *r, uint64_t offset)
{
	uint8_t head[LS_SPOOL_RECORD_BYTES];
	struct iovec iov[2] = { { head, sizeof(head) }, { NULL, r->len } };

	ls_spool_record_put(head, r);
	if (r->len > 0)
		memcpy(&iov[1].iov_base, &r->payload,
			sizeof(r->payload)); /* only read */
	return spool_file_write(fd, iov, r->len > 0 ? 2 : 1, offset);
}

int
ls_spool_pwrite(int fd, const uint8_t *bytes, size_t len, uint64_t offset)
{
	struct iovec iov = { NULL, len };

	memcpy(&iov.iov_base, &bytes, sizeof(bytes)); /* only read */
	return spool_file_write(fd, &iov, 1, offset);
}

int
ls_spool_write_header(int fd, const struct ls_spool_header *h)
{
	uint8_t head[LS_SPOOL_HEADER_BYTES];
	struct iovec iov = { head, sizeof(head) };

	ls_spool_header_put(head, h);
	return spool_file_write(fd, &iov, 1, 0);
}

ssize_t
ls_spool_pread(int fd, uint8_t *buf, size_t size, uint64_t offset)
{
	size_t len = 0;
	ssize_t n;

	while (len < size) {
		n = pread(fd, buf + len, size - len, (off_t)(offset + len));
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

uint64_t
ls_spool_damaged_bytes(int dir_fd)
{
	struct stat st;

	return fstatat(dir_fd, "spool.damaged", &st, AT_SYMLINK_NOFOLLOW) == 0
		? (uint64_t)st.st_size
		: 0;
}
