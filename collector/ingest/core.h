/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core - what the collector knows: the parts that reports, restoring and answers share.
 *
 * Owner:   the loop thread; the parts belong to whoever made them.
 * Units:   none.
 * Errors:  none.
 * Limits:  those of the parts.
 */
#ifndef LS_COLLECTOR_CORE_H
#define LS_COLLECTOR_CORE_H

#include "collector/engine/engine.h"
#include "collector/ingest/dictionaries.h"
#include "collector/ingest/fleet.h"
#include "collector/ingest/outbox.h"
#include "collector/ingest/rings.h"
#include "collector/ingest/session.h"
#include "collector/ingest/zoom.h"
#include "storage/write/writer.h"

struct ls_core {
	struct ls_writer *writer;
	struct ls_outbox *outbox;
	struct ls_engine *engine;
	struct ls_sessions *sessions;
	struct ls_rings *rings;
	struct ls_dictionaries *dictionaries;
	struct ls_fleet *fleet;
	struct ls_zoom *zoom;
};

#endif
