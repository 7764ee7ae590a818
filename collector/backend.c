/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/backend.h"

#include <errno.h>
#include "collector/view.h"

static int
backend_grid(const struct ls_engine *e, const struct ls_ask *q, const struct ls_view_range *range,
	json_t **ret_body)
{
	if (q->metric >= LS_GRID_METRIC_COUNT)
		return -LS_ERANGE;
	return ls_view_grid(
		e, q->job, (enum ls_grid_metric)q->metric, range, q->rows, q->cols, ret_body);
}

static int
backend_body(const struct ls_engine *e, const struct ls_ask *q, int64_t now_us, json_t **ret_body)
{
	const struct ls_view_range range = {
		.from = q->from_step, .to = q->to_step, .limit = q->limit
	};

	switch (q->kind) {
	case LS_ASK_JOBS:
		return ls_view_jobs(e, now_us, ret_body);
	case LS_ASK_JOB:
		return ls_view_job(e, q->job, now_us, ret_body);
	case LS_ASK_HOSTS:
		return ls_view_hosts(e, q->job, now_us, ret_body);
	case LS_ASK_STEPS:
		return ls_view_steps(
			e, q->job, q->host[0] != '\0' ? q->host : NULL, &range, ret_body);
	case LS_ASK_GRID:
		return backend_grid(e, q, &range, ret_body);
	case LS_ASK_FINDINGS:
		*ret_body = ls_engine_findings(e);
		return *ret_body != NULL ? 0 : -ENOMEM;
	case LS_ASK_FINDING:
		return ls_view_finding(e, q->id, ret_body);
	}
	return -LS_EUNKNOWN;
}

static void
backend_ask(void *arg, const struct ls_ask *q, ls_ask_reply *reply, void *reply_arg)
{
	struct ls_backend_parts *p = arg;
	json_t *body = NULL;
	int rc = backend_body(p->engine, q, p->now_us(p->arg), &body);

	reply(reply_arg, rc, rc == 0 ? body : NULL);
	json_decref(body);
}

static void
backend_export(void *arg, const char *job, ls_export_piece *piece, void *piece_arg)
{
	struct ls_backend_parts *p = arg;

	ls_reader_export(p->reader, job, piece, piece_arg);
}

static void
backend_metrics(void *arg, struct evbuffer *out)
{
	struct ls_backend_parts *p = arg;
	struct ls_self self = { 0 };

	p->self(p->arg, &self);
	ls_self_metrics(&self, out);
}

static bool
backend_ready(void *arg, const char **ret_why)
{
	struct ls_backend_parts *p = arg;

	return p->ready(p->arg, ret_why);
}

struct ls_backend
ls_backend_of(struct ls_backend_parts *parts)
{
	struct ls_backend b = {
		.arg = parts,
		.ask = backend_ask,
		.export_job = backend_export,
		.metrics = backend_metrics,
		.ready = backend_ready,
	};

	return b;
}
