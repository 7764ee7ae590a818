/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - the configuration of lockstep-collector, and what can be said of it without
 * starting.
 *
 * Owner:   plain data.
 * Units:   in the names.
 * Errors:  -LS_EPARSE, -EPERM; the message says which option.
 * Limits:  LS_CONF_VALUE_MAX_BYTES a value.
 */
#ifndef LS_COLLECTOR_OPTIONS_H
#define LS_COLLECTOR_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/conf.h"

struct ls_collector_config {
	char listen[LS_CONF_VALUE_MAX_BYTES];
	char keys[LS_CONF_VALUE_MAX_BYTES];
	char http[LS_CONF_VALUE_MAX_BYTES];
	char http_keys[LS_CONF_VALUE_MAX_BYTES], http_names[LS_CONF_VALUE_MAX_BYTES];
	char state_dir[LS_CONF_VALUE_MAX_BYTES];
	char web_root[LS_CONF_VALUE_MAX_BYTES];
	char port_file[LS_CONF_VALUE_MAX_BYTES];
	char backup[LS_CONF_VALUE_MAX_BYTES];
	char salvage[LS_CONF_VALUE_MAX_BYTES];
	char log_level[LS_CONF_VALUE_MAX_BYTES];
	uint64_t commit_interval_ns, pack_interval_ns, retain_age_ns, retain_bytes,
		patience_ns;
	int64_t contexts;
	bool insecure, check_db, repack;
	/* Filled in by ls_collector_config_finish, from http. */
	char http_address[64];
	uint16_t http_port;
};

/* The program and its table of options, for ls_conf_load. */
extern const struct ls_conf_program ls_collector_program;

/*
 * Takes addresses apart. -LS_EPARSE: not an address; -EPERM: others could reach it, and
 * `insecure` is not set. text then says so, for a person.
 */
int ls_collector_config_finish(struct ls_collector_config *c, char *text,
	size_t size) LS_MUSTCHECK;

#endif
