/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/self.h"

#include <event2/buffer.h>

#define SELF_PREFIX "lockstep_collector_"

static void
self_family(struct evbuffer *out, const char *name, const char *type, const char *help)
{
	(void)evbuffer_add_printf(out,
		"# HELP " SELF_PREFIX "%s %s\n# TYPE " SELF_PREFIX "%s %s\n", name,
		help, name, type); /* lost when out of memory */
}

static void
self_number(struct evbuffer *out, const char *name, const char *type, const char *help,
	double v)
{
	self_family(out, name, type, help);
	(void)evbuffer_add_printf(out, SELF_PREFIX "%s %.17g\n", name, v);
}

void
ls_self_metrics(const struct ls_self *s, struct evbuffer *out)
{
	unsigned i;

#define LS_SELF(name, type, value, help) \
	self_number(out, name, type, help, (double)(value));
#include "collector/self.def"
#undef LS_SELF
	self_family(out, "drops_total", "counter", "what was rejected, by reason");
	for (i = 0; i < LS_INTAKE_DROP_COUNT; i++)
		(void)evbuffer_add_printf(out,
			SELF_PREFIX "drops_total{reason=\"%s\"} %llu\n",
			ls_intake_drop_name(i), (unsigned long long)s->intake.drops[i]);
	self_family(out, "not_believed_total", "counter",
		"impossible data from hosts, by reason: not used by the engine");
	for (i = 0; i < LS_LIE_COUNT; i++)
		(void)evbuffer_add_printf(out,
			SELF_PREFIX "not_believed_total{reason=\"%s\"} %llu\n",
			ls_lie_name(i), (unsigned long long)s->engine.lies[i]);
	self_family(out, "connections_refused_total", "counter",
		"connections rejected before a report, by reason");
	for (i = 0; i < LS_INGEST_REFUSED_COUNT; i++)
		(void)evbuffer_add_printf(out,
			SELF_PREFIX "connections_refused_total{reason=\"%s\"} %llu\n",
			ls_ingest_refusal_name(i),
			(unsigned long long)s->ingest.refused[i]);
	self_family(out, "sessions", "gauge", "agents by state");
	for (i = 0; i < LS_SESSION_STATE_COUNT; i++)
		(void)evbuffer_add_printf(out,
			SELF_PREFIX "sessions{state=\"%s\"} %llu\n",
			ls_session_state_name(i),
			(unsigned long long)s->sessions.count[i]);
}
