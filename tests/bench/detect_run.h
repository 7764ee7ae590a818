/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect_run - one simulated job through the engine, in this process, and what came of
 * it against the truth.
 *
 * A finding is right if it is about a fault: it was opened after the fault began, its
 * episode overlaps the fault, and its subject is the fault's (a link: names one of its
 * ends, two hosts at most, or is of kind link and about the job or a slice it is in; a
 * stage: its hosts, or an imbalance of the job). Every other finding is false, info
 * too. A finding about a single host of a slow rack is false: wrong level. What is
 * benign may be found as `periodic`; it need not be.
 *
 * Owner:   the caller's thread.
 * Units:   steps, seconds; CPU time in ns.
 * Errors:  negative codes of sim_world_new; an engine out of memory ends the program.
 * Limits:  DETECT_FINDINGS_MAX findings are told apart, more are counted as false.
 * Source:  what counts as right: facts of the published evaluations (event matching by
 *          entity and overlap).
 */
#ifndef LS_TESTS_DETECT_RUN_H
#define LS_TESTS_DETECT_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include "deploy/demo/sim/world.h"

#define DETECT_FINDINGS_MAX 4096u
#define DETECT_WINDOW 40u /* steps of a window of the other tools' rules */
#define DETECT_NEVER UINT64_MAX

enum detect_rule { DETECT_XPROF, DETECT_NVRX, DETECT_TRACEML, DETECT_RULE_COUNT };

struct detect_run {
	struct sim_world_options world;
	struct sim_fault fault[SIM_FAULTS_MAX];
	size_t faults;
	uint64_t steps; /* in all */
	/* steps after fault 0 began, when it is asked who is first */
	uint64_t deadline;
	bool counters; /* hot values, once a step */
	bool rules; /* the other tools', too */
	/* a line of JSON on stderr for each false finding and each fault that is missed
	 */
	bool wrong;
};

/* What became of one fault. */
struct detect_event {
	bool counts; /* something should be found */
	uint64_t suspect, finding; /* steps from its begin until then; DETECT_NEVER */
	/* of the finding; unexplained is right where nothing tells why */
	bool cause_named, cause_right;
	bool drift; /* it says that the fault came little by little */
	/* truth (of a drift: now, at its end); as the finding says, NaN if it does not
	 */
	double cost_s, cost_found_s;
};

struct detect_result {
	struct detect_event event[SIM_FAULTS_MAX];
	size_t findings, right; /* findings, and those about a fault */
	size_t early; /* of the false ones: before any fault began */
	/* At the deadline, for all n faults: are they the n most blamed workers; among the three most blamed;
	   the n most blamed, and each a suspect or with a finding? */
	bool first, third, named;
	size_t innocent; /* suspects then that no fault concerns */
	size_t flags[DETECT_RULE_COUNT], flags_right[DETECT_RULE_COUNT];
	bool rule_found[DETECT_RULE_COUNT][SIM_FAULTS_MAX];
	uint64_t hosts_steps; /* judged */
	/* CPU: records taken, closed, judged; steps and records made */
	uint64_t engine_ns, world_ns;
};

int detect_run(const struct detect_run *run,
	struct detect_result *ret_result) LS_MUSTCHECK;

#endif
