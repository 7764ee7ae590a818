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

size_t
ls_keyvalue_tpu_env(const char *text, size_t len, ls_keyvalue_each *each, void *arg)
{
	const char *piece;
	size_t n, bad = 0;

	while (keyvalue_next(&text, &len, '\n', &piece, &n)) {
		struct ls_keyvalue kv;

		keyvalue_trim(&piece, &n);
		if (n == 0)
			continue;
		if (!keyvalue_cut(piece, n, ':', &kv)) {
			bad++;
			continue;
		}
		keyvalue_trim(&kv.value, &kv.value_len);
		if (kv.value_len >= 2 && (kv.value[0] == '\'' || kv.value[0] == '"') &&
			kv.value[kv.value_len - 1] == kv.value[0]) {
			kv.value++;
			kv.value_len -= 2;
		}
		each(arg, &kv);
	}
	return bad;
}

size_t
ls_keyvalue_environ(const char *text, size_t len, char end, ls_keyvalue_each *each,
	void *arg)
{
	const char *piece;
	size_t n, bad = 0;

	while (keyvalue_next(&text, &len, end, &piece, &n)) {
		struct ls_keyvalue kv;

		if (n == 0)
			continue;
		if (keyvalue_cut(piece, n, '=', &kv))
			each(arg, &kv);
		else
			bad++;
	}
	return bad;
}

size_t
ls_keyvalue_labels(const char *text, size_t len, ls_keyvalue_each *each, void *arg)
{
	const char *piece;
	size_t n, bad = 0;

	while (len > 0 && text[len - 1] == '\n')
		len--;
	while (keyvalue_next(&text, &len, ',', &piece, &n)) {
		struct ls_keyvalue kv;

		if (keyvalue_cut(piece, n, '=', &kv)) {
			keyvalue_trim(&kv.value, &kv.value_len);
			each(arg, &kv);
		} else {
			bad++;
		}
	}
	return bad;
}

/* Takes the quotes and back-slashes off; false if it is not quoted or too long. */
static bool
keyvalue_unquote(const char *s, size_t len, char *dst, size_t size, size_t *ret_len)
{
	size_t i, used = 0;

	if (len < 2 || s[0] != '"' || s[len - 1] != '"')
		return false;
	for (i = 1; i < len - 1; i++) {
		if (s[i] == '\\' && i + 1 < len - 1)
			i++;
		if (used == size)
			return false;
		dst[used++] = s[i];
	}
	*ret_len = used;
	return true;
}

size_t
ls_keyvalue_labels_file(const char *text, size_t len, ls_keyvalue_each *each, void *arg)
{
	char value[LS_KEYVALUE_LABEL_MAX_BYTES];
	const char *piece;
	size_t n, bad = 0;

	while (keyvalue_next(&text, &len, '\n', &piece, &n)) {
		struct ls_keyvalue kv;

		keyvalue_trim(&piece, &n);
		if (n == 0)
			continue;
		if (!keyvalue_cut(piece, n, '=', &kv) ||
			!keyvalue_unquote(kv.value, kv.value_len, value, sizeof(value),
				&kv.value_len)) {
			bad++;
			continue;
		}
		kv.value = value;
		each(arg, &kv);
	}
	return bad;
}

bool
ls_keyvalue_is(const struct ls_keyvalue *kv, const char *name)
{
	return kv->key_len == strlen(name) && memcmp(kv->key, name, kv->key_len) == 0;
}
