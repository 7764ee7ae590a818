/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "deploy/demo/sim/fault.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"

/* A whole number of digits alone, at most max; moves *text behind it. */
static bool
fault_number(const char **text, uint64_t max, uint64_t *ret_value)
{
	size_t n = ls_text_digits(*text, SIZE_MAX, max, ret_value);

	*text += n;
	return n > 0;
}

static bool
fault_who(const char **text, struct sim_fault *f)
{
	enum sim_who who = sim_fault_info(f->kind)->who;
	uint64_t a, b = 0;

	if (who == SIM_WHO_ALL) {
		if (strncmp(*text, "all", 3) != 0)
			return false;
		*text += 3;
		return true;
	}
	if (!fault_number(text, UINT32_MAX, &a))
		return false;
	if (who == SIM_WHO_SLICES) {
		if (**text != '+')
			return false;
		(*text)++;
		if (!fault_number(text, UINT32_MAX, &b))
			return false;
	}
	f->who = (uint32_t)a;
	f->other = (uint32_t)b;
	return true;
}

static bool
fault_amount(const char **text, struct sim_fault *f)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	f->amount = strtod(*text, &end);
	if (*end == '%') {
		f->amount /= 100;
		end++;
	}
	*text = end;
	return isfinite(f->amount);
}

static bool
fault_steps(const char **text, struct sim_fault *f)
{
	f->from = 0;
	f->to = UINT64_MAX;
	if (**text != '@')
		return true;
	(*text)++;
	if (!fault_number(text, UINT64_MAX, &f->from) || **text != '-')
		return false;
	(*text)++;
	return **text == '\0' || **text == ',' ||
		fault_number(text, UINT64_MAX, &f->to);
}

static int
fault_kind(const char *text, size_t len, struct sim_fault *f)
{
	for (unsigned k = 0; k < SIM_FAULT_COUNT; k++) {
		const char *name = sim_fault_info((enum sim_fault_kind)k)->name;

		if (strlen(name) == len && memcmp(name, text, len) == 0) {
			f->kind = (enum sim_fault_kind)k;
			return 0;
		}
	}
	return -LS_EPARSE;
}

/* One fault of len bytes, which are followed by a comma or the end. */
static int
fault_parse(const char *text, size_t len, struct sim_fault *ret_fault, char *why)
{
	static const char *const whom[] = { "RANK", "SLICE", "SLICE+SLICE", "RACK",
		"STAGE", "SHARD", "all" };
	struct sim_fault f = { 0 };
	char shown[SIM_FAULT_TEXT_BYTES];
	const char *at = memchr(text, ':', len);

	(void)ls_text_escape(shown, sizeof(shown), text, len); /* cut, if it is long */
	if (at == NULL || fault_kind(text, (size_t)(at - text), &f) != 0) {
		ls_ignore(snprintf(why, SIM_FAULT_WHY_BYTES,
			"%s: KIND:WHO:AMOUNT[@FROM-TO] is wanted, "
			"with a KIND of the help",
			shown));
		return -LS_EPARSE;
	}
	at++;
	if (!fault_who(&at, &f) || *at++ != ':' || !fault_amount(&at, &f) ||
		!fault_steps(&at, &f) || at != text + len) {
		ls_ignore(snprintf(why, SIM_FAULT_WHY_BYTES,
			"%s: %s:%s:AMOUNT[@FROM-TO] is wanted, "
			"AMOUNT as 0.03 or 3%%",
			shown, sim_fault_info(f.kind)->name,
			whom[sim_fault_info(f.kind)->who]));
		return -LS_EPARSE;
	}
	*ret_fault = f;
	return 0;
}

int
sim_fault_parse_list(const char *text, struct sim_fault *ret_faults, size_t *ret_count,
	char why[SIM_FAULT_WHY_BYTES])
{
	size_t n = 0;

	if (strcmp(text, "none") == 0 || *text == '\0') {
		*ret_count = 0;
		return 0;
	}
	for (;;) {
		size_t len = strcspn(text, ",");
		int rc;

		if (n == SIM_FAULTS_MAX) {
			ls_ignore(snprintf(why, SIM_FAULT_WHY_BYTES,
				"more than %u faults", SIM_FAULTS_MAX));
			return -LS_ELIMIT;
		}
		rc = fault_parse(text, len, &ret_faults[n], why);
		if (rc != 0)
			return rc;
		n++;
		if (text[len] == '\0')
			break;
		text += len + 1;
	}
	*ret_count = n;
	return 0;
}

void
sim_fault_print(const struct sim_fault *f, char text[SIM_FAULT_TEXT_BYTES])
{
	const struct sim_fault_info *info = sim_fault_info(f->kind);
	char who[32] = "all", to[24] = "";

	if (info->who == SIM_WHO_SLICES)
		ls_ignore(snprintf(who, sizeof(who), "%u+%u", f->who, f->other));
	else if (info->who != SIM_WHO_ALL)
		ls_ignore(snprintf(who, sizeof(who), "%u", f->who));
	if (f->to != UINT64_MAX)
		ls_ignore(snprintf(to, sizeof(to), "%" PRIu64, f->to));
	ls_ignore(snprintf(text, SIM_FAULT_TEXT_BYTES, "%s:%s:%.12g@%" PRIu64 "-%s",
		info->name, who, f->amount, f->from, to));
}
