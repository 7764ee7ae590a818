/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/cli/cli.h"
#include "proto/base/text.h"
#include "proto/versions.h"
#include "web/cli/fetch.h"
#include "web/cli/term.h"
#include "web/api/query.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct ls_conf_option cli_options[] = {
#define LS_OPTION(field, name, type, dflt, min, max, unit, help, uses)             \
	{ name, LS_CONF_##type, offsetof(struct ls_cli_options, field), dflt, min, \
		max, unit, help, 0 },
#include "web/cli/options.def"
#undef LS_OPTION
};

#define CLI_OPTIONS (sizeof(cli_options) / sizeof(cli_options[0]))

/* Commands of each option. */
static const char *const cli_uses[] = {
#define LS_OPTION(field, name, type, dflt, min, max, unit, help, uses) uses,
#include "web/cli/options.def"
#undef LS_OPTION
};

static const struct ls_conf_program cli_program = {
	.name = "lockstep",
	.section = "cli",
	.libraries = LS_LIBRARIES,
	.summary = "Shows which worker slows a TPU job, since when, at what cost, why, "
		   "and what to do.",
	.usage = "lockstep COMMAND [OPTION]...",
	.options = cli_options,
	.option_count = CLI_OPTIONS,
	.allow_arguments = true,
};

struct cli_command {
	const char *name, *arguments;
	int least, most;
	const char *help;
	int (*run)(struct ls_cli *cli, int argc, char **argv);
};

static const struct cli_command cli_commands[] = {
#define LS_COMMAND(name, arguments, least, most, help) \
	{ #name, arguments, least, most, help, ls_cmd_##name },
#include "web/cli/commands.def"
#undef LS_COMMAND
};
#define LS_COMMANDS (sizeof(cli_commands) / sizeof(cli_commands[0]))

/* The program as one command sees it; without one: with what all of them take. */
struct cli_view {
	struct ls_conf_program program;
	struct ls_conf_option options[CLI_OPTIONS];
	char usage[128];
};

/* True if a list of words, parted by blanks, has this one; the empty list has all. */
static bool
cli_lists(const char *words, const char *word)
{
	size_t len = strlen(word);

	if (words[0] == '\0')
		return true;
	for (; len > 0 && words != NULL; words = strchr(words, ' ')) {
		words += *words == ' ';
		if (strncmp(words, word, len) == 0 &&
			(words[len] == '\0' || words[len] == ' '))
			return true;
	}
	return false;
}

static const struct ls_conf_program *
cli_view(struct cli_view *v, const struct cli_command *command)
{
	v->program = cli_program;
	v->program.options = v->options;
	for (size_t i = 0; i < CLI_OPTIONS; i++) {
		v->options[i] = cli_options[i];
		if (!cli_lists(cli_uses[i], command ? command->name : ""))
			v->options[i].flags |= LS_CONF_ELSEWHERE;
	}
	if (command != NULL) {
		(void)snprintf(v->usage, sizeof(v->usage),
			"lockstep %s %s%s[OPTION]...", command->name,
			command->arguments, command->arguments[0] != '\0' ? " " : "");
		v->program.usage = v->usage;
		v->program.summary = command->help;
	}
	return &v->program;
}

static const struct cli_command *
cli_command(const char *name)
{
	for (size_t i = 0; i < LS_COMMANDS; i++) {
		if (strcmp(name, cli_commands[i].name) == 0)
			return &cli_commands[i];
	}
	return NULL;
}

/* The same; if it is none, says so. */
static const struct cli_command *
cli_find(const char *name)
{
	const struct cli_command *command = cli_command(name);
	const char *names[LS_COMMANDS];
	const char *nearest;
	char safe[64];

	if (command)
		return command;
	for (size_t i = 0; i < LS_COMMANDS; i++)
		names[i] = cli_commands[i].name;
	nearest = ls_conf_nearest(name, names, LS_COMMANDS);
	(void)ls_text_escape(safe, sizeof(safe), name, strlen(name));
	(void)fprintf(stderr, "lockstep: no command '%s'%s%s%s; see lockstep help\n",
		safe, nearest ? ", did you mean '" : "", nearest ? nearest : "",
		nearest ? "'?" : "");
	return NULL;
}

/* For ls_conf_load: the view of the command, if it is one (main says that it is not). */
static const struct ls_conf_program *
cli_narrow(void *arg, const char *word)
{
	const struct cli_command *command = cli_command(word);

	return command ? cli_view(arg, command) : &cli_program;
}

int
ls_cmd_help(struct ls_cli *cli, int argc, char **argv)
{
	const struct cli_command *command = argc == 1 ? cli_find(argv[0]) : NULL;
	struct cli_view view;

	(void)cli;
	if (argc == 1 && command == NULL)
		return LS_EXIT_USAGE;
	ls_conf_help(cli_view(&view, command), stdout);
	if (command != NULL)
		return LS_EXIT_OK;
	(void)printf("\nCommands (lockstep help COMMAND prints the options of one):\n");
	for (size_t i = 0; i < LS_COMMANDS; i++)
		(void)printf("  %-9s%-10s %s\n", cli_commands[i].name,
			cli_commands[i].arguments, cli_commands[i].help);
	(void)printf(
		"\nExit status: 0 success, 1 finding open (--exit-code), 2 usage, 3 "
		"collector not reached, 4 denied,\n5 not found, 6 no data, or not all "
		"expected workers are judged (--exit-code).\n");
	return LS_EXIT_OK;
}

int
ls_cmd_version(struct ls_cli *cli, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	(void)printf(cli->json ? "{\"name\":\"lockstep\",\"version\":\"%s\"}\n"
			       : "lockstep %s\n",
		PACKAGE_VERSION);
	return LS_EXIT_OK;
}

/* --- asking --------------------------------------------------------------- */

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
	if (got->status == 401 || got->status == 403 || got->status == 421)
		return LS_EXIT_DENIED;
	if (got->status == 404)
		return LS_EXIT_UNKNOWN;
	return got->status < 500 ? LS_EXIT_USAGE : LS_EXIT_UNREACHABLE;
}

static int
cli_unreachable(struct ls_cli *cli, int rc)
{
	if (rc == -EACCES) {
		(void)fprintf(stderr,
			"lockstep: the certificate of %s is not accepted: %s\n  fix: give "
			"--ca-file the ca.pem that signed it, and --server a name that it has\n",
			ls_term_safe(cli->term, cli->options.server, ""),
			ls_fetch_why(cli->fetch));
		return LS_EXIT_DENIED;
	}
	(void)fprintf(stderr,
		"lockstep: no answer from %s%s%s\n  why: no collector runs there, or "
		"the address is wrong\n  fix: start lockstep-collector, or give "
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
		(void)fwrite(text, 1, len, stdout);
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

	return rc != 0 ? cli_unreachable(cli, rc) : cli_take(cli, &got, show, ret_body);
}

int
ls_cli_post(struct ls_cli *cli, const char *path, const char *json, json_t **ret_body)
{
	struct ls_fetched got = { 0 };
	int rc = ls_fetch_post(cli->fetch, path, json, &got);

	return rc != 0 ? cli_unreachable(cli, rc) : cli_take(cli, &got, true, ret_body);
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

/* --- start ---------------------------------------------------------------- */

/* -o and -f are short for --output and --file; what follows "--" is left alone. */
static void
cli_expand(int argc, char **argv)
{
	static char output[] = "--output", file[] = "--file", help[] = "--help";

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "-o") == 0)
			argv[i] = output;
		else if (strcmp(argv[i], "-f") == 0)
			argv[i] = file;
		else if (strcmp(argv[i], "-h") == 0)
			argv[i] = help;
	}
}

static bool
cli_needs_collector(const struct cli_command *command)
{
	return command->run != ls_cmd_replay && command->run != ls_cmd_whatif &&
		command->run != ls_cmd_version && command->run != ls_cmd_help &&
		command->run != ls_cmd_doctor && command->run != ls_cmd_keys;
}

static int
cli_open_fetch(struct ls_cli *cli)
{
	const struct ls_fetch_options o = { cli->options.server,
		cli->options.timeout_ns, cli->options.ca_file,
		cli->options.token_file };
	char text[LS_CONF_VALUE_MAX_BYTES + 128];
	int rc = ls_fetch_new(&o, &cli->fetch, text, sizeof(text));

	if (rc != 0)
		(void)fprintf(stderr, "lockstep: %s\n",
			ls_term_safe(cli->term, text, ""));
	return rc;
}

/* --check-config: the options alone are looked at. */
static int
cli_check(struct ls_cli *cli)
{
	cli->term = ls_term_new(cli->options.color);
	if (!cli->term)
		return LS_EXIT_UNREACHABLE;
	return cli_open_fetch(cli) == 0 ? LS_EXIT_OK : LS_EXIT_USAGE;
}

static int
cli_run(struct ls_cli *cli, const struct cli_command *command, int argc, char **argv)
{
	int rc;

	if (argc < command->least || argc > command->most) {
		(void)fprintf(stderr, "lockstep: usage: lockstep %s %s [OPTION]...\n",
			command->name, command->arguments);
		return LS_EXIT_USAGE;
	}
	cli->json = strcmp(cli->options.output, "json") == 0;
	cli->jsonl = strcmp(cli->options.output, "jsonl") == 0;
	cli->csv = strcmp(cli->options.output, "csv") == 0;
	if ((cli->jsonl || cli->csv) && command->run != ls_cmd_query &&
		command->run != ls_cmd_export) {
		(void)fprintf(stderr, "lockstep: -o %s is for query and export\n",
			cli->options.output);
		return LS_EXIT_USAGE;
	}
	cli->term = ls_term_new(cli->options.color);
	if (!cli->term)
		return LS_EXIT_UNREACHABLE;
	if (cli_needs_collector(command) && cli_open_fetch(cli) != 0)
		return LS_EXIT_USAGE;
	rc = command->run(cli, argc, argv);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		(void)fprintf(stderr, "lockstep: stdout: %s\n", strerror(errno));
		rc = rc == LS_EXIT_OK ? LS_EXIT_FOUND : rc;
	}
	return rc;
}

int
main(int argc, char **argv)
{
	struct ls_cli cli = { .json = false };
	enum ls_conf_action action = LS_CONF_RUN;
	char error[512] = "";
	const struct cli_command *command;
	struct cli_view view = { .program = cli_program };
	int left = 0, rc;

	cli_expand(argc, argv);
	if (argc > 1 && strcmp(argv[1], "--help") == 0)
		return ls_cmd_help(&cli, 0, NULL);
	view.program.narrow = cli_narrow;
	view.program.narrow_arg = &view;
	rc = ls_conf_load(&view.program, argc, argv, &cli.options, &action, &left,
		error, sizeof(error));
	if (rc != 0) {
		(void)fprintf(stderr, "lockstep: %s\n", error);
		return LS_EXIT_USAGE;
	}
	if (action == LS_CONF_EXIT)
		return LS_EXIT_OK;
	if (action == LS_CONF_CHECK) {
		rc = cli_check(&cli);
		goto out;
	}
	if (left < 2) {
		(void)fprintf(stderr,
			"lockstep: no command given; see lockstep help\n");
		return LS_EXIT_USAGE;
	}
	command = cli_find(argv[1]);
	if (!command)
		return LS_EXIT_USAGE;
	rc = cli_run(&cli, command, left - 2, argv + 2);
out:
	ls_fetch_free(cli.fetch);
	ls_term_free(cli.term);
	return rc;
}
