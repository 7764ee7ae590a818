/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/source_tpu.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include "proto/base/http.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/text.h"

struct source_tpu {
	struct ls_loop *loop;
	struct ls_tpu_series *series;
	char address[INET6_ADDRSTRLEN];
	bool from_environment; /* the list of ports */
	bool has_default_ports; /* nobody named ports */
	bool has_chips;
	size_t count;
	struct ls_tpu_port *port[LS_TPU_PORTS_MAX];
	/* of the last reading: multiples of LS_TPU_STATUS_NS */
	uint64_t tick;
	/* the group may hold values of the port */
	bool live[LS_TPU_PORTS_MAX][LS_TPU_CADENCES];
	/* of the reading of the cores under way, or the last one */
	uint64_t status_begun_ns;
	struct ls_tpu_progress progress;
};

/* --- ports ---------------------------------------------------------------- */

/* Reads "8431,8432"; "" is no port. -LS_ERANGE: anything else, too many, or one twice.
 */
static int
tpu_read_ports(const char *text, uint16_t ret_ports[LS_TPU_PORTS_MAX],
	size_t *ret_count)
{
	uint16_t ports[LS_TPU_PORTS_MAX];
	size_t count = 0, i;
	uint64_t n = 0;

	while (*text != '\0') {
		text += ls_text_digits(text, SIZE_MAX, UINT16_MAX, &n);
		if (n == 0 || count == LS_TPU_PORTS_MAX)
			return -LS_ERANGE;
		for (i = 0; i < count; i++) {
			if (ports[i] == n)
				return -LS_ERANGE;
		}
		ports[count++] = (uint16_t)n;
		n = 0;
		if (*text == ',' && text[1] != '\0')
			text++;
		else if (*text != '\0')
			return -LS_ERANGE;
	}
	memcpy(ret_ports, ports, count * sizeof(ports[0]));
	*ret_count = count;
	return 0;
}

/* --- what ports tell ------------------------------------------------------ */

static void
tpu_point(void *arg, uint16_t port, const char *name,
	const struct ls_tpu_metric *metric, const struct ls_tpu_point *p)
{
	struct source_tpu *t = arg;

	ls_tpu_series_point(t->series, port, name, metric, p);
}

static void
tpu_status(void *arg, const struct ls_tpu_status *status)
{
	struct source_tpu *t = arg;

	ls_tpu_progress_feed(&t->progress, status, ls_loop_now(t->loop));
}

static bool
tpu_is_busy(const struct source_tpu *t, enum ls_tpu_cadence cadence)
{
	size_t i;

	for (i = 0; i < t->count; i++) {
		if (ls_tpu_port_is_busy(t->port[i], cadence))
			return true;
	}
	return false;
}

/* A port's round is over; when it was the last one, so is the reading. */
static void
tpu_ended(void *arg, uint16_t port, enum ls_tpu_cadence cadence)
{
	struct source_tpu *t = arg;
	uint64_t now = ls_loop_now(t->loop);

	ls_tpu_series_end(t->series, port, cadence, now);
	if (tpu_is_busy(t, cadence))
		return;
	if (cadence == LS_TPU_STATUS) {
		ls_tpu_series_progress(t->series, &t->progress, t->status_begun_ns,
			now);
		ls_tpu_series_end(t->series, 0, cadence, now);
	}
	ls_tpu_series_read(t->series, cadence, now);
}

/* --- rounds --------------------------------------------------------------- */

/* The first port that is up: the one whose view of the node counts. */
static const struct ls_tpu_port *
tpu_first(const struct source_tpu *t)
{
	size_t i;

	for (i = 0; i < t->count; i++) {
		if (ls_tpu_port_look(t->port[i])->state == LS_TPU_PORT_STATE_UP)
			return t->port[i];
	}
	return NULL;
}

static bool
tpu_begin_port(struct source_tpu *t, struct ls_tpu_port *p, enum ls_tpu_cadence cadence)
{
	const struct ls_tpu_port *first = tpu_first(t);
	bool is_first = first == NULL || p == first;
	bool missing = !is_first && ls_tpu_port_look(first)->devices < t->count;

	return ls_tpu_port_begin(p, cadence, is_first || missing, !is_first);
}

static void
tpu_begin(struct source_tpu *t, enum ls_tpu_cadence cadence)
{
	size_t i;

	if (cadence == LS_TPU_STATUS && !tpu_is_busy(t, cadence))
		t->status_begun_ns = ls_loop_now(t->loop);
	for (i = 0; i < t->count; i++) {
		struct ls_tpu_port *p = t->port[i];

		if (tpu_begin_port(t, p, cadence)) {
			t->live[i][cadence] = true;
		} else if (t->live[i][cadence] && !ls_tpu_port_is_busy(p, cadence) &&
			ls_tpu_port_look(p)->state != LS_TPU_PORT_STATE_UP) {
			/* it answers no more: one row that says so */
			t->live[i][cadence] = false;
			tpu_ended(t, ls_tpu_port_look(p)->number, cadence);
		}
	}
}

/* A port that has just come up need not wait for the next tick. */
static void
tpu_listed(void *arg, struct ls_tpu_port *p)
{
	struct source_tpu *t = arg;
	enum ls_tpu_cadence c;
	size_t i;

	for (i = 0; t->port[i] != p; i++)
		continue;
	if (!tpu_is_busy(t, LS_TPU_STATUS))
		t->status_begun_ns = ls_loop_now(t->loop);
	for (c = LS_TPU_STATUS; c < LS_TPU_CADENCES; c++)
		t->live[i][c] = tpu_begin_port(t, p, c) || t->live[i][c];
}

static void
tpu_read(void *self, unsigned due, uint64_t now_mono_ns, struct ls_sample *into)
{
	struct source_tpu *t = self;
	uint64_t tick = now_mono_ns / LS_TPU_STATUS_NS;
	bool list;
	size_t i;

	(void)into; /* series of chips have labels: they are in the table */
	if (!(due & LS_CADENCE_FAST) || tick == t->tick)
		return;
	/* A slowed agent skips ticks: what fell into the skipped ones is due now. */
	list = tick / LS_TPU_LIST_TICKS != t->tick / LS_TPU_LIST_TICKS;
	for (i = 0; i < t->count && list; i++)
		ls_tpu_port_relist(t->port[i]);
	tpu_begin(t, LS_TPU_STATUS);
	if (tick / LS_TPU_GAUGES_TICKS != t->tick / LS_TPU_GAUGES_TICKS)
		tpu_begin(t, LS_TPU_GAUGES);
	if (tick / LS_TPU_HISTOGRAMS_TICKS != t->tick / LS_TPU_HISTOGRAMS_TICKS)
		tpu_begin(t, LS_TPU_HISTOGRAMS);
	t->tick = tick;
}

/* --- what the source says of itself --------------------------------------- */

static void
tpu_tell_up(const struct source_tpu *t, const struct ls_tpu_port_view *v,
	const char *subject, struct ls_doctor *d)
{
	if (v->metrics == 0)
		ls_doctor_add(d, LS_DOCTOR_WARN, "tpu", subject, v->why,
			"wait until the job has initialised its devices; if that "
			"does not help, restart the job");
	else if (v->lacks_status)
		ls_doctor_add(d, LS_DOCTOR_WARN, "tpu", subject,
			"this libtpu has no GetTpuRuntimeStatus: no progress of "
			"cores, no inferred steps",
			"use a libtpu of late 2025 or newer (pip install -U libtpu), or mark the steps "
			"in the job (lockstep.step)");
	else
		ls_doctor_addf(d, LS_DOCTOR_OK, "tpu", subject, "",
			"%zu metrics, %zu devices, %zu cores; %llu answers, %llu late, %llu "
			"malformed, %llu values ignored",
			v->metrics, v->devices, t->progress.count,
			(unsigned long long)v->grpc->answers,
			(unsigned long long)v->grpc->timeouts,
			(unsigned long long)v->grpc->malformed,
			(unsigned long long)v->stats.skipped);
}

static void
tpu_tell_port(const struct source_tpu *t, const struct ls_tpu_port_view *v,
	struct ls_doctor *d)
{
	const char *subject = ls_doctor_text(d, "port %s:%u", t->address, v->number),
		   *why = ls_doctor_text(d, "%s: %s", ls_tpu_port_state_name(v->state),
			   v->why);

	switch (v->state) {
	case LS_TPU_PORT_STATE_UP:
		tpu_tell_up(t, v, subject, d);
		break;
	case LS_TPU_PORT_STATE_ABSENT:
		if (tpu_first(t) != NULL) /* one process holds all chips */
			ls_doctor_add(d, LS_DOCTOR_NONE, "tpu", subject, why, "");
		else if (t->has_default_ports &&
			!t->has_chips) /* nobody said that there is a TPU */
			ls_doctor_add(d, LS_DOCTOR_NONE, "tpu", subject,
				"nothing listens on this port, and this host has no "
				"TPU chips",
				"");
		else
			ls_doctor_add(d, LS_DOCTOR_WARN, "tpu", subject,
				"nothing listens on this port: no TPU job runs in "
				"this network namespace, or its metrics server is off",
				"start the job with TPU_RUNTIME_METRICS_PORTS unset, not empty; in "
				"Kubernetes give --tpu-address the pod's IP; without TPUs set "
				"--tpu-ports to nothing");
		break;
	case LS_TPU_PORT_STATE_UNSUPPORTED:
		ls_doctor_add(d, LS_DOCTOR_FAIL, "tpu", subject, why,
			"set --tpu-ports to the ports of libtpu (8431, or those of "
			"TPU_RUNTIME_METRICS_PORTS); another server uses this port");
		break;
	case LS_TPU_PORT_STATE_CONNECTING:
	case LS_TPU_PORT_STATE_FAILING:
		ls_doctor_add(d, LS_DOCTOR_FAIL, "tpu", subject, why,
			"check whether the job is stopped (ps -o stat,cmd -C "
			"python3) or a firewall blocks the address; the agent keeps "
			"trying");
		break;
	case LS_TPU_PORT_STATE_COUNT:
		break;
	}
}

/* Cores that report errors, and cores that stand still. */
static void
tpu_tell_cores(const struct source_tpu *t, struct ls_doctor *d)
{
	size_t i;

	for (i = 0; i < t->progress.count; i++) {
		const struct ls_tpu_progress_core *c = &t->progress.core[i];

		const char *subject = ls_doctor_text(d, "core %d", c->now.core_id);

		if (c->now.error[0] != '\0')
			ls_doctor_addf(d, LS_DOCTOR_WARN, "tpu", subject,
				"read the log of the job on this host",
				"the runtime reports: %s", c->now.error);
		if (c->stalled)
			ls_doctor_addf(d, LS_DOCTOR_WARN, "tpu", subject,
				"find the host that the others wait for: lockstep status",
				"no change for %llu s, %u programs queued",
				(unsigned long long)((c->t_seen_ns - c->t_moved_ns) /
					1000000000ull),
				c->now.queued);
	}
}

static void
tpu_tell(const void *self, struct ls_doctor *d)
{
	const struct source_tpu *t = self;
	const struct ls_tpu_series_stats *s =
		t->series != NULL ? ls_tpu_series_get_stats(t->series) : NULL;
	size_t i;

	if (t->count == 0 && t->from_environment)
		ls_doctor_add(d, LS_DOCTOR_WARN, "tpu", "ports",
			"TPU_RUNTIME_METRICS_PORTS is empty: libtpu serves no "
			"metrics on this host",
			"unset TPU_RUNTIME_METRICS_PORTS for the job and the agent");
	else if (t->count == 0)
		ls_doctor_add(d, LS_DOCTOR_NONE, "tpu", "ports",
			"switched off by --tpu-ports", "");
	for (i = 0; i < t->count; i++)
		tpu_tell_port(t, ls_tpu_port_look(t->port[i]), d);
	tpu_tell_cores(t, d);
	if (s != NULL && s->refused > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "tpu", "series",
			"report it with the output of lockstep-agent --once: a limit is too small",
			"%llu values exceed a maximum and are not kept",
			(unsigned long long)s->refused);
}

/* --- life ----------------------------------------------------------------- */

static void
tpu_free(void *self)
{
	struct source_tpu *t = self;
	size_t i;

	for (i = 0; i < t->count; i++)
		ls_tpu_port_free(t->port[i]);
	ls_tpu_series_free(t->series);
	free(t);
}

static int
tpu_open_ports(struct source_tpu *t, const uint16_t *ports, size_t count)
{
	struct ls_tpu_port_options o = { .address = t->address,
		.arg = t,
		.point = tpu_point,
		.status = tpu_status,
		.listed = tpu_listed,
		.ended = tpu_ended };
	int rc;

	while (t->count < count) {
		o.port = ports[t->count];
		rc = ls_tpu_port_new(t->loop, &o, &t->port[t->count]);
		if (rc != 0)
			return rc;
		t->count++;
	}
	return 0;
}

/* The ports that are meant: by option, else by environment, else the usual one. */
static int
tpu_choose_ports(const char *ports, const char *environment,
	uint16_t ret_list[LS_TPU_PORTS_MAX], size_t *ret_count)
{
	if (strcmp(ports, LS_TPU_PORTS_AUTO) != 0)
		return tpu_read_ports(ports, ret_list, ret_count);
	if (environment != NULL)
		return tpu_read_ports(environment, ret_list, ret_count);
	ret_list[0] = LS_TPU_PORT_DEFAULT;
	*ret_count = 1;
	return 0;
}

int
ls_source_tpu_check(const char *address, const char *ports, const char *environment,
	char *ret_why, size_t why_bytes)
{
	uint16_t list[LS_TPU_PORTS_MAX];
	size_t count;
	bool is_option = strcmp(ports, LS_TPU_PORTS_AUTO) != 0;

	if (tpu_choose_ports(ports, environment, list, &count) != 0) {
		(void)snprintf(ret_why, why_bytes,
			"%s %s: must be ports like 8431,8432, each once, at most %d",
			is_option ? "--tpu-ports" : LS_TPU_PORTS_VARIABLE,
			is_option ? ports : environment, LS_TPU_PORTS_MAX);
		return -LS_ERANGE;
	}
	if (ls_http_is_loopback(address) >= 0)
		return 0;
	(void)snprintf(ret_why, why_bytes, "--tpu-address %s: is not a numeric address",
		address);
	return -LS_ERANGE;
}

int
ls_source_tpu_new(struct ls_loop *loop, struct ls_series_table *table,
	const char *address, const char *ports, const char *environment,
	struct ls_source *ret_source)
{
	uint16_t list[LS_TPU_PORTS_MAX];
	struct source_tpu *t = calloc(1, sizeof(*t));
	size_t count = 0;
	int rc = 0;

	if (t == NULL)
		return -ENOMEM;
	t->loop = loop;
	if (ls_text_copy(t->address, sizeof(t->address), address) != 0)
		rc = -LS_ERANGE;
	t->has_default_ports =
		strcmp(ports, LS_TPU_PORTS_AUTO) == 0 && environment == NULL;
	t->from_environment =
		strcmp(ports, LS_TPU_PORTS_AUTO) == 0 && environment != NULL;
	if (rc == 0)
		rc = tpu_choose_ports(ports, environment, list, &count);
	if (rc == 0 && count > 0)
		rc = ls_tpu_series_new(table, &t->series);
	if (rc == 0)
		rc = tpu_open_ports(t, list, count);
	if (rc != 0) {
		tpu_free(t);
		return rc;
	}
	*ret_source = (struct ls_source){ .name = "tpu",
		.self = t,
		.read = tpu_read,
		.tell = tpu_tell,
		.free = tpu_free };
	return 0;
}

void
ls_source_tpu_set_chips(const struct ls_source *source, bool has_chips)
{
	struct source_tpu *t = source->self;

	t->has_chips = has_chips;
}

bool
ls_source_tpu_is_settled(const struct ls_source *source)
{
	const struct source_tpu *t = source->self;
	size_t i;

	for (i = 0; i < t->count; i++) {
		enum ls_tpu_port_state state = ls_tpu_port_look(t->port[i])->state;

		if (state == LS_TPU_PORT_STATE_CONNECTING)
			return false;
		if (state == LS_TPU_PORT_STATE_UP &&
			(tpu_is_busy(t, LS_TPU_STATUS) ||
				tpu_is_busy(t, LS_TPU_GAUGES) ||
				tpu_is_busy(t, LS_TPU_HISTOGRAMS)))
			return false;
	}
	return true;
}

const struct ls_tpu_progress *
ls_source_tpu_progress(const struct ls_source *source)
{
	return &((const struct source_tpu *)source->self)->progress;
}
