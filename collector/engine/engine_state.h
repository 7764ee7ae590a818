/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_state - the engine's memory: changed by its own parts alone, read by answer/view, answer/finding_json and ingest/attention.
 *
 * Owner:   the engine's thread.
 * Units:   microseconds since the epoch; seconds in cells and residuals.
 * Errors:  none here.
 * Limits:  LS_JOBS_MAX, LS_WORKERS_MAX, LS_LIVE_STEPS rows, fewer for jobs of many
 *          workers.
 */
#ifndef LS_COLLECTOR_ENGINE_STATE_H
#define LS_COLLECTOR_ENGINE_STATE_H

#include "collector/engine/residual/blame.h"
#include "collector/engine/join/counters.h"
#include "collector/engine/detect/detect.h"
#include "collector/engine/engine.h"
#include "collector/engine/finding/finding.h"
#include "collector/engine/attribute/group.h"
#include "collector/engine/join/index.h"
#include "collector/engine/detect/pulse.h"
#include "collector/engine/residual/replica.h"
#include "collector/engine/detect/rhythm.h"
#include "collector/engine/detect/scales.h"
#include "collector/engine/detect/stage.h"
#include "collector/engine/join/recent.h"
#include "collector/engine/join/steps.h"
#include "proto/base/text.h"

#define LS_JOB_GROUP_NAME_BYTES                                                    \
	(LS_ROLE_NAME_MAX_BYTES > LS_SLICE_NAME_MAX_BYTES ? LS_ROLE_NAME_MAX_BYTES \
							  : LS_SLICE_NAME_MAX_BYTES)
#define LS_JOB_GROUPS 5
#define LS_HOST_PAST 4 /* jobs and roles of which a host keeps what was usual */
#define LS_JOB_LOST_MAX 64 /* processes of other attempts remembered a job */
#define LS_RECENT_STEPS \
	100 /* that views show as present; a job keeps as many at least, if there is memory */
#define LS_FINDING_UPDATE_STEPS LS_DETECT_WARM
#define LS_FINDING_UPDATE_US (LS_ENGINE_US(LS_SILENT_S) / 2)

enum ls_worker_state {
	LS_WORKER_REPORTING,
	LS_WORKER_SILENT,
	LS_WORKER_ENDED,
	LS_WORKER_CRASHED
};

/* What was usual of a host in a role, in the newest attempt of a job that taught it. */
struct ls_past {
	uint64_t key; /* of the job, the role, and how it was measured */
	int64_t run_us; /* as of ls_job; 0: of an earlier life of the collector */
	float usual; /* ls_scales_usual, of several workers the most */
	float excess,
		below; /* as scales named it; excess 0: it did not, or there are several */
};

struct ls_engine_host {
	char name[LS_HOST_NAME_MAX_BYTES]; /* first: ls_index_find */
	struct ls_counters counters;
	int64_t seen_us; /* when it was named or had counters, last */
	uint32_t workers; /* places that it has, at most LS_HOST_WORKERS_MAX */
	struct ls_past past[LS_HOST_PAST]; /* newest first */
	uint64_t lies[LS_LIE_COUNT]; /* lies.h */
};

struct ls_engine_worker {
	struct ls_worker_info info;
	uint32_t job; /* index of its job */
	uint32_t host; /* index of its host */
	/* in its attempt; of a free place: the next free one */
	uint32_t slot;
	uint32_t generation; /* how often the place was given to another */
	/* belongs to its job's present attempt; else the place is free */
	bool current;
	enum ls_worker_state state;
	unsigned how; /* its process ended: enum ls_end_how */
	bool reported;
	/* greatest step reported; of an asynchronous job, the newest */
	uint64_t last_step;
	int64_t end_us; /* when its newest step ended */
	/* of its newest record, in an asynchronous job; 0: none yet */
	uint64_t window;
	int64_t seen_us;
	uint32_t missed; /* closed steps without it, in a row */
	uint64_t gaps;
	struct ls_counters counters;
	bool has_live;
	struct ls_ring_live live;
	int64_t live_since_us;
	double clock_err_s; /* NaN = not told */
};

/* A closed step, kept for views and evidence; LS_STEPS_ROW_CELLS counts its size. */
struct ls_live_row {
	struct ls_row row; /* owns its cells */
	struct ls_blame_step totals;
	uint32_t expected;
	double blame_s; /* largest of its cells; NaN = no baseline yet */
	/* far too long, and told as that: of no other finding */
	bool hang;
};

/* A standstill of a job. */
struct ls_hang {
	/* reported; off LS_DETECT_CLEAR_STEPS steps later */
	bool on;
	uint64_t step;
	double lost_s; /* told so far */
	int64_t look_us; /* when it was told, last */
};

/* Workers of a job by a name that some of them share: their role, slice, rack, input
 * shard, and the stage, which stands before the first '-' of a role. */
struct ls_job_groups {
	/* number of the group by slot; of racks and shards LS_GROUP_NO: not told */
	uint32_t *of;
	uint32_t *sorted, *start; /* slots by group (ls_blame_sort) */
	char (*names)[LS_JOB_GROUP_NAME_BYTES]; /* by number */
	uint32_t count;
	struct ls_scales
		scales; /* groups of slices, racks and shards, compared as workers are */
	struct ls_index index; /* by name */
};

/* A process whose records are not accepted: it is of another attempt. */
struct ls_job_lost {
	struct ls_worker_info who;
	int64_t seen_us; /* when it was rejected, last */
};

/* Workers contradict each other, and not all are judged; since_us 0: not so. */
struct ls_job_identity {
	uint64_t step; /* the first that closed so, */
	int64_t onset_us, since_us; /* when it began and when it closed */
	int64_t look_us; /* when this was looked at, last */
};

struct ls_job {
	char name[LS_JOB_NAME_MAX_BYTES]; /* first: ls_index_find */
	int32_t attempt;
	/* when it began, or its processes began again under its number: tells runs apart */
	int64_t run_us;
	bool again; /* its processes did */
	bool manual; /* closes only by ls_engine_close_step */
	int64_t first_us, last_us;
	int64_t closed_us; /* when a step was closed, last */
	uint32_t *slots; /* worker by slot */
	size_t capacity;
	union {
		struct {
			struct ls_job_groups roles, slices, racks, shards, stages;
		};
		struct ls_job_groups groups[LS_JOB_GROUPS]; /* the same */
	};
	struct ls_scales scales;
	bool names_wait; /* who was named before a restart is not named again yet */
	struct ls_blame_room room;
	struct ls_blame *residuals; /* capacity of them */
	struct ls_blame_net *slice_nets; /* capacity of them: scratch */
	uint64_t kept; /* live rows so far; the newest has number kept - 1 */
	struct ls_recent *recent; /* by slot */
	uint64_t closed, shorted, apart, late, gaps;
	/* Of the present attempt: all that follows is zero when another one begins. */
	size_t count; /* workers */
	struct ls_index rank_index; /* slots by rank */
	int32_t world, world_least; /* greatest and least that workers say; 0: none */
	uint32_t gone; /* workers whose process has ended */
	uint32_t twins; /* workers whose rank another one has, too */
	bool has_refused; /* some worker's environment has a value that is no rank */
	bool has_slices; /* some worker says how many slices the job has */
	int32_t rank_most; /* greatest rank */
	/* steps judged when it ended, and how many it needed */
	uint64_t ended_judged, ended_needs;
	int64_t drops; /* so many times LS_SILENT_S nothing came but rows with a wrong number */
	struct ls_job_lost *lost; /* LS_JOB_LOST_MAX of them; NULL: never any */
	size_t lost_count;
	struct ls_job_identity identity;
	int64_t claim_us; /* when all workers were looked at for one */
	uint32_t active; /* workers waited for, if active_known */
	bool active_known;
	bool grouped; /* room knows the roles of all workers */
	struct ls_stages compare; /* of stages */
	struct ls_steps steps;
	struct ls_detect detect;
	struct ls_hang hang;
	struct ls_pulse pulse;
	struct ls_replica replica;
	struct ls_rhythm rhythm;
	struct ls_live_row *live; /* ring of LS_LIVE_STEPS; NULL: no row was kept yet */
	size_t live_count, live_head;
};

struct ls_engine {
	struct ls_engine_sink sink;
	double patience_s;
	int64_t restored_us; /* of the last restart; 0 = none */
	struct ls_job *jobs;
	size_t job_count;
	struct ls_index job_index, host_index;
	struct ls_engine_worker *workers;
	size_t worker_count, worker_capacity;
	uint32_t free_worker; /* first place given up; LS_INDEX_NONE = none */
	size_t unheard; /* places of workers without a record */
	struct ls_engine_host *hosts;
	size_t host_count, host_capacity;
	struct ls_reference *reference; /* from before a restart (reference.h), */
	size_t reference_count;
	struct ls_finding *findings; /* in order of opening */
	size_t finding_count, finding_capacity;
	struct ls_engine_stats stats;
};

/* Was there a restart in the last so many seconds? Not if the clock went back since. */
static inline bool
ls_engine_restarted(const struct ls_engine *e, int64_t now_us, int32_t seconds)
{
	return e->restored_us != 0 && now_us >= e->restored_us &&
		now_us - e->restored_us < LS_ENGINE_US(seconds);
}

/* From a table without times: step begins are assumed. */
static inline bool
ls_job_is_assumed(const struct ls_engine *e, const struct ls_job *j)
{
	return j->count > 0 && e->workers[j->slots[0]].info.assumed;
}

/* True if its first worker came from lockstep-sim. */
static inline bool
ls_job_is_simulated(const struct ls_engine *e, const struct ls_job *j)
{
	return j->count > 0 && e->workers[j->slots[0]].info.simulated;
}

_Static_assert(sizeof(struct ls_live_row) <=
		LS_STEPS_ROW_CELLS * sizeof(struct ls_cell),
	"a row is counted as so many cells");

/* Row i of the live window, 0 = oldest. */
static inline const struct ls_live_row *
ls_job_row(const struct ls_job *j, size_t i)
{
	return &j->live[(j->live_head + LS_LIVE_STEPS - j->live_count + i) %
		LS_LIVE_STEPS];
}

/* The step that is due after the first i rows (at least one): rows may be of each k-th step, then the next one comes as many
 * steps later as the newest did. */
static inline uint64_t
ls_job_due(const struct ls_job *j, size_t i)
{
	uint64_t newest = ls_job_row(j, i - 1)->row.step;

	return i > 1 ? 2 * newest - ls_job_row(j, i - 2)->row.step : newest + 1;
}

/* Drops the oldest row of the live window; returns what it counted in steps.held. */
static inline size_t
ls_job_forget(struct ls_job *j)
{
	struct ls_live_row *oldest = (struct ls_live_row *)ls_job_row(j, 0);
	size_t cells = LS_STEPS_ROW_CELLS + oldest->row.cell_count;

	ls_recent_forget(j);
	ls_steps_give_back(&j->steps, &oldest->row);
	j->live_count--;
	return cells;
}

static inline void
ls_job_drop_rows(struct ls_job *j)
{
	while (j->live_count > 0)
		(void)ls_job_forget(j);
	ls_steps_fini(&j->steps);
}

/* What was learned of its steps is forgotten: those that come are of another kind, or of other processes. */
static inline void
ls_job_relearn(struct ls_job *j)
{
	ls_detect_reset(&j->detect);
	ls_stages_fini(&j->compare); /* whose findings it counted, too */
	j->grouped = false;
	j->hang = (struct ls_hang){ 0 };
	ls_pulse_fini(&j->pulse);
	ls_rhythm_fini(&j->rhythm);
	ls_scales_reset(&j->scales);
	LS_EACH (struct ls_job_groups, g, j->groups, LS_JOB_GROUPS)
		ls_scales_fini(&g->scales);
}

/* Has the worker of a slot a record in the row? */
static inline bool
ls_row_has(const struct ls_row *row, size_t slot)
{
	return slot < row->cell_count && row->cells[slot].present;
}

/* Cell of a slot in a row; NULL if the worker has no record there. */
static inline const struct ls_cell *
ls_row_cell(const struct ls_live_row *r, size_t slot)
{
	return ls_row_has(&r->row, slot) ? &r->row.cells[slot] : NULL;
}

/* The number under which views show a row: of a window, the Unix second at which it
 * begins. */
static inline uint64_t
ls_row_shown(const struct ls_row *row)
{
	return ls_window_is(row->step) ? (row->step - LS_WINDOW_FIRST) >> 4 : row->step;
}

/* Job by name, or NULL. */
struct ls_job *ls_engine_find_job(const struct ls_engine *e, const char *name);

/* Index of a host, or LS_INDEX_NONE. */
uint32_t ls_engine_find_host(const struct ls_engine *e, const char *name);

/* Worker by handle; NULL if it is none of its job's present attempt. */
struct ls_engine_worker *ls_engine_find_worker(const struct ls_engine *e,
	uint32_t handle);

/* Index of a host, made if new; -LS_ERANGE (no name), -LS_ELIMIT, -ENOMEM. */
int ls_engine_host(struct ls_engine *e, const char *name, int64_t now_us,
	uint32_t *ret_host) LS_MUSTCHECK;

/* Another process has the place of a worker. */
void ls_roster_revive(struct ls_engine *e, struct ls_job *j, struct ls_engine_worker *w,
	int64_t now_us);

/* The processes of the present attempt are others, and count from an earlier step: as another attempt, but for its number. */
void ls_roster_again(struct ls_engine *e, struct ls_job *j, int64_t now_us);

/* Where places run short, the workers of a job that has long been quiet give theirs up;
 * one job a call. */
void ls_roster_yield(struct ls_engine *e, int64_t now_us);

/* The counters that hold a metric of a worker: its own, or its host's. */
static inline const struct ls_counters *
ls_worker_counters(const struct ls_engine *e, const struct ls_engine_worker *w,
	unsigned metric)
{
	return ls_metric_info(metric)->scope == LS_METRIC_SCOPE_JOB
		? &w->counters
		: &e->hosts[w->host].counters;
}

/* Has its process ended? */
static inline bool
ls_worker_is_gone(const struct ls_engine_worker *w)
{
	return w->state == LS_WORKER_ENDED || w->state == LS_WORKER_CRASHED;
}

static inline bool
ls_worker_reports(const struct ls_engine_worker *w)
{
	return w->state == LS_WORKER_REPORTING;
}

/* Has it left an elastic job, which goes on with fewer workers? */
static inline bool
ls_worker_has_left(const struct ls_job *j, const struct ls_engine_worker *w)
{
	return j->world > 0 && j->world == j->world_least && w->info.rank >= j->world &&
		w->state != LS_WORKER_REPORTING;
}

/* The worker of the slot after that of w (NULL: of the first one) in the present attempt; NULL behind the last. */
static inline struct ls_engine_worker *
ls_job_next(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_engine_worker *w)
{
	size_t slot = w == NULL ? 0 : (size_t)w->slot + 1;

	return slot < j->count ? &e->workers[j->slots[slot]] : NULL;
}

/* Each worker of the job's present attempt, by slot: w->slot. */
#define LS_WORKERS(e, j, w)                                                   \
	for (struct ls_engine_worker *w = ls_job_next(e, j, NULL); w != NULL; \
		w = ls_job_next(e, j, w))

/* Each job and each finding of the engine. */
#define LS_JOBS(e, j) LS_EACH (struct ls_job, j, (e)->jobs, (e)->job_count)
#define LS_FINDINGS(e, f) \
	LS_EACH (struct ls_finding, f, (e)->findings, (e)->finding_count)

/* How many workers of the job are so. */
size_t ls_job_workers(const struct ls_engine *e, const struct ls_job *j,
	bool (*are)(const struct ls_engine_worker *w));

/* What the clocks of its workers are wrong by at most; NaN: nobody told. */
double ls_job_clock_err_s(const struct ls_engine *e, const struct ls_job *j);

/* Workers differ in how many they say they are: those that report are right. */
void ls_roster_world(const struct ls_engine *e, struct ls_job *j);

/* Chips of the job's present attempt; 0 = not known. */
int32_t ls_job_chips(const struct ls_engine *e, const struct ls_job *j);

/* Where the job's steps come from: of its workers, the one that is surest the least. */
void ls_job_step_source(const struct ls_engine *e, const struct ls_job *j,
	struct ls_worker_info *ret_info);

/* Hosts of the job's present attempt whose workers are in a group, by slot (NULL: all), each once, ascending:
 * into index of the job's room, which may be `of` itself. Returns how many. */
size_t ls_job_hosts(const struct ls_engine *e, const struct ls_job *j,
	const uint32_t *of, uint32_t group);

/* Workers of the job by rank, those of one rank by host: into index of the job's room. */
uint32_t *ls_job_by_rank(const struct ls_engine *e, const struct ls_job *j);

/* The one worker of this rank in the present attempt; NULL if there is none, or several. */
struct ls_engine_worker *ls_job_rank(const struct ls_engine *e, const struct ls_job *j,
	int32_t rank);

/* The worker of this rank on this host, of this user if there is one; or NULL. */
struct ls_engine_worker *ls_job_worker(const struct ls_engine *e,
	const struct ls_job *j, const struct ls_worker_info *who);

/* Does a worker of another user on the same host claim its rank? */
bool ls_job_is_contested(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_engine_worker *w);

/* Puts ranks, or hosts, in ascending order. */
void ls_job_sort(uint32_t *numbers, size_t n);

/* The next worker that says it has this rank, NULL behind the last; *walk: 0 at first. */
struct ls_engine_worker *ls_job_next_of_rank(const struct ls_engine *e,
	const struct ls_job *j, int32_t rank, size_t *walk);

/* Of one host and, as far as known, of one user? */
bool ls_worker_same_owner(const struct ls_worker_info *a,
	const struct ls_worker_info *b);

/* The groups of racks, of input shards, or of slices if there are several; NULL for other ways. */
const struct ls_job_groups *ls_job_groups_of(const struct ls_job *j, unsigned way);

/* The number of a worker's group; LS_GROUP_NO: it is in none. */
uint32_t ls_job_group_of(const struct ls_engine *e, const struct ls_job *j,
	unsigned way, size_t slot);

/* Is the finding of worker `slot` about a group that has `other` in it? */
bool ls_job_same_group(const struct ls_engine *e, const struct ls_job *j, size_t slot,
	size_t other);

/* Frees what a job holds, but not the places of its workers. */
void ls_job_fini(struct ls_job *j);

/* Keeps a row that was just taken out of j->steps; judges it if it can be; then opens, updates and clears. */
void ls_judge_row(struct ls_engine *e, struct ls_job *j, struct ls_row *row,
	uint32_t expected, int64_t now_us);

/* Whom a detector speaks of. */
struct ls_suspect {
	bool net; /* what joins workers (detect.h), else a worker */
	size_t at; /* its number there, or its slot */
};

/* Its channels. */
static inline const struct ls_detect_channel *
ls_suspect_channels(const struct ls_job *j, struct ls_suspect s)
{
	return s.net ? j->detect.net[s.at].channel : j->detect.worker[s.at].channel;
}

/* The worker its evidence is about; SIZE_MAX: none (job, slice or link). */
static inline size_t
ls_suspect_slot(const struct ls_job *j, struct ls_suspect s)
{
	const struct ls_detect_net *net = s.net ? &j->detect.net[s.at] : NULL;

	return net == NULL ? s.at : net->names == LS_NET_HOST ? net->slot : SIZE_MAX;
}

#endif
