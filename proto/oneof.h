/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oneof - the last value of an enum that protoc-c makes for a oneof.
 *
 * It is no case of the oneof, but a switch over the enum must name it. protobuf-c 1.4
 * changed its name.
 */
#ifndef LS_ONEOF_H
#define LS_ONEOF_H

#include <protobuf-c/protobuf-c.h>

#if PROTOBUF_C_VERSION_NUMBER >= 1004000
#define LS_ONEOF_END(oneof) _##oneof##__CASE_IS_INT_SIZE
#else
#define LS_ONEOF_END(oneof) _##oneof##_IS_INT_SIZE
#endif

#endif
