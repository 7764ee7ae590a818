/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/pages/prom_text.h"

#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"

#define PROM_NUMBER_MAX_BYTES 64 /* the longest a double can need is 24 */

static int
prom_fail(struct ls_prom_text *p, int rc, const char *why)
{
	p->why = why;
	return rc;
}

static bool
prom_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static char *
prom_skip_blanks(char *s)
{
	while (prom_is_blank(*s))
		s++;
	return s;
}

static bool
prom_is_name_char(char c, bool first, bool colons)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
		(colons && c == ':') || (!first && c >= '0' && c <= '9');
}

/* Length of the name at s, 0 if there is none. */
static size_t
prom_name_len(const char *s, bool colons)
{
	size_t n = 0;

	while (prom_is_name_char(s[n], n == 0, colons))
		n++;
	return n;
}

/* --- labels --------------------------------------------------------------- */

/*
 * The quoted value at *s, its escapes undone in place and ended with NUL; *s moves
 * behind the closing quote. Escapes only shorten, so what is written never passes what
 * is read.
 */
static int
prom_value(struct ls_prom_text *p, char **s, const char **ret_value)
{
	char *from = *s, *to = *s;

	if (*from++ != '"')
		return prom_fail(p, -LS_EPARSE, "a label value without quotes");
	*ret_value = to;
	for (; *from != '"'; from++) {
		if (*from == '\0')
			return prom_fail(p, -LS_EPARSE,
				"a label value without its end");
		if (*from != '\\') {
			*to++ = *from;
			continue;
		}
		from++;
		if (*from == 'n')
			*to++ = '\n';
		else if (*from == '\\' || *from == '"')
			*to++ = *from;
		else
			return prom_fail(p, -LS_EPARSE, "an invalid escape");
	}
	*s = from + 1;
	*to = '\0';
	return 0;
}

static bool
prom_has_label(const struct ls_prom_text *p, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(p->label[i].name, name) == 0)
			return true;
	}
	return false;
}

/* name = "value" at *s, which moves behind it. */
static int
prom_label(struct ls_prom_text *p, char **s, size_t count)
{
	struct ls_prom_label *l = &p->label[count];
	size_t len = prom_name_len(*s, false);
	char *name = *s;
	int rc;

	if (len == 0)
		return prom_fail(p, -LS_EPARSE, "a label without a name");
	if (len >= LS_PROM_NAME_MAX_BYTES)
		return prom_fail(p, -LS_ELIMIT, "the name of a label is too long");
	*s = prom_skip_blanks(name + len);
	if (**s != '=')
		return prom_fail(p, -LS_EPARSE, "a label without =");
	*s = prom_skip_blanks(*s + 1);
	name[len] = '\0'; /* here was a blank or the = */
	rc = prom_value(p, s, &l->value);
	if (rc != 0)
		return rc;
	if (prom_has_label(p, count, name))
		return prom_fail(p, -LS_EPARSE, "a repeated label");
	l->name = name;
	return 0;
}

/* { ... } at *s, which moves behind it. */
static int
prom_labels(struct ls_prom_text *p, char **s, size_t *ret_count)
{
	size_t count = 0;
	int rc;

	*s = prom_skip_blanks(*s + 1);
	while (**s != '}') {
		if (count == LS_PROM_LABELS_MAX)
			return prom_fail(p, -LS_ELIMIT, "too many labels");
		rc = prom_label(p, s, count);
		if (rc != 0)
			return rc;
		count++;
		*s = prom_skip_blanks(*s);
		if (**s == ',')
			*s = prom_skip_blanks(*s + 1);
		else if (**s != '}')
			return prom_fail(p, -LS_EPARSE, "labels without their end");
	}
	++*s;
	*ret_count = count;
	return 0;
}

/* --- numbers -------------------------------------------------------------- */

/*
 * The number at *s, which moves behind it. strtod alone would take nan(...), hex, and a
 * locale's comma, were one ever set: only letters and signs of decimal numbers reach
 * it.
 */
static int
prom_number(struct ls_prom_text *p, char **s, double *ret_value)
{
	static const char allowed[] = "0123456789+-.eEinfINFtyTYaA";
	char text[PROM_NUMBER_MAX_BYTES], *end;
	size_t len = strcspn(*s, " \t");

	if (len == 0)
		return prom_fail(p, -LS_EPARSE, "a number is missing");
	if (len >= sizeof(text) || strspn(*s, allowed) < len)
		return prom_fail(p, -LS_EPARSE, "an invalid number");
	memcpy(text, *s, len);
	text[len] = '\0';
	*ret_value = strtod(text, &end);
	if (*end != '\0')
		return prom_fail(p, -LS_EPARSE, "an invalid number");
	*s += len;
	return 0;
}

/* Behind the value: a time stamp, an exemplar, or nothing. All of it only checked. */
static int
prom_rest(struct ls_prom_text *p, char *s)
{
	size_t labels;
	double number;
	int rc = 0;

	s = prom_skip_blanks(s);
	if (*s != '\0' && *s != '#') {
		rc = prom_number(p, &s, &number);
		s = prom_skip_blanks(s);
	}
	if (rc == 0 && *s == '#') {
		s = prom_skip_blanks(s + 1);
		if (*s != '{')
			return prom_fail(p, -LS_EPARSE, "an exemplar without labels");
		rc = prom_labels(p, &s, &labels);
		s = prom_skip_blanks(s);
		if (rc == 0)
			rc = prom_number(p, &s, &number);
		s = prom_skip_blanks(s);
		if (rc == 0 && *s != '\0') {
			rc = prom_number(p, &s, &number);
			s = prom_skip_blanks(s);
		}
	}
	if (rc == 0 && *s != '\0')
		return prom_fail(p, -LS_EPARSE, "text after a sample");
	return rc;
}

/* --- lines ---------------------------------------------------------------- */

/* Is it of the family of the last TYPE line? */
static bool
prom_is_of_family(const struct ls_prom_text *p, const char *name)
{
	static const char *const suffix[] = { "", "_total", "_sum", "_count", "_bucket",
		"_created", "_gsum", "_gcount", "_info" };
	size_t i, len = strlen(p->family);

	if (len == 0 || strncmp(name, p->family, len) != 0)
		return false;
	for (i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++) {
		if (strcmp(name + len, suffix[i]) == 0)
			return true;
	}
	return false;
}

/* Told only when the whole line was good. An exemplar's labels use the places of the
 * sample's. */
static int
prom_sample(struct ls_prom_text *p, char *s)
{
	struct ls_prom_sample sample = {
		.name = s, .label = p->label, .line = p->line
	};
	struct ls_prom_label kept[LS_PROM_LABELS_MAX];
	size_t len = prom_name_len(s, true);
	char *name_end = s + len;
	int rc = 0;

	if (len == 0)
		return prom_fail(p, -LS_EPARSE, "a sample without a name");
	if (len >= LS_PROM_NAME_MAX_BYTES)
		return prom_fail(p, -LS_ELIMIT, "the name of a sample is too long");
	s = prom_skip_blanks(name_end);
	if (*s == '{')
		rc = prom_labels(p, &s, &sample.label_count);
	else if (s == name_end)
		return prom_fail(p, -LS_EPARSE, "no blank after a name");
	if (rc == 0) {
		s = prom_skip_blanks(s);
		rc = prom_number(p, &s, &sample.value);
	}
	if (rc == 0) {
		memcpy(kept, p->label, sample.label_count * sizeof(kept[0]));
		rc = prom_rest(p, s);
		memcpy(p->label, kept, sample.label_count * sizeof(kept[0]));
	}
	if (rc != 0)
		return rc;
	if (p->samples == LS_PROM_SAMPLES_MAX)
		return prom_fail(p, -LS_ELIMIT, "too many samples");
	*name_end = '\0';
	sample.type = prom_is_of_family(p, sample.name) ? p->type : LS_PROM_UNTYPED;
	p->samples++;
	p->each(p->arg, &sample);
	return 0;
}

static int
prom_type(struct ls_prom_text *p, char *s)
{
	static const struct {
		const char *name;
		enum ls_prom_type type;
	} types[] = { { "counter", LS_PROM_COUNTER }, { "gauge", LS_PROM_GAUGE },
		{ "histogram", LS_PROM_HISTOGRAM }, { "summary", LS_PROM_SUMMARY },
		{ "untyped", LS_PROM_UNTYPED }, { "unknown", LS_PROM_UNTYPED },
		{ "info", LS_PROM_OTHER }, { "stateset", LS_PROM_OTHER },
		{ "gaugehistogram", LS_PROM_OTHER } };
	size_t i, len = prom_name_len(s, true);
	char *type = prom_skip_blanks(s + len);

	if (len == 0 || type == s + len)
		return prom_fail(p, -LS_EPARSE, "a TYPE line without a name");
	if (len >= sizeof(p->family))
		return prom_fail(p, -LS_ELIMIT, "the name of a TYPE line is too long");
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(type, types[i].name) == 0)
			break;
	}
	if (i == sizeof(types) / sizeof(types[0]))
		return prom_fail(p, -LS_EPARSE, "a TYPE line of no known type");
	memcpy(p->family, s, len);
	p->family[len] = '\0';
	p->type = types[i].type;
	return 0;
}

/* Comments mean nothing, but for TYPE and EOF. */
static int
prom_comment(struct ls_prom_text *p, char *s)
{
	if (strcmp(s, "# EOF") == 0) { /* exactly: anything else is a comment */
		p->ended = true;
		return 0;
	}
	s = prom_skip_blanks(s + 1);
	if (strncmp(s, "TYPE", 4) == 0 && prom_is_blank(s[4]))
		return prom_type(p, prom_skip_blanks(s + 5));
	return 0;
}

/* A line of len bytes, its newline not among them. */
static int
prom_line(struct ls_prom_text *p, const char *line, size_t len)
{
	bool whole = len <= LS_PROM_LINE_MAX_BYTES;
	char *s = p->text;

	len = whole ? len : LS_PROM_LINE_MAX_BYTES;
	memcpy(s, line, len);
	while (len > 0 && (prom_is_blank(s[len - 1]) || s[len - 1] == '\r'))
		len--;
	s[len] = '\0';
	s = prom_skip_blanks(s);
	if (!whole) /* a long help text hurts nobody */
		return *s == '#' ? 0 : prom_fail(p, -LS_ELIMIT, "a line is too long");
	if (strlen(p->text) != len)
		return prom_fail(p, -LS_EPARSE, "a byte of 0");
	if (*s == '\0')
		return 0;
	if (p->ended)
		return prom_fail(p, -LS_EPARSE, "text after # EOF");
	return *s == '#' ? prom_comment(p, s) : prom_sample(p, s);
}

int
ls_prom_text_read(struct ls_prom_text *p, const char *text, size_t len,
	ls_prom_each *each, void *arg)
{
	const char *end = text + len, *newline;
	int rc = 0;

	*p = (struct ls_prom_text){ .each = each, .arg = arg, .why = "" };
	while (rc == 0 && text < end) {
		newline = memchr(text, '\n', (size_t)(end - text));
		p->line++;
		rc = prom_line(p, text,
			(size_t)((newline != NULL ? newline : end) - text));
		text = newline != NULL ? newline + 1 : end;
	}
	return rc;
}
