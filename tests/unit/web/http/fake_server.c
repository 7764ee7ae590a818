/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_server DIR [WEB_ROOT]: the real HTTP side on a free loopback port, answering
 * from the files of DIR. Prints the port, serves until SIGTERM.
 */
#include "config.h"
#include "proto/base/loop.h"
#include "tests/unit/web/http/fake_backend.h"
#include "web/http/httpd.h"
#include <stdio.h>
#include <string.h>

static void
fake_stop(void *arg)
{
	ls_loop_stop(arg);
}

int
main(int argc, char **argv)
{
	struct ls_httpd_options options = { .address = "127.0.0.1" };
	struct ls_loop *loop = ls_loop_new();
	struct fake_backend backend;
	struct ls_backend functions;
	struct ls_httpd *h = NULL;
	int rc;

	if (argc < 2 || !loop) {
		(void)fprintf(stderr, "usage: fake_server DIR [WEB_ROOT]\n");
		return 2;
	}
	if (argc > 2)
		(void)snprintf(options.web_root, sizeof(options.web_root), "%s",
			argv[2]);
	fake_backend_init(&backend, argv[1], &functions);
	rc = ls_loop_signals(loop, fake_stop, NULL, loop);
	if (rc == 0)
		rc = ls_httpd_new(loop, &options, &functions, &h);
	if (rc == 0) {
		(void)printf("%d\n", ls_httpd_port(h));
		(void)fflush(stdout);
		rc = ls_loop_run(loop);
	}
	if (rc != 0)
		(void)fprintf(stderr, "fake_server: %s\n", ls_err_text(rc));
	ls_httpd_free(h);
	ls_loop_free(loop);
	return rc == 0 ? 0 : 1;
}
