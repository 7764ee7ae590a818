/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - what lockstep-agent can be told (options.def).
 *
 * Owner:   plain data.
 * Units:   ns, bytes.
 * Errors:  -LS_ERANGE for a host name that is none; -errno.
 * Limits:  in options.def.
 */
#ifndef LS_AGENT_OPTIONS_H
#define LS_AGENT_OPTIONS_H

#include "proto/base/conf.h"

struct ls_agent_config {
	char collector[LS_CONF_VALUE_MAX_BYTES];
	char host_name[LS_CONF_VALUE_MAX_BYTES];
	char state_dir[LS_CONF_VALUE_MAX_BYTES];
	char steps_dir[LS_CONF_VALUE_MAX_BYTES];
	char proc_root[LS_CONF_VALUE_MAX_BYTES];
	char sys_root[LS_CONF_VALUE_MAX_BYTES];
	uint64_t beat_ns, sample_interval_ns;
	uint64_t spool_max_bytes;
	char log_level[LS_CONF_VALUE_MAX_BYTES];
	bool once;
};

/* Everything ls_conf_load needs to fill a struct ls_agent_config. */
extern const struct ls_conf_program ls_agent_program;

/* Puts the machine's own name where none was given, and checks it. */
int ls_agent_config_finish(struct ls_agent_config *c) LS_MUSTCHECK;

#endif
