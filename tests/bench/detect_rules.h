/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect_rules - the straggler rules of three known tools, on the same windows of steps
 * as ours: what bench_detect compares with. Written from what their sources say they
 * do; none of their code.
 *
 * Owner:   pure functions; arrays belong to the caller.
 * Units:   seconds; ratios.
 * Errors:  none. A worker that did not report in the window is NaN and is passed over.
 * Limits:  none.
 * Source:  XProf: BarrierCoresRule (openxla/xprof). NVRx: straggler detection
 *          (NVIDIA/nvidia-resiliency-ext), relative scores over sections. TraceML: the
 *          straggler verdict (traceopt-ai/traceml).
 */
#ifndef LS_TESTS_DETECT_RULES_H
#define LS_TESTS_DETECT_RULES_H

#include <stdbool.h>
#include <stddef.h>

#define RULE_XPROF_Z 3.5
#define RULE_XPROF_MAD_MIN 0.001 /* 0.1 percentage points */
#define RULE_XPROF_HOSTS_MIN 3
#define RULE_NVRX_SCORE 0.75
#define RULE_TRACEML_WARN 0.10
#define RULE_TRACEML_CRITICAL 0.20
#define RULE_TRACEML_STEPS_MIN 20 /* for critical */

/*
 * Modified z of each worker's mean share of the step in barriers; |z| > 3.5 either way
 * is a straggler. scratch: n. Returns how many are flagged.
 */
size_t rule_xprof(const double *wait_ratio, size_t n, double *scratch, bool *ret_flags);

/*
 * Least median own time of all workers over the worker's own; below 0.75 it is a
 * straggler. Collectives are no part of the own time. Returns how many are flagged.
 */
size_t rule_nvrx(const double *own_median_s, size_t n, bool *ret_flags);

enum rule_severity { RULE_QUIET, RULE_WARN, RULE_CRITICAL };

/*
 * The worker that waits least, if the upper median of the others' waits is 10 % (20 %
 * and 20 steps: critical) of that victim's step above its own. scratch: n. *ret_worker
 * is set unless quiet.
 */
enum rule_severity rule_traceml(const double *wait_s, const double *step_s, size_t n,
	size_t steps, double *scratch, size_t *ret_worker);

#endif
