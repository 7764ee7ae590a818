/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector's HTTP server and the limits of its clients: three connections that send
 * anything in any pieces, and may not read, while answers wait. The first byte chooses the
 * server (on loopback, on every address, with tokens) and what its backend answers.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/wire/keys.h"
#include "web/http/access.h"
#include "web/http/httpd.h"

#define PEERS 3
#define SENT_MAX_BYTES (256u * 1024)
#define WAITING_MAX 512 /* an input of 16 KiB has no more requests */
#define SERVERS 3
#define PIECES 8
/* Bits of the first byte; the lowest two: the server. */
#define ANSWERS 4 /* or: nothing is known */
#define IS_READY 8
#define FAILS 16 /* streams end with an error */
#define GOES_ON 32 /* a stream ends at the end of the input only */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ls_loop *loop;
static struct ls_httpd *httpds[SERVERS], *httpd;
static unsigned setting;

/* A question without an answer so far. */
struct question {
	enum ls_ask_kind kind;
	ls_ask_reply *reply; /* or piece */
	ls_export_piece *piece;
	void *arg;
};
static struct question waiting[WAITING_MAX];
static size_t waiting_count;

/* The certificate and TLS are OpenSSL's: a server with tokens is asked in plain. */
struct bufferevent *__wrap_ls_access_accept(struct event_base *base, void *arg);

struct bufferevent *
__wrap_ls_access_accept(struct event_base *base, void *arg)
{
	(void)arg;
	return bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
}

/* False: it wants more, and the backend has more. */
static bool
answer_stream(const struct question *q, bool last)
{
	static char text[65536];
	bool wanted = true;

	for (int i = 0; i < PIECES && wanted; i++)
		wanted = q->piece(q->arg, 0, text, sizeof(text));
	if (wanted && !last && (setting & GOES_ON) != 0)
		return false;
	(void)q->piece(q->arg, (setting & FAILS) != 0 ? -EIO : 0, NULL, 0);
	return true;
}

static void
answer_one(const struct question *q)
{
	json_t *body;

	if ((setting & ANSWERS) == 0) {
		q->reply(q->arg, -LS_EUNKNOWN, NULL);
		return;
	}
	body = q->kind == LS_ASK_STEPS || q->kind == LS_ASK_SERIES
		? json_pack("[{s:s}]", "at", "2026-11-20T14:04:11Z")
		: json_pack("{s:[{s:s}], s:s}", "items", "job", "a", "next", "a");
	LS_ASSERT(body != NULL);
	q->reply(q->arg, 0, body);
	json_decref(body);
}

/* Answers the questions, the oldest first; an answer may lead to another question. last:
 * until there is none. */
static void
answer(bool last)
{
	for (size_t n = waiting_count; n > 0; n = last ? waiting_count : n - 1) {
		struct question q = waiting[0];

		memmove(waiting, waiting + 1, --waiting_count * sizeof(q));
		if (q.reply != NULL)
			answer_one(&q);
		else if (!answer_stream(&q, last))
			waiting[waiting_count++] = q;
	}
}

static void
wait_for(enum ls_ask_kind kind, ls_ask_reply *reply, ls_export_piece *piece, void *arg)
{
	LS_ASSERT(waiting_count < WAITING_MAX); /* one a connection, and those closed */
	waiting[waiting_count++] = (struct question){ kind, reply, piece, arg };
}

static void
on_ask(void *arg, const struct ls_ask *q, ls_ask_reply *reply, void *reply_arg)
{
	(void)arg;
	wait_for(q->kind, reply, NULL, reply_arg);
}

static void
on_piece(void *arg, const struct ls_ask *q, ls_export_piece *piece, void *piece_arg)
{
	(void)arg;
	wait_for(q->kind, NULL, piece, piece_arg);
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
	*ret_why = "the disk is full";
	return (setting & IS_READY) != 0;
}

/* Keys and tokens as an operator makes them, and one whose text a corpus can have:
 * lockstep_0. */
static void
start_access(struct ls_access **ret_access)
{
	static const char *const names[] = { "localhost" };
	static const char tokens[] =
		"a read 4b39932ac97781dbd83780807a88059292f828e03116be09239868a247a92ca3\n";
	static const char *const files[] = { "ca.key", "ca.pem", "crl.pem", "issued",
		"collector.key", "collector.pem", "tokens" };
	const char *tmp = getenv("TMPDIR");
	char dir[128], path[256], text[512];
	int64_t now_s = (int64_t)time(NULL);
	FILE *f;

	(void)snprintf(dir, sizeof(dir), "%s/fuzz-httpd-XXXXXX",
		tmp != NULL && strlen(tmp) < 64 ? tmp : "/tmp");
	LS_ASSERT(mkdtemp(dir) != NULL);
	LS_ASSERT(ls_keys_init(dir, now_s, text, sizeof(text)) == 0);
	LS_ASSERT(ls_keys_issue(dir, LS_TLS_COLLECTOR, names, 1, now_s - 60,
			  now_s + 90 * 86400, text, sizeof(text)) == 0);
	(void)snprintf(path, sizeof(path), "%s/tokens", dir);
	f = fopen(path, "we");
	LS_ASSERT(f != NULL && fputs(tokens, f) >= 0 && fclose(f) == 0 &&
		chmod(path, 0600) == 0);
	LS_ASSERT(ls_access_open(dir, ret_access) == 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		LS_ASSERT(unlink(path) == 0);
	}
	LS_ASSERT(rmdir(dir) == 0);
}

static void
start(void)
{
	struct ls_httpd_options options[SERVERS] = { { .address = "127.0.0.1" },
		{ .address = "0.0.0.0", .names = "lockstep.example" },
		{ .address = "127.0.0.1" } };
	const struct ls_backend backend = { NULL, on_ask, on_piece, on_piece, on_cancel,
		on_hold, on_metrics, on_ready };

	ls_log_set_level(LS_LOG_ERR);
	loop = ls_loop_new();
	LS_ASSERT(loop != NULL);
	LS_ASSERT(ls_httpd_new(loop, &options[1], &backend, &httpd) == -EPERM);
	options[1].insecure = true;
	start_access(&options[2].access);
	for (size_t i = 0; i < SERVERS; i++)
		LS_ASSERT(ls_httpd_new(loop, &options[i], &backend, &httpds[i]) == 0);
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
 * Behind the first byte: a command is a byte, a length and so many bytes, which the connection (bits 0 and 1; 3:
 * it closes and joins again) sends 4^(bits 2 to 4) times; before, it reads (bit 5); all
 * questions are answered (bit 6); the loop turns after each sending (bit 7).
 */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char answers[65536];
	int fd[PEERS];
	size_t i, times, len, sent = 0;

	if (loop == NULL)
		start();
	setting = size > 0 ? data[0] : 0;
	data += size > 0;
	size -= size > 0;
	httpd = httpds[(setting & 3) % SERVERS];
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
			answer(false);
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
	answer(true);
	turn();
	return 0;
}
