/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/support/harness.h"
#include "tests/support/scenario/scenario_run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"

typedef void scenario_found(void *arg, const struct scenario *s);

void
scenario_wrong(struct scenario_run *r, const char *format, ...)
{
	int at = snprintf(r->wrong, sizeof(r->wrong), "%s:%d: ", r->s->file, r->line);
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(r->wrong + at, sizeof(r->wrong) - (size_t)at, format, ap);
	va_end(ap);
	longjmp(r->end, 1);
}

double
scenario_number(struct scenario_run *r, const char *text, double twin)
{
	double sum = 0;

	for (char op = '+'; op != '\0'; op = *text++) {
		char *end;
		double x = strtod(text, &end);

		if (strncmp(text, "twin", 4) == 0 && !isnan(twin)) {
			x = twin;
			end += 4;
		}
		if (end == text || (*end != '\0' && strchr("*/+-", *end) == NULL))
			scenario_wrong(r, "\"%s\" is not a number", text);
		sum = op == '*'	    ? sum * x
			: op == '/' ? sum / x
			: op == '+' ? sum + x
				    : sum - x;
		text = end;
	}
	return sum;
}

void
scenario_only(struct scenario_run *r, size_t first, const char *keys)
{
	char key[64];

	for (size_t i = first; i < r->count; i++) {
		(void)snprintf(key, sizeof(key),
			"%.*s=", (int)strcspn(r->words[i], "="), r->words[i]);
		if (strstr(keys, key) == NULL)
			scenario_wrong(r, "\"%s\" is unknown here (%s)", r->words[i],
				keys[0] != '\0' ? keys : "no more words");
	}
}

const char *
scenario_option(const struct scenario_run *r, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 1; i < r->count; i++)
		if (strncmp(r->words[i], key, len) == 0 && r->words[i][len] == '=')
			return r->words[i] + len + 1;
	return NULL;
}

/* The value of the name at `at`, after its '$'. */
static const char *
value_of(struct scenario_run *r, const char *at)
{
	size_t len = strspn(at, NAME_CHARS), i = r->name_count;

	while (i-- > 0)
		if (strncmp(r->names[i].name, at, len) == 0 &&
			r->names[i].name[len] == '\0')
			return r->names[i].value;
	scenario_wrong(r, "\"$%.*s\" has no value", (int)len, at);
}

/* The next line into words: $NAME becomes its value, "..." is one word, # begins a comment. */
static void
split(struct scenario_run *r)
{
	char *to = r->text, *end = to + sizeof(r->text) - sizeof(r->names->value) - 2;
	bool quoted = false, in = false;
	const char *at = r->at;

	r->count = 0;
	r->line++;
	r->at += strcspn(at, "\n");
	r->at += *r->at == '\n';
	for (; *at != '\0' && *at != '\n' && (in || *at != '#'); at++) {
		if (to >= end || r->count == SCENARIO_WORDS_MAX)
			scenario_wrong(r, "the line is too long");
		if (!quoted && (*at == ' ' || *at == '\t')) {
			in = false;
			continue;
		}
		if (!in) {
			*to++ = '\0';
			r->words[r->count++] = to;
		}
		in = true;
		if (*at == '$') {
			to = stpcpy(to, value_of(r, at + 1));
			at += strspn(at + 1, NAME_CHARS);
		} else if (*at == '"') {
			quoted = !quoted;
		} else {
			*to++ = *at;
		}
	}
	*to = '\0';
}

static void
run_lines(struct scenario_run *r)
{
	if (r->s->title[0] == '\0')
		scenario_wrong(r, "want: scenario NAME");
	while (*r->at != '\0') {
		split(r);
		if (r->count > 0 && strcmp(r->words[0], "scenario") == 0)
			break;
		if (r->count > 0 && (r->job != NULL || strcmp(r->words[0], "for") != 0))
			scenario_obey(r);
	}
	if (r->repeats > 0)
		scenario_wrong(r, "\"repeat\" without \"done\"");
}

const char *
scenario_run(const struct scenario *s)
{
	static struct scenario_run run;
	struct scenario_run *r = &run;

	memset(r, 0, sizeof(*r));
	r->s = s;
	r->at = s->text;
	r->line = s->line;
	r->name_count = s->name_count;
	memcpy(r->names, s->names, sizeof(r->names));
	if (setjmp(r->end) == 0)
		run_lines(r);
	if (r->job != NULL)
		fake_job_free(r->job);
	if (r->twin != NULL)
		fake_job_free(r->twin);
	for (size_t i = 0; i < SCENARIO_BACK_MAX; i++)
		free(r->back[i]);
	json_decref(r->findings);
	json_decref(r->twins);
	json_decref(r->view);
	return r->wrong[0] != '\0' ? r->wrong : NULL;
}

/* --- files ---------------------------------------------------------------- */

/* Length of a word of a `for` line up to one of these; "..." hides them. */
static size_t
word_length(const char *at, const char *ends)
{
	bool quoted = false;
	size_t n = 0;

	for (; at[n] != '\0' && at[n] != '\n'; n++) {
		quoted ^= at[n] == '"';
		if (!quoted && strchr(ends, at[n]) != NULL)
			break;
	}
	return n;
}

/* The first of a,"b b",c without quotes; the rest of the list. */
static const char *
next_of(const char *list, char *to, size_t size)
{
	size_t len = word_length(list, ", \t"), quote = *list == '"';

	(void)snprintf(to, size, "%.*s", (int)(len - 2 * quote), list + quote);
	return list + len + (list[len] == ',');
}

static void choose(const struct scenario *s, const char *at, scenario_found *found,
	void *arg);

/* One choice of a `for` line: a value for each of its names. */
static void
choice(struct scenario s, const char *names, const char *values, const char *below,
	scenario_found *found, void *arg)
{
	size_t len = strlen(s.title);

	(void)snprintf(s.title + len, sizeof(s.title) - len, " %.*s",
		(int)word_length(values, " \t"), values);
	while (*names >= 'A' && *names <= 'Z' && s.name_count < SCENARIO_NAMES_MAX) {
		struct scenario_name *n = &s.names[s.name_count++];

		names = next_of(names, n->name, sizeof(n->name));
		values = next_of(values, n->value, sizeof(n->value));
	}
	choose(&s, below, found, arg);
}

/* Gives the scenario for each choice of the `for` lines at `at`. */
static void
choose(const struct scenario *s, const char *at, scenario_found *found, void *arg)
{
	const char *below = at + strcspn(at, "\n"), *names = at + 4, *values;
	char number[24];
	int from, to, len;

	if (strncmp(at, "for ", 4) != 0) {
		found(arg, s);
		return;
	}
	below += *below == '\n';
	values = names + strcspn(names, " \n");
	while (*(values += strspn(values, " ")) != '\n' && *values != '\0' &&
		*values != '#') {
		if (sscanf(values, "%d..%d%n", &from, &to, &len) != 2)
			choice(*s, names, values, below, found, arg);
		else
			for (to = from + LS_TEST_SEEDS(to - from + 1); from < to;
				from++) {
				(void)snprintf(number, sizeof(number), "%d", from);
				choice(*s, names, number, below, found, arg);
			}
		values += word_length(values, " \t");
	}
}

void
scenario_each(const char *file, const char *text, scenario_found *found, void *arg)
{
	struct scenario s = { .file = file };

	while (*text != '\0') {
		const char *line = text;
		size_t len = strcspn(text, "\n");

		s.line++;
		text += len + (text[len] == '\n');
		if (strncmp(line, "scenario ", 9) == 0) {
			(void)snprintf(s.title, sizeof(s.title), "%.*s",
				(int)strcspn(line + 9, " \n"), line + 9);
			s.text = text;
			choose(&s, text, found, arg);
		} else if (s.text == NULL && len > 0 && *line != '#') {
			s.text = ""; /* refused when it runs */
			found(arg, &s);
		}
	}
}
