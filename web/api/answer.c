/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of web/api/api.h: from what the backend gave to the body of the
 * reply. */
#include "config.h"
#include "web/api/api.h"
#include "proto/base/conf.h"
#include "proto/base/text.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* {"schema_version":1,"items":...,"next_cursor":...}; takes items. */
static int
answer_list(json_t *items, const char *last, json_t **ret_answer)
{
	json_t *v = json_pack("{s:i, s:o, s:o}", "schema_version", 1, "items", items,
		"next_cursor", last ? json_sprintf("after-%s", last) : json_null());

	if (!v)
		return -ENOMEM;
	*ret_answer = v;
	return 0;
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
		bool known = at && ls_conf_parse_time(at, 0, &at_us) == 0;
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
	size_t size = json_array_size(all), i;
	json_t *items = json_array();
	char last[24];

	if (!items)
		return -ENOMEM;
	for (i = q->ask.skip; i < size && json_array_size(items) < q->ask.limit; i++) {
		if (json_array_append(items, json_array_get(all, i)) != 0) {
			json_decref(items);
			return -ENOMEM;
		}
	}
	(void)snprintf(last, sizeof(last), "%zu", i);
	return answer_list(items, i < size ? last : NULL, ret_answer);
}

static int
answer_page(const json_t *body, json_t **ret_answer)
{
	json_t *count = json_object_get(body, "count");
	int rc = answer_list(json_incref(json_object_get(body, "items")),
		json_string_value(json_object_get(body, "next")), ret_answer);

	if (rc == 0 && count != NULL)
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
	case LS_ANSWER_STEPS:
		return answer_steps(q, body, ret_answer);
	case LS_ANSWER_SERIES:
		return answer_series(q, body, ret_answer);
	case LS_ANSWER_PAGE:
		return answer_page(body, ret_answer);
	case LS_ANSWER_OBJECT:
	case LS_ANSWER_WRITE:
	case LS_ANSWER_SESSION:
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
