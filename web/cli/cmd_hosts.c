/* SPDX-License-Identifier: Apache-2.0 */
/* lockstep hosts HOST, lockstep series and lockstep zoom: one host. */
#include "config.h"
#include "web/cli/cli.h"
#include "web/cli/term.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The host's monotonic clock against the collector's. */
static void
host_clock(struct ls_term *t, const json_t *h)
{
	char drift[40] = "?";
	double v;

	if (!ls_pick(h, "clock")) {
		(void)printf("clock         not known yet\n");
		return;
	}
	if (ls_pick_number(h, "clock.drift_ppm", &v))
		(void)snprintf(drift, sizeof(drift), "%.3g", v);
	(void)printf(
		"clock         %s from the collector's, drift %s ppm, known to %s\n",
		ls_term_seconds(t, h, "clock.offset_s", "?"), drift,
		ls_term_seconds(t, h, "clock.uncertainty_s", "?"));
}

static void
host_agent(struct ls_term *t, const json_t *h)
{
	double slowed = 1, delayed = 0;

	if (!ls_pick(h, "agent")) {
		(void)printf(
			"agent         has not reported since the collector started\n");
		return;
	}
	(void)ls_pick_number(h, "agent.slowed_factor", &slowed);
	(void)printf("agent         %s", ls_term_text(t, h, "agent.version", "?"));
	if (slowed > 1)
		(void)printf(", samples %.3g times less often to stay in its budget",
			slowed);
	(void)ls_pick_number(h, "agent.delayed_answers", &delayed);
	if (delayed > 0)
		(void)printf(", exceeded its byte rate: %.0f answers were delayed",
			delayed);
	(void)printf("\nwaiting       %s items, %s of chunks\n",
		ls_term_whole(t, h, "agent.waiting_items", "?"),
		ls_term_whole(t, h, "agent.waiting_chunk_items", "?"));
	(void)printf("lost          %s step records, %s values\n",
		ls_term_whole(t, h, "agent.lost_records", "?"),
		ls_term_whole(t, h, "agent.lost_samples", "?"));
}

static void
host_identity(struct ls_term *t, const json_t *h)
{
	json_t *all = json_object_get(h, "identity");
	struct ls_table *table;
	const char *key;
	json_t *field;

	if (json_object_size(all) == 0) {
		(void)printf("\nThe identity of this host is not known yet.\n");
		return;
	}
	(void)printf("\n");
	table = ls_table_new("FIELD|VALUE|KNOWN FROM");
	json_object_foreach(all, key, field)
	{
		ls_table_add(table, ls_term_safe(t, key, ""));
		ls_table_add(table, ls_term_text(t, field, "value", "?"));
		ls_table_add(table, ls_term_text(t, field, "source", "?"));
	}
	ls_table_print(table);
}

static void
host_show(struct ls_term *t, const json_t *h)
{
	(void)printf("host          %s\n", ls_term_text(t, h, "host", "?"));
	(void)printf("last seen     %s\n", ls_term_time(t, h, "last_seen_at", true));
	host_agent(t, h);
	host_clock(t, h);
	if (ls_pick(h, "zoom_until_at"))
		(void)printf("zoomed until  %s\n",
			ls_term_time(t, h, "zoom_until_at", true));
	host_identity(t, h);
}

int
ls_cli_host(struct ls_cli *cli, const char *host)
{
	json_t *h = NULL;
	char path[1024];
	int rc = ls_cli_host_path(host, "", sizeof(path), path);

	if (rc == LS_EXIT_OK)
		rc = ls_cli_get(cli, path, true, &h);
	if (rc == LS_EXIT_OK && !cli->json)
		host_show(cli->term, h);
	json_decref(h);
	return rc;
}

/* --- series --------------------------------------------------------------- */

void
ls_cli_series(const json_t *series, size_t size, char *ret_text)
{
	const char *name = ls_pick_text(series, "name"), *key, *between = "{";
	size_t len;
	json_t *v;

	(void)snprintf(ret_text, size, "%s", name ? name : "?");
	json_object_foreach(json_object_get(series, "labels"), key, v)
	{
		const char *value = json_string_value(v);

		len = strlen(ret_text);
		(void)snprintf(ret_text + len, size - len, "%s%s=\"%s\"", between, key,
			value ? value : "");
		between = ",";
	}
	len = strlen(ret_text);
	if (between[0] == ',')
		(void)snprintf(ret_text + len, size - len, "}");
}

static const char *
series_name(struct ls_term *t, const json_t *v, const char *path, const char *dflt)
{
	char text[LS_TERM_TEXT_MAX_BYTES / 4];

	(void)path;
	ls_cli_series(v, sizeof(text), text);
	return ls_term_safe(t, text, dflt);
}

static const char *
series_value(struct ls_term *t, const json_t *v, const char *path, const char *dflt)
{
	double n = 0;

	return ls_pick_number(v, path, &n) ? ls_term_format(t, "%.15g", n) : dflt;
}

static const char *
series_live(struct ls_term *t, const json_t *v, const char *path, const char *dflt)
{
	(void)t;
	return json_is_true(json_object_get(v, path)) ? "live" : dflt;
}

static const struct ls_column series_columns[] = {
	{ "SERIES", series_name, "", "?" },
	{ ">VALUE", series_value, "value", "not measured" },
	{ "UNIT", ls_term_text, "unit", "" },
	{ "TIME", ls_term_clock, "t", "" },
	{ "GROUP", ls_term_text, "group", "?" },
	{ "FROM", series_live, "live", "stored" },
	{ NULL, NULL, NULL, NULL },
};

int
ls_cmd_series(struct ls_cli *cli, int argc, char **argv)
{
	char path[1024];
	int rc = ls_cli_host_path(argv[0], "/series", sizeof(path), path);

	(void)argc;
	if (rc == LS_EXIT_OK && ls_cli_limit(cli, path, sizeof(path)) != 0)
		rc = LS_EXIT_USAGE;
	return rc != LS_EXIT_OK ? rc
				: ls_cli_list(cli, path, series_columns,
					  "no series of this host is known yet", true);
}

/* --- zoom ----------------------------------------------------------------- */

int
ls_cmd_zoom(struct ls_cli *cli, int argc, char **argv)
{
	json_t *body = NULL;
	char path[1024], json[64];
	int rc = ls_cli_host_path(argv[0], "/zoom", sizeof(path), path);

	(void)argc;
	(void)snprintf(json, sizeof(json), "{\"seconds\":%" PRIu64 "}",
		cli->options.for_ns / 1000000000u);
	if (rc == LS_EXIT_OK)
		rc = ls_cli_post(cli, path, json, &body);
	if (rc == LS_EXIT_OK && !cli->json)
		(void)printf(
			"%s sends every series live until %s: lockstep series %s\n",
			ls_term_text(cli->term, body, "host", "?"),
			ls_term_time(cli->term, body, "zoom_until_at", true),
			ls_term_quote(cli->term, argv[0]));
	json_decref(body);
	return rc;
}
