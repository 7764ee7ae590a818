/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/keys.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEYS_SERIAL_BITS 127 /* RFC 5280, 4.1.2.2: at most 20 bytes, positive */
#define KEYS_ID_BYTES 64 /* of it as OpenSSL writes it: 0x and 32 digits */
#define KEYS_CA_S (10 * 365 * 86400ll)
#define KEYS_LINE_BYTES (LS_HOST_NAME_MAX_BYTES + KEYS_ID_BYTES + 2)

/* The authority of a directory. */
struct keys_ca {
	const char *dir;
	X509 *cert;
	EVP_PKEY *key;
};

static int
keys_fail(int rc, const char *what, const char *name, char *text, size_t size)
{
	const char *why = ERR_reason_error_string(ERR_peek_error());

	(void)snprintf(text, size, "%s: %s (%s)", name, what,
		why != NULL ? why : ls_err_text(rc));
	return rc;
}

/* --- files ---------------------------------------------------------------- */

/* mode: "r", "a", or "w" for a file that is not there yet. */
static FILE *
keys_open(const char *dir, const char *file, const char *suffix, const char *mode)
{
	char path[LS_PATH_MAX_BYTES];
	int flags = mode[0] == 'r' ? O_RDONLY
		: mode[0] == 'a'   ? O_WRONLY | O_CREAT | O_APPEND
				   : O_WRONLY | O_CREAT | O_EXCL;
	int fd = -1;

	if (snprintf(path, sizeof(path), "%s/%s%s", dir, file, suffix) <
		(int)sizeof(path))
		fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	else
		errno = ENAMETOOLONG;
	return fd >= 0 ? fdopen(fd, mode) : NULL;
}

/* What `put` writes, under its name; certificates are for everyone. */
static int
keys_write(const char *dir, const char *file, void *object,
	int (*put)(FILE *f, void *o))
{
	bool secret = strcmp(file + strlen(file) - 4, ".key") == 0;
	char from[LS_PATH_MAX_BYTES + 8], to[LS_PATH_MAX_BYTES];
	FILE *f;
	bool ok;
	int rc;

	(void)snprintf(to, sizeof(to), "%s/%s", dir, file); /* keys_open fails then */
	(void)snprintf(from, sizeof(from), "%s.new", to);
	(void)unlink(from); /* perhaps of an attempt that was interrupted */
	errno = EIO; /* unless what fails says more */
	f = keys_open(dir, file, ".new", "w");
	ok = f != NULL && put(f, object) == 1 && fflush(f) == 0 &&
		fchmod(fileno(f), secret ? 0600 : 0644) == 0 && fsync(fileno(f)) == 0;
	if (f != NULL)
		ok = fclose(f) == 0 && ok;
	if (ok && rename(from, to) == 0)
		return 0;
	rc = -errno;
	(void)unlink(from); /* this failure is the second one */
	return rc;
}

static int
keys_put_cert(FILE *f, void *cert)
{
	return PEM_write_X509(f, cert);
}

static int
keys_put_key(FILE *f, void *key)
{
	return PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
}

static int
keys_put_crl(FILE *f, void *crl)
{
	return PEM_write_X509_CRL(f, crl);
}

static int
keys_open_ca(const char *dir, struct keys_ca *ca)
{
	FILE *cert = keys_open(dir, "ca.pem", "", "r"),
	     *key = keys_open(dir, "ca.key", "", "r");
	int rc = cert != NULL && key != NULL ? -LS_EPARSE : -errno;

	ca->dir = dir;
	ca->cert = cert != NULL ? PEM_read_X509(cert, NULL, NULL, NULL) : NULL;
	ca->key = key != NULL ? PEM_read_PrivateKey(key, NULL, NULL, NULL) : NULL;
	if (cert != NULL)
		(void)fclose(cert); /* only read from */
	if (key != NULL)
		(void)fclose(key);
	return ca->cert != NULL && ca->key != NULL &&
			X509_check_private_key(ca->cert, ca->key) == 1
		? 0
		: rc;
}

static void
keys_close_ca(struct keys_ca *ca)
{
	X509_free(ca->cert);
	EVP_PKEY_free(ca->key);
}

/* --- a certificate -------------------------------------------------------- */

static EVP_PKEY *
keys_new_key(void)
{
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
	EVP_PKEY *key = NULL;

	if (c == NULL || EVP_PKEY_keygen_init(c) != 1 ||
		EVP_PKEY_CTX_set_ec_paramgen_curve_nid(c, NID_X9_62_prime256v1) != 1 ||
		EVP_PKEY_CTX_set_ec_param_enc(c, OPENSSL_EC_NAMED_CURVE) != 1 ||
		EVP_PKEY_keygen(c, &key) != 1)
		key = NULL;
	EVP_PKEY_CTX_free(c);
	return key;
}

static bool
keys_extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX c = { 0 };
	X509_EXTENSION *e;
	bool ok;

	X509V3_set_ctx(&c, issuer, cert, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &c, nid, value);
	ok = e != NULL && X509_add_ext(cert, e, -1) == 1;
	X509_EXTENSION_free(e);
	return ok;
}

/* A certificate without purpose, not signed yet. issuer NULL: it signs itself. */
static X509 *
keys_new_cert(const char *name, EVP_PKEY *key, X509 *issuer, int64_t from_s,
	int64_t until_s)
{
	X509 *cert = X509_new();
	BIGNUM *serial = BN_new();
	bool ok = cert != NULL && serial != NULL && X509_set_version(cert, 2) == 1 &&
		BN_rand(serial, KEYS_SERIAL_BITS, BN_RAND_TOP_ONE,
			BN_RAND_BOTTOM_ANY) == 1 &&
		BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(cert)) != NULL &&
		ASN1_TIME_set(X509_getm_notBefore(cert), from_s) != NULL &&
		ASN1_TIME_set(X509_getm_notAfter(cert), until_s) != NULL &&
		(strlen(name) > ub_common_name ||
			X509_NAME_add_entry_by_NID(X509_get_subject_name(cert),
				NID_commonName, MBSTRING_ASC, (const uint8_t *)name, -1,
				-1, 0) == 1) &&
		X509_set_issuer_name(cert,
			X509_get_subject_name(issuer != NULL ? issuer : cert)) == 1 &&
		X509_set_pubkey(cert, key) == 1 &&
		keys_extend(cert, cert, NID_subject_key_identifier, "hash") &&
		keys_extend(cert, issuer != NULL ? issuer : cert,
			NID_authority_key_identifier, "keyid");

	BN_free(serial);
	if (ok)
		return cert;
	X509_free(cert);
	return NULL;
}

/* Says in a list of which authority it is, and that it is newer than the one before:
 * RFC 5280, 5.2.1 and 5.2.3. */
static bool
keys_number_list(const struct keys_ca *ca, X509_CRL *crl, int64_t now_s)
{
	ASN1_INTEGER *number = ASN1_INTEGER_new();
	X509_EXTENSION *e = NULL;
	X509V3_CTX c = { 0 };
	bool ok = number != NULL && ASN1_INTEGER_set_int64(number, now_s) == 1 &&
		X509_CRL_add1_ext_i2d(crl, NID_crl_number, number, 0,
			X509V3_ADD_REPLACE) == 1;

	ASN1_INTEGER_free(number);
	if (!ok || X509_CRL_get_ext_by_NID(crl, NID_authority_key_identifier, -1) >= 0)
		return ok;
	X509V3_set_ctx(&c, ca->cert, NULL, NULL, crl, 0);
	e = X509V3_EXT_conf_nid(NULL, &c, NID_authority_key_identifier, "keyid");
	ok = e != NULL && X509_CRL_add_ext(crl, e, -1) == 1;
	X509_EXTENSION_free(e);
	return ok;
}

/* The list of what is revoked, as of now. */
static int
keys_write_list(const struct keys_ca *ca, X509_CRL *crl, int64_t now_s)
{
	ASN1_TIME *from = ASN1_TIME_set(NULL, now_s - LS_KEYS_EARLY_S),
		  *until = ASN1_TIME_set(NULL, now_s + KEYS_CA_S);
	int rc = -EIO;

	if (from != NULL && until != NULL && X509_CRL_set_version(crl, 1) == 1 &&
		keys_number_list(ca, crl, now_s) &&
		X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->cert)) == 1 &&
		X509_CRL_set1_lastUpdate(crl, from) == 1 &&
		X509_CRL_set1_nextUpdate(crl, until) == 1 && X509_CRL_sort(crl) == 1 &&
		X509_CRL_sign(crl, ca->key, EVP_sha256()) > 0)
		rc = keys_write(ca->dir, "crl.pem", crl, keys_put_crl);
	ASN1_TIME_free(from);
	ASN1_TIME_free(until);
	return rc;
}

static bool
keys_has(const char *dir, const char *file)
{
	char path[LS_PATH_MAX_BYTES];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file); /* too long: no file */
	return access(path, F_OK) == 0;
}

int
ls_keys_init(const char *dir, int64_t now_s, char *text, size_t size)
{
	struct keys_ca ca = { .dir = dir };
	/* two authorities have two names: a list is found by the name */
	char name[] = "lockstep CA 0123456789abcdef";
	uint64_t number = 0;
	X509_CRL *crl;
	int rc = -EIO;

	ERR_clear_error();
	if (mkdir(dir, 0755) != 0 && errno != EEXIST)
		return keys_fail(-errno, "cannot make the directory", dir, text, size);
	if (keys_has(dir, "ca.key") && keys_has(dir, "ca.pem"))
		return 0;
	/* ca.pem is written last: ca.key alone has signed nothing, unless it is noted. */
	if (keys_has(dir, "ca.pem") || keys_has(dir, "issued"))
		return keys_fail(-EEXIST,
			"ca.pem or ca.key is missing: use the directory where keys init made them",
			dir, text, size);
	ca.key = keys_new_key();
	crl = X509_CRL_new();
	if (RAND_bytes((unsigned char *)&number, sizeof(number)) == 1)
		(void)snprintf(name, sizeof(name), "lockstep CA %016llx",
			(unsigned long long)number);
	if (ca.key != NULL && number != 0)
		ca.cert = keys_new_cert(name, ca.key, NULL, now_s - LS_KEYS_EARLY_S,
			now_s + KEYS_CA_S);
	if (crl != NULL && ca.cert != NULL &&
		keys_extend(ca.cert, ca.cert, NID_basic_constraints,
			"critical,CA:TRUE,pathlen:0") &&
		keys_extend(ca.cert, ca.cert, NID_key_usage,
			"critical,keyCertSign,cRLSign") &&
		X509_sign(ca.cert, ca.key, EVP_sha256()) > 0)
		rc = keys_write(dir, "ca.key", ca.key, keys_put_key);
	if (rc == 0)
		rc = keys_write_list(&ca, crl, now_s);
	if (rc == 0)
		rc = keys_write(dir, "ca.pem", ca.cert, keys_put_cert);
	if (rc != 0)
		(void)keys_fail(rc, "cannot make ca.pem and ca.key", dir, text, size);
	X509_CRL_free(crl);
	keys_close_ca(&ca);
	return rc;
}

/* A host name or numeric address that is a file name, and no other entry of a list. */
static bool
keys_is_name(const char *name)
{
	struct in6_addr any;
	size_t len = strlen(name);

	if (inet_pton(AF_INET6, name, &any) == 1)
		return true;
	return len > 0 && len < LS_HOST_NAME_MAX_BYTES &&
		isalnum((unsigned char)name[0]) &&
		strspn(name,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			"0123456789.-_") == len;
}

/* "DNS:NAME,IP:ADDRESS,..."; false: a name is none. An agent's name is always a name. */
static bool
keys_list_names(enum ls_tls_side side, const char *const *names, size_t count,
	char *list, size_t size)
{
	struct in6_addr any;
	size_t at = 0;

	for (size_t i = 0; i < count; i++) {
		bool ip = side == LS_TLS_COLLECTOR &&
			(inet_pton(AF_INET6, names[i], &any) == 1 ||
				inet_pton(AF_INET, names[i], &any) == 1);
		/* critical, as a long name stands nowhere else: RFC 5280, 4.1.2.6 */
		int n = snprintf(list + at, size - at, "%s%s:%s",
			i > 0					    ? ","
				: strlen(names[i]) > ub_common_name ? "critical,"
								    : "",
			ip ? "IP" : "DNS", names[i]);

		if (!keys_is_name(names[i]) || n >= (int)(size - at))
			return false;
		at += (size_t)n;
	}
	return count > 0;
}

/* One line more in `issued`. */
static int
keys_note(const char *dir, X509 *cert, const char *name)
{
	char *serial = i2s_ASN1_INTEGER(NULL, X509_get_serialNumber(cert));
	FILE *f = serial != NULL ? keys_open(dir, "issued", "", "a") : NULL;
	int rc = serial == NULL ? -ENOMEM
		: f != NULL && fprintf(f, "%s %s\n", serial, name) > 0 &&
			fflush(f) == 0 && fsync(fileno(f)) == 0
		? 0
		: -errno;

	if (f != NULL && fclose(f) != 0 && rc == 0)
		rc = -errno;
	OPENSSL_free(serial);
	return rc;
}

int
ls_keys_issue(const char *dir, enum ls_tls_side side, const char *const *names,
	size_t count, int64_t from_s, int64_t until_s, char *text, size_t size)
{
	bool agent = side == LS_TLS_AGENT;
	const char *name = agent && count > 0 ? names[0] : "collector";
	struct keys_ca ca = { .dir = dir };
	char list[LS_CONF_VALUE_MAX_BYTES * 4];
	char file[LS_HOST_NAME_MAX_BYTES + 8], key_file[LS_HOST_NAME_MAX_BYTES + 8];
	EVP_PKEY *key = NULL;
	X509 *cert = NULL;
	int rc;

	ERR_clear_error();
	if (!keys_list_names(side, names, count, list, sizeof(list)) ||
		(agent &&
			(strcmp(name, "ca") == 0 || strcmp(name, "collector") == 0 ||
				strcmp(name, "crl") == 0 ||
				strcmp(name, "agent") == 0)))
		return keys_fail(-LS_ERANGE,
			"is no name for a certificate: letters, digits, \".\", \"-\" and "
			"\"_\", at most 127; not ca, crl, collector, agent",
			count == 1 ? names[0] : "one of the names", text, size);
	(void)snprintf(file, sizeof(file), "%s.pem", name);
	(void)snprintf(key_file, sizeof(key_file), "%s.key", name);
	rc = keys_open_ca(dir, &ca);
	if (rc != 0) {
		(void)keys_fail(rc,
			"has no usable ca.pem and ca.key: run lockstep keys init, or use its directory",
			dir, text, size);
		goto out;
	}
	rc = -EIO;
	key = keys_new_key();
	if (key != NULL)
		cert = keys_new_cert(name, key, ca.cert, from_s, until_s);
	if (cert != NULL &&
		keys_extend(cert, ca.cert, NID_basic_constraints,
			"critical,CA:FALSE") &&
		keys_extend(cert, ca.cert, NID_key_usage,
			"critical,digitalSignature") &&
		keys_extend(cert, ca.cert, NID_ext_key_usage,
			agent ? "clientAuth" : "serverAuth") &&
		keys_extend(cert, ca.cert, NID_subject_alt_name, list) &&
		X509_sign(cert, ca.key, EVP_sha256()) > 0)
		rc = keys_note(dir, cert, name);
	if (rc == 0)
		rc = keys_write(dir, key_file, key, keys_put_key);
	if (rc == 0)
		rc = keys_write(dir, file, cert, keys_put_cert);
	if (rc != 0)
		(void)keys_fail(rc, "cannot be made", file, text, size);
out:
	EVP_PKEY_free(key);
	X509_free(cert);
	keys_close_ca(&ca);
	return rc;
}

/* --- revoking ------------------------------------------------------------- */

static bool
keys_add_revoked(X509_CRL *crl, const char *hex, int64_t now_s)
{
	X509_REVOKED *r = X509_REVOKED_new(), *old = NULL;
	ASN1_INTEGER *serial = s2i_ASN1_INTEGER(NULL, hex);
	ASN1_TIME *when = ASN1_TIME_set(NULL, now_s);
	bool there = serial != NULL && X509_CRL_get0_by_serial(crl, &old, serial) == 1;
	bool ok = there ||
		(r != NULL && serial != NULL && when != NULL &&
			X509_REVOKED_set_serialNumber(r, serial) == 1 &&
			X509_REVOKED_set_revocationDate(r, when) == 1 &&
			X509_CRL_add0_revoked(crl, r) == 1);

	if (!ok || there)
		X509_REVOKED_free(r);
	ASN1_INTEGER_free(serial);
	ASN1_TIME_free(when);
	return ok;
}

/* Adds every certificate of a name to crl; NULL: only counts them. Returns how many, or
 * -EIO or -errno. */
static int
keys_add_name(X509_CRL *crl, const char *dir, const char *name, int64_t now_s)
{
	FILE *f = keys_open(dir, "issued", "", "r");
	char line[KEYS_LINE_BYTES], *space;
	int count = f != NULL || errno == ENOENT ? 0 : -errno;

	while (f != NULL && count >= 0 && fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		space = strchr(line, ' ');
		if (space == NULL || strcmp(space + 1, name) != 0)
			continue;
		*space = '\0';
		count = crl == NULL || keys_add_revoked(crl, line, now_s) ? count + 1
									  : -EIO;
	}
	if (f != NULL)
		(void)fclose(f); /* only read from */
	return count;
}

int
ls_keys_revoke(const char *dir, const char *name, int64_t now_s, char *text,
	size_t size)
{
	struct keys_ca ca = { .dir = dir };
	FILE *f = keys_open(dir, "crl.pem", "", "r");
	X509_CRL *crl = f != NULL ? PEM_read_X509_CRL(f, NULL, NULL, NULL) : NULL;
	int rc = f != NULL ? -LS_EPARSE : -errno;
	int count = keys_add_name(NULL, dir, name, now_s);

	ERR_clear_error();
	if (count <= 0)
		rc = count < 0 ? count : -LS_EUNKNOWN;
	else if (crl != NULL)
		rc = keys_open_ca(dir, &ca);
	if (rc == 0)
		rc = keys_add_name(crl, dir, name, now_s);
	if (rc > 0)
		rc = keys_write_list(&ca, crl, now_s);
	if (rc == -LS_EUNKNOWN)
		(void)keys_fail(rc, "has no certificate by this directory", name, text,
			size);
	else if (rc != 0)
		(void)keys_fail(rc,
			"nothing is revoked, crl.pem cannot be made: this needs the ca.pem, "
			"ca.key, crl.pem and issued of keys init",
			dir, text, size);
	if (f != NULL)
		(void)fclose(f); /* only read from */
	X509_CRL_free(crl);
	keys_close_ca(&ca);
	return rc;
}
