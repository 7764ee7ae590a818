/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness - what every check_*.c shares: tests that register themselves, files of the
 * tests.
 *
 *	LS_CASE(spool, setup, teardown);
 *
 *	LS_TEST(spool, full_spool_drops_the_oldest)
 *	{
 *		...
 *	}
 *
 * The suite is named like the program without "check_"; main() is in main.c.
 *
 * Owner:   test programs.
 * Units:   none.
 * Errors:  ls_test_run returns the exit status.
 * Limits:  LS_TEST_TIMEOUT_S a test, or $CK_DEFAULT_TIMEOUT: for a test that hangs. Waits
 *          of a test have no time-out of their own, which a busy machine would exceed.
 */
#ifndef LS_TESTS_HARNESS_H
#define LS_TESTS_HARNESS_H

#include <check.h>
#include <stdint.h>

#define LS_TEST_TIMEOUT_S 300

/* So many choices of random numbers; one where a sanitizer makes each of them slow, and with LS_TEST_FEW: there one looks for wrong
 * accesses, or for what another system does otherwise, and not for what errs seldom. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(LS_TEST_FEW)
#define LS_TEST_FEW
#endif
#endif
#if defined(LS_TEST_FEW) || defined(__SANITIZE_ADDRESS__)
#define LS_TEST_SEEDS(n) 1
#else
#define LS_TEST_SEEDS(n) (n)
#endif

struct ls_test_case {
	const char *name;
	void (*setup)(void); /* before each test, in its process; NULL: nothing */
	void (*teardown)(void);
	TCase *tcase; /* made by its first test */
};

/* A named group of tests with the same fixture: LS_CASE(name[, setup, teardown]). */
#define LS_CASE(case_, ...) \
	static struct ls_test_case ls_case_##case_ = { .name = #case_, __VA_ARGS__ }

/* A test; its body follows. */
#define LS_TEST(case_, name_) LS_TEST_REGISTER(case_, name_, 0, 0, 1)
/* The body runs for each _i from first up to, not including, end. */
#define LS_TEST_LOOP(case_, name_, first_, end_) \
	LS_TEST_REGISTER(case_, name_, 0, first_, end_)
/* The body runs for the index _i of each element of the array. */
#define LS_TEST_EACH(case_, name_, array_) \
	LS_TEST_REGISTER(case_, name_, 0, 0, sizeof(array_) / sizeof((array_)[0]))
/* The body must end by the signal; left out where tests do not fork. */
#define LS_TEST_SIGNAL(case_, name_, signal_) \
	LS_TEST_REGISTER(case_, name_, signal_, 0, 1)

#define LS_TEST_REGISTER(case_, name_, signal_, first_, end_)                         \
	static void name_##_fn(int _i);                                               \
	__attribute__((constructor)) static void name_##_register(void)               \
	{                                                                             \
		static const TTest test = { #name_, name_##_fn, __FILE__, __LINE__ }; \
                                                                                      \
		ls_test_register(&ls_case_##case_, &test, signal_, (int)(first_),     \
			(int)(end_));                                                 \
	}                                                                             \
	static void name_##_fn(int _i __attribute__((unused)))

/* Adds a test to its case and the case to the suite. Called before main() by the macros
 * above, in the order of the file. */
void ls_test_register(struct ls_test_case *c, const TTest *test, int signal, int first,
	int end);

/* Runs the registered tests, prints TAP on stdout; 0 if there are some and all passed. */
int ls_test_run(void);

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
