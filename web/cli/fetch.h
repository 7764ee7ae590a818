/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch - a small HTTP client: one request after another, each waited for.
 *
 * Owner:   the only thread; has a loop of its own.
 * Units:   ns.
 * Errors:  -LS_EPARSE the URL is not http[s]://HOST[:PORT], -EACCES the certificate of
 *          the server is not accepted, -ENOTCONN no answer,
 *          -ETIMEDOUT no whole answer in time, -LS_ELIMIT the answer is too long,
 *          -EIO the stream cannot be opened or written (errno says why), -ENOMEM.
 *          An HTTP status is no error here.
 * Limits:  LS_CLI_BODY_MAX_BYTES; of a stream LS_CLI_CHUNK_MAX_BYTES a chunk, and
 *          LS_CLI_PROGRESS_BYTES in each timeout.
 */
#ifndef LS_WEB_CLI_FETCH_H
#define LS_WEB_CLI_FETCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "proto/base/err.h"

struct ls_fetch;

/* Why the certificate of the server was not accepted (after -EACCES). */
const char *ls_fetch_why(const struct ls_fetch *f);

struct ls_fetched {
	int status;
	char *text; /* NUL-terminated beyond len; the caller frees */
	size_t len;
};

struct ls_fetch_options {
	const char *server; /* "http://127.0.0.1:7118", or https */
	uint64_t timeout_ns;
	/* files; "": those of the system, and no token. crl.pem beside ca_file, if
	 * there is one, lists revoked certificates. */
	const char *ca_file, *token_file;
};

/*
 * Prepares to ask a server. text: on failure, what is wrong. -errno: ca_file or
 * token_file cannot be used.
 */
int ls_fetch_new(const struct ls_fetch_options *o, struct ls_fetch **ret, char *text,
	size_t size) LS_MUSTCHECK;
void ls_fetch_free(struct ls_fetch *f);

/* Opens a stream when the body of a 200 begins, at most once; the caller closes it. NULL
 * if it cannot be opened; errno says why. */
struct ls_fetch_stream {
	FILE *(*open)(void *arg);
	void *arg;
};

/*
 * GETs a path. If `stream` is not NULL, the body of a 200 is written there as it comes,
 * without limit, and ret->text is empty.
 */
int ls_fetch_get(struct ls_fetch *f, const char *path,
	const struct ls_fetch_stream *stream, struct ls_fetched *ret) LS_MUSTCHECK;

/* POSTs a JSON body to a path. */
int ls_fetch_post(struct ls_fetch *f, const char *path, const char *body,
	struct ls_fetched *ret) LS_MUSTCHECK;

#endif
