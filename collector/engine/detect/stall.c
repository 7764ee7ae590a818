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

bool
ls_stall_goes_on(const struct ls_episode *before, const struct ls_episode *now)
{
	double gaps = (double)(before->hits + now->hits) - 1, pause, all;

	if (before->hits == 0 || now->hits == 0 || now->start_step <= before->last_step)
		return false; /* or of another attempt */
	pause = (double)(now->start_step - before->last_step);
	all = (double)(now->last_step - before->start_step);
	return pause <= LS_RARE * all / gaps;
}

void
ls_stall_join(const struct ls_episode *before, struct ls_episode *now)
{
	double pause = (double)(now->start_step - before->last_step);
	double gaps = (double)(before->hits + now->hits) - 1;
	double mean = (double)(now->last_step - before->start_step) / gaps;
	double own = (double)before->hits - 1, other = (double)now->hits - 1;

	now->gap_m2 += before->gap_m2 +
		own * (before->gap_mean - mean) * (before->gap_mean - mean) +
		other * (now->gap_mean - mean) * (now->gap_mean - mean) +
		(pause - mean) * (pause - mean);
	now->gap_mean = mean;
	now->start_step = before->start_step;
	now->start_us = before->start_us;
	now->before_s = before->before_s;
	now->steps = now->last_step - before->start_step + 1;
	now->hits += before->hits;
	now->excess_s += before->excess_s;
	now->own_s += before->own_s;
	now->wait_s += before->wait_s;
}
