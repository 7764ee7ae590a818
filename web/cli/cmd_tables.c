/* SPDX-License-Identifier: Apache-2.0 */
/* lockstep hosts and lockstep steps. */
#include "config.h"
#include "web/cli/cli.h"
#include "web/cli/term.h"

/* The path of a list of the job's. */
static int
tables_path(struct ls_cli *cli, const char *rest, const char *steps, size_t size,
	char *ret_path)
{
	char job[LS_CONF_VALUE_MAX_BYTES];
	int rc = ls_cli_job(cli, sizeof(job), job);

	if (rc == 0)
		rc = ls_cli_job_path(job, rest, size, ret_path);
	if (rc == 0 &&
		(ls_cli_query(ret_path, size, "steps", steps) != 0 ||
			ls_cli_query(ret_path, size, "host", cli->options.host) != 0 ||
			ls_cli_limit(cli, ret_path, size) != 0))
		rc = LS_EXIT_USAGE;
	return rc;
}

/* With its user, where two claim it. */
static const char *
tables_rank(struct ls_term *t, const json_t *v, const char *path, const char *dflt)
{
	double rank = 0, uid = 0;

	return ls_pick_number(v, "uid", &uid) && ls_pick_number(v, path, &rank)
		? ls_term_format(t, "%.0f, uid %.0f", rank, uid)
		: ls_term_whole(t, v, path, dflt);
}

static const struct ls_column hosts_columns[] = {
	{ "HOST", ls_term_text, "host", "?" },
	{ ">RANK", tables_rank, "rank", "-" },
	{ "SLICE", ls_term_text, "slice", "-" },
	{ "STATE", ls_term_text, "state", "?" },
	{ ">BLAME", ls_term_seconds, "blame_s", "-" },
	{ ">STEP", ls_term_seconds, "step_time_s", "-" },
	{ ">OWN", ls_term_seconds, "own_s", "-" },
	{ ">WAIT", ls_term_seconds, "wait_s", "-" },
	{ ">INPUT", ls_term_seconds, "input_wait_s", "-" },
	{ ">LATE", ls_term_seconds, "lateness_s", "-" },
	{ ">SLOWEST", ls_term_percent, "slowest_ratio", "-" },
	{ "FINDING", ls_term_text, "finding", "" },
	{ NULL, NULL, NULL, NULL },
};

int
ls_cmd_hosts(struct ls_cli *cli, int argc, char **argv)
{
	char path[4096];
	int rc;

	if (argc == 1)
		return ls_cli_host(cli, argv[0]);
	rc = tables_path(cli, "/hosts", "", sizeof(path), path);
	return rc != 0 ? rc
		       : ls_cli_list(cli, path, hosts_columns,
				 cli->options.host[0] != '\0'
					 ? "no worker of this host has reported yet"
					 : "no worker has reported yet",
				 true);
}

static const struct ls_column steps_columns[] = {
	{ ">STEP", ls_term_whole, "step", "-" },
	{ "TIME", ls_term_clock, "at", "" },
	{ ">DURATION", ls_term_seconds, "duration_s", "-" },
	{ ">BLAME", ls_term_seconds, "blame_s", "-" },
	{ ">LEAST WAIT", ls_term_seconds, "wait_min_s", "-" },
	{ ">MEDIAN WAIT", ls_term_seconds, "wait_median_s", "-" },
	{ ">WORKERS", ls_term_whole, "workers", "-" },
	{ ">OF", ls_term_whole, "expected", "-" },
	{ "LAST", ls_term_text, "last.host", "unknown" },
	{ NULL, NULL, NULL, NULL },
};

static const struct ls_column records_columns[] = {
	{ ">STEP", ls_term_whole, "step", "-" },
	{ ">RANK", ls_term_whole, "rank", "-" },
	LS_CLI_RECORD_COLUMNS,
	{ NULL, NULL, NULL, NULL },
};

int
ls_cmd_steps(struct ls_cli *cli, int argc, char **argv)
{
	bool records = cli->options.host[0] != '\0';
	char path[4096];
	int rc = tables_path(cli, "/steps", cli->options.steps, sizeof(path), path);

	(void)argc;
	(void)argv;
	return rc != 0
		? rc
		: ls_cli_list(cli, path, records ? records_columns : steps_columns,
			  "no step there", false);
}
