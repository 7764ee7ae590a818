/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/zoom.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZOOM_MAX_US ((int64_t)(LS_ZOOM_MAX_NS / 1000))
#define ZOOM_TOTAL_US ((int64_t)(LS_ZOOM_TOTAL_NS / 1000))
#define ZOOM_REST_US ((int64_t)(LS_ZOOM_REST_NS / 1000))

/* A host that is zoomed. */
struct zoom_place {
	struct ls_attention_want want; /* who and why; host "" = free */
	int64_t begin_us, until_us;
	int64_t used_us; /* before begin_us, not yet forgotten */
};

/* A host that was zoomed. */
struct zoom_rest {
	char host[LS_HOST_NAME_MAX_BYTES]; /* "" = free */
	int64_t used_us, end_us;
};

struct ls_zoom {
	ls_zoom_sink *sink;
	void *arg;
	struct zoom_place place[LS_ZOOM_HOSTS_MAX];
	struct zoom_rest rest[LS_ZOOM_RESTING_MAX];
	struct ls_zoom_stats stats;
};

struct ls_zoom *
ls_zoom_new(ls_zoom_sink *sink, void *arg)
{
	struct ls_zoom *z = calloc(1, sizeof(*z));

	if (z != NULL) {
		z->sink = sink;
		z->arg = arg;
	}
	return z;
}

void
ls_zoom_free(struct ls_zoom *z)
{
	free(z);
}

/* The place of a host ("": a free one), or LS_ZOOM_HOSTS_MAX. */
static size_t
zoom_at(const struct ls_zoom *z, const char *host)
{
	size_t i = 0;

	while (i < LS_ZOOM_HOSTS_MAX && strcmp(z->place[i].want.host, host) != 0)
		i++;
	return i;
}

static struct zoom_place *
zoom_find(struct ls_zoom *z, const char *host)
{
	size_t i = zoom_at(z, host);

	return i < LS_ZOOM_HOSTS_MAX ? &z->place[i] : NULL;
}

/* --- what was used -------------------------------------------------------- */

static int64_t
zoom_used(const struct ls_zoom *z, const char *host, int64_t now_us)
{
	for (size_t i = 0; i < LS_ZOOM_RESTING_MAX; i++) {
		if (strcmp(z->rest[i].host, host) == 0)
			return now_us - z->rest[i].end_us < ZOOM_REST_US
				? z->rest[i].used_us
				: 0;
	}
	return 0;
}

/* Remembers the use of a host; the one that ended first makes room. */
static void
zoom_remember(struct ls_zoom *z, const char *host, int64_t used_us, int64_t now_us)
{
	struct zoom_rest *r = NULL, *oldest = &z->rest[0];

	for (size_t i = 0; i < LS_ZOOM_RESTING_MAX && r == NULL; i++) {
		if (strcmp(z->rest[i].host, host) == 0)
			r = &z->rest[i];
		else if (z->rest[i].end_us < oldest->end_us)
			oldest = &z->rest[i];
	}
	if (r == NULL)
		r = oldest;
	(void)snprintf(r->host, sizeof(r->host), "%s", host);
	r->used_us = used_us;
	r->end_us = now_us;
}

/* --- begin, renew, end ---------------------------------------------------- */

static void
zoom_tell(struct ls_zoom *z, const struct zoom_place *p, enum ls_zoom_event event,
	int64_t now_us)
{
	struct ls_store_zoom e = { .event = event, .until_us = p->until_us };

	memcpy(e.host, p->want.host, sizeof(e.host));
	memcpy(e.job, p->want.job, sizeof(e.job));
	memcpy(e.cause, p->want.cause, sizeof(e.cause));
	z->sink(z->arg, &e, now_us);
}

static void
zoom_begin(struct ls_zoom *z, struct zoom_place *p,
	const struct ls_attention_want *want, int64_t used_us, int64_t for_us,
	int64_t now_us)
{
	p->want = *want;
	p->begin_us = now_us;
	p->used_us = used_us;
	p->until_us = now_us + for_us;
	z->stats.begun++;
	z->stats.active++;
	zoom_tell(z, p, LS_ZOOM_BEGIN, now_us);
}

static void
zoom_end(struct ls_zoom *z, struct zoom_place *p, int64_t now_us)
{
	zoom_remember(z, p->want.host, p->used_us + (now_us - p->begin_us), now_us);
	z->stats.ended++;
	z->stats.active--;
	zoom_tell(z, p, LS_ZOOM_END, now_us);
	memset(p, 0, sizeof(*p));
}

/* How long a host may still be zoomed without a person's word, at most one zoom's time.
 */
static int64_t
zoom_left(int64_t used_us)
{
	int64_t left = ZOOM_TOTAL_US - used_us;

	return left < ZOOM_MAX_US ? left : ZOOM_MAX_US;
}

static bool
zoom_is_wanted(const char *host, const struct ls_attention_want *wants, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(wants[i].host, host) == 0)
			return true;
	}
	return false;
}

/* Those whose time is over: renewed if they are still wanted, else ended. */
static void
zoom_expire(struct ls_zoom *z, const struct ls_attention_want *wants, size_t count,
	int64_t now_us)
{
	for (size_t i = 0; i < LS_ZOOM_HOSTS_MAX; i++) {
		struct zoom_place *p = &z->place[i];
		int64_t left;

		if (p->want.host[0] == '\0' || now_us < p->until_us)
			continue;
		left = zoom_left(p->used_us + (now_us - p->begin_us));
		if (left <= 0 || !zoom_is_wanted(p->want.host, wants, count)) {
			zoom_end(z, p, now_us);
			continue;
		}
		p->until_us = now_us + left;
		z->stats.renewed++;
		zoom_tell(z, p, LS_ZOOM_RENEW, now_us);
	}
}

void
ls_zoom_turn(struct ls_zoom *z, const struct ls_attention_want *wants, size_t count,
	int64_t now_us)
{
	zoom_expire(z, wants, count, now_us);
	z->stats.waiting = 0;
	for (size_t i = 0; i < count; i++) {
		struct zoom_place *p;
		int64_t used_us;

		if (wants[i].host[0] == '\0' || zoom_find(z, wants[i].host) != NULL)
			continue;
		used_us = zoom_used(z, wants[i].host, now_us);
		p = zoom_find(z, "");
		if (p == NULL || zoom_left(used_us) <= 0)
			z->stats.waiting++;
		else
			zoom_begin(z, p, &wants[i], used_us, zoom_left(used_us),
				now_us);
	}
}

int
ls_zoom_ask(struct ls_zoom *z, const char *host, const char *who, int64_t for_us,
	int64_t now_us, int64_t *ret_until_us)
{
	struct ls_attention_want want = { .cause = "" };
	struct zoom_place *p = zoom_find(z, host), asked;

	if (for_us > ZOOM_MAX_US)
		for_us = ZOOM_MAX_US;
	(void)snprintf(want.cause, sizeof(want.cause), "asked%s%s",
		who[0] != '\0' ? " by " : "", who);
	if (p != NULL) {
		if (p->until_us < now_us + for_us)
			p->until_us = now_us + for_us;
		/* Only the renewal says who asked: the zoom keeps the cause it began with. */
		asked = *p;
		memcpy(asked.want.cause, want.cause, sizeof(want.cause));
		z->stats.renewed++;
		zoom_tell(z, &asked, LS_ZOOM_RENEW, now_us);
	} else {
		p = zoom_find(z, "");
		if (p == NULL) {
			z->stats.refused++;
			return -LS_EBUSY;
		}
		(void)snprintf(want.host, sizeof(want.host), "%s", host);
		zoom_begin(z, p, &want, zoom_used(z, host, now_us), for_us, now_us);
	}
	z->stats.asked++;
	*ret_until_us = p->until_us;
	return 0;
}

int64_t
ls_zoom_until(const struct ls_zoom *z, const char *host, int64_t now_us)
{
	size_t i = host[0] != '\0' ? zoom_at(z, host) : LS_ZOOM_HOSTS_MAX;

	return i < LS_ZOOM_HOSTS_MAX && z->place[i].until_us > now_us
		? z->place[i].until_us
		: 0;
}

void
ls_zoom_stats(const struct ls_zoom *z, struct ls_zoom_stats *ret_stats)
{
	*ret_stats = z->stats;
}
