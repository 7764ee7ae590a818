/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finding_json - a finding as JSON: what people read, what storage keeps, and what the engine goes on with after a restart.
 *
 * The engine knows no JSON: it holds that of each finding (`json`) for whoever reads it, and asks the functions of its sink for it.
 *
 * Owner:   the engine's thread.
 * Units:   seconds, microseconds since the epoch, chips, chip-hours.
 * Errors:  -LS_EPARSE, -LS_EDUPLICATE, -LS_ELIMIT, -ENOMEM.
 * Limits:  LS_FINDING_HOSTS_MAX, LS_FINDING_EPISODES_MAX.
 * Source:  proto/FORMAT.md, "Finding", schema version 1.
 */
#ifndef LS_COLLECTOR_FINDING_JSON_H
#define LS_COLLECTOR_FINDING_JSON_H

#include <jansson.h>
#include "collector/engine/engine.h"
#include "collector/engine/finding/finding.h"

/* A sink that makes JSON, and wants to hear of nothing. */
extern const struct ls_engine_sink ls_finding_sink;

/*
 * Builds f->json anew; -ENOMEM leaves the old one. Of a finding not diagnosed since a restart of the collector or job, only what can have changed.
 */
int ls_finding_render(struct ls_finding *f) LS_MUSTCHECK;

/* Frees f->json. */
void ls_finding_forget(struct ls_finding *f);

/* Reads back what ls_finding_render wrote, known as of then. -LS_EPARSE. */
int ls_finding_parse(const json_t *json, struct ls_finding *ret_finding) LS_MUSTCHECK;

/*
 * Seeds a finding from storage, before any record: keeps its id, onset, cost so far and state. Records fed again from before
 * its last update change nothing in it. In order of opening. -LS_EPARSE if it is not one of ours, -LS_EDUPLICATE, -LS_ELIMIT.
 */
int ls_finding_seed(struct ls_engine *e, const json_t *finding) LS_MUSTCHECK;

/*
 * All findings in order of opening, cleared ones too; of more than LS_FINDINGS_MAX
 * those cleared first are forgotten (counted: findings_dropped). New reference to an
 * array. NULL: out of memory.
 */
json_t *ls_finding_all(const struct ls_engine *e);

#endif
