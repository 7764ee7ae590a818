/* SPDX-License-Identifier: Apache-2.0 */
/* lockstep findings and lockstep explain. */
#include "config.h"
#include "web/cli/cli.h"
#include "proto/base/clock.h"
#include "web/cli/show.h"
#include "web/cli/term.h"
#include <string.h>
#include <time.h>

#define LS_FINDINGS_POLL_NS 500000000l

static void
findings_pause(void)
{
	struct timespec pause = { 0, LS_FINDINGS_POLL_NS };

	(void)nanosleep(&pause,
		NULL); /* a signal may cut it short: Ctrl-C ends the program anyway */
}

/*
 * The query of the options; `filter`: with the severity, which the API takes as that
 * one alone.
 */
static int
findings_path(struct ls_cli *cli, bool filter, char *path, size_t size)
{
	const struct ls_cli_options *o = &cli->options;
	bool all = strcmp(o->status, "all") == 0;

	(void)snprintf(path, size, "/api/v1/findings");
	if (ls_cli_query(path, size, "job", o->job) == 0 &&
		ls_cli_query(path, size, "host", o->host) == 0 &&
		ls_cli_query(path, size, "status", all ? "" : o->status) == 0 &&
		ls_cli_query(path, size, "severity", filter ? o->severity : "") == 0 &&
		ls_cli_query(path, size, "kind", o->kind) == 0 &&
		ls_cli_limit(cli, path, size) == 0)
		return 0;
	(void)fprintf(stderr, "lockstep: a filter is too long\n");
	return LS_EXIT_USAGE;
}

static int
findings_worst(const json_t *items)
{
	int worst = -1;

	for (size_t i = 0; i < json_array_size(items); i++) {
		int s = ls_cli_severity(
			ls_pick_text(json_array_get(items, i), "severity"));

		if (s > worst)
			worst = s;
	}
	return worst;
}

/*
 * Says of each job, or of the one asked for, how much was judged without finding
 * anything.
 */
static int
findings_none(struct ls_cli *cli)
{
	const struct ls_cli_options *o = &cli->options;
	bool filtered = o->host[0] || o->severity[0] || o->kind[0] ||
		strcmp(o->status, "open") != 0;
	json_t *body = NULL;
	const json_t *items;
	int rc, shown = 0;

	if (filtered) {
		(void)printf("no matching finding\n");
		return LS_EXIT_OK;
	}
	rc = ls_cli_get(cli, "/api/v1/jobs", false, &body);
	if (rc != 0)
		return rc;
	items = json_object_get(body, "items");
	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *job = json_array_get(items, i);
		const char *id = ls_pick_text(job, "id");

		if (o->job[0] != '\0' && (!id || strcmp(id, o->job) != 0))
			continue;
		(void)printf("%s\n", ls_term_text(cli->term, job, "id", "?"));
		ls_show_none(cli->term, job);
		ls_show_suspects(cli->term, job);
		shown++;
	}
	json_decref(body);
	if (shown > 0)
		return LS_EXIT_OK;
	(void)fprintf(stderr,
		o->job[0] ? "lockstep: no such job\n"
			  : "lockstep: no job has reported yet\n");
	return o->job[0] ? LS_EXIT_UNKNOWN : LS_EXIT_NO_DATA;
}

static int
findings_list(struct ls_cli *cli)
{
	char path[4096];
	json_t *body = NULL;
	const json_t *items;
	int worst = -1;
	int rc = findings_path(cli, true, path, sizeof(path));

	if (rc == 0)
		rc = ls_cli_get(cli, path, true, &body);
	items = json_object_get(body, "items");
	if (rc == 0 && cli->json) {
		worst = findings_worst(items);
	} else if (rc == 0) {
		ls_show_findings(cli->term, items, LS_PAGE_MAX, &worst);
		if (json_array_size(items) == 0)
			rc = findings_none(cli);
		if (ls_pick(body, "next_cursor"))
			(void)fprintf(stderr,
				"lockstep: older findings exist; see --limit\n");
	}
	if (rc == 0 && cli->options.exit_code && ls_pick(body, "next_cursor") != NULL &&
		worst < ls_cli_severity(cli->options.fail_on))
		rc = LS_EXIT_NO_DATA; /* one that is not listed may be worse */
	json_decref(body);
	return rc != 0
		? rc
		: ls_cli_verdict(cli, cli->options.job, cli->options.host, worst);
}

/*
 * Prints the findings at or above the severity asked for whose ids are not in `seen`, or that were reopened since;
 * counts them.
 */
static size_t
findings_fresh(struct ls_cli *cli, const json_t *items, json_t *seen)
{
	int least = ls_cli_severity(cli->options.severity);
	size_t fresh = 0;

	for (size_t i = json_array_size(items); i > 0; i--) { /* oldest first */
		const json_t *f = json_array_get(items, i - 1);
		const char *id = ls_pick_text(f, "id");

		json_int_t reopened =
			json_integer_value(ls_pick(f, "persistence.reopened"));
		const json_t *before = id ? json_object_get(seen, id) : NULL;

		if (!id || (before && reopened <= json_integer_value(before)) ||
			ls_cli_severity(ls_pick_text(f, "severity")) < least)
			continue;
		(void)json_object_set_new(seen, id, json_integer(reopened));
		if (cli->json) {
			ls_cli_print_line(f);
		} else {
			ls_show_finding(cli->term, f);
		}
		fresh++;
	}
	(void)fflush(stdout);
	return fresh;
}

/*
 * --watch: each new finding for ever; --wait: until there is one, or the time is over.
 */
static int
findings_poll(struct ls_cli *cli)
{
	uint64_t end_ns = ls_clock_mono_ns() + cli->options.wait_ns;
	json_t *seen = json_object();
	char path[4096];
	int rc = findings_path(cli, false, path, sizeof(path));

	while (rc == 0) {
		json_t *body = NULL;
		size_t fresh;

		rc = ls_cli_get(cli, path, false, &body);
		/* A collector that starts or restarts meanwhile is waited for too. */
		if (rc == LS_EXIT_UNREACHABLE &&
			(cli->options.watch || ls_clock_mono_ns() < end_ns))
			rc = 0;
		fresh = findings_fresh(cli, json_object_get(body, "items"), seen);
		json_decref(body);
		if (rc != 0 || (fresh > 0 && !cli->options.watch))
			break;
		if (!cli->options.watch && ls_clock_mono_ns() >= end_ns) {
			(void)fprintf(stderr,
				"lockstep: no such finding within --wait\n");
			rc = LS_EXIT_NO_DATA;
			break;
		}
		findings_pause();
	}
	json_decref(seen);
	return rc;
}

int
ls_cmd_findings(struct ls_cli *cli, int argc, char **argv)
{
	const char *severity = cli->options.severity;

	(void)argc;
	(void)argv;
	if (severity[0] != '\0' && ls_cli_severity(severity) < 0) {
		(void)fprintf(stderr,
			"lockstep: --severity must be critical, warning or info\n");
		return LS_EXIT_USAGE;
	}
	if (cli->options.watch || cli->options.wait_ns > 0)
		return findings_poll(cli);
	return findings_list(cli);
}

int
ls_cmd_explain(struct ls_cli *cli, int argc, char **argv)
{
	char path[4096] = "/api/v1/findings/";
	json_t *body = NULL;
	int rc;

	(void)argc;
	/* As a segment of the path: encoded in the same way as a value of the query. */
	rc = ls_cli_segment(path, sizeof(path), argv[0]);
	if (rc == 0)
		rc = ls_cli_get(cli, path, true, &body);
	if (rc == LS_EXIT_UNKNOWN)
		(void)fprintf(stderr, "lockstep: see lockstep findings --status all\n");
	if (rc == 0 && !cli->json)
		ls_show_explanation(cli->term, body, cli->options.server);
	json_decref(body);
	return rc;
}
