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

/* Most first; equal ones in the order in which they came, so that the answer stays the
 * same. */
static int
lies_compare(const void *a, const void *b, void *hosts)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t of_x = lies_of((struct ls_engine_host *)hosts + x),
		 of_y = lies_of((struct ls_engine_host *)hosts + y);

	return of_x != of_y ? (of_x < of_y) - (of_x > of_y) : (x > y) - (x < y);
}

static json_t *
lies_render_host(const struct ls_engine_host *h)
{
	json_t *reasons = json_object();

	for (unsigned why = 0; why < LS_LIE_COUNT; why++)
		if (h->lies[why] > 0)
			ls_ignore(json_object_set_new(reasons, ls_lie_name(why),
				json_integer((json_int_t)h->lies[why])));
	return json_pack("{s:s, s:I, s:o}", "host", h->name, "count",
		(json_int_t)lies_of(h), "reasons", reasons);
}

json_t *
ls_lies_render(const struct ls_engine *e, const struct ls_job *j)
{
	uint32_t *host = j->room.index;
	json_t *hosts = json_array();
	size_t n = ls_job_hosts(e, j, NULL, 0), lie = 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t one = lies_of(&e->hosts[host[i]]);

		host[lie] = host[i];
		lie += one > 0;
		sum += one;
	}
	if (lie > 1)
		qsort_r(host, lie, sizeof(*host), lies_compare,
			e->hosts); /* worst first */
	for (size_t i = 0; i < lie && i < LS_LIARS_SHOWN; i++)
		ls_ignore(json_array_append_new(hosts,
			lies_render_host(&e->hosts[host[i]])));
	return json_pack("{s:I, s:o}", "count", (json_int_t)sum, "hosts", hosts);
}
