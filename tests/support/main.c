/* SPDX-License-Identifier: Apache-2.0 */
/* main() of every check program; in a library of its own, for fuzzers have another. */
#include "config.h"

#include "tests/support/harness.h"

int
main(void)
{
	return ls_test_run();
}
