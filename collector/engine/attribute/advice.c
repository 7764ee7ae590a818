/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/attribute/advice.h"
#include "collector/engine/params.h"
#include "proto/base/json.h"

#include <math.h>
#include <string.h>

/* the longest names, every byte quoted, fit: never cut */
#define ADVICE_COMMAND_MAX_BYTES 2048
#define ADVICE_LINE_MAX_BYTES 256

struct advice_out {
	char *dst;
	size_t size, len;
};

static void
advice_put(struct advice_out *o, char c)
{
	if (o->len + 1 < o->size)
		o->dst[o->len++] = c;
}

/* Plain words stay as they are; anything else goes into single quotes. */
static void
advice_quote(struct advice_out *o, const char *s)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789._-/:@%+=,";

	if (s[0] != '\0' && s[0] != '-' && strspn(s, plain) == strlen(s)) {
		for (; *s != '\0'; s++)
			advice_put(o, *s);
		return;
	}
	advice_put(o, '\'');
	for (; *s != '\0'; s++) {
		if (*s == '\'') {
			advice_put(o, '\'');
			advice_put(o, '\\');
			advice_put(o, '\'');
		}
		advice_put(o, *s);
	}
	advice_put(o, '\'');
}

static void
advice_puts(struct advice_out *o, const char *s)
{
	for (; *s != '\0'; s++)
		advice_put(o, *s);
}

size_t
ls_advice_fill(char *dst, size_t size, const char *text,
	const struct ls_worker_info *who)
{
	struct advice_out o = { dst, size, 0 };

	for (; *text != '\0'; text++) {
		if (text[0] == '%' && text[1] == 'j') {
			advice_quote(&o, who->job);
			text++;
		} else if (text[0] == '%' && text[1] == 'h') {
			advice_quote(&o, who->host[0] != '\0' ? who->host : "HOST");
			text++;
		} else if (text[0] == '%' && text[1] == 'H') {
			if (who->host[0] != '\0') {
				advice_puts(&o, " --host ");
				advice_quote(&o, who->host);
			}
			text++;
		} else {
			advice_put(&o, *text);
		}
	}
	dst[o.len] = '\0';
	return o.len;
}

/* An object for each line of the text; the lines are parted before names come in. NULL:
 * no memory. */
static json_t *
advice_commands(const char *text, const struct ls_worker_info *who)
{
	char line[ADVICE_LINE_MAX_BYTES], command[ADVICE_COMMAND_MAX_BYTES];
	json_t *list = json_array();
	size_t len;

	while (list != NULL && *text != '\0') {
		len = strcspn(text, "\n");
		LS_ASSERT(len < sizeof(line)); /* of causes.def */
		memcpy(line, text, len);
		line[len] = '\0';
		(void)ls_advice_fill(command, sizeof(command), line, who);
		if (json_array_append_new(list, json_pack("{s:s}", "shell", command)) !=
			0) {
			json_decref(list);
			return NULL;
		}
		text += len + (text[len] == '\n');
	}
	return list;
}

json_t *
ls_advice_render(const struct ls_finding *f)
{
	const struct ls_hypothesis *why = &f->diagnosis.hypotheses[0];
	const struct ls_cause_info *info;
	double cost = 0, pays_s = 0;
	bool known = f->chips > 0 && f->chips_lost > 0;

	if (f->diagnosis.count == 0)
		return json_array();
	info = ls_cause_info(why->cause);
	if (info->restart) {
		cost = (double)f->chips * LS_ADVICE_RESTART_S / 3600;
		pays_s = known ? cost / f->chips_lost * 3600 : NAN;
	}
	return json_pack(
		"[{s:i, s:s, s:s, s:b, s:o, s:o, s:o, s:{s:o, s:o}, s:o, s:s, s:o}]",
		"n", 1, "title", info->action, "for", info->name, "reversible", 1,
		"commands", advice_commands(info->command, &f->who), "cost_chip_hours",
		info->restart && f->chips <= 0 ? json_null() : ls_json_number(cost, 3),
		"downtime_s",
		ls_json_number(info->restart ? LS_ADVICE_RESTART_S : 0, 3), "predicted",
		"saving_chips", known ? ls_json_number(f->chips_lost, 3) : json_null(),
		"p_success", ls_json_number(why->confidence, 2), "break_even_s",
		ls_json_number(pays_s, 3), "state", "proposed", "caveat",
		info->restart
			? json_string(
				  "restarting all workers is assumed to cost 10 minutes")
			: json_null());
}
