/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend - what the HTTP side asks, answered: live questions from the engine at once,
 * stored ones through the reader.
 *
 * Owner:   the loop thread.
 * Units:   as in web/api/backend.h.
 * Errors:  as in web/api/backend.h.
 * Limits:  as in web/api/backend.h.
 */
#ifndef LS_COLLECTOR_BACKEND_H
#define LS_COLLECTOR_BACKEND_H

#include <stdint.h>
#include "collector/answer/reader.h"
#include "collector/ingest/core.h"
#include "collector/self.h"
#include "web/api/backend.h"

/* What answers are made from; lives as long as the HTTP side. */
struct ls_backend_parts {
	const struct ls_core *core;
	struct ls_reader *reader;
	int64_t (*now_us)(void *arg); /* the engine's now */
	void (*self)(void *arg, struct ls_self *ret_self);
	bool (*ready)(void *arg, const char **ret_why); /* as in web/api/backend.h */
	void *arg; /* of these three */
};

/* The interface over the parts, which stay the caller's. */
struct ls_backend ls_backend_of(struct ls_backend_parts *parts);

#endif
