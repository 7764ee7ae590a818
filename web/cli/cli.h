/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli - what the commands of `lockstep` share: options, terminal, exit codes.
 *
 * Data goes to stdout, words to stderr. Every string from outside is escaped before a
 * terminal sees it; commands to run are printed, never run.
 *
 * Owner:   the only thread.
 * Units:   as in web/README.md.
 * Errors:  exit codes below.
 * Limits:  LS_CLI_BODY_MAX_BYTES an answer; LS_TERM_TEXT_MAX_BYTES a string shown.
 */
#ifndef LS_WEB_CLI_CLI_H
#define LS_WEB_CLI_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "proto/base/conf.h"
#include "web/cli/term.h"

enum ls_exit {
	LS_EXIT_OK = 0,
	/* with --exit-code; replay: the file cannot be used; doctor: a check failed */
	LS_EXIT_FOUND = 1,
	LS_EXIT_USAGE = 2,
	LS_EXIT_UNREACHABLE = 3,
	LS_EXIT_DENIED = 4,
	LS_EXIT_UNKNOWN = 5, /* no such job or finding */
	/* no data, not all expected workers are judged, or --wait was in vain */
	LS_EXIT_NO_DATA = 6
};

struct ls_cli_options {
	char server[LS_CONF_VALUE_MAX_BYTES], output[LS_CONF_VALUE_MAX_BYTES];
	char color[LS_CONF_VALUE_MAX_BYTES], job[LS_CONF_VALUE_MAX_BYTES];
	char host[LS_CONF_VALUE_MAX_BYTES], severity[LS_CONF_VALUE_MAX_BYTES];
	char status[LS_CONF_VALUE_MAX_BYTES], kind[LS_CONF_VALUE_MAX_BYTES];
	char steps[LS_CONF_VALUE_MAX_BYTES], file[LS_CONF_VALUE_MAX_BYTES];
	char fail_on[LS_CONF_VALUE_MAX_BYTES];
	char from[LS_CONF_VALUE_MAX_BYTES], to[LS_CONF_VALUE_MAX_BYTES];
	char step[LS_CONF_VALUE_MAX_BYTES], agg[LS_CONF_VALUE_MAX_BYTES];
	char peers[LS_CONF_VALUE_MAX_BYTES];
	char agent[LS_CONF_VALUE_MAX_BYTES], steps_dir[LS_CONF_VALUE_MAX_BYTES];
	char meta[LS_CONF_VALUE_MAX_BYTES];
	char ca_file[LS_CONF_VALUE_MAX_BYTES], token_file[LS_CONF_VALUE_MAX_BYTES];
	int64_t limit, top;
	uint64_t wait_ns, timeout_ns, for_ns, patience_ns;
	bool watch, exit_code, counters;
};

struct ls_fetch;

struct ls_cli {
	struct ls_cli_options options;
	struct ls_fetch *fetch; /* NULL for commands that need no collector */
	struct ls_term *term;
	bool json;
	bool jsonl, csv; /* only of query and export */
};

/*
 * One function a command; the arguments follow the command's name. Returns the exit
 * code.
 */
#define LS_COMMAND(name, arguments, least, most, help) \
	int ls_cmd_##name(struct ls_cli *cli, int argc, char **argv);
#include "web/cli/commands.def"
#undef LS_COMMAND

/*
 * Prints a JSON text as it came; only U+0080 to U+009F, which control the terminal behind a
 * pipe, are escaped. On a terminal, which could act on controls and marks of
 * direction, all but ASCII is escaped; what is no JSON is not printed there.
 */
void ls_cli_print(const char *text, size_t len);

/* Prints one JSON value and a newline, compact; escaped as ls_cli_print does. */
void ls_cli_print_line(const json_t *value);

/* --- asking, with the error told on stderr -------------------------------- */

/*
 * GETs a path; *ret_body is a new reference. With -o json and `show` the body is printed,
 * too (ls_cli_print): words are not. Returns 0 or the exit code, having said why.
 */
int ls_cli_get(struct ls_cli *cli, const char *path, bool show,
	json_t **ret_body) LS_MUSTCHECK;

/* The same of a POST of a JSON body, shown. */
int ls_cli_post(struct ls_cli *cli, const char *path, const char *json,
	json_t **ret_body) LS_MUSTCHECK;

struct ls_fetched;
/*
 * With --exit-code: 1 a finding of severity `worst` counts; 0 all expected workers of the
 * job (of all jobs: ""; of those with this host) are judged; 5 there is none; 6 not all
 * are judged, having said why. Else 0.
 */
int ls_cli_verdict(struct ls_cli *cli, const char *job, const char *host, int worst);

/* Says what the collector refused; returns the exit code for it. */
int ls_cli_refused(struct ls_cli *cli, const struct ls_fetched *got);
/* Says that no answer came, and why (an error of fetch.h); likewise. */
int ls_cli_unreachable(struct ls_cli *cli, int rc);

/* Writes the limit of the options as ls_cli_query does. */
int ls_cli_limit(const struct ls_cli *cli, char *path, size_t size) LS_MUSTCHECK;

/* Writes "name=value" after ? or &, encoded, unless value is empty. -LS_ELIMIT. */
int ls_cli_query(char *path, size_t size, const char *name,
	const char *value) LS_MUSTCHECK;

/*
 * The job meant: --job, or the only one there is. Else says which there are; returns an
 * exit code.
 */
int ls_cli_job(struct ls_cli *cli, size_t size, char *ret_job) LS_MUSTCHECK;

/*
 * Appends text to a path as one encoded segment. Returns an exit code, having said why.
 */
int ls_cli_segment(char *path, size_t size, const char *text) LS_MUSTCHECK;

/* "/api/v1/hosts/HOST" and rest. Returns an exit code, having said why. */
int ls_cli_host_path(const char *host, const char *rest, size_t size,
	char *ret_path) LS_MUSTCHECK;

/* "/api/v1/jobs/JOB" and rest. Returns an exit code, having said why. */
int ls_cli_job_path(const char *job, const char *rest, size_t size,
	char *ret_path) LS_MUSTCHECK;

/* One host: who it is, how its agent fares. Returns the exit code. */
int ls_cli_host(struct ls_cli *cli, const char *host);

/* 0 for info, 1 warning, 2 critical, -1 for what is none. */
int ls_cli_severity(const char *word);

/*
 * Asks for a list and prints its items as a table; `none` is said if there are none; if
 * `more`, it is said that a page follows. Returns an exit code.
 */
int ls_cli_list(struct ls_cli *cli, const char *path, const struct ls_column *columns,
	const char *none, bool more);

/* name{label="value",...} of a series, as it came; cut if it does not fit. */
void ls_cli_series(const json_t *series, size_t size, char *ret_text);

/* Columns of a step record, from its time on. */
/* clang-format off */
#define LS_CLI_RECORD_COLUMNS \
	{ "TIME", ls_term_clock, "at", "" }, \
	{ ">DURATION", ls_term_seconds, "duration_s", "-" }, \
	{ ">OWN", ls_term_seconds, "own_s", "-" }, \
	{ ">WAIT", ls_term_seconds, "wait_s", "-" }, \
	{ ">LATE", ls_term_seconds, "lateness_s", "-" }, \
	{ ">BLAME", ls_term_seconds, "blame_s", "-" }, \
	{ ">INPUT", ls_term_seconds, "phases.input_wait", "-" }, \
	{ ">COMPUTE", ls_term_seconds, "phases.compute", "-" }
/* clang-format on */

#endif
