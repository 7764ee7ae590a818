/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload - what the parts of lockstep-workload share: its options, the fault, the
 * ranks' memory.
 *
 * Owner:   the parent makes them before it forks; each rank writes its own slot of the
 *          shared memory.
 * Units:   ns; CLOCK_MONOTONIC.
 * Errors:  none.
 * Limits:  WORKLOAD_RANKS_MAX, WORKLOAD_LAYERS_MAX, WORKLOAD_HOGS_MAX.
 */
#ifndef LS_TESTS_WORKLOAD_WORKLOAD_H
#define LS_TESTS_WORKLOAD_WORKLOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "proto/limits.h"

#define WORKLOAD_RANKS_MAX 64
#define WORKLOAD_LAYERS_MAX 16
#define WORKLOAD_HOGS_MAX 16
#define WORKLOAD_PATH_BYTES (LS_CONF_VALUE_MAX_BYTES + 32)

struct workload_options {
	int64_t ranks, slices, steps, layers, width, batch, device_ms, seed;
	char job[LS_CONF_VALUE_MAX_BYTES], slow[LS_CONF_VALUE_MAX_BYTES];
	char steps_root[LS_CONF_VALUE_MAX_BYTES], data[LS_CONF_VALUE_MAX_BYTES];
	char report[LS_CONF_VALUE_MAX_BYTES], truth[LS_CONF_VALUE_MAX_BYTES];
	char netns[LS_CONF_VALUE_MAX_BYTES];
	uint64_t hold_ns;
};

enum workload_fault_kind {
	FAULT_NONE,
	FAULT_CPU_HOG,
	FAULT_CPU_QUOTA,
	FAULT_SLOW_INPUT,
	FAULT_PAUSE
};

struct workload_fault {
	enum workload_fault_kind kind;
	int rank;
	int amount; /* processes, percent of a CPU, MiB a step, or ms */
	uint64_t at; /* the step at which it begins */
	uint64_t until; /* and ends; UINT64_MAX: with the job */
};

/* Sums of one rank since its start. */
struct workload_sums {
	uint64_t steps;
	uint64_t elapsed_ns;
	/* as marked: input_wait, compute, sync_wait */
	uint64_t input_ns, work_ns, wait_ns;
	/* /proc/self/schedstat: on a CPU; runnable, without one */
	uint64_t cpu_ns, runqueue_ns;
};

/* A rank's part of the memory shared with the parent. Written by the rank alone. */
struct workload_progress {
	_Atomic uint64_t step; /* the step it is in */
	_Atomic bool has_fault_sums;
	_Atomic bool has_over_sums;
	struct workload_sums at_fault; /* when it saw the fault begin */
	/* and when it saw it end, if it did before the job */
	struct workload_sums at_over;
	struct workload_sums at_end; /* valid after a clean exit */
	/* mean over ranks, of the first and the last ten steps */
	double loss_first, loss_last;
	int ring_rc; /* what lockstep_open said */
};

struct workload_shared {
	/* the parent sets it when the fault begins, and clears it */
	_Atomic bool fault_on;
	_Atomic uint64_t stop_after; /* 0, or the step after which all ranks end */
	struct workload_progress rank[WORKLOAD_RANKS_MAX];
};

/* Parses --slow; -1 with a message in err. A default step is a third of the run (300 if
 * endless). */
int workload_fault_parse(const struct workload_options *o, struct workload_fault *ret,
	char *err, unsigned err_size);

/* Name of a kind of fault. */
const char *workload_fault_name(enum workload_fault_kind kind);

#endif
