/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_metadata - a metadata server on the loop of a test, with every way to go wrong.
 *
 * Owner:   test programs.
 * Units:   none.
 * Errors:  every failure fails the test.
 * Limits:  FAKE_METADATA_CLIENTS connections in all.
 */
#ifndef LS_TESTS_FAKE_METADATA_H
#define LS_TESTS_FAKE_METADATA_H

#include "agent/identity/metadata.h"
#include "proto/base/loop.h"

#define FAKE_METADATA_CLIENTS 64

enum fake_metadata_mode {
	FAKE_METADATA_GOOD,
	FAKE_METADATA_HANG, /* takes the question and says nothing */
	FAKE_METADATA_OTHER_FLAVOR, /* a server, but another one */
	FAKE_METADATA_HUGE, /* a body beyond the maximum */
	FAKE_METADATA_GARBAGE, /* no HTTP */
	FAKE_METADATA_FORBIDDEN /* status 403 */
};

struct evconnlistener;
struct bufferevent;

struct fake_metadata {
	enum fake_metadata_mode mode;
	unsigned wrong_from; /* the first item that mode holds for */
	const char *text[LS_METADATA_ITEM_COUNT]; /* NULL: 404 */
	unsigned asked[LS_METADATA_ITEM_COUNT];
	/* questions without Metadata-Flavor: Google, or of other paths */
	unsigned unmarked;
	char address[32];
	struct evconnlistener *listener;
	unsigned client_count;
	struct bufferevent *client[FAKE_METADATA_CLIENTS];
};

/* Listens on a free port of the loopback; good, with no item. */
void fake_metadata_open(struct fake_metadata *f, struct ls_loop *loop);

/* Closes all connections. */
void fake_metadata_close(struct fake_metadata *f);

/* Gives it what a v4-256 host has: id, zone, worker 3, 32 endpoints, a tpu-env. */
void fake_metadata_v4_256(struct fake_metadata *f);

#endif
