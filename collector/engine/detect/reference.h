/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference - what is usual of each worker, kept for the next life of the collector: the baselines
 * of detect.h. Windows, sums and evidence are not in it: the steps that are read back rebuild them.
 *
 *     ls_engine_reference -> bytes -> (storage) -> ls_engine_reference_load -> here
 *
 * Owner:   the engine's thread.
 * Units:   those of detect.h.
 * Errors:  none here.
 * Limits:  LS_REFERENCE_VALUES and a key, so 96 bytes a worker and a job. Values that no worker can
 *          have are as if nothing were kept of it.
 * Source:  derivation: what detect.h has learned of a worker does not depend on who learned it.
 */
#ifndef LS_COLLECTOR_REFERENCE_H
#define LS_COLLECTOR_REFERENCE_H

#include "collector/engine/engine_state.h"

#define LS_REFERENCE_VALUES 11 /* of a job or a worker, in reference.def */

/* Before the first step of a job that is read back: what was usual of it and of its workers. If all
 * steps of its attempt are read back, they teach more. */
void ls_reference_job(const struct ls_engine *e, struct ls_job *j, uint64_t step);

/* The same of a worker that comes later. */
void ls_reference_worker(const struct ls_engine *e, struct ls_job *j,
	const struct ls_engine_worker *w);

#endif
