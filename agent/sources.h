/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources - all sources of this host together, and what of them travels in every beat.
 *
 * Finds the workers by their rings, points the counters at their processes and cgroups,
 * and the TCP counters at the network namespace of one of them. Samples become groups
 * of the series table: "host.fast", "host.slow", and "worker.RANK" with labels job and
 * rank while that worker is measured. A source of labelled series is one line in
 * sources_make(), and writes its own groups.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   as in source.h.
 * Errors:  -ENOMEM, -LS_ELIMIT.
 * Limits:  LS_RINGS_MAX workers, LS_SOURCES_MAX sources.
 */
#ifndef LS_AGENT_SOURCES_H
#define LS_AGENT_SOURCES_H

#include "agent/options.h"
#include "agent/identity/place.h"
#include "agent/collect/series.h"
#include "agent/collect/source.h"
#include "agent/steps/source_step.h"
#include "agent/spool/disk.h"
#include "agent/spool/spool.h"

struct ls_loop;
struct ls_sources;

/*
 * Opens all sources. Borrowed: the loop, for sources that ask over sockets; the spool, or
 * NULL to look only; the disk, or NULL to read files of jobs on this thread.
 */
int ls_sources_open(struct ls_loop *loop, const struct ls_agent_config *config,
	const uint8_t kernel_boot_id[16], struct ls_spool *spool, struct ls_disk *disk,
	struct ls_sources **ret_sources) LS_MUSTCHECK;

/* Closes them; accepts NULL. */
void ls_sources_close(struct ls_sources *s);

/* Takes over new step records, then reads the counters that are due (enum ls_cadence,
 * or'ed; or 0). */
void ls_sources_read(struct ls_sources *s, unsigned due, uint64_t now_mono_ns);

/* Fills in workers, hot values, live slots and lost records; they hold until the next
 * call. */
void ls_sources_fill(struct ls_sources *s, struct ls_wire_report *r);

/* The last reading of the host, and of a worker (NULL: its process is not visible
 * here). */
const struct ls_sample *ls_sources_host(const struct ls_sources *s);
const struct ls_sample *ls_sources_worker(const struct ls_sources *s,
	const uint8_t ring_id[LS_RING_ID_BYTES]);

/* All series of this host; lives as long as the sources. */
struct ls_series_table *ls_sources_series(const struct ls_sources *s);

/* Asks each source what it measures here and what not. */
void ls_sources_tell(const struct ls_sources *s, struct ls_doctor *d);

/* Lean: sources the agent can do without (neighbours, pages) are not read. */
void ls_sources_set_lean(struct ls_sources *s, bool lean);

/* The factor by which sampling is slowed, as a series of its own. */
void ls_sources_set_slowed(struct ls_sources *s, unsigned factor);

/*
 * Who this host is. Until that is settled rings are not read (they keep their records),
 * so that it can say of a worker what its ring does not.
 */
struct ls_place *ls_sources_place(const struct ls_sources *s);

/* True if no source waits for its first answers: for --once. */
bool ls_sources_are_settled(const struct ls_sources *s);

/* The rings. */
const struct ls_source_step *ls_sources_steps(const struct ls_sources *s);

#endif
