/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/collect/dirlist.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int
ls_dirlist_open(struct ls_dirlist *d, const char *path)
{
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d->pos = d->len = 0;
	d->failed = false;
	return d->fd < 0 ? -errno : 0;
}

const struct dirent64 *
ls_dirlist_next(struct ls_dirlist *d)
{
	const struct dirent64 *e;
	ssize_t n;

	if (d->pos == d->len) {
		n = getdents64(d->fd, d->bytes, sizeof(d->bytes));
		d->failed = n < 0;
		if (n <= 0)
			return NULL;
		d->pos = 0;
		d->len = (size_t)n;
	}
	e = (const void *)(d->bytes + d->pos); /* the kernel aligns entries */
	d->pos += e->d_reclen;
	return e;
}

void
ls_dirlist_close(struct ls_dirlist *d)
{
	(void)close(d->fd); /* only read from */
}
