/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/step_line.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <math.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/hash.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define LINE_NUMBER_MAX_BYTES 32
#define LINE_STEP_MAX (1ull << 53)
#define LINE_GROUPS_MAX 64

enum { LINE_EACH, LINE_SOME };

static const struct line_format {
	const char *word, *pattern;
	bool some;
} line_formats[] = {
#define LS_STEP_FORMAT(id, name, word, steps, pattern) \
	{ word, pattern, LINE_##steps == LINE_SOME },
#include "agent/steps/step_formats.def"
#undef LS_STEP_FORMAT
};

#define LINE_FORMATS (sizeof(line_formats) / sizeof(line_formats[0]))

static const char line_prefix[] =
	"^(?:\\x1b\\[[0-9;]*m|\\s)*(?:\\[(?:worker |rank)(?<step>\\d+)\\]|\\[default\\d+\\]|"
	"\\[\\d+,\\d+\\]<std(?:out|err)>|\\(\\w+ pid=\\d+(?:, ip=[^)]+)?\\)|\\[pod/[^]]+\\])";

/* A compiled pattern; group 0: it has no such group. */
struct line_rule {
	pcre2_code *code;
	uint32_t step, bar, seconds, tokens;
	const char *word; /* NULL: any line may match */
	bool some;
};

struct ls_step_rules {
	pcre2_match_context *limits;
	pcre2_match_data *match;
	struct line_rule prefix;
	size_t count;
	struct line_rule rule[LINE_FORMATS];
};

static uint32_t
rule_group(const pcre2_code *code, const char *name)
{
	int n = pcre2_substring_number_from_name(code, (PCRE2_SPTR)name);

	return n > 0 && n < LINE_GROUPS_MAX ? (uint32_t)n : 0;
}

static int
rule_compile(struct line_rule *rule, const char *pattern, char *why, size_t size)
{
	PCRE2_UCHAR text[128] = "";
	PCRE2_SIZE at;
	int error;

	rule->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
		PCRE2_NEVER_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &at, NULL);
	if (rule->code == NULL) {
		(void)pcre2_get_error_message(error, text, sizeof(text));
		(void)snprintf(why, size, "%s at offset %zu", (const char *)text, at);
		return -LS_ERANGE;
	}
	rule->step = rule_group(rule->code, "step");
	rule->bar = rule_group(rule->code, "bar");
	rule->seconds = rule_group(rule->code, "seconds");
	rule->tokens = rule_group(rule->code, "tokens");
	if (rule->step == 0) {
		(void)snprintf(why, size, "it has no group (?<step>...)");
		return -LS_ERANGE;
	}
	return 0;
}

int
ls_step_rules_new(const char *pattern, struct ls_step_rules **ret_rules, char *why,
	size_t size)
{
	struct ls_step_rules *r = calloc(1, sizeof(*r));
	int rc = -ENOMEM;

	if (r == NULL)
		return -ENOMEM;
	r->limits = pcre2_match_context_create(NULL);
	r->match = pcre2_match_data_create(LINE_GROUPS_MAX, NULL);
	if (r->limits == NULL || r->match == NULL)
		goto out;
	(void)pcre2_set_match_limit(r->limits,
		LS_STEP_PATTERN_MATCH_MAX); /* 0 always */
	(void)pcre2_set_heap_limit(r->limits,
		LS_STEP_PATTERN_HEAP_MAX_KIB); /* likewise */
	rc = rule_compile(&r->prefix, line_prefix, why, size);
	if (rc == 0 && pattern[0] != '\0') {
		r->count = 1;
		r->rule[0].some = true;
		rc = rule_compile(&r->rule[0], pattern, why, size);
	}
	for (; rc == 0 && pattern[0] == '\0' && r->count < LINE_FORMATS; r->count++) {
		r->rule[r->count].word = line_formats[r->count].word;
		r->rule[r->count].some = line_formats[r->count].some;
		rc = rule_compile(&r->rule[r->count], line_formats[r->count].pattern,
			why, size);
	}
	if (rc == 0) {
		*ret_rules = r;
		r = NULL;
	}
out:
	ls_step_rules_free(r);
	return rc;
}

void
ls_step_rules_free(struct ls_step_rules *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < LINE_FORMATS; i++)
		pcre2_code_free(r->rule[i].code);
	pcre2_code_free(r->prefix.code);
	pcre2_match_data_free(r->match);
	pcre2_match_context_free(r->limits);
	free(r);
}

/* The bytes of a group as text. False: it did not take part, or is too long. */
static bool
rule_text(const struct ls_step_rules *r, const char *line, uint32_t group,
	char text[LINE_NUMBER_MAX_BYTES])
{
	PCRE2_SIZE *at = pcre2_get_ovector_pointer(r->match);
	size_t begin, len;

	if (group == 0 || at[2 * group] == PCRE2_UNSET ||
		at[2 * group + 1] < at[2 * group])
		return false;
	begin = at[2 * group];
	len = at[2 * group + 1] - begin;
	if (len == 0 || len >= LINE_NUMBER_MAX_BYTES)
		return false;
	memcpy(text, line + begin, len);
	text[len] = '\0';
	return true;
}

/* A number of a group without sign or exponent; NaN: there is none. */
static double
rule_number(const struct ls_step_rules *r, const char *line, uint32_t group)
{
	char text[LINE_NUMBER_MAX_BYTES], *end;
	double v;

	if (!rule_text(r, line, group, text) ||
		text[strspn(text, "0123456789.")] != '\0')
		return NAN;
	v = strtod(text, &end);
	return *end == '\0' ? v : NAN;
}

static bool
rule_matches(struct ls_step_rules *r, const struct line_rule *rule, const char *text,
	size_t len)
{
	return (rule->word == NULL ||
		       memmem(text, len, rule->word, strlen(rule->word)) != NULL) &&
		pcre2_match(rule->code, (PCRE2_SPTR)text, len, 0, 0, r->match,
			r->limits) >= 0;
}

static bool
rule_values(const struct ls_step_rules *r, const struct line_rule *rule,
	const char *text, struct ls_step_line *l)
{
	char digits[LINE_NUMBER_MAX_BYTES];
	double seconds;

	l->bar = 0;
	if (!rule_text(r, text, rule->step, digits) ||
		!ls_text_number(digits, LINE_STEP_MAX - 1, &l->step) ||
		(rule_text(r, text, rule->bar, digits) &&
			!ls_text_number(digits, LINE_STEP_MAX - 1, &l->bar)))
		return false;
	seconds = rule_number(r, text, rule->seconds);
	if (seconds * 1e9 >= (double)LS_PHASE_MAX_NS)
		return false;
	l->duration_ns = isnan(seconds) ? 0 : (uint64_t)llround(seconds * 1e9);
	l->tokens_rate = rule_number(r, text, rule->tokens);
	l->stands_for_more = rule->some;
	return true;
}

static void
rule_prefix(struct ls_step_rules *r, const char *text, size_t len,
	struct ls_step_line *l)
{
	PCRE2_SIZE *at = pcre2_get_ovector_pointer(r->match);
	double rank;

	l->prefix = 0;
	l->prefix_rank = -1;
	if (!rule_matches(r, &r->prefix, text, len))
		return;
	l->prefix = ls_hash(LS_HASH_START, text, at[1]);
	rank = rule_number(r, text, r->prefix.step);
	if (rank < LS_WORKERS_MAX)
		l->prefix_rank = (int32_t)rank;
}

bool
ls_step_line_parse(struct ls_step_rules *r, const char *text, size_t len,
	struct ls_step_line *ret_line)
{
	struct ls_step_line line;

	for (size_t i = 0; i < r->count; i++) {
		if (!rule_matches(r, &r->rule[i], text, len) ||
			!rule_values(r, &r->rule[i], text, &line))
			continue;
		rule_prefix(r, text, len, &line);
		*ret_line = line;
		return true;
	}
	return false;
}
