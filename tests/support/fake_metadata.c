/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/support/fake_metadata.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "proto/limits.h"
#include "tests/support/harness.h"

static const char *const paths[LS_METADATA_ITEM_COUNT] = {
#define LS_METADATA_ITEM(id, path) "/computeMetadata/v1/instance/" path,
#include "agent/identity/metadata.def"
#undef LS_METADATA_ITEM
};

static const char v4_256[] =
	"ACCELERATOR_TYPE: 'v4-256'\nALT: 'false'\nCHIPS_PER_HOST_BOUNDS: '2,2,1'\n"
	"CONSUMER_PROJECT_ID: 'a-project'\nENABLE_ICI_RESILIENCY: 'true'\nHOST_BOUNDS: '2,2,8'\n"
	"NODE_ID: 'my-tpu'\nTOPOLOGY: '4x4x8'\nTPU_TOPOLOGY_WRAP: 'true,true,true'\n"
	"TPU_RUNTIME_METRICS_PORTS: '8431,8432,8433,8434'\nTYPE: 'V4'\nWORKER_ID: '3'\n"
	"VBARCONTROL_AGENT_DOCKER_URL: 'gcr.io/x/y:1'\nWRAP: 'true,true,true'\n"
	"ZONE: 'us-central2-b'\n";

static const char endpoints[] =
	"t-w0,t-w1,t-w2,t-w3,t-w4,t-w5,t-w6,t-w7,t-w8,t-w9,t-w10,t-w11,t-w12,t-w13,t-w14,t-w15,"
	"t-w16,t-w17,t-w18,t-w19,t-w20,t-w21,t-w22,t-w23,t-w24,t-w25,t-w26,t-w27,t-w28,t-w29,"
	"t-w30,t-w31";

/* Which item is asked for; LS_METADATA_ITEM_COUNT: none. */
static unsigned
fake_metadata_item(const char *request)
{
	unsigned i = 0;

	for (i = 0; i < LS_METADATA_ITEM_COUNT; i++) {
		size_t len = strlen(paths[i]);

		if (strncmp(request, "GET ", 4) == 0 &&
			strncmp(request + 4, paths[i], len) == 0 &&
			request[4 + len] == ' ')
			break;
	}
	return i;
}

static void
fake_metadata_write(struct bufferevent *b, const char *status, const char *flavor,
	const char *text, size_t len)
{
	struct evbuffer *out = bufferevent_get_output(b);

	(void)evbuffer_add_printf(out,
		"HTTP/1.1 %s\r\nMetadata-Flavor: %s\r\nContent-Length: %zu\r\n\r\n",
		status, flavor, len);
	ck_assert_int_eq(evbuffer_add(out, text, len), 0);
}

static void
fake_metadata_answer(const struct fake_metadata *f, struct bufferevent *b,
	unsigned item)
{
	static char huge[LS_METADATA_BODY_MAX_BYTES + 1];
	const char *text = item < LS_METADATA_ITEM_COUNT ? f->text[item] : NULL;

	switch (item >= f->wrong_from ? f->mode : FAKE_METADATA_GOOD) {
	case FAKE_METADATA_GOOD:
		if (text != NULL)
			fake_metadata_write(b, "200 OK", "Google", text, strlen(text));
		else
			fake_metadata_write(b, "404 Not Found", "Google", "no", 2);
		break;
	case FAKE_METADATA_HANG:
		break;
	case FAKE_METADATA_OTHER_FLAVOR:
		fake_metadata_write(b, "200 OK", "Vanilla", "7", 1);
		break;
	case FAKE_METADATA_HUGE:
		memset(huge, 'x', sizeof(huge));
		fake_metadata_write(b, "200 OK", "Google", huge, sizeof(huge));
		break;
	case FAKE_METADATA_GARBAGE:
		ck_assert_int_eq(bufferevent_write(b, "\x01\x02 what?\r\n\r\n", 12), 0);
		break;
	case FAKE_METADATA_FORBIDDEN:
		fake_metadata_write(b, "403 Forbidden", "Google", "no", 2);
		break;
	default:
		ck_abort();
	}
}

static void
fake_metadata_read(struct bufferevent *b, void *arg)
{
	struct fake_metadata *f = arg;
	struct evbuffer *in = bufferevent_get_input(b);
	char request[2048];
	ev_ssize_t len = evbuffer_copyout(in, request, sizeof(request) - 1);
	unsigned item;

	ck_assert_int_ge((int)len, 0);
	request[len] = '\0';
	if (strstr(request, "\r\n\r\n") == NULL)
		return;
	ck_assert_int_eq(evbuffer_drain(in, (size_t)len), 0);
	item = fake_metadata_item(request);
	if (item < LS_METADATA_ITEM_COUNT &&
		strstr(request, "Metadata-Flavor: Google\r\n") != NULL)
		f->asked[item]++;
	else
		f->unmarked++;
	fake_metadata_answer(f, b, item);
}

static void
fake_metadata_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *at,
	int len, void *arg)
{
	struct fake_metadata *f = arg;
	struct bufferevent *b = bufferevent_socket_new(evconnlistener_get_base(l), fd,
		BEV_OPT_CLOSE_ON_FREE);

	(void)at;
	(void)len;
	ck_assert_ptr_nonnull(b);
	ck_assert_uint_lt(f->client_count, FAKE_METADATA_CLIENTS);
	f->client[f->client_count++] = b;
	bufferevent_setcb(b, fake_metadata_read, NULL, NULL, f);
	ck_assert_int_eq(bufferevent_enable(b, EV_READ | EV_WRITE), 0);
}

void
fake_metadata_open(struct fake_metadata *f, struct ls_loop *loop)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);

	(void)signal(SIGPIPE, SIG_IGN); /* clients hang up when they have seen enough */
	memset(f, 0, sizeof(*f));
	f->listener = evconnlistener_new_bind(ls_loop_base(loop), fake_metadata_accept,
		f, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, -1,
		(struct sockaddr *)&at, sizeof(at));
	ck_assert_ptr_nonnull(f->listener);
	ck_assert_int_eq(getsockname(evconnlistener_get_fd(f->listener),
				 (struct sockaddr *)&at, &len),
		0);
	(void)snprintf(f->address, sizeof(f->address), "127.0.0.1:%u",
		(unsigned)ntohs(at.sin_port));
}

void
fake_metadata_close(struct fake_metadata *f)
{
	while (f->client_count > 0)
		bufferevent_free(f->client[--f->client_count]);
	if (f->listener != NULL)
		evconnlistener_free(f->listener);
	f->listener = NULL;
}

void
fake_metadata_v4_256(struct fake_metadata *f)
{
	f->text[LS_METADATA_ID] = "1234567890123456789";
	f->text[LS_METADATA_ZONE] = "projects/12/zones/us-central2-b";
	f->text[LS_METADATA_WORKER] = "3";
	f->text[LS_METADATA_ENDPOINTS] = endpoints;
	f->text[LS_METADATA_ACCELERATOR] = "v4-256";
	f->text[LS_METADATA_TPU_ENV] = v4_256;
}
