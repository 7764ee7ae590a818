/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#define LS_TLS_OPTIONAL
#include "agent/face/checks.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/util.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <unistd.h>
#include "agent/uplink/resolve.h"
#include "proto/wire/tls.h"

#define CHECKS_SPOOL_FULL_RATIO 0.8
/* half of it is the uncertainty of a clock: 25 ms hide a straggler */
#define CHECKS_FAR_NS 50000000ull

void
ls_checks_state_dir(const char *state_dir, struct ls_doctor *d)
{
	if (access(state_dir, W_OK | X_OK) == 0)
		ls_doctor_add(d, LS_DOCTOR_OK, "spool", state_dir, "can be written to",
			"");
	else if (errno == EACCES)
		ls_doctor_add(d, LS_DOCTOR_NONE, "spool", state_dir,
			"not for this user; the agent's own may differ", "");
	else
		ls_doctor_add(d, LS_DOCTOR_FAIL, "spool", state_dir, strerror(errno),
			ls_doctor_text(d,
				"install -d -m 0750 -o lockstep-agent %.100s, or give --state-dir",
				state_dir));
}

static void
checks_lost(const struct ls_spool_stats *s, struct ls_doctor *d)
{
	if (s->dropped_records > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "spool", "lost records",
			"set a larger --spool-max-bytes, or make the collector "
			"reachable",
			"%llu step records became gaps because the spool was full",
			(unsigned long long)s->dropped_records);
	if (s->refused_items > 0)
		ls_doctor_addf(d, LS_DOCTOR_FAIL, "spool", "refused items",
			"free space on the disk of --state-dir (df), or set a larger "
			"--spool-max-bytes",
			"%llu items could not be stored: spool full, or disk error",
			(unsigned long long)s->refused_items);
	if (s->discarded_items > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "spool", "discarded items", "",
			"%llu items from an earlier boot or behind a damaged part "
			"were discarded",
			(unsigned long long)s->discarded_items);
}

void
ls_checks_spool(const struct ls_spool *spool, const char *state_dir, uint64_t max_bytes,
	struct ls_doctor *d)
{
	uint64_t bytes = ls_spool_bytes(spool);
	uint64_t waiting = ls_spool_next(spool) - 1 - ls_spool_acked(spool);
	uint64_t damaged_bytes = ls_spool_get_stats(spool)->damaged_bytes;
	bool full = (double)bytes > CHECKS_SPOOL_FULL_RATIO * (double)max_bytes;

	ls_doctor_addf(d, full ? LS_DOCTOR_WARN : LS_DOCTOR_OK, "spool", state_dir,
		full ? "make the collector reachable, or set a larger "
		       "--spool-max-bytes: next the oldest items are dropped"
		     : "",
		"%llu items wait, %llu of %llu KiB used", (unsigned long long)waiting,
		(unsigned long long)(bytes / 1024),
		(unsigned long long)(max_bytes / 1024));
	checks_lost(ls_spool_get_stats(spool), d);
	if (damaged_bytes > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "spool", "spool.damaged",
			ls_doctor_text(d,
				"check dmesg for disk errors; then rm %.130s/spool.damaged",
				state_dir),
			"a damaged spool of %llu KiB was set aside",
			(unsigned long long)damaged_bytes / 1024);
}

void
ls_checks_disk(const struct ls_disk *disk, uint64_t now_mono_ns, struct ls_doctor *d)
{
	uint64_t for_ns = ls_disk_stalled_ns(disk, now_mono_ns);

	if (for_ns != 0)
		ls_doctor_addf(d, LS_DOCTOR_FAIL, "spool", ls_disk_path(disk),
			"check that the file system of --state-dir responds (dmesg)",
			"has not answered for %.0f s: measurements wait in memory",
			(double)for_ns / 1e9);
}

void
ls_checks_uplink(const struct ls_uplink *uplink, struct ls_doctor *d)
{
	const struct ls_uplink_stats *s = ls_uplink_get_stats(uplink);
	struct ls_uplink_told t;

	ls_uplink_tell(uplink, &t);
	if (ls_uplink_get_state(uplink) == LS_UPLINK_STATE_DOWN && t.wrong[0] != '\0')
		ls_doctor_addf(d, LS_DOCTOR_FAIL, "uplink", t.url,
			"see agent/README.md, Keys; measurements stay in the spool",
			"%s", t.wrong);
	else if (ls_uplink_get_state(uplink) == LS_UPLINK_STATE_DOWN)
		ls_doctor_add(d, LS_DOCTOR_FAIL, "uplink", t.url,
			s->connects > 0
				? "connection lost: measurements stay in the spool"
				: "no connection since the start: measurements stay "
				  "in the spool",
			"start lockstep-collector there, let this host reach that port, or give "
			"--collector tcp://HOST:PORT");
	else if (t.refused[0] != '\0')
		ls_doctor_addf(d, LS_DOCTOR_FAIL, "uplink", t.url,
			"use agent and collector of the same version",
			"the collector rejects our reports: %s", t.refused);
	else if (!t.has_exchange)
		ls_doctor_add(d, LS_DOCTOR_WARN, "uplink", t.url,
			"connected, not answered yet",
			"if this stays, check that a lockstep-collector listens on "
			"that port (default 7117)");
	else if (t.round_trip_ns > CHECKS_FAR_NS)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "uplink", t.url,
			"use a collector in the same region",
			"connected, but the round trip takes %.1f ms: clocks cannot "
			"be aligned well",
			(double)t.round_trip_ns / 1e6);
	else
		ls_doctor_addf(d, LS_DOCTOR_OK, "uplink", t.url, "",
			"connected, round trip %.1f ms, %llu reports acknowledged",
			(double)t.round_trip_ns / 1e6, (unsigned long long)s->acks);
}

/* Connects and closes. NULL if that worked, else why not. */
static const char *
checks_connect(const struct evutil_addrinfo *to)
{
	struct pollfd p = { .events = POLLOUT };
	int fd = socket(to->ai_family, to->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    0),
	    err = 0;
	socklen_t len = sizeof(err);

	if (fd < 0)
		return strerror(errno);
	p.fd = fd;
	if (connect(fd, to->ai_addr, (socklen_t)to->ai_addrlen) != 0)
		err = errno;
	if (err == EINPROGRESS) {
		if (poll(&p, 1, (int)(LS_DOCTOR_CONNECT_NS / 1000000)) != 1)
			err = ETIMEDOUT;
		else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
			err = errno;
	}
	(void)close(fd); /* nothing was written */
	return err != 0 ? strerror(err) : NULL;
}

/* Why none of the addresses can be connected to; empty: one can be. */
struct checks_reach {
	char why[128];
};

static void
checks_on_resolved(void *arg, const struct evutil_addrinfo *found, const char *why)
{
	struct checks_reach *reach = arg;
	const struct evutil_addrinfo *a;

	for (a = found; a != NULL; a = a->ai_next) {
		why = checks_connect(a);
		if (why == NULL)
			break;
	}
	(void)snprintf(reach->why, sizeof(reach->why), "%s", why != NULL ? why : "");
}

void
ls_checks_reach(const char *url, struct ls_doctor *d)
{
	struct checks_reach reach = { "out of memory" };
	const struct ls_resolve_handler handler = { &reach, checks_on_resolved };
	struct ls_resolve *resolve = NULL;
	struct event_base *base;
	char host[256];
	uint16_t port;

	if (ls_resolve_split(url, host, sizeof(host), &port) != 0) {
		ls_doctor_add(d, LS_DOCTOR_FAIL, "uplink", url,
			"is no address of a collector", "--collector tcp://HOST:PORT");
		return;
	}
	base = event_base_new();
	if (base != NULL && ls_resolve_open(base, host, port, &handler, &resolve) == 0)
		(void)event_base_dispatch(base); /* ends with the last request */
	ls_resolve_close(resolve);
	if (base != NULL)
		event_base_free(base);
	if (reach.why[0] == '\0')
		ls_doctor_add(d, LS_DOCTOR_OK, "uplink", url, "can be connected to",
			"");
	else
		ls_doctor_add(d, LS_DOCTOR_FAIL, "uplink", url, reach.why,
			"start lockstep-collector there, let this host reach that port, or give "
			"--collector tcp://HOST:PORT");
}

void
ls_checks_keys(const char *dir, const char *host_name, struct ls_doctor *d)
{
	char text[LS_TLS_TEXT_MAX_BYTES];
	int rc;

	if (dir[0] == '\0' || ls_tls_check == NULL)
		return;
	rc = ls_tls_check(LS_TLS_AGENT, dir, host_name, text, sizeof(text));
	ls_doctor_add(d,
		rc == 0		 ? LS_DOCTOR_OK
			: rc > 0 ? LS_DOCTOR_WARN
				 : LS_DOCTOR_FAIL,
		"keys", dir, rc == 0 ? "can be used" : text, "");
}

void
ls_checks_clock(struct ls_doctor *d)
{
	struct timex t = { .modes = 0 };
	int state = adjtimex(&t);

	if (state < 0)
		ls_doctor_addf(d, LS_DOCTOR_NONE, "clock", "wall clock", "",
			"state of the clock cannot be read (%s)", strerror(errno));
	else if (state == TIME_ERROR || (t.status & STA_UNSYNC))
		ls_doctor_add(d, LS_DOCTOR_WARN, "clock", "wall clock",
			"not synchronised: times shown may be wrong; steps are aligned without it",
			"systemctl enable --now systemd-timesyncd (or chrony)");
	else
		ls_doctor_addf(d, LS_DOCTOR_OK, "clock", "wall clock", "",
			"synchronised, error at most %.1f ms",
			(double)t.maxerror / 1e3);
}

void
ls_checks_budget(const struct ls_budget *b, struct ls_doctor *d)
{
	if (b->windows == 0) {
		ls_doctor_add(d, LS_DOCTOR_NONE, "budget", "own use",
			"not measured yet: the first window has not ended", "");
		return;
	}
	if (b->factor > 1)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "budget", "sampling",
			"use fewer sources, a longer --sample-interval, or a larger "
			"--budget-cpu-ratio",
			"slowed by %u to stay in the budget", b->factor);
	if (b->over & 1u << LS_BUDGET_CPU)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "budget", "cpu",
			"see lockstep_agent_* in /metrics for the cost of each source",
			"%.5f of a core, %.5f allowed", b->cpu_ratio,
			b->limits.cpu_ratio);
	if (b->over & 1u << LS_BUDGET_MEMORY || b->lean)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "budget", "memory",
			"set a larger --budget-memory, if this host has that many "
			"workers or series",
			"%llu KiB, %llu allowed: optional sources are stopped",
			(unsigned long long)b->rss_bytes / 1024,
			(unsigned long long)b->limits.memory_bytes / 1024);
	if (b->over & 1u << LS_BUDGET_BYTES)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "budget", "bytes",
			"set a larger --budget-bytes, if that many steps are marked "
			"on purpose",
			"%llu KiB sent in the last minute, %llu allowed",
			(unsigned long long)b->bytes_per_minute / 1024,
			(unsigned long long)b->limits.bytes_per_minute / 1024);
	if (b->over == 0)
		ls_doctor_addf(d, LS_DOCTOR_OK, "budget", "own use", "",
			"%.5f of a core, %llu KiB resident, %llu bytes a minute",
			b->cpu_ratio, (unsigned long long)b->rss_bytes / 1024,
			(unsigned long long)b->bytes_per_minute);
}
