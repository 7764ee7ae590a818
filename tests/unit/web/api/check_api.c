/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/api/api.h"
#include "collector/answer/view.h"
#include "tests/support/harness.h"
#include "web/http/metrics.h"
#include "web/api/query.h"
#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ls_request api_request;
static struct ls_problem api_problem;

static int
parse(const char *path, const char *query)
{
	return ls_api_parse(path, query, 1000000000000000, &api_request, &api_problem);
}

static void
refuses(const char *path, const char *query, const char *parameter)
{
	ck_assert_int_ne(parse(path, query), 0);
	ck_assert_int_eq(api_problem.status, 400);
	ck_assert_str_eq(api_problem.parameter, parameter);
	ck_assert_ptr_nonnull(strstr(api_problem.detail, parameter));
}

LS_CASE(api);

LS_TEST(api, routes_find_their_question)
{
	ck_assert_int_eq(parse("/api/v1/jobs", NULL), 0);
	ck_assert_int_eq(api_request.route, LS_ROUTE_JOBS);
	ck_assert_int_eq(
		parse("/api/v1/jobs/a%2Fb%20c+d/grid", "metric=wait&rows=3&cols=7"), 0);
	ck_assert_int_eq(api_request.route, LS_ROUTE_GRID);
	ck_assert_str_eq(api_request.ask.job, "a/b c+d");
	ck_assert_uint_eq(api_request.ask.rows, 3);
	ck_assert_uint_eq(api_request.ask.cols, 7);
	ck_assert_str_eq(ls_grid_metric_name(api_request.ask.metric), "wait");
	ck_assert_int_eq(parse("/api/v1/jobs/x/grid", "metric=own"), 0);
	ck_assert_str_eq(ls_grid_metric_name(api_request.ask.metric), "own");
	ck_assert_int_eq(parse("/api/v1/findings/F-7Q2K", ""), 0);
	ck_assert_str_eq(api_request.ask.id, "F-7Q2K");
	ck_assert_int_eq(parse("/metrics", NULL), 0);
}

LS_TEST(api, other_paths_are_unknown)
{
	static const char *const paths[] = { "/", "", "/api/v1", "/api/v1/jobs/",
		"/api/v1/jobs//hosts", "/api/v1/jobs/a/b", "/api/v1/jobs/a/hosts/",
		"/api/v1/jobsx", "/../etc/passwd",
		"/api/v1/findings/F-0123456789012345678901234567890123456789" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		ck_assert_int_eq(parse(paths[i], NULL), -LS_EUNKNOWN);
		ck_assert_int_eq(api_problem.status, 404);
	}
	ck_assert_int_eq(parse("/api/v1/jobs/a%zz", NULL), -LS_EPARSE);
	ck_assert_int_eq(parse("/api/v1/jobs/a%00b", NULL), -LS_EPARSE);
	ck_assert_int_eq(api_problem.status, 400);
}

LS_TEST(api, bad_parameters_are_named)
{
	refuses("/api/v1/jobs", "host=x", "host");
	refuses("/api/v1/findings", "jobb=x", "jobb");
	refuses("/api/v1/findings", "job=x&job=x", "job");
	refuses("/api/v1/findings", "limit=0", "limit");
	refuses("/api/v1/findings", "limit=1001", "limit");
	refuses("/api/v1/findings", "limit=-1", "limit");
	refuses("/api/v1/findings", "limit=99999999999999999999", "limit");
	refuses("/api/v1/findings", "limit=1x", "limit");
	refuses("/api/v1/findings", "limit=", "limit");
	refuses("/api/v1/findings", "severity=bad", "severity");
	refuses("/api/v1/findings", "status=opened", "status");
	refuses("/api/v1/findings", "kind=a%20b", "kind");
	refuses("/api/v1/findings", "cursor=zzz", "cursor");
	ck_assert_int_eq(parse("/api/v1/findings", "cursor="), 0); /* the first page */
	refuses("/api/v1/findings", "job=a%0", "job");
	refuses("/api/v1/jobs/x/steps", "steps=5", "steps");
	refuses("/api/v1/jobs/x/steps", "steps=:", "steps");
	refuses("/api/v1/jobs/x/steps", "steps=9:5", "steps");
	refuses("/api/v1/jobs/x/steps", "steps=a:5", "steps");
	refuses("/api/v1/jobs/x/steps", "from=yesterday", "from");
	refuses("/api/v1/jobs/x/steps", "from=200&to=100", "from");
	refuses("/api/v1/jobs/x/grid", "rows=257", "rows");
	refuses("/api/v1/jobs/x/grid", "cols=1201", "cols");
	refuses("/api/v1/jobs/x/grid", "metric=blam", "metric");
}

LS_TEST(api, ranges_are_read)
{
	ck_assert_int_eq(parse("/api/v1/jobs/x/steps", "steps=10:20"), 0);
	ck_assert_uint_eq(api_request.ask.from_step, 10);
	ck_assert_uint_eq(api_request.ask.to_step, 20);
	ck_assert_int_eq(parse("/api/v1/jobs/x/steps", "steps=10:"), 0);
	ck_assert_uint_eq(api_request.ask.to_step, UINT64_MAX);
	ck_assert_int_eq(parse("/api/v1/jobs/x/steps", "steps=:0&limit=1000"), 0);
	ck_assert_uint_eq(api_request.ask.to_step, 0);
	ck_assert_int_eq(parse("/api/v1/jobs/x/steps", "steps=20:20"), 0);
	ck_assert_uint_eq(api_request.ask.from_step, 20);
	ck_assert_uint_eq(api_request.ask.to_step, 20);
	ck_assert_int_eq(parse("/api/v1/jobs/x/steps", "from=-15m"), 0);
	ck_assert_int_eq(api_request.from_us, 1000000000000000 - 900 * 1000000ll);
	ck_assert_int_eq(
		parse("/api/v1/jobs/x/steps", "from=2026-11-20T14:02:11Z&to=1e3"),
		-LS_EPARSE);
}

LS_TEST(api, pages_of_workers)
{
	static const char path[] = "/api/v1/jobs/j/hosts";
	const struct ls_ask *ask = &api_request.ask;

	ck_assert_int_eq(parse(path, NULL), 0);
	ck_assert_int_eq(ask->kind, LS_ASK_HOSTS);
	ck_assert_int_eq(ask->sort, LS_ASK_BY_SUSPICION);
	ck_assert_uint_eq(ask->limit, LS_PAGE_DEFAULT);
	ck_assert_uint_eq(ask->skip, 0);
	ck_assert_int_eq(
		parse(path, "match=W-1&sort=-blame_s&limit=20&cursor=after-40"), 0);
	ck_assert_str_eq(ask->match, "W-1");
	ck_assert_int_eq(ask->sort, LS_ASK_BY_BLAME);
	ck_assert(ask->descending);
	ck_assert_uint_eq(ask->limit, 20);
	ck_assert_uint_eq(ask->skip, 40);
	ck_assert_int_eq(parse(path, "sort=slowest_ratio&host=h&cursor="), 0);
	ck_assert_int_eq(ask->sort, LS_ASK_BY_SLOWEST);
	ck_assert(!ask->descending);
	ck_assert_str_eq(ask->host, "h");
	refuses(path, "sort=rank", "sort");
	refuses(path, "sort=", "sort");
	refuses(path, "sort=--host", "sort");
	refuses(path, "limit=1001", "limit");
	refuses(path, "cursor=after-x", "cursor");
	refuses(path, "cursor=after--1", "cursor");
	ck_assert_int_eq(parse("/api/v1/jobs", NULL), 0);
	ck_assert_uint_eq(ask->limit, LS_PAGE_MAX);
	ck_assert_int_eq(parse("/api/v1/jobs", "limit=2&cursor=after-a%2Fb"), 0);
	ck_assert_uint_eq(ask->limit, 2);
	ck_assert_str_eq(ask->after, "a/b");
}

LS_TEST(api, stored_questions_are_whole)
{
	const struct ls_ask *ask = &api_request.ask;

	ck_assert_int_eq(
		parse("/api/v1/hosts/h/series/chip.hbm.used_bytes%7Bchip=%220%22%7D",
			"from=-15m&step=raw&limit=7&cursor=after-14"),
		0);
	ck_assert_int_eq(api_request.route, LS_ROUTE_HISTORY);
	ck_assert_int_eq(ask->kind, LS_ASK_HISTORY);
	ck_assert_str_eq(ask->host, "h");
	ck_assert_str_eq(ask->series, "chip.hbm.used_bytes{chip=\"0\"}");
	ck_assert_int_eq(ask->to_us, 1000000000000000);
	ck_assert_int_eq(ask->from_us, 1000000000000000 - 900 * 1000000ll);
	ck_assert_int_eq(ask->step_s, 0);
	ck_assert_uint_eq(ask->limit, 7);
	ck_assert_uint_eq(ask->skip, 14);
	ck_assert_int_eq(parse("/api/v1/jobs/j/series",
				 "metric=a.b&peers=band&agg=max&step=60&host=h"),
		0);
	ck_assert_int_eq(ask->kind, LS_ASK_FLEET);
	ck_assert_str_eq(ask->series, "a.b");
	ck_assert(ask->band);
	ck_assert_int_eq(ask->agg, LS_ASK_MAX);
	ck_assert_int_eq(ask->step_s, 60);
	ck_assert_int_eq(ask->to_us - ask->from_us, 3600 * 1000000ll);
	ck_assert_int_eq(parse("/api/v1/hosts/h/series/a", NULL), 0);
	ck_assert_int_eq(ask->to_us - ask->from_us, 3600 * 1000000ll);
	ck_assert_int_eq(parse("/api/v1/jobs/j/series", "metric=a"), 0);
	ck_assert_int_eq(ask->step_s, -1);
	ck_assert(!ask->band);
	ck_assert_int_eq(parse("/api/v1/jobs/j/steps/18", NULL), 0);
	ck_assert_int_eq(ask->kind, LS_ASK_STEP);
	ck_assert_uint_eq(ask->step, 18);
	refuses("/api/v1/jobs/j/series", NULL, "metric");
	refuses("/api/v1/jobs/j/series", "metric=", "metric");
	refuses("/api/v1/jobs/j/series", "metric=a&step=raw", "step");
	refuses("/api/v1/jobs/j/series", "metric=a&step=0", "step");
	refuses("/api/v1/jobs/j/series", "metric=a&step=86401", "step");
	refuses("/api/v1/jobs/j/series", "metric=a&agg=median", "agg");
	refuses("/api/v1/jobs/j/series", "metric=a&peers=all", "peers");
	refuses("/api/v1/jobs/j/series", "metric=a&cursor=after-x", "cursor");
	refuses("/api/v1/jobs/j/series", "metric=a&from=1000000001", "from");
	refuses("/api/v1/hosts/h/series/a", "agg=max", "agg");
	refuses("/api/v1/hosts/h/series/a", "to=1&from=2", "from");
	/* a range that ends in the first hours of 1970 has a begin that is not null */
	ck_assert_int_eq(parse("/api/v1/hosts/h/series/a", "to=11&step=86400"), 0);
	ck_assert_int_eq(ask->from_us, 86400 * 1000000ll);
	ck_assert_int_eq(ask->to_us, ask->from_us);
	refuses("/api/v1/jobs/j/steps/3", "host=h", "host");
	ck_assert_int_eq(parse("/api/v1/jobs/j/steps/-3", NULL), -LS_EPARSE);
	ck_assert_int_eq(api_problem.status, 400);
	ck_assert_int_eq(parse("/api/v1/jobs/j/steps/99999999999999999999", NULL),
		-LS_EPARSE);
}

LS_TEST(api, queries_have_limits)
{
	struct ls_query q;
	char text[512] = "";

	for (int i = 0; i <= LS_QUERY_PAIRS_MAX; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
			"a%d=1&", i);
	ck_assert_int_eq(ls_query_parse(text, &q), -LS_ELIMIT);
	ck_assert_str_eq(q.pairs[q.count].name, ""); /* none of them is at fault */
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(ls_query_parse(text, &q), -LS_ELIMIT);
	text[1] = '=';
	ck_assert_int_eq(ls_query_parse(text, &q), -LS_ELIMIT);
	ck_assert_int_eq(ls_query_parse("&&a=%41%2b+&b&=c&", &q), 0);
	ck_assert_uint_eq(q.count, 3);
	ck_assert_str_eq(q.pairs[0].value, "A++");
	ck_assert_str_eq(q.pairs[1].name, "b");
	ck_assert_str_eq(q.pairs[2].name, "");
}

LS_TEST(api, encoding_and_decoding_are_inverse)
{
	const char *odd = "a/b c?&=%+\"\n\xc3\xa4~";
	char encoded[64], back[32];

	ck_assert_int_eq(ls_query_encode(odd, sizeof(encoded), encoded), 0);
	ck_assert_int_eq(ls_query_decode(encoded, strlen(encoded), sizeof(back), back),
		0);
	ck_assert_str_eq(back, odd);
	ck_assert_int_eq(ls_query_encode(odd, 8, encoded), -LS_ELIMIT);
}

/* --- lists
 * ---------------------------------------------------------------------------------- */

static json_t *
load(const char *name)
{
	char path[256];
	json_t *v;

	(void)snprintf(path, sizeof(path), "tests/golden/web/%s.json", name);
	v = json_load_file(ls_test_source(path), 0, NULL);
	ck_assert_ptr_nonnull(v);
	return v;
}

static json_t *
answer(const char *path, const char *query, const char *fixture)
{
	json_t *body = load(fixture), *v = NULL;

	ck_assert_int_eq(parse(path, query), 0);
	ck_assert_int_eq(ls_api_answer(&api_request, body, &v), 0);
	json_decref(body);
	return v;
}

static const char *
id_at(const json_t *v, size_t i)
{
	return json_string_value(
		json_object_get(json_array_get(json_object_get(v, "items"), i), "id"));
}

LS_TEST(api, findings_are_asked_for_by_filters)
{
	const struct ls_ask *ask = &api_request.ask;
	json_t *body, *v = NULL;

	ck_assert_int_eq(
		parse("/api/v1/findings",
			"status=open&severity=info&kind=link&job=j&host=h&limit=3&"
			"cursor=after-F-7PZZ"),
		0);
	ck_assert_str_eq(ask->status, "open");
	ck_assert_str_eq(ask->severity, "info");
	ck_assert_str_eq(ask->finding_kind, "link");
	ck_assert_str_eq(ask->job, "j");
	ck_assert_str_eq(ask->host, "h");
	ck_assert_str_eq(ask->after, "F-7PZZ");
	ck_assert_uint_eq(ask->limit, 3);
	body = json_pack("{s:[{s:s}], s:s}", "items", "id", "F-7Q1A", "next", "F-7Q1A");
	ck_assert_int_eq(ls_api_answer(&api_request, body, &v), 0);
	ck_assert_str_eq(id_at(v, 0), "F-7Q1A");
	ck_assert_str_eq(json_string_value(json_object_get(v, "next_cursor")),
		"after-F-7Q1A");
	ck_assert_ptr_null(json_object_get(v, "count"));
	json_decref(v);
	json_decref(body);
}

LS_TEST(api, steps_are_cut_by_time)
{
	json_t *v = answer("/api/v1/jobs/x/steps", "from=2026-11-20T15:39:00Z&limit=3",
		"run/steps");
	json_t *items = json_object_get(v, "items");

	ck_assert_uint_eq(json_array_size(items), 3);
	ck_assert_int_eq(
		json_integer_value(json_object_get(json_array_get(items, 2), "step")),
		50259);
	json_decref(v);
	/* A moment is a range; both ends belong to it. */
	v = answer("/api/v1/jobs/x/steps",
		"from=2026-11-20T15:39:05.320Z&to=2026-11-20T15:39:08.160Z",
		"run/steps");
	items = json_object_get(v, "items");
	ck_assert_uint_eq(json_array_size(items), 2);
	ck_assert_int_eq(
		json_integer_value(json_object_get(json_array_get(items, 0), "step")),
		50257);
	json_decref(v);
	v = answer("/api/v1/jobs/x/steps", "to=2026-11-20T00:00:00Z", "run/steps");
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 0);
	json_decref(v);
}

LS_TEST(api, problems_are_without_controls)
{
	json_t *v;

	refuses("/api/v1/findings", "a%1b%5d=1", "a\x1b]");
	v = ls_api_problem_json(&api_problem, "/x", "id");
	ck_assert_ptr_nonnull(v);
	ck_assert_ptr_null(
		strchr(json_string_value(json_object_get(v, "detail")), '\x1b'));
	ck_assert_ptr_nonnull(json_object_get(v, "errors"));
	json_decref(v);
	ls_api_failure(-LS_EBUSY, &api_problem);
	ck_assert_int_eq(api_problem.status, 503);
	ls_api_failure(-EINVAL, &api_problem);
	ck_assert_int_eq(api_problem.status, 400);
	ls_api_failure(-LS_ERANGE, &api_problem);
	ck_assert_int_eq(api_problem.status, 400);
	ls_api_failure(-ETIMEDOUT, &api_problem);
	ck_assert_int_eq(api_problem.status, 504);
	ck_assert_ptr_nonnull(strstr(api_problem.detail, "interrupted after 5 s"));
	ls_api_failure(-LS_EINTERRUPTED, &api_problem);
	ck_assert_int_eq(api_problem.status, 503);
	ck_assert_ptr_nonnull(strstr(api_problem.detail, "write-ahead log"));
	ls_api_failure(-LS_ELIMIT, &api_problem);
	ck_assert_int_eq(api_problem.status, 400);
	ls_api_failure(-LS_EDB, &api_problem);
	ck_assert_int_eq(api_problem.status, 500);
	ls_api_failure(-LS_EUNKNOWN, &api_problem);
	ck_assert_int_eq(api_problem.status, 404);
}

/* --- the description of the API
 * ---------------------------------------------------------------- */

/* The block of one path in openapi.yaml: from "  /path:" to the next of that depth. */
static char *
spec_block(const char *spec, const char *path)
{
	char head[128];
	const char *start, *end;

	(void)snprintf(head, sizeof(head), "\n  %s:\n", path);
	start = strstr(spec, head);
	if (!start)
		return NULL;
	start += strlen(head);
	for (end = start; *end != '\0'; end = strchr(end, '\n') + 1) {
		if (strncmp(end, "    ", 4) != 0)
			break;
	}
	return strndup(start, (size_t)(end - start));
}

LS_TEST(api, description_has_every_route_and_parameter)
{
	size_t len = 0;
	char *spec = ls_test_read(ls_test_source("web/api/openapi.yaml"), &len);

	for (unsigned r = 0; r < LS_ROUTE_COUNT; r++) {
		const struct ls_route_info *route = ls_api_route((enum ls_route)r);
		char *block = spec_block(spec, route->path);

		ck_assert_msg(block != NULL, "not described: %s", route->path);
		ck_assert_msg(strstr(block, route->summary) != NULL, "summary of %s",
			route->path);
		for (unsigned p = 0; p < LS_PARAM_COUNT; p++) {
			char ref[64];
			bool has, should = (route->params >> p) & 1;

			(void)snprintf(ref, sizeof(ref), "/parameters/%s\"",
				ls_api_param(p));
			has = strstr(block, ref) != NULL;
			(void)snprintf(ref, sizeof(ref), "/parameters/%s_of_",
				ls_api_param(p)); /* only here of this kind */
			has = has || strstr(block, ref) != NULL;
			ck_assert_msg(has == should, "%s %s", route->path,
				ls_api_param(p));
		}
		free(block);
	}
	free(spec);
}

LS_TEST(api, description_has_nothing_else)
{
	size_t len = 0;
	char *spec = ls_test_read(ls_test_source("web/api/openapi.yaml"), &len);
	char *end = strstr(spec, "\ncomponents:");
	size_t count = 0;

	*end = '\0';
	for (char *at = spec; (at = strstr(at, "\n  /")) != NULL; at++)
		count++;
	ck_assert_uint_eq(count, LS_ROUTE_COUNT);
	free(spec);
}

/* --- /metrics
 * ------------------------------------------------------------------------------- */

LS_TEST(api, metrics_escape_what_is_hostile)
{
	struct evbuffer *out = evbuffer_new();
	json_t *jobs = load("hostile/jobs"), *findings = load("hostile/findings");
	char *text;

	ls_metrics_jobs(out, jobs);
	ls_metrics_findings(out, findings);
	(void)evbuffer_add(out, "", 1);
	text = (char *)evbuffer_pullup(out, -1);
	ck_assert_ptr_nonnull(strstr(text,
		"lockstep_job_chips_lost{tpu_job=\"job "
		"\\\"x\\\"\\n</script>\"} 38.8\n"));
	ck_assert_ptr_nonnull(strstr(text, "lockstep_finding_info{finding=\"F-HACK\""));
	for (char *line = text; *line != '\0'; line = strchr(line, '\n') + 1)
		ck_assert(strncmp(line, "lockstep_", 9) == 0 ||
			strncmp(line, "# ", 2) == 0);
	json_decref(jobs);
	json_decref(findings);
	evbuffer_free(out);
}

/* However findings alternate: a second line of the same labels is refused by Prometheus. */
LS_TEST(api, findings_of_the_same_labels_are_one_line)
{
	static const char *const kinds[] = { "straggler", "hang", "straggler", "hang",
		"straggler" };
	struct evbuffer *out = evbuffer_new();
	json_t *findings = json_array();
	const char *text, *first;
	char id[8];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		(void)snprintf(id, sizeof(id), "F-%zu", i);
		ck_assert_int_eq(
			json_array_append_new(findings,
				json_pack("{s:s, s:s, s:s, s:s, s:{s:s}}", "id", id,
					"kind", kinds[i], "severity", "warning",
					"status", "open", "job", "id", "j")),
			0);
	}
	ls_metrics_findings(out, findings);
	(void)evbuffer_add(out, "", 1);
	text = (const char *)evbuffer_pullup(out, -1);
	first = strstr(text, "lockstep_findings{tpu_job=\"j\",kind=\"straggler\"");
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_nonnull(strstr(first, "} 3\n"));
	ck_assert_ptr_null(strstr(first + 1,
		"lockstep_findings{tpu_job=\"j\",kind=\"straggler\""));
	json_decref(findings);
	evbuffer_free(out);
}

LS_TEST(api, metrics_leave_out_what_is_not_known)
{
	struct evbuffer *out = evbuffer_new();
	json_t *jobs = load("bare/jobs"), *findings = load("bare/findings");
	char *text;

	ls_metrics_jobs(out, jobs);
	ls_metrics_findings(out, findings);
	(void)evbuffer_add(out, "", 1);
	text = (char *)evbuffer_pullup(out, -1);
	ck_assert_ptr_null(strstr(text, "tpu_job=\"young\""));
	ck_assert_ptr_nonnull(
		strstr(text, "lockstep_finding_info{finding=\"F-BARE\",tpu_job=\"\""));
	json_decref(jobs);
	json_decref(findings);
	evbuffer_free(out);
}
