/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_rig - a server on a free port of this machine, with answers from files, and clients
 * of it that send and read bytes: for check_httpd*.c.
 *
 * Owner:   the test's thread, which is also the server's loop.
 * Units:   seconds, bytes.
 * Errors:  fail the test.
 * Limits:  RIG_ANSWER_MAX.
 */
#ifndef LS_TESTS_HTTP_RIG_H
#define LS_TESTS_HTTP_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include "proto/base/loop.h"
#include "tests/unit/web/http/fake_backend.h"
#include "web/http/httpd.h"

#define RIG_ANSWER_MAX (1024 * 1024)

extern struct ls_loop *rig_loop;
extern struct ls_httpd *rig_httpd;
extern struct fake_backend rig_backend;
extern char rig_answer[RIG_ANSWER_MAX]; /* the last one, with its headers */

/* timeout_s 0: that of the product. */
void rig_start(unsigned timeout_s);
/* Fixture of a test. */
void rig_setup(void);
void rig_teardown(void);

/* Turns the server's loop once. */
void rig_pump(void);
/* The same; true if there is something to read. */
bool rig_turn(int fd);

int rig_connect(void);
void rig_send(int fd, const char *text);
/* Runs the server until it has closed; what came is at *len of rig_answer. */
void rig_read(int fd, size_t *len);
/* Runs the server until the backend holds so many answers back. */
void rig_hold(size_t count);

/* One exchange on one connection; the status. headers: lines with their ends. */
int rig_ask_raw(const char *text);
int rig_ask(const char *method, const char *path, const char *headers);
int rig_get(const char *path);

/* Whether rig_answer has this, in any case. */
bool rig_has(const char *text);
/* The answer behind its headers. */
const char *rig_body(void);

#endif
