/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_trace - rows of an operation trace put in order: operation by worker, times
 * side by side.
 *
 * A job runs the same operations in every step and in every data-parallel rank ("dp"),
 * so what differs is only their times. An operation (type, stage, number) has one row
 * of times, a lane for each step and dp. A worker is one dp of one stage.
 *
 * Owner:   the caller; filled once. ls_whatif_answer changes duration_s.
 * Units:   seconds.
 * Errors:  -LS_EPARSE for what is missing, twice or contradictory, -ENOMEM; the error
 *          says which line.
 * Limits:  LS_WHATIF_ROWS_MAX rows; dp_count and stage_count as the caller checked
 *          them.
 * Source:  proto/FORMAT.md, "Operation trace".
 */
#ifndef LS_COLLECTOR_WHATIF_WHATIF_TRACE_H
#define LS_COLLECTOR_WHATIF_WHATIF_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

enum ls_whatif_optype {
#define LS_OPTYPE(id, name, part, reference, waits) LS_WHATIF_##id,
#include "collector/whatif/optypes.def"
#undef LS_OPTYPE
	LS_WHATIF_OPTYPES
};

/* No operation. */
#define LS_WHATIF_NONE UINT32_MAX

/* What is wrong, and in which line of the file; 0: in none of them. */
struct ls_whatif_error {
	uint64_t line;
	char text[200];
};

/* One row of the file. dp and stage are below the counts given. */
struct ls_whatif_row {
	int64_t step, rank;
	double start_s, duration_s;
	uint32_t dp, stage, seq, line;
	enum ls_whatif_optype type;
};

struct ls_whatif_op {
	enum ls_whatif_optype type;
	uint32_t stage, seq;
};

struct ls_whatif_trace {
	uint32_t dp_count, stage_count, step_count, op_count;
	/* step_count x dp_count; lane = step x dp_count + dp */
	size_t lane_count;
	int64_t *steps; /* their numbers, ascending */
	int64_t *ranks; /* by worker: stage x dp_count + dp */
	struct ls_whatif_op *ops; /* by stage, type, number */
	/* by stage x LS_WHATIF_OPTYPES + type: where its operations begin in ops; one
	 * more at the end */
	uint32_t *base;
	double *start_s, *duration_s; /* op x lane_count + lane */
};

/* The name of an operation type as files have it; and the type of a name, or
 * LS_WHATIF_OPTYPES. */
const char *ls_whatif_type_name(enum ls_whatif_optype type);
enum ls_whatif_optype ls_whatif_type_find(const char *name);

/* How many operations of a type a stage has; and the operation of a number, or
 * LS_WHATIF_NONE. */
uint32_t ls_whatif_count(const struct ls_whatif_trace *t, uint32_t stage,
	enum ls_whatif_optype type);
uint32_t ls_whatif_op(const struct ls_whatif_trace *t, uint32_t stage,
	enum ls_whatif_optype type, uint32_t seq);

/* Writes what is wrong; returns -LS_EPARSE. */
int ls_whatif_bad(struct ls_whatif_error *error, uint64_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Puts rows (any order; they stay the caller's) in order. The first step of dp 0 says
 * which operations there are; every other step and dp must have the same ones, once.
 */
int ls_whatif_trace_new(const struct ls_whatif_row *rows, size_t row_count,
	uint32_t dp_count, uint32_t stage_count, struct ls_whatif_trace **ret_trace,
	struct ls_whatif_error *ret_error) LS_MUSTCHECK;
void ls_whatif_trace_free(struct ls_whatif_trace *t);

#endif
