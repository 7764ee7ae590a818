/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/exchange.h"

#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/queue.h"

/* What nng's threads tell the loop: the addresses of these are the messages. */
struct exchange_note {
	char unused;
};

struct ls_exchange {
	struct ls_exchange_handler handler;
	struct ls_queue *queue;
	struct exchange_note pipe_changed, answered, failed;
	nng_socket socket;
	nng_ctx ctx;
	nng_aio *send_aio, *recv_aio;
	bool socket_open, ctx_open;
	bool busy;                     /* loop: a request is under way */
	bool up;                       /* loop: as told last */
	atomic_int pipe;               /* nng: id of the connection, 0: none; one dialer has one */
	atomic_bool pipe_told;         /* a note about it is in the queue */
	uint64_t t_receive_mono_ns;    /* nng, before `answered`; loop, after it */
};

/* --- on nng's threads: take the result, push, re-arm ------------------------------- */

/* At most one note of each kind is in the queue, so it cannot be full. */
static void
exchange_tell(struct ls_exchange *x, struct exchange_note *note)
{
	int rc = ls_queue_push(x->queue, note);

	LS_ASSERT(rc == 0 || rc == -LS_ECLOSED);
}

static void
exchange_on_pipe(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
	struct ls_exchange *x = arg;
	int id = nng_pipe_id(pipe);

	if (event == NNG_PIPE_EV_ADD_POST)
		atomic_store(&x->pipe, id);
	else /* also comes for one that was refused and never added */
		(void)atomic_compare_exchange_strong(&x->pipe, &id, 0);
	if (!atomic_exchange(&x->pipe_told, true))
		exchange_tell(x, &x->pipe_changed);
}

static void
exchange_on_sent(void *arg)
{
	struct ls_exchange *x = arg;

	if (nng_aio_result(x->send_aio) == 0) {
		nng_ctx_recv(x->ctx, x->recv_aio);
		return;
	}
	nng_msg_free(nng_aio_get_msg(x->send_aio)); /* it is ours again */
	nng_aio_set_msg(x->send_aio, NULL);
	exchange_tell(x, &x->failed);
}

static void
exchange_on_answer(void *arg)
{
	struct ls_exchange *x = arg;

	x->t_receive_mono_ns = ls_clock_mono_ns();
	exchange_tell(x, nng_aio_result(x->recv_aio) == 0 ? &x->answered : &x->failed);
}

/* --- on the loop ------------------------------------------------------------------- */

static void
exchange_pipe_changed(struct ls_exchange *x)
{
	bool up;

	atomic_store(&x->pipe_told, false); /* first: a later change is told again */
	up = atomic_load(&x->pipe) != 0;
	if (up == x->up)
		return;
	x->up = up;
	x->handler.event(x->handler.arg, up ? LS_EXCHANGE_UP : LS_EXCHANGE_DOWN, NULL, 0, 0);
}

static void
exchange_drain(void *arg)
{
	struct ls_exchange *x = arg;
	void *note;
	nng_msg *msg;

	while (ls_queue_take(x->queue, &note, 1) == 1) {
		if (note == &x->pipe_changed) {
			exchange_pipe_changed(x);
		} else if (note == &x->failed) {
			x->busy = false;
			x->handler.event(x->handler.arg, LS_EXCHANGE_FAILED, NULL, 0, 0);
		} else {
			msg = nng_aio_get_msg(x->recv_aio);
			nng_aio_set_msg(x->recv_aio, NULL);
			x->busy = false;
			x->handler.event(x->handler.arg, LS_EXCHANGE_ANSWER, nng_msg_body(msg),
				nng_msg_len(msg), x->t_receive_mono_ns);
			nng_msg_free(msg);
		}
	}
}

/* Socket, context and aios. The first failure of nng, or 0. */
static int
exchange_make(struct ls_exchange *x)
{
	int rc = nng_req0_open(&x->socket);

	if (rc != 0)
		return rc;
	x->socket_open = true;
	rc = nng_socket_set_size(x->socket, NNG_OPT_RECVMAXSZ, LS_ACK_MAX_BYTES);
	if (rc == 0)
		rc = nng_socket_set_ms(x->socket, NNG_OPT_RECONNMINT,
			(nng_duration)(LS_RECONNECT_MIN_NS / 1000000));
	if (rc == 0)
		rc = nng_socket_set_ms(x->socket, NNG_OPT_RECONNMAXT,
			(nng_duration)(LS_RECONNECT_MAX_NS / 1000000));
	if (rc == 0)
		rc = nng_pipe_notify(x->socket, NNG_PIPE_EV_ADD_POST, exchange_on_pipe, x);
	if (rc == 0)
		rc = nng_pipe_notify(x->socket, NNG_PIPE_EV_REM_POST, exchange_on_pipe, x);
	if (rc == 0)
		rc = nng_ctx_open(&x->ctx, x->socket);
	if (rc != 0)
		return rc;
	x->ctx_open = true;
	rc = nng_ctx_set_ms(
		x->ctx, NNG_OPT_REQ_RESENDTIME, (nng_duration)(LS_RESEND_NS / 1000000));
	if (rc == 0)
		rc = nng_aio_alloc(&x->send_aio, exchange_on_sent, x);
	if (rc == 0)
		rc = nng_aio_alloc(&x->recv_aio, exchange_on_answer, x);
	return rc;
}

static int
exchange_dial(struct ls_exchange *x, const char *url)
{
	nng_dialer dialer;
	int rc = nng_dialer_create(&dialer, x->socket, url);

	if (rc != 0)
		return rc;
	rc = nng_dialer_set_bool(dialer, NNG_OPT_TCP_KEEPALIVE, true);
	if (rc == 0)
		rc = nng_dialer_start(dialer, NNG_FLAG_NONBLOCK);
	return rc;
}

int
ls_exchange_open(struct ls_loop *loop, const char *url,
	const struct ls_exchange_handler *handler, struct ls_exchange **ret_exchange)
{
	struct ls_exchange *x;
	int rc;

	if (strncmp(url, "tcp://", strlen("tcp://")) != 0)
		return -LS_ERANGE;
	x = calloc(1, sizeof(*x));
	if (x == NULL)
		return -ENOMEM;
	x->handler = *handler;
	rc = -ENOMEM;
	x->queue = ls_queue_new(LS_EXCHANGE_NOTES_MAX);
	if (x->queue == NULL)
		goto out;
	rc = ls_queue_watch(x->queue, loop, exchange_drain, x);
	if (rc != 0)
		goto out;
	rc = ls_err_nng(exchange_make(x));
	if (rc != 0)
		goto out;
	rc = exchange_dial(x, url);
	rc = rc == NNG_EADDRINVAL || rc == NNG_EINVAL ? -LS_ERANGE : ls_err_nng(rc);
	if (rc != 0)
		goto out;
	*ret_exchange = x;
	x = NULL;
out:
	ls_exchange_close(x);
	return rc;
}

int
ls_exchange_send(struct ls_exchange *x, const uint8_t *buf, size_t len)
{
	nng_msg *msg;
	int rc;

	if (x->busy)
		return -LS_EBUSY;
	rc = nng_msg_alloc(&msg, 0);
	if (rc != 0)
		return ls_err_nng(rc);
	rc = nng_msg_append(msg, buf, len);
	if (rc != 0) {
		nng_msg_free(msg);
		return ls_err_nng(rc);
	}
	x->busy = true;
	nng_aio_set_msg(x->send_aio, msg);
	nng_ctx_send(x->ctx, x->send_aio);
	return 0;
}

void
ls_exchange_cancel(struct ls_exchange *x)
{
	if (!x->busy)
		return;
	nng_aio_cancel(x->send_aio);
	nng_aio_cancel(x->recv_aio);
}

void
ls_exchange_close(struct ls_exchange *x)
{
	if (x == NULL)
		return;
	/* First the send: once it is over, none can start the receive. */
	if (x->send_aio != NULL)
		nng_aio_stop(x->send_aio);
	if (x->recv_aio != NULL) {
		nng_aio_stop(x->recv_aio);
		if (x->busy && nng_aio_result(x->recv_aio) == 0 &&
			nng_aio_get_msg(x->recv_aio) != NULL)
			nng_msg_free(nng_aio_get_msg(x->recv_aio)); /* not taken any more */
	}
	nng_aio_free(x->send_aio);
	nng_aio_free(x->recv_aio);
	if (x->ctx_open)
		(void)nng_ctx_close(x->ctx); /* the socket goes with it */
	if (x->socket_open)
		(void)nng_close(x->socket);
	ls_queue_free(x->queue, NULL);
	free(x);
}
