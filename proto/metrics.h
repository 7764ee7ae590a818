/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics - the table of counters (metrics.def) as data.
 *
 * Owner:   none; static const.
 * Units:   in the table; base units only.
 * Errors:  -LS_EUNKNOWN.
 * Limits:  LS_METRICS_MAX metrics, LS_HOT_MAX hot ones (checked by tests).
 */
#ifndef LS_PROTO_METRICS_H
#define LS_PROTO_METRICS_H

#include <stdbool.h>

enum ls_metric {
#define LS_METRIC(id, name, kind, scope, hot, unit, help, source) LS_METRIC_##id,
#include "proto/metrics.def"
#undef LS_METRIC
	LS_METRIC_COUNT
};

enum ls_metric_kind { LS_METRIC_KIND_COUNTER, LS_METRIC_KIND_GAUGE };
enum ls_metric_scope {
	LS_METRIC_SCOPE_HOST,
	LS_METRIC_SCOPE_JOB,
	LS_METRIC_SCOPE_CHIP, /* always with labels: which chip or core */
	LS_METRIC_SCOPE_LINK /* always with labels: which peer or link */
};

struct ls_metric_info {
	const char *name;
	enum ls_metric_kind kind;
	enum ls_metric_scope scope;
	bool hot;
	const char *unit;
	const char *help;
	const char *source;
};

/* The row of a metric; NULL if out of range. */
const struct ls_metric_info *ls_metric_info(unsigned metric);

/* The hot metrics in their order: the one at a place, or LS_METRIC_COUNT; the place of
 * one, or -1. */
unsigned ls_metric_hot(unsigned place);
int ls_metric_hot_place(unsigned metric);

/* A scope by its number: "host", "job", "chip", "link": the first word of its metrics'
 * names. */
const char *ls_metric_scope_name(enum ls_metric_scope scope);

/* Metric by name, or -LS_EUNKNOWN. */
int ls_metric_by_name(const char *name);

#endif
