/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/ring/ring_events.h"

#include <string.h>
#include "proto/base/bytes.h"
#include "proto/base/text.h"

enum { AT_MEASURED = 0, AT_COUNTER = 8, AT_FUNCTION = 128, COUNTERS_ROOM = 15 };
enum { FUNCTION_COMPILES = 0, FUNCTION_NS = 8, FUNCTION_NAME = 16 };

#define FUNCTION_BYTES (FUNCTION_NAME + LS_RING_FUNCTION_NAME_MAX_BYTES)

_Static_assert((int)LS_RING_EVENT_COUNT <= (int)COUNTERS_ROOM,
	"every counter has its place");
_Static_assert(AT_COUNTER + 8 * COUNTERS_ROOM == AT_FUNCTION,
	"counters fill their room");
_Static_assert(AT_FUNCTION + LS_RING_FUNCTIONS_MAX * FUNCTION_BYTES <=
		LS_RING_EVENTS_BYTES,
	"functions fit");
_Static_assert(LS_RING_EVENTS_OFFSET + LS_RING_EVENTS_BYTES <= LS_RING_HEADER_MAX_BYTES,
	"the block is part of the header");

enum ls_metric
ls_ring_event_metric(enum ls_ring_event event, double *ret_unit)
{
	static const struct {
		enum ls_metric metric;
		double unit;
	} table[] = {
#define LS_RING_EVENT(id, metric, unit, help) { LS_METRIC_##metric, unit },
#include "proto/ring/ring_events.def"
#undef LS_RING_EVENT
	};

	LS_ASSERT((unsigned)event < LS_RING_EVENT_COUNT);
	*ret_unit = table[event].unit;
	return table[event].metric;
}

/* Reads one function; false if it was never compiled. */
static bool
events_function(const uint8_t *p, struct ls_ring_events *e)
{
	const char *name = (const char *)p + FUNCTION_NAME;
	struct ls_ring_function *f = &e->function[e->function_count];
	size_t len = strnlen(name, LS_RING_FUNCTION_NAME_MAX_BYTES);

	f->compiles = ls_bytes_get(p + FUNCTION_COMPILES, 8);
	f->ns = ls_bytes_get(p + FUNCTION_NS, 8);
	if (f->compiles == 0)
		return false;
	if (len == 0 || len == LS_RING_FUNCTION_NAME_MAX_BYTES ||
		!ls_text_is_name(name, len, LS_RING_FUNCTION_NAME_MAX_BYTES - 1)) {
		e->bad_names++;
		return false;
	}
	memcpy(f->name, name, len);
	memset(f->name + len, 0, sizeof(f->name) - len);
	return true;
}

int
ls_ring_parse_events(const uint8_t *bytes, size_t len,
	struct ls_ring_events *ret_events)
{
	struct ls_ring_events e = { 0 };
	uint64_t measured;

	if (len < LS_RING_EVENTS_BYTES)
		return -LS_EPARSE;
	measured = ls_bytes_get(bytes + AT_MEASURED, 8);
	for (unsigned i = 0; i < LS_RING_EVENT_COUNT; i++) {
		e.measured[i] = (measured >> i & 1) != 0;
		e.counter[i] =
			e.measured[i] ? ls_bytes_get(bytes + AT_COUNTER + 8 * i, 8) : 0;
	}
	for (unsigned i = 0; i < LS_RING_FUNCTIONS_MAX; i++) {
		if (events_function(bytes + AT_FUNCTION + (size_t)i * FUNCTION_BYTES,
			    &e))
			e.function_count++;
	}
	*ret_events = e;
	return 0;
}
