/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "agent/sampler.h"
#include "agent/source_host.h"
#include "agent/source_worker.h"
#include "proto/base/log.h"

struct ls_sources {
	struct ls_source host, worker;
	struct ls_source_step *step;
	struct ls_spool *spool;
	struct ls_sample sample;
	pid_t net_pid;
	struct ls_wire_worker workers[LS_RINGS_MAX];
	struct ls_wire_live live[LS_RINGS_MAX];
	struct ls_wire_hot hot[LS_RINGS_MAX + 1];
};

static void
sources_probe(struct ls_source *s)
{
	int rc = s->probe(s->self);

	if (rc != 0)
		ls_log(LS_LOG_WARN, "sources", "%s: %s; going on without it", s->name,
			ls_err_text(rc));
}

int
ls_sources_open(const struct ls_agent_config *config, const uint8_t kernel_boot_id[16],
	struct ls_spool *spool, struct ls_sources **ret_sources)
{
	struct ls_sources *s = calloc(1, sizeof(*s));
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->spool = spool;
	rc = ls_source_host_new(config->proc_root, config->sys_root, &s->host);
	if (rc == 0)
		rc = ls_source_worker_new(config->proc_root, config->sys_root, &s->worker);
	if (rc == 0)
		rc = ls_source_step_new(config->steps_dir, kernel_boot_id, spool, &s->step);
	if (rc != 0) {
		ls_sources_close(s);
		return rc;
	}
	sources_probe(&s->host);
	sources_probe(&s->worker);
	*ret_sources = s;
	return 0;
}

void
ls_sources_close(struct ls_sources *s)
{
	if (s == NULL)
		return;
	if (s->host.free != NULL)
		s->host.free(s->host.self);
	if (s->worker.free != NULL)
		s->worker.free(s->worker.self);
	ls_source_step_free(s->step);
	free(s);
}

/* Points the counters at the processes that hold the rings now. */
static void
sources_watch(struct ls_sources *s)
{
	struct ls_source_worker_id ids[LS_RINGS_MAX];
	const struct ls_step_ring *r;
	size_t i, n = 0;
	pid_t net_pid = 0;

	for (i = 0; (r = ls_source_step_ring(s->step, i)) != NULL; i++) {
		if (r->pid <= 0)
			continue;
		memcpy(ids[n].ring_id, r->worker.ring_id, sizeof(ids[n].ring_id));
		ids[n++].pid = r->pid;
		/* The one before as long as it lives: a change costs the counters a reading. */
		if (net_pid == 0 || r->pid == s->net_pid)
			net_pid = r->pid;
	}
	ls_source_worker_watch(&s->worker, ids, n);
	s->net_pid = net_pid;
	ls_source_host_net_of(&s->host, net_pid);
}

void
ls_sources_read(struct ls_sources *s, unsigned due, uint64_t now_mono_ns)
{
	ls_source_step_read(s->step, now_mono_ns);
	sources_watch(s);
	s->host.read(s->host.self, due, now_mono_ns, &s->sample);
	s->worker.read(s->worker.self, due, now_mono_ns, &s->sample);
}

static uint64_t
sources_lost(const struct ls_sources *s)
{
	const struct ls_step_stats *steps = ls_source_step_get_stats(s->step);
	uint64_t lost = s->spool != NULL ? ls_spool_get_stats(s->spool)->dropped_records : 0;
	size_t i;

	for (i = 0; i < LS_GAP_REASON_COUNT; i++)
		lost += steps->lost[i];
	return lost;
}

void
ls_sources_fill(struct ls_sources *s, struct ls_wire_report *r)
{
	const struct ls_step_ring *ring;
	const struct ls_sample *sample;
	size_t i, hot = 0, live = 0;

	ls_sampler_hot(&s->sample, LS_METRIC_SCOPE_HOST, &s->hot[hot++]);
	for (i = 0; (ring = ls_source_step_ring(s->step, i)) != NULL; i++) {
		s->workers[i] = ring->worker;
		if (ring->has_live) {
			memcpy(s->live[live].ring_id, ring->worker.ring_id, LS_RING_ID_BYTES);
			s->live[live++].live = ring->live;
		}
		sample = ls_sources_worker(s, ring->worker.ring_id);
		if (sample == NULL || sample->t_mono_ns == 0)
			continue;
		ls_sampler_hot(sample, LS_METRIC_SCOPE_JOB, &s->hot[hot]);
		memcpy(s->hot[hot].ring_id, ring->worker.ring_id, LS_RING_ID_BYTES);
		s->hot[hot++].of_ring = true;
	}
	r->workers = s->workers;
	r->worker_count = i;
	r->hot = s->hot;
	r->hot_count = hot;
	r->live = s->live;
	r->live_count = live;
	r->dropped_records = sources_lost(s);
}

const struct ls_sample *
ls_sources_host(const struct ls_sources *s)
{
	return &s->sample;
}

const struct ls_sample *
ls_sources_worker(const struct ls_sources *s, const uint8_t ring_id[LS_RING_ID_BYTES])
{
	return ls_source_worker_sample(&s->worker, ring_id);
}

const struct ls_source_step *
ls_sources_steps(const struct ls_sources *s)
{
	return s->step;
}
