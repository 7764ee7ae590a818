/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lies - hosts that say what cannot be: counted by reason (lies.def), and named in the
 * data quality of their jobs.
 *
 * Impossible data is not judged, so it blames nobody. But its host may also send data that is wrong yet possible, so people should know.
 *
 * Owner:   the engine.
 * Units:   counts since the engine began; they are not stored.
 * Errors:  none.
 * Limits:  LS_LIE_COUNT numbers a host.
 */
#ifndef LS_COLLECTOR_LIES_H
#define LS_COLLECTOR_LIES_H

#include "collector/engine/engine_state.h"

/* A host, by its number, said so many things that cannot be. */
void ls_lies_add(struct ls_engine *e, uint32_t host, enum ls_lie why, uint64_t count);

#endif
