/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#define LS_TLS_OPTIONAL
#include "proto/wire/stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct ls_stream {
	nng_stream *raw;
	struct ls_tls_peer *tls; /* NULL: plain, and nothing below is used */
	pthread_mutex_t lock;
	/* Of the handshake. No callback: it fits into the socket, or the end comes. */
	nng_aio *flight_aio;
	struct ls_tls_bytes flight; /* data is NULL while nothing is being sent */
	/* What is received. */
	uint8_t *buf;
	size_t len;
	bool more; /* there is perhaps more without receiving */
	/* What is sent. */
	uint8_t early[LS_STREAM_EARLY_BYTES];
	size_t early_bytes;
	struct ls_tls_bytes out; /* as flight */
	size_t plain_bytes; /* that `out` stands for */
};

static void
stream_forget(struct ls_tls_bytes *o)
{
	free(o->data);
	*o = (struct ls_tls_bytes){ .data = NULL };
}

static void
stream_push(struct ls_stream *s, struct ls_tls_bytes *o, nng_aio *aio)
{
	nng_iov iov = { o->data + o->at, o->len - o->at };

	(void)nng_aio_set_iov(aio, 1, &iov); /* fails for many only */
	nng_stream_send(s->raw, aio);
}

/* Ends an operation at once, with its callback. */
static void
stream_finish(nng_aio *aio, int rc)
{
	if (nng_aio_begin(aio))
		nng_aio_finish(aio, rc);
}

/* Sends what the handshake has to say; an error ends the connection. */
static int
stream_fly(struct ls_stream *s)
{
	if (ls_tls_peer_waiting(s->tls) == 0)
		return 0;
	if (s->flight.data != NULL) {
		nng_aio_cancel(s->flight_aio); /* it is over, unless nobody reads it */
		nng_aio_wait(s->flight_aio);
		if (nng_aio_result(s->flight_aio) != 0 ||
			nng_aio_count(s->flight_aio) != s->flight.len)
			return NNG_EPROTO;
		stream_forget(&s->flight);
	}
	s->flight = ls_tls_peer_take(s->tls);
	stream_push(s, &s->flight, s->flight_aio);
	return 0;
}

int
ls_stream_new(nng_stream *raw, struct ls_tls *tls, const char *host,
	struct ls_stream **ret_stream)
{
	struct ls_stream *s = calloc(1, sizeof(*s));
	int rc = s != NULL ? 0 : -ENOMEM;

	if (rc == 0)
		rc = -pthread_mutex_init(&s->lock, NULL);
	if (rc != 0) {
		free(s);
		return rc;
	}
	if (tls != NULL)
		rc = ls_tls_peer_new(tls, host, &s->tls);
	if (tls != NULL && rc == 0 && nng_aio_alloc(&s->flight_aio, NULL, NULL) != 0)
		rc = -ENOMEM;
	if (rc == 0) {
		s->raw = raw;
		*ret_stream = s;
	} else {
		ls_stream_free(s);
	}
	return rc;
}

/* --- receiving ------------------------------------------------------------ */

void
ls_stream_recv(struct ls_stream *s, void *buf, size_t len, size_t room, nng_aio *aio)
{
	nng_iov iov = { buf, len };
	bool more = false;

	if (s->tls != NULL) {
		pthread_mutex_lock(&s->lock);
		iov.iov_len = room < LS_TLS_CHUNK_BYTES ? room : LS_TLS_CHUNK_BYTES;
		s->buf = buf;
		s->len = len;
		more = s->more;
		s->more = false;
		if (!more && stream_fly(s) != 0) /* the first flight of an agent */
			nng_stream_close(s->raw);
		pthread_mutex_unlock(&s->lock);
	}
	if (more) {
		stream_finish(aio, 0);
		return;
	}
	(void)nng_aio_set_iov(aio, 1, &iov); /* fails for many only */
	nng_stream_recv(s->raw, aio);
}

/* The handshake may be over: what waited for that goes. */
static int
stream_send_early(struct ls_stream *s)
{
	int rc;

	if (s->early_bytes == 0)
		return 0;
	rc = ls_tls_peer_write(s->tls, s->early, s->early_bytes);
	if (rc == 0)
		s->early_bytes = 0;
	return rc == -EAGAIN ? 0 : rc;
}

int
ls_stream_received(struct ls_stream *s, nng_aio *aio, size_t *ret_bytes)
{
	int rc = nng_aio_result(aio);
	size_t len = 0;
	bool handshake;

	*ret_bytes = nng_aio_count(aio);
	if (s->tls == NULL || rc != 0)
		return rc;
	pthread_mutex_lock(&s->lock);
	handshake = !ls_tls_peer_tell(s->tls)->ready || s->early_bytes > 0;
	rc = ls_tls_peer_feed(s->tls, s->buf, *ret_bytes);
	if (rc == 0)
		rc = ls_tls_peer_read(s->tls, s->buf, s->len, &len);
	s->more = len == s->len;
	if (rc == 0)
		rc = stream_send_early(s);
	/* Later flights go with what is sent next: here they would get in between. */
	if (handshake && stream_fly(s) != 0)
		rc = -EPROTO;
	pthread_mutex_unlock(&s->lock);
	*ret_bytes = len;
	return rc == 0 ? 0 : NNG_EPROTO;
}

/* --- sending -------------------------------------------------------------- */

/* Makes `out` of the first bytes of iov, which may be few, and in several parts. */
static int
stream_encrypt(struct ls_stream *s, const nng_iov *iov, unsigned count)
{
	uint8_t *plain;
	size_t len = 0, at = 0, part;
	int rc;

	for (unsigned i = 0; i < count; i++)
		len += iov[i].iov_len;
	if (len > LS_TLS_SLICE_BYTES)
		len = LS_TLS_SLICE_BYTES;
	plain = malloc(len + 1);
	if (plain == NULL)
		return NNG_ENOMEM;
	for (unsigned i = 0; i < count && at < len; i++, at += part) {
		part = iov[i].iov_len < len - at ? iov[i].iov_len : len - at;
		memcpy(plain + at, iov[i].iov_buf, part);
	}
	rc = ls_tls_peer_write(s->tls, plain, len);
	if (rc == -EAGAIN && s->early_bytes + len <= sizeof(s->early)) {
		memcpy(s->early + s->early_bytes, plain, len);
		s->early_bytes += len;
		rc = 0;
	} else if (rc == 0) {
		s->out = ls_tls_peer_take(s->tls);
	}
	free(plain);
	s->plain_bytes = len;
	return rc < 0 ? NNG_EPROTO : rc;
}

void
ls_stream_send(struct ls_stream *s, const nng_iov *iov, unsigned count, nng_aio *aio)
{
	bool push;
	int rc = 0;

	if (s->tls == NULL) {
		(void)nng_aio_set_iov(aio, count, iov); /* fails for many only */
		nng_stream_send(s->raw, aio);
		return;
	}
	pthread_mutex_lock(&s->lock);
	if (s->out.data == NULL)
		rc = stream_encrypt(s, iov, count);
	push = rc == 0 && s->out.data != NULL;
	pthread_mutex_unlock(&s->lock);
	if (push)
		stream_push(s, &s->out, aio);
	else
		stream_finish(aio, rc);
}

int
ls_stream_sent(struct ls_stream *s, nng_aio *aio, size_t *ret_bytes)
{
	int rc = nng_aio_result(aio);

	*ret_bytes = nng_aio_count(aio);
	if (s->tls == NULL || rc != 0)
		return rc;
	s->out.at += *ret_bytes;
	*ret_bytes = 0;
	if (s->out.at < s->out.len)
		return 0;
	stream_forget(&s->out);
	*ret_bytes = s->plain_bytes;
	s->plain_bytes = 0;
	return 0;
}

bool
ls_stream_holds(const struct ls_stream *s)
{
	return s->tls != NULL && ls_tls_peer_holds(s->tls);
}

/* --- the other side ------------------------------------------------------- */

bool
ls_stream_is_trusted(struct ls_stream *s)
{
	bool trusted;

	if (s->tls == NULL)
		return true;
	pthread_mutex_lock(&s->lock);
	trusted = ls_tls_peer_is_trusted(s->tls);
	pthread_mutex_unlock(&s->lock);
	return trusted;
}

const struct ls_tls_told *
ls_stream_tell(const struct ls_stream *s)
{
	return s != NULL && s->tls != NULL ? ls_tls_peer_tell(s->tls) : NULL;
}

void
ls_stream_close(struct ls_stream *s)
{
	if (s == NULL)
		return;
	nng_stream_close(s->raw);
	nng_aio_stop(s->flight_aio); /* accepts NULL */
}

void
ls_stream_free(struct ls_stream *s)
{
	if (s == NULL)
		return;
	nng_aio_free(s->flight_aio);
	if (s->raw != NULL)
		nng_stream_free(s->raw);
	if (s->tls != NULL)
		ls_tls_peer_free(s->tls);
	stream_forget(&s->out);
	stream_forget(&s->flight);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
