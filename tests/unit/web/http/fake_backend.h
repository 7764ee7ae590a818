/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_backend - a backend for tests of the web folder: answers from the files of a
 * directory.
 *
 * jobs, hosts, steps, records, grid, findings, history, fleet, band, step (.json) and
 * export.ndjson.
 *
 * Owner:   the loop thread.
 * Units:   as in web/README.md.
 * Errors:  -LS_EUNKNOWN no such job or finding; -errno of a file.
 * Limits:  FAKE_BACKEND_HELD_MAX replies held back.
 */
#ifndef LS_TESTS_FAKE_BACKEND_H
#define LS_TESTS_FAKE_BACKEND_H

#include <stdbool.h>
#include "web/api/backend.h"

#define FAKE_BACKEND_HELD_MAX 8

struct fake_held {
	ls_ask_reply *reply;
	void *arg;
	json_t *body;
};

struct fake_backend {
	char dir[256];
	bool hold; /* keep replies until fake_backend_let_go */
	bool cut_export; /* fail after the first piece */
	const char *not_ready; /* NULL: ready */
	struct ls_ask last; /* what was asked last */
	int stopped; /* exports that the reader ended */
	int read_rc; /* of read: fail so */
	bool hold_read; /* of read: give nothing until held_piece is called */
	ls_export_piece *held_piece;
	void *reading; /* whom read was asked for last */
	int cancelled;
	int holds, goes_on;
	size_t export_bytes; /* so much instead of the file, whatever is held */
	size_t held_count;
	struct fake_held held[FAKE_BACKEND_HELD_MAX];
};

/* Sets up b to answer from dir; fills ret with its functions. */
void fake_backend_init(struct fake_backend *b, const char *dir, struct ls_backend *ret);

/* Sends the replies held back. */
void fake_backend_let_go(struct fake_backend *b);

#endif
