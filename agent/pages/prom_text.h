/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prom_text - reads the text exposition format of Prometheus.
 *
 * A page goes in, samples come out line by line. Beside format 0.0.4 it takes
 * what OpenMetrics adds to lines: exemplars, time stamps with fractions, `# EOF`, `#
 * UNIT`. The first line that makes no sense ends the page: half a page would look like
 * series that vanished.
 *
 * Owner:   the caller's struct. Pure: no clock, nothing allocated.
 * Units:   as the page says.
 * Errors:  -LS_EPARSE, -LS_ELIMIT; `line` and `why` then say where and what.
 * Limits:  LS_PROM_LINE_MAX_BYTES a line (comments may be longer), LS_PROM_LABELS_MAX
 *          labels a sample, LS_PROM_NAME_MAX_BYTES a name, LS_PROM_SAMPLES_MAX samples
 *          a page.
 * Source:  prometheus.io, Instrumenting, "Exposition formats", text-based format 0.0.4;
 *          OpenMetrics 1.0 (draft-ietf-opsawg-openmetrics), "Text format".
 */
#ifndef LS_AGENT_PROM_TEXT_H
#define LS_AGENT_PROM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

enum ls_prom_type {
	LS_PROM_UNTYPED, /* "untyped", "unknown", or no TYPE line before it */
	LS_PROM_COUNTER,
	LS_PROM_GAUGE,
	LS_PROM_HISTOGRAM,
	LS_PROM_SUMMARY,
	LS_PROM_OTHER /* types of OpenMetrics: info, stateset, gaugehistogram */
};

struct ls_prom_label {
	const char *name, *value; /* the value without its escapes: any bytes but NUL */
};

/* One sample; what it points to holds during the call. */
struct ls_prom_sample {
	const char *name;
	/* of its family: also of name_sum, name_count, name_bucket, name_total */
	enum ls_prom_type type;
	size_t label_count;
	const struct ls_prom_label *label;
	double value; /* NaN and infinities as they come */
	uint64_t line; /* from 1 */
};

/* Told of each sample of a page, in their order. */
typedef void ls_prom_each(void *arg, const struct ls_prom_sample *s);

struct ls_prom_text {
	ls_prom_each *each;
	void *arg;
	uint64_t line; /* the last one read, from 1; after an error: the bad one */
	const char *why; /* after an error; static text */
	uint64_t samples;
	bool ended; /* behind # EOF */
	enum ls_prom_type type;
	char family[LS_PROM_NAME_MAX_BYTES]; /* of the last TYPE line */
	char text[LS_PROM_LINE_MAX_BYTES + 1];
	struct ls_prom_label label[LS_PROM_LABELS_MAX];
};

/*
 * Reads a page: calls each for every sample before the first error. A last line without
 * its newline is still a line.
 */
int ls_prom_text_read(struct ls_prom_text *p, const char *text, size_t len,
	ls_prom_each *each, void *arg) LS_MUSTCHECK;

#endif
