/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a Prometheus page from stdin and prints its samples, one a line: what we take
 * it to be. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/pages/prom_text.h"
#include "proto/base/text.h"

static void
print(void *arg, const struct ls_prom_sample *s)
{
	char safe[2 * LS_PROM_LINE_MAX_BYTES];
	size_t i;

	(void)arg;
	(void)printf("%s", s->name);
	for (i = 0; i < s->label_count; i++) {
		(void)ls_text_escape(safe, sizeof(safe), s->label[i].value,
			strlen(s->label[i].value));
		(void)printf("\t%s=%s", s->label[i].name, safe);
	}
	(void)printf("\t%.17g\n", s->value);
}

int
main(void)
{
	static struct ls_prom_text page;
	static char text[LS_PROM_PAGE_MAX_BYTES];
	size_t len = fread(text, 1, sizeof(text), stdin);
	int rc = ls_prom_text_read(&page, text, len, print, NULL);

	if (rc != 0)
		(void)fprintf(stderr, "line %llu: %s\n", (unsigned long long)page.line,
			page.why);
	return rc == 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
