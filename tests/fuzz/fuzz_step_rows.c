/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "storage/columns/step_rows.h"
#include "tests/support/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_demand(int holds)
{
	if (!holds)
		abort();
}

/* Whatever table there is must be written and read back. */
static void
fuzz_round_trip(const struct ls_step_table *t)
{
	struct ls_step_codec *other = ls_step_codec_new();
	struct ls_step_table back;
	const uint8_t *body;
	size_t len;

	fuzz_demand(other != NULL);
	fuzz_demand(ls_step_rows_encode(other, t, &body, &len) == 0);
	fuzz_demand(ls_step_rows_decode(other, body, len, &back) == 0);
	fuzz_demand(back.run_count == t->run_count &&
		back.record_count == t->record_count);
	fuzz_demand(memcmp(back.runs, t->runs, t->run_count * sizeof(*t->runs)) == 0);
	fuzz_demand(memcmp(back.records, t->records,
			    t->record_count * sizeof(*t->records)) == 0);
	ls_step_codec_free(other);
}

/* Hostile bytes as they came, and with the checksum made right, or only few would be
 * looked at. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ls_step_codec *codec;
	struct ls_step_table table;
	uint8_t *sealed;

	if (size > 65536)
		return 0;
	codec = ls_step_codec_new();
	sealed = malloc(size + 4);
	fuzz_demand(codec != NULL && sealed != NULL);
	/* it must only survive */
	ls_ignore(ls_step_rows_decode(codec, data, size, &table));
	if (size > 0)
		memcpy(sealed, data, size);
	seal_body(sealed, size + 4);
	if (ls_step_rows_decode(codec, sealed, size + 4, &table) == 0)
		fuzz_round_trip(&table);
	ls_step_codec_free(codec);
	free(sealed);
	return 0;
}
