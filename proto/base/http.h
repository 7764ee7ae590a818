/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http - what every HTTP server and client of ours needs: its address, who may ask, and
 * how much a peer may send before anybody looks at it.
 *
 * libevent reads on while an answer waits, while a chunk's line has no end, and while
 * interim answers follow each other; only the mark stops it.
 *
 * Owner:   the loop thread.
 * Units:   bytes.
 * Errors:  -LS_EPARSE, -errno.
 * Limits:  those given; LS_HTTP_INTERIM_MAX.
 */
#ifndef LS_BASE_HTTP_H
#define LS_BASE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

struct evconnlistener;
struct bufferevent;
struct evbuffer_cb_entry;
struct evhttp;
struct evhttp_request;

/* Splits "ADDRESS:PORT" or "[ADDRESS]:PORT"; the address numeric, or localhost.
 * -LS_EPARSE. */
int ls_http_split(const char *text, char *ret_address, size_t size,
	uint16_t *ret_port) LS_MUSTCHECK;

/* 1: loopback, 0: another address, -LS_EPARSE: no numeric address. */
int ls_http_is_loopback(const char *address) LS_MUSTCHECK;

/* Listens at a numeric address; port 0: any free one. -EADDRINUSE and its like. */
int ls_http_bind(struct evhttp *http, const char *address, uint16_t port,
	struct evconnlistener **ret_listener, int *ret_port) LS_MUSTCHECK;

/*
 * True if the name in the Host header, or in an absolute request target, is localhost, a
 * numeric address (on a loopback address: one of loopback) or one of `names`
 * ("NAME,..."): a page from elsewhere that rebinds its own name to us says another.
 */
bool ls_http_host_is_ours(struct evhttp_request *req, bool loopback, const char *names);
/* The error text for a Host that is not ours. */
#define LS_HTTP_WRONG_HOST                                                                \
	"the Host header must be a numeric address of this server, localhost, or a name " \
	"from --http-names"

/*
 * The end of a peer that sends more than anybody can look at: no request or answer is so
 * long. Not a high-water mark of libevent, which calls evhttp again and again when
 * evhttp cannot go on with what there is.
 */
struct ls_http_mark {
	struct bufferevent *bev;
	struct evbuffer_cb_entry *entry;
	size_t max; /* bytes that may wait to be read */
	void (*beyond)(void *arg); /* called once; must not free bev */
	void *arg;
};

/* Watches m->bev; bev, max, beyond and arg are set. -ENOMEM. */
int ls_http_mark_start(struct ls_http_mark *m) LS_MUSTCHECK;
/* Before either of them goes. Harmless if it was not started. */
void ls_http_mark_stop(struct ls_http_mark *m);

/*
 * Header callback of a request to a server, where *interims counts: -1, which ends the
 * exchange, after more than LS_HTTP_INTERIM_MAX interim answers.
 */
int ls_http_interim(struct evhttp_request *req, unsigned *interims);

/*
 * Why the end of a request cannot be trusted: it is in chunks, or has two lengths. NULL:
 * it can. What follows on the connection is not to be read then.
 */
const char *ls_http_bad_length(struct evhttp_request *req);

/* Writes a line into the file that scripts wait for, whole or not at all. -errno. */
int ls_http_write_ports(const char *path, const char *line) LS_MUSTCHECK;

#endif
