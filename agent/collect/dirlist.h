/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dirlist - the entries of a directory, one after the other, without allocating.
 *
 * Owner:   the caller's struct; one thread at a time.
 * Units:   none.
 * Errors:  -errno from opening; reading ends early where it fails, and says so.
 * Limits:  none: entries come in pieces of LS_DIRLIST_BYTES.
 * Source:  getdents64(2). opendir(3) allocates 32 KiB each time.
 */
#ifndef LS_AGENT_DIRLIST_H
#define LS_AGENT_DIRLIST_H

#include <dirent.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include "proto/base/err.h"

#define LS_DIRLIST_BYTES 4096u /* holds an entry with the longest name several times */

struct ls_dirlist {
	int fd;
	bool failed; /* not all entries were seen */
	size_t pos, len;
	alignas(struct dirent64) char bytes[LS_DIRLIST_BYTES];
};

/* Opens a directory; only then it is to be closed. */
int ls_dirlist_open(struct ls_dirlist *d, const char *path) LS_MUSTCHECK;

/* The next entry, "." and ".." among them; it holds until the next call. NULL: no more.
 */
const struct dirent64 *ls_dirlist_next(struct ls_dirlist *d);

/* Closes it. */
void ls_dirlist_close(struct ls_dirlist *d);

#endif
