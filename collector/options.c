/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"

static const struct ls_conf_option options_table[] = {
#define LS_COLLECTOR_OPTION(field, name, type, dflt, min, max, unit, help, flags) \
	{ name, type, offsetof(struct ls_collector_config, field), dflt, min, max, unit, help, flags },
#include "collector/options.def"
#undef LS_COLLECTOR_OPTION
};

const struct ls_conf_program ls_collector_program = {
	.name = "lockstep-collector",
	.section = "collector",
	.summary = "Takes the reports of lockstep agents, finds what slows a job down, and serves it.",
	.usage = "lockstep-collector [OPTION]...",
	.default_file = "/etc/lockstep/collector.conf",
	.options = options_table,
	.option_count = sizeof(options_table) / sizeof(options_table[0]),
};

/* Splits "ADDRESS:PORT" or "[ADDRESS]:PORT"; the address numeric, or localhost. */
static int
options_split(const char *text, char *address, size_t size, uint16_t *ret_port)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon != NULL ? (size_t)(colon - text) : 0;
	unsigned long port;
	char *end;

	if (colon == NULL || colon[1] < '0' || colon[1] > '9')
		return -LS_EPARSE;
	port = strtoul(colon + 1, &end, 10);
	if (*end != '\0' || port > UINT16_MAX)
		return -LS_EPARSE;
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (len == 0 || len >= size)
		return -LS_EPARSE;
	memcpy(address, text, len);
	address[len] = '\0';
	if (strcmp(address, "localhost") == 0)
		(void)snprintf(address, size, "127.0.0.1");
	*ret_port = (uint16_t)port;
	return 0;
}

/* 1: loopback, 0: another address, -LS_EPARSE: none. */
static int
options_is_loopback(const char *address)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, address, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, address, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6);
	return -LS_EPARSE;
}

static int
options_check_address(const char *option, const char *value, const char *address, bool insecure,
	char *text, size_t size)
{
	int loopback = options_is_loopback(address);

	if (loopback < 0) {
		(void)snprintf(text, size, "--%s %s: \"%s\" is not a numeric address", option,
			value, address);
		return loopback;
	}
	if (!loopback && !insecure) {
		(void)snprintf(text, size,
			"--%s %s: others can reach this address, and there is neither TLS nor a "
			"password; use loopback, or --insecure if something else protects it",
			option, value);
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
		options_split(c->listen + strlen(scheme), address, sizeof(address), &port) != 0) {
		(void)snprintf(text, size, "--listen %s: is not of the form tcp://ADDRESS:PORT",
			c->listen);
		return -LS_EPARSE;
	}
	rc = options_check_address("listen", c->listen, address, c->insecure, text, size);
	if (rc != 0)
		return rc;
	if (options_split(c->http, c->http_address, sizeof(c->http_address), &c->http_port) != 0) {
		(void)snprintf(text, size, "--http %s: is not of the form ADDRESS:PORT", c->http);
		return -LS_EPARSE;
	}
	return options_check_address(
		"http", c->http, c->http_address, c->insecure, text, size);
}
