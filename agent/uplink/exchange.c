/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/uplink/exchange.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "agent/uplink/resolve.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/text.h"
#include "proto/wire/frame.h"

/* an ack and its frame, as a rule; larger ones take memory of their own */
#define EXCHANGE_BUFFER_BYTES 1024
#define EXCHANGE_HEAD_BYTES (LS_FRAME_LENGTH_BYTES + LS_FRAME_ID_BYTES)

static const char *const exchange_state_names[] = {
#define LS_EXCHANGE_STATE(id, name) name,
#include "agent/uplink/exchange_state.def"
#undef LS_EXCHANGE_STATE
};

/* What is sent is lent from ls_exchange_send until it is sent, or the connection is over. */
struct ls_exchange {
	struct ls_exchange_handler handler;
	struct ls_loop *loop;
	char url[LS_CONF_VALUE_MAX_BYTES], host[LS_CONF_VALUE_MAX_BYTES];
	uint16_t port;
	struct ls_loop_timer *timer;
	enum ls_exchange_state state;
	uint64_t patience_ns;
	uint64_t back_off_ns; /* the next pause is not longer */

	struct ls_resolve *resolve; /* NULL: not needed */
	struct sockaddr_storage peer; /* the address to dial */
	socklen_t peer_bytes; /* 0: it is not known (yet) */
	unsigned dials; /* each takes the next address of the name */

	/* One connection. */
	int fd; /* -1: none */
	struct event readable, writable;

	/* The request under way. */
	bool busy;
	uint32_t id; /* 0: given up */
	uint32_t last_id;
	/* requests on this connection since its last answer */
	unsigned unanswered;

	/* What is sent: head, then body. */
	bool sending;
	uint8_t head[EXCHANGE_HEAD_BYTES];
	size_t head_bytes, body_bytes, sent_bytes;
	const uint8_t *body;

	/* What is received: the greeting, or frames. */
	uint8_t *buf; /* small, or memory of its own */
	size_t size, filled;
	size_t frame_bytes; /* of the first one in buf */
	uint64_t t_receive_mono_ns;
	uint8_t small[EXCHANGE_BUFFER_BYTES];
};

/* --- a connection --------------------------------------------------------- */

/* The only place that changes the state, and with it the timer. */
static void
exchange_set_state(struct ls_exchange *x, enum ls_exchange_state to, uint64_t for_ns)
{
	static const unsigned moves[LS_EXCHANGE_STATE_COUNT] = {
		[LS_EXCHANGE_STATE_PAUSE] =
			1u << LS_EXCHANGE_STATE_DIAL | 1u << LS_EXCHANGE_STATE_PAUSE,
		[LS_EXCHANGE_STATE_DIAL] = 1u << LS_EXCHANGE_STATE_DIAL |
			1u << LS_EXCHANGE_STATE_GREET | 1u << LS_EXCHANGE_STATE_PAUSE,
		[LS_EXCHANGE_STATE_GREET] =
			1u << LS_EXCHANGE_STATE_UP | 1u << LS_EXCHANGE_STATE_PAUSE,
		[LS_EXCHANGE_STATE_UP] =
			1u << LS_EXCHANGE_STATE_REST | 1u << LS_EXCHANGE_STATE_PAUSE,
		[LS_EXCHANGE_STATE_REST] =
			1u << LS_EXCHANGE_STATE_UP | 1u << LS_EXCHANGE_STATE_PAUSE,
	};

	LS_ASSERT(moves[x->state] & 1u << to);
	ls_log(LS_LOG_DEBUG, "exchange", "%s -> %s", exchange_state_names[x->state],
		exchange_state_names[to]);
	x->state = to;
	if (to == LS_EXCHANGE_STATE_UP)
		ls_loop_timer_stop(x->timer);
	else
		ls_loop_timer_start(x->timer, for_ns, 0);
}

/* Between 0 and base, which doubles: agents that lost one collector do not come back
 * together. */
static uint64_t
exchange_back_off(struct ls_exchange *x)
{
	uint64_t us = x->back_off_ns / 1000;
	uint32_t random;

	evutil_secure_rng_get_bytes(&random, sizeof(random));
	x->back_off_ns = 2 * x->back_off_ns < LS_RECONNECT_MAX_NS ? 2 * x->back_off_ns
								  : LS_RECONNECT_MAX_NS;
	return (random * us >> 32) * 1000;
}

/* Ends the connection, in whatever state. */
static void
exchange_disconnect(struct ls_exchange *x)
{
	ls_resolve_close(x->resolve);
	x->resolve = NULL;
	if (x->fd >= 0) {
		(void)event_del(&x->readable); /* fails for none of ours */
		(void)event_del(&x->writable); /* likewise */
		(void)close(x->fd); /* what was not sent is sent again by another */
	}
	x->fd = -1;
	if (x->buf != x->small)
		free(x->buf);
	x->buf = x->small;
}

/* There is no connection any more, or none came about. why: what is wrong with the
 * other side, or NULL. */
static void
exchange_lost(struct ls_exchange *x, const char *why)
{
	bool was_up = x->state == LS_EXCHANGE_STATE_UP ||
		x->state == LS_EXCHANGE_STATE_REST,
	     was_busy = x->busy;

	if (why != NULL)
		ls_log(LS_LOG_WARN, "exchange", "%s %s: reconnecting", x->url, why);
	exchange_disconnect(x);
	x->busy = false;
	exchange_set_state(x, LS_EXCHANGE_STATE_PAUSE, exchange_back_off(x));
	if (was_up)
		x->handler.event(x->handler.arg, LS_EXCHANGE_DOWN, NULL, 0, 0);
	if (was_busy)
		x->handler.event(x->handler.arg, LS_EXCHANGE_FAILED, NULL, 0, 0);
}

/* Waits for an event. It fails without memory only: then time runs out instead. */
static void
exchange_await(struct event *event)
{
	ls_ignore(event_add(event, NULL));
}

/* --- receiving ------------------------------------------------------------ */

/* How much more has to come until the first one in buf is whole. */
static int
exchange_missing(struct ls_exchange *x, size_t *ret_missing)
{
	size_t wanted = LS_FRAME_GREETING_BYTES;
	int rc = 0;

	if (x->state != LS_EXCHANGE_STATE_GREET)
		rc = ls_frame_length(x->buf, x->filled,
			LS_FRAME_ID_BYTES + LS_ACK_MAX_BYTES, &wanted);
	if (rc == -EAGAIN)
		wanted = LS_FRAME_LENGTH_BYTES;
	else if (rc == 0)
		x->frame_bytes = wanted;
	else
		return rc;
	*ret_missing = x->filled < wanted ? wanted - x->filled : 0;
	return 0;
}

/* Room for some of what is missing: memory grows with what has come, not with what a
 * length claims. */
static int
exchange_make_room(struct ls_exchange *x, size_t missing)
{
	size_t size = x->filled + missing;
	uint8_t *buf;

	if (x->filled < x->size)
		return 0;
	if (size > 2 * x->size)
		size = 2 * x->size;
	buf = realloc(x->buf != x->small ? x->buf : NULL, size);
	if (buf == NULL)
		return -ENOMEM;
	if (x->buf == x->small)
		memcpy(buf, x->small, x->filled);
	x->buf = buf;
	x->size = size;
	return 0;
}

/* The first one in buf is done with: what came behind it moves to the front, and memory
 * goes. */
static void
exchange_next(struct ls_exchange *x)
{
	size_t rest = x->filled - x->frame_bytes;
	uint8_t *old = x->buf;

	if (old != x->small && rest <= sizeof(x->small)) {
		x->buf = x->small;
		x->size = sizeof(x->small);
	}
	if (rest > 0)
		memmove(x->buf, old + x->frame_bytes, rest);
	if (old != x->buf)
		free(old);
	x->filled = rest;
}

static void
exchange_greeted(struct ls_exchange *x)
{
	if (ls_frame_check_greeting(LS_FRAME_REP, x->buf) != 0) {
		exchange_lost(x, "is not a collector");
		return;
	}
	exchange_next(x);
	exchange_set_state(x, LS_EXCHANGE_STATE_UP, 0);
	x->handler.event(x->handler.arg, LS_EXCHANGE_UP, NULL, 0, 0);
}

static void
exchange_answered(struct ls_exchange *x)
{
	const uint8_t *message = x->buf + LS_FRAME_LENGTH_BYTES;
	size_t len = x->frame_bytes - LS_FRAME_LENGTH_BYTES;
	uint32_t id;

	if (ls_frame_id(message, len, &id) != 0) {
		exchange_lost(x, "sends an invalid message");
		return;
	}
	if (x->unanswered == 0) {
		exchange_lost(x, "answers a request that was not sent");
		return;
	}
	if (x->busy && id == x->id) {
		x->busy = false;
		x->unanswered = 0; /* it skips those before, if any */
		x->back_off_ns = LS_RECONNECT_MIN_NS;
		x->handler.event(x->handler.arg, LS_EXCHANGE_ANSWER,
			message + LS_FRAME_ID_BYTES, len - LS_FRAME_ID_BYTES,
			x->t_receive_mono_ns);
	} else {
		x->unanswered--; /* of a request that was given up */
	}
	exchange_next(x);
}

/*
 * Takes what has come, and waits for more once that is not whole. An answer counts when
 * its request is sent: what was lent for it is free then.
 */
static void
exchange_proceed(struct ls_exchange *x)
{
	size_t missing = 0;
	int rc;

	while (x->fd >= 0) {
		rc = exchange_missing(x, &missing);
		if (rc == 0 && missing > 0)
			rc = exchange_make_room(x, missing);
		if (rc != 0) {
			exchange_lost(x,
				rc == -LS_ELIMIT
					? "sends more data than an answer holds"
					: NULL);
		} else if (missing > 0) {
			exchange_await(&x->readable);
			return;
		} else if (x->sending) {
			return;
		} else if (x->state == LS_EXCHANGE_STATE_GREET) {
			exchange_greeted(x);
		} else {
			exchange_answered(x);
		}
	}
}

static void
exchange_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct ls_exchange *x = arg;
	ssize_t n = recv(fd, x->buf + x->filled, x->size - x->filled, 0);

	(void)what;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		exchange_lost(x, NULL);
		return;
	}
	x->t_receive_mono_ns = ls_clock_mono_ns();
	x->filled += n > 0 ? (size_t)n : 0;
	exchange_proceed(x);
}

/* --- sending -------------------------------------------------------------- */

/* Begins to send head, which is there, and body. */
static void
exchange_begin_send(struct ls_exchange *x, size_t head_bytes, const uint8_t *body,
	size_t len)
{
	x->sending = true;
	x->head_bytes = head_bytes;
	x->body = body;
	x->body_bytes = len;
	x->sent_bytes = 0;
	exchange_await(&x->writable);
}

static void
exchange_dialled(struct ls_exchange *x)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (getsockopt(x->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0) {
		exchange_lost(x, NULL);
		return;
	}
	exchange_set_state(x, LS_EXCHANGE_STATE_GREET, x->patience_ns);
	ls_frame_greet(LS_FRAME_REQ, x->head);
	exchange_begin_send(x, LS_FRAME_GREETING_BYTES, x->head, 0);
	exchange_proceed(x);
}

/* The request under way is given up, and all of it is sent. */
static void
exchange_fail(struct ls_exchange *x)
{
	if (x->unanswered >= LS_EXCHANGE_UNANSWERED_MAX) {
		exchange_lost(x, "does not answer");
		return;
	}
	x->busy = false;
	x->handler.event(x->handler.arg, LS_EXCHANGE_FAILED, NULL, 0, 0);
}

static void
exchange_sent(struct ls_exchange *x)
{
	x->sending = false;
	if (x->state == LS_EXCHANGE_STATE_REST) {
		exchange_set_state(x, LS_EXCHANGE_STATE_UP, 0);
		exchange_fail(x);
	}
	exchange_proceed(x);
}

/* Sends what is not sent yet; a large one goes in parts. */
static void
exchange_transmit(struct ls_exchange *x)
{
	size_t of_head = x->sent_bytes < x->head_bytes ? x->sent_bytes : x->head_bytes,
	       of_body = x->sent_bytes - of_head;
	struct iovec iov[] = { { x->head + of_head, x->head_bytes - of_head },
		{ (void *)(x->body + of_body),
			x->body_bytes - of_body } }; /* only read */
	const struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n = sendmsg(x->fd, &message, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		exchange_lost(x, NULL);
		return;
	}
	x->sent_bytes += n > 0 ? (size_t)n : 0;
	if (x->sent_bytes < x->head_bytes + x->body_bytes)
		exchange_await(&x->writable);
	else
		exchange_sent(x);
}

static void
exchange_on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct ls_exchange *x = arg;

	(void)fd;
	(void)what;
	if (x->state == LS_EXCHANGE_STATE_DIAL)
		exchange_dialled(x);
	else
		exchange_transmit(x);
}

/* --- dialling ------------------------------------------------------------- */

/* Begins to connect. exchange_disconnect undoes it, whole or in part. */
static int
exchange_dial(struct ls_exchange *x)
{
	struct event_base *base = ls_loop_base(x->loop);
	const int yes = 1;

	ls_resolve_close(x->resolve);
	x->resolve = NULL;
	x->fd = socket(x->peer.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		0);
	if (x->fd < 0)
		return -errno;
	if (event_assign(&x->readable, base, x->fd, EV_READ, exchange_on_readable, x) !=
			0 ||
		event_assign(&x->writable, base, x->fd, EV_WRITE, exchange_on_writable,
			x) != 0)
		return -ENOMEM;
	x->sending = false;
	x->size = sizeof(x->small);
	x->filled = 0;
	x->unanswered = 0;
	if (setsockopt(x->fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes)) != 0 ||
		setsockopt(x->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0 ||
		(connect(x->fd, (struct sockaddr *)&x->peer, x->peer_bytes) != 0 &&
			errno != EINPROGRESS))
		return -errno;
	exchange_await(&x->writable);
	return 0;
}

/* From within libevent's resolver, which must not be freed here: hence the timer. */
static void
exchange_on_resolved(void *arg, const struct evutil_addrinfo *found, const char *why)
{
	struct ls_exchange *x = arg;
	const struct evutil_addrinfo *a;
	unsigned n = 0;

	for (a = found; a != NULL; a = a->ai_next)
		n++;
	n = n > 0 ? x->dials++ % n : 0;
	for (a = found; a != NULL && n > 0; n--)
		a = a->ai_next;
	if (a == NULL) {
		ls_log(LS_LOG_WARN, "exchange", "cannot resolve %s: %s", x->host, why);
	} else {
		memcpy(&x->peer, a->ai_addr, a->ai_addrlen);
		x->peer_bytes = (socklen_t)a->ai_addrlen;
	}
	ls_loop_timer_start(x->timer, 0, 0);
}

/* A numeric address is dialled at once, a name is resolved first. */
static int
exchange_connect(struct ls_exchange *x)
{
	const struct ls_resolve_handler handler = { x, exchange_on_resolved };
	int len = sizeof(x->peer);

	exchange_set_state(x, LS_EXCHANGE_STATE_DIAL, x->patience_ns);
	x->peer_bytes = 0;
	if (evutil_parse_sockaddr_port(x->host, (struct sockaddr *)&x->peer, &len) != 0)
		return ls_resolve_open(ls_loop_base(x->loop), x->host, x->port,
			&handler, &x->resolve);
	/* it is at the same place in an address of IPv6 */
	((struct sockaddr_in *)&x->peer)->sin_port = htons(x->port);
	x->peer_bytes = (socklen_t)len;
	return exchange_dial(x);
}

/* The time of the state is over. */
static void
exchange_due(void *arg)
{
	struct ls_exchange *x = arg;
	int rc = -ETIMEDOUT;

	if (x->state == LS_EXCHANGE_STATE_PAUSE) {
		rc = exchange_connect(x);
	} else if (x->resolve != NULL && x->peer_bytes > 0) {
		exchange_set_state(x, LS_EXCHANGE_STATE_DIAL, x->patience_ns);
		rc = exchange_dial(x);
	}
	if (rc != 0)
		exchange_lost(x,
			x->state == LS_EXCHANGE_STATE_GREET ? "sends no SP header"
				: x->state == LS_EXCHANGE_STATE_REST
				? "does not accept a request"
				: NULL);
}

/* --- life ----------------------------------------------------------------- */

int
ls_exchange_open(struct ls_loop *loop, const char *url,
	const struct ls_exchange_handler *handler, struct ls_exchange **ret_exchange)
{
	struct ls_exchange *x = calloc(1, sizeof(*x));
	int rc;

	if (x == NULL)
		return -ENOMEM;
	x->handler = *handler;
	x->loop = loop;
	x->patience_ns = LS_EXCHANGE_PATIENCE_NS;
	x->back_off_ns = LS_RECONNECT_MIN_NS;
	x->fd = -1;
	x->buf = x->small;
	evutil_secure_rng_get_bytes(&x->last_id, sizeof(x->last_id));
	rc = ls_text_copy(x->url, sizeof(x->url), url);
	if (rc == 0)
		rc = ls_resolve_split(url, x->host, sizeof(x->host), &x->port);
	x->timer = ls_loop_timer_new(loop, exchange_due, x);
	if (rc == 0 && x->timer == NULL)
		rc = -ENOMEM;
	if (rc != 0) {
		ls_exchange_close(x);
		return rc;
	}
	ls_loop_timer_start(x->timer, 0, 0);
	*ret_exchange = x;
	return 0;
}

int
ls_exchange_send(struct ls_exchange *x, const uint8_t *buf, size_t len)
{
	if (x->busy)
		return -LS_EBUSY;
	if (x->state != LS_EXCHANGE_STATE_UP)
		return -LS_ENET;
	if (len > LS_REPORT_MAX_BYTES - LS_FRAME_ID_BYTES)
		return -LS_ELIMIT;
	x->busy = true;
	x->last_id++;
	x->id = x->last_id | LS_FRAME_ID;
	x->unanswered++;
	ls_frame_put_length(x->head, LS_FRAME_ID_BYTES + len);
	ls_frame_put_id(x->head + LS_FRAME_LENGTH_BYTES, x->id);
	exchange_begin_send(x, EXCHANGE_HEAD_BYTES, buf, len);
	return 0;
}

void
ls_exchange_cancel(struct ls_exchange *x)
{
	if (!x->busy || x->id == 0)
		return;
	x->id = 0; /* an answer is late from here on */
	exchange_set_state(x, LS_EXCHANGE_STATE_REST, x->patience_ns);
	exchange_await(&x->writable);
}

void
ls_exchange_set_patience(struct ls_exchange *x, uint64_t patience_ns)
{
	x->patience_ns = patience_ns;
}

enum ls_exchange_state
ls_exchange_get_state(const struct ls_exchange *x)
{
	return x->state;
}

void
ls_exchange_close(struct ls_exchange *x)
{
	if (x == NULL)
		return;
	exchange_disconnect(x);
	ls_loop_timer_free(x->timer);
	free(x);
}
