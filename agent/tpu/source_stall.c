/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/source_stall.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/collect/dirlist.h"
#include "agent/collect/procfile.h"
#include "agent/tpu/tpu_decode.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/text.h"

/* Times of files beyond this many seconds from 1970 are not valid: in ns they do not fit
 * 64 bits, or nearly so. */
#define STALL_SECONDS_MAX ((int64_t)1 << 33)

/* A look at the directory, the disk thread's while the job is busy. */
struct stall_look {
	int rc; /* of opening the directory, or of reading the newest file */
	char name[NAME_MAX + 1]; /* of the newest file, "": none */
	int64_t t_wall_ns; /* when it was written */
	off_t bytes;
	bool news; /* another file, or written again */
	struct ls_tpu_status status;
	uint8_t text[LS_STALL_FILE_MAX_BYTES + 1];
};

struct source_stall {
	char dir[LS_PATH_MAX_BYTES];
	struct ls_disk *disk;
	struct ls_disk_job job;
	uint64_t t_next_ns;
	struct stall_look look;
	/* the last look that ended */
	int rc;
	char name[4 * NAME_MAX]; /* escaped */
	char time[32]; /* when the file was written */
	struct ls_tpu_status status;
};

/* --- on the disk thread --------------------------------------------------- */

/* When the file was written. False: its time is not valid, or not over yet. */
static bool
stall_time(const struct stat *st, int64_t *ret_wall_ns)
{
	int64_t s = st->st_mtim.tv_sec;

	if (s < -STALL_SECONDS_MAX || s > STALL_SECONDS_MAX)
		return false;
	*ret_wall_ns = s * 1000000000 + st->st_mtim.tv_nsec;
	return *ret_wall_ns <= ls_clock_wall_ns();
}

/* Reads and decodes the newest file. */
static int
stall_read(struct stall_look *l, int fd)
{
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return -LS_EPARSE;
	n = ls_procfile_pread(fd, l->text, sizeof(l->text), 0);
	if (n < 0)
		return (int)n;
	if ((size_t)n > LS_STALL_FILE_MAX_BYTES)
		return -LS_ELIMIT;
	return ls_tpu_decode_stall(l->text, (size_t)n, &l->status);
}

static void
stall_work(void *arg)
{
	struct source_stall *s = arg;
	struct stall_look *l = &s->look;
	char newest[NAME_MAX + 1] = "";
	int64_t newest_ns = INT64_MIN, t_ns;
	off_t bytes = 0;
	const struct dirent64 *e;
	struct ls_dirlist dir;
	unsigned looked = 0;
	struct stat st;
	int fd;

	l->news = false;
	l->rc = ls_dirlist_open(&dir, s->dir);
	if (l->rc != 0) {
		l->name[0] = '\0';
		return;
	}
	while (looked++ < LS_STALL_ENTRIES_MAX && (e = ls_dirlist_next(&dir)) != NULL) {
		if (fnmatch("tpu_stall_summary_*.pb", e->d_name, 0) != 0 ||
			fstatat(dir.fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (!stall_time(&st, &t_ns) || t_ns <= newest_ns)
			continue;
		newest_ns = t_ns;
		bytes = st.st_size;
		(void)snprintf(newest, sizeof(newest), "%s", e->d_name);
	}
	l->news = newest[0] != '\0' &&
		(strcmp(newest, l->name) != 0 || newest_ns != l->t_wall_ns ||
			bytes != l->bytes);
	memcpy(l->name, newest, sizeof(newest));
	if (l->news) {
		l->t_wall_ns = newest_ns;
		l->bytes = bytes;
		fd = openat(dir.fd, newest,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		l->rc = stall_read(l, fd);
		if (fd >= 0)
			(void)close(fd); /* only read from */
	}
	ls_dirlist_close(&dir);
}

/* --- on the loop ---------------------------------------------------------- */

static void
stall_done(void *arg)
{
	struct source_stall *s = arg;
	const struct stall_look *l = &s->look;

	if (l->name[0] == '\0') { /* no file, or none any more */
		s->rc = l->rc; /* of the directory */
		s->name[0] = '\0';
		memset(&s->status, 0, sizeof(s->status));
	}
	if (!l->news)
		return;
	s->rc = l->rc;
	(void)ls_text_escape(s->name, sizeof(s->name), l->name, strlen(l->name));
	ls_text_time(s->time, l->t_wall_ns / 1000);
	memset(&s->status, 0, sizeof(s->status));
	if (s->rc == 0)
		s->status = l->status;
	ls_log(LS_LOG_WARN, "stall",
		"libtpu reports a stall: %s, written %s, %zu cores%s%s; see lockstep doctor",
		s->name, s->time, s->status.count, s->rc != 0 ? ": " : "",
		s->rc != 0 ? ls_err_text(s->rc) : "");
}

static void
stall_look(void *self, unsigned due, uint64_t now_mono_ns, struct ls_sample *into)
{
	struct source_stall *s = self;

	(void)due;
	(void)into;
	if (s->job.busy || now_mono_ns < s->t_next_ns)
		return;
	s->t_next_ns = now_mono_ns + LS_STALL_LOOK_NS;
	ls_disk_run(s->disk, &s->job);
}

/* Where a core stood. */
static void
stall_core(const struct ls_tpu_core *c, char *text, size_t size)
{
	(void)snprintf(text, size,
		"core %d of chip %d stalled in program %012llx at %s (pc %lld, tracemark "
		"%lld, launch %d, %u queued)",
		c->core_id, c->chip_id, (unsigned long long)(c->program >> 16),
		c->where[0] != '\0' ? c->where : "a place that is not given",
		(long long)c->pc, (long long)c->tracemark, c->launch_id, c->queued);
}

void
ls_source_stall_core(const struct ls_source *source, size_t i, char *text, size_t size)
{
	const struct source_stall *s = source->self;
	int n;

	text[0] = '\0';
	if (i >= s->status.count)
		return;
	n = snprintf(text, size, "%s ", s->time);
	stall_core(&s->status.core[i], text + n, size - (size_t)n);
}

static void
stall_tell(const void *self, struct ls_doctor *d)
{
	char core[256];
	const struct source_stall *s = self;
	const char *subject = ls_doctor_text(d, "%.38s %s", s->name, s->time);

	if (s->name[0] == '\0' && s->rc == 0)
		ls_doctor_add(d, LS_DOCTOR_OK, "stall", s->dir, "no summary of a stall",
			"");
	else if (s->rc != 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "stall",
			s->name[0] != '\0' ? subject : s->dir,
			"give --stall-dir the directory where libtpu writes "
			"tpu_stall_summary_*.pb",
			"cannot be read: %s", ls_err_text(s->rc));
	for (size_t i = 0; i < s->status.count && i < LS_STALL_CORES_SHOWN; i++) {
		stall_core(&s->status.core[i], core, sizeof(core));
		ls_doctor_add(d, LS_DOCTOR_WARN, "stall", subject, core,
			"find the host that the others wait for: lockstep status");
	}
	if (s->status.count > LS_STALL_CORES_SHOWN)
		ls_doctor_addf(d, LS_DOCTOR_NONE, "stall", subject, "",
			"%zu more cores", s->status.count - LS_STALL_CORES_SHOWN);
}

int
ls_source_stall_new(const char *dir, struct ls_disk *disk, struct ls_source *ret_source)
{
	struct source_stall *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	(void)snprintf(s->dir, sizeof(s->dir), "%s", dir);
	s->disk = disk;
	s->job = (struct ls_disk_job){
		.work = stall_work, .done = stall_done, .arg = s
	};
	*ret_source = (struct ls_source){ .name = "stall",
		.self = s,
		.read = stall_look,
		.tell = stall_tell,
		.free = free };
	return 0;
}
