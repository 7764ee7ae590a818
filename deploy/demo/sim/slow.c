/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "deploy/demo/sim/sim.h"

#define SLOW_FRACTION_MAX 100.0 /* a hundred times slower stands for a hang */

int
sim_slow_parse(const char *text, int64_t hosts, struct sim_slow *ret_slow)
{
	struct sim_slow slow = { .rank = -1 };
	char *end;

	if (strcmp(text, "none") == 0) {
		*ret_slow = slow;
		return 0;
	}
	errno = 0;
	if (*text < '0' || *text > '9')
		return -LS_EPARSE;
	slow.rank = strtoll(text, &end, 10);
	if (*end != ':' || end[1] < '0' || end[1] > '9')
		return -LS_EPARSE;
	slow.fraction = strtod(end + 1, &end);
	if (*end == '@' && end[1] >= '0' && end[1] <= '9')
		slow.from = strtoull(end + 1, &end, 10);
	if (*end != '\0')
		return -LS_EPARSE;
	if (errno != 0 || slow.rank >= hosts || !isfinite(slow.fraction) ||
		slow.fraction > SLOW_FRACTION_MAX)
		return -LS_ERANGE;
	*ret_slow = slow;
	return 0;
}
