/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "proto/base/text.h"

static const struct ls_conf_option options_table[] = {
#define LS_AGENT_OPTION(field, name, type, dflt, min, max, unit, help, flags) \
	{ name, type, offsetof(struct ls_agent_config, field), dflt, (int64_t)(min), \
		(int64_t)(max), unit, help, flags },
#include "agent/options.def"
#undef LS_AGENT_OPTION
};

const struct ls_conf_program ls_agent_program = {
	.name = "lockstep-agent",
	.section = "agent",
	.summary = "Streams step timings and host counters of this machine to the collector.",
	.usage = "lockstep-agent [OPTION]...",
	.default_file = "/etc/lockstep/agent.conf",
	.options = options_table,
	.option_count = sizeof(options_table) / sizeof(options_table[0]),
};

int
ls_agent_config_finish(struct ls_agent_config *c)
{
	if (c->host_name[0] == '\0') {
		if (gethostname(c->host_name, sizeof(c->host_name)) != 0)
			return -errno;
		c->host_name[sizeof(c->host_name) - 1] = '\0'; /* a cut name has no end */
	}
	if (!ls_text_is_name(
		    c->host_name, strlen(c->host_name), LS_HOST_NAME_MAX_BYTES - 1))
		return -LS_ERANGE;
	return 0;
}
