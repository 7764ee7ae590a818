/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/leftovers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "proto/base/log.h"
#include "proto/base/text.h"
#include "proto/ring/ring.h"

bool
ls_leftovers_is_name(const char *name)
{
	size_t pid = strspn(name, "0123456789"), id;

	if (pid == 0 || strlen(name) >= LS_LEFTOVER_NAME_BYTES || name[pid] != '-')
		return false;
	name += pid + 1;
	id = strspn(name, "0123456789abcdef");
	return id == 2 * (size_t)LS_RING_ID_BYTES && strcmp(name + id, ".tmp") == 0;
}

void
ls_leftovers_see(struct ls_leftovers *l, const struct dirent64 *e, uint64_t now_mono_ns)
{
	size_t i;

	if (e->d_type != DT_REG && e->d_type != DT_UNKNOWN)
		return;
	for (i = 0; i < l->count && strcmp(l->file[i].name, e->d_name) != 0; i++)
		;
	if (i == LS_LEFTOVERS_MAX)
		return;
	if (i == l->count) {
		if (ls_text_copy(l->file[i].name, sizeof(l->file[i].name), e->d_name) !=
			0)
			return; /* no name of ours */
		l->file[i].since_ns = now_mono_ns;
		l->count++;
	}
	l->file[i].seen = true;
}

/* True if it is a file that somebody holds the writer's lock on. */
static bool
leftovers_is_locked(int dir_fd, const char *name)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1
	};
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	bool locked;

	if (fd < 0)
		return false;
	locked = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	(void)close(fd); /* only asked */
	return locked;
}

static void
leftovers_remove(struct ls_leftovers *l, int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		!S_ISREG(st.st_mode) || leftovers_is_locked(dir_fd, name))
		return;
	if (unlinkat(dir_fd, name, 0) != 0) {
		ls_log(LS_LOG_WARN, "step",
			"cannot remove unfinished ring %s (%s); leaving it in place",
			name, strerror(errno));
		return;
	}
	l->removed++;
	ls_log(LS_LOG_INFO, "step", "removed %s: its process never finished this ring",
		name);
}

void
ls_leftovers_settle(struct ls_leftovers *l, int dir_fd, uint64_t now_mono_ns)
{
	size_t i = l->count;

	while (i-- > 0) {
		struct ls_leftover *f = &l->file[i];

		if (!f->seen) {
			*f = l->file[--l->count];
			continue;
		}
		f->seen = false;
		if (now_mono_ns - f->since_ns < LS_LEFTOVER_AGE_NS)
			continue;
		leftovers_remove(l, dir_fd, f->name);
		f->since_ns = now_mono_ns; /* if it is still there: not every second */
	}
}
