/* SPDX-License-Identifier: Apache-2.0 */
/* lockstep hosts and lockstep steps. */
#include "config.h"
#include "web/cli/cli.h"
#include "web/cli/term.h"
#include <inttypes.h>
#include <string.h>

/* The items of a job's list; the table is only made when there is something to show. */
static int
tables_get(struct ls_cli *cli, const char *rest, bool ranged, json_t **ret_body)
{
	const struct ls_cli_options *o = &cli->options;
	char job[LS_CONF_VALUE_MAX_BYTES], path[4096], limit[24];
	int rc = ls_cli_job(cli, sizeof(job), job);

	if (rc == 0)
		rc = ls_cli_job_path(job, rest, sizeof(path), path);
	(void)snprintf(limit, sizeof(limit), "%" PRId64, o->limit);
	if (rc == 0 &&
		((ranged && ls_cli_query(path, sizeof(path), "steps", o->steps) != 0) ||
			ls_cli_query(path, sizeof(path), "host", o->host) != 0 ||
			ls_cli_query(path, sizeof(path), "limit", limit) != 0))
		rc = LS_EXIT_USAGE;
	return rc != 0 ? rc : ls_cli_get(cli, path, true, ret_body);
}

static const struct ls_column hosts_columns[] = {
	{ ls_term_text, "host", "?" },
	{ ls_term_whole, "rank", "-" },
	{ ls_term_text, "slice", "-" },
	{ ls_term_text, "state", "?" },
	{ ls_term_seconds, "blame_s", "-" },
	{ ls_term_seconds, "step_time_s", "-" },
	{ ls_term_seconds, "own_s", "-" },
	{ ls_term_seconds, "wait_s", "-" },
	{ ls_term_seconds, "input_wait_s", "-" },
	{ ls_term_seconds, "lateness_s", "-" },
	{ ls_term_percent, "slowest_ratio", "-" },
	{ ls_term_text, "finding", "" },
	{ NULL, NULL, NULL },
};

int
ls_cmd_hosts(struct ls_cli *cli, int argc, char **argv)
{
	json_t *body = NULL;
	const json_t *items;
	struct ls_table *table;
	int rc;

	if (argc == 1)
		return ls_cli_host(cli, argv[0]);
	rc = tables_get(cli, "/hosts", false, &body);
	if (rc != 0 || !body)
		return rc;
	items = json_object_get(body, "items");
	table = ls_table_new("HOST|>RANK|SLICE|STATE|>BLAME|>STEP|>OWN|>WAIT|>INPUT|>"
			     "LATE|>SLOWEST|FINDING");
	for (size_t i = 0; i < json_array_size(items); i++)
		ls_table_row(table, cli->term, json_array_get(items, i), hosts_columns);
	ls_table_print(table);
	if (json_array_size(items) == 0)
		(void)fprintf(stderr,
			cli->options.host[0] != '\0'
				? "lockstep: no worker of this host has reported yet\n"
				: "lockstep: no worker has reported yet\n");
	else if (ls_pick_text(body, "next_cursor"))
		(void)fprintf(stderr, "lockstep: more rows exist; see --limit\n");
	json_decref(body);
	return LS_EXIT_OK;
}

static const struct ls_column steps_columns[] = {
	{ ls_term_whole, "step", "-" },
	{ ls_term_clock, "at", "" },
	{ ls_term_seconds, "duration_s", "-" },
	{ ls_term_seconds, "blame_s", "-" },
	{ ls_term_seconds, "wait_min_s", "-" },
	{ ls_term_seconds, "wait_median_s", "-" },
	{ ls_term_whole, "workers", "-" },
	{ ls_term_whole, "expected", "-" },
	{ ls_term_text, "last.host", "unknown" },
	{ NULL, NULL, NULL },
};

const struct ls_column ls_cli_record_columns[] = {
	{ ls_term_clock, "at", "" },
	{ ls_term_seconds, "duration_s", "-" },
	{ ls_term_seconds, "own_s", "-" },
	{ ls_term_seconds, "wait_s", "-" },
	{ ls_term_seconds, "lateness_s", "-" },
	{ ls_term_seconds, "blame_s", "-" },
	{ ls_term_seconds, "phases.input_wait", "-" },
	{ ls_term_seconds, "phases.compute", "-" },
	{ NULL, NULL, NULL },
};

static const struct ls_column records_columns[] = {
	{ ls_term_whole, "step", "-" },
	{ ls_term_whole, "rank", "-" },
	{ NULL, NULL, NULL },
};

int
ls_cmd_steps(struct ls_cli *cli, int argc, char **argv)
{
	bool records = cli->options.host[0] != '\0';
	json_t *body = NULL;
	const json_t *items;
	struct ls_table *table;
	int rc = tables_get(cli, "/steps", true, &body);

	(void)argc;
	(void)argv;
	if (rc != 0 || !body)
		return rc;
	items = json_object_get(body, "items");
	table = ls_table_new(records ? ">STEP|>RANK|TIME|>DURATION|>OWN|>WAIT|>LATE|>"
				       "BLAME|>INPUT|>COMPUTE"
				     : ">STEP|TIME|>DURATION|>BLAME|>LEAST "
				       "WAIT|>MEDIAN WAIT|>WORKERS|>OF|LAST");
	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *item = json_array_get(items, i);

		ls_table_row(table, cli->term, item,
			records ? records_columns : steps_columns);
		if (records)
			ls_table_row(table, cli->term, item, ls_cli_record_columns);
	}
	ls_table_print(table);
	if (json_array_size(items) == 0)
		(void)fprintf(stderr, "lockstep: no step there\n");
	json_decref(body);
	return LS_EXIT_OK;
}
