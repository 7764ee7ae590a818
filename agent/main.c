/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#define LS_TLS_OPTIONAL

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/agent.h"
#include "agent/collect/doctor.h"
#include "proto/base/cpus.h"
#include "proto/base/log.h"
#include "proto/wire/tls.h"

enum { EXIT_USAGE = 2 };

/* For nng: one connection, one exchange at a time. */
#define MAIN_CPUS 1

static int
main_once(const struct ls_agent_config *config)
{
	json_t *object = NULL;
	int rc = ls_agent_once(config, &object), status = EXIT_FAILURE;

	if (rc != 0) {
		ls_log(LS_LOG_ERR, "agent", "cannot read the sources: %s",
			ls_err_text(rc));
		return EXIT_FAILURE;
	}
	if (json_dumpf(object, stdout, JSON_INDENT(2)) == 0 && puts("") != EOF &&
		fflush(stdout) == 0)
		status = EXIT_SUCCESS;
	json_decref(object);
	return status;
}

/* 0: nothing failed, 1: something did. */
static int
main_doctor(const struct ls_agent_config *config)
{
	struct ls_doctor *d = malloc(sizeof(*d));
	int rc = d != NULL ? ls_agent_doctor(config, d) : -ENOMEM,
	    status = EXIT_FAILURE;

	if (rc != 0) {
		ls_log(LS_LOG_ERR, "agent", "cannot read the sources: %s",
			ls_err_text(rc));
	} else {
		ls_doctor_print(d,
			isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == NULL,
			stdout);
		if (fflush(stdout) == 0 && ls_doctor_count(d, LS_DOCTOR_FAIL) == 0)
			status = EXIT_SUCCESS;
	}
	free(d);
	return status;
}

/* libssl takes 1.7 MB of memory: the program that has it is another one, beside this. */
static int
main_with_tls(char **argv)
{
	static const char suffix[] = "-tls";
	char path[LS_PATH_MAX_BYTES] = "";
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof(suffix));

	if (len > 0) {
		memcpy(path + len, suffix, sizeof(suffix));
		(void)execv(path, argv); /* returns on failure only */
	}
	ls_log(LS_LOG_ERR, "agent", "--keys: cannot run %s: %s", path, strerror(errno));
	return EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
	struct ls_agent_config config;
	enum ls_conf_action action;
	char err[LS_LOG_LINE_MAX_BYTES];
	int left;

	ls_cpus_limit(MAIN_CPUS);
	if (ls_conf_load(&ls_agent_program, argc, argv, &config, &action, &left, err,
		    sizeof(err)) != 0) {
		(void)fprintf(stderr, "lockstep-agent: %s\n", err);
		return EXIT_USAGE;
	}
	if (action == LS_CONF_EXIT)
		return EXIT_SUCCESS;
	if (ls_agent_config_finish(&config, err, sizeof(err)) != 0) {
		(void)fprintf(stderr, "lockstep-agent: %s\n", err);
		return EXIT_USAGE;
	}
	if (action == LS_CONF_CHECK)
		return EXIT_SUCCESS;
	/* a server that hangs up is told by the write */
	(void)signal(SIGPIPE, SIG_IGN);
	if (config.once)
		return main_once(&config);
	if (config.keys[0] != '\0' && ls_tls_open == NULL)
		return main_with_tls(argv);
	if (config.doctor)
		return main_doctor(&config);
	return ls_agent_run(&config, argc, argv) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
