/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leftovers - rings that were never finished: "PID-ID.tmp" in the steps directory,
 * removed when they are old.
 *
 * A training process makes its ring under this name, locks it, and renames it:
 * milliseconds. One that is killed meanwhile leaves the file, and nobody would ever
 * take it away. Here it goes when it was there for LS_LEFTOVER_AGE_NS and nobody holds
 * its lock. A file that may not be opened (it is of another user, mode 0600) cannot be
 * asked for its lock; its age decides alone. Should its writer still live, its renaming
 * fails, and its job goes on without a ring.
 *
 * Owner:   the agent loop thread. Plain memory.
 * Units:   ns, CLOCK_MONOTONIC. The age counts from when this process saw the file
 *          first: no clock of the file system is believed.
 * Errors:  none: what cannot be removed is tried again after the same age.
 * Limits:  LS_LEFTOVERS_MAX files are watched at a time; others wait for a place.
 * Source:  names: client/ring_file.c, client/python/lockstep/_ring.py.
 */
#ifndef LS_AGENT_LEFTOVERS_H
#define LS_AGENT_LEFTOVERS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "proto/limits.h"

#define LS_LEFTOVER_NAME_BYTES 64 /* a pid, "-", 32 hexadecimal digits, ".tmp" */

struct ls_leftover {
	char name[LS_LEFTOVER_NAME_BYTES];
	uint64_t since_ns;
	bool seen; /* in the scan under way */
};

/* Zeroed: none is watched. */
struct ls_leftovers {
	size_t count;
	struct ls_leftover file[LS_LEFTOVERS_MAX];
	uint64_t removed;
};

/* True if the client library gives this name to a ring that is being made. */
bool ls_leftovers_is_name(const char *name);

/* An entry of the directory with such a name. Only regular files are watched. */
void ls_leftovers_see(struct ls_leftovers *l, const struct dirent64 *e,
	uint64_t now_mono_ns);

/* The directory was read to its end: forgets what is not there any more, and removes
 * what is old. */
void ls_leftovers_settle(struct ls_leftovers *l, int dir_fd, uint64_t now_mono_ns);

#endif
