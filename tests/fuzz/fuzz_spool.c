/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/spool/spool.h"
#include "agent/spool/spool_format.h"
#include "proto/base/log.h"
#include "tests/support/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_remove(const char *dir)
{
	static const char *const names[] = { "spool", "spool.damaged", "lock" };
	char path[300];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path); /* not all of them are there */
	}
	if (rmdir(dir) != 0)
		abort();
}

/* Stream two: it takes items and gives them back, those before with their numbers. */
static void
fuzz_chunks(struct ls_spool *s)
{
	static uint8_t buf[LS_SPOOL_CHUNKS_READ_BYTES];
	struct ls_wire_chunk_item lost = { .kind = LS_WIRE_LOST, .samples = 1 };
	struct ls_wire_bytes items[LS_CHUNK_ITEMS_PER_REPORT_MAX];
	uint64_t next = ls_spool_chunks_next(s);
	size_t count;

	if (next <= ls_spool_chunks_acked(s) || ls_spool_push_chunk(s, &lost) != 0 ||
		ls_spool_chunks_next(s) != next + 1)
		abort();
	while (ls_spool_chunks_acked(s) + 1 < ls_spool_chunks_next(s)) {
		if (ls_spool_read_chunks(s, buf, SIZE_MAX, items, &count) != 0 ||
			count == 0)
			abort();
		ls_spool_ack_chunks(s, ls_spool_chunks_acked(s) + count);
	}
	(void)ls_spool_chunk_newest(s, 7);
	if (ls_spool_dictionary_is_waiting(s, 7))
		abort();
}

/* A spool file of any bytes: it opens, takes an item and gives it back. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t buf[LS_REPORT_ITEMS_BYTES];
	const uint8_t kernel[16] = { 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7,
		0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf };
	struct ls_wire_item end = { .kind = LS_WIRE_END, .ring_id = { 1 } };
	struct ls_wire_bytes items[LS_ITEMS_PER_REPORT_MAX];
	struct ls_spool *s = NULL;
	const char *tmp = getenv("TMPDIR");
	char dir[256], path[300];
	size_t count;

	ls_log_set_level(LS_LOG_ERR);
	(void)snprintf(dir, sizeof(dir), "%s/lockstep-fuzz-XXXXXX", tmp ? tmp : "/tmp");
	if (mkdtemp(dir) == NULL)
		abort();
	(void)snprintf(path, sizeof(path), "%s/spool", dir);
	seal_write(path, data, size, LS_SPOOL_RECORD_BYTES);
	if (ls_spool_open(dir, LS_SPOOL_MIN_BYTES, kernel, &s) != 0)
		abort();
	if (ls_spool_next(s) <= ls_spool_acked(s))
		abort();
	if (ls_spool_push(s, &end) == 0 && end.seq + 1 != ls_spool_next(s))
		abort();
	if (ls_spool_read(s, buf, sizeof(buf), items, LS_ITEMS_PER_REPORT_MAX,
		    &count) != 0)
		abort();
	ls_spool_ack(s, ls_spool_next(s) - 1);
	fuzz_chunks(s);
	ls_spool_close(s);
	fuzz_remove(dir);
	return 0;
}
