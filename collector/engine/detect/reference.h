/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference - what is usual of each worker, kept for the next life of the collector: the baselines
 * of detect.h, and whom scales.h names, by how much. Windows, sums and evidence are not in it: the steps that are read back rebuild them.
 *
 *     ls_engine_reference -> bytes -> (storage) -> ls_engine_reference_load -> here
 *
 * And for the next attempt of a job: what was usual of a host in a role (scales.h), and whether it was named. The host keeps it,
 * whichever rank and slot it gets, and while it is away. It is not told in another role, or where the
 * residual or the unit of scales.h is another. It outlives the collector, too.
 *
 * Owner:   the engine's thread.
 * Units:   those of detect.h.
 * Errors:  none here.
 * Limits:  LS_HOST_PAST jobs and roles of a host are kept. 120 bytes a worker, a job, and a host in a role. Values that no worker can
 *          have are as if nothing were kept of it.
 * Source:  derivation: what detect.h has learned of a worker does not depend on who learned it.
 */
#ifndef LS_COLLECTOR_REFERENCE_H
#define LS_COLLECTOR_REFERENCE_H

#include "collector/engine/engine_state.h"

#define LS_REFERENCE_VALUES 13 /* of a job or a worker, in reference.def */

/* Before the first step of a job (read back, or new): loads what was usual of the job and its workers. Not if the steps begin with the attempt: then
 * they teach more. */
void ls_reference_job(const struct ls_engine *e, struct ls_job *j, uint64_t step);

/* Names the workers again that were named when it was kept, once `step` is newer than all steps known then (UINT64_MAX: no more are read back). Of
 * earlier steps the windows know more. */
void ls_reference_names(const struct ls_engine *e, struct ls_job *j, uint64_t step);

/* The same of a worker that comes later, or of another host now, and what was usual of its host in an
 * earlier attempt. */
void ls_reference_worker(const struct ls_engine *e, struct ls_job *j,
	const struct ls_engine_worker *w);

/* How a job was measured before a restart, whatever its attempt: then what was usual of its hosts compares. */
void ls_reference_shape(const struct ls_engine *e, struct ls_job *j);

/* The workers of an attempt are about to be forgotten: their hosts keep what was usual of them. */
void ls_reference_keep(struct ls_engine *e, const struct ls_job *j);

#endif
