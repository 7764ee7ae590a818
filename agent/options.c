/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/options.h"
#include "agent/uplink/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/identity/place.h"
#include "agent/pages/source_prom.h"
#include "agent/steps/step_line.h"
#include "agent/tpu/source_tpu.h"
#include "agent/uplink/resolve.h"
#include "proto/base/http.h"
#include "proto/base/text.h"
#include "proto/versions.h"

#define OPTIONS_CORES_MAX 1024.0 /* no budget is beyond */

static const struct ls_conf_option options_table[] = {
#define LS_AGENT_OPTION(field, name, type, dflt, min, max, unit, help, flags)        \
	{ name, type, offsetof(struct ls_agent_config, field), dflt, (int64_t)(min), \
		(int64_t)(max), unit, help, flags },
#include "agent/options.def"
#undef LS_AGENT_OPTION
};

const struct ls_conf_program ls_agent_program = {
	.name = "lockstep-agent",
	.section = "agent",
	.libraries = LS_LIBRARIES,
	.summary =
		"Streams step timings and host counters of this machine to the collector.",
	.usage = "lockstep-agent [OPTION]...",
	.default_file = "/etc/lockstep/agent.conf",
	.options = options_table,
	.option_count = sizeof(options_table) / sizeof(options_table[0]),
};

static int
options_host_name(struct ls_agent_config *c, char *text, size_t size)
{
	c->host_name_is_given = c->host_name[0] != '\0';
	if (!c->host_name_is_given) {
		if (gethostname(c->host_name, sizeof(c->host_name)) != 0) {
			int rc = -errno;

			(void)snprintf(text, size,
				"cannot read the name of this machine: %s",
				ls_err_text(rc));
			return rc;
		}
		/* a cut name has no end */
		c->host_name[sizeof(c->host_name) - 1] = '\0';
	}
	if (ls_text_is_name(c->host_name, strlen(c->host_name),
		    LS_HOST_NAME_MAX_BYTES - 1))
		return 0;
	(void)snprintf(text, size, "--host-name is not a usable name");
	return -LS_ERANGE;
}

/* The collector may have a name: it is resolved when it is dialled, without blocking.
 */
static int
options_collector(const struct ls_agent_config *c, char *text, size_t size)
{
	char host[LS_CONF_VALUE_MAX_BYTES];
	uint16_t port;

	if (ls_resolve_split(c->collector, host, sizeof(host), &port) == 0)
		return 0;
	(void)snprintf(text, size, "--collector %s: is not of the form tcp://HOST:PORT",
		c->collector);
	return -LS_EPARSE;
}

static int
options_http(struct ls_agent_config *c, char *text, size_t size)
{
	int loopback;

	c->http_address[0] = '\0';
	if (c->http[0] == '\0')
		return 0;
	if (ls_http_split(c->http, c->http_address, sizeof(c->http_address),
		    &c->http_port) != 0) {
		(void)snprintf(text, size, "--http %s: is not of the form ADDRESS:PORT",
			c->http);
		return -LS_EPARSE;
	}
	loopback = ls_http_is_loopback(c->http_address);
	if (loopback < 0)
		(void)snprintf(text, size, "--http %s: \"%s\" is not a numeric address",
			c->http, c->http_address);
	if (loopback != 0 || c->insecure)
		return loopback < 0 ? loopback : 0;
	(void)snprintf(text, size,
		"--http %s: this address can be reached from other hosts, without "
		"TLS or password; use a loopback address, or --insecure if something "
		"else protects it",
		c->http);
	return -EPERM;
}

static int
options_place(struct ls_agent_config *c, char *text, size_t size)
{
	const char *problem = ls_place_check(c);

	if (problem == NULL)
		return 0;
	(void)snprintf(text, size, "%s", problem);
	return -LS_ERANGE;
}

static int
options_step_log(struct ls_agent_config *c, char *text, size_t size)
{
	const char *rank = c->step_log_rank, *job = c->step_log_job;
	uint64_t rank_value;
	struct ls_step_rules *rules = NULL;
	char why[160];
	int rc = c->step_log_pattern[0] == '\0'
		? 0
		: ls_step_rules_new(c->step_log_pattern, &rules, why, sizeof(why));

	ls_step_rules_free(rules); /* the source makes its own */
	if (rc == -LS_ERANGE)
		(void)snprintf(text, size, "--step-log-pattern: %s", why);
	if (rc != 0)
		return rc;
	c->step_log_rank_value = -1;
	if (ls_text_number(rank, LS_WORKERS_MAX - 1, &rank_value)) {
		c->step_log_rank_value = (int32_t)rank_value;
	} else if (rank[0] != '\0') {
		(void)snprintf(text, size,
			"--step-log-rank %s: must be a number from 0 to %d", rank,
			LS_WORKERS_MAX - 1);
		return -LS_ERANGE;
	}
	if (job[0] != '\0' &&
		!ls_text_is_name(job, strlen(job), LS_JOB_NAME_MAX_BYTES - 1)) {
		(void)snprintf(text, size, "--step-log-job is not a usable name");
		return -LS_ERANGE;
	}
	return 0;
}

static int
options_budget(struct ls_agent_config *c, char *text, size_t size)
{
	const char *ratio = c->budget_cpu_ratio;
	char *end = NULL;
	double v =
		ratio[strspn(ratio, "0123456789.")] == '\0' ? strtod(ratio, &end) : -1;

	if (end == NULL || end == ratio || *end != '\0' ||
		!(v >= 0 && v <= OPTIONS_CORES_MAX)) {
		(void)snprintf(text, size,
			"--budget-cpu-ratio %s: must be a ratio of one core, like 0.005",
			ratio);
		return -LS_ERANGE;
	}
	c->budget.cpu_ratio = v;
	c->budget.memory_bytes = c->budget_memory_bytes;
	c->budget.bytes_per_minute = c->budget_bytes;
	return 0;
}

int
ls_agent_config_finish(struct ls_agent_config *c, char *text, size_t size)
{
	int rc = options_host_name(c, text, size);

	if (rc == 0)
		rc = options_collector(c, text, size);
	if (rc == 0)
		rc = options_http(c, text, size);
	if (rc == 0)
		rc = options_place(c, text, size);
	if (rc == 0)
		rc = options_step_log(c, text, size);
	if (rc == 0)
		rc = ls_source_tpu_check(c->tpu_address, c->tpu_ports,
			getenv(LS_TPU_PORTS_VARIABLE), text, size);
	if (rc == 0)
		rc = ls_source_prom_check(c->prom, c->prom_map, text, size);
	return rc != 0 ? rc : options_budget(c, text, size);
}
