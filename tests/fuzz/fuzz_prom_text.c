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

/* A page is the same each time; each error has its sentence. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ls_prom_text page[2];
	uint64_t sum[2] = { 0, 0 };
	int rc[2], i;

	for (i = 0; i < 2; i++) {
		rc[i] = ls_prom_text_read(&page[i], (const char *)data, size, see,
			&sum[i]);
		if ((rc[i] != 0) != (page[i].why[0] != '\0'))
			abort();
	}
	if (rc[0] != rc[1] || page[0].line != page[1].line || sum[0] != sum[1])
		abort();
	return 0;
}
