/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "collector/options.h"
#include "collector/server.h"
#include "proto/base/cpus.h"
#include "proto/base/log.h"
#include "storage/db/backup.h"
#include "storage/db/db.h"
#include "storage/db/salvage.h"
#include "storage/tidy/repack.h"
#include "storage/write/store.h"

enum { EXIT_USAGE = 2 };

/* For nng: nng only moves bytes to and from sockets. */
#define MAIN_CPUS 4

static void
main_say(void *arg, const char *line)
{
	(void)arg;
	(void)puts(line); /* a closed stdout does not change the verdict */
}

/* What came of work on the files of dir, as an exit status. */
static int
main_verdict(const char *dir, int rc)
{
	if (rc != 0)
		(void)fprintf(stderr, "lockstep-collector: %s: %s; %s\n", dir,
			ls_err_text(rc), ls_db_advice(rc));
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* FILE.salvaged from FILE. */
static int
main_salvage(const char *path)
{
	char to[PATH_MAX];
	int n = snprintf(to, sizeof(to), "%s.salvaged", path);
	int rc = n > 0 && (size_t)n < sizeof(to) ? ls_salvage(path, to, main_say, NULL)
						 : -ENAMETOOLONG;

	if (rc == 0)
		(void)printf(
			"%s written; to use it, stop the collector and rename it to "
			"YYYYMMDD.db, unless that file exists\n",
			to);
	return main_verdict(rc == -EEXIST ? to : path, rc);
}

int
main(int argc, char **argv)
{
	struct ls_collector_config config;
	enum ls_conf_action action;
	enum ls_log_level level;
	char err[LS_LOG_LINE_MAX_BYTES];
	int left;

	ls_cpus_limit(MAIN_CPUS);
	if (ls_conf_load(&ls_collector_program, argc, argv, &config, &action, &left,
		    err, sizeof(err)) != 0 ||
		(action != LS_CONF_EXIT &&
			ls_collector_config_finish(&config, err, sizeof(err)) != 0)) {
		(void)fprintf(stderr, "lockstep-collector: %s\n", err);
		return EXIT_USAGE;
	}
	if (action != LS_CONF_RUN)
		return EXIT_SUCCESS;
	if (config.check_db)
		return main_verdict(config.state_dir,
			ls_store_check(config.state_dir, main_say, NULL));
	if (config.repack)
		return main_verdict(config.state_dir,
			ls_repack_all(config.state_dir, main_say, NULL));
	if (config.salvage[0] != '\0')
		return main_salvage(config.salvage);
	if (config.backup[0] != '\0')
		return main_verdict(config.backup,
			ls_backup(config.state_dir, config.backup, main_say, NULL));
	if (ls_log_level_parse(config.log_level, &level) == 0)
		ls_log_set_level(level);
	return ls_server_run(&config, argc, argv) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
