/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "proto/chunk/chunk.h"
#include "proto/base/clock.h"
#include "storage/read/query_chunk.h"
#include "tests/support/harness.h"
#include "tests/support/reports.h"

/*
 * The collector as a program: killed in the middle of its work, again and again, it
 * loses nothing that it acknowledged and stores nothing twice.
 */

#define AGENTS 3
#define ROUNDS 6
#define PER_ITEM 3

static char dir[PATH_MAX / 2];
static char program[PATH_MAX];

struct client {
	struct ls_test_agent agent;
	nng_socket socket;
	uint64_t acked, acked_chunks;
	bool named;
};

/* --- the program ---------------------------------------------------------- */

static void
pause_ns(long ns)
{
	const struct timespec t = { 0, ns };

	(void)nanosleep(&t, NULL);
}

static int
port_of(const char *file, const char *name)
{
	char text[100] = "";
	const char *at;
	FILE *f = fopen(file, "r");

	if (f == NULL)
		return 0;
	(void)!fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	at = strstr(text, name);
	return at != NULL ? (int)strtol(at + strlen(name), NULL, 10) : 0;
}

/* Starts it and waits until it serves; *ret_port is where agents report. */
static pid_t
start(int *ret_port)
{
	char state[PATH_MAX], ports[PATH_MAX];
	char words[][24] = { "--listen", "tcp://127.0.0.1:0", "--http", "127.0.0.1:0",
		"--commit-interval", "20ms", "--log-level", "err", "--state-dir",
		"--port-file" };
	char *argv[] = { program, words[0], words[1], words[2], words[3], words[4],
		words[5], words[6], words[7], words[8], state, words[9], ports, NULL };
	pid_t pid;

	(void)snprintf(state, sizeof(state), "%s/state", dir);
	(void)snprintf(ports, sizeof(ports), "%s/ports", dir);
	(void)unlink(ports);
	/* Not fork: nng has threads here. */
	ck_assert_int_eq(posix_spawn(&pid, program, NULL, NULL, argv, environ), 0);
	while ((*ret_port = port_of(ports, "ingest=")) == 0) {
		ck_assert_msg(waitpid(pid, NULL, WNOHANG) == 0, "%s does not start",
			program);
		pause_ns(5000000);
	}
	return pid;
}

/* --- the agents ----------------------------------------------------------- */

static void
client_dial(struct client *c, int port)
{
	char url[64];

	(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", port);
	ck_assert_int_eq(nng_req0_open(&c->socket), 0);
	ck_assert_int_eq(nng_socket_set_ms(c->socket, NNG_OPT_RECVTIMEO, 3000), 0);
	ck_assert_int_eq(nng_dial(c->socket, url, NULL, 0), 0);
}

/* Sends items acked+1 .. acked+n of both streams; chunk item 1 is the dictionary, 2 is
 * a loss. */
static void
client_send(struct client *c, uint64_t n)
{
	uint64_t i;
	uint8_t *buf;
	size_t len;

	for (i = 1; i <= n; i++)
		ls_test_agent_steps(&c->agent, c->acked + i,
			(c->acked + i - 1) * PER_ITEM, PER_ITEM);
	for (i = c->acked_chunks + 1; i <= c->acked_chunks + n; i++) {
		if (i == 1)
			ls_test_agent_dictionary(&c->agent, i);
		else if (i == 2)
			ls_test_agent_lost(&c->agent, i, 17);
		else
			ls_test_agent_chunk(&c->agent, i, 1000000000 * i);
	}
	buf = ls_test_agent_pack(&c->agent, !c->named, &len);
	ls_test_agent_clear(&c->agent);
	ck_assert_int_eq(nng_send(c->socket, buf, len, 0), 0);
	free(buf);
}

/* Takes the answer; false: none came. */
static bool
client_hear(struct client *c)
{
	struct ls_wire_ack ack;
	const char *why = NULL;
	nng_msg *msg = NULL;

	if (nng_recvmsg(c->socket, &msg, 0) != 0)
		return false;
	ck_assert_int_eq(
		ls_wire_ack_unpack(nng_msg_body(msg), nng_msg_len(msg), &ack, &why), 0);
	nng_msg_free(msg);
	ck_assert_int_eq(ack.status, LS_ACK_OK);
	ck_assert_uint_ge(ack.acked_seq, c->acked); /* never takes anything back */
	c->acked = ack.acked_seq;
	ck_assert_uint_ge(ack.acked_chunk_seq, c->acked_chunks);
	c->acked_chunks = ack.acked_chunk_seq;
	ck_assert_uint_eq(ack.need_dictionary_count, 0); /* known after every restart */
	c->named = ack.need_count == 0;
	return true;
}

/* --- what is on disk ------------------------------------------------------ */

struct found {
	uint64_t next[AGENTS + 1]; /* by worker id: the index expected */
	uint64_t next_chunk[AGENTS]; /* by host: the chunk item expected */
	uint64_t losses[AGENTS];
};

static int
see(void *arg, const struct ls_store_event *e)
{
	struct found *f = arg;
	const struct ls_store_steps *item = &e->u.steps;

	ck_assert_int_ne(e->kind, LS_EVENT_ITEM); /* no gap, no end */
	if (e->kind != LS_EVENT_STEPS)
		return 0;
	ck_assert_int_ge(item->worker_id, 1);
	ck_assert_int_le(item->worker_id, AGENTS);
	ck_assert_uint_eq(item->first_index, f->next[item->worker_id]);
	f->next[item->worker_id] += item->count;
	return 0;
}

static int
see_chunk(void *arg, const struct ls_query_chunk *chunk)
{
	struct found *f = arg;
	struct ls_chunk_codec *codec = ls_chunk_codec_new(LS_TEST_SERIES, 2);
	struct ls_chunk_table table;
	int host = chunk->host[1] - '0';
	uint64_t seq;

	ck_assert_int_ge(host, 0);
	ck_assert_int_lt(host, AGENTS);
	ck_assert_ptr_nonnull(codec);
	ck_assert_int_eq(ls_chunk_decode(codec, chunk->body, chunk->len, &table), 0);
	seq = (uint64_t)table.value[0];
	ls_chunk_codec_free(codec);
	if (f->next_chunk[host] == 0)
		f->next_chunk[host] = 3; /* after the dictionary and the loss */
	ck_assert_uint_eq(seq, f->next_chunk[host]);
	f->next_chunk[host]++;
	return 0;
}

static int
see_lost(void *arg, const struct ls_query_lost *lost)
{
	struct found *f = arg;

	ck_assert_uint_eq(lost->samples, 17);
	f->losses[lost->host[1] - '0']++;
	return 0;
}

/* Every acknowledged chunk item is there once, in order, and what names it. */
static void
check_chunks(struct ls_query *q, const struct ls_days *days,
	const struct client *clients)
{
	struct ls_query_dictionary d;
	struct found f = { .next = { 0 } };
	size_t i;

	for (i = 0; i < days->count; i++) {
		ck_assert_int_eq(ls_query_chunks(q, days->day[i], see_chunk, &f), 0);
		ck_assert_int_eq(ls_query_lost(q, days->day[i], see_lost, &f), 0);
		if (f.next_chunk[0] > 3) {
			ck_assert_int_eq(ls_query_dictionary(q, days->day[i],
						 ls_test_dictionary(), &d),
				0);
			ck_assert_uint_eq(d.count, LS_TEST_SERIES);
			ls_query_dictionary_fini(&d);
		}
	}
	for (i = 0; i < AGENTS; i++) {
		ck_assert_uint_le(f.losses[i], 1);
		ck_assert_uint_ge(f.losses[i], clients[i].acked_chunks >= 2);
		if (clients[i].acked_chunks >= 3)
			ck_assert_uint_gt(f.next_chunk[i], clients[i].acked_chunks);
	}
}

/* Every acknowledged record is there once, in order. Worker ids follow the order of
 * declaring. */
static void
check_disk(const struct client *clients)
{
	struct ls_days *days = malloc(sizeof(*days));
	struct found f = { .next = { 0 } };
	struct ls_query *q = NULL;
	char state[PATH_MAX];
	size_t i;

	(void)snprintf(state, sizeof(state), "%s/state", dir);
	ck_assert_int_eq(ls_query_open(state, &q), 0);
	ck_assert_int_eq(ls_query_days(q, days), 0);
	for (i = 0; i < days->count; i++)
		ck_assert_int_eq(ls_query_events(q, days->day[i], 0, see, &f), 0);
	for (i = 0; i < AGENTS; i++)
		ck_assert_uint_ge(f.next[i + 1], clients[i].acked * PER_ITEM);
	check_chunks(q, days, clients);
	ls_query_close(q);
	free(days);
}

static void
setup(void)
{
	const char *top = getenv("top_builddir");

	(void)snprintf(program, sizeof(program), "%s/lockstep-collector",
		top != NULL && *top != '\0' ? top : ".");
	(void)snprintf(dir, sizeof(dir), "%s", ls_test_tmpdir());
}

LS_CASE(durable, setup, NULL);

LS_TEST(durable, what_is_acknowledged_survives_kill_9)
{
	struct client c[AGENTS] = { 0 };
	int port, status, round, i, k;
	pid_t pid;

	for (i = 0; i < AGENTS; i++)
		ls_test_agent_init(&c[i].agent, i, true);
	for (round = 0; round < ROUNDS; round++) {
		pid = start(&port);
		for (i = 0; i < AGENTS; i++)
			client_dial(&c[i], port);
		for (k = 0; k < 4 + round; k++) {
			for (i = 0; i < AGENTS; i++) {
				client_send(&c[i], 1 + (uint64_t)(k + i) % 5);
				/* one by one: so workers are numbered like agents */
				if (k == 0)
					ck_assert(client_hear(&c[i]));
			}
			for (i = 0; i < AGENTS && k > 0; i++)
				ck_assert(client_hear(&c[i]));
		}
		for (i = 0; i < AGENTS; i++) /* on their way when it dies */
			client_send(&c[i], 5);
		pause_ns(3000000l * round);
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		for (i = 0; i < AGENTS; i++)
			ck_assert_int_eq(nng_close(c[i].socket), 0);
		check_disk(c);
	}
	ck_assert_uint_gt(c[0].acked, 20);
	ck_assert_uint_gt(c[0].acked_chunks, 20);
}

LS_TEST(durable, sigterm_ends_with_everything_stored)
{
	struct client c[AGENTS] = { 0 };
	int port, status, i;
	pid_t pid = start(&port);

	for (i = 0; i < AGENTS; i++) {
		ls_test_agent_init(&c[i].agent, i, true);
		client_dial(&c[i], port);
		client_send(&c[i], 3);
		ck_assert(client_hear(&c[i]));
		client_send(&c[i], 3);
	}
	pause_ns(10000000);
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	for (i = 0; i < AGENTS; i++)
		ck_assert(client_hear(&c[i])); /* acknowledged before the end */
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	for (i = 0; i < AGENTS; i++) {
		ck_assert_uint_eq(c[i].acked, 6);
		ck_assert_uint_eq(c[i].acked_chunks, 6);
		ck_assert_int_eq(nng_close(c[i].socket), 0);
	}
	check_disk(c);
}
