/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assets - the files of the page, embedded when lockstep is built (web/embed.sh).
 *
 * Only names of this table are ever served, from memory or, with a web root, from disk:
 * a path from a request never becomes a path of the file system.
 *
 * Owner:   none; static const.
 * Units:   bytes.
 * Errors:  -LS_EUNKNOWN, -errno of the file.
 * Limits:  LS_ASSET_MAX_BYTES when read from disk.
 */
#ifndef LS_WEB_ASSETS_H
#define LS_WEB_ASSETS_H

#include <stddef.h>
#include "proto/base/err.h"

#define LS_ASSET_MAX_BYTES (1024 * 1024)
#define LS_ASSET_PATH_MAX_BYTES 4096

struct evbuffer;

struct ls_asset {
	const char *path; /* as in the URL: "/app.js" */
	const char *mime;
	const char *etag; /* 32 hex digits of the content's SHA-256 */
	const unsigned char *bytes;
	size_t len;
	const unsigned char *gzip; /* NULL if there was no gzip when we were built */
	size_t gzip_len;
};

/* Generated: web/ui_assets.c. */
extern const struct ls_asset ls_ui_assets[];
extern const size_t ls_ui_asset_count;

/* The asset served at a path ("/" is "/index.html"), or NULL. */
const struct ls_asset *ls_asset_find(const char *path);

/* Appends the content of the file of this name below root (for work on the page). */
int ls_asset_read(const struct ls_asset *a, const char *root,
	struct evbuffer *out) LS_MUSTCHECK;

#endif
