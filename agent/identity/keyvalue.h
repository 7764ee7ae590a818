/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keyvalue - the texts in which a host and a job are described: names and values, from
 * outside.
 *
 * Owner:   pure functions on bytes; what `each` is given points into the text, or holds
 *          until it returns, and is not terminated.
 * Units:   none.
 * Errors:  none: a line that is none of these is passed over; the number of such lines
 *          is returned.
 * Limits:  LS_KEYVALUE_LABEL_MAX_BYTES of a quoted label; none otherwise.
 * Source:  tpu-env: a dump of a v4-256 (lines KEY: 'value', cut at the first colon);
 *          environ: proc(5); the downward API's labels file: kubernetes.io, "Downward
 *          API" (key="escaped value" lines).
 */
#ifndef LS_AGENT_KEYVALUE_H
#define LS_AGENT_KEYVALUE_H

#include <stdbool.h>
#include <stddef.h>

struct ls_keyvalue {
	const char *key, *value;
	size_t key_len, value_len;
};

/* Told of each pair. */
typedef void ls_keyvalue_each(void *arg, const struct ls_keyvalue *kv);

/* Lines of KEY: 'value'; the quotes may be absent or double. */
size_t ls_keyvalue_tpu_env(const char *text, size_t len, ls_keyvalue_each *each,
	void *arg);

/* KEY=VALUE, each ended by `end`: NUL in /proc/PID/environ, a line feed in a ring's
 * header. */
size_t ls_keyvalue_environ(const char *text, size_t len, char end,
	ls_keyvalue_each *each, void *arg);

/* k=v,k=v as in the attribute kube-labels of the metadata server. */
size_t ls_keyvalue_labels(const char *text, size_t len, ls_keyvalue_each *each,
	void *arg);

/* Lines of key="value" as in a labels file of the downward API. */
size_t ls_keyvalue_labels_file(const char *text, size_t len, ls_keyvalue_each *each,
	void *arg);

/* True if the key is this name. */
bool ls_keyvalue_is(const struct ls_keyvalue *kv, const char *name);

#endif
