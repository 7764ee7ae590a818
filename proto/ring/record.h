/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - one step of one worker, as every part of lockstep passes it on.
 *
 * Owner:   plain data; whoever holds it.
 * Units:   ns. Times are of one clock; which one is said by whoever hands the record
 *          over: the ring and the wire use the host's CLOCK_MONOTONIC, the engine the
 *          collector's wall time.
 * Errors:  ls_record_check: -LS_ERANGE.
 * Limits:  LS_BARRIERS_MAX, LS_WORK_MAX, LS_PEERS_MAX.
 */
#ifndef LS_PROTO_RECORD_H
#define LS_PROTO_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

enum ls_phase {
#define LS_PHASE(id, name, help) LS_PHASE_##id,
#include "proto/ring/phases.def"
#undef LS_PHASE
	LS_PHASE_COUNT
};

enum ls_barrier {
	LS_BARRIER_ICI,
	LS_BARRIER_DCN,
	LS_BARRIER_STAGE,
	LS_BARRIER_OTHER,
	LS_BARRIER_COUNT
};

/* Work done in a step, so that slowness is compared per unit of work. Positions are
 * wire values. */
enum ls_work {
	LS_WORK_TOKENS, /* tokens or samples processed */
	LS_WORK_SUM_SQ_LEN, /* sum of squared sequence lengths (attention cost) */
	LS_WORK_BATCH, /* sequences in the batch */
	LS_WORK_EXPERT_LOAD_MAX, /* largest expert load on this worker */
	LS_WORK_EXPERT_LOAD_MEAN,
	LS_WORK_COUNT
};

/* Where the records of a worker come from. Positions are wire values. */
enum ls_step_source {
	LS_STEP_MARKER, /* marks in the job: a ring */
	LS_STEP_RUNTIME_STATUS, /* inferred from libtpu's GetTpuRuntimeStatus */
	LS_STEP_LOG, /* lines of the job's log */
	LS_STEP_SOURCE_COUNT
};

/* Why a job stands still, as far as live slots tell. Positions are stored values. */
enum ls_hang_why {
	LS_HANG_UNKNOWN, /* nobody waits, or too many are not in the barrier */
	LS_HANG_COLLECTIVE, /* all are in the barrier */
	LS_HANG_ABSENT, /* those named are not in it */
	LS_HANG_SILENT, /* nor heard of */
	LS_HANG_GONE, /* nor alive */
	LS_HANG_WHY_COUNT
};

/* How a worker's process came to its end. Positions are wire and stored values. */
enum ls_end_how {
	LS_END_UNKNOWN,
	LS_END_ENDED, /* its mark of a clean end is there */
	LS_END_CRASHED, /* it is not: crashed or killed */
	LS_END_FAILED, /* its exit hook saw an exception, or a status that is not 0 */
	LS_END_MEMORY, /* the kernel killed in its control group for lack of memory */
	LS_END_HOW_COUNT
};

struct ls_record_barrier {
	uint8_t kind; /* enum ls_barrier */
	int64_t enter_ns, exit_ns;
};

struct ls_record_peer {
	uint32_t rank;
	uint64_t recv_wait_ns, send_wait_ns; /* UINT64_MAX = not measured */
};

struct ls_record {
	uint64_t step;
	int64_t t_begin_ns;
	uint64_t duration_ns;
	/* 0 where the phase was not marked: see phase_mask */
	uint64_t phase_ns[LS_PHASE_COUNT];
	uint32_t phase_mask; /* bit p set: phase p was measured */
	uint8_t barrier_count;
	uint8_t work_mask; /* bit w set: work[w] was given */
	uint8_t peer_count;
	struct ls_record_barrier barrier[LS_BARRIERS_MAX];
	double work[LS_WORK_COUNT];
	struct ls_record_peer peer[LS_PEERS_MAX];
};

/* Who a worker is: one rank of one attempt of a job, on its host. */
struct ls_worker_info {
	char job[LS_JOB_NAME_MAX_BYTES];
	char slice[LS_SLICE_NAME_MAX_BYTES]; /* "" = the only one */
	char host[LS_HOST_NAME_MAX_BYTES];
	/* "" = all the same; up to its first '-': its pipeline stage */
	char role[LS_ROLE_NAME_MAX_BYTES];
	/* rack, cube or block of its host; "" = not known */
	char rack[LS_PLACE_NAME_MAX_BYTES];
	/* of the input, that it reads; "" = not known */
	char shard[LS_PLACE_NAME_MAX_BYTES];
	int32_t attempt; /* from 0 */
	int32_t rank;
	int32_t world; /* 0 = not known */
	int32_t chips; /* driven by this worker; 0 = not known */
	int32_t slices; /* of the job, as its environment says; 0 = not known */
	enum ls_step_source step_source;
	double step_confidence; /* 0 to 1; 0 = marked, or not said */
	/* user of its ring's file, uid + 1; 0 = not known */
	uint32_t owner;
	bool simulated; /* by lockstep-sim: nothing of it was measured */
	/* of a table without times: that all begin a step together is assumed */
	bool assumed;
	/* NAME=value of its environment that is no rank in the job, cut; "" = none */
	char refused_rank[LS_REFUSED_RANK_MAX_BYTES];
};

/* owner of what a second agent under the name of a live host says */
#define LS_OWNER_APART UINT32_MAX

/* Name of a phase, barrier, kind of work, source of steps or reason of a standstill;
 * NULL if out of range. */
const char *ls_phase_name(unsigned phase);
const char *ls_barrier_name(unsigned kind);
const char *ls_work_name(unsigned kind);
const char *ls_step_source_name(unsigned source);
const char *ls_hang_why_name(unsigned why);
const char *ls_end_how_name(unsigned how);

/* Value for a name, or -LS_EUNKNOWN. */
int ls_phase_by_name(const char *name);
int ls_barrier_by_name(const char *name);
int ls_work_by_name(const char *name);
int ls_step_source_by_name(const char *name);
int ls_hang_why_by_name(const char *name);
int ls_end_how_by_name(const char *name);

/*
 * Checks what any source of records must hold: 0 <= times, duration and phases below
 * LS_PHASE_MAX_NS, sum of phases at most the duration (1 % and 1 ms of slack), no time
 * in a phase that is not in phase_mask, barriers inside the step (same slack) with
 * enter <= exit, known kinds, counts within limits, work finite and >= 0, waits on
 * peers below LS_PHASE_MAX_NS or not measured. t_begin + duration then is far from
 * overflow. Returns 0 or -LS_ERANGE; *ret_why (may be NULL) then names the first thing
 * wrong.
 */
int ls_record_check(const struct ls_record *r, const char **ret_why) LS_MUSTCHECK;

#endif
