/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/source_step.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "agent/collect/dirlist.h"
#include "agent/steps/inferred.h"
#include "agent/steps/leftovers.h"
#include "agent/steps/rejected.h"
#include "proto/base/hash.h"
#include "proto/base/log.h"
#include "proto/base/text.h"

#define STEP_FROM_RANK 2 /* place of the rank in the sources of a ring's header */

struct step_file {
	struct ls_ring_reader *reader;
	dev_t dev;
	ino_t ino;
	uid_t uid;
	char name[NAME_MAX + 1];
};

/* What one scan has done so far. */
struct step_turn {
	unsigned names, looks, opens;
	bool skipped; /* an owner's share was used up: the pass is not complete */
	size_t owners;
	struct step_owner {
		uid_t uid;
		unsigned files, opens; /* not known before; opened of these */
	} owner[LS_STEPS_OWNERS_MAX];
};

struct ls_source_step {
	char dir[LS_PATH_MAX_BYTES];
	uint8_t kernel_boot_id[16];
	struct ls_spool *spool;
	int fd_end; /* descriptors from here on are not for rings */
	size_t count;
	struct step_file file[LS_RINGS_MAX];
	/* of a worker; at a thousand rings a second it lasts for 49 days */
	uint32_t last_number;
	struct ls_step_stats stats;
	struct ls_leftovers leftovers;
	struct ls_rejected rejected;
	uint64_t
		closed; /* rings closed so far: one more may be opened, or opened again */
	/* Names that come into the directory; -1: it is not watched. */
	int watch_fd, watch;
	/* The scan whose result holds while the directory is watched, or stays the same. */
	struct {
		bool is_valid;
		ino_t ino;
		struct timespec changed;
		uint64_t closed, t_mono_ns;
	} scan;
	/* A pass over the directory takes several scans if there are many files. */
	off_t resume; /* where the next scan goes on; 0: a new pass begins */
	bool skipped; /* by a scan of this pass */
	uint64_t ignored[LS_STEP_IGNORED_COUNT]; /* in this pass so far */
	struct step_turn turn;
	uint64_t scans;
	struct step_owner crowd; /* had most files in the last scan */
	/* number of files left alone, as it was logged last */
	uint64_t told;
	struct ls_ring_buffers buf;
};

static void
step_close(struct ls_source_step *s, size_t i)
{
	ls_ring_reader_free(s->file[i].reader);
	s->file[i] = s->file[--s->count];
	s->closed++;
}

/* True if all of the ring, its End included, is acknowledged. */
static bool
step_is_acked(const struct ls_source_step *s, const uint8_t id[LS_RING_ID_BYTES])
{
	const struct ls_spool_ring *c = ls_spool_ring_find(s->spool, id);

	return c != NULL && c->end_seq != 0 && c->end_seq <= ls_spool_acked(s->spool);
}

/*
 * Removes the file of a ring that is done with, if the name still means this file. While
 * files wait for a place no cursor is settled: this one goes with its file. True if the
 * file is gone.
 */
static bool
step_remove(struct ls_source_step *s, int dir_fd, const char *name, dev_t dev,
	ino_t ino, const uint8_t id[LS_RING_ID_BYTES])
{
	struct stat st;
	bool gone = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0;

	if (!gone && (st.st_dev != dev || st.st_ino != ino))
		return false;
	if (!gone && unlinkat(dir_fd, name, 0) == 0) {
		s->stats.removed++;
		gone = true;
	}
	if (gone && s->stats.ignored[LS_STEP_TOO_MANY] > 0)
		ls_spool_ring_forget(s->spool, id);
	if (!gone)
		ls_log(LS_LOG_WARN, "step",
			"cannot remove finished ring %s (%s); leaving it in place",
			name, strerror(errno));
	return gone;
}

/* --- the directory -------------------------------------------------------- */

static bool
step_is_ring_name(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && strcmp(name + len - 5, ".ring") == 0 && name[0] != '.';
}

/* True if the entry is a file that is open here. */
static bool
step_is_known(const struct ls_source_step *s, const char *name, ino_t ino)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->file[i].ino == ino && strcmp(s->file[i].name, name) == 0)
			return true;
	}
	return false;
}

static bool
step_is_open(const struct ls_source_step *s, const uint8_t id[LS_RING_ID_BYTES])
{
	for (size_t i = 0; i < s->count; i++) {
		if (memcmp(ls_source_step_ring(s, i)->worker.ring_id, id,
			    LS_RING_ID_BYTES) == 0)
			return true;
	}
	return false;
}

static size_t
step_rings_of(const struct ls_source_step *s, uid_t uid)
{
	size_t i, n = 0;

	for (i = 0; i < s->count; i++)
		n += s->file[i].uid == uid;
	return n;
}

/*
 * True if a ring of this owner has a place now: the owner of most rings gave up the
 * newest. It is read again from its start when there is room; what was stored is not
 * stored twice.
 */
static bool
step_make_place(struct ls_source_step *s, uid_t uid)
{
	const struct ls_step_ring *last = NULL, *one;
	size_t i, n, most = step_rings_of(s, uid) + 1, at = 0;

	for (i = 0; i < s->count; i++) {
		n = step_rings_of(s, s->file[i].uid);
		one = ls_source_step_ring(s, i);
		if (n > most ||
			(n == most && last != NULL &&
				s->file[i].uid == s->file[at].uid &&
				one->worker.number > last->worker.number)) {
			most = n;
			last = one;
			at = i;
		}
	}
	if (last == NULL)
		return false;
	ls_log(LS_LOG_WARN, "step",
		"uid %u has %zu step rings; reading %s stops to make room for a ring "
		"of uid %u",
		(unsigned)s->file[at].uid, most, s->file[at].name, (unsigned)uid);
	s->stats.displaced++;
	if (s->spool != NULL)
		ls_spool_ring_forget(s->spool, last->worker.ring_id);
	step_close(s, at);
	return true;
}

/* Whether the file can be a ring of ours: 0, or 1 + enum ls_step_ignored. */
static unsigned
step_check_file(struct ls_source_step *s, int fd, struct ls_ring_header *h,
	struct stat *st, const char **ret_why)
{
	static const uint8_t no_boot_id[sizeof(h->boot_id)];

	*ret_why = "shorter than it says";
	if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode))
		return 1 + LS_STEP_NOT_REGULAR;
	if (!ls_ring_pread(fd, s->buf.page, sizeof(s->buf.page), 0) ||
		ls_ring_parse_header(s->buf.page, sizeof(s->buf.page), h, ret_why) !=
			0 ||
		(uint64_t)st->st_size <
			h->header_bytes + (uint64_t)h->slots * h->slot_bytes ||
		h->created_mono_ns > LS_WIRE_TIME_MAX_NS)
		return 1 + LS_STEP_NOT_A_RING;
	/* A writer that could not read the boot id leaves zeros: it is taken for one of
	 * this boot. */
	if (memcmp(h->boot_id, no_boot_id, sizeof(h->boot_id)) != 0 &&
		memcmp(h->boot_id, s->kernel_boot_id, sizeof(h->boot_id)) != 0)
		return 1 + LS_STEP_OTHER_BOOT;
	if (step_is_open(s, h->id))
		return 1 + LS_STEP_DUPLICATE;
	if (s->spool != NULL && step_is_acked(s, h->id))
		return 1 + LS_STEP_FINISHED;
	/* The lowest free number is given, so all below fd are in use. */
	if ((s->count == LS_RINGS_MAX || fd >= s->fd_end) &&
		!step_make_place(s, st->st_uid))
		return 1 + LS_STEP_TOO_MANY;
	return 0;
}

/* The environment of its process does not tell the rank. */
static bool
step_is_unranked(uint8_t from)
{
	return from == LS_RING_FROM_REFUSED || from == LS_RING_FROM_DEFAULT;
}

/* Does a live process of the same attempt of the job on this host have the rank? Of this
 * owner, or of any: 0. */
static bool
step_has_rank(const struct ls_source_step *s, const struct ls_worker_info *of,
	int32_t rank, uint32_t owner)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct ls_worker_info *w =
			&ls_source_step_ring(s, i)->worker.info;

		if (w->rank == rank && w->attempt == of->attempt &&
			(owner == 0 || w->owner == owner) &&
			strcmp(w->job, of->job) == 0 &&
			ls_ring_reader_is_held(s->file[i].reader))
			return true;
	}
	return false;
}

/*
 * The rank of a new ring. Processes of one job on this host that do not know theirs, or
 * have that of another of their user, are counted, so that each is a worker of its own:
 * the least rank that no live one has. The collector keeps the workers of different users apart.
 */
static void
step_rank(const struct ls_source_step *s, struct ls_ring_header *h)
{
	if (step_is_unranked(h->from[STEP_FROM_RANK]))
		h->worker.rank = 0;
	else if (step_has_rank(s, &h->worker, h->worker.rank, h->worker.owner))
		h->from[STEP_FROM_RANK] = LS_RING_FROM_REFUSED;
	else
		return;
	for (h->worker.rank = 0; step_has_rank(s, &h->worker, h->worker.rank, 0);)
		h->worker.rank++;
}

/* The value of the first variable that could tell the rank, as the job's process had it;
 * *ret_name: which one. NULL: there is none. */
static const char *
step_rank_value(const char *env, const char **ret_name, size_t *ret_len)
{
	static const char *const names[] = {
#define LS_LAUNCHER(from, rank, world, needs, form) rank,
#include "agent/client/python/lockstep/launchers.def"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		for (const char *line = env; *line != '\0'; line +=
			line[strcspn(line, "\n")] == '\n' ? strcspn(line, "\n") + 1
							  : strlen(line)) {
			if (strncmp(line, names[i], len) != 0 || line[len] != '=')
				continue;
			*ret_name = names[i];
			*ret_len = strcspn(line, "\n") - len - 1;
			return line + len + 1;
		}
	}
	return NULL;
}

/* Keeps what its environment has for a rank, for people to see. */
static void
step_keep_refused(struct ls_ring_header *h)
{
	char text[2 * LS_REFUSED_RANK_MAX_BYTES];
	const char *name, *value;
	size_t len;

	value = step_rank_value(h->env, &name, &len);
	if (value == NULL)
		return;
	(void)snprintf(text, sizeof(text), "%s=%.*s", name, (int)len, value);
	(void)ls_text_escape(h->worker.refused_rank, sizeof(h->worker.refused_rank),
		text, strlen(text));
}

/* Puts an open file among the rings. */
static int
step_add(struct ls_source_step *s, int fd, const char *name,
	const struct ls_ring_header *h, const struct stat *st)
{
	const struct ls_ring_context context = { s->spool, &s->buf, &s->stats,
		++s->last_number };
	struct step_file *f = &s->file[s->count];
	struct ls_ring_header own = *h;
	int rc;

	own.worker.owner = st->st_uid + 1;
	step_rank(s, &own);
	if (own.from[STEP_FROM_RANK] == LS_RING_FROM_REFUSED)
		step_keep_refused(&own);
	rc = ls_ring_reader_new(fd, name, &own, &context, &f->reader);

	if (rc != 0)
		return rc;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->uid = st->st_uid;
	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	s->count++;
	ls_log(LS_LOG_INFO, "step", "worker: job %s rank %d of %d", h->worker.job,
		(int)own.worker.rank, (int)h->worker.world);
	if (own.from[STEP_FROM_RANK] == LS_RING_FROM_REFUSED)
		ls_log(LS_LOG_WARN, "step",
			"worker: job %s: its environment does not tell its rank in the "
			"job; it counts as rank %d, see lockstep doctor",
			h->worker.job, (int)own.worker.rank);
	return 0;
}

/* Of an owner of very many files each scan draws others, so that each has its turn. */
static bool
step_is_drawn(const struct ls_source_step *s, uid_t uid, const char *name)
{
	uint64_t hash = ls_hash(LS_HASH_START, &s->scans, sizeof(s->scans));

	return uid != s->crowd.uid || s->crowd.files <= LS_STEPS_OWNER_OPENS_MAX ||
		ls_hash(hash, name, strlen(name)) % s->crowd.files <
		LS_STEPS_OWNER_OPENS_MAX;
}

/* Whether this scan may open one more file of the owner; then it is counted. */
static bool
step_may_open(struct ls_source_step *s, uid_t uid, const char *name)
{
	struct step_turn *t = &s->turn;
	struct step_owner *o;
	size_t i;

	for (i = 0; i < t->owners && t->owner[i].uid != uid; i++)
		continue;
	if (i == LS_STEPS_OWNERS_MAX)
		i--;
	else if (i == t->owners)
		t->owner[t->owners++].uid = uid;
	o = &t->owner[i];
	o->files++;
	if (o->opens >= LS_STEPS_OWNER_OPENS_MAX || !step_is_drawn(s, uid, name)) {
		t->skipped = true;
		return false;
	}
	o->opens++;
	t->opens++;
	return true;
}

/* The scan is over: who had most files in it? */
static void
step_end_scan(struct ls_source_step *s)
{
	s->scans++;
	s->skipped = s->skipped || s->turn.skipped;
	s->crowd.files = 0;
	for (size_t i = 0; i < s->turn.owners; i++) {
		if (s->turn.owner[i].files > s->crowd.files)
			s->crowd = s->turn.owner[i];
	}
}

/* Remembers a file that is left alone, and an example of what is no ring. */
static void
step_reject(struct ls_source_step *s, const struct dirent64 *e, const struct stat *st,
	unsigned why, const char *text)
{
	if (why == 1 + LS_STEP_NOT_A_RING) {
		(void)snprintf(s->stats.example, sizeof(s->stats.example), "%.63s",
			e->d_name);
		s->stats.example_why = text;
	}
	ls_rejected_add(&s->rejected, e, &st->st_ctim, why, s->closed);
}

/* Opens the file of an entry and checks it; 0 if it is read from now on, or was finished
 * and is removed, else why. */
static unsigned
step_open(struct ls_source_step *s, int dir_fd, const struct dirent64 *e)
{
	struct ls_ring_header h;
	const char *text;
	struct stat st;
	unsigned why;
	int fd;

	s->turn.looks++;
	if (fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return 1 + LS_STEP_NOT_REGULAR;
	if (S_ISREG(st.st_mode) && st.st_size < LS_RING_HEADER_BYTES) {
		why = 1 + LS_STEP_NOT_A_RING;
		step_reject(s, e, &st, why, "shorter than it says");
		return why;
	}
	if (!step_may_open(s, st.st_uid, e->d_name))
		return 1 + LS_STEP_TOO_MANY;
	fd = openat(dir_fd, e->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		step_reject(s, e, &st, 1 + LS_STEP_NOT_REGULAR, NULL);
		return 1 + LS_STEP_NOT_REGULAR;
	}
	why = step_check_file(s, fd, &h, &st, &text);
	if (why == 0 && step_add(s, fd, e->d_name, &h, &st) == 0)
		return 0;
	if (why == 0)
		s->scan.is_valid = false; /* no memory: try again at the next scan */
	else if (why == 1 + LS_STEP_FINISHED &&
		step_remove(s, dir_fd, e->d_name, st.st_dev, st.st_ino, h.id))
		why = 0; /* an agent was killed before it removed this one */
	else
		step_reject(s, e, &st, why, text);
	(void)close(fd); /* only read from */
	return why;
}

/* 0 if the file is read, else why not: 1 + enum ls_step_ignored. */
static unsigned
step_look_at(struct ls_source_step *s, int dir_fd, const struct dirent64 *e)
{
	const struct ls_rejected_file *known;

	if (step_is_known(s, e->d_name, e->d_ino))
		return 0;
	if (e->d_type != DT_REG && e->d_type != DT_UNKNOWN)
		return 1 + LS_STEP_NOT_REGULAR;
	known = ls_rejected_find(&s->rejected, dir_fd, e, s->closed);
	return known != NULL ? known->why : step_open(s, dir_fd, e);
}

/* A name that has just come into the directory. */
static void
step_look_at_new(struct ls_source_step *s, int dir_fd, const char *name)
{
	struct dirent64 e = { .d_type = DT_UNKNOWN };
	struct stat st;
	unsigned why;

	if (!step_is_ring_name(name) ||
		fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	e.d_ino = st.st_ino;
	(void)snprintf(e.d_name, sizeof(e.d_name), "%s", name);
	why = step_look_at(s, dir_fd, &e);
	if (why != 0)
		s->stats.ignored[why - 1]++;
}

/* Watches the directory that has the name now. */
static void
step_watch(struct ls_source_step *s)
{
	int was = s->watch;

	s->watch = s->watch_fd < 0 ? -1
				   : inotify_add_watch(s->watch_fd, s->dir,
					     IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
	if (s->watch == was)
		return;
	if (was >= 0)
		(void)inotify_rm_watch(s->watch_fd, was);
	s->scan.is_valid = false;
}

/*
 * Looks at what has come since the last turn, before all that lies there: a flood of
 * junk does not hide a new ring. False if more of it waits for the next turn.
 */
static bool
step_take_new(struct ls_source_step *s, int dir_fd)
{
	alignas(struct inotify_event) char bytes[LS_DIRLIST_BYTES];
	struct step_owner crowd = s->crowd;
	const struct inotify_event *e;
	ssize_t n = 0;

	s->crowd.files = 0; /* no drawing: each is seen once */
	while (s->turn.names < LS_STEPS_OPENS_MAX &&
		(n = read(s->watch_fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(*e) + e->len)) {
			e = (const struct inotify_event *)(const void *)(bytes + at);
			s->turn.names++;
			if ((e->mask & IN_Q_OVERFLOW) != 0)
				s->scan.is_valid = false;
			else if (e->len > 0)
				step_look_at_new(s, dir_fd, e->name);
		}
	}
	s->crowd = crowd;
	s->scan.is_valid = s->scan.is_valid && !s->turn.skipped;
	return n <= 0;
}

/* Tells once when the number of files that are left alone changes. */
static void
step_tell_ignored(struct ls_source_step *s)
{
	const uint64_t *n = s->stats.ignored;
	uint64_t sum = 0;

	for (size_t i = 0; i < LS_STEP_IGNORED_COUNT; i++)
		sum += n[i];
	if (sum != s->told && sum > 0)
		ls_log(LS_LOG_WARN, "step",
			"%llu files ignored: %llu not regular, %llu not rings, %llu "
			"of another "
			"boot, %llu duplicates, %llu too many, %llu finished",
			(unsigned long long)sum,
			(unsigned long long)n[LS_STEP_NOT_REGULAR],
			(unsigned long long)n[LS_STEP_NOT_A_RING],
			(unsigned long long)n[LS_STEP_OTHER_BOOT],
			(unsigned long long)n[LS_STEP_DUPLICATE],
			(unsigned long long)n[LS_STEP_TOO_MANY],
			(unsigned long long)n[LS_STEP_FINISHED]);
	s->told = sum;
}

/*
 * True while all that came after the last scan was seen: the directory is watched, or is
 * the same. Otherwise notes how it is before the scan that follows. A second change within
 * the resolution of the clock has the same time, so one that has just changed is scanned
 * again.
 */
static bool
step_is_scanned(struct ls_source_step *s, int dir_fd, uint64_t now_mono_ns)
{
	bool was_valid = s->scan.is_valid;
	struct timespec now;
	struct stat st;

	s->scan.is_valid = false;
	if (fstat(dir_fd, &st) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0)
		return false;
	if (was_valid && s->scan.ino == st.st_ino && s->scan.closed == s->closed &&
		(s->watch >= 0 ||
			(s->scan.changed.tv_sec == st.st_mtim.tv_sec &&
				s->scan.changed.tv_nsec == st.st_mtim.tv_nsec)) &&
		now_mono_ns - s->scan.t_mono_ns < LS_STEPS_RESCAN_NS) {
		s->scan.is_valid = true;
		return true;
	}
	s->scan.is_valid = s->watch >= 0 || now.tv_sec > st.st_mtim.tv_sec + 1;
	s->scan.ino = st.st_ino;
	s->scan.changed = st.st_mtim;
	s->scan.closed = s->closed;
	s->scan.t_mono_ns = now_mono_ns;
	return false;
}

/* Whether this scan has done its share. */
static bool
step_is_enough(const struct step_turn *t)
{
	return t->names >= LS_STEPS_NAMES_MAX || t->looks >= LS_STEPS_LOOKS_MAX ||
		t->opens >= LS_STEPS_OPENS_MAX;
}

/* The pass is complete: its counts are told, and what it did not meet is gone. */
static void
step_end_pass(struct ls_source_step *s, int dir_fd, uint64_t now_mono_ns)
{
	memcpy(s->stats.ignored, s->ignored, sizeof(s->ignored));
	if (s->ignored[LS_STEP_NOT_A_RING] == 0)
		s->stats.example_why = NULL;
	s->scan.is_valid = s->scan.is_valid && !s->skipped;
	ls_rejected_end_pass(&s->rejected);
	step_tell_ignored(s);
	if (s->spool != NULL) {
		ls_leftovers_settle(&s->leftovers, dir_fd, now_mono_ns);
		s->stats.leftovers = s->leftovers.removed;
	}
}

/* Finds new rings. True if all of the directory was seen; else the next scan goes on. */
static bool
step_scan(struct ls_source_step *s, struct ls_dirlist *dir, uint64_t now_mono_ns)
{
	const struct dirent64 *e = NULL;
	off_t next = s->resume;
	unsigned why;

	if (s->resume == 0) {
		if (step_is_scanned(s, dir->fd, now_mono_ns))
			return true;
		memset(s->ignored, 0, sizeof(s->ignored));
		s->skipped = false;
	}
	s->resume = 0;
	if (next != 0 && lseek(dir->fd, next, SEEK_SET) != next)
		return false; /* from the beginning, at the next scan */
	while (!step_is_enough(&s->turn) && (e = ls_dirlist_next(dir)) != NULL) {
		s->turn.names++;
		next = e->d_off;
		if (ls_leftovers_is_name(e->d_name))
			ls_leftovers_see(&s->leftovers, e, now_mono_ns);
		why = step_is_ring_name(e->d_name) ? step_look_at(s, dir->fd, e) : 0;
		if (why != 0)
			s->ignored[why - 1]++;
	}
	step_end_scan(s);
	if (e == NULL && !dir->failed)
		step_end_pass(s, dir->fd, now_mono_ns);
	else if (e != NULL)
		s->resume = next;
	else
		s->scan.is_valid = false;
	return e == NULL && !dir->failed;
}

/*
 * Cursors of rings that are not there any more: a ring whose end is acknowledged is
 * forgotten; one that went away with its end unseen gets an End, so that its worker is
 * not waited for.
 */
static void
step_settle_cursors(struct ls_source_step *s, uint64_t now_mono_ns)
{
	struct ls_spool_ring c;
	size_t i = 0;

	if (s->stats.ignored[LS_STEP_FINISHED] > 0 ||
		s->stats.ignored[LS_STEP_TOO_MANY] > 0)
		return; /* the ring may be one of those */
	while (ls_spool_ring_at(s->spool, i) != NULL)
		i++;
	while (i-- > 0) { /* downwards: the last takes the place of a forgotten one */
		struct ls_wire_item end = { .kind = LS_WIRE_END,
			.how = LS_END_UNKNOWN,
			.t_mono_ns = now_mono_ns };

		c = *ls_spool_ring_at(s->spool, i);
		if (ls_inferred_is(c.id) || step_is_open(s, c.id))
			continue;
		memcpy(end.ring_id, c.id, sizeof(end.ring_id));
		end.count = c.next;
		if (step_is_acked(s, c.id))
			ls_spool_ring_forget(s->spool, c.id);
		else if (c.end_seq == 0 && ls_spool_push(s->spool, &end) == 0)
			s->stats.crashed++; /* refused: at the next scan */
	}
}

void
ls_source_step_read(struct ls_source_step *s, uint64_t now_mono_ns)
{
	struct ls_dirlist dir;
	bool is_open, scanned;

	step_watch(s);
	is_open = ls_dirlist_open(&dir, s->dir) == 0;
	memset(&s->turn, 0, sizeof(s->turn));
	scanned = is_open && step_take_new(s, dir.fd);
	scanned = is_open && step_scan(s, &dir, now_mono_ns) && scanned;
	for (size_t i = 0; i < s->count; i++)
		ls_ring_reader_read(s->file[i].reader, now_mono_ns);
	/* Before removing: a ring whose file turns out to stay keeps its cursor, or it
	 * came again. */
	if (scanned && s->spool != NULL)
		step_settle_cursors(s, now_mono_ns);
	for (size_t i = s->count; i > 0 && s->spool != NULL; i--) {
		const struct ls_step_ring *r = ls_source_step_ring(s, i - 1);

		if (r == NULL || r->state != LS_RING_STATE_DONE ||
			!step_is_acked(s, r->worker.ring_id))
			continue;
		if (is_open)
			(void)step_remove(s, dir.fd, s->file[i - 1].name,
				s->file[i - 1].dev, s->file[i - 1].ino,
				r->worker.ring_id);
		step_close(s, i - 1);
	}
	if (is_open)
		ls_dirlist_close(&dir);
}

/* --- the rest ------------------------------------------------------------- */

int
ls_source_step_new(const char *dir, const uint8_t kernel_boot_id[16],
	struct ls_spool *spool, struct ls_source_step **ret_source)
{
	struct ls_source_step *s;
	struct rlimit fds;

	if (strlen(dir) >= LS_PATH_MAX_BYTES)
		return -LS_ELIMIT;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	memcpy(s->dir, dir, strlen(dir) + 1);
	memcpy(s->kernel_boot_id, kernel_boot_id, sizeof(s->kernel_boot_id));
	s->spool = spool;
	s->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	s->watch = -1;
	s->fd_end = INT_MAX;
	if (getrlimit(RLIMIT_NOFILE, &fds) == 0 && fds.rlim_cur <= INT_MAX)
		s->fd_end = (int)fds.rlim_cur - LS_FDS_KEPT;
	*ret_source = s;
	return 0;
}

void
ls_source_step_free(struct ls_source_step *s)
{
	if (s == NULL)
		return;
	while (s->count > 0)
		step_close(s, s->count - 1);
	if (s->watch_fd >= 0)
		(void)close(s->watch_fd);
	free(s);
}

size_t
ls_source_step_count(const struct ls_source_step *s)
{
	return s->count;
}

const struct ls_step_ring *
ls_source_step_ring(const struct ls_source_step *s, size_t i)
{
	return i < s->count ? ls_ring_reader_ring(s->file[i].reader) : NULL;
}

void
ls_source_step_killed(struct ls_source_step *s, size_t i)
{
	ls_ring_reader_killed(s->file[i].reader);
}

int
ls_source_step_events(const struct ls_source_step *s, size_t i,
	struct ls_ring_events *ret_events)
{
	return i < s->count ? ls_ring_reader_events(s->file[i].reader, ret_events)
			    : -LS_EABSENT;
}

const struct ls_step_stats *
ls_source_step_get_stats(const struct ls_source_step *s)
{
	return &s->stats;
}

/* --- what there is to say ------------------------------------------------- */

void
ls_source_step_tell_dir(const char *dir, struct ls_doctor *d)
{
	const char *fix = ls_doctor_text(d,
		"systemd-tmpfiles --create lockstep-agent.conf; or, as the agent's user: "
		"mkdir -p %.60s && chmod 1777 %.60s",
		dir, dir);
	struct stat st;

	if (stat(dir, &st) != 0)
		ls_doctor_addf(d, LS_DOCTOR_FAIL, "steps", dir, fix,
			"%s: training processes cannot create step rings",
			strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		ls_doctor_add(d, LS_DOCTOR_FAIL, "steps", dir, "is no directory", fix);
	else if (!(st.st_mode & S_IWUSR) || !(st.st_mode & S_IXUSR))
		ls_doctor_addf(d, LS_DOCTOR_FAIL, "steps", dir, fix,
			"mode %04o: training processes cannot create step rings",
			(unsigned)st.st_mode & 07777u);
	else if (!(st.st_mode & S_IWOTH) || !(st.st_mode & S_IXOTH))
		ls_doctor_addf(d, LS_DOCTOR_WARN, "steps", dir, fix,
			"mode %04o: only training processes of uid %u can create "
			"step rings",
			(unsigned)st.st_mode & 07777u, (unsigned)st.st_uid);
	else if (!(st.st_mode & S_ISVTX))
		ls_doctor_addf(d, LS_DOCTOR_WARN, "steps", dir, fix,
			"mode %04o without the sticky bit: every user can remove the "
			"rings of others",
			(unsigned)st.st_mode & 07777u);
	else
		ls_doctor_addf(d, LS_DOCTOR_OK, "steps", dir, "",
			"mode %04o, of uid %u", (unsigned)st.st_mode & 07777u,
			(unsigned)st.st_uid);
}

/* Rings of workers whose process this one cannot see. */
static size_t
step_unseen(const struct ls_source_step *s)
{
	size_t i, n = 0;

	for (i = 0; i < s->count; i++) {
		const struct ls_step_ring *r = ls_source_step_ring(s, i);

		n += r->state == LS_RING_STATE_LIVE && r->pid == 0;
	}
	return n;
}

static void
step_tell_files(const struct ls_source_step *s, struct ls_doctor *d)
{
	const uint64_t *n = s->stats.ignored;

	if (s->stats.example_why != NULL)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "steps", s->stats.example,
			"use the client library of this version in the training program, or "
			"remove the file",
			"%llu files are not valid step rings; the first: %s",
			(unsigned long long)n[LS_STEP_NOT_A_RING],
			s->stats.example_why);
	if (s->stats.damaged > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "steps", "damaged rings",
			"restart the training process of the ring named in the log",
			"%llu rings stopped being valid while they were read",
			(unsigned long long)s->stats.damaged);
	if (n[LS_STEP_FINISHED] > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "steps", "finished rings",
			"make the agent's user the owner of the directory (as "
			"tmpfiles.d does)",
			"%llu cannot be removed",
			(unsigned long long)n[LS_STEP_FINISHED]);
	if (n[LS_STEP_TOO_MANY] > 0)
		ls_doctor_addf(d, LS_DOCTOR_FAIL, "steps", "too many rings",
			"remove unused files from the directory, or allow the agent "
			"more open files (LimitNOFILE=4096)",
			"%llu rings are not read: the maximum is %u",
			(unsigned long long)n[LS_STEP_TOO_MANY],
			(unsigned)LS_RINGS_MAX);
	if (n[LS_STEP_OTHER_BOOT] > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "steps", "old rings",
			"put the directory on a tmpfs (/run), or remove the files",
			"%llu rings are from before the machine started",
			(unsigned long long)n[LS_STEP_OTHER_BOOT]);
}

static void
step_tell_rings(const struct ls_source_step *s, struct ls_doctor *d)
{
	size_t unseen = step_unseen(s);
	const uint64_t *lost = s->stats.lost;

	if (s->count == 0)
		ls_doctor_add(d, LS_DOCTOR_NONE, "steps", "rings",
			"no training process marks its steps here",
			"in the training program: import lockstep, then put each "
			"step into \"with lockstep.step(i):\"; or link liblockstep "
			"(agent/client/README.md)");
	else
		ls_doctor_addf(d, LS_DOCTOR_OK, "steps", "rings", "",
			"%zu workers, %llu step records read", s->count,
			(unsigned long long)s->stats.records);
	if (unseen > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "steps", "processes of rings",
			"hostPID: true in the DaemonSet; with containers: --pid=host",
			"%zu workers have ended or are in another pid namespace: "
			"their threads are not measured",
			unseen);
	if (lost[LS_GAP_OVERRUN] > 0)
		ls_doctor_addf(d, LS_DOCTOR_WARN, "steps", "overwritten records",
			"set a shorter --sample-interval, or mark fewer steps",
			"%llu records were overwritten before the agent read them",
			(unsigned long long)lost[LS_GAP_OVERRUN]);
}

/* Workers whose rank in the job is not known, or is that of another of this host. */
static void
step_tell_ranks(const struct ls_source_step *s, struct ls_doctor *d)
{
	static const char fix[] =
		"set LOCKSTEP_RANK and LOCKSTEP_WORLD in each training process "
		"(agent/client/README.md lists what launchers set)";

	for (size_t i = 0; i < s->count; i++) {
		const struct ls_step_ring *r = ls_source_step_ring(s, i);
		const struct ls_worker_info *w = &r->worker.info;
		bool refused = r->from[STEP_FROM_RANK] == LS_RING_FROM_REFUSED;
		char why[160] = "no variable tells it";

		if (r->state != LS_RING_STATE_LIVE ||
			!step_is_unranked(r->from[STEP_FROM_RANK]) ||
			(!refused && w->rank == 0)) /* it may be alone */
			continue;
		if (refused)
			(void)snprintf(why, sizeof(why),
				"%s is no rank in the whole job, or that of another "
				"process of this host",
				w->refused_rank[0] != '\0' ? w->refused_rank : "it");
		ls_doctor_addf(d, LS_DOCTOR_WARN, "steps", "rank", fix,
			"job %s: the rank of a worker is unknown, and taken for %d: %s",
			w->job, (int)w->rank, why);
	}
}

void
ls_source_step_tell(const struct ls_source_step *s, struct ls_doctor *d)
{
	ls_source_step_tell_dir(s->dir, d);
	step_tell_rings(s, d);
	step_tell_ranks(s, d);
	step_tell_files(s, d);
}
