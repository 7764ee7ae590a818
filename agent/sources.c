/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/collect/sample_group.h"
#include "agent/collect/sampler.h"
#include "agent/host/source_host.h"
#include "agent/steps/source_hooks.h"
#include "agent/steps/source_log.h"
#include "agent/host/source_neighbours.h"
#include "agent/pages/source_prom.h"
#include "agent/steps/source_status.h"
#include "agent/tpu/source_stall.h"
#include "agent/tpu/source_tpu.h"
#include "agent/host/source_worker.h"
#include "proto/base/log.h"
#include "proto/base/text.h"

/* A worker whose process is visible here: a group of the series table. */
struct sources_worker {
	uint8_t ring_id[LS_RING_ID_BYTES];
	struct ls_sample_group group;
};

struct ls_sources {
	struct ls_loop *loop;
	struct ls_series_table *series;
	size_t count;
	struct ls_source list[LS_SOURCES_MAX];
	bool lean; /* neighbours and prom are not read: better than to exceed the budget */
	/* In the list. */
	const struct ls_source *host, *worker, *neighbours, *prom, *tpu, *status;
	const struct ls_source *log, *stall; /* likewise; NULL: none is configured */
	struct ls_source_step *step;
	struct ls_spool *spool;
	struct ls_disk *disk;
	struct ls_place *place;
	struct ls_sample sample; /* of the host, all cadences */
	struct ls_sample slow; /* what came by LS_CADENCE_SLOW */
	bool is_slow[LS_METRIC_COUNT];
	struct ls_sample_group fast_group, slow_group;
	size_t worker_count;
	struct sources_worker worker_group[LS_RINGS_MAX];
	pid_t net_pid;
	struct ls_wire_worker workers[LS_RINGS_MAX];
	struct ls_wire_live live[LS_RINGS_MAX];
	struct ls_wire_hot hot[LS_RINGS_MAX + 1];
};

/* --- the list of sources -------------------------------------------------- */

/* Takes over a source that was made with success: from here on it is probed, read and freed with
 * the others. rc: of making it; ret_added: its place in the list. */
static int
sources_add(struct ls_sources *s, int rc, const struct ls_source *source,
	const struct ls_source **ret_added)
{
	int probed;

	if (rc != 0)
		return rc;
	LS_ASSERT(s->count < LS_SOURCES_MAX);
	s->list[s->count] = *source;
	probed = source->probe != NULL ? source->probe(source->self) : 0;
	if (probed != 0)
		ls_log(probed == -LS_EABSENT ? LS_LOG_INFO : LS_LOG_WARN, "sources",
			"%s: %s; continuing without this source", source->name,
			ls_err_text(probed));
	*ret_added = &s->list[s->count++];
	return 0;
}

/* The log of a job without marks. */
static int
sources_make_log(struct ls_sources *s, const struct ls_agent_config *config,
	struct ls_source *ret_source)
{
	const struct ls_source_log_options o = { .path = config->step_log,
		.pattern = config->step_log_pattern,
		.job = config->step_log_job,
		.rank = config->step_log_rank_value,
		.spool = s->spool,
		.disk = s->disk,
		.steps = s->step };

	return ls_source_log_new(&o, ret_source);
}

/* Steps of a job without marks and without a log. */
static int
sources_make_status(struct ls_sources *s, const struct ls_agent_config *config,
	struct ls_source *ret_source)
{
	const struct ls_source_status_options o = { .progress = ls_source_tpu_progress(
							    s->tpu),
		.spool = s->spool,
		.steps = s->step,
		.has_log = config->step_log[0] != '\0' };

	return ls_source_status_new(&o, ret_source);
}

/* Tells the sources of workers without a ring what is known of this host. */
static void
sources_tell_who(struct ls_sources *s, uint64_t now_mono_ns)
{
	const struct ls_identity *id = ls_place_identity(s->place);
	const char *job = ls_identity_get(id, LS_IDENTITY_JOB),
		   *slice = ls_identity_get(id, LS_IDENTITY_SLICE),
		   *rank = ls_identity_get(id, LS_IDENTITY_GLOBAL_WORKER),
		   *chips = ls_identity_get(id, LS_IDENTITY_CHIPS);
	int32_t rank_value, chips_value;

	if (!ls_place_is_settled(s->place, now_mono_ns))
		return;
	if (rank == NULL)
		rank = ls_identity_get(id, LS_IDENTITY_WORKER);
	job = job != NULL ? job : "";
	slice = slice != NULL ? slice : "";
	rank_value = rank != NULL ? (int32_t)strtol(rank, NULL, 10) : -1;
	chips_value = chips != NULL ? (int32_t)strtol(chips, NULL, 10) : 0;
	if (s->log != NULL)
		ls_source_log_who(s->log, job, slice, rank_value, chips_value);
	ls_source_status_who(s->status, job, slice, rank_value, chips_value);
}

/* Where cores stood in a stall. */
static void
sources_tell_stall(struct ls_sources *s)
{
	char text[LS_IDENTITY_VALUE_MAX_BYTES];

	for (unsigned i = 0; s->stall != NULL && i < LS_STALL_CORES_SENT; i++) {
		ls_source_stall_core(s->stall, i, text, sizeof(text));
		ls_place_stall(s->place, i, text);
	}
}

/* Makes all sources. One that writes its own groups gets s->series when it is made, and s->loop.
 */
static int
sources_make(struct ls_sources *s, const struct ls_agent_config *c)
{
	const struct ls_source *hooks;
	struct ls_source one;
	int rc = sources_add(s, ls_source_host_new(c->proc_root, c->sys_root, &one),
		&one, &s->host);

	if (rc == 0)
		rc = sources_add(s,
			ls_source_worker_new(c->proc_root, c->sys_root, &one), &one,
			&s->worker);
	if (rc == 0)
		rc = sources_add(s,
			ls_source_neighbours_new(c->proc_root, c->sys_root, s->series,
				&one),
			&one, &s->neighbours);
	if (rc == 0)
		rc = sources_add(s,
			ls_source_tpu_new(s->loop, s->series, c,
				getenv(LS_TPU_PORTS_VARIABLE), &one),
			&one, &s->tpu);
	if (rc == 0)
		rc = sources_add(s, ls_source_hooks_new(s->step, s->series, &one), &one,
			&hooks);
	if (rc == 0)
		rc = sources_add(s,
			ls_source_prom_new(s->loop, s->series, c->prom, c->prom_map,
				&one),
			&one, &s->prom);
	if (rc == 0)
		rc = sources_add(s, sources_make_status(s, c, &one), &one, &s->status);
	if (rc == 0 && c->step_log[0] != '\0')
		rc = sources_add(s, sources_make_log(s, c, &one), &one, &s->log);
	if (rc == 0 && c->stall_dir[0] != '\0')
		rc = sources_add(s, ls_source_stall_new(c->stall_dir, s->disk, &one),
			&one, &s->stall);
	if (rc == 0)
		ls_source_tpu_set_chips(s->tpu,
			ls_chips_count(ls_place_chips(s->place)) > 0);
	return rc;
}

int
ls_sources_open(struct ls_loop *loop, const struct ls_agent_config *config,
	const uint8_t kernel_boot_id[16], struct ls_spool *spool, struct ls_disk *disk,
	struct ls_sources **ret_sources)
{
	struct ls_sources *s = calloc(1, sizeof(*s));
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->loop = loop;
	s->spool = spool;
	s->disk = disk;
	s->series = ls_series_new();
	rc = s->series != NULL ? 0 : -ENOMEM;
	if (rc == 0)
		rc = ls_place_open(loop, config, &s->place);
	if (rc == 0)
		rc = ls_source_step_new(config->steps_dir, kernel_boot_id, spool,
			&s->step);
	if (rc == 0)
		rc = sources_make(s, config);
	if (rc != 0) {
		ls_sources_close(s);
		return rc;
	}
	ls_sample_group_init(&s->fast_group, s->series, "host.fast", "");
	ls_sample_group_init(&s->slow_group, s->series, "host.slow", "");
	*ret_sources = s;
	return 0;
}

void
ls_sources_close(struct ls_sources *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->count; i++)
		s->list[i].free(s->list[i].self);
	ls_place_close(s->place);
	ls_source_step_free(s->step);
	ls_series_free(s->series);
	free(s);
}

/* --- samples to groups ---------------------------------------------------- */

static struct sources_worker *
sources_worker_find(struct ls_sources *s, const uint8_t ring_id[LS_RING_ID_BYTES])
{
	for (size_t i = 0; i < s->worker_count; i++) {
		if (memcmp(s->worker_group[i].ring_id, ring_id, LS_RING_ID_BYTES) == 0)
			return &s->worker_group[i];
	}
	return NULL;
}

/* "worker.RANK"; where another worker here has it (two jobs on one host), with its
 * ring's first bytes. */
static void
sources_worker_name(const struct ls_sources *s, const struct ls_wire_worker *w,
	char name[LS_GROUP_NAME_MAX_BYTES])
{
	struct ls_series_group g;
	char hex[2 * 4 + 1];

	(void)snprintf(name, LS_GROUP_NAME_MAX_BYTES, "worker.%d", (int)w->info.rank);
	for (size_t i = 0; i < LS_GROUPS_MAX; i++) {
		if (!ls_series_look(s->series, i, &g) || strcmp(g.name, name) != 0)
			continue;
		ls_text_hex(hex, w->ring_id, 4);
		(void)snprintf(name, LS_GROUP_NAME_MAX_BYTES, "worker.%d.%s",
			(int)w->info.rank, hex);
		return;
	}
}

static struct sources_worker *
sources_worker_begin(struct ls_sources *s, const struct ls_wire_worker *w)
{
	char name[LS_GROUP_NAME_MAX_BYTES], labels[LS_SERIES_LABELS_MAX_BYTES] = "",
					    rank[16];
	struct sources_worker *g = &s->worker_group[s->worker_count++];

	(void)snprintf(rank, sizeof(rank), "%d", (int)w->info.rank);
	ls_series_label(labels, sizeof(labels), "job", w->info.job);
	ls_series_label(labels, sizeof(labels), "rank", rank);
	sources_worker_name(s, w, name);
	memcpy(g->ring_id, w->ring_id, sizeof(g->ring_id));
	ls_sample_group_init(&g->group, s->series, name, labels);
	return g;
}

/* A row of each worker's group; groups of those that are gone go, too. */
static void
sources_worker_rows(struct ls_sources *s, uint64_t now_mono_ns)
{
	const struct ls_step_ring *ring;
	const struct ls_sample *sample;
	struct sources_worker *g;

	for (size_t i = s->worker_count; i-- > 0;) {
		if (ls_sources_worker(s, s->worker_group[i].ring_id) != NULL)
			continue;
		ls_sample_group_fini(&s->worker_group[i].group);
		s->worker_group[i] = s->worker_group[--s->worker_count];
	}
	for (size_t i = 0; (ring = ls_source_step_ring(s->step, i)) != NULL; i++) {
		sample = ls_sources_worker(s, ring->worker.ring_id);
		if (sample == NULL)
			continue;
		g = sources_worker_find(s, ring->worker.ring_id);
		if (g == NULL)
			g = sources_worker_begin(s, &ring->worker);
		ls_sample_group_read(&g->group, sample, NULL, true, now_mono_ns);
	}
}

/* Points the counters at the processes that hold the rings now. */
static void
sources_watch(struct ls_sources *s, uint64_t now_mono_ns)
{
	struct ls_source_worker_id ids[LS_RINGS_MAX];
	const struct ls_step_ring *r;
	size_t i, n = 0;
	pid_t net_pid = 0;

	for (i = 0; (r = ls_source_step_ring(s->step, i)) != NULL; i++) {
		if (r->pid <= 0) {
			/* its process has just ended, or is not visible here */
			if (ls_source_worker_killed(s->worker, r->worker.ring_id,
				    now_mono_ns))
				ls_source_step_killed(s->step, i);
			continue;
		}
		memcpy(ids[n].ring_id, r->worker.ring_id, sizeof(ids[n].ring_id));
		ids[n++].pid = r->pid;
		/* The one before as long as it lives: a change costs the counters a
		 * reading. */
		if (net_pid == 0 || r->pid == s->net_pid)
			net_pid = r->pid;
	}
	ls_source_worker_watch(s->worker, ids, n);
	s->net_pid = net_pid;
	ls_source_host_net_of(s->host, net_pid);
}

static void
sources_read_each(struct ls_sources *s, unsigned due, uint64_t now_mono_ns,
	struct ls_sample *into)
{
	const struct ls_source *one;

	for (one = s->list; one < s->list + s->count; one++) {
		if (!s->lean || (one != s->neighbours && one != s->prom))
			one->read(one->self, due, now_mono_ns, into);
	}
}

/* What is slow to read comes into a sample of its own, so that each value is in one
 * group. */
static void
sources_read_slow(struct ls_sources *s, uint64_t now_mono_ns)
{
	sources_read_each(s, LS_CADENCE_SLOW, now_mono_ns, &s->slow);
	for (size_t m = 0; m < LS_METRIC_COUNT; m++) {
		s->is_slow[m] = s->is_slow[m] || s->slow.present[m];
		if (!s->is_slow[m])
			continue;
		s->sample.present[m] = s->slow.present[m];
		s->sample.value[m] = s->slow.value[m];
	}
	ls_sample_group_read(&s->slow_group, &s->slow, NULL, true, now_mono_ns);
}

void
ls_sources_read(struct ls_sources *s, unsigned due, uint64_t now_mono_ns)
{
	if (ls_place_is_settled(s->place, now_mono_ns))
		ls_source_step_read(s->step, now_mono_ns);
	if (due & LS_CADENCE_SLOW) {
		sources_tell_stall(s);
		ls_place_read(s->place, s->step, now_mono_ns);
		ls_place_devices(s->place, s->series);
	}
	sources_watch(s, now_mono_ns);
	if (due & LS_CADENCE_SLOW)
		sources_read_slow(s, now_mono_ns);
	if (!(due & LS_CADENCE_FAST))
		return;
	sources_tell_who(s, now_mono_ns);
	ls_source_prom_stepped(s->prom,
		ls_source_step_get_stats(s->step)->records +
			ls_source_status_get_stats(s->status)->records +
			(s->log != NULL ? ls_source_log_get_stats(s->log)->records
					: 0));
	sources_read_each(s, LS_CADENCE_FAST, now_mono_ns, &s->sample);
	ls_sample_group_read(&s->fast_group, &s->sample, s->is_slow, false,
		now_mono_ns);
	sources_worker_rows(s, now_mono_ns);
}

/* --- what travels in every beat ------------------------------------------- */

static uint64_t
sources_lost(const struct ls_sources *s)
{
	const struct ls_step_stats *steps = ls_source_step_get_stats(s->step);
	uint64_t lost =
		s->spool != NULL ? ls_spool_get_stats(s->spool)->dropped_records : 0;

	for (size_t i = 0; i < LS_GAP_REASON_COUNT; i++)
		lost += steps->lost[i];
	lost += ls_source_status_get_stats(s->status)->lost;
	if (s->log != NULL)
		lost += ls_source_log_get_stats(s->log)->lost;
	return lost;
}

/* A worker as its ring names it, and completed once: what was reported of it stays. */
static void
sources_name_worker(struct ls_sources *s, size_t i, const struct ls_step_ring *ring)
{
	struct ls_wire_worker *w = &s->workers[i];

	/* Rings move towards the front when one before them is done with. */
	for (size_t k = i; k < LS_RINGS_MAX; k++) {
		if (memcmp(s->workers[k].ring_id, ring->worker.ring_id,
			    LS_RING_ID_BYTES) != 0 ||
			s->workers[k].created_mono_ns != ring->worker.created_mono_ns)
			continue;
		if (k != i)
			*w = s->workers[k];
		/* a file that was gone for a while has a new one */
		w->number = ring->worker.number;
		return;
	}
	*w = ring->worker;
	ls_place_complete(s->place, ring, &w->info);
	if (strcmp(w->info.slice, ring->worker.info.slice) != 0)
		ls_log(LS_LOG_INFO, "sources", "job %s rank %d: slice %s, from %s",
			w->info.job, (int)w->info.rank, w->info.slice,
			ls_identity_source_of(ls_place_identity(s->place),
				LS_IDENTITY_SLICE));
	if (w->info.chips != ring->worker.info.chips)
		ls_log(LS_LOG_INFO, "sources",
			"job %s rank %d: %d chips, from its open devices", w->info.job,
			(int)w->info.rank, (int)w->info.chips);
}

void
ls_sources_fill(struct ls_sources *s, struct ls_wire_report *r)
{
	const struct ls_step_ring *ring;
	const struct ls_sample *sample;
	const struct ls_wire_worker *w;
	size_t i, k, hot = 0, live = 0;

	ls_sampler_hot(&s->sample, LS_METRIC_SCOPE_HOST, &s->hot[hot++]);
	for (i = 0; (ring = ls_source_step_ring(s->step, i)) != NULL; i++) {
		sources_name_worker(s, i, ring);
		if (ring->has_live) {
			s->live[live].worker = ring->worker.number;
			s->live[live++].live = ring->live;
		}
		sample = ls_sources_worker(s, ring->worker.ring_id);
		if (sample == NULL || sample->t_mono_ns == 0)
			continue;
		ls_sampler_hot(sample, LS_METRIC_SCOPE_JOB, &s->hot[hot]);
		s->hot[hot++].worker = ring->worker.number;
	}
	if (s->log != NULL && ls_source_log_worker(s->log) != NULL && i < LS_RINGS_MAX)
		s->workers[i++] = *ls_source_log_worker(s->log);
	for (k = 0;
		(w = ls_source_status_worker(s->status, k)) != NULL && i < LS_RINGS_MAX;
		k++)
		s->workers[i++] = *w;
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
	return ls_source_worker_sample(s->worker, ring_id);
}

void
ls_sources_tell(const struct ls_sources *s, struct ls_doctor *d)
{
	ls_source_step_tell(s->step, d);
	ls_place_tell(s->place, d);
	for (size_t i = 0; i < s->count; i++)
		s->list[i].tell(s->list[i].self, d);
}

void
ls_sources_set_lean(struct ls_sources *s, bool lean)
{
	s->lean = lean;
}

void
ls_sources_set_slowed(struct ls_sources *s, unsigned factor)
{
	ls_sample_set(&s->sample, LS_METRIC_AGENT_SLOWED, factor);
}

const struct ls_source_step *
ls_sources_steps(const struct ls_sources *s)
{
	return s->step;
}

struct ls_series_table *
ls_sources_series(const struct ls_sources *s)
{
	return s->series;
}

struct ls_place *
ls_sources_place(const struct ls_sources *s)
{
	return s->place;
}

bool
ls_sources_are_settled(const struct ls_sources *s)
{
	return ls_source_tpu_is_settled(s->tpu) && ls_source_prom_is_settled(s->prom);
}
