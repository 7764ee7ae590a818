/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/http/assets.h"
#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct ls_asset *
ls_asset_find(const char *path)
{
	if (strcmp(path, "/") == 0)
		path = "/index.html";
	for (size_t i = 0; i < ls_ui_asset_count; i++) {
		if (strcmp(path, ls_ui_assets[i].path) == 0)
			return &ls_ui_assets[i];
	}
	return NULL;
}

int
ls_asset_read(const struct ls_asset *a, const char *root, struct evbuffer *out)
{
	const char *name = strrchr(a->path, '/'); /* the slash, too */
	char path[LS_ASSET_PATH_MAX_BYTES];
	struct stat st;
	int fd, got = 0, rc = 0;

	if (snprintf(path, sizeof(path), "%s%s", root, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_size > LS_ASSET_MAX_BYTES)
		rc = -EFBIG;
	while (rc == 0 && (got = evbuffer_read(out, fd, LS_ASSET_MAX_BYTES)) > 0) {
		if (evbuffer_get_length(out) > LS_ASSET_MAX_BYTES)
			rc = -EFBIG; /* it grew under our hands */
	}
	if (got < 0)
		rc = -errno;
	(void)close(fd);
	return rc;
}
