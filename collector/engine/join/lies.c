/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/join/lies.h"

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
