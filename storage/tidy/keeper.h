/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper - the thread that tidies up behind the writer: one turn of each kind of work
 * after the other.
 *
 * What the kinds are is given at the start: packing the journal, making roll-ups. They
 * read by connections of their own and hand what they made to the writer as messages,
 * so that one connection writes. The thread runs at low priority and gives way: nothing
 * waits for it.
 *
 * Owner:   the opener's thread; turns run on the keeper's own, one at a time.
 * Units:   ns.
 * Errors:  -ENOMEM, -errno at the start. A turn that fails is logged when its error is
 *          a new one, counted, and tried again at the next round.
 * Limits:  LS_KEEPER_TURN_NS between rounds, LS_KEEPER_TURNS_MAX kinds of work.
 * Source:  storage/README.md, "Keeper".
 */
#ifndef LS_STORAGE_KEEPER_H
#define LS_STORAGE_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

struct ls_keeper;

/* One turn of one kind of work; it ends soon. *ret_more, false before: there is more to
 * do at once. */
typedef int ls_keeper_turn_fn(void *arg, bool *ret_more);

struct ls_keeper_work {
	const char *name; /* for the log; static */
	ls_keeper_turn_fn *turn;
	void *arg;
};

struct ls_keeper_stats {
	uint64_t turns, failures;
	uint64_t cpu_ns; /* of its thread */
};

/* Starts the thread; the work is copied. -LS_ELIMIT: more than LS_KEEPER_TURNS_MAX
 * kinds. */
int ls_keeper_open(const struct ls_keeper_work *work, size_t count,
	struct ls_keeper **ret_keeper) LS_MUSTCHECK;

/* Ends after the turn it is in; accepts NULL. */
void ls_keeper_close(struct ls_keeper *k);

/* Counters so far; any thread. */
void ls_keeper_stats(struct ls_keeper *k, struct ls_keeper_stats *ret_stats);

#endif
