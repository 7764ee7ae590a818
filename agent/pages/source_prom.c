/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/pages/source_prom.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/pages/http_get.h"
#include "proto/base/conf.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/text.h"

#define PROM_SHOWN_MAX_BYTES 200 /* of a page that is refused, in the message */

struct source_prom;

struct prom_entry {
	struct source_prom *source;
	char name[32];
	char url[LS_CONF_VALUE_MAX_BYTES];
	struct ls_http_get *get;
	struct ls_prom_page *page;
	uint64_t next_ns; /* when it is asked for again */
	uint64_t steps; /* at its last reading */
	bool asked, answered; /* ever; at the last reading */
	bool waiting; /* for an answer */
};

struct source_prom {
	struct ls_loop *loop;
	struct ls_prom_map *map;
	uint64_t steps;
	size_t count;
	struct prom_entry entry[LS_PROM_PAGES_MAX];
};

/* --- readings ------------------------------------------------------------- */

/* One line when a page that was good is not any more, and when it is again. */
static void
prom_log(const struct prom_entry *e, enum ls_prom_state before)
{
	enum ls_prom_state now = ls_prom_page_state(e->page);

	if (now == before)
		return;
	switch (now) {
	case LS_PROM_ABSENT:
		ls_log(LS_LOG_INFO, "prom", "%s: gone", e->name);
		break;
	case LS_PROM_GOOD:
		ls_log(LS_LOG_INFO, "prom", "%s: reading %s", e->name, e->url);
		break;
	case LS_PROM_FROZEN:
		ls_log(LS_LOG_WARN, "prom",
			"%s: no value changed in %u readings while the job made "
			"steps; its values now count as not measured",
			e->name, ls_prom_page_silent(e->page));
		break;
	case LS_PROM_FAILED:
		ls_log(LS_LOG_WARN, "prom",
			"%s: %s; its values now count as not measured", e->name,
			ls_prom_page_why(e->page));
		break;
	}
}

static const char *
prom_why(int rc, int status, char *buf, size_t size)
{
	if (rc == 0)
		(void)snprintf(buf, size, "answers with HTTP status %d", status);
	else if (rc == -LS_EABSENT)
		(void)snprintf(buf, size, "nothing listens at this address");
	else if (rc == -ETIMEDOUT)
		(void)snprintf(buf, size, "no answer within %llu s",
			(unsigned long long)(LS_PROM_DEADLINE_NS / 1000000000));
	else if (rc == -LS_ELIMIT)
		(void)snprintf(buf, size, "more than %u bytes", LS_PROM_PAGE_MAX_BYTES);
	else
		(void)snprintf(buf, size, "invalid answer (%s)", ls_err_text(rc));
	return buf;
}

static void
prom_done(void *arg, int rc, int status, const char *body, size_t len)
{
	struct prom_entry *e = arg;
	enum ls_prom_state before = ls_prom_page_state(e->page);
	uint64_t now = ls_loop_now(e->source->loop);
	char why[96];

	e->answered = rc == 0;
	e->waiting = false;
	if (rc == 0 && status == 200) {
		ls_ignore(ls_prom_page_take(/* the page keeps what is wrong with it */
			e->page, body, len, e->source->steps != e->steps, now));
		e->steps = e->source->steps;
	} else {
		ls_prom_page_fail(e->page, prom_why(rc, status, why, sizeof(why)), now);
	}
	if (ls_prom_page_state(e->page) == LS_PROM_ABSENT)
		e->next_ns = now + LS_PROM_ABSENT_NS;
	prom_log(e, before);
}

static void
prom_read(void *self, unsigned due, uint64_t now_mono_ns, struct ls_sample *into)
{
	struct source_prom *s = self;
	int rc;

	(void)into;
	if (!(due & LS_CADENCE_FAST))
		return;
	for (size_t i = 0; i < s->count; i++) {
		struct prom_entry *e = &s->entry[i];

		if (now_mono_ns < e->next_ns)
			continue;
		e->next_ns = now_mono_ns + LS_PROM_INTERVAL_NS;
		e->waiting = true;
		rc = ls_http_get_start(e->get, NULL);
		if (rc != 0 && rc != -LS_EBUSY)
			prom_done(e, rc, 0, "", 0);
		e->asked = true;
	}
}

/* --- the doctor ----------------------------------------------------------- */

static void
prom_tell_entry(const struct prom_entry *e, struct ls_doctor *d)
{
	const struct ls_prom_page_stats *n = ls_prom_page_get_stats(e->page);
	const char *subject = ls_doctor_text(d, "page %s", e->name),
		   *problem = ls_prom_page_why(e->page);
	bool plugin = strcmp(e->name, "device-plugin") == 0;
	const char *enable = strcmp(e->name, "orbax") == 0
		? "set ENABLE_ORBAX_PROMETHEUS_TELEMETRY=true in the job"
		: "";

	switch (ls_prom_page_state(e->page)) {
	case LS_PROM_GOOD:
		ls_doctor_addf(d,
			n->refused + n->odd > 0 ? LS_DOCTOR_WARN : LS_DOCTOR_OK, "prom",
			subject,
			n->refused > 0 ? "select fewer names with --prom-map" : "",
			"%llu of %llu samples used, %llu over a maximum, %llu with "
			"an invalid chip",
			(unsigned long long)n->taken, (unsigned long long)n->samples,
			(unsigned long long)n->refused, (unsigned long long)n->odd);
		break;
	case LS_PROM_FROZEN:
		ls_doctor_addf(d, LS_DOCTOR_WARN, "prom", subject,
			plugin ? "restart the tpu-device-plugin pod of this node (namespace kube-system)"
			       : "restart the program that serves this page",
			"values have not changed for %llu s while the job made steps",
			(unsigned long long)(ls_prom_page_silent(e->page) *
				LS_PROM_INTERVAL_NS / 1000000000));
		break;
	case LS_PROM_FAILED:
		ls_doctor_addf(d, LS_DOCTOR_FAIL, "prom", subject,
			plugin ? "inspect the tpu-device-plugin pod of this node "
				 "(namespace kube-system)"
			       : "inspect the program that serves this page, or "
				 "remove the page from --prom",
			"%.100s: %.100s", e->url, problem);
		break;
	case LS_PROM_ABSENT:
		if (!e->asked)
			ls_doctor_add(d, LS_DOCTOR_NONE, "prom", subject,
				"not read yet", enable);
		else if (e->answered && problem[0] == '\0')
			ls_doctor_addf(d, LS_DOCTOR_NONE, "prom", subject, enable,
				"%.100s answers, but has no sample that a rule selects",
				e->url);
		else
			ls_doctor_addf(d, LS_DOCTOR_NONE, "prom", subject, enable,
				"%.100s: %.100s", e->url, problem);
		break;
	}
}

static void
prom_tell(const void *self, struct ls_doctor *d)
{
	const struct source_prom *s = self;

	for (size_t i = 0; i < s->count; i++)
		prom_tell_entry(&s->entry[i], d);
}

/* --- life ----------------------------------------------------------------- */

static bool
prom_is_page_name(const char *s, size_t len)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";

	return len > 0 && len < sizeof(((struct prom_entry *)NULL)->name) &&
		strspn(s, allowed) >= len;
}

static bool
prom_has_page(const struct source_prom *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++) {
		if (strcmp(s->entry[i].name, name) == 0)
			return true;
	}
	return false;
}

/* Takes one NAME=URL of len bytes as the next entry; it does not count yet. */
static int
prom_parse_one(struct source_prom *s, const char *text, size_t len)
{
	struct prom_entry *e = &s->entry[s->count];
	const char *equals = memchr(text, '=', len);
	size_t name_len = equals != NULL ? (size_t)(equals - text) : 0;

	if (s->count == LS_PROM_PAGES_MAX)
		return -LS_ELIMIT;
	if (!prom_is_page_name(text, name_len) || len - name_len - 1 >= sizeof(e->url))
		return -LS_EPARSE;
	memcpy(e->name, text, name_len);
	memcpy(e->url, equals + 1, len - name_len - 1);
	return prom_has_page(s, e->name) ? -LS_EDUPLICATE : ls_http_get_check(e->url);
}

/* Takes names and URLs; why says what is wrong with them. */
static int
prom_parse(struct source_prom *s, const char *pages, char *ret_why, size_t why_bytes)
{
	char safe[PROM_SHOWN_MAX_BYTES];
	size_t len;
	int rc;

	while (*pages != '\0') {
		len = strcspn(pages, ",");
		rc = prom_parse_one(s, pages, len);
		if (rc != 0) {
			(void)ls_text_escape(safe, sizeof(safe), pages, len);
			(void)snprintf(ret_why, why_bytes,
				"--prom: %s: %s (NAME=URL, separated by commas; names of a-z, 0-9, - "
				"and _, at most %d; URLs http://HOST:PORT/PATH)",
				safe, ls_err_text(rc), LS_PROM_PAGES_MAX);
			return rc;
		}
		s->count++;
		pages += len + (pages[len] == ',');
	}
	return 0;
}

/* Reads both options into an empty source. */
static int
prom_take_options(struct source_prom *s, const char *pages, const char *map,
	char *ret_why, size_t why_bytes)
{
	char why[128];
	int rc = ls_prom_map_new(map, &s->map, why, sizeof(why));

	if (rc == 0)
		return prom_parse(s, pages, ret_why, why_bytes);
	(void)snprintf(ret_why, why_bytes, "--prom-map %s: %s", map, why);
	return rc;
}

static int
prom_open_pages(struct source_prom *s, struct ls_series_table *table)
{
	struct ls_http_get_options o = { .body_max_bytes = LS_PROM_PAGE_MAX_BYTES,
		.deadline_ns = LS_PROM_DEADLINE_NS,
		.done = prom_done };
	int rc;

	for (size_t i = 0; i < s->count; i++) {
		struct prom_entry *e = &s->entry[i];

		e->source = s;
		o.url = e->url;
		o.arg = e;
		rc = ls_http_get_new(s->loop, &o, &e->get);
		if (rc != 0)
			return rc;
		e->page = ls_prom_page_new(table, s->map, e->name);
		if (e->page == NULL)
			return -ENOMEM;
	}
	return 0;
}

static void
prom_free(void *self)
{
	struct source_prom *s = self;

	for (size_t i = 0; i < s->count; i++) {
		ls_http_get_free(s->entry[i].get);
		ls_prom_page_free(s->entry[i].page);
	}
	ls_prom_map_free(s->map);
	free(s);
}

int
ls_source_prom_check(const char *pages, const char *map, char *ret_why,
	size_t why_bytes)
{
	struct source_prom *s = calloc(1, sizeof(*s));
	int rc = s != NULL ? prom_take_options(s, pages, map, ret_why, why_bytes)
			   : -ENOMEM;

	if (s == NULL)
		(void)snprintf(ret_why, why_bytes, "%s", ls_err_text(rc));
	else
		prom_free(s);
	return rc;
}

int
ls_source_prom_new(struct ls_loop *loop, struct ls_series_table *table,
	const char *pages, const char *map, struct ls_source *ret_source)
{
	struct source_prom *s = calloc(1, sizeof(*s));
	char why[LS_LOG_LINE_MAX_BYTES];
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->loop = loop;
	rc = prom_take_options(s, pages, map, why, sizeof(why));
	if (rc != 0)
		ls_log(LS_LOG_ERR, "prom", "%s", why);
	else
		rc = prom_open_pages(s, table);
	if (rc != 0) {
		prom_free(s);
		return rc;
	}
	*ret_source =
		(struct ls_source){ "prom", s, NULL, prom_read, prom_tell, prom_free };
	return 0;
}

void
ls_source_prom_stepped(const struct ls_source *source, uint64_t steps)
{
	struct source_prom *s = source->self;

	s->steps = steps;
}

const struct ls_prom_page *
ls_source_prom_page(const struct ls_source *source, size_t i)
{
	const struct source_prom *s = source->self;

	return i < s->count ? s->entry[i].page : NULL;
}

bool
ls_source_prom_is_settled(const struct ls_source *source)
{
	const struct source_prom *s = source->self;

	for (size_t i = 0; i < s->count; i++)
		if (s->entry[i].waiting)
			return false;
	return true;
}
