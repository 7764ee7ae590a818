/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_US 1000000
#define TEXT_YEAR_0_US (-62167219200ll * TEXT_US)
#define TEXT_YEAR_10000_US (253402300800ll * TEXT_US)

int
ls_text_copy(char *dst, size_t size, const char *src)
{
	size_t len = strlen(src);

	if (len >= size)
		return -LS_ELIMIT;
	memcpy(dst, src, len + 1);
	return 0;
}

/*
 * Length of the valid UTF-8 character at s (1 to 4), or 0: too short, overlong, a
 * surrogate or beyond U+10FFFF.
 */
static size_t
text_utf8(const char *s, size_t len, uint32_t *ret_char)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t *b = (const uint8_t *)s;
	uint32_t c;
	size_t n;

	if (len == 0)
		return 0;
	if (b[0] < 0x80) {
		*ret_char = b[0];
		return 1;
	}
	n = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
	if (b[0] < 0xc0 || b[0] > 0xf7 || n > len)
		return 0;
	c = b[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((b[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (b[i] & 0x3fu);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret_char = c;
	return n;
}

static bool
text_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f);
}

/* Characters that turn the direction of what follows. */
static bool
text_is_bidi(uint32_t c)
{
	return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
		c == 0x200e || c == 0x200f;
}

bool
ls_text_is_name(const char *s, size_t len, size_t max)
{
	uint32_t c;
	size_t n;

	if (len == 0 || len > max)
		return false;
	for (size_t i = 0; i < len; i += n) {
		n = text_utf8(s + i, len - i, &c);
		if (n == 0 || text_is_control(c))
			return false;
	}
	return true;
}

size_t
ls_text_escape(char *dst, size_t size, const char *s, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	size_t out = 0;
	uint32_t c;

	if (size == 0)
		return 0;
	for (size_t i = 0; i < len;) {
		size_t n = text_utf8(s + i, len - i, &c);
		bool plain = n > 0 && !text_is_control(c) && !text_is_bidi(c);
		size_t eat = n > 0 ? n : 1;

		if (size - 1 - out < (plain ? n : 4 * eat))
			break;
		if (plain) {
			memcpy(dst + out, s + i, n);
			out += n;
		}
		for (size_t k = 0; !plain && k < eat; k++) {
			uint8_t b = (uint8_t)s[i + k];

			dst[out++] = '\\';
			dst[out++] = 'x';
			dst[out++] = digits[b >> 4];
			dst[out++] = digits[b & 15];
		}
		i += eat;
	}
	dst[out] = '\0';
	return out;
}

void
ls_text_hex(char *dst, const uint8_t *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		dst[2 * i] = digits[bytes[i] >> 4];
		dst[2 * i + 1] = digits[bytes[i] & 15];
	}
	dst[2 * len] = '\0';
}

int
ls_text_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

size_t
ls_text_digits(const char *s, size_t len, uint64_t max, uint64_t *ret_v)
{
	uint64_t v = 0;
	size_t n;

	for (n = 0; n < len && s[n] >= '0' && s[n] <= '9'; n++) {
		uint64_t digit = (uint64_t)(s[n] - '0');

		if (digit > max || v > (max - digit) / 10)
			return 0;
		v = 10 * v + digit;
	}
	if (n > 0)
		*ret_v = v;
	return n;
}

bool
ls_text_number(const char *s, uint64_t max, uint64_t *ret_v)
{
	uint64_t v;
	size_t n = ls_text_digits(s, SIZE_MAX, max, &v);

	if (n == 0 || s[n] != '\0')
		return false;
	*ret_v = v;
	return true;
}

int
ls_text_unhex(uint8_t *dst, size_t len, const char *hex)
{
	if (strnlen(hex, 2 * len + 1) != 2 * len)
		return -LS_EPARSE;
	for (size_t i = 0; i < 2 * len; i++)
		if (ls_text_hex_value(hex[i]) < 0)
			return -LS_EPARSE;
	for (size_t i = 0; i < len; i++)
		dst[i] = (uint8_t)(ls_text_hex_value(hex[2 * i]) << 4 |
			ls_text_hex_value(hex[2 * i + 1]));
	return 0;
}

void
ls_text_crockford(char *dst, size_t n, uint64_t v)
{
	static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

	dst[n] = '\0';
	for (size_t i = n; i-- > 0; v >>= 5)
		dst[i] = digits[v & 31];
}

/* The last n digits of v and what follows them; where that ends. Answers hold thousands
 * of times. */
static char *
text_put_digits(char *dst, int v, int n, char then)
{
	for (int i = n; i > 0; i--, v /= 10)
		dst[i - 1] = (char)('0' + v % 10);
	dst[n] = then;
	return dst + n + 1;
}

void
ls_text_time(char *dst, int64_t t_wall_us)
{
	int64_t us = t_wall_us;
	struct tm tm;
	time_t seconds;
	int ms;

	if (us < TEXT_YEAR_0_US)
		us = TEXT_YEAR_0_US;
	if (us >= TEXT_YEAR_10000_US)
		us = TEXT_YEAR_10000_US - 1;
	seconds = us / TEXT_US - (us % TEXT_US < 0);
	ms = (int)((us - seconds * TEXT_US) / 1000);
	(void)gmtime_r(&seconds, &tm); /* cannot fail: four-digit years */
	dst = text_put_digits(dst, tm.tm_year + 1900, 4, '-');
	dst = text_put_digits(dst, tm.tm_mon + 1, 2, '-');
	dst = text_put_digits(dst, tm.tm_mday, 2, 'T');
	dst = text_put_digits(dst, tm.tm_hour, 2, ':');
	dst = text_put_digits(dst, tm.tm_min, 2, ':');
	dst = text_put_digits(dst, tm.tm_sec, 2, '.');
	dst = text_put_digits(dst, ms, 3, 'Z');
	*dst = '\0';
}

double
ls_text_round(double v, int digits)
{
	char text[64];

	LS_ASSERT(digits >= 1 && digits <= LS_TEXT_DIGITS_MAX);
	(void)snprintf(text, sizeof(text), "%.*e", digits - 1, v);
	v = strtod(text, NULL);
	return v == 0 ? 0 : v;
}
