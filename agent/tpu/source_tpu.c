/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/source_tpu.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include "agent/options.h"
#include "agent/tpu/netns.h"
#include "proto/base/http.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/text.h"

struct source_tpu {
	struct ls_loop *loop;
	struct ls_tpu_series *series;
	struct ls_netns *netns; /* NULL: --tpu-address names the address */
	bool from_environment; /* the list of ports */
	bool has_default_ports; /* nobody named ports */
	bool has_chips, has_pages;
	size_t count, fixed; /* ports, and those by option */
	struct ls_tpu_port *port[LS_TPU_PORTS_MAX + LS_NETNS_PORTS_MAX];
	uint64_t unopened; /* servers found for which there was no room */
	/* of the last reading: multiples of LS_TPU_STATUS_NS */
	uint64_t tick;
	/* the group may hold values of the port */
	bool live[LS_TPU_PORTS_MAX + LS_NETNS_PORTS_MAX][LS_TPU_CADENCES];
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
tpu_point(void *arg, uint16_t id, const char *name, const struct ls_tpu_metric *metric,
	const struct ls_tpu_point *p)
{
	struct source_tpu *t = arg;

	ls_tpu_series_point(t->series, id, name, metric, p);
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
	for (size_t i = 0; i < t->count; i++) {
		if (ls_tpu_port_is_busy(t->port[i], cadence))
			return true;
	}
	return false;
}

/* A port's round is over; when it was the last one, so is the reading. */
static void
tpu_ended(void *arg, uint16_t id, enum ls_tpu_cadence cadence)
{
	struct source_tpu *t = arg;
	uint64_t now = ls_loop_now(t->loop);

	ls_tpu_series_end(t->series, id, cadence, now);
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

static bool
tpu_is_at(const struct ls_tpu_port *p, const char *address)
{
	return strcmp(ls_tpu_port_look(p)->address, address) == 0;
}

/* The first port of an address (NULL: of any) that is up: its view of the chips there
 * counts. */
static const struct ls_tpu_port *
tpu_first(const struct source_tpu *t, const char *address)
{
	for (size_t i = 0; i < t->count; i++) {
		if (ls_tpu_port_look(t->port[i])->state == LS_TPU_PORT_STATE_UP &&
			(address == NULL || tpu_is_at(t->port[i], address)))
			return t->port[i];
	}
	return NULL;
}

static bool
tpu_begin_port(struct source_tpu *t, struct ls_tpu_port *p, enum ls_tpu_cadence cadence)
{
	const char *address = ls_tpu_port_look(p)->address;
	const struct ls_tpu_port *first = tpu_first(t, address);
	bool is_first = first == NULL || p == first, missing;
	size_t i, ports = 0;

	for (i = 0; i < t->count; i++)
		ports += tpu_is_at(t->port[i], address);
	missing = !is_first && ls_tpu_port_look(first)->devices < ports;
	return ls_tpu_port_begin(p, cadence, is_first || missing, !is_first);
}

static void
tpu_begin(struct source_tpu *t, enum ls_tpu_cadence cadence)
{
	if (cadence == LS_TPU_STATUS && !tpu_is_busy(t, cadence))
		t->status_begun_ns = ls_loop_now(t->loop);
	for (size_t i = 0; i < t->count; i++) {
		struct ls_tpu_port *p = t->port[i];

		if (tpu_begin_port(t, p, cadence)) {
			t->live[i][cadence] = true;
		} else if (t->live[i][cadence] && !ls_tpu_port_is_busy(p, cadence) &&
			ls_tpu_port_look(p)->state != LS_TPU_PORT_STATE_UP) {
			/* it answers no more: one row that says so */
			t->live[i][cadence] = false;
			tpu_ended(t, ls_tpu_port_look(p)->id, cadence);
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

/* --- ports in other network namespaces ------------------------------------ */

static int
tpu_open_port(struct source_tpu *t, const char *address, uint16_t number)
{
	struct ls_tpu_port_options o = { .address = address,
		.port = number,
		.id = 1,
		.arg = t,
		.point = tpu_point,
		.status = tpu_status,
		.listed = tpu_listed,
		.ended = tpu_ended };
	int rc;

	for (size_t i = 0; i < t->count; i++) {
		if (ls_tpu_port_look(t->port[i])->id != o.id)
			continue;
		o.id++; /* the first that is free */
		i = SIZE_MAX;
	}
	rc = ls_tpu_port_new(t->loop, &o, &t->port[t->count]);
	if (rc == 0)
		memset(t->live[t->count++], 0, sizeof(t->live[0]));
	return rc;
}

/* Whether something listens at the address, as far as is known. */
static bool
tpu_is_served(const struct source_tpu *t, const char *address)
{
	for (size_t i = 0; i < t->count; i++) {
		if (tpu_is_at(t->port[i], address) &&
			ls_tpu_port_look(t->port[i])->state != LS_TPU_PORT_STATE_ABSENT)
			return true;
	}
	return false;
}

/* Closes what is gone: its address may be another node's by now. A pod's absent port
 * stays while the pod has others: the pod is there, and so may be its process again. */
static void
tpu_close_lost(struct source_tpu *t, uint64_t now_mono_ns)
{
	enum ls_tpu_cadence c;

	for (size_t i = t->count; i-- > t->fixed;) {
		const struct ls_tpu_port_view *v = ls_tpu_port_look(t->port[i]);
		uint16_t id = v->id;

		if (ls_netns_keep(t->netns, v->address, tpu_is_served(t, v->address),
			    now_mono_ns))
			continue;
		ls_tpu_port_free(t->port[i]);
		t->port[i] = t->port[--t->count];
		memcpy(t->live[i], t->live[t->count], sizeof(t->live[i]));
		for (c = LS_TPU_STATUS; c < LS_TPU_CADENCES; c++)
			tpu_ended(t, id, c);
	}
}

/* Whether a port of the address is open: this one, or any where number is 0. */
static bool
tpu_is_open(const struct source_tpu *t, const char *address, uint16_t number)
{
	for (size_t i = 0; i < t->count; i++) {
		if (tpu_is_at(t->port[i], address) &&
			(number == 0 || ls_tpu_port_look(t->port[i])->number == number))
			return true;
	}
	return false;
}

/* Opens the port of a server that was found, unless it is open. */
static void
tpu_open_found(struct source_tpu *t, const struct ls_netns_server *s,
	uint64_t now_mono_ns)
{
	if (tpu_is_open(t, s->address, s->port))
		return; /* known: its namespace was left and seen again */
	if (t->count < t->fixed + LS_NETNS_PORTS_MAX &&
		tpu_open_port(t, s->address, s->port) == 0)
		return;
	t->unopened++;
	if (!tpu_is_open(t, s->address, 0)) /* it is found again later */
		(void)ls_netns_keep(t->netns, s->address, false, now_mono_ns);
}

/* Looks for servers, at the start in several namespaces at once, as --once reads once. */
static void
tpu_reach(struct source_tpu *t, uint64_t now_mono_ns)
{
	struct ls_netns_server server[LS_TPU_PORTS_MAX];
	size_t i, found, turn = 0;

	tpu_close_lost(t, now_mono_ns); /* makes room */
	do {
		found = ls_netns_look(t->netns, now_mono_ns, server);
		for (i = 0; i < found; i++)
			tpu_open_found(t, &server[i], now_mono_ns);
	} while (!ls_netns_is_settled(t->netns) && ++turn < LS_NETNS_FIRST_LOOKS);
}

static void
tpu_read(void *self, unsigned due, uint64_t now_mono_ns, struct ls_sample *into)
{
	struct source_tpu *t = self;
	uint64_t tick = now_mono_ns / LS_TPU_STATUS_NS;
	bool list;

	(void)into; /* series of chips have labels: they are in the table */
	if (!(due & LS_CADENCE_FAST) || tick == t->tick)
		return;
	/* A slowed agent skips ticks: what fell into the skipped ones is due now. */
	list = tick / LS_TPU_LIST_TICKS != t->tick / LS_TPU_LIST_TICKS;
	for (size_t i = 0; i < t->count && list; i++)
		ls_tpu_port_relist(t->port[i]);
	tpu_begin(t, LS_TPU_STATUS);
	if (tick / LS_TPU_GAUGES_TICKS != t->tick / LS_TPU_GAUGES_TICKS)
		tpu_begin(t, LS_TPU_GAUGES);
	if (tick / LS_TPU_HISTOGRAMS_TICKS != t->tick / LS_TPU_HISTOGRAMS_TICKS)
		tpu_begin(t, LS_TPU_HISTOGRAMS);
	t->tick = tick;
	if (t->netns != NULL)
		tpu_reach(t, now_mono_ns);
}

/* --- what the source says of itself --------------------------------------- */

static void
tpu_tell_up(const struct source_tpu *t, const struct ls_tpu_port_view *v,
	const char *subject, struct ls_doctor *d)
{
	for (size_t i = 0; i < v->unknown_count; i++)
		ls_doctor_addf(d, LS_DOCTOR_NONE, "tpu", subject,
			"report it with the version of libtpu: it may be worth reading",
			"its status carries a field that is not known here: number %u of "
			"%s, %zu times, %zu bytes",
			v->unknown[i].number, v->unknown[i].message,
			v->unknown[i].count, v->unknown[i].bytes);
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
	const char *subject = ls_doctor_text(d, "port %s:%u", v->address, v->number),
		   *why = ls_doctor_text(d, "%s: %s", ls_tpu_port_state_name(v->state),
			   v->why);

	switch (v->state) {
	case LS_TPU_PORT_STATE_UP:
		tpu_tell_up(t, v, subject, d);
		break;
	case LS_TPU_PORT_STATE_ABSENT:
		if (tpu_first(t, NULL) != NULL) /* one process holds all chips */
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
				"Kubernetes set hostPID: true for the agent; without TPUs set "
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
	for (size_t i = 0; i < t->progress.count; i++) {
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

	if (t->count == 0 && t->from_environment)
		ls_doctor_add(d, LS_DOCTOR_WARN, "tpu", "ports",
			"TPU_RUNTIME_METRICS_PORTS is empty: libtpu serves no "
			"metrics on this host",
			"unset TPU_RUNTIME_METRICS_PORTS for the job and the agent");
	else if (t->count == 0)
		ls_doctor_add(d, LS_DOCTOR_NONE, "tpu", "ports",
			"switched off by --tpu-ports", "");
	for (size_t i = 0; i < t->count; i++)
		tpu_tell_port(t, ls_tpu_port_look(t->port[i]), d);
	tpu_tell_cores(t, d);
	if (t->netns != NULL)
		ls_netns_tell(t->netns, t->has_pages, d);
	if (t->progress.foreign > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "tpu", "cores",
			"give --tpu-address with the address of the job that counts",
			"two ports report the same core numbers: %llu readings of the later "
			"one are not used",
			(unsigned long long)t->progress.foreign);
	if (t->unopened > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "reach", "other namespaces",
			"give --tpu-address with the address that counts",
			"no room for a server, %llu times: at most %d are read at a time",
			(unsigned long long)t->unopened, LS_NETNS_PORTS_MAX);
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

	for (size_t i = 0; i < t->count; i++)
		ls_tpu_port_free(t->port[i]);
	ls_netns_free(t->netns);
	ls_tpu_series_free(t->series);
	free(t);
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
	if (strcmp(address, LS_TPU_ADDRESS_AUTO) == 0 ||
		ls_http_is_loopback(address) >= 0)
		return 0;
	(void)snprintf(ret_why, why_bytes,
		"--tpu-address %s: is not a numeric address, and not auto", address);
	return -LS_ERANGE;
}

int
ls_source_tpu_new(struct ls_loop *loop, struct ls_series_table *table,
	const struct ls_agent_config *c, const char *environment,
	struct ls_source *ret_source)
{
	const char *address = c->tpu_address, *ports = c->tpu_ports;
	uint16_t list[LS_TPU_PORTS_MAX];
	struct source_tpu *t = calloc(1, sizeof(*t));
	size_t count = 0;
	int rc;

	if (t == NULL)
		return -ENOMEM;
	t->loop = loop;
	/* the GKE device plugin listens on the node's address */
	t->has_pages = c->prom[0] != '\0' && strstr(c->prom, "127.0.0.1:2112") == NULL;
	t->has_default_ports =
		strcmp(ports, LS_TPU_PORTS_AUTO) == 0 && environment == NULL;
	t->from_environment =
		strcmp(ports, LS_TPU_PORTS_AUTO) == 0 && environment != NULL;
	rc = tpu_choose_ports(ports, environment, list, &count);
	if (rc == 0 && count > 0)
		rc = ls_tpu_series_new(table, &t->series);
	if (rc == 0 && count > 0 && strcmp(address, LS_TPU_ADDRESS_AUTO) == 0) {
		address = "127.0.0.1";
		rc = ls_netns_new(c->proc_root, c->sys_root, list, count, &t->netns);
	}
	for (; rc == 0 && t->count < count; t->fixed = t->count)
		rc = tpu_open_port(t, address, list[t->count]);
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

	for (size_t i = 0; i < t->count; i++) {
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
