/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics - jobs and findings as lines of /metrics.
 *
 * The label of a job is tpu_job: a label named job would collide with the one
 * Prometheus sets. A number that is not known has no line; it is never 0.
 *
 * Owner:   none; pure functions.
 * Units:   base units, in the names.
 * Errors:  out of memory loses lines; evbuffer keeps what it has.
 * Limits:  LS_METRICS_FINDINGS_MAX lines of lockstep_finding_info.
 * Source:  Prometheus text exposition format 0.0.4.
 */
#ifndef LS_WEB_METRICS_H
#define LS_WEB_METRICS_H

#include <jansson.h>
#include <stddef.h>

struct evbuffer;

/* lockstep_job_...: one line a job and number. `jobs` is the backend's array. */
void ls_metrics_jobs(struct evbuffer *out, const json_t *jobs);

/* lockstep_findings and, for the costliest open ones, lockstep_finding_info. */
void ls_metrics_findings(struct evbuffer *out, const json_t *findings);

#endif
