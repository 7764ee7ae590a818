/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data - input files: samples labelled by a hidden network, one shard a rank, and their
 * reader.
 *
 * A shard is DATA_SAMPLES rows of DATA_INPUTS + DATA_OUTPUTS floats. A slow reader is
 * one that has lost its index: it reads and checksums many MiB of its shard to find a
 * batch, past the page cache.
 *
 * Owner:   the parent makes the files; each rank reads its own.
 * Units:   sizes in bytes.
 * Errors:  0 or -errno.
 * Limits:  none.
 */
#ifndef LS_TESTS_WORKLOAD_DATA_H
#define LS_TESTS_WORKLOAD_DATA_H

#include <stdint.h>
#include "proto/base/err.h"

#define DATA_INPUTS 64u
#define DATA_OUTPUTS 8u
#define DATA_SAMPLES 8192u

struct data_reader {
	int fd;
	unsigned batch;
	float *rows; /* a batch as it lies in the file */
	float *inputs, *labels;
	uint8_t *scan; /* room of the slow way */
	uint64_t scanned_bytes;
	/* of what was scanned: it must be used, or it would not be read */
	uint32_t checksum;
};

/* Writes shard `rank` into the directory; the same seed gives the same bytes. */
int data_make_shard(const char *dir, unsigned rank, uint64_t seed) LS_MUSTCHECK;

/* Opens shard `rank`. Close it after a failure too. */
int data_reader_open(struct data_reader *r, const char *dir, unsigned rank,
	unsigned batch) LS_MUSTCHECK;

/* Reads the batch of a step into inputs and labels; scan_mib > 0: the slow way. */
int data_reader_read(struct data_reader *r, uint64_t step,
	unsigned scan_mib) LS_MUSTCHECK;

/* Closes and frees. */
void data_reader_close(struct data_reader *r);

/* Name of a shard's file. */
void data_shard_path(char *dst, unsigned size, const char *dir, unsigned rank);

#endif
