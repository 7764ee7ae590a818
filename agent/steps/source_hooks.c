/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/source_hooks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "proto/ring/ring_events.h"

#define HOOKS_GROUP "job.hooks"
#define HOOKS_NS_PER_S 1e9
#define HOOKS_NO_SERIES (-1)
#define HOOKS_UNKNOWN (-2) /* not asked for yet */

struct hooks_function {
	char name[LS_RING_FUNCTION_NAME_MAX_BYTES];
	int compiles, seconds; /* handles */
};

struct hooks_worker {
	uint8_t ring_id[LS_RING_ID_BYTES];
	bool seen;
	int counter[LS_RING_EVENT_COUNT]; /* handles */
	size_t function_count;
	struct hooks_function function[LS_RING_FUNCTIONS_MAX];
};

struct source_hooks {
	struct ls_source_step *rings;
	struct ls_series_table *table;
	int group; /* negative: the table has no room for it */
	size_t count;
	struct hooks_worker worker[LS_RINGS_MAX];
	uint64_t errors, bad_names, jax; /* at the last reading, over all workers */
};

/* --- series of a worker --------------------------------------------------- */

static void
hooks_label(char *labels, const char *key, const char *value, size_t max)
{
	char cut[LS_JOB_NAME_MAX_BYTES];

	(void)snprintf(cut, sizeof(cut), "%.*s", (int)max, value);
	ls_series_label(labels, LS_SERIES_LABELS_MAX_BYTES, key, cut);
}

/* Handle of a metric of a worker, of one function if there is a name. */
static int
hooks_series(const struct source_hooks *s, const struct ls_worker_info *w,
	enum ls_metric metric, const char *function)
{
	char labels[LS_SERIES_LABELS_MAX_BYTES] = "", rank[16];
	int rc;

	if (function != NULL)
		hooks_label(labels, "function", function, 63);
	hooks_label(labels, "job", w->job, 47);
	(void)snprintf(rank, sizeof(rank), "%d", (int)w->rank);
	hooks_label(labels, "rank", rank, sizeof(rank));
	if (s->group < 0)
		return HOOKS_NO_SERIES;
	rc = ls_series_add_metric(s->table, (size_t)s->group, metric, labels);
	return rc < 0 ? HOOKS_NO_SERIES : rc;
}

/* A worker without series. */
static void
hooks_begin(struct hooks_worker *w)
{
	w->function_count = 0;
	for (size_t i = 0; i < LS_RING_EVENT_COUNT; i++)
		w->counter[i] = HOOKS_UNKNOWN;
}

static struct hooks_worker *
hooks_find(struct source_hooks *s, const uint8_t ring_id[LS_RING_ID_BYTES])
{
	struct hooks_worker *w;

	for (size_t i = 0; i < s->count; i++) {
		if (memcmp(s->worker[i].ring_id, ring_id, LS_RING_ID_BYTES) == 0)
			return &s->worker[i];
	}
	/* the rings are no more, and the gone were forgotten */
	LS_ASSERT(s->count < LS_RINGS_MAX);
	w = &s->worker[s->count++];
	memset(w, 0, sizeof(*w));
	memcpy(w->ring_id, ring_id, LS_RING_ID_BYTES);
	hooks_begin(w);
	return w;
}

/*
 * Forgets the workers that were not seen. All series go and come anew: two rings of one
 * rank (the one of the attempt before is still there) share theirs, so none can be
 * removed for one of them alone.
 */
static void
hooks_forget(struct source_hooks *s)
{
	size_t i, kept = 0;

	for (i = 0; i < s->count; i++) {
		if (s->worker[i].seen)
			s->worker[kept++] = s->worker[i];
	}
	if (kept == s->count)
		return;
	s->count = kept;
	for (i = 0; i < s->count; i++)
		hooks_begin(&s->worker[i]);
	if (s->group >= 0)
		ls_series_group_remove(s->table, (size_t)s->group);
	s->group = ls_series_group(s->table, HOOKS_GROUP);
}

/* --- reading -------------------------------------------------------------- */

static void
hooks_set_counters(struct source_hooks *s, struct hooks_worker *w,
	const struct ls_worker_info *info, const struct ls_ring_events *e)
{
	for (unsigned i = 0; i < LS_RING_EVENT_COUNT; i++) {
		double unit;
		enum ls_metric metric =
			ls_ring_event_metric((enum ls_ring_event)i, &unit);

		if (!e->measured[i]) {
			if (w->counter[i] >= 0)
				ls_series_unset(s->table, w->counter[i]);
			continue;
		}
		if (w->counter[i] == HOOKS_UNKNOWN)
			w->counter[i] = hooks_series(s, info, metric, NULL);
		ls_series_set(s->table, w->counter[i], (double)e->counter[i] / unit);
	}
}

/* The place of a function, in the order in which we met them; NULL: too many names. */
static struct hooks_function *
hooks_function(struct source_hooks *s, struct hooks_worker *w,
	const struct ls_worker_info *info, const char *name)
{
	struct hooks_function *f;

	for (size_t i = 0; i < w->function_count; i++) {
		if (strcmp(w->function[i].name, name) == 0)
			return &w->function[i];
	}
	if (w->function_count == LS_RING_FUNCTIONS_MAX)
		return NULL; /* a ring that changes its names: no true writer does */
	f = &w->function[w->function_count++];
	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	f->compiles = hooks_series(s, info, LS_METRIC_JOB_FUNCTION_COMPILES, name);
	f->seconds =
		hooks_series(s, info, LS_METRIC_JOB_FUNCTION_COMPILE_SECONDS, name);
	return f;
}

static void
hooks_set_functions(struct source_hooks *s, struct hooks_worker *w,
	const struct ls_worker_info *info, const struct ls_ring_events *e)
{
	for (size_t i = 0; i < e->function_count; i++) {
		const struct hooks_function *f =
			hooks_function(s, w, info, e->function[i].name);

		if (f == NULL) {
			s->bad_names++;
			continue;
		}
		ls_series_set(s->table, f->compiles, (double)e->function[i].compiles);
		ls_series_set(s->table, f->seconds,
			(double)e->function[i].ns / HOOKS_NS_PER_S);
	}
	s->bad_names += e->bad_names;
}

/* Marks the workers whose rings are still there. */
static void
hooks_look(struct source_hooks *s)
{
	const struct ls_step_ring *ring;

	for (size_t i = 0; i < s->count; i++)
		s->worker[i].seen = false;
	for (size_t i = 0; (ring = ls_source_step_ring(s->rings, i)) != NULL; i++) {
		for (size_t k = 0; k < s->count; k++) {
			if (memcmp(s->worker[k].ring_id, ring->worker.ring_id,
				    LS_RING_ID_BYTES) == 0)
				s->worker[k].seen = true;
		}
	}
}

static void
hooks_read(void *self, unsigned due, uint64_t now_mono_ns, struct ls_sample *into)
{
	struct source_hooks *s = self;
	const struct ls_step_ring *ring;
	struct ls_ring_events e;

	(void)into; /* everything here has labels */
	if (!(due & LS_CADENCE_SLOW))
		return;
	s->errors = s->bad_names = s->jax = 0;
	hooks_look(s);
	hooks_forget(s);
	for (size_t i = 0; (ring = ls_source_step_ring(s->rings, i)) != NULL; i++) {
		struct hooks_worker *w;

		if (ls_source_step_events(s->rings, i, &e) != 0)
			continue; /* a writer without hooks */
		w = hooks_find(s, ring->worker.ring_id);
		hooks_set_counters(s, w, &ring->worker.info, &e);
		hooks_set_functions(s, w, &ring->worker.info, &e);
		s->errors += e.counter[LS_RING_EVENT_ERRORS];
		s->jax += e.measured[LS_RING_EVENT_COMPILES];
	}
	if (s->count > 0 && s->group >= 0)
		ls_series_read(s->table, (size_t)s->group, now_mono_ns);
}

/* --- the source ----------------------------------------------------------- */

static void
hooks_tell(const void *self, struct ls_doctor *d)
{
	const struct source_hooks *s = self;
	if (s->count == 0)
		ls_doctor_add(d, LS_DOCTOR_NONE, "hooks", "rings",
			"no worker here uses the Python package", "");
	else
		ls_doctor_addf(d, s->errors > 0 ? LS_DOCTOR_WARN : LS_DOCTOR_OK,
			"hooks", "rings",
			s->errors > 0
				? "use a supported version of JAX: agent/client/README.md"
				: "",
			"%zu workers with hooks, %llu of them with JAX hooks; %llu events "
			"failed, %llu names unreadable",
			s->count, (unsigned long long)s->jax,
			(unsigned long long)s->errors,
			(unsigned long long)s->bad_names);
}

int
ls_source_hooks_new(struct ls_source_step *rings, struct ls_series_table *table,
	struct ls_source *ret_source)
{
	struct source_hooks *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->rings = rings;
	s->table = table;
	s->group = ls_series_group(table, HOOKS_GROUP);
	*ret_source =
		(struct ls_source){ "hooks", s, NULL, hooks_read, hooks_tell, free };
	return 0;
}
