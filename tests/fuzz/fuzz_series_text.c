/* SPDX-License-Identifier: Apache-2.0 */
/* Any text: taken apart, or refused; what is taken can be shown. */
#include "config.h"

#include "collector/ingest/series_text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[LS_SERIES_NAME_MAX_BYTES], *text = malloc(size + 1);
	json_t *labels = NULL;
	char *shown;

	if (text == NULL)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	if (ls_series_text_parse(text, name, &labels) == 0) {
		shown = json_dumps(labels, 0);
		if (shown == NULL || strlen(name) >= sizeof(name) ||
			strncmp(name, text, strlen(name)) != 0)
			abort();
		(void)ls_series_text_unit(name);
		free(shown);
		json_decref(labels);
	}
	free(text);
	return 0;
}
