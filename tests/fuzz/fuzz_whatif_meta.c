/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as the YAML beside an operation trace: refused with a reason, or its sizes
 * are in bounds. */
#include "config.h"

#include "collector/whatif/whatif_meta.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ls_whatif_error error = { 0 };
	struct ls_whatif_meta m = { 0 };
	int rc = ls_whatif_meta_parse((const char *)data, size, &m, &error);

	LS_ASSERT(rc == 0 || (rc == -LS_EPARSE && error.text[0] != '\0'));
	if (rc == 0)
		LS_ASSERT(m.dp_size >= 1 && m.pp_size >= 1 && m.vpp_size == 1 &&
			(uint64_t)m.dp_size * m.pp_size <= LS_WHATIF_WORKERS_MAX &&
			memchr(m.name, '\0', sizeof(m.name)) != NULL);
	return 0;
}
