/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent - puts the parts together: sources, sampler, spool and uplink on one loop.
 *
 *     step rings ─┐
 *     host ───────┼─> sampler ─┬─> spool ─> uplink ─> collector
 *     workers ────┘            └─> hot values ─┘
 *
 * Owner:   the thread that calls ls_agent_run.
 * Units:   ns, bytes.
 * Errors:  what the parts return; what an operator must act on is also logged here.
 * Limits:  LS_DRAIN_NS to send what is pending at the end.
 */
#ifndef LS_AGENT_AGENT_H
#define LS_AGENT_AGENT_H

#include <jansson.h>
#include "agent/options.h"

/*
 * Runs until SIGTERM or SIGINT, after which what is pending gets LS_DRAIN_NS to be
 * sent. SIGHUP reads the configuration of argc and argv again and takes over what may
 * change. 0 after an orderly end.
 */
int ls_agent_run(const struct ls_agent_config *config, int argc,
	char **argv) LS_MUSTCHECK;

/*
 * Reads all sources once: what is measured here. An object with every metric, null
 * where it is not measured, and the workers found. Touches neither spool nor network.
 */
int ls_agent_once(const struct ls_agent_config *config,
	json_t **ret_object) LS_MUSTCHECK;

struct ls_doctor;

/*
 * Reads all sources once and asks them and the rest what works here, for who has no
 * running agent. Touches no spool; connects to the collector for a moment.
 */
int ls_agent_doctor(const struct ls_agent_config *config,
	struct ls_doctor *ret_doctor) LS_MUSTCHECK;

#endif
