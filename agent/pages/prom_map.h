/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prom_map - which samples of a Prometheus page are taken, and what they are called
 * here.
 *
 * A rule is a line: `FROM TO [*SCALE] [LABEL[:chip|:index]]...`. It takes samples of
 * that name; of histograms and summaries also FROM_sum, FROM_count and FROM_bucket, of
 * counters FROM_total. SCALE makes base units of the page's. Of its labels only those
 * named are kept, and `le` and `quantile`. With :chip or :index what is behind the last
 * - of the value is the number of a chip, in the slice or on the host. `FROM -` leaves
 * a name out. A line of one * takes all else as it is, with all labels. # begins a
 * comment.
 *
 * Owner:   made once, then only read.
 * Units:   a rule gives base units.
 * Errors:  -errno of the file, -LS_EPARSE, -LS_ELIMIT.
 * Limits:  LS_PROM_RULES_MAX rules, LS_PROM_KEEP_MAX labels a rule.
 * Source:  built-in rules: prom_map.c; README.md of this folder, "Pages and logs".
 */
#ifndef LS_AGENT_PROM_MAP_H
#define LS_AGENT_PROM_MAP_H

#include "agent/pages/prom_text.h"

enum ls_prom_id {
	LS_PROM_ID_NONE,
	LS_PROM_ID_CHIP, /* number in the slice */
	LS_PROM_ID_INDEX /* number on this host */
};

struct ls_prom_rule {
	char from[LS_SERIES_NAME_MAX_BYTES];
	char to[LS_SERIES_NAME_MAX_BYTES]; /* "" leaves it out */
	double scale;
	size_t keep_count;
	struct {
		char name[LS_PROM_KEEP_NAME_MAX_BYTES];
		enum ls_prom_id id;
	} keep[LS_PROM_KEEP_MAX];
};

/* A sample that is taken. */
struct ls_prom_taken {
	const struct ls_prom_rule *rule; /* NULL: taken as it is, with all labels */
	char name[LS_SERIES_NAME_MAX_BYTES];
	double value;
	double le_scale; /* of the bounds of buckets */
};

struct ls_prom_map;

/*
 * Reads the rules of a file ("": none); the built-in ones come behind them. ret_why (of
 * why_bytes) says what is wrong and where.
 */
int ls_prom_map_new(const char *file, struct ls_prom_map **ret_map, char *ret_why,
	size_t why_bytes) LS_MUSTCHECK;
void ls_prom_map_free(struct ls_prom_map *m);

/* Is the sample taken, and as what? */
bool ls_prom_map_take(const struct ls_prom_map *m, const struct ls_prom_sample *s,
	struct ls_prom_taken *ret_taken);

#endif
