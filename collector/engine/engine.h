/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine - the pure core: records in, findings out.
 *
 *     record -> steps (join) -> blame -> detect -> cost -> cause -> finding
 *
 * No I/O, no clock, no globals: (state, input, now) -> (state, output). The same inputs
 * in the same order give byte-identical findings, live or in replay. Outputs go to the
 * sink, during the call that causes them.
 *
 * Owner:   one thread.
 * Units:   times in microseconds since the Unix epoch on one time line (live: the
 *          collector's; in replay: that of the file); durations in records stay in ns.
 * Errors:  -LS_ELIMIT, -LS_ERANGE, -LS_EDUPLICATE, -LS_ESTALE, -LS_EUNKNOWN,
 *          -LS_EPARSE, -ENOMEM.
 * Limits:  LS_JOBS_MAX, LS_WORKERS_MAX, LS_OPEN_STEPS_MAX, LS_FINDINGS_MAX.
 * Source:  the estimators and detectors name theirs in blame.h, detect.h and cause.h.
 */
#ifndef LS_COLLECTOR_ENGINE_H
#define LS_COLLECTOR_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/metrics.h"
#include "proto/ring/record.h"
#include "proto/ring/ring.h"

/* Changes when the same inputs give other findings; each finding names it. */
#define LS_ENGINE_VERSION "56"
#define LS_NO_WORKER UINT32_MAX

struct ls_engine;

/* How a step was closed; stored, so that replay judges the same steps on the same
 * records. */
struct ls_engine_close {
	const char *job;
	int32_t attempt;
	uint64_t step;
	int64_t t_us; /* `now` of the closing */
	uint32_t expected; /* workers in it, or still awaited then */
	uint32_t used; /* records judged */
	const int32_t *
		missing; /* ranks of the attempt that were not judged, ascending, at most
	                           LS_CLOSE_MISSING_MAX; records of them come too late */
	size_t missing_count;
};

/* A job seen standing still; stored, since live slots are not. */
struct ls_engine_hang {
	const char *job;
	int32_t attempt;
	uint64_t step; /* the least that is not over */
	int64_t since_us; /* newest mark of anybody */
	int64_t t_us; /* `now` of the observation */
	uint32_t waiting; /* workers in the barrier */
	enum ls_hang_why why;
	/* not in it, ascending, at most LS_CLOSE_MISSING_MAX; none unless why names
	 * them */
	const int32_t *ranks;
	size_t count;
};

struct json_t;
struct ls_finding;

struct ls_engine_sink {
	void *arg;
	/* A step was closed and judged. NULL: not wanted. */
	void (*closed)(void *arg, const struct ls_engine_close *c);
	/* render updates f->json; -ENOMEM leaves the old one. forget frees it. NULL: no JSON is made. */
	int (*render)(struct ls_finding *f);
	void (*forget)(struct ls_finding *f);
	/* A finding was opened or changed; `finding` is its JSON (borrowed reference); `event` is "opened", "updated", "cleared" or "reopened"; updates
	 * of the numbers alone come after LS_FINDING_UPDATE_STEPS steps or LS_FINDING_UPDATE_US, whichever is first. NULL: not wanted. */
	void (*finding)(void *arg, const char *id, const char *event, int64_t t_us,
		struct json_t *finding);
	/* A job was seen standing still; at most every 10 s a job. NULL: not wanted. */
	void (*hang)(void *arg, const struct ls_engine_hang *seen);
};

/* New engine; NULL when out of memory. `sink` is copied and may be NULL. */
struct ls_engine *ls_engine_new(const struct ls_engine_sink *sink);
void ls_engine_free(struct ls_engine *e);

/* How long a slowdown of one worker lasts before it is a finding, while its job is young
 * (scales.h); LS_SCALES_PATIENCE_S at first. */
void ls_engine_patience(struct ls_engine *e, double patience_s);

/*
 * Declares a worker (idempotent for the same job, attempt, rank and host) and returns
 * its handle. One of the same (job, attempt, rank) on another host takes the holder's
 * place if the holder has ended; else it is a worker of its own, beside the holder
 * (counted: duplicate_ranks). attempt < 0: decided here (a rank that ended and comes back begins
 * the next attempt). When places run out, those of jobs and hosts that have been quiet
 * for longest are given away, those of workers by ls_engine_advance; -LS_ELIMIT when all
 * are busy, and for more than LS_HOST_WORKERS_MAX of one host. -LS_ESTALE for an attempt
 * that is over; -LS_EBUSY for one begun by who owns (host and user) no worker of the
 * present attempt while that reports, or if further than LS_ATTEMPT_JUMP_MAX, no more of them than others (counted: foreign_attempt); -LS_ERANGE for impossible names or numbers.
 */
int ls_engine_worker(struct ls_engine *e, const struct ls_worker_info *info,
	int64_t now_us, uint32_t *ret_worker) LS_MUSTCHECK;

/*
 * The same of a worker of which there is no record yet: also -LS_ELIMIT while
 * LS_WORKERS_UNHEARD_MAX places are taken by such workers. Its first record, declared by
 * ls_engine_worker, finds a place.
 */
int ls_engine_announce(struct ls_engine *e, const struct ls_worker_info *info,
	int64_t now_us, uint32_t *ret_worker) LS_MUSTCHECK;

/* Has the worker its place still? */
bool ls_engine_has_worker(const struct ls_engine *e, uint32_t worker);

/*
 * One step record; its times are wall ns of the engine's time line. -LS_EDUPLICATE:
 * this step of this worker is known; -LS_ESTALE: the step is closed (kept by storage,
 * marked late, not judged); -LS_ERANGE: impossible values; -LS_EUNKNOWN: no worker of
 * its job's present attempt (declare it again). All are counted.
 */
int ls_engine_record(struct ls_engine *e, uint32_t worker, const struct ls_record *r,
	int64_t now_us) LS_MUSTCHECK;

/* Counts lost records of a worker, for data quality. Judgement does not use the count. */
void ls_engine_gap(struct ls_engine *e, uint32_t worker, uint64_t count);

/*
 * A worker's process ended (how: enum ls_end_how): it is no longer expected.
 * When all of the job have ended, its open findings are cleared, and say so. If one of them crashed, or how it ended is
 * not known, those about workers wait for the next attempt first (findings.h).
 */
void ls_engine_end(struct ls_engine *e, uint32_t worker, unsigned how, int64_t now_us);

/* Where a worker is now (from its live slot); times of the engine's time line. */
void ls_engine_live(struct ls_engine *e, uint32_t worker,
	const struct ls_ring_live *live, int64_t since_us, int64_t now_us);

/* How well the clock of a worker's host is known; arrivals are not compared beyond it.
 */
void ls_engine_clock(struct ls_engine *e, uint32_t worker, double uncertainty_s);

/*
 * Current values of counters of a host: worker = LS_NO_WORKER for the host's own, else
 * the worker's. What is not taken is counted: -LS_ESTALE not newer than the last of the
 * same host and worker, -LS_EUNKNOWN no such worker, -LS_ERANGE no name of a host,
 * -LS_ELIMIT.
 */
int ls_engine_counters(struct ls_engine *e, const char *host, uint32_t worker,
	int64_t t_us, size_t count, const uint16_t *metric,
	const double *value) LS_MUSTCHECK;

/*
 * What the host of a worker said cannot be; counted, and named in the data quality of
 * its jobs. The engine itself sees to what it refuses.
 */
enum ls_lie {
#define LS_LIE(id, name, help) LS_LIE_##id,
#include "collector/engine/join/lies.def"
#undef LS_LIE
	LS_LIE_COUNT
};
void ls_engine_lie(struct ls_engine *e, const char *host, enum ls_lie why,
	uint64_t count);

/* Name of a reason; NULL if out of range. */
const char *ls_lie_name(unsigned why);

/* Marks workers as silent that were not heard of for a while; ls_engine_advance does so, too. */
void ls_engine_silence(struct ls_engine *e, int64_t now_us);

/* Lets time pass: closes overdue steps, marks silent workers. Call at least every 200
 * ms. */
void ls_engine_advance(struct ls_engine *e, int64_t now_us);

/*
 * While on, steps of the job close only by ls_engine_close_step: for restoring after a
 * restart and for replay of stored closings. -LS_EUNKNOWN: no such job.
 */
int ls_engine_manual(struct ls_engine *e, const char *job, bool on) LS_MUSTCHECK;

/*
 * What is usual of each worker and host: bytes for storage, to be freed; 120, two times for each job and
 * worker and four for each host at most, and what an earlier life of the collector kept of others, for a day. -LS_EABSENT: nothing is known of any job yet; -ENOMEM.
 */
int ls_engine_reference(const struct ls_engine *e, int64_t now_us, void **ret_bytes,
	size_t *ret_len) LS_MUSTCHECK;

/*
 * Loads these bytes, before any record: workers of the same attempt on the same host need not be
 * learned again. Nothing is loaded of -LS_EVERSION (another engine or byte order), -LS_ERANGE (from
 * the future), -LS_EPARSE (length or checksum), -ENOMEM.
 */
int ls_engine_reference_load(struct ls_engine *e, const void *bytes, size_t len,
	int64_t now_us) LS_MUSTCHECK;

/* After a restart: for LS_SILENT_S no step is overdue, because agents come back one by
 * one, and the last one may be that of a culprit. For LS_COUNTERS_S, causes that need
 * counters stay as they were reported. */
void ls_engine_restored(struct ls_engine *e, int64_t now_us);

/*
 * Replay of a stored closing: closes the step (and any open one before it) now, judging
 * what is there. -LS_EUNKNOWN: no such job or attempt.
 */
int ls_engine_close_step(struct ls_engine *e, const char *job, int32_t attempt,
	uint64_t step, int64_t now_us) LS_MUSTCHECK;

/* Replay of a stored observation of a standstill. -LS_EUNKNOWN: no such job or attempt;
 * -LS_ERANGE. */
int ls_engine_hang(struct ls_engine *e, const struct ls_engine_hang *seen) LS_MUSTCHECK;

/* Counters of the engine itself, for /metrics. */
struct ls_engine_stats {
	uint64_t jobs, workers, records, duplicates, late, rejected, gaps, steps_closed,
		steps_short, duplicate_ranks, counters, counters_ignored, findings_open,
		findings_total, findings_refused, findings_dropped, steps_forgotten;
	uint64_t lies[LS_LIE_COUNT];
};
void ls_engine_stats(const struct ls_engine *e, struct ls_engine_stats *ret_stats);

#endif
