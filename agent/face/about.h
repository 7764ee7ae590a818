/* SPDX-License-Identifier: Apache-2.0 */
/*
 * about - what the agent tells of itself and of what it measures now: metrics, series,
 * doctor.
 *
 * Owner:   the agent loop thread; reads the parts, changes nothing.
 * Units:   base units; ns, CLOCK_MONOTONIC.
 * Errors:  out of memory loses lines of text; NULL for JSON.
 * Limits:  those of the parts; series are written one by one, so that no large object
 *          is made.
 */
#ifndef LS_AGENT_ABOUT_H
#define LS_AGENT_ABOUT_H

#include <jansson.h>
#include "agent/budget.h"
#include "agent/collect/doctor.h"
#include "agent/options.h"
#include "agent/sources.h"
#include "agent/spool/disk.h"
#include "agent/spool/spool.h"
#include "agent/uplink/uplink.h"

struct evbuffer;

/* The parts of a running agent, borrowed. */
struct ls_about_parts {
	const struct ls_agent_config *config;
	const struct ls_sources *sources;
	const struct ls_spool *spool;
	const struct ls_uplink *uplink;
	const struct ls_budget *budget;
	struct ls_disk *disk[LS_DISK_COUNT]; /* NULL: none */
	uint64_t now_mono_ns, started_mono_ns;
	uint64_t sample_interval_ns; /* in force */
	uint64_t http_requests, http_refused;
};

/* Appends /metrics. */
void ls_about_metrics(const struct ls_about_parts *p, struct evbuffer *out);

/* Appends all series now: {"schema_version":1,"items":[{group,text,value,unit,age_s}]}.
 */
void ls_about_series(const struct ls_about_parts *p, struct evbuffer *out);

/* Asks every source and part. */
void ls_about_doctor(const struct ls_about_parts *p, struct ls_doctor *d);

/* The doctor's object, with who says it; NULL when out of memory. */
json_t *ls_about_doctor_json(const struct ls_about_parts *p);

/* Who this host is and which chips it has, with the source of each field; NULL when out
 * of memory. */
json_t *ls_about_identity(const struct ls_about_parts *p);

/*
 * True if the agent does what it is there for: connected, or keeping what it measures.
 * why: why not, or what is wrong all the same; else it stays as it is.
 */
bool ls_about_ready(const struct ls_about_parts *p, char *why, size_t size);

#endif
