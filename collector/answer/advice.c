/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/answer/advice.h"
#include "collector/engine/params.h"
#include "proto/base/json.h"

#include <math.h>
#include <string.h>

/* the longest names, every byte quoted, fit: never cut */
#define ADVICE_COMMAND_MAX_BYTES 2048

struct advice_out {
	char *dst;
	size_t size, len;
};

static void
advice_put(struct advice_out *o, const char *s, size_t len)
{
	len = len < o->size - 1 - o->len ? len : o->size - 1 - o->len;
	memcpy(o->dst + o->len, s, len);
	o->len += len;
}

/* Plain words stay as they are; anything else goes into single quotes. */
static void
advice_quote(struct advice_out *o, const char *s)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789._-/:@%+=,";

	if (s[0] != '\0' && s[0] != '-' && s[strspn(s, plain)] == '\0') {
		advice_put(o, s, strlen(s));
		return;
	}
	advice_put(o, "'", 1);
	for (; *s != '\0'; s++)
		if (*s == '\'')
			advice_put(o, "'\\''", 4);
		else
			advice_put(o, s, 1);
	advice_put(o, "'", 1);
}

size_t
ls_advice_fill(char *dst, size_t size, const char *text,
	const struct ls_worker_info *who)
{
	struct advice_out o = { dst, size, 0 };

	while (*text != '\0' && *text != '\n') {
		size_t len = text[0] == '%' && text[1] != '\0' &&
				strchr("jhH", text[1]) != NULL
			? 2
			: 1;

		if (len == 1)
			advice_put(&o, text, 1);
		else if (text[1] == 'j')
			advice_quote(&o, who->job);
		else if (text[1] == 'h')
			advice_quote(&o, who->host[0] != '\0' ? who->host : "HOST");
		else if (who->host[0] != '\0') {
			advice_put(&o, " --host ", 8);
			advice_quote(&o, who->host);
		}
		text += len;
	}
	dst[o.len] = '\0';
	return o.len;
}

/* An object for each line of the text; the lines are parted before names come in. NULL:
 * no memory. */
static json_t *
advice_commands(const char *text, const struct ls_worker_info *who)
{
	char command[ADVICE_COMMAND_MAX_BYTES];
	json_t *list = json_array();

	while (list != NULL && *text != '\0') {
		(void)ls_advice_fill(command, sizeof(command), text, who);
		ls_json_append(&list, json_pack("{s:s}", "shell", command));
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return list;
}

json_t *
ls_advice_render(const struct ls_finding *f)
{
	const struct ls_hypothesis *why = &f->diagnosis.hypotheses[0];
	const struct ls_cause_info *info;
	/* an action that only looks gains nothing by itself */
	bool looks = why->cause == LS_CAUSE_UNEXPLAINED ||
		why->cause == LS_CAUSE_INSIDE_PROGRAM;
	double cost = 0, pays_s = looks ? NAN : 0;
	bool known = f->chips > 0 && f->chips_lost > 0 && !looks;

	if (f->diagnosis.count == 0)
		return json_array();
	info = ls_cause_info(why->cause);
	if (info->restart) { /* nobody waits for a replica: it alone is restarted */
		cost = (f->replica ? f->share : 1) * (double)f->chips *
			LS_ADVICE_RESTART_S / 3600;
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
		"p_success", ls_json_number(looks ? NAN : why->confidence, 2),
		"break_even_s", ls_json_number(pays_s, 3), "state", "proposed",
		"caveat",
		info->restart
			? json_string(f->replica
					  ? "restarting the worker is assumed to cost 10 minutes"
					  : "restarting all workers is assumed to cost 10 minutes")
			: json_null());
}
