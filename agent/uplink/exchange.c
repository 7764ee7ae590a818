/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#define LS_TLS_OPTIONAL
#include "agent/uplink/exchange.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/util.h>
#include <nng/nng.h>
#include <nng/supplemental/util/platform.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/uplink/resolve.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/queue.h"
#include "proto/base/text.h"
#include "proto/wire/err_nng.h"
#include "proto/wire/frame.h"
#include "proto/wire/stream.h"

/* an ack and its frame, as a rule; larger ones take memory of their own */
#define EXCHANGE_BUFFER_BYTES 1024
#define EXCHANGE_HEAD_BYTES (LS_FRAME_LENGTH_BYTES + LS_FRAME_ID_BYTES)

static const char *const exchange_state_names[] = {
#define LS_EXCHANGE_STATE(id, name) name,
#include "agent/uplink/exchange_state.def"
#undef LS_EXCHANGE_STATE
};

/* What nng's threads tell the loop: the addresses of these are the messages. */
struct exchange_note {
	char unused;
};

/*
 * What is received belongs to nng from exchange_receive to the note `came`, what is
 * sent from exchange_transmit to the note `sent`; else they are the loop's. The queue
 * (and nng's own locks on the way back) order the changes of hands.
 */
struct ls_exchange {
	struct ls_exchange_handler handler;
	struct ls_loop *loop;
	char url[LS_CONF_VALUE_MAX_BYTES], host[LS_CONF_VALUE_MAX_BYTES];
	uint16_t port;
	struct ls_queue *queue;
	struct ls_loop_timer *timer;
	struct exchange_note resolved, dialled, came, sent, cancelled;
	enum ls_exchange_state state;
	uint64_t patience_ns;
	uint64_t back_off_ns; /* the next pause is not longer */
	/* The address to dial; empty: the host name has none. */
	struct ls_resolve *resolve; /* NULL: not needed */
	char address[LS_CONF_VALUE_MAX_BYTES + 16];
	unsigned dials; /* each takes the next address of the name */
	/* One connection; NULL while there is none. */
	nng_stream_dialer *dialer;
	nng_aio *dial, *rx, *tx;
	struct ls_stream *stream;
	struct ls_tls *tls; /* NULL: plain */
	uint64_t looked_mono_ns; /* at the files of tls */
	char wrong[LS_TLS_TEXT_MAX_BYTES]; /* with the other side */
	uint64_t tls_failures;
	atomic_bool closing; /* no callback submits anything any more */
	/* The request under way. */
	bool busy;
	uint32_t id; /* 0: given up */
	uint32_t last_id;
	/* requests on this connection since its last answer */
	unsigned unanswered;
	/* What is sent: head, then body. */
	bool sending;
	int tx_rc;
	uint8_t head[EXCHANGE_HEAD_BYTES];
	size_t head_bytes, body_bytes, sent_bytes;
	const uint8_t *body;
	/* What is received: the greeting, or frames. */
	bool received; /* loop: a whole one waits */
	bool greeted;
	int rx_rc;
	uint8_t *buf; /* small, or memory of its own */
	size_t size, filled;
	size_t frame_bytes; /* of the first one in buf */
	uint64_t t_receive_mono_ns;
	uint8_t small[EXCHANGE_BUFFER_BYTES];
};

/* --- receiving and sending on: by the loop, then on nng's threads --------- */

/* At most one note of each kind is in the queue, so it cannot be full. */
static void
exchange_tell(struct ls_exchange *x, struct exchange_note *note)
{
	int rc = ls_queue_push(x->queue, note);

	LS_ASSERT(rc == 0 || rc == -LS_ECLOSED);
}

/* How much more has to come until the first one in buf is whole. */
static int
exchange_missing(struct ls_exchange *x, size_t *ret_missing)
{
	size_t wanted = LS_FRAME_GREETING_BYTES;
	int rc = 0;

	if (x->greeted)
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

/* Receives until one is whole; that, or the end, is told. */
static void
exchange_receive(struct ls_exchange *x)
{
	size_t missing = 0, room;

	x->rx_rc = exchange_missing(x, &missing);
	if (x->rx_rc == 0 && missing > 0)
		x->rx_rc = exchange_make_room(x, missing);
	if (x->rx_rc != 0 || missing == 0) {
		exchange_tell(x, &x->came);
		return;
	}
	room = x->size - x->filled;
	ls_stream_recv(x->stream, x->buf + x->filled, room, room, x->rx);
}

static void
exchange_on_received(void *arg)
{
	struct ls_exchange *x = arg;
	size_t len;

	if (atomic_load(&x->closing))
		return;
	x->t_receive_mono_ns = ls_clock_mono_ns();
	x->rx_rc = ls_err_nng(ls_stream_received(x->stream, x->rx, &len));
	if (x->rx_rc != 0) {
		exchange_tell(x, &x->came);
		return;
	}
	x->filled += len;
	exchange_receive(x);
}

/* Sends what is not sent yet; that all of it is, or cannot be, is told. */
static void
exchange_transmit(struct ls_exchange *x)
{
	size_t at = x->sent_bytes;
	unsigned n = 0;
	nng_iov iov[2];

	if (at < x->head_bytes) {
		iov[n].iov_buf = x->head + at;
		iov[n++].iov_len = x->head_bytes - at;
		at = x->head_bytes;
	}
	at -= x->head_bytes;
	if (at < x->body_bytes) {
		iov[n].iov_buf = (void *)(x->body + at); /* only read */
		iov[n++].iov_len = x->body_bytes - at;
	}
	if (n == 0) {
		exchange_tell(x, &x->sent);
		return;
	}
	ls_stream_send(x->stream, iov, n, x->tx);
}

static void
exchange_on_sent(void *arg)
{
	struct ls_exchange *x = arg;
	size_t len;

	if (atomic_load(&x->closing))
		return;
	x->tx_rc = ls_err_nng(ls_stream_sent(x->stream, x->tx, &len));
	if (x->tx_rc != 0) {
		exchange_tell(x, &x->sent);
		return;
	}
	x->sent_bytes += len; /* a large one goes in parts */
	exchange_transmit(x);
}

static void
exchange_on_dialled(void *arg)
{
	struct ls_exchange *x = arg;

	if (!atomic_load(&x->closing))
		exchange_tell(x, &x->dialled);
}

/* --- a connection: on the loop from here on ------------------------------- */

/* The only place that changes the state, and with it the timer. */
static void
exchange_set_state(struct ls_exchange *x, enum ls_exchange_state to, uint64_t for_ns)
{
	static const unsigned moves[LS_EXCHANGE_STATE_COUNT] = {
		[LS_EXCHANGE_STATE_PAUSE] =
			1u << LS_EXCHANGE_STATE_DIAL | 1u << LS_EXCHANGE_STATE_PAUSE,
		[LS_EXCHANGE_STATE_DIAL] =
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
	uint64_t us = x->back_off_ns / 1000, max_ns = LS_RECONNECT_MAX_NS;
	const struct ls_tls_told *told = ls_stream_tell(x->stream);

	if (told != NULL && told->fault == LS_TLS_CERTIFICATE)
		max_ns = LS_REJECT_HOLD_NS; /* a person has to act */
	x->back_off_ns = 2 * x->back_off_ns < max_ns ? 2 * x->back_off_ns : max_ns;
	return (nng_random() * us >> 32) * 1000;
}

/*
 * Ends the connection, in whatever state: once it is closed and its aios are stopped,
 * no callback runs, and none comes. What they told before is forgotten.
 */
static void
exchange_disconnect(struct ls_exchange *x)
{
	nng_stream *raw;
	void *note;

	atomic_store(&x->closing, true);
	ls_resolve_close(x->resolve);
	x->resolve = NULL;
	if (x->dialer != NULL)
		nng_stream_dialer_close(x->dialer);
	nng_aio_stop(x->dial); /* accepts NULL */
	if (x->stream == NULL && x->dial != NULL && nng_aio_result(x->dial) == 0) {
		raw = nng_aio_get_output(x->dial, 0); /* nobody has taken it */
		if (raw != NULL)
			nng_stream_free(raw);
	}
	ls_stream_close(x->stream);
	nng_aio_stop(x->rx);
	nng_aio_stop(x->tx);
	nng_aio_free(x->dial);
	nng_aio_free(x->rx);
	nng_aio_free(x->tx);
	ls_stream_free(x->stream);
	if (x->dialer != NULL)
		nng_stream_dialer_free(x->dialer);
	x->dialer = NULL;
	x->dial = x->rx = x->tx = NULL;
	x->stream = NULL;
	x->body = NULL; /* its owner may have it back */
	if (x->buf != x->small)
		free(x->buf);
	x->buf = x->small;
	while (x->queue != NULL && ls_queue_take(x->queue, &note, 1) == 1)
		continue;
}

static void
exchange_look(struct ls_exchange *x)
{
	x->looked_mono_ns = ls_clock_mono_ns();
	if (x->tls != NULL)
		ls_ignore(ls_tls_look(x->tls)); /* it logs its outcome */
}

/* Makes what a connection needs and dials; nng's code. exchange_disconnect undoes it,
 * whole or in part. */
static int
exchange_dial(struct ls_exchange *x)
{
	int rc = nng_stream_dialer_alloc(&x->dialer, x->address);

	exchange_look(x); /* new certificates are used from now on */
	if (rc == 0)
		rc = nng_stream_dialer_set_bool(x->dialer, NNG_OPT_TCP_KEEPALIVE, true);
	if (rc == 0)
		rc = nng_stream_dialer_set_bool(x->dialer, NNG_OPT_TCP_NODELAY, true);
	if (rc == 0)
		rc = nng_aio_alloc(&x->dial, exchange_on_dialled, x);
	if (rc == 0)
		rc = nng_aio_alloc(&x->rx, exchange_on_received, x);
	if (rc == 0)
		rc = nng_aio_alloc(&x->tx, exchange_on_sent, x);
	if (rc != 0)
		return rc;
	x->sending = false;
	x->size = sizeof(x->small);
	x->filled = 0;
	x->unanswered = 0;
	atomic_store(&x->closing, false);
	nng_stream_dialer_dial(x->dialer, x->dial);
	return 0;
}

static void
exchange_set_address(struct ls_exchange *x, const char *host)
{
	bool v6 = strchr(host, ':') != NULL;

	(void)snprintf(x->address, sizeof(x->address), "tcp://%s%s%s:%u", v6 ? "[" : "",
		host, v6 ? "]" : "", (unsigned)x->port);
}

/* From within libevent's resolver, which must not be freed here: hence a note. */
static void
exchange_on_resolved(void *arg, const struct evutil_addrinfo *found, const char *why)
{
	struct ls_exchange *x = arg;
	const struct evutil_addrinfo *a;
	char host[INET6_ADDRSTRLEN];
	unsigned n = 0;

	x->address[0] = '\0';
	for (a = found; a != NULL; a = a->ai_next)
		n++;
	n = n > 0 ? x->dials++ % n : 0;
	for (a = found; a != NULL && n > 0; n--)
		a = a->ai_next;
	if (a == NULL)
		ls_log(LS_LOG_WARN, "exchange", "cannot resolve %s: %s", x->host, why);
	else if (
		inet_ntop(a->ai_family,
			a->ai_family == AF_INET
				? (const void *)&(
					  (const struct sockaddr_in *)a->ai_addr)
					  ->sin_addr
				: &((const struct sockaddr_in6 *)a->ai_addr)->sin6_addr,
			host, sizeof(host)) != NULL)
		exchange_set_address(x, host);
	exchange_tell(x, &x->resolved);
}

/* A numeric address is dialled at once, a name is resolved first. */
static int
exchange_connect(struct ls_exchange *x)
{
	const struct ls_resolve_handler handler = { x, exchange_on_resolved };
	struct in6_addr any;

	exchange_set_state(x, LS_EXCHANGE_STATE_DIAL, x->patience_ns);
	if (inet_pton(AF_INET, x->host, &any) == 1 ||
		inet_pton(AF_INET6, x->host, &any) == 1) {
		exchange_set_address(x, x->host);
		return exchange_dial(x);
	}
	return ls_resolve_open(ls_loop_base(x->loop), x->host, x->port, &handler,
		&x->resolve);
}

/* There is no connection any more, or none came about. why: what is wrong with the
 * other side, or NULL. */
static void
exchange_lost(struct ls_exchange *x, const char *why)
{
	const struct ls_tls_told *told = ls_stream_tell(x->stream);
	bool was_up = x->greeted, was_busy = x->busy;
	uint64_t pause_ns;

	if (told != NULL && told->fault != LS_TLS_NONE) {
		x->tls_failures++;
		why = told->why;
	}
	if (why != NULL) {
		ls_log(LS_LOG_WARN, "exchange", "%s %s: reconnecting", x->url, why);
		(void)snprintf(x->wrong, sizeof(x->wrong), "%s", why);
	}
	pause_ns = exchange_back_off(x);
	exchange_disconnect(x);
	x->busy = x->greeted = x->received = false;
	exchange_set_state(x, LS_EXCHANGE_STATE_PAUSE, pause_ns);
	if (was_up)
		x->handler.event(x->handler.arg, LS_EXCHANGE_DOWN, NULL, 0, 0);
	if (was_busy)
		x->handler.event(x->handler.arg, LS_EXCHANGE_FAILED, NULL, 0, 0);
}

static void
exchange_due(void *arg)
{
	struct ls_exchange *x = arg;

	if (x->state == LS_EXCHANGE_STATE_PAUSE) {
		if (exchange_connect(x) != 0) /* no memory: later, perhaps */
			exchange_lost(x, NULL);
	} else {
		exchange_lost(x,
			x->state == LS_EXCHANGE_STATE_GREET ? "sends no SP header"
				: x->state == LS_EXCHANGE_STATE_REST
				? "does not accept a request"
				: NULL);
	}
}

/* --- what was told -------------------------------------------------------- */

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
	exchange_transmit(x);
}

static void
exchange_resolved(struct ls_exchange *x)
{
	ls_resolve_close(x->resolve);
	x->resolve = NULL;
	if (x->address[0] == '\0' || exchange_dial(x) != 0)
		exchange_lost(x, NULL);
}

static void
exchange_dialled(struct ls_exchange *x)
{
	if (nng_aio_result(x->dial) != 0) {
		exchange_lost(x, NULL);
		return;
	}
	if (ls_stream_new(nng_aio_get_output(x->dial, 0), x->tls, x->host,
		    &x->stream) != 0) {
		exchange_lost(x, NULL); /* no memory: later, perhaps */
		return;
	}
	exchange_set_state(x, LS_EXCHANGE_STATE_GREET,
		LS_EXCHANGE_LINE_FACTOR * x->patience_ns);
	ls_frame_greet(LS_FRAME_REQ, x->head);
	exchange_begin_send(x, LS_FRAME_GREETING_BYTES, NULL, 0);
	exchange_receive(x);
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
	x->received = false;
	exchange_receive(x);
}

static void
exchange_greeted(struct ls_exchange *x)
{
	if (ls_frame_check_greeting(LS_FRAME_REP, x->buf) != 0) {
		exchange_lost(x, "is not a collector");
		return;
	}
	x->greeted = true;
	x->wrong[0] = '\0';
	exchange_set_state(x, LS_EXCHANGE_STATE_UP, 0);
	exchange_next(x);
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
	if (ls_clock_mono_ns() - x->looked_mono_ns >= LS_KEYS_LOOK_NS)
		exchange_look(x);
	if (!ls_stream_is_trusted(x->stream)) {
		exchange_lost(x, NULL); /* TLS says why */
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

/* An answer counts when its request is sent: buf is free then. */
static void
exchange_proceed(struct ls_exchange *x)
{
	if (!x->received || x->sending)
		return;
	if (x->state == LS_EXCHANGE_STATE_GREET)
		exchange_greeted(x);
	else
		exchange_answered(x);
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
	if (x->tx_rc != 0) {
		exchange_lost(x, NULL);
		return;
	}
	x->sending = false;
	if (x->state == LS_EXCHANGE_STATE_REST) {
		exchange_set_state(x, LS_EXCHANGE_STATE_UP, 0);
		exchange_fail(x);
	}
	exchange_proceed(x);
}

static void
exchange_came(struct ls_exchange *x)
{
	if (x->rx_rc != 0) {
		exchange_lost(x,
			x->rx_rc == -LS_ELIMIT ? "sends more data than an answer holds"
				: !x->greeted && x->tls == NULL && x->filled > 0 &&
					x->buf[0] == 0x15 /* an alert of TLS */
				? "speaks TLS only: give this agent --keys"
				: NULL);
		return;
	}
	x->received = true;
	exchange_proceed(x);
}

static void
exchange_drain(void *arg)
{
	struct ls_exchange *x = arg;
	void *note;

	while (ls_queue_take(x->queue, &note, 1) == 1) {
		if (note == &x->resolved)
			exchange_resolved(x);
		else if (note == &x->dialled)
			exchange_dialled(x);
		else if (note == &x->sent)
			exchange_sent(x);
		else if (note == &x->came)
			exchange_came(x);
		else if (x->sending) /* cancelled */
			exchange_set_state(x, LS_EXCHANGE_STATE_REST, x->patience_ns);
		else
			exchange_fail(x);
	}
}

/* --- life ----------------------------------------------------------------- */

static int
exchange_make(struct ls_exchange *x, struct ls_loop *loop, const char *url)
{
	int rc = ls_text_copy(x->url, sizeof(x->url), url);

	if (rc == 0)
		rc = ls_resolve_split(url, x->host, sizeof(x->host), &x->port);
	if (rc != 0)
		return rc;
	x->loop = loop;
	x->queue = ls_queue_new(LS_EXCHANGE_NOTES_MAX);
	x->timer = ls_loop_timer_new(loop, exchange_due, x);
	if (x->queue == NULL || x->timer == NULL)
		return -ENOMEM;
	rc = ls_queue_watch(x->queue, loop, exchange_drain, x);
	if (rc != 0)
		return rc;
	return exchange_connect(x) == 0 ? 0 : -ENOMEM;
}

int
ls_exchange_open(struct ls_loop *loop, const char *url, struct ls_tls *tls,
	const struct ls_exchange_handler *handler, struct ls_exchange **ret_exchange)
{
	int rc;
	struct ls_exchange *x = calloc(1, sizeof(*x));

	if (x == NULL)
		return -ENOMEM;
	x->handler = *handler;
	x->tls = tls;
	x->patience_ns = LS_EXCHANGE_PATIENCE_NS;
	x->back_off_ns = LS_RECONNECT_MIN_NS;
	x->buf = x->small;
	x->last_id = nng_random();
	rc = exchange_make(x, loop, url);
	if (rc == 0)
		*ret_exchange = x;
	else
		ls_exchange_close(x);
	return rc;
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
	exchange_tell(x, &x->cancelled);
}

void
ls_exchange_set_patience(struct ls_exchange *x, uint64_t patience_ns)
{
	x->patience_ns = patience_ns;
}

const char *
ls_exchange_wrong(const struct ls_exchange *x, uint64_t *ret_count)
{
	*ret_count = x->tls_failures;
	return x->wrong;
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
	ls_queue_free(x->queue, NULL);
	free(x);
}
