/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access - the HTTP side for others than this host: TLS, and a token for each request.
 *
 * A directory of keys holds the certificate (proto/wire/tls.h, LS_TLS_WEB) and the tokens
 * (web/http/tokens.h). A program sends "Authorization: Bearer TOKEN"; the page keeps it in
 * a cookie that scripts cannot read and other sites cannot send.
 *
 * Owner:   the loop thread.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  -EINVAL, -errno, logged.
 * Limits:  LS_TOKENS_WRONG_PER_S.
 * Source:  RFC 6750, RFC 6585 section 4 (429); RFC 6265bis, 4.1.3.2, for the name of the
 *          cookie.
 */
#ifndef LS_WEB_ACCESS_H
#define LS_WEB_ACCESS_H

#include <stdint.h>
#include "web/api/api.h"
#include "web/http/tokens.h"

struct bufferevent;
struct event_base;
struct evhttp_request;
struct ls_access;

/* Reads the keys and tokens in dir. dir "": plain and for everyone, *ret_access is
 * untouched. */
int ls_access_open(const char *dir, struct ls_access **ret_access) LS_MUSTCHECK;
/* Reads them again if they changed; what is wrong is logged. Accepts NULL. */
void ls_access_look(struct ls_access *a);
/* What is wrong with them; "": nothing, or a is NULL. */
const char *ls_access_problem(const struct ls_access *a);
/* When the first of its certificates and lists expires, Unix time; 0: a is NULL. */
int64_t ls_access_until_s(const struct ls_access *a);
/* Connections must be gone. Accepts NULL. */
void ls_access_close(struct ls_access *a);

/* The end of a new connection; arg: struct ls_access. */
struct bufferevent *ls_access_accept(struct event_base *base, void *arg);

/*
 * May the sender of a request have what needs `need`? 0: yes, and *ret_name is the name
 * of the token, borrowed until ls_access_look. Else -EACCES: 401, 403 or 429 in
 * ret_problem.
 */
int ls_access_check(struct ls_access *a, struct evhttp_request *req, enum ls_scope need,
	uint64_t now_ns, const char **ret_name,
	struct ls_problem *ret_problem) LS_MUSTCHECK;
/* The same for a token that came otherwise. */
int ls_access_check_token(struct ls_access *a, const char *token, enum ls_scope need,
	uint64_t now_ns, const char **ret_name,
	struct ls_problem *ret_problem) LS_MUSTCHECK;

/* The value of Set-Cookie that keeps a token, or ends it ("" as token). */
#define LS_ACCESS_COOKIE_BYTES 256
void ls_access_cookie(const char *token, char ret_cookie[LS_ACCESS_COOKIE_BYTES]);

#endif
