/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http - the agent's own HTTP: health, metrics, series, doctor, on the agent's loop.
 *
 * Only GET and HEAD, and every answer is given at once. On a loopback address the Host
 * header must be a loopback name (421 otherwise). An address that is taken, by another
 * agent on this machine say, is no reason to stop: it is said once and tried again
 * every LS_AGENT_HTTP_RETRY_NS.
 *
 * Owner:   the agent loop thread.
 * Units:   none.
 * Errors:  -ENOMEM.
 * Limits:  LS_AGENT_HTTP_CONNECTIONS_MAX, LS_AGENT_HTTP_TIMEOUT_NS for a whole request,
 *          LS_AGENT_HTTP_HEADER_MAX_BYTES, LS_AGENT_HTTP_BODY_MAX_BYTES.
 * Source:  routes and answers: README.md of this folder, "HTTP". RFC 9457 for problems.
 */
#ifndef LS_AGENT_HTTP_H
#define LS_AGENT_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

struct evbuffer;
struct ls_about_parts;
struct ls_agent_http;
struct ls_loop;

/* The contents of the pages, from the parts of the agent as they are now (about.h). */
struct ls_agent_http_backend {
	void *arg;
	const struct ls_about_parts *(*parts)(void *arg);
	bool (*ready)(const struct ls_about_parts *p, char *why, size_t size);
	void (*metrics)(const struct ls_about_parts *p, struct evbuffer *out);
	void (*series)(const struct ls_about_parts *p, struct evbuffer *out);
	/* new reference, or NULL */
	json_t *(*doctor)(const struct ls_about_parts *p);
	json_t *(*identity)(const struct ls_about_parts *p); /* the same */
	void (*bound)(void *arg, int port); /* it is served now; may be NULL */
};

struct ls_agent_http_options {
	char address[64]; /* numeric */
	char names
		[LS_CONF_VALUE_MAX_BYTES]; /* "NAME,...": of ours in the Host header */
	uint16_t port; /* 0: any free one */
	uint64_t timeout_ns; /* 0: LS_AGENT_HTTP_TIMEOUT_NS */
	struct ls_agent_http_backend backend;
};

/* Starts to serve, or to try to. The options are copied. */
int ls_agent_http_new(struct ls_loop *loop, const struct ls_agent_http_options *options,
	struct ls_agent_http **ret_http) LS_MUSTCHECK;

/* Stops; accepts NULL. */
void ls_agent_http_free(struct ls_agent_http *h);

/* Requests so far, and those that were refused (4xx, 5xx). */
uint64_t ls_agent_http_requests(const struct ls_agent_http *h);
uint64_t ls_agent_http_refused(const struct ls_agent_http *h);

#endif
