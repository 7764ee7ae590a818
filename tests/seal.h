/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal - makes the checksums of spool and minute files right, so that a fuzzer sees what stands behind them.
 *
 * Owner:   fuzz targets. A pure function.
 * Units:   bytes.
 * Errors:  none: bytes that do not look like records are left alone.
 * Limits:  none of its own.
 * Source:  agent/README.md, "The spool" and "The minute file".
 */
#ifndef LS_TESTS_SEAL_H
#define LS_TESTS_SEAL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Both files begin with a header of 64 bytes whose last four are its checksum; each record begins with
 * record_bytes: checksum of what follows of them, checksum of the payload, its length.
 */
void seal_file(uint8_t *data, size_t size, size_t record_bytes);

#endif
