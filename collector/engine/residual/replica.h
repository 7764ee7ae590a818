/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replica - asynchronous jobs: workers that never wait for each other, each at steps of
 * its own (serving replicas).
 *
 * Their steps are not one another's: they are joined by time instead, in windows of W =
 * 1, 2, 4 ... 64 s (the least that is not shorter than a step), and a window is a row
 * whose cells are means over the records that end in it. It is closed when all have
 * reported beyond it; who has not by then is left out of it as a whole, so that stored
 * closings name the same records again. Nobody waits, so no residual tells who is late:
 * step time is compared with what the other replicas of the role need for as much work.
 * Nobody is judged without work done, nor where no others have been at that load.
 *
 *     load -> bins of a quarter octave -> per replica and bin means -> median over replicas -> straight lines between bins
 *     residual = step time / what the lines say - 1       -> detect, as any other residual
 *
 * A job is taken for asynchronous when LS_DETECT_WARM / 2 closed steps in a row hold no
 * barrier and no sync_wait, all from marks, and its workers cannot have met in them: at
 * most half of them are in it (their numbers are unrelated), or one had ended before
 * another began, or they lasted differently.
 *
 * Owner:   one job of the engine. Pure.
 * Units:   seconds; load in the unit of the work done; microseconds since the epoch.
 * Errors:  -LS_EDUPLICATE, -LS_ESTALE, -LS_ELIMIT, -ENOMEM.
 * Limits:  LS_REPLICA_BINS of 12 bytes a worker, 8 a role; only of jobs that are
 *          asynchronous.
 * Source:  design section 11, "Barriers"; comparing peers at equal load: facts of the
 *          published systems.
 */
#ifndef LS_COLLECTOR_REPLICA_H
#define LS_COLLECTOR_REPLICA_H

#include "collector/engine/params.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/engine/join/steps.h"

#define LS_REPLICA_BINS 48 /* of load: twelve octaves */

struct ls_engine;
struct ls_engine_worker;
struct ls_finding;
struct ls_gathered;
struct ls_job;

/* Sums over the windows in which a replica had so much load. */
struct ls_replica_bin {
	float n, load, own_s;
};

struct ls_replica_worker {
	struct ls_replica_bin bin[LS_REPLICA_BINS];
	uint64_t step; /* its own newest step that was judged */
};

/* What its replicas need for so much work; NaN = too few were there. */
struct ls_replica_line {
	float load[LS_REPLICA_BINS], own_s[LS_REPLICA_BINS];
};

struct ls_replica {
	bool on; /* the job is asynchronous */
	uint32_t rows; /* in a row that say it is of the other kind */
	uint32_t turns;
	unsigned width_log2; /* windows of 2^so many seconds */
	bool has_first;
	int first_bin; /* of loads, as all bins count from it */
	uint64_t windows; /* learned from */
	struct ls_replica_worker *worker; /* capacity of them, by slot */
	size_t capacity;
	struct ls_replica_line *line; /* by role */
	size_t lines;
};

/* Frees what it holds; it is as new. */
void ls_replica_fini(struct ls_replica *r);

/* Puts a record into its window; -LS_EDUPLICATE: not after the worker's last one. As
 * ls_steps_put. */
int ls_replica_put(struct ls_job *j, struct ls_engine_worker *w,
	const struct ls_record *r, int64_t now_us) LS_MUSTCHECK;

/* A window was taken out to be judged: leaves out who may still add to it, and makes
 * means of sums. */
void ls_replica_close(const struct ls_engine *e, const struct ls_job *j,
	struct ls_row *row);

/* Residuals of a window, all NaN before: those of blame.h that it cannot have stay so. room is grouped. */
void ls_replica_judge(struct ls_job *j, const struct ls_row *row,
	struct ls_blame_step *totals);

/* Looks at a judged row for what kind of job it is; when that changes, all that was
 * learned begins anew. */
void ls_replica_watch(struct ls_engine *e, struct ls_job *j, const struct ls_row *row,
	int64_t now_us);

/* A worker's own step: its first one of a window that is kept (its newest, if none is),
 * its newest. */
uint64_t ls_replica_step_in(const struct ls_job *j, size_t slot, uint64_t window);
uint64_t ls_replica_step(const struct ls_job *j, size_t slot);

/* What a slow replica costs: its own share of the job, of as many steps as it makes. */
void ls_replica_cost(const struct ls_engine *e, const struct ls_job *j, size_t slot,
	const struct ls_gathered *g, struct ls_finding *f, uint64_t step);

#endif
