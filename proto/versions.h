/* SPDX-License-Identifier: Apache-2.0 */
/*
 * versions - the libraries that a program was built with, as text.
 *
 * Of their headers: asking the libraries would load all of them into every program.
 */
#ifndef LS_VERSIONS_H
#define LS_VERSIONS_H

#include <event2/event-config.h>
#include <nng/nng.h>
#include <protobuf-c/protobuf-c.h>
#include <sqlite3.h>

#define LS_VERSIONS_TEXT(n) LS_VERSIONS_NUMBER(n)
#define LS_VERSIONS_NUMBER(n) #n
#define LS_LIBRARIES                                                                                          \
	"libevent " EVENT__VERSION                                                                            \
	", nng " LS_VERSIONS_TEXT(NNG_MAJOR_VERSION) "." LS_VERSIONS_TEXT(                                    \
		NNG_MINOR_VERSION) "." LS_VERSIONS_TEXT(NNG_PATCH_VERSION) ", protobuf-c " PROTOBUF_C_VERSION \
									   ", SQLite " SQLITE_VERSION

#endif
