/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/support/fake_job.h"
#include "collector/answer/finding_json.h"
#include "collector/answer/view.h"
#include "collector/engine/join/steps.h"
#include "tests/support/json_at.h"

#include "proto/base/json.h"

#include <check.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* xorshift64* (Vigna): the same numbers everywhere. */
double
fake_job_random(struct fake_job *job)
{
	job->random ^= job->random >> 12;
	job->random ^= job->random << 25;
	job->random ^= job->random >> 27;
	return (double)(job->random * 2685821657736338717ull >> 11) * 0x1p-53;
}

double
fake_job_normal(struct fake_job *job)
{
	double u = fake_job_random(job), v = fake_job_random(job);

	return sqrt(-2 * log(u > 0 ? u : 0x1p-53)) * cos(2 * M_PI * v);
}

static double
fake_noise(struct fake_job *job)
{
	double z = fake_job_normal(job), chi = 0;

	if (!job->tails)
		return z;
	for (int i = 0; i < 4; i++) {
		double n = fake_job_normal(job);

		chi += n * n;
	}
	return z / sqrt(chi / 4) / sqrt(2); /* t4 has variance 2 */
}

static void
fake_on_finding(void *arg, const char *id, const char *event, int64_t t_us,
	json_t *finding)
{
	struct fake_job *job = arg;
	const json_t *subject = json_object_get(finding, "subject");
	const char *host = json_string_value(json_object_get(subject, "host"));
	struct fake_event *ev = &job->events[job->event_count];

	LS_ASSERT(job->event_count < FAKE_EVENTS_MAX);
	job->event_count++;
	(void)snprintf(ev->id, sizeof(ev->id), "%s", id);
	(void)snprintf(ev->event, sizeof(ev->event), "%s", event);
	(void)snprintf(ev->scope, sizeof(ev->scope), "%s",
		json_string_value(json_object_get(subject, "scope")));
	(void)snprintf(ev->host, sizeof(ev->host), "%s", host == NULL ? "" : host);
	ev->step = job->step - 1;
	ev->t_us = t_us;
}

static void
fake_on_closed(void *arg, const struct ls_engine_close *c)
{
	struct fake_job *job = arg;

	job->closed++;
	job->windows += ls_window_is(c->step);
	if (job->told_closed != NULL)
		job->told_closed(job, c);
	job->used_last = c->used;
	job->expected_last = c->expected;
	job->missing_last = c->missing_count;
	job->missing_first = c->missing_count > 0 ? c->missing[0] : -1;
}

static void
fake_on_hang(void *arg, const struct ls_engine_hang *seen)
{
	struct fake_job *job = arg;

	job->hangs++;
	job->hang = *seen;
	for (size_t i = 0; i < seen->count && i < FAKE_RANKS_MAX; i++)
		job->hang_ranks[i] = seen->ranks[i];
	job->hang.ranks = job->hang_ranks;
}

void
fake_job_live(struct fake_job *job, size_t worker, enum ls_phase phase,
	int64_t since_us)
{
	struct ls_ring_live live = { .step = job->step, .phase = (uint32_t)phase };

	ls_engine_live(job->engine, job->workers[worker].handle, &live, since_us,
		job->now_us);
}

static size_t
fake_slice(const struct fake_job *job, size_t worker)
{
	return job->slices > 1 ? worker * job->slices / job->count : 0;
}

struct fake_job *
fake_job_sliced(size_t count, size_t slices)
{
	struct fake_job *job = fake_job_on(NULL, "train", count);

	job->slices = slices;
	fake_job_declare(job);
	fake_job_run(job, 150);
	ck_assert_uint_eq(job->event_count, 0);
	return job;
}

json_t *
fake_job_hosts(const struct fake_job *job)
{
	const struct ls_view_hosts all = { .limit = job->count };
	json_t *page, *items;

	ck_assert_int_eq(
		ls_view_hosts(job->engine, job->name, &all, job->now_us, &page), 0);
	items = json_incref(json_object_get(page, "items"));
	json_decref(page);
	return items;
}

void
fake_job_declare(struct fake_job *job)
{
	struct ls_worker_info info = { .attempt = job->attempt,
		.chips = job->chips,
		.world = job->world < 0	 ? 0
			: job->world > 0 ? job->world
					 : (int32_t)job->count };

	(void)snprintf(info.job, sizeof(info.job), "%s", job->name);
	for (size_t i = 0; i < job->count; i++) {
		(void)snprintf(info.host, sizeof(info.host), "h%zu",
			job->first_host + (job->on_host > 1 ? i / job->on_host : i));
		if (job->in_rack > 0)
			(void)snprintf(info.rack, sizeof(info.rack), "r%zu",
				i / job->in_rack);
		if (job->shards > 0)
			(void)snprintf(info.shard, sizeof(info.shard), "i%zu",
				i % job->shards);
		if (job->stages > 0)
			(void)snprintf(info.role, sizeof(info.role), "stage%zu",
				i % job->stages);
		info.rank = (int32_t)i;
		if (job->slices > 1)
			(void)snprintf(info.slice, sizeof(info.slice), "s%zu",
				fake_slice(job, i));
		LS_ASSERT(ls_engine_worker(job->engine, &info, job->now_us,
				  &job->workers[i].handle) == 0);
	}
}

struct fake_job *
fake_job_on(struct ls_engine *engine, const char *name, size_t count)
{
	struct fake_job *job = calloc(1, sizeof(*job));
	struct ls_engine_sink sink = ls_finding_sink;

	sink.arg = job;
	sink.closed = fake_on_closed;
	sink.finding = fake_on_finding;
	sink.hang = fake_on_hang;
	LS_ASSERT(job != NULL && count <= FAKE_WORKERS_MAX);
	job->engine = engine != NULL ? engine : ls_engine_new(&sink);
	job->workers = calloc(count, sizeof(*job->workers));
	LS_ASSERT(job->engine != NULL && job->workers != NULL);
	ls_engine_patience(job->engine, 0); /* its jobs are young */
	job->name = name;
	job->count = count;
	job->chips = 4;
	job->random = 88172645463325252ull;
	job->own_s = 0.08;
	job->collective_s = 0.02;
	job->noise = 0.003;
	job->spread = 100;
	job->now_us = FAKE_START_US;
	for (size_t i = 0; i < count; i++)
		job->workers[i] = (struct fake_worker){
			.slow = 1, .more = 1, .once_as = LS_PHASE_COMPUTE
		};
	return job;
}

struct fake_job *
fake_job_new(size_t count)
{
	struct fake_job *job = fake_job_on(NULL, "train", count);

	fake_job_declare(job);
	return job;
}

void
fake_job_free(struct fake_job *job)
{
	ls_engine_free(job->engine);
	free(job->workers);
	free(job);
}

static void
fake_mark_phase(struct ls_record *r, enum ls_phase phase, double s)
{
	r->phase_mask |= 1u << phase;
	r->phase_ns[phase] = (uint64_t)llround(s * 1e9);
}

/* So much of the computation was this; LS_PHASE_COUNT: it was before the step. */
static void
fake_mark_once(struct ls_record *r, enum ls_phase phase, double s)
{
	uint64_t ns = (uint64_t)llround(s * 1e9);

	if (phase == LS_PHASE_COMPUTE || phase == LS_PHASE_SYNC_WAIT)
		return;
	r->phase_ns[LS_PHASE_COMPUTE] -= ns;
	if (phase != LS_PHASE_COUNT) {
		r->phase_mask |= 1u << phase;
		r->phase_ns[phase] += ns;
	} else {
		r->t_begin_ns += (int64_t)ns;
		r->duration_ns -= ns;
	}
}

/* By a clock that is so much behind. */
static void
fake_set_back(struct ls_record *r, double s)
{
	int64_t ns = llround(s * 1e9);

	r->t_begin_ns -= ns;
	for (size_t k = 0; k < r->barrier_count; k++) {
		r->barrier[k].enter_ns -= ns;
		r->barrier[k].exit_ns -= ns;
	}
}

/* The record of a worker that began at begin_us, arrived after own_s and left at
 * exit_us. */
static void
fake_fill(const struct fake_job *job, struct fake_worker *w, int64_t begin_us,
	double own_s, int64_t exit_us)
{
	int64_t enter_us = begin_us + llround(own_s * 1e6);
	struct ls_record *r = &w->record;

	*r = (struct ls_record){ .step = job->step,
		.t_begin_ns = begin_us * 1000,
		.duration_ns = (uint64_t)(exit_us - begin_us) * 1000 };
	fake_mark_phase(r, job->checkpoint ? LS_PHASE_CHECKPOINT : LS_PHASE_COMPUTE,
		own_s - w->input_s);
	if (w->input_s > 0)
		fake_mark_phase(r, LS_PHASE_INPUT_WAIT, w->input_s);
	if (w->once_s > 0)
		fake_mark_once(r, w->once_as, w->once_s);
	w->once_s = 0;
	if (w->expert > 0) {
		r->work_mask =
			1u << LS_WORK_EXPERT_LOAD_MAX | 1u << LS_WORK_EXPERT_LOAD_MEAN;
		r->work[LS_WORK_EXPERT_LOAD_MAX] = w->expert;
		r->work[LS_WORK_EXPERT_LOAD_MEAN] = 100;
	}
	if (w->markless) {
		r->phase_mask = 0;
		memset(r->phase_ns, 0, sizeof(r->phase_ns));
	} else if (job->clockless) {
		fake_mark_phase(r, LS_PHASE_SYNC_WAIT,
			(double)(exit_us - enter_us) * 1e-6);
	} else {
		r->barrier_count = 1;
		r->barrier[0].enter_ns = enter_us * 1000;
		r->barrier[0].exit_ns = exit_us * 1000;
	}
	if (job->apart_s > 0)
		fake_set_back(r,
			job->apart_s * (double)(w - job->workers) * (double)job->step);
	if (w->send_s > 0) {
		r->peer_count = 1;
		r->peer[0] = (struct ls_record_peer){
			(uint32_t)(((size_t)(w - job->workers) + 1) % job->count),
			UINT64_MAX, (uint64_t)llround(w->send_s * 1e9)
		};
	}
}

/* With slices, the barrier of the slice ends before that of all begins, for each worker
 * on its own. */
static void
fake_split_barriers(struct fake_job *job, const double *own)
{
	double last[FAKE_SLICES_MAX] = { 0 };

	LS_ASSERT(job->slices <= FAKE_SLICES_MAX);
	for (size_t i = 0; i < job->count; i++)
		last[fake_slice(job, i)] = fmax(last[fake_slice(job, i)], own[i]);
	for (size_t i = 0; i < job->count; i++) {
		struct ls_record *r = &job->workers[i].record;
		size_t s = fake_slice(job, i);

		r->barrier_count = 2;
		r->barrier[1] = (struct ls_record_barrier){ LS_BARRIER_DCN, 0,
			r->barrier[0].exit_ns };
		r->barrier[0].exit_ns = r->barrier[1].enter_ns = r->t_begin_ns +
			llround((last[s] + job->collective_s + job->slice_comm_s[s]) *
				1e9);
	}
}

/* What the next step takes a worker longer once: its own work, or what it stays in the collective after the others. */
static double
fake_once(const struct fake_worker *w, bool stays)
{
	return (w->once_as == LS_PHASE_SYNC_WAIT) == stays ? w->once_s : 0;
}

void
fake_job_make(struct fake_job *job)
{
	double last = 0, slowest = 0, base = job->own_s * (job->checkpoint ? 10 : 1);
	double *own = calloc(job->count, sizeof(*own));
	int64_t exit_us;

	LS_ASSERT(own != NULL);
	for (size_t i = 0; i < job->count; i++) {
		struct fake_worker *w = &job->workers[i];

		own[i] = base * fmax(w->slow + job->noise * fake_noise(job), 0.1) +
			fake_once(w, false) + w->input_s;
		last = fmax(last, w->behind_s + own[i]);
	}
	for (size_t s = 0; s < job->slices; s++)
		slowest = fmax(slowest, job->slice_comm_s[s]);
	if (job->slices > 1)
		slowest += job->collective_s;
	exit_us = job->now_us +
		llround((last + slowest + job->collective_s + job->comm_s) * 1e6);
	for (size_t i = 0; i < job->count; i++) {
		struct fake_worker *w = &job->workers[i];
		double stays_s = fake_once(w, true);

		fake_fill(job, w, job->now_us + llround(w->behind_s * 1e6), own[i],
			exit_us + llround(stays_s * 1e6));
		w->behind_s = stays_s;
	}
	if (job->slices > 1)
		fake_split_barriers(job, own);
	for (size_t i = 0; i < job->count; i++)
		fake_set_back(&job->workers[i].record, -job->workers[i].off_s);
	free(own);
	job->checkpoint = false;
	job->now_us = exit_us;
	job->step++;
}

static void
fake_count(struct fake_job *job, size_t i)
{
	static const uint16_t metric[FAKE_COUNTERS] = { LS_METRIC_JOB_CPU,
		LS_METRIC_JOB_RUNQUEUE_WAIT, LS_METRIC_HOST_CPU_THROTTLED,
		LS_METRIC_HOST_TCP_RETRANSMITS };
	struct fake_worker *w = &job->workers[i];
	char host[16];

	for (size_t k = 0; k < FAKE_COUNTERS; k++)
		w->grown[k] += w->grows[k];
	if (job->counted_steps == 0 || job->step % job->counted_steps != 0)
		return;
	(void)snprintf(host, sizeof(host), "h%zu", job->first_host + i);
	LS_ASSERT(ls_engine_counters(job->engine, host, w->handle, job->now_us, 2,
			  metric, w->grown) == 0);
	LS_ASSERT(ls_engine_counters(job->engine, host, LS_NO_WORKER, job->now_us, 2,
			  metric + 2, w->grown + 2) == 0);
}

void
fake_job_wander(struct fake_job *job)
{
	for (size_t i = 0; job->wander > 0 && i < job->count; i++) {
		struct fake_worker *w = &job->workers[i];

		w->slow -= w->wander;
		w->wander = job->wander_of > 0 && i % job->wander_of > 0
			? w[-1].wander
			: job->keep * w->wander + job->wander * fake_job_normal(job);
		w->slow += w->wander;
	}
}

void
fake_job_report(struct fake_job *job)
{
	size_t *order = calloc(job->count, sizeof(*order));

	LS_ASSERT(order != NULL);
	for (size_t i = 0; i < job->count; i++)
		fake_count(job, i);
	for (size_t i = 0; i < job->count; i++) {
		size_t k = job->shuffle
			? (size_t)(fake_job_random(job) * (double)(i + 1))
			: i;

		order[i] = order[k];
		order[k] = i;
	}
	for (size_t i = 0; i < job->count; i++) {
		struct fake_worker *w = &job->workers[order[i]];

		if (!w->mute)
			LS_ASSERT(ls_engine_record(job->engine, w->handle, &w->record,
					  job->now_us) == 0);
	}
	free(order);
	ls_engine_advance(job->engine, job->now_us);
}

void
fake_job_run(struct fake_job *job, size_t steps)
{
	for (size_t i = 0; i < steps; i++) {
		fake_job_make(job);
		fake_job_report(job);
	}
}

size_t
fake_job_line(const struct fake_job *job, size_t worker, char *text, size_t size)
{
	const struct ls_record *r = &job->workers[worker].record;
	int n = snprintf(text, size,
		"{\"job\":\"%s\",\"host\":\"h%zu\",\"rank\":%zu,\"chips\":%d,\"step\":%llu,"
		"\"t_begin\":%.6f,\"duration\":%.6f,\"phases\":{\"compute\":%.6f},"
		"\"sync_enter\":%.6f,\"sync_exit\":%.6f}\n",
		job->name, worker, worker, (int)job->chips, (unsigned long long)r->step,
		(double)r->t_begin_ns * 1e-9, (double)r->duration_ns * 1e-9,
		(double)r->phase_ns[LS_PHASE_COMPUTE] * 1e-9,
		(double)r->barrier[0].enter_ns * 1e-9,
		(double)r->barrier[0].exit_ns * 1e-9);

	LS_ASSERT(n > 0 && (size_t)n < size);
	return (size_t)n;
}

char *
fake_job_findings(const struct fake_job *job)
{
	json_t *all = ls_finding_all(job->engine);
	char *text = ls_json_canonical(all);

	json_decref(all);
	LS_ASSERT(text != NULL);
	return text;
}

json_t *
fake_job_finding(const struct fake_job *job, size_t i)
{
	json_t *all = ls_finding_all(job->engine);
	json_t *finding = json_incref(json_array_get(all, i));

	json_decref(all);
	return finding;
}

void
fake_job_only(const struct fake_job *job, const char *kind, const char *scope,
	const char *slice)
{
	json_t *f = fake_job_finding(job, 0);

	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), kind);
	ck_assert_str_eq(ls_json_text_at(f, "subject", "scope"), scope);
	if (slice[0] != '\0')
		ck_assert_str_eq(ls_json_text_at(f, "subject", "slice"), slice);
	json_decref(f);
}

double
fake_job_cost(const struct fake_job *job, size_t i)
{
	json_t *f = fake_job_finding(job, i);
	double cost = json_number_value(
		json_object_get(json_object_get(f, "impact"), "chip_hours_lost_total"));

	json_decref(f);
	return cost;
}

struct ls_engine_stats
fake_job_stats(const struct fake_job *job)
{
	struct ls_engine_stats stats;

	ls_engine_stats(job->engine, &stats);
	return stats;
}

size_t
fake_job_told(const struct fake_job *job, const char *event)
{
	size_t n = 0;

	for (size_t i = 0; i < job->event_count; i++)
		n += strcmp(job->events[i].event, event) == 0;
	return n;
}
