/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention - what of the engine deserves a closer look now: hosts of open findings and
 * of suspects, each with peers of the same role to compare with.
 *
 * Owner:   the engine's thread. Pure.
 * Units:   ratios.
 * Errors:  none.
 * Limits:  LS_ZOOM_PEERS beside each; as many as the caller has room for, of suspects
 *          the nearest 64.
 */
#ifndef LS_COLLECTOR_ATTENTION_H
#define LS_COLLECTOR_ATTENTION_H

#include "collector/engine/engine.h"

/* A host that deserves a closer look; in order of weight. */
struct ls_attention_want {
	char host[LS_HOST_NAME_MAX_BYTES];
	char job[LS_JOB_NAME_MAX_BYTES];
	char cause[48]; /* "finding F-7Q2K", "suspect", "peer of HOST" (cut) */
};

/* Fills wants, findings first, then suspects, the nearest to a finding first; each host
 * once. Returns how many. */
size_t ls_attention(const struct ls_engine *e, struct ls_attention_want *wants,
	size_t max);

#endif
