/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention - what of the engine deserves a closer look now: hosts of open findings and of suspects,
 * each with peers of the same role to compare with.
 *
 * Owner:   the engine's thread. Pure.
 * Units:   none.
 * Errors:  none.
 * Limits:  LS_ZOOM_PEERS beside each; as many as the caller has room for.
 */
#ifndef LS_COLLECTOR_ATTENTION_H
#define LS_COLLECTOR_ATTENTION_H

#include "collector/engine/engine.h"
#include "collector/zoom.h"

/* Fills wants, findings first; each host once. Returns how many. */
size_t ls_attention(const struct ls_engine *e, struct ls_zoom_want *wants, size_t max);

#endif
