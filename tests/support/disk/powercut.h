/* SPDX-License-Identifier: Apache-2.0 */
/*
 * powercut - a disk that forgets, at a power cut, what was not synced.
 *
 * While it records, every write, truncation, creation, rename, removal and sync below
 * one directory is logged, whoever in the process makes it: SQLite as well as our own
 * code, because the program's own open(), pwrite() and so on come before those of libc.
 * Afterwards the log is replayed up to any operation, and what the disk may hold then
 * is built:
 *
 *   of a file        what the last fsync() of the file promised, and of each sector
 *                    written since any of its later states (so writes may be torn and
 *                    in any order), and any of its later sizes;
 *   of a directory   the entries that its last fsync() promised, and of the entry
 *                    operations since a prefix or a subset (those of one name in order).
 *
 * That is what POSIX promises, which is less than what ext4 does. Syncs reach no disk:
 * only the log. Renames stay within a directory.
 *
 * Owner:   one test program with one thread; the file is linked into that program only.
 * Units:   an operation is its number in the log.
 * Errors:  a failure fails the test.
 * Limits:  names of POWERCUT_NAME bytes, descriptors below POWERCUT_FDS.
 */
#ifndef LS_TESTS_POWERCUT_H
#define LS_TESTS_POWERCUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POWERCUT_NAME 64
#define POWERCUT_FDS 1024

/* Logs what happens below `root`, which is empty and durable, in an empty log. */
void ls_powercut_record(const char *root);
/* Ends the log; what it holds stays until the next recording. */
void ls_powercut_stop(void);

/* Operations so far, and the part of the scenario that the next ones belong to. */
size_t ls_powercut_count(void);
void ls_powercut_stage(int stage);
int ls_powercut_stage_of(size_t operation);

struct ls_powercut {
	size_t at; /* operations before the cut */
	uint64_t seed; /* what is forgotten */
	const char *no_sync_of; /* syncs of this directory never happened: "", "a/b" */
};

/* What hung in the balance at a cut. */
struct ls_powercut_loss {
	uint64_t sectors, sectors_lost; /* written and not synced; forgotten */
	uint64_t entries, entries_lost; /* changes of directories, likewise */
};

/* Makes `to`, which does not exist, what the disk holds after the cut. */
void ls_powercut_restore(const struct ls_powercut *cut, const char *to,
	struct ls_powercut_loss *ret_loss);

#endif
