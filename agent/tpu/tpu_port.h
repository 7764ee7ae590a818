/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tpu_port - one metrics port of libtpu: which metrics it has, and asking for them.
 *
 *                    the list came                  closed
 *      CONNECTING ------------------> UP  ------------------------> ABSENT
 *          |  \  \                     |  lost, silent               | ^
 *  refused |   \  no HTTP/2, no gRPC,  v                             | |
 *          v    \ no such service     FAILING: silent, malformed     | |
 *       ABSENT   +------> UNSUPPORTED      no list                   | |
 *          +---- every state but CONNECTING is left for every other -+-+
 *                when the next connection shows something else
 *
 * When connected, the port is asked for its list of metrics, then for each of these in
 * rounds: a round is all metrics of a cadence, and the status of the cores in
 * LS_TPU_STATUS. A metric that is not found, and a status that is not implemented, is
 * not measured and not asked for again until the next list.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  -LS_ERANGE, -ENOMEM at its making; later the state and the reason say it.
 * Limits:  LS_TPU_METRICS_MAX, LS_TPU_LIST_TICKS, and those of grpc.h.
 * Source:  paths and messages: proto/tpu_runtime.proto.
 */
#ifndef LS_AGENT_TPU_PORT_H
#define LS_AGENT_TPU_PORT_H

#include <netinet/in.h>
#include "agent/tpu/grpc.h"
#include "agent/tpu/tpu_series.h"

struct ls_loop;
struct ls_tpu_port;

enum ls_tpu_port_state {
#define LS_TPU_PORT_STATE(id, name) LS_TPU_PORT_STATE_##id,
#include "agent/tpu/tpu_port_state.def"
#undef LS_TPU_PORT_STATE
	LS_TPU_PORT_STATE_COUNT
};

struct ls_tpu_port_stats {
#define LS_TPU_PORT_STAT(field, help) uint64_t field;
#include "agent/tpu/tpu_port_stat.def"
#undef LS_TPU_PORT_STAT
};

struct ls_tpu_port_view {
	enum ls_tpu_port_state state;
	/* why it is not up, or what it lacks when it is; "" if nothing */
	char why[LS_GRPC_TEXT_MAX_BYTES];
	size_t metrics, devices; /* it lists; its answers name */
	size_t unknown_count; /* of the last status */
	struct ls_tpu_unknown unknown[LS_TPU_UNKNOWN_FIELDS_MAX];
	bool lacks_status; /* it refused the status as not implemented */
	struct ls_tpu_port_stats stats;
	const struct ls_grpc_stats *grpc;
	char address[INET6_ADDRSTRLEN];
	uint16_t number, id;
};

struct ls_tpu_port_options {
	const char *address; /* copied */
	uint16_t port;
	uint16_t id; /* for the callbacks: different for each port, not 0 */
	void *arg;
	/* A value of a metric. */
	void (*point)(void *arg, uint16_t id, const char *name,
		const struct ls_tpu_metric *metric, const struct ls_tpu_point *p);
	/* The status of the cores. */
	void (*status)(void *arg, const struct ls_tpu_status *status);
	/* The list came: rounds may begin at once. */
	void (*listed)(void *arg, struct ls_tpu_port *p);
	/* A round of a cadence is over, by answers or by loss. */
	void (*ended)(void *arg, uint16_t id, enum ls_tpu_cadence cadence);
};

/* Makes a port and begins to connect. */
int ls_tpu_port_new(struct ls_loop *loop, const struct ls_tpu_port_options *options,
	struct ls_tpu_port **ret_port) LS_MUSTCHECK;
/* Closes it without telling. Accepts NULL. */
void ls_tpu_port_free(struct ls_tpu_port *p);

/*
 * Begins a round of a cadence; metrics only where with_metrics, of this process alone
 * where alone. False, and nothing happens: not up, or the round before is still under
 * way (counted).
 */
bool ls_tpu_port_begin(struct ls_tpu_port *p, enum ls_tpu_cadence cadence,
	bool with_metrics, bool alone);

/* Asks for the list again, as soon as nothing else is under way. */
void ls_tpu_port_relist(struct ls_tpu_port *p);

/* True while a round of the cadence is under way. */
bool ls_tpu_port_is_busy(const struct ls_tpu_port *p, enum ls_tpu_cadence cadence);

/* What it is like now; borrowed. */
const struct ls_tpu_port_view *ls_tpu_port_look(const struct ls_tpu_port *p);

/* The name of a state. */
const char *ls_tpu_port_state_name(enum ls_tpu_port_state state);

#endif
