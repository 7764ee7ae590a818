/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/server.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "collector/backend.h"
#include "collector/ingest/ingest.h"
#include "collector/ingest/intake.h"
#include "collector/answer/reader.h"
#include "collector/history/restore.h"
#include "proto/base/clock.h"
#include "proto/base/http.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/notify.h"
#include "proto/base/queue.h"
#include "proto/wire/tls.h"
#include "storage/read/query.h"
#include "storage/db/retain.h"
#include "web/http/access.h"
#include "web/http/httpd.h"

#define SERVER_ADVANCE_NS 100000000ull
#define SERVER_RETAIN_NS 3600000000000ull
#define SERVER_KEEP_NS 60000000000ull
#define SERVER_KEEP_SOON_NS 5000000000ull
#define SERVER_SHORT_NS 60000000000ull /* a life: what takes files goes on */
#define SERVER_PAUSE_MAX_S 60
#define SERVER_GRACE_NS 200000000ull /* for the last acks to leave */
#define SERVER_ANCHOR_MAX_NS 1000000000ll
#define SERVER_ANCHOR_KEY "clock_anchor"

/* What is kept of the time line: good for one boot of the kernel. */
struct server_anchor {
	uint8_t kernel_boot_id[LS_BOOT_ID_BYTES];
	int64_t anchor_ns;
};

struct ls_server {
	struct ls_collector_config config;
	int argc;
	char **argv;
	struct ls_loop *loop;
	struct ls_core core;
	struct ls_tidy *tidy;
	struct ls_intake *intake;
	struct ls_tls *tls; /* NULL: plain */
	uint64_t keys_mono_ns; /* when they were looked at */
	struct ls_ingest *ingest;
	struct ls_reader *reader;
	struct ls_access *access;
	struct ls_httpd *httpd;
	struct ls_loop_timer *advance, *retain, *keep, *watchdog, *grace;
	struct ls_backend_parts backend;
	struct server_anchor anchor;
	bool again; /* the store wants its files opened again */
	bool ending; /* for whatever reason: it does not begin again because of that */
	int64_t next_worker_id; /* as restored */
	struct ls_self self; /* what is summed up over time: of the writer */
	char note[128]; /* of /readyz */
};

/* --- between the parts ---------------------------------------------------- */

static uint64_t
server_now(void *arg)
{
	(void)arg;
	return ls_clock_mono_ns(); /* for stamps: not the turn's, but now */
}

static int64_t
server_now_us(void *arg)
{
	struct ls_server *s = arg;

	return ls_intake_time_us(s->intake, ls_loop_now(s->loop));
}

static void
server_on_request(void *arg, struct ls_ingest_request *request, const uint8_t *data,
	size_t len, uint64_t t_receive_mono_ns)
{
	struct ls_server *s = arg;

	ls_intake_report(s->intake, request, data, len, t_receive_mono_ns);
}

static void
server_reply(void *arg, void *request, const struct ls_wire_ack *ack)
{
	uint8_t *buf = NULL;
	size_t len = 0;

	(void)arg;
	if (ls_wire_ack_pack(ack, &buf, &len) != 0)
		buf = NULL; /* out of memory: the agent asks again */
	ls_ingest_reply(request, buf, len);
	free(buf);
}

static struct ls_ingest_peer *
server_peer(void *request)
{
	return ls_ingest_peer(request);
}

static void
server_on_done(void *arg)
{
	struct ls_server *s = arg;
	struct ls_write_done *done;
	void *item;

	while (ls_queue_take(ls_writer_done(s->core.writer), &item, 1) == 1) {
		done = item;
		if (done->rc == 0 && s->self.done.rc != 0)
			ls_log(LS_LOG_INFO, "server", "the disk accepts commits again");
		s->self.commit_ns += done->commit_ns;
		s->self.wait_ns += done->wait_ns;
		if (done->rc == -LS_EREOPEN && !s->again && !s->ending) {
			s->again = true;
			ls_loop_stop(s->loop);
		}
		s->self.done = *done;
		s->self.done.reports = NULL;
		ls_intake_done(s->intake, done);
	}
}

static void
server_on_zoom(void *arg, const struct ls_store_zoom *event, int64_t t_us)
{
	struct ls_server *s = arg;

	ls_outbox_zoom(s->core.outbox, event, t_us);
	if (event->event == LS_ZOOM_END)
		ls_fleet_forget_values(s->core.fleet, event->host);
}

static void
server_self(void *arg, struct ls_self *ret_self)
{
	struct ls_server *s = arg;
	int64_t http_s;

	*ret_self = s->self;
	ls_intake_stats(s->intake, &ret_self->intake);
	ls_ingest_stats(s->ingest, &ret_self->ingest);
	ls_sessions_stats(s->core.sessions, &ret_self->sessions);
	ls_engine_stats(s->core.engine, &ret_self->engine);
	ls_dictionaries_stats(s->core.dictionaries, &ret_self->dictionaries);
	ls_fleet_stats(s->core.fleet, &ret_self->fleet);
	ls_zoom_stats(s->core.zoom, &ret_self->zoom);
	ls_reader_stats(s->reader, &ret_self->reader);
	ls_tidy_stats(s->tidy, &ret_self->tidy);
	ret_self->rings = ls_rings_count(s->core.rings);
	ret_self->rings_evicted = ls_rings_evicted(s->core.rings);
	ret_self->write_queue = ls_writer_count(s->core.writer);
	ret_self->outbox_lost = ls_outbox_lost(s->core.outbox);
	ret_self->cpu_ns = ls_clock_cpu_ns();
	ret_self->keys_until_s = ls_tls_until_s(s->tls);
	http_s = ls_access_until_s(s->access);
	if (http_s != 0 && (s->tls == NULL || http_s < ret_self->keys_until_s))
		ret_self->keys_until_s = http_s;
}

static bool
server_ready(void *arg, const char **ret_why)
{
	struct ls_server *s = arg;

	if (s->self.done.rc == 0 && s->self.done.stats.aside.count > 0) {
		(void)snprintf(s->note, sizeof(s->note),
			"%u damaged database files are set aside (*.damaged-* in "
			"--state-dir); continuing with the others",
			s->self.done.stats.aside.count);
		*ret_why = s->note;
	}
	if (s->self.done.rc == 0)
		return true;
	*ret_why = ls_err_text(s->self.done.rc);
	return false;
}

/* --- timers and signals --------------------------------------------------- */

/* Puts changed keys in force; connections are checked at their next request. */
static void
server_refresh_keys(struct ls_server *s)
{
	s->keys_mono_ns = ls_loop_now(s->loop);
	(void)ls_tls_look(s->tls); /* it logs its outcome */
	ls_access_look(s->access);
}

static void
server_on_advance(void *arg)
{
	struct ls_server *s = arg;

	ls_intake_advance(s->intake, ls_loop_now(s->loop), ls_clock_thread_ns());
	if (ls_loop_now(s->loop) - s->keys_mono_ns >= LS_KEYS_LOOK_NS)
		server_refresh_keys(s);
	if (ls_reader_take_damaged(s->reader))
		ls_tidy_suspect(s->tidy);
}

static void
server_on_retain(void *arg)
{
	struct ls_server *s = arg;
	int64_t now_us = ls_loop_wall(s->loop) / 1000;
	struct ls_write *m = ls_write_new(LS_WRITE_RETAIN, now_us);

	if (m == NULL)
		return; /* the next round will */
	m->u.retain =
		ls_retain_rule(s->config.retain_age_ns, s->config.retain_bytes, now_us);
	if (ls_writer_push(s->core.writer, m) != 0)
		ls_write_free(m); /* likewise */
}

/* Keeps what is usual of each worker, for the next start. While nothing is known of any job it looks
 * again soon. */
static void
server_on_keep(void *arg)
{
	struct ls_server *s = arg;
	struct ls_write *m = ls_write_new(LS_WRITE_META, 0);
	int rc = -ENOMEM;

	if (m != NULL) {
		(void)snprintf(m->u.meta.key, sizeof(m->u.meta.key), "%s",
			LS_RESTORE_REFERENCE);
		rc = ls_engine_reference(s->core.engine, server_now_us(s),
			&m->u.meta.bytes, &m->u.meta.len);
	}
	if (rc != 0 || ls_writer_push(s->core.writer, m) != 0)
		ls_write_free(m); /* the next round will */
	ls_loop_timer_start(s->keep, rc == 0 ? SERVER_KEEP_NS : SERVER_KEEP_SOON_NS, 0);
}

static void
server_on_watchdog(void *arg)
{
	(void)arg;
	ls_ignore(ls_notify_send("WATCHDOG=1")); /* no reason to stop */
}

static void
server_on_term(void *arg)
{
	struct ls_server *s = arg;

	s->again = false;
	s->ending = true;
	ls_log(LS_LOG_INFO, "server", "stopping: storing pending reports");
	ls_ignore(ls_notify_send("STOPPING=1")); /* no reason to stay */
	ls_loop_stop(s->loop);
}

static void
server_on_hup(void *arg)
{
	struct ls_server *s = arg;
	struct ls_collector_config fresh;
	enum ls_conf_action action;
	enum ls_log_level level;
	char err[LS_LOG_LINE_MAX_BYTES];
	const char *why, *http_why;
	int left;

	if (ls_conf_load(&ls_collector_program, s->argc, s->argv, &fresh, &action,
		    &left, err, sizeof(err)) != 0) {
		ls_log(LS_LOG_ERR, "server",
			"not reloaded, keeping the current configuration: %s", err);
		return;
	}
	s->config.retain_age_ns = fresh.retain_age_ns;
	s->config.retain_bytes = fresh.retain_bytes;
	if (ls_log_level_parse(fresh.log_level, &level) == 0)
		ls_log_set_level(level);
	server_refresh_keys(s);
	why = ls_tls_problem(s->tls);
	http_why = ls_access_problem(s->access);
	ls_log(LS_LOG_INFO, "server", "reloaded log level and retention%s%s%s%s",
		why[0] != '\0' ? "; keys: " : "", why,
		http_why[0] != '\0' ? "; http-keys: " : "", http_why);
	server_on_retain(s);
}

/* --- the time line -------------------------------------------------------- */

/*
 * Wall minus monotonic, fixed for this life. Of the same boot of the kernel the stored
 * one is taken again, so that a restart does not move the records after it; unless the
 * wall clock was set since.
 */
static int
server_anchor(struct ls_server *s)
{
	struct server_anchor stored;
	struct ls_query *q = NULL;
	struct ls_write *m;
	int64_t off;
	int rc = ls_clock_boot_id("/proc", s->anchor.kernel_boot_id);

	if (rc != 0) /* no host is then taken to share our clock, not even our own */
		ls_log(LS_LOG_WARN, "server",
			"cannot read the kernel boot id (%s); every clock is mapped",
			ls_err_text(rc));
	s->anchor.anchor_ns = ls_clock_wall_ns() - (int64_t)ls_clock_mono_ns();
	rc = ls_query_open(s->config.state_dir, &q);
	if (rc != 0)
		return rc;
	rc = ls_query_meta(q, SERVER_ANCHOR_KEY, &stored, sizeof(stored));
	ls_query_close(q);
	off = rc == 0 ? stored.anchor_ns - s->anchor.anchor_ns : 0;
	if (rc == 0 && llabs(off) < SERVER_ANCHOR_MAX_NS &&
		memcmp(stored.kernel_boot_id, s->anchor.kernel_boot_id,
			sizeof(stored.kernel_boot_id)) == 0) {
		s->anchor = stored;
		return 0;
	}
	m = ls_write_new(LS_WRITE_META, 0);
	if (m == NULL)
		return -ENOMEM;
	(void)snprintf(m->u.meta.key, sizeof(m->u.meta.key), "%s", SERVER_ANCHOR_KEY);
	memcpy(m->u.meta.value, &s->anchor, sizeof(s->anchor));
	m->u.meta.len = sizeof(s->anchor);
	rc = ls_writer_push(s->core.writer, m);
	if (rc != 0)
		ls_write_free(m);
	return rc;
}

/* --- start ---------------------------------------------------------------- */

static int
server_open_storage(struct ls_server *s)
{
	const struct ls_writer_options options = {
		.dir = s->config.state_dir,
		.commit_interval_ns = s->config.commit_interval_ns,
	};
	int rc = ls_writer_open(&options, &s->core.writer);

	if (rc != 0) {
		if (rc != -LS_EBUSY) /* storage said who has it */
			ls_log(LS_LOG_ERR, "server", "cannot open --state-dir %s: %s",
				s->config.state_dir, ls_err_text(rc));
		return rc;
	}
	ls_writer_stats(s->core.writer, &s->self.done.stats);
	rc = ls_queue_watch(ls_writer_done(s->core.writer), s->loop, server_on_done, s);
	return rc == 0 ? server_anchor(s) : rc;
}

static int
server_make_core(struct ls_server *s)
{
	struct ls_engine_sink sink;

	s->core.outbox = ls_outbox_new(s->core.writer);
	s->core.sessions = ls_sessions_new(LS_AGENTS_MAX);
	s->core.rings = ls_rings_new(LS_RING_MAP_MAX);
	s->core.dictionaries =
		ls_dictionaries_new(LS_DICTIONARIES_MAX, LS_DICTIONARIES_MAX_BYTES);
	s->core.fleet = ls_fleet_new(LS_AGENTS_MAX);
	s->core.zoom = ls_zoom_new(server_on_zoom, s);
	if (s->core.outbox == NULL || s->core.sessions == NULL ||
		s->core.rings == NULL || s->core.dictionaries == NULL ||
		s->core.fleet == NULL || s->core.zoom == NULL)
		return -ENOMEM;
	sink = ls_outbox_sink(s->core.outbox);
	s->core.engine = ls_engine_new(&sink);
	if (s->core.engine == NULL)
		return -ENOMEM;
	ls_engine_patience(s->core.engine, (double)s->config.patience_ns * 1e-9);
	return 0;
}

static int
server_restore(struct ls_server *s)
{
	uint64_t begin_ns = ls_clock_mono_ns();
	struct ls_restore_stats stats;
	int rc = ls_restore(s->config.state_dir, &s->core,
		((int64_t)begin_ns + s->anchor.anchor_ns) / 1000, &stats);

	if (rc != 0)
		return rc;
	ls_log(LS_LOG_INFO, "server",
		"restored %llu findings, %llu agents, %llu workers, %llu records and %llu counter "
		"sets in %llu ms; %llu could not be read",
		(unsigned long long)stats.findings, (unsigned long long)stats.agents,
		(unsigned long long)stats.workers, (unsigned long long)stats.records,
		(unsigned long long)stats.counters,
		(unsigned long long)((ls_clock_mono_ns() - begin_ns) / 1000000),
		(unsigned long long)stats.bad);
	s->next_worker_id = stats.next_worker_id;
	return 0;
}

static int
server_make_intake(struct ls_server *s)
{
	struct ls_intake_parts parts = {
		.core = s->core,
		.anchor_ns = s->anchor.anchor_ns,
		.next_worker_id = s->next_worker_id,
		.reply = server_reply,
		.reply_arg = s,
		.peer = server_peer,
		.held_max = (unsigned)s->config.contexts,
		.now = server_now,
		.now_arg = s,
	};

	memcpy(parts.kernel_boot_id, s->anchor.kernel_boot_id,
		sizeof(parts.kernel_boot_id));
	s->intake = ls_intake_new(&parts);
	if (s->intake == NULL)
		return -ENOMEM;
	ls_outbox_flush(s->core.outbox); /* what restoring found out */
	return 0;
}

static int
server_start_tidy(struct ls_server *s)
{
	return ls_tidy_start(s->config.state_dir, s->core.writer,
		s->config.pack_interval_ns, &s->tidy);
}

static int
server_open_keys(struct ls_server *s)
{
	int rc = ls_tls_open(LS_TLS_COLLECTOR, s->config.keys, "", &s->tls);

	return rc == 0 ? ls_access_open(s->config.http_keys, &s->access) : rc;
}

static int
server_open_ingest(struct ls_server *s)
{
	const struct ls_ingest_options options = { .url = s->config.listen,
		.contexts = (unsigned)s->config.contexts,
		.tls = s->tls };

	return ls_ingest_open(s->loop, &options, server_on_request, s, &s->ingest);
}

static int
server_start_reader(struct ls_server *s)
{
	return ls_reader_start(s->loop, s->config.state_dir, &s->reader);
}

static int
server_open_http(struct ls_server *s)
{
	struct ls_httpd_options options = { .port = s->config.http_port,
		.insecure = s->config.insecure,
		.access = s->access };
	struct ls_backend backend;

	memcpy(options.address, s->config.http_address, sizeof(options.address));
	memcpy(options.names, s->config.http_names, sizeof(options.names));
	memcpy(options.web_root, s->config.web_root, sizeof(options.web_root));
	s->backend = (struct ls_backend_parts){
		.core = &s->core,
		.reader = s->reader,
		.now_us = server_now_us,
		.self = server_self,
		.ready = server_ready,
		.arg = s,
	};
	backend = ls_backend_of(&s->backend);
	return ls_httpd_new(s->loop, &options, &backend, &s->httpd);
}

static int
server_start_timers(struct ls_server *s)
{
	uint64_t watchdog_ns = ls_notify_watchdog_ns();

	s->advance = ls_loop_timer_new(s->loop, server_on_advance, s);
	s->retain = ls_loop_timer_new(s->loop, server_on_retain, s);
	s->keep = ls_loop_timer_new(s->loop, server_on_keep, s);
	s->watchdog = ls_loop_timer_new(s->loop, server_on_watchdog, s);
	if (s->advance == NULL || s->retain == NULL || s->keep == NULL ||
		s->watchdog == NULL)
		return -ENOMEM;
	ls_loop_timer_start(s->advance, SERVER_ADVANCE_NS, SERVER_ADVANCE_NS);
	ls_loop_timer_start(s->retain, SERVER_ADVANCE_NS, SERVER_RETAIN_NS);
	ls_loop_timer_start(s->keep, SERVER_KEEP_NS, 0);
	if (watchdog_ns > 0)
		ls_loop_timer_start(s->watchdog, watchdog_ns, watchdog_ns);
	return 0;
}

/* Tells the world: log, service manager, and the file that scripts wait for. */
static int
server_announce(struct ls_server *s)
{
	int ingest = ls_ingest_port(s->ingest), http = ls_httpd_port(s->httpd);
	char line[64];

	ls_log(LS_LOG_INFO, "server", "ready ingest=%d http=%d", ingest, http);
	ls_ignore(ls_notify_send("READY=1")); /* the manager's own time-out decides */
	(void)snprintf(line, sizeof(line), "ingest=%d http=%d", ingest, http);
	return s->config.port_file[0] != '\0'
		? ls_http_write_ports(s->config.port_file, line)
		: 0;
}

/* The signals that end a collector, or reload it. */
static sigset_t
server_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set); /* these cannot fail */
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	return set;
}

static void
server_mask(int how)
{
	sigset_t set = server_signals();

	(void)pthread_sigmask(how, &set, NULL); /* cannot fail */
}

static int
server_take_signals(struct ls_server *s)
{
	int rc;

	s->loop = ls_loop_new();
	if (s->loop == NULL)
		return -ENOMEM;
	rc = ls_loop_signals(s->loop, server_on_term, server_on_hup, s);
	server_mask(SIG_UNBLOCK); /* what came since the life before is heard now */
	return rc;
}

/* A step of the start; what cannot be done if it fails (NULL: it says so itself, or is
 * out of memory), and where the option stands that names with what (-1: none). */
#define SERVER_OPTION(field) (ptrdiff_t) offsetof(struct ls_server, config.field)
static const struct {
	int (*run)(struct ls_server *s);
	const char *what;
	ptrdiff_t option;
} server_steps[] = {
	{ server_take_signals, NULL, -1 },
	{ server_open_keys, NULL, -1 },
	{ server_open_storage, NULL, -1 },
	{ server_make_core, NULL, -1 },
	{ server_restore, "restore from storage", -1 },
	{ server_make_intake, NULL, -1 },
	{ server_start_tidy, "start the keeper", -1 },
	{ server_open_ingest, "listen on --listen ", SERVER_OPTION(listen) },
	{ server_start_reader, NULL, -1 },
	{ server_open_http, "serve on --http ", SERVER_OPTION(http) },
	{ server_start_timers, NULL, -1 },
	{ server_announce, "write --port-file ", SERVER_OPTION(port_file) },
};

static int
server_start(struct ls_server *s)
{
	int rc = 0;

	for (size_t i = 0;
		rc == 0 && i < sizeof(server_steps) / sizeof(server_steps[0]); i++) {
		ptrdiff_t option = server_steps[i].option;

		rc = server_steps[i].run(s);
		if (rc != 0 && server_steps[i].what != NULL)
			ls_log(LS_LOG_ERR, "server", "cannot %s%s: %s",
				server_steps[i].what,
				option >= 0 ? (const char *)s + option : "",
				ls_err_text(rc));
	}
	return rc;
}

/* --- end ------------------------------------------------------------------ */

static void
server_on_grace(void *arg)
{
	struct ls_server *s = arg;

	ls_loop_stop(s->loop);
}

/* No new requests; what is waiting is committed and acknowledged. */
static void
server_drain(struct ls_server *s)
{
	s->ending = true;
	ls_ingest_stop(s->ingest);
	ls_tidy_stop(s->tidy); /* before the writer that it hands units to */
	s->tidy = NULL;
	server_on_keep(s);
	ls_writer_stop(s->core.writer);
	server_on_done(s);
	s->grace = ls_loop_timer_new(s->loop, server_on_grace, s);
	if (s->grace == NULL)
		return; /* the agents ask again */
	ls_loop_timer_stop(s->advance);
	ls_loop_timer_stop(s->retain);
	ls_loop_timer_stop(s->keep);
	ls_loop_timer_start(s->grace, SERVER_GRACE_NS, 0);
	if (ls_loop_run(s->loop) != 0)
		ls_log(LS_LOG_DEBUG, "server", "the last writes may not be on disk");
}

static void
server_free(struct ls_server *s)
{
	/* Requests are answered while there is something to answer with; nothing is
	 * left if we drained. */
	if (s->ingest != NULL)
		ls_ingest_stop(s->ingest);
	ls_tidy_stop(s->tidy);
	if (s->core.writer != NULL)
		ls_writer_stop(s->core.writer);
	if (s->intake != NULL)
		server_on_done(s);
	ls_httpd_free(s->httpd);
	/* after it: ends the exports that httpd has forgotten */
	ls_reader_stop(s->reader);
	ls_ingest_close(s->ingest);
	ls_tls_close(s->tls);
	ls_access_close(s->access);
	ls_loop_timer_free(s->advance);
	ls_loop_timer_free(s->retain);
	ls_loop_timer_free(s->keep);
	ls_loop_timer_free(s->watchdog);
	ls_loop_timer_free(s->grace);
	ls_intake_free(s->intake);
	ls_engine_free(s->core.engine);
	ls_zoom_free(s->core.zoom);
	ls_outbox_free(s->core.outbox);
	ls_fleet_free(s->core.fleet);
	ls_dictionaries_free(s->core.dictionaries);
	ls_sessions_free(s->core.sessions);
	ls_rings_free(s->core.rings);
	ls_writer_close(s->core.writer);
	ls_loop_free(s->loop);
	free(s);
}

/* For the next life: the ports of this one, whatever was asked for. */
static void
server_keep_ports(const struct ls_server *s, struct ls_collector_config *config)
{
	char *port = strrchr(config->listen, ':') + 1; /* of a checked URL */

	(void)snprintf(port, sizeof(config->listen) - (size_t)(port - config->listen),
		"%d", ls_ingest_port(s->ingest));
	config->http_port = (uint16_t)ls_httpd_port(s->httpd);
	config->retain_age_ns = s->config.retain_age_ns;
	config->retain_bytes = s->config.retain_bytes;
}

/* One life, from opening the files to closing them. */
static int
server_live(struct ls_collector_config *config, int argc, char **argv, bool *ret_again)
{
	struct ls_server *s = calloc(1, sizeof(*s));
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->config = *config;
	s->argc = argc;
	s->argv = argv;
	rc = server_start(s);
	if (rc == 0)
		rc = ls_loop_run(s->loop);
	if (rc == 0) {
		server_keep_ports(s, config);
		server_drain(s);
	}
	server_mask(SIG_BLOCK); /* nobody listens between two lives: they wait */
	*ret_again = s->again;
	server_free(s);
	return rc;
}

/* A pause before the next life; false: a signal came that ends it. */
static bool
server_rest(time_t s)
{
	const struct timespec pause = { .tv_sec = s };
	sigset_t set = server_signals();

	(void)sigdelset(&set, SIGHUP); /* cannot fail */
	return sigtimedwait(&set, NULL, &pause) < 0;
}

int
ls_server_run(const struct ls_collector_config *config, int argc, char **argv)
{
	struct ls_collector_config life = *config;
	time_t pause_s = 0; /* longer each time while lives are short */
	uint64_t begin_ns;
	bool again;
	int rc;

	do {
		begin_ns = ls_clock_mono_ns();
		rc = server_live(&life, argc, argv, &again);
		if (ls_clock_mono_ns() - begin_ns > SERVER_SHORT_NS)
			pause_s = 0;
		else if (pause_s < SERVER_PAUSE_MAX_S)
			pause_s = 2 * pause_s + 1;
	} while (rc == 0 && again && server_rest(pause_s));
	return rc;
}
