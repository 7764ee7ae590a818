/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/tpu_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/text.h"

#define PORT_SERVICE "/tpu.monitoring.runtime.RuntimeMetricService/"

static const char *const port_state_names[] = {
#define LS_TPU_PORT_STATE(id, name) name,
#include "agent/tpu/tpu_port_state.def"
#undef LS_TPU_PORT_STATE
};

/* A metric of the list. */
struct port_metric {
	struct ls_tpu_port *port;
	char name[LS_SERIES_NAME_MAX_BYTES];
	const struct ls_tpu_metric *known; /* NULL: not known here */
	enum ls_tpu_cadence cadence;
	bool off; /* not measured, as it said, until the next list */
	bool wanted; /* of the round under way, not yet asked */
	size_t devices; /* of the answer under way */
};

struct ls_tpu_port {
	struct ls_tpu_port_options options;
	struct ls_grpc *grpc;
	struct ls_tpu_port_view view; /* view.metrics: of metric */
	bool listed; /* since the connection came up */
	bool listing, relist;
	bool status_wanted;
	bool alone;
	/* questions of the round that have no answer yet */
	size_t left[LS_TPU_CADENCES];
	struct port_metric metric[LS_TPU_METRICS_MAX];
};

static void port_next(struct ls_tpu_port *p);

/* --- states --------------------------------------------------------------- */

/* The only place that changes the state. */
static void
port_set_state(struct ls_tpu_port *p, enum ls_tpu_port_state to, const char *why)
{
	static const unsigned any = (1u << LS_TPU_PORT_STATE_COUNT) - 1u -
		(1u << LS_TPU_PORT_STATE_CONNECTING);
	const bool news = to != p->view.state;

	LS_ASSERT(any & 1u << to);
	p->view.state = to;
	(void)ls_text_escape(p->view.why, sizeof(p->view.why), why, strlen(why));
	if (!news)
		return;
	ls_log(to == LS_TPU_PORT_STATE_FAILING || to == LS_TPU_PORT_STATE_UNSUPPORTED
			? LS_LOG_WARN
			: LS_LOG_INFO,
		"tpu", "port %s:%u: %s%s%s%s", p->view.address, p->view.number,
		port_state_names[to], why[0] != '\0' ? ": " : "", why,
		to == LS_TPU_PORT_STATE_UP ? "" : "; continuing without it, retrying");
}

/* The connection is no more: what was wanted is lost. */
static void
port_drop(struct ls_tpu_port *p)
{
	size_t i, lost[LS_TPU_CADENCES] = { 0 };

	p->listed = false;
	p->listing = false;
	p->view.devices = 0;
	for (i = 0; i < p->view.metrics; i++) {
		lost[p->metric[i].cadence] += p->metric[i].wanted;
		p->metric[i].wanted = false;
	}
	lost[LS_TPU_STATUS] += p->status_wanted;
	p->status_wanted = false;
	for (i = 0; i < LS_TPU_CADENCES; i++) {
		if (lost[i] == 0)
			continue;
		p->view.stats.failures += lost[i];
		p->left[i] -= lost[i];
		if (p->left[i] == 0)
			p->options.ended(p->options.arg, p->view.id,
				(enum ls_tpu_cadence)i);
	}
}

static void
port_down(struct ls_tpu_port *p)
{
	int error = ls_grpc_last_error(p->grpc);

	port_drop(p);
	if (error == -ECONNREFUSED || error == -LS_ECLOSED)
		port_set_state(p, LS_TPU_PORT_STATE_ABSENT,
			error == -ECONNREFUSED ? "nothing listens"
					       : "closed by the process");
	else if (error == -LS_EPARSE && p->view.state != LS_TPU_PORT_STATE_UP)
		port_set_state(p, LS_TPU_PORT_STATE_UNSUPPORTED, ls_grpc_why(p->grpc));
	else
		port_set_state(p, LS_TPU_PORT_STATE_FAILING, ls_grpc_why(p->grpc));
}

static void
port_changed(void *arg, enum ls_grpc_state state)
{
	struct ls_tpu_port *p = arg;

	if (state == LS_GRPC_STATE_HOLD)
		port_down(p);
	else if (state == LS_GRPC_STATE_UP)
		ls_tpu_port_relist(p);
}

/* --- the list ------------------------------------------------------------- */

static void
port_add_metric(void *arg, const char *name)
{
	struct ls_tpu_port *p = arg;
	struct port_metric *m;

	for (size_t i = 0; i < p->view.metrics; i++) {
		if (strcmp(p->metric[i].name, name) == 0)
			return; /* told twice */
	}
	/* the decoder gives no more than there is room for */
	m = &p->metric[p->view.metrics++];
	memset(m, 0, sizeof(*m));
	m->port = p;
	/* the decoder checked its length */
	ls_ignore(ls_text_copy(m->name, sizeof(m->name), name));
	m->known = ls_tpu_metric_find(name);
	m->cadence = m->known != NULL ? m->known->cadence : LS_TPU_HISTOGRAMS;
}

static void
port_list(struct ls_tpu_port *p, const uint8_t *message, size_t len)
{
	struct ls_tpu_answer answer;

	p->view.metrics = 0;
	p->view.lacks_status = false;
	if (ls_tpu_decode_list(message, len, port_add_metric, p, &answer) != 0) {
		p->view.stats.failures++;
		port_set_state(p, LS_TPU_PORT_STATE_FAILING,
			"its list of metrics is invalid");
		return;
	}
	p->view.stats.skipped += answer.skipped;
	if (p->view.metrics == 0)
		p->view.stats.absent++;
	p->listed = true;
	port_set_state(p, LS_TPU_PORT_STATE_UP,
		p->view.metrics == 0
			? "its list of metrics is empty: the runtime is not initialised"
			: "");
	p->options.listed(p->options.arg, p);
}

static void
port_on_list(void *arg, const struct ls_grpc_answer *a)
{
	struct ls_tpu_port *p = arg;

	p->listing = false;
	if (a->rc == 0 && a->status == LS_GRPC_OK) {
		port_list(p, a->message, a->len);
		return;
	}
	p->listed = false; /* asked again at the next round */
	if (a->rc == 0 && a->status == LS_GRPC_UNIMPLEMENTED) {
		p->view.stats.absent++;
		port_set_state(p, LS_TPU_PORT_STATE_UNSUPPORTED,
			"speaks gRPC, but has no RuntimeMetricService");
	} else if (a->rc == -LS_EPARSE && !p->listed) {
		p->view.stats.failures++;
		port_set_state(p, LS_TPU_PORT_STATE_UNSUPPORTED, a->text);
	} else if (a->rc != -LS_ENET) { /* of a lost connection port_down has told */
		p->view.stats.failures++;
		port_set_state(p, LS_TPU_PORT_STATE_FAILING,
			a->text[0] != '\0'
				? a->text
				: "rejects the request for its list of metrics");
	}
}

void
ls_tpu_port_relist(struct ls_tpu_port *p)
{
	p->relist = true;
	port_next(p);
}

/* --- answers -------------------------------------------------------------- */

/* One question of a round has its answer. */
static void
port_answered(struct ls_tpu_port *p, enum ls_tpu_cadence cadence)
{
	if (--p->left[cadence] == 0) {
		p->view.stats.rounds++;
		p->options.ended(p->options.arg, p->view.id, cadence);
	}
	port_next(p);
}

/* Counts an answer that is no message; true if it says "not measured". */
static bool
port_says_absent(struct ls_tpu_port *p, const struct ls_grpc_answer *a)
{
	if (a->rc == 0 &&
		(a->status == LS_GRPC_NOT_FOUND ||
			a->status == LS_GRPC_UNIMPLEMENTED)) {
		p->view.stats.absent++;
		return true;
	}
	p->view.stats.failures++;
	return false;
}

static void
port_point(void *arg, const struct ls_tpu_point *point)
{
	struct port_metric *m = arg;

	m->devices++;
	m->port->options.point(m->port->options.arg, m->port->view.id, m->name,
		m->known, point);
}

static void
port_on_metric(void *arg, const struct ls_grpc_answer *a)
{
	struct port_metric *m = arg;
	struct ls_tpu_port *p = m->port;
	struct ls_tpu_answer answer;

	if (a->rc != 0 || a->status != LS_GRPC_OK) {
		m->off = port_says_absent(p, a);
	} else {
		m->devices = 0;
		if (ls_tpu_decode_metric(a->message, a->len, port_point, m, &answer) !=
			0) {
			p->view.stats.failures++;
		} else {
			p->view.stats.skipped += answer.skipped;
			if (answer.points == 0)
				p->view.stats.absent++;
		}
		/* Metrics of memory have one value a device. */
		if (m->known != NULL && m->known->metric == LS_METRIC_CHIP_HBM_TOTAL)
			p->view.devices = m->devices;
	}
	port_answered(p, m->cadence);
}

static void
port_on_status(void *arg, const struct ls_grpc_answer *a)
{
	struct ls_tpu_port *p = arg;
	struct ls_tpu_status status;

	if (a->rc != 0 || a->status != LS_GRPC_OK) {
		p->view.lacks_status = port_says_absent(p, a);
	} else if (ls_tpu_decode_status(a->message, a->len, &status) != 0) {
		p->view.stats.failures++;
	} else {
		p->view.stats.skipped += status.skipped;
		if (status.count == 0)
			p->view.stats.absent++;
		p->view.unknown_count = status.unknown_count;
		memcpy(p->view.unknown, status.unknown, sizeof(p->view.unknown));
		for (size_t i = 0; i < status.count; i++)
			status.core[i].source = p->view.id;
		p->options.status(p->options.arg, &status);
	}
	port_answered(p, LS_TPU_STATUS);
}

/* --- questions ------------------------------------------------------------ */

static bool
port_is_idle(const struct ls_tpu_port *p)
{
	size_t i, left = 0;

	for (i = 0; i < LS_TPU_CADENCES; i++)
		left += p->left[i];
	return left == 0 && !p->listing;
}

static int
port_ask(struct ls_tpu_port *p, const char *path, const char *name, ls_grpc_done *done,
	void *arg)
{
	uint8_t request[LS_GRPC_REQUEST_MAX_BYTES];
	size_t len;
	int rc = ls_tpu_encode_request(name, name != NULL && p->alone, request,
		sizeof(request), &len);

	return rc != 0 ? rc : ls_grpc_call(p->grpc, path, request, len, done, arg);
}

static void
port_ask_list(struct ls_tpu_port *p)
{
	p->relist = false;
	p->listing = port_ask(p, PORT_SERVICE "ListSupportedMetrics", NULL,
			     port_on_list, p) == 0;
}

/* Asks as much as the connection takes; what it does not take now comes with the next
 * answer. */
static void
port_next(struct ls_tpu_port *p)
{
	if (ls_grpc_get_state(p->grpc) != LS_GRPC_STATE_UP)
		return;
	if (p->relist && port_is_idle(p))
		port_ask_list(p);
	if (p->status_wanted)
		p->status_wanted = port_ask(p, PORT_SERVICE "GetTpuRuntimeStatus", NULL,
					   port_on_status, p) != 0;
	for (size_t i = 0; i < p->view.metrics; i++) {
		struct port_metric *m = &p->metric[i];

		if (m->wanted)
			m->wanted = port_ask(p, PORT_SERVICE "GetRuntimeMetric",
					    m->name, port_on_metric, m) != 0;
	}
}

bool
ls_tpu_port_begin(struct ls_tpu_port *p, enum ls_tpu_cadence cadence, bool with_metrics,
	bool alone)
{
	if (ls_grpc_get_state(p->grpc) != LS_GRPC_STATE_UP || p->listing)
		return false;
	if (p->left[cadence] != 0) {
		p->view.stats.overruns++;
		port_next(p); /* what found no room may find it now */
		return false;
	}
	if (!p->listed || p->relist) {
		ls_tpu_port_relist(p);
		return false;
	}
	p->alone = alone;
	if (cadence == LS_TPU_STATUS && !p->view.lacks_status) {
		p->status_wanted = true;
		p->left[cadence]++;
	}
	for (size_t i = 0; i < p->view.metrics && with_metrics; i++) {
		p->metric[i].wanted = p->metric[i].wanted ||
			(p->metric[i].cadence == cadence && !p->metric[i].off);
		p->left[cadence] +=
			p->metric[i].cadence == cadence && p->metric[i].wanted;
	}
	port_next(p);
	return p->left[cadence] > 0;
}

/* --- life ----------------------------------------------------------------- */

int
ls_tpu_port_new(struct ls_loop *loop, const struct ls_tpu_port_options *options,
	struct ls_tpu_port **ret_port)
{
	struct ls_tpu_port *p = calloc(1, sizeof(*p));
	struct ls_grpc_options o = { .address = options->address,
		.port = options->port,
		.deadline_ns = LS_GRPC_DEADLINE_NS,
		.hold_min_ns = LS_GRPC_HOLD_MIN_NS,
		.arg = p,
		.changed = port_changed };
	int rc;

	if (p == NULL)
		return -ENOMEM;
	p->options = *options;
	p->view.number = options->port;
	p->view.id = options->id;
	(void)snprintf(p->view.address, sizeof(p->view.address), "%s",
		options->address);
	(void)snprintf(p->view.why, sizeof(p->view.why), "no answer yet");
	rc = ls_grpc_new(loop, &o, &p->grpc);
	if (rc == 0) {
		p->view.grpc = ls_grpc_get_stats(p->grpc);
		*ret_port = p;
	} else {
		ls_tpu_port_free(p);
	}
	return rc;
}

void
ls_tpu_port_free(struct ls_tpu_port *p)
{
	if (p == NULL)
		return;
	ls_grpc_free(p->grpc);
	free(p);
}

bool
ls_tpu_port_is_busy(const struct ls_tpu_port *p, enum ls_tpu_cadence cadence)
{
	return p->left[cadence] > 0;
}

const struct ls_tpu_port_view *
ls_tpu_port_look(const struct ls_tpu_port *p)
{
	return &p->view;
}

const char *
ls_tpu_port_state_name(enum ls_tpu_port_state state)
{
	return port_state_names[state];
}
