/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/step_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "proto/limits.h"

#define LINE_NUMBER_MAX_BYTES 32
#define LINE_STEP_MAX (1ull << 53)

/* What is left of the line. */
struct line_cursor {
	const char *at;
	size_t left;
};

static bool
line_word(struct line_cursor *c, const char *word)
{
	size_t len = strlen(word);

	if (c->left < len || memcmp(c->at, word, len) != 0)
		return false;
	c->at += len;
	c->left -= len;
	return true;
}

/* Digits, with a point at most; as text. */
static bool
line_digits(struct line_cursor *c, char text[LINE_NUMBER_MAX_BYTES])
{
	size_t n = 0, points = 0;

	while (n < c->left &&
		((c->at[n] >= '0' && c->at[n] <= '9') || c->at[n] == '.')) {
		points += c->at[n] == '.';
		if (++n == LINE_NUMBER_MAX_BYTES)
			return false;
	}
	if (n == 0 || points > 1 || c->at[0] == '.')
		return false;
	memcpy(text, c->at, n);
	text[n] = '\0';
	c->at += n;
	c->left -= n;
	return true;
}

/* Where a list of values may go on, or end. */
static bool
line_is_end(const struct line_cursor *c)
{
	return c->left == 0 || c->at[0] == ',' || c->at[0] == ' ' || c->at[0] == '\r';
}

/* The rate of operations is not needed, and may be nan where the model is not known. */
static bool
line_rate(struct line_cursor *c)
{
	char text[LINE_NUMBER_MAX_BYTES];

	return line_word(c, "nan") || line_word(c, "inf") || line_digits(c, text);
}

static bool
line_values(struct line_cursor *c, struct ls_step_line *l)
{
	char text[LINE_NUMBER_MAX_BYTES];
	double seconds;

	if (!line_digits(c, text) || strchr(text, '.') != NULL || strlen(text) > 16)
		return false;
	l->step = strtoull(text, NULL, 10);
	if (l->step >= LINE_STEP_MAX || !line_word(c, ", seconds: ") ||
		!line_digits(c, text))
		return false;
	seconds = strtod(text, NULL);
	if (!(seconds * 1e9 < (double)LS_PHASE_MAX_NS) ||
		!line_word(c, ", TFLOP/s/device: ") || !line_rate(c) || !line_is_end(c))
		return false;
	l->duration_ns = (uint64_t)llround(seconds * 1e9);
	l->tokens_rate = NAN;
	if (line_word(c, ", Tokens/s/device: ") && line_digits(c, text) &&
		line_is_end(c))
		l->tokens_rate = strtod(text, NULL);
	return true;
}

bool
ls_step_line_parse(const char *text, size_t len, struct ls_step_line *ret_line)
{
	static const char begin[] = "completed step: ";
	const char *found = memmem(text, len, begin, sizeof(begin) - 1);
	struct ls_step_line line;
	struct line_cursor c;

	if (found == NULL)
		return false;
	c.at = found + sizeof(begin) - 1;
	c.left = len - (size_t)(c.at - text);
	if (!line_values(&c, &line))
		return false;
	*ret_line = line;
	return true;
}
