/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view - what the engine knows now, as the JSON that API, page and command line show.
 *
 * Shapes (schema version 1) are in web/README.md. Numbers that are not known are null.
 *
 * Owner:   the engine's thread.
 * Units:   in the names: _s seconds, _at RFC 3339 UTC.
 * Errors:  -LS_EUNKNOWN no such job or finding, -ENOMEM.
 * Limits:  LS_PAGE_MAX items, LS_GRID_ROWS_MAX, LS_GRID_COLS_MAX; of hosts that say what cannot be, the worst LS_LIARS_SHOWN.
 */
#ifndef LS_COLLECTOR_VIEW_H
#define LS_COLLECTOR_VIEW_H

#include <jansson.h>
#include "collector/engine/engine.h"

enum ls_grid_metric { LS_GRID_BLAME, LS_GRID_WAIT, LS_GRID_OWN, LS_GRID_METRIC_COUNT };

#define LS_LIARS_SHOWN 16

/* Name of a grid metric ("blame" "wait" "own"), NULL if out of range. */
const char *ls_grid_metric_name(unsigned metric);

/* What workers are sorted by: what is not measured is last. */
enum ls_view_sort {
	LS_VIEW_BY_SUSPICION, /* nearest to a finding first, then most blame */
	LS_VIEW_BY_HOST,
	LS_VIEW_BY_STATE,
	LS_VIEW_BY_BLAME,
	LS_VIEW_BY_OWN,
	LS_VIEW_BY_WAIT,
	LS_VIEW_BY_INPUT,
	LS_VIEW_BY_LATENESS,
	LS_VIEW_BY_SLOWEST
};

struct ls_view_hosts {
	const char *host; /* only this one; NULL: all */
	const char *match; /* only names that hold this, in any case; NULL: all */
	enum ls_view_sort sort;
	bool descending;
	size_t after; /* number of the last one of the page before; 0: none */
	size_t limit;
};

/* Findings that are asked for; NULL or "": all. */
struct ls_view_findings {
	const char *job, *host, *status, *severity, *kind;
	const char *after; /* id of the last one of the page before */
	size_t limit;
};

struct ls_view_range {
	uint64_t from, to; /* steps, inclusive; 0..UINT64_MAX = all */
	size_t limit; /* the newest `limit` are given */
};

/*
 * Pages {"items":[...],"next":key}: next is the key of the last item, if there are more
 * after it, else null. -LS_EUNKNOWN: the job or finding `after` is not there (any more).
 */
/* Jobs, most chips lost first; from `after` (a name; "": the first) on. */
int ls_view_jobs(const struct ls_engine *e, const char *after, size_t limit,
	int64_t now_us, json_t **ret_page) LS_MUSTCHECK;

/* Findings, newest first. */
int ls_view_findings(const struct ls_engine *e, const struct ls_view_findings *ask,
	json_t **ret_page) LS_MUSTCHECK;

/* One job. */
int ls_view_job(const struct ls_engine *e, const char *job, int64_t now_us,
	json_t **ret_job) LS_MUSTCHECK;

/* The job's workers; beside the page "count", of all pages. */
int ls_view_hosts(const struct ls_engine *e, const char *job,
	const struct ls_view_hosts *ask, int64_t now_us,
	json_t **ret_page) LS_MUSTCHECK;

/* Array of closed steps, oldest first; with host != NULL, of that host's records. */
int ls_view_steps(const struct ls_engine *e, const char *job, const char *host,
	const struct ls_view_range *range, json_t **ret_array) LS_MUSTCHECK;

/*
 * One closed step that is still held: the records of its workers by rank, `limit` of
 * them from the skip-th on, as the object of web/README.md, "Stored step".
 * -LS_EUNKNOWN: it is not held (any more).
 */
int ls_view_step(const struct ls_engine *e, const char *job, uint64_t step, size_t skip,
	size_t limit, json_t **ret_step) LS_MUSTCHECK;

/* Heatmap, hosts by steps: see web/README.md, "Grid". */
int ls_view_grid(const struct ls_engine *e, const char *job, enum ls_grid_metric metric,
	const struct ls_view_range *range, size_t rows, size_t cols,
	json_t **ret_grid) LS_MUSTCHECK;

/* Host of the job's i-th worker; NULL: it has no more. */
const char *ls_view_host_of(const struct ls_engine *e, const char *job, size_t i);

/* One finding by id. */
int ls_view_finding(const struct ls_engine *e, const char *id,
	json_t **ret_finding) LS_MUSTCHECK;

#endif
