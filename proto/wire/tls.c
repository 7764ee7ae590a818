/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/text.h"

/* The keys of session tickets: a name, and keys for HMAC and AES. */
#define TLS_TICKET_BYTES 80
/* The largest record that a collector writes, most answers fit: OpenSSL takes memory for
 * one each time, and so much has malloc at hand. The least that OpenSSL allows. */
#define TLS_RECORD_BYTES 512
#define TLS_LINE_BYTES (LS_TLS_TEXT_MAX_BYTES + LS_PATH_MAX_BYTES)
#define TLS_HANDSHAKE 0x16 /* the type of the first record of either side, */
#define TLS_ALERT 0x15 /* or of this one */

enum tls_file { TLS_CA, TLS_CERTIFICATE, TLS_KEY, TLS_CRL, TLS_FILES };

struct ls_tls {
	enum ls_tls_side side;
	char dir[LS_CONF_VALUE_MAX_BYTES], name[LS_HOST_NAME_MAX_BYTES];
	char path[TLS_FILES][LS_PATH_MAX_BYTES];
	uint8_t contents[TLS_TICKET_BYTES]; /* a secret digest of all files */
	SSL_CTX *ctx;
	BIO_METHOD *memory; /* of all peers */
	SSL_SESSION *session; /* of an agent: to resume */
	uint64_t generation; /* of ctx */
	char problem[TLS_LINE_BYTES]; /* with the files, "": none */
	bool soon; /* it is not yet one */
};

struct ls_tls_peer {
	struct ls_tls *tls;
	SSL *ssl;
	struct ls_tls_bytes in, out;
	bool begun;
	bool heard; /* something came after the handshake */
	uint64_t generation;
	int64_t until; /* the end of its certificate, Unix time */
	struct ls_tls_told told;
};

/* --- words ---------------------------------------------------------------- */

static const struct {
	int code;
	const char *what;
} tls_words[] = {
	{ X509_V_ERR_CERT_HAS_EXPIRED,
		"has expired: issue a new one (lockstep keys), and copy it there" },
	{ X509_V_ERR_CERT_NOT_YET_VALID,
		"is not valid yet: set the clocks of both hosts" },
	{ X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
		"is self-signed, not by ca.pem: issue one with lockstep keys" },
	{ X509_V_ERR_CERT_REVOKED,
		"is revoked: issue a new one (lockstep keys), and copy it there" },
	{ X509_V_ERR_HOSTNAME_MISMATCH,
		"is for other names than the one in --collector: give that name to "
		"lockstep keys init DIR NAME, and copy collector.pem and .key" },
	{ X509_V_ERR_IP_ADDRESS_MISMATCH,
		"is for other addresses than the one in --collector: give that address "
		"to lockstep keys init DIR ADDRESS, and copy collector.pem and .key" },
	{ X509_V_ERR_INVALID_PURPOSE,
		"is for another use: an agent's cannot be a collector's, or the reverse" },
	{ X509_V_ERR_CRL_NOT_YET_VALID,
		"cannot be checked: crl.pem is not valid yet; set the clocks" },
	{ X509_V_ERR_CRL_SIGNATURE_FAILURE,
		"cannot be checked: crl.pem is not signed by ca.pem here" },
	{ X509_V_ERR_CRL_HAS_EXPIRED,
		"cannot be checked: crl.pem has expired; make a new one" },
	{ X509_V_ERR_UNABLE_TO_GET_CRL,
		"cannot be checked: crl.pem is not of the CA that signed it" },
	{ 0,
		"is not signed by ca.pem here: use files of one lockstep keys init on both "
		"sides" },
};

/* The first DNS name of a certificate, "" if there is none, or it is no name. */
static void
tls_name(X509 *cert, char *dst, size_t size)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	const unsigned char *text = (const unsigned char *)"";
	int len = 0;

	dst[0] = '\0';
	for (int i = 0; len == 0 && i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

		if (name->type != GEN_DNS)
			continue;
		text = ASN1_STRING_get0_data(name->d.dNSName);
		len = ASN1_STRING_length(name->d.dNSName);
	}
	if (len > 0 && ls_text_is_name((const char *)text, (size_t)len, size - 1)) {
		memcpy(dst, text, (size_t)len);
		dst[len] = '\0';
	}
	GENERAL_NAMES_free(names);
}

/* 'WHOSE certificate of "NAME" (FROM to UNTIL) WHAT'. */
static void
tls_describe(X509 *cert, int code, const char *whose, char *text, size_t size)
{
	char name[LS_HOST_NAME_MAX_BYTES] = "", safe[2 * LS_HOST_NAME_MAX_BYTES];
	char from[16] = "?", until[16] = "?";
	struct tm tm;
	size_t i = 0;

	while (tls_words[i].code != 0 && tls_words[i].code != code)
		i++;
	if (cert != NULL) {
		tls_name(cert, name, sizeof(name));
		if (name[0] == '\0') /* e.g. addresses only: its subject */
			(void)X509_NAME_get_text_by_NID(X509_get_subject_name(cert),
				NID_commonName, name, sizeof(name));
		if (ASN1_TIME_to_tm(X509_get0_notBefore(cert), &tm) == 1)
			(void)strftime(from, sizeof(from), "%F", &tm);
		if (ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) == 1)
			(void)strftime(until, sizeof(until), "%F", &tm);
	}
	(void)ls_text_escape(safe, sizeof(safe), name, strlen(name));
	(void)snprintf(text, size, "%scertificate of \"%.160s\" (%s to %s) %s", whose,
		safe, from, until, tls_words[i].what);
}

/* --- the files ------------------------------------------------------------ */

/* Checks a file before OpenSSL reads it, NULL: it can be used. */
static const char *
tls_check_file(const char *path, bool secret)
{
	struct stat st;

	if (stat(path, &st) != 0 || access(path, R_OK) != 0)
		return strerror(errno);
	if (st.st_size == 0)
		return "is empty; copy it again";
	if (secret && st.st_uid != geteuid() && st.st_uid != 0)
		return "belongs to another user; run chown on it";
	if (secret && (st.st_mode & (st.st_uid == 0 ? 037 : 077)) != 0)
		return "can be read by others; run chmod 600 on it (640 if root owns it)";
	return NULL;
}

/* A digest of what the files hold now, an absent one holds nothing. */
static int
tls_digest(struct ls_tls *t, uint8_t *ret_digest)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	char block[4096];
	FILE *f;
	size_t n;
	int ok = md != NULL && EVP_DigestInit_ex(md, EVP_shake256(), NULL);

	for (size_t i = 0; i < TLS_FILES; i++) {
		size_t left = LS_KEYS_FILE_MAX_BYTES;

		ok = ok && EVP_DigestUpdate(md, &i, sizeof(i));
		f = fopen(t->path[i], "re");
		while (f != NULL && left > 0 &&
			(n = fread(block, 1,
				 left < sizeof(block) ? left : sizeof(block), f)) > 0) {
			ok = ok && EVP_DigestUpdate(md, block, n);
			left -= n;
		}
		if (f != NULL)
			(void)fclose(f); /* only read from */
	}
	ok = ok && EVP_DigestFinalXOF(md, ret_digest, TLS_TICKET_BYTES);
	EVP_MD_CTX_free(md);
	OPENSSL_cleanse(block, sizeof(block));
	return ok ? 0 : -ENOMEM;
}

/* Which files: an agent prefers those of its name. */
static void
tls_find(struct ls_tls *t)
{
	const char *base = t->side == LS_TLS_AGENT ? t->name : "collector";
	size_t size = sizeof(t->path[0]);

	(void)snprintf(t->path[TLS_CA], size, "%s/ca.pem", t->dir);
	(void)snprintf(t->path[TLS_CRL], size, "%s/crl.pem", t->dir);
	(void)snprintf(t->path[TLS_CERTIFICATE], size, "%s/%s.pem", t->dir, base);
	if (t->side == LS_TLS_AGENT && access(t->path[TLS_CERTIFICATE], F_OK) != 0) {
		base = "agent";
		(void)snprintf(t->path[TLS_CERTIFICATE], size, "%s/agent.pem", t->dir);
	}
	(void)snprintf(t->path[TLS_KEY], size, "%s/%s.key", t->dir, base);
}

static int
tls_use(SSL_CTX *ctx, enum tls_file file, const char *path)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);

	switch (file) {
	case TLS_CA:
		return SSL_CTX_load_verify_locations(ctx, path, NULL);
	case TLS_CERTIFICATE:
		return SSL_CTX_use_certificate_chain_file(ctx, path);
	case TLS_KEY:
		/* A key of another type than the certificate replaces it in ctx. */
		return SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM) == 1 &&
			SSL_CTX_check_private_key(ctx) == 1;
	case TLS_CRL:
		return X509_load_crl_file(
			       X509_STORE_add_lookup(store, X509_LOOKUP_file()), path,
			       X509_FILETYPE_PEM) > 0 &&
			X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
	case TLS_FILES:
		break;
	}
	return 0;
}

/* Puts the files into ctx. A list that is in force must not vanish. */
static int
tls_load_files(struct ls_tls *t, SSL_CTX *ctx)
{
	static const char *const whats[TLS_FILES] = {
		[TLS_CA] = "is no certificate in PEM: truncated? Copy ca.pem again",
		[TLS_CERTIFICATE] =
			"is no certificate in PEM: truncated? Copy it again",
		[TLS_KEY] =
			"is no private key of the certificate beside it, without password: copy both again",
		[TLS_CRL] = "is no list of revoked certificates in PEM: copy it again",
	};
	bool listed = t->ctx != NULL &&
		(X509_VERIFY_PARAM_get_flags(
			 X509_STORE_get0_param(SSL_CTX_get_cert_store(t->ctx))) &
			X509_V_FLAG_CRL_CHECK) != 0;
	const char *what;

	for (size_t i = 0; i < TLS_FILES; i++) {
		if (i == TLS_CRL && !listed && access(t->path[i], F_OK) != 0 &&
			errno == ENOENT)
			continue;
		what = tls_check_file(t->path[i], i == TLS_KEY);
		if (what == NULL && tls_use(ctx, (enum tls_file)i, t->path[i]) != 1)
			what = whats[i];
		if (what == NULL)
			continue;
		if (t->side == LS_TLS_AGENT && (i == TLS_CERTIFICATE || i == TLS_KEY))
			(void)snprintf(t->problem, sizeof(t->problem),
				"%s: %s (lockstep keys agent DIR %s makes this file)",
				t->path[i], what, t->name);
		else
			(void)snprintf(t->problem, sizeof(t->problem),
				"%s: %s (lockstep keys init makes this file)",
				t->path[i], what);
		return -EINVAL;
	}
	return 0;
}

/* --- certificates --------------------------------------------------------- */

/* Unix time; INT64_MAX: none is given. */
static int64_t
tls_time(const ASN1_TIME *at)
{
	struct tm tm;

	return at != NULL && ASN1_TIME_to_tm(at, &tm) == 1 ? timegm(&tm) : INT64_MAX;
}

/* X509_V_OK, or why cert will not be one of `side` in in_s seconds, by the files of
 * ctx. */
static int
tls_verify(SSL_CTX *ctx, X509 *cert, STACK_OF(X509) * chain, enum ls_tls_side side,
	int64_t in_s)
{
	X509_STORE_CTX *c = X509_STORE_CTX_new();
	int code = X509_V_ERR_OUT_OF_MEM;

	if (c != NULL &&
		X509_STORE_CTX_init(c, SSL_CTX_get_cert_store(ctx), cert, chain) == 1 &&
		X509_STORE_CTX_set_default(c,
			side == LS_TLS_AGENT ? "ssl_client" : "ssl_server") == 1) {
		X509_STORE_CTX_set_time(c, 0, ls_clock_wall_ns() / 1000000000 + in_s);
		(void)X509_verify_cert(c); /* the error says it */
		code = X509_STORE_CTX_get_error(c);
	}
	X509_STORE_CTX_free(c);
	return code;
}

static int
tls_on_verify(int ok, X509_STORE_CTX *c)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(c, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct ls_tls_peer *p = SSL_get_app_data(ssl);

	if (!ok) {
		p->told.fault = LS_TLS_CERTIFICATE;
		tls_describe(X509_STORE_CTX_get_current_cert(c),
			X509_STORE_CTX_get_error(c), "has no valid certificate: the ",
			p->told.why, sizeof(p->told.why));
	}
	return ok;
}

/* Our own certificate: what the other side will find. */
static void
tls_check_own(struct ls_tls *t)
{
	X509 *cert = SSL_CTX_get0_certificate(t->ctx);
	STACK_OF(X509) *chain = NULL;
	char name[LS_HOST_NAME_MAX_BYTES], whose[LS_PATH_MAX_BYTES + 64];
	int code, later;

	(void)SSL_CTX_get0_chain_certs(t->ctx, &chain); /* NULL: there is none */
	code = tls_verify(t->ctx, cert, chain, t->side, 0);
	later = tls_verify(t->ctx, cert, chain, t->side, LS_KEYS_WARN_S);
	tls_name(cert, name, sizeof(name));
	t->problem[0] = '\0';
	(void)snprintf(whose, sizeof(whose), "%s: %sour own ", t->path[TLS_CERTIFICATE],
		code == X509_V_OK ? "in less than 30 days " : "");
	if (code != X509_V_OK)
		tls_describe(cert, code, whose, t->problem, sizeof(t->problem));
	else if (t->side == LS_TLS_AGENT && strcmp(name, t->name) != 0)
		(void)snprintf(t->problem, sizeof(t->problem),
			"%.160s names another host than %.64s, so that the collector will "
			"reject its reports: lockstep keys agent DIR %.64s makes the right one",
			t->path[TLS_CERTIFICATE], t->name, t->name);
	else if (later != X509_V_OK)
		tls_describe(cert, later, whose, t->problem, sizeof(t->problem));
	t->soon = code == X509_V_OK && later != X509_V_OK;
}

/* --- the keys of a side --------------------------------------------------- */

static SSL_CTX *
tls_new_context(const struct ls_tls *t)
{
	SSL_CTX *ctx = SSL_CTX_new(t->side == LS_TLS_AGENT ? TLS_client_method()
							   : TLS_server_method());

	/* Others, as ffdhe8192, cost tens of ms for each stranger. */
	if (ctx == NULL || SSL_CTX_set1_groups_list(ctx, "X25519:P-256") != 1) {
		SSL_CTX_free(ctx);
		return NULL;
	}
#ifdef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
	(void)SSL_CTX_set_options(ctx,
		SSL_OP_NO_RX_CERTIFICATE_COMPRESSION |
			SSL_OP_NO_TX_CERTIFICATE_COMPRESSION);
#endif
	(void)SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION); /* cannot fail */
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	if (t->side == LS_TLS_COLLECTOR)
		(void)SSL_CTX_set_max_send_fragment(ctx, TLS_RECORD_BYTES);
	if (t->side != LS_TLS_WEB)
		SSL_CTX_set_verify(ctx,
			SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
			tls_on_verify);
	/* A password that is wrong: else OpenSSL asks for one on the terminal. */
	SSL_CTX_set_default_passwd_cb_userdata(ctx, (void *)(uintptr_t) "");
	(void)SSL_CTX_set_max_cert_list(ctx, LS_TLS_CHAIN_MAX_BYTES);
	/* Sessions live in the tickets, which the agents keep. */
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_num_tickets(ctx, 1);
	(void)SSL_CTX_set_timeout(ctx, LS_TLS_SESSION_S);
	/* A session without a certificate is no session of an agent. */
	(void)SSL_CTX_set_session_id_context(ctx,
		(const uint8_t *)(t->side == LS_TLS_WEB ? "web" : "agents"), 3);
	return ctx;
}

/* 1: changed files are in force, 0: no change, else those of before are. */
static int
tls_refresh(struct ls_tls *t)
{
	uint8_t contents[TLS_TICKET_BYTES];
	SSL_CTX *ctx;
	int rc;

	ERR_clear_error();
	(void)snprintf(t->problem, sizeof(t->problem), "%s", ls_err_text(-ENOMEM));
	tls_find(t);
	rc = tls_digest(t, contents);
	if (rc != 0)
		return rc;
	if (memcmp(contents, t->contents, sizeof(contents)) == 0) {
		tls_check_own(t);
		return 0;
	}
	ctx = tls_new_context(t);
	if (ctx == NULL)
		return -ENOMEM;
	rc = tls_load_files(t, ctx);
	if (rc != 0 ||
		SSL_CTX_set_tlsext_ticket_keys(ctx, contents, sizeof(contents)) != 1) {
		SSL_CTX_free(ctx);
		return rc != 0 ? rc : -ENOMEM;
	}
	SSL_CTX_free(t->ctx);
	SSL_SESSION_free(t->session);
	t->session = NULL;
	t->ctx = ctx;
	t->generation++;
	memcpy(t->contents, contents, sizeof(contents));
	tls_check_own(t);
	return 1;
}

int
ls_tls_look(struct ls_tls *t)
{
	char before[TLS_LINE_BYTES];
	int rc;

	if (t == NULL)
		return 0;
	memcpy(before, t->problem, sizeof(before));
	rc = tls_refresh(t);
	if (t->problem[0] != '\0' && strcmp(t->problem, before) != 0)
		ls_log(rc >= 0 && t->soon ? LS_LOG_WARN : LS_LOG_ERR, "keys", "%s%s",
			t->problem,
			rc < 0 && t->ctx != NULL ? ", keeping the keys of before" : "");
	else if (rc > 0 && t->generation > 1)
		ls_log(LS_LOG_INFO, "keys", "read changed keys in %s", t->dir);
	return rc;
}

/* --- memory as a BIO ------------------------------------------------------ */

/*
 * OpenSSL's own keeps five pieces of memory for each direction. With 10,000 connections
 * none of them is in a cache when a report comes; these are gone between two reports.
 */

static bool
tls_append(struct ls_tls_bytes *b, const void *bytes, size_t len)
{
	uint8_t *data = realloc(b->data, b->len + len);

	if (data == NULL)
		return false;
	memcpy(data + b->len, bytes, len);
	b->data = data;
	b->len += len;
	return true;
}

static int
tls_on_bio_read(BIO *bio, char *buf, size_t size, size_t *ret_len)
{
	struct ls_tls_bytes *in = &((struct ls_tls_peer *)BIO_get_data(bio))->in;
	size_t left = in->len - in->at, n = size < left ? size : left;

	if (n > 0)
		memcpy(buf, in->data + in->at, n);
	in->at += n;
	if (n == left) {
		free(in->data);
		*in = (struct ls_tls_bytes){ .data = NULL };
	}
	if (n == 0)
		BIO_set_retry_read(bio); /* later, when more came */
	*ret_len = n;
	return n > 0;
}

static int
tls_on_bio_write(BIO *bio, const char *bytes, size_t len, size_t *ret_len)
{
	struct ls_tls_peer *p = BIO_get_data(bio);

	BIO_clear_retry_flags(bio); /* of reading: no memory is final */
	*ret_len = len;
	return tls_append(&p->out, bytes, len);
}

static long
tls_on_bio_ctrl(BIO *bio, int command, long number, void *arg)
{
	(void)bio;
	(void)number;
	(void)arg;
	return command == BIO_CTRL_FLUSH;
}

/* --- opening -------------------------------------------------------------- */

/* Nothing is read yet. *ret_tls is for ls_tls_close, whatever is returned. */
static int
tls_new(enum ls_tls_side side, const char *dir, const char *name,
	struct ls_tls **ret_tls)
{
	struct ls_tls *t = calloc(1, sizeof(*t));
	int rc = -ENOMEM;

	/* Settings of this machine for other programs have no say. */
	if (t != NULL && OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1)
		t->memory = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "memory");
	if (t != NULL && t->memory != NULL &&
		BIO_meth_set_read_ex(t->memory, tls_on_bio_read) == 1 &&
		BIO_meth_set_write_ex(t->memory, tls_on_bio_write) == 1 &&
		BIO_meth_set_ctrl(t->memory, tls_on_bio_ctrl) == 1)
		rc = ls_text_copy(t->dir, sizeof(t->dir), dir);
	if (rc == 0)
		rc = ls_text_copy(t->name, sizeof(t->name), name);
	if (rc == 0)
		t->side = side;
	*ret_tls = t;
	return rc;
}

int
ls_tls_open(enum ls_tls_side side, const char *dir, const char *name,
	struct ls_tls **ret_tls)
{
	struct ls_tls *t = NULL;
	int rc;

	if (dir[0] == '\0')
		return 0;
	rc = tls_new(side, dir, name, &t);
	if (rc == 0)
		rc = ls_tls_look(t);
	if (rc < 0) {
		ls_tls_close(t);
		return rc;
	}
	*ret_tls = t;
	return 0;
}

int
ls_tls_check(enum ls_tls_side side, const char *dir, const char *name, char *text,
	size_t size)
{
	struct ls_tls *t = NULL;
	int rc = tls_new(side, dir, name, &t);

	(void)snprintf(text, size, "%s", ls_err_text(rc));
	if (rc == 0) {
		rc = tls_refresh(t);
		(void)snprintf(text, size, "%s", t->problem);
	}
	if (rc > 0)
		rc = text[0] == '\0' ? 0 : t->soon ? 1 : -EINVAL;
	ls_tls_close(t);
	return rc;
}

int64_t
ls_tls_until_s(const struct ls_tls *t)
{
	STACK_OF(X509_OBJECT) * all;
	int64_t first;

	if (t == NULL)
		return 0;
	all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(t->ctx));
	first = tls_time(X509_get0_notAfter(SSL_CTX_get0_certificate(t->ctx)));
	for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
		X509_OBJECT *o = sk_X509_OBJECT_value(all, i);
		const X509 *cert = X509_OBJECT_get0_X509(o);
		int64_t at =
			tls_time(cert != NULL ? X509_get0_notAfter(cert)
					      : X509_CRL_get0_nextUpdate(
							X509_OBJECT_get0_X509_CRL(o)));

		first = at < first ? at : first;
	}
	return first;
}

struct ssl_st *
ls_tls_new_web(struct ls_tls *t)
{
	return SSL_new(t->ctx);
}

const char *
ls_tls_problem(const struct ls_tls *t)
{
	return t != NULL ? t->problem : "";
}

void
ls_tls_close(struct ls_tls *t)
{
	if (t == NULL)
		return;
	SSL_SESSION_free(t->session);
	SSL_CTX_free(t->ctx);
	BIO_meth_free(t->memory);
	OPENSSL_cleanse(t->contents, sizeof(t->contents));
	free(t);
}

/* --- a connection --------------------------------------------------------- */

/* What the certificate of the other side must name. */
static int
tls_expect(SSL *ssl, const char *host)
{
	struct in6_addr any;

	if (inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	SSL_set_hostflags(ssl,
		X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
			X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
}

int
ls_tls_peer_new(struct ls_tls *t, const char *host, struct ls_tls_peer **ret_peer)
{
	struct ls_tls_peer *p = calloc(1, sizeof(*p));
	BIO *bio = BIO_new(t->memory);

	if (p != NULL)
		p->ssl = SSL_new(t->ctx);
	if (p == NULL || p->ssl == NULL || bio == NULL ||
		(host != NULL && tls_expect(p->ssl, host) != 1) ||
		SSL_set_app_data(p->ssl, p) != 1) {
		BIO_free(bio);
		ls_tls_peer_free(p);
		return -ENOMEM;
	}
	BIO_set_data(bio, p);
	BIO_set_init(bio, 1);
	SSL_set_bio(p->ssl, bio, bio);
	p->tls = t;
	p->generation = t->generation;
	if (t->side == LS_TLS_COLLECTOR) {
		SSL_set_accept_state(p->ssl);
	} else {
		ERR_clear_error();
		SSL_set_connect_state(p->ssl);
		if (t->session != NULL)
			(void)SSL_set_session(p->ssl, t->session); /* else a full one */
		(void)SSL_do_handshake(p->ssl); /* its first bytes, waits for more */
	}
	*ret_peer = p;
	return 0;
}

void
ls_tls_peer_free(struct ls_tls_peer *p)
{
	SSL_SESSION *session;

	if (p == NULL)
		return;
	if (p->tls != NULL && p->tls->side == LS_TLS_AGENT && p->heard) {
		/* Else OpenSSL takes a connection that just ends for an attack. */
		SSL_set_shutdown(p->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
		session =
			p->told.fault == LS_TLS_NONE ? SSL_get1_session(p->ssl) : NULL;
		SSL_SESSION_free(p->tls->session);
		p->tls->session = session;
	}
	SSL_free(p->ssl);
	free(p->in.data);
	free(p->out.data);
	free(p);
}

/* Not accepted. */
static int
tls_end(struct ls_tls_peer *p, enum ls_tls_fault fault, const char *why)
{
	p->told.fault = fault;
	(void)snprintf(p->told.why, sizeof(p->told.why), "%s", why);
	return -EPROTO;
}

int
ls_tls_peer_feed(struct ls_tls_peer *p, const uint8_t *bytes, size_t len)
{
	/* An alert of TLS: protocol_version. A plain agent says then what is wrong. */
	static const uint8_t alert[] = { TLS_ALERT, 3, 3, 0, 2, 2, 70 };
	bool agent = p->tls->side == LS_TLS_AGENT;

	if (len == 0 || p->told.fault != LS_TLS_NONE)
		return p->told.fault == LS_TLS_NONE ? 0 : -EPROTO;
	if (!p->begun && bytes[0] != TLS_HANDSHAKE &&
		!(agent && bytes[0] == TLS_ALERT)) {
		if (!agent)
			(void)tls_append(&p->out, alert, sizeof(alert));
		return tls_end(p, LS_TLS_PLAIN,
			agent ? "does not speak TLS: give that collector --keys, or "
				"remove --keys here"
			      : "does not speak TLS: give that agent --keys");
	}
	p->begun = true;
	return tls_append(&p->in, bytes, len) ? 0 : -ENOMEM;
}

/* The handshake is over: who is it? */
static int
tls_settle(struct ls_tls_peer *p)
{
	X509 *cert = SSL_get_peer_certificate(p->ssl);

	if (cert == NULL)
		return tls_end(p, LS_TLS_CERTIFICATE, "has no certificate");
	tls_name(cert, p->told.name, sizeof(p->told.name));
	p->until = tls_time(X509_get0_notAfter(cert));
	p->told.resumed = SSL_session_reused(p->ssl) == 1;
	if (p->tls->side == LS_TLS_COLLECTOR && p->told.name[0] == '\0') {
		(void)tls_end(p, LS_TLS_CERTIFICATE,
			"has a certificate without a DNS name");
	} else if (ls_clock_wall_ns() / 1000000000 >= p->until) {
		p->told.fault = LS_TLS_CERTIFICATE;
		tls_describe(cert, X509_V_ERR_CERT_HAS_EXPIRED,
			"has no valid certificate: the ", p->told.why,
			sizeof(p->told.why));
	}
	X509_free(cert);
	p->told.ready = p->told.fault == LS_TLS_NONE;
	return p->told.ready ? 0 : -EPROTO;
}

/* An alert about a certificate: RFC 8446, 6.2. */
static bool
tls_is_about_certificate(int alert)
{
	return (alert >= SSL3_AD_BAD_CERTIFICATE && alert <= TLS1_AD_ACCESS_DENIED) ||
		alert == TLS1_AD_DECRYPT_ERROR ||
		alert == TLS13_AD_CERTIFICATE_REQUIRED;
}

/* SSL_read or SSL_do_handshake returned rc: 0, more is needed, or it is the end. */
static int
tls_outcome(struct ls_tls_peer *p, int rc)
{
	unsigned long e;
	int reason;
	char why[LS_TLS_TEXT_MAX_BYTES];

	rc = SSL_get_error(p->ssl, rc);
	if (rc == SSL_ERROR_WANT_READ)
		return 0;
	if (p->told.fault != LS_TLS_NONE) /* tls_on_verify said it */
		return -EPROTO;
	if (rc == SSL_ERROR_ZERO_RETURN)
		return tls_end(p, LS_TLS_BROKEN, "ends the connection");
	e = ERR_peek_error();
	reason = ERR_GET_LIB(e) == ERR_LIB_SSL ? ERR_GET_REASON(e) : 0;
	if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
		return tls_end(p, LS_TLS_CERTIFICATE,
			"has no certificate: lockstep keys makes one");
	if (!tls_is_about_certificate(reason - SSL_AD_REASON_OFFSET)) {
		(void)snprintf(why, sizeof(why), "breaks the rules of TLS: %s",
			ERR_reason_error_string(e) != NULL ? ERR_reason_error_string(e)
							   : "no reason is known");
		return tls_end(p, LS_TLS_BROKEN, why);
	}
	(void)snprintf(why, sizeof(why),
		"does not accept our certificate: %s; see the log there",
		SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET));
	return tls_end(p, LS_TLS_CERTIFICATE, why);
}

int
ls_tls_peer_read(struct ls_tls_peer *p, uint8_t *buf, size_t size, size_t *ret_len)
{
	size_t len = 0;
	int rc = 1;

	*ret_len = 0;
	if (p->told.fault != LS_TLS_NONE)
		return -EPROTO;
	if (ERR_peek_error() != 0) /* of others on this thread */
		ERR_clear_error();
	if (!p->told.ready) {
		rc = SSL_do_handshake(p->ssl);
		rc = rc == 1 ? tls_settle(p) : tls_outcome(p, rc);
		if (rc != 0 || !p->told.ready)
			return rc;
		rc = 1;
	}
	while (rc > 0 && len < size && ls_tls_peer_holds(p)) {
		rc = SSL_read(p->ssl, buf + len, (int)(size - len));
		len += rc > 0 ? (size_t)rc : 0;
	}
	if (rc <= 0)
		rc = tls_outcome(p, rc);
	p->heard = p->heard || len > 0;
	*ret_len = len;
	return rc < 0 && len == 0 ? rc : 0; /* the error comes again */
}

int
ls_tls_peer_write(struct ls_tls_peer *p, const uint8_t *buf, size_t len)
{
	if (p->told.fault != LS_TLS_NONE)
		return -EPROTO;
	if (!p->told.ready || (p->tls->side == LS_TLS_AGENT && !p->heard))
		return -EAGAIN;
	if (ERR_peek_error() != 0) /* of others on this thread */
		ERR_clear_error();
	return SSL_write(p->ssl, buf, (int)len) == (int)len ? 0 : -ENOMEM;
}

bool
ls_tls_peer_holds(const struct ls_tls_peer *p)
{
	return p->in.data != NULL || SSL_has_pending(p->ssl) == 1;
}

size_t
ls_tls_peer_waiting(const struct ls_tls_peer *p)
{
	return p->out.len;
}

struct ls_tls_bytes
ls_tls_peer_take(struct ls_tls_peer *p)
{
	struct ls_tls_bytes taken = p->out;

	p->out = (struct ls_tls_bytes){ .data = NULL };
	return taken;
}

bool
ls_tls_peer_is_trusted(struct ls_tls_peer *p)
{
	X509 *cert;
	int code;

	if (p->generation == p->tls->generation &&
		ls_clock_wall_ns() / 1000000000 < p->until)
		return true;
	cert = SSL_get_peer_certificate(p->ssl);
	code = tls_verify(p->tls->ctx, cert, SSL_get_peer_cert_chain(p->ssl),
		p->tls->side == LS_TLS_AGENT ? LS_TLS_COLLECTOR : LS_TLS_AGENT, 0);
	if (code != X509_V_OK) {
		p->told.fault = LS_TLS_CERTIFICATE;
		tls_describe(cert, code, "has no valid certificate any more: the ",
			p->told.why, sizeof(p->told.why));
	}
	X509_free(cert);
	p->generation = p->tls->generation;
	return code == X509_V_OK;
}

const struct ls_tls_told *
ls_tls_peer_tell(const struct ls_tls_peer *p)
{
	return &p->told;
}
