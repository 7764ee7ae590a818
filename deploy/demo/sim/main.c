/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lockstep-sim - a load generator: many simulated agents, each over its own connection,
 * from one process.
 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/conf.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/text.h"
#include "deploy/demo/sim/fleet.h"
#include "deploy/demo/sim/offline.h"

enum { EXIT_USAGE = 2 };

static const struct ls_conf_option main_options[] = {
#define OPTION(name, type, field, dflt, min, max, unit, help)              \
	{ name, LS_CONF_##type, offsetof(struct sim_options, field), dflt, \
		(int64_t)(min), (int64_t)(max), unit, help, 0 },
#include "deploy/demo/sim/options.def"
#undef OPTION
};

static const struct ls_conf_program main_program = {
	.name = "lockstep-sim",
	.section = "sim",
	.summary =
		"Simulates many agents of a synchronous job, as load for a collector. Nothing it sends\n"
		"was measured: hosts are named sim00001, ..., versions begin with \"sim\".\n"
		"\n"
		"Each agent has its own TCP connection and speaks as lockstep-agent does: it keeps what\n"
		"is not acknowledged and sends it again under the same numbers. Results are JSON, a line\n"
		"at a time; ack_ms is the time from sending a report with items until all of them are on\n"
		"the collector's disk.\n"
		"\n"
		"--misbehave KIND:COUNT,... for tests of a collector:\n"
#define SIM_MISBEHAVE(id, name, help) "  " name ": " help "\n"
#include "deploy/demo/sim/misbehave.def"
#undef SIM_MISBEHAVE
		"\n"
		"--offline FILE: a simulated job and the truth about it. --fault KIND:WHO:AMOUNT[@FROM-TO], WHO a rank,\n"
		"slice, rack, stage or shard, SLICE+SLICE, or \"all\"; p is AMOUNT, as a share of the own work unless the kind says otherwise:\n"
#define SIM_FAULT(id, name, who, truth, scope, cause, phase, counter, help) \
	"  " name " (" #who "): " help "\n"
#include "deploy/demo/sim/world_faults.def"
#undef SIM_FAULT
		"\n"
		"--host-noise KIND,...: what healthy hosts take longer or shorter by, beside --noise. Other numbers can be given; those shown\n"
		"are the usual ones. With @rack, @slice or @job, such as bursts@rack or sines-2-3600@job, all hosts of one have the same:\n"
#define SIM_HOST_NOISE(id, name, a, b, numbers, help) "  " name numbers ": " help "\n"
#include "deploy/demo/sim/noise/host_noise.def"
#undef SIM_HOST_NOISE
	,
	.usage =
		"lockstep-sim --connect ADDRESS [OPTION]...\n       lockstep-sim --offline FILE [OPTION]...",
	.options = main_options,
	.option_count = sizeof(main_options) / sizeof(main_options[0]),
};

/* What the table alone cannot say. */
static int
main_check(const struct sim_options *o, struct sim_slow *ret_slow,
	struct sim_misbehave *ret_misbehave, char *err, size_t size)
{
	if (*o->offline == '\0' &&
		strncmp(o->connect, "tcp://", strlen("tcp://")) != 0) {
		(void)snprintf(err, size,
			"--connect: tcp://HOST:PORT is wanted, or --offline FILE");
	} else if (
		!ls_text_is_name(o->job, strlen(o->job), LS_JOB_NAME_MAX_BYTES - 1)) {
		(void)snprintf(err, size, "--job is not a usable name");
	} else if (o->slices > o->hosts) {
		(void)snprintf(err, size, "--slices %lld: there are %lld hosts",
			(long long)o->slices, (long long)o->hosts);
	} else if (sim_slow_parse(o->slow, o->hosts, ret_slow) != 0) {
		(void)snprintf(err, size,
			"--slow %s: none or RANK:FRACTION[@STEP] is wanted, with a RANK "
			"below %lld",
			o->slow, (long long)o->hosts);
	} else if (sim_misbehave_parse(o->misbehave, o->hosts, ret_misbehave) != 0) {
		(void)snprintf(err, size,
			"--misbehave %s: none or KIND:COUNT,... is wanted, each kind once, "
			"fewer in all than hosts",
			o->misbehave);
	} else if (*o->offline == '\0' &&
		(*o->truth != '\0' || strcmp(o->fault, "none") != 0)) {
		(void)snprintf(err, size,
			"--truth and --fault are for --offline; agents are slowed by --slow");
	} else {
		return 0;
	}
	return -LS_ERANGE;
}

/* A file instead of agents. */
static int
main_offline(const struct sim_offline *offline, const struct sim_options *o)
{
	char err[LS_LOG_LINE_MAX_BYTES];

	if (sim_offline_write(offline, o->offline, o->truth, err, sizeof(err)) == 0)
		return EXIT_SUCCESS;
	(void)fprintf(stderr, "lockstep-sim: %s\n", err);
	return EXIT_FAILURE;
}

static void
main_on_end(void *arg)
{
	sim_fleet_drain(arg);
}

static int
main_run(const struct sim_options *o, const struct sim_slow *slow,
	const struct sim_misbehave *misbehave)
{
	struct ls_loop *loop = ls_loop_new();
	struct ls_loop_timer *end = NULL;
	struct sim_fleet *f = NULL;
	bool settled = false;
	int rc = -ENOMEM;

	if (loop == NULL)
		goto out;
	rc = sim_fleet_new(loop, o, slow, misbehave, &f);
	if (rc != 0)
		goto out;
	rc = ls_loop_signals(loop, main_on_end, NULL, f);
	end = ls_loop_timer_new(loop, main_on_end, f);
	if (rc == 0 && end == NULL)
		rc = -ENOMEM;
	if (rc != 0)
		goto out;
	if (o->duration_ns > 0)
		ls_loop_timer_start(end, o->duration_ns, 0);
	rc = ls_loop_run(loop);
	settled = sim_fleet_is_settled(f);
	if (rc == 0)
		rc = sim_fleet_finish(f);
out:
	if (rc != 0)
		ls_log(LS_LOG_ERR, "sim", "%s", ls_err_text(rc));
	ls_loop_timer_free(end);
	sim_fleet_free(f);
	ls_loop_free(loop);
	return rc == 0 && (settled || !o->storm) ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
	struct sim_options options;
	struct sim_offline offline;
	struct sim_slow slow;
	struct sim_misbehave misbehave;
	enum ls_conf_action action;
	enum ls_log_level level;
	char err[LS_LOG_LINE_MAX_BYTES];
	int left, rc;

	rc = ls_conf_load(&main_program, argc, argv, &options, &action, &left, err,
		sizeof(err));
	if (rc == 0 && action == LS_CONF_EXIT)
		return EXIT_SUCCESS;
	if (rc == 0)
		rc = main_check(&options, &slow, &misbehave, err, sizeof(err));
	if (rc == 0 && *options.offline != '\0')
		rc = sim_offline_options(&options, &offline, err, sizeof(err));
	if (rc != 0) {
		(void)fprintf(stderr, "lockstep-sim: %s\n", err);
		return EXIT_USAGE;
	}
	if (*options.offline != '\0') {
		rc = action == LS_CONF_CHECK ? EXIT_SUCCESS
					     : main_offline(&offline, &options);
		sim_recorded_free(&offline.recorded);
		return rc;
	}
	if (action == LS_CONF_CHECK)
		return EXIT_SUCCESS;
	if (ls_log_level_parse(options.log_level, &level) == 0)
		ls_log_set_level(level);
	return main_run(&options, &slow, &misbehave);
}
