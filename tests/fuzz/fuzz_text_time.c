/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a time, a duration, a size and as something to be escaped. */
#include "config.h"

#include "proto/base/conf.h"
#include "proto/base/text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A time that was read, written and read again is the same, to the ms that are written.
 */
static void
fuzz_time(const char *text)
{
	char written[32];
	int64_t us, again;

	if (ls_conf_parse_time(text, 0, &us) != 0)
		return;
	ls_text_time(written, us);
	LS_ASSERT(ls_conf_parse_time(written, 0, &again) == 0);
	if (us >= 0 && us < 253402300800ll * 1000000)
		LS_ASSERT(again <= us && us - again < 1000);
}

static void
fuzz_escape(const char *text, size_t len)
{
	char escaped[64];
	size_t n = ls_text_escape(escaped, sizeof(escaped), text, len);

	LS_ASSERT(n < sizeof(escaped) && strlen(escaped) == n);
	LS_ASSERT(n == 0 || ls_text_is_name(escaped, n, n));
	LS_ASSERT(n > 0 || len == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	uint64_t v;

	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	fuzz_time(text);
	if (ls_conf_parse_duration(text, &v) == 0)
		LS_ASSERT(v <= INT64_MAX);
	if (ls_conf_parse_size(text, &v) == 0)
		LS_ASSERT(v <= INT64_MAX);
	fuzz_escape(text, size);
	free(text);
	return 0;
}
