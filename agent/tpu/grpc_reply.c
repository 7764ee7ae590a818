/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/grpc_reply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"

#define REPLY_FIRST_BYTES 4096u

void
ls_grpc_reply_init(struct ls_grpc_reply *r)
{
	*r = (struct ls_grpc_reply){ .grpc_status = -1 };
}

void
ls_grpc_reply_fini(struct ls_grpc_reply *r)
{
	free(r->message);
	ls_grpc_reply_init(r);
}

static int
reply_fail(struct ls_grpc_reply *r, int rc, const char *text)
{
	if (r->rc == 0) {
		r->rc = rc;
		(void)snprintf(r->text, sizeof(r->text), "%s", text);
	}
	return r->rc;
}

/* Decimal of 1 to 3 digits, or -1. */
static int
reply_number(const char *s, size_t len)
{
	uint64_t n;

	return len >= 1 && len <= 3 && ls_text_digits(s, len, 999, &n) == len ? (int)n
									      : -1;
}

/* The text of a status: percent-encoded (RFC 3986), then made safe. */
static void
reply_text(struct ls_grpc_reply *r, const char *s, size_t len)
{
	char plain[LS_GRPC_TEXT_MAX_BYTES];
	size_t i = 0, n = 0;

	while (i < len && n < sizeof(plain)) {
		int high =
			i + 2 < len && s[i] == '%' ? ls_text_hex_value(s[i + 1]) : -1;
		int low = high >= 0 ? ls_text_hex_value(s[i + 2]) : -1;

		if (low >= 0) {
			plain[n++] = (char)(16 * high + low);
			i += 3;
		} else {
			plain[n++] = s[i++];
		}
	}
	(void)ls_text_escape(r->text, sizeof(r->text), plain, n);
}

static bool
reply_is(const char *name, size_t len, const char *want)
{
	return len == strlen(want) && memcmp(name, want, len) == 0;
}

int
ls_grpc_reply_header(struct ls_grpc_reply *r, const char *name, size_t name_len,
	const char *value, size_t value_len)
{
	static const char type[] = "application/grpc";

	if (r->rc != 0)
		return r->rc;
	if (name_len > LS_GRPC_HEADERS_MAX_BYTES ||
		value_len > LS_GRPC_HEADERS_MAX_BYTES)
		return reply_fail(r, -LS_ELIMIT, "headers are too long");
	r->header_bytes += name_len + value_len + 32; /* as HTTP/2 counts them */
	if (r->header_bytes > LS_GRPC_HEADERS_MAX_BYTES)
		return reply_fail(r, -LS_ELIMIT, "headers are too long");
	if (reply_is(name, name_len, ":status")) {
		r->http_status = reply_number(value, value_len);
	} else if (reply_is(name, name_len, "content-type")) {
		r->is_grpc = value_len >= sizeof(type) - 1 &&
			memcmp(value, type, sizeof(type) - 1) == 0;
	} else if (reply_is(name, name_len, "grpc-status")) {
		r->grpc_status = reply_number(value, value_len);
		if (r->grpc_status < 0)
			return reply_fail(r, -LS_EPARSE, "status that is not a number");
	} else if (reply_is(name, name_len, "grpc-message")) {
		reply_text(r, value, value_len);
	}
	return 0;
}

static int
reply_prefix(struct ls_grpc_reply *r)
{
	if (r->prefix[0] != 0)
		return reply_fail(r, -LS_EPARSE,
			"answer is compressed, which was not requested");
	r->want = (size_t)r->prefix[1] << 24 | (size_t)r->prefix[2] << 16 |
		(size_t)r->prefix[3] << 8 | r->prefix[4];
	if (r->want > LS_GRPC_MESSAGE_MAX_BYTES)
		return reply_fail(r, -LS_ELIMIT, "answer is too long");
	return 0;
}

static int
reply_grow(struct ls_grpc_reply *r, size_t need)
{
	size_t room = r->room > 0 ? r->room : REPLY_FIRST_BYTES;
	uint8_t *bigger;

	while (room < need)
		room *= 2; /* need is below LS_GRPC_MESSAGE_MAX_BYTES */
	if (room == r->room)
		return 0;
	bigger = realloc(r->message, room);
	if (bigger == NULL)
		return reply_fail(r, -ENOMEM, "out of memory");
	r->message = bigger;
	r->room = room;
	return 0;
}

int
ls_grpc_reply_data(struct ls_grpc_reply *r, const uint8_t *data, size_t len)
{
	while (r->rc == 0 && len > 0 && r->prefix_len < LS_GRPC_PREFIX_BYTES) {
		r->prefix[r->prefix_len++] = *data++;
		len--;
		if (r->prefix_len == LS_GRPC_PREFIX_BYTES && reply_prefix(r) != 0)
			return r->rc;
	}
	if (r->rc != 0 || len == 0)
		return r->rc;
	if (len > r->want - r->len)
		return reply_fail(r, -LS_EPARSE, "more than one answer");
	if (reply_grow(r, r->len + len) != 0)
		return r->rc;
	memcpy(r->message + r->len, data, len);
	r->len += len;
	return 0;
}

void
ls_grpc_reply_finish(const struct ls_grpc_reply *r, struct ls_grpc_answer *ret_answer)
{
	struct ls_grpc_answer a = {
		.rc = r->rc, .status = r->grpc_status, .text = r->text
	};

	if (a.rc == 0 && (r->http_status != 200 || !r->is_grpc)) {
		a.rc = -LS_EPARSE;
		a.text = "answers HTTP/2, but not gRPC";
	} else if (a.rc == 0 && r->grpc_status < 0) {
		a.rc = -LS_EPARSE;
		a.text = "answer without a status";
	} else if (a.rc == 0 && r->grpc_status == LS_GRPC_OK &&
		(r->prefix_len < LS_GRPC_PREFIX_BYTES || r->len < r->want)) {
		a.rc = -LS_EPARSE;
		a.text = "answer is cut short";
	}
	if (a.rc == 0 && r->grpc_status == LS_GRPC_OK) {
		/* never NULL */
		a.message = r->message != NULL ? r->message : r->prefix;
		a.len = r->len;
	}
	*ret_answer = a;
}

void
ls_grpc_prefix(uint8_t prefix[LS_GRPC_PREFIX_BYTES], uint32_t len)
{
	prefix[0] = 0;
	prefix[1] = (uint8_t)(len >> 24);
	prefix[2] = (uint8_t)(len >> 16);
	prefix[3] = (uint8_t)(len >> 8);
	prefix[4] = (uint8_t)len;
}
