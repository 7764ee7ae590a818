/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server - the collector as a whole: its parts made in order, run, and taken down in
 * order.
 *
 * Owner:   the main thread, which becomes the loop thread.
 * Units:   none.
 * Errors:  -errno or -LS_E...; what went wrong is logged.
 * Limits:  those of the parts.
 */
#ifndef LS_COLLECTOR_SERVER_H
#define LS_COLLECTOR_SERVER_H

#include "collector/options.h"

/*
 * Serves until SIGTERM or SIGINT, then stores what is waiting. argc and argv are read
 * again at SIGHUP. Returns 0, or why it could not begin.
 */
int ls_server_run(const struct ls_collector_config *config, int argc,
	char **argv) LS_MUSTCHECK;

#endif
