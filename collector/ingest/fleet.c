/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/fleet.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include "collector/ingest/series_text.h"
#include "proto/base/json.h"
#include "proto/base/table.h"
#include "proto/base/text.h"

/* The latest values of one group. */
struct fleet_group {
	char name[LS_GROUP_NAME_MAX_BYTES];
	uint64_t hash;
	int64_t t_us;
	size_t count;
	double *value; /* NaN: not measured */
	char *text; /* the names, each with a NUL behind it */
};

struct fleet_host {
	char name[LS_HOST_NAME_MAX_BYTES]; /* first: the key */
	TAILQ_ENTRY(fleet_host) link; /* least recently seen first */
	int64_t first_us, seen_us, stored_us;
	json_t *identity; /* {"key":{"value","source"},...} or NULL */
	char agent_version[32];
	uint32_t slowed;
	uint64_t spooled_items, waiting_chunk_items, dropped_records, lost_samples;
	uint64_t delayed_answers; /* it exceeded its byte rate */
	bool reported; /* since this collector started */
	bool clock_known;
	struct ls_store_map clock;
	/* LS_GROUPS_MAX of them, or NULL: no live values */
	struct fleet_group *group;
	size_t group_count, series;
};

TAILQ_HEAD(fleet_list, fleet_host);

struct ls_fleet {
	size_t max;
	struct ls_table by_name;
	struct fleet_list list;
	struct ls_fleet_stats stats;
};

struct ls_fleet *
ls_fleet_new(size_t max)
{
	struct ls_fleet *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->max = max;
	ls_table_init(&t->by_name, LS_HOST_NAME_MAX_BYTES);
	TAILQ_INIT(&t->list);
	return t;
}

static void
fleet_drop_values(struct fleet_host *h)
{
	for (size_t i = 0; i < h->group_count; i++) {
		free(h->group[i].value);
		free(h->group[i].text);
	}
	free(h->group);
	h->group = NULL;
	h->group_count = h->series = 0;
}

/* What a host adds to the sums; sign 1 or -1. */
static void
fleet_sum(struct ls_fleet *t, const struct fleet_host *h, bool add)
{
	uint64_t sign = add ? 1 : UINT64_MAX; /* sums wrap back to what they were */

	t->stats.lost_samples += sign * h->lost_samples;
	t->stats.waiting_chunk_items += sign * h->waiting_chunk_items;
	t->stats.slowed += sign * (h->slowed > 1);
	t->stats.delayed += sign * (h->delayed_answers > 0);
}

static void
fleet_remove(struct ls_fleet *t, struct fleet_host *h)
{
	fleet_sum(t, h, false);
	ls_table_remove(&t->by_name, h);
	TAILQ_REMOVE(&t->list, h, link);
	t->stats.hosts--;
	fleet_drop_values(h);
	json_decref(h->identity);
	free(h);
}

void
ls_fleet_free(struct ls_fleet *t)
{
	if (t == NULL)
		return;
	while (!TAILQ_EMPTY(&t->list))
		fleet_remove(t, TAILQ_FIRST(&t->list));
	ls_table_fini(&t->by_name);
	free(t);
}

static struct fleet_host *
fleet_find(const struct ls_fleet *t, const char *host)
{
	char key[LS_HOST_NAME_MAX_BYTES] = "";

	if (ls_text_copy(key, sizeof(key), host) != 0)
		return NULL;
	return ls_table_find(&t->by_name, key);
}

/* Finds or makes a host; the one silent for longest makes room. It is the last of the
 * list then. */
static int
fleet_get(struct ls_fleet *t, const char *host, struct fleet_host **ret_host)
{
	struct fleet_host *h = fleet_find(t, host);

	if (h != NULL) {
		TAILQ_REMOVE(&t->list, h, link);
		TAILQ_INSERT_TAIL(&t->list, h, link);
		*ret_host = h;
		return 0;
	}
	if (t->max == 0)
		return -LS_ELIMIT;
	if (t->stats.hosts >= t->max) {
		t->stats.evicted++;
		fleet_remove(t, TAILQ_FIRST(&t->list));
	}
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return -ENOMEM;
	if (ls_text_copy(h->name, sizeof(h->name), host) != 0 ||
		ls_table_put(&t->by_name, h) != 0) {
		free(h);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&t->list, h, link);
	t->stats.hosts++;
	*ret_host = h;
	return 0;
}

bool
ls_fleet_has(const struct ls_fleet *t, const char *host)
{
	return fleet_find(t, host) != NULL;
}

/* --- how it fares, who it is ---------------------------------------------- */

int
ls_fleet_seed(struct ls_fleet *t, const char *host, const char *json, size_t len,
	int64_t first_us, int64_t last_us)
{
	struct fleet_host *h;
	json_t *identity = NULL;
	char why[64];
	int rc = ls_json_parse(json, len, &identity, why, sizeof(why));

	if (rc == 0 && !json_is_object(identity))
		rc = -LS_EPARSE;
	if (rc == 0)
		rc = fleet_get(t, host, &h);
	if (rc != 0) {
		json_decref(identity);
		return rc;
	}
	json_decref(h->identity);
	h->identity = identity;
	h->first_us = first_us;
	h->seen_us = h->stored_us = last_us;
	return 0;
}

int
ls_fleet_report(struct ls_fleet *t, const struct ls_wire_report *r,
	const struct ls_clock *clock, bool delayed, int64_t now_us)
{
	struct fleet_host *h;
	int rc = fleet_get(t, r->host, &h);

	if (rc != 0)
		return rc;
	fleet_sum(t, h, false);
	if (h->first_us == 0)
		h->first_us = now_us;
	h->seen_us = now_us;
	h->reported = true;
	h->slowed = r->slowed;
	h->spooled_items = r->spooled_items;
	h->waiting_chunk_items = r->waiting_chunk_items;
	h->dropped_records = r->dropped_records;
	h->lost_samples = r->lost_samples;
	h->delayed_answers += delayed;
	if (r->has_kernel)
		memcpy(h->agent_version, r->agent_version, sizeof(h->agent_version));
	h->clock_known =
		ls_clock_map(clock, (int64_t)r->t_send_mono_ns, 0, &h->clock) == 0;
	fleet_sum(t, h, true);
	return 0;
}

/* {"key":{"value":...,"source":...},...}; NULL when out of memory. */
static json_t *
fleet_identity(const struct ls_wire_report *r)
{
	json_t *all = json_object(), *field;
	char key[4 * LS_IDENTITY_KEY_MAX_BYTES];

	for (size_t i = 0; i < r->identity_count && all != NULL; i++) {
		const struct ls_wire_identity *f = &r->identity[i];

		(void)ls_text_escape(key, sizeof(key), f->key, strlen(f->key));
		field = json_pack("{s:o, s:o}", "value", ls_json_text(f->value),
			"source", ls_json_text(f->source));
		if (field == NULL || json_object_set_new(all, key, field) != 0) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

int
ls_fleet_identify(struct ls_fleet *t, const struct ls_wire_report *r, int64_t now_us,
	bool *ret_store)
{
	json_t *fresh = fleet_identity(r);
	struct fleet_host *h;
	int rc = fresh != NULL ? fleet_get(t, r->host, &h) : -ENOMEM;

	if (rc != 0) {
		json_decref(fresh);
		return rc;
	}
	*ret_store = h->identity == NULL || !json_equal(h->identity, fresh) ||
		now_us - h->stored_us >= LS_HOST_STORED_US;
	if (*ret_store)
		h->stored_us = now_us;
	json_decref(h->identity);
	h->identity = fresh;
	t->stats.identities++;
	return 0;
}

char *
ls_fleet_identity_text(const struct ls_fleet *t, const char *host)
{
	const struct fleet_host *h = fleet_find(t, host);

	return h != NULL && h->identity != NULL ? ls_json_canonical(h->identity) : NULL;
}

void
ls_fleet_stalls(const struct ls_fleet *t, const char *host, const char *from,
	const char *until, json_t *rows)
{
	const struct fleet_host *h = fleet_find(t, host);
	char key[LS_IDENTITY_KEY_MAX_BYTES];
	json_t *text, *row;
	size_t n, k;

	for (unsigned i = 0; h != NULL && i < LS_STALL_CORES_SENT; i++) {
		const char *core;

		(void)snprintf(key, sizeof(key), "stall.%u", i);
		core = json_string_value(
			json_object_get(json_object_get(h->identity, key), "value"));
		n = json_array_size(rows);
		/* each begins with its time, written in one form */
		if (core == NULL || n >= LS_STALL_CORES_SENT ||
			strcmp(core, from) < 0 ||
			(until != NULL && strcmp(core, until) > 0))
			return;
		text = json_sprintf("%s: %s", host, core);
		json_array_foreach(rows, k, row)
		{
			if (!json_equal(json_object_get(row, "text"), text))
				continue;
			json_decref(text);
			return;
		}
		ls_ignore(json_array_append_new(rows,
			json_pack(
				"{s:o, s:s, s:s, s:n, s:{s:n, s:n, s:n, s:i}, s:n, s:s, s:o}",
				"id", json_sprintf("s%zu", n + 1), "metric",
				"stall_summary", "unit", "1", "subject", "peers", "p10",
				"p50", "p90", "n", 0, "robust_z", "role", "context",
				"text", text)));
	}
}

/* --- live values ---------------------------------------------------------- */

/* The place of a group; one of the same name gives way to its new dictionary. */
static struct fleet_group *
fleet_group(struct fleet_host *h, const struct ls_dictionary *d)
{
	if (h->group == NULL)
		h->group = calloc(LS_GROUPS_MAX, sizeof(*h->group));
	if (h->group == NULL)
		return NULL;
	for (size_t i = 0; i < h->group_count; i++) {
		if (strcmp(h->group[i].name, d->group) == 0)
			return &h->group[i];
	}
	if (h->group_count == LS_GROUPS_MAX)
		return NULL;
	memcpy(h->group[h->group_count].name, d->group, sizeof(d->group));
	return &h->group[h->group_count++];
}

/* Makes a group one of another dictionary. */
static int
fleet_rename(struct fleet_host *h, struct fleet_group *g, const struct ls_dictionary *d)
{
	double *value = calloc(d->count > 0 ? d->count : 1, sizeof(*value));
	char *text = malloc(d->text_len > 0 ? d->text_len : 1);

	if (value == NULL || text == NULL ||
		h->series - g->count + d->count > LS_SERIES_MAX) {
		free(value);
		free(text);
		return value == NULL || text == NULL ? -ENOMEM : -LS_ELIMIT;
	}
	memcpy(text, d->text, d->text_len);
	h->series = h->series - g->count + d->count;
	free(g->value);
	free(g->text);
	g->value = value;
	g->text = text;
	g->count = d->count;
	g->hash = d->hash;
	return 0;
}

int
ls_fleet_values(struct ls_fleet *t, const char *host, const struct ls_dictionary *d,
	const struct ls_wire_zoomed *values, int64_t t_us)
{
	struct fleet_host *h = fleet_find(t, host);
	struct fleet_group *g;
	int rc = 0;

	if (h == NULL)
		return -LS_EUNKNOWN;
	if (values->count != d->count)
		return -LS_ERANGE;
	g = fleet_group(h, d);
	if (g == NULL)
		return -LS_ELIMIT;
	if (g->value == NULL || g->hash != d->hash)
		rc = fleet_rename(h, g, d);
	if (rc != 0)
		return rc;
	g->t_us = t_us;
	if (d->count > 0)
		memcpy(g->value, values->value, d->count * sizeof(*g->value));
	return 0;
}

void
ls_fleet_forget_values(struct ls_fleet *t, const char *host)
{
	struct fleet_host *h = fleet_find(t, host);

	if (h != NULL)
		fleet_drop_values(h);
}

json_t *
ls_fleet_series_json(const char *text, const char *group, double value, bool measured,
	int64_t t_us, bool live)
{
	char name[LS_SERIES_NAME_MAX_BYTES];
	json_t *labels = NULL;
	/* What is not of our form is shown as it is, without labels. */
	bool ours = ls_series_text_parse(text, name, &labels) == 0;

	return json_pack("{s:o, s:o, s:o, s:s?, s:o, s:o, s:b}", "name",
		ls_json_text(ours ? name : text), "labels",
		ours ? labels : json_object(), "value",
		measured ? ls_json_number(value, 15) : json_null(), "unit",
		ours ? ls_series_text_unit(name) : NULL, "t", ls_json_time(t_us),
		"group", ls_json_text(group), "live", live);
}

int
ls_fleet_series(const struct ls_fleet *t, const char *host, int64_t now_us,
	json_t **ret_array)
{
	const struct fleet_host *h = fleet_find(t, host);
	json_t *all;
	size_t i, k, at;

	if (h == NULL)
		return -LS_EUNKNOWN;
	all = json_array();
	for (i = 0; i < h->group_count && all != NULL; i++) {
		const struct fleet_group *g = &h->group[i];

		if (now_us - g->t_us > LS_ZOOM_LIVE_US)
			continue;
		for (k = at = 0; k < g->count; k++) {
			ls_ignore(json_array_append_new(all,
				ls_fleet_series_json(g->text + at, g->name, g->value[k],
					!isnan(g->value[k]), g->t_us, true)));
			at += strlen(g->text + at) + 1;
		}
	}
	*ret_array = all;
	return all != NULL ? 0 : -ENOMEM;
}

/* --- views ---------------------------------------------------------------- */

static json_t *
fleet_clock(const struct fleet_host *h)
{
	if (!h->clock_known)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "offset_s",
		ls_json_real((double)h->clock.offset_ns * 1e-9), "drift_ppm",
		ls_json_real((double)h->clock.drift_ppb * 1e-3), "uncertainty_s",
		ls_json_real((double)h->clock.uncertainty_ns * 1e-9));
}

/* Numbers of the agent's last report; null before the first. */
static json_t *
fleet_agent(const struct fleet_host *h)
{
	if (!h->reported)
		return json_null();
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "version",
		ls_json_text(h->agent_version), "slowed_factor",
		(json_int_t)(h->slowed > 1 ? h->slowed : 1), "waiting_items",
		(json_int_t)h->spooled_items, "waiting_chunk_items",
		(json_int_t)h->waiting_chunk_items, "lost_records",
		(json_int_t)h->dropped_records, "lost_samples",
		(json_int_t)h->lost_samples, "delayed_answers",
		(json_int_t)h->delayed_answers);
}

int
ls_fleet_view(const struct ls_fleet *t, const char *host, int64_t zoom_until_us,
	json_t **ret_host)
{
	const struct fleet_host *h = fleet_find(t, host);
	json_t *doc;

	if (h == NULL)
		return -LS_EUNKNOWN;
	doc = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:O?}", "host",
		ls_json_text(h->name), "first_seen_at", ls_json_time(h->first_us),
		"last_seen_at", ls_json_time(h->seen_us), "agent", fleet_agent(h),
		"clock", fleet_clock(h), "zoom_until_at",
		zoom_until_us > 0 ? ls_json_time(zoom_until_us) : json_null(),
		"identity", h->identity);
	*ret_host = doc;
	return doc != NULL ? 0 : -ENOMEM;
}

void
ls_fleet_stats(const struct ls_fleet *t, struct ls_fleet_stats *ret_stats)
{
	*ret_stats = t->stats;
}
