/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/cli/csv.h"
#include "proto/base/text.h"
#include "web/cli/term.h"
#include <inttypes.h>
#include <string.h>

void
ls_csv_text(FILE *f, const char *text, char end)
{
	char safe[LS_TERM_TEXT_MAX_BYTES];
	const char *s = text ? text : "";

	(void)ls_text_escape(safe, sizeof(safe), s, strlen(s)); /* cut if too long */
	if (safe[0] != '\0' && strchr("=+-@", safe[0]))
		(void)fputc('\'', f);
	if (safe[strcspn(safe, ",\"\n\r")] == '\0') {
		(void)fputs(safe, f);
	} else {
		(void)fputc('"', f);
		for (s = safe; *s != '\0'; s++) {
			if (*s == '"')
				(void)fputc('"', f);
			(void)fputc(*s, f);
		}
		(void)fputc('"', f);
	}
	(void)fputc(end, f);
}

void
ls_csv_json(FILE *f, const json_t *v, char end)
{
	if (json_is_string(v)) {
		ls_csv_text(f, json_string_value(v), end);
		return;
	}
	if (json_is_integer(v))
		(void)fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_real(v))
		(void)fprintf(f, "%.15g", json_real_value(v));
	(void)fputc(end, f);
}

void
ls_csv_time(FILE *f, int64_t t_us, char end)
{
	char text[32];

	ls_text_time(text, t_us);
	(void)fprintf(f, "%.19s.%06" PRId64 "Z%c", text, t_us >= 0 ? t_us % 1000000 : 0,
		end);
}
