/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/http/access.h"
#include "proto/base/log.h"
#include "proto/base/text.h"
#include "proto/wire/tls.h"
#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <event2/http.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACCESS_COOKIE "__Host-lockstep"
#define ACCESS_BEARER "Bearer "

struct ls_access {
	struct ls_tls *tls;
	struct ls_tokens *tokens;
	char dir[LS_CONF_VALUE_MAX_BYTES];
	char problem[LS_PATH_MAX_BYTES + LS_TLS_TEXT_MAX_BYTES]; /* with the tokens */
	uint64_t wrong_s; /* the second in which wrong tokens are counted */
	unsigned wrong_count;
};

/* Reads the tokens; on failure those of before stay. */
static int
access_read(struct ls_access *a)
{
	char before[sizeof(a->problem)];
	struct ls_tokens *fresh = NULL;
	int rc;

	memcpy(before, a->problem, sizeof(before));
	a->problem[0] = '\0';
	rc = ls_tokens_read(a->dir, &fresh, a->problem, sizeof(a->problem));
	if (rc == 0) {
		ls_tokens_free(a->tokens);
		a->tokens = fresh;
		if (ls_tokens_count(fresh) == 0)
			(void)snprintf(a->problem, sizeof(a->problem),
				"%.900s/tokens: has no token, so nobody is let in; lockstep keys token DIR NAME read makes one",
				a->dir);
	}
	if (a->problem[0] != '\0' && strcmp(a->problem, before) != 0)
		ls_log(rc == 0 ? LS_LOG_WARN : LS_LOG_ERR, "keys", "%s", a->problem);
	return rc;
}

int
ls_access_open(const char *dir, struct ls_access **ret_access)
{
	struct ls_access *a;
	int rc;

	if (dir[0] == '\0')
		return 0;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return -ENOMEM;
	rc = ls_text_copy(a->dir, sizeof(a->dir), dir);
	if (rc == 0)
		rc = ls_tls_open(LS_TLS_WEB, dir, "", &a->tls);
	if (rc == 0)
		rc = access_read(a);
	if (rc == 0)
		*ret_access = a;
	else
		ls_access_close(a);
	return rc;
}

void
ls_access_look(struct ls_access *a)
{
	if (a == NULL)
		return;
	(void)ls_tls_look(a->tls); /* it logs its outcome */
	(void)access_read(a); /* likewise */
}

const char *
ls_access_problem(const struct ls_access *a)
{
	if (a == NULL)
		return "";
	return a->problem[0] != '\0' ? a->problem : ls_tls_problem(a->tls);
}

int64_t
ls_access_until_s(const struct ls_access *a)
{
	return a != NULL ? ls_tls_until_s(a->tls) : 0;
}

void
ls_access_close(struct ls_access *a)
{
	if (a == NULL)
		return;
	ls_tls_close(a->tls);
	ls_tokens_free(a->tokens);
	free(a);
}

struct bufferevent *
ls_access_accept(struct event_base *base, void *arg)
{
	struct ls_access *a = arg;
	SSL *ssl = ls_tls_new_web(a->tls);
	struct bufferevent *bev = ssl == NULL
		? NULL
		: bufferevent_openssl_socket_new(base, -1, ssl,
			  BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);

	if (bev != NULL) /* the length of a request says where it ends */
		bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	return bev; /* if it failed, it has freed ssl */
}

/* --- tokens --------------------------------------------------------------- */

static int
access_refuse(struct ls_problem *p, int status, const char *title, const char *detail)
{
	ls_api_problem(p, status,
		status == 401		? "unauthorized"
			: status == 403 ? "forbidden"
					: "too-many",
		title, "%s", detail);
	return -EACCES;
}

int
ls_access_check_token(struct ls_access *a, const char *token, enum ls_scope need,
	uint64_t now_ns, const char **ret_name, struct ls_problem *ret_problem)
{
	const char *name = NULL;
	enum ls_scope scope = ls_tokens_find(a->tokens, token, &name);

	if (scope >= need && name != NULL) {
		*ret_name = name;
		return 0;
	}
	if (name != NULL)
		return access_refuse(ret_problem, 403, "Forbidden",
			"this token is for reading: one with the scope write is needed");
	if (now_ns / 1000000000 != a->wrong_s)
		a->wrong_count = 0;
	a->wrong_s = now_ns / 1000000000;
	return ++a->wrong_count > LS_TOKENS_WRONG_PER_S
		? access_refuse(ret_problem, 429, "Too many requests",
			  "too many wrong tokens; try again in a second")
		: access_refuse(ret_problem, 401, "Unauthorized",
			  "this token is not known here: lockstep keys token makes one");
}

/* The token in a request, "": none; false: it is too long to be one. */
static bool
access_token(struct evhttp_request *req, char *dst, size_t size)
{
	const struct evkeyvalq *in = evhttp_request_get_input_headers(req);
	const char *header = evhttp_find_header(in, "Authorization");
	const char *at = NULL;
	size_t len;

	dst[0] = '\0';
	if (header != NULL &&
		strncasecmp(header, ACCESS_BEARER, strlen(ACCESS_BEARER)) == 0)
		at = header + strlen(ACCESS_BEARER);
	header = evhttp_find_header(in, "Cookie");
	while (at == NULL && header != NULL && header[0] != '\0') {
		header += strspn(header, "; ");
		if (strncmp(header, ACCESS_COOKIE "=", strlen(ACCESS_COOKIE "=")) == 0)
			at = header + strlen(ACCESS_COOKIE "=");
		header += strcspn(header, ";");
	}
	if (at == NULL)
		return true;
	len = strcspn(at, "; ");
	if (len >= size)
		return false;
	memcpy(dst, at, len);
	dst[len] = '\0';
	return true;
}

int
ls_access_check(struct ls_access *a, struct evhttp_request *req, enum ls_scope need,
	uint64_t now_ns, const char **ret_name, struct ls_problem *ret_problem)
{
	char token[LS_TOKEN_BYTES];

	if (access_token(req, token, sizeof(token)) && token[0] == '\0')
		return access_refuse(ret_problem, 401, "Unauthorized",
			"send a token: Authorization: Bearer TOKEN; lockstep keys token makes one");
	return ls_access_check_token(a, token, need, now_ns, ret_name, ret_problem);
}

void
ls_access_cookie(const char *token, char ret_cookie[LS_ACCESS_COOKIE_BYTES])
{
	(void)snprintf(ret_cookie, LS_ACCESS_COOKIE_BYTES,
		ACCESS_COOKIE "=%.*s; Path=/; Secure; HttpOnly; SameSite=Strict%s",
		LS_TOKEN_BYTES, token, token[0] == '\0' ? "; Max-Age=0" : "");
}
