/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend - what the HTTP side asks of the collector. The web folder knows nothing else
 * of it.
 *
 * Owner:   the loop thread that runs evhttp; replies come on the same thread, at once
 *          (live data) or later (stored data, read by another thread).
 * Units:   as in collector/answer/view.h.
 * Errors:  reply rc: 0, -LS_EUNKNOWN (404), -LS_ERANGE and -LS_ELIMIT (400), -LS_EBUSY
 *          (503), -ETIMEDOUT (504), else 500.
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
	/* Pages {"items":[...],"next":KEY} of jobs, workers and findings; next: of the
	   last item, or null; "count", where it is there, of all pages */
	LS_ASK_JOBS,
	LS_ASK_JOB, /* object */
	LS_ASK_HOSTS,
	LS_ASK_STEPS, /* array */
	LS_ASK_GRID, /* object */
	LS_ASK_FINDINGS, /* newest first */
	LS_ASK_FINDING, /* object */
	LS_ASK_HOST, /* object */
	LS_ASK_SERIES, /* array of all; paged by web */
	LS_ASK_ZOOM, /* a write: begins a zoom; object */
	/* Of storage, by read(): the whole text of the answer. */
	LS_ASK_HISTORY, /* series of a host over a range of time */
	LS_ASK_FLEET, /* one metric of a job's hosts over a range of time */
	LS_ASK_STEP /* one step: the records of all workers */
};

/* What workers of a job are sorted by. */
enum ls_ask_sort {
	LS_ASK_BY_SUSPICION, /* nearest to a finding first, then most blame */
	LS_ASK_BY_HOST,
	LS_ASK_BY_STATE,
	LS_ASK_BY_BLAME,
	LS_ASK_BY_OWN,
	LS_ASK_BY_WAIT,
	LS_ASK_BY_INPUT,
	LS_ASK_BY_LATENESS,
	LS_ASK_BY_SLOWEST
};

enum ls_ask_agg { LS_ASK_MEAN, LS_ASK_MIN, LS_ASK_MAX, LS_ASK_COUNT };

struct ls_ask {
	enum ls_ask_kind kind;
	char job[LS_JOB_NAME_MAX_BYTES];
	char host[LS_HOST_NAME_MAX_BYTES]; /* "" = all */
	char id[32]; /* finding */
	uint64_t from_step, to_step; /* inclusive */
	size_t limit;
	unsigned metric; /* enum ls_grid_metric */
	size_t rows, cols;
	unsigned seconds; /* ZOOM: for so long */
	/* ZOOM: who asks, "": whoever is on this host */
	char who[LS_TOKEN_NAME_MAX_BYTES];
	bool counters; /* export: of chunks, too */
	/* HISTORY, FLEET */
	/* a name, or with labels: name{key="value"} */
	char series[LS_SERIES_TEXT_MAX_BYTES];
	int64_t from_us, to_us; /* inclusive */
	int64_t step_s; /* -1: chosen; 0: values as they are */
	enum ls_ask_agg agg; /* FLEET: what lines of many hosts show */
	/* FLEET: p10, p50, p90 over hosts instead of lines */
	bool band;
	uint64_t step; /* STEP */
	/* lines of the pages before; HOSTS: number of the last worker; 0: none */
	size_t skip;
	/* JOBS, FINDINGS: name of the last item of the page before; "": none */
	char after[LS_JOB_NAME_MAX_BYTES];
	/* FINDINGS: only those; "" = all */
	char status[LS_QUERY_NAME_MAX_BYTES], severity[LS_QUERY_NAME_MAX_BYTES];
	char finding_kind[LS_QUERY_NAME_MAX_BYTES];
	/* HOSTS */
	enum ls_ask_sort sort;
	bool descending; /* what is not measured is last either way */
	char match[LS_HOST_NAME_MAX_BYTES]; /* only names that hold this; "" = all */
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
	/*
	 * The answer's JSON to a question of HISTORY and later; pieces come on the loop
	 * thread.
	 */
	void (*read)(void *arg, const struct ls_ask *q, ls_export_piece *piece,
		void *piece_arg);
	/*
	 * Nobody waits any more for what export_job or read were asked with piece_arg:
	 * its last call comes all the same, but soon.
	 */
	void (*cancel)(void *arg, void *piece_arg);
	/* Whoever asked export_job with piece_arg takes no more pieces for a while; or
	 * does again. */
	void (*hold)(void *arg, void *piece_arg, bool hold);
	/* Appends the collector's lines of /metrics (Prometheus text 0.0.4). */
	void (*metrics)(void *arg, struct evbuffer *out);
	/* Ready to serve and to store? If not, *ret_why says what is wrong; if so, what
	 * is worth knowing, or nothing. */
	bool (*ready)(void *arg, const char **ret_why);
};

#endif
