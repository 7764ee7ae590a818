/* SPDX-License-Identifier: Apache-2.0 */
/* The request parser: path, a question mark, query, as they come from a client. */
#include "config.h"
#include "proto/base/err.h"
#include "web/api/api.h"
#include "web/api/query.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	char *query = text ? strchr(text, '?') : NULL;
	struct ls_request request;
	struct ls_problem problem;
	char encoded[1024];
	int rc;

	if (!text)
		return 0;
	if (query)
		*query++ = '\0';
	rc = ls_api_parse(text, query, 1000000, &request, &problem);
	LS_ASSERT((rc == 0) == (problem.status == 0));
	if (rc != 0)
		json_decref(ls_api_problem_json(&problem, "/", "id"));
	else
		LS_ASSERT(ls_query_encode(request.ask.job, sizeof(encoded), encoded) ==
			0);
	free(text);
	return 0;
}
