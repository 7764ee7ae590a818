/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/wire/tls and proto/wire/keys: two sides in memory, no network. */
#include "config.h"

#include "proto/wire/tls.h"

#include <errno.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "proto/base/clock.h"
#include "proto/wire/keys.h"
#include "tests/support/harness.h"

#define DAY 86400
#define YEAR (365ll * DAY)
#define LONG_NAME \
	"n123456789012345678901234567890123456789012345678901234567890123456789"

static char dir[256], other[256], text[2048];
static int64_t now_s;
static struct ls_tls *agent, *collector;
static struct ls_tls_peer *a, *c;
static size_t moved; /* bytes of both directions */

static const char *
in(const char *where, const char *file)
{
	static char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", where, file);
	return path;
}

static void
move(const char *from, const char *to)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s", in(dir, from));
	ck_assert_int_eq(rename(path, in(dir, to)), 0);
}

static void
issue(const char *where, enum ls_tls_side side, const char *name, int64_t from,
	int64_t until)
{
	ck_assert_msg(ls_keys_issue(where, side, &name, 1, now_s + from, now_s + until,
			      text, sizeof(text)) == 0,
		"%s", text);
}

static void
setup(void)
{
	now_s = ls_clock_wall_ns() / 1000000000;
	(void)snprintf(dir, sizeof(dir), "%s/keys", ls_test_tmpdir());
	(void)snprintf(other, sizeof(other), "%s/other", ls_test_tmpdir());
	ck_assert_int_eq(ls_keys_init(dir, now_s - DAY, text, sizeof(text)), 0);
	issue(dir, LS_TLS_COLLECTOR, "center", -DAY, YEAR);
	issue(dir, LS_TLS_AGENT, "w-1", -DAY, YEAR);
	agent = collector = NULL;
	a = c = NULL;
}

static void
hang_up(void)
{
	ls_tls_peer_free(a);
	ls_tls_peer_free(c);
	a = c = NULL;
}

static void
teardown(void)
{
	hang_up();
	ls_tls_close(agent);
	ls_tls_close(collector);
}

static struct ls_tls *
keys(enum ls_tls_side side, const char *where, const char *name)
{
	struct ls_tls *t = NULL;

	ck_assert_int_eq(ls_tls_open(side, where, name, &t), 0);
	return t;
}

/* Takes what p has to send into bytes; how much that is. */
static size_t
take(struct ls_tls_peer *p, uint8_t *bytes, size_t size)
{
	size_t waiting = ls_tls_peer_waiting(p);
	struct ls_tls_bytes taken = ls_tls_peer_take(p);

	ck_assert_uint_eq(taken.len, waiting);
	ck_assert_uint_le(taken.len, size);
	if (taken.len > 0)
		memcpy(bytes, taken.data, taken.len);
	free(taken.data);
	return taken.len;
}

/* All that `from` has to send, in pieces of at most `piece`; 0 or what reading says. */
static int
carry(struct ls_tls_peer *from, struct ls_tls_peer *to, size_t piece, char *ret,
	size_t size)
{
	uint8_t bytes[70000];
	size_t len = take(from, bytes, sizeof(bytes)), at, n, got = 0;
	int rc = 0;

	moved += len;
	for (at = 0; at < len && rc == 0; at += piece) {
		rc = ls_tls_peer_feed(to, bytes + at,
			piece < len - at ? piece : len - at);
		if (rc == 0)
			rc = ls_tls_peer_read(to, (uint8_t *)ret + got, size - got - 1,
				&n);
		got += rc == 0 ? n : 0;
	}
	ret[got] = '\0';
	return rc;
}

static void
begin(const char *host)
{
	hang_up();
	ck_assert_int_eq(ls_tls_peer_new(collector, NULL, &c), 0);
	ck_assert_int_eq(ls_tls_peer_new(agent, host, &a), 0);
	ck_assert_uint_gt(ls_tls_peer_waiting(a), 0);
	ck_assert_uint_eq(ls_tls_peer_waiting(c), 0);
}

/* The handshake, and a greeting each way; the first error of either side. */
static int
meet(const char *host, size_t piece)
{
	char got[64];
	int rc;

	begin(host);
	moved = 0;
	rc = carry(a, c, piece, got, sizeof(got));
	if (rc == 0)
		rc = carry(c, a, piece, got, sizeof(got));
	if (rc == 0) /* not before the collector accepted us */
		ck_assert_int_eq(ls_tls_peer_write(a, (const uint8_t *)"early", 5),
			-EAGAIN);
	if (rc == 0)
		rc = carry(a, c, piece, got, sizeof(got));
	if (rc == 0)
		rc = ls_tls_peer_write(c, (const uint8_t *)"hello", 5);
	if (rc != 0) {
		(void)carry(c, a, piece, got, sizeof(got)); /* an alert, perhaps */
		return rc;
	}
	rc = carry(c, a, piece, got, sizeof(got));
	if (rc == 0)
		ck_assert_str_eq(got, "hello");
	return rc;
}

static void
meet_well(size_t piece)
{
	char got[64];

	ck_assert_msg(meet("center", piece) == 0, "agent: %s, collector: %s",
		ls_tls_peer_tell(a)->why, ls_tls_peer_tell(c)->why);
	ck_assert_int_eq(ls_tls_peer_write(a, (const uint8_t *)"report", 6), 0);
	ck_assert_int_eq(carry(a, c, piece, got, sizeof(got)), 0);
	ck_assert_str_eq(got, "report");
	ck_assert_str_eq(ls_tls_peer_tell(c)->name, "w-1");
	ck_assert_str_eq(ls_tls_peer_tell(a)->name, "center");
}

static void
both(void)
{
	agent = keys(LS_TLS_AGENT, dir, "w-1");
	collector = keys(LS_TLS_COLLECTOR, dir, "");
	ck_assert_str_eq(ls_tls_problem(agent), "");
	ck_assert_str_eq(ls_tls_problem(collector), "");
}

static void
why_has(const struct ls_tls_peer *p, enum ls_tls_fault fault, const char *part)
{
	const struct ls_tls_told *told = ls_tls_peer_tell(p);

	ck_assert_msg(told->fault == fault && strstr(told->why, part) != NULL,
		"fault %d: %s (want %d: %s)", told->fault, told->why, fault, part);
}

LS_CASE(meeting, setup, teardown);

static const size_t pieces[] = { 1, 7, 70000 };

LS_TEST_EACH(meeting, both_sides_know_each_other_in_pieces_of_any_size, pieces)
{
	both();
	meet_well(pieces[_i]);
	ck_assert(!ls_tls_peer_tell(c)->resumed);
}

LS_TEST(meeting, second_connection_resumes_and_sends_fewer_bytes)
{
	size_t full;

	both();
	meet_well(70000);
	full = moved;
	meet_well(70000);
	ck_assert(ls_tls_peer_tell(c)->resumed && ls_tls_peer_tell(a)->resumed);
	ck_assert_uint_lt(moved, full);
}

LS_TEST(meeting, session_outlives_a_restart_of_the_collector)
{
	both();
	meet_well(70000);
	hang_up();
	ls_tls_close(collector);
	collector = keys(LS_TLS_COLLECTOR, dir, "");
	meet_well(70000);
	ck_assert(ls_tls_peer_tell(c)->resumed);
}

LS_TEST(meeting, large_data_goes_through_and_all_of_it_is_encrypted)
{
	static uint8_t plain[60000], back[60001];

	both();
	meet_well(70000);
	memset(plain, 'x', sizeof(plain));
	ck_assert_int_eq(ls_tls_peer_write(a, plain, sizeof(plain)), 0);
	ck_assert_uint_gt(ls_tls_peer_waiting(a), sizeof(plain));
	ck_assert_int_eq(carry(a, c, 1000, (char *)back, sizeof(back)), 0);
	ck_assert_mem_eq(back, plain, sizeof(plain));
}

LS_TEST(meeting, collector_of_another_name_is_not_accepted)
{
	both();
	ck_assert_int_eq(meet("elsewhere", 70000), -EPROTO);
	why_has(a, LS_TLS_CERTIFICATE, "is for other names");
	ck_assert_int_eq(meet("10.0.0.1", 70000), -EPROTO);
	why_has(a, LS_TLS_CERTIFICATE, "is for other addresses");
}

LS_TEST(meeting, expired_certificate_is_not_accepted)
{
	issue(dir, LS_TLS_AGENT, "w-1", -DAY, -60);
	agent = keys(LS_TLS_AGENT, dir, "w-1");
	ck_assert(strstr(ls_tls_problem(agent), "has expired") != NULL);
	collector = keys(LS_TLS_COLLECTOR, dir, "");
	ck_assert_int_eq(meet("center", 70000), -EPROTO);
	why_has(c, LS_TLS_CERTIFICATE, "\"w-1\"");
	why_has(c, LS_TLS_CERTIFICATE, "has expired: issue a new one");
	why_has(a, LS_TLS_CERTIFICATE,
		"does not accept our certificate: certificate expired");
}

LS_TEST(meeting, certificate_of_the_future_is_not_accepted)
{
	issue(dir, LS_TLS_COLLECTOR, "center", 3600, DAY);
	agent = keys(LS_TLS_AGENT, dir, "w-1");
	collector = keys(LS_TLS_COLLECTOR, dir, "");
	ck_assert(strstr(ls_tls_problem(collector), "is not valid yet") != NULL);
	ck_assert_int_eq(meet("center", 70000), -EPROTO);
	why_has(a, LS_TLS_CERTIFICATE, "is not valid yet: set the clocks");
}

LS_TEST(meeting, certificate_of_another_authority_is_not_accepted)
{
	ck_assert_int_eq(ls_keys_init(other, now_s - DAY, text, sizeof(text)), 0);
	issue(other, LS_TLS_AGENT, "w-1", -DAY, YEAR);
	agent = keys(LS_TLS_AGENT, other, "w-1");
	collector = keys(LS_TLS_COLLECTOR, dir, "");
	ck_assert_int_eq(meet("center", 70000), -EPROTO);
	why_has(a, LS_TLS_CERTIFICATE, "is not signed by ca.pem here");
}

LS_TEST(meeting, certificate_of_an_agent_is_none_of_a_collector)
{
	move("w-1.pem", "collector.pem");
	move("w-1.key", "collector.key");
	issue(dir, LS_TLS_AGENT, "w-2", -DAY, YEAR);
	agent = keys(LS_TLS_AGENT, dir, "w-2");
	collector = keys(LS_TLS_COLLECTOR, dir, "");
	ck_assert_int_eq(meet("w-1", 70000), -EPROTO);
	why_has(a, LS_TLS_CERTIFICATE, "is for another use");
}

LS_TEST(meeting, revoked_agent_is_cut_off_and_a_new_certificate_is_accepted)
{
	both();
	meet_well(70000);
	ck_assert(ls_tls_peer_is_trusted(c));
	ck_assert_int_eq(ls_keys_revoke(dir, "w-1", now_s, text, sizeof(text)), 0);
	ck_assert_int_eq(ls_tls_look(collector), 1);
	ck_assert(!ls_tls_peer_is_trusted(c));
	why_has(c, LS_TLS_CERTIFICATE, "is revoked");
	ck_assert_int_eq(meet("center", 70000), -EPROTO);
	why_has(c, LS_TLS_CERTIFICATE, "is revoked");
	why_has(a, LS_TLS_CERTIFICATE, "certificate revoked");
	issue(dir, LS_TLS_AGENT, "w-1", -DAY, YEAR);
	ck_assert_int_eq(ls_tls_look(agent), 1);
	meet_well(70000);
	ck_assert_int_eq(ls_keys_revoke(dir, "nobody", now_s, text, sizeof(text)),
		-LS_EUNKNOWN);
}

LS_TEST(meeting, connection_does_not_outlive_its_certificate)
{
	issue(dir, LS_TLS_AGENT, "w-1", -DAY, 2);
	agent = keys(LS_TLS_AGENT, dir, "w-1");
	collector = keys(LS_TLS_COLLECTOR, dir, "");
	meet_well(70000);
	ck_assert(ls_tls_peer_is_trusted(c));
	while (ls_clock_wall_ns() / 1000000000 <= now_s + 2)
		continue;
	ck_assert(!ls_tls_peer_is_trusted(c));
	why_has(c, LS_TLS_CERTIFICATE, "has expired");
	hang_up(); /* and its session does neither */
	ck_assert_int_eq(meet("center", 70000), -EPROTO);
}

LS_TEST(meeting, connection_survives_new_keys_of_the_collector)
{
	both();
	meet_well(70000);
	issue(dir, LS_TLS_COLLECTOR, "center", -DAY, 2 * YEAR);
	ck_assert_int_eq(ls_tls_look(collector), 1);
	ck_assert_int_eq(ls_tls_look(collector), 0);
	ck_assert(ls_tls_peer_is_trusted(c));
	meet_well(70000);
	ck_assert(!ls_tls_peer_tell(c)->resumed);
}

/* A collector of a numeric address only, and agents whose names fit nowhere else. */
static const char *const odd_names[] = { "10.0.0.7", "fe80::7", LONG_NAME };

LS_TEST_EACH(meeting, names_that_are_numeric_or_long_are_accepted, odd_names)
{
	issue(dir, LS_TLS_COLLECTOR, "10.0.0.5", -DAY, YEAR);
	issue(dir, LS_TLS_AGENT, odd_names[_i], -DAY, YEAR);
	agent = keys(LS_TLS_AGENT, dir, odd_names[_i]);
	collector = keys(LS_TLS_COLLECTOR, dir, "");
	ck_assert_str_eq(ls_tls_problem(agent), "");
	ck_assert_msg(meet("10.0.0.5", 70000) == 0, "agent: %s, collector: %s",
		ls_tls_peer_tell(a)->why, ls_tls_peer_tell(c)->why);
	ck_assert_str_eq(ls_tls_peer_tell(c)->name, odd_names[_i]);
}

/* Of a client of OpenSSL without certificate, in one piece. */
static int
say_hello(const char *groups)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(ctx);
	uint8_t hello[4096], buf[64];
	BIO *out = BIO_new(BIO_s_mem());
	size_t n;
	int len;

	ck_assert_int_eq(SSL_set1_groups_list(ssl, groups), 1);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
	ck_assert_int_le(SSL_connect(ssl), 0);
	len = BIO_read(out, hello, sizeof(hello));
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	ls_tls_peer_free(c);
	ck_assert_int_eq(ls_tls_peer_new(collector, NULL, &c), 0);
	ck_assert_int_eq(ls_tls_peer_feed(c, hello, (size_t)len), 0);
	return ls_tls_peer_read(c, buf, sizeof(buf), &n);
}

LS_TEST(meeting, groups_that_cost_much_are_not_computed)
{
	both();
	ck_assert_int_eq(say_hello("P-256"), 0); /* waits for its certificate */
	/* as ffdhe8192, which OpenSSL 1.1.1 does not have */
	ck_assert_int_eq(say_hello("P-521"), -EPROTO);
	why_has(c, LS_TLS_BROKEN, "");
}

static const struct {
	uint8_t alert;
	enum ls_tls_fault fault;
} alerts[] = { { 48, LS_TLS_CERTIFICATE }, { 116, LS_TLS_CERTIFICATE },
	{ 40, LS_TLS_BROKEN }, { 80, LS_TLS_BROKEN }, { 70, LS_TLS_BROKEN } };

LS_TEST_EACH(meeting, only_alerts_about_certificates_count_as_such, alerts)
{
	const uint8_t alert[] = { 0x15, 3, 3, 0, 2, 2, alerts[_i].alert };
	uint8_t buf[64];
	size_t n;

	both();
	begin("center");
	ck_assert_int_eq(ls_tls_peer_feed(a, alert, sizeof(alert)), 0);
	ck_assert_int_eq(ls_tls_peer_read(a, buf, sizeof(buf), &n), -EPROTO);
	why_has(a, alerts[_i].fault, "");
}

LS_TEST(meeting, part_of_a_record_is_held)
{
	uint8_t bytes[256], buf[64];
	size_t len, n;

	both();
	meet_well(70000);
	ck_assert(!ls_tls_peer_holds(c));
	ck_assert_int_eq(ls_tls_peer_write(a, (const uint8_t *)"report", 6), 0);
	len = take(a, bytes, sizeof(bytes));
	ck_assert_int_eq(ls_tls_peer_feed(c, bytes, len - 1), 0);
	ck_assert_int_eq(ls_tls_peer_read(c, buf, sizeof(buf), &n), 0);
	ck_assert_uint_eq(n, 0);
	ck_assert(ls_tls_peer_holds(c));
	ck_assert_int_eq(ls_tls_peer_feed(c, bytes + len - 1, 1), 0);
	ck_assert_int_eq(ls_tls_peer_read(c, buf, sizeof(buf), &n), 0);
	ck_assert_uint_eq(n, 6);
	ck_assert(!ls_tls_peer_holds(c));
}

/* So an answer takes little memory, whatever a report's record took. */
LS_TEST(meeting, records_of_a_collector_are_short)
{
	uint8_t data[2000] = { 0 }, bytes[4096];
	size_t len, records = 0, at;

	both();
	meet_well(70000);
	ck_assert_int_eq(ls_tls_peer_write(c, data, sizeof(data)), 0);
	len = take(c, bytes, sizeof(bytes));
	for (at = 0; at + 5 <= len; records++) {
		size_t length = (size_t)bytes[at + 3] << 8 | bytes[at + 4];

		ck_assert_uint_le(length, 512 + 17); /* its kind and its tag */
		at += 5 + length;
	}
	ck_assert_uint_eq(at, len);
	ck_assert_uint_eq(records, 4);
}

static const char *const strangers[] = { "GET / HTTP/1.1\r\n\r\n",
	"\x16\x03\x01\x40\x00 a long one that never was",
	"\x16\x03\x01\x00\x05\x01\xff\xff\xff\xff", "\xff" };

LS_TEST_EACH(meeting, garbage_is_not_accepted_and_reads_nothing, strangers)
{
	uint8_t buf[64];
	size_t n = 1;
	int rc;

	both();
	begin("center");
	rc = ls_tls_peer_feed(c, (const uint8_t *)strangers[_i],
		_i == 2 ? 10 : strlen(strangers[_i]));
	if (rc == 0)
		rc = ls_tls_peer_read(c, buf, sizeof(buf), &n);
	else
		n = 0;
	ck_assert_uint_eq(n, 0);
	ck_assert(rc == -EPROTO || (rc == 0 && _i > 0)); /* waits for more */
	ck_assert_str_eq(ls_tls_peer_tell(c)->name, "");
	if (_i == 0)
		why_has(c, LS_TLS_PLAIN, "does not speak TLS: give that agent --keys");
}

LS_TEST(meeting, plain_peers_are_recognised_by_both)
{
	static const uint8_t greeting[] = { 0, 'S', 'P', 0, 0, 0x31, 0, 0 };
	uint8_t alert[7];

	both();
	begin("center");
	ck_assert_int_eq(ls_tls_peer_feed(a, greeting, sizeof(greeting)), -EPROTO);
	why_has(a, LS_TLS_PLAIN, "give that collector --keys, or remove --keys here");
	ck_assert_int_eq(ls_tls_peer_feed(c, greeting, sizeof(greeting)), -EPROTO);
	ck_assert_uint_eq(ls_tls_peer_waiting(c), sizeof(alert));
	(void)take(c, alert, sizeof(alert));
	ck_assert_uint_eq(alert[0], 0x15);
}

LS_TEST(meeting, changed_bytes_end_the_connection)
{
	uint8_t bytes[256];
	size_t len, n = 1;

	both();
	meet_well(70000);
	ck_assert_int_eq(ls_tls_peer_write(a, (const uint8_t *)"report", 6), 0);
	len = take(a, bytes, sizeof(bytes));
	bytes[len - 1] ^= 1;
	ck_assert_int_eq(ls_tls_peer_feed(c, bytes, len), 0);
	ck_assert_int_eq(ls_tls_peer_read(c, bytes, sizeof(bytes), &n), -EPROTO);
	ck_assert_uint_eq(n, 0);
	why_has(c, LS_TLS_BROKEN, "breaks the rules of TLS");
	ck_assert_int_eq(ls_tls_peer_write(c, bytes, 1), -EPROTO);
}

LS_CASE(files, setup, teardown);

/* Files that are changed are not used, and those of before are. */
static void
refused(struct ls_tls *t, const char *file, const char *words)
{
	struct ls_tls *none = NULL;
	const char *why = ls_tls_problem(t);

	ck_assert_int_lt(ls_tls_look(t), 0);
	ck_assert_msg(strstr(why, file) != NULL && strstr(why, words) != NULL, "%s",
		why);
	meet_well(70000);
	if (t == agent)
		ck_assert_int_lt(ls_tls_open(LS_TLS_AGENT, dir, "w-1", &none), 0);
	ck_assert_ptr_null(none);
}

static const char *const needed[] = { "ca.pem", "w-1.pem", "w-1.key" };

LS_TEST_EACH(files, empty_truncated_or_absent_file_is_named_with_its_fix, needed)
{
	const char *file = needed[_i];

	both();
	ck_assert_int_eq(truncate(in(dir, file), 60), 0);
	refused(agent, file, _i == 2 ? "copy both again" : "truncated? Copy");
	ck_assert_int_eq(truncate(in(dir, file), 0), 0);
	refused(agent, file, "is empty; copy it again");
	ck_assert_int_eq(unlink(in(dir, file)), 0);
	refused(agent, _i == 1 ? "agent.pem" : file, "No such file");
}

static const mode_t open_modes[] = { 0640, 0604, 0660, 0666 };

LS_TEST_EACH(files, key_that_others_can_read_is_refused, open_modes)
{
	ck_assert_int_eq(chmod(in(dir, "w-1.key"), open_modes[_i]), 0);
	if (open_modes[_i] == 0640 && geteuid() == 0) { /* root's file has a group */
		agent = keys(LS_TLS_AGENT, dir, "w-1");
		return;
	}
	ck_assert_int_lt(ls_tls_open(LS_TLS_AGENT, dir, "w-1", &agent), 0);
	ck_assert_ptr_null(agent);
	ck_assert_int_lt(ls_tls_check(LS_TLS_AGENT, dir, "w-1", text, sizeof(text)), 0);
	ck_assert_msg(strstr(text, "w-1.key: can be read by others; run chmod 600") !=
			NULL,
		"%s", text);
}

LS_TEST(files, key_of_a_user_that_is_neither_root_nor_us_is_refused)
{
	both();
	if (geteuid() != 0)
		return; /* only root can give files away */
	issue(dir, LS_TLS_AGENT, "w-1", -DAY, YEAR);
	ck_assert_int_eq(chown(in(dir, "w-1.key"), 12345, (gid_t)-1), 0);
	refused(agent, "w-1.key", "belongs to another user");
}

LS_TEST(files, key_of_another_certificate_is_refused)
{
	both();
	issue(dir, LS_TLS_AGENT, "w-2", -DAY, YEAR);
	move("w-2.key", "w-1.key");
	refused(agent, "w-1.key", "is no private key of the certificate beside it");
}

LS_TEST(files, key_of_another_type_than_its_certificate_is_refused)
{
	EVP_PKEY_CTX *of_key = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, NULL);
	EVP_PKEY *key = NULL;
	FILE *f;

	both();
	ck_assert_int_eq(EVP_PKEY_keygen_init(of_key), 1);
	ck_assert_int_eq(EVP_PKEY_keygen(of_key, &key), 1);
	f = fopen(in(dir, "collector.key"), "w");
	ck_assert_int_eq(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
	ck_assert_int_eq(fclose(f), 0);
	EVP_PKEY_free(key);
	EVP_PKEY_CTX_free(of_key);
	refused(collector, "collector.key", "is no private key");
}

LS_TEST(files, bad_files_keep_those_of_before_and_are_tried_again)
{
	both();
	issue(dir, LS_TLS_COLLECTOR, "center", -DAY, 2 * YEAR);
	ck_assert_int_eq(chmod(in(dir, "collector.key"), 0644), 0);
	refused(collector, "collector.key", "can be read by others");
	refused(collector, "collector.key", "can be read by others");
	ck_assert_int_eq(chmod(in(dir, "collector.key"), 0600), 0);
	ck_assert_int_eq(ls_tls_look(collector), 1);
	ck_assert_str_eq(ls_tls_problem(collector), "");
}

LS_TEST(files, certificate_that_expires_soon_is_told_and_works)
{
	issue(dir, LS_TLS_AGENT, "w-1", -DAY, 29 * DAY);
	agent = keys(LS_TLS_AGENT, dir, "w-1");
	collector = keys(LS_TLS_COLLECTOR, dir, "");
	ck_assert_str_eq(ls_tls_problem(collector), "");
	ck_assert(strstr(ls_tls_problem(agent), "in less than 30 days our own") !=
		NULL);
	ck_assert_int_eq(ls_tls_until_s(agent), now_s + 29 * DAY);
	ck_assert_int_eq(ls_tls_until_s(NULL), 0);
	meet_well(70000);
	issue(dir, LS_TLS_AGENT, "w-1", -DAY, 31 * DAY);
	ck_assert_int_eq(ls_tls_look(agent), 1);
	ck_assert_str_eq(ls_tls_problem(agent), "");
}

LS_TEST(files, a_problem_names_the_file_and_a_certificate_of_addresses)
{
	issue(dir, LS_TLS_COLLECTOR, "127.0.0.1", -2 * DAY, -DAY);
	collector = keys(LS_TLS_COLLECTOR, dir, "");
	ck_assert_msg(
		strstr(ls_tls_problem(collector),
			"/collector.pem: our own certificate of \"collector\" (") !=
			NULL,
		"%s", ls_tls_problem(collector));
	ck_assert_int_lt(ls_tls_check(LS_TLS_AGENT, dir, "w-7", text, sizeof(text)), 0);
	ck_assert_msg(strstr(text, "lockstep keys agent DIR w-7 makes this file") !=
			NULL,
		"%s", text);
}

LS_TEST(files, list_of_revoked_certificates_must_not_vanish)
{
	move("crl.pem", "moved");
	both(); /* never there: nothing is revoked */
	ck_assert_int_eq(ls_keys_revoke(dir, "w-1", now_s, text, sizeof(text)),
		-ENOENT);
	ck_assert(strstr(text, "nothing is revoked") != NULL);
	ck_assert(strstr(text, "(No such file or directory)") != NULL);
	move("moved", "crl.pem");
	ck_assert_int_eq(ls_tls_look(collector), 1);
	move("crl.pem", "moved");
	refused(collector, "crl.pem", "No such file");
	ck_assert_int_eq(symlink("crl.pem", in(dir, "crl.pem")), 0);
	ck_assert_int_eq(ls_keys_revoke(dir, "w-1", now_s, text, sizeof(text)), -ELOOP);
	hang_up();
	ls_tls_close(agent);
	agent = NULL;
	ck_assert_int_lt(ls_tls_open(LS_TLS_AGENT, dir, "w-1", &agent), 0);
	ck_assert_int_eq(unlink(in(dir, "crl.pem")), 0);
}

LS_TEST(files, revoking_allows_for_clocks_that_differ)
{
	FILE *f;
	X509_CRL *crl;
	time_t soon = now_s - LS_KEYS_EARLY_S + 1;

	ck_assert_int_eq(ls_keys_revoke(dir, "w-1", now_s, text, sizeof(text)), 0);
	f = fopen(in(dir, "crl.pem"), "r");
	crl = PEM_read_X509_CRL(f, NULL, NULL, NULL);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_lt(X509_cmp_time(X509_CRL_get0_lastUpdate(crl), &soon), 0);
	X509_CRL_free(crl);
	issue(dir, LS_TLS_AGENT, "w-1", -DAY, YEAR);
	ck_assert_int_eq(ls_keys_revoke(dir, "w-1", now_s + 2 * LS_KEYS_EARLY_S, text,
				 sizeof(text)),
		0);
	collector = keys(LS_TLS_COLLECTOR, dir, "");
	ck_assert_msg(strstr(ls_tls_problem(collector),
			      "crl.pem is not valid yet; set the clocks") != NULL,
		"%s", ls_tls_problem(collector));
}

static void
append(const char *from, const char *to, const char *file)
{
	char line[512];
	FILE *in_f = fopen(in(from, file), "r"), *out_f = fopen(in(to, file), "a");

	ck_assert(in_f != NULL && out_f != NULL);
	while (fgets(line, sizeof(line), in_f) != NULL)
		ck_assert_int_ge(fputs(line, out_f), 0);
	ck_assert_int_eq(fclose(in_f), 0);
	ck_assert_int_eq(fclose(out_f), 0);
}

/* An authority follows another: while both are in ca.pem, each has its own list. */
LS_TEST(files, agents_of_two_authorities_are_accepted)
{
	ck_assert_int_eq(ls_keys_init(other, now_s - DAY, text, sizeof(text)), 0);
	issue(other, LS_TLS_AGENT, "w-2", -DAY, YEAR);
	append(dir, other, "ca.pem");
	append(dir, other, "crl.pem");
	append(other, dir, "ca.pem");
	append(other, dir, "crl.pem");
	both();
	meet_well(70000);
	hang_up();
	ls_tls_close(agent);
	agent = keys(LS_TLS_AGENT, other, "w-2");
	ck_assert_msg(meet("center", 70000) == 0, "agent: %s, collector: %s",
		ls_tls_peer_tell(a)->why, ls_tls_peer_tell(c)->why);
	ck_assert_str_eq(ls_tls_peer_tell(c)->name, "w-2");
}

LS_TEST(files, notes_are_readable_by_their_owner_only)
{
	struct stat st;

	ck_assert_int_eq(stat(in(dir, "issued"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	ck_assert_int_eq(unlink(in(dir, "issued")), 0);
	ck_assert_int_eq(symlink("elsewhere", in(dir, "issued")), 0);
	ck_assert_int_eq(ls_keys_issue(dir, LS_TLS_AGENT,
				 (const char *const[]){ "w-3" }, 1, now_s, now_s + DAY,
				 text, sizeof(text)),
		-ELOOP);
	ck_assert_int_ne(access(in(dir, "elsewhere"), F_OK), 0);
}

/* An authority is made of ca.key, then of ca.pem: what is between is no end of it. */
LS_TEST(files, interrupted_init_is_finished_by_the_next_one)
{
	ck_assert_int_eq(ls_keys_init(other, now_s, text, sizeof(text)), 0);
	ck_assert_int_eq(unlink(in(other, "ca.pem")), 0);
	ck_assert_int_eq(fclose(fopen(in(other, "ca.pem.new"), "w")), 0);
	ck_assert_int_eq(ls_keys_init(other, now_s, text, sizeof(text)), 0);
	issue(other, LS_TLS_AGENT, "w-1", -DAY, YEAR);
	ck_assert_int_eq(unlink(in(other, "ca.pem")), 0); /* this one has signed */
	ck_assert_int_eq(ls_keys_init(other, now_s, text, sizeof(text)), -EEXIST);
}

LS_TEST(files, agent_files_serve_any_name_but_the_name_must_be_right)
{
	move("w-1.pem", "agent.pem");
	move("w-1.key", "agent.key");
	both();
	ls_tls_close(agent);
	agent = keys(LS_TLS_AGENT, dir, "w-9");
	ck_assert(strstr(ls_tls_problem(agent), "names another host than w-9") != NULL);
}

static const char *const no_names[] = { "", "a,b", "../x", "a/b", "-x", "ca", "crl",
	"collector", "agent", LONG_NAME LONG_NAME };

LS_TEST_EACH(files, names_that_are_none_get_no_certificate, no_names)
{
	ck_assert_int_eq(ls_keys_issue(dir, LS_TLS_AGENT, &no_names[_i], 1, now_s,
				 now_s + DAY, text, sizeof(text)),
		-LS_ERANGE);
}

LS_TEST(files, second_init_keeps_the_authority)
{
	size_t len, again;
	char *before = ls_test_read(in(dir, "ca.pem"), &len), *after;

	ck_assert_int_eq(ls_keys_init(dir, now_s, text, sizeof(text)), 0);
	after = ls_test_read(in(dir, "ca.pem"), &again);
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	ck_assert_int_eq(unlink(in(dir, "ca.key")), 0);
	ck_assert_int_eq(ls_keys_init(dir, now_s, text, sizeof(text)), -EEXIST);
}
