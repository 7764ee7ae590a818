/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect_net - the part of detect that looks at what joins workers: collectives of the
 * job and of its slices, and the links between two of them. (Interface: detect.h,
 * detect_channel.h.)
 */
#include "config.h"
#include "collector/engine/detect/detect_base.h"
#include "collector/engine/detect/detect_channel.h"
#include "collector/engine/residual/stats.h"

#include <math.h>

/* deviations that are taken off: half of what is looked for */
#define NET_ALLOWANCE (LS_HALF * LS_SIGMAS)
/* the same of a block */
#define NET_BLOCK_ALLOWANCE (LS_HALF * LS_BLOCK_CLIP)
/* blocks in a row, each by BLOCK_CLIP, that are a finding: three, less what rounding takes */
#define NET_BLOCKS 2.9
#define NET_BLOCK_NATS \
	(LS_DETECT_FINDING / (NET_BLOCKS * (LS_BLOCK_CLIP - NET_BLOCK_ALLOWANCE)))
/* calm blocks that end a finding */
#define DETECT_COMM_BLOCK_CALM ((LS_DETECT_CLEAR_STEPS + LS_BLOCK - 1) / LS_BLOCK)

static void
detect_comm_chronic(struct ls_detect *d, struct ls_detect_net *net, double excess_s,
	uint64_t step, int64_t t_us)
{
	struct ls_detect_channel *ch = &net->channel[LS_DETECT_CHRONIC];
	double z = excess_s / fmax(net->arrival.sigma, LS_VISIBLE * d->step_s);

	ls_detect_accumulate(d, ch, ls_stats_clip(z, LS_SIGMAS) - NET_ALLOWANCE,
		LS_DETECT_CAP, excess_s, step, t_us);
	if (ls_detect_relax(d, ch, LS_DETECT_SUSPECT, LS_DETECT_CLEAR_STEPS) &&
		ch->c >= LS_DETECT_FINDING &&
		d->worst[0].v < LS_HALF * ch->ep.excess_s / (double)ch->ep.steps &&
		!(ch->ep.excess_s / (double)ch->ep.steps <
			LS_MOST * (d->step_s - ch->ep.before_s)) &&
		ls_detect_excess_ratio(d, &ch->ep) >= LS_LEAST)
		ls_detect_set_level(d, ch, LS_LEVEL_FINDING);
}

static void
detect_comm_learn(const struct ls_detect *d, struct ls_detect_usual *u, double v_s)
{
	u->base +=
		ls_stats_clip(v_s - u->base,
			LS_SIGMAS * fmax(u->sigma, LS_DETECT_SIGMA_FLOOR * d->step_s)) /
		LS_DETECT_BEFORE;
}

/* Deviation of a healthy block's mean: what is supposed, then what was seen. */
static double
detect_block_sigma(const struct ls_detect *d, const struct ls_detect_net *net)
{
	double one_s = fmax(fmax(net->arrival.sigma, net->wait.sigma),
		LS_DETECT_SIGMA_FLOOR * d->step_s);
	double prior = one_s * one_s * LS_TAU / LS_BLOCK;
	double seen = (net->blocks.dev_sum + LS_PRIOR * prior) /
		(net->blocks.healthy + LS_PRIOR);

	/* the base is not known better than that */
	seen *= 1 + 1 / fmax(net->blocks.healthy, 1);
	return fmax(fmax(sqrt(seen), LS_HALF * one_s),
		LS_QUARTER * LS_LEAST * d->step_s);
}

static void
detect_block_learn(struct ls_detect_blocks *b, double mean_s, double sigma_s)
{
	double dev = mean_s - b->base_s, memory;

	if (b->healthy >= LS_DETECT_WARM) {
		b->healthy /= 2;
		b->dev_sum /= 2;
	}
	if (b->healthy >= LS_PRIOR)
		dev = ls_stats_clip(dev, LS_BLOCK_CLIP * sigma_s);
	b->healthy++;
	b->base_s += dev / b->healthy;
	b->dev_sum += dev * dev * (b->healthy - 1) / b->healthy; /* Welford */
	memory = fmin(b->healthy, LS_PRIOR);
	b->usual_s += (b->time_s / LS_BLOCK - b->usual_s) / memory;
	b->usual_wait_s += (b->wait_s / LS_BLOCK - b->usual_wait_s) / memory;
}

/* Steps became longer by about as much, or would have if work had not become faster,
 * and neither a worker nor anything else explains it. */
static bool
detect_block_evidence(const struct ls_detect *d, const struct ls_detect_net *net)
{
	const struct ls_episode *ep = &net->channel[LS_DETECT_FAINT].ep;
	double excess_s = ep->excess_s / (double)ep->steps;
	double grown_s = net->blocks.time_sum / (double)ep->steps,
	       waits_s = net->blocks.wait_sum / (double)ep->steps;

	return d->open == 0 && d->worst[0].v < LS_HALF * excess_s &&
		fmax(grown_s, waits_s) >= LS_HALF * excess_s &&
		excess_s >= LS_MOST * grown_s &&
		ls_detect_excess_ratio(d, ep) >= LS_LEAST;
}

/* One block: an episode's steps are blocks. Its greatest value is left out: once is no
 * link. */
static void
detect_comm_block(struct ls_detect *d, struct ls_detect_net *net)
{
	struct ls_detect_blocks *b = &net->blocks;
	struct ls_detect_channel *ch = &net->channel[LS_DETECT_FAINT];
	double mean_s = (b->sum_s - b->most_s) / (LS_BLOCK - 1);
	double sigma_s = detect_block_sigma(d, net), z = (mean_s - b->base_s) / sigma_s;

	if (b->healthy < LS_PRIOR) {
		if (d->open == 0)
			detect_block_learn(b, mean_s, sigma_s);
		return;
	}
	if (ch->level != LS_LEVEL_FINDING) /* packets are lost in one block and not in
					      the next: a calm one takes back half */
		z = fmax(z, LS_HALF * NET_BLOCK_ALLOWANCE);
	else /* over as soon as it is much less than it was */
		z = (mean_s - b->base_s - ch->ep.excess_s / (double)ch->ep.steps / 2) /
			sigma_s;
	z = ls_stats_clip(z, LS_BLOCK_CLIP) - NET_BLOCK_ALLOWANCE;
	ls_detect_accumulate(d, ch, NET_BLOCK_NATS * z, LS_DETECT_CAP,
		b->sum_s / LS_BLOCK - b->base_s, b->first_step, b->first_us);
	if (ch->c > 0) {
		if (ch->ep.steps == 1)
			b->time_sum = b->wait_sum = 0;
		b->time_sum += b->time_s / LS_BLOCK - b->usual_s;
		b->wait_sum += b->wait_s / LS_BLOCK - b->usual_wait_s;
	}
	if (ls_detect_relax(d, ch, LS_DETECT_SUSPECT, DETECT_COMM_BLOCK_CALM) &&
		ch->c >= LS_DETECT_FINDING && detect_block_evidence(d, net))
		ls_detect_set_level(d, ch, LS_LEVEL_FINDING);
	/* a few are known: they must not follow what begins */
	if (ch->c <= 0 && d->open == 0)
		detect_block_learn(b, mean_s, sigma_s);
}

static void
detect_comm_faint(struct ls_detect *d, struct ls_detect_net *net, double excess_s,
	const struct ls_blame_step *totals, uint64_t step, int64_t t_us)
{
	struct ls_detect_blocks *b = &net->blocks;

	if (b->n == 0) {
		b->first_step = step;
		b->first_us = t_us;
		b->sum_s = b->time_s = b->wait_s = 0;
		b->most_s = -INFINITY;
	}
	b->sum_s += excess_s;
	b->time_s += totals->duration_s;
	b->wait_s += totals->wait_median_s;
	b->most_s = fmax(b->most_s, excess_s);
	if (++b->n < LS_BLOCK)
		return;
	b->n = 0;
	detect_comm_block(d, net);
}

/* What a step took longer than usual, mean over the workers, less the greatest excess of own work of any of them; NaN: not known. */
static double
detect_unexplained(const struct ls_detect *d, const struct ls_blame *residual, size_t n,
	const struct ls_blame_step *totals)
{
	double own_s = NAN;

	for (size_t i = 0; i < n; i++)
		own_s = fmax(own_s, residual[i].own_s - d->worker[i].base_own_s);
	return isnan(own_s) ? NAN : totals->mean_s - d->step_s - fmax(own_s, 0);
}

static void
detect_comm(struct ls_detect *d, struct ls_detect_net *net, struct ls_blame_net *t,
	const struct ls_blame_step *totals, double unexplained_s, uint64_t step,
	int64_t t_us)
{
	struct ls_detect_stalls stalls = { fmax(LS_DETECT_STALL_GAP * d->step_s,
						   LS_RTO_S * LS_DETECT_STALL_GAP),
		LS_DETECT_STALL_SAYS, LS_DETECT_STALL_FINDING };
	/* whom the collective lets go late makes the others wait in the next step */
	double both_s = net->unexplained_s + unexplained_s;
	bool learned;

	net->unexplained_s = 0;
	if (isnan(t->collective_s))
		return;
	learned = ls_detect_usual(&net->arrival, t->collective_s);
	if (!ls_detect_usual(&net->wait, t->wait_min_s) || !learned)
		return;
	t->comm_s = fmin(t->collective_s - net->arrival.base,
		t->wait_min_s - net->wait.base);
	detect_comm_chronic(d, net, t->comm_s, step, t_us);
	detect_comm_faint(d, net, t->comm_s, totals, step, t_us);
	if (net->channel[LS_DETECT_CHRONIC].c < LS_HALF * LS_DETECT_SUSPECT &&
		net->channel[LS_DETECT_FAINT].c < LS_HALF * LS_DETECT_SUSPECT &&
		d->open == 0) {
		detect_comm_learn(d, &net->arrival, t->collective_s);
		detect_comm_learn(d, &net->wait, t->wait_min_s);
	}
	if (t->comm_s < stalls.least_s && both_s >= stalls.least_s)
		t->comm_s = both_s;
	if (t->comm_s < stalls.least_s)
		net->unexplained_s = unexplained_s;
	ls_detect_stall(d, &net->channel[LS_DETECT_STALLS], &stalls, t->comm_s, step,
		t_us);
}

/* Is the net free of suspicion? */
static bool
detect_net_quiet(const struct ls_detect_net *net)
{
	const struct ls_detect_channel *ch = net->channel;

	return ch[LS_DETECT_CHRONIC].c < LS_HALF * LS_DETECT_SUSPECT &&
		ch[LS_DETECT_FAINT].c < LS_HALF * LS_DETECT_SUSPECT &&
		ch[LS_DETECT_STALLS].c <= 0;
}

/* Waits to send: their means while all is well, and what is beyond them while the net
 * is suspected. */
static void
detect_send(struct ls_detect_worker *w, const struct ls_blame *r, bool quiet)
{
	size_t known = 0;

	if (isnan(r->send_s))
		return;
	while (known < LS_PEERS_MAX && w->send[known].steps > 0 &&
		w->send[known].rank != r->send_rank)
		known++;
	if (known < LS_PEERS_MAX && w->send[known].steps == 0)
		w->send[known].rank = r->send_rank;
	for (size_t p = 0; p < LS_PEERS_MAX && (w->send[p].steps > 0 || p == known);
		p++) {
		double v = p == known ? r->send_s : 0;

		if (quiet) {
			w->send[p].steps += w->send[p].steps < LS_DETECT_BEFORE;
			w->send[p].base_s += (v - w->send[p].base_s) / w->send[p].steps;
			w->send[p].excess_s = 0;
		} else if (w->send[p].steps > 0) {
			w->send[p].excess_s += v - w->send[p].base_s;
		}
	}
}

void
ls_detect_nets(struct ls_detect *d, uint64_t step, int64_t t_us,
	const struct ls_blame *residual, size_t n, struct ls_blame_step *totals)
{
	double unexplained_s = detect_unexplained(d, residual, n, totals);
	bool quiet;

	for (size_t at = 0; at <= totals->slice_count && at < d->net_count; at++) {
		struct ls_detect_net *net = &d->net[at];
		struct ls_blame_net *t =
			at == 0 ? &totals->net : &totals->slice[at - 1];

		detect_comm(d, net, t, totals, at == 0 ? unexplained_s : 0, step, t_us);
		/* what waits to send are held against; NaN adds nothing */
		net->send_s =
			detect_net_quiet(net) ? 0 : net->send_s + fmax(t->comm_s, 0);
	}
	quiet = detect_net_quiet(&d->net[0]);
	for (size_t i = 0; i < n; i++) {
		size_t at = totals->slice_count > 0 ? totals->slice_of[i] + 1 : 0;

		detect_send(&d->worker[i], &residual[i],
			quiet &&
				(at == 0 || at >= d->net_count ||
					detect_net_quiet(&d->net[at])));
	}
}

bool
ls_detect_link(const struct ls_detect *d, size_t at, const uint32_t *slice_of,
	size_t *ret_slot, uint32_t *ret_rank)
{
	struct ls_stats_best best[2] = { { 0, 0 }, { 0, 0 } };
	double took_s = d->net[at].send_s;

	for (size_t i = 0; i < d->count; i++)
		for (size_t p = 0;
			p < LS_PEERS_MAX && (at == 0 || slice_of[i] + 1 == at); p++)
			ls_stats_best(best, d->worker[i].send[p].excess_s,
				i * LS_PEERS_MAX + p);
	if (!(took_s > 0) || best[0].v < LS_SHARED * took_s ||
		LS_HALF * best[0].v < best[1].v)
		return false;
	*ret_slot = best[0].at / LS_PEERS_MAX;
	*ret_rank = d->worker[*ret_slot].send[best[0].at % LS_PEERS_MAX].rank;
	return true;
}
