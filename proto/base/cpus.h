/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpus - the number of CPUs that libraries of this program count.
 *
 * nng starts threads by the number of CPUs that sysconf(3) returns: 266 on a host of 240.
 * nng 1.5 to 1.8 have no setting for it, and an affinity mask does not help, because glibc
 * counts what is online. A program that calls ls_cpus_limit has a sysconf(3) of its own,
 * which is found before the C library's and differs in _SC_NPROCESSORS_ONLN alone.
 *
 * Owner:   main, before any thread starts.
 * Units:   CPUs.
 * Errors:  none.
 * Limits:  none.
 * Source:  ld.so(8): symbols of the executable come first; glibc's libc.map and libc.a,
 *          where sysconf is weak and __sysconf is the function.
 */
#ifndef LS_CPUS_H
#define LS_CPUS_H

/* From here on sysconf(_SC_NPROCESSORS_ONLN) returns at most max. */
void ls_cpus_limit(long max);

#endif
