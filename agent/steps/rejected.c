/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/rejected.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "proto/base/hash.h"

static uint64_t
rejected_hash(const struct dirent64 *e)
{
	return ls_hash(ls_hash(LS_HASH_START, e->d_name, strlen(e->d_name)), &e->d_ino,
		sizeof(e->d_ino));
}

/* Whether this place holds a file that this pass or the one before met. */
static bool
rejected_is_held(const struct ls_rejected *r, const struct ls_rejected_file *f)
{
	return f->pass != 0 && f->pass >= r->pass;
}

/* The place of the file, or else a free one (*ret_found false); NULL: no room. */
static struct ls_rejected_file *
rejected_place(struct ls_rejected *r, const struct dirent64 *e, bool *ret_found)
{
	uint64_t hash = rejected_hash(e);
	struct ls_rejected_file *set = r->file[hash % LS_REJECTED_SETS], *spare = NULL;

	*ret_found = true;
	for (size_t i = 0; i < LS_REJECTED_WAYS; i++) {
		if (!rejected_is_held(r, &set[i]))
			spare = &set[i];
		else if (set[i].ino == e->d_ino && set[i].hash == hash)
			return &set[i];
	}
	*ret_found = false;
	return spare;
}

/* True if it is the turn of the n-th file of this pass to be checked. */
static bool
rejected_is_due(struct ls_rejected *r, size_t n)
{
	size_t after =
		n >= r->recheck ? n - r->recheck : n + r->met_before - r->recheck;

	if (r->rechecked == LS_STEPS_RECHECK_MAX || after >= LS_STEPS_RECHECK_MAX)
		return false;
	r->rechecked++;
	return true;
}

const struct ls_rejected_file *
ls_rejected_find(struct ls_rejected *r, int dir_fd, const struct dirent64 *e,
	uint64_t holds_at)
{
	bool found;
	struct ls_rejected_file *f = rejected_place(r, e, &found);
	struct stat st;

	if (!found || f->holds_at != holds_at)
		return NULL;
	if (rejected_is_due(r, r->met++) &&
		(fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
			st.st_ctim.tv_sec != f->changed.tv_sec ||
			st.st_ctim.tv_nsec != f->changed.tv_nsec))
		return NULL;
	f->pass = r->pass + 1;
	return f;
}

void
ls_rejected_add(struct ls_rejected *r, const struct dirent64 *e,
	const struct timespec *changed, unsigned why, uint64_t holds_at)
{
	bool found;
	struct ls_rejected_file *f = rejected_place(r, e, &found);

	if (f != NULL)
		*f = (struct ls_rejected_file){ e->d_ino, rejected_hash(e), *changed,
			holds_at, why, r->pass + 1 };
}

void
ls_rejected_end_pass(struct ls_rejected *r)
{
	r->recheck += LS_STEPS_RECHECK_MAX;
	r->recheck = r->met > 0 ? r->recheck % r->met : 0;
	r->met_before = r->met;
	r->met = r->rechecked = 0;
	r->pass++;
}
