/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/uplink/pace.h"

#include "proto/limits.h"

void
ls_pace_start(struct ls_pace *p, uint64_t now_mono_ns, uint64_t pushed_bytes)
{
	p->allowance_bytes = 0;
	p->t_mono_ns = now_mono_ns;
	p->pushed_bytes = pushed_bytes;
}

uint64_t
ls_pace_reckon(struct ls_pace *p, uint64_t rate_bytes_per_s, uint64_t now_mono_ns,
	uint64_t pushed_bytes)
{
	uint64_t for_ns = now_mono_ns - p->t_mono_ns,
		 bytes = pushed_bytes - p->pushed_bytes;

	if (for_ns > LS_BEAT_MAX_NS)
		for_ns = LS_BEAT_MAX_NS;
	if (bytes > LS_REPORT_CHUNK_BYTES)
		bytes = LS_REPORT_CHUNK_BYTES;
	if (rate_bytes_per_s > LS_BACKFILL_MAX_BYTES)
		rate_bytes_per_s = LS_BACKFILL_MAX_BYTES; /* so that the product fits */
	bytes += rate_bytes_per_s * (for_ns / 1000000) / 1000;
	p->allowance_bytes += (int64_t)bytes;
	if (p->allowance_bytes > (int64_t)LS_REPORT_CHUNK_BYTES)
		p->allowance_bytes = LS_REPORT_CHUNK_BYTES;
	p->t_mono_ns = now_mono_ns;
	p->pushed_bytes = pushed_bytes;
	return p->allowance_bytes > 0 ? (uint64_t)p->allowance_bytes : 0;
}

void
ls_pace_spend(struct ls_pace *p, uint64_t bytes)
{
	p->allowance_bytes -= (int64_t)bytes;
}
