/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes - numbers in files: little-endian on every machine, and the checksum of what is
 * written.
 *
 * Owner:   pure functions.
 * Units:   bytes.
 * Errors:  none; the caller has looked at the length.
 * Limits:  numbers of 1 to 8 bytes.
 * Source:  CRC-32 as zlib and gzip have it (RFC 1952, section 8).
 */
#ifndef LS_BASE_BYTES_H
#define LS_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* Writes the low `bytes` bytes of v, the least first. */
void ls_bytes_put(uint8_t *p, uint64_t v, unsigned bytes);

/* Reads a number of so many bytes. */
uint64_t ls_bytes_get(const uint8_t *p, unsigned bytes);

/* The CRC-32 of len bytes; 0 of none. */
uint32_t ls_bytes_crc(const uint8_t *p, size_t len);

#endif
