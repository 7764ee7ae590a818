/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store - the write side of a state directory, without a thread: batches in,
 * transactions out.
 *
 * Two files are open: state.db and the day's telemetry. A batch commits to state.db
 * first, then to the day's file: what telemetry names exists. Within a file all of a
 * batch is there or nothing. A day's file begins with the ledger of the one before, in
 * the transaction that makes it. Days never go back: under a clock that does, rows go
 * to the newest file.
 *
 * Owner:   one thread at a time.
 * Units:   microseconds since the epoch; bytes.
 * Errors:  -LS_EBUSY another process has the directory; -LS_EVERSION made by a newer
 *          program, or by an unreleased one; -errno; those of ls_err_sqlite. What
 *          ls_store_open cannot use is logged with its path and what to do.
 * Limits:  LS_WAL_CHECKPOINT_BYTES, LS_DB_CHECK_NS, LS_LEDGER_KEEP_US.
 * Source:  storage/README.md.
 */
#ifndef LS_STORAGE_STORE_H
#define LS_STORAGE_STORE_H

#include <stddef.h>
#include <stdint.h>
#include "storage/db/days.h"
#include "storage/db/rows.h"

struct ls_store;

/* What people have to know about the files; the last such event, kept in state.db. */
enum ls_store_news {
	LS_STORE_QUIET,
	LS_STORE_REMOVED, /* a file lost its name while it was open */
	LS_STORE_REPLACED, /* and another has it: ours is FILE.salvaged-SECONDS */
	LS_STORE_FUTURE, /* the day's file was of a day in the future */
	LS_STORE_FULL, /* the oldest days are about to go: LS_RETAIN_AUTO */
	LS_STORE_EVENTS
};

struct ls_store_note {
	int64_t t_us; /* when */
	int32_t event;
	char name[44]; /* the file, below the state directory */
};

struct ls_store_stats {
	uint64_t commits, failures;
	uint64_t rows; /* events, and rows of all other tables */
	uint64_t records; /* step records */
	uint64_t chunks, chunk_bytes; /* rows of chunk, and their bodies */
	/* packed, and not: not there any more, or the disk refused */
	uint64_t units, units_refused;
	uint64_t set_aside; /* damaged files, since the start */
	struct ls_days_aside aside; /* at the last retention or when one was added */
	struct ls_store_note note;
	uint64_t removed_days; /* by retention */
	uint64_t bytes; /* of all files, at the last retention or start */
};

/*
 * Opens (and where missing makes) the directory; takes its lock; migrates; sets damaged
 * files aside. wall_us is now; dir must outlive the store.
 */
int ls_store_open(const char *dir, int64_t wall_us,
	struct ls_store **ret_store) LS_MUSTCHECK;

/* Closes; accepts NULL. */
void ls_store_close(struct ls_store *s);

/*
 * Makes all messages of the batch durable and returns 0, or the first error: then
 * messages whose `rc` became 0 are durable, those with rc < 0 are not, and may be given
 * again. -LS_EREOPEN: a file lost its name, or is of a future that a wrong clock made;
 * all that was committed is safe, nothing more is taken: close and open again. An empty
 * batch looks for that alone.
 */
int ls_store_commit(struct ls_store *s, struct ls_write *const *batch, size_t count,
	int64_t wall_us) LS_MUSTCHECK;

/*
 * Puts a unit in place of rows of the journal, durably, in a transaction of its own.
 * -LS_ESTALE: it is of another day's file, or exactly those rows are not there; like
 * all errors it changes nothing.
 */
int ls_store_pack(struct ls_store *s, const struct ls_store_pack *pack) LS_MUSTCHECK;

/*
 * Puts roll-ups into the file of their day, durably, in a transaction of its own; a
 * closed day's file is opened for it. -LS_ESTALE: there is no such file, or rollup_done
 * is not as the message has it; like all errors it changes nothing.
 */
int ls_store_rollup(struct ls_store *s,
	const struct ls_store_rollup *rollup) LS_MUSTCHECK;

/* Sets the damaged file of a day aside; the open day goes on in a new file. */
int ls_store_set_aside(struct ls_store *s, int32_t day, int64_t wall_us) LS_MUSTCHECK;

/* Puts the repacked file of a closed day in the old one's place (ls_replace_day). */
int ls_store_replace(struct ls_store *s, int32_t day) LS_MUSTCHECK;

/* Its directory. */
const char *ls_store_dir(const struct ls_store *s);

/* Counters so far. */
void ls_store_stats(const struct ls_store *s, struct ls_store_stats *ret_stats);

/*
 * Checks every database file below dir, one line each to `say`; 0 if all are sound,
 * else the error of the worst. Needs no ls_store. If all are sound and no collector uses
 * dir, worker ids that older versions did not put into state.db are put there.
 */
int ls_store_check(const char *dir, void (*say)(void *arg, const char *line),
	void *arg) LS_MUSTCHECK;

#endif
