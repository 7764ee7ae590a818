/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/history/replay_line.h"
#include "collector/engine/join/index.h"
#include "proto/base/json.h"
#include "proto/base/text.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Sticky error: after the first complaint the rest does nothing. */
struct line_cursor {
	const json_t *o; /* the line */
	char *why;
	int rc;
};

/* A key of a line, and what becomes of its value. */
struct line_field {
	const char *key;
	unsigned kinds; /* bit k: of lines of that kind */
	/* v: NULL if the key is not there; NULL function: only known */
	void (*read)(struct line_cursor *c, const json_t *v, const struct line_field *f,
		struct ls_line *l);
	size_t at, size; /* in struct ls_line; bytes of a name */
	bool needed; /* names and whole numbers; others know */
	int64_t max; /* of whole numbers */
};

static void __attribute__((format(printf, 2, 3)))
line_fail(struct line_cursor *c, const char *fmt, ...)
{
	char raw[LS_LINE_WHY_BYTES];
	va_list ap;

	if (c->rc != 0)
		return;
	c->rc = -LS_EPARSE;
	va_start(ap, fmt);
	(void)vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	(void)ls_text_escape(c->why, LS_LINE_WHY_BYTES, raw, strlen(raw));
}

static void *
line_place(struct ls_line *l, const struct line_field *f)
{
	return (char *)l + f->at;
}

static void
line_name(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	size_t len = json_string_length(v);

	if (v == NULL && f->needed)
		line_fail(c, "\"%s\" is missing", f->key);
	else if (v == NULL || (json_is_string(v) && len == 0 && !f->needed))
		return;
	else if (!json_is_string(v) ||
		!ls_text_is_name(json_string_value(v), len, f->size - 1))
		line_fail(c, "\"%s\" is not a name of 1 to %zu bytes", f->key,
			f->size - 1);
	else
		memcpy(line_place(l, f), json_string_value(v), len + 1);
}

/* A whole number of 0 to max; 0 if it is not there. */
static int64_t
line_whole(struct line_cursor *c, const json_t *v, const struct line_field *f)
{
	if (v == NULL && f->needed)
		line_fail(c, "\"%s\" is missing", f->key);
	else if (v != NULL &&
		(!json_is_integer(v) || json_integer_value(v) < 0 ||
			json_integer_value(v) > f->max))
		line_fail(c, "\"%s\" is not a whole number of 0 to %lld", f->key,
			(long long)f->max);
	return json_integer_value(v);
}

static void
line_small(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	*(int32_t *)line_place(l, f) = (int32_t)line_whole(c, v, f);
}

static void
line_count(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	*(uint64_t *)line_place(l, f) = (uint64_t)line_whole(c, v, f);
}

/* Counters without a rank are those of their host. */
static void
line_rank_or_host(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	l->who.rank = v == NULL ? -1 : (int32_t)line_whole(c, v, f);
}

/* A number of 0..max seconds. */
static double
line_seconds(struct line_cursor *c, const json_t *v, const char *key, double max)
{
	double x;

	if (!json_is_number(v)) {
		line_fail(c, v == NULL ? "\"%s\" is missing" : "\"%s\" is not a number",
			key);
		return 0;
	}
	x = json_number_value(v);
	if (!isfinite(x) || x < 0 || x > max) {
		line_fail(c, "\"%s\" is not within 0 and %.0f", key, max);
		return 0;
	}
	return x;
}

#define LINE_TIME_MAX_S 8.0e9 /* year 2223; in ns it fits int64 */
#define LINE_SPAN_MAX_S ((double)LS_PHASE_MAX_NS * 1e-9)

/* Unix seconds to ns, rounded to whole microseconds. */
static int64_t
line_time_ns(struct line_cursor *c, const json_t *v, const char *key)
{
	return llround(line_seconds(c, v, key, LINE_TIME_MAX_S) * 1e6) * 1000;
}

static void
line_time(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	*(int64_t *)line_place(l, f) = line_time_ns(c, v, f->key) / 1000;
}

static void
line_begin(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	l->record.t_begin_ns = line_time_ns(c, v, f->key);
}

/* Counters are known when they are read, if nothing else is said. */
static void
line_received(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	l->t_us = v == NULL ? l->read_us : line_time_ns(c, v, f->key) / 1000;
}

/* Seconds to ns, rounded to whole microseconds: as records are stored. */
static uint64_t
line_span_ns(struct line_cursor *c, const json_t *v, const char *key)
{
	return (uint64_t)llround(line_seconds(c, v, key, LINE_SPAN_MAX_S) * 1e6) * 1000;
}

static void
line_duration(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	l->record.duration_ns = line_span_ns(c, v, f->key);
}

/* Whole ns, as when it came in. */
static void
line_uncertainty(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	double s = line_seconds(c, v, f->key, LINE_SPAN_MAX_S);

	l->uncertainty_s = (double)llround(s * 1e9) * 1e-9;
}

static void
line_unknown(struct ls_line *l, const char *key)
{
	if (l->unknown[0] == '\0')
		(void)ls_text_escape(l->unknown, sizeof(l->unknown), key, strlen(key));
}

/* --- a record ------------------------------------------------------------- */

/* False: there is nothing to go through. */
static bool
line_is_object(struct line_cursor *c, const json_t *v, const struct line_field *f)
{
	if (v != NULL && !json_is_object(v))
		line_fail(c, "\"%s\" is not an object", f->key);
	return json_is_object(v);
}

/* Gives each member whose name is known to `put`, with what the name means. */
static void
line_members(struct line_cursor *c, const json_t *o, struct ls_line *l,
	int (*by_name)(const char *name),
	void (*put)(struct line_cursor *c, const char *key, const json_t *v, int which,
		struct ls_line *l))
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)o, key, v)
	{
		int which = by_name(key);

		if (which < 0)
			line_unknown(l, key);
		else
			put(c, key, v, which, l);
	}
}

static void
line_phase(struct line_cursor *c, const char *key, const json_t *v, int phase,
	struct ls_line *l)
{
	l->record.phase_ns[phase] = line_span_ns(c, v, key);
	l->record.phase_mask |= 1u << phase;
}

static void
line_phases(struct line_cursor *c, const json_t *o, const struct line_field *f,
	struct ls_line *l)
{
	if (line_is_object(c, o, f))
		line_members(c, o, l, ls_phase_by_name, line_phase);
}

static void
line_amount(struct line_cursor *c, const char *key, const json_t *v, int work,
	struct ls_line *l)
{
	l->record.work[work] = line_seconds(c, v, key, 1e18);
	l->record.work_mask |= (uint8_t)(1u << work);
}

static void
line_work(struct line_cursor *c, const json_t *o, const struct line_field *f,
	struct ls_line *l)
{
	if (line_is_object(c, o, f))
		line_members(c, o, l, ls_work_by_name, line_amount);
}

static void
line_barriers(struct line_cursor *c, const json_t *list, const struct line_field *f,
	struct ls_line *l)
{
	const json_t *enter = json_object_get(c->o, "sync_enter"), *v;
	struct ls_record *r = &l->record;
	size_t i;

	(void)f;
	if (list == NULL && enter != NULL) {
		r->barrier[0].enter_ns = line_time_ns(c, enter, "sync_enter");
		r->barrier[0].exit_ns = line_time_ns(c,
			json_object_get(c->o, "sync_exit"), "sync_exit");
		r->barrier_count = 1;
	}
	if (list == NULL)
		return;
	if (!json_is_array(list) || json_array_size(list) > LS_BARRIERS_MAX) {
		line_fail(c, "\"barriers\" is not a list of at most %d",
			LS_BARRIERS_MAX);
		return;
	}
	json_array_foreach(list, i, v)
	{
		int kind = ls_barrier_by_name(
			json_string_value(json_object_get(v, "name")));

		if (kind < 0)
			line_fail(c, "barrier %zu has no known name", i + 1);
		r->barrier[i].kind = (uint8_t)(kind < 0 ? 0 : kind);
		r->barrier[i].enter_ns =
			line_time_ns(c, json_object_get(v, "enter"), "enter");
		r->barrier[i].exit_ns =
			line_time_ns(c, json_object_get(v, "exit"), "exit");
	}
	r->barrier_count = (uint8_t)json_array_size(list);
}

/* One wait on a peer; UINT64_MAX: not measured. */
static uint64_t
line_peer_wait(struct line_cursor *c, const json_t *peer, const char *key)
{
	const json_t *v = json_object_get(peer, key);

	return v == NULL ? UINT64_MAX : line_span_ns(c, v, key);
}

/*
 * Which host has which rank is not known from one line: the rank is a hash of the
 * host's name until ls_replay_input_arrange finds it. So the record is checked before.
 */
static void
line_peers(struct line_cursor *c, const json_t *o, const struct line_field *f,
	struct ls_line *l)
{
	struct ls_record *r = &l->record;
	const char *key, *why = NULL;
	json_t *v;

	if (c->rc == 0 && ls_record_check(r, &why) != 0)
		line_fail(c, "impossible record: %s", why);
	if (!line_is_object(c, o, f))
		return;
	json_object_foreach((json_t *)o, key, v)
	{
		struct ls_record_peer peer = { ls_index_hash_text(key), UINT64_MAX,
			UINT64_MAX };

		if (!json_is_object(v))
			line_fail(c, "peer \"%s\" is not an object", key);
		peer.recv_wait_ns = line_peer_wait(c, v, "recv_wait");
		peer.send_wait_ns = line_peer_wait(c, v, "send_wait");
		if (r->peer_count == LS_PEERS_MAX)
			line_fail(c, "more than %d peers", LS_PEERS_MAX);
		else
			r->peer[r->peer_count++] = peer;
	}
}

static void
line_simulated(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	(void)c;
	(void)f;
	l->who.simulated = json_is_true(v);
}

static void
line_uid(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	if (v != NULL)
		l->who.owner = (uint32_t)line_whole(c, v, f) + 1;
}

/* Lines without it are of marks. */
static void
line_step_source(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	int source = ls_step_source_by_name(json_string_value(v));

	if (v != NULL && source < 0)
		line_fail(c, "\"%s\" is unknown", f->key);
	l->who.step_source = source < 0 ? LS_STEP_MARKER : (enum ls_step_source)source;
}

static void
line_confidence(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	double confidence = json_number_value(v);

	if (v != NULL && (!json_is_number(v) || !(confidence >= 0 && confidence <= 1)))
		line_fail(c, "\"%s\" is not a number from 0 to 1", f->key);
	else
		l->who.step_confidence = confidence;
}

/* --- other lines ---------------------------------------------------------- */

static void
line_value(struct line_cursor *c, const char *key, const json_t *v, int metric,
	struct ls_line *l)
{
	if (json_is_null(v))
		return; /* not measured */
	if (!json_is_number(v) || !isfinite(json_number_value(v)))
		line_fail(c, "value of \"%s\" is not a number", key);
	l->metric[l->count] = (uint16_t)metric;
	l->value[l->count++] = json_number_value(v);
}

static void
line_values(struct line_cursor *c, const json_t *o, const struct line_field *f,
	struct ls_line *l)
{
	if (o == NULL)
		line_fail(c, "\"%s\" is not an object", f->key);
	else if (line_is_object(c, o, f))
		line_members(c, o, l, ls_metric_by_name, line_value);
}

/* A list of ranks, which need not be there. */
static void
line_ranks(struct line_cursor *c, const json_t *list, const struct line_field *f,
	struct ls_line *l)
{
	const json_t *v;
	size_t i;

	if (list != NULL && !json_is_array(list))
		line_fail(c, "\"%s\" is not a list", f->key);
	json_array_foreach(list, i, v)
	{
		if (!json_is_integer(v) || json_integer_value(v) < INT32_MIN ||
			json_integer_value(v) > INT32_MAX ||
			i >= LS_CLOSE_MISSING_MAX) {
			line_fail(c, "\"%s\" is not a list of at most %d ranks", f->key,
				LS_CLOSE_MISSING_MAX);
			return;
		}
		l->ranks[l->rank_count++] = (int32_t)json_integer_value(v);
	}
}

static void
line_why(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	int why = ls_hang_why_by_name(json_string_value(v));

	if (why < 0)
		line_fail(c, "\"%s\" is unknown", f->key);
	if (l->since_us > l->t_us)
		line_fail(c, "\"since\" is after \"t\"");
	l->why = why < 0 ? LS_HANG_UNKNOWN : (enum ls_hang_why)why;
}

static void
line_how(struct line_cursor *c, const json_t *v, const struct line_field *f,
	struct ls_line *l)
{
	int how = ls_end_how_by_name(json_string_value(v));

	(void)c;
	(void)f;
	l->how = how < 0 ? LS_END_UNKNOWN : (enum ls_end_how)how;
}

/* --- all lines ------------------------------------------------------------ */

#define LINE_STEP (1u << LS_LINE_STEP)
#define LINE_COUNTERS (1u << LS_LINE_COUNTERS)
#define LINE_CLOSE (1u << LS_LINE_CLOSE)
#define LINE_CLOCK (1u << LS_LINE_CLOCK)
#define LINE_HANG (1u << LS_LINE_HANG)
#define LINE_END (1u << LS_LINE_END)
#define LINE_ALL (~(1u << LS_LINE_OTHER))

#define LINE_AT(member) offsetof(struct ls_line, member)
#define LINE_NAME(member) LINE_AT(member), sizeof(((struct ls_line *)NULL)->member)
#define LINE_STEP_MAX (INT64_MAX / 2)

/* In the order in which they are read: of several faults the first is told. */
static const struct line_field line_fields[] = {
	{ "type", LINE_ALL, NULL, 0, 0, false, 0 },
	{ "slice", LINE_STEP, line_name, LINE_NAME(who.slice), false, 0 },
	{ "host", LINE_STEP | LINE_COUNTERS | LINE_CLOCK | LINE_END, line_name,
		LINE_NAME(who.host), true, 0 },
	{ "role", LINE_STEP, line_name, LINE_NAME(who.role), false, 0 },
	{ "rack", LINE_STEP, line_name, LINE_NAME(who.rack), false, 0 },
	{ "shard", LINE_STEP, line_name, LINE_NAME(who.shard), false, 0 },
	{ "rank", LINE_STEP | LINE_CLOCK | LINE_END, line_small, LINE_AT(who.rank), 0,
		true, LS_WORKERS_MAX - 1 },
	{ "rank", LINE_COUNTERS, line_rank_or_host, 0, 0, true, LS_WORKERS_MAX - 1 },
	{ "uid", LINE_STEP | LINE_COUNTERS | LINE_CLOCK | LINE_END, line_uid, 0, 0,
		false, UINT32_MAX - 1 },
	{ "chips", LINE_STEP, line_small, LINE_AT(who.chips), 0, false, 65536 },
	{ "world", LINE_STEP, line_small, LINE_AT(who.world), 0, false,
		LS_WORKERS_MAX },
	{ "simulated", LINE_STEP, line_simulated, 0, 0, false, 0 },
	{ "step_source", LINE_STEP, line_step_source, 0, 0, false, 0 },
	{ "step_confidence", LINE_STEP, line_confidence, 0, 0, false, 0 },
	{ "step", LINE_STEP, line_count, LINE_AT(record.step), 0, true, LINE_STEP_MAX },
	{ "step", LINE_CLOSE | LINE_HANG, line_count, LINE_AT(step), 0, true,
		LINE_STEP_MAX },
	{ "t_begin", LINE_STEP, line_begin, 0, 0, true, 0 },
	{ "duration", LINE_STEP, line_duration, 0, 0, true, 0 },
	{ "phases", LINE_STEP, line_phases, 0, 0, false, 0 },
	{ "work", LINE_STEP, line_work, 0, 0, false, 0 },
	{ "sync_enter", LINE_STEP, NULL, 0, 0, false, 0 },
	{ "sync_exit", LINE_STEP, NULL, 0, 0, false, 0 },
	{ "barriers", LINE_STEP, line_barriers, 0, 0, false, 0 },
	{ "peers", LINE_STEP, line_peers, 0, 0, false, 0 },
	{ "since", LINE_HANG, line_time, LINE_AT(since_us), 0, true, 0 },
	{ "t", LINE_COUNTERS, line_time, LINE_AT(read_us), 0, true, 0 },
	{ "t", LINE_CLOSE | LINE_CLOCK | LINE_HANG | LINE_END, line_time, LINE_AT(t_us),
		0, true, 0 },
	{ "received", LINE_COUNTERS, line_received, 0, 0, false, 0 },
	{ "values", LINE_COUNTERS, line_values, 0, 0, true, 0 },
	{ "expected", LINE_CLOSE, NULL, 0, 0, false, 0 },
	{ "used", LINE_CLOSE, NULL, 0, 0, false, 0 },
	{ "missing", LINE_CLOSE, line_ranks, 0, 0, false, 0 },
	{ "waiting", LINE_HANG, line_small, LINE_AT(waiting), 0, true, LS_WORKERS_MAX },
	{ "ranks", LINE_HANG, line_ranks, 0, 0, false, 0 },
	{ "why", LINE_HANG, line_why, 0, 0, true, 0 },
	{ "uncertainty", LINE_CLOCK, line_uncertainty, 0, 0, true, 0 },
	{ "how", LINE_END, line_how, 0, 0, false, 0 },
	{ "job", LINE_ALL, line_name, LINE_NAME(who.job), true, 0 },
	{ "attempt", LINE_ALL, line_small, LINE_AT(who.attempt), 0, false, INT32_MAX },
};
#define LINE_FIELDS (sizeof(line_fields) / sizeof(line_fields[0]))

static const struct {
	const char *name;
	enum ls_line_kind kind;
} line_types[] = {
	{ "step", LS_LINE_STEP },
	{ "counters", LS_LINE_COUNTERS },
	{ "close", LS_LINE_CLOSE },
	{ "clock", LS_LINE_CLOCK },
	{ "hang", LS_LINE_HANG },
	{ "end", LS_LINE_END },
	{ "gap", LS_LINE_OTHER },
	{ "job", LS_LINE_OTHER },
	{ "zoom", LS_LINE_OTHER },
	{ "lost", LS_LINE_OTHER },
};
#define LINE_TYPES (sizeof(line_types) / sizeof(line_types[0]))

static bool
line_has(const struct ls_line *l, const struct line_field *f)
{
	return (f->kinds & 1u << l->kind) != 0;
}

static void
line_find_unknown(const json_t *o, struct ls_line *l)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)o, key, v)
	{
		size_t i = 0;

		(void)v;
		while (i < LINE_FIELDS &&
			!(line_has(l, &line_fields[i]) &&
				strcmp(line_fields[i].key, key) == 0))
			i++;
		if (i == LINE_FIELDS)
			line_unknown(l, key);
	}
}

static void
line_object(struct line_cursor *c, struct ls_line *l)
{
	const char *type = json_string_value(json_object_get(c->o, "type"));
	const json_t *v[LINE_FIELDS];
	size_t i = 0, known = 0;

	while (type != NULL && i < LINE_TYPES && strcmp(line_types[i].name, type) != 0)
		i++;
	if (i == LINE_TYPES) {
		line_fail(c, "unknown type \"%s\"", type);
		return;
	}
	l->kind = line_types[i].kind;
	if (l->kind == LS_LINE_OTHER)
		return;
	for (i = 0; i < LINE_FIELDS; i++) {
		v[i] = line_has(l, &line_fields[i])
			? json_object_get(c->o, line_fields[i].key)
			: NULL;
		known += v[i] != NULL;
	}
	if (known < json_object_size(c->o))
		line_find_unknown(c->o, l);
	for (i = 0; i < LINE_FIELDS; i++)
		if (line_has(l, &line_fields[i]) && line_fields[i].read != NULL)
			line_fields[i].read(c, v[i], &line_fields[i], l);
}

int
ls_line_parse(const char *text, size_t len, struct ls_line *l, char *why)
{
	struct line_cursor c = { .why = why };
	char error[LS_LINE_WHY_BYTES / 2];
	json_t *o = NULL;

	memset(l, 0, sizeof(*l));
	if (ls_json_parse(text, len, &o, error, sizeof(error)) != 0) {
		line_fail(&c, "not JSON: %s", error);
		return c.rc;
	}
	c.o = o;
	if (json_is_object(o))
		line_object(&c, l);
	else
		line_fail(&c, "not an object");
	json_decref(o);
	return c.rc;
}
