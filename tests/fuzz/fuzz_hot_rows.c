/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "storage/columns/hot_rows.h"
#include "tests/support/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_demand(int holds)
{
	if (!holds)
		abort();
}

static void
fuzz_demand_same(const struct ls_hot_codec *a, const struct ls_hot_codec *b)
{
	size_t i, n, m;
	const struct ls_hot_event *x = ls_hot_rows_events(a, &n),
				  *y = ls_hot_rows_events(b, &m);
	struct ls_store_counters c, d;

	fuzz_demand(n == m);
	for (i = 0; i < n; i++) {
		fuzz_demand(x[i].id == y[i].id && x[i].t_us == y[i].t_us);
		ls_hot_rows_get(a, i, &c);
		ls_hot_rows_get(b, i, &d);
		fuzz_demand(memcmp(&c, &d, sizeof(c)) == 0);
	}
}

/* Whatever table there is must be written and read back. */
static void
fuzz_round_trip(const struct ls_hot_codec *read)
{
	struct ls_hot_codec *again = ls_hot_codec_new(), *back = ls_hot_codec_new();
	size_t i, n, len;
	const struct ls_hot_event *events = ls_hot_rows_events(read, &n);
	const uint8_t *body;

	fuzz_demand(again != NULL && back != NULL);
	for (i = 0; i < n; i++) {
		struct ls_store_counters c;

		ls_hot_rows_get(read, i, &c);
		fuzz_demand(ls_hot_rows_add(again, events[i].id, events[i].t_us, &c) ==
			0);
	}
	fuzz_demand(ls_hot_rows_encode(again, &body, &len) == 0);
	fuzz_demand(ls_hot_rows_decode(back, body, len) == 0);
	fuzz_demand_same(read, back);
	ls_hot_codec_free(again);
	ls_hot_codec_free(back);
}

/* Hostile bytes as they came, and with the checksum made right, or only few would be
 * looked at. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ls_hot_codec *codec;
	uint8_t *sealed;

	if (size > 65536)
		return 0;
	codec = ls_hot_codec_new();
	sealed = malloc(size + 4);
	fuzz_demand(codec != NULL && sealed != NULL);
	ls_ignore(ls_hot_rows_decode(codec, data, size)); /* it must only survive */
	if (size > 0)
		memcpy(sealed, data, size);
	seal_body(sealed, size + 4);
	if (ls_hot_rows_decode(codec, sealed, size + 4) == 0)
		fuzz_round_trip(codec);
	ls_hot_codec_free(codec);
	free(sealed);
	return 0;
}
