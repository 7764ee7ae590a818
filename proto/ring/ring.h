/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring - layout of a step ring file, and the one door for its bytes on the reading
 * side.
 *
 * A training process writes one ring file; the agent reads it with pread.
 * Little-endian. Layout (also in proto/FORMAT.md with a byte example):
 *
 *   0     header page, LS_RING_HEADER_BYTES
 *         0  magic "LSRING01"   8 u32 version  12 u32 header_bytes  16 u32 slot_bytes  20 u32 slots
 *         24 ring id (16 random bytes)         40 kernel boot id (16)
 *         56 u64 created, CLOCK_MONOTONIC ns   64 i64 created, CLOCK_REALTIME ns
 *         72 u32 pid (information only: from another pid namespace, never to be trusted)
 *         76 u32 flags: LS_RING_ENDED after a clean end, LS_RING_FAILED after a failure
 *         80 i32 attempt  84 i32 rank  88 i32 world  92 i32 chips
 *         96 u8 provenance[8]: of job, attempt, rank, world, role, slice, chips, host (enum ls_ring_from)
 *         104 job[128] 232 slice[64] 296 role[64] 360 host[128]  NUL-terminated UTF-8
 *         512 env[LS_RING_ENV_MAX_BYTES]: whitelisted environment, "KEY=VALUE\n"..., NUL-terminated
 *         3072 live slot: u64 sequence (odd while written) u64 step  u32 phase  u32 0  u64 since ns
 *              u64 sequence again
 *         3136 u64 head: records written so far; record i (from 0) is in slot i % slots
 *   4096  slots of LS_RING_SLOT_BYTES
 *         0 u64 index: i + 1 when complete, 0 while it is written   8 u64 step
 *         16 i64 t_begin ns  24 u64 duration ns
 *         32 u8 barrier_count  33 u8 work_mask  34 u8 peer_count  35 u8 0  36 u8 barrier_kind[4]
 *         40 u32 phase_mask  44 u32 0  48 u64 phase_ns[11]  136 {i64 enter, i64 exit} [4]
 *         200 f64 work[6]  248 {u32 rank, u32 recv_wait us, u32 send_wait us, u32 0} [4]
 *         312 u64 index again
 *
 * peers: UINT32_MAX us = not measured. The writer holds a POSIX write lock (fcntl) on
 * byte 0. "again" words are written first and their twins last: copied upwards while
 * the writer is at work, a slot in which the two agree is whole. The head grows after
 * its record is complete. A reader must accept larger header_bytes and slot_bytes of
 * the same version: fields are added at the end.
 *
 * Owner:   pure functions on bytes; the caller owns the buffers.
 * Units:   ns of the host's CLOCK_MONOTONIC.
 * Errors:  -LS_EPARSE not a ring or impossible sizes, -LS_EVERSION, -LS_ESTALE slot
 *          overwritten, -LS_ERANGE impossible values (*ret_why says which).
 * Limits:  LS_RING_SLOTS_MAX.
 */
#ifndef LS_PROTO_RING_H
#define LS_PROTO_RING_H

#include <stddef.h>
#include <stdint.h>
#include "proto/ring/record.h"

#define LS_RING_MAGIC "LSRING01"
#define LS_RING_VERSION 1
#define LS_RING_HEADER_BYTES 4096u
#define LS_RING_SLOT_BYTES 320u
#define LS_RING_ENV_OFFSET 512u
#define LS_RING_LIVE_OFFSET 3072u
#define LS_RING_HEAD_OFFSET 3136u
#define LS_RING_ID_BYTES 16
#define LS_RING_ENDED 1u
#define LS_RING_FAILED 2u /* its exit hook saw an exception or a status that is not 0 */

enum ls_ring_from {
	LS_RING_FROM_NONE,
	LS_RING_FROM_API, /* lockstep_open(&opts) */
	LS_RING_FROM_LOCKSTEP, /* LOCKSTEP_* */
	LS_RING_FROM_JOBSET,
	LS_RING_FROM_MEGASCALE,
	LS_RING_FROM_TPU, /* TPU_WORKER_ID */
	LS_RING_FROM_TORCH, /* RANK, WORLD_SIZE */
	LS_RING_FROM_SLURM,
	LS_RING_FROM_DEFAULT,
	LS_RING_FROM_JAX, /* JAX_PROCESS_ID, jax.process_index() */
	LS_RING_FROM_MPI, /* Open MPI, MPICH */
	LS_RING_FROM_XLA, /* CLOUD_TPU_TASK_ID of torch_xla */
	LS_RING_FROM_LWS, /* LeaderWorkerSet; for a name also torchrun */
	LS_RING_FROM_REFUSED, /* rank: a variable is set, but tells no rank in the job */
	LS_RING_FROM_COUNT
};

struct ls_ring_header {
	uint32_t header_bytes, slot_bytes, slots, flags, pid;
	uint8_t id[LS_RING_ID_BYTES];
	uint8_t boot_id[16];
	uint64_t created_mono_ns;
	int64_t created_wall_ns;
	struct ls_worker_info worker;
	uint8_t from[8];
	char env[LS_RING_ENV_MAX_BYTES];
	uint64_t head;
};

struct ls_ring_live {
	uint64_t step;
	uint32_t phase; /* enum ls_phase; LS_PHASE_COUNT = between steps */
	uint64_t since_mono_ns;
};

/* Reads and checks a header page of len bytes. */
int ls_ring_parse_header(const uint8_t *bytes, size_t len,
	struct ls_ring_header *ret_header, const char **ret_why) LS_MUSTCHECK;

/*
 * Reads the live slot from a header page. -LS_ESTALE if it was read while the writer
 * was in it (read again at the next beat), -LS_ERANGE for an unknown phase.
 */
int ls_ring_parse_live(const uint8_t *bytes, size_t len,
	struct ls_ring_live *ret_live) LS_MUSTCHECK;

/* Reads record `index` (from 0) from the bytes of its slot and checks it
 * (ls_record_check). */
int ls_ring_parse_slot(const uint8_t *bytes, size_t len, uint64_t index,
	struct ls_record *ret_record, const char **ret_why) LS_MUSTCHECK;

#endif
