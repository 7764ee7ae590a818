/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/log_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "proto/limits.h"

#define TAIL_CHUNK_BYTES 16384

struct ls_log_tail {
	char path[LS_PATH_MAX_BYTES];
	uint64_t back_bytes;
	ls_log_tail_each *each;
	void *arg;
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
	uint64_t at; /* next byte to read */
	bool started; /* the first file was opened */
	bool skipping; /* up to the next newline */
	size_t len;
	char line[LS_LOG_TAIL_LINE_MAX_BYTES];
	struct ls_log_tail_stats stats;
};

static void
tail_close(struct ls_log_tail *t)
{
	if (t->fd >= 0)
		(void)close(t->fd); /* only read from */
	t->fd = -1;
	t->at = 0;
	t->len = 0;
	t->skipping = false;
	t->stats.open = false;
}

/* Opens what has the name now. False: nothing, why is in the stats. */
static bool
tail_open(struct ls_log_tail *t)
{
	struct stat st;

	t->stats.error = 0;
	t->fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (t->fd < 0 || fstat(t->fd, &st) != 0)
		t->stats.error = -errno;
	else if (!S_ISREG(st.st_mode))
		t->stats.error = -LS_ERANGE;
	if (t->stats.error != 0) {
		t->started = true; /* one that comes later is new: from its start */
		tail_close(t);
		return false;
	}
	t->dev = st.st_dev;
	t->ino = st.st_ino;
	t->stats.open = true;
	if (!t->started && (uint64_t)st.st_size > t->back_bytes) {
		t->at = (uint64_t)st.st_size - t->back_bytes;
		/* Begins where a line does, if the byte before is its newline: so that
		 * one is read, too. */
		t->at--;
		t->skipping = true;
	}
	t->started = true;
	return true;
}

static void
tail_tell(struct ls_log_tail *t)
{
	t->stats.lines++;
	t->each(t->arg, t->line, t->len);
	t->len = 0;
}

static void
tail_bytes(struct ls_log_tail *t, const char *bytes, size_t len)
{
	size_t n, room;

	while (len > 0) {
		for (n = 0; n < len && bytes[n] != '\n' && bytes[n] != '\r';)
			n++;
		if (!t->skipping) {
			room = sizeof(t->line) - t->len;
			memcpy(t->line + t->len, bytes, n < room ? n : room);
			t->len += n < room ? n : room;
			if (n > room) {
				t->stats.cut++;
				tail_tell(t);
				t->skipping = true;
			}
		}
		if (n == len)
			return;
		if (!t->skipping && t->len > 0)
			tail_tell(t);
		t->skipping = false;
		bytes += n + 1;
		len -= n + 1;
	}
}

/* Reads up to the end or the budget. True: the end was reached. */
static bool
tail_read_file(struct ls_log_tail *t, size_t *budget)
{
	char bytes[TAIL_CHUNK_BYTES];
	ssize_t n;

	while (*budget > 0) {
		n = pread(t->fd, bytes,
			*budget < sizeof(bytes) ? *budget : sizeof(bytes),
			(off_t)t->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			t->stats.error = -errno;
		if (n <= 0)
			return true;
		t->at += (uint64_t)n;
		t->stats.bytes += (uint64_t)n;
		*budget -= (size_t)n;
		tail_bytes(t, bytes, (size_t)n);
	}
	return false;
}

static bool
tail_is_named(const struct ls_log_tail *t, const struct stat *named)
{
	return named->st_dev == t->dev && named->st_ino == t->ino;
}

/* Far behind, the oldest lines are given up: the newest say where the job is. A file that
 * was moved away is not worth as much. */
static void
tail_catch_up(struct ls_log_tail *t)
{
	uint64_t max = LS_LOG_TAIL_BEHIND_MAX_BYTES, size;
	struct stat mine, named;

	if (fstat(t->fd, &mine) != 0)
		return;
	size = (uint64_t)mine.st_size;
	if (stat(t->path, &named) == 0 && !tail_is_named(t, &named))
		max = LS_STEP_LOG_BACK_BYTES;
	if (size <= t->at || size - t->at <= max)
		return;
	t->stats.skipped += size - LS_STEP_LOG_BACK_BYTES - t->at;
	t->at = size - LS_STEP_LOG_BACK_BYTES;
	t->len = 0;
	t->skipping = true;
}

/* At the end of the file: is it still the one? True: read on, there is another or it
 * begins anew. */
static bool
tail_turned(struct ls_log_tail *t)
{
	struct stat mine, named;

	if (fstat(t->fd, &mine) == 0 && (uint64_t)mine.st_size < t->at) {
		t->stats.truncated++;
		t->at = 0;
		t->len = 0;
		t->skipping = false;
		return mine.st_size > 0;
	}
	if (stat(t->path, &named) != 0 || tail_is_named(t, &named))
		return false; /* moved away and no other yet: it may still be written to */
	t->stats.rotated++;
	tail_close(t);
	return true;
}

bool
ls_log_tail_read(struct ls_log_tail *t)
{
	size_t budget = LS_LOG_TAIL_READ_MAX_BYTES;

	do {
		if (t->fd < 0 && !tail_open(t))
			return true;
		tail_catch_up(t);
		if (!tail_read_file(t, &budget))
			return false;
	} while (tail_turned(t) && budget > 0);
	return true;
}

struct ls_log_tail *
ls_log_tail_new(const char *path, uint64_t back_bytes, ls_log_tail_each *each,
	void *arg)
{
	struct ls_log_tail *t =
		strlen(path) < LS_PATH_MAX_BYTES ? calloc(1, sizeof(*t)) : NULL;

	if (t == NULL)
		return NULL;
	memcpy(t->path, path, strlen(path) + 1);
	t->back_bytes = back_bytes;
	t->each = each;
	t->arg = arg;
	t->fd = -1;
	return t;
}

void
ls_log_tail_free(struct ls_log_tail *t)
{
	if (t == NULL)
		return;
	tail_close(t);
	free(t);
}

const struct ls_log_tail_stats *
ls_log_tail_get_stats(const struct ls_log_tail *t)
{
	return &t->stats;
}
