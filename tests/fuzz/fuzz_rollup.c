/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "storage/columns/rollup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_MAX = 65536, FUZZ_HEAD = 56, FUZZ_SHORT_HEAD = 18, FUZZ_COLUMNS = 6 };

static void
fuzz_demand(int holds)
{
	if (!holds)
		abort();
}

static void
fuzz_put_sum(uint8_t *p, const uint8_t *data, size_t len)
{
	uint32_t sum = (uint32_t)crc32_z(0, data, len);

	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(sum >> (8 * i));
}

/* Makes all checksums right, as far as the lengths make sense: or only few bytes would
 * be looked at. */
static void
fuzz_seal(uint8_t *body, size_t size)
{
	size_t at = FUZZ_HEAD;
	uLong sum;

	if (body[0] == 2) {
		sum = crc32_z(0, body, FUZZ_SHORT_HEAD - 4);
		sum = crc32_z(sum, body + FUZZ_SHORT_HEAD, size - FUZZ_SHORT_HEAD);
		for (int i = 0; i < 4; i++)
			body[FUZZ_SHORT_HEAD - 4 + i] = (uint8_t)(sum >> (8 * i));
		return;
	}
	if (size < FUZZ_HEAD)
		return;
	for (size_t i = 0; i < FUZZ_COLUMNS; i++) {
		uint8_t *place = body + 4 + 8 * i;
		size_t len = (size_t)place[0] | (size_t)place[1] << 8 |
			(size_t)place[2] << 16 | (size_t)place[3] << 24;

		if (len > size - at)
			break;
		fuzz_put_sum(place + 4, body + at, len);
		at += len;
	}
	fuzz_put_sum(body + FUZZ_HEAD - 4, body, FUZZ_HEAD - 4);
}

/* Rows that were read must be written again, and read as the same. */
static void
fuzz_round_trip(const struct ls_rollup_row *rows, size_t count)
{
	struct ls_rollup_codec *codec = ls_rollup_codec_new();
	const struct ls_rollup_row *back;
	const uint8_t *body;
	size_t n, len;

	fuzz_demand(codec != NULL);
	fuzz_demand(ls_rollup_encode(codec, rows, count, &body, &len) == 0);
	fuzz_demand(ls_rollup_decode(codec, body, len, LS_ROLLUP_ALL, &back, &n) == 0);
	fuzz_demand(n == count);
	for (size_t i = 0; i < n; i++)
		fuzz_demand(back[i].labels_id == rows[i].labels_id &&
			back[i].host_id == rows[i].host_id &&
			back[i].count == rows[i].count &&
			memcmp(&back[i].min, &rows[i].min, 3 * sizeof(double)) == 0);
	ls_rollup_codec_free(codec);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ls_rollup_codec *codec;
	const struct ls_rollup_row *rows;
	uint8_t *sealed;
	size_t count;

	if (size < FUZZ_SHORT_HEAD || size > FUZZ_MAX)
		return 0;
	codec = ls_rollup_codec_new();
	sealed = malloc(size);
	fuzz_demand(codec != NULL && sealed != NULL);
	/* it must only survive */
	ls_ignore(ls_rollup_decode(codec, data, size, LS_ROLLUP_ALL, &rows, &count));
	memcpy(sealed, data, size);
	fuzz_seal(sealed, size);
	/* likewise */
	ls_ignore(ls_rollup_decode(codec, sealed, size, LS_ROLLUP_SUM, &rows, &count));
	if (ls_rollup_decode(codec, sealed, size, LS_ROLLUP_ALL, &rows, &count) == 0)
		fuzz_round_trip(rows, count);
	ls_rollup_codec_free(codec);
	free(sealed);
	return 0;
}
