/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as the CSV of an operation trace of 2 dp and 2 stages (1 dp and 1 stage, if
 * its first byte is a digit): it is refused with a reason that can be shown, or all
 * answers are numbers or null.
 */
#include "config.h"

#include "collector/whatif/whatif.h"
#include "collector/whatif/whatif_csv.h"
#include "proto/base/err.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool one = size > 0 && data[0] >= '0' && data[0] <= '9';
	struct ls_whatif_meta meta = { .dp_size = one ? 1 : 2, .pp_size = one ? 1 : 2 };
	struct ls_whatif_error error = { 0 };
	struct ls_whatif_rows rows = { 0 };
	struct ls_whatif_trace *t = NULL;
	int fd = memfd_create("trace", 0), rc;
	json_t *o = NULL;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (one)
		size--;
	LS_ASSERT(write(fd, data + one, size) == (ssize_t)size);
	rc = ls_whatif_csv_read(path, &meta, &rows, &error);
	(void)close(fd); /* memory */
	if (rc == 0)
		rc = ls_whatif_trace_new(rows.rows, rows.count, meta.dp_size,
			meta.pp_size, &t, &error);
	if (rc == 0)
		rc = ls_whatif_answer(t, "", 2, &o, &error);
	/* what begins like gzip is read as such */
	LS_ASSERT(rc == 0 || rc == -LS_ECORRUPT ||
		(rc == -LS_EPARSE && error.text[0] != '\0' &&
			strchr(error.text, '\033') == NULL));
	LS_ASSERT(rc != 0 || json_real_value(json_object_get(o, "S")) > 0);
	json_decref(o);
	ls_whatif_trace_free(t);
	free(rows.rows);
	return 0;
}
