/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/queue.h"
#include "proto/limits.h"

#define INGEST_TAKE 256 /* requests of one look into the queue */

/* What the aio of a context is doing. */
enum ingest_doing { INGEST_RECEIVING, INGEST_HELD, INGEST_SENDING };

/*
 * One context. While it receives or sends it is nng's; while it is held, the loop's. The queue (and
 * nng's own locks on the way back) order the changes of hands.
 */
struct ls_ingest_request {
	struct ls_ingest *ingest;
	nng_ctx ctx;
	nng_aio *aio;
	enum ingest_doing doing;
	nng_msg *msg;         /* the request, while held */
	uint64_t t_receive_mono_ns;
	int rc;               /* of what was done last; 0 or nng's */
};

struct ls_ingest {
	nng_socket socket;
	nng_listener listener;
	bool is_open;
	int port;
	unsigned count;       /* contexts that are open */
	struct ls_ingest_request *requests;
	struct ls_queue *queue;
	ls_ingest_fn *fn;
	void *arg;
	struct ls_ingest_stats stats;
};

static const char *const ingest_refusals[] = {
#define LS_INGEST_REFUSAL(id, name, help) name,
#include "collector/ingest_refusals.def"
#undef LS_INGEST_REFUSAL
};

const char *
ls_ingest_refusal_name(unsigned refusal)
{
	return refusal < LS_INGEST_REFUSED_COUNT ? ingest_refusals[refusal] : NULL;
}

static void
ingest_receive(struct ls_ingest_request *r)
{
	r->doing = INGEST_RECEIVING;
	nng_ctx_recv(r->ctx, r->aio);
}

/* On a thread of nng: a receipt or a sending is over. */
static void
ingest_on_aio(void *arg)
{
	struct ls_ingest_request *r = arg;
	int rc = nng_aio_result(r->aio);

	if (rc == NNG_ECLOSED || rc == NNG_ECANCELED)
		return; /* closing */
	r->rc = rc;
	if (r->doing == INGEST_SENDING) {
		if (rc != 0) { /* the message came back to us */
			nng_msg_free(nng_aio_get_msg(r->aio));
			nng_aio_set_msg(r->aio, NULL);
		}
		/* Only here is it safe to receive again: nng 1.5.2 fails otherwise. */
		ingest_receive(r);
		return;
	}
	if (rc != 0) {
		ingest_receive(r);
		return;
	}
	r->t_receive_mono_ns = ls_clock_mono_ns();
	r->msg = nng_aio_get_msg(r->aio);
	nng_aio_set_msg(r->aio, NULL);
	r->doing = INGEST_HELD;
	if (ls_queue_push(r->ingest->queue, r) != 0) {
		/* It has room for every context, so it is closed: nobody will answer. */
		nng_msg_free(r->msg);
		r->msg = NULL;
	}
}

/* On the loop. */
static void
ingest_on_queue(void *arg)
{
	struct ls_ingest *g = arg;
	void *items[INGEST_TAKE];
	size_t i, n;

	while ((n = ls_queue_take(g->queue, items, INGEST_TAKE)) > 0) {
		for (i = 0; i < n; i++) {
			struct ls_ingest_request *r = items[i];

			g->stats.requests++;
			g->stats.bytes += nng_msg_len(r->msg);
			g->stats.busy++;
			g->fn(g->arg, r, nng_msg_body(r->msg), nng_msg_len(r->msg),
				r->t_receive_mono_ns);
		}
	}
}

void
ls_ingest_reply(struct ls_ingest_request *r, const uint8_t *buf, size_t len)
{
	struct ls_ingest_stats *stats = &r->ingest->stats;
	nng_msg *msg = r->msg;

	LS_ASSERT(r->doing == INGEST_HELD && msg != NULL);
	r->msg = NULL;
	stats->busy--;
	nng_msg_clear(msg); /* the request's message carries the reply */
	if (buf == NULL || nng_msg_append(msg, buf, len) != 0) {
		stats->send_errors++;
		nng_msg_free(msg);
		ingest_receive(r); /* gives the request up */
		return;
	}
	stats->replies++;
	r->doing = INGEST_SENDING;
	nng_aio_set_msg(r->aio, msg);
	nng_ctx_send(r->ctx, r->aio);
}

/* --- listening -------------------------------------------------------------------------- */

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
	return getsockname(fd, (struct sockaddr *)&a, &len) == 0 && ingest_port_of(&a) == port;
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
			"cannot raise the listen backlog; going on with nng's 128");
}

/*
 * nng starts its threads with its first socket, and they do as the thread that opens it. Each exchange wakes
 * them six times for a moment; as a batch they do not interrupt who wakes them, so that much is done at
 * once. Where that is not allowed, all is as ever.
 */
static int
ingest_open_socket(struct ls_ingest *g)
{
	const struct sched_param none = { 0 };
	bool batch = sched_getscheduler(0) == SCHED_OTHER &&
		sched_setscheduler(0, SCHED_BATCH, &none) == 0;
	int rc = nng_rep0_open(&g->socket);

	if (batch && sched_setscheduler(0, SCHED_OTHER, &none) != 0)
		ls_log(LS_LOG_WARN, "ingest", "the loop stays a batch; going on, answers may take longer");
	return rc;
}

static int
ingest_listen(struct ls_ingest *g, const char *url)
{
	int rc;

	rc = ingest_open_socket(g);
	if (rc != 0)
		return rc;
	g->is_open = true;
	rc = nng_socket_set_size(g->socket, NNG_OPT_RECVMAXSZ, LS_REPORT_MAX_BYTES);
	if (rc == 0)
		rc = nng_listener_create(&g->listener, g->socket, url);
	if (rc == 0)
		rc = nng_listener_set_bool(g->listener, NNG_OPT_TCP_KEEPALIVE, true);
	if (rc == 0)
		rc = nng_listener_start(g->listener, 0);
	if (rc == 0)
		rc = nng_listener_get_int(g->listener, NNG_OPT_TCP_BOUND_PORT, &g->port);
	if (rc == 0)
		ingest_raise_backlog(g->port);
	return rc;
}

static int
ingest_contexts(struct ls_ingest *g, unsigned contexts)
{
	int rc = 0;

	g->requests = calloc(contexts, sizeof(*g->requests));
	if (g->requests == NULL)
		return NNG_ENOMEM;
	for (; g->count < contexts && rc == 0; g->count++) {
		struct ls_ingest_request *r = &g->requests[g->count];

		r->ingest = g;
		rc = nng_ctx_open(&r->ctx, g->socket);
		if (rc != 0)
			break;
		rc = nng_aio_alloc(&r->aio, ingest_on_aio, r);
		if (rc != 0) {
			(void)nng_ctx_close(r->ctx); /* unused so far */
			break;
		}
	}
	return rc;
}

int
ls_ingest_open(struct ls_loop *loop, const struct ls_ingest_options *options, ls_ingest_fn *fn,
	void *arg, struct ls_ingest **ret_ingest)
{
	struct ls_ingest *g = calloc(1, sizeof(*g));
	unsigned i;
	int rc;

	if (g == NULL)
		return -ENOMEM;
	g->fn = fn;
	g->arg = arg;
	g->queue = ls_queue_new(options->contexts);
	rc = g->queue != NULL ? ls_queue_watch(g->queue, loop, ingest_on_queue, g) : -ENOMEM;
	if (rc == 0)
		rc = ls_err_nng(ingest_listen(g, options->url));
	if (rc == 0)
		rc = ls_err_nng(ingest_contexts(g, options->contexts));
	if (rc != 0) {
		ls_ingest_close(g);
		return rc;
	}
	for (i = 0; i < g->count; i++)
		ingest_receive(&g->requests[i]);
	*ret_ingest = g;
	return 0;
}

void
ls_ingest_stop(struct ls_ingest *g)
{
	ls_queue_close(g->queue); /* what still arrives is dropped; its agent asks again */
}

void
ls_ingest_close(struct ls_ingest *g)
{
	unsigned i;

	if (g == NULL)
		return;
	if (g->queue != NULL)
		ls_ingest_stop(g);
	/* Stop all, then free all, then close: no callback meets what is gone. */
	for (i = 0; i < g->count; i++)
		nng_aio_stop(g->requests[i].aio);
	for (i = 0; i < g->count; i++) {
		nng_msg *msg = nng_aio_get_msg(g->requests[i].aio);

		if (g->requests[i].doing == INGEST_SENDING &&
			nng_aio_result(g->requests[i].aio) != 0 && msg != NULL)
			nng_msg_free(msg);
		nng_aio_free(g->requests[i].aio);
		if (g->requests[i].msg != NULL)
			nng_msg_free(g->requests[i].msg);
		(void)nng_ctx_close(g->requests[i].ctx); /* open until now */
	}
	if (g->is_open)
		(void)nng_close(g->socket); /* once, here */
	ls_queue_free(g->queue, NULL);
	free(g->requests);
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
	nng_stat *all = NULL, *of_listener, *one;
	size_t i;

	*ret_stats = g->stats;
	if (nng_stats_get(&all) != 0)
		return; /* no memory: they stay 0 this time */
	of_listener = nng_stat_find_listener(all, g->listener);
	for (i = 0; of_listener != NULL && i < LS_INGEST_REFUSED_COUNT; i++) {
		one = nng_stat_find(of_listener, ingest_refusals[i]);
		if (one != NULL)
			ret_stats->refused[i] = nng_stat_value(one);
	}
	nng_stats_free(all);
}
