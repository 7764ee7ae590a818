/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session - what the collector knows of each agent: its numbered stream, its clock, its
 * state.
 *
 *            report            clock known
 *     (new) --------> HELLO --------------> LIVE <-----------+
 *                      ^ |                   |               | report
 *        kernel reboot | | silence           | silence       |
 *        or from GONE  | v                   v               |
 *                      GONE <------------- STALE ------------+
 *                              silence
 *
 * An agent is (host, boot): boot is made with its spool. It has two streams, steps and
 * chunks. Items of each are numbered from 1; each number is accepted once, in order,
 * and committed when it is on disk. A second agent that reports under a host name while
 * the first is live is set apart: its rings count, its host counters do not.
 *
 * Owner:   the loop thread. Pure: now is given.
 * Units:   ns, the collector's CLOCK_MONOTONIC.
 * Errors:  -LS_ELIMIT; ls_session_check: -LS_EDUPLICATE, -LS_EBUSY.
 * Limits:  LS_AGENTS_MAX sessions; when full, one that is gone makes room, the longest
 *          silent first; else the one in HELLO that was silent for longest.
 * Source:  design section 11, "Numbering".
 */
#ifndef LS_COLLECTOR_SESSION_H
#define LS_COLLECTOR_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/ingest/clocks.h"
#include "collector/ingest/rings.h"
#include "proto/base/err.h"
#include "proto/wire/wire.h"

enum ls_session_state {
#define LS_SESSION_STATE(id, name, help) LS_SESSION_##id,
#include "collector/ingest/session_states.def"
#undef LS_SESSION_STATE
	LS_SESSION_STATE_COUNT
};

/* The numbered streams of an agent. */
enum ls_session_stream { LS_STREAM_STEPS, LS_STREAM_CHUNKS, LS_STREAM_COUNT };

struct ls_session;
struct ls_sessions;

struct ls_session_stats {
	uint64_t count[LS_SESSION_STATE_COUNT]; /* sessions now */
	uint64_t duplicates; /* items sent again */
	uint64_t changed; /* items sent again with other bytes */
	uint64_t holes; /* items refused because one before is missing */
	uint64_t skipped; /* holes given up: the agent cannot fill them */
	uint64_t doubles; /* reports of a second agent of a host name */
	uint64_t refused; /* agents beyond LS_AGENTS_MAX */
	uint64_t evicted;
};

/* Name of a state; NULL if out of range. */
const char *ls_session_state_name(unsigned state);

/* New table of at most max sessions; NULL when out of memory. */
struct ls_sessions *ls_sessions_new(size_t max);
void ls_sessions_free(struct ls_sessions *t);

/* A session known from storage: gone, all up to seq of each stream committed (0: none
 * yet). */
int ls_sessions_seed(struct ls_sessions *t, const uint8_t *boot, const char *host,
	const uint64_t seq[LS_STREAM_COUNT]) LS_MUSTCHECK;

/*
 * A report came: finds or makes its session. same_kernel: kernel_boot_id is our own. A
 * session whose kernel_boot_id changed begins with a new clock and knows no worker's
 * number. *begun: sessions that its connection made so far. -LS_EUNKNOWN: the report does
 * not say its kernel_boot_id, but begins a session; -LS_ELIMIT: all places are taken;
 * -LS_EBUSY: the connection made LS_CONNECTION_AGENTS_MAX (nothing is changed).
 */
int ls_sessions_report(struct ls_sessions *t, const struct ls_wire_report *r,
	bool same_kernel, uint64_t now_ns, uint32_t *begun,
	struct ls_session **ret_session) LS_MUSTCHECK;

/* Time passes: live ones become stale, stale ones gone. */
void ls_sessions_sweep(struct ls_sessions *t, uint64_t now_ns);

/* Nothing accepted but not committed will be: forget it. After a failed commit. */
void ls_sessions_rollback(struct ls_sessions *t);

/* Sessions by state, and counters so far. */
void ls_sessions_stats(const struct ls_sessions *t, struct ls_session_stats *ret_stats);

/* --- one session ---------------------------------------------------------- */

/* Its state. */
enum ls_session_state ls_session_state(const struct ls_session *s);
/* Its host's clock. */
struct ls_clock *ls_session_clock(struct ls_session *s);

/* Moves from HELLO to LIVE: the clock is known. Harmless otherwise. */
void ls_session_ready(struct ls_session *s);

/* Reports of this session since it was new here or its clock began anew. */
uint32_t ls_session_reports(const struct ls_session *s);

/*
 * The ring that the agent calls by this number from now on, held until the session
 * forgets it or is gone. NULL, or with no memory: the number is not known. The ring of a
 * number; NULL: not known.
 */
void ls_session_name_ring(struct ls_session *s, uint32_t number, struct ls_ring *ring);
struct ls_ring *ls_session_ring(const struct ls_session *s, uint32_t number);

/* True for a second agent of a host name. */
bool ls_session_is_apart(const struct ls_session *s);

/* The stamps of a reply that was sent; and whether stamps that come back are those of a
 * reply. */
void ls_session_sent(struct ls_session *s, uint64_t t2_ns, uint64_t t3_ns);
bool ls_session_has_sent(const struct ls_session *s, uint64_t t2_ns, uint64_t t3_ns);

/*
 * May item seq be accepted now? 0: yes. -LS_EDUPLICATE: it was (counted; also if its
 * bytes changed, by their fingerprint). -LS_EBUSY: one before it is missing (counted).
 * An agent that comes back with the same hole LS_SESSION_HOLE_TRIES times cannot fill
 * it: then yes.
 */
#define LS_SESSION_HOLE_TRIES 3
int ls_session_check(struct ls_session *s, enum ls_session_stream stream, uint64_t seq,
	uint32_t fingerprint) LS_MUSTCHECK;

/* Accepts the item that ls_session_check allowed. */
void ls_session_accept(struct ls_session *s, enum ls_session_stream stream,
	uint64_t seq, uint32_t fingerprint);

/* All items up to this number are accepted. */
uint64_t ls_session_accepted(const struct ls_session *s, enum ls_session_stream stream);
/* All items up to this number are on disk. */
uint64_t ls_session_committed(const struct ls_session *s,
	enum ls_session_stream stream);
/* True if anything of either stream is accepted and not yet on disk. */
bool ls_session_is_behind(const struct ls_session *s);

/* A report of this session waits for its commit (it cannot be evicted), and is done
 * with it. */
void ls_session_hold(struct ls_session *s);
void ls_session_release(struct ls_session *s);

/* All items of a stream up to seq are on disk. */
void ls_session_commit(struct ls_session *s, enum ls_session_stream stream,
	uint64_t seq);

/* Its bucket (collector/ingest/rate.h): that of a session from storage is full, a new
 * one begins with LS_RATE_AGENT_NEW_NS. */
int64_t *ls_session_rate(struct ls_session *s);

/* Has it said who its host is, since it was new here? And: it has. */
bool ls_session_is_identified(const struct ls_session *s);
void ls_session_identified(struct ls_session *s);

/* Fingerprint of an item's bytes (FNV-1a; it guards against mistakes, not against
 * attack). */
uint32_t ls_session_fingerprint(const uint8_t *data, size_t len);

#endif
