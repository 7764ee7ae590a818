/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include "proto/base/hash.h"
#include "proto/base/log.h"
#include "proto/base/table.h"

/* Host names are compared over their whole field, which is zeroed beyond the end; so
 * they come last. */
struct session_key {
	uint8_t boot[LS_BOOT_BYTES];
	char host[LS_HOST_NAME_MAX_BYTES];
};

struct session_sent {
	uint64_t t2_ns, t3_ns;
};

/* One numbered stream. */
struct session_stream {
	bool fresh; /* no item was ever accepted here */
	uint32_t hole_tries;
	uint64_t hole_seq;
	uint64_t accepted, committed;
	uint32_t seen[LS_SESSION_SEEN_ITEMS]; /* fingerprint of item n at n % size */
	uint64_t seen_from; /* items before this have no fingerprint */
};

/* A host name, and the session whose it is: the first to be live under it. */
struct session_host {
	char name[LS_HOST_NAME_MAX_BYTES]; /* first: the key */
	size_t sessions;
	struct ls_session *owner; /* NULL: nobody now */
};

/* What the agent calls one of its rings in hot values and live slots. */
struct session_ring {
	uint32_t number;
	struct ls_ring *ring; /* held */
};

struct ls_session {
	struct session_key key; /* first */
	struct ls_sessions *table;
	struct session_host *host;
	TAILQ_ENTRY(ls_session) link; /* least recent first */
	TAILQ_ENTRY(ls_session) hello; /* while in that state; likewise */
	enum ls_session_state state;
	bool identified; /* said who its host is, since it was new here */
	uint8_t kernel_boot_id[16];
	uint32_t reports;
	uint32_t held;
	uint64_t first_ns, last_ns; /* reports, since it was last gone */
	int64_t rate_ns; /* its bucket */
	struct session_stream stream[LS_STREAM_COUNT];
	struct session_sent sent[2];
	struct ls_clock clock;
	size_t ring_count, ring_room; /* at most LS_RINGS_MAX, oldest first */
	struct session_ring *rings;
};

TAILQ_HEAD(session_list, ls_session);

struct ls_sessions {
	size_t count, max;
	struct ls_table by_key, by_host;
	struct session_list list, hello;
	struct ls_session_stats stats;
};

static const char *const session_names[] = {
#define LS_SESSION_STATE(id, name, help) name,
#include "collector/ingest/session_states.def"
#undef LS_SESSION_STATE
};

/* Moves allowed, from each state: a set of states. */
#define SESSION_TO(id) (1u << LS_SESSION_##id)
static const unsigned session_moves[LS_SESSION_STATE_COUNT] = {
	[LS_SESSION_HELLO] = SESSION_TO(LIVE) | SESSION_TO(GONE),
	[LS_SESSION_LIVE] = SESSION_TO(STALE) | SESSION_TO(HELLO),
	[LS_SESSION_STALE] = SESSION_TO(LIVE) | SESSION_TO(GONE) | SESSION_TO(HELLO),
	[LS_SESSION_GONE] = SESSION_TO(HELLO),
};

const char *
ls_session_state_name(unsigned state)
{
	return state < LS_SESSION_STATE_COUNT ? session_names[state] : NULL;
}

static void
session_set_state(struct ls_session *s, enum ls_session_state to)
{
	if (s->state == to)
		return;
	LS_ASSERT(session_moves[s->state] & (1u << to));
	ls_log(LS_LOG_DEBUG, "session", "%s: %s -> %s", s->key.host,
		session_names[s->state], session_names[to]);
	s->table->stats.count[s->state]--;
	s->table->stats.count[to]++;
	if (s->state == LS_SESSION_HELLO)
		TAILQ_REMOVE(&s->table->hello, s, hello);
	if (to == LS_SESSION_HELLO)
		TAILQ_INSERT_TAIL(&s->table->hello, s, hello);
	s->state = to;
}

struct ls_sessions *
ls_sessions_new(size_t max)
{
	struct ls_sessions *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->max = max;
	ls_table_init(&t->by_key, sizeof(struct session_key));
	ls_table_init(&t->by_host, LS_HOST_NAME_MAX_BYTES);
	TAILQ_INIT(&t->list);
	TAILQ_INIT(&t->hello);
	return t;
}

/* The entry of the host name that `s` reports under. */
static int
session_enter_host(struct ls_session *s)
{
	struct ls_sessions *t = s->table;
	struct session_host *h = ls_table_find(&t->by_host, s->key.host);

	if (h == NULL) {
		h = calloc(1, sizeof(*h));
		if (h == NULL)
			return -ENOMEM;
		memcpy(h->name, s->key.host, sizeof(h->name));
		if (ls_table_put(&t->by_host, h) != 0) {
			free(h);
			return -ENOMEM;
		}
	}
	h->sessions++;
	s->host = h;
	return 0;
}

static void
session_leave_host(struct ls_session *s)
{
	struct session_host *h = s->host;

	if (h->owner == s)
		h->owner = NULL;
	if (--h->sessions > 0)
		return;
	ls_table_remove(&s->table->by_host, h);
	free(h);
}

/* Takes entry i out. */
static void
session_forget_ring(struct ls_session *s, size_t i)
{
	ls_ring_release(s->rings[i].ring);
	s->ring_count--;
	memmove(&s->rings[i], &s->rings[i + 1],
		(s->ring_count - i) * sizeof(s->rings[0]));
}

static void
session_forget_rings(struct ls_session *s)
{
	while (s->ring_count > 0)
		session_forget_ring(s, s->ring_count - 1);
}

static void
session_remove(struct ls_session *s)
{
	struct ls_sessions *t = s->table;

	session_forget_rings(s);
	session_leave_host(s);
	ls_table_remove(&t->by_key, s);
	TAILQ_REMOVE(&t->list, s, link);
	if (s->state == LS_SESSION_HELLO)
		TAILQ_REMOVE(&t->hello, s, hello);
	t->stats.count[s->state]--;
	t->count--;
	free(s->rings);
	free(s);
}

void
ls_sessions_free(struct ls_sessions *t)
{
	if (t == NULL)
		return;
	while (!TAILQ_EMPTY(&t->list))
		session_remove(TAILQ_FIRST(&t->list));
	ls_table_fini(&t->by_key);
	ls_table_fini(&t->by_host);
	free(t);
}

/*
 * Makes room: the longest silent session that is gone, else the longest silent one that
 * never had a clock. It has nothing under way.
 */
static bool
session_evict(struct ls_sessions *t)
{
	struct ls_session *s;

	/* Those that are gone are in front. */
	for (s = TAILQ_FIRST(&t->list); s != NULL && s->state == LS_SESSION_GONE;
		s = TAILQ_NEXT(s, link)) {
		if (s->held == 0)
			break;
	}
	if (s == NULL || s->state != LS_SESSION_GONE) {
		s = TAILQ_FIRST(&t->hello);
		if (s == NULL || s->held > 0)
			return false;
	}
	t->stats.evicted++;
	session_remove(s);
	return true;
}

static void
session_make_key(struct session_key *key, const uint8_t *boot, const char *host)
{
	size_t len = strnlen(host, sizeof(key->host) - 1);

	memset(key, 0, sizeof(*key));
	memcpy(key->host, host, len);
	memcpy(key->boot, boot, sizeof(key->boot));
}

static struct ls_session *
session_find(struct ls_sessions *t, const struct session_key *key)
{
	return ls_table_find(&t->by_key, key);
}

static int
session_add(struct ls_sessions *t, const struct session_key *key,
	enum ls_session_state state, struct ls_session **ret_session)
{
	struct ls_session *s;

	if (t->count >= t->max && !session_evict(t)) {
		t->stats.refused++;
		return -LS_ELIMIT;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->key = *key;
	s->table = t;
	s->state = state;
	for (size_t i = 0; i < LS_STREAM_COUNT; i++)
		s->stream[i].fresh = true;
	if (session_enter_host(s) != 0) {
		free(s);
		return -ENOMEM;
	}
	if (ls_table_put(&t->by_key, s) != 0) {
		session_leave_host(s);
		free(s);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&t->list, s, link);
	if (state == LS_SESSION_HELLO)
		TAILQ_INSERT_TAIL(&t->hello, s, hello);
	t->stats.count[state]++;
	t->count++;
	*ret_session = s;
	return 0;
}

int
ls_sessions_seed(struct ls_sessions *t, const uint8_t *boot, const char *host,
	const uint64_t seq[LS_STREAM_COUNT])
{
	struct session_key key;
	struct ls_session *s;
	int rc = 0;

	session_make_key(&key, boot, host);
	s = session_find(t, &key);
	if (s == NULL)
		rc = session_add(t, &key, LS_SESSION_GONE, &s);
	if (rc != 0)
		return rc;
	s->rate_ns = -LS_RATE_AGENT_BURST_NS;
	for (size_t i = 0; i < LS_STREAM_COUNT; i++) {
		s->stream[i].fresh = seq[i] == 0;
		s->stream[i].accepted = s->stream[i].committed = seq[i];
		s->stream[i].seen_from = seq[i] + 1;
	}
	return 0;
}

/* Who owns the host name: a session keeps it while it is live. Two that take turns are
 * counted. */
static void
session_claim_host(struct ls_session *s)
{
	struct ls_session *owner = s->host->owner;

	if (owner == s)
		return;
	if (owner == NULL || owner->state != LS_SESSION_LIVE)
		s->host->owner = s;
	else if (owner->last_ns > s->first_ns)
		s->table->stats.doubles++;
}

/* A report of a session that is new, was gone, or runs on another boot of its kernel.
 */
static void
session_begin(struct ls_session *s, const struct ls_wire_report *r, bool same_kernel,
	uint64_t now_ns)
{
	memcpy(s->kernel_boot_id, r->kernel_boot_id, sizeof(s->kernel_boot_id));
	ls_clock_init(&s->clock, same_kernel);
	memset(s->sent, 0, sizeof(s->sent));
	s->reports = 0;
	session_forget_rings(s);
	s->identified = false;
	s->first_ns = now_ns;
	session_set_state(s, LS_SESSION_HELLO);
}

int
ls_sessions_report(struct ls_sessions *t, const struct ls_wire_report *r,
	bool same_kernel, uint64_t now_ns, uint32_t *begun,
	struct ls_session **ret_session)
{
	struct session_key key;
	struct ls_session *s;
	bool begins;
	int rc;

	session_make_key(&key, r->boot, r->host);
	s = session_find(t, &key);
	begins = s == NULL || s->state == LS_SESSION_GONE ||
		(r->has_kernel &&
			memcmp(s->kernel_boot_id, r->kernel_boot_id,
				sizeof(s->kernel_boot_id)) != 0);
	if (begins && !r->has_kernel)
		return -LS_EUNKNOWN;
	if (s == NULL) {
		if (*begun >= LS_CONNECTION_AGENTS_MAX)
			return -LS_EBUSY;
		rc = session_add(t, &key, LS_SESSION_HELLO, &s);
		if (rc != 0)
			return rc;
		*begun += 1;
		s->rate_ns = (int64_t)now_ns - LS_RATE_AGENT_NEW_NS;
	}
	if (begins)
		session_begin(s, r, same_kernel, now_ns);
	else if (s->state == LS_SESSION_STALE)
		session_set_state(s, LS_SESSION_LIVE);
	session_claim_host(s);
	s->reports++;
	s->last_ns = now_ns;
	TAILQ_REMOVE(&t->list, s, link);
	TAILQ_INSERT_TAIL(&t->list, s, link);
	if (s->state == LS_SESSION_HELLO) {
		TAILQ_REMOVE(&t->hello, s, hello);
		TAILQ_INSERT_TAIL(&t->hello, s, hello);
	}
	*ret_session = s;
	return 0;
}

void
ls_sessions_sweep(struct ls_sessions *t, uint64_t now_ns)
{
	struct ls_session *s;

	TAILQ_FOREACH (s, &t->list, link) {
		uint64_t silent = now_ns > s->last_ns ? now_ns - s->last_ns : 0;

		if (silent < LS_SESSION_STALE_NS)
			break; /* those behind reported later */
		if (s->state == LS_SESSION_LIVE)
			session_set_state(s, LS_SESSION_STALE);
		if (silent >= LS_SESSION_GONE_NS && s->state != LS_SESSION_GONE) {
			session_set_state(s, LS_SESSION_GONE);
			session_forget_rings(s);
		}
	}
}

void
ls_sessions_rollback(struct ls_sessions *t)
{
	struct ls_session *s;
	struct session_stream *x;

	TAILQ_FOREACH (s, &t->list, link) {
		for (size_t i = 0; i < LS_STREAM_COUNT; i++) {
			x = &s->stream[i];
			x->accepted = x->committed;
			if (x->committed == 0)
				x->fresh =
					true; /* it may begin with any number, as before */
		}
	}
}

void
ls_sessions_stats(const struct ls_sessions *t, struct ls_session_stats *ret_stats)
{
	*ret_stats = t->stats;
}

/* --- one session ---------------------------------------------------------- */

enum ls_session_state
ls_session_state(const struct ls_session *s)
{
	return s->state;
}

struct ls_clock *
ls_session_clock(struct ls_session *s)
{
	return &s->clock;
}

void
ls_session_ready(struct ls_session *s)
{
	if (s->state == LS_SESSION_HELLO)
		session_set_state(s, LS_SESSION_LIVE);
}

uint32_t
ls_session_reports(const struct ls_session *s)
{
	return s->reports;
}

/* Room for one more: more memory, or the place of the oldest. */
static bool
session_room_ring(struct ls_session *s)
{
	size_t room = s->ring_room == 0 ? 2 : 2 * s->ring_room;
	struct session_ring *more;

	if (s->ring_count < s->ring_room)
		return true;
	more = room <= LS_RINGS_MAX ? realloc(s->rings, room * sizeof(*more)) : NULL;
	if (more != NULL) {
		s->rings = more;
		s->ring_room = room;
	} else if (s->ring_count > 0) {
		session_forget_ring(s, 0);
	}
	return s->ring_count < s->ring_room;
}

void
ls_session_name_ring(struct ls_session *s, uint32_t number, struct ls_ring *ring)
{
	size_t i = s->ring_count;

	while (i-- > 0) {
		if (s->rings[i].number == number || s->rings[i].ring == ring)
			session_forget_ring(s, i);
	}
	if (number == 0 || ring == NULL || !session_room_ring(s))
		return;
	ls_ring_hold(ring);
	s->rings[s->ring_count++] = (struct session_ring){ number, ring };
}

struct ls_ring *
ls_session_ring(const struct ls_session *s, uint32_t number)
{
	for (size_t i = 0; i < s->ring_count; i++) {
		if (s->rings[i].number == number)
			return s->rings[i].ring;
	}
	return NULL;
}

bool
ls_session_is_apart(const struct ls_session *s)
{
	return s->host->owner != s;
}

void
ls_session_sent(struct ls_session *s, uint64_t t2_ns, uint64_t t3_ns)
{
	s->sent[1] = s->sent[0];
	s->sent[0] = (struct session_sent){ t2_ns, t3_ns };
}

bool
ls_session_has_sent(const struct ls_session *s, uint64_t t2_ns, uint64_t t3_ns)
{
	for (size_t i = 0; i < 2; i++) {
		if (t3_ns != 0 && s->sent[i].t2_ns == t2_ns &&
			s->sent[i].t3_ns == t3_ns)
			return true;
	}
	return false;
}

int
ls_session_check(struct ls_session *s, enum ls_session_stream stream, uint64_t seq,
	uint32_t fingerprint)
{
	struct ls_session_stats *stats = &s->table->stats;
	struct session_stream *x = &s->stream[stream];

	if (seq <= x->accepted) {
		stats->duplicates++;
		if (seq >= x->seen_from && x->accepted - seq < LS_SESSION_SEEN_ITEMS &&
			x->seen[seq % LS_SESSION_SEEN_ITEMS] != fingerprint)
			stats->changed++;
		return -LS_EDUPLICATE;
	}
	if (seq == x->accepted + 1 || x->fresh)
		return 0;
	if (x->hole_seq != seq) {
		x->hole_seq = seq;
		x->hole_tries = 0;
	}
	if (x->accepted == x->committed && ++x->hole_tries >= LS_SESSION_HOLE_TRIES) {
		stats->skipped++;
		return 0;
	}
	stats->holes++;
	return -LS_EBUSY;
}

void
ls_session_accept(struct ls_session *s, enum ls_session_stream stream, uint64_t seq,
	uint32_t fingerprint)
{
	struct session_stream *x = &s->stream[stream];

	if (x->fresh || seq != x->accepted + 1)
		x->seen_from = seq;
	x->fresh = false;
	x->hole_tries = 0;
	x->accepted = seq;
	x->seen[seq % LS_SESSION_SEEN_ITEMS] = fingerprint;
}

uint64_t
ls_session_accepted(const struct ls_session *s, enum ls_session_stream stream)
{
	return s->stream[stream].accepted;
}

uint64_t
ls_session_committed(const struct ls_session *s, enum ls_session_stream stream)
{
	return s->stream[stream].committed;
}

bool
ls_session_is_behind(const struct ls_session *s)
{
	for (size_t i = 0; i < LS_STREAM_COUNT; i++) {
		if (s->stream[i].accepted > s->stream[i].committed)
			return true;
	}
	return false;
}

void
ls_session_hold(struct ls_session *s)
{
	s->held++;
}

void
ls_session_release(struct ls_session *s)
{
	LS_ASSERT(s->held > 0);
	s->held--;
}

void
ls_session_commit(struct ls_session *s, enum ls_session_stream stream, uint64_t seq)
{
	struct session_stream *x = &s->stream[stream];

	if (seq > x->committed)
		x->committed = seq;
	if (x->accepted < x->committed)
		x->accepted = x->committed;
}

int64_t *
ls_session_rate(struct ls_session *s)
{
	return &s->rate_ns;
}

bool
ls_session_is_identified(const struct ls_session *s)
{
	return s->identified;
}

void
ls_session_identified(struct ls_session *s)
{
	s->identified = true;
}

uint32_t
ls_session_fingerprint(const uint8_t *data, size_t len)
{
	uint64_t h = len, word;
	size_t i;

	/* Eight bytes at once. Each step can be undone, so that nothing is lost before
	 * the last line. */
	for (i = 0; i + sizeof(word) <= len; i += sizeof(word)) {
		memcpy(&word, data + i, sizeof(word));
		h = (h ^ word) * LS_HASH_PRIME;
		h ^= h >> 32;
	}
	for (; i < len; i++)
		h = (h ^ data[i]) * LS_HASH_PRIME;
	return (uint32_t)(h ^ h >> 32);
}
