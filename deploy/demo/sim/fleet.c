/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/sim/fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "deploy/demo/sim/ledger.h"
#include "deploy/demo/sim/link.h"

#define FLEET_SCRATCH_BYTES 65536u
#define FLEET_NS_PER_S 1000000000ull

static void
fleet_count_waiting(struct sim_fleet *f)
{
	f->sums.unacked_items = 0;
	for (uint32_t i = 0; i < f->count; i++)
		f->sums.unacked_items +=
			f->links[i].agent.steps.count + f->links[i].agent.chunks.count;
}

static void
fleet_on_report(void *arg)
{
	struct sim_fleet *f = arg;

	fleet_count_waiting(f);
	sim_tally_print(f->tally, &f->sums, false, ls_clock_mono_ns(), stdout);
}

static void
fleet_on_drain(void *arg)
{
	struct sim_fleet *f = arg;

	fleet_count_waiting(f);
	if (f->sums.unacked_items == 0)
		ls_loop_stop(f->loop);
}

static void
fleet_on_drained(void *arg)
{
	ls_loop_stop(((struct sim_fleet *)arg)->loop);
}

void
sim_fleet_drain(struct sim_fleet *f)
{
	uint64_t now = ls_clock_mono_ns();

	if (f->plan.draining)
		return;
	f->plan.draining = true;
	for (uint32_t i = 0; i < f->count; i++)
		sim_link_hurry(&f->links[i], now);
	ls_loop_timer_free(f->report_timer);
	f->report_timer = ls_loop_timer_new(f->loop, fleet_on_drain, f);
	f->drain_timer = ls_loop_timer_new(f->loop, fleet_on_drained, f);
	if (f->report_timer == NULL || f->drain_timer == NULL) {
		ls_loop_stop(f->loop);
		return;
	}
	ls_loop_timer_start(f->report_timer, SIM_DRAIN_BEAT_NS, SIM_DRAIN_BEAT_NS);
	ls_loop_timer_start(f->drain_timer, SIM_DRAIN_NS, 0);
}

static int
fleet_make_plan(struct sim_fleet *f, const struct sim_slow *slow, uint64_t now)
{
	const struct sim_options *o = f->options;
	uint32_t sources = (uint32_t)o->hosts;
	int rc;

	f->plan.options = o;
	f->plan.start_ns = now;
	f->plan.back_ns = o->saturate ? SIM_SATURATE_BACK_NS : 0;
	f->plan.minute_ns = LS_CHUNK_NS / (uint64_t)o->accelerate;
	f->plan.run =
		sim_hash((uint64_t)ls_clock_wall_ns(), (uint64_t)getpid(), now, 6);
	f->plan.scratch = ls_arena_new(FLEET_SCRATCH_BYTES, LS_REPORT_MAX_BYTES);
	if (f->plan.scratch == NULL)
		return -ENOMEM;
	if (o->variants > 0)
		sources = (uint32_t)o->variants * (o->saturate ? 1 : SIM_SLOTS);
	rc = sim_shape_new(o, sources, o->variants > 0 ? SIM_BODIES_KEPT : 0,
		&f->plan.shape);
	if (rc != 0 || o->steps_per_s == 0)
		return rc;
	f->plan.job = sim_job_new(o, slow, now);
	return f->plan.job != NULL ? 0 : -ENOMEM;
}

static int
fleet_make_links(struct sim_fleet *f)
{
	uint64_t now;
	int rc = 0;

	f->links = calloc((size_t)f->options->hosts, sizeof(*f->links));
	if (f->links == NULL)
		return -ENOMEM;
	while (rc == 0 && f->count < f->options->hosts) {
		rc = sim_link_init(&f->links[f->count], f, f->count);
		f->count++;
	}
	now = ls_clock_mono_ns();
	for (uint32_t i = 0; rc == 0 && i < f->count; i++)
		sim_link_start(&f->links[i], now + sim_fleet_random(f, f->jitter_ns));
	return rc;
}

/* The certificates of the hosts are read with their links. */
static int
fleet_open_keys(struct sim_fleet *f)
{
	char path[LS_CONF_VALUE_MAX_BYTES + 8];

	(void)snprintf(path, sizeof(path), "%s/ca.pem", f->options->keys);
	f->tls = SSL_CTX_new(TLS_client_method());
	if (f->tls == NULL)
		return -ENOMEM;
	SSL_CTX_set_verify(f->tls, SSL_VERIFY_PEER, NULL);
	(void)SSL_CTX_set_mode(f->tls, SSL_MODE_RELEASE_BUFFERS);
	if (SSL_CTX_load_verify_locations(f->tls, path, NULL) == 1)
		return 0;
	ls_log(LS_LOG_ERR, "sim", "%s: no certificates in PEM", path);
	return -EINVAL;
}

int
sim_fleet_new(struct ls_loop *loop, const struct sim_options *o,
	const struct sim_slow *slow, const struct sim_misbehave *misbehave,
	struct sim_fleet **ret_fleet)
{
	struct sim_fleet *f;
	uint64_t now = ls_clock_mono_ns(), room = sim_net_raise_files();
	int rc;

	if (room < (uint64_t)o->hosts) {
		ls_log(LS_LOG_ERR, "sim",
			"the limit of open files leaves room for %" PRIu64
			" hosts, not for %" PRId64
			": raise it (ulimit -Hn), or ask for fewer",
			room, o->hosts);
		return -LS_ELIMIT;
	}
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return -ENOMEM;
	f->loop = loop;
	f->options = o;
	f->plan.misbehave = *misbehave;
	f->random = sim_hash((uint64_t)o->seed, 0, 0, 7) | 1;
	f->jitter_ns = (uint64_t)o->hosts * FLEET_NS_PER_S / SIM_CONNECTS_PER_S;
	if (f->jitter_ns < SIM_JITTER_MIN_NS)
		f->jitter_ns = SIM_JITTER_MIN_NS;
	rc = sim_net_resolve(o->connect, &f->address);
	if (rc == 0 && o->keys[0] != '\0')
		rc = fleet_open_keys(f);
	if (rc == 0)
		rc = fleet_make_plan(f, slow, now);
	f->tally = sim_tally_new(o, now);
	f->report_timer = ls_loop_timer_new(loop, fleet_on_report, f);
	if (rc == 0 && (f->tally == NULL || f->report_timer == NULL))
		rc = -ENOMEM;
	if (rc == 0)
		rc = fleet_make_links(f);
	if (rc == 0) {
		ls_loop_timer_start(f->report_timer, o->report_ns, o->report_ns);
		*ret_fleet = f;
	} else {
		sim_fleet_free(f);
	}
	return rc;
}

void
sim_fleet_free(struct sim_fleet *f)
{
	if (f == NULL)
		return;
	while (f->count > 0)
		sim_link_fini(&f->links[--f->count]);
	free(f->links);
	SSL_CTX_free(f->tls);
	ls_loop_timer_free(f->report_timer);
	ls_loop_timer_free(f->drain_timer);
	sim_job_free(f->plan.job);
	sim_shape_free(f->plan.shape);
	ls_arena_free(f->plan.scratch);
	sim_tally_free(f->tally);
	free(f);
}

static int
fleet_write_ledger(const struct sim_fleet *f)
{
	FILE *out = fopen(f->options->ledger, "w");
	int rc = 0;

	if (out == NULL)
		return -errno;
	for (uint32_t i = 0; i < f->count && rc == 0; i++)
		rc = sim_ledger_line(out, &f->links[i].agent);
	if (fclose(out) != 0 && rc == 0)
		rc = -errno;
	return rc;
}

int
sim_fleet_finish(struct sim_fleet *f)
{
	fleet_count_waiting(f);
	sim_tally_print(f->tally, &f->sums, true, ls_clock_mono_ns(), stdout);
	return f->options->ledger[0] != '\0' ? fleet_write_ledger(f) : 0;
}

bool
sim_fleet_is_settled(const struct sim_fleet *f)
{
	return sim_tally_storm_turn(f->tally, stdout);
}
