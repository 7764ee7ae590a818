/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/metadata.h"

#include <errno.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/pages/http_get.h"
#include "proto/base/log.h"
#include "proto/base/text.h"
#include "proto/base/loop.h"
#include "proto/limits.h"

#define METADATA_BASE "/computeMetadata/v1/instance/"
#define METADATA_FLAVOR "Metadata-Flavor"
#define METADATA_GOOGLE "Google"
#define METADATA_FAILURES_MAX 2 /* in a round, which is then over */
#define METADATA_ADDRESS_BYTES 32
enum { METADATA_OK = 200, METADATA_ABSENT = 404 };

static const char *const metadata_paths[LS_METADATA_ITEM_COUNT] = {
#define LS_METADATA_ITEM(id, path) METADATA_BASE path,
#include "agent/identity/metadata.def"
#undef LS_METADATA_ITEM
};

struct ls_metadata {
	struct ls_metadata_options options;
	char address[METADATA_ADDRESS_BYTES];
	struct ls_http_get *get;
	struct ls_loop_timer *next; /* question, or round */
	unsigned item; /* asked now or next */
	unsigned failures; /* in this round */
	bool asked; /* a round is over */
	const char *wrong; /* in the last round; NULL: nothing */
	uint64_t retry_ns;
	struct {
		uint64_t rounds, answers, absent, failures;
	} stats;
};

/* --- the address ---------------------------------------------------------- */

/* "1.2.3.4" or "1.2.3.4:80", in whole. */
bool
ls_metadata_address_is_valid(const char *address)
{
	const char *port = strchr(address, ':');
	struct sockaddr_in in; /* too small for an address of IPv6 */
	int len = sizeof(in);
	uint64_t number;

	return address[strspn(address, "0123456789.:")] == '\0' &&
		(port == NULL || ls_text_number(port + 1, UINT16_MAX, &number)) &&
		evutil_parse_sockaddr_port(address, (struct sockaddr *)&in, &len) == 0;
}

/* --- rounds --------------------------------------------------------------- */

static void
metadata_end_round(struct ls_metadata *m)
{
	uint64_t wait_ns = LS_METADATA_ROUND_NS;

	if (m->failures > 0) {
		if (m->retry_ns < wait_ns)
			wait_ns = m->retry_ns;
		m->retry_ns = wait_ns * 2;
	} else {
		m->wrong = NULL;
		m->retry_ns = m->options.retry_ns;
	}
	m->stats.rounds++;
	m->item = m->failures = 0;
	m->asked = true;
	ls_loop_timer_start(m->next, wait_ns, 0);
	m->options.done(m->options.arg);
}

/* Without an answer to the first question, or to several, the rest is not asked. */
static void
metadata_fail(struct ls_metadata *m, const char *why)
{
	if (m->wrong != why)
		ls_log(LS_LOG_INFO, "metadata",
			"%s: %s; continuing without metadata, retrying later",
			m->address, why);
	m->wrong = why;
	m->stats.failures++;
	if (++m->failures >= METADATA_FAILURES_MAX || m->item == 0)
		m->item = LS_METADATA_ITEM_COUNT;
	else
		m->item++;
	ls_loop_timer_start(m->next, 0, 0);
}

static const char *
metadata_problem(int rc, int status)
{
	switch (rc) {
	case 0:
		return status == METADATA_OK || status == METADATA_ABSENT
			? NULL
			: "answers with an HTTP status other than 200 and 404";
	case -LS_EABSENT:
		return "nothing answers at this address";
	case -ETIMEDOUT:
		return "no answer in time";
	case -LS_ELIMIT:
		return "an answer is too long";
	case -LS_EUNKNOWN:
		return "answers, but is not a metadata server (no Metadata-Flavor: "
		       "Google)";
	default:
		return "an answer cannot be read";
	}
}

static void
metadata_answered(void *arg, int rc, int status, const char *body, size_t len)
{
	struct ls_metadata *m = arg;
	enum ls_metadata_item item = (enum ls_metadata_item)m->item;
	const char *problem = metadata_problem(rc, status);

	if (rc == -LS_EUNKNOWN)
		m->item = 0; /* whatever this is, it is asked nothing more */
	if (problem != NULL) {
		metadata_fail(m, problem);
		return;
	}
	if (status == METADATA_OK)
		m->stats.answers++;
	else
		m->stats.absent++;
	m->options.answer(m->options.arg, item, status == METADATA_OK ? body : NULL,
		status == METADATA_OK ? len : 0);
	m->item++;
	ls_loop_timer_start(m->next, 0, 0);
}

/* The next question, or the end of the round. */
static void
metadata_turn(void *arg)
{
	struct ls_metadata *m = arg;
	int rc;

	if (m->item >= LS_METADATA_ITEM_COUNT) {
		metadata_end_round(m);
		return;
	}
	rc = ls_http_get_start(m->get, metadata_paths[m->item]);
	if (rc != 0)
		metadata_fail(m, ls_err_text(rc));
}

/* --- life ----------------------------------------------------------------- */

static int
metadata_open(struct ls_metadata *m, struct ls_loop *loop)
{
	char url[METADATA_ADDRESS_BYTES + 16];
	struct ls_http_get_options o = { .url = url,
		.header = METADATA_FLAVOR,
		.value = METADATA_GOOGLE,
		.expect = METADATA_FLAVOR,
		.expect_value = METADATA_GOOGLE,
		.body_max_bytes = LS_METADATA_BODY_MAX_BYTES,
		.deadline_ns = m->options.deadline_ns,
		.done = metadata_answered,
		.arg = m };

	(void)snprintf(url, sizeof(url), "http://%s/", m->address);
	m->next = ls_loop_timer_new(loop, metadata_turn, m);
	return m->next != NULL ? ls_http_get_new(loop, &o, &m->get) : -ENOMEM;
}

int
ls_metadata_new(struct ls_loop *loop, const struct ls_metadata_options *options,
	struct ls_metadata **ret_metadata)
{
	struct ls_metadata *m;
	int rc;

	if (!ls_metadata_address_is_valid(options->address))
		return -LS_ERANGE;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	m->options = *options;
	(void)snprintf(m->address, sizeof(m->address), "%s", options->address);
	m->options.address = m->address;
	m->retry_ns = options->retry_ns;
	rc = metadata_open(m, loop);
	if (rc == 0) {
		ls_loop_timer_start(m->next, 0, 0);
		*ret_metadata = m;
	} else {
		ls_metadata_free(m);
	}
	return rc;
}

void
ls_metadata_free(struct ls_metadata *m)
{
	if (m == NULL)
		return;
	ls_http_get_free(m->get);
	ls_loop_timer_free(m->next);
	free(m);
}

bool
ls_metadata_was_asked(const struct ls_metadata *m)
{
	return m->asked;
}

void
ls_metadata_tell(const struct ls_metadata *m, const char *why_not, struct ls_doctor *d)
{
	if (m == NULL) {
		ls_doctor_add(d, LS_DOCTOR_NONE, "metadata", "server", why_not,
			"to ask one, give --metadata-address " LS_METADATA_ADDRESS);
		return;
	}
	ls_doctor_addf(d, m->wrong == NULL ? LS_DOCTOR_OK : LS_DOCTOR_WARN, "metadata",
		ls_doctor_text(d, "server %s", m->address),
		m->wrong == NULL
			? ""
			: "try curl -H 'Metadata-Flavor: Google' "
			  "http://" LS_METADATA_ADDRESS METADATA_BASE
			  "id; let the agent reach it (network policy), or give --worker-id and "
			  "--topology with --metadata-address off",
		"%s; %llu answers, %llu not found, %llu failures",
		m->wrong != NULL   ? m->wrong
			: m->asked ? "answers"
				   : "not asked yet",
		(unsigned long long)m->stats.answers,
		(unsigned long long)m->stats.absent,
		(unsigned long long)m->stats.failures);
}
