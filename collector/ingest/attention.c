/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/attention.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "collector/engine/engine_state.h"

/* open ones looked at, the newest: each costs a search */
#define ATTENTION_FINDINGS_MAX 64
#define ATTENTION_SUSPECTS_MAX 64

struct attention {
	const struct ls_engine *e;
	struct ls_attention_want *wants;
	size_t count, max;
};

/* True if the host was not wanted before, and there was room. */
static bool __attribute__((format(printf, 4, 5))) attention_add(struct attention *a,
	const char *host, const char *job, const char *fmt, ...)
{
	struct ls_attention_want *w;
	va_list ap;

	if (host[0] == '\0' || a->count == a->max)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (strcmp(a->wants[i].host, host) == 0)
			return false;
	}
	w = &a->wants[a->count++];
	memset(w, 0, sizeof(*w));
	(void)snprintf(w->host, sizeof(w->host), "%s", host);
	(void)snprintf(w->job, sizeof(w->job), "%s", job);
	va_start(ap, fmt);
	(void)vsnprintf(w->cause, sizeof(w->cause), fmt, ap); /* cut, if it is long */
	va_end(ap);
	return true;
}

/* The next workers of the same role that report and are not suspects themselves. */
static void
attention_peers(struct attention *a, const struct ls_job *j, size_t slot)
{
	const char *host = a->e->workers[j->slots[slot]].info.host;
	size_t i, found = 0;

	for (i = 1; i < j->count && found < LS_ZOOM_PEERS && a->count < a->max; i++) {
		size_t s = (slot + i) % j->count;
		const struct ls_engine_worker *w = &a->e->workers[j->slots[s]];

		if (j->roles.of[s] != j->roles.of[slot] ||
			w->state != LS_WORKER_REPORTING || j->detect.near[s] > 0 ||
			strcmp(w->info.host, host) == 0)
			continue;
		found += attention_add(a, w->info.host, j->name, "peer of %s", host);
	}
}

static void
attention_findings(struct attention *a)
{
	size_t tries = 0;

	for (size_t i = a->e->finding_count; i > 0 && a->count < a->max; i--) {
		const struct ls_finding *f = &a->e->findings[i - 1];
		const struct ls_job *j = ls_engine_find_job(a->e, f->who.job);
		const struct ls_engine_worker *w;

		if (!ls_finding_is_open(f) ||
			(f->scope != LS_SCOPE_HOST && f->scope != LS_SCOPE_RANK))
			continue;
		if (++tries > ATTENTION_FINDINGS_MAX)
			break;
		w = j != NULL ? ls_job_worker(a->e, j, &f->who) : NULL;
		if (w == NULL)
			continue; /* it reports no more: there is nothing to look at */
		(void)attention_add(a, f->who.host, f->who.job, "finding %s", f->id);
		attention_peers(a, j, w->slot);
	}
}

struct attention_suspect {
	const struct ls_job *job;
	size_t slot;
	double near;
};

/* Adds a suspect to the nearest ones, of which list[0..n-1] are known, sorted; returns
 * how many there are then. */
static size_t
attention_keep(struct attention_suspect *list, size_t n, struct attention_suspect one)
{
	size_t at = n;

	while (at > 0 && list[at - 1].near < one.near)
		at--;
	if (at == ATTENTION_SUSPECTS_MAX)
		return n;
	n += n < ATTENTION_SUSPECTS_MAX;
	memmove(&list[at + 1], &list[at], (n - 1 - at) * sizeof(*list));
	list[at] = one;
	return n;
}

/* Suspects of all jobs, the nearest to a finding first. */
static void
attention_suspects(struct attention *a)
{
	struct attention_suspect list[ATTENTION_SUSPECTS_MAX];
	size_t n = 0, i, s;

	for (i = 0; i < a->e->job_count; i++) {
		const struct ls_job *j = &a->e->jobs[i];

		for (s = 0; s < j->count; s++) {
			double near = (double)j->detect.near[s];

			if (near > 0)
				n = attention_keep(list, n,
					(struct attention_suspect){ j, s, near });
		}
	}
	for (i = 0; i < n && a->count < a->max; i++) {
		const struct ls_job *j = list[i].job;

		if (attention_add(a, a->e->workers[j->slots[list[i].slot]].info.host,
			    j->name, "suspect"))
			attention_peers(a, j, list[i].slot);
	}
}

size_t
ls_attention(const struct ls_engine *e, struct ls_attention_want *wants, size_t max)
{
	struct attention a = { .e = e, .wants = wants, .max = max };

	attention_findings(&a);
	attention_suspects(&a);
	return a.count;
}
