/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/http.h"
#include "proto/versions.h"

static const struct ls_conf_option options_table[] = {
#define LS_COLLECTOR_OPTION(field, name, type, dflt, min, max, unit, help, flags)  \
	{ name, type, offsetof(struct ls_collector_config, field), dflt, min, max, \
		unit, help, flags },
#include "collector/options.def"
#undef LS_COLLECTOR_OPTION
};

const struct ls_conf_program ls_collector_program = {
	.name = "lockstep-collector",
	.section = "collector",
	.libraries = LS_LIBRARIES,
	.summary = "Receives the reports of lockstep agents, finds what slows a job, "
		   "and serves the findings.",
	.usage = "lockstep-collector [OPTION]...",
	.default_file = "/etc/lockstep/collector.conf",
	.options = options_table,
	.option_count = sizeof(options_table) / sizeof(options_table[0]),
};

static int
options_check_address(const char *option, const char *value, const char *address,
	bool insecure, const char *instead, char *text, size_t size)
{
	int loopback = ls_http_is_loopback(address);

	if (loopback < 0) {
		(void)snprintf(text, size, "--%s %s: \"%s\" is not a numeric address",
			option, value, address);
		return loopback;
	}
	if (!loopback && !insecure) {
		(void)snprintf(text, size,
			"--%s %s: this address can be reached from other hosts, "
			"without TLS or password; use a loopback address, %sor "
			"--insecure if something else protects it",
			option, value, instead);
		return -EPERM;
	}
	return 0;
}

int
ls_collector_config_finish(struct ls_collector_config *c, char *text, size_t size)
{
	static const char scheme[] = "tcp://";
	char address[64];
	uint16_t port;
	int rc;

	if (strncmp(c->listen, scheme, strlen(scheme)) != 0 ||
		ls_http_split(c->listen + strlen(scheme), address, sizeof(address),
			&port) != 0) {
		(void)snprintf(text, size,
			"--listen %s: is not of the form tcp://ADDRESS:PORT",
			c->listen);
		return -LS_EPARSE;
	}
	rc = options_check_address("listen", c->listen, address,
		c->insecure || c->keys[0] != '\0', "--keys DIR, ", text, size);
	if (rc != 0)
		return rc;
	if (ls_http_split(c->http, c->http_address, sizeof(c->http_address),
		    &c->http_port) != 0) {
		(void)snprintf(text, size, "--http %s: is not of the form ADDRESS:PORT",
			c->http);
		return -LS_EPARSE;
	}
	return options_check_address("http", c->http, c->http_address,
		c->insecure || c->http_keys[0] != '\0', "--http-keys DIR, ", text,
		size);
}
