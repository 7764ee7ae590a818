/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity - who this training process is: options, then environment, with the source
 * of each field.
 *
 * For each field the first source that gives a valid value wins:
 *
 *   lockstep_open options, LOCKSTEP_*,
 *   job:     JOBSET_NAME; SLURM_JOB_NAME "-" SLURM_JOB_ID; TORCHELASTIC_RUN_ID, but "none";
 *            name of the pod in LWS_LEADER_ADDRESS; "default"
 *   attempt: JOBSET_RESTART_ATTEMPT; TORCHELASTIC_RESTART_COUNT; SLURM_RESTART_COUNT; 0
 *   rank, world: the rules of python/lockstep/launchers.def, in their order; rank 0, REFUSED
 *            if a variable is set that tells no rank in the whole job; world not known
 *   role:    REPLICATED_JOB_NAME; none
 *   slice:   MEGASCALE_SLICE_ID; none
 *   chips:   product of TPU_CHIPS_PER_PROCESS_BOUNDS or of TPU_CHIPS_PER_HOST_BOUNDS; not known
 *   host:    gethostname(2)
 *
 * Owner:   pure but for getenv(3) and gethostname(2); called when a ring is opened,
 *          never in a mark.
 * Units:   none.
 * Errors:  none: a value that is no number or out of range is passed over, a name is
 *          made valid.
 * Limits:  the sizes of struct ls_worker_info; LS_RING_ENV_MAX_BYTES of environment.
 * Source:  launchers.def.
 */
#ifndef LS_CLIENT_IDENTITY_H
#define LS_CLIENT_IDENTITY_H

#include "agent/client/lockstep.h"
#include "proto/ring/ring.h"

struct ls_client_identity {
	struct ls_worker_info worker;
	/* enum ls_ring_from of job, attempt, rank, world, role, slice, chips, host */
	uint8_t from[8];
	char env[LS_RING_ENV_MAX_BYTES]; /* whitelisted environment, "KEY=VALUE\n"... */
};

/* Fills *ret from the options (may be NULL) and the environment. */
void ls_client_identity_resolve(const struct lockstep_options *options,
	struct ls_client_identity *ret);

#endif
