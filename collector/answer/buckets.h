/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buckets - values of a series over a range of time: as they are, or least, greatest,
 * mean and number a bucket, so that no peak is lost when there are more values than are
 * asked for.
 *
 * Buckets begin at whole multiples of their step since the epoch, so that neighbouring
 * questions meet.
 *
 * Owner:   pure; a line belongs to its caller.
 * Units:   microseconds since the epoch; values in the unit of the series.
 * Errors:  -ENOMEM; -LS_ELIMIT more values than LS_QUERY_POINTS_MAX; -LS_ERANGE a range
 *          that is none.
 * Limits:  LS_QUERY_POINTS_MAX buckets or values of a line.
 */
#ifndef LS_COLLECTOR_BUCKETS_H
#define LS_COLLECTOR_BUCKETS_H

#include <stddef.h>
#include <stdint.h>
#include "collector/history/json_out.h"

#define LS_STEP_AUTO (-1)
#define LS_STEP_RAW 0

/* The time asked for, cut up. */
struct ls_range {
	int64_t from_us, to_us; /* inclusive, as asked */
	int64_t step_us; /* 0: values as they are */
	int64_t begin_us; /* of the first bucket: at or before from_us */
	size_t count; /* of buckets; 0: values as they are */
};

struct ls_bucket {
	double min, max, sum;
	uint64_t count; /* 0: nothing was measured */
};

struct ls_point {
	int64_t t_us;
	double value;
};

/* One series: buckets if the range has any, else points. */
struct ls_line {
	struct ls_bucket *bucket;
	struct ls_point *point;
	size_t point_count, capacity;
};

/* What of a bucket. */
enum ls_agg { LS_AGG_MEAN, LS_AGG_MIN, LS_AGG_MAX, LS_AGG_COUNT, LS_AGG_KINDS };

/* Name of it ("mean" "min" "max" "count"), NULL if out of range. */
const char *ls_agg_name(unsigned agg);

/*
 * Cuts [from_us, to_us] into buckets of step_s seconds (LS_STEP_RAW: none).
 * LS_STEP_AUTO chooses: the least step of a clock's face, at least min_step_s, that
 * gives at most LS_QUERY_POINTS_DEFAULT. -LS_ERANGE, -LS_ELIMIT: too many buckets.
 */
int ls_range_cut(int64_t from_us, int64_t to_us, int64_t step_s, int64_t min_step_s,
	struct ls_range *ret_range) LS_MUSTCHECK;

/* An empty line. */
int ls_line_init(struct ls_line *l, const struct ls_range *range) LS_MUSTCHECK;
void ls_line_fini(struct ls_line *l);

/* Adds a value; in buckets, what is no finite number or outside of the range counts in
 * none; as a point it is null. */
int ls_line_add(struct ls_line *l, const struct ls_range *range, int64_t t_us,
	double value) LS_MUSTCHECK;

/* What of it; NaN if it was not measured. */
double ls_bucket_value(const struct ls_bucket *b, enum ls_agg agg);

/* Puts points in order of time: back-filled ones come late. */
void ls_line_sort(struct ls_line *l);

/* Members of an object: "mean":[...] for each agg whose bit is set; or "at_s" and
 * "value" of points. */
void ls_line_json(const struct ls_line *l, const struct ls_range *range, unsigned aggs,
	struct ls_json_out *o);

/* Members of an object: from, to, step_s, begin, count. */
void ls_range_json(const struct ls_range *range, struct ls_json_out *o);

#endif
