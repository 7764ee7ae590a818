/* SPDX-License-Identifier: Apache-2.0 */
/* lockstep doctor: the agent's checks; without an agent those that can be made without
 * it. */
#include "config.h"
#include "agent/face/checks.h"
#include "agent/collect/doctor.h"
#include "agent/steps/source_step.h"
#include "web/cli/cli.h"
#include "web/cli/fetch.h"
#include "web/cli/term.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DOCTOR_PATH "/api/v1/doctor"

/* GETs from a server, which gets the token if it is the collector; the errors of
 * fetch.h. */
static int
doctor_fetch(const struct ls_cli *cli, const char *server, const char *path,
	struct ls_fetched *ret_got)
{
	struct ls_fetch *fetch = NULL;
	const struct ls_fetch_options o = { server, cli->options.timeout_ns,
		cli->options.ca_file,
		server == cli->options.server ? cli->options.token_file : "" };
	char text[LS_CONF_VALUE_MAX_BYTES + 128]; /* reported as "no answer" */
	int rc = ls_fetch_new(&o, &fetch, text, sizeof(text));

	if (rc == 0)
		rc = ls_fetch_get(fetch, path, NULL, ret_got);
	ls_fetch_free(fetch);
	return rc;
}

static void
doctor_head(struct ls_term *t, const json_t *body)
{
	double cpu = 0, rss = 0, up = 0;

	(void)printf("agent on %s, version %s",
		ls_term_text(t, body, "agent.host", "?"),
		ls_term_text(t, body, "agent.version", "?"));
	if (ls_pick_number(body, "agent.uptime_s", &up))
		(void)printf(", up %s", ls_term_span(t, up));
	if (ls_pick_number(body, "agent.resident_bytes", &rss))
		(void)printf(", %.1f MiB", rss / 1048576);
	if (ls_pick_number(body, "agent.cpu_ratio", &cpu))
		(void)printf(", %.3f %% of a core", cpu * 100);
	(void)printf("\n");
}

static int
doctor_verdict(const struct ls_doctor *d)
{
	return ls_doctor_count(d, LS_DOCTOR_FAIL) > 0 ? LS_EXIT_FOUND : LS_EXIT_OK;
}

/* Whether ls_term_paint would paint. */
static bool
doctor_color(struct ls_term *t)
{
	return strcmp(ls_term_paint(t, "bold", "x"), "x") != 0;
}

/* What workers of jobs contradict each other about, by the collector. */
static void
doctor_check_jobs(struct ls_cli *cli, struct ls_doctor *d)
{
	struct ls_fetched got = { 0 };
	const json_t *job, *line;
	json_t *body;
	size_t i, k;

	if (doctor_fetch(cli, cli->options.server, "/api/v1/jobs", &got) != 0)
		return;
	body = json_loadb(got.text, got.len, 0, NULL);
	json_array_foreach(json_object_get(body, "items"), i, job)
	{
		json_array_foreach(ls_pick(job, "data_quality.contradictions"), k, line)
		{
			if (json_is_string(line) && ls_pick_text(job, "id") != NULL)
				ls_doctor_add(d, LS_DOCTOR_WARN, "job",
					ls_pick_text(job, "id"),
					json_string_value(line), "");
		}
	}
	json_decref(body);
	free(got.text);
}

/* What the agent says; -LS_EPARSE if it is no agent that answers. */
static int
doctor_of_agent(struct ls_cli *cli, const struct ls_fetched *got, struct ls_doctor *d)
{
	json_t *body = json_loadb(got->text, got->len, 0, NULL);
	int rc = got->status == 200 ? ls_doctor_parse(body, d) : -LS_EPARSE;

	if (rc == 0 && cli->json) {
		ls_cli_print(got->text, got->len);
	} else if (rc == 0) {
		doctor_check_jobs(cli, d);
		doctor_head(cli->term, body);
		ls_doctor_print(d, doctor_color(cli->term), stdout);
	}
	json_decref(body);
	return rc;
}

static void
doctor_check_collector(struct ls_cli *cli, struct ls_doctor *d)
{
	struct ls_fetched got = { 0 };
	int rc = doctor_fetch(cli, cli->options.server, "/healthz", &got);

	if (rc == 0 && got.status == 200)
		ls_doctor_add(d, LS_DOCTOR_OK, "collector", cli->options.server,
			"answers", "");
	else
		ls_doctor_add(d, LS_DOCTOR_WARN, "collector", cli->options.server,
			"does not answer",
			"start lockstep-collector, or give --server URL or LOCKSTEP_SERVER");
	free(got.text);
}

/* No agent: says so first, then what can be seen without one. */
static int
doctor_alone(struct ls_cli *cli, const char *why, struct ls_doctor *d)
{
	json_t *object;

	memset(d, 0, sizeof(*d));
	ls_doctor_add(d, LS_DOCTOR_FAIL, "agent", cli->options.agent, why,
		"systemctl start lockstep-agent, or give --agent URL or LOCKSTEP_AGENT; to see why "
		"it would not start: lockstep-agent --doctor");
	ls_source_step_tell_dir(cli->options.steps_dir, d);
	ls_checks_clock(d);
	doctor_check_collector(cli, d);
	doctor_check_jobs(cli, d);
	if (!cli->json) {
		ls_doctor_print(d, doctor_color(cli->term), stdout);
		return doctor_verdict(d);
	}
	object = ls_doctor_json(d);
	if (object && json_dumpf(object, stdout, JSON_COMPACT) == 0)
		(void)printf("\n");
	json_decref(object);
	return doctor_verdict(d);
}

int
ls_cmd_doctor(struct ls_cli *cli, int argc, char **argv)
{
	struct ls_doctor *d = calloc(1, sizeof(*d));
	struct ls_fetched got = { 0 };
	int rc, status;

	(void)argc;
	(void)argv;
	rc = d ? doctor_fetch(cli, cli->options.agent, DOCTOR_PATH, &got) : -ENOMEM;
	if (rc == -LS_EPARSE) {
		(void)fprintf(stderr,
			"lockstep: --agent must be http://HOST:PORT, not %s\n",
			ls_term_safe(cli->term, cli->options.agent, ""));
		status = LS_EXIT_USAGE;
	} else if (!d) {
		(void)fprintf(stderr, "lockstep: %s\n", ls_err_text(rc));
		status = LS_EXIT_FOUND;
	} else if (rc != 0) {
		status = doctor_alone(cli, "no agent answers at this address", d);
	} else if (doctor_of_agent(cli, &got, d) != 0) {
		status = doctor_alone(cli,
			"the server at this address is not a lockstep-agent", d);
	} else {
		status = doctor_verdict(d);
	}
	free(got.text);
	free(d);
	return status;
}
