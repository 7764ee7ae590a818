/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/spool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int
ls_spool_pwrite(int fd, const uint8_t *bytes, size_t len, uint64_t offset)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = pwrite(fd, bytes + done, len - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

uint64_t
ls_spool_damaged_bytes(int dir_fd)
{
	struct stat st;

	return fstatat(dir_fd, "spool.damaged", &st, AT_SYMLINK_NOFOLLOW) == 0
		? (uint64_t)st.st_size
		: 0;
}
