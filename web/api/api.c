/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/api/api.h"
#include "proto/base/json.h"
#include "proto/base/conf.h"
#include "proto/base/text.h"
#include "web/api/query.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LS_ZOOM_MAX_S ((unsigned)(LS_ZOOM_MAX_NS / 1000000000u))
#define API_STEP_MAX_S 86400u
#define API_RANGE_DEFAULT_US (3600ll * 1000000)
/* the second day of 1970: nothing is older; time 0, also of a bucket, is "not known" */
#define API_TIME_LEAST_US (86400ll * 1000000)
#define LS_GRID_ROWS_DEFAULT 64
#define LS_GRID_COLS_DEFAULT 240

#define LS_P(id) (1u << LS_PARAM_##id)
static const struct ls_route_info api_routes[LS_ROUTE_COUNT] = {
#define LS_ROUTE(id, method, path, answer, ask, params, summary) \
	{ #id, method, path, LS_ANSWER_##answer, LS_ASK_##ask, params, summary },
#include "web/api/routes.def"
#undef LS_ROUTE
};
#undef LS_P

const struct ls_route_info *
ls_api_route(enum ls_route route)
{
	LS_ASSERT(route < LS_ROUTE_COUNT);
	return &api_routes[route];
}

/* --- values --------------------------------------------------------------- */

static int
api_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	char *end = NULL;
	unsigned long long v;

	if (text[0] < '0' || text[0] > '9')
		return -LS_EPARSE; /* strtoull would take signs and blanks */
	errno = 0;
	v = strtoull(text, &end, 10);
	if (*end != '\0')
		return -LS_EPARSE;
	if (errno == ERANGE || v < min || v > max)
		return -LS_ERANGE;
	*ret_value = v;
	return 0;
}

struct api_param {
	const char *name;
	int (*parse)(const char *v, const struct api_param *p, struct ls_request *q);
	size_t at, max;
	const char *const *words; /* NULL at the end */
	const char *must;
};

/* Where a parameter's value goes. */
static void *
api_place(const struct api_param *p, struct ls_request *q)
{
	return (char *)q + p->at;
}

/* The place of a word in a list, or -LS_EPARSE. */
static int
api_word(const char *text, const char *const *words)
{
	int i = 0;

	while (words[i] != NULL && strcmp(text, words[i]) != 0)
		i++;
	return words[i] != NULL ? i : -LS_EPARSE;
}

/* --- parsers of parameters (params.def) ----------------------------------- */

/* In the order of enum ls_ask_sort, from LS_ASK_BY_HOST on. */
static const char *const api_sorts[] = { "host", "state", "blame_s", "own_s", "wait_s",
	"input_wait_s", "lateness_s", "slowest_ratio", NULL };
/* In the order of enum ls_grid_metric, which the web folder does not see; a test holds
 * it. */
static const char *const api_grid_metrics[] = { "blame", "wait", "own", NULL };
/* In the order of enum ls_ask_agg. */
static const char *const api_aggs[] = { "mean", "min", "max", "count", NULL };
static const char *const api_statuses[] = { "open", "acknowledged", "action_taken",
	"verifying", "verified", "ineffective", "cleared", "muted", "reopened", NULL };
static const char *const api_severities[] = { "critical", "warning", "info", NULL };
/* Of a flag: the word that sets it, then the word that does not, if there is one. */
static const char *const api_counters[] = { "all", "hot", NULL };
static const char *const api_peers[] = { "band", NULL };

static int
param_time(const char *v, const struct api_param *p, struct ls_request *q)
{
	return ls_conf_parse_time(v, q->now_us, api_place(p, q));
}

static int
param_steps(const char *v, const struct api_param *p, struct ls_request *q)
{
	char first[LS_QUERY_VALUE_MAX_BYTES];
	const char *colon = strchr(v, ':');
	int rc = 0;

	(void)p;
	if (!colon || strcmp(v, ":") == 0)
		return -LS_EPARSE;
	(void)snprintf(first, sizeof(first), "%.*s", (int)(colon - v), v);
	if (first[0] != '\0')
		rc = api_number(first, 0, UINT64_MAX, &q->ask.from_step);
	if (rc == 0 && colon[1] != '\0')
		rc = api_number(colon + 1, 0, UINT64_MAX, &q->ask.to_step);
	return rc == 0 && q->ask.from_step > q->ask.to_step ? -LS_ERANGE : rc;
}

static int
param_text(const char *v, const struct api_param *p, struct ls_request *q)
{
	return ls_text_copy(api_place(p, q), p->max, v);
}

static int
param_name(const char *v, const struct api_param *p, struct ls_request *q)
{
	return v[0] == '\0' ? -LS_EPARSE : param_text(v, p, q);
}

static int
param_one_of(const char *v, const struct api_param *p, struct ls_request *q)
{
	return api_word(v, p->words) < 0 ? -LS_EPARSE : param_text(v, p, q);
}

static int
param_kind(const char *v, const struct api_param *p, struct ls_request *q)
{
	return v[strspn(v, "abcdefghijklmnopqrstuvwxyz_")] != '\0'
		? -LS_EPARSE
		: param_name(v, p, q);
}

/* The place of the word, as an enum. */
static int
param_word(const char *v, const struct api_param *p, struct ls_request *q)
{
	int i = api_word(v, p->words);

	*(unsigned *)api_place(p, q) = i < 0 ? 0 : (unsigned)i;
	return i < 0 ? i : 0;
}

static int
param_flag(const char *v, const struct api_param *p, struct ls_request *q)
{
	int i = api_word(v, p->words);

	*(bool *)api_place(p, q) = i == 0;
	return i < 0 ? i : 0;
}

static int
param_sort(const char *v, const struct api_param *p, struct ls_request *q)
{
	int i;

	q->ask.descending = v[0] == '-';
	i = api_word(v + q->ask.descending, p->words);
	q->ask.sort = (enum ls_ask_sort)(LS_ASK_BY_HOST + i);
	return i < 0 ? i : 0;
}

static int
param_metric(const char *v, const struct api_param *p, struct ls_request *q)
{
	if (q->route != LS_ROUTE_FLEET)
		return param_word(v, p, q);
	return v[0] == '\0' ? -LS_EPARSE
			    : ls_text_copy(q->ask.series, sizeof(q->ask.series), v);
}

static int
param_size(const char *v, const struct api_param *p, struct ls_request *q)
{
	uint64_t n = 0;
	int rc = api_number(v, 1, p->max, &n);

	*(size_t *)api_place(p, q) = (size_t)n;
	return rc;
}

static int
param_step(const char *v, const struct api_param *p, struct ls_request *q)
{
	uint64_t step_s = 0;
	int rc = strcmp(v, "raw") == 0 ? 0 : api_number(v, 1, p->max, &step_s);

	q->ask.step_s = (int64_t)step_s;
	return rc;
}

static int
param_cursor(const char *v, const struct api_param *p, struct ls_request *q)
{
	static const char prefix[] = "after-";
	size_t len = sizeof(prefix) - 1;

	if (v[0] == '\0') /* the first page */
		return 0;
	return strncmp(v, prefix, len) != 0 ? -LS_EPARSE : param_name(v + len, p, q);
}

static const struct api_param api_params[LS_PARAM_COUNT] = {
#define LS_PARAM(id, name, parser, place, max, words, must) \
	{ name, param_##parser, offsetof(struct ls_request, place), max, words, must },
#include "web/api/params.def"
#undef LS_PARAM
};

const char *
ls_api_param(enum ls_param param)
{
	LS_ASSERT(param < LS_PARAM_COUNT);
	return api_params[param].name;
}

/* --- problems ------------------------------------------------------------- */

void
ls_api_problem(struct ls_problem *ret_problem, int status, const char *type,
	const char *title, const char *fmt, ...)
{
	va_list args;

	memset(ret_problem, 0, sizeof(*ret_problem));
	ret_problem->status = status;
	ret_problem->type = type;
	ret_problem->title = title;
	va_start(args, fmt);
	(void)vsnprintf(ret_problem->detail, sizeof(ret_problem->detail), fmt, args);
	va_end(args);
}

static const struct {
	int rc, status;
	const char *type, *title, *detail;
} api_failures[] = {
	{ -LS_EUNKNOWN, 404, "not-found", "No such thing",
		"no job, host or finding has this name" },
	{ -EINVAL, 400, "bad-parameter", "Bad parameter",
		"the metric must be a name such as chip.hbm.used_bytes, with or "
		"without labels" },
	{ -LS_ERANGE, 400, "bad-range", "Bad range", "the requested range is empty" },
	{ -LS_ELIMIT, 400, "too-much", "Too much data",
		"the answer would be too large: request a shorter range, a "
		"longer step, or fewer series" },
	{ -LS_EINTERRUPTED, 503, "interrupted", "Interrupted",
		"the query kept the write-ahead log from being emptied: request "
		"a shorter range, or fewer series" },
	{ -LS_EBUSY, 503, "busy", "Busy",
		"too many queries at once; retry in a second" },
};

void
ls_api_failure(int rc, struct ls_problem *ret_problem)
{
	for (size_t i = 0; i < sizeof(api_failures) / sizeof(api_failures[0]); i++) {
		if (rc != api_failures[i].rc)
			continue;
		ls_api_problem(ret_problem, api_failures[i].status,
			api_failures[i].type, api_failures[i].title, "%s",
			api_failures[i].detail);
		return;
	}
	if (rc == -ETIMEDOUT)
		ls_api_problem(ret_problem, 504, "query-timeout", "Took too long",
			"the query was interrupted after %u s: request a shorter "
			"range, or fewer series",
			(unsigned)(LS_QUERY_NS / 1000000000u));
	else
		ls_api_problem(ret_problem, 500, "internal", "Internal error", "%s",
			ls_err_text(rc));
}

json_t *
ls_api_problem_json(const struct ls_problem *p, const char *instance,
	const char *request_id)
{
	char type[64], detail[2 * sizeof(p->detail)], name[4 * sizeof(p->parameter)];
	json_t *v;

	/* What we repeat came from outside: without controls, and valid UTF-8. */
	(void)ls_text_escape(detail, sizeof(detail), p->detail, strlen(p->detail));
	(void)ls_text_escape(name, sizeof(name), p->parameter, strlen(p->parameter));
	(void)snprintf(type, sizeof(type), "/problems/%s", p->type);
	v = json_pack("{s:s, s:s, s:i, s:s, s:s*, s:s}", "type", type, "title",
		p->title, "status", p->status, "detail", detail, "instance", instance,
		"request_id", request_id);
	if (v && name[0] != '\0')
		(void)json_object_set_new(v, "errors",
			json_pack("[{s:s}]", "parameter", name));
	return v;
}

static int
api_bad_parameter(struct ls_problem *p, const char *name, const char *what)
{
	ls_api_problem(p, 400, "bad-parameter", "Bad parameter", "'%s' %s", name, what);
	(void)snprintf(p->parameter, sizeof(p->parameter), "%s", name);
	return -LS_EPARSE;
}

/* --- routes --------------------------------------------------------------- */

/* Where a segment in braces goes; the last row is of all others. */
static const struct {
	const char *name;
	size_t at, size;
} api_segments[] = {
	{ "{job}", offsetof(struct ls_ask, job), LS_JOB_NAME_MAX_BYTES },
	{ "{host}", offsetof(struct ls_ask, host), LS_HOST_NAME_MAX_BYTES },
	{ "{metric}", offsetof(struct ls_ask, series), LS_SERIES_TEXT_MAX_BYTES },
	{ "{", offsetof(struct ls_ask, id), sizeof(((struct ls_ask *)NULL)->id) },
};

static int
api_segment(const char *pattern, const char *path, size_t len, struct ls_ask *ask)
{
	size_t i = 0;

	while (strncmp(pattern, api_segments[i].name, strlen(api_segments[i].name)) !=
		0)
		i++;
	return len == 0 ? -LS_EUNKNOWN
			: ls_query_decode(path, len, api_segments[i].size,
				  (char *)ask + api_segments[i].at);
}

/* Matches one path; fills job, host or id from the segments in braces. */
static int
api_match(const char *pattern, const char *path, struct ls_ask *ask)
{
	for (;;) {
		size_t want = strcspn(pattern, "/"), have = strcspn(path, "/");

		if (pattern[0] == '{') {
			int rc = api_segment(pattern, path, have, ask);

			if (rc != 0)
				return rc;
		} else if (want != have || strncmp(pattern, path, want) != 0) {
			return -LS_EUNKNOWN;
		}
		pattern += want;
		path += have;
		if (*pattern == '\0' || *path == '\0')
			return *pattern == *path ? 0 : -LS_EUNKNOWN;
		pattern++;
		path++;
	}
}

static int
api_route(const char *path, struct ls_request *q, struct ls_problem *p)
{
	int bad = 0;

	for (size_t i = 0; i < LS_ROUTE_COUNT; i++) {
		int rc = api_match(api_routes[i].path, path, &q->ask);

		if (rc == 0) {
			q->route = (enum ls_route)i;
			q->ask.kind = api_routes[i].ask;
			return 0;
		}
		if (rc != -LS_EUNKNOWN)
			bad = rc;
		q->ask.job[0] = q->ask.host[0] = q->ask.id[0] = '\0';
		q->ask.series[0] = '\0';
	}
	if (bad == -LS_EPARSE) {
		ls_api_problem(p, 400, "bad-path", "Bad path",
			"the path holds a bad escape");
		return bad;
	}
	/* A name that is too long names nothing we could know. */
	ls_api_problem(p, 404, "not-found", "No such resource",
		"see /api/v1/openapi.yaml for all resources");
	return -LS_EUNKNOWN;
}

static int
api_parameter(const struct ls_query_pair *pair, unsigned *seen, struct ls_request *q,
	struct ls_problem *p)
{
	unsigned allowed = api_routes[q->route].params;
	char must[160];

	for (size_t i = 0; i < LS_PARAM_COUNT; i++) {
		if (strcmp(pair->name, api_params[i].name) != 0)
			continue;
		if (!(allowed & (1u << i)))
			break;
		if (*seen & (1u << i))
			return api_bad_parameter(p, pair->name, "is given twice");
		*seen |= 1u << i;
		if (api_params[i].parse(pair->value, &api_params[i], q) == 0)
			return 0;
		(void)snprintf(must, sizeof(must), "must be %s", api_params[i].must);
		return api_bad_parameter(p, pair->name, must);
	}
	return api_bad_parameter(p, pair->name,
		strstr(pair->name, "token") == NULL
			? "is not a parameter of this resource"
			: "in a URL is refused, as logs keep URLs: send the header "
			  "Authorization: Bearer TOKEN");
}

/* A cursor that counts what the pages before have shown. */
static int
api_skip(struct ls_request *q, struct ls_problem *p)
{
	uint64_t skip = 0;

	if (q->ask.after[0] != '\0' &&
		api_number(q->ask.after, 1, UINT32_MAX, &skip) != 0)
		return api_bad_parameter(p, "cursor",
			"must be the next_cursor of the previous page");
	q->ask.skip = (size_t)skip;
	return 0;
}

/* What a question to storage needs beside its parameters. */
static int
api_stored(struct ls_request *q, struct ls_problem *p)
{
	struct ls_ask *ask = &q->ask;
	int rc;

	ask->to_us = q->to_us == INT64_MAX ? q->now_us : q->to_us;
	ask->from_us = q->from_us != INT64_MIN ? q->from_us
					       : ask->to_us - API_RANGE_DEFAULT_US;
	if (ask->from_us > ask->to_us) {
		(void)api_bad_parameter(p, "from", "is after 'to'");
		return -LS_ERANGE;
	}
	if (ask->from_us < API_TIME_LEAST_US)
		ask->from_us = API_TIME_LEAST_US;
	if (ask->to_us < API_TIME_LEAST_US)
		ask->to_us = API_TIME_LEAST_US;
	rc = api_skip(q, p);
	if (rc != 0)
		return rc;
	if (q->route == LS_ROUTE_STEP &&
		api_number(ask->id, 0, INT64_MAX, &ask->step) != 0) {
		ls_api_problem(p, 400, "bad-path", "Bad path",
			"a step is a whole number");
		return -LS_EPARSE;
	}
	if (q->route == LS_ROUTE_FLEET && ask->series[0] == '\0')
		return api_bad_parameter(p, "metric", "is missing");
	if (q->route == LS_ROUTE_FLEET && ask->step_s == 0)
		return api_bad_parameter(p, "step", "must be a number of seconds here");
	return 0;
}

int
ls_api_parse(const char *path, const char *query, int64_t now_us,
	struct ls_request *ret_request, struct ls_problem *ret_problem)
{
	struct ls_request *q = ret_request;
	struct ls_query pairs;
	unsigned seen = 0;
	int rc;

	memset(ret_problem, 0, sizeof(*ret_problem));
	*q = (struct ls_request){
		.from_us = INT64_MIN,
		.to_us = INT64_MAX,
		.now_us = now_us,
		.ask = { .to_step = UINT64_MAX,
			.limit = LS_PAGE_DEFAULT,
			.seconds = LS_ZOOM_MAX_S,
			.step_s = -1,
			.rows = LS_GRID_ROWS_DEFAULT,
			.cols = LS_GRID_COLS_DEFAULT },
	};
	rc = api_route(path, q, ret_problem);
	if (rc != 0)
		return rc;
	if (q->route == LS_ROUTE_JOBS)
		q->ask.limit = LS_PAGE_MAX; /* who names no limit wants all */
	rc = ls_query_parse(query, &pairs);
	if (rc != 0)
		return api_bad_parameter(ret_problem, pairs.pairs[pairs.count].name,
			rc == -LS_ELIMIT
				? "is too long, or there are too many parameters"
				: "holds a bad escape");
	for (size_t i = 0; i < pairs.count; i++) {
		rc = api_parameter(&pairs.pairs[i], &seen, q, ret_problem);
		if (rc != 0)
			return rc;
	}
	if (q->from_us > q->to_us) {
		(void)api_bad_parameter(ret_problem, "from", "is after 'to'");
		return -LS_ERANGE;
	}
	if (q->route == LS_ROUTE_HOSTS || q->route == LS_ROUTE_SERIES)
		return api_skip(q, ret_problem);
	return api_routes[q->route].answer == LS_ANSWER_STORED
		? api_stored(q, ret_problem)
		: 0;
}

/* --- bodies of writes ----------------------------------------------------- */

static int
api_body_member(const char *key, const json_t *v, struct ls_request *q,
	struct ls_problem *p)
{
	double seconds = json_number_value(v); /* 31.0 is a whole number, too */

	if (q->route == LS_ROUTE_SESSION && strcmp(key, "token") == 0)
		return !json_is_string(v) ||
				ls_text_copy(q->token, sizeof(q->token),
					json_string_value(v)) != 0
			? api_bad_parameter(p, key, "must be a token")
			: 0;
	if (q->route != LS_ROUTE_ZOOM || strcmp(key, "seconds") != 0)
		return api_bad_parameter(p, key, "is not a member of this body");
	if (!(seconds >= 1 && seconds <= LS_ZOOM_MAX_S) || seconds != floor(seconds))
		return api_bad_parameter(p, key,
			"must be a whole number from 1 to 120");
	q->ask.seconds = (unsigned)seconds;
	return 0;
}

int
ls_api_body(const char *text, size_t len, struct ls_request *q,
	struct ls_problem *ret_problem)
{
	char why[120];
	json_t *body = NULL, *v;
	const char *key;
	int rc = ls_json_parse(text, len, &body, why, sizeof(why));

	if (rc != 0 || !json_is_object(body)) {
		ls_api_problem(ret_problem, 400, "bad-body", "Bad body",
			"the body must be a JSON object%s%s", rc != 0 ? ": " : "",
			rc != 0 ? why : "");
		json_decref(body);
		return -LS_EPARSE;
	}
	json_object_foreach(body, key, v)
	{
		rc = api_body_member(key, v, q, ret_problem);
		if (rc != 0)
			break;
	}
	json_decref(body);
	return rc;
}
