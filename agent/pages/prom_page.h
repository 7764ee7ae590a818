/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prom_page - one Prometheus page as a group of series, and whether it can be believed.
 *
 *     ABSENT --a page with names of the map--> GOOD <--something changed-- FROZEN
 *       ^                                    |  ^ |                           ^
 *       |          no page, or no sense      v  | +--nothing changes ---------+
 *       +------gone for 60 readings------- FAILED (a page again)
 *
 * Frozen: a page whose server goes on telling the last values it had. Each series has a
 *         liveliness: the
 * share of its readings in which it had changed. A page is frozen when nothing on it
 * has changed for LS_PROM_FROZEN_READINGS readings in which the job stepped, and so
 * many changes were to be expected (the sum of liveliness x readings is at least 20:
 * chance would do it once in e^20). So a total that never changes counts for nothing,
 * and a page of such totals is never called frozen. While a page is frozen or failed
 * its values are not measured, and host.source.stale is 1.
 *
 * Owner:   the agent loop thread. Not thread-safe. Reads no clock.
 * Units:   base units, by the map; ns, CLOCK_MONOTONIC.
 * Errors:  what the parser says (prom_text.h).
 * Limits:  LS_PROM_SERIES_MAX series; what finds no room is counted.
 */
#ifndef LS_AGENT_PROM_PAGE_H
#define LS_AGENT_PROM_PAGE_H

#include "agent/collect/doctor.h"
#include "agent/pages/prom_map.h"
#include "agent/collect/series.h"

enum ls_prom_state { LS_PROM_ABSENT, LS_PROM_GOOD, LS_PROM_FROZEN, LS_PROM_FAILED };

/* Of the last page read. */
struct ls_prom_page_stats {
	/* odd: the number of its chip makes no sense */
	uint64_t samples, taken, left, twins, refused, odd;
};

struct ls_prom_page;

/* A page of this name; its group is "prom.NAME". NULL when out of memory. Table and map
 * are borrowed. */
struct ls_prom_page *ls_prom_page_new(struct ls_series_table *table,
	const struct ls_prom_map *map, const char *name);
void ls_prom_page_free(struct ls_prom_page *p);

/*
 * Takes a page that was read now. stepped: the job made a step since the last one. The
 * parser's error; the page then counts as failed.
 */
int ls_prom_page_take(struct ls_prom_page *p, const char *text, size_t len,
	bool stepped, uint64_t now_mono_ns) LS_MUSTCHECK;

/* There was no page: why is kept for the doctor. */
void ls_prom_page_fail(struct ls_prom_page *p, const char *why, uint64_t now_mono_ns);

/* What is thought of it, why it failed last, and what was on it. */
enum ls_prom_state ls_prom_page_state(const struct ls_prom_page *p);
const char *ls_prom_page_why(const struct ls_prom_page *p);
const struct ls_prom_page_stats *ls_prom_page_get_stats(const struct ls_prom_page *p);

/* How many readings in a row brought nothing new while the job stepped. */
unsigned ls_prom_page_silent(const struct ls_prom_page *p);

#endif
