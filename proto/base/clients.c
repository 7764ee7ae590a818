/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/clients.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct ls_client {
	LIST_ENTRY(ls_client) link;
	struct ls_clients *all;
	struct bufferevent *bev;
	struct evhttp_connection *evcon; /* NULL until adopted */
	void *answer; /* what it waits for, or NULL */
	uint64_t since_ns; /* accepted, last asked or last answered */
	bool doomed;
};
LIST_HEAD(client_list, ls_client);

struct ls_clients {
	struct ls_clients_options options;
	struct evconnlistener *listener;
	struct event *adopter, *reaper;
	struct ls_loop_timer *timer;
	struct client_list list;
	size_t count;
	bool paused;
};

static void
clients_resume(struct ls_clients *cs)
{
	if (cs->paused && cs->listener && cs->count < cs->options.connections_max) {
		cs->paused = false;
		(void)evconnlistener_enable(cs->listener);
	}
}

static void
clients_pause(struct ls_clients *cs)
{
	cs->paused = true;
	if (cs->listener)
		(void)evconnlistener_disable(cs->listener);
}

static void
clients_closed(struct evhttp_connection *evcon, void *arg)
{
	struct ls_client *c = arg;
	struct ls_clients *cs = c->all;

	(void)evcon;
	if (c->answer) {
		struct evhttp_request *req = cs->options.answer->request(c->answer);

		/* libevent lets go of a request that we are still to answer: then it
		   is ours. */
		cs->options.answer->detach(c->answer);
		if (req && !evhttp_request_get_connection(req))
			evhttp_request_free(req);
	}
	LIST_REMOVE(c, link);
	cs->count--;
	clients_resume(cs);
	free(c);
}

/*
 * evhttp tells nobody of a new connection, but asks for its bufferevent just before.
 * The connection is the argument of that bufferevent's callbacks as soon as evhttp has
 * set them: in the same turn of the loop, before anything can have been read.
 */
static void
clients_adopt(evutil_socket_t fd, short what, void *arg)
{
	struct ls_clients *cs = arg;
	struct ls_client *c;

	(void)fd;
	(void)what;
	LIST_FOREACH(c, &cs->list, link)
	{
		void *evcon = NULL;

		if (c->evcon)
			break; /* new ones are in front */
		bufferevent_getcb(c->bev, NULL, NULL, NULL, &evcon);
		c->evcon = evcon;
		evhttp_connection_set_closecb(c->evcon, clients_closed, c);
	}
}

static struct bufferevent *
clients_accept(struct event_base *base, void *arg)
{
	struct ls_clients *cs = arg;
	struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);
	struct ls_client *c = bev ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return bev; /* ls_clients_find will not know it: refused then */
	c->all = cs;
	c->bev = bev;
	c->since_ns = ls_loop_now(cs->options.loop);
	LIST_INSERT_HEAD(&cs->list, c, link);
	cs->count++;
	event_active(cs->adopter, EV_TIMEOUT, 1);
	if (cs->count >= cs->options.connections_max && !cs->paused) {
		clients_pause(cs);
		ls_log(LS_LOG_WARN, "clients",
			"%zu connections: further connections wait until one closes",
			cs->options.connections_max);
	}
	return bev;
}

/*
 * accept failed, mostly for want of descriptors: wait for the timer instead of
 * spinning.
 */
static void
clients_accept_failed(struct evconnlistener *listener, void *arg)
{
	(void)arg; /* evhttp's: a listener has one for all its callbacks */
	ls_log(LS_LOG_WARN, "clients",
		"cannot accept a connection: %s; waiting until one closes",
		strerror(EVUTIL_SOCKET_ERROR()));
	(void)evconnlistener_disable(listener);
}

static void
clients_reap(evutil_socket_t fd, short what, void *arg)
{
	struct ls_clients *cs = arg;
	struct ls_client *c, *next;

	(void)fd;
	(void)what;
	for (c = LIST_FIRST(&cs->list); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->doomed && c->evcon)
			evhttp_connection_free(c->evcon); /* calls clients_closed */
	}
}

/* Its end is closed, and whoever owes it an answer takes that for its leave. */
static bool
clients_is_gone(const struct ls_client *c)
{
	const struct ls_clients_answer *answer = c->all->options.answer;
	struct pollfd p = { bufferevent_getfd(c->bev), POLLRDHUP, 0 };

	return c->answer && answer->is_gone && poll(&p, 1, 0) == 1 &&
		(p.revents & (POLLRDHUP | POLLHUP | POLLERR)) &&
		answer->is_gone(c->answer);
}

static void
clients_tick(void *arg)
{
	struct ls_clients *cs = arg;
	uint64_t now = ls_loop_now(cs->options.loop);
	struct ls_client *c;

	LIST_FOREACH(c, &cs->list, link)
	{
		if (clients_is_gone(c))
			c->doomed = true;
		if (now - c->since_ns <= cs->options.timeout_ns)
			continue;
		if (c->answer && cs->options.answer->expire(c->answer))
			continue;
		c->doomed = true;
	}
	clients_reap(-1, 0, cs);
	/* Also after a failed accept, which nothing else would undo. */
	if (cs->listener && cs->count < cs->options.connections_max)
		(void)evconnlistener_enable(cs->listener);
	cs->paused = cs->count >= cs->options.connections_max;
}

struct ls_clients *
ls_clients_new(const struct ls_clients_options *options)
{
	struct event_base *base = ls_loop_base(options->loop);
	struct ls_clients *cs = calloc(1, sizeof(*cs));

	if (!cs)
		return NULL;
	cs->options = *options;
	LIST_INIT(&cs->list);
	cs->adopter = event_new(base, -1, 0, clients_adopt, cs);
	cs->reaper = event_new(base, -1, 0, clients_reap, cs);
	cs->timer = ls_loop_timer_new(options->loop, clients_tick, cs);
	if (!cs->adopter || !cs->reaper || !cs->timer) {
		ls_clients_stop(cs);
		ls_clients_free(cs);
		return NULL;
	}
	evhttp_set_bevcb(options->http, clients_accept, cs);
	ls_loop_timer_start(cs->timer, options->tick_ns, options->tick_ns);
	return cs;
}

void
ls_clients_listener(struct ls_clients *cs, struct evconnlistener *listener)
{
	cs->listener = listener;
	evconnlistener_set_error_cb(listener, clients_accept_failed);
}

void
ls_clients_stop(struct ls_clients *cs)
{
	if (!cs)
		return;
	cs->listener = NULL; /* connections that close must not open the door again */
	ls_loop_timer_free(cs->timer);
	cs->timer = NULL;
	if (cs->adopter) {
		clients_adopt(-1, 0, cs); /* whoever was accepted in this very turn */
		event_free(cs->adopter);
	}
	if (cs->reaper)
		event_free(cs->reaper);
	cs->adopter = cs->reaper = NULL;
}

void
ls_clients_free(struct ls_clients *cs)
{
	if (cs)
		LS_ASSERT(LIST_EMPTY(&cs->list));
	free(cs);
}

size_t
ls_clients_count(const struct ls_clients *cs)
{
	return cs->count;
}

struct ls_client *
ls_clients_find(const struct ls_clients *cs, struct evhttp_request *req)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(req);
	struct ls_client *c;

	LIST_FOREACH(c, &cs->list, link)
	{
		if (c->evcon == evcon)
			return c;
	}
	return NULL;
}

void
ls_client_waits(struct ls_client *c, void *answer)
{
	c->answer = answer;
	ls_client_touch(c);
}

void
ls_client_touch(struct ls_client *c)
{
	c->since_ns = ls_loop_now(c->all->options.loop);
}

void
ls_client_drop(struct ls_client *c)
{
	c->answer = NULL;
	c->doomed = true;
	event_active(c->all->reaper, EV_TIMEOUT, 1);
}
