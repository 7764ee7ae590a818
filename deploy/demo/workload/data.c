/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/workload/data.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "deploy/demo/workload/model.h"
#include "deploy/demo/workload/workload.h"

enum { ROW = DATA_INPUTS + DATA_OUTPUTS, HIDDEN = 16 };

#define DATA_SCAN_BYTES (256u * 1024)

void
data_shard_path(char *dst, unsigned size, const char *dir, unsigned rank)
{
	(void)snprintf(dst, size, "%s/shard-%u.bin", dir, rank);
}

/* The hidden network: what the job is to learn. */
static void
data_label(const float *hidden, const float *top, const float *x, float *y)
{
	float h[HIDDEN];

	for (unsigned j = 0; j < HIDDEN; j++) {
		float sum = 0;

		for (unsigned i = 0; i < DATA_INPUTS; i++)
			sum += hidden[j * DATA_INPUTS + i] * x[i];
		h[j] = tanhf(sum);
	}
	for (unsigned i = 0; i < DATA_OUTPUTS; i++) {
		y[i] = 0;
		for (unsigned j = 0; j < HIDDEN; j++)
			y[i] += top[i * HIDDEN + j] * h[j];
	}
}

int
data_make_shard(const char *dir, unsigned rank, uint64_t seed)
{
	float hidden[HIDDEN * DATA_INPUTS], top[DATA_OUTPUTS * HIDDEN], row[ROW];
	char path[WORKLOAD_PATH_BYTES];
	uint64_t teacher = seed, draw = seed ^ (rank + 1) * 0x5851f42d4c957f2du;
	FILE *f;
	int rc = 0;

	for (unsigned i = 0; i < HIDDEN * DATA_INPUTS; i++)
		hidden[i] =
			(float)((2 * model_random(&teacher) - 1) / sqrt(DATA_INPUTS));
	for (unsigned i = 0; i < DATA_OUTPUTS * HIDDEN; i++)
		top[i] = (float)(2 * model_random(&teacher) - 1);
	data_shard_path(path, sizeof(path), dir, rank);
	f = fopen(path, "wbe");
	if (f == NULL)
		return -errno;
	for (unsigned s = 0; s < DATA_SAMPLES && rc == 0; s++) {
		for (unsigned i = 0; i < DATA_INPUTS; i++)
			row[i] = (float)(2 * model_random(&draw) - 1);
		data_label(hidden, top, row, row + DATA_INPUTS);
		if (fwrite(row, sizeof(row), 1, f) != 1)
			rc = -EIO;
	}
	if (fclose(f) != 0 && rc == 0)
		rc = -errno;
	return rc;
}

int
data_reader_open(struct data_reader *r, const char *dir, unsigned rank, unsigned batch)
{
	char path[WORKLOAD_PATH_BYTES];

	memset(r, 0, sizeof(*r));
	r->batch = batch;
	r->rows = malloc((size_t)batch * ROW * sizeof(float));
	r->inputs = malloc((size_t)batch * DATA_INPUTS * sizeof(float));
	r->labels = malloc((size_t)batch * DATA_OUTPUTS * sizeof(float));
	r->scan = malloc(DATA_SCAN_BYTES);
	data_shard_path(path, sizeof(path), dir, rank);
	r->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	if (r->rows == NULL || r->inputs == NULL || r->labels == NULL ||
		r->scan == NULL)
		return -ENOMEM;
	return 0;
}

/* Reads so many MiB of the shard, around its end, from the disk and not from the cache.
 */
static int
data_scan(struct data_reader *r, unsigned mib)
{
	const uint64_t size = (uint64_t)DATA_SAMPLES * ROW * sizeof(float);
	uint64_t left = (uint64_t)mib << 20;

	/* advice: a tmpfs ignores it */
	(void)posix_fadvise(r->fd, 0, 0, POSIX_FADV_DONTNEED);
	while (left > 0) {
		uint64_t at = r->scanned_bytes % size;
		uint64_t want = left < DATA_SCAN_BYTES ? left : DATA_SCAN_BYTES;
		ssize_t got;

		if (want > size - at)
			want = size - at;
		got = pread(r->fd, r->scan, (size_t)want, (off_t)at);
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		r->checksum = (uint32_t)crc32(r->checksum, r->scan, (uInt)got);
		r->scanned_bytes += (uint64_t)got;
		left -= (uint64_t)got;
	}
	return 0;
}

int
data_reader_read(struct data_reader *r, uint64_t step, unsigned scan_mib)
{
	const size_t bytes = (size_t)r->batch * ROW * sizeof(float);
	const uint64_t batches = DATA_SAMPLES / r->batch;
	ssize_t got;
	int rc;

	if (scan_mib > 0) {
		rc = data_scan(r, scan_mib);
		if (rc != 0)
			return rc;
	}
	got = pread(r->fd, r->rows, bytes, (off_t)(step % batches * bytes));
	if (got < 0)
		return -errno;
	if ((size_t)got != bytes)
		return -EIO;
	for (unsigned b = 0; b < r->batch; b++) {
		const float *row = r->rows + (size_t)b * ROW;

		memcpy(r->inputs + (size_t)b * DATA_INPUTS, row,
			DATA_INPUTS * sizeof(float));
		memcpy(r->labels + (size_t)b * DATA_OUTPUTS, row + DATA_INPUTS,
			DATA_OUTPUTS * sizeof(float));
	}
	return 0;
}

void
data_reader_close(struct data_reader *r)
{
	if (r->fd > 0)
		close(r->fd);
	free(r->rows);
	free(r->inputs);
	free(r->labels);
	free(r->scan);
	memset(r, 0, sizeof(*r));
}
