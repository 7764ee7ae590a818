/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/self.h"

#include <event2/buffer.h>
#include "proto/base/expose.h"

#define SELF_PREFIX "lockstep_collector_"

/* A family of one line for each of `count` kinds. */
static void
self_kinds(struct evbuffer *out, const char *name, const char *type, const char *label,
	const char *help, const char *(*kind)(unsigned), const uint64_t *values,
	unsigned count)
{
	ls_expose_family(out, name, type, help);
	for (unsigned i = 0; i < count; i++)
		(void)evbuffer_add_printf(out, "%s{%s=\"%s\"} %llu\n", name, label,
			kind(i), (unsigned long long)values[i]);
}

void
ls_self_metrics(const struct ls_self *s, struct evbuffer *out)
{
#define LS_SELF(name, type, value, help) \
	ls_expose_number(out, SELF_PREFIX name, type, help, (double)(value));
#include "collector/self.def"
#undef LS_SELF
	self_kinds(out, SELF_PREFIX "drops_total", "counter", "reason",
		"what was rejected, by reason", ls_intake_drop_name, s->intake.drops,
		LS_INTAKE_DROP_COUNT);
	self_kinds(out, SELF_PREFIX "not_believed_total", "counter", "reason",
		"impossible data from hosts, by reason: not used by the engine",
		ls_lie_name, s->engine.lies, LS_LIE_COUNT);
	self_kinds(out, SELF_PREFIX "connections_refused_total", "counter", "reason",
		"connections rejected before a report, by reason",
		ls_ingest_refusal_name, s->ingest.refused, LS_INGEST_REFUSED_COUNT);
	self_kinds(out, SELF_PREFIX "sessions", "gauge", "state", "agents by state",
		ls_session_state_name, s->sessions.count, LS_SESSION_STATE_COUNT);
}
