/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/cpus.h"

#include <limits.h>
#include <unistd.h>

static long cpus_max = LONG_MAX;

/* glibc's own name for sysconf, whose other name is weak. */
long __sysconf(int name);
long sysconf(int name); /* the attributes of unistd.h do not fit a definition */

void
ls_cpus_limit(long max)
{
	cpus_max = max;
}

long
sysconf(int name)
{
	long value = __sysconf(name);

	return name == _SC_NPROCESSORS_ONLN && value > cpus_max ? cpus_max : value;
}
