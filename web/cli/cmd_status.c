/* SPDX-License-Identifier: Apache-2.0 */
/* lockstep status and lockstep jobs. */
#include "config.h"
#include "web/cli/cli.h"
#include "web/cli/show.h"
#include "web/cli/term.h"
#include <string.h>

/* At most 15 lines a job, so that a screen of a phone holds it. */
#define LS_STATUS_FINDINGS 6
#define STATUS_LIARS 3u

static void
status_head(struct ls_term *t, const json_t *job)
{
	double slices = 0, step = 0, without = 0;
	bool known = ls_pick_number(job, "step_time_s", &step) &&
		ls_pick_number(job, "step_time_without_s", &without);

	(void)printf("%s%s   %s slice%s  %s hosts/%s chips   step %s   %s",
		ls_term_paint(t, "bold", ls_term_text(t, job, "id", "?")),
		json_is_true(json_object_get(job, "simulated")) ? " (simulated)" : "",
		ls_term_whole(t, job, "slices", "?"),
		ls_pick_number(job, "slices", &slices) && slices < 2 ? "" : "s",
		ls_term_whole(t, job, "hosts", "?"),
		ls_term_whole(t, job, "chips", "?"),
		ls_term_whole(t, job, "step", "none yet"),
		ls_term_seconds(t, job, "step_time_s", "step time not measured"));
	if (known && step - without >= 0.005 * step)
		(void)printf("  (could be %s)",
			ls_term_seconds(t, job, "step_time_without_s", "?"));
	(void)printf("   %s\n", ls_term_text(t, job, "state", "state unknown"));
}

static void
status_phases(struct ls_term *t, const json_t *job)
{
	const json_t *phases = ls_pick(job, "phases");
	const char *name;
	json_t *share;
	bool any = false;

	json_object_foreach((json_t *)phases, name, share)
	{
		if (json_number_value(share) < 0.005)
			continue;
		(void)printf("%s%s %.0f%%", any ? "  " : "  phases   ",
			ls_term_safe(t, name, ""), json_number_value(share) * 100);
		any = true;
	}
	if (any)
		(void)printf("\n");
}

static void
status_health(struct ls_term *t, const json_t *job)
{
	(void)printf("  workers  %s of %s reporting",
		ls_term_whole(t, job, "data_quality.workers_reporting", "?"),
		ls_term_whole(t, job, "workers_expected", "?"));
	(void)printf(", lag %s, clock error %s",
		ls_term_seconds(t, job, "data_quality.lag_s", "not measured"),
		ls_term_value(t, job, "data_quality.clock_err_ms", "ms", 0,
			"not measured"));
	(void)printf(", %s records lost, %s steps closed short",
		ls_term_whole(t, job, "data_quality.gaps", "?"),
		ls_term_whole(t, job, "data_quality.short_steps", "?"));
	if (json_integer_value(ls_pick(job, "data_quality.apart_steps")) > 0)
		(void)printf(", %s without a common barrier",
			ls_term_whole(t, job, "data_quality.apart_steps", "?"));
	(void)putchar('\n');
}

/* Hosts that say what cannot be, and why: at most STATUS_LIARS of them. */
static void
status_liars(struct ls_term *t, const json_t *job)
{
	const json_t *hosts = ls_pick(job, "data_quality.not_believed.hosts"), *host;
	const char *reason;
	json_t *n;
	size_t i;

	json_array_foreach(hosts, i, host)
	{
		const char *between = ": ";

		if (i == STATUS_LIARS) {
			(void)printf("  data     and %zu hosts more\n",
				json_array_size(hosts) - i);
			break;
		}
		(void)printf("  data     %s reports impossible values",
			ls_term_text(t, host, "host", "?"));
		json_object_foreach(json_object_get(host, "reasons"), reason, n)
		{
			(void)printf("%s%s %.0f", between, ls_term_safe(t, reason, ""),
				json_number_value(n));
			between = ", ";
		}
		(void)printf("\n");
	}
}

/* What workers say of each other that cannot all be true. */
static void
status_contradictions(struct ls_term *t, const json_t *job)
{
	const json_t *lines = ls_pick(job, "data_quality.contradictions"), *line;
	size_t i;

	json_array_foreach(lines, i, line)(void) printf("  data     warning: %s\n",
		ls_term_safe(t, json_string_value(line), "?"));
}

/* The worst severity that the counts of a job tell. */
static int
status_worst(const json_t *job)
{
	double n = 0;

	if (ls_pick_number(job, "findings.critical", &n) && n > 0)
		return ls_cli_severity("critical");
	if (ls_pick_number(job, "findings.warning", &n) && n > 0)
		return ls_cli_severity("warning");
	return ls_pick_number(job, "findings.info", &n) && n > 0
		? ls_cli_severity("info")
		: -1;
}

/* One job with its open findings; *worst is raised to the worst severity seen. */
static int
status_job(struct ls_cli *cli, const json_t *job, int *worst)
{
	char path[2048] = "/api/v1/findings?status=open";
	const char *id = ls_pick_text(job, "id");
	json_t *body = NULL;
	const json_t *items;
	int rc = ls_cli_query(path, sizeof(path), "job", id ? id : "");

	if (rc == 0)
		rc = ls_cli_get(cli, path, false, &body);
	if (rc != 0)
		return rc;
	items = json_object_get(body, "items");
	status_head(cli->term, job);
	ls_show_findings(cli->term, items, LS_STATUS_FINDINGS, worst);
	if (json_array_size(items) == 0)
		ls_show_none(cli->term, job);
	else if (ls_pick_text(job, "judged.why"))
		(void)printf("  judged   %s\n",
			ls_term_text(cli->term, job, "judged.why", ""));
	if (status_worst(job) > *worst)
		*worst = status_worst(job);
	ls_show_suspects(cli->term, job);
	status_phases(cli->term, job);
	status_health(cli->term, job);
	status_contradictions(cli->term, job);
	status_liars(cli->term, job);
	if (ls_pick_text(job, "top_finding"))
		(void)printf("next: lockstep explain %s\n",
			ls_term_text(cli->term, job, "top_finding", ""));
	json_decref(body);
	return 0;
}

/* Is the host one of the job's? Returns an exit code. */
static int
status_has_host(struct ls_cli *cli, const char *job, const char *host, bool *ret_has)
{
	char path[4096];
	json_t *body = NULL;
	int rc = ls_cli_job_path(job, "/hosts?limit=1", sizeof(path), path);

	*ret_has = false;
	if (rc == 0)
		rc = ls_cli_query(path, sizeof(path), "host", host);
	if (rc == 0)
		rc = ls_cli_get(cli, path, false, &body);
	*ret_has = json_integer_value(json_object_get(body, "count")) > 0;
	json_decref(body);
	return rc;
}

/* Are all jobs that are asked for judged in full? Says of each that is not why. */
static int
status_judged(struct ls_cli *cli, const json_t *jobs, const char *name,
	const char *host)
{
	int rc = LS_EXIT_OK;
	bool any = false, has = true, all;

	for (size_t i = 0; i < json_array_size(jobs); i++) {
		const json_t *job = json_array_get(jobs, i);
		const char *id = ls_pick_text(job, "id");

		if (id == NULL || (name[0] != '\0' && strcmp(id, name) != 0))
			continue;
		if (host[0] != '\0') {
			int asked = status_has_host(cli, id, host, &has);

			if (asked != 0)
				return asked;
		}
		if (!has)
			continue;
		any = true;
		all = json_is_true(ls_pick(job, "judged.all"));
		if (all && !ls_pick_text(job, "judged.why"))
			continue;
		(void)fprintf(stderr, "lockstep: %s%s: %s%s\n",
			ls_term_text(cli->term, job, "id", "?"),
			all ? "" : " is not judged",
			ls_term_text(cli->term, job, "judged.why", "unknown"),
			all ? "; set LOCKSTEP_WORLD" : "");
		rc = LS_EXIT_NO_DATA;
	}
	if (any)
		return rc;
	if (json_array_size(jobs) == 0) {
		(void)fprintf(stderr, "lockstep: no job has reported yet\n");
		return LS_EXIT_NO_DATA;
	}
	(void)fprintf(stderr, "lockstep: no such %s\n",
		name[0] != '\0' ? "job" : "host in any job");
	return LS_EXIT_UNKNOWN;
}

int
ls_cli_verdict(struct ls_cli *cli, const char *job, const char *host, int worst)
{
	json_t *body = NULL;
	int rc;

	if (!cli->options.exit_code)
		return LS_EXIT_OK;
	if (worst >= ls_cli_severity(cli->options.fail_on))
		return LS_EXIT_FOUND;
	rc = ls_cli_get(cli, "/api/v1/jobs", false, &body);
	if (rc == 0)
		rc = status_judged(cli, json_object_get(body, "items"), job, host);
	if (rc == LS_EXIT_OK && ls_pick(body, "next_cursor") != NULL) {
		(void)fprintf(stderr,
			"lockstep: there are more jobs: not all are judged\n");
		rc = LS_EXIT_NO_DATA;
	}
	json_decref(body);
	return rc;
}

static int
status_one(struct ls_cli *cli, const char *name)
{
	char path[2048];
	json_t *job = NULL;
	int worst = -1, rc;

	rc = ls_cli_job_path(name, "", sizeof(path), path);
	if (rc == 0)
		rc = ls_cli_get(cli, path, true, &job);
	if (rc == 0 && cli->json)
		worst = status_worst(job);
	else if (rc == 0)
		rc = status_job(cli, job, &worst);
	json_decref(job);
	return rc != 0 ? rc : ls_cli_verdict(cli, name, "", worst);
}

int
ls_cmd_status(struct ls_cli *cli, int argc, char **argv)
{
	const char *name = argc > 0 ? argv[0] : cli->options.job;
	json_t *body = NULL;
	const json_t *items;
	int worst = -1, rc;

	if (name[0] != '\0')
		return status_one(cli, name);
	rc = ls_cli_get(cli, "/api/v1/jobs", true, &body);
	items = json_object_get(body, "items");
	for (size_t i = 0; rc == 0 && i < json_array_size(items); i++) {
		const json_t *job = json_array_get(items, i);
		int one = status_worst(job);

		if (i > 0 && !cli->json)
			(void)printf("\n");
		if (!cli->json)
			rc = status_job(cli, job, &worst);
		else if (one > worst)
			worst = one;
	}
	if (rc == 0 && json_array_size(items) == 0 && !cli->json) {
		(void)fprintf(stderr, "lockstep: no job has reported yet\n");
		rc = LS_EXIT_NO_DATA;
	}
	json_decref(body);
	return rc != 0 ? rc : ls_cli_verdict(cli, "", "", worst);
}

/* What its workers contradict each other about, else what its judgement lacks. */
static const char *
jobs_note(struct ls_term *t, const json_t *job, const char *path, const char *dflt)
{
	const json_t *line = json_array_get(ls_pick(job, path), 0);

	return line != NULL ? ls_term_safe(t, json_string_value(line), dflt)
			    : ls_term_text(t, job, "judged.why", dflt);
}

static const struct ls_column jobs_columns[] = {
	{ "JOB", ls_term_text, "id", "?" },
	{ "STATE", ls_term_text, "state", "?" },
	{ ">WORKERS", ls_term_whole, "workers", "-" },
	{ ">CHIPS", ls_term_whole, "chips", "-" },
	{ ">LOST", ls_term_chips, "chips_lost", "-" },
	{ ">STEP", ls_term_whole, "step", "-" },
	{ ">STEP TIME", ls_term_seconds, "step_time_s", "-" },
	{ ">COULD BE", ls_term_seconds, "step_time_without_s", "-" },
	{ ">CRIT", ls_term_whole, "findings.critical", "-" },
	{ ">WARN", ls_term_whole, "findings.warning", "-" },
	{ "TOP", ls_term_text, "top_finding", "-" },
	{ "NOTE", jobs_note, "data_quality.contradictions", "" },
	{ NULL, NULL, NULL, NULL },
};

int
ls_cmd_jobs(struct ls_cli *cli, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return ls_cli_list(cli, "/api/v1/jobs", jobs_columns, "no job has reported yet",
		false);
}
