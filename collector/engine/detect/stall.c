/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/stall.h"

double
ls_stall_cost(const struct ls_episode *ep)
{
	/* The first hit begins the count, the last one ends it: of n hits n - 1 are
	 * waited for, and n - 2 tell the rate. */
	if (ep->hits >= 3 && ep->last_step > ep->start_step)
		return ep->excess_s / (double)ep->hits * (double)(ep->hits - 2) /
			(double)(ep->last_step - ep->start_step);
	return ep->steps > 0 ? ep->excess_s / (double)ep->steps : 0;
}
