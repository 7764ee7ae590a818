/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls - TLS 1.3 with certificates on both sides, over memory: bytes in, bytes out.
 *
 * The keys of one side are files in one directory, in PEM:
 *
 *	ca.pem                          certificates that sign those of the other side
 *	collector.pem, collector.key    of a collector
 *	NAME.pem, NAME.key              of the agent of host NAME, else agent.pem, agent.key
 *	crl.pem                         certificates that are revoked; may be absent at the start
 *
 * They are read again when their contents changed (ls_tls_look). Connections keep what
 * they began with until ls_tls_peer_is_trusted checks them against the new files. A
 * collector makes the keys of its session tickets from the contents of its files, so that
 * agents resume their sessions after it restarts, and after no change of a file.
 *
 * Owner:   struct ls_tls and ls_tls_peer_new, _free: the loop thread. Else a peer belongs
 *          to one thread at a time.
 * Units:   bytes.
 * Errors:  -EAGAIN the handshake is not over, -EPROTO the peer is not accepted
 *          (ls_tls_peer_tell), -EACCES, -EINVAL, -errno for files, -ENOMEM.
 * Limits:  LS_TLS_CHAIN_MAX_BYTES of certificates, LS_TLS_SESSION_S a session.
 * Source:  RFC 8446, SSL_read(3), SSL_CTX_set_verify(3) of OpenSSL 1.1.1 and later,
 *          permissions of key files: PostgreSQL, section "Secure TCP/IP Connections with
 *          SSL".
 */
#ifndef LS_PROTO_TLS_H
#define LS_PROTO_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

/*
 * A caller that defines LS_TLS_OPTIONAL does not bring tls.o, libssl and libcrypto into
 * its program: ls_tls_open is NULL there, unless others bring it. Without an open ls_tls
 * nothing else is called.
 */
#ifdef LS_TLS_OPTIONAL
#pragma weak ls_tls_open
#pragma weak ls_tls_check
#pragma weak ls_tls_look
#pragma weak ls_tls_problem
#pragma weak ls_tls_close
#pragma weak ls_tls_peer_new
#pragma weak ls_tls_peer_free
#pragma weak ls_tls_peer_feed
#pragma weak ls_tls_peer_read
#pragma weak ls_tls_peer_write
#pragma weak ls_tls_peer_holds
#pragma weak ls_tls_peer_waiting
#pragma weak ls_tls_peer_take
#pragma weak ls_tls_peer_is_trusted
#pragma weak ls_tls_peer_tell
#endif

struct ls_tls;
struct ls_tls_peer;

/* LS_TLS_WEB: the HTTP side of a collector, with its certificate, asks clients for none. */
enum ls_tls_side { LS_TLS_AGENT, LS_TLS_COLLECTOR, LS_TLS_WEB };

/* Why a peer is not accepted. */
enum ls_tls_fault {
	LS_TLS_NONE,
	LS_TLS_PLAIN, /* it does not speak TLS */
	LS_TLS_CERTIFICATE, /* it has no valid certificate, or does not accept ours */
	LS_TLS_BROKEN /* anything else */
};

struct ls_tls_told {
	char name
		[LS_HOST_NAME_MAX_BYTES]; /* the first DNS name in its certificate, or "" */
	bool ready; /* the handshake is over, and well */
	bool resumed; /* the handshake resumed a session */
	enum ls_tls_fault fault;
	/* the same as the end of a sentence about the other side, escaped; "": nothing */
	char why[LS_TLS_TEXT_MAX_BYTES];
};

/* Encrypted bytes. The first `at` of them were read already; data is NULL if there are none. */
struct ls_tls_bytes {
	uint8_t *data;
	size_t len, at;
};

/*
 * Reads the keys of `side` in dir. name: of this host; "" for a collector. A failure is
 * logged: which file, what is wrong and how to fix it. dir "": plain, and *ret_tls is
 * untouched.
 */
int ls_tls_open(enum ls_tls_side side, const char *dir, const char *name,
	struct ls_tls **ret_tls) LS_MUSTCHECK;

/*
 * What ls_tls_open would log of these keys; text "": nothing. 0: nothing is wrong, 1: a
 * certificate or a list expires within LS_KEYS_WARN_S, else the keys cannot be used, or the
 * other side will refuse them: -EINVAL, -ENOMEM, -ENAMETOOLONG.
 */
int ls_tls_check(enum ls_tls_side side, const char *dir, const char *name, char *text,
	size_t size) LS_MUSTCHECK;

/*
 * Reads the files again if their contents changed. 1: the new ones are in force, 0: no
 * change. On failure those of before stay in force, and the next call tries again. Each
 * new outcome is logged. Accepts NULL.
 */
int ls_tls_look(struct ls_tls *t);

/*
 * What is wrong with the files or with our own certificate, and how to fix it; "":
 * nothing, or t is NULL.
 */
const char *ls_tls_problem(const struct ls_tls *t);

/*
 * The Unix time at which the first of our own certificate, the authorities and the list of
 * revoked certificates ends; 0: t is NULL.
 */
int64_t ls_tls_until_s(const struct ls_tls *t);

/* A connection of LS_TLS_WEB for libevent, which frees it; NULL: out of memory. */
struct ssl_st *ls_tls_new_web(struct ls_tls *t);

/* Peers must be freed first. Accepts NULL. */
void ls_tls_close(struct ls_tls *t);

/*
 * One connection. host: name or numeric address that the certificate of the other side
 * must have; NULL for a collector, which accepts each name. An agent has bytes to take at
 * once.
 */
int ls_tls_peer_new(struct ls_tls *t, const char *host,
	struct ls_tls_peer **ret_peer) LS_MUSTCHECK;
/* Keeps the session of an agent for its next connection. Accepts NULL. */
void ls_tls_peer_free(struct ls_tls_peer *p);

/* Bytes that came. */
int ls_tls_peer_feed(struct ls_tls_peer *p, const uint8_t *bytes,
	size_t len) LS_MUSTCHECK;
/* What they mean, at most `size` bytes; 0: nothing yet. The handshake happens here. */
int ls_tls_peer_read(struct ls_tls_peer *p, uint8_t *buf, size_t size,
	size_t *ret_len) LS_MUSTCHECK;
/*
 * Encrypts; the result is there to take. -EAGAIN: not yet. An agent waits for the first
 * bytes of the collector, which show that its own certificate is accepted.
 */
int ls_tls_peer_write(struct ls_tls_peer *p, const uint8_t *buf,
	size_t len) LS_MUSTCHECK;
/* True if bytes came that ls_tls_peer_read has not given out, perhaps part of a record. */
bool ls_tls_peer_holds(const struct ls_tls_peer *p);
/* How many bytes there are to send. */
size_t ls_tls_peer_waiting(const struct ls_tls_peer *p);
/* Takes all of them. The caller frees data. */
struct ls_tls_bytes ls_tls_peer_take(struct ls_tls_peer *p);

/*
 * True if the certificate of the other side is still valid, by the files of now. Else the
 * connection must end, and ls_tls_peer_tell says why.
 */
bool ls_tls_peer_is_trusted(struct ls_tls_peer *p);
/* What is known of the other side. Borrowed, and kept up to date. */
const struct ls_tls_told *ls_tls_peer_tell(const struct ls_tls_peer *p);

#endif
