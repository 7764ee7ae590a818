/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector's HTTP server and the limits of its clients: three connections that send
 * anything in any pieces, and may not read, while answers wait.
 */
#include "config.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "web/http/httpd.h"

#define PEERS 3
#define SENT_MAX_BYTES (256u * 1024)
#define WAITING_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ls_loop *loop;
static struct ls_httpd *httpd;

/* A question without an answer so far. */
struct question {
	ls_ask_reply *reply; /* or piece */
	ls_export_piece *piece;
	void *arg;
};
static struct question waiting[WAITING_MAX];
static size_t waiting_count;

/* Answers all questions, the oldest first; an answer may lead to another question. */
static void
answer(void)
{
	static char text[65536];

	while (waiting_count > 0) {
		struct question q = waiting[0];

		memmove(waiting, waiting + 1, --waiting_count * sizeof(q));
		if (q.reply != NULL) {
			q.reply(q.arg, -LS_EUNKNOWN, NULL);
			continue;
		}
		(void)q.piece(q.arg, 0, text, sizeof(text));
		(void)q.piece(q.arg, 0, NULL, 0);
	}
}

static void
wait_for(ls_ask_reply *reply, ls_export_piece *piece, void *arg)
{
	LS_ASSERT(waiting_count < WAITING_MAX); /* one a connection, and those closed */
	waiting[waiting_count++] = (struct question){ reply, piece, arg };
}

static void
on_ask(void *arg, const struct ls_ask *q, ls_ask_reply *reply, void *reply_arg)
{
	(void)arg;
	(void)q;
	wait_for(reply, NULL, reply_arg);
}

static void
on_piece(void *arg, const struct ls_ask *q, ls_export_piece *piece, void *piece_arg)
{
	(void)arg;
	(void)q;
	wait_for(NULL, piece, piece_arg);
}

static void
on_cancel(void *arg, void *piece_arg)
{
	(void)arg;
	(void)piece_arg;
}

static void
on_hold(void *arg, void *piece_arg, bool hold)
{
	(void)arg;
	(void)piece_arg;
	(void)hold;
}

static void
on_metrics(void *arg, struct evbuffer *out)
{
	(void)arg;
	(void)out;
}

static bool
on_ready(void *arg, const char **ret_why)
{
	(void)arg;
	(void)ret_why;
	return true;
}

static void
start(void)
{
	const struct ls_httpd_options options = { .address = "127.0.0.1" };
	const struct ls_backend backend = { NULL, on_ask, on_piece, on_piece, on_cancel,
		on_hold, on_metrics, on_ready };

	ls_log_set_level(LS_LOG_ERR);
	loop = ls_loop_new();
	LS_ASSERT(loop != NULL);
	LS_ASSERT(ls_httpd_new(loop, &options, &backend, &httpd) == 0);
}

static void
turn(void)
{
	(void)event_base_loop(ls_loop_base(loop), EVLOOP_NONBLOCK);
}

static int
join(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)ls_httpd_port(httpd)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct linger none = { 1, 0 }; /* or all ports are used up soon */
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
		perror("fuzz_httpd: connect");
		abort();
	}
	LS_ASSERT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)) == 0);
	turn();
	return fd;
}

/*
 * A command is a byte, a length and so many bytes, which the connection (bits 0 and 1; 3:
 * it closes and joins again) sends 4^(bits 2 to 4) times; before, it reads (bit 5); all
 * questions are answered (bit 6); the loop turns after each sending (bit 7).
 */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char answers[65536];
	int fd[PEERS];
	size_t i, times, len, sent = 0;

	if (httpd == NULL)
		start();
	for (i = 0; i < PEERS; i++)
		fd[i] = join();
	while (size >= 2 && sent < SENT_MAX_BYTES) {
		unsigned command = data[0], who = command & 3;

		len = data[1] < size - 2 ? data[1] : size - 2;
		if (who == PEERS) {
			who = 0;
			(void)close(fd[who]);
			fd[who] = join();
		}
		while ((command & 32) != 0 &&
			recv(fd[who], answers, sizeof(answers), MSG_DONTWAIT) > 0)
			turn();
		if ((command & 64) != 0)
			answer();
		for (times = 1u << (2 * (command >> 2 & 7));
			times > 0 && sent < SENT_MAX_BYTES; times--) {
			sent += len + 64; /* a sending costs at least as much */
			if (send(fd[who], data + 2, len, MSG_NOSIGNAL | MSG_DONTWAIT) <
				0)
				break;
			if ((command & 128) != 0)
				turn();
		}
		turn();
		data += 2 + len;
		size -= 2 + len;
	}
	for (i = 0; i < PEERS; i++)
		(void)close(fd[i]);
	turn();
	answer();
	turn();
	return 0;
}
