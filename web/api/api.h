/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api - what a request asks for: route, checked parameters, and the answer's lists and
 * pages.
 *
 * No I/O and no evhttp here: path and query in, a question for the backend or a problem
 * out.
 *
 * Owner:   none; pure functions.
 * Units:   times in microseconds since the epoch; steps as numbered by the job.
 * Errors:  -LS_EUNKNOWN no such route, -LS_EPARSE or -LS_ERANGE bad parameter; struct
 *          ls_problem says it.
 * Limits:  LS_PAGE_MAX, LS_GRID_ROWS_MAX, LS_GRID_COLS_MAX, and those of
 *          web/api/query.h.
 * Source:  RFC 9457 for problems.
 */
#ifndef LS_WEB_API_H
#define LS_WEB_API_H

#include <jansson.h>
#include "proto/base/err.h"
#include "web/api/backend.h"

enum ls_route {
#define LS_ROUTE(id, method, path, answer, ask, params, summary) LS_ROUTE_##id,
#include "web/api/routes.def"
#undef LS_ROUTE
	LS_ROUTE_COUNT
};

enum ls_answer {
	LS_ANSWER_PAGE, /* the backend's page of items, and where the next begins */
	LS_ANSWER_OBJECT, /* the backend's object */
	LS_ANSWER_STEPS, /* a list cut to a range of time */
	LS_ANSWER_SERIES, /* a list paged by place */
	LS_ANSWER_WRITE, /* the backend's object, after a body was taken */
	LS_ANSWER_SESSION, /* a cookie, after a body was taken */
	LS_ANSWER_STORED, /* the text that the backend read */
	LS_ANSWER_EXPORT,
	LS_ANSWER_ASSET,
	LS_ANSWER_METRICS,
	LS_ANSWER_HEALTH,
	LS_ANSWER_READY,
	LS_ANSWER_VERSION
};

enum ls_param {
#define LS_PARAM(id, name, parser, place, max, words, must) LS_PARAM_##id,
#include "web/api/params.def"
#undef LS_PARAM
	LS_PARAM_COUNT
};

struct ls_route_info {
	const char *name; /* of the label in /metrics */
	const char *method;
	const char *path;
	enum ls_answer answer;
	enum ls_ask_kind ask;
	unsigned params; /* bit set of enum ls_param */
	const char *summary;
};

struct ls_request {
	enum ls_route route;
	struct ls_ask ask;
	int64_t from_us, to_us; /* INT64_MIN, INT64_MAX: not limited */
	int64_t now_us; /* for relative times */
	char token[LS_TOKEN_BYTES]; /* SESSION; "": its end */
};

struct ls_problem {
	int status;
	const char *type; /* last part of the type URI */
	const char *title;
	char detail[320];
	char parameter[LS_QUERY_NAME_MAX_BYTES]; /* "" = none */
};

/* The row of a route (LS_ROUTE_COUNT rows). */
const struct ls_route_info *ls_api_route(enum ls_route route);

/* Name of a parameter. */
const char *ls_api_param(enum ls_param param);

/*
 * Parses a percent-encoded path and query (may be NULL). now_us is for relative times.
 * -LS_EUNKNOWN: 404. Otherwise 400, and ret_problem names the parameter.
 */
int ls_api_parse(const char *path, const char *query, int64_t now_us,
	struct ls_request *ret_request, struct ls_problem *ret_problem) LS_MUSTCHECK;

/*
 * Takes the body of a write: a JSON object of the members that the route knows
 * ("seconds" of ZOOM, "token" of SESSION; may be left out). -LS_EPARSE, -LS_ERANGE: 400, in ret_problem.
 */
int ls_api_body(const char *text, size_t len, struct ls_request *q,
	struct ls_problem *ret_problem) LS_MUSTCHECK;

/* The problem that an error code of the backend means (404, 400, 503, 504 or 500). */
void ls_api_failure(int rc, struct ls_problem *ret_problem);

/* Sets a problem with a printf-formatted detail. */
void ls_api_problem(struct ls_problem *ret_problem, int status, const char *type,
	const char *title, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The problem as JSON (new reference, NULL if out of memory). */
json_t *ls_api_problem_json(const struct ls_problem *p, const char *instance,
	const char *request_id);

/*
 * The body for what the backend gave: wrapped, cut, paged, as the route says. New
 * reference.
 */
int ls_api_answer(const struct ls_request *q, json_t *body,
	json_t **ret_answer) LS_MUSTCHECK;

#endif
