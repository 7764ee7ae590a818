/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/api/query.h"
#include "proto/base/text.h"
#include <errno.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

int
ls_query_decode(const char *text, size_t len, size_t size, char *ret_text)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '%') {
			int high = i + 1 < len ? ls_text_hex_value(text[i + 1]) : -1;
			int low = i + 2 < len ? ls_text_hex_value(text[i + 2]) : -1;

			if (high < 0 || low < 0)
				return -LS_EPARSE;
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (c == '\0')
			return -LS_EPARSE;
		if (n + 1 >= size)
			return -LS_ELIMIT;
		ret_text[n++] = c;
	}
	if (n >= size)
		return -LS_ELIMIT;
	ret_text[n] = '\0';
	return 0;
}

static int
query_pair(const char *text, size_t len, struct ls_query_pair *ret_pair)
{
	const char *equals = memchr(text, '=', len);
	size_t name_len = equals ? (size_t)(equals - text) : len;
	const char *value = equals ? equals + 1 : text + len;
	int rc;

	ret_pair->name[0] = '\0';
	rc = ls_query_decode(text, name_len, sizeof(ret_pair->name), ret_pair->name);
	if (rc != 0) {
		ret_pair->name[0] = '\0'; /* half a name would mislead */
		return rc;
	}
	return ls_query_decode(value, (size_t)(text + len - value),
		sizeof(ret_pair->value), ret_pair->value);
}

int
ls_query_parse(const char *text, struct ls_query *ret_query)
{
	ret_query->count = 0;
	ret_query->pairs[0].name[0] = '\0';
	while (text && *text != '\0') {
		size_t len = strcspn(text, "&");
		int rc;

		if (len > 0) {
			if (ret_query->count == LS_QUERY_PAIRS_MAX) {
				/* Nothing to name: leave the last pair unused. */
				ret_query->count--;
				ret_query->pairs[ret_query->count].name[0] = '\0';
				return -LS_ELIMIT;
			}
			rc = query_pair(text, len, &ret_query->pairs[ret_query->count]);
			if (rc != 0)
				return rc;
			ret_query->count++;
		}
		text += len;
		if (*text == '&')
			text++;
	}
	return 0;
}

int
ls_query_encode(const char *s, size_t size, char *ret_text)
{
	char *text = evhttp_uriencode(s, -1, 0);
	int rc = text != NULL ? ls_text_copy(ret_text, size, text) : -ENOMEM;

	free(text);
	return rc;
}
