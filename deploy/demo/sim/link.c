/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/sim/link.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <string.h>
#include <unistd.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/text.h"
#include "proto/limits.h"

/* to connect (with TLS: and for the handshake) and to be greeted, as an agent */
#define LINK_CONNECT_NS (LS_EXCHANGE_LINE_FACTOR * LS_EXCHANGE_PATIENCE_NS)

static void link_on_timer(evutil_socket_t fd, short what, void *arg);

uint64_t
sim_fleet_random(struct sim_fleet *f, uint64_t below)
{
	return below > 0 ? sim_next(&f->random) % below : 0;
}

/* --- states and timers ---------------------------------------------------- */

/* The only place that changes the state, and with it the timer. */
static void
link_set_state(struct sim_link *l, enum sim_link_state to, uint64_t due_ns)
{
	static const unsigned moves[LINK_STATES] = {
		[LINK_DOWN] = 1u << LINK_CONNECTING | 1u << LINK_DOWN,
		[LINK_CONNECTING] = 1u << LINK_GREETING | 1u << LINK_DOWN,
		[LINK_GREETING] = 1u << LINK_READY | 1u << LINK_HOLD | 1u << LINK_DOWN,
		[LINK_READY] = 1u << LINK_AWAIT | 1u << LINK_READY | 1u << LINK_DOWN,
		[LINK_AWAIT] = 1u << LINK_READY | 1u << LINK_HOLD | 1u << LINK_DOWN,
		[LINK_HOLD] = 1u << LINK_READY | 1u << LINK_DOWN,
	};
	uint64_t now = ls_clock_mono_ns(), wait_us;
	struct timeval tv;

	/* Beats that are close together share a turn of the loop: that saves the waits
	 * between them. */
	if (to == LINK_READY && due_ns > now)
		due_ns += SIM_TICK_NS - due_ns % SIM_TICK_NS;
	wait_us = due_ns > now ? (due_ns - now) / 1000 : 0;
	tv.tv_sec = (time_t)(wait_us / 1000000);
	tv.tv_usec = (suseconds_t)(wait_us % 1000000);
	LS_ASSERT(moves[l->state] & 1u << to);
	l->state = to;
	if (event_add(&l->timer, &tv) != 0)
		ls_log(LS_LOG_ERR, "sim", "no memory for a timer: this agent stops");
}

static void
link_close(struct sim_link *l)
{
	SSL *ssl = l->stream != NULL && l->fleet->tls != NULL
		? bufferevent_openssl_get_ssl(l->stream)
		: NULL;

	if (ssl != NULL && l->settled) {
		/* else OpenSSL does not resume a session that just ended */
		SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
		SSL_SESSION_free(l->session);
		l->session = SSL_get1_session(ssl);
	}
	if (l->stream != NULL)
		bufferevent_free(l->stream);
	l->stream = NULL;
}

/* A stream that shows the certificate of this agent's host; NULL: it cannot. */
static struct bufferevent *
link_secure(struct sim_link *l, int fd)
{
	SSL *ssl = SSL_new(l->fleet->tls);

	if (ssl == NULL || SSL_use_certificate(ssl, l->certificate) != 1 ||
		SSL_use_PrivateKey(ssl, l->key) != 1) {
		SSL_free(ssl);
		return NULL;
	}
	if (l->session != NULL)
		(void)SSL_set_session(ssl, l->session); /* else a full handshake */
	return bufferevent_openssl_socket_new(ls_loop_base(l->fleet->loop), fd, ssl,
		BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE);
}

/* Closes, and connects again after a random time. */
static void
link_down(struct sim_link *l, uint64_t *counter)
{
	struct sim_fleet *f = l->fleet;
	uint64_t now = ls_clock_mono_ns();

	(*counter)++;
	f->sums.connected -= l->state >= LINK_READY;
	link_close(l);
	if (l->settled)
		sim_tally_lost(f->tally, now);
	l->settled = false;
	/* Back-off is short: a collector that comes back after minutes is to have all
	 * of us soon. */
	link_set_state(l, LINK_DOWN,
		now + sim_fleet_random(f, f->jitter_ns << (l->failures > 0)));
	l->failures++;
}

/* --- writing -------------------------------------------------------------- */

static void
link_report(struct sim_link *l)
{
	struct sim_fleet *f = l->fleet;
	uint64_t now = ls_clock_mono_ns();
	size_t len = 0;
	int rc = sim_agent_read(&l->agent, &f->plan, now, &f->sums.agents);

	if (rc == 0)
		rc = sim_agent_report(&l->agent, &f->plan, now,
			f->out + SIM_LINK_HEAD_BYTES, LS_REPORT_MAX_BYTES, &len,
			&f->sums.agents);
	/* Beats keep their phase; those that were missed are not made up for. */
	if (l->next_beat_ns + l->agent.beat_ns <= now)
		l->next_beat_ns = now;
	l->next_beat_ns += l->agent.beat_ns;
	if (rc != 0) {
		ls_log(LS_LOG_ERR, "sim",
			"cannot build a report (%s); retrying at the next beat",
			ls_err_text(rc));
		link_set_state(l, LINK_READY, l->next_beat_ns);
		return;
	}
	l->id = (l->id + 1) | LS_FRAME_ID;
	l->t_send_ns = now;
	ls_frame_put_length(f->out, LS_FRAME_ID_BYTES + len);
	ls_frame_put_id(f->out + LS_FRAME_LENGTH_BYTES, l->id);
	link_set_state(l, LINK_AWAIT, now + LS_ACK_TIMEOUT_NS);
	if (bufferevent_write(l->stream, f->out, SIM_LINK_HEAD_BYTES + len) != 0) {
		link_down(l, &f->sums.disconnects);
		return;
	}
	f->sums.reports++;
	f->sums.report_bytes += len;
}

/* --- reading -------------------------------------------------------------- */

static void
link_settle(struct sim_link *l, uint64_t now)
{
	struct sim_fleet *f = l->fleet;

	if (l->settled)
		return;
	l->settled = true;
	sim_tally_settled(f->tally, now);
	if (sim_tally_storm_turn(f->tally, stdout) && f->options->storm)
		ls_loop_stop(f->loop);
}

/* When the next report is sent after an answer. */
static uint64_t
link_next_ns(struct sim_link *l, const struct sim_answer *answer, uint64_t now)
{
	struct sim_fleet *f = l->fleet;

	if (f->plan.draining)
		return sim_agent_waits(&l->agent)
			? now + (answer->more ? 0 : SIM_DRAIN_BEAT_NS)
			: l->next_beat_ns;
	if (f->options->saturate || answer->more)
		l->next_beat_ns = now;
	return l->next_beat_ns;
}

static void
link_answered(struct sim_link *l, uint32_t id, const uint8_t *body, size_t len)
{
	struct sim_fleet *f = l->fleet;
	uint64_t now = ls_clock_mono_ns();
	struct sim_answer answer;
	char why[2 * sizeof(answer.why)];

	if (l->state != LINK_AWAIT || id != l->id)
		return; /* of a request that was given up */
	sim_agent_answer(&l->agent, &f->plan, body, len, now, &answer, &f->sums.agents);
	f->sums.acks += answer.verdict == SIM_ACK_OK;
	f->sums.retries += answer.verdict == SIM_ACK_RETRY;
	f->sums.rejects += answer.verdict == SIM_ACK_REJECT;
	f->sums.bad_acks += answer.verdict == SIM_ACK_BAD;
	if (answer.verdict != SIM_ACK_OK) {
		(void)ls_text_escape(why, sizeof(why), answer.why, strlen(answer.why));
		if (answer.verdict != SIM_ACK_RETRY)
			ls_log(LS_LOG_WARN, "sim", "%s: %s; it waits",
				answer.verdict == SIM_ACK_BAD ? "invalid answer"
							      : "an agent is refused",
				why);
		l->hold_until_ns = now + answer.hold_ns;
		link_set_state(l, LINK_HOLD, l->hold_until_ns);
		return;
	}
	if (answer.stored)
		sim_tally_latency(f->tally, now - l->t_send_ns);
	link_set_state(l, LINK_READY, link_next_ns(l, &answer, now));
	link_settle(l, now);
}

static void
link_greeted(struct sim_link *l)
{
	struct sim_fleet *f = l->fleet;
	uint64_t now = ls_clock_mono_ns();

	f->sums.connects++;
	f->sums.connected++;
	l->failures = 0;
	sim_agent_connected(&l->agent, now);
	sim_tally_up(f->tally, now);
	l->next_beat_ns = now;
	if (l->hold_until_ns > now)
		link_set_state(l, LINK_HOLD, l->hold_until_ns);
	else
		link_set_state(l, LINK_READY, now);
}

/* Takes what is whole of buf; *ret_used says how much. */
static int
link_take(struct sim_link *l, const uint8_t *buf, size_t len, size_t *ret_used)
{
	const size_t head = LS_FRAME_LENGTH_BYTES,
		     most = LS_ACK_MAX_BYTES + LS_FRAME_ID_BYTES;
	size_t used = 0, frame;
	uint32_t id;
	int rc = 0;

	if (l->state == LINK_GREETING) {
		rc = len < LS_FRAME_GREETING_BYTES
			? -EAGAIN
			: ls_frame_check_greeting(LS_FRAME_REP, buf);
		if (rc != 0)
			return rc;
		used = LS_FRAME_GREETING_BYTES;
		link_greeted(l);
	}
	*ret_used = used;
	while ((rc = ls_frame_length(buf + used, len - used, most, &frame)) == 0 &&
		frame <= len - used) {
		rc = ls_frame_id(buf + used + head, frame - head, &id);
		if (rc != 0)
			return rc;
		*ret_used = used + frame;
		link_answered(l, id, buf + used + SIM_LINK_HEAD_BYTES,
			frame - SIM_LINK_HEAD_BYTES);
		used += frame;
	}
	return rc;
}

static void
link_broken(struct sim_link *l)
{
	struct sim_sums *sums = &l->fleet->sums;

	link_down(l,
		l->state <= LINK_GREETING ? &sums->connect_failures
					  : &sums->disconnects);
}

static void
link_on_read(struct bufferevent *stream, void *arg)
{
	struct sim_link *l = arg;
	struct evbuffer *in = bufferevent_get_input(stream);
	const uint8_t *buf = evbuffer_pullup(in, -1);
	size_t used = 0;
	int rc = buf != NULL ? link_take(l, buf, evbuffer_get_length(in), &used)
			     : -ENOMEM;

	if (rc == 0 || rc == -EAGAIN) {
		(void)evbuffer_drain(in, used); /* as much is there */
		return;
	}
	l->fleet->sums.bad_frames++;
	ls_log(LS_LOG_WARN, "sim", "not a collector (%s); reconnecting",
		ls_err_text(rc));
	link_broken(l);
}

/* Connected, or the connection has failed or ended. */
static void
link_on_event(struct bufferevent *stream, short what, void *arg)
{
	struct sim_link *l = arg;
	uint8_t greeting[LS_FRAME_GREETING_BYTES];

	ls_frame_greet(LS_FRAME_REQ, greeting);
	if ((what & BEV_EVENT_CONNECTED) == 0 ||
		bufferevent_enable(stream, EV_READ) != 0 ||
		bufferevent_write(stream, greeting, sizeof(greeting)) != 0)
		link_broken(l);
	else
		link_set_state(l, LINK_GREETING, ls_clock_mono_ns() + LINK_CONNECT_NS);
}

/* --- events --------------------------------------------------------------- */

static void
link_connect(struct sim_link *l)
{
	struct sim_fleet *f = l->fleet;
	int fd;

	if (sim_net_connect(&f->address, l->agent.index, &fd) != 0) {
		link_down(l, &f->sums.connect_failures);
		return;
	}
	l->stream = f->tls != NULL ? link_secure(l, fd)
				   : bufferevent_socket_new(ls_loop_base(f->loop), fd,
					     BEV_OPT_CLOSE_ON_FREE);
	if (l->stream == NULL)
		(void)close(fd);
	else
		bufferevent_setcb(l->stream, link_on_read, NULL, link_on_event, l);
	/* without an address: it is connecting already; TLS has begun then */
	if (l->stream == NULL ||
		(f->tls == NULL && bufferevent_socket_connect(l->stream, NULL, 0) != 0))
		link_down(l, &f->sums.connect_failures);
	else
		link_set_state(l, LINK_CONNECTING,
			ls_clock_mono_ns() + LINK_CONNECT_NS);
}

static void
link_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct sim_link *l = arg;
	struct sim_fleet *f = l->fleet;

	(void)fd;
	(void)what; /* EV_TIMEOUT */
	switch (l->state) {
	case LINK_DOWN:
		link_connect(l);
		break;
	case LINK_CONNECTING:
	case LINK_GREETING:
		link_down(l, &f->sums.connect_failures);
		break;
	case LINK_READY:
		if (!f->plan.draining || sim_agent_waits(&l->agent))
			link_report(l);
		break;
	case LINK_AWAIT:
		f->sums.timeouts++;
		/* half of a frame is out: no other can follow */
		if (evbuffer_get_length(bufferevent_get_output(l->stream)) > 0)
			link_down(l, &f->sums.disconnects);
		else
			link_set_state(l, LINK_READY, 0);
		break;
	case LINK_HOLD:
		link_set_state(l, LINK_READY, 0);
		break;
	case LINK_STATES:
		break;
	}
}

/* --- life ----------------------------------------------------------------- */

/* Reading a key takes longer than a handshake, hence once. */
static int
link_read_keys(struct sim_link *l)
{
	char path[LS_PATH_MAX_BYTES], name[LS_HOST_NAME_MAX_BYTES];
	SSL *ssl = SSL_new(l->fleet->tls);
	bool ok;

	sim_agent_name(name, l->agent.name);
	(void)snprintf(path, sizeof(path), "%.900s/%s.pem", l->fleet->options->keys,
		name);
	ok = ssl != NULL && SSL_use_certificate_file(ssl, path, SSL_FILETYPE_PEM) == 1;
	(void)snprintf(path, sizeof(path), "%.900s/%s.key", l->fleet->options->keys,
		name);
	ok = ok && SSL_use_PrivateKey_file(ssl, path, SSL_FILETYPE_PEM) == 1;
	if (ok) {
		l->certificate = SSL_get_certificate(ssl);
		l->key = SSL_get_privatekey(ssl);
		ok = X509_up_ref(l->certificate) == 1 && EVP_PKEY_up_ref(l->key) == 1;
	} else {
		ls_log(LS_LOG_ERR, "sim", "%s: no certificate and key", path);
	}
	SSL_free(ssl);
	return ok ? 0 : -EINVAL;
}

int
sim_link_init(struct sim_link *l, struct sim_fleet *f, uint32_t index)
{
	l->fleet = f;
	sim_agent_init(&l->agent, &f->plan, index);
	if (evtimer_assign(&l->timer, ls_loop_base(f->loop), link_on_timer, l) != 0)
		return -ENOMEM;
	return f->tls != NULL ? link_read_keys(l) : 0;
}

void
sim_link_start(struct sim_link *l, uint64_t due_ns)
{
	link_set_state(l, LINK_DOWN, due_ns);
}

void
sim_link_fini(struct sim_link *l)
{
	if (event_initialized(&l->timer))
		(void)event_del(&l->timer);
	link_close(l);
	SSL_SESSION_free(l->session);
	X509_free(l->certificate);
	EVP_PKEY_free(l->key);
	sim_agent_clear(&l->agent);
}

void
sim_link_hurry(struct sim_link *l, uint64_t now_ns)
{
	if (l->state == LINK_READY)
		link_set_state(l, LINK_READY, now_ns);
}
