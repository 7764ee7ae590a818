/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/params.h"
#include "proto/base/mem.h"
#include "proto/base/text.h"

#include <math.h>
#include <string.h>

/* The event to report: by its status now and the status reported last. */
static const char *
findings_event(const struct ls_finding *f)
{
	const char *is = ls_finding_name(LS_NAMES_STATUS, f->status),
		   *was = ls_finding_name(LS_NAMES_STATUS, f->told_status);

	if (!f->told)
		return "opened";
	return strcmp(is, was) == 0 ? "updated" : is;
}

/* A number as it is told, and stored: what a restart continues from. */
static double
findings_told(double v)
{
	return isfinite(v) ? ls_text_round(v, LS_FINDING_DIGITS) : 0;
}

/* Own work of its worker beyond the median of its peers, in seconds, as it is told; NaN: it is not. */
static double
findings_own_s(const struct ls_finding *f)
{
	LS_EACH (const struct ls_evidence, row, f->evidence, f->evidence_count)
		if (strcmp(row->metric, LS_EVIDENCE_OWN_WORK) == 0)
			return findings_told(row->subject) - findings_told(row->p50);
	return NAN;
}

int
ls_findings_render(const struct ls_engine *e, struct ls_finding *f)
{
	return e->sink.render == NULL ? 0 : e->sink.render(f);
}

void
ls_findings_tell(struct ls_engine *e, struct ls_finding *f, int64_t now_us)
{
	const struct ls_job *j = ls_engine_find_job(e, f->who.job);
	const char *event = findings_event(f);

	f->updated_us = now_us;
	f->simulated |= j != NULL && ls_job_is_simulated(e, j);
	if (ls_findings_render(e, f) != 0)
		return; /* out of memory: the next update tells */
	if (!ls_finding_is_stored(f))
		f->told_own_s = findings_own_s(f);
	if (f->chips > 0)
		f->chip_hours = findings_told(f->chip_hours);
	f->told = true;
	f->told_status = f->status;
	if (e->sink.finding != NULL)
		e->sink.finding(e->sink.arg, f->id, event, now_us, f->json);
}

void
ls_findings_forget(const struct ls_engine *e, struct ls_finding *f)
{
	if (e->sink.forget != NULL)
		e->sink.forget(f);
	ls_finding_fini(f);
}

struct ls_finding *
ls_findings_find(const struct ls_engine *e, const char *id)
{
	size_t i = e->finding_count;

	while (i > 0 && strcmp(e->findings[i - 1].id, id) != 0)
		i--;
	return i > 0 ? &e->findings[i - 1] : NULL;
}

/* Room for one more finding: when all places are taken, the one cleared first is
 * forgotten. */
static int
findings_make_room(struct ls_engine *e)
{
	struct ls_finding *oldest = NULL;

	if (e->finding_count < LS_FINDINGS_MAX)
		return ls_mem_grow((void **)&e->findings, e->finding_count,
			&e->finding_capacity, sizeof(*e->findings));
	LS_FINDINGS (e, f)
		if (!ls_finding_is_open(f) &&
			(oldest == NULL || f->cleared_us < oldest->cleared_us))
			oldest = f;
	if (oldest == NULL)
		return -LS_ELIMIT;
	ls_findings_forget(e, oldest);
	e->finding_count--;
	memmove(oldest, oldest + 1,
		(size_t)(e->findings + e->finding_count - oldest) * sizeof(*oldest));
	e->stats.findings_dropped++;
	return 0;
}

static int
findings_make_id(const struct ls_engine *e, struct ls_finding *f)
{
	unsigned more = 0;
	int rc;

	do
		rc = ls_finding_make_id(f, more++, f->id);
	while (rc == 0 && ls_findings_find(e, f->id) != NULL);
	return rc;
}

int
ls_findings_seed(struct ls_engine *e, const struct ls_finding *f)
{
	int rc = -LS_ELIMIT;

	if (e->finding_count < LS_FINDINGS_MAX)
		rc = ls_mem_grow((void **)&e->findings, e->finding_count,
			&e->finding_capacity, sizeof(*e->findings));
	if (rc == 0 && ls_findings_find(e, f->id) != NULL)
		rc = -LS_EDUPLICATE;
	if (rc == 0)
		e->findings[e->finding_count++] = *f;
	return rc;
}

struct ls_finding *
ls_findings_last(const struct ls_engine *e, const struct ls_finding *subject)
{
	for (size_t i = e->finding_count; i > 0; i--)
		if (ls_finding_same_subject(&e->findings[i - 1], subject))
			return &e->findings[i - 1];
	return NULL;
}

struct ls_finding *
ls_findings_open(const struct ls_engine *e, const struct ls_finding *subject)
{
	struct ls_finding *f = ls_findings_last(e, subject);

	return f != NULL && ls_finding_is_open(f) ? f : NULL;
}

/* The last finding about a subject goes on, with another episode; false: it is another by now. */
static bool
findings_again(struct ls_finding *last, int64_t now_us)
{
	if (ls_finding_waits(last))
		last->cleared_us = last->updated_us;
	if (now_us - last->cleared_us >= LS_ENGINE_US(LS_REOPEN_S) ||
		ls_finding_end_episode(last) != 0)
		return false;
	last->reason = LS_REASON_CALM;
	last->part_of[0] = '\0';
	return true;
}

/* A finding that was just taken, since this step. */
static void
findings_begin(struct ls_finding *f, uint64_t step, int64_t t_us,
	uint32_t uncertainty_steps)
{
	uint32_t n = f->episodes;
	bool over = n == 0 || ls_finding_waits(f) || t_us > f->cleared_us;

	if (over || f->since_us >= t_us) {
		f->since_step = step;
		f->since_us = t_us;
	}
	f->since_chip_hours = f->chip_hours;
	f->accounted_step = step > 0 ? step - 1 : 0;
	if (!over) {
		if (f->accounted_step < f->last_step)
			f->accounted_step = f->last_step;
		if (!isnan(f->episode[n - 1].chip_hours))
			f->since_chip_hours -= f->episode[n - 1].chip_hours;
		f->episodes--;
	}
	if (n == 0 || t_us < f->onset_us) {
		f->onset_step = step;
		f->onset_us = t_us;
	}
	f->cost_steps = f->cost_sum_s = 0;
	f->cleared_us = 0;
	f->reopened += !ls_finding_is_open(f);
	f->status = ls_finding_next(f->status, LS_EVENT_NAMED);
	f->born = f->gradual = f->intermittent = false;
	f->slope_s = 0;
	f->uncertainty_steps = uncertainty_steps;
}

void
ls_findings_skip(struct ls_finding *f, uint64_t due, uint64_t step)
{
	uint64_t last = due - 1 > f->accounted_step ? due - 1 : f->accounted_step;

	if (step > last + 1)
		f->accounted_step += step - 1 - last;
}

void
ls_findings_go_on(struct ls_finding *f, uint64_t step, int64_t t_us, int64_t now_us)
{
	if (findings_again(f, now_us))
		findings_begin(f, step, t_us, f->uncertainty_steps);
}

void
ls_findings_begin(const struct ls_engine *e, struct ls_finding *f, uint64_t step,
	int64_t t_us, uint32_t uncertainty_steps)
{
	const struct ls_job *j = ls_engine_find_job(e, f->who.job);

	findings_begin(f, step, t_us, uncertainty_steps);
	for (size_t i = 1; i < j->live_count && !j->replica.on; i++)
		ls_findings_skip(f, ls_job_due(j, i), ls_job_row(j, i)->row.step);
}

struct ls_finding *
ls_findings_claim(struct ls_engine *e, const struct ls_finding *subject, uint64_t step,
	int64_t t_us, uint32_t uncertainty_steps, int64_t now_us)
{
	struct ls_finding *f = ls_findings_last(e, subject), fresh = *subject;

	if (f != NULL && ls_findings_is_known(f, now_us))
		return NULL;
	if (f != NULL && ls_finding_is_open(f) && !ls_finding_waits(f))
		return f;
	if (f != NULL && findings_again(f, now_us)) {
		f->scope = subject->scope; /* a rank's may be its host's now */
	} else {
		fresh.occurrence = f == NULL ? 1 : f->occurrence + 1;
		fresh.status = LS_FINDING_OPEN;
		fresh.detected_us = now_us;
		if (findings_make_id(e, &fresh) != 0 || findings_make_room(e) != 0) {
			e->stats.findings_refused++;
			return NULL;
		}
		f = &e->findings[e->finding_count++];
		*f = fresh;
	}
	ls_findings_begin(e, f, step, t_us, uncertainty_steps);
	return f;
}

struct ls_finding
ls_findings_of_job(const struct ls_engine *e, const struct ls_job *j,
	enum ls_finding_kind kind)
{
	struct ls_finding f = { .kind = kind,
		.scope = LS_SCOPE_JOB,
		.estimate = j->detect.mode,
		.slowest_ratio = NAN,
		.clock_err_s = NAN };

	ls_job_step_source(e, j, &f.who);
	memcpy(f.who.job, j->name, sizeof(f.who.job));
	return f;
}

struct ls_finding
ls_findings_of_worker(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_engine_worker *w)
{
	size_t n = 0; /* workers of the job on its host, itself included */

	LS_WORKERS (e, j, one)
		n += one->host == w->host;
	return (struct ls_finding){ .who = w->info,
		.scope = n == 1 ? LS_SCOPE_HOST : LS_SCOPE_RANK,
		.estimate = j->detect.mode,
		.slowest_ratio = NAN,
		.clock_err_s = NAN };
}

void
ls_findings_present(const struct ls_engine *e, const struct ls_job *j,
	struct ls_finding *f, uint64_t step)
{
	f->last_step = step;
	f->estimate = j->detect.mode;
	f->steps_seen = step >= f->since_step ? step - f->since_step + 1 : 0;
	/* replay knows no more of who is missing */
	f->workers = (uint32_t)fmax((double)(j->count - j->twins), j->world);
	f->workers_used = j->live_count > 0
		? (uint32_t)ls_job_row(j, j->live_count - 1)->totals.used
		: 0;
	f->hosts = (uint32_t)ls_job_hosts(e, j, NULL, 0);
}

void
ls_findings_account(struct ls_finding *f, double blame_s, double chips, uint64_t step)
{
	double steps = (double)(step - f->accounted_step);

	if (step <= f->accounted_step)
		return;
	f->cost_steps += steps;
	f->cost_sum_s += steps * blame_s;
	f->chip_hours += steps * blame_s * chips / 3600;
	f->accounted_step = step;
}

void
ls_findings_price(const struct ls_engine *e, const struct ls_job *j,
	struct ls_finding *f, double step_s, double blame_s)
{
	f->step_s = step_s;
	f->blame_s = blame_s;
	f->without_s = step_s - blame_s;
	f->slowdown = step_s / f->without_s;
	f->chips = ls_job_chips(e, j);
	f->chips_lost = f->chips * (1 - 1 / f->slowdown);
	f->severity = ls_finding_severity(f->slowdown);
}

void
ls_findings_cost(const struct ls_engine *e, const struct ls_job *j,
	struct ls_finding *f, double step_s, double blame_s, uint64_t step)
{
	ls_findings_price(e, j, f, step_s,
		blame_s > 0 ? fmin(blame_s, (1 - LS_LEAST) * step_s) : 0);
	ls_findings_account(f, f->blame_s, f->chips, step);
}

struct ls_evidence *
ls_findings_row(struct ls_finding *f, const char *metric, const char *unit,
	double value, double usual)
{
	struct ls_evidence *row = &f->evidence[f->evidence_count++];

	*row = (struct ls_evidence){ .cause = LS_CAUSE_COUNT,
		.metric = metric,
		.unit = unit,
		.subject = value,
		.p10 = NAN,
		.p50 = usual,
		.p90 = NAN,
		.robust_z = NAN };
	return row;
}

void
ls_findings_clear(struct ls_engine *e, struct ls_finding *f, uint64_t step,
	int64_t now_us)
{
	if (ls_findings_is_known(f, now_us))
		return;
	f->status = ls_finding_next(f->status, LS_EVENT_OVER);
	f->cleared_us = now_us;
	if (step > f->last_step)
		f->last_step = step;
	ls_findings_tell(e, f, now_us);
}

void
ls_findings_part_of(struct ls_engine *e, struct ls_finding *f,
	const struct ls_finding *whole, int64_t now_us)
{
	memcpy(f->part_of, whole->id, sizeof(f->part_of));
	if (!ls_finding_is_open(f))
		ls_findings_tell(e, f, now_us);
}

/* May it hold in the next attempt, too? Not a standstill, nor what is compared with the attempt's own past. */
static bool
findings_outlives(const struct ls_finding *f)
{
	return f->scope != LS_SCOPE_JOB && f->way != LS_WAY_STAGE &&
		(f->kind == LS_KIND_STRAGGLER || f->kind == LS_KIND_IMBALANCE ||
			f->kind == LS_KIND_PERIODIC);
}

void
ls_findings_clear_job(struct ls_engine *e, struct ls_job *j,
	enum ls_finding_reason reason, int64_t now_us)
{
	LS_FINDINGS (e, f) {
		if (!ls_finding_is_open(f) || strcmp(f->who.job, j->name) != 0 ||
			ls_findings_is_known(f, now_us))
			continue;
		if (reason != LS_REASON_ATTEMPT_ENDED || !findings_outlives(f)) {
			f->reason = reason;
			ls_findings_clear(e, f, f->last_step, now_us);
		} else if (
			!ls_finding_waits(
				f)) { /* from now on as after a restart of the collector */
			f->diagnosis.count = 0;
			f->status = ls_finding_next(f->status, LS_EVENT_LEFT);
			ls_findings_tell(e, f, now_us);
		}
	}
}

void
ls_findings_expire(struct ls_engine *e, int64_t now_us)
{
	LS_FINDINGS (e, f) {
		const struct ls_job *j = ls_finding_is_open(f)
			? ls_engine_find_job(e, f->who.job)
			: NULL;
		int64_t heard_us = j != NULL && j->last_us > e->restored_us
			? j->last_us
			: e->restored_us; /* a collector that is down hears nobody */
		int64_t seen_us = heard_us > f->updated_us ? heard_us : f->updated_us;
		int64_t until_us = LS_ENGINE_US(LS_REOPEN_S) +
			(ls_finding_waits(f) ? f->updated_us : seen_us),
			ended_us = INT64_MAX;

		if (j != NULL && ls_finding_waits(f) &&
			j->gone == j->count) /* nobody is left */
			ended_us = LS_ENGINE_US(LS_ADVICE_RESTART_S) + seen_us;
		if (!ls_finding_is_open(f) || (now_us < until_us && now_us < ended_us))
			continue;
		f->reason = ended_us < until_us ? LS_REASON_JOB_ENDED
						: LS_REASON_NOT_MEASURED;
		ls_findings_clear(e, f, f->last_step,
			ended_us < until_us ? ended_us : until_us);
	}
}
