/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/ingest.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <nng/nng.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include "proto/base/clock.h"
#include "proto/base/hash.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/queue.h"
#include "proto/wire/err_nng.h"
#include "proto/wire/frame.h"
#include "proto/wire/stream.h"
#include "proto/limits.h"

#define INGEST_TAKE 256 /* connections of one look into the queue */
/* a report without chunks and its frame; larger ones take memory of their own */
#define INGEST_BUFFER_BYTES 2048
#define INGEST_REPLY_BYTES 512 /* an ack and its frame, as a rule */
#define INGEST_GREETING_NS 10000000000ull /* as nng's own transports */
#define INGEST_SWEEP_NS 1000000000ull /* between looks for who takes too long */
#define INGEST_ACCEPT_PAUSE_MS 100 /* when no descriptor, memory or handshake is left */
/* large requests that had so much go back to the system when none is left */
#define INGEST_TRIM_BYTES (8u * 1024 * 1024)

/* What a connection is doing. */
enum ingest_doing {
	INGEST_NEW, /* accepted, not ours yet */
	INGEST_GREETING, /* receiving the greeting */
	INGEST_RECEIVING, /* receiving a request */
	INGEST_WAITING, /* has a request, and too many are held */
	INGEST_HELD, /* waits for ls_ingest_reply */
	INGEST_SLOWED /* its reply waits for the timer */
};

/*
 * One connection, which has one request at a time. While it receives it is nng's; else
 * it is in the queue, or the loop's. The queue (and nng's own locks on the way back)
 * order the changes of hands.
 */
struct ls_ingest_request {
	struct ls_ingest *ingest;
	LIST_ENTRY(ls_ingest_request) all; /* once the loop has it */
	STAILQ_ENTRY(ls_ingest_request) waiting;
	nng_stream *raw; /* until the loop has it */
	struct ls_stream *stream;
	nng_aio *rx, *tx; /* tx has no callback: it costs no wake-up */
	struct ls_loop_timer *timer; /* of its first delayed reply, for all of them */
	enum ingest_doing doing;
	size_t sent_bytes; /* of what tx sends or sent; 0: nothing so far */
	size_t reply_bytes; /* of the reply, with its frame, or 0 */
	int rc; /* of the receipt; 0 or nng's */
	uint8_t *buf; /* what came: small, or memory of its own */
	size_t size, filled;
	/* while buf counts, or during a handshake of TLS */
	TAILQ_ENTRY(ls_ingest_request) large;
	bool counts; /* its request is not complete, and buf not small */
	/* the first bytes of the request, or the connection; written before `begun` */
	uint64_t begun_mono_ns;
	atomic_bool begun; /* bytes of the request came, perhaps encrypted ones */
	bool wants_room; /* to the loop: buf is full */
	atomic_bool ending; /* gives its memory to others */
	size_t frame_bytes; /* of the request in buf */
	size_t route_bytes;
	uint64_t t_receive_mono_ns;
	struct ls_ingest_peer peer;
	char remote[INET6_ADDRSTRLEN]; /* its address, for messages */
	uint8_t *big_reply; /* one that does not fit into reply */
	uint8_t reply[INGEST_REPLY_BYTES];
	uint8_t small[INGEST_BUFFER_BYTES];
};

LIST_HEAD(ingest_all, ls_ingest_request);
STAILQ_HEAD(ingest_waiting, ls_ingest_request);
TAILQ_HEAD(ingest_large, ls_ingest_request);

struct ls_ingest {
	nng_stream_listener *listener;
	struct ls_loop *loop;
	/* One for all: nng's own time limits cost more than the receipt of a report. */
	struct ls_loop_timer *sweep;
	nng_aio *accept;
	bool pausing; /* accept sleeps; touched by its callback only */
	bool stopped;
	int port;
	unsigned held_max;
	struct ingest_all all;
	struct ingest_waiting waiting; /* whole requests beyond held_max */
	struct ingest_large large; /* who grew longest ago is first */
	size_t large_bytes; /* of all of them, at most LS_FRAMES_MAX_BYTES */
	struct ingest_large handshakes; /* of TLS; the oldest is first */
	atomic_uint handshaking; /* those, unless `ending`, and who is to begin one */
	bool was_large; /* INGEST_TRIM_BYTES were used since memory was given back */
	atomic_uint connections, out_of_memory;
	struct ls_tls *tls; /* NULL: plain */
	struct ls_queue *queue;
	ls_ingest_fn *fn;
	void *arg;
	struct ls_ingest_stats stats;
};

static const char *const ingest_refusals[] = {
#define LS_INGEST_REFUSAL(id, name, help) name,
#include "collector/ingest/ingest_refusals.def"
#undef LS_INGEST_REFUSAL
};

const char *
ls_ingest_refusal_name(unsigned refusal)
{
	return refusal < LS_INGEST_REFUSED_COUNT ? ingest_refusals[refusal] : NULL;
}

/* --- one connection ------------------------------------------------------- */

/* How much more has to come before anybody looks at it; 0: nothing, or nothing that
 * makes sense. */
static size_t
ingest_missing(struct ls_ingest_request *c)
{
	size_t wanted = LS_FRAME_GREETING_BYTES;

	if (c->doing == INGEST_RECEIVING) {
		int rc = ls_frame_length(c->buf, c->filled, LS_REPORT_MAX_BYTES,
			&wanted);

		if (rc == -EAGAIN)
			return LS_FRAME_LENGTH_BYTES - c->filled;
		if (rc != 0) {
			c->rc = NNG_EMSGSIZE;
			return 0;
		}
		c->frame_bytes = wanted;
	}
	return c->filled < wanted ? wanted - c->filled : 0;
}

/* Receives more; what comes, or the end, is told to ingest_on_receive. */
static void
ingest_receive(struct ls_ingest_request *c)
{
	size_t room = c->size - c->filled, len = room;

	/* A greeting has an end of its own: a request that came with it would be left
	 * in the way. */
	if (c->doing == INGEST_GREETING)
		len = LS_FRAME_GREETING_BYTES - c->filled;
	ls_stream_recv(c->stream, c->buf + c->filled, len, room, c->rx);
}

/* Has what it receives taken longer than it may? */
static bool
ingest_is_late(const struct ls_ingest_request *c, uint64_t now_ns)
{
	/* with TLS there is a handshake before the greeting */
	uint64_t whole_ns = c->doing == INGEST_GREETING && c->ingest->tls == NULL
		? INGEST_GREETING_NS
		: LS_FRAME_TIME_NS;

	return (c->doing == INGEST_GREETING || c->begun) &&
		now_ns > c->begun_mono_ns + whole_ns;
}

/* On a thread of nng: something came. When all is there, or nothing more will be, the
 * loop sees to it. */
static void
ingest_on_receive(void *arg)
{
	struct ls_ingest_request *c = arg;
	size_t len = 0;

	c->t_receive_mono_ns = ls_clock_mono_ns(); /* before what TLS takes */
	c->rc = ls_stream_received(c->stream, c->rx, &len);
	if (c->rc == 0) {
		if (!c->begun && c->doing == INGEST_RECEIVING)
			c->begun_mono_ns = c->t_receive_mono_ns;
		c->begun = c->begun || len > 0 || nng_aio_count(c->rx) > 0;
		c->filled += len;
		if (ingest_missing(c) > 0) {
			c->wants_room = c->filled == c->size;
			if (ingest_is_late(c, c->t_receive_mono_ns)) {
				c->rc = NNG_ETIMEDOUT;
			} else if (!c->wants_room && !atomic_load(&c->ending)) {
				ingest_receive(c);
				return;
			} else if (!c->wants_room) {
				c->rc = NNG_ECANCELED;
			}
		}
	}
	/* It has room for every connection, so it is closed: nobody will look, and all
	 * are closed then. */
	ls_ignore(ls_queue_push(c->ingest->queue, c));
}

/* No callback runs any more after this. */
static void
ingest_stop(struct ls_ingest_request *c)
{
	ls_stream_close(c->stream);
	nng_aio_stop(c->rx); /* accepts NULL */
	nng_aio_stop(c->tx);
}

static void
ingest_uncount(struct ls_ingest_request *c)
{
	if (c->counts) {
		TAILQ_REMOVE(&c->ingest->large, c, large);
		c->ingest->large_bytes -= c->size;
	}
	c->counts = false;
}

/* buf goes, or is small again. */
static void
ingest_drop_large(struct ls_ingest_request *c)
{
	struct ls_ingest *g = c->ingest;

	ingest_uncount(c);
	if (c->buf != c->small)
		free(c->buf);
	c->buf = c->small;
	c->size = sizeof(c->small);
	if (g->was_large && g->large_bytes == 0) {
		g->was_large = false;
		(void)malloc_trim(0); /* nothing to give back: as well */
	}
}

/* No handshake of c is under way any more. */
static void
ingest_settle(struct ls_ingest_request *c)
{
	if (c->doing != INGEST_GREETING || c->ingest->tls == NULL)
		return;
	TAILQ_REMOVE(&c->ingest->handshakes, c, large);
	if (!atomic_load(&c->ending))
		atomic_fetch_sub(&c->ingest->handshaking, 1);
}

static void
ingest_free(struct ls_ingest_request *c)
{
	struct ls_ingest *g = c->ingest;

	ls_loop_timer_free(c->timer);
	nng_aio_free(c->rx);
	nng_aio_free(c->tx);
	ls_stream_free(c->stream);
	if (c->raw != NULL)
		nng_stream_free(c->raw);
	if (c->doing != INGEST_NEW)
		LIST_REMOVE(c, all);
	ingest_settle(c);
	ingest_drop_large(c);
	free(c->big_reply);
	free(c);
	atomic_fetch_sub_explicit(&g->connections, 1, memory_order_relaxed);
}

static void
ingest_end(struct ls_ingest_request *c)
{
	ingest_stop(c);
	ingest_free(c);
}

static void
ingest_refuse(struct ls_ingest_request *c, enum ls_ingest_refusal refusal)
{
	c->ingest->stats.refused[refusal]++;
	ingest_end(c);
}

/* May the next reply be written? Not if the last one did not go out whole. */
static bool
ingest_has_sent(struct ls_ingest_request *c)
{
	size_t sent;

	if (c->sent_bytes == 0)
		return true;
	/* Who asks again without having read the answer does not speak request/reply.
	 */
	nng_aio_cancel(c->tx);
	nng_aio_wait(c->tx);
	free(c->big_reply);
	c->big_reply = NULL;
	return ls_stream_sent(c->stream, c->tx, &sent) == 0 && sent == c->sent_bytes;
}

/* Sends what lies in buf, which lives until the next sending. */
static void
ingest_send(struct ls_ingest_request *c, uint8_t *buf, size_t len)
{
	nng_iov iov = { buf, len };

	c->sent_bytes = len;
	ls_stream_send(c->stream, &iov, 1, c->tx);
}

/* --- on the loop ---------------------------------------------------------- */

/* Its certificate, or its lack of TLS, is refused. */
static void
ingest_distrust(struct ls_ingest_request *c)
{
	static const enum ls_ingest_refusal refusals[] = {
		[LS_TLS_NONE] = LS_INGEST_REFUSED_OTHER,
		[LS_TLS_PLAIN] = LS_INGEST_REFUSED_PLAIN,
		[LS_TLS_CERTIFICATE] = LS_INGEST_REFUSED_CERTIFICATE,
		[LS_TLS_BROKEN] = LS_INGEST_REFUSED_PROTO,
	};

	ls_log(LS_LOG_WARN, "ingest", "%s %s; closing the connection", c->remote,
		ls_stream_tell(c->stream)->why);
	ingest_refuse(c, refusals[ls_stream_tell(c->stream)->fault]);
}

/* Gives a request on, or lets it wait. */
static void
ingest_give(struct ls_ingest *g, struct ls_ingest_request *c)
{
	size_t head = LS_FRAME_LENGTH_BYTES + c->route_bytes;

	if (!ls_stream_is_trusted(c->stream)) { /* its items stay with the agent */
		ingest_distrust(c);
		return;
	}
	ingest_uncount(c);
	if (g->stats.busy >= g->held_max) {
		c->doing = INGEST_WAITING;
		STAILQ_INSERT_TAIL(&g->waiting, c, waiting);
		return;
	}
	c->doing = INGEST_HELD;
	g->stats.requests++;
	g->stats.bytes += c->frame_bytes - head;
	g->stats.busy++;
	g->fn(g->arg, c, c->buf + head, c->frame_bytes - head, c->t_receive_mono_ns);
}

/* A request is over: what came behind it moves to the front, and its memory goes. */
static void
ingest_consume(struct ls_ingest_request *c)
{
	size_t rest = c->filled - c->frame_bytes;
	bool fits = c->buf != c->small && rest < sizeof(c->small);

	if (rest > 0)
		memmove(fits ? c->small : c->buf, c->buf + c->frame_bytes, rest);
	if (fits)
		ingest_drop_large(c);
	c->filled = rest;
	c->begun = rest > 0 || ls_stream_holds(c->stream);
	c->frame_bytes = 0;
}

/* Receives the next request. */
static void
ingest_next(struct ls_ingest_request *c)
{
	c->doing = INGEST_RECEIVING;
	c->rc = 0;
	c->begun_mono_ns = ls_clock_mono_ns();
	atomic_store(&c->ending, false);
	if (c->filled == 0 || (ingest_missing(c) > 0 && c->filled < c->size)) {
		ingest_receive(c);
		return;
	}
	c->wants_room = c->rc == 0 && ingest_missing(c) > 0;
	/* Another one is there (or one that is too long): its turn comes when the
	 * others had theirs. */
	ls_ignore(ls_queue_push(c->ingest->queue, c)); /* closed: nobody will look */
}

/* Others than c give so many bytes up, the idlest first; true if they have as many. */
static bool
ingest_take_from_idle(struct ls_ingest *g, const struct ls_ingest_request *c,
	size_t bytes)
{
	struct ls_ingest_request *v;
	size_t taken = 0;

	TAILQ_FOREACH (v, &g->large, large) {
		if (taken >= bytes)
			break;
		if (v == c || v->doing != INGEST_RECEIVING)
			continue;
		if (!atomic_exchange(&v->ending, true))
			taken += v->size;
		/* Again for those before: they may have begun to receive in between. */
		nng_aio_abort(v->rx, NNG_ECANCELED);
	}
	if (taken > 0)
		ls_log(LS_LOG_WARN, "ingest",
			"unfinished requests use %u MiB; closing the connections that "
			"were idle for longest",
			LS_FRAMES_MAX_BYTES >> 20);
	return taken >= bytes;
}

/*
 * As many handshakes as may be are under way: ends those that take long. Accepting pauses
 * as long, so that this is rare, and the rest come to their end.
 */
static void
ingest_hurry(struct ls_ingest *g)
{
	uint64_t now_ns = ls_clock_mono_ns();
	struct ls_ingest_request *c;

	TAILQ_FOREACH (c, &g->handshakes, large) {
		if (now_ns - c->begun_mono_ns <
			(c->begun ? LS_TLS_HANDSHAKE_NS : LS_TLS_SILENT_NS))
			continue;
		if (!atomic_exchange(&c->ending, true))
			atomic_fetch_sub(&g->handshaking, 1);
		/* Again for those before, as above. */
		nng_aio_abort(c->rx, NNG_ECANCELED);
	}
}

/* Ends what has taken too long. Who sends a byte now and then ends on a thread of nng. */
static void
ingest_on_sweep(void *arg)
{
	struct ls_ingest *g = arg;
	uint64_t now_ns = ls_clock_mono_ns();
	struct ls_ingest_request *c;

	LIST_FOREACH (c, &g->all, all) {
		if ((c->doing == INGEST_GREETING || c->doing == INGEST_RECEIVING) &&
			ingest_is_late(c, now_ns))
			nng_aio_abort(c->rx, NNG_ETIMEDOUT);
	}
}

/* The bucket of an address. Behind 8 zeros IPv6 has those of IPv4, and its loopback. */
static uint32_t
ingest_address(struct ls_ingest_request *c)
{
	uint8_t key[8] = { 0 };
	nng_sockaddr a = { 0 };

	ls_ignore(nng_stream_get_addr(c->raw, NNG_OPT_REMADDR, &a)); /* gone: as 0 */
	(void)inet_ntop(a.s_family == NNG_AF_INET6 ? AF_INET6 : AF_INET,
		a.s_family == NNG_AF_INET6 ? (void *)a.s_in6.sa_addr
					   : (void *)&a.s_in.sa_addr,
		c->remote, sizeof(c->remote)); /* there is room */
	if (a.s_family == NNG_AF_INET6)
		memcpy(key, a.s_in6.sa_addr + (memcmp(a.s_in6.sa_addr, key, 8) ? 0 : 8),
			sizeof(key));
	else if (a.s_family == NNG_AF_INET)
		memcpy(key, &a.s_in.sa_addr, sizeof(a.s_in.sa_addr));
	return (uint32_t)(ls_hash(LS_HASH_START, key, sizeof(key)) % LS_RATE_ADDRESSES);
}

static void
ingest_begin(struct ls_ingest *g, struct ls_ingest_request *c)
{
	c->buf = c->small;
	c->size = sizeof(c->small);
	c->doing = INGEST_GREETING;
	c->peer.address = ingest_address(c);
	c->begun_mono_ns = ls_clock_mono_ns();
	LIST_INSERT_HEAD(&g->all, c, all);
	if (g->tls != NULL)
		TAILQ_INSERT_TAIL(&g->handshakes, c, large);
	if (nng_aio_alloc(&c->rx, ingest_on_receive, c) != 0 ||
		nng_aio_alloc(&c->tx, NULL, NULL) != 0 ||
		ls_stream_new(c->raw, g->tls, NULL, &c->stream) != 0) {
		ingest_refuse(c, LS_INGEST_REFUSED_OOM);
		return;
	}
	c->raw = NULL;
	ls_frame_greet(LS_FRAME_REP, c->reply);
	ingest_send(c, c->reply, LS_FRAME_GREETING_BYTES);
	ingest_receive(c);
	if (atomic_load(&g->handshaking) >= LS_TLS_HANDSHAKES_MAX)
		ingest_hurry(g);
}

static void
ingest_greeted(struct ls_ingest_request *c)
{
	static const uint8_t tls[] = { 0x16, 3 }; /* how it begins */
	const struct ls_tls_told *told = ls_stream_tell(c->stream);
	struct ls_ingest *g = c->ingest;
	int rc = c->rc;

	if (rc != 0) {
		if (told != NULL && told->fault != LS_TLS_NONE)
			ingest_distrust(c);
		else
			ingest_refuse(c,
				atomic_load(&c->ending) ? LS_INGEST_REFUSED_BUDGET
					: rc == NNG_ETIMEDOUT
					? LS_INGEST_REFUSED_TIMEOUT
					: rc == NNG_ENOMEM ? LS_INGEST_REFUSED_OOM
							   : LS_INGEST_REFUSED_OTHER);
		return;
	}
	rc = ls_frame_check_greeting(LS_FRAME_REQ, c->buf);
	if (rc == 0) {
		c->peer.name = told != NULL ? told->name : NULL;
		g->stats.handshakes += told != NULL;
		g->stats.resumed += told != NULL && told->resumed;
		ingest_settle(c);
		c->frame_bytes = c->filled;
		ingest_consume(c);
		ingest_next(c);
		return;
	}
	if (memcmp(c->buf, tls, sizeof(tls)) == 0) {
		ls_log(LS_LOG_WARN, "ingest",
			"%s speaks TLS: give this collector --keys, or remove --keys "
			"there; closing the connection",
			c->remote);
		ingest_refuse(c, LS_INGEST_REFUSED_TLS);
		return;
	}
	ingest_refuse(c,
		rc == -LS_EPARSE ? LS_INGEST_REFUSED_PROTO : LS_INGEST_REFUSED_REJECT);
}

/*
 * Room for what is missing, at least some of it: memory grows with what has come, not
 * with what a length field claims.
 */
static void
ingest_grow(struct ls_ingest *g, struct ls_ingest_request *c)
{
	size_t size = c->filled + ingest_missing(c);
	size_t counted = c->counts ? c->size : 0;
	uint8_t *buf;

	c->wants_room = false;
	if (size > 4 * c->size)
		size = 4 * c->size;
	if (g->large_bytes + size - counted > LS_FRAMES_MAX_BYTES &&
		!ingest_take_from_idle(g, c, size - counted)) {
		ingest_refuse(c, LS_INGEST_REFUSED_BUDGET);
		return;
	}
	buf = realloc(c->buf != c->small ? c->buf : NULL, size);
	if (buf == NULL) {
		ingest_refuse(c, LS_INGEST_REFUSED_OOM);
		return;
	}
	if (c->buf == c->small)
		memcpy(buf, c->small, c->filled);
	ingest_uncount(c);
	c->buf = buf;
	c->size = size;
	c->counts = true;
	TAILQ_INSERT_TAIL(&g->large, c, large);
	g->large_bytes += size;
	g->was_large = g->was_large || g->large_bytes > INGEST_TRIM_BYTES;
	ingest_receive(c);
}

static void
ingest_received(struct ls_ingest *g, struct ls_ingest_request *c)
{
	if ((c->rc != 0 || c->wants_room) && atomic_load(&c->ending))
		ingest_refuse(c, LS_INGEST_REFUSED_BUDGET);
	else if (c->rc == NNG_ETIMEDOUT)
		ingest_refuse(c, LS_INGEST_REFUSED_SLOW);
	else if (c->rc == 0 && c->wants_room)
		ingest_grow(g, c);
	else if (c->rc == 0 &&
		ls_frame_route(c->buf + LS_FRAME_LENGTH_BYTES,
			c->frame_bytes - LS_FRAME_LENGTH_BYTES, &c->route_bytes) == 0)
		ingest_give(g, c);
	else if (c->rc == 0 || c->rc == NNG_EMSGSIZE || c->rc == NNG_EPROTO)
		ingest_refuse(c, LS_INGEST_REFUSED_FRAME);
	else
		ingest_end(c); /* the agent has gone */
}

/* Sends the reply, if there is one, and receives the next request. */
static void
ingest_answer(void *arg)
{
	struct ls_ingest_request *c = arg;

	c->peer.due_mono_ns = 0;
	if (c->reply_bytes > 0) {
		c->ingest->stats.replies++;
		ingest_send(c, c->big_reply != NULL ? c->big_reply : c->reply,
			c->reply_bytes);
	}
	ingest_next(c);
}

static void
ingest_turn(struct ls_ingest *g, struct ls_ingest_request *c)
{
	switch (c->doing) {
	case INGEST_NEW:
		ingest_begin(g, c);
		break;
	case INGEST_GREETING:
		ingest_greeted(c);
		break;
	case INGEST_RECEIVING:
		ingest_received(g, c);
		break;
	case INGEST_WAITING:
		ingest_give(g, c);
		break;
	case INGEST_HELD: /* not in the queue */
	case INGEST_SLOWED:
		LS_ASSERT(false);
	}
}

static void
ingest_on_queue(void *arg)
{
	struct ls_ingest *g = arg;
	void *items[INGEST_TAKE];
	size_t i, n;

	/* What is left after ls_ingest_stop is closed with the rest. */
	while (!g->stopped && (n = ls_queue_take(g->queue, items, INGEST_TAKE)) > 0) {
		for (i = 0; i < n; i++)
			ingest_turn(g, items[i]);
	}
}

/* One more request may be held: the one that waits longest comes by the queue, so that
 * no reply leads to another. */
static void
ingest_wake_waiting(struct ls_ingest *g)
{
	struct ls_ingest_request *c = STAILQ_FIRST(&g->waiting);

	if (c == NULL)
		return;
	STAILQ_REMOVE_HEAD(&g->waiting, waiting);
	ls_ignore(ls_queue_push(g->queue, c)); /* closed: nobody will look */
}

/* Where a reply of len bytes with its frame is put together; NULL: no memory. */
static uint8_t *
ingest_room_for_reply(struct ls_ingest_request *c, size_t len)
{
	if (len <= sizeof(c->reply))
		return c->reply;
	c->big_reply = malloc(len);
	return c->big_reply;
}

void
ls_ingest_reply(struct ls_ingest_request *c, const uint8_t *buf, size_t len)
{
	struct ls_ingest *g = c->ingest;
	size_t head = LS_FRAME_LENGTH_BYTES + c->route_bytes;
	uint8_t *out = NULL;
	uint64_t now_ns = ls_loop_now(g->loop); /* the timer counts from it */

	LS_ASSERT(c->doing == INGEST_HELD);
	g->stats.busy--;
	ingest_wake_waiting(g);
	if (!ingest_has_sent(c)) {
		g->stats.send_errors++;
		ingest_end(c);
		return;
	}
	if (buf != NULL)
		out = ingest_room_for_reply(c, head + len);
	if (out == NULL) {
		g->stats.send_errors++; /* the request is given up */
	} else {
		ls_frame_put_length(out, c->route_bytes + len);
		memcpy(out + LS_FRAME_LENGTH_BYTES, c->buf + LS_FRAME_LENGTH_BYTES,
			c->route_bytes);
		memcpy(out + head, buf, len);
	}
	c->reply_bytes = out != NULL ? head + len : 0;
	ingest_consume(c);
	if (c->timer == NULL && c->peer.due_mono_ns > now_ns)
		c->timer = ls_loop_timer_new(g->loop, ingest_answer, c);
	if (c->timer == NULL || c->peer.due_mono_ns <= now_ns) {
		ingest_answer(c); /* no memory for a timer: at once */
		return;
	}
	c->doing = INGEST_SLOWED;
	ls_loop_timer_start(c->timer, c->peer.due_mono_ns - now_ns, 0);
}

struct ls_ingest_peer *
ls_ingest_peer(struct ls_ingest_request *c)
{
	return &c->peer;
}

/* --- listening ------------------------------------------------------------ */

/* A connection for the loop to take; on a thread of nng. */
static void
ingest_accepted(struct ls_ingest *g, nng_stream *stream)
{
	struct ls_ingest_request *c = NULL;

	if (atomic_fetch_add_explicit(&g->connections, 1, memory_order_relaxed) <
		LS_CONNECTIONS_MAX)
		c = calloc(1, sizeof(*c));
	if (c != NULL) {
		c->ingest = g;
		c->raw = stream;
		c->doing = INGEST_NEW;
		if (g->tls != NULL)
			atomic_fetch_add(&g->handshaking, 1);
		if (ls_queue_push(g->queue, c) == 0)
			return;
	} else {
		atomic_fetch_add_explicit(&g->out_of_memory, 1, memory_order_relaxed);
	}
	atomic_fetch_sub_explicit(&g->connections, 1, memory_order_relaxed);
	nng_stream_free(stream);
	free(c);
}

/* On a thread of nng: somebody came, or a pause is over. */
static void
ingest_on_accept(void *arg)
{
	struct ls_ingest *g = arg;
	int rc = nng_aio_result(g->accept);

	if (rc == NNG_ECLOSED || rc == NNG_ECANCELED)
		return; /* closing */
	if (g->pausing) {
		g->pausing = false;
	} else if (rc == 0) {
		ingest_accepted(g, nng_aio_get_output(g->accept, 0));
		g->pausing = atomic_load(&g->handshaking) >= LS_TLS_HANDSHAKES_MAX;
	} else if (rc == NNG_ENOMEM || rc == NNG_ENOFILES) {
		atomic_fetch_add_explicit(&g->out_of_memory, 1, memory_order_relaxed);
		g->pausing = true;
	}
	if (g->pausing) {
		nng_sleep_aio(INGEST_ACCEPT_PAUSE_MS, g->accept);
		return;
	}
	nng_stream_listener_accept(g->listener, g->accept);
}

static int
ingest_port_of(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)a)->sin_port);
	if (a->ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)a)->sin6_port);
	return -1;
}

/* True if fd is a listening socket on our port. */
static bool
ingest_is_listener(int fd, int port)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(int);
	int yes = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) != 0 || !yes)
		return false;
	len = sizeof(a);
	return getsockname(fd, (struct sockaddr *)&a, &len) == 0 &&
		ingest_port_of(&a) == port;
}

/* nng does not give its socket out: it is looked for among our descriptors. */
static void
ingest_raise_backlog(int port)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *entry;
	bool raised = false;

	while (d != NULL && (entry = readdir(d)) != NULL) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (entry->d_name[0] != '.' && ingest_is_listener(fd, port))
			raised = listen(fd, LS_LISTEN_BACKLOG) == 0;
	}
	if (d != NULL)
		(void)closedir(d); /* only read from */
	if (!raised)
		ls_log(LS_LOG_WARN, "ingest",
			"cannot raise the listen backlog; continuing with nng's 128");
}

/*
 * nng starts its threads with its first object, and they do as the thread that makes
 * it. Each report wakes them for a moment; as a batch they do not interrupt who wakes
 * them, so that much is done at once. Where that is not allowed, all is as ever.
 */
static int
ingest_make_listener(struct ls_ingest *g, const char *url)
{
	const struct sched_param none = { 0 };
	bool batch = sched_getscheduler(0) == SCHED_OTHER &&
		sched_setscheduler(0, SCHED_BATCH, &none) == 0;
	int rc = nng_stream_listener_alloc(&g->listener, url);

	if (batch && sched_setscheduler(0, SCHED_OTHER, &none) != 0)
		ls_log(LS_LOG_WARN, "ingest",
			"cannot raise the priority of the loop; answers may take "
			"longer");
	return rc;
}

static int
ingest_listen(struct ls_ingest *g, const char *url)
{
	int rc = ingest_make_listener(g, url);

	if (rc == 0)
		rc = nng_stream_listener_set_bool(g->listener, NNG_OPT_TCP_KEEPALIVE,
			true);
	if (rc == 0)
		rc = nng_stream_listener_set_bool(g->listener, NNG_OPT_TCP_NODELAY,
			true);
	if (rc == 0)
		rc = nng_aio_alloc(&g->accept, ingest_on_accept, g);
	if (rc == 0)
		rc = nng_stream_listener_listen(g->listener);
	if (rc == 0)
		rc = nng_stream_listener_get_int(g->listener, NNG_OPT_TCP_BOUND_PORT,
			&g->port);
	if (rc == 0)
		ingest_raise_backlog(g->port);
	return rc;
}

int
ls_ingest_open(struct ls_loop *loop, const struct ls_ingest_options *options,
	ls_ingest_fn *fn, void *arg, struct ls_ingest **ret_ingest)
{
	struct ls_ingest *g = calloc(1, sizeof(*g));
	int rc;

	if (g == NULL)
		return -ENOMEM;
	g->fn = fn;
	g->arg = arg;
	g->held_max = options->contexts;
	g->tls = options->tls;
	g->loop = loop;
	STAILQ_INIT(&g->waiting);
	TAILQ_INIT(&g->large);
	TAILQ_INIT(&g->handshakes);
	g->queue = ls_queue_new(LS_CONNECTIONS_MAX);
	g->sweep = ls_loop_timer_new(loop, ingest_on_sweep, g);
	rc = g->queue != NULL && g->sweep != NULL
		? ls_queue_watch(g->queue, loop, ingest_on_queue, g)
		: -ENOMEM;
	if (rc == 0)
		rc = ls_err_nng(ingest_listen(g, options->url));
	if (rc == 0) {
		ls_loop_timer_start(g->sweep, INGEST_SWEEP_NS, INGEST_SWEEP_NS);
		nng_stream_listener_accept(g->listener, g->accept);
		*ret_ingest = g;
	} else {
		ls_ingest_close(g);
	}
	return rc;
}

void
ls_ingest_stop(struct ls_ingest *g)
{
	g->stopped = true;
	/* what still arrives is dropped; its agent asks again */
	ls_queue_close(g->queue);
}

/* Connections that nobody has looked at yet are in no list but the queue. */
static void
ingest_close_new(struct ls_ingest *g)
{
	void *items[INGEST_TAKE];
	size_t i, n;

	while ((n = ls_queue_take(g->queue, items, INGEST_TAKE)) > 0) {
		for (i = 0; i < n; i++) {
			struct ls_ingest_request *c = items[i];

			if (c->doing == INGEST_NEW)
				ingest_free(c);
		}
	}
}

void
ls_ingest_close(struct ls_ingest *g)
{
	struct ls_ingest_request *c;

	if (g == NULL)
		return;
	if (g->queue != NULL)
		ls_ingest_stop(g);
	if (g->listener != NULL)
		nng_stream_listener_close(g->listener);
	nng_aio_stop(g->accept);
	/* Stop all, then free all: no callback meets what is gone. */
	LIST_FOREACH (c, &g->all, all)
		ingest_stop(c);
	if (g->queue != NULL)
		ingest_close_new(g);
	while (!LIST_EMPTY(&g->all))
		ingest_free(LIST_FIRST(&g->all));
	nng_aio_free(g->accept);
	if (g->listener != NULL)
		nng_stream_listener_free(g->listener);
	ls_queue_free(g->queue, NULL);
	ls_loop_timer_free(g->sweep);
	free(g);
}

int
ls_ingest_port(const struct ls_ingest *g)
{
	return g->port;
}

void
ls_ingest_stats(const struct ls_ingest *g, struct ls_ingest_stats *ret_stats)
{
	*ret_stats = g->stats;
	ret_stats->refused[LS_INGEST_REFUSED_OOM] +=
		atomic_load_explicit(&g->out_of_memory, memory_order_relaxed);
}
