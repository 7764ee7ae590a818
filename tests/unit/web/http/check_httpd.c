/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/http/httpd.h"
#include "proto/base/clock.h"
#include "tests/support/harness.h"
#include "tests/support/tree.h"
#include "tests/unit/web/http/http_rig.h"
#include "web/http/assets.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

LS_CASE(httpd, rig_setup, rig_teardown);

LS_TEST(httpd, every_route_answers)
{
	static const char *const paths[] = { "/api/v1/jobs",
		"/api/v1/jobs/llama70b-run12", "/api/v1/jobs/eval%20nightly%2F7b",
		"/api/v1/jobs/llama70b-run12/hosts",
		"/api/v1/jobs/llama70b-run12/steps?limit=1000",
		"/api/v1/jobs/llama70b-run12/grid",
		"/api/v1/jobs/llama70b-run12/export", "/api/v1/findings",
		"/api/v1/findings/F-7Q2K", "/api/v1/openapi.yaml", "/metrics",
		"/healthz", "/readyz", "/version", "/", "/index.html" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		ck_assert_msg(rig_get(paths[i]) == 200, "%s: %.60s", paths[i],
			rig_answer);
		ck_assert(rig_has(
			"\r\nContent-Security-Policy: default-src 'none'; script-src "
			"'self'; "
			"style-src 'self'; img-src 'self' data:; connect-src 'self'; "
			"frame-ancestors 'none'; base-uri 'none'"));
		ck_assert(rig_has("\r\nX-Content-Type-Options: nosniff\r\n"));
		ck_assert(rig_has("\r\nReferrer-Policy: no-referrer\r\n"));
		ck_assert(!rig_has("Access-Control"));
	}
}

LS_TEST(httpd, every_asset_answers)
{
	for (size_t i = 0; i < ls_ui_asset_count; i++) {
		ck_assert_int_eq(rig_get(ls_ui_assets[i].path), 200);
		ck_assert(rig_has(ls_ui_assets[i].mime));
		ck_assert_str_ne(rig_body(), "");
		ck_assert_int_eq(rig_ask("GET", ls_ui_assets[i].path,
					 "Accept-Encoding: gzip, br\r\n"),
			200);
		ck_assert(rig_has("\r\nContent-Encoding: gzip\r\n") ==
			(ls_ui_assets[i].gzip != NULL));
	}
}

LS_TEST(httpd, lists_are_wrapped_and_objects_versioned)
{
	ck_assert_int_eq(rig_get("/api/v1/jobs"), 200);
	ck_assert(strncmp(rig_body(), "{\"schema_version\":1,\"items\":[{", 30) == 0);
	ck_assert_int_eq(rig_get("/api/v1/jobs/llama70b-run12"), 200);
	ck_assert(strncmp(rig_body(), "{\"schema_version\":1,\"id\":", 25) == 0);
	ck_assert(rig_has("\"step_time_s\":2.84,")); /* not 2.8399999999999999 */
	ck_assert_int_eq(
		rig_get("/api/v1/jobs/llama70b-run12/steps?steps=5:9&host=h&limit=3"),
		200);
	ck_assert_uint_eq(rig_backend.last.from_step, 5);
	ck_assert_uint_eq(rig_backend.last.to_step, 9);
	ck_assert_uint_eq(rig_backend.last.limit, 3);
	ck_assert_str_eq(rig_backend.last.host, "h");
}

LS_TEST(httpd, errors_are_problems)
{
	ck_assert_int_eq(rig_get("/api/v1/findings?limt=3"), 400);
	ck_assert(rig_has("\r\nContent-Type: application/problem+json\r\n"));
	ck_assert(rig_has("\"errors\":[{\"parameter\":\"limt\"}]"));
	ck_assert(rig_has("\"request_id\":\""));
	ck_assert(rig_has("\"instance\":\"/api/v1/findings\""));
	ck_assert_int_eq(rig_get("/api/v1/findings?cursor=F-NONE"), 400);
	ck_assert(rig_has("\"parameter\":\"cursor\""));
	ck_assert_int_eq(rig_get("/api/v1/jobs/none"), 404);
	ck_assert_int_eq(rig_get("/nothing"), 404);
	ck_assert(rig_has("application/problem+json"));
	ck_assert_int_eq(rig_get("/api/v1/jobs/none/export"), 404);
	rig_backend.not_ready = "the disk is full";
	ck_assert_int_eq(rig_get("/readyz"), 503);
	ck_assert(rig_has("the disk is full"));
}

LS_TEST(httpd, only_get_and_head_are_served)
{
	static const char *const methods[] = { "POST", "PUT", "DELETE", "PATCH",
		"OPTIONS", "TRACE" };

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		ck_assert_int_eq(
			rig_ask(methods[i], "/api/v1/jobs", "Content-Length: 0\r\n"),
			405);
		ck_assert(rig_has("\r\nAllow: GET, HEAD\r\n"));
	}
	ck_assert_int_ge(rig_ask("BREW", "/api/v1/jobs", ""), 400);
}

LS_TEST(httpd, head_has_headers_and_no_body)
{
	ck_assert_int_eq(rig_ask("HEAD", "/api/v1/jobs", ""), 200);
	ck_assert(rig_has("\r\nETag: \""));
	ck_assert(rig_has("\r\nContent-Length: "));
	ck_assert(!rig_has("\r\nContent-Length: 0\r\n"));
	ck_assert_str_eq(rig_body(), "");
	ck_assert_int_eq(rig_ask("HEAD", "/api/v1/jobs/llama70b-run12/export", ""),
		200);
	ck_assert_str_eq(rig_body(), "");
	ck_assert_int_eq(rig_ask("HEAD", "/api/v1/jobs/none", ""), 404);
	ck_assert_str_eq(rig_body(), "");
}

/* libevent leaves it unread: the connection ends, so that it is no second request. */
LS_TEST(httpd, a_body_of_head_or_trace_ends_the_connection)
{
	static const char *const methods[] = { "HEAD", "TRACE" };
	char text[256];

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		(void)snprintf(text, sizeof(text),
			"%s /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
			"Content-Length: 5\r\n\r\nhello",
			methods[i]);
		ck_assert_int_lt(rig_ask_raw(text), 500);
		ck_assert(rig_has("\r\nConnection: close\r\n"));
		ck_assert(!rig_has("501"));
	}
}

LS_TEST(httpd, unchanged_is_304)
{
	static const char *const paths[] = { "/api/v1/jobs", "/app.js", "/version" };
	char header[128];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const char *etag;

		ck_assert_int_eq(rig_get(paths[i]), 200);
		etag = strstr(rig_answer, "ETag: ") + 6;
		(void)snprintf(header, sizeof(header),
			"If-None-Match: \"x\", W/%.*s\r\n", (int)strcspn(etag, "\r"),
			etag);
		ck_assert_int_eq(rig_ask("GET", paths[i], header), 304);
		ck_assert_str_eq(rig_body(), "");
		ck_assert_int_eq(
			rig_ask("GET", paths[i], "If-None-Match: \"other\"\r\n"), 200);
	}
}

LS_TEST(httpd, host_of_elsewhere_is_refused)
{
	ck_assert_int_eq(rig_ask_raw("GET / HTTP/1.1\r\nHost: "
				     "evil.example\r\nConnection: close\r\n\r\n"),
		421);
	ck_assert_int_eq(
		rig_ask_raw("GET / HTTP/1.1\r\nHost: "
			    "localhost.evil.example:80\r\nConnection: close\r\n\r\n"),
		421);
	ck_assert_int_eq(rig_ask_raw("GET http://evil.example/ HTTP/1.1\r\nHost: "
				     "localhost\r\nConnection: close\r\n\r\n"),
		421);
	ck_assert_int_eq(rig_ask_raw("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"),
		421);
	ck_assert_int_eq(rig_ask_raw("GET / HTTP/1.1\r\nHost: "
				     "LocalHost:7118\r\nConnection: close\r\n\r\n"),
		200);
	ck_assert_int_eq(rig_ask_raw("GET / HTTP/1.1\r\nHost: "
				     "[::1]:7118\r\nConnection: close\r\n\r\n"),
		200);
	ck_assert_int_eq(rig_get("/metrics"), 200);
	ck_assert(rig_has("lockstep_http_requests_refused_total 4\n"));
}

LS_TEST(httpd, requests_are_counted_by_route_and_status)
{
	ck_assert_int_eq(rig_get("/api/v1/jobs"), 200);
	ck_assert_int_eq(rig_get("/api/v1/jobs"), 200);
	ck_assert_int_eq(rig_get("/api/v1/jobs?limit=0"), 400);
	ck_assert_int_eq(rig_get("/api/v1/nowhere"), 404);
	ck_assert_int_eq(rig_get("/metrics"), 200);
	ck_assert(rig_has("lockstep_http_requests_total{"
			  "route=\"/api/v1/jobs\",status=\"2xx\"} 2\n"));
	ck_assert(rig_has("{route=\"/api/v1/jobs\",status=\"4xx\"} 1\n"));
	ck_assert(rig_has("{route=\"other\",status=\"4xx\"} 1\n"));
	ck_assert(!rig_has("status=\"5xx\""));
}

LS_TEST(httpd, paths_never_reach_the_file_system)
{
	static const char *const paths[] = { "/../../etc/passwd",
		"/%2e%2e/%2e%2e/etc/passwd", "/ui/../app.js", "//etc/passwd",
		"/app.js/", "/./app.js", "/app.js%00", "/.git/config" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		ck_assert_msg(rig_get(paths[i]) != 200 ||
				strcmp(paths[i], "//etc/passwd") == 0,
			"%s", paths[i]);
	ck_assert(!rig_has("root:"));
}

LS_TEST(httpd, links_lead_to_the_page)
{
	ck_assert_int_eq(rig_get("/f/F-7Q2K"), 303);
	ck_assert(rig_has("\r\nLocation: /#/f/F-7Q2K\r\n"));
	ck_assert_int_eq(rig_get("/j/a%0d%0aSet-Cookie:x"), 303);
	ck_assert(!rig_has("\r\nSet-Cookie"));
}

LS_TEST(httpd, big_requests_are_refused)
{
	char *text = malloc(200000);
	size_t n;

	n = (size_t)snprintf(text, 200000, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
	memset(text + n, 'x', 20000);
	(void)snprintf(text + n + 20000, 8, "\r\n\r\n");
	ck_assert_int_ne(rig_ask_raw(text), 200);
	n = (size_t)snprintf(text, 200000,
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
	ck_assert_int_eq(rig_ask_raw(text), 413);
	ck_assert_int_eq(rig_get("/healthz"), 200);
	free(text);
}

LS_CASE(httpd_own);

LS_TEST(httpd_own, a_page_under_work_is_read_from_its_directory)
{
	struct ls_httpd_options options = { .address = "127.0.0.1" };
	struct ls_backend functions;

	(void)snprintf(options.web_root, sizeof(options.web_root), "%s",
		ls_test_tmpdir());
	tree_write(options.web_root, "index.html", "<p>mine</p>");
	rig_loop = ls_loop_new();
	fake_backend_init(&rig_backend, ls_test_source("tests/golden/web/run"),
		&functions);
	ck_assert_int_eq(ls_httpd_new(rig_loop, &options, &functions, &rig_httpd), 0);
	ck_assert_int_eq(rig_get("/"), 200);
	ck_assert(rig_has("<p>mine</p>"));
	tree_write(options.web_root, "index.html", "<p>changed</p>");
	ck_assert_int_eq(rig_get("/"), 200);
	ck_assert(rig_has("<p>changed</p>"));
	tree_remove(options.web_root, "index.html");
	ck_assert_int_ne(rig_get("/"), 200);
	rig_teardown();
}

LS_TEST(httpd_own, open_addresses_need_insecure)
{
	struct ls_httpd_options options = { .address = "0.0.0.0" };
	struct ls_backend functions;
	struct ls_httpd *h = NULL;

	rig_start(0);
	fake_backend_init(&rig_backend, ls_test_source("tests/golden/web/run"),
		&functions);
	ck_assert_int_eq(ls_httpd_new(rig_loop, &options, &functions, &h), -EPERM);
	ck_assert_ptr_null(h);
	options.insecure = true;
	ck_assert_int_eq(ls_httpd_new(rig_loop, &options, &functions, &h), 0);
	ls_httpd_free(h);
	(void)snprintf(options.address, sizeof(options.address), "127.0.0.1");
	options.port = (uint16_t)ls_httpd_port(rig_httpd);
	ck_assert_int_eq(ls_httpd_new(rig_loop, &options, &functions, &h), -EADDRINUSE);
	ls_httpd_free(NULL);
	rig_teardown();
}

static int
ask_as(const char *host)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
		"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host);
	return rig_ask_raw(text);
}

LS_TEST(httpd_own, host_beyond_loopback_is_an_address_or_a_name_that_was_given)
{
	struct ls_httpd_options options = {
		.address = "0.0.0.0", .names = "coll,coll.example", .insecure = true
	};
	struct ls_backend functions;

	rig_start(0);
	ls_httpd_free(rig_httpd);
	fake_backend_let_go(&rig_backend);
	fake_backend_init(&rig_backend, ls_test_source("tests/golden/web/run"),
		&functions);
	ck_assert_int_eq(ls_httpd_new(rig_loop, &options, &functions, &rig_httpd), 0);
	ck_assert_int_eq(ask_as("evil.example"), 421);
	ck_assert_int_eq(ask_as("coll.example.evil"), 421);
	ck_assert_int_eq(ask_as("col"), 421);
	ck_assert_int_eq(ask_as("COLL:7118"), 200);
	ck_assert_int_eq(ask_as("coll.example"), 200);
	ck_assert_int_eq(ask_as("localhost:1"), 200);
	ck_assert_int_eq(ask_as("10.1.2.3:7118"), 200);
	ck_assert_int_eq(ask_as("[fd00::1]:7118"), 200);
	rig_teardown();
}

/* A POST of a body; more: other headers. */
static int
post(const char *path, const char *more, const char *body)
{
	char text[2048];

	(void)snprintf(text, sizeof(text),
		"POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
		"%sContent-Length: %zu\r\n\r\n%s",
		path, more, strlen(body), body);
	return rig_ask_raw(text);
}

#define ZOOM_PATH "/api/v1/hosts/t1v-n-ab12-w-17/zoom"
#define JSON_TYPE "Content-Type: application/json\r\n"

LS_TEST(httpd, a_write_is_taken_from_this_machine_only)
{
	ck_assert_int_eq(post(ZOOM_PATH, JSON_TYPE, "{\"seconds\":60}"), 200);
	ck_assert(rig_has("\"zoom_until_at\""));
	ck_assert_int_eq(rig_backend.last.kind, LS_ASK_ZOOM);
	ck_assert_uint_eq(rig_backend.last.seconds, 60);
	ck_assert_str_eq(rig_backend.last.host, "t1v-n-ab12-w-17");
	ck_assert_int_eq(
		post(ZOOM_PATH, JSON_TYPE "Origin: http://localhost\r\n", "{}"), 200);
	ck_assert_uint_eq(rig_backend.last.seconds, 120);
	ck_assert_int_eq(post(ZOOM_PATH, JSON_TYPE, "{\"seconds\":1}"), 200);
	ck_assert_uint_eq(rig_backend.last.seconds, 1);
	ck_assert_int_eq(post(ZOOM_PATH, JSON_TYPE, "{\"seconds\":120}"), 200);
	ck_assert_uint_eq(rig_backend.last.seconds, 120);
	/* What a page from elsewhere can make a browser send. */
	ck_assert_int_eq(
		post(ZOOM_PATH, JSON_TYPE "Origin: http://evil.example\r\n", "{}"),
		403);
	ck_assert_int_eq(post(ZOOM_PATH, JSON_TYPE "Origin: null\r\n", "{}"), 403);
	ck_assert_int_eq(post(ZOOM_PATH, "Content-Type: text/plain\r\n", "{}"), 415);
	ck_assert_int_eq(post(ZOOM_PATH, "", "{}"), 415);
	ck_assert_int_eq(post("/api/v1/hosts/nobody/zoom", JSON_TYPE, "{}"), 404);
}

LS_TEST(httpd, a_bad_body_is_refused)
{
	static const char *const bad[] = { "", "x", "[]", "{\"seconds\":0}",
		"{\"seconds\":121}", "{\"seconds\":\"60\"}", "{\"seconds\":1.5}",
		"{\"seconds\":60,\"more\":1}", "{\"seconds\":60}{" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(post(ZOOM_PATH, JSON_TYPE, bad[i]) == 400, "%s", bad[i]);
		ck_assert(rig_has("application/problem+json"));
	}
	ck_assert_int_eq(post(ZOOM_PATH "?x=1", JSON_TYPE, "{}"), 400);
}

LS_TEST(httpd, each_resource_has_its_methods)
{
	ck_assert_int_eq(rig_ask("GET", ZOOM_PATH, ""), 405);
	ck_assert(rig_has("\r\nAllow: POST\r\n"));
	ck_assert_int_eq(post("/api/v1/jobs", JSON_TYPE, "{}"), 405);
	ck_assert(rig_has("\r\nAllow: GET, HEAD\r\n"));
	ck_assert_int_eq(post("/", JSON_TYPE, "{}"), 405);
}

LS_TEST(httpd, workers_come_in_pages)
{
	static const char path[] = "/api/v1/jobs/llama70b-run12/hosts";
	char query[128];

	(void)snprintf(query, sizeof(query), "%s?limit=63", path);
	ck_assert_int_eq(rig_ask("GET", query, ""), 200);
	ck_assert(rig_has("\"count\":64"));
	ck_assert(rig_has("\"next_cursor\":\"after-63\""));
	(void)snprintf(query, sizeof(query), "%s?limit=63&cursor=after-63", path);
	ck_assert_int_eq(rig_ask("GET", query, ""), 200);
	ck_assert(rig_has("\"next_cursor\":null"));
	(void)snprintf(query, sizeof(query), "%s?cursor=after-99", path);
	ck_assert_int_eq(rig_ask("GET", query, ""), 200);
	ck_assert(rig_has("\"items\":[]"));
}

LS_TEST(httpd, series_come_in_pages)
{
	ck_assert_int_eq(
		rig_ask("GET", "/api/v1/hosts/t1v-n-ab12-w-17/series?limit=3", ""),
		200);
	ck_assert(rig_has("\"next_cursor\":\"after-3\""));
	ck_assert_int_eq(
		rig_ask("GET",
			"/api/v1/hosts/t1v-n-ab12-w-17/series?limit=3&cursor=after-3",
			""),
		200);
	ck_assert(rig_has("tpu.runtime.queue_depth"));
	ck_assert(!rig_has("host.cpu.busy"));
	ck_assert(rig_has("\"next_cursor\":null"));
	ck_assert_int_eq(rig_ask("GET",
				 "/api/v1/hosts/t1v-n-ab12-w-17/series?cursor=after-5",
				 ""),
		200); /* there are no more */
	ck_assert(rig_has("\"items\":[]"));
	ck_assert_int_eq(rig_ask("GET",
				 "/api/v1/hosts/t1v-n-ab12-w-17/series?cursor=after-x",
				 ""),
		400);
	ck_assert_int_eq(
		rig_ask("GET", "/api/v1/hosts/t1v-n-ab12-w-17/series?step=1", ""), 400);
	ck_assert_int_eq(rig_ask("GET", "/api/v1/hosts/nobody/series", ""), 404);
	ck_assert_int_eq(rig_ask("GET", "/api/v1/hosts/t1v-n-ab12-w-17", ""), 200);
	ck_assert(rig_has("\"schema_version\":1"));
	ck_assert_int_eq(rig_ask("GET", "/api/v1/hosts/t1v-n-ab12-w-17?limit=1", ""),
		400);
}

LS_TEST(httpd, stored_answers_are_given_as_they_are_read)
{
	size_t len = 0;
	char *want =
		ls_test_read(ls_test_source("tests/golden/web/run/history.json"), &len);
	char headers[200], *etag, *end;

	ck_assert_int_eq(rig_get("/api/v1/hosts/t1v-n-ab12-w-17/series/a.b?step=60"),
		200);
	ck_assert_str_eq(rig_body(), want);
	ck_assert(rig_has("Content-Type: application/json"));
	ck_assert_int_eq(rig_backend.last.step_s, 60);
	etag = strcasestr(rig_answer, "ETag: ");
	ck_assert_ptr_nonnull(etag);
	end = strstr(etag, "\r\n");
	(void)snprintf(headers, sizeof(headers), "If-None-Match: %.*s\r\n",
		(int)(end - etag - 6), etag + 6);
	ck_assert_int_eq(rig_ask("GET",
				 "/api/v1/hosts/t1v-n-ab12-w-17/series/a.b?step=60",
				 headers),
		304);
	ck_assert_int_eq(
		rig_ask("HEAD", "/api/v1/hosts/t1v-n-ab12-w-17/series/a.b", ""), 200);
	ck_assert_str_eq(rig_body(), "");
	ck_assert_int_eq(rig_get("/api/v1/jobs/llama70b-run12/series?metric=a"), 200);
	ck_assert_int_eq(rig_get("/api/v1/jobs/llama70b-run12/steps/50259"), 200);
	ck_assert_int_eq(rig_get("/api/v1/jobs/none/steps/50259"), 404);
	ck_assert_int_eq(rig_get("/api/v1/hosts/none/series/a.b"), 404);
	rig_backend.read_rc = -ETIMEDOUT;
	ck_assert_int_eq(rig_get("/api/v1/jobs/llama70b-run12/series?metric=a"), 504);
	ck_assert(rig_has("/problems/query-timeout"));
	rig_backend.read_rc = -LS_ELIMIT;
	ck_assert_int_eq(rig_get("/api/v1/jobs/llama70b-run12/series?metric=a"), 400);
	rig_backend.read_rc = -LS_EBUSY;
	ck_assert_int_eq(rig_get("/api/v1/jobs/llama70b-run12/series?metric=a"), 503);
	ck_assert_int_eq(rig_backend.cancelled, 0);
	free(want);
}

LS_TEST(httpd, an_export_may_have_all_counters)
{
	ck_assert_int_eq(
		rig_ask("GET", "/api/v1/jobs/llama70b-run12/export?counters=all", ""),
		200);
	ck_assert(rig_backend.last.counters);
	ck_assert_int_eq(
		rig_ask("GET", "/api/v1/jobs/llama70b-run12/export?counters=hot", ""),
		200);
	ck_assert(!rig_backend.last.counters);
	ck_assert_int_eq(
		rig_ask("GET", "/api/v1/jobs/llama70b-run12/export?counters=some", ""),
		400);
}
