/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "agent/pages/prom_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was told, as one number. */
static void
see(void *arg, const struct ls_prom_sample *s)
{
	uint64_t *sum = arg;
	const char *c;
	size_t i;

	*sum = (*sum ^ s->line) * 1099511628211u + (uint64_t)s->type + s->label_count;
	for (c = s->name; *c != '\0'; c++)
		*sum = (*sum ^ (uint8_t)*c) * 1099511628211u;
	for (i = 0; i < s->label_count; i++) {
		if (s->label[i].name[0] == '\0')
			abort();
		for (c = s->label[i].value; *c != '\0'; c++)
			*sum = (*sum ^ (uint8_t)*c) * 1099511628211u;
	}
}

/* A page in pieces must be what it is whole. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ls_prom_text whole, pieces;
	const char *text = (const char *)data;
	uint64_t sum[2] = { 0, 0 };
	size_t at = 0, n;
	int rc;

	ls_prom_text_init(&whole, see, &sum[0]);
	ls_prom_text_init(&pieces, see, &sum[1]);
	rc = ls_prom_text_feed(&whole, text, size);
	if (rc == 0)
		rc = ls_prom_text_end(&whole);
	while (at < size) {
		n = 1 + (at * 7 + size) % 13;
		n = n < size - at ? n : size - at;
		if (ls_prom_text_feed(&pieces, text + at, n) != 0)
			break;
		at += n;
	}
	if (ls_prom_text_end(&pieces) != rc || whole.line != pieces.line ||
		whole.samples != pieces.samples || sum[0] != sum[1] ||
		strcmp(whole.why, pieces.why) != 0)
		abort();
	if ((rc != 0) != (whole.why[0] != '\0'))
		abort();
	return 0;
}
