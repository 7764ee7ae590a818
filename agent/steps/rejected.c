/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/rejected.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "proto/base/hash.h"

/* A directory keeps its order, so the search begins behind the file found last. */
static struct ls_rejected_file *
rejected_search(struct ls_rejected *r, const struct dirent64 *e)
{
	uint64_t hash = ls_hash(LS_HASH_START, e->d_name, strlen(e->d_name));

	for (size_t n = 0; n < r->count; n++) {
		struct ls_rejected_file *f = &r->file[(r->next + n) % r->count];

		if (f->ino == e->d_ino && f->name_hash == hash) {
			r->next = (r->next + n + 1) % r->count;
			return f;
		}
	}
	return NULL;
}

/* True if it is this file's turn to be checked. */
static bool
rejected_is_due(struct ls_rejected *r, size_t i)
{
	size_t after = (i + r->count - r->recheck) % r->count;

	if (r->rechecked == LS_STEPS_RECHECK_MAX || after >= LS_STEPS_RECHECK_MAX)
		return false;
	r->rechecked++;
	return true;
}

const struct ls_rejected_file *
ls_rejected_find(struct ls_rejected *r, int dir_fd, const struct dirent64 *e,
	uint64_t holds_at)
{
	struct ls_rejected_file *f = rejected_search(r, e);
	struct stat st;

	if (f == NULL || f->holds_at != holds_at)
		return NULL;
	if (rejected_is_due(r, (size_t)(f - r->file)) &&
		(fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
			st.st_ctim.tv_sec != f->changed.tv_sec ||
			st.st_ctim.tv_nsec != f->changed.tv_nsec))
		return NULL;
	f->seen = true;
	return f;
}

void
ls_rejected_add(struct ls_rejected *r, const struct dirent64 *e,
	const struct timespec *changed, unsigned why, uint64_t holds_at)
{
	struct ls_rejected_file *f = rejected_search(r, e);

	if (f == NULL && r->count < LS_STEPS_DIR_SCAN_MAX)
		f = &r->file[r->count++];
	if (f != NULL)
		*f = (struct ls_rejected_file){ e->d_ino,
			ls_hash(LS_HASH_START, e->d_name, strlen(e->d_name)), *changed,
			why, holds_at, true };
}

void
ls_rejected_end_scan(struct ls_rejected *r)
{
	size_t i, kept = 0;

	r->recheck += LS_STEPS_RECHECK_MAX;
	for (i = 0; i < r->count; i++) {
		if (r->file[i].seen)
			r->file[kept++] = r->file[i];
	}
	for (i = 0; i < kept; i++)
		r->file[i].seen = false;
	r->count = kept;
	r->recheck = kept > 0 ? r->recheck % kept : 0;
	r->next = r->rechecked = 0;
}
