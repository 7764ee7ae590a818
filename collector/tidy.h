/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidy - what is done behind the writer, by two threads of low priority: one packs the
 * journal into units and makes roll-ups, the other repacks closed days, which takes
 * long.
 *
 * Owner:   the loop thread; the work runs on the keepers'.
 * Units:   ns.
 * Errors:  -ENOMEM; those of ls_packer_new, ls_query_open and ls_keeper_open.
 * Limits:  those of storage/tidy/keeper.h and storage/tidy/packer.h.
 * Source:  storage/README.md, "Keeper", "Units", "Roll-ups" and "Repacking".
 */
#ifndef LS_COLLECTOR_TIDY_H
#define LS_COLLECTOR_TIDY_H

#include "storage/tidy/keeper.h"
#include "storage/tidy/packer.h"
#include "storage/tidy/repacker.h"
#include "storage/tidy/roller.h"
#include "storage/tidy/verifier.h"
#include "storage/write/writer.h"

struct ls_tidy;

struct ls_tidy_stats {
	struct ls_keeper_stats keeper;
	struct ls_packer_stats pack;
	struct ls_roller_stats roll;
	struct ls_repacker_stats repack;
	uint64_t repack_cpu_ns;
};

/* Starts; the writer must outlive it. Units span about pack_interval_ns. */
int ls_tidy_start(const char *dir, struct ls_writer *writer, uint64_t pack_interval_ns,
	struct ls_tidy **ret_tidy) LS_MUSTCHECK;

/* A read met damage: the day files are checked soon, and damaged ones set aside.
 * Accepts NULL. */
void ls_tidy_suspect(struct ls_tidy *t);

/* Ends after the turn that it is in, a repacking in the middle; accepts NULL. */
void ls_tidy_stop(struct ls_tidy *t);

/* Counters so far; zeros of NULL. */
void ls_tidy_stats(struct ls_tidy *t, struct ls_tidy_stats *ret_stats);

#endif
