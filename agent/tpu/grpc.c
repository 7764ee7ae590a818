/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/grpc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/tpu/grpc_reply.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/text.h"

#define GRPC_READ_MAX_BYTES 65536 /* read ahead of us at most */
#define GRPC_WINDOW_BYTES (2 * LS_GRPC_MESSAGE_MAX_BYTES)

static const char *const grpc_state_names[] = {
#define LS_GRPC_STATE(id, name) name,
#include "agent/tpu/grpc_state.def"
#undef LS_GRPC_STATE
};

struct grpc_call {
	bool used;
	int32_t stream;
	uint64_t due_ns;
	ls_grpc_done *done;
	void *arg;
	size_t request_len, request_sent;
	uint8_t request[LS_GRPC_PREFIX_BYTES + LS_GRPC_REQUEST_MAX_BYTES];
	struct ls_grpc_reply reply;
};

struct ls_grpc {
	struct ls_loop *loop;
	struct ls_grpc_options options;
	struct sockaddr_storage peer;
	int peer_len;
	char authority[INET6_ADDRSTRLEN + 16], timeout[32];
	/* of the state: end of HOLD, of connecting, of the next call */
	struct ls_loop_timer *timer;
	struct ls_loop_timer *flush; /* something is to be sent */
	struct bufferevent *bev;
	nghttp2_session *session;
	enum ls_grpc_state state;
	uint64_t hold_ns; /* of the next HOLD */
	unsigned timeouts; /* in a row */
	int last_error;
	char why[LS_GRPC_TEXT_MAX_BYTES];
	struct grpc_call call[LS_GRPC_CALLS_MAX];
	struct ls_grpc_stats stats;
};

/* --- states --------------------------------------------------------------- */

static uint64_t
grpc_first_due(const struct ls_grpc *g)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < LS_GRPC_CALLS_MAX; i++) {
		if (g->call[i].used && g->call[i].due_ns < first)
			first = g->call[i].due_ns;
	}
	return first;
}

/* Arms the timer for what the state waits for. */
static void
grpc_arm(struct ls_grpc *g)
{
	uint64_t now = ls_loop_now(g->loop), due = grpc_first_due(g);

	if (g->state == LS_GRPC_STATE_HOLD)
		ls_loop_timer_start(g->timer, g->hold_ns, 0);
	else if (g->state == LS_GRPC_STATE_CONNECTING)
		ls_loop_timer_start(g->timer, g->options.deadline_ns, 0);
	else if (due != UINT64_MAX)
		ls_loop_timer_start(g->timer, due > now ? due - now : 0, 0);
	else
		ls_loop_timer_stop(g->timer);
}

/* The only place that changes the state, and with it the timer. */
static void
grpc_set_state(struct ls_grpc *g, enum ls_grpc_state to)
{
	static const unsigned moves[LS_GRPC_STATE_COUNT] = {
		[LS_GRPC_STATE_HOLD] = 1u << LS_GRPC_STATE_CONNECTING,
		[LS_GRPC_STATE_CONNECTING] =
			1u << LS_GRPC_STATE_UP | 1u << LS_GRPC_STATE_HOLD,
		[LS_GRPC_STATE_UP] =
			1u << LS_GRPC_STATE_DRAINING | 1u << LS_GRPC_STATE_HOLD,
		[LS_GRPC_STATE_DRAINING] = 1u << LS_GRPC_STATE_HOLD,
	};

	LS_ASSERT(moves[g->state] & 1u << to);
	ls_log(LS_LOG_DEBUG, "grpc", "%s: %s -> %s%s%s", g->authority,
		grpc_state_names[g->state], grpc_state_names[to],
		g->why[0] != '\0' ? ": " : "", g->why);
	g->state = to;
	grpc_arm(g);
	if (g->options.changed != NULL)
		g->options.changed(g->options.arg, to);
}

/* --- ends of calls -------------------------------------------------------- */

/* Ends a call; its place is free before the callback runs, which may take it again. */
static void
grpc_end(struct ls_grpc *g, struct grpc_call *c, struct ls_grpc_answer *a)
{
	struct ls_grpc_reply reply = c->reply;
	ls_grpc_done *done = c->done;
	void *arg = c->arg;

	if (a->text == c->reply.text)
		a->text = reply.text;
	if (a->message == c->reply.prefix)
		a->message = reply.prefix;
	ls_grpc_reply_init(&c->reply); /* its memory is in the copy now */
	c->used = false;
	if (a->rc == -ETIMEDOUT) {
		g->stats.timeouts++;
		g->timeouts++;
	} else if (a->rc == 0) {
		g->timeouts = 0;
		/* it works: the next end is no failure to start */
		g->hold_ns = g->options.hold_min_ns;
		*(a->status == LS_GRPC_OK ? &g->stats.answers : &g->stats.statuses) +=
			1;
	} else if (a->rc != -LS_ENET) {
		g->stats.malformed++;
	}
	done(arg, a);
	ls_grpc_reply_fini(&reply);
}

static void
grpc_end_all(struct ls_grpc *g)
{
	struct ls_grpc_answer a;

	for (size_t i = 0; i < LS_GRPC_CALLS_MAX; i++) {
		a = (struct ls_grpc_answer){ .rc = -LS_ENET,
			.text = "the connection was lost" };
		if (g->call[i].used)
			grpc_end(g, &g->call[i], &a);
	}
}

/* The connection has come to its end: HOLD, and all calls end. */
static void
grpc_down(struct ls_grpc *g, int rc, const char *why)
{
	if (g->state == LS_GRPC_STATE_CONNECTING)
		g->stats.refusals++;
	else if (g->state == LS_GRPC_STATE_UP)
		g->stats.losses++;
	g->last_error = rc;
	g->timeouts = 0; /* the next connection has its own */
	(void)snprintf(g->why, sizeof(g->why), "%s", why);
	/* accepts NULL; calls no callback that knows a call */
	nghttp2_session_del(g->session);
	g->session = NULL;
	if (g->bev != NULL)
		bufferevent_free(g->bev);
	g->bev = NULL;
	ls_loop_timer_stop(g->flush);
	grpc_set_state(g, LS_GRPC_STATE_HOLD);
	g->hold_ns = g->hold_ns > LS_GRPC_HOLD_MAX_NS / 2 ? LS_GRPC_HOLD_MAX_NS
							  : 2 * g->hold_ns;
	grpc_end_all(g);
}

/* --- nghttp2's callbacks -------------------------------------------------- */

static struct grpc_call *
grpc_find(struct ls_grpc *g, int32_t stream)
{
	for (size_t i = 0; i < LS_GRPC_CALLS_MAX; i++) {
		if (g->call[i].used && g->call[i].stream == stream)
			return &g->call[i];
	}
	return NULL; /* of a call that has ended: its deadline was over */
}

static int
grpc_on_header(nghttp2_session *session, const nghttp2_frame *frame,
	const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len,
	uint8_t flags, void *arg)
{
	struct grpc_call *c = grpc_find(arg, frame->hd.stream_id);

	(void)session;
	(void)flags;
	if (c != NULL &&
		ls_grpc_reply_header(&c->reply, (const char *)name, name_len,
			(const char *)value, value_len) != 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets the stream */
	return 0;
}

static int
grpc_on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
	const uint8_t *data, size_t len, void *arg)
{
	struct grpc_call *c = grpc_find(arg, stream);

	(void)flags;
	if (c != NULL && c->reply.rc == 0 &&
		ls_grpc_reply_data(&c->reply, data, len) != 0)
		return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream,
			NGHTTP2_CANCEL);
	return 0;
}

static int
grpc_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct ls_grpc *g = arg;

	(void)session;
	if (frame->hd.type == NGHTTP2_SETTINGS &&
		!(frame->hd.flags & NGHTTP2_FLAG_ACK) &&
		g->state == LS_GRPC_STATE_CONNECTING) {
		g->stats.connects++;
		g->last_error = 0;
		g->why[0] = '\0';
		grpc_set_state(g, LS_GRPC_STATE_UP);
	} else if (frame->hd.type == NGHTTP2_GOAWAY && g->state == LS_GRPC_STATE_UP) {
		(void)snprintf(g->why, sizeof(g->why),
			"the peer closes the connection");
		grpc_set_state(g, LS_GRPC_STATE_DRAINING);
	}
	return 0;
}

static int
grpc_on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *arg)
{
	struct ls_grpc *g = arg;
	struct grpc_call *c = grpc_find(g, stream);
	struct ls_grpc_answer a;

	(void)session;
	if (c == NULL)
		return 0;
	ls_grpc_reply_finish(&c->reply, &a);
	/* A server may reset after its trailers (RFC 9113, 8.1); without a status it is
	 * a loss. */
	if (error != NGHTTP2_NO_ERROR && c->reply.rc == 0 && c->reply.grpc_status < 0)
		a = (struct ls_grpc_answer){ .rc = -LS_ENET,
			.text = "the call was reset" };
	grpc_end(g, c, &a);
	return 0;
}

static ssize_t
grpc_on_request(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t size,
	uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct grpc_call *c = grpc_find(arg, stream);
	size_t n;

	(void)session;
	(void)source;
	if (c == NULL)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	n = c->request_len - c->request_sent;
	if (n > size)
		n = size;
	memcpy(buf, c->request + c->request_sent, n);
	c->request_sent += n;
	if (c->request_sent == c->request_len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static int
grpc_session(struct ls_grpc *g)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 0 }, /* no state to be spoilt */
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, GRPC_WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LS_GRPC_HEADERS_MAX_BYTES },
	};
	nghttp2_session_callbacks *callbacks;
	int rc = nghttp2_session_callbacks_new(&callbacks);

	if (rc != 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, grpc_on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
		grpc_on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, grpc_on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
		grpc_on_close);
	rc = nghttp2_session_client_new(&g->session, callbacks, g);
	nghttp2_session_callbacks_del(callbacks);
	if (rc == 0)
		rc = nghttp2_submit_settings(g->session, NGHTTP2_FLAG_NONE, settings,
			sizeof(settings) / sizeof(settings[0]));
	return rc == 0 ? 0 : -ENOMEM;
}

/* --- bytes in and out ----------------------------------------------------- */

/* Sends what the session has to say, and notices its end. */
static void
grpc_pump(struct ls_grpc *g)
{
	const uint8_t *data;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(g->session, &data)) > 0) {
		if (bufferevent_write(g->bev, data, (size_t)n) != 0) {
			grpc_down(g, -ENOMEM, "out of memory");
			return;
		}
	}
	if (n < 0)
		grpc_down(g, -ENOMEM, nghttp2_strerror((int)n));
	else if (evbuffer_get_length(bufferevent_get_output(g->bev)) >
		LS_GRPC_UNSENT_MAX_BYTES)
		grpc_down(g, -LS_ELIMIT, "the peer does not read");
	else if (g->state == LS_GRPC_STATE_DRAINING && ls_grpc_pending(g) == 0)
		grpc_down(g, -LS_ECLOSED, "the peer ended the connection");
	else if (!nghttp2_session_want_read(g->session) &&
		!nghttp2_session_want_write(g->session))
		grpc_down(g, -LS_EPARSE, "the peer does not speak HTTP/2");
	else if (g->timeouts >= LS_GRPC_TIMEOUTS_MAX)
		grpc_down(g, -ETIMEDOUT, "calls are not answered");
	else if (g->state != LS_GRPC_STATE_CONNECTING)
		grpc_arm(g); /* CONNECTING keeps its deadline */
}

static void
grpc_flush(void *arg)
{
	struct ls_grpc *g = arg;

	if (g->session != NULL)
		grpc_pump(g);
}

static void
grpc_on_read(struct bufferevent *bev, void *arg)
{
	struct ls_grpc *g = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t len;
	ssize_t n;

	while (g->session != NULL && (len = evbuffer_get_contiguous_space(in)) > 0) {
		n = nghttp2_session_mem_recv(g->session,
			evbuffer_pullup(in, (ev_ssize_t)len), len);
		if (n < 0) {
			grpc_down(g, -LS_EPARSE, nghttp2_strerror((int)n));
			return;
		}
		/* fails for a frozen buffer only */
		ls_ignore(evbuffer_drain(in, (size_t)n));
	}
	if (g->session != NULL)
		grpc_pump(g);
}

static void
grpc_on_event(struct bufferevent *bev, short events, void *arg)
{
	struct ls_grpc *g = arg;
	int error = EVUTIL_SOCKET_ERROR();

	(void)bev;
	if (events & BEV_EVENT_CONNECTED) {
		if (grpc_session(g) != 0)
			grpc_down(g, -ENOMEM, "out of memory");
		else
			grpc_pump(g);
	} else if (events & BEV_EVENT_EOF) {
		grpc_down(g, -LS_ECLOSED, "the peer closed the connection");
	} else if (events & BEV_EVENT_ERROR) {
		grpc_down(g, error != 0 ? -error : -LS_ENET,
			error != 0 ? evutil_socket_error_to_string(error)
				   : "connection failed");
	}
}

static void
grpc_connect(struct ls_grpc *g)
{
	grpc_set_state(g, LS_GRPC_STATE_CONNECTING);
	g->bev = bufferevent_socket_new(ls_loop_base(g->loop), -1,
		BEV_OPT_CLOSE_ON_FREE);
	if (g->bev == NULL) {
		grpc_down(g, -ENOMEM, "out of memory");
		return;
	}
	bufferevent_setcb(g->bev, grpc_on_read, NULL, grpc_on_event, g);
	bufferevent_setwatermark(g->bev, EV_READ, 0, GRPC_READ_MAX_BYTES);
	if (bufferevent_enable(g->bev, EV_READ | EV_WRITE) != 0 ||
		bufferevent_socket_connect(g->bev, (struct sockaddr *)&g->peer,
			g->peer_len) != 0)
		grpc_down(g, -LS_ENET, "cannot connect");
}

/* --- time ----------------------------------------------------------------- */

static void
grpc_overdue(struct ls_grpc *g)
{
	uint64_t now = ls_loop_now(g->loop);
	struct ls_grpc_answer a;

	for (size_t i = 0; i < LS_GRPC_CALLS_MAX; i++) {
		struct grpc_call *c = &g->call[i];

		if (!c->used || c->due_ns > now)
			continue;
		ls_ignore(nghttp2_submit_rst_stream(g->session, NGHTTP2_FLAG_NONE,
			c->stream,
			/* out of memory: the connection will say so */
			NGHTTP2_CANCEL));
		a = (struct ls_grpc_answer){ .rc = -ETIMEDOUT,
			.text = "no answer in time" };
		grpc_end(g, c, &a);
	}
	grpc_pump(g);
}

static void
grpc_on_timer(void *arg)
{
	struct ls_grpc *g = arg;

	switch (g->state) {
	case LS_GRPC_STATE_HOLD:
		grpc_connect(g);
		break;
	case LS_GRPC_STATE_CONNECTING:
		grpc_down(g, -ETIMEDOUT,
			g->session == NULL ? "no connection in time"
					   : "connected, but it sends no reply");
		break;
	case LS_GRPC_STATE_UP:
	case LS_GRPC_STATE_DRAINING:
		grpc_overdue(g);
		break;
	case LS_GRPC_STATE_COUNT:
		break;
	}
}

/* --- calls ---------------------------------------------------------------- */

static nghttp2_nv
grpc_field(const char *name, const char *value)
{
	nghttp2_nv nv = { .namelen = strlen(name), .valuelen = strlen(value) };

	/* its pointers are not const, their use is */
	memcpy(&nv.name, &name, sizeof(name));
	memcpy(&nv.value, &value, sizeof(value));
	return nv;
}

static int32_t
grpc_submit(struct ls_grpc *g, const char *path)
{
	const nghttp2_data_provider body = { .read_callback = grpc_on_request };
	const nghttp2_nv fields[] = { grpc_field(":method", "POST"),
		grpc_field(":scheme", "http"), grpc_field(":path", path),
		grpc_field(":authority", g->authority), grpc_field("te", "trailers"),
		grpc_field("content-type", "application/grpc"),
		grpc_field("user-agent", "lockstep-agent/" PACKAGE_VERSION),
		grpc_field("grpc-timeout", g->timeout) };

	return nghttp2_submit_request(g->session, NULL, fields,
		sizeof(fields) / sizeof(fields[0]), &body, NULL);
}

int
ls_grpc_call(struct ls_grpc *g, const char *path, const uint8_t *request, size_t len,
	ls_grpc_done *done, void *arg)
{
	struct grpc_call *c = NULL;

	if (len > LS_GRPC_REQUEST_MAX_BYTES)
		return -LS_ELIMIT;
	for (size_t i = 0; i < LS_GRPC_CALLS_MAX && c == NULL; i++)
		c = g->call[i].used ? NULL : &g->call[i];
	if (g->state != LS_GRPC_STATE_UP || c == NULL)
		return -LS_EBUSY;
	c->stream = grpc_submit(g, path);
	/* also when 2^30 streams were used: the next connection has new ones */
	if (c->stream < 0)
		return c->stream == NGHTTP2_ERR_NOMEM ? -ENOMEM : -LS_EBUSY;
	c->used = true;
	c->due_ns = ls_loop_now(g->loop) + g->options.deadline_ns;
	c->done = done;
	c->arg = arg;
	ls_grpc_prefix(c->request, (uint32_t)len);
	memcpy(c->request + LS_GRPC_PREFIX_BYTES, request, len);
	c->request_len = LS_GRPC_PREFIX_BYTES + len;
	c->request_sent = 0;
	ls_grpc_reply_init(&c->reply);
	g->stats.calls++;
	/* not here: a failure would end calls from within */
	ls_loop_timer_start(g->flush, 0, 0);
	return 0;
}

/* --- life ----------------------------------------------------------------- */

static int
grpc_peer(struct ls_grpc *g, const char *address, uint16_t port)
{
	bool v6 = strchr(address, ':') != NULL;

	g->peer_len = sizeof(g->peer);
	if (evutil_parse_sockaddr_port(address, (struct sockaddr *)&g->peer,
		    &g->peer_len) != 0)
		return -LS_ERANGE;
	/* it is at the same place in an address of IPv6 */
	((struct sockaddr_in *)&g->peer)->sin_port = htons(port);
	(void)snprintf(g->authority, sizeof(g->authority), "%s%s%s:%u", v6 ? "[" : "",
		address, v6 ? "]" : "", port);
	return 0;
}

int
ls_grpc_new(struct ls_loop *loop, const struct ls_grpc_options *options,
	struct ls_grpc **ret_grpc)
{
	struct ls_grpc *g = calloc(1, sizeof(*g));
	int rc;

	if (g == NULL)
		return -ENOMEM;
	g->loop = loop;
	g->options = *options;
	g->hold_ns = g->options.hold_min_ns;
	(void)snprintf(g->timeout, sizeof(g->timeout), "%llum",
		(unsigned long long)(options->deadline_ns / 1000000));
	rc = grpc_peer(g, options->address, options->port);
	if (rc != 0)
		goto out;
	rc = -ENOMEM;
	g->timer = ls_loop_timer_new(loop, grpc_on_timer, g);
	g->flush = ls_loop_timer_new(loop, grpc_flush, g);
	if (g->timer == NULL || g->flush == NULL)
		goto out;
	ls_loop_timer_start(g->timer, 0, 0);
	*ret_grpc = g;
	g = NULL;
	rc = 0;
out:
	ls_grpc_free(g);
	return rc;
}

void
ls_grpc_free(struct ls_grpc *g)
{
	if (g == NULL)
		return;
	for (size_t i = 0; i < LS_GRPC_CALLS_MAX; i++)
		ls_grpc_reply_fini(&g->call[i].reply);
	nghttp2_session_del(g->session);
	if (g->bev != NULL)
		bufferevent_free(g->bev);
	ls_loop_timer_free(g->timer);
	ls_loop_timer_free(g->flush);
	free(g);
}

enum ls_grpc_state
ls_grpc_get_state(const struct ls_grpc *g)
{
	return g->state;
}

const char *
ls_grpc_why(const struct ls_grpc *g)
{
	return g->state == LS_GRPC_STATE_UP ? "" : g->why;
}

int
ls_grpc_last_error(const struct ls_grpc *g)
{
	return g->last_error;
}

size_t
ls_grpc_pending(const struct ls_grpc *g)
{
	size_t i, n = 0;

	for (i = 0; i < LS_GRPC_CALLS_MAX; i++)
		n += g->call[i].used;
	return n;
}

const struct ls_grpc_stats *
ls_grpc_get_stats(const struct ls_grpc *g)
{
	return &g->stats;
}
