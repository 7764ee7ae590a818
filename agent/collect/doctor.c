/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/collect/doctor.h"

#include <stdarg.h>
#include <string.h>
#include "proto/base/json.h"
#include "proto/base/text.h"

static const struct {
	const char *word; /* in JSON */
	const char *shown;
	const char *paint; /* SGR of a terminal */
} doctor_words[LS_DOCTOR_STATUS_COUNT] = {
	[LS_DOCTOR_OK] = { "ok", "OK", "32" },
	[LS_DOCTOR_NONE] = { "none", "-", "2" },
	[LS_DOCTOR_WARN] = { "warn", "WARN", "33" },
	[LS_DOCTOR_FAIL] = { "fail", "FAIL", "31;1" },
};

void
ls_doctor_add(struct ls_doctor *d, enum ls_doctor_status status, const char *source,
	const char *subject, const char *why, const char *fix)
{
	struct ls_doctor_check *c;

	if (d->count == LS_DOCTOR_CHECKS_MAX) {
		d->left_out++;
		return;
	}
	c = &d->check[d->count++];
	c->status = status;
	(void)snprintf(c->source, sizeof(c->source), "%s", source);
	(void)snprintf(c->subject, sizeof(c->subject), "%s", subject);
	(void)snprintf(c->why, sizeof(c->why), "%s", why);
	(void)snprintf(c->fix, sizeof(c->fix), "%s", fix);
}

void
ls_doctor_addf(struct ls_doctor *d, enum ls_doctor_status status, const char *source,
	const char *subject, const char *fix, const char *why, ...)
{
	char text[sizeof(d->check[0].why)];
	va_list args;

	va_start(args, why);
	(void)vsnprintf(text, sizeof(text), why, args);
	va_end(args);
	ls_doctor_add(d, status, source, subject, text, fix);
}

const char *
ls_doctor_text(struct ls_doctor *d, const char *format, ...)
{
	char *text = d->text[d->texts++ % 2];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(d->text[0]), format, args);
	va_end(args);
	return text;
}

size_t
ls_doctor_count(const struct ls_doctor *d, enum ls_doctor_status status)
{
	size_t i, n = 0;

	for (i = 0; i < d->count; i++)
		n += d->check[i].status == status;
	return n;
}

/* --- JSON ----------------------------------------------------------------- */

/* A text that may hold anything, as valid UTF-8 without controls. */
static json_t *
doctor_text(const char *text)
{
	char safe[4 * sizeof(((struct ls_doctor_check *)NULL)->why)];

	(void)ls_text_escape(safe, sizeof(safe), text, strlen(text));
	return json_string(safe);
}

static json_t *
doctor_check_json(const struct ls_doctor_check *c)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "status",
		doctor_words[c->status].word, "source", doctor_text(c->source),
		"subject", doctor_text(c->subject), "why", doctor_text(c->why), "fix",
		c->fix[0] != '\0' ? doctor_text(c->fix) : json_null());
}

json_t *
ls_doctor_json(const struct ls_doctor *d)
{
	json_t *checks = json_array(), *summary = json_object();

	for (unsigned status = 0; status < LS_DOCTOR_STATUS_COUNT; status++)
		ls_json_set(&summary, doctor_words[status].word,
			json_integer((json_int_t)ls_doctor_count(d, status)));
	for (size_t i = 0; i < d->count; i++)
		ls_json_append(&checks, doctor_check_json(&d->check[i]));
	return json_pack("{s:i, s:o, s:o, s:I}", "schema_version", 1, "summary",
		summary, "checks", checks, "left_out", (json_int_t)d->left_out);
}

static const char *
doctor_pick(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s != NULL ? s : "";
}

int
ls_doctor_parse(const json_t *object, struct ls_doctor *ret_doctor)
{
	const json_t *checks = json_object_get(object, "checks"), *c;
	struct ls_doctor *d = ret_doctor;
	unsigned status;

	d->count = 0;
	d->left_out = 0;
	if (!json_is_array(checks))
		return -LS_EPARSE;
	for (size_t i = 0; i < json_array_size(checks); i++) {
		c = json_array_get(checks, i);
		for (status = 0; status < LS_DOCTOR_STATUS_COUNT; status++) {
			if (strcmp(doctor_pick(c, "status"),
				    doctor_words[status].word) == 0)
				break;
		}
		if (status == LS_DOCTOR_STATUS_COUNT)
			return -LS_EPARSE;
		ls_doctor_add(d, status, doctor_pick(c, "source"),
			doctor_pick(c, "subject"), doctor_pick(c, "why"),
			doctor_pick(c, "fix"));
	}
	return 0;
}

/* --- for people ----------------------------------------------------------- */

static void
doctor_print_check(const struct ls_doctor_check *c, bool color, FILE *out)
{
	char source[4 * sizeof(c->source)], subject[4 * sizeof(c->subject)];
	char why[4 * sizeof(c->why)], fix[4 * sizeof(c->fix)];
	const char *shown = doctor_words[c->status].shown;

	(void)ls_text_escape(source, sizeof(source), c->source, strlen(c->source));
	(void)ls_text_escape(subject, sizeof(subject), c->subject, strlen(c->subject));
	(void)ls_text_escape(why, sizeof(why), c->why, strlen(c->why));
	(void)ls_text_escape(fix, sizeof(fix), c->fix, strlen(c->fix));
	if (color)
		(void)fprintf(out, "\033[%sm%-4s\033[0m", doctor_words[c->status].paint,
			shown);
	else
		(void)fprintf(out, "%-4s", shown);
	(void)fprintf(out, "  %-10s %-28s %s\n", source, subject, why);
	if (fix[0] != '\0')
		(void)fprintf(out, "      fix: %s\n", fix);
}

void
ls_doctor_print(const struct ls_doctor *d, bool color, FILE *out)
{
	for (size_t i = 0; i < d->count; i++)
		doctor_print_check(&d->check[i], color, out);
	(void)fprintf(out, "%zu failed, %zu warned, %zu ok, %zu not here",
		ls_doctor_count(d, LS_DOCTOR_FAIL), ls_doctor_count(d, LS_DOCTOR_WARN),
		ls_doctor_count(d, LS_DOCTOR_OK), ls_doctor_count(d, LS_DOCTOR_NONE));
	if (d->left_out > 0)
		(void)fprintf(out, ", %zu more not shown", d->left_out);
	(void)fputc('\n', out);
}
