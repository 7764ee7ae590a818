/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#define LS_TLS_OPTIONAL
#include "agent/agent.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/face/about.h"
#include "agent/budget.h"
#include "agent/spool/chunk_writer.h"
#include "agent/face/http.h"
#include "agent/collect/sampler.h"
#include "agent/sources.h"
#include "agent/spool/spool.h"
#include "agent/uplink/uplink.h"
#include "proto/base/clock.h"
#include "proto/base/http.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/notify.h"
#include "proto/wire/tls.h"

/* how often the counters are logged, if they changed */
#define AGENT_TELL_NS 60000000000ull
#define AGENT_DRAIN_LOOK_NS 20000000ull

enum agent_timer {
	AGENT_SAMPLE,
	AGENT_TELL,
	AGENT_WATCHDOG,
	AGENT_DRAIN,
	AGENT_BUDGET,
	AGENT_TIMERS
};

struct agent {
	struct ls_agent_config config;
	int argc;
	char **argv;
	struct ls_loop *loop;
	struct ls_loop_timer *timer[AGENT_TIMERS];
	struct ls_sampler sampler;
	struct ls_disk *disk[LS_DISK_COUNT];
	bool stall_told[LS_DISK_COUNT];
	struct ls_spool *spool;
	struct ls_sources *sources;
	struct ls_chunk_writer *chunks;
	struct ls_tls *tls; /* NULL: plain */
	struct ls_uplink *uplink;
	size_t identity_count;
	uint64_t identity_version;
	struct ls_wire_identity identity[LS_IDENTITY_FIELDS_MAX]; /* of this version */
	struct ls_agent_http *http; /* NULL: not served */
	struct ls_about_parts about; /* for an answer under way */
	struct ls_budget budget;
	uint64_t started_ns;
	uint64_t told; /* sum of the counters that were logged last */
	uint64_t drain_until_ns; /* 0: not ending */
};

/* Logs once that a disk does not answer, and that it does again. */
static void
agent_look_at_disks(struct agent *a, uint64_t now_mono_ns)
{
	static const char *const instead[LS_DISK_COUNT] = {
		[LS_DISK_STATE] = "new records wait in memory",
		[LS_DISK_JOBS] = "its steps are late, those of other jobs are not",
	};

	for (size_t i = 0; i < LS_DISK_COUNT; i++) {
		uint64_t for_ns = ls_disk_stalled_ns(a->disk[i], now_mono_ns);

		if ((for_ns != 0) == a->stall_told[i])
			continue;
		a->stall_told[i] = for_ns != 0;
		if (for_ns != 0)
			ls_log(LS_LOG_WARN, "disk",
				"%s has not answered for %.0f s; %s",
				ls_disk_path(a->disk[i]), (double)for_ns / 1e9,
				instead[i]);
		else
			ls_log(LS_LOG_INFO, "disk", "%s answers again",
				ls_disk_path(a->disk[i]));
	}
}

static void
agent_sample(void *arg)
{
	struct agent *a = arg;
	uint64_t now = ls_loop_now(a->loop);
	unsigned due = ls_sampler_due(&a->sampler, now);

	agent_look_at_disks(a, now);

	if (due != 0) {
		/* first: a reading belongs to the minute it is in */
		ls_chunk_writer_turn(a->chunks, now);
		ls_sources_read(a->sources, due, now);
	}
	ls_loop_timer_start(a->timer[AGENT_SAMPLE],
		ls_sampler_wait_ns(&a->sampler, now), 0);
}

/* The rings once more, so that a step is reported at the first beat after it. */
static void
agent_gather(void *arg)
{
	struct agent *a = arg;

	ls_sources_read(a->sources, 0, ls_loop_now(a->loop));
}

static void
agent_spool_is_idle(void *arg)
{
	struct agent *a = arg;

	ls_chunk_writer_write(a->chunks);
	ls_uplink_spool_is_idle(a->uplink);
}

static void
agent_fill(void *arg, struct ls_wire_report *r)
{
	struct agent *a = arg;

	ls_sources_fill(a->sources, r);
	r->lost_samples = ls_spool_get_stats(a->spool)->lost_samples +
		ls_chunk_writer_get_stats(a->chunks)->lost_samples;
	r->slowed = a->budget.factor;
}

static void
agent_need_dictionary(void *arg, uint64_t hash)
{
	struct agent *a = arg;

	ls_chunk_writer_need(a->chunks, hash);
}

static size_t
agent_zoom(void *arg, struct ls_wire_zoomed *ret_zoomed)
{
	struct agent *a = arg;

	/* Seen on the wire by its absence; the chunks hold the same values. */
	return a->budget.lean ? 0 : ls_chunk_writer_zoom(a->chunks, ret_zoomed);
}

/* --- budget --------------------------------------------------------------- */

static struct ls_budget_reading
agent_use(const struct agent *a)
{
	const struct ls_sample *host = ls_sources_host(a->sources);

	return (struct ls_budget_reading){
		.t_mono_ns = ls_loop_now(a->loop),
		.cpu_ns = ls_clock_cpu_ns(),
		.sent_bytes = ls_uplink_get_stats(a->uplink)->bytes,
		.rss_bytes = host->present[LS_METRIC_AGENT_RSS]
			? (uint64_t)host->value[LS_METRIC_AGENT_RSS]
			: 0,
	};
}

/* Puts what the budget decided in force. */
static void
agent_pace(struct agent *a)
{
	ls_sampler_set_interval(&a->sampler,
		a->config.sample_interval_ns * a->budget.factor);
	ls_uplink_set_slowed(a->uplink, a->budget.factor);
	ls_sources_set_slowed(a->sources, a->budget.factor);
	ls_sources_set_lean(a->sources, a->budget.lean);
}

static void
agent_budget(void *arg)
{
	struct agent *a = arg;
	const struct ls_budget *b = &a->budget;
	struct ls_budget_reading now = agent_use(a);
	bool was_lean = b->lean;

	if (!ls_budget_look(&a->budget, &now))
		return;
	agent_pace(a);
	if (b->lean && !was_lean)
		(void)malloc_trim(
			0); /* whether it could or not: the next window tells */
	ls_log(b->over != 0 ? LS_LOG_WARN : LS_LOG_INFO, "budget",
		"%s%s%s%s: %.5f of a core (%.5f), %llu KiB resident (%llu), %llu KiB a minute (%llu); "
		"sampling slowed by %u%s",
		b->over != 0 ? "exceeded in" : "within the budget",
		b->over & 1u << LS_BUDGET_CPU ? " cpu" : "",
		b->over & 1u << LS_BUDGET_MEMORY ? " memory" : "",
		b->over & 1u << LS_BUDGET_BYTES ? " bytes" : "", b->cpu_ratio,
		b->limits.cpu_ratio, (unsigned long long)b->rss_bytes / 1024,
		(unsigned long long)b->limits.memory_bytes / 1024,
		(unsigned long long)b->bytes_per_minute / 1024,
		(unsigned long long)b->limits.bytes_per_minute / 1024, b->factor,
		b->lean ? ", optional sources stopped" : "");
}

/* --- HTTP ----------------------------------------------------------------- */

static const struct ls_about_parts *
agent_parts(void *arg)
{
	struct agent *a = arg;

	a->about = (struct ls_about_parts){
		.config = &a->config,
		.sources = a->sources,
		.spool = a->spool,
		.uplink = a->uplink,
		.budget = &a->budget,
		.disk = { a->disk[LS_DISK_STATE], a->disk[LS_DISK_JOBS] },
		.now_mono_ns = ls_loop_now(a->loop),
		.started_mono_ns = a->started_ns,
		.sample_interval_ns = a->sampler.interval_ns,
		.http_requests = ls_agent_http_requests(a->http),
		.http_refused = ls_agent_http_refused(a->http),
	};
	return &a->about;
}

/* Without the file scripts that wait for it wait in vain; the agent works. */
static void
agent_http_bound(void *arg, int port)
{
	struct agent *a = arg;
	char line[32];
	int rc;

	if (a->config.port_file[0] == '\0')
		return;
	(void)snprintf(line, sizeof(line), "http=%d", port);
	rc = ls_http_write_ports(a->config.port_file, line);
	if (rc != 0)
		ls_log(LS_LOG_WARN, "agent",
			"cannot write --port-file %s (%s); continuing without the file",
			a->config.port_file, ls_err_text(rc));
}

static int
agent_open_http(struct agent *a)
{
	struct ls_agent_http_options o = { .port = a->config.http_port,
		.backend = { .arg = a,
			.parts = agent_parts,
			.ready = ls_about_ready,
			.metrics = ls_about_metrics,
			.series = ls_about_series,
			.doctor = ls_about_doctor_json,
			.identity = ls_about_identity,
			.bound = agent_http_bound } };

	if (a->config.http_address[0] == '\0')
		return 0;
	memcpy(o.address, a->config.http_address, sizeof(o.address));
	memcpy(o.names, a->config.http_names, sizeof(o.names));
	return ls_agent_http_new(a->loop, &o, &a->http);
}

static void
agent_watchdog(void *arg)
{
	(void)arg;
	/* without it the manager restarts us: its decision */
	(void)ls_notify_send("WATCHDOG=1");
}

/* One line of counters, if anything happened since the last one. */
static void
agent_tell(void *arg)
{
	struct agent *a = arg;
	const struct ls_step_stats *steps =
		ls_source_step_get_stats(ls_sources_steps(a->sources));
	const struct ls_spool_stats *spool = ls_spool_get_stats(a->spool);
	const struct ls_uplink_stats *up = ls_uplink_get_stats(a->uplink);
	const struct ls_chunk_writer_stats *chunks =
		ls_chunk_writer_get_stats(a->chunks);
	uint64_t lost_samples = spool->lost_samples + chunks->lost_samples;
	uint64_t lost = steps->lost[LS_GAP_OVERRUN] + steps->lost[LS_GAP_INVALID] +
		spool->dropped_records;
	uint64_t bad = spool->refused_items + up->retries + up->rejects + up->bad_acks +
		up->failures;
	uint64_t told = steps->records + lost + bad + lost_samples;

	if (told == a->told)
		return;
	a->told = told;
	ls_log(LS_LOG_INFO, "agent",
		"steps: %llu records, %llu lost (%llu overwritten, %llu invalid, %llu spool full); "
		"spool: %llu items waiting, %llu refused, %llu bytes; reports: %llu sent, "
		"%llu acknowledged, %llu retried, %llu refused, %llu invalid, %llu unanswered, "
		"%llu connections; counters: %llu chunks, %llu waiting, %llu samples lost",
		(unsigned long long)steps->records, (unsigned long long)lost,
		(unsigned long long)steps->lost[LS_GAP_OVERRUN],
		(unsigned long long)steps->lost[LS_GAP_INVALID],
		(unsigned long long)spool->dropped_records,
		(unsigned long long)(ls_spool_next(a->spool) - 1 -
			ls_spool_acked(a->spool)),
		(unsigned long long)spool->refused_items,
		(unsigned long long)ls_spool_bytes(a->spool),
		(unsigned long long)up->reports, (unsigned long long)up->acks,
		(unsigned long long)up->retries, (unsigned long long)up->rejects,
		(unsigned long long)up->bad_acks, (unsigned long long)up->failures,
		(unsigned long long)up->connects, (unsigned long long)chunks->chunks,
		(unsigned long long)(ls_spool_chunks_next(a->spool) - 1 -
			ls_spool_chunks_acked(a->spool)),
		(unsigned long long)lost_samples);
}

/* --- signals -------------------------------------------------------------- */

static void
agent_drain(void *arg)
{
	struct agent *a = arg;

	if (ls_uplink_is_settled(a->uplink) ||
		ls_loop_now(a->loop) >= a->drain_until_ns)
		ls_loop_stop(a->loop);
	else
		ls_uplink_hurry(a->uplink);
}

static void
agent_term(void *arg)
{
	struct agent *a = arg;
	uint64_t now = ls_loop_now(a->loop);

	if (a->drain_until_ns != 0) { /* asked twice: at once */
		ls_loop_stop(a->loop);
		return;
	}
	ls_log(LS_LOG_INFO, "agent", "stopping: sending pending items");
	(void)ls_notify_send("STOPPING=1"); /* information only */
	ls_loop_timer_stop(a->timer[AGENT_SAMPLE]);
	ls_sources_read(a->sources, 0, now);
	ls_chunk_writer_seal(a->chunks);
	a->drain_until_ns = now + LS_DRAIN_NS;
	ls_uplink_hurry(a->uplink);
	ls_loop_timer_start(a->timer[AGENT_DRAIN], AGENT_DRAIN_LOOK_NS,
		AGENT_DRAIN_LOOK_NS);
}

static void
agent_set_log_level(const struct ls_agent_config *c)
{
	enum ls_log_level level;

	if (ls_log_level_parse(c->log_level, &level) == 0)
		ls_log_set_level(level);
}

static void
agent_hup(void *arg)
{
	struct agent *a = arg;
	struct ls_agent_config c;
	enum ls_conf_action action;
	char err[LS_LOG_LINE_MAX_BYTES];
	int argc;

	if (ls_conf_load(&ls_agent_program, a->argc, a->argv, &c, &action, &argc, err,
		    sizeof(err)) != 0 ||
		ls_agent_config_finish(&c, err, sizeof(err)) != 0) {
		ls_log(LS_LOG_WARN, "agent", "%s; keeping the current configuration",
			err);
		return;
	}
	agent_set_log_level(&c);
	a->config.sample_interval_ns = c.sample_interval_ns;
	ls_budget_set_limits(&a->budget, &c.budget);
	agent_pace(a);
	ls_uplink_set_beat(a->uplink, c.beat_ns);
	ls_log(LS_LOG_INFO, "agent",
		"configuration reloaded: beat, interval, budget, log level");
}

/* --- life ----------------------------------------------------------------- */

/* False: it does not end, and still uses what would be freed. */
static bool
agent_stop_disk(struct ls_disk *disk)
{
	if (ls_disk_stop(disk, LS_DISK_STOP_NS) == 0)
		return true;
	ls_log(LS_LOG_WARN, "agent",
		"%s still does not answer: exiting without waiting for it",
		ls_disk_path(disk));
	return false;
}

static void
agent_close(struct agent *a)
{
	bool jobs_ended = agent_stop_disk(a->disk[LS_DISK_JOBS]);

	if (!agent_stop_disk(a->disk[LS_DISK_STATE]))
		return;
	/* The end is written on this thread: there is no other any more. */
	if (a->spool != NULL)
		ls_spool_use_disk(a->spool, NULL, NULL, NULL);
	if (a->chunks != NULL)
		ls_chunk_writer_use_disk(a->chunks, NULL);
	ls_agent_http_free(a->http);
	ls_uplink_free(a->uplink);
	if (a->tls != NULL)
		ls_tls_close(a->tls);
	ls_chunk_writer_free(a->chunks);
	ls_spool_close(a->spool);
	if (!jobs_ended)
		return; /* the sources' thread still runs */
	ls_sources_close(a->sources);
	for (size_t i = 0; i < AGENT_TIMERS; i++)
		ls_loop_timer_free(a->timer[i]);
	ls_loop_free(a->loop);
	free(a);
}

static int
agent_open_spool(struct agent *a, const uint8_t boot[LS_BOOT_ID_BYTES])
{
	int rc = ls_spool_open(a->config.state_dir, a->config.spool_max_bytes, boot,
		&a->spool);

	if (rc == -LS_EBUSY)
		ls_log(LS_LOG_ERR, "agent",
			"another lockstep-agent uses %s; give this agent its own "
			"--state-dir",
			a->config.state_dir);
	else if (rc != 0)
		ls_log(LS_LOG_ERR, "agent", "cannot use --state-dir %s: %s",
			a->config.state_dir, ls_err_text(rc));
	return rc;
}

static int
agent_open_chunks(struct agent *a, const uint8_t boot[LS_BOOT_ID_BYTES])
{
	int rc = ls_chunk_writer_new(a->config.state_dir, boot, a->spool,
		ls_sources_series(a->sources), ls_loop_now(a->loop), &a->chunks);

	if (rc != 0)
		ls_log(LS_LOG_ERR, "agent", "cannot use %s/minute: %s",
			a->config.state_dir, ls_err_text(rc));
	return rc;
}

static const struct ls_wire_identity *
agent_identity(void *arg, size_t *ret_count, uint64_t *ret_version)
{
	struct agent *a = arg;
	const struct ls_identity *id = ls_place_identity(ls_sources_place(a->sources));

	/* Changes count from 1: what is known of the machine itself is the first. */
	if (a->identity_version != ls_identity_changes(id)) {
		a->identity_version = ls_identity_changes(id);
		a->identity_count =
			ls_identity_fields(id, a->identity, LS_IDENTITY_FIELDS_MAX);
	}
	*ret_count = a->identity_count;
	*ret_version = a->identity_version;
	return a->identity;
}

static int
agent_open_uplink(struct agent *a, const uint8_t boot[LS_BOOT_ID_BYTES])
{
	struct ls_uplink_options o = { .url = a->config.collector,
		.host = a->config.host_name,
		.beat_ns = a->config.beat_ns,
		.spool = a->spool,
		.tls = a->tls,
		.arg = a,
		.gather = agent_gather,
		.fill = agent_fill,
		.backfill_bytes_per_s = a->config.backfill_bytes,
		.need_dictionary = agent_need_dictionary,
		.zoom = agent_zoom,
		.identity = agent_identity };
	int rc;

	memcpy(o.kernel_boot_id, boot, sizeof(o.kernel_boot_id));
	rc = ls_uplink_new(a->loop, &o, &a->uplink);
	if (rc != 0)
		ls_log(LS_LOG_ERR, "agent",
			"cannot use --collector %s: %s (tcp://host:port)",
			a->config.collector, ls_err_text(rc));
	return rc;
}

static int
agent_open_loop(struct agent *a)
{
	static void (*const due[AGENT_TIMERS])(void *arg) = {
		[AGENT_SAMPLE] = agent_sample,
		[AGENT_TELL] = agent_tell,
		[AGENT_WATCHDOG] = agent_watchdog,
		[AGENT_DRAIN] = agent_drain,
		[AGENT_BUDGET] = agent_budget,
	};

	a->loop = ls_loop_new();
	if (a->loop == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < AGENT_TIMERS; i++) {
		a->timer[i] = ls_loop_timer_new(a->loop, due[i], a);
		if (a->timer[i] == NULL)
			return -ENOMEM;
	}
	return ls_loop_signals(a->loop, agent_term, agent_hup, a);
}

static int
agent_open(struct agent *a)
{
	uint8_t boot[LS_BOOT_ID_BYTES];
	int rc = ls_clock_boot_id(a->config.proc_root, boot);

	if (rc != 0) {
		ls_log(LS_LOG_ERR, "agent", "no boot id below --proc-root %s: %s",
			a->config.proc_root, ls_err_text(rc));
		return rc;
	}
	rc = agent_open_loop(a);
	if (rc == 0)
		rc = ls_disk_start(a->loop, a->config.state_dir,
			&a->disk[LS_DISK_STATE]);
	if (rc == 0 && a->config.step_log[0] != '\0')
		rc = ls_disk_start(a->loop, a->config.step_log, &a->disk[LS_DISK_JOBS]);
	if (rc == 0)
		rc = agent_open_spool(a, boot);
	if (rc == 0)
		rc = ls_sources_open(a->loop, &a->config, boot, a->spool,
			a->disk[LS_DISK_JOBS], &a->sources);
	if (rc == 0)
		rc = agent_open_chunks(a, boot);
	if (rc == 0 && a->config.keys[0] != '\0')
		rc = ls_tls_open(LS_TLS_AGENT, a->config.keys, a->config.host_name,
			&a->tls);
	if (rc == 0)
		rc = agent_open_uplink(a, boot);
	if (rc == 0)
		rc = agent_open_http(a);
	if (rc != 0)
		return rc;
	ls_spool_use_disk(a->spool, a->disk[LS_DISK_STATE], agent_spool_is_idle, a);
	ls_chunk_writer_use_disk(a->chunks, a->disk[LS_DISK_STATE]);
	return 0;
}

int
ls_agent_run(const struct ls_agent_config *config, int argc, char **argv)
{
	struct agent *a = calloc(1, sizeof(*a));
	uint64_t watchdog_ns = ls_notify_watchdog_ns();
	struct ls_budget_reading begin;
	int rc;

	if (a == NULL)
		return -ENOMEM;
	a->config = *config;
	a->argc = argc;
	a->argv = argv;
	agent_set_log_level(config);
	rc = agent_open(a);
	if (rc != 0)
		goto out;
	ls_log(LS_LOG_INFO, "agent", "host %s, collector %s, rings in %s",
		config->host_name, config->collector, config->steps_dir);
	a->started_ns = ls_loop_now(a->loop);
	ls_sampler_init(&a->sampler, config->sample_interval_ns, a->started_ns);
	agent_sample(a);
	begin = agent_use(a);
	ls_budget_init(&a->budget, &a->config.budget, &begin);
	agent_pace(a);
	ls_loop_timer_start(a->timer[AGENT_BUDGET], LS_BUDGET_WINDOW_NS,
		LS_BUDGET_WINDOW_NS);
	ls_loop_timer_start(a->timer[AGENT_TELL], AGENT_TELL_NS, AGENT_TELL_NS);
	if (watchdog_ns != 0)
		ls_loop_timer_start(a->timer[AGENT_WATCHDOG], 0, watchdog_ns);
	/* without it the manager gives up: its decision */
	(void)ls_notify_send("READY=1");
	rc = ls_loop_run(a->loop);
	agent_tell(a);
out:
	agent_close(a);
	return rc;
}
