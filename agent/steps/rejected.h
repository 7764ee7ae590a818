/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rejected - the files of the steps directory that were opened and rejected, so that
 * they are not opened again while they stay as they are.
 *
 * A file is known by its inode and name, and unchanged while its change time is the
 * same: that time follows each write, chmod and rename. Up to LS_STEPS_RECHECK_MAX
 * files are checked for a change at each scan, in turn, so that a directory full of
 * junk costs no system call per file.
 *
 * Owner:   the agent loop thread. Plain memory.
 * Units:   none.
 * Errors:  none: a file that finds no room is opened again at the next scan.
 * Limits:  LS_STEPS_DIR_SCAN_MAX files.
 */
#ifndef LS_AGENT_REJECTED_H
#define LS_AGENT_REJECTED_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include "proto/limits.h"

struct ls_rejected_file {
	ino64_t ino;
	uint64_t name_hash;
	struct timespec changed;
	unsigned why; /* the caller's number */
	/* A reason that is not in the file alone holds until this number changes. */
	uint64_t holds_at;
	bool seen; /* in the scan under way */
};

/* Zeroed: empty. */
struct ls_rejected {
	size_t count, next; /* next: where the search begins */
	size_t recheck; /* the next file to check for a change */
	unsigned rechecked; /* in the scan under way */
	struct ls_rejected_file file[LS_STEPS_DIR_SCAN_MAX];
};

/*
 * The file of this directory entry if it was rejected before, is unchanged, and
 * holds_at is the same as then; otherwise NULL: the caller opens it.
 */
const struct ls_rejected_file *ls_rejected_find(struct ls_rejected *r, int dir_fd,
	const struct dirent64 *e, uint64_t holds_at);

/* Remembers a file. changed: st_ctim, taken before the file was read. */
void ls_rejected_add(struct ls_rejected *r, const struct dirent64 *e,
	const struct timespec *changed, unsigned why, uint64_t holds_at);

/* The scan is over: forgets files that it did not meet. */
void ls_rejected_end_scan(struct ls_rejected *r);

#endif
