/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_file - whole bytes to and from the files of spool and minute.
 *
 * Owner:   the caller of the spool.
 * Units:   bytes.
 * Errors:  -errno; after a failed write the file may hold a part of it.
 * Limits:  none.
 */
#ifndef LS_AGENT_SPOOL_FILE_H
#define LS_AGENT_SPOOL_FILE_H

#include <sys/types.h>
#include "agent/spool/spool_format.h"

/* Writes all bytes at offset. */
int ls_spool_pwrite(int fd, const uint8_t *bytes, size_t len,
	uint64_t offset) LS_MUSTCHECK;

/* Size of the log that was set aside as damaged; 0: there is none. */
uint64_t ls_spool_damaged_bytes(int dir_fd);

#endif
