/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/rate.h"

int64_t
ls_rate_spend(int64_t *empty_ns, uint32_t bytes_per_s, int64_t burst_ns, size_t bytes,
	int64_t now_ns)
{
	if (*empty_ns < now_ns - burst_ns)
		*empty_ns = now_ns - burst_ns;
	*empty_ns += (int64_t)(bytes * 1000000000ull / bytes_per_s);
	return now_ns - *empty_ns;
}
