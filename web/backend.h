/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend - what the HTTP side asks of the collector. The web folder knows nothing else
 * of it.
 *
 * Owner:   the loop thread that runs evhttp; replies come on the same thread, at once
 *          (live data) or later (stored data, read by another thread).
 * Units:   as in collector/view.h.
 * Errors:  reply rc: 0, -LS_EUNKNOWN (404), -LS_ERANGE (400), -LS_EBUSY (503), else
 *          500.
 * Limits:  LS_PAGE_MAX, LS_GRID_ROWS_MAX, LS_GRID_COLS_MAX.
 */
#ifndef LS_WEB_BACKEND_H
#define LS_WEB_BACKEND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/limits.h"

struct evbuffer;

enum ls_ask_kind {
	LS_ASK_JOBS,     /* array */
	LS_ASK_JOB,      /* object */
	LS_ASK_HOSTS,    /* array */
	LS_ASK_STEPS,    /* array */
	LS_ASK_GRID,     /* object */
	LS_ASK_FINDINGS, /* array of all, in order of opening; filtered and paged by web */
	LS_ASK_FINDING,  /* object */
	LS_ASK_HOST,     /* object */
	LS_ASK_SERIES,   /* array of all; paged by web */
	LS_ASK_ZOOM      /* a write: begins a zoom; object */
};

struct ls_ask {
	enum ls_ask_kind kind;
	char job[LS_JOB_NAME_MAX_BYTES];
	char host[LS_HOST_NAME_MAX_BYTES]; /* "" = all */
	char id[32];                       /* finding */
	uint64_t from_step, to_step;       /* inclusive */
	size_t limit;
	unsigned metric;                   /* enum ls_grid_metric */
	size_t rows, cols;
	unsigned seconds;                  /* ZOOM: for so long */
	bool counters;                     /* export: of chunks, too */
};

/* Called exactly once; body is a borrowed reference, NULL if rc != 0. */
typedef void ls_ask_reply(void *arg, int rc, json_t *body);

/*
 * Called with each piece of an export and at last, exactly once, with len 0 and rc (0 =
 * complete).
 * False: no more pieces are wanted; the last call comes all the same.
 */
typedef bool ls_export_piece(void *arg, int rc, const char *text, size_t len);

struct ls_backend {
	void *arg;
	void (*ask)(void *arg, const struct ls_ask *q, ls_ask_reply *reply,
		void *reply_arg);
	/* Replay lines of q->job, read from storage; pieces come on the loop thread. */
	void (*export_job)(void *arg, const struct ls_ask *q, ls_export_piece *piece,
		void *piece_arg);
	/* Appends the collector's lines of /metrics (Prometheus text 0.0.4). */
	void (*metrics)(void *arg, struct evbuffer *out);
	/* Ready to serve and to store? If not, *ret_why says what is wrong. */
	bool (*ready)(void *arg, const char **ret_why);
};

#endif
