/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verifier - the keeper's work of finding the day that a read found damaged.
 *
 * A read that fails may have met damage of a page, or bytes that do not decode. After
 * such a read all days are checked by SQLite, the newest first. A day with a damaged
 * page is sent to the writer, which sets the day aside. A day with sound pages stays.
 *
 * Owner:   turns run on one thread; suspect and stop may be called from any.
 * Units:   ns.
 * Errors:  those of ls_days_list; -LS_ELIMIT: the writer's queue is full.
 * Limits:  LS_VERIFY_AGAIN_NS between two checks.
 * Source:  sqlite.org/pragma.html, quick_check.
 */
#ifndef LS_STORAGE_VERIFIER_H
#define LS_STORAGE_VERIFIER_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "storage/db/rows.h"

struct ls_verifier;

/* For a state directory, whose name must outlive it; NULL when out of memory. */
struct ls_verifier *ls_verifier_new(const char *dir, ls_write_push_fn *push, void *arg);
void ls_verifier_free(struct ls_verifier *v);

/* A read met damage. */
void ls_verifier_suspect(struct ls_verifier *v);

/* Checks the days if a read met damage (ls_keeper_turn_fn). Takes long. */
int ls_verifier_turn(void *arg, bool *ret_more) LS_MUSTCHECK;

/* The same at a monotonic time of the caller's. */
int ls_verifier_step(struct ls_verifier *v, uint64_t now_ns) LS_MUSTCHECK;

/* A turn that is under way ends soon. */
void ls_verifier_stop(struct ls_verifier *v);

#endif
