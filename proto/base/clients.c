/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/base/clients.h"
#include "proto/base/http.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/table.h"
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <malloc.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* an answer from here on has the clients looked at */
#define CLIENTS_LARGE_BYTES (256u * 1024)
/* when so much was unread and no more is, memory is given back to the system */
#define CLIENTS_TRIM_BYTES (8u * 1024 * 1024)

/* An address, and how many connections it holds. */
struct client_peer {
	char address[48]; /* first: the key */
	size_t count;
};

struct ls_client {
	LIST_ENTRY(ls_client) link;
	struct ls_clients *all;
	struct bufferevent *bev; /* until adopted, one reference is ours */
	struct evhttp_connection *evcon; /* NULL until adopted */
	void *answer; /* what it waits for, or NULL */
	struct ls_http_mark mark;
	struct client_peer *peer; /* NULL: not adopted, or no memory for one */
	uint64_t since_ns; /* accepted, last asked or last answered */
	size_t unread_bytes; /* when it was looked at */
	uint64_t read_ns; /* when it had read something, or had nothing to read */
	bool doomed;
};
LIST_HEAD(client_list, ls_client);

struct ls_clients {
	struct ls_clients_options options;
	struct evconnlistener *listener;
	struct event *adopter, *reaper;
	struct ls_loop_timer *timer;
	struct client_list list;
	struct ls_table peers;
	struct ls_clients_stats stats;
	bool was_large;
};

static void
clients_leave_peer(struct ls_client *c)
{
	struct client_peer *p = c->peer;

	if (!p || --p->count > 0)
		return;
	ls_table_remove(&c->all->peers, p);
	free(p);
}

static void
clients_enter_peer(struct ls_client *c)
{
	struct client_peer key = { 0 }, *p;
	char *address = NULL;
	uint16_t port;

	evhttp_connection_get_peer(c->evcon, &address, &port);
	if (address)
		(void)snprintf(key.address, sizeof(key.address), "%s", address);
	p = ls_table_find(&c->all->peers, &key);
	if (!p) {
		p = malloc(sizeof(*p));
		if (!p)
			return;
		*p = key;
		if (ls_table_put(&c->all->peers, p) != 0) {
			free(p);
			return;
		}
	}
	p->count++;
	c->peer = p;
}

static void
clients_remove(struct ls_client *c)
{
	LIST_REMOVE(c, link);
	ls_http_mark_stop(&c->mark);
	clients_leave_peer(c);
	c->all->stats.count--;
	free(c);
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
	clients_remove(c);
}

/* Is a rather than b closed when places run short? Of the address that holds more, then
 * the one without a question under way, then the one idle for longer. */
static bool
clients_is_worse(const struct ls_client *a, const struct ls_client *b)
{
	size_t a_holds = a->peer ? a->peer->count : 1;
	size_t b_holds = b->peer ? b->peer->count : 1;

	if (a_holds != b_holds)
		return a_holds > b_holds;
	if (!a->answer != !b->answer)
		return !a->answer;
	return a->since_ns <= b->since_ns; /* the list begins with the newest */
}

/* Closes one connection for a newcomer; false: none can be. */
static bool
clients_crowd_out(struct ls_clients *cs)
{
	struct ls_client *c, *worst = NULL;

	LIST_FOREACH (c, &cs->list, link) {
		if (c->evcon && (!worst || clients_is_worse(c, worst)))
			worst = c;
	}
	if (!worst)
		return false;
	cs->stats.crowded++;
	ls_log(LS_LOG_WARN, "clients",
		"%zu connections: closing the idlest of %s, which holds %zu",
		cs->options.connections_max, worst->peer ? worst->peer->address : "?",
		worst->peer ? worst->peer->count : 1);
	evhttp_connection_free(worst->evcon); /* calls clients_closed */
	return true;
}

/* Looks at what each has still to read. While that is too much, one after the other is
 * doomed. */
static void
clients_unread(struct ls_clients *cs)
{
	uint64_t now = ls_loop_now(cs->options.loop);
	struct ls_client *c, *idlest;
	size_t total = 0;

	LIST_FOREACH (c, &cs->list, link) {
		size_t bytes = evbuffer_get_length(bufferevent_get_output(c->bev));

		if (bytes == 0 || bytes < c->unread_bytes || c->unread_bytes == 0)
			c->read_ns = now;
		c->unread_bytes = bytes;
		total += c->doomed ? 0 : bytes;
	}
	cs->was_large = cs->was_large || total > CLIENTS_TRIM_BYTES;
	if (cs->was_large && total == 0) {
		cs->was_large = false;
		(void)malloc_trim(0); /* nothing to give back: as well */
	}
	while (total > cs->options.unread_max) {
		idlest = NULL;
		LIST_FOREACH (c, &cs->list, link) {
			if (!c->doomed && c->unread_bytes > 0 &&
				(!idlest || c->read_ns < idlest->read_ns))
				idlest = c;
		}
		if (!idlest)
			break;
		idlest->doomed = true;
		total -= idlest->unread_bytes;
		cs->stats.unread++;
		ls_log(LS_LOG_WARN, "clients",
			"clients have more than %zu MiB to read; closing the connection that read nothing for longest",
			cs->options.unread_max >> 20);
	}
}

/*
 * evhttp tells nobody of a new connection, but asks for its bufferevent just before.
 * The connection is the argument of that bufferevent's callbacks as soon as evhttp has
 * set them: in the same turn of the loop, before anything can have been read. If it had
 * no memory for a connection there is none, and the bufferevent is freed, or nobody's.
 */
static void
clients_adopt(evutil_socket_t fd, short what, void *arg)
{
	struct ls_clients *cs = arg;
	struct ls_client *c, *next;

	(void)fd;
	(void)what;
	for (c = LIST_FIRST(&cs->list); c && !c->evcon; c = next) {
		void *evcon = NULL;

		next = LIST_NEXT(c, link); /* new ones are in front */
		bufferevent_getcb(c->bev, NULL, NULL, NULL, &evcon);
		c->evcon = evcon;
		if (evcon) {
			(void)bufferevent_decref(c->bev); /* evhttp has it */
			evhttp_connection_set_closecb(c->evcon, clients_closed, c);
			clients_enter_peer(c);
		} else {
			struct bufferevent *bev = c->bev;

			clients_remove(c);
			if (bufferevent_decref(bev) == 0)
				bufferevent_free(bev);
		}
	}
	while (cs->stats.count > cs->options.connections_max && clients_crowd_out(cs))
		;
}

/* It sends on and on, and nobody can read it: closed in this turn of the loop. */
static void
clients_beyond(void *arg)
{
	struct ls_client *c = arg;

	c->doomed = true;
	c->all->stats.late++;
	event_active(c->all->reaper, EV_TIMEOUT, 1);
}

static struct bufferevent *
clients_accept(struct event_base *base, void *arg)
{
	struct ls_clients *cs = arg;
	struct bufferevent *bev = cs->options.accept
		? cs->options.accept(base, cs->options.arg)
		: bufferevent_socket_new(base, -1, 0);
	struct ls_client *c = bev ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return bev; /* ls_clients_find will not know it: refused then */
	c->mark = (struct ls_http_mark){ .bev = bev,
		.max = cs->options.header_max + cs->options.body_max,
		.beyond = clients_beyond,
		.arg = c };
	if (ls_http_mark_start(&c->mark) != 0) {
		free(c);
		return bev; /* likewise */
	}
	bufferevent_incref(bev);
	c->all = cs;
	c->bev = bev;
	c->since_ns = ls_loop_now(cs->options.loop);
	c->read_ns = c->since_ns;
	LIST_INSERT_HEAD(&cs->list, c, link);
	cs->stats.count++;
	event_active(cs->adopter, EV_TIMEOUT, 1);
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
	clients_unread(cs);
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

	LIST_FOREACH (c, &cs->list, link) {
		if (clients_is_gone(c))
			c->doomed = true;
		if (now - c->since_ns <= cs->options.timeout_ns)
			continue;
		if (c->answer && cs->options.answer->expire(c->answer))
			continue;
		c->doomed = true;
		cs->stats.late++;
	}
	clients_reap(-1, 0, cs);
	if (cs->listener) /* after a failed accept nothing else would */
		(void)evconnlistener_enable(cs->listener);
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
	ls_table_init(&cs->peers, sizeof(((struct client_peer *)NULL)->address));
	cs->adopter = event_new(base, -1, 0, clients_adopt, cs);
	cs->reaper = event_new(base, -1, 0, clients_reap, cs);
	cs->timer = ls_loop_timer_new(options->loop, clients_tick, cs);
	if (!cs->adopter || !cs->reaper || !cs->timer) {
		ls_clients_stop(cs);
		ls_clients_free(cs);
		return NULL;
	}
	evhttp_set_max_headers_size(options->http, (ev_ssize_t)options->header_max);
	evhttp_set_max_body_size(options->http, (ev_ssize_t)options->body_max);
	evhttp_set_timeout(options->http, (int)(options->timeout_ns / 1000000000));
	/* All, so that it is we who refuse: libevent would answer 501 in HTML. */
	evhttp_set_allowed_methods(options->http,
		EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
			EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
			EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
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
	if (!cs)
		return;
	LS_ASSERT(LIST_EMPTY(&cs->list));
	ls_table_fini(&cs->peers);
	free(cs);
}

void
ls_clients_stats(const struct ls_clients *cs, struct ls_clients_stats *ret_stats)
{
	*ret_stats = cs->stats;
}

struct ls_client *
ls_clients_find(const struct ls_clients *cs, struct evhttp_request *req)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(req);
	struct ls_client *c;

	LIST_FOREACH (c, &cs->list, link) {
		if (c->evcon == evcon)
			return c;
	}
	return NULL;
}

void
ls_client_waits(struct ls_client *c, void *answer)
{
	bufferevent_data_cb written;
	bufferevent_event_cb event;
	void *arg;

	c->answer = answer;
	ls_client_touch(c);
	if (!answer)
		return;
	/* evhttp ends the process when it is told of bytes now, and OpenSSL's end tells of
	 * some that come while reading is off (with an update of keys). evhttp sets its own
	 * again when it answers. */
	bufferevent_getcb(c->bev, NULL, &written, &event, &arg);
	bufferevent_setcb(c->bev, NULL, written, event, arg);
}

void
ls_client_touch(struct ls_client *c)
{
	c->since_ns = ls_loop_now(c->all->options.loop);
	if (evbuffer_get_length(bufferevent_get_output(c->bev)) > CLIENTS_LARGE_BYTES &&
		c->all->reaper)
		event_active(c->all->reaper, EV_TIMEOUT, 1);
}

void
ls_client_drop(struct ls_client *c)
{
	c->answer = NULL;
	c->doomed = true;
	event_active(c->all->reaper, EV_TIMEOUT, 1);
}
