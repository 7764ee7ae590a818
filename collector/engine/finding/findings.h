/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings - the engine's list of findings: looked up by subject, opened, brought up to
 * date, told and cleared.
 *
 * Owner:   the engine; parts that judge call it.
 * Units:   microseconds since the epoch; seconds for what a step takes and costs.
 * Errors:  -ENOMEM, -LS_ELIMIT, -LS_EDUPLICATE; findings without room are counted (findings_refused, findings_dropped).
 * Limits:  LS_FINDINGS_MAX; of more, the one cleared first is forgotten.
 * Source:  design section 7: ids, occurrences, reopening within 24 h.
 */
#ifndef LS_COLLECTOR_FINDINGS_H
#define LS_COLLECTOR_FINDINGS_H

#include "collector/engine/engine_state.h"

/* Brings its JSON up to date, if the sink wants any. -ENOMEM. */
int ls_findings_render(const struct ls_engine *e, struct ls_finding *f) LS_MUSTCHECK;

/* Frees what it holds, its JSON too. */
void ls_findings_forget(const struct ls_engine *e, struct ls_finding *f);

/* Takes one from storage, before any record. -LS_ELIMIT, -LS_EDUPLICATE, -ENOMEM leave it to the caller. */
int ls_findings_seed(struct ls_engine *e, const struct ls_finding *f) LS_MUSTCHECK;

/* The finding of this id, or NULL. */
struct ls_finding *ls_findings_find(const struct ls_engine *e, const char *id);

/* The newest finding about this subject, or NULL. */
struct ls_finding *ls_findings_last(const struct ls_engine *e,
	const struct ls_finding *subject);

/* The one that is open, or NULL: only the newest can be. */
struct ls_finding *ls_findings_open(const struct ls_engine *e,
	const struct ls_finding *subject);

/* Was this told before a restart? Then records that are fed again change nothing. */
static inline bool
ls_findings_is_known(const struct ls_finding *f, int64_t now_us)
{
	return now_us / 1000 <= f->known_us / 1000; /* storage keeps milliseconds */
}

/*
 * The finding about a subject, to be filled in and told: an open one; or one that begins with
 * this step, and within how many steps that is known: the last one again, if it waits or was cleared less than
 * 24 h ago, or a new one. The next cost counts from there. NULL: storage has told it already, or no room.
 */
struct ls_finding *ls_findings_claim(struct ls_engine *e,
	const struct ls_finding *subject, uint64_t step, int64_t t_us,
	uint32_t uncertainty_steps, int64_t now_us);

/* `step` came where `due` was expected (ls_job_due): the steps between have no record and cost nothing, also before the finding opens. */
void ls_findings_skip(struct ls_finding *f, uint64_t due, uint64_t step);

/* Its episode begins with this step, which is known within so many; the next cost counts from there. */
void ls_findings_begin(const struct ls_engine *e, struct ls_finding *f, uint64_t step,
	int64_t t_us, uint32_t uncertainty_steps);

/* One that waits holds in this attempt, too: its next episode begins with this step. */
void ls_findings_go_on(struct ls_finding *f, uint64_t step, int64_t t_us,
	int64_t now_us);

/* Is it time to tell its numbers again? Not if storage has told it already. */
static inline bool
ls_findings_is_due(const struct ls_finding *f, uint64_t step, int64_t now_us)
{
	return !ls_findings_is_known(f, now_us) &&
		(step >= f->last_step + LS_FINDING_UPDATE_STEPS ||
			now_us - f->updated_us >= LS_FINDING_UPDATE_US);
}

/* A finding of this kind about the job as a whole, to look for one by or to take. */
struct ls_finding ls_findings_of_job(const struct ls_engine *e, const struct ls_job *j,
	enum ls_finding_kind kind);

/* The same about one worker: of its host, if it is alone there. */
struct ls_finding ls_findings_of_worker(const struct ls_engine *e,
	const struct ls_job *j, const struct ls_engine_worker *w);

/* What it says of its job in the newest step that shows it. */
void ls_findings_present(const struct ls_engine *e, const struct ls_job *j,
	struct ls_finding *f, uint64_t step);

/* A step takes step_s, and blame_s less without it: slowdown, chips, severity. */
void ls_findings_price(const struct ls_engine *e, const struct ls_job *j,
	struct ls_finding *f, double step_s, double blame_s);

/* The same of each step from the last one accounted up to this one: added to what it has cost. blame_s is
 * kept within 0 .. 0.99 step_s. */
void ls_findings_cost(const struct ls_engine *e, const struct ls_job *j,
	struct ls_finding *f, double step_s, double blame_s, uint64_t step);

/* Adds a row of evidence that is only told. There must be room. It is compared with what is usual (NaN:
 * with nothing). The caller fills in the rest. */
struct ls_evidence *ls_findings_row(struct ls_finding *f, const char *metric,
	const char *unit, double value, double usual);

/* The part of it that adds up: each step since the last one accounted cost so many
 * chips blame_s. */
void ls_findings_account(struct ls_finding *f, double blame_s, double chips,
	uint64_t step);

/* Renders it and tells the sink; the event follows from its status and the one told last. */
void ls_findings_tell(struct ls_engine *e, struct ls_finding *f, int64_t now_us);

/* It is over; step: the last one that showed it. */
void ls_findings_clear(struct ls_engine *e, struct ls_finding *f, uint64_t step,
	int64_t now_us);

/* It is cleared, or will be at once, because `whole` tells what it told: says so. */
void ls_findings_part_of(struct ls_engine *e, struct ls_finding *f,
	const struct ls_finding *whole, int64_t now_us);

/* Clears every open finding of a job. Where only its attempt is over, those about workers wait for the next. */
void ls_findings_clear_job(struct ls_engine *e, struct ls_job *j,
	enum ls_finding_reason reason, int64_t now_us);

/* Clears those that have waited for too long: for a job to begin again, or to be measured at all. */
void ls_findings_expire(struct ls_engine *e, int64_t now_us);

#endif
