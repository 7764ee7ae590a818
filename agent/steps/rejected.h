/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rejected - the files of the steps directory that were opened and rejected, so that
 * they are not opened again while they stay as they are.
 *
 * A file is known by its inode and name, and unchanged while its change time is the
 * same: that time follows each write, chmod and rename. Up to LS_STEPS_RECHECK_MAX
 * files are checked for a change in each pass over the directory, in turn, so that a
 * directory full of junk costs no system call per file.
 *
 * Owner:   the agent loop thread. Plain memory.
 * Units:   none.
 * Errors:  none: a file that finds no room is opened again in the next pass.
 * Limits:  LS_STEPS_REJECTED_MAX files, LS_REJECTED_WAYS of one hash. A file that two
 *          passes did not meet is forgotten.
 */
#ifndef LS_AGENT_REJECTED_H
#define LS_AGENT_REJECTED_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include "proto/limits.h"

#define LS_REJECTED_WAYS 8u
#define LS_REJECTED_SETS (LS_STEPS_REJECTED_MAX / LS_REJECTED_WAYS)

struct ls_rejected_file {
	ino64_t ino;
	uint64_t hash; /* of inode and name */
	struct timespec changed;
	/* A reason that is not in the file alone holds until this number changes. */
	uint64_t holds_at;
	unsigned why; /* the caller's number */
	uint32_t pass; /* 1 + the pass that met it last; 0: no file */
};

/* Zeroed: empty. */
struct ls_rejected {
	uint32_t pass;
	size_t met, met_before; /* in this pass, in the pass before */
	size_t recheck; /* the next file to check for a change, in order of meeting */
	unsigned rechecked; /* in this pass */
	struct ls_rejected_file file[LS_REJECTED_SETS][LS_REJECTED_WAYS];
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

/* The pass over the directory is complete. */
void ls_rejected_end_pass(struct ls_rejected *r);

#endif
