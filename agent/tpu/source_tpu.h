/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_tpu - what libtpu tells on its metrics ports: chips, cores, links, steps.
 *
 * The first port that is up is asked for the view it has of the whole node; the others
 * only when that one names fewer devices than there are ports, and then each for its
 * own process. The status of the cores is asked of every port. Status and queues are
 * read every second, gauges every 5, the rest every 10; a reading never comes earlier,
 * however often read() is called, and comes later when it is called less often.
 *
 * Answers come when they come: this source writes its own groups of the table
 * (tpu_series.h), not the sample.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   base units of proto/metrics.def.
 * Errors:  -LS_ERANGE: no list of ports, or no address.
 * Limits:  LS_TPU_PORTS_MAX ports; LS_TPU_STATUS_NS, LS_TPU_GAUGES_TICKS,
 *          LS_TPU_HISTOGRAMS_TICKS.
 * Source:  ports: TPU_RUNTIME_METRICS_PORTS of libtpu.
 */
#ifndef LS_AGENT_SOURCE_TPU_H
#define LS_AGENT_SOURCE_TPU_H

#include "agent/collect/series.h"
#include "agent/collect/source.h"
#include "agent/tpu/tpu_port.h"

struct ls_agent_config;

#define LS_TPU_ADDRESS_AUTO "auto" /* loopback, and netns.h */
#define LS_TPU_PORTS_AUTO "auto"
#define LS_TPU_PORT_DEFAULT 8431
#define LS_TPU_PORTS_VARIABLE "TPU_RUNTIME_METRICS_PORTS"

/*
 * Whether a source can be made of these (see below): 0, or -LS_ERANGE, and ret_why says
 * of what not.
 */
int ls_source_tpu_check(const char *address, const char *ports, const char *environment,
	char *ret_why, size_t why_bytes) LS_MUSTCHECK;

/*
 * Makes the source and begins to connect. tpu_ports: "8431,8432" ("": no port), or
 * LS_TPU_PORTS_AUTO: that of environment (what TPU_RUNTIME_METRICS_PORTS says here;
 * NULL: not set), else LS_TPU_PORT_DEFAULT. tpu_address LS_TPU_ADDRESS_AUTO: loopback,
 * and from its first reading the servers of other network namespaces. Loop and table are
 * borrowed. 0, -LS_ERANGE (not a list of ports, too many, or one twice), -LS_ELIMIT,
 * -ENOMEM.
 */
int ls_source_tpu_new(struct ls_loop *loop, struct ls_series_table *table,
	const struct ls_agent_config *config, const char *environment,
	struct ls_source *ret_source) LS_MUSTCHECK;

/* Whether this host has TPU chips (none until told): without, and without named ports,
 * a closed port is no warning. */
void ls_source_tpu_set_chips(const struct ls_source *source, bool has_chips);

/* True if every port has shown what it is, and those that are up were read once. */
bool ls_source_tpu_is_settled(const struct ls_source *source);

/* Progress of the cores and the steps inferred from it; borrowed. */
const struct ls_tpu_progress *ls_source_tpu_progress(const struct ls_source *source);

#endif
