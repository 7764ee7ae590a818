/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/join/lies.h"

#include <stdlib.h>
#include <string.h>

const char *
ls_lie_name(unsigned why)
{
	static const char *const names[] = {
#define LS_LIE(id, name, help) name,
#include "collector/engine/join/lies.def"
#undef LS_LIE
	};

	return why < LS_LIE_COUNT ? names[why] : NULL;
}

void
ls_lies_add(struct ls_engine *e, uint32_t host, enum ls_lie why, uint64_t count)
{
	LS_ASSERT((unsigned)why < LS_LIE_COUNT && host < e->host_count);
	e->hosts[host].lies[why] += count;
	e->stats.lies[why] += count;
}

void
ls_engine_lie(struct ls_engine *e, const char *host, enum ls_lie why, uint64_t count)
{
	uint32_t at = ls_engine_find_host(e, host);

	if (at != LS_INDEX_NONE)
		ls_lies_add(e, at, why, count);
	else /* it has no worker or counter here: no job is concerned */
		e->stats.lies[why] += count;
}

static uint64_t
lies_of(const struct ls_engine_host *h)
{
	uint64_t sum = 0;

	for (unsigned why = 0; why < LS_LIE_COUNT; why++)
		sum += h->lies[why];
	return sum;
}

struct lies_sorted {
	uint64_t count;
	uint32_t host;
};

/* Most first; equal ones in the order in which they came, so that the answer stays the
 * same. */
static int
lies_compare(const void *a, const void *b)
{
	const struct lies_sorted *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->host > y->host) - (x->host < y->host);
}

static json_t *
lies_render_host(const struct ls_engine_host *h, uint64_t count)
{
	json_t *reasons = json_object();

	for (unsigned why = 0; why < LS_LIE_COUNT; why++)
		if (h->lies[why] > 0)
			ls_ignore(json_object_set_new(reasons, ls_lie_name(why),
				json_integer((json_int_t)h->lies[why])));
	return json_pack("{s:s, s:I, s:o}", "host", h->name, "count", (json_int_t)count,
		"reasons", reasons);
}

/* The hosts of the job that lie, each once, worst first; returns how many. */
static size_t
lies_sort(const struct ls_engine *e, const struct ls_job *j, struct lies_sorted *list)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < j->count; i++) {
		uint32_t host = e->workers[j->slots[i]].host;
		uint64_t count = lies_of(&e->hosts[host]);

		if (count > 0)
			list[n++] = (struct lies_sorted){ count, host };
	}
	if (n > 1)
		qsort(list, n, sizeof(*list), lies_compare);
	/* several workers of one host stand side by side */
	for (size_t i = 0; i < n; i++)
		if (i == 0 || list[i].host != list[kept - 1].host)
			list[kept++] = list[i];
	return kept;
}

json_t *
ls_lies_render(const struct ls_engine *e, const struct ls_job *j)
{
	struct lies_sorted *list = malloc((j->count + 1) * sizeof(*list));
	json_t *hosts = json_array();
	uint64_t sum = 0;
	size_t n;

	if (list == NULL || hosts == NULL) {
		free(list);
		json_decref(hosts);
		return NULL;
	}
	n = lies_sort(e, j, list);
	for (size_t i = 0; i < n; i++) {
		sum += list[i].count;
		if (i < LS_LIARS_SHOWN)
			ls_ignore(json_array_append_new(hosts,
				lies_render_host(&e->hosts[list[i].host],
					list[i].count)));
	}
	free(list);
	return json_pack("{s:I, s:o}", "count", (json_int_t)sum, "hosts", hosts);
}
