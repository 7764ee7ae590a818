/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/cli/cli.h"
#include "proto/base/text.h"
#include "proto/versions.h"
#include "web/cli/fetch.h"
#include "web/cli/term.h"
#include <errno.h>
#include <string.h>

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
