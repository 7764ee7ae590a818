/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/conf_value.h"

#include "proto/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONF_TIME_US 1000000
#define CONF_TIME_END_US (253402300800ll * CONF_TIME_US) /* year 10000 */

struct conf_unit {
	const char *name;
	uint64_t factor;
};

/* Smallest first. A plain number counts in the unit that conf_parse_quantity is told.
 */
static const struct conf_unit conf_durations[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", 1000000 },
	{ "s", 1000000000 },
	{ "m", 60 * 1000000000ull },
	{ "h", 3600 * 1000000000ull },
	{ "d", 86400 * 1000000000ull },
};
#define CONF_DURATION_COUNT (sizeof(conf_durations) / sizeof(conf_durations[0]))

static const struct conf_unit conf_sizes[] = {
	{ "B", 1 },
	{ "KiB", 1024 },
	{ "MiB", 1024 * 1024 },
	{ "GiB", 1024 * 1024 * 1024 },
};
#define CONF_SIZE_COUNT (sizeof(conf_sizes) / sizeof(conf_sizes[0]))

/* A decimal number, with a fraction or not, and a unit of the table or none. */
static int
conf_parse_quantity(const char *text, const struct conf_unit *units, size_t count,
	uint64_t plain_factor, uint64_t *ret_value)
{
	uint64_t whole = 0, factor = plain_factor;
	double fraction = 0, place = 0.1;
	const char *s = text;
	size_t u;

	if (*s < '0' || *s > '9')
		return -LS_EPARSE;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (whole > INT64_MAX / 10)
			return -LS_ERANGE;
		whole = 10 * whole + (uint64_t)(*s - '0');
	}
	if (*s == '.') {
		s++;
		if (*s < '0' || *s > '9')
			return -LS_EPARSE;
		for (; *s >= '0' && *s <= '9'; s++, place /= 10)
			fraction += (*s - '0') * place;
	}
	if (*s != '\0') {
		for (u = 0; u < count && strcmp(units[u].name, s) != 0; u++)
			;
		if (u == count)
			return -LS_EPARSE;
		factor = units[u].factor;
	}
	if (whole > (INT64_MAX - factor) / factor) /* room for the fraction */
		return -LS_ERANGE;
	*ret_value = whole * factor + (uint64_t)(fraction * (double)factor + 0.5);
	return 0;
}

int
ls_conf_parse_duration(const char *text, uint64_t *ret_ns)
{
	return conf_parse_quantity(text, conf_durations, CONF_DURATION_COUNT,
		1000000000, ret_ns);
}

int
ls_conf_parse_size(const char *text, uint64_t *ret_bytes)
{
	return conf_parse_quantity(text, conf_sizes, CONF_SIZE_COUNT, 1, ret_bytes);
}

/* Exactly n digits at *s, which moves on; false if there are fewer. */
static bool
conf_digits(const char **s, int n, int *ret_value)
{
	int v = 0;

	for (int i = 0; i < n; i++, (*s)++) {
		if (**s < '0' || **s > '9')
			return false;
		v = 10 * v + (**s - '0');
	}
	*ret_value = v;
	return true;
}

static bool
conf_char(const char **s, const char *allowed)
{
	if (**s == '\0' || !strchr(allowed, **s))
		return false;
	(*s)++;
	return true;
}

/* ".ddd" at *s as microseconds, further digits cut off; 0 if there is no dot. */
static bool
conf_fraction_us(const char **s, int64_t *ret_us)
{
	int64_t us = 0, unit = CONF_TIME_US / 10;

	if (conf_char(s, ".")) {
		if (**s < '0' || **s > '9')
			return false;
		for (; **s >= '0' && **s <= '9'; (*s)++, unit /= 10)
			us += (**s - '0') * unit;
	}
	*ret_us = us;
	return true;
}

/* "Z" or "+hh:mm" at *s, in seconds east of UTC. */
static bool
conf_zone(const char **s, int *ret_seconds)
{
	int hours, minutes;
	bool west = **s == '-';

	if (conf_char(s, "Zz")) {
		*ret_seconds = 0;
		return true;
	}
	if (!conf_char(s, "+-") || !conf_digits(s, 2, &hours) || !conf_char(s, ":") ||
		!conf_digits(s, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	*ret_seconds = (hours * 60 + minutes) * (west ? -60 : 60);
	return true;
}

static bool
conf_date_valid(int year, int month, int day)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return month >= 1 && month <= 12 && day >= 1 &&
		day <= days[month - 1] + (month == 2 && leap);
}

/* RFC 3339, section 5.6; a space may stand for the T, seconds may be 60. */
static int
conf_parse_rfc3339(const char *s, int64_t *ret_us)
{
	struct tm tm = { 0 };
	int64_t fraction_us;
	int year, month, zone_s;

	if (!conf_digits(&s, 4, &year) || !conf_char(&s, "-") ||
		!conf_digits(&s, 2, &month) || !conf_char(&s, "-") ||
		!conf_digits(&s, 2, &tm.tm_mday) || !conf_char(&s, "Tt ") ||
		!conf_digits(&s, 2, &tm.tm_hour) || !conf_char(&s, ":") ||
		!conf_digits(&s, 2, &tm.tm_min) || !conf_char(&s, ":") ||
		!conf_digits(&s, 2, &tm.tm_sec) ||
		!conf_fraction_us(&s, &fraction_us) || !conf_zone(&s, &zone_s) ||
		*s != '\0')
		return -LS_EPARSE;
	if (!conf_date_valid(year, month, tm.tm_mday) || tm.tm_hour > 23 ||
		tm.tm_min > 59 || tm.tm_sec > 60)
		return -LS_EPARSE;
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	*ret_us = (timegm(&tm) - zone_s) * CONF_TIME_US + fraction_us;
	return 0;
}

static int
conf_parse_unix(const char *s, int64_t *ret_us)
{
	int64_t seconds = 0, fraction_us;

	if (*s < '0' || *s > '9')
		return -LS_EPARSE;
	for (; *s >= '0' && *s <= '9'; s++) {
		seconds = 10 * seconds + (*s - '0');
		if (seconds >= CONF_TIME_END_US / CONF_TIME_US)
			return -LS_EPARSE;
	}
	if (!conf_fraction_us(&s, &fraction_us) || *s != '\0')
		return -LS_EPARSE;
	*ret_us = seconds * CONF_TIME_US + fraction_us;
	return 0;
}

int
ls_conf_parse_time(const char *s, int64_t now_us, int64_t *ret_us)
{
	uint64_t ns;

	if (*s == '-') {
		int64_t ago_us;

		if (ls_conf_parse_duration(s + 1, &ns) != 0)
			return -LS_EPARSE;
		ago_us = (int64_t)(ns / 1000);
		if (now_us < INT64_MIN + ago_us)
			return -LS_EPARSE;
		*ret_us = now_us - ago_us;
		return 0;
	}
	if (strnlen(s, 5) == 5 && s[4] == '-')
		return conf_parse_rfc3339(s, ret_us);
	return conf_parse_unix(s, ret_us);
}

static int
conf_parse_int(const char *text, int64_t *ret_value)
{
	char *end;
	long long v;

	if (!isdigit((unsigned char)*text) && *text != '-')
		return -LS_EPARSE;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (end == text || *end != '\0')
		return -LS_EPARSE;
	if (errno == ERANGE)
		return -LS_ERANGE;
	*ret_value = v;
	return 0;
}

/* True if the word is one of "a|b|c". */
static bool
conf_is_enum_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *s = list;; s++) {
		size_t n = strcspn(s, "|");

		if (n == len && memcmp(s, word, n) == 0)
			return true;
		s += n;
		if (*s == '\0')
			return false;
	}
}

/* In the greatest unit that divides it. */
static void
conf_format_quantity(char *dst, size_t size, const struct conf_unit *units,
	size_t count, uint64_t v)
{
	size_t u = count - 1;

	while (u > 0 && (v == 0 || v % units[u].factor != 0))
		u--;
	(void)snprintf(dst, size, "%llu%s", (unsigned long long)(v / units[u].factor),
		units[u].name);
}

/* A value of the option's type in the form in which it is written. */
static void
conf_format_number(char *dst, size_t size, enum ls_conf_type type, int64_t v)
{
	if (type == LS_CONF_DURATION)
		conf_format_quantity(dst, size, conf_durations, CONF_DURATION_COUNT,
			(uint64_t)v);
	else if (type == LS_CONF_SIZE)
		conf_format_quantity(dst, size, conf_sizes, CONF_SIZE_COUNT,
			(uint64_t)v);
	else
		(void)snprintf(dst, size, "%lld", (long long)v);
}

static int
conf_check_range(const struct ls_conf_option *o, int64_t v, char *why, size_t why_size)
{
	char least[32], most[32];

	if ((o->min == 0 && o->max == 0) || (v >= o->min && v <= o->max))
		return 0;
	conf_format_number(least, sizeof(least), o->type, o->min);
	conf_format_number(most, sizeof(most), o->type, o->max);
	(void)snprintf(why, why_size, "must be %s to %s", least, most);
	return -LS_ERANGE;
}

static int
conf_set_text(const struct ls_conf_option *o, const char *text, char *field, char *why,
	size_t why_size)
{
	if (o->type == LS_CONF_ENUM && !conf_is_enum_word(o->unit, text)) {
		(void)snprintf(why, why_size, "'%s' is not one of %s", text, o->unit);
		return -LS_EPARSE;
	}
	if (ls_text_copy(field, LS_CONF_VALUE_MAX_BYTES, text) != 0) {
		(void)snprintf(why, why_size, "longer than %d bytes",
			LS_CONF_VALUE_MAX_BYTES - 1);
		return -LS_ERANGE;
	}
	return 0;
}

static int
conf_parse_number(enum ls_conf_type type, const char *text, int64_t *ret_value)
{
	if (type == LS_CONF_INT)
		return conf_parse_int(text, ret_value);
	return type == LS_CONF_SIZE
		? ls_conf_parse_size(text, (uint64_t *)ret_value)
		: ls_conf_parse_duration(text, (uint64_t *)ret_value);
}

/* Into a field of 64 bits; those of quantities have no sign, and fit one. */
static int
conf_set_number(const struct ls_conf_option *o, const char *text, int64_t *field,
	char *why, size_t why_size)
{
	static const char *const words[] = {
		[LS_CONF_INT] = "whole number",
		[LS_CONF_SIZE] = "size (like 64MiB)",
		[LS_CONF_DURATION] = "duration (like 200ms, 5s, 1h)",
	};
	int64_t v;
	int rc = conf_parse_number(o->type, text, &v);

	if ((o->flags & LS_CONF_AUTO) != 0 && strcmp(text, "auto") == 0) {
		v = (int64_t)LS_CONF_AUTO_VALUE;
		rc = 0;
	} else if (rc == 0) {
		rc = conf_check_range(o, v, why, why_size);
	} else if (rc != -LS_ERANGE) {
		(void)snprintf(why, why_size, "'%s' is not a %s", text, words[o->type]);
	} else {
		(void)snprintf(why, why_size,
			o->type == LS_CONF_INT ? "'%s' is not a 64-bit number"
					       : "'%s' is too large",
			text);
	}
	if (rc == 0)
		*field = v;
	return rc;
}

static int
conf_set_bool(const char *text, bool *field, char *why, size_t why_size)
{
	static const char *const words[] = { "false", "true", "no", "yes", "0", "1" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i], text) == 0) {
			*field = i % 2 == 1;
			return 0;
		}
	}
	(void)snprintf(why, why_size, "'%s' is neither true nor false", text);
	return -LS_EPARSE;
}

int
ls_conf_value_set(const struct ls_conf_option *o, const char *text, void *into,
	char *why, size_t why_size)
{
	void *field = (char *)into + o->offset;

	switch (o->type) {
	case LS_CONF_STRING:
	case LS_CONF_ENUM:
		return conf_set_text(o, text, field, why, why_size);
	case LS_CONF_BOOL:
		return conf_set_bool(text, field, why, why_size);
	case LS_CONF_INT:
	case LS_CONF_DURATION:
	case LS_CONF_SIZE:
		return conf_set_number(o, text, field, why, why_size);
	}
	ls_assert_failed("a type of enum ls_conf_type", __FILE__, __LINE__);
}

void
ls_conf_value_get(const struct ls_conf_option *o, const void *from, char *dst,
	size_t size)
{
	const void *field = (const char *)from + o->offset;
	const char *text = field;

	switch (o->type) {
	case LS_CONF_STRING:
	case LS_CONF_ENUM:
		break;
	case LS_CONF_BOOL:
		text = *(const bool *)field ? "true" : "false";
		break;
	case LS_CONF_INT:
	case LS_CONF_DURATION:
	case LS_CONF_SIZE:
		if ((o->flags & LS_CONF_AUTO) != 0 &&
			*(const uint64_t *)field == LS_CONF_AUTO_VALUE) {
			text = "auto";
			break;
		}
		conf_format_number(dst, size, o->type, *(const int64_t *)field);
		return;
	}
	(void)snprintf(dst, size, "%s", text);
}

/* Levenshtein distance by rows; both words are shorter than LS_CONF_NAME_MAX_BYTES. */
static size_t
conf_distance(const char *a, const char *b)
{
	size_t row[LS_CONF_NAME_MAX_BYTES];
	size_t b_len = strlen(b);

	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1] != '\0'; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[b_len];
}

const char *
ls_conf_nearest(const char *word, const char *const *words, size_t count)
{
	const char *nearest = NULL;
	size_t len = strnlen(word, LS_CONF_NAME_MAX_BYTES);
	size_t best = len / 3 + 2; /* one letter in three may be wrong, and one more */

	if (len == LS_CONF_NAME_MAX_BYTES)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t d;

		if (strnlen(words[i], LS_CONF_NAME_MAX_BYTES) == LS_CONF_NAME_MAX_BYTES)
			continue;
		d = conf_distance(word, words[i]);
		if (d < best && d < strlen(words[i])) {
			best = d;
			nearest = words[i];
		}
	}
	return nearest;
}
