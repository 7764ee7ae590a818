/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "agent/collect/doctor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What an agent answers, or whatever listens there: read, printed, and written again as
 * it was read. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *v = json_loadb((const char *)data, size, 0, NULL), *again;
	struct ls_doctor *d = malloc(2 * sizeof(*d));
	FILE *out = fopen("/dev/null", "we");

	LS_ASSERT(d != NULL && out != NULL);
	if (ls_doctor_parse(v, &d[0]) == 0) {
		LS_ASSERT(d[0].count <= LS_DOCTOR_CHECKS_MAX);
		ls_doctor_print(&d[0], true, out);
		again = ls_doctor_json(&d[0]);
		LS_ASSERT(again != NULL);
		LS_ASSERT(ls_doctor_parse(again, &d[1]) == 0);
		LS_ASSERT(d[1].count == d[0].count);
		json_decref(again);
	}
	(void)fclose(out); /* nothing was kept */
	free(d);
	json_decref(v);
	return 0;
}
