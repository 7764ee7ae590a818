/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal - makes checksums right, so that a test or a fuzzer sees what stands behind
 * them.
 *
 * Owner:   test programs and fuzz targets.
 * Units:   bytes.
 * Errors:  bytes that do not look like records are left alone; a file that cannot be
 *          written aborts.
 * Limits:  none of its own.
 * Source:  proto/FORMAT.md, "Spool" and "Minute file"; storage/README.md,
 *          "Columns".
 */
#ifndef LS_TESTS_SEAL_H
#define LS_TESTS_SEAL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Both files begin with a header of 64 bytes whose last four are its checksum; each
 * record begins with record_bytes: checksum of what follows of them, checksum of the
 * payload, its length.
 */
void seal_file(uint8_t *data, size_t size, size_t record_bytes);

/* Writes an input of a fuzzer as such a file: after an 's' with its checksums made
 * right. */
void seal_write(const char *path, const uint8_t *data, size_t size,
	size_t record_bytes);

/* Packed rows: their last four bytes are the checksum of all before. len is at least 4.
 */
void seal_body(uint8_t *body, size_t len);

#endif
