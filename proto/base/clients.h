/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clients - who is connected to an evhttp server: how many, since when, waiting for
 * what.
 *
 * libevent's own timeouts are of silence, so one byte at a time would hold a connection
 * for ever. Here a client has a deadline for a whole request, and whoever answers has
 * one for the answer.
 *
 * Owner:   the loop thread.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  none; a client that cannot be remembered is refused when it asks.
 * Limits:  connections_max: a newcomer is let in, and of the address that holds most
 *          connections the one that is idle for longest is closed. header_max and
 *          body_max of each connection, also while an answer waits. unread_max for what
 *          all clients have still to read: beyond it, who read nothing for longest is
 *          closed.
 */
#ifndef LS_BASE_CLIENTS_H
#define LS_BASE_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bufferevent;
struct evconnlistener;
struct event_base;
struct evhttp;
struct evhttp_request;
struct ls_client;
struct ls_clients;
struct ls_loop;

/* An answer that may come later, as a server has it. */
struct ls_clients_answer {
	/* The request it is to, NULL once detached. */
	struct evhttp_request *(*request)(const void *answer);
	/* The connection went: what follows goes nowhere. */
	void (*detach)(void *answer);
	/*
	 * The client will send nothing more: may it be gone? libevent does not look
	 * while it waits. NULL: it may only have closed its half.
	 */
	bool (*is_gone)(const void *answer);
	/* It took too long: answers so. False: only closing the connection can end it.
	 */
	bool (*expire)(void *answer);
};

struct ls_clients_options {
	struct ls_loop *loop;
	struct evhttp *http;
	uint64_t timeout_ns, tick_ns; /* the deadline, and how often it is looked at */
	size_t connections_max;
	size_t header_max, body_max; /* bytes of a request: set in http, too */
	size_t unread_max; /* bytes of all answers; looked at with each large one */
	/* Makes the end of a new connection; NULL: a plain one. */
	struct bufferevent *(*accept)(struct event_base *base, void *arg);
	void *arg; /* of accept */
	/* How to deal with answers; NULL: all are given at once. Must outlive the
	 * clients. */
	const struct ls_clients_answer *answer;
};

/* Watches and limits the connections of http; NULL when out of memory. */
struct ls_clients *ls_clients_new(const struct ls_clients_options *options);

/* The listener, which rests after an accept that failed. */
void ls_clients_listener(struct ls_clients *cs, struct evconnlistener *listener);

/*
 * Ends watching. Call before evhttp_free, and ls_clients_free after it (both accept
 * NULL).
 */
void ls_clients_stop(struct ls_clients *cs);
void ls_clients_free(struct ls_clients *cs);

struct ls_clients_stats {
	size_t count; /* connections open now */
	/* closed: for a newcomer, for memory, at their deadline or beyond their mark */
	uint64_t crowded, unread, late;
};

/* Counters so far. */
void ls_clients_stats(const struct ls_clients *cs, struct ls_clients_stats *ret_stats);

/* The client that sent a request, or NULL. */
struct ls_client *ls_clients_find(const struct ls_clients *cs,
	struct evhttp_request *req);

/*
 * Names the answer that the client waits for; NULL: the client has its answer. If the
 * connection ends first, the answer is detached from it.
 */
void ls_client_waits(struct ls_client *c, void *answer);

/* The answer moves: the deadline starts again. */
void ls_client_touch(struct ls_client *c);

/* Closes the connection, not now but in this turn of the loop; it no longer waits. */
void ls_client_drop(struct ls_client *c);

#endif
