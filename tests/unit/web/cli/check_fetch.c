/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/cli/fetch.h"
#include "tests/support/harness.h"
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OK "HTTP/1.1 200 OK\r\n"

static struct ls_fetch *fetch;
static struct ls_fetched got;
static pid_t server;
static FILE *opened; /* what a stream has opened */

static FILE *
open_file(void *path)
{
	return opened = fopen(path, "w");
}

static char null_path[] = "/dev/null", none_path[] = "/none/file",
	    full_path[] = "/dev/full";
static const struct ls_fetch_stream null = { open_file, null_path };

/* A server that sends `head` to whoever asks, then `more` again and again, with a pause
 * between; NULL: it closes. */
static void
serve(const char *head, const char *more, long pause_ms, unsigned timeout_ms)
{
	struct timespec pause = { pause_ms / 1000, pause_ms % 1000 * 1000000 };
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int all = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	char text[2048], why[256];

	ck_assert_int_eq(bind(all, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(all, 4), 0);
	ck_assert_int_eq(getsockname(all, (struct sockaddr *)&at, &size), 0);
	server = fork();
	ck_assert_int_ge(server, 0);
	if (server == 0) {
		fd = accept(all, NULL, NULL);
		(void)!recv(fd, text, sizeof(text), 0);
		(void)!send(fd, head, strlen(head), MSG_NOSIGNAL);
		while (more && send(fd, more, strlen(more), MSG_NOSIGNAL) > 0)
			(void)nanosleep(&pause, NULL);
		_exit(0);
	}
	(void)close(all);
	(void)snprintf(text, sizeof(text), "http://127.0.0.1:%u", ntohs(at.sin_port));
	ck_assert_int_eq(ls_fetch_new(&(struct ls_fetch_options){ text,
					      timeout_ms * 1000000ull, "", "" },
				 &fetch, why, sizeof(why)),
		0);
}

static void
teardown(void)
{
	ls_fetch_free(fetch);
	fetch = NULL;
	if (server > 0) /* else the test itself would be killed */
		(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	if (opened)
		(void)fclose(opened);
	opened = NULL;
}

LS_CASE(fetch, NULL, teardown);

LS_TEST(fetch, gives_status_and_body)
{
	serve(OK "Content-Length: 2\r\n\r\n{}", NULL, 0, 60000);
	ck_assert_int_eq(ls_fetch_get(fetch, "/", NULL, &got), 0);
	ck_assert_int_eq(got.status, 200);
	ck_assert_str_eq(got.text, "{}");
	free(got.text);
}

LS_TEST(fetch, an_answer_in_drops_has_a_deadline)
{
	serve(OK "Content-Length: 100000\r\n\r\n", "x", 20, 200);
	ck_assert_int_eq(ls_fetch_get(fetch, "/", NULL, &got), -ETIMEDOUT);
}

LS_TEST(fetch, a_refused_stream_gives_the_reason)
{
	serve("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}", NULL, 0,
		60000);
	ck_assert_int_eq(ls_fetch_get(fetch, "/", &null, &got), 0);
	ck_assert_int_eq(got.status, 401);
	ck_assert_str_eq(got.text, "{}");
	ck_assert_ptr_null(opened);
	free(got.text);
}

LS_TEST(fetch, a_stream_that_cannot_be_opened_or_written_says_why)
{
	static const struct ls_fetch_stream none = { open_file, none_path },
					    full = { open_file, full_path };
	char block[65536];

	serve(OK "Content-Length: 2\r\n\r\n{}", NULL, 0, 60000);
	ck_assert_int_eq(ls_fetch_get(fetch, "/", &none, &got), -EIO);
	ck_assert_int_eq(errno, ENOENT);
	teardown();
	memset(block, 'z', sizeof(block) - 1);
	block[sizeof(block) - 1] = '\0';
	serve(OK "Content-Length: 65535\r\n\r\n", block, 0, 60000);
	ck_assert_int_eq(ls_fetch_get(fetch, "/", &full, &got), -EIO);
	ck_assert_int_eq(errno, ENOSPC);
}

LS_TEST(fetch, a_stream_lives_while_it_moves)
{
	char line[1024];

	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	/* Its 40,000 bytes take more than the timeout. */
	serve(OK "Content-Length: 40000\r\n\r\n", line, 150, 5000);
	ck_assert_int_eq(ls_fetch_get(fetch, "/", &null, &got), 0);
	free(got.text);
}

LS_TEST(fetch, a_stream_in_drops_has_a_deadline)
{
	serve(OK "Content-Length: 100000\r\n\r\n", "x", 20, 200);
	ck_assert_int_eq(ls_fetch_get(fetch, "/", &null, &got), -ETIMEDOUT);
}

LS_TEST(fetch, interim_answers_have_an_end)
{
	serve("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", 0,
		60000);
	ck_assert_int_eq(ls_fetch_get(fetch, "/", NULL, &got), -ENOTCONN);
}

LS_TEST(fetch, a_chunk_line_without_an_end_is_not_kept)
{
	char line[65536];

	memset(line, 'y', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	serve(OK "Transfer-Encoding: chunked\r\n\r\n1;", line, 0, 60000);
	ck_assert_int_eq(ls_fetch_get(fetch, "/", &null, &got), -LS_ELIMIT);
}

LS_CASE(fetch_new);

LS_TEST(fetch_new, a_token_is_sent_to_https_or_to_this_machine_only)
{
	static const struct {
		const char *server;
		int rc;
	} cases[] = { { "https://collector.example:7118", 0 },
		{ "http://localhost:7118", 0 }, { "http://127.0.0.1:7118", 0 },
		{ "http://192.0.2.1:7118", -LS_EPARSE },
		{ "http://collector.example:7118", -LS_EPARSE } };
	char path[512], why[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/token", ls_test_tmpdir());
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs("lockstep_0123\n", f), 0);
	ck_assert_int_eq(fclose(f), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		why[0] = '\0';
		ck_assert_int_eq(
			ls_fetch_new(&(struct ls_fetch_options){ cases[i].server,
					     1000000000ull, "", path },
				&fetch, why, sizeof(why)),
			cases[i].rc);
		ck_assert_int_eq(cases[i].rc != 0,
			strstr(why, "a token is sent to https:// only") != NULL);
		ls_fetch_free(fetch);
		fetch = NULL;
		/* without a token, any server may be asked */
		ck_assert_int_eq(
			ls_fetch_new(&(struct ls_fetch_options){ cases[i].server,
					     1000000000ull, "", "" },
				&fetch, why, sizeof(why)),
			0);
		ls_fetch_free(fetch);
		fetch = NULL;
	}
}
