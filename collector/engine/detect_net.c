/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect_net - the part of detect that looks at what joins workers: collectives of the job and of its
 * slices, and the links between two of them. (Interface: detect.h, detect_channel.h.)
 */
#include "config.h"
#include "collector/engine/detect_channel.h"
#include "collector/engine/stats.h"

#include <math.h>
#include <string.h>

#define DETECT_COMM_DRIFT 1.5
#define DETECT_COMM_CAP 60.0
#define DETECT_COMM_SIGMA 0.05    /* floor, ratio to the step time */
#define DETECT_COMM_SHARE 0.6     /* of the step's growth; else everything got slower */
#define DETECT_COMM_STALL 4.0     /* steps, and at least so many seconds: TCP waits 0.2 before it sends again */
#define DETECT_COMM_STALL_S 0.15
#define DETECT_COMM_YIELD 0.5     /* a suspect of so much of the excess explains it: it is slow inside, too */
#define DETECT_SEND_STEPS 256u    /* over which the mean of healthy waits to send goes */
#define DETECT_LINK_SHARE 0.4     /* of what collectives take longer */
#define DETECT_LINK_LEAD 1.8      /* over any other link */

static void
detect_comm_chronic(struct ls_detect *d, struct ls_detect_net *net, double excess_s, uint64_t step,
	int64_t t_us)
{
	struct ls_detect_channel *ch = &net->channel[LS_DETECT_CHRONIC];
	double z = excess_s / fmax(net->arrival.sigma_s, DETECT_COMM_SIGMA * d->step_s);

	ls_detect_accumulate(d, ch, ls_stats_clip(z, LS_DETECT_CLIP) - DETECT_COMM_DRIFT,
		DETECT_COMM_CAP, 0, step, t_us);
	if (ch->c > 0)
		ch->ep.excess_s += excess_s;
	ls_detect_relax(d, ch, LS_DETECT_SUSPECT, LS_DETECT_CLEAR_STEPS);
	if (ch->level == LS_LEVEL_SUSPECT && ch->c >= LS_DETECT_COMM_FINDING &&
		d->worst_s[0] < DETECT_COMM_YIELD * ch->ep.excess_s / (double)ch->ep.steps &&
		!(ch->ep.excess_s / (double)ch->ep.steps <
			DETECT_COMM_SHARE * (d->step_s - ch->ep.before_s)) &&
		ls_detect_excess_ratio(d, &ch->ep) >= LS_DETECT_MIN_RATIO)
		ls_detect_set_level(d, ch, LS_LEVEL_FINDING);
}

/* False while it is still learning. */
static bool
detect_comm_warm(const struct ls_detect *d, struct ls_detect_comm *c, double v_s)
{
	double copy[LS_DETECT_WARM];

	if (c->warm_n == LS_DETECT_WARM)
		return true;
	c->warm[c->warm_n++] = v_s;
	if (c->warm_n == LS_DETECT_WARM) {
		memcpy(copy, c->warm, sizeof(copy));
		c->base_s = ls_stats_median(copy, LS_DETECT_WARM);
		memcpy(copy, c->warm, sizeof(copy));
		c->sigma_s = fmax(LS_MAD_TO_SIGMA * ls_stats_mad(copy, LS_DETECT_WARM, c->base_s),
			LS_DETECT_SIGMA_FLOOR * d->step_s);
	}
	return false;
}

static void
detect_comm_learn(struct ls_detect_comm *c, double v_s)
{
	c->base_s += ls_stats_clip(v_s - c->base_s, 3 * c->sigma_s) / 256;
}

static void
detect_comm(struct ls_detect *d, struct ls_detect_net *net, struct ls_blame_net *t, uint64_t step,
	int64_t t_us)
{
	bool learned;

	if (isnan(t->collective_s))
		return;
	learned = detect_comm_warm(d, &net->arrival, t->collective_s);
	if (!detect_comm_warm(d, &net->wait, t->wait_min_s) || !learned)
		return;
	t->comm_s = fmin(t->collective_s - net->arrival.base_s, t->wait_min_s - net->wait.base_s);
	detect_comm_chronic(d, net, t->comm_s, step, t_us);
	if (net->channel[LS_DETECT_CHRONIC].c < LS_DETECT_SUSPECT / 2 && d->open == 0) {
		detect_comm_learn(&net->arrival, t->collective_s);
		detect_comm_learn(&net->wait, t->wait_min_s);
	}
	ls_detect_stall(d, &net->channel[LS_DETECT_STALLS],
		t->comm_s >= fmax(DETECT_COMM_STALL * d->step_s, DETECT_COMM_STALL_S),
		t->comm_s, step, t_us);
}

/* Is the job's net free of suspicion? */
static bool
detect_net_quiet(const struct ls_detect *d)
{
	const struct ls_detect_channel *ch = d->net[0].channel;

	return ch[LS_DETECT_CHRONIC].c < LS_DETECT_SUSPECT / 2 && ch[LS_DETECT_STALLS].c <= 0;
}

/* Waits to send: their means while all is well, and what is beyond them while the net is suspected. */
static void
detect_send(struct ls_detect_worker *w, const struct ls_blame *r, bool quiet)
{
	size_t known = 0;

	if (isnan(r->send_s))
		return;
	while (known < LS_PEERS_MAX && w->send[known].steps > 0 && w->send[known].rank != r->send_rank)
		known++;
	if (known < LS_PEERS_MAX && w->send[known].steps == 0)
		w->send[known].rank = r->send_rank;
	for (size_t p = 0; p < LS_PEERS_MAX && (w->send[p].steps > 0 || p == known); p++) {
		double v = p == known ? r->send_s : 0;

		if (quiet) {
			w->send[p].steps += w->send[p].steps < DETECT_SEND_STEPS;
			w->send[p].base_s += (v - w->send[p].base_s) / w->send[p].steps;
			w->send[p].excess_s = 0;
		} else if (w->send[p].steps > 0) {
			w->send[p].excess_s += v - w->send[p].base_s;
		}
	}
}

void
ls_detect_nets(struct ls_detect *d, uint64_t step, int64_t t_us, const struct ls_blame *residual, size_t n,
	struct ls_blame_step *totals)
{
	bool quiet;

	detect_comm(d, &d->net[0], &totals->net, step, t_us);
	for (size_t s = 0; s < totals->slice_count && s + 1 < d->net_count; s++)
		detect_comm(d, &d->net[s + 1], &totals->slice[s], step, t_us);
	quiet = detect_net_quiet(d);
	d->send_comm_s = quiet ? 0 : d->send_comm_s + fmax(totals->net.comm_s, 0);
	for (size_t i = 0; i < n; i++)
		detect_send(&d->worker[i], &residual[i], quiet);
}

bool
ls_detect_link(const struct ls_detect *d, size_t *ret_slot, uint32_t *ret_rank)
{
	double best = 0, second = 0;

	for (size_t i = 0; i < d->count; i++) {
		for (size_t p = 0; p < LS_PEERS_MAX; p++) {
			double excess = d->worker[i].send[p].excess_s;

			if (excess > best) {
				second = best;
				best = excess;
				*ret_slot = i;
				*ret_rank = d->worker[i].send[p].rank;
			} else {
				second = fmax(second, excess);
			}
		}
	}
	return best >= DETECT_LINK_SHARE * d->send_comm_s && best >= DETECT_LINK_LEAD * second &&
		d->send_comm_s > 0;
}
