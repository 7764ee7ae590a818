/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/series_text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "proto/base/json.h"
#include "proto/metrics.h"

/* Units that the end of a name says; longer ends first where one is the end of another.
 */
static const struct {
	const char *end, *unit;
} series_units[] = {
	{ "_seconds", "s" },
	{ "_bytes", "bytes" },
	{ "_hz", "Hz" },
	{ "_ratio", "1" },
	{ "_celsius", "Cel" },
	{ "_watts", "W" },
	{ "_joules", "J" },
	{ "_count", "1" },
};

static size_t
series_name_len(const char *text)
{
	return strspn(text,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-");
}

/* Reads a quoted value from *at (behind its first quote) into dst. */
static int
series_value(const char **at, char *dst, size_t size)
{
	size_t len = 0;
	const char *p = *at;

	for (; *p != '"'; p++) {
		char c = *p;

		if (c == '\\') {
			c = *++p;
			if (c == 'n')
				c = '\n';
		}
		if (c == '\0' || len + 1 >= size)
			return -LS_EPARSE;
		dst[len++] = c;
	}
	dst[len] = '\0';
	*at = p + 1;
	return 0;
}

/* One label from *at: key="value". */
static int
series_label(const char **at, json_t *labels)
{
	char key[LS_SERIES_LABELS_MAX_BYTES], value[LS_SERIES_LABELS_MAX_BYTES];
	size_t len = series_name_len(*at);
	int rc;

	if (len == 0 || len >= sizeof(key) || (*at)[len] != '=' ||
		(*at)[len + 1] != '"')
		return -LS_EPARSE;
	memcpy(key, *at, len);
	key[len] = '\0';
	*at += len + 2;
	rc = series_value(at, value, sizeof(value));
	if (rc != 0)
		return rc;
	return json_object_set_new(labels, key, ls_json_text(value)) == 0 ? 0 : -ENOMEM;
}

static int
series_labels(const char *at, json_t *labels)
{
	int rc = 0;

	if (at[0] == '\0')
		return 0;
	if (*at++ != '{')
		return -LS_EPARSE;
	while (rc == 0 && *at != '}') {
		rc = series_label(&at, labels);
		if (rc == 0 && *at == ',')
			at++;
		else if (rc == 0 && *at != '}')
			rc = -LS_EPARSE;
	}
	return rc == 0 && at[1] != '\0' ? -LS_EPARSE : rc;
}

int
ls_series_text_parse(const char *text, char *ret_name, json_t **ret_labels)
{
	size_t len = series_name_len(text);
	json_t *labels;
	int rc;

	if (len == 0 || len >= LS_SERIES_NAME_MAX_BYTES)
		return -LS_EPARSE;
	labels = json_object();
	if (labels == NULL)
		return -ENOMEM;
	rc = series_labels(text + len, labels);
	if (rc != 0) {
		json_decref(labels);
		return rc;
	}
	memcpy(ret_name, text, len);
	ret_name[len] = '\0';
	*ret_labels = labels;
	return 0;
}

const char *
ls_series_text_unit(const char *name)
{
	int metric = ls_metric_by_name(name);
	size_t i, len = strlen(name), end;

	if (metric >= 0)
		return ls_metric_info((enum ls_metric)metric)->unit;
	if (len > 6 && strcmp(name + len - 6, "_total") == 0)
		len -= 6;
	for (i = 0; i < sizeof(series_units) / sizeof(series_units[0]); i++) {
		end = strlen(series_units[i].end);
		if (len > end &&
			strncmp(name + len - end, series_units[i].end, end) == 0)
			return series_units[i].unit;
	}
	return NULL;
}
