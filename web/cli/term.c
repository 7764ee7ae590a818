/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/cli/term.h"
#include "proto/base/err.h"
#include "proto/base/text.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ls_term {
	bool color;
	unsigned next;
	char texts[LS_TERM_TEXTS][LS_TERM_TEXT_MAX_BYTES];
};

struct ls_table {
	size_t columns, count, capacity;
	bool right[LS_TERM_COLUMNS_MAX];
	char **cells;
};

struct ls_term *
ls_term_new(const char *color)
{
	struct ls_term *t = calloc(1, sizeof(*t));
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (!t)
		return NULL;
	if (strcmp(color, "auto") == 0)
		t->color = isatty(STDOUT_FILENO) &&
			!(no_color && no_color[0] != '\0') && term &&
			strcmp(term, "dumb") != 0;
	else
		t->color = strcmp(color, "always") == 0;
	return t;
}

void
ls_term_free(struct ls_term *t)
{
	free(t);
}

static char *
term_buffer(struct ls_term *t)
{
	t->next = (t->next + 1) % LS_TERM_TEXTS;
	return t->texts[t->next];
}

/* --- reading JSON --------------------------------------------------------- */

const json_t *
ls_pick(const json_t *v, const char *path)
{
	char key[64];

	while (v && *path != '\0') {
		size_t len = strcspn(path, ".");

		(void)snprintf(key, sizeof(key), "%.*s", (int)len, path);
		v = json_is_array(v) ? json_array_get(v, (size_t)strtoul(key, NULL, 10))
				     : json_object_get(v, key);
		path += len + (path[len] == '.' ? 1 : 0);
	}
	return json_is_null(v) ? NULL : v;
}

const char *
ls_pick_text(const json_t *v, const char *path)
{
	return json_string_value(ls_pick(v, path));
}

bool
ls_pick_number(const json_t *v, const char *path, double *ret)
{
	const json_t *n = ls_pick(v, path);

	if (!json_is_number(n))
		return false;
	*ret = json_number_value(n);
	return true;
}

/* --- texts ---------------------------------------------------------------- */

const char *
ls_term_safe(struct ls_term *t, const char *s, const char *dflt)
{
	char *text = term_buffer(t);

	if (!s)
		return dflt;
	(void)ls_text_escape(text, LS_TERM_TEXT_MAX_BYTES, s, strlen(s));
	return text;
}

const char *
ls_term_text(struct ls_term *t, const json_t *v, const char *path, const char *dflt)
{
	return ls_term_safe(t, ls_pick_text(v, path), dflt);
}

/* Short names that people write in capitals. */
static void
term_acronym(char *word, size_t len)
{
	static const char *const acronyms[] = { "cpu", "io", "tcp", "ici", "dcn", "hbm",
		"gc", "psi" };

	for (size_t i = 0; i < sizeof(acronyms) / sizeof(acronyms[0]); i++) {
		if (strlen(acronyms[i]) != len || strncmp(word, acronyms[i], len) != 0)
			continue;
		for (size_t c = 0; c < len; c++)
			word[c] = (char)(word[c] - 'a' + 'A');
	}
}

const char *
ls_term_words(struct ls_term *t, const json_t *v, const char *path, const char *dflt)
{
	const char *s = ls_pick_text(v, path);
	char *text = term_buffer(t);

	if (!s)
		return dflt;
	(void)ls_text_escape(text, LS_TERM_TEXT_MAX_BYTES, s, strlen(s));
	for (char *word = text; *word != '\0';) {
		size_t len = strcspn(word, "_");

		term_acronym(word, len);
		word += len;
		if (*word == '_')
			*word++ = ' ';
	}
	return text;
}

const char *
ls_term_quote(struct ls_term *t, const char *s)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_.,:@%+=/-";
	const char *safe = ls_term_safe(t, s, "");
	char *text;
	size_t n = 0;

	if (safe[0] != '\0' && safe[strspn(safe, plain)] == '\0')
		return safe;
	text = term_buffer(t);
	text[n++] = '\'';
	for (; *safe != '\0' && n + 6 < LS_TERM_TEXT_MAX_BYTES; safe++) {
		if (*safe == '\'') {
			memcpy(text + n, "'\\''", 4);
			n += 4;
		} else {
			text[n++] = *safe;
		}
	}
	text[n++] = '\'';
	text[n] = '\0';
	return text;
}

static const char *
term_seconds(struct ls_term *t, double v)
{
	char *text = term_buffer(t);
	double a = fabs(v);

	/* Three digits or so; a small number never becomes a false 0. */
	if (a >= 100 || a <= 0)
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.0f s", v);
	else if (a >= 0.1)
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.2f s", v);
	else if (a >= 0.01)
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.1f ms", v * 1000);
	else if (a >= 0.001)
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.2f ms", v * 1000);
	else
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.2g ms", v * 1000);
	return text;
}

static const char *
term_whole(struct ls_term *t, double v)
{
	char *text = term_buffer(t), digits[64];
	size_t len, n = 0;

	(void)snprintf(digits, sizeof(digits), "%.0f", fabs(v) < 1e18 ? v : 1e18);
	len = strlen(digits);
	for (size_t i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0 && digits[i - 1] != '-')
			text[n++] = ',';
		text[n++] = digits[i];
	}
	text[n] = '\0';
	return text;
}

const char *
ls_term_seconds(struct ls_term *t, const json_t *v, const char *path, const char *dflt)
{
	double n = 0;

	return ls_pick_number(v, path, &n) ? term_seconds(t, n) : dflt;
}

const char *
ls_term_percent(struct ls_term *t, const json_t *v, const char *path, const char *dflt)
{
	char *text = term_buffer(t);
	double n = 0;

	if (!ls_pick_number(v, path, &n))
		return dflt;
	(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.0f %%", n * 100);
	return text;
}

const char *
ls_term_whole(struct ls_term *t, const json_t *v, const char *path, const char *dflt)
{
	double n = 0;

	return ls_pick_number(v, path, &n) ? term_whole(t, n) : dflt;
}

const char *
ls_term_chips(struct ls_term *t, const json_t *v, const char *path, const char *dflt)
{
	char *text = term_buffer(t);
	double n = 0;

	if (!ls_pick_number(v, path, &n))
		return dflt;
	(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES,
		n >= 100		     ? "%.0f"
			: n >= 0.1 || n <= 0 ? "%.1f"
					     : "%.2g",
		n);
	return text;
}

const char *
ls_term_value(struct ls_term *t, const json_t *v, const char *path, const char *unit,
	double beside, const char *dflt)
{
	char *text = term_buffer(t);
	double n = 0;

	if (!ls_pick_number(v, path, &n))
		return dflt;
	if (unit && strcmp(unit, "s") == 0) {
		if (fabs(beside) < 0.1 || fabs(n) >= 0.1 || fabs(n) <= 0)
			return term_seconds(t, n);
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES,
			fabs(n) >= 0.01 ? "%.2f s" : "%.1g s", n);
		return text;
	}
	if (unit && strcmp(unit, "ratio") == 0)
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.1f %%", n * 100);
	else if (fabs(n) >= 1000)
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%s %s", term_whole(t, n),
			unit && strcmp(unit, "1") != 0 ? ls_term_safe(t, unit, "")
						       : "");
	else
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.3g %s", n,
			unit && strcmp(unit, "1") != 0 ? ls_term_safe(t, unit, "")
						       : "");
	if (text[0] != '\0' && text[strlen(text) - 1] == ' ')
		text[strlen(text) - 1] = '\0';
	return text;
}

const char *
ls_term_span(struct ls_term *t, double seconds)
{
	char *text = term_buffer(t);

	if (seconds < 120)
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.0f s",
			seconds < 0 ? 0 : seconds);
	else if (seconds < 7200)
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.0f min", seconds / 60);
	else if (seconds < 172800)
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.1f h", seconds / 3600);
	else
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.1f d", seconds / 86400);
	return text;
}

const char *
ls_term_time(struct ls_term *t, const json_t *v, const char *path, bool day)
{
	const char *at = ls_pick_text(v, path);
	char *text = term_buffer(t), canonical[32];
	int64_t us = 0;

	if (!at || ls_text_parse_time(at, 0, &us) != 0)
		return "unknown";
	ls_text_time(canonical, us);
	if (day)
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.10s %.8sZ", canonical,
			canonical + 11);
	else
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "%.8sZ", canonical + 11);
	return text;
}

const char *
ls_term_clock(struct ls_term *t, const json_t *v, const char *path, const char *dflt)
{
	(void)dflt;
	return ls_term_time(t, v, path, false);
}

bool
ls_term_between(const json_t *v, const char *from, const char *to, double *ret_s)
{
	const char *a = ls_pick_text(v, from), *b = ls_pick_text(v, to);
	int64_t a_us = 0, b_us = 0;

	if (!a || !b || ls_text_parse_time(a, 0, &a_us) != 0 ||
		ls_text_parse_time(b, 0, &b_us) != 0)
		return false;
	*ret_s = (double)(b_us - a_us) / 1e6;
	return true;
}

const char *
ls_term_paint(struct ls_term *t, const char *how, const char *s)
{
	static const struct {
		const char *how, *code;
	} paints[] = { { "critical", "1;31" }, { "warning", "1;33" },
		{ "info", "1;34" }, { "bold", "1" }, { "dim", "2" } };
	char *text = term_buffer(t);

	for (size_t i = 0; t->color && i < sizeof(paints) / sizeof(paints[0]); i++) {
		if (strcmp(how, paints[i].how) != 0)
			continue;
		(void)snprintf(text, LS_TERM_TEXT_MAX_BYTES, "\033[%sm%.*s\033[0m",
			paints[i].code, LS_TERM_TEXT_MAX_BYTES - 16, s);
		return text;
	}
	return s;
}

const char *
ls_term_severity(struct ls_term *t, const json_t *finding)
{
	static const struct {
		const char *word, *label;
	} severities[] = { { "critical", "!! CRIT" }, { "warning", "!  WARN" },
		{ "info", "i  INFO" } };
	const char *word = ls_pick_text(finding, "severity");

	for (size_t i = 0; word && i < sizeof(severities) / sizeof(severities[0]);
		i++) {
		if (strcmp(word, severities[i].word) == 0)
			return ls_term_paint(t, word, severities[i].label);
	}
	return "?  ----";
}

/* --- tables --------------------------------------------------------------- */

struct ls_table *
ls_table_new(const char *heads)
{
	struct ls_table *table = calloc(1, sizeof(*table));
	char head[64];

	if (!table)
		return NULL;
	table->columns = 1;
	for (const char *c = heads; *c != '\0'; c++)
		table->columns += *c == '|';
	LS_ASSERT(table->columns <= LS_TERM_COLUMNS_MAX);
	for (size_t i = 0; i < table->columns; i++) {
		size_t len = strcspn(heads, "|");

		table->right[i] = heads[0] == '>';
		(void)snprintf(head, sizeof(head), "%.*s", (int)(len - table->right[i]),
			heads + table->right[i]);
		ls_table_add(table, head);
		heads += len + 1;
	}
	return table;
}

void
ls_table_add(struct ls_table *table, const char *cell)
{
	if (!table)
		return;
	if (table->count == table->capacity) {
		size_t capacity = table->capacity * 2 + 64;
		char **cells = realloc(table->cells, capacity * sizeof(*cells));

		if (!cells)
			return; /* the table ends here */
		table->cells = cells;
		table->capacity = capacity;
	}
	table->cells[table->count] = strdup(cell);
	if (table->cells[table->count])
		table->count++;
}

void
ls_table_row(struct ls_table *table, struct ls_term *t, const json_t *object,
	const struct ls_column *columns)
{
	for (; columns->cell != NULL; columns++)
		ls_table_add(table,
			columns->cell(t, object, columns->path, columns->dflt));
}

void
ls_table_addf(struct ls_table *table, const char *format, ...)
{
	char cell[LS_TERM_TEXT_MAX_BYTES];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(cell, sizeof(cell), format, args);
	va_end(args);
	ls_table_add(table, cell);
}

/* Columns a text takes: bytes that begin a character, without colours. */
static size_t
table_width(const char *s)
{
	size_t n = 0;

	for (; *s != '\0'; s++) {
		if (*s == '\033')
			s += strcspn(s, "m");
		else
			n += ((unsigned char)*s & 0xc0) != 0x80;
	}
	return n;
}

void
ls_table_print(struct ls_table *table)
{
	size_t widths[LS_TERM_COLUMNS_MAX] = { 0 };

	if (!table)
		return;
	for (size_t i = 0; i < table->count; i++) {
		size_t w = table_width(table->cells[i]), c = i % table->columns;

		if (w > widths[c])
			widths[c] = w;
	}
	for (size_t i = 0; i < table->count; i++) {
		size_t c = i % table->columns;
		int pad = (int)(widths[c] - table_width(table->cells[i]));
		bool last = c + 1 == table->columns;

		if (table->right[c])
			(void)printf("%*s%s%s", pad, "", table->cells[i],
				last ? "\n" : "  ");
		else
			(void)printf("%s%*s%s", table->cells[i], last ? 0 : pad, "",
				last ? "\n" : "  ");
		free(table->cells[i]);
	}
	free(table->cells);
	free(table);
}
