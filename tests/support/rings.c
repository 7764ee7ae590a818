/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/rings.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/client/lockstep.h"
#include "tests/support/harness.h"

static const char *const rings_leaks[] = { "LOCKSTEP_JOB", "LOCKSTEP_ATTEMPT",
	"LOCKSTEP_RANK", "LOCKSTEP_WORLD", "LOCKSTEP_ROLE", "LOCKSTEP_SLICE",
	"LOCKSTEP_CHIPS", "LOCKSTEP_HOST", "JOBSET_NAME", "JOBSET_RESTART_ATTEMPT",
	"REPLICATED_JOB_NAME", "JOB_COMPLETION_INDEX", "MEGASCALE_SLICE_ID",
	"MEGASCALE_NUM_SLICES", "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES",
	"TPU_CHIPS_PER_HOST_BOUNDS", "TPU_CHIPS_PER_PROCESS_BOUNDS", "RANK",
	"WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID",
	"SLURM_JOB_NAME", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_RESTART_COUNT" };

void
rings_init(struct rings *r)
{
	size_t i;

	for (i = 0; i < sizeof(rings_leaks) / sizeof(rings_leaks[0]); i++)
		unsetenv(rings_leaks[i]);
	memset(r, 0, sizeof(*r));
	(void)snprintf(r->dir, sizeof(r->dir), "%s", ls_test_tmpdir());
	setenv("LOCKSTEP_STEPS_DIR", r->dir, 1);
}

void
rings_fini(struct rings *r)
{
	free(r->bytes);
	r->bytes = NULL;
}

int
rings_count(struct rings *r, const char *suffix)
{
	DIR *d = opendir(r->dir);
	struct dirent *e;
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL) {
		size_t len = strlen(e->d_name), tail = strlen(suffix);

		if (e->d_name[0] == '.' || len < tail ||
			strcmp(e->d_name + len - tail, suffix) != 0)
			continue;
		n++;
		(void)snprintf(r->path, sizeof(r->path), "%s/%s", r->dir, e->d_name);
	}
	closedir(d);
	return n;
}

void
rings_load(struct rings *r)
{
	const char *why = NULL;

	ck_assert_int_eq(rings_count(r, ".tmp"), 0);
	ck_assert_int_eq(rings_count(r, ".ring"), 1);
	free(r->bytes);
	r->bytes = (uint8_t *)ls_test_read(r->path, &r->len);
	ck_assert_int_eq(ls_ring_parse_header(r->bytes, r->len, &r->header, &why), 0);
	ck_assert_uint_eq(r->len,
		r->header.header_bytes +
			(size_t)r->header.slots * r->header.slot_bytes);
}

struct ls_record
rings_record(const struct rings *r, uint64_t index)
{
	const struct ls_ring_header *h = &r->header;
	const uint8_t *at =
		r->bytes + h->header_bytes + index % h->slots * h->slot_bytes;
	struct ls_record record;
	const char *why = "";
	int rc = ls_ring_parse_slot(at, h->slot_bytes, index, &record, &why);

	ck_assert_msg(rc == 0, "record %llu: %d %s", (unsigned long long)index, rc,
		why);
	return record;
}

void
rings_step(uint64_t n)
{
	lockstep_step_begin(n);
	lockstep_phase(LOCKSTEP_INPUT_WAIT);
	lockstep_phase(LOCKSTEP_COMPUTE);
	lockstep_sync_enter(LOCKSTEP_BARRIER_ICI);
	lockstep_sync_exit();
	lockstep_step_end();
}
