/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/ring/record.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define RECORD_SLACK_NS 1000000u

static const char *const record_phases[LS_PHASE_COUNT] = {
#define LS_PHASE(id, name, help) name,
#include "proto/ring/phases.def"
#undef LS_PHASE
};

static const char *const record_barriers[LS_BARRIER_COUNT] = {
	[LS_BARRIER_ICI] = "ici",
	[LS_BARRIER_DCN] = "dcn",
	[LS_BARRIER_STAGE] = "stage",
	[LS_BARRIER_OTHER] = "other",
};

static const char *const record_works[LS_WORK_COUNT] = {
	[LS_WORK_TOKENS] = "tokens",
	[LS_WORK_SUM_SQ_LEN] = "sum_sq_len",
	[LS_WORK_BATCH] = "batch",
	[LS_WORK_EXPERT_LOAD_MAX] = "expert_load_max",
	[LS_WORK_EXPERT_LOAD_MEAN] = "expert_load_mean",
};

static const char *const record_step_sources[LS_STEP_SOURCE_COUNT] = {
	[LS_STEP_MARKER] = "marker",
	[LS_STEP_RUNTIME_STATUS] = "runtime_status",
	[LS_STEP_LOG] = "log",
};

static const char *const record_hang_whys[LS_HANG_WHY_COUNT] = {
	[LS_HANG_UNKNOWN] = "unknown",
	[LS_HANG_COLLECTIVE] = "collective",
	[LS_HANG_ABSENT] = "absent",
	[LS_HANG_SILENT] = "silent",
	[LS_HANG_GONE] = "gone",
};

static const char *const record_end_hows[LS_END_HOW_COUNT] = {
	[LS_END_UNKNOWN] = "unknown",
	[LS_END_ENDED] = "ended",
	[LS_END_CRASHED] = "crashed",
	[LS_END_FAILED] = "failed",
	[LS_END_MEMORY] = "out_of_memory",
};

static int
record_by_name(const char *const *names, int count, const char *name)
{
	for (int i = 0; name != NULL && i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -LS_EUNKNOWN;
}

const char *
ls_phase_name(unsigned phase)
{
	return phase < LS_PHASE_COUNT ? record_phases[phase] : NULL;
}

const char *
ls_barrier_name(unsigned kind)
{
	return kind < LS_BARRIER_COUNT ? record_barriers[kind] : NULL;
}

const char *
ls_work_name(unsigned kind)
{
	return kind < LS_WORK_COUNT ? record_works[kind] : NULL;
}

const char *
ls_step_source_name(unsigned source)
{
	return source < LS_STEP_SOURCE_COUNT ? record_step_sources[source] : NULL;
}

const char *
ls_hang_why_name(unsigned why)
{
	return why < LS_HANG_WHY_COUNT ? record_hang_whys[why] : NULL;
}

const char *
ls_end_how_name(unsigned how)
{
	return how < LS_END_HOW_COUNT ? record_end_hows[how] : NULL;
}

int
ls_phase_by_name(const char *name)
{
	return record_by_name(record_phases, LS_PHASE_COUNT, name);
}

int
ls_barrier_by_name(const char *name)
{
	return record_by_name(record_barriers, LS_BARRIER_COUNT, name);
}

int
ls_work_by_name(const char *name)
{
	return record_by_name(record_works, LS_WORK_COUNT, name);
}

int
ls_step_source_by_name(const char *name)
{
	return record_by_name(record_step_sources, LS_STEP_SOURCE_COUNT, name);
}

int
ls_hang_why_by_name(const char *name)
{
	return record_by_name(record_hang_whys, LS_HANG_WHY_COUNT, name);
}

int
ls_end_how_by_name(const char *name)
{
	return record_by_name(record_end_hows, LS_END_HOW_COUNT, name);
}

/* What clocks and rounding may put between two readings that ought to agree. */
static uint64_t
record_slack_ns(const struct ls_record *r)
{
	return r->duration_ns / 100 + RECORD_SLACK_NS;
}

/* Each checker returns what is wrong, or NULL. This one first: it bounds the sums of
 * the others. */
static const char *
record_check_times(const struct ls_record *r)
{
	if (r->t_begin_ns < 0)
		return "t_begin is negative";
	if (r->duration_ns >= LS_PHASE_MAX_NS)
		return "duration is too long";
	if (r->t_begin_ns > INT64_MAX - 2 * (int64_t)LS_PHASE_MAX_NS)
		return "t_begin is too late";
	return NULL;
}

static const char *
record_check_phases(const struct ls_record *r)
{
	uint64_t sum = 0, stray = 0;

	if (r->phase_mask >> LS_PHASE_COUNT != 0)
		return "unknown phase in phase_mask";
	for (uint32_t left = r->phase_mask; left != 0; left &= left - 1) {
		uint64_t ns = r->phase_ns[__builtin_ctz(left)];

		if (ns >= LS_PHASE_MAX_NS)
			return "a phase is too long";
		sum += ns;
	}
	for (uint32_t left = ~r->phase_mask & ((1u << LS_PHASE_COUNT) - 1); left != 0;
		left &= left - 1)
		stray |= r->phase_ns[__builtin_ctz(left)];
	if (stray != 0)
		return "a phase has time but is not in phase_mask";
	if (sum > r->duration_ns + record_slack_ns(r))
		return "phases add up to more than the duration";
	return NULL;
}

static const char *
record_check_barriers(const struct ls_record *r)
{
	int64_t slack = (int64_t)record_slack_ns(r);
	int64_t first = r->t_begin_ns - slack;
	int64_t last = r->t_begin_ns + (int64_t)r->duration_ns + slack;

	if (r->barrier_count > LS_BARRIERS_MAX)
		return "too many barriers";
	for (unsigned b = 0; b < r->barrier_count; b++) {
		const struct ls_record_barrier *barrier = &r->barrier[b];

		if (barrier->kind >= LS_BARRIER_COUNT)
			return "unknown kind of barrier";
		if (barrier->enter_ns < 0)
			return "a barrier's time is negative";
		if (barrier->enter_ns > barrier->exit_ns)
			return "a barrier was left before it was entered";
		if (barrier->enter_ns < first || barrier->exit_ns > last)
			return "a barrier lies outside the step";
	}
	return NULL;
}

static const char *
record_check_work(const struct ls_record *r)
{
	if (r->work_mask >> LS_WORK_COUNT != 0)
		return "unknown kind of work in work_mask";
	for (unsigned w = 0; w < LS_WORK_COUNT; w++)
		if ((r->work_mask >> w & 1) != 0 &&
			!(isfinite(r->work[w]) && r->work[w] >= 0))
			return "work is negative or not finite";
	return NULL;
}

static const char *
record_check_peers(const struct ls_record *r)
{
	if (r->peer_count > LS_PEERS_MAX)
		return "too many peers";
	for (unsigned p = 0; p < r->peer_count; p++) {
		uint64_t waits[] = { r->peer[p].recv_wait_ns, r->peer[p].send_wait_ns };

		if (r->peer[p].rank >= LS_WORKERS_MAX)
			return "a peer's rank is out of range";
		for (size_t i = 0; i < 2; i++)
			if (waits[i] >= LS_PHASE_MAX_NS && waits[i] != UINT64_MAX)
				return "a wait on a peer is too long";
	}
	return NULL;
}

int
ls_record_check(const struct ls_record *r, const char **ret_why)
{
	static const char *(*const checkers[])(const struct ls_record *) = {
		record_check_times,
		record_check_phases,
		record_check_barriers,
		record_check_work,
		record_check_peers,
	};

	for (size_t i = 0; i < sizeof(checkers) / sizeof(checkers[0]); i++) {
		const char *why = checkers[i](r);

		if (why) {
			if (ret_why)
				*ret_why = why;
			return -LS_ERANGE;
		}
	}
	return 0;
}
