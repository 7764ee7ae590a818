/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_stall - the newest file in which libtpu says where its cores were when they
 * stalled: tpu_stall_summary_*.pb below --stall-dir.
 *
 * The directory is a path of the job: only the disk thread opens and reads it, every
 * LS_STALL_LOOK_NS. A new file is logged with its time, and the doctor lists its cores:
 * program, program counter, tracemark, and the HLO location where the file has one. A
 * file that is no such message is reported by name, and costs nothing else. A file with
 * a time to come is skipped; a file that is removed is forgotten.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   ns, CLOCK_MONOTONIC. File times are CLOCK_REALTIME.
 * Errors:  -ENOMEM.
 * Limits:  LS_STALL_ENTRIES_MAX entries, LS_STALL_FILE_MAX_BYTES a file, regular files
 *          only, LS_TPU_CORES_MAX cores, of which LS_STALL_CORES_SHOWN are listed.
 * Source:  the message: proto/tpu_runtime.proto, StallSummary (read back by the maker's
 *          SDK from a file made by hand). Where libtpu writes these files is not
 *          documented.
 */
#ifndef LS_AGENT_SOURCE_STALL_H
#define LS_AGENT_SOURCE_STALL_H

#include "agent/collect/source.h"
#include "agent/spool/disk.h"
#include "proto/limits.h"

/* Makes the source for a directory. disk is borrowed, NULL: it is read on the loop. */
int ls_source_stall_new(const char *dir, struct ls_disk *disk,
	struct ls_source *ret_source) LS_MUSTCHECK;

/*
 * The time of the newest file, and where its i-th core stood, escaped and cut to size:
 * "2026-11-21T02:12:34.980Z core 3 of chip 1 ...". "": it has no such core.
 */
void ls_source_stall_core(const struct ls_source *source, size_t i, char *text,
	size_t size);

#endif
