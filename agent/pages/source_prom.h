/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_prom - pages in Prometheus' text format, of servers on this host: the GKE
 * device plugin, Orbax, and whatever the configuration names.
 *
 * Each page is asked for every LS_PROM_INTERVAL_NS, and every LS_PROM_ABSENT_NS where
 * nobody listens: that is no error, and nothing is logged until a page was there once.
 * A page that does not come in time, makes no sense, or is frozen, is not measured
 * (prom_page.h).
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   base units, by the map (prom_map.h); ns, CLOCK_MONOTONIC.
 * Errors:  -LS_EPARSE, -LS_ELIMIT, -errno: logged, with what is wrong.
 * Limits:  LS_PROM_PAGES_MAX pages of LS_PROM_PAGE_MAX_BYTES, LS_PROM_DEADLINE_NS each.
 */
#ifndef LS_AGENT_SOURCE_PROM_H
#define LS_AGENT_SOURCE_PROM_H

#include "agent/pages/prom_page.h"
#include "agent/collect/source.h"

struct ls_loop;

/*
 * Makes the source. pages: NAME=URL[,NAME=URL...], "" for none; map: a file of rules,
 * "" for the built-in ones alone (prom_map.h). Loop and table are borrowed.
 */
int ls_source_prom_new(struct ls_loop *loop, struct ls_series_table *table,
	const char *pages, const char *map, struct ls_source *ret_source) LS_MUSTCHECK;

/* Checks both options without making anything of them; on failure ret_why says which
 * and what. */
int ls_source_prom_check(const char *pages, const char *map, char *ret_why,
	size_t why_bytes) LS_MUSTCHECK;

/* Says how many steps the jobs of this host have made so far: a page may be still while
 * nothing steps. */
void ls_source_prom_stepped(const struct ls_source *source, uint64_t steps);

/* For --once: no page is waited for. */
bool ls_source_prom_is_settled(const struct ls_source *source);

/* The i-th page, NULL beyond the last. */
const struct ls_prom_page *ls_source_prom_page(const struct ls_source *source,
	size_t i);

#endif
