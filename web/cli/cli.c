/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/cli/cli.h"
#include "proto/base/text.h"
#include "web/api/query.h"
#include "web/cli/fetch.h"
#include "web/cli/term.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
ls_cli_query(char *path, size_t size, const char *name, const char *value)
{
	char encoded[3 * LS_CONF_VALUE_MAX_BYTES];
	size_t len = strlen(path);

	if (value[0] == '\0')
		return 0;
	if (ls_query_encode(value, sizeof(encoded), encoded) != 0 ||
		snprintf(path + len, size - len, "%c%s=%s",
			strchr(path, '?') ? '&' : '?', name,
			encoded) >= (int)(size - len)) {
		path[len] = '\0';
		return -LS_ELIMIT;
	}
	return 0;
}

int
ls_cli_limit(const struct ls_cli *cli, char *path, size_t size)
{
	char limit[24];

	(void)snprintf(limit, sizeof(limit), "%" PRId64, cli->options.limit);
	return ls_cli_query(path, size, "limit", limit);
}

int
ls_cli_severity(const char *word)
{
	static const char *const words[] = { "info", "warning", "critical" };

	for (int i = 0; word && i < 3; i++) {
		if (strcmp(word, words[i]) == 0)
			return i;
	}
	return -1;
}

int
ls_cli_refused(struct ls_cli *cli, const struct ls_fetched *got)
{
	json_t *problem = json_loadb(got->text, got->len, 0, NULL);
	const char *detail =
		ls_term_text(cli->term, problem, "detail", "no reason was given");

	(void)fprintf(stderr, "lockstep: the collector answers %d: %s\n", got->status,
		detail);
	json_decref(problem);
	if (got->status == 401)
		(void)fprintf(stderr,
			"  fix: give --token-file (or LOCKSTEP_TOKEN_FILE) a file with a token "
			"of this collector\n");
	if (got->status == 401 || got->status == 403 || got->status == 421 ||
		got->status == 429)
		return LS_EXIT_DENIED;
	if (got->status == 404)
		return LS_EXIT_UNKNOWN;
	return got->status < 500 ? LS_EXIT_USAGE : LS_EXIT_UNREACHABLE;
}

int
ls_cli_unreachable(struct ls_cli *cli, int rc)
{
	if (rc == -EACCES) {
		(void)fprintf(stderr,
			"lockstep: the certificate of %s is not accepted: %s\n  fix: give "
			"--ca-file the ca.pem that signed it, and --server a name that it has. If it is not "
			"valid yet, set the clocks. If it is expired or revoked, "
			"lockstep keys init makes a new one\n",
			ls_term_safe(cli->term, cli->options.server, ""),
			ls_fetch_why(cli->fetch));
		return LS_EXIT_DENIED;
	}
	(void)fprintf(stderr,
		"lockstep: no answer from %s%s%s\n  why: no collector runs there, or "
		"the address is wrong (https:// with --http-keys, else http://)\n  fix: start lockstep-collector, or give "
		"--server URL or LOCKSTEP_SERVER\n",
		ls_term_safe(cli->term, cli->options.server, ""),
		rc == -ENOTCONN ? "" : ": ", rc == -ENOTCONN ? "" : ls_err_text(rc));
	return LS_EXIT_UNREACHABLE;
}

/* Flags of jansson for standard output. */
static size_t
cli_json_flags(void)
{
	return JSON_REAL_PRECISION(15) |
		(isatty(STDOUT_FILENO) ? (size_t)JSON_ENSURE_ASCII : 0);
}

void
ls_cli_print(const char *text, size_t len)
{
	json_t *body;

	if (!isatty(STDOUT_FILENO)) {
		for (; len > 0; text++, len--) {
			/* U+0080 to U+009F control the terminal that reads the pipe. */
			if (len > 1 && text[0] == '\xc2' && (text[1] & 0xe0) == 0x80) {
				(void)printf("\\u%04x", text[1] & 0xff);
				text++;
				len--;
			} else {
				(void)putchar(*text);
			}
		}
		return;
	}
	body = json_loadb(text, len, 0, NULL);
	(void)json_dumpf(body, stdout, JSON_INDENT(1) | cli_json_flags());
	(void)printf("\n");
	json_decref(body);
}

void
ls_cli_print_line(const json_t *value)
{
	/* ferror tells */
	(void)json_dumpf(value, stdout, JSON_COMPACT | cli_json_flags());
	(void)printf("\n");
}

/* What becomes of an answer; frees its text. */
static int
cli_take(struct ls_cli *cli, struct ls_fetched *got, bool show, json_t **ret_body)
{
	int rc = LS_EXIT_OK;

	*ret_body =
		got->status == 200 ? json_loadb(got->text, got->len, 0, NULL) : NULL;
	if (got->status != 200) {
		rc = ls_cli_refused(cli, got);
	} else if (*ret_body == NULL) {
		(void)fprintf(stderr,
			"lockstep: the answer is not JSON; check that %s is "
			"a collector\n",
			ls_term_safe(cli->term, cli->options.server, ""));
		rc = LS_EXIT_UNREACHABLE;
	} else if (cli->json && show) {
		ls_cli_print(got->text, got->len);
	}
	free(got->text);
	return rc;
}

int
ls_cli_get(struct ls_cli *cli, const char *path, bool show, json_t **ret_body)
{
	struct ls_fetched got = { 0 };
	int rc = ls_fetch_get(cli->fetch, path, NULL, &got);

	return rc != 0 ? ls_cli_unreachable(cli, rc)
		       : cli_take(cli, &got, show, ret_body);
}

int
ls_cli_post(struct ls_cli *cli, const char *path, const char *json, json_t **ret_body)
{
	struct ls_fetched got = { 0 };
	int rc = ls_fetch_post(cli->fetch, path, json, &got);

	return rc != 0 ? ls_cli_unreachable(cli, rc)
		       : cli_take(cli, &got, true, ret_body);
}

int
ls_cli_job(struct ls_cli *cli, size_t size, char *ret_job)
{
	json_t *body = NULL;
	const json_t *items;
	const char *only;
	int rc;

	if (cli->options.job[0] != '\0') {
		(void)snprintf(ret_job, size, "%s", cli->options.job);
		return 0;
	}
	rc = ls_cli_get(cli, "/api/v1/jobs", false, &body);
	if (rc != 0)
		return rc;
	items = json_object_get(body, "items");
	only = ls_pick_text(json_array_get(items, 0), "id");
	if (json_array_size(items) == 1 && only) {
		(void)snprintf(ret_job, size, "%s", only);
	} else if (json_array_size(items) == 0) {
		(void)fprintf(stderr, "lockstep: no job has reported yet\n");
		rc = LS_EXIT_NO_DATA;
	} else {
		(void)fprintf(stderr, "lockstep: which job? give --job with one of:\n");
		for (size_t i = 0; i < json_array_size(items); i++)
			(void)fprintf(stderr, "  %s\n",
				ls_term_text(cli->term, json_array_get(items, i), "id",
					"?"));
		rc = LS_EXIT_USAGE;
	}
	json_decref(body);
	return rc;
}

int
ls_cli_segment(char *path, size_t size, const char *text)
{
	size_t len = strlen(path);

	if (text[0] != '\0' && ls_query_encode(text, size - len, path + len) == 0)
		return LS_EXIT_OK;
	(void)fprintf(stderr, "lockstep: a name is empty or too long\n");
	return LS_EXIT_USAGE;
}

/* The list's path, a name in it, and what follows. */
static int
cli_path(const char *list, const char *name, const char *rest, size_t size,
	char *ret_path)
{
	size_t len;
	int rc;

	(void)snprintf(ret_path, size, "%s", list);
	rc = ls_cli_segment(ret_path, size - strlen(rest), name);
	len = strlen(ret_path);
	if (rc == LS_EXIT_OK)
		(void)snprintf(ret_path + len, size - len, "%s", rest);
	return rc;
}

int
ls_cli_job_path(const char *job, const char *rest, size_t size, char *ret_path)
{
	return cli_path("/api/v1/jobs/", job, rest, size, ret_path);
}

int
ls_cli_host_path(const char *host, const char *rest, size_t size, char *ret_path)
{
	return cli_path("/api/v1/hosts/", host, rest, size, ret_path);
}

int
ls_cli_list(struct ls_cli *cli, const char *path, const struct ls_column *columns,
	const char *none, bool more)
{
	json_t *body = NULL;
	const json_t *items;
	int rc = ls_cli_get(cli, path, true, &body);

	if (rc != LS_EXIT_OK || cli->json)
		goto out;
	items = json_object_get(body, "items");
	ls_table_items(cli->term, items, columns);
	if (json_array_size(items) == 0)
		(void)fprintf(stderr, "lockstep: %s\n", none);
	else if (more && ls_pick_text(body, "next_cursor"))
		(void)fprintf(stderr, "lockstep: more rows exist; see --limit\n");
out:
	json_decref(body);
	return rc;
}
