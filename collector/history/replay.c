/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/history/replay.h"
#include "collector/answer/finding_json.h"
#include "collector/history/replay_input.h"
#include "proto/base/digest.h"
#include "proto/base/json.h"

#include <errno.h>
#include <string.h>

#define REPLAY_ADVANCE_US 100000ll /* how often data time is let pass */
#define REPLAY_FLUSH_US 3600000000ll /* at the end: longer than any step waits */

/* Events on their way into an engine. */
struct replay_run {
	struct ls_replay_input *in;
	struct ls_engine *engine;
};

static int
replay_declare_worker(struct replay_run *run, uint32_t worker, int64_t now_us)
{
	struct ls_replay_worker *w = &run->in->workers[worker];
	int rc;

	w->handle = LS_NO_WORKER;
	if (w->who.rank < 0)
		return 0;
	rc = ls_engine_worker(run->engine, &w->who, now_us, &w->handle);
	if (rc == -LS_ESTALE) {
		ls_replay_input_bad(run->in, 0,
			"an attempt begins after a later attempt; skipped");
		return 0;
	}
	if (rc == 0) /* the job is there */
		ls_ignore(ls_engine_manual(run->engine, w->who.job, w->closings));
	return rc;
}

/* Declares all workers of the attempt, in order of rank, when the first of them
 * appears. */
static int
replay_declare(struct replay_run *run, uint32_t worker, int64_t now_us)
{
	uint32_t first = run->in->workers[worker].first;
	bool *declared = &run->in->workers[first].declared;
	int rc = 0;

	if (*declared)
		return 0;
	*declared = true;
	for (uint32_t i = first; rc == 0 && i < run->in->worker_count &&
		run->in->workers[i].first == first;
		i++)
		rc = replay_declare_worker(run, i, now_us);
	if (rc == -LS_EBUSY) /* until the workers of another attempt are silent */
		*declared = false;
	return rc == -LS_EBUSY ? 0 : rc;
}

/* The only worker of this host in this attempt, or LS_NO_WORKER. */
static uint32_t
replay_sole_worker(const struct replay_run *run, uint32_t host)
{
	const struct ls_replay_worker *h = &run->in->workers[host], *w;
	uint32_t found = LS_NO_WORKER;

	for (uint32_t i = h->first;
		i < run->in->worker_count && run->in->workers[i].first == h->first;
		i++) {
		w = &run->in->workers[i];
		if (w->handle == LS_NO_WORKER || strcmp(w->who.host, h->who.host) != 0)
			continue;
		if (found != LS_NO_WORKER)
			return LS_NO_WORKER;
		found = w->handle;
	}
	return found;
}

/* Feeds those of the counters that are of the scope; what the engine does not take it
 * counts. */
static void
replay_feed_scope(const struct replay_run *run, const struct ls_replay_event *ev,
	enum ls_metric_scope scope, uint32_t worker)
{
	const struct ls_replay_counters *c = ev->u.counters;
	uint16_t metric[LS_HOT_MAX];
	double value[LS_HOT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < c->count; i++) {
		if (ls_metric_info(c->metric[i])->scope != scope)
			continue;
		metric[n] = c->metric[i];
		value[n++] = c->value[i];
	}
	if (n > 0)
		ls_ignore(ls_engine_counters(run->engine,
			run->in->workers[ev->worker].who.host, worker, c->read_us, n,
			metric, value));
}

/* A rank's line holds its own counters; a host's line may hold those of its only
 * worker, too. */
static void
replay_feed_counters(const struct replay_run *run, const struct ls_replay_event *ev)
{
	const struct ls_replay_worker *w = &run->in->workers[ev->worker];
	bool of_rank = w->who.rank >= 0;
	uint32_t worker = of_rank ? w->handle : replay_sole_worker(run, ev->worker);

	if (worker != LS_NO_WORKER)
		replay_feed_scope(run, ev, LS_METRIC_SCOPE_JOB, worker);
	if (!of_rank)
		replay_feed_scope(run, ev, LS_METRIC_SCOPE_HOST, LS_NO_WORKER);
}

static int
replay_feed_record(struct replay_run *run, const struct ls_replay_event *ev)
{
	struct ls_replay_worker *w = &run->in->workers[ev->worker];
	uint32_t handle;
	int rc;

	if (!ls_engine_has_worker(run->engine, w->handle)) {
		w->handle = LS_NO_WORKER; /* of another attempt: as intake does */
		ls_ignore(ls_engine_worker(run->engine, &w->who, ev->t_us, &w->handle));
	}
	handle = w->handle;
	if (handle == LS_NO_WORKER)
		return 0;
	if (w->ended_us != 0 && ev->u.record->t_begin_ns / 1000 > w->ended_us) {
		w->ended_us = 0; /* another process of the same attempt */
		rc = replay_declare_worker(run, ev->worker, ev->t_us);
		if (rc != 0)
			return rc;
	}
	rc = ls_engine_record(run->engine, handle, ev->u.record, ev->t_us);
	if (rc == -LS_EDUPLICATE)
		ls_replay_input_bad(run->in, 0,
			"a step is repeated for one rank; the second is skipped");
	/* late and rejected ones are counted by the engine */
	return rc == -ENOMEM ? rc : 0;
}

/* Of an attempt that is over: nothing stands still. */
static void
replay_feed_hang(const struct replay_run *run, const struct ls_replay_event *ev)
{
	const struct ls_worker_info *who = &run->in->workers[ev->worker].who;
	const struct ls_replay_said *h = ev->u.said;
	const struct ls_engine_hang seen = { .job = who->job,
		.attempt = who->attempt,
		.step = ev->step,
		.since_us = h->since_us,
		.t_us = ev->t_us,
		.waiting = h->waiting,
		.why = h->why,
		.ranks = h->ranks,
		.count = h->count };

	ls_ignore(ls_engine_hang(run->engine, &seen));
}

static int
replay_feed(struct replay_run *run, const struct ls_replay_event *ev)
{
	struct ls_replay_worker *w = &run->in->workers[ev->worker];
	int rc = replay_declare(run, ev->worker, ev->t_us);

	if (rc != 0 || ev->u.any == NULL)
		return rc;
	switch (ev->kind) {
	case LS_LINE_STEP:
		return replay_feed_record(run, ev);
	case LS_LINE_COUNTERS:
		replay_feed_counters(run, ev);
		break;
	case LS_LINE_CLOCK:
		ls_engine_clock(run->engine, w->handle, ev->u.said->uncertainty_s);
		break;
	case LS_LINE_CLOSE: /* of an attempt that is over: nothing to close */
		ls_ignore(ls_engine_close_step(run->engine, w->who.job, w->who.attempt,
			ev->step, ev->t_us));
		break;
	case LS_LINE_HANG:
		replay_feed_hang(run, ev);
		break;
	case LS_LINE_END:
		w->ended_us = ev->t_us;
		ls_engine_end(run->engine, w->handle, ev->u.said->how, ev->t_us);
		break;
	case LS_LINE_OTHER:
		break;
	}
	return 0;
}

static int
replay_feed_all(struct replay_run *run)
{
	int64_t passed_us = INT64_MIN, now_us = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < run->in->event_count; i++) {
		now_us = run->in->events[i].t_us;
		if (now_us >= passed_us) {
			ls_engine_advance(run->engine, now_us);
			passed_us = now_us + REPLAY_ADVANCE_US;
		}
		rc = replay_feed(run, &run->in->events[i]);
	}
	/* no record comes any more; where closings are stored, the other steps never closed */
	for (size_t i = 0; rc == 0 && i < run->in->worker_count; i++) {
		const struct ls_replay_worker *w = &run->in->workers[i];

		if (!w->closings)
			ls_ignore(ls_engine_close_step(run->engine, w->who.job,
				w->who.attempt < 0 ? 0 : w->who.attempt, UINT64_MAX,
				now_us + REPLAY_FLUSH_US));
	}
	if (rc == 0)
		ls_engine_advance(run->engine, now_us + REPLAY_FLUSH_US);
	return rc;
}

/* Whole step times say nothing of who made the others wait. */
static void
replay_not_judged(const struct ls_replay_stats *s, json_t **result)
{
	if (s->whole > 0)
		ls_json_set(result, "not_judged",
			json_sprintf("workers: %llu of %llu rows have no own_seconds; "
				     "only the job is judged by them",
				(unsigned long long)s->whole,
				(unsigned long long)s->records));
}

static int
replay_result(const struct ls_engine *e, const struct ls_replay_stats *stats,
	json_t **ret_result)
{
	json_t *findings = ls_finding_all(e), *result = NULL;
	char digest[LS_DIGEST_BYTES];
	int rc = findings == NULL ? -ENOMEM : ls_digest_json(findings, digest);

	if (rc == 0)
		result = json_pack("{s:i, s:O, s:s}", "schema_version", 1, "findings",
			findings, "digest", digest);
	json_decref(findings);
	replay_not_judged(stats, &result);
	if (rc == 0 && result == NULL)
		rc = -ENOMEM;
	if (rc == 0)
		*ret_result = result;
	return rc;
}

static int
replay_run(struct ls_replay_input *in, double patience_s, json_t **ret_result)
{
	struct replay_run run = { in, ls_engine_new(&ls_finding_sink) };
	int rc = run.engine != NULL ? ls_replay_input_arrange(in) : -ENOMEM;

	if (rc == 0)
		ls_engine_patience(run.engine, patience_s);
	if (rc == 0)
		rc = replay_feed_all(&run);
	if (rc == 0)
		rc = replay_result(run.engine, &in->stats, ret_result);
	ls_engine_free(run.engine);
	return rc;
}

/* Runs what was read and hands over the numbers. */
static int
replay_finish(struct ls_replay_input *in, int rc, double patience_s,
	struct ls_replay_stats *ret_stats, json_t **ret_result)
{
	if (rc == 0 && in->event_count == 0)
		rc = -LS_EPARSE;
	if (rc == 0)
		rc = replay_run(in, patience_s, ret_result);
	*ret_stats = in->stats;
	ls_replay_input_fini(in);
	return rc;
}

int
ls_replay_file(const char *path, double patience_s, ls_replay_complain *complain,
	void *arg, struct ls_replay_stats *ret_stats, json_t **ret_result)
{
	struct ls_replay_input in = { .complain = complain,
		.complain_arg = arg,
		.bytes_max = LS_REPLAY_MAX_BYTES };
	int rc = ls_replay_input_file(&in, path);

	return replay_finish(&in, rc, patience_s, ret_stats, ret_result);
}

int
ls_replay_text(const char *text, size_t len, double patience_s,
	ls_replay_complain *complain, void *arg, struct ls_replay_stats *ret_stats,
	json_t **ret_result)
{
	struct ls_replay_input in = { .complain = complain, .complain_arg = arg };
	int rc = ls_replay_input_text(&in, text, len);

	return replay_finish(&in, rc, patience_s, ret_stats, ret_result);
}
