/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/client/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/harness.h"

/* Variables that could leak in from where the tests run. */
static const char *const variables[] = { "LOCKSTEP_JOB", "LOCKSTEP_ATTEMPT",
	"LOCKSTEP_RANK", "LOCKSTEP_WORLD", "LOCKSTEP_ROLE", "LOCKSTEP_SLICE",
	"LOCKSTEP_CHIPS", "LOCKSTEP_HOST", "LOCKSTEP_STEPS_DIR", "JOBSET_NAME",
	"JOBSET_RESTART_ATTEMPT", "REPLICATED_JOB_NAME", "JOB_COMPLETION_INDEX",
	"MEGASCALE_SLICE_ID", "MEGASCALE_NUM_SLICES", "TPU_WORKER_ID",
	"TPU_WORKER_HOSTNAMES", "TPU_CHIPS_PER_HOST_BOUNDS",
	"TPU_CHIPS_PER_PROCESS_BOUNDS", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
	"TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_JOB_NAME", "SLURM_PROCID",
	"SLURM_NTASKS", "SLURM_RESTART_COUNT", "LOCAL_RANK", "TORCHELASTIC_RUN_ID",
	"JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "CLOUD_TPU_TASK_ID",
	"TPU_PROCESS_ADDRESSES", "LWS_WORKER_INDEX", "LWS_GROUP_SIZE",
	"LWS_LEADER_ADDRESS" };

static void
setup(void)
{
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
}

LS_CASE(identity, setup, NULL);

LS_TEST(identity, multislice_jobset_is_understood)
{
	struct ls_client_identity id;

	setenv("JOBSET_NAME", "llama", 1);
	setenv("JOBSET_RESTART_ATTEMPT", "2", 1);
	setenv("REPLICATED_JOB_NAME", "workers", 1);
	setenv("MEGASCALE_NUM_SLICES", "2", 1);
	setenv("MEGASCALE_SLICE_ID", "1", 1);
	setenv("TPU_WORKER_ID", "3", 1);
	setenv("TPU_WORKER_HOSTNAMES", "a,b,c,d", 1);
	setenv("TPU_CHIPS_PER_HOST_BOUNDS", "2,2,1", 1);
	setenv("JOB_COMPLETION_INDEX", "3", 1);
	setenv("RANK", "99", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_str_eq(id.worker.job, "llama");
	ck_assert_int_eq(id.worker.attempt, 2);
	ck_assert_int_eq(id.worker.rank, 7);
	ck_assert_int_eq(id.worker.world, 8);
	ck_assert_str_eq(id.worker.slice, "1");
	ck_assert_str_eq(id.worker.role, "workers");
	ck_assert_int_eq(id.worker.chips, 4);
	ck_assert_uint_eq(id.from[0], LS_RING_FROM_JOBSET);
	ck_assert_uint_eq(id.from[2], LS_RING_FROM_MEGASCALE);
	ck_assert_uint_eq(id.from[6], LS_RING_FROM_TPU);
	/* several processes a host: the worker id names the host, not the process */
	setenv("LOCAL_WORLD_SIZE", "4", 1);
	setenv("RANK", "5", 1);
	setenv("WORLD_SIZE", "16", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_int_eq(id.worker.rank, 5);
	ck_assert_int_eq(id.worker.world, 16);
	ck_assert_uint_eq(id.from[2], LS_RING_FROM_TORCH);
}

/* torch_xla starts several processes a host: TPU_WORKER_ID counts hosts. */
LS_TEST(identity, rank_of_a_part_is_never_the_rank_of_the_job)
{
	struct ls_client_identity id;

	setenv("TPU_WORKER_ID", "1", 1);
	setenv("TPU_WORKER_HOSTNAMES", "a,b", 1);
	setenv("TPU_PROCESS_ADDRESSES", "a:1,a:2,a:3,a:4,b:1,b:2,b:3,b:4", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_uint_eq(id.from[2], LS_RING_FROM_REFUSED);
	setenv("CLOUD_TPU_TASK_ID", "6", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_int_eq(id.worker.rank, 6);
	ck_assert_int_eq(id.worker.world, 8);
	ck_assert_uint_eq(id.from[2], LS_RING_FROM_XLA);
	/* two slices, and nobody says which one this is */
	setenv("MEGASCALE_NUM_SLICES", "2", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_uint_eq(id.from[2], LS_RING_FROM_REFUSED);
	setenv("MEGASCALE_SLICE_ID", "1", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_int_eq(id.worker.rank, 14);
	ck_assert_int_eq(id.worker.world, 16);
	/* beyond what a job can have */
	setenv("CLOUD_TPU_TASK_ID", "65535", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_uint_eq(id.from[2], LS_RING_FROM_REFUSED);
}

LS_TEST(identity, jax_wins_over_the_index_of_a_job)
{
	struct ls_client_identity id;

	setenv("JOB_COMPLETION_INDEX", "0", 1);
	setenv("JAX_PROCESS_ID", "2", 1);
	setenv("JAX_NUM_PROCESSES", "4", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_int_eq(id.worker.rank, 2);
	ck_assert_int_eq(id.worker.world, 4);
	ck_assert_uint_eq(id.from[2], LS_RING_FROM_JAX);
	setenv("LOCKSTEP_RANK", "tcp://10.43.1.40:7118", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_int_eq(id.worker.rank, 2);
	unsetenv("JAX_PROCESS_ID");
	unsetenv("JOB_COMPLETION_INDEX");
	ls_client_identity_resolve(NULL, &id);
	ck_assert_uint_eq(id.from[2], LS_RING_FROM_REFUSED);
}

LS_TEST(identity, slurm_and_torch_are_understood)
{
	struct ls_client_identity id;

	setenv("SLURM_JOB_NAME", "train", 1);
	setenv("SLURM_JOB_ID", "8812", 1);
	setenv("SLURM_PROCID", "5", 1);
	setenv("SLURM_NTASKS", "8", 1);
	setenv("SLURM_RESTART_COUNT", "1", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_str_eq(id.worker.job, "train-8812");
	ck_assert_int_eq(id.worker.rank, 5);
	ck_assert_int_eq(id.worker.world, 8);
	ck_assert_int_eq(id.worker.attempt, 1);
	ck_assert_uint_eq(id.from[2], LS_RING_FROM_SLURM);
	setenv("RANK", "2", 1);
	setenv("WORLD_SIZE", "4", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_int_eq(id.worker.rank, 2);
	ck_assert_uint_eq(id.from[3], LS_RING_FROM_TORCH);
}

LS_TEST(identity, nonsense_in_the_environment_is_passed_over)
{
	struct ls_client_identity id;
	static const char *const bad[] = { "", "x", "-1", "1x", " 1",
		"99999999999999999999", "65536" };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("LOCKSTEP_RANK", bad[i], 1);
		setenv("RANK", "1", 1);
		ls_client_identity_resolve(NULL, &id);
		ck_assert_int_eq(id.worker.rank, 1);
		setenv("TPU_CHIPS_PER_HOST_BOUNDS", bad[i], 1);
		ls_client_identity_resolve(NULL, &id);
		ck_assert_int_eq(id.worker.chips, 0);
	}
	setenv("TPU_CHIPS_PER_HOST_BOUNDS", "4096,4096,4096", 1);
	setenv("RANK", "9", 1);
	setenv("WORLD_SIZE", "4", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_int_eq(id.worker.rank, 9);
	ck_assert_int_eq(id.worker.world, 0); /* contradicts the rank */
	ck_assert_int_eq(id.worker.chips, 0);
	ck_assert_str_eq(id.worker.job, "default");
	ck_assert_uint_eq(id.from[0], LS_RING_FROM_DEFAULT);
}

LS_TEST(identity, names_become_valid_and_fit)
{
	struct ls_client_identity id;
	char longer[400];

	memset(longer, 'x', 126);
	(void)snprintf(longer + 126, sizeof(longer) - 126, "\xc3\xa4\xc3\xa4");
	setenv("LOCKSTEP_JOB", longer, 1);
	setenv("LOCKSTEP_ROLE", "a\x1b[31m\xff\xc2\x85z\xe2\x82", 1);
	setenv("LOCKSTEP_SLICE", "s\nLOCKSTEP_RANK=9", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_uint_eq(strlen(id.worker.job), 126); /* no half character */
	ck_assert_str_eq(id.worker.role, "a_[31m___z__");
	ck_assert_str_eq(id.worker.slice, "s_LOCKSTEP_RANK=9");
	ck_assert_ptr_null(strstr(id.env, "LOCKSTEP_SLICE"));
}

LS_TEST(identity, list_of_more_hosts_than_a_job_can_have_is_no_world)
{
	struct ls_client_identity id;
	char *names = malloc(1000001);

	memset(names, ',', 1000000); /* a million names, and one */
	names[1000000] = '\0';
	setenv("TPU_WORKER_ID", "3", 1);
	setenv("TPU_WORKER_HOSTNAMES", names, 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_int_eq(id.worker.rank, 3);
	ck_assert_int_eq(id.worker.world, 0);
	names[LS_WORKERS_MAX - 1] = '\0';
	setenv("TPU_WORKER_HOSTNAMES", names, 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_int_eq(id.worker.world, LS_WORKERS_MAX);
	free(names);
}

LS_TEST(identity, long_environment_is_left_out)
{
	struct ls_client_identity id;
	char value[LS_RING_ENV_MAX_BYTES + 1];

	memset(value, 'y', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	setenv("TPU_WORKER_HOSTNAMES", value, 1);
	setenv("RANK", "1", 1);
	ls_client_identity_resolve(NULL, &id);
	ck_assert_str_eq(id.env, "RANK=1\n");
}
