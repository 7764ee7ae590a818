/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/finding.h"
#include "collector/engine/params.h"
#include "proto/base/digest.h"
#include "proto/base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FINDING_NAME(id, name) name,
#define FINDING_NAMES_MAX 8 /* of one list: the compiler refuses more */

const char *
ls_finding_name(enum ls_finding_list list, unsigned value)
{
	static const char *const names[][FINDING_NAMES_MAX] = {
		[LS_NAMES_KIND] = { LS_FINDING_KINDS(FINDING_NAME) },
		[LS_NAMES_SCOPE] = { LS_FINDING_SCOPES(FINDING_NAME) },
		[LS_NAMES_STATUS] = {
#define X(state, name, named, over, left) name,
#include "collector/engine/finding/states.def"
#undef X
		},
		[LS_NAMES_REASON] = { LS_FINDING_REASONS(FINDING_NAME) },
		[LS_NAMES_SEVERITY] = { LS_SEVERITIES(FINDING_NAME) },
		[LS_NAMES_WAY] = { LS_GROUP_WAYS(FINDING_NAME) },
	};

	return value < FINDING_NAMES_MAX ? names[list][value] : NULL;
}

enum ls_finding_status
ls_finding_next(enum ls_finding_status is, enum ls_finding_event event)
{
	static const uint8_t next[][3] = {
#define X(state, name, named, over, left) { named, over, left },
#include "collector/engine/finding/states.def"
#undef X
	};

	return (enum ls_finding_status)next[is][event];
}

enum ls_severity
ls_finding_severity(double slowdown)
{
	double lost = slowdown > 1 ? 1 - 1 / slowdown : 0;

	return lost >= LS_SEVERITY_CRITICAL_RATIO   ? LS_SEVERITY_CRITICAL
		: lost >= LS_SEVERITY_WARNING_RATIO ? LS_SEVERITY_WARNING
						    : LS_SEVERITY_INFO;
}

/* Same worker on the same host? */
static bool
finding_same_end(const char *host_a, int32_t rank_a, const char *host_b, int32_t rank_b)
{
	return rank_a == rank_b && strcmp(host_a, host_b) == 0;
}

bool
ls_finding_same_subject(const struct ls_finding *a, const struct ls_finding *b)
{
	const struct ls_worker_info *x = &a->who, *y = &b->who;
	/* else host or rank */
	bool wide = a->scope >= LS_SCOPE_JOB || b->scope >= LS_SCOPE_JOB;

	if (strcmp(x->job, y->job) != 0 || (wide && a->scope != b->scope) ||
		(a->kind == LS_KIND_HANG) != (b->kind == LS_KIND_HANG) ||
		(a->kind == LS_KIND_SELF_IDENTITY) !=
			(b->kind == LS_KIND_SELF_IDENTITY))
		return false;
	switch (a->scope) {
	case LS_SCOPE_JOB:
		return true;
	case LS_SCOPE_SLICE:
		return strcmp(x->slice, y->slice) == 0;
	case LS_SCOPE_GROUP:
	case LS_SCOPE_SHARD:
		return a->way == b->way && strcmp(a->group, b->group) == 0;
	case LS_SCOPE_LINK:
		return (finding_same_end(x->host, x->rank, y->host, y->rank) &&
			       finding_same_end(a->peer_host, a->peer_rank,
				       b->peer_host, b->peer_rank)) ||
			(finding_same_end(x->host, x->rank, b->peer_host,
				 b->peer_rank) &&
				finding_same_end(a->peer_host, a->peer_rank, y->host,
					y->rank));
	case LS_SCOPE_HOST:
	case LS_SCOPE_RANK:
	case LS_SCOPE_COUNT:
	default:
		return finding_same_end(x->host, x->rank, y->host, y->rank);
	}
}

/* What an id is made of, besides job and occurrence; a link's ends in order of rank.
 * As snprintf. */
static int
finding_subject_text(const struct ls_finding *f, char *dst, size_t size)
{
	bool swap = f->scope == LS_SCOPE_LINK && f->peer_rank < f->who.rank;
	const char *first = swap ? f->peer_host : f->who.host;

	switch (f->scope) {
	case LS_SCOPE_JOB:
		return snprintf(dst, size, "%c%d", 0, -1);
	case LS_SCOPE_SLICE:
		return snprintf(dst, size, "%s%c%d", f->who.slice, 0, -1);
	case LS_SCOPE_GROUP:
	case LS_SCOPE_SHARD:
		return snprintf(dst, size, "%s%c%s%c%d",
			ls_finding_name(LS_NAMES_WAY, f->way), 0, f->group, 0, -1);
	case LS_SCOPE_LINK:
		return snprintf(dst, size, "%s%c%d%c%s%c%d", first, 0,
			swap ? f->peer_rank : f->who.rank, 0,
			swap ? f->who.host : f->peer_host, 0,
			swap ? f->who.rank : f->peer_rank);
	case LS_SCOPE_HOST:
	case LS_SCOPE_RANK:
	case LS_SCOPE_COUNT:
	default:
		return snprintf(dst, size, "%s%c%d", first, 0, f->who.rank);
	}
}

int
ls_finding_make_id(const struct ls_finding *f, unsigned more,
	char ret_id[LS_FINDING_ID_BYTES])
{
	char text[LS_JOB_NAME_MAX_BYTES + 2 * LS_HOST_NAME_MAX_BYTES + 96];
	size_t chars = 4 + more, len;

	if (chars > 12)
		return -LS_ELIMIT;
	len = (size_t)snprintf(text, sizeof(text), "%s%c%s%c", f->who.job, 0,
		ls_finding_name(LS_NAMES_SCOPE, f->scope), 0);
	len += (size_t)finding_subject_text(f, text + len, sizeof(text) - len);
	len += (size_t)snprintf(text + len, sizeof(text) - len, "%c%u%s", 0,
		f->occurrence,
		f->kind == LS_KIND_HANG			   ? " hang"
			: f->kind == LS_KIND_SELF_IDENTITY ? " identity"
							   : "");
	LS_ASSERT(len < sizeof(text)); /* the longest names fit */
	memcpy(ret_id, "F-", 2);
	ls_text_crockford(ret_id + 2, chars, ls_digest_bits(text, len));
	return 0;
}

struct ls_finding_episode
ls_finding_newest_episode(const struct ls_finding *f)
{
	double cost = f->chip_hours - f->since_chip_hours;

	return (struct ls_finding_episode){ .from_step = f->since_step,
		.to_step = f->last_step,
		.from_us = f->since_us,
		.to_us = f->cleared_us,
		.chip_hours = f->chip_hours > 0 ? ls_text_round(cost, LS_FINDING_DIGITS)
						: NAN };
}

/* Takes the two oldest episodes as one, from the begin of the one to the end of the other: their costs still add up. */
static void
finding_join_oldest(struct ls_finding *f)
{
	const struct ls_finding_episode *first = &f->episode[0];
	struct ls_finding_episode *next = &f->episode[1];
	double cost = (isnan(first->chip_hours) ? 0 : first->chip_hours) +
		(isnan(next->chip_hours) ? 0 : next->chip_hours);

	next->from_step = first->from_step;
	next->from_us = first->from_us;
	if (cost > 0)
		next->chip_hours = ls_text_round(cost, LS_FINDING_DIGITS);
	f->episodes--;
	memmove(f->episode, f->episode + 1, f->episodes * sizeof(*f->episode));
}

int
ls_finding_end_episode(struct ls_finding *f)
{
	if (f->episode == NULL)
		f->episode = calloc(LS_FINDING_EPISODES_MAX, sizeof(*f->episode));
	if (f->episode == NULL)
		return -ENOMEM;
	f->episode[f->episodes++] = ls_finding_newest_episode(f);
	if (f->episodes == LS_FINDING_EPISODES_MAX)
		finding_join_oldest(f);
	return 0;
}

void
ls_finding_fini(struct ls_finding *f)
{
	free(f->members);
	free(f->said);
	free(f->episode);
	f->members = NULL;
	f->said = NULL;
	f->episode = NULL;
	f->member_count = f->said_count = f->episodes = 0;
}
