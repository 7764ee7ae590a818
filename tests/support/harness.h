/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness - what every check_*.c shares: run a suite with TAP on stdout, find files of
 * the tests.
 *
 * Owner:   test programs.
 * Units:   none.
 * Errors:  ls_test_run returns the exit status.
 * Limits:  none.
 */
#ifndef LS_TESTS_HARNESS_H
#define LS_TESTS_HARNESS_H

#include <check.h>
#include <stdint.h>

/* Runs the suite, prints TAP on stdout; 0 if all passed. main() of every check program
 * returns it. */
int ls_test_run(Suite *suite);

/* Path of a file below the source tree ("tests/golden/x"), from $top_srcdir or ".";
 * static buffer. */
const char *ls_test_source(const char *path);

/*
 * Makes a fresh private directory below $TMPDIR (or /tmp); ls_test_run removes it with
 * all in it when the suite has run. Only inside tests and fixtures; static buffer.
 */
const char *ls_test_tmpdir(void);

/* Reads a whole file; malloc'ed, NUL-terminated beyond *ret_len; fails the test if it
 * cannot. */
char *ls_test_read(const char *path, size_t *ret_len);

/* The next number of a sequence, between 0 and 1 and neither of them: the same from the
 * same state. */
double ls_test_random(uint64_t *state);

#endif
