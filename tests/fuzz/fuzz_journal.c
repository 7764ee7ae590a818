/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "storage/columns/journal.h"
#include "storage/read/span.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_MAX = 65536, FUZZ_HEADER = 16 };

static void
fuzz_demand(int holds)
{
	if (!holds)
		abort();
}

/* What was read can be put, or ids and items would not be as promised. */
static int
fuzz_copy(void *arg, const struct ls_journal_entry *e)
{
	switch (e->kind) {
	case LS_JOURNAL_STEPS:
		return ls_journal_put_steps(arg, e->id, e->t_us, &e->u.item);
	case LS_JOURNAL_HOT:
		return ls_journal_put_hot(arg, e->id, e->t_us, &e->u.counters);
	case LS_JOURNAL_AGENT:
		return ls_journal_put_agent(arg, &e->u.agent);
	case LS_JOURNAL_RING:
		return ls_journal_put_ring(arg, &e->u.ring);
	case LS_JOURNAL_KIND_COUNT:
		break;
	}
	abort();
}

/* The same of positions alone. */
static int
fuzz_position(void *arg, const struct ls_journal_entry *e)
{
	return e->kind == LS_JOURNAL_AGENT || e->kind == LS_JOURNAL_RING
		? fuzz_copy(arg, e)
		: 0;
}

/* Who asks for positions alone gets those that are there. */
static void
fuzz_positions(const uint8_t *body, size_t len)
{
	struct ls_journal a = { 0 }, b = { 0 };

	fuzz_demand(ls_journal_read(body, len, fuzz_position, &a) == 0);
	fuzz_demand(ls_journal_seal(&a) == 0);
	fuzz_demand(ls_journal_read_positions(body, len, fuzz_copy, &b) == 0);
	fuzz_demand(ls_journal_seal(&b) == 0);
	fuzz_demand(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
	ls_journal_fini(&a);
	ls_journal_fini(&b);
}

static void
fuzz_again(const uint8_t *body, size_t len)
{
	struct ls_journal a = { 0 }, b = { 0 };

	fuzz_demand(ls_journal_read(body, len, fuzz_copy, &a) == 0);
	fuzz_demand(ls_journal_seal(&a) == 0);
	fuzz_demand(ls_journal_read(a.data, a.len, fuzz_copy, &b) == 0);
	fuzz_demand(ls_journal_seal(&b) == 0);
	fuzz_demand(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
	ls_journal_fini(&a);
	ls_journal_fini(&b);
}

static int
fuzz_event(void *arg, const struct ls_store_event *e)
{
	int64_t *last = arg;

	fuzz_demand(e->id >= *last);
	*last = e->id;
	return 0;
}

/* Hostile bytes; with header and checksum made right, or only few would be looked at.
 */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ls_span span;
	uint8_t *body;
	int64_t last = 0;
	uint32_t sum;
	size_t i;
	int rc;

	if (size < FUZZ_HEADER || size > FUZZ_MAX)
		return 0;
	fuzz_demand(ls_span_init(&span) == 0);
	/* as it came: it must only survive */
	ls_ignore(ls_span_load_journal(&span, data, size));
	ls_span_reset(&span);
	body = malloc(size);
	fuzz_demand(body != NULL);
	memcpy(body, data, size);
	memcpy(body, "LSJ\1", 4);
	for (i = 0; i < 4; i++)
		body[12 + i] = (uint8_t)(size >> (8 * i));
	sum = (uint32_t)crc32_z(0, body + 8, size - 8);
	for (i = 0; i < 4; i++)
		body[4 + i] = (uint8_t)(sum >> (8 * i));
	rc = ls_span_load_journal(&span, body, size);
	ls_span_sort(&span);
	fuzz_demand(ls_span_give(&span, 0, INT64_MAX, fuzz_event, &last) == 0);
	if (rc == 0) {
		fuzz_again(body, size);
		fuzz_positions(body, size);
	}
	ls_span_fini(&span);
	free(body);
	return 0;
}
