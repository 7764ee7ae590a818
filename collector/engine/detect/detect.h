/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect - from residuals of single steps to suspects and findings: sequential
 * detection.
 *
 * Three detectors run side by side on every closed step:
 *
 *  chronic  a worker. Its residual, minus its own baseline, over the job's step time, goes into a
 *           clipped CUSUM in units of the residual's long-run noise (32-step block means, so that
 *           wandering loads on shared machines count as noise). Suspects come early; a finding is made
 *           when it has lasted (LS_DETECT_LASTS) and the worker is named by what its peers vary by
 *           (scales.h); young jobs without patience and replicas need no name. It also needs evidence: own work,
 *           wait, or the job's step time must have grown with the residual.
 *  stalls   a worker. Single steps in which it alone arrives 0.75 of a step behind all others, its
 *           own work explaining half of it, counted against a rate of 1 in 500 (Bernoulli CUSUM), or
 *           what the other workers' is if that is less, down to a quarter; long ones count for more.
 *  comm     the job, and each slice. Time in the collective after the last arrival, chronic, faint (means of blocks
 *           of 16 steps: a link a little slower, packets lost in one step of five) and stalls (TCP
 *           time-outs): communication, nobody's own work. Arrivals of many hosts need their clocks;
 *           the least wait of all does not: what it does not show, too, is not believed. But a worker that the
 *           collective of one step lets go late makes the others wait in the next: as a stall of the job counts also what
 *           both steps took longer, mean over the workers, and nobody's own work explains.
 *
 *      quiet --C >= SUSPECT--> suspect --C >= FINDING and evidence--> finding --C < CLEAR for a while--> quiet
 *
 * Work that varies from step to step (sequence lengths, expert loads) makes a new
 * culprit in each: then the changes of all workers' residuals tell how little one of
 * them says.
 *
 * The residual is lateness of arrival where the exits of the barrier are a common
 * event, else (rings that leave one after the other, clocks worse than the effect) the
 * wait residual.
 *
 * Owner:   one job of the engine. Pure: time comes in, nothing goes out but the state.
 * Units:   seconds for residuals; ratios to the step time inside; steps for counts.
 * Errors:  -ENOMEM.
 * Limits:  LS_WORKERS_MAX workers.
 * Source:  e-detectors and CUSUM with average run length >= e^h: Shin, Ramdas, Rinaldo
 *          (2022); constants measured on thirteen recorded runs of real jobs, each
 *          begun at five different steps: clean stretches reach C = 22 (faint: 14),
 *          findings are made at 28 (tests/system/smoke/replay_runs.sh).
 */
#ifndef LS_COLLECTOR_DETECT_H
#define LS_COLLECTOR_DETECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/engine/detect/scales.h"
#include "collector/engine/join/steps.h"
#include "collector/engine/params.h"
#include "collector/engine/residual/blame.h"
#include "collector/engine/residual/stats.h"
#include "proto/limits.h"

/* of a step, that all others wait for one: a stall */
#define LS_DETECT_STALL_GAP (1 - LS_QUARTER)
/* steps that tell what it was like before, and what costs are present */
#define LS_DETECT_BEFORE (LS_DETECT_ADAPT / 2)
/* A statistic ends here, which bounds the time to clear; so low it is that of a healthy worker. */
#define LS_DETECT_CAP ((1 + LS_HALF) * LS_DETECT_FINDING)
#define LS_DETECT_CLEAR (LS_QUARTER * LS_DETECT_SUSPECT)
/* Log likelihood ratio of a stall, and at most as much for its length. */
#define LS_DETECT_STALL_SAYS log(LS_STALL_FAULT_RATE / LS_DETECT_STALL_RATE)

/*
 * How long a shift lasts before it is a finding (LS_DETECT_LASTS). Two processes that share a core
 * look like a fault for 20 to 80 steps; only time tells them apart from one. But such delays
 * scatter by as much as they are long, so a shift that is the same in each step need
 * not wait; nor one of 0.3 of the step. Of two million exponential delays, 3 to 15 % of
 * the step for 20 to 80 steps, 2.5e-5 were steady for 20 steps by chance, and 9e-6 as
 * long as 0.3 of the step. Where steps are long, whom scales names need not last longer
 * than LS_SCALES_PATIENCE_S.
 */

enum ls_detect_level { LS_LEVEL_QUIET, LS_LEVEL_SUSPECT, LS_LEVEL_FINDING };
enum ls_detect_kind {
	/* channels */
	LS_DETECT_CHRONIC,
	LS_DETECT_FAINT,
	LS_DETECT_STALLS,
	LS_DETECT_KIND_COUNT,
	/* of rhythm.h: these have none */
	LS_DETECT_PERIODIC,
	LS_DETECT_ROTATING
};
enum ls_detect_mode { LS_MODE_LATENESS, LS_MODE_WAIT };

/* What a detector has gathered since it left zero. */
struct ls_episode {
	uint64_t start_step, last_step;
	int64_t start_us;
	uint64_t steps; /* judged steps in it */
	uint64_t hits; /* stalls: steps that stalled */
	double excess_s; /* sum of residuals beyond the baseline */
	double age_s; /* the same, each times the steps since then */
	double own_s, wait_s; /* sums of the own-work and wait excess */
	double before_s; /* step time before it began; NaN = not known */
	uint64_t lasted; /* steps before start_step since which it was slow, */
	bool gradual; /* more and more */
	double gap_mean, gap_m2; /* stalls: steps between hits (Welford) */
};

struct ls_detect_channel {
	double c; /* the statistic, nats */
	enum ls_detect_level level;
	uint32_t calm; /* finding: steps below CLEAR or since a stall */
	struct ls_episode ep;
};

/* What a stream of numbers is like when all is well: learned from its first ones. */
struct ls_detect_usual {
	float first[LS_DETECT_WARM]; /* NaN: not known in that step */
	uint32_t n;
	double base, sigma; /* NaN: none of them was known */
};

/* What a worker's first steps were like. */
struct ls_detect_warm {
	struct ls_detect_usual late, wait, own, exit;
};

struct ls_detect_worker {
	uint32_t warm; /* steps learned so far; LS_DETECT_WARM: enough */
	/* steps learned after these, up to LS_DETECT_ADAPT in all */
	uint32_t learned;
	/* until its baselines are known: later steps need not walk over it */
	struct ls_detect_warm *learning;
	/* baselines; base_s of the residual in use */
	double base_s, base_own_s, base_wait_s;
	double first_own_s; /* base_own_s, fixed at LS_DETECT_ADAPT */
	double shift_s; /* of base_s, while anything is found */
	double sigma; /* noise of the residual, ratio to the step time */
	double recent_s; /* mean excess over the latest steps */
	/* excess in the step before, as a ratio to the step time */
	double last_x;
	bool has_last_x;
	/* channels that were findings before the step, and are: a bit each */
	uint8_t was, found;
	/* enum ls_group_way: what is found of it is told of that: the judge's */
	uint8_t way;
	bool fresh; /* its baselines were learned in this step */
	bool said; /* scales names it, */
	bool followed; /* and its baselines had most of it */
	uint64_t first_step; /* judged; that of the job if it began with it */
	double block_sum;
	uint32_t block_n;
	/* latest steps of the chronic episode that were steady: alike, */
	uint32_t steady;
	double steady_s, steady_sq; /* and the sums of their excess and of its square */
	struct ls_detect_channel channel[LS_DETECT_KIND_COUNT];
	struct { /* what it waits for peers to take what is sent */
		uint32_t rank, steps; /* steps 0: none */
		/* mean when healthy; beyond it, summed while the job's net is suspected
		 */
		double base_s, excess_s;
	} send[LS_PEERS_MAX];
};

/* Means of blocks of steps: what is below the noise of one, or in a few of them only.
 */
struct ls_detect_blocks {
	uint32_t n; /* steps of the block so far, */
	uint64_t first_step; /* from here on, */
	int64_t first_us;
	/* excess; the greatest; step times; waits of the median worker */
	double sum_s, most_s, time_s, wait_s;
	/* mean of healthy blocks: of a skewed noise not what its median is */
	double base_s;
	double dev_sum; /* squares of how healthy ones differ from it, */
	double healthy; /* so many of them, old ones fading */
	double usual_s, usual_wait_s; /* step time and wait of them */
	/* of the episode: step times and waits beyond the usual */
	double time_sum, wait_sum;
};

/* Of whom a net's finding speaks: of all that it joins, of a link, or of a host that
 * makes them all wait inside the collective. */
enum ls_net_names { LS_NET_ALL, LS_NET_LINK, LS_NET_HOST };

/* What joins workers: of the whole job, or of a slice. */
struct ls_detect_net {
	struct ls_detect_blocks blocks;
	/* time in a collective after the last arrival, by arrivals */
	struct ls_detect_usual arrival;
	/* by the least wait, which no clock can lengthen */
	struct ls_detect_usual wait;
	struct ls_detect_channel channel[LS_DETECT_KIND_COUNT];
	uint8_t was; /* channels that were findings before the step, as of a worker */
	enum ls_net_names names; /* of whom the finding speaks: */
	size_t slot; /* the host, or the one end of the link, */
	size_t peer; /* and that of the other */
	double send_s; /* what it took longer while it was suspected */
	double unexplained_s; /* of the step before: longer than usual, and nobody's own work */
};

struct ls_detect {
	struct ls_detect_worker *worker;
	double *scratch; /* capacity of them */
	float *near; /* ls_detect_nearness of each after its last step: to sort by */
	size_t count, capacity;
	struct ls_detect_net *net; /* what joins all, then each slice */
	size_t net_count;
	enum ls_detect_mode mode;
	/* ls_detect_reset makes zero of all that follows */
	uint64_t judged; /* steps seen */
	bool ready; /* the mode is chosen */
	/* variance of 32-step means over that of white noise, pooled */
	double tau_sum, tau_count;
	double slow[LS_DETECT_BEFORE]; /* step times, newest at (judged - 1) % size */
	double step_s, before_s; /* medians of the newest and of all of them */
	/* stalls of workers, and steps times workers in which they could */
	double stall_hits, stall_steps;
	/* how much residuals of all change from step to step now, as a sigma */
	double spread;
	size_t open; /* channels with a finding */
	uint64_t calm_steps; /* since there was one */
	/* baselines know the steps up to this one, also those from before a restart */
	uint64_t taught_step;
	/* suspects of the greatest mean excess, in seconds, after the newest step; at SIZE_MAX = none, 0 */
	struct ls_stats_best worst[2];
	const struct ls_scales
		*scales; /* NULL: not known who is slower than its peers vary */
	bool asked; /* only who is named by that is found */
	uint64_t first_step; /* the last one that was skipped */
};

/* Frees what the detector holds; it can be used again from zero. */
void ls_detect_fini(struct ls_detect *d);

/* Makes room for n workers, new ones quiet; -ENOMEM. */
int ls_detect_reserve(struct ls_detect *d, size_t n)
	__attribute__((warn_unused_result));

/* As many slices as there are names of; new ones are quiet. One slice is none. -ENOMEM.
 */
int ls_detect_reserve_slices(struct ls_detect *d, size_t slices)
	__attribute__((warn_unused_result));

/*
 * Does one link make collectives of net `at` longer (0: the job; else slice at - 1; slice_of[] by slot)? One worker's waits for one peer grew by
 * LS_SHARED of it, others' by at most half as much: its slot and the peer's rank.
 */
bool ls_detect_link(const struct ls_detect *d, size_t at, const uint32_t *slice_of,
	size_t *ret_slot, uint32_t *ret_rank);

/* Forgets all of one worker (it moved to another host), or of all of them and what joins them. The mode stays. */
void ls_detect_reset_worker(struct ls_detect *d, size_t slot);
void ls_detect_reset(struct ls_detect *d);

/*
 * Takes one judged step: residual[n] and totals as of blame.h. clocks_ok: arrivals of different
 * hosts can be compared. Levels in d->worker[].channel[] and d->net[].channel[], and the comm_s
 * of totals, are then up to date.
 */
void ls_detect_step(struct ls_detect *d, uint64_t step, int64_t t_us, bool clocks_ok,
	const struct ls_blame *residual, size_t n, struct ls_blame_step *totals);

/*
 * For whom a judged step waits, and how long, and how much shorter it would be without some: costs to alone_s of totals. Culprits
 * that are found hide neither each other nor themselves. Suspects are left out of alone_s, too, if they and those who are found or named are
 * fewer than half, so that the others can judge them. Else they do not explain each other: if nobody is found or named, the last of them is left out.
 */
void ls_detect_costs(const struct ls_detect *d, const struct ls_row *row,
	struct ls_blame_step *totals);

/*
 * How near a worker is to a finding: of the C that makes one (of stalls: in a job of
 * few workers), in the channel that is nearest. 0 = quiet in all; 1 = found, or C
 * is enough.
 */
double ls_detect_nearness(const struct ls_detect_worker *w);

/* Has it stalled of late? */
static inline bool
ls_detect_stalls(const struct ls_detect_worker *w)
{
	return w->channel[LS_DETECT_STALLS].c > 0 ||
		w->channel[LS_DETECT_STALLS].level != LS_LEVEL_QUIET;
}

/* Channels that are findings, a bit each. */
unsigned ls_detect_found(const struct ls_detect_channel channel[LS_DETECT_KIND_COUNT]);

/* Mean excess of an episode as a ratio of the step time now; 0 for an empty one. */
static inline double
ls_detect_excess_ratio(const struct ls_detect *d, const struct ls_episode *ep)
{
	return ep->steps == 0 || !(d->step_s > 0)
		? 0
		: ep->excess_s / (double)ep->steps / d->step_s;
}

#endif
