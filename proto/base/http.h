/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http - what every HTTP server of ours needs: its address, and who may ask.
 *
 * Owner:   the loop thread of the server.
 * Units:   none.
 * Errors:  -LS_EPARSE, -errno.
 * Limits:  none.
 */
#ifndef LS_BASE_HTTP_H
#define LS_BASE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

struct evconnlistener;
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
 * True if the name in the Host header, or in an absolute request target, is one of this
 * machine: a page from elsewhere that rebinds its own name to us says another.
 */
bool ls_http_host_is_local(struct evhttp_request *req);

/* Writes a line into the file that scripts wait for, whole or not at all. -errno. */
int ls_http_write_ports(const char *path, const char *line) LS_MUSTCHECK;

#endif
