/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink - reports to the collector, one at a time, and what its answers mean.
 *
 *              connected             beat              answered: acknowledged
 *      DOWN ------------> READY ------------> AWAIT --------------------------> READY
 *       ^                   ^                   |
 *       |                   |    time is over   | asked to wait, refused, no sense, no answer
 *       |                   +------- HOLD <-----+
 *       +--- connection lost, from any state
 *
 * A report carries what the collector does not know yet: workers, items of the spool,
 * and what is true now: hot values, live slots, and all values while zoomed. Items stay
 * in the spool until an answer acknowledges them, so nothing is lost with a report.
 * Steps go first, and with more of them to send, the next report follows the answer at
 * once. Chunk items fill what is left, at the pace of back-fill: as many bytes as were
 * pushed since the connection came up, and backfill_bytes_per_s on top.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  those of exchange.h.
 * Limits:  LS_ITEMS_PER_REPORT_MAX, LS_REPORT_ITEMS_BYTES, LS_REPORT_CHUNK_BYTES,
 *          LS_ACK_TIMEOUT_NS, LS_BAD_ACK_HOLD_NS, LS_REJECT_HOLD_NS; the beat stays
 *          within LS_BEAT_MIN_NS and LS_BEAT_MAX_NS.
 * Source:  proto/FORMAT.md, "Report and Ack".
 */
#ifndef LS_AGENT_UPLINK_H
#define LS_AGENT_UPLINK_H

#include "agent/spool/spool.h"
#include "proto/wire/wire.h"

struct ls_loop;
struct ls_tls;
struct ls_uplink;

enum ls_uplink_state {
#define LS_UPLINK_STATE(id, name) LS_UPLINK_STATE_##id,
#include "agent/uplink/uplink_state.def"
#undef LS_UPLINK_STATE
	LS_UPLINK_STATE_COUNT
};

struct ls_uplink_stats {
#define LS_UPLINK_STAT(field, help) uint64_t field;
#include "agent/uplink/uplink_stat.def"
#undef LS_UPLINK_STAT
};

/* What there is to tell; texts are borrowed, `refused` is from outside ("": not
 * refused). */
struct ls_uplink_told {
	const char *url, *refused;
	const char *wrong; /* with the collector, by the last connection; "": nothing */
	uint64_t tls_failures;
	bool held, has_exchange;
	/* of the last exchange, without the time it waited there */
	uint64_t round_trip_ns;
};

struct ls_uplink_options {
	const char *url; /* "tcp://host:port" */
	/* name of this host; a name (ls_text_is_name) */
	const char *host;
	uint8_t kernel_boot_id[16];
	uint64_t beat_ns;
	struct ls_spool *spool; /* borrowed */
	struct ls_tls *tls; /* borrowed; NULL: plain */
	void *arg;
	/*
	 * Reads what is new into the spool, before a report is made; may be NULL. The
	 * report follows when the spool is idle (ls_uplink_spool_is_idle), or after
	 * LS_SPOOL_WAIT_NS without the new items.
	 */
	void (*gather)(void *arg);
	/* Fills in all workers known here, hot values, live slots, dropped_records; what it points to
	   must hold until the next call. */
	void (*fill)(void *arg, struct ls_wire_report *r);
	uint64_t backfill_bytes_per_s;
	/* The rest may be NULL. */
	/* The collector asks for a dictionary of chunks. */
	void (*need_dictionary)(void *arg, uint64_t hash);
	/* The latest values of all groups, at most LS_GROUPS_MAX; they must hold until
	 * the next call. */
	size_t (*zoom)(void *arg, struct ls_wire_zoomed *ret_zoomed);
	/* Who this host is, and a number that changes with it; sent when new, changed
	 * or asked for. */
	const struct ls_wire_identity *(*identity)(void *arg, size_t *ret_count,
		uint64_t *ret_version);
};

/* Makes the uplink and begins to connect. -LS_ERANGE: the url is none. */
int ls_uplink_new(struct ls_loop *loop, const struct ls_uplink_options *options,
	struct ls_uplink **ret_uplink) LS_MUSTCHECK;

/* Gives up what is under way. Accepts NULL. */
void ls_uplink_free(struct ls_uplink *u);

/* Another beat of our own; the collector may ask for a longer one, from answer to
 * answer. */
void ls_uplink_set_beat(struct ls_uplink *u, uint64_t beat_ns);

/* Sends at the next chance, not at the next beat. */
void ls_uplink_hurry(struct ls_uplink *u);

/* True while the collector wants all values live. */
bool ls_uplink_is_zoomed(const struct ls_uplink *u);

/* True if nothing is under way and nothing can be sent now: for the end. */
bool ls_uplink_is_settled(const struct ls_uplink *u);

/* The disk thread is done with the spool: a report that waits for it is made now. */
void ls_uplink_spool_is_idle(struct ls_uplink *u);

/* The state now. */
enum ls_uplink_state ls_uplink_get_state(const struct ls_uplink *u);
/* Beats are longer by this factor, up to LS_BUDGET_BEAT_MAX_NS, to use less; 1: not. */
void ls_uplink_set_slowed(struct ls_uplink *u, unsigned factor);
/* What the doctor tells of it. */
void ls_uplink_tell(const struct ls_uplink *u, struct ls_uplink_told *ret_told);
/* The beat in force. */
uint64_t ls_uplink_beat_ns(const struct ls_uplink *u);
/* Counters; borrowed. */
const struct ls_uplink_stats *ls_uplink_get_stats(const struct ls_uplink *u);

#endif
