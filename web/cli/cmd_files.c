/* SPDX-License-Identifier: Apache-2.0 */
/* lockstep replay and lockstep export. */
#include "config.h"
#include "web/cli/cli.h"
#include "collector/history/replay.h"
#include "proto/base/json.h"
#include "web/cli/export_csv.h"
#include "web/cli/fetch.h"
#include "web/cli/show.h"
#include "web/cli/term.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void
files_complain(void *arg, const char *text)
{
	(void)fprintf(stderr, "lockstep: %s\n", ls_term_safe(arg, text, ""));
}

static void
files_show_replay(struct ls_term *t, const json_t *result)
{
	const json_t *findings = json_object_get(result, "findings");

	for (size_t i = 0; i < json_array_size(findings); i++)
		ls_show_finding(t, json_array_get(findings, i));
	if (json_array_size(findings) == 0)
		(void)printf("  no finding\n");
	if (json_object_get(result, "not_judged") != NULL)
		(void)printf("  not judged: %s\n",
			ls_term_text(t, result, "not_judged", ""));
	(void)printf("%s\n", ls_term_text(t, result, "digest", "no digest"));
}

int
ls_cmd_replay(struct ls_cli *cli, int argc, char **argv)
{
	struct ls_replay_stats stats = { 0 };
	json_t *result = NULL;
	char *text = NULL;
	int rc = ls_replay_file(argv[0], (double)cli->options.patience_ns * 1e-9,
		files_complain, cli->term, &stats, &result);

	(void)argc;
	if (rc != 0) {
		(void)fprintf(stderr, "lockstep: %s: %s\n",
			ls_term_safe(cli->term, argv[0], ""),
			rc == -LS_EPARSE ? "no valid line" : ls_err_text(rc));
		return LS_EXIT_FOUND;
	}
	(void)fprintf(stderr,
		"lockstep: %" PRIu64 " records and %" PRIu64 " counters in %" PRIu64
		" lines, %" PRIu64 " of them bad\n",
		stats.records, stats.counters, stats.lines, stats.bad_lines);
	if (!cli->json) {
		files_show_replay(cli->term, result);
	} else {
		text = ls_json_canonical(result);
		rc = text ? 0 : -ENOMEM;
		if (text)
			(void)printf("%s\n", text);
	}
	free(text);
	json_decref(result);
	return rc == 0 ? LS_EXIT_OK : LS_EXIT_FOUND;
}

/* Where an export goes. */
struct files_out {
	struct ls_cli *cli;
	FILE *out, *rows; /* NULL: not opened, no rows */
};

/* Called when the export begins: one that is refused leaves the file as it was. */
static FILE *
files_open(void *arg)
{
	struct files_out *o = arg;
	const struct ls_cli *cli = o->cli;
	bool named = strcmp(cli->options.file, "-") != 0;

	o->out = named ? fopen(cli->options.file, "we") : stdout;
	if (!o->out || !cli->csv)
		return o->out;
	o->rows = ls_export_csv_open(o->out, cli->options.counters);
	return o->rows;
}

static bool
files_close(FILE *f)
{
	return !f || f == stdout || fclose(f) == 0;
}

static int
files_unwritten(struct ls_cli *cli)
{
	(void)fprintf(stderr, "lockstep: writing %s: %s\n",
		strcmp(cli->options.file, "-") == 0
			? "standard output"
			: ls_term_safe(cli->term, cli->options.file, ""),
		strerror(errno));
	return LS_EXIT_FOUND;
}

static int
files_export(struct ls_cli *cli, const char *path, struct files_out *out)
{
	struct ls_fetched got = { 0 };
	int rc = ls_fetch_get(cli->fetch, path,
		&(struct ls_fetch_stream){ files_open, out }, &got);

	if (rc == -EIO)
		return files_unwritten(cli);
	if (rc == -EACCES)
		return ls_cli_unreachable(cli, rc);
	if (rc != 0) {
		(void)fprintf(stderr, "lockstep: the export is not complete: %s\n",
			ls_err_text(rc));
		return LS_EXIT_UNREACHABLE;
	}
	rc = got.status == 200 ? LS_EXIT_OK : ls_cli_refused(cli, &got);
	free(got.text);
	return rc;
}

int
ls_cmd_export(struct ls_cli *cli, int argc, char **argv)
{
	struct files_out out = { .cli = cli };
	char job[LS_CONF_VALUE_MAX_BYTES], path[4096];
	int rc = ls_cli_job(cli, sizeof(job), job);
	bool whole;

	(void)argc;
	(void)argv;
	if (rc == 0)
		rc = ls_cli_job_path(job, "/export", sizeof(path), path);
	if (rc == 0 && cli->options.counters &&
		ls_cli_query(path, sizeof(path), "counters", "all") != 0)
		rc = LS_EXIT_USAGE;
	if (rc != 0)
		return rc;
	rc = files_export(cli, path, &out);
	whole = files_close(out.rows);
	whole = files_close(out.out) && whole;
	return whole || rc != LS_EXIT_OK ? rc : files_unwritten(cli);
}
