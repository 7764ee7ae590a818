/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link - the connection of one simulated agent: its states, its socket, its beats. For
 * fleet.c alone.
 *
 * The states of a connection:
 *
 *   DOWN --timer--> CONNECTING --connected--> GREETING --REP--> READY --beat--> AWAIT --answer--> READY
 *     ^                 |                        |                ^               |
 *     |                 |                        |                +--timer-- HOLD <- RETRY, REJECT
 *     +---- the connection fails or ends, from any of them: a new one after a random time ----
 *
 * Owner:   the loop thread.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  -ENOMEM, -EINVAL.
 * Limits:  of what is not whole yet, or not written yet, as much as one message has.
 */
#ifndef LS_TESTS_SIM_LINK_H
#define LS_TESTS_SIM_LINK_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <openssl/ssl.h>
#include "proto/base/loop.h"
#include "deploy/demo/sim/fleet.h"
#include "deploy/demo/sim/net.h"
#include "proto/wire/frame.h"

#define SIM_LINK_HEAD_BYTES (LS_FRAME_LENGTH_BYTES + LS_FRAME_ID_BYTES)

enum sim_link_state {
	LINK_DOWN,
	LINK_CONNECTING,
	LINK_GREETING,
	LINK_READY,
	LINK_AWAIT,
	LINK_HOLD,
	LINK_STATES
};

struct sim_link {
	struct sim_fleet *fleet;
	struct event timer;
	struct bufferevent *stream; /* NULL: none */
	SSL_SESSION *session; /* of its last connection with TLS, to resume */
	X509 *certificate; /* of its host; NULL: plain */
	EVP_PKEY *key;
	enum sim_link_state state;
	bool settled; /* had an OK by this connection */
	unsigned failures; /* in a row */
	uint32_t id; /* of the request under way */
	uint64_t next_beat_ns, hold_until_ns, t_send_ns;
	struct sim_agent agent;
};

/* What the links share. */
struct sim_fleet {
	struct ls_loop *loop;
	const struct sim_options *options;
	struct sim_plan plan;
	struct sim_address address;
	SSL_CTX *tls; /* NULL: plain */
	struct sim_tally *tally;
	struct sim_sums sums;
	struct ls_loop_timer *report_timer, *drain_timer;
	uint64_t jitter_ns, random;
	uint32_t count; /* links that were made */
	struct sim_link *links;
	uint8_t out[SIM_LINK_HEAD_BYTES + LS_REPORT_MAX_BYTES];
};

/* A link with the keys of its host; -EINVAL, logged: they cannot be read. */
int sim_link_init(struct sim_link *l, struct sim_fleet *f, uint32_t index) LS_MUSTCHECK;
/* It connects at due_ns. */
void sim_link_start(struct sim_link *l, uint64_t due_ns);
void sim_link_fini(struct sim_link *l);

/* While all is drained: a link that waits for its beat reports now. */
void sim_link_hurry(struct sim_link *l, uint64_t now_ns);

/* Below `below`, evenly; 0 for 0. */
uint64_t sim_fleet_random(struct sim_fleet *f, uint64_t below);

#endif
