/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show - findings in words, the same for status, findings, explain and replay.
 *
 * Any field may be null or absent: then it is said not to be measured or known, and
 * never shown as 0.
 *
 * Owner:   the only thread; writes to stdout.
 * Units:   as in web/README.md.
 * Errors:  none.
 * Limits:  none.
 */
#ifndef LS_WEB_CLI_SHOW_H
#define LS_WEB_CLI_SHOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ls_term;

/*
 * One line a finding, costliest first, at most `most`; *worst is raised to the worst
 * severity.
 */
void ls_show_findings(struct ls_term *t, const json_t *items, size_t most, int *worst);

/* One line: the finding. */
void ls_show_finding(struct ls_term *t, const json_t *finding);

/* Workers that hold the others up, and have no finding yet. */
void ls_show_suspects(struct ls_term *t, const json_t *job);

/* That there is no open finding, and how much was looked at to say so. */
void ls_show_none(struct ls_term *t, const json_t *job);

/* The whole explanation; `server` is for the link. */
void ls_show_explanation(struct ls_term *t, const json_t *finding, const char *server);

#endif
