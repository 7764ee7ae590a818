/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - what lockstep-agent can be told (options.def).
 *
 * Owner:   plain data.
 * Units:   ns, bytes.
 * Errors:  -LS_ERANGE, -LS_EPARSE, -EPERM for a value that cannot be; -errno.
 * Limits:  in options.def.
 */
#ifndef LS_AGENT_OPTIONS_H
#define LS_AGENT_OPTIONS_H

#include "agent/budget.h"
#include "proto/base/conf.h"

struct ls_agent_config {
	char collector[LS_CONF_VALUE_MAX_BYTES];
	char keys[LS_CONF_VALUE_MAX_BYTES];
	char host_name[LS_CONF_VALUE_MAX_BYTES];
	char state_dir[LS_CONF_VALUE_MAX_BYTES];
	char steps_dir[LS_CONF_VALUE_MAX_BYTES];
	char proc_root[LS_CONF_VALUE_MAX_BYTES];
	char sys_root[LS_CONF_VALUE_MAX_BYTES];
	char dev_root[LS_CONF_VALUE_MAX_BYTES];
	char metadata_address[LS_CONF_VALUE_MAX_BYTES];
	char labels_file[LS_CONF_VALUE_MAX_BYTES];
	bool read_environ;
	char job[LS_CONF_VALUE_MAX_BYTES], slice[LS_CONF_VALUE_MAX_BYTES];
	char rack[LS_CONF_VALUE_MAX_BYTES];
	char worker_id[LS_CONF_VALUE_MAX_BYTES], topology[LS_CONF_VALUE_MAX_BYTES];
	char accelerator_type[LS_CONF_VALUE_MAX_BYTES];
	bool host_name_is_given; /* set by ls_agent_config_finish */
	char prom[LS_CONF_VALUE_MAX_BYTES];
	char prom_map[LS_CONF_VALUE_MAX_BYTES];
	char tpu_address[LS_CONF_VALUE_MAX_BYTES];
	char tpu_ports[LS_CONF_VALUE_MAX_BYTES];
	char stall_dir[LS_CONF_VALUE_MAX_BYTES];
	char step_log[LS_CONF_VALUE_MAX_BYTES];
	char step_log_pattern[LS_CONF_VALUE_MAX_BYTES];
	char step_log_job[LS_CONF_VALUE_MAX_BYTES];
	char step_log_rank[LS_CONF_VALUE_MAX_BYTES];
	int32_t step_log_rank_value; /* set by ls_agent_config_finish; -1: not given */
	uint64_t beat_ns, sample_interval_ns;
	uint64_t spool_max_bytes, backfill_bytes;
	char http_names[LS_CONF_VALUE_MAX_BYTES];
	char http[LS_CONF_VALUE_MAX_BYTES], port_file[LS_CONF_VALUE_MAX_BYTES];
	char budget_cpu_ratio[LS_CONF_VALUE_MAX_BYTES];
	uint64_t budget_memory_bytes, budget_bytes;
	char log_level[LS_CONF_VALUE_MAX_BYTES];
	bool insecure, once, doctor;
	/* made of the above by ls_agent_config_finish */
	char http_address[64]; /* "": not served */
	uint16_t http_port;
	struct ls_budget_limits budget;
};

/* Everything ls_conf_load needs to fill a struct ls_agent_config. */
extern const struct ls_conf_program ls_agent_program;

/*
 * Puts the machine's own name where none was given, and checks what the table cannot.
 * On failure text holds one line that says what; the program exits 2. -LS_ERANGE,
 * -LS_EPARSE, -EPERM (beyond loopback without insecure), -errno.
 */
int ls_agent_config_finish(struct ls_agent_config *c, char *text,
	size_t size) LS_MUSTCHECK;

#endif
