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
	char *why;
	int rc;
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

static void
line_name(struct line_cursor *c, const json_t *o, const char *key, bool needed,
	char *dst, size_t size)
{
	const json_t *v = json_object_get(o, key);

	dst[0] = '\0';
	if (v == NULL || (json_is_string(v) && json_string_length(v) == 0 && !needed)) {
		if (needed)
			line_fail(c, "\"%s\" is missing", key);
		return;
	}
	if (!json_is_string(v) ||
		!ls_text_is_name(json_string_value(v), json_string_length(v),
			size - 1)) {
		line_fail(c, "\"%s\" is not a name of 1 to %zu bytes", key, size - 1);
		return;
	}
	memcpy(dst, json_string_value(v), json_string_length(v) + 1);
}

static int64_t
line_integer(struct line_cursor *c, const json_t *o, const char *key, bool needed,
	int64_t dflt, int64_t max)
{
	const json_t *v = json_object_get(o, key);

	if (v == NULL) {
		if (needed)
			line_fail(c, "\"%s\" is missing", key);
		return dflt;
	}
	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
		json_integer_value(v) > max) {
		line_fail(c, "\"%s\" is not a whole number of 0 to %lld", key,
			(long long)max);
		return dflt;
	}
	return json_integer_value(v);
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

/* Seconds to ns, rounded to whole microseconds: as records are stored. */
static uint64_t
line_span_ns(struct line_cursor *c, const json_t *v, const char *key)
{
	return (uint64_t)llround(line_seconds(c, v, key, LINE_SPAN_MAX_S) * 1e6) * 1000;
}

/* Seconds to whole ns. */
static uint64_t
line_whole_ns(struct line_cursor *c, const json_t *v, const char *key)
{
	return (uint64_t)llround(line_seconds(c, v, key, LINE_SPAN_MAX_S) * 1e9);
}

static void
line_unknown(struct ls_line *l, const char *key)
{
	if (l->unknown[0] == '\0')
		(void)ls_text_escape(l->unknown, sizeof(l->unknown), key, strlen(key));
}

/* Remembers the first key that is not in the list. */
static void
line_keys(const json_t *o, struct ls_line *l, const char *const *known, size_t count)
{
	const char *key;
	const json_t *v;

	json_object_foreach((json_t *)o, key, v)
	{
		size_t i = 0;

		(void)v;
		while (i < count && strcmp(known[i], key) != 0)
			i++;
		if (i == count)
			line_unknown(l, key);
	}
}

static void
line_phases(struct line_cursor *c, const json_t *o, struct ls_line *l)
{
	const char *key;
	json_t *v;

	if (o == NULL)
		return;
	if (!json_is_object(o))
		line_fail(c, "\"phases\" is not an object");
	json_object_foreach((json_t *)o, key, v)
	{
		int phase = ls_phase_by_name(key);

		if (phase < 0) {
			line_unknown(l, key);
			continue;
		}
		l->record.phase_ns[phase] = line_span_ns(c, v, key);
		l->record.phase_mask |= 1u << phase;
	}
}

static void
line_work(struct line_cursor *c, const json_t *o, struct ls_line *l)
{
	const char *key;
	json_t *v;

	if (o == NULL)
		return;
	if (!json_is_object(o))
		line_fail(c, "\"work\" is not an object");
	json_object_foreach((json_t *)o, key, v)
	{
		int work = ls_work_by_name(key);

		if (work < 0) {
			line_unknown(l, key);
			continue;
		}
		l->record.work[work] = line_seconds(c, v, key, 1e18);
		l->record.work_mask |= (uint8_t)(1u << work);
	}
}

static void
line_barriers(struct line_cursor *c, const json_t *o, struct ls_record *r)
{
	const json_t *list = json_object_get(o, "barriers"), *v;
	const json_t *enter = json_object_get(o, "sync_enter");
	size_t i;

	if (list == NULL && enter == NULL)
		return;
	if (list == NULL) {
		r->barrier[0].enter_ns = line_time_ns(c, enter, "sync_enter");
		r->barrier[0].exit_ns =
			line_time_ns(c, json_object_get(o, "sync_exit"), "sync_exit");
		r->barrier_count = 1;
		return;
	}
	if (!json_is_array(list) || json_array_size(list) > LS_BARRIERS_MAX) {
		line_fail(c, "\"barriers\" is not a list of at most %d",
			LS_BARRIERS_MAX);
		return;
	}
	json_array_foreach(list, i, v)
	{
		const char *name = json_string_value(json_object_get(v, "name"));
		int kind = name == NULL ? -LS_EUNKNOWN : ls_barrier_by_name(name);

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
 * host's name until ls_replay_input_arrange finds it.
 */
static void
line_peers(struct line_cursor *c, const json_t *o, struct ls_record *r)
{
	const char *key;
	json_t *v;

	if (o == NULL)
		return;
	if (!json_is_object(o))
		line_fail(c, "\"peers\" is not an object");
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

/* Lines without it are of marks. */
static void
line_step_source(struct line_cursor *c, const json_t *o, struct ls_line *l)
{
	const json_t *source = json_object_get(o, "step_source");
	const json_t *confidence = json_object_get(o, "step_confidence");
	int value = LS_STEP_MARKER;

	if (source != NULL)
		value = json_is_string(source)
			? ls_step_source_by_name(json_string_value(source))
			: -LS_EUNKNOWN;
	if (value < 0) {
		line_fail(c, "\"step_source\" is unknown");
		return;
	}
	l->who.step_source = (enum ls_step_source)value;
	if (confidence == NULL)
		return;
	if (!json_is_number(confidence) ||
		!(json_number_value(confidence) >= 0 &&
			json_number_value(confidence) <= 1))
		line_fail(c, "\"step_confidence\" is not a number from 0 to 1");
	else
		l->who.step_confidence = json_number_value(confidence);
}

static void
line_step(struct line_cursor *c, const json_t *o, struct ls_line *l)
{
	static const char *const known[] = { "type", "job", "attempt", "slice", "host",
		"rank", "role", "step", "t_begin", "duration", "phases", "sync_enter",
		"sync_exit", "barriers", "work", "chips", "peers", "world",
		"step_source", "step_confidence", "rack", "shard", "simulated" };
	const char *why = NULL;

	l->kind = LS_LINE_STEP;
	line_keys(o, l, known, sizeof(known) / sizeof(known[0]));
	line_name(c, o, "slice", false, l->who.slice, sizeof(l->who.slice));
	line_name(c, o, "host", true, l->who.host, sizeof(l->who.host));
	line_name(c, o, "role", false, l->who.role, sizeof(l->who.role));
	line_name(c, o, "rack", false, l->who.rack, sizeof(l->who.rack));
	line_name(c, o, "shard", false, l->who.shard, sizeof(l->who.shard));
	l->who.rank = (int32_t)line_integer(c, o, "rank", true, 0, LS_WORKERS_MAX - 1);
	l->who.chips = (int32_t)line_integer(c, o, "chips", false, 0, 65536);
	l->who.world = (int32_t)line_integer(c, o, "world", false, 0, LS_WORKERS_MAX);
	l->who.simulated = json_is_true(json_object_get(o, "simulated"));
	line_step_source(c, o, l);
	l->record.step = (uint64_t)line_integer(c, o, "step", true, 0, INT64_MAX / 2);
	l->record.t_begin_ns =
		line_time_ns(c, json_object_get(o, "t_begin"), "t_begin");
	l->record.duration_ns =
		line_span_ns(c, json_object_get(o, "duration"), "duration");
	line_phases(c, json_object_get(o, "phases"), l);
	line_work(c, json_object_get(o, "work"), l);
	line_barriers(c, o, &l->record);
	if (c->rc == 0 && ls_record_check(&l->record, &why) != 0)
		line_fail(c, "impossible record: %s", why);
	/* whose ranks are none yet */
	line_peers(c, json_object_get(o, "peers"), &l->record);
}

static void
line_counters(struct line_cursor *c, const json_t *o, struct ls_line *l)
{
	static const char *const known[] = { "type", "job", "attempt", "host", "rank",
		"t", "received", "values" };
	const json_t *received = json_object_get(o, "received");
	const json_t *values = json_object_get(o, "values");
	const char *key;
	json_t *v;

	l->kind = LS_LINE_COUNTERS;
	line_keys(o, l, known, sizeof(known) / sizeof(known[0]));
	line_name(c, o, "host", true, l->who.host, sizeof(l->who.host));
	l->who.rank = json_object_get(o, "rank") == NULL
		? -1
		: (int32_t)line_integer(c, o, "rank", true, 0, LS_WORKERS_MAX - 1);
	l->read_us = line_time_ns(c, json_object_get(o, "t"), "t") / 1000;
	l->t_us = received == NULL ? l->read_us
				   : line_time_ns(c, received, "received") / 1000;
	if (!json_is_object(values)) {
		line_fail(c, "\"values\" is not an object");
		return;
	}
	json_object_foreach((json_t *)values, key, v)
	{
		int metric = ls_metric_by_name(key);

		if (metric < 0) {
			line_unknown(l, key);
			continue;
		}
		if (json_is_null(v))
			continue; /* not measured */
		if (!json_is_number(v) || !isfinite(json_number_value(v))) {
			line_fail(c, "value of \"%s\" is not a number", key);
			return;
		}
		l->metric[l->count] = (uint16_t)metric;
		l->value[l->count++] = json_number_value(v);
	}
}

/* A list of ranks, which need not be there. */
static void
line_ranks(struct line_cursor *c, const json_t *o, const char *key, struct ls_line *l)
{
	const json_t *list = json_object_get(o, key), *v;
	size_t i;

	if (list != NULL && !json_is_array(list))
		line_fail(c, "\"%s\" is not a list", key);
	json_array_foreach(list, i, v)
	{
		if (!json_is_integer(v) || json_integer_value(v) < INT32_MIN ||
			json_integer_value(v) > INT32_MAX ||
			i >= LS_CLOSE_MISSING_MAX) {
			line_fail(c, "\"%s\" is not a list of at most %d ranks", key,
				LS_CLOSE_MISSING_MAX);
			return;
		}
		l->ranks[l->rank_count++] = (int32_t)json_integer_value(v);
	}
}

static void
line_close(struct line_cursor *c, const json_t *o, struct ls_line *l)
{
	static const char *const known[] = { "type", "job", "attempt", "step", "t",
		"expected", "used", "missing" };

	l->kind = LS_LINE_CLOSE;
	line_keys(o, l, known, sizeof(known) / sizeof(known[0]));
	l->step = (uint64_t)line_integer(c, o, "step", true, 0, INT64_MAX / 2);
	l->t_us = line_time_ns(c, json_object_get(o, "t"), "t") / 1000;
	line_ranks(c, o, "missing", l);
}

static void
line_hang(struct line_cursor *c, const json_t *o, struct ls_line *l)
{
	static const char *const known[] = { "type", "job", "attempt", "step", "since",
		"t", "waiting", "why", "ranks" };
	const char *text = json_string_value(json_object_get(o, "why"));
	int why = text == NULL ? -LS_EUNKNOWN : ls_hang_why_by_name(text);

	l->kind = LS_LINE_HANG;
	line_keys(o, l, known, sizeof(known) / sizeof(known[0]));
	l->step = (uint64_t)line_integer(c, o, "step", true, 0, INT64_MAX / 2);
	l->since_us = line_time_ns(c, json_object_get(o, "since"), "since") / 1000;
	l->t_us = line_time_ns(c, json_object_get(o, "t"), "t") / 1000;
	l->waiting = (uint32_t)line_integer(c, o, "waiting", true, 0, LS_WORKERS_MAX);
	line_ranks(c, o, "ranks", l);
	if (why < 0)
		line_fail(c, "\"why\" is unknown");
	if (l->since_us > l->t_us)
		line_fail(c, "\"since\" is after \"t\"");
	l->why = why < 0 ? LS_HANG_UNKNOWN : (enum ls_hang_why)why;
}

/* How well a worker's clock is known from t on; whole ns, as when it came in. */
static void
line_clock(struct line_cursor *c, const json_t *o, struct ls_line *l)
{
	static const char *const known[] = { "type", "job", "attempt", "host", "rank",
		"t", "uncertainty" };

	l->kind = LS_LINE_CLOCK;
	line_keys(o, l, known, sizeof(known) / sizeof(known[0]));
	line_name(c, o, "host", true, l->who.host, sizeof(l->who.host));
	l->who.rank = (int32_t)line_integer(c, o, "rank", true, 0, LS_WORKERS_MAX - 1);
	l->t_us = line_time_ns(c, json_object_get(o, "t"), "t") / 1000;
	l->uncertainty_s = (double)line_whole_ns(c, json_object_get(o, "uncertainty"),
				   "uncertainty") *
		1e-9;
}

/* A worker's process came to its end. */
static void
line_end(struct line_cursor *c, const json_t *o, struct ls_line *l)
{
	static const char *const known[] = { "type", "job", "attempt", "host", "rank",
		"t", "how" };
	const char *how = json_string_value(json_object_get(o, "how"));

	l->kind = LS_LINE_END;
	line_keys(o, l, known, sizeof(known) / sizeof(known[0]));
	line_name(c, o, "host", true, l->who.host, sizeof(l->who.host));
	l->who.rank = (int32_t)line_integer(c, o, "rank", true, 0, LS_WORKERS_MAX - 1);
	l->t_us = line_time_ns(c, json_object_get(o, "t"), "t") / 1000;
	l->crashed = how != NULL && strcmp(how, "crashed") == 0;
}

int
ls_line_parse(const char *text, size_t len, struct ls_line *l, char *why)
{
	struct line_cursor c = { .why = why };
	char error[LS_LINE_WHY_BYTES / 2];
	const char *type;
	json_t *o;

	memset(l, 0, sizeof(*l));
	if (ls_json_parse(text, len, &o, error, sizeof(error)) != 0) {
		line_fail(&c, "not JSON: %s", error);
		return c.rc;
	}
	type = json_string_value(json_object_get(o, "type"));
	if (!json_is_object(o)) {
		line_fail(&c, "not an object");
		json_decref(o);
		return c.rc;
	}
	if (type == NULL || strcmp(type, "step") == 0)
		line_step(&c, o, l);
	else if (strcmp(type, "counters") == 0)
		line_counters(&c, o, l);
	else if (strcmp(type, "close") == 0)
		line_close(&c, o, l);
	else if (strcmp(type, "clock") == 0)
		line_clock(&c, o, l);
	else if (strcmp(type, "hang") == 0)
		line_hang(&c, o, l);
	else if (strcmp(type, "end") == 0)
		line_end(&c, o, l);
	else if (strcmp(type, "gap") == 0 || strcmp(type, "job") == 0 ||
		strcmp(type, "zoom") == 0 || strcmp(type, "lost") == 0)
		l->kind = LS_LINE_OTHER;
	else
		line_fail(&c, "unknown type \"%s\"", type);
	if (l->kind != LS_LINE_OTHER) {
		line_name(&c, o, "job", true, l->who.job, sizeof(l->who.job));
		l->who.attempt =
			(int32_t)line_integer(&c, o, "attempt", false, 0, INT32_MAX);
	}
	json_decref(o);
	return c.rc;
}
