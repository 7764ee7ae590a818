/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/cli/term.h"
#include "proto/base/err.h"
#include "proto/base/mem.h"
#include "proto/base/conf.h"
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

const char *
ls_term_format(struct ls_term *t, const char *format, ...)
{
	char *text = term_buffer(t);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, LS_TERM_TEXT_MAX_BYTES, format, args);
	va_end(args);
	return text;
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
	double a = fabs(v);

	/* Three digits or so; a small number never becomes a false 0. */
	if (a >= 100 || a <= 0)
		return ls_term_format(t, "%.0f s", v);
	if (a >= 0.1)
		return ls_term_format(t, "%.2f s", v);
	return ls_term_format(t,
		a >= 0.01	     ? "%.1f ms"
			: a >= 0.001 ? "%.2f ms"
				     : "%.2g ms",
		v * 1000);
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
	double n = 0;

	return ls_pick_number(v, path, &n) ? ls_term_format(t, "%.0f %%", n * 100)
					   : dflt;
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
	double n = 0;

	if (!ls_pick_number(v, path, &n))
		return dflt;
	return ls_term_format(t,
		n >= 100		     ? "%.0f"
			: n >= 0.1 || n <= 0 ? "%.1f"
					     : "%.2g",
		n);
}

const char *
ls_term_number(struct ls_term *t, double n, const char *unit, double beside)
{
	bool bare = !unit || strcmp(unit, "1") == 0;

	if (unit && strcmp(unit, "s") == 0) {
		if (fabs(beside) < 0.1 || fabs(n) >= 0.1 || fabs(n) <= 0)
			return term_seconds(t, n);
		return ls_term_format(t, fabs(n) >= 0.01 ? "%.2f s" : "%.1g s", n);
	}
	if (unit && strcmp(unit, "ratio") == 0)
		return ls_term_format(t, "%.1f %%", n * 100);
	return ls_term_format(t, "%s%s%s",
		fabs(n) >= 1000 ? term_whole(t, n) : ls_term_format(t, "%.3g", n),
		bare || unit[0] == '\0' ? "" : " ",
		bare ? "" : ls_term_safe(t, unit, ""));
}

const char *
ls_term_value(struct ls_term *t, const json_t *v, const char *path, const char *unit,
	double beside, const char *dflt)
{
	double n = 0;

	return ls_pick_number(v, path, &n) ? ls_term_number(t, n, unit, beside) : dflt;
}

const char *
ls_term_span(struct ls_term *t, double seconds)
{
	if (seconds < 120)
		return ls_term_format(t, "%.0f s", seconds < 0 ? 0 : seconds);
	if (seconds < 7200)
		return ls_term_format(t, "%.0f min", seconds / 60);
	if (seconds < 172800)
		return ls_term_format(t, "%.1f h", seconds / 3600);
	return ls_term_format(t, "%.1f d", seconds / 86400);
}

const char *
ls_term_time(struct ls_term *t, const json_t *v, const char *path, bool day)
{
	const char *at = ls_pick_text(v, path);
	char canonical[32];
	int64_t us = 0;

	if (!at || ls_conf_parse_time(at, 0, &us) != 0)
		return "unknown";
	ls_text_time(canonical, us);
	return day ? ls_term_format(t, "%.10s %.8sZ", canonical, canonical + 11)
		   : ls_term_format(t, "%.8sZ", canonical + 11);
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

	if (!a || !b || ls_conf_parse_time(a, 0, &a_us) != 0 ||
		ls_conf_parse_time(b, 0, &b_us) != 0)
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

	for (size_t i = 0; t->color && i < sizeof(paints) / sizeof(paints[0]); i++) {
		if (strcmp(how, paints[i].how) == 0)
			return ls_term_format(t, "\033[%sm%.*s\033[0m", paints[i].code,
				LS_TERM_TEXT_MAX_BYTES - 16, s);
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

/* One more column; its head has len bytes. */
static void
table_head(struct ls_table *table, const char *head, size_t len)
{
	bool right = head[0] == '>';
	char text[64];

	LS_ASSERT(table->columns < LS_TERM_COLUMNS_MAX);
	table->right[table->columns++] = right;
	(void)snprintf(text, sizeof(text), "%.*s", (int)(len - right), head + right);
	ls_table_add(table, text);
}

struct ls_table *
ls_table_new(const char *heads)
{
	struct ls_table *table = calloc(1, sizeof(*table));
	size_t len;

	if (!table)
		return NULL;
	for (; heads[0] != '\0'; heads += len + (heads[len] == '|')) {
		len = strcspn(heads, "|");
		table_head(table, heads, len);
	}
	return table;
}

void
ls_table_add(struct ls_table *table, const char *cell)
{
	if (!table)
		return;
	if (ls_mem_grow((void **)&table->cells, table->count, &table->capacity,
		    sizeof(*table->cells)) != 0)
		return; /* the table ends here */
	table->cells[table->count] = strdup(cell);
	if (table->cells[table->count])
		table->count++;
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

void
ls_table_items(struct ls_term *t, const json_t *items, const struct ls_column *columns)
{
	struct ls_table *table = ls_table_new("");
	const struct ls_column *c;

	for (c = columns; table && c->head != NULL; c++)
		table_head(table, c->head, strlen(c->head));
	for (size_t i = 0; i < json_array_size(items); i++)
		for (c = columns; c->head != NULL; c++)
			ls_table_add(table,
				c->cell(t, json_array_get(items, i), c->path, c->dflt));
	ls_table_print(table);
}
