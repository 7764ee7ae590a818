/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of web/api/api.h: from what the backend gave to the body of the
 * reply. */
#include "config.h"
#include "web/api/api.h"
#include "proto/base/text.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
answer_text_is(const json_t *object, const char *key, const char *want)
{
	const char *have = json_string_value(json_object_get(object, key));

	return want[0] == '\0' || (have && strcmp(have, want) == 0);
}

/* The subject is the host, a link with the host at one end, or a group that names it.
 */
static bool
answer_host_is(const json_t *finding, const char *want)
{
	const json_t *subject = json_object_get(finding, "subject");
	const json_t *hosts = json_object_get(subject, "hosts");

	if (answer_text_is(subject, "host", want))
		return true;
	for (size_t i = 0; i < json_array_size(hosts); i++) {
		const char *have = json_string_value(json_array_get(hosts, i));

		if (have && strcmp(have, want) == 0)
			return true;
	}
	return false;
}

/* What was opened again is open. */
static bool
answer_status_is(const json_t *finding, const char *want)
{
	return answer_text_is(finding, "status", want) ||
		(strcmp(want, "open") == 0 &&
			answer_text_is(finding, "status", "reopened"));
}

static bool
answer_wants(const struct ls_request *q, const json_t *finding)
{
	/* A finding about the collector concerns every job. */
	return (answer_text_is(json_object_get(finding, "job"), "id", q->ask.job) ||
		       answer_text_is(json_object_get(finding, "subject"), "scope",
			       "self")) &&
		answer_host_is(finding, q->ask.host) &&
		answer_status_is(finding, q->status) &&
		answer_text_is(finding, "severity", q->severity) &&
		answer_text_is(finding, "kind", q->kind);
}

/* {"schema_version":1,"items":...,"next_cursor":...}; takes items. */
static int
answer_list(json_t *items, const char *last_id, json_t **ret_answer)
{
	json_t *v = json_pack("{s:i, s:o}", "schema_version", 1, "items", items);
	char cursor[64];

	if (!v)
		return -ENOMEM;
	(void)snprintf(cursor, sizeof(cursor), "after-%s", last_id ? last_id : "");
	if (json_object_set_new(v, "next_cursor",
		    last_id ? json_string(cursor) : json_null()) != 0) {
		json_decref(v);
		return -ENOMEM;
	}
	*ret_answer = v;
	return 0;
}

/*
 * Index just after which (going down, to older ones) the page begins: size, or that of
 * the cursor.
 */
static int
answer_start(const struct ls_request *q, const json_t *all, size_t *ret_start)
{
	if (q->cursor[0] == '\0') {
		*ret_start = json_array_size(all);
		return 0;
	}
	for (size_t i = 0; i < json_array_size(all); i++) {
		if (answer_text_is(json_array_get(all, i), "id", q->cursor)) {
			*ret_start = i;
			return 0;
		}
	}
	return -LS_ERANGE;
}

static int
answer_findings(const struct ls_request *q, const json_t *all, json_t **ret_answer)
{
	json_t *items = json_array();
	const char *last_id = NULL;
	size_t i = 0;
	int rc = answer_start(q, all, &i);

	if (rc != 0 || !items) {
		json_decref(items);
		return rc != 0 ? rc : -ENOMEM;
	}
	while (i > 0) {
		json_t *finding = json_array_get(all, --i);

		if (!answer_wants(q, finding))
			continue;
		if (json_array_size(items) == q->ask.limit) {
			const json_t *last = json_array_get(items, q->ask.limit - 1);

			last_id = json_string_value(json_object_get(last, "id"));
			break;
		}
		if (json_array_append(items, finding) != 0) {
			json_decref(items);
			return -ENOMEM;
		}
	}
	return answer_list(items, last_id, ret_answer);
}

static int
answer_steps(const struct ls_request *q, const json_t *all, json_t **ret_answer)
{
	json_t *items = json_array();

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < json_array_size(all); i++) {
		json_t *step = json_array_get(all, i);
		const char *at = json_string_value(json_object_get(step, "at"));
		int64_t at_us = 0;
		bool known = at && ls_text_parse_time(at, 0, &at_us) == 0;
		bool whole = q->from_us == INT64_MIN && q->to_us == INT64_MAX;

		/* A step of unknown time is shown only when no range of time was
		   asked for. */
		if (!whole && (!known || at_us < q->from_us || at_us > q->to_us))
			continue;
		if (json_array_append(items, step) != 0) {
			json_decref(items);
			return -ENOMEM;
		}
	}
	while (json_array_size(items) > q->ask.limit)
		(void)json_array_remove(items, 0); /* the newest are kept */
	return answer_list(items, NULL, ret_answer);
}

/* All series in one order; the cursor is how many of them were shown. */
static int
answer_series(const struct ls_request *q, const json_t *all, json_t **ret_answer)
{
	size_t size = json_array_size(all), start = 0, i;
	char last[24];
	json_t *items;

	if (q->cursor[0] != '\0') {
		char *end = NULL;

		errno = 0;
		start = (size_t)strtoul(q->cursor, &end, 10);
		if (q->cursor[0] < '0' || q->cursor[0] > '9' || *end != '\0' ||
			errno != 0 || start > size)
			return -LS_ERANGE;
	}
	items = json_array();
	if (!items)
		return -ENOMEM;
	for (i = start; i < size && i - start < q->ask.limit; i++) {
		if (json_array_append(items, json_array_get(all, i)) != 0) {
			json_decref(items);
			return -ENOMEM;
		}
	}
	(void)snprintf(last, sizeof(last), "%zu", i);
	return answer_list(items, i < size ? last : NULL, ret_answer);
}

static int
answer_page(const struct ls_request *q, const json_t *body, json_t **ret_answer)
{
	json_t *items = json_object_get(body, "items");
	json_t *count = json_object_get(body, "count");
	size_t end = q->ask.skip + json_array_size(items);
	bool more = (json_int_t)end < json_integer_value(count);
	char last[24];
	int rc;

	(void)snprintf(last, sizeof(last), "%zu", end);
	rc = answer_list(json_incref(items), more ? last : NULL, ret_answer);
	if (rc == 0)
		rc = json_object_set(*ret_answer, "count", count) == 0 ? 0 : -ENOMEM;
	return rc;
}

static int
answer_object(json_t *body, json_t **ret_answer)
{
	json_t *v;

	if (json_object_get(body, "schema_version")) {
		*ret_answer = json_incref(body);
		return 0;
	}
	v = json_pack("{s:i}", "schema_version", 1);
	if (!v || json_object_update(v, body) != 0) {
		json_decref(v);
		return -ENOMEM;
	}
	*ret_answer = v;
	return 0;
}

int
ls_api_answer(const struct ls_request *q, json_t *body, json_t **ret_answer)
{
	switch (ls_api_route(q->route)->answer) {
	case LS_ANSWER_FINDINGS:
		return answer_findings(q, body, ret_answer);
	case LS_ANSWER_STEPS:
		return answer_steps(q, body, ret_answer);
	case LS_ANSWER_SERIES:
		return answer_series(q, body, ret_answer);
	case LS_ANSWER_PAGE:
		return answer_page(q, body, ret_answer);
	case LS_ANSWER_LIST:
		return answer_list(json_incref(body), NULL, ret_answer);
	case LS_ANSWER_OBJECT:
	case LS_ANSWER_WRITE:
	case LS_ANSWER_STORED:
	case LS_ANSWER_EXPORT:
	case LS_ANSWER_ASSET:
	case LS_ANSWER_METRICS:
	case LS_ANSWER_HEALTH:
	case LS_ANSWER_READY:
	case LS_ANSWER_VERSION:
		break;
	}
	return answer_object(body, ret_answer);
}
