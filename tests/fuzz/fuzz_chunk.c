/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "proto/chunk/chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_COLUMNS = 40, FUZZ_ROWS = 120, FUZZ_MAX = 8192 };

static void
fuzz_demand(int holds)
{
	if (!holds)
		abort();
}

static void
fuzz_demand_same(const struct ls_chunk_table *a, const struct ls_chunk_table *b)
{
	size_t c;

	fuzz_demand(a->rows == b->rows && a->columns == b->columns);
	fuzz_demand(memcmp(a->t_mono_ns, b->t_mono_ns,
			    a->rows * sizeof(*a->t_mono_ns)) == 0);
	for (c = 0; c < a->columns; c++) {
		fuzz_demand(memcmp(a->present + c * a->stride,
				    b->present + c * b->stride, a->rows) == 0);
		fuzz_demand(memcmp(a->value + c * a->stride, b->value + c * b->stride,
				    a->rows * sizeof(*a->value)) == 0);
	}
}

/* Whatever table there is must be written (where there is room) and read back. */
static void
fuzz_round_trip(const struct ls_chunk_table *table)
{
	static uint8_t buf[LS_CHUNK_BODY_MAX_BYTES];
	struct ls_chunk_codec *codec = ls_chunk_codec_new(FUZZ_COLUMNS, FUZZ_ROWS);
	struct ls_chunk_table back;
	size_t len;

	fuzz_demand(codec != NULL);
	fuzz_demand(ls_chunk_encode(codec, table, buf, sizeof(buf), &len) == 0);
	fuzz_demand(ls_chunk_decode(codec, buf, len, &back) == 0);
	fuzz_demand_same(table, &back);
	ls_chunk_codec_free(codec);
}

/* Hostile bytes; with the checksum made right, or only few would be looked at. */
static void
fuzz_decode(const uint8_t *data, size_t size)
{
	struct ls_chunk_codec *codec = ls_chunk_codec_new(FUZZ_COLUMNS, FUZZ_ROWS);
	uint8_t *sealed = malloc(size + 4);
	uint32_t sum = (uint32_t)crc32_z(0, data, size);
	bool wanted[LS_SERIES_PER_GROUP_MAX] = { false };
	struct ls_chunk_table table;
	size_t i;

	for (i = 0; i < LS_SERIES_PER_GROUP_MAX; i++)
		wanted[i] = i % 3 == 1;
	fuzz_demand(codec != NULL && sealed != NULL);
	/* as it came: it must only survive */
	ls_ignore(ls_chunk_decode(codec, data, size, &table));
	memcpy(sealed, data, size);
	for (i = 0; i < 4; i++)
		sealed[size + i] = (uint8_t)(sum >> (8 * i));
	if (ls_chunk_decode(codec, sealed, size + 4, &table) == 0) {
		fuzz_round_trip(&table);
		fuzz_demand(ls_chunk_decode_some(codec, sealed, size + 4, wanted,
				    &table) == 0);
	} else {
		/* likewise */
		ls_ignore(
			ls_chunk_decode_some(codec, sealed, size + 4, wanted, &table));
	}
	ls_chunk_codec_free(codec);
	free(sealed);
}

/* A table of these bytes: rows, then values column by column; a value of all ones is
 * missing. */
static void
fuzz_encode(const uint8_t *data, size_t size)
{
	static double value[FUZZ_MAX / 8];
	static bool present[FUZZ_MAX / 8];
	uint64_t t[FUZZ_ROWS];
	size_t rows = 1 + data[0] % FUZZ_ROWS, cells = (size - 1) / 8, i;
	struct ls_chunk_table table = { rows, cells / rows, rows, t, value, present };

	if (table.columns > FUZZ_COLUMNS)
		table.columns = FUZZ_COLUMNS;
	for (i = 0; i < rows; i++)
		t[i] = i * data[0] * 1000;
	for (i = 0; i < table.columns * rows; i++) {
		uint64_t bits;

		memcpy(&bits, data + 1 + 8 * i, sizeof(bits));
		present[i] = bits != UINT64_MAX;
		bits = present[i] ? bits : 0;
		memcpy(&value[i], &bits, sizeof(bits));
	}
	fuzz_round_trip(&table);
}

/* The first byte says what the rest is. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > FUZZ_MAX)
		return 0;
	if (data[0] == 'e')
		fuzz_encode(data + 1, size - 1);
	else
		fuzz_decode(data + 1, size - 1);
	return 0;
}
