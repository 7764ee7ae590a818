/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidy - the keeper and what it is given to do: packing the journal into units.
 *
 * Owner:   the loop thread; the work runs on the keeper's.
 * Units:   ns.
 * Errors:  those of ls_packer_new and ls_keeper_open.
 * Limits:  those of storage/keeper.h and storage/packer.h.
 * Source:  storage/README.md, "Keeper" and "Units".
 */
#ifndef LS_COLLECTOR_TIDY_H
#define LS_COLLECTOR_TIDY_H

#include "storage/keeper.h"
#include "storage/packer.h"
#include "storage/writer.h"

struct ls_tidy;

struct ls_tidy_stats {
	struct ls_keeper_stats keeper;
	struct ls_packer_stats pack;
};

/* Starts; the writer must outlive it. Units span about pack_interval_ns. */
int ls_tidy_start(const char *dir, struct ls_writer *writer, uint64_t pack_interval_ns,
	struct ls_tidy **ret_tidy) LS_MUSTCHECK;

/* Ends after the turn that it is in; accepts NULL. */
void ls_tidy_stop(struct ls_tidy *t);

/* Counters so far; zeros of NULL. */
void ls_tidy_stats(struct ls_tidy *t, struct ls_tidy_stats *ret_stats);

#endif
