/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/keyvalue.h"

#include <string.h>
#include "proto/limits.h"

static bool
keyvalue_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void
keyvalue_trim(const char **s, size_t *len)
{
	while (*len > 0 && keyvalue_is_blank((*s)[*len - 1]))
		(*len)--;
	while (*len > 0 && keyvalue_is_blank(**s)) {
		(*s)++;
		(*len)--;
	}
}

/* The piece of the text up to `end`; false at the end of the text. */
static bool
keyvalue_next(const char **text, size_t *len, char end, const char **ret_piece,
	size_t *ret_len)
{
	const char *stop;

	if (*len == 0)
		return false;
	stop = memchr(*text, end, *len);
	*ret_piece = *text;
	*ret_len = stop != NULL ? (size_t)(stop - *text) : *len;
	*len -= *ret_len + (stop != NULL);
	*text += *ret_len + (stop != NULL);
	return true;
}

/* Cuts a piece at the first `between`; false if it has none, or no key before it. */
static bool
keyvalue_cut(const char *piece, size_t len, char between, struct ls_keyvalue *ret_kv)
{
	const char *at = memchr(piece, between, len);

	if (at == NULL)
		return false;
	ret_kv->key = piece;
	ret_kv->key_len = (size_t)(at - piece);
	ret_kv->value = at + 1;
	ret_kv->value_len = len - ret_kv->key_len - 1;
	keyvalue_trim(&ret_kv->key, &ret_kv->key_len);
	return ret_kv->key_len > 0;
}

/* What becomes of a value; false if it is none. buf: LS_KEYVALUE_LABEL_MAX_BYTES. */
typedef bool keyvalue_shape(struct ls_keyvalue *kv, char *buf);

static bool
keyvalue_as_it_is(struct ls_keyvalue *kv, char *buf)
{
	(void)kv;
	(void)buf;
	return true;
}

static bool
keyvalue_trimmed(struct ls_keyvalue *kv, char *buf)
{
	(void)buf;
	keyvalue_trim(&kv->value, &kv->value_len);
	return true;
}

/* Takes a pair of quotes off, if there is one. */
static bool
keyvalue_maybe_quoted(struct ls_keyvalue *kv, char *buf)
{
	(void)keyvalue_trimmed(kv, buf);
	if (kv->value_len >= 2 && (kv->value[0] == '\'' || kv->value[0] == '"') &&
		kv->value[kv->value_len - 1] == kv->value[0]) {
		kv->value++;
		kv->value_len -= 2;
	}
	return true;
}

/* Takes the quotes and back-slashes off; false if it is not quoted or too long. */
static bool
keyvalue_quoted(struct ls_keyvalue *kv, char *buf)
{
	const char *s = kv->value;
	size_t i, used = 0, len = kv->value_len;

	if (len < 2 || s[0] != '"' || s[len - 1] != '"')
		return false;
	for (i = 1; i < len - 1; i++) {
		if (s[i] == '\\' && i + 1 < len - 1)
			i++;
		if (used == LS_KEYVALUE_LABEL_MAX_BYTES)
			return false;
		buf[used++] = s[i];
	}
	kv->value = buf;
	kv->value_len = used;
	return true;
}

/* The pairs of a text: pieces up to `end`, each cut at the first `between`. */
static size_t
keyvalue_walk(const char *text, size_t len, char end, char between,
	keyvalue_shape *shape, ls_keyvalue_each *each, void *arg)
{
	char buf[LS_KEYVALUE_LABEL_MAX_BYTES];
	const char *piece;
	size_t n, bad = 0;

	while (keyvalue_next(&text, &len, end, &piece, &n)) {
		struct ls_keyvalue kv;

		if (end == '\n' && shape != keyvalue_as_it_is)
			keyvalue_trim(&piece, &n); /* lines that people write */
		if (n == 0 && end != ',')
			continue;
		if (keyvalue_cut(piece, n, between, &kv) && shape(&kv, buf))
			each(arg, &kv);
		else
			bad++;
	}
	return bad;
}

size_t
ls_keyvalue_tpu_env(const char *text, size_t len, ls_keyvalue_each *each, void *arg)
{
	return keyvalue_walk(text, len, '\n', ':', keyvalue_maybe_quoted, each, arg);
}

size_t
ls_keyvalue_environ(const char *text, size_t len, char end, ls_keyvalue_each *each,
	void *arg)
{
	return keyvalue_walk(text, len, end, '=', keyvalue_as_it_is, each, arg);
}

size_t
ls_keyvalue_labels(const char *text, size_t len, ls_keyvalue_each *each, void *arg)
{
	while (len > 0 && text[len - 1] == '\n')
		len--;
	return keyvalue_walk(text, len, ',', '=', keyvalue_trimmed, each, arg);
}

size_t
ls_keyvalue_labels_file(const char *text, size_t len, ls_keyvalue_each *each, void *arg)
{
	return keyvalue_walk(text, len, '\n', '=', keyvalue_quoted, each, arg);
}

bool
ls_keyvalue_is(const struct ls_keyvalue *kv, const char *name)
{
	return kv->key_len == strlen(name) && memcmp(kv->key, name, kv->key_len) == 0;
}
