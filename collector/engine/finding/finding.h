/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finding - the product: what, who, since when, how much, why, what to do. Its life is states.def, its JSON collector/answer/finding_json.
 *
 * Owner:   the engine.
 * Units:   seconds, microseconds since the epoch, chips, chip-hours.
 * Errors:  -LS_ELIMIT, -ENOMEM.
 * Limits:  LS_FINDINGS_MAX, LS_EVIDENCE_MAX.
 * Source:  shape: proto/FORMAT.md, "Finding", schema version 1.
 */
#ifndef LS_COLLECTOR_FINDING_H
#define LS_COLLECTOR_FINDING_H

#include <stdbool.h>
#include <stdint.h>
#include "collector/engine/attribute/cause.h"
#include "collector/engine/detect/detect.h"
#include "collector/engine/attribute/group.h"
#include "proto/ring/record.h"

#define LS_FINDING_ID_BYTES 24
#define LS_FINDING_SAID_BYTES 1024
#define LS_FINDING_DIGITS 6 /* of a measured number, as it is told */
#define LS_FINDING_WAITS "before_attempt" /* data_quality.reference of one that waits */

/* Enum values and their names in the JSON, written once. */
#define LS_FINDING_KINDS(X)               \
	X(LS_KIND_STRAGGLER, "straggler") \
	X(LS_KIND_IMBALANCE, "imbalance") \
	X(LS_KIND_LINK, "link")           \
	X(LS_KIND_HANG, "hang")           \
	X(LS_KIND_JOB_SLOW, "job_slow")   \
	X(LS_KIND_PERIODIC, "periodic")   \
	X(LS_KIND_SELF_IDENTITY, "self_identity")
#define LS_FINDING_SCOPES(X)       \
	X(LS_SCOPE_HOST, "host")   \
	X(LS_SCOPE_RANK, "rank")   \
	X(LS_SCOPE_JOB, "job")     \
	X(LS_SCOPE_SLICE, "slice") \
	X(LS_SCOPE_LINK, "link")   \
	X(LS_SCOPE_GROUP, "group") \
	X(LS_SCOPE_SHARD, "input_shard")
/* Why it was cleared; the first: it is as before. */
#define LS_FINDING_REASONS(X)                       \
	X(LS_REASON_CALM, "as_before")              \
	X(LS_REASON_JOB_ENDED, "job_ended")         \
	X(LS_REASON_ATTEMPT_ENDED, "attempt_ended") \
	X(LS_REASON_MOVED, "moved")                 \
	X(LS_REASON_NOT_MEASURED, "not_measured")
#define LS_SEVERITIES(X)                  \
	X(LS_SEVERITY_INFO, "info")       \
	X(LS_SEVERITY_WARNING, "warning") \
	X(LS_SEVERITY_CRITICAL, "critical")

#define LS_FINDING_ID_(id, name) id,
enum ls_finding_kind { LS_FINDING_KINDS(LS_FINDING_ID_) LS_KIND_COUNT };
enum ls_finding_scope { LS_FINDING_SCOPES(LS_FINDING_ID_) LS_SCOPE_COUNT };
enum ls_finding_status {
#define X(state, name, named, over, left) state,
#include "collector/engine/finding/states.def"
#undef X
	LS_FINDING_STATUS_COUNT
};
enum ls_finding_reason { LS_FINDING_REASONS(LS_FINDING_ID_) LS_REASON_COUNT };
enum ls_severity { LS_SEVERITIES(LS_FINDING_ID_) LS_SEVERITY_COUNT };
#undef LS_FINDING_ID_

/* A period in which the finding was open, from its onset on. The newest one is not in this list: fields of the finding hold it. */
struct ls_finding_episode {
	uint64_t from_step, to_step;
	int64_t from_us, to_us;
	double chip_hours; /* as it is told: rounded; NaN = not known */
};

struct json_t; /* the engine only holds it */

struct ls_finding {
	char id[LS_FINDING_ID_BYTES];
	enum ls_finding_kind kind;
	enum ls_finding_scope scope;
	enum ls_finding_status status;
	enum ls_severity severity;
	/* job always; the slice for scope slice; all for host, rank and link */
	struct ls_worker_info who;
	char peer_host[LS_HOST_NAME_MAX_BYTES]; /* scope link: its other end */
	int32_t peer_rank;
	/* scope group and input_shard: what its workers share, */
	enum ls_group_way way;
	char group[LS_PLACE_NAME_MAX_BYTES]; /* the name of it, */
	/* their hosts, at most LS_FINDING_HOSTS_MAX of them, */
	char (*members)[LS_HOST_NAME_MAX_BYTES];
	uint32_t member_count, member_hosts; /* of so many; none for other scopes. */
	/* Scope job: so many of its workers are slow, and the hosts are theirs; 0 and none: it is not some of them. */
	uint32_t slow_workers;
	enum ls_detect_kind detector;
	bool comm; /* from the job's communication channel */
	/* of an asynchronous job: it costs its own share of it, */
	bool replica;
	double share; /* a ratio */
	enum ls_finding_reason reason; /* cleared because */
	uint64_t
		first_row; /* while it waits: of the next attempt, as ls_job.kept counts */
	char part_of
		[LS_FINDING_ID_BYTES]; /* cleared for this one, which tells it, too; "": not */
	bool simulated; /* its job is of lockstep-sim */
	enum ls_detect_mode estimate;
	uint32_t occurrence; /* from 1 */
	uint32_t reopened; /* times */

	uint64_t onset_step, last_step, accounted_step;
	int64_t onset_us, detected_us, updated_us, cleared_us;
	/* The present episode, if it was reopened: its begin, and the cost until then. Those
	 * before, fewer than LS_FINDING_EPISODES_MAX. */
	uint64_t since_step;
	int64_t since_us;
	double since_chip_hours;
	struct ls_finding_episode *episode;
	uint32_t episodes;
	/* told before a restart: what was until then is in it */
	int64_t known_us;
	bool born; /* began while baselines were learned */
	bool gradual; /* it came little by little */
	double slope_s; /* of a job: so much longer each step, while it climbs */
	/* single steps that stall: most of its steps are as usual */
	bool intermittent;
	/* kind periodic; period_s 0: equal in steps, not in time */
	double period_steps, period_s;
	uint32_t uncertainty_steps;
	uint64_t steps_seen;
	/* share of steps in which it arrived last; NaN unknown */
	double slowest_ratio;

	double step_s, without_s, before_s, blame_s, slowdown, chips_lost, chip_hours;
	/* accounted since it began, or since a restart: so many, and their blame */
	double cost_steps, cost_sum_s;
	int32_t chips; /* of the job; 0 = not known */
	uint32_t workers, workers_used, hosts;
	double clock_err_s; /* NaN = not known */

	struct ls_evidence evidence[LS_EVIDENCE_MAX];
	size_t evidence_count;
	bool counters_ripe; /* counters are in it */
	struct ls_diagnosis diagnosis;
	/* kind self_identity: its title, then who says what; else NULL */
	char (*said)[LS_FINDING_SAID_BYTES];
	uint32_t said_count;

	/* as last told to the sink: its status, */
	bool told;
	enum ls_finding_status told_status;
	double told_own_s; /* own work beyond the median of its peers; NaN: it says nothing of that; */
	struct json_t *json; /* and all of it, by its render() */
};

/* Name of a value of these enums, as in the JSON; NULL if out of range. */
enum ls_finding_list {
	LS_NAMES_KIND,
	LS_NAMES_SCOPE,
	LS_NAMES_STATUS,
	LS_NAMES_REASON,
	LS_NAMES_SEVERITY,
	LS_NAMES_WAY
};
const char *ls_finding_name(enum ls_finding_list list, unsigned value);

/*
 * Id of the n-th occurrence of a subject; more > 0 adds so many characters, on
 * collision. -LS_ELIMIT: no more can be added.
 */
int ls_finding_make_id(const struct ls_finding *f, unsigned more,
	char ret_id[LS_FINDING_ID_BYTES]) LS_MUSTCHECK;

/*
 * Same job and subject, and both or neither a hang, or about identity: who is slow for
 * long may stand still, too. (A worker stays the same whether it is alone on its host or not; a link,
 * from either end.)
 */
bool ls_finding_same_subject(const struct ls_finding *a, const struct ls_finding *b);

/* What happens to a finding; it has another status then. */
enum ls_finding_event { LS_EVENT_NAMED, LS_EVENT_OVER, LS_EVENT_LEFT };
enum ls_finding_status ls_finding_next(enum ls_finding_status is,
	enum ls_finding_event event);

/* Since its last update its attempt is over, and no other has shown yet whether it holds. */
static inline bool
ls_finding_waits(const struct ls_finding *f)
{
	return f->status == LS_FINDING_OPEN_WAITS ||
		f->status == LS_FINDING_REOPENED_WAITS;
}

/* Is it open now (reopened counts)? */
static inline bool
ls_finding_is_open(const struct ls_finding *f)
{
	return f->status != LS_FINDING_CLEARED;
}

/* Is all that is known of it from before a restart, of the collector or the job? */
static inline bool
ls_finding_is_stored(const struct ls_finding *f)
{
	return f->told && f->diagnosis.count == 0;
}

/* Severity from what it costs. */
enum ls_severity ls_finding_severity(double slowdown);

/* The newest episode ends, as it stands: what comes after is another. -ENOMEM. */
int ls_finding_end_episode(struct ls_finding *f) LS_MUSTCHECK;

/* The newest episode, as it stands. */
struct ls_finding_episode ls_finding_newest_episode(const struct ls_finding *f);

/* Drops the members, the episodes and what was said. */
void ls_finding_fini(struct ls_finding *f);

#endif
