/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/spool/minute_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/collect/procfile.h"
#include "agent/spool/spool_file.h"
#include "proto/base/bytes.h"
#include "proto/base/log.h"

/* Offsets of proto/FORMAT.md, "Minute file". */
enum { HEAD_VERSION = 8, HEAD_KERNEL = 16, HEAD_CRC = 60 };
enum {
	REC_CRC = 0,
	REC_PAYLOAD_CRC = 4,
	REC_LEN = 8,
	REC_TYPE = 12,
	REC_NUMBER = 16,
	REC_ID = 24
};

static const char minute_magic[8] = { 'L', 'S', 'M', 'I', 'N', 'U', 'T', 'E' };
#define MINUTE_VERSION 1u
#define MINUTE_FLIGHT_BYTES 65536u /* the rows of a second of the largest host */

struct ls_minute_file {
	uint8_t kernel_boot_id[16];
	uint8_t *bytes; /* the file as it should be; touched as far as used */
	size_t size, len;
	uint8_t row[LS_MINUTE_ROW_MAX_BYTES]; /* what is being appended */
	/* Writing. */
	struct ls_disk *disk;
	struct ls_disk_job job;
	size_t written; /* of bytes */
	bool begin_again; /* the file must be emptied first */
	bool cleared; /* since the job began: it wrote what is forgotten now */
	/* The disk thread's while the job is busy. */
	int fd;
	int rc;
	bool flight_empties;
	size_t flight_at, flight_len;
	uint8_t flight[MINUTE_FLIGHT_BYTES];
};

/* --- bytes ---------------------------------------------------------------- */

static size_t
minute_count_bits(const uint8_t *bits, size_t len)
{
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		n += (size_t)__builtin_popcount(bits[i]);
	return n;
}

/* The payload of a record whose checksum is right. */
static bool
minute_get_payload(struct ls_minute_record *r, const uint8_t *p, size_t len)
{
	switch (r->type) {
	case LS_MINUTE_GROUP:
		if (len < 5 || len > 4 + LS_GROUP_NAME_MAX_BYTES - 1)
			return false;
		r->columns = (size_t)ls_bytes_get(p, 4);
		r->name = (const char *)p + 4;
		r->name_len = len - 4;
		return r->columns > 0 && r->columns <= LS_SERIES_PER_GROUP_MAX;
	case LS_MINUTE_ROW:
		if (len < 1 || p[0] == 0 || (size_t)p[0] > len - 1)
			return false;
		r->bits_len = p[0];
		r->bits = p + 1;
		r->value_count = minute_count_bits(r->bits, r->bits_len);
		r->values = r->bits + r->bits_len;
		return len == 1 + r->bits_len + 8 * r->value_count;
	case LS_MINUTE_SEALED:
		return len == 0;
	}
	return false;
}

int
ls_minute_record_get(const uint8_t *bytes, size_t len,
	struct ls_minute_record *ret_record, size_t *ret_len)
{
	struct ls_minute_record r = { 0 };
	size_t payload;

	if (len < LS_MINUTE_RECORD_BYTES)
		return -LS_EPARSE;
	/* This part has its own checksum, so that a length can be believed before it is
	 * used. */
	if (ls_bytes_get(bytes + REC_CRC, 4) !=
		ls_bytes_crc(bytes + REC_PAYLOAD_CRC,
			LS_MINUTE_RECORD_BYTES - REC_PAYLOAD_CRC))
		return -LS_ECORRUPT;
	payload = (size_t)ls_bytes_get(bytes + REC_LEN, 4);
	if (payload > LS_MINUTE_ROW_MAX_BYTES - LS_MINUTE_RECORD_BYTES ||
		bytes[REC_TYPE] < LS_MINUTE_GROUP || bytes[REC_TYPE] > LS_MINUTE_SEALED)
		return -LS_ECORRUPT;
	if (payload > len - LS_MINUTE_RECORD_BYTES)
		return -LS_EPARSE;
	if (ls_bytes_get(bytes + REC_PAYLOAD_CRC, 4) !=
		ls_bytes_crc(bytes + LS_MINUTE_RECORD_BYTES, payload))
		return -LS_ECORRUPT;
	r.type = (enum ls_minute_type)bytes[REC_TYPE];
	r.id = (uint32_t)ls_bytes_get(bytes + REC_ID, 4);
	r.number = ls_bytes_get(bytes + REC_NUMBER, 8);
	if (!minute_get_payload(&r, bytes + LS_MINUTE_RECORD_BYTES, payload))
		return -LS_ECORRUPT;
	*ret_record = r;
	*ret_len = LS_MINUTE_RECORD_BYTES + payload;
	return 0;
}

/* --- appending ------------------------------------------------------------ */

/* Appends the record in f->row with so much payload. */
static int
minute_append(struct ls_minute_file *f, enum ls_minute_type type, uint32_t id,
	uint64_t number, size_t payload)
{
	size_t len = LS_MINUTE_RECORD_BYTES + payload;

	if (f->len + len > f->size)
		return -ENOSPC;
	memset(f->row, 0, LS_MINUTE_RECORD_BYTES);
	ls_bytes_put(f->row + REC_LEN, payload, 4);
	f->row[REC_TYPE] = (uint8_t)type;
	ls_bytes_put(f->row + REC_ID, id, 4);
	ls_bytes_put(f->row + REC_NUMBER, number, 8);
	ls_bytes_put(f->row + REC_PAYLOAD_CRC,
		ls_bytes_crc(f->row + LS_MINUTE_RECORD_BYTES, payload), 4);
	ls_bytes_put(f->row + REC_CRC,
		ls_bytes_crc(f->row + REC_PAYLOAD_CRC,
			LS_MINUTE_RECORD_BYTES - REC_PAYLOAD_CRC),
		4);
	memcpy(f->bytes + f->len, f->row, len);
	f->len += len;
	return 0;
}

int
ls_minute_file_group(struct ls_minute_file *f, uint32_t id, uint64_t hash,
	size_t columns, const char *name)
{
	size_t name_len = strlen(name);

	LS_ASSERT(name_len > 0 && name_len < LS_GROUP_NAME_MAX_BYTES);
	ls_bytes_put(f->row + LS_MINUTE_RECORD_BYTES, columns, 4);
	memcpy(f->row + LS_MINUTE_RECORD_BYTES + 4, name, name_len);
	return minute_append(f, LS_MINUTE_GROUP, id, hash, 4 + name_len);
}

int
ls_minute_file_row(struct ls_minute_file *f, uint32_t id, uint64_t t_mono_ns,
	const double *value, const bool *present, size_t columns)
{
	size_t bits_len = (columns + 7) / 8, i;
	uint8_t *bits = f->row + LS_MINUTE_RECORD_BYTES + 1, *values = bits + bits_len;
	uint64_t v;

	LS_ASSERT(columns > 0 && columns <= LS_SERIES_PER_GROUP_MAX);
	bits[-1] = (uint8_t)bits_len;
	memset(bits, 0, bits_len);
	for (i = 0; i < columns; i++) {
		if (!present[i])
			continue;
		bits[i / 8] = (uint8_t)(bits[i / 8] | 1u << i % 8);
		memcpy(&v, &value[i], sizeof(v));
		ls_bytes_put(values, v, 8);
		values += 8;
	}
	return minute_append(f, LS_MINUTE_ROW, id, t_mono_ns,
		(size_t)(values - bits) + 1);
}

int
ls_minute_file_sealed(struct ls_minute_file *f, uint32_t id)
{
	return minute_append(f, LS_MINUTE_SEALED, id, 0, 0);
}

/* --- reading -------------------------------------------------------------- */

int
ls_minute_file_walk(const struct ls_minute_file *f, uint64_t offset,
	ls_minute_each *each, void *arg, uint64_t *ret_end)
{
	struct ls_minute_record r;
	size_t at = (size_t)offset, one;
	int rc = 0;

	while (rc == 0 && at < f->len) {
		rc = ls_minute_record_get(f->bytes + at, f->len - at, &r, &one);
		if (rc == 0)
			rc = each(arg, &r);
		if (rc == 0)
			at += one;
	}
	*ret_end = at;
	return rc == -LS_EPARSE ? 0 : rc;
}

uint64_t
ls_minute_file_end(const struct ls_minute_file *f)
{
	return f->len;
}

/* --- writing -------------------------------------------------------------- */

static void
minute_work(void *arg)
{
	struct ls_minute_file *f = arg;

	f->rc = f->flight_empties && ftruncate(f->fd, 0) != 0 ? -errno : 0;
	if (f->rc == 0)
		f->rc = ls_spool_pwrite(f->fd, f->flight, f->flight_len, f->flight_at);
}

static void
minute_done(void *arg)
{
	struct ls_minute_file *f = arg;

	if (f->rc != 0) {
		ls_log(LS_LOG_WARN, "chunk",
			"cannot write the minute file (%s); retrying with the next row",
			ls_err_text(f->rc));
		return;
	}
	if (!f->cleared) {
		f->begin_again = false;
		f->written = f->flight_at + f->flight_len;
	}
	ls_minute_file_write(f);
}

void
ls_minute_file_write(struct ls_minute_file *f)
{
	size_t left = f->len - f->written;

	if (f->job.busy || (left == 0 && !f->begin_again))
		return;
	f->cleared = false;
	f->flight_empties = f->begin_again;
	f->flight_at = f->written;
	f->flight_len = left < sizeof(f->flight) ? left : sizeof(f->flight);
	memcpy(f->flight, f->bytes + f->written, f->flight_len);
	ls_disk_run(f->disk, &f->job);
}

void
ls_minute_file_use_disk(struct ls_minute_file *f, struct ls_disk *disk)
{
	LS_ASSERT(!f->job.busy);
	f->disk = disk;
}

/* --- life ----------------------------------------------------------------- */

/* A file of an earlier version may be larger than ours. */
static void
minute_shrink(struct ls_minute_file *f)
{
	uint8_t *bytes = f->size > LS_MINUTE_MAX_BYTES
		? realloc(f->bytes, LS_MINUTE_MAX_BYTES)
		: NULL;

	if (bytes == NULL)
		return;
	f->bytes = bytes;
	f->size = LS_MINUTE_MAX_BYTES;
}

void
ls_minute_file_clear(struct ls_minute_file *f)
{
	uint8_t *head;

	minute_shrink(f);
	head = f->bytes;
	memset(head, 0, LS_MINUTE_HEADER_BYTES);
	memcpy(head, minute_magic, sizeof(minute_magic));
	ls_bytes_put(head + HEAD_VERSION, MINUTE_VERSION, 4);
	memcpy(head + HEAD_KERNEL, f->kernel_boot_id, sizeof(f->kernel_boot_id));
	ls_bytes_put(head + HEAD_CRC, ls_bytes_crc(head, HEAD_CRC), 4);
	f->len = LS_MINUTE_HEADER_BYTES;
	f->written = 0;
	f->begin_again = f->cleared = true;
}

/* 0: a header of this boot; 1: of another; -LS_ECORRUPT. */
static int
minute_check_header(const uint8_t head[LS_MINUTE_HEADER_BYTES],
	const uint8_t kernel_boot_id[16])
{
	if (memcmp(head, minute_magic, sizeof(minute_magic)) != 0 ||
		ls_bytes_get(head + HEAD_VERSION, 4) != MINUTE_VERSION ||
		ls_bytes_get(head + HEAD_CRC, 4) != ls_bytes_crc(head, HEAD_CRC))
		return -LS_ECORRUPT;
	return memcmp(head + HEAD_KERNEL, kernel_boot_id, 16) == 0 ? 0 : 1;
}

/* Opens the file and reads all of it. */
static int
minute_read(struct ls_minute_file *f, const char *dir)
{
	char path[LS_PATH_MAX_BYTES];
	struct stat st;
	ssize_t n;

	if ((size_t)snprintf(path, sizeof(path), "%s/minute", dir) >= sizeof(path))
		return -ENAMETOOLONG;
	f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f->fd < 0 || fstat(f->fd, &st) != 0)
		return -errno;
	f->size = LS_MINUTE_MAX_BYTES;
	if (st.st_size > (off_t)f->size)
		f->size = st.st_size < LS_MINUTE_OLD_MAX_BYTES
			? (size_t)st.st_size
			: LS_MINUTE_OLD_MAX_BYTES;
	f->bytes = malloc(f->size);
	if (f->bytes == NULL)
		return -ENOMEM;
	n = ls_procfile_pread(f->fd, f->bytes, f->size, 0);
	if (n < 0)
		return (int)n;
	f->len = f->written = (size_t)n;
	return 0;
}

static int
minute_load(struct ls_minute_file *f, const char *dir, enum ls_minute_found *ret_found,
	bool *ret_damaged)
{
	size_t len;
	int rc = minute_read(f, dir);

	if (rc != 0)
		return rc;
	len = f->len;
	*ret_damaged = false;
	*ret_found = LS_MINUTE_EMPTY;
	rc = len < LS_MINUTE_HEADER_BYTES
		? -LS_ECORRUPT
		: minute_check_header(f->bytes, f->kernel_boot_id);
	if (rc < 0) {
		/* a shorter one never held a row */
		*ret_damaged = len >= LS_MINUTE_HEADER_BYTES;
		ls_minute_file_clear(f);
		return 0;
	}
	if (len > LS_MINUTE_HEADER_BYTES)
		*ret_found = rc == 0 ? LS_MINUTE_ROWS : LS_MINUTE_OTHER_BOOT;
	return 0;
}

int
ls_minute_file_open(const char *dir, const uint8_t kernel_boot_id[16],
	enum ls_minute_found *ret_found, bool *ret_damaged,
	struct ls_minute_file **ret_file)
{
	struct ls_minute_file *f = calloc(1, sizeof(*f));
	int rc;

	if (f == NULL)
		return -ENOMEM;
	f->fd = -1;
	f->job = (struct ls_disk_job){
		.work = minute_work, .done = minute_done, .arg = f
	};
	memcpy(f->kernel_boot_id, kernel_boot_id, sizeof(f->kernel_boot_id));
	rc = minute_load(f, dir, ret_found, ret_damaged);
	if (rc == 0)
		*ret_file = f;
	else
		ls_minute_file_close(f);
	return rc;
}

void
ls_minute_file_close(struct ls_minute_file *f)
{
	if (f == NULL)
		return;
	if (f->fd >= 0)
		(void)close(f->fd); /* written, never synced */
	free(f->bytes);
	free(f);
}
