/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

/*
 * How many CPUs nng believes in.
 *
 * nng 1.5.2 starts threads by the number of CPUs that sysconf(3) tells (one for
 * time-outs each, two for tasks each up to 16) and has no setting for it; an affinity
 * mask does not help, because glibc 2.36 counts what is online. The agent has one
 * connection and one exchange at a time, so one CPU's worth of threads is enough. A
 * function of the program wins over libc's for shared libraries too; this one is for
 * lockstep-agent alone, and changes nothing but that one number.
 *
 * Source: ld.so(8), symbols of the executable come first; measured: agent/README.md,
 *         "Threads".
 */
enum { THREADS_CPUS = 1 };

long sysconf(int name); /* unistd.h's own attributes are not wanted on a definition */

long
sysconf(int name)
{
	/* each time: asked a few times at start, no more */
	void *found = dlsym(RTLD_NEXT, "sysconf");
	long (*libc_sysconf)(int);
	long value;

	if (found == NULL) {
		errno = EINVAL;
		return -1;
	}
	*(void **)&libc_sysconf = found; /* POSIX, dlsym: how a function is had */
	value = libc_sysconf(name);
	if (name == _SC_NPROCESSORS_ONLN && value > THREADS_CPUS)
		return THREADS_CPUS;
	return value;
}
