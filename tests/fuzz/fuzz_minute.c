/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/spool/chunk_writer.h"
#include "agent/spool/minute_file.h"
#include "proto/base/log.h"
#include "tests/support/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_remove(const char *dir)
{
	static const char *const names[] = { "spool", "minute", "lock" };
	char path[300];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path); /* not all of them are there */
	}
	if (rmdir(dir) != 0)
		abort();
}

/* What comes out of the spool is what a collector takes. */
static void
fuzz_take(struct ls_spool *spool)
{
	static uint8_t buf[LS_SPOOL_CHUNKS_READ_BYTES];
	struct ls_wire_bytes items[LS_CHUNK_ITEMS_PER_REPORT_MAX];
	struct ls_wire_chunk_item item;
	const char *why;
	size_t count, i;

	while (ls_spool_chunks_acked(spool) + 1 < ls_spool_chunks_next(spool)) {
		if (ls_spool_read_chunks(spool, buf, SIZE_MAX, items, &count) != 0 ||
			count == 0)
			abort();
		for (i = 0; i < count; i++) {
			if (ls_wire_chunk_item_unpack(items[i].data, items[i].len,
				    &item, &why) != 0)
				abort();
			ls_wire_chunk_item_clear(&item);
		}
		ls_spool_ack_chunks(spool, ls_spool_chunks_acked(spool) + count);
	}
}

/* A minute file of any bytes: it is sealed or said to be lost, and goes on with rows.
 */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t kernel[16] = { 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7,
		0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf };
	struct ls_series_table *table = ls_series_new();
	struct ls_chunk_writer *writer = NULL;
	struct ls_spool *spool = NULL;
	const char *tmp = getenv("TMPDIR");
	char dir[256], path[300];
	int group, handle;

	ls_log_set_level(LS_LOG_ERR);
	(void)snprintf(dir, sizeof(dir), "%s/lockstep-fuzz-XXXXXX", tmp ? tmp : "/tmp");
	if (table == NULL || mkdtemp(dir) == NULL)
		abort();
	(void)snprintf(path, sizeof(path), "%s/minute", dir);
	seal_write(path, data, size, LS_MINUTE_RECORD_BYTES);
	if (ls_spool_open(dir, LS_SPOOL_MIN_BYTES, kernel, &spool) != 0 ||
		ls_chunk_writer_new(dir, kernel, spool, table, 1, &writer) != 0)
		abort();
	fuzz_take(spool);
	group = ls_series_group(table, "g");
	handle = group >= 0 ? ls_series_add(table, (size_t)group, "x", "") : -1;
	ls_series_set(table, handle, 1);
	ls_series_read(table, (size_t)group, 5);
	ls_chunk_writer_seal(writer);
	if (ls_spool_chunks_next(spool) - ls_spool_chunks_acked(spool) != 3)
		abort(); /* a dictionary and a chunk */
	fuzz_take(spool);
	ls_chunk_writer_free(writer);
	ls_spool_close(spool);
	ls_series_free(table);
	fuzz_remove(dir);
	return 0;
}
