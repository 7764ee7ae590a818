/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/workload/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CGROUP_PATH = 384, CGROUP_TRIES = 100 };

static int
cgroup_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* Path of rank i's cgroup, with a file in it or "". */
static void
cgroup_path(const struct cgroup_set *s, unsigned i, const char *file, char *dst)
{
	(void)snprintf(dst, CGROUP_PATH, "%s/lockstep-workload-%ld-h%u/%s", s->base,
		(long)s->owner, i, file);
}

void
cgroup_remove(const struct cgroup_set *s)
{
	char path[CGROUP_PATH];
	const struct timespec pause = { 0, 20000000 };

	if (s->version == 0)
		return;
	for (unsigned i = 0; i < s->count; i++) {
		cgroup_path(s, i, "", path);
		for (unsigned tries = 0; tries < CGROUP_TRIES; tries++) {
			if (rmdir(path) == 0 || errno != EBUSY)
				break;
			/* the last member is on its way out */
			(void)nanosleep(&pause, NULL);
		}
	}
}

/* Mount point of the hierarchy with the cpu controller (version 1), or of version 2. */
static bool
cgroup_mount(int version, char *dst, size_t size)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	bool found = false;

	if (f == NULL)
		return false;
	while (!found && (m = getmntent(f)) != NULL) {
		if (version == 1 ? strcmp(m->mnt_type, "cgroup") == 0 &&
					hasmntopt(m, "cpu") != NULL
				 : strcmp(m->mnt_type, "cgroup2") == 0)
			found = snprintf(dst, size, "%s", m->mnt_dir) < (int)size;
	}
	endmntent(f);
	return found;
}

/* Is "cpu" one of the words of this list with commas? */
static bool
cgroup_lists_cpu(const char *list)
{
	size_t len;

	for (; *list != '\0'; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (len == 3 && strncmp(list, "cpu", 3) == 0)
			return true;
	}
	return false;
}

/* Our own place in that hierarchy: /proc/self/cgroup has lines "id:controllers:path".
 */
static void
cgroup_own(int version, char *dst, size_t size)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[512];

	dst[0] = '\0';
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char *list = strchr(line, ':'),
		     *path = list != NULL ? strchr(list + 1, ':') : NULL;

		if (path == NULL)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		if ((version == 1 ? cgroup_lists_cpu(list + 1) : list[1] == '\0') &&
			strcmp(path, "/") != 0)
			(void)snprintf(dst, size, "%s", path);
	}
	if (f != NULL)
		(void)fclose(f);
}

/* Makes the directories in s->base, or none of them. */
static int
cgroup_make(struct cgroup_set *s)
{
	char path[CGROUP_PATH];
	int rc = 0;

	if (s->version == 2) {
		(void)snprintf(path, sizeof(path), "%s/cgroup.subtree_control",
			s->base);
		rc = cgroup_put(path, "+cpu");
	}
	for (unsigned i = 0; i < s->count && rc == 0; i++) {
		cgroup_path(s, i, "", path);
		if (mkdir(path, 0755) != 0)
			rc = -errno;
		cgroup_path(s, i, s->version == 1 ? "cpu.shares" : "cpu.weight", path);
		if (rc == 0 && access(path, W_OK) != 0)
			rc = -errno;
	}
	if (rc != 0)
		cgroup_remove(s);
	return rc;
}

/* Tries our own cgroup first, then the root of the hierarchy. */
static int
cgroup_try(struct cgroup_set *s, int version)
{
	char mount[128], own[128];
	int rc;

	if (!cgroup_mount(version, mount, sizeof(mount)))
		return -ENOENT;
	cgroup_own(version, own, sizeof(own));
	s->version = version;
	(void)snprintf(s->base, sizeof(s->base), "%s%s", mount, own);
	rc = cgroup_make(s);
	if (rc != 0 && own[0] != '\0') {
		(void)snprintf(s->base, sizeof(s->base), "%s", mount);
		rc = cgroup_make(s);
	}
	return rc;
}

void
cgroup_open(struct cgroup_set *s, unsigned count)
{
	int rc1, rc2;

	memset(s, 0, sizeof(*s));
	s->owner = getpid();
	s->count = count;
	rc1 = cgroup_try(s, 1);
	rc2 = rc1 != 0 ? cgroup_try(s, 2) : 0;
	if (rc1 == 0 || rc2 == 0)
		return;
	s->version = 0;
	(void)snprintf(s->why, sizeof(s->why), "version 1: %s; version 2: %s",
		ls_err_text(rc1), ls_err_text(rc2));
}

int
cgroup_join(const struct cgroup_set *s, unsigned i)
{
	char path[CGROUP_PATH];

	if (s->version == 0)
		return 0;
	cgroup_path(s, i, "cgroup.procs", path);
	return cgroup_put(path, "0");
}

int
cgroup_quota(const struct cgroup_set *s, unsigned i, int percent)
{
	/* the kernel's default, and that of container runtimes */
	const int period_us = 100000;
	char path[CGROUP_PATH], text[64];
	int rc;

	if (s->version == 0)
		return -ENOTSUP;
	if (s->version == 2) {
		cgroup_path(s, i, "cpu.max", path);
		if (percent == CGROUP_NO_QUOTA)
			return cgroup_put(path, "max");
		(void)snprintf(text, sizeof(text), "%d %d", period_us / 100 * percent,
			period_us);
		return cgroup_put(path, text);
	}
	cgroup_path(s, i, "cpu.cfs_period_us", path);
	(void)snprintf(text, sizeof(text), "%d", period_us);
	rc = cgroup_put(path, text);
	if (rc != 0)
		return rc;
	cgroup_path(s, i, "cpu.cfs_quota_us", path);
	(void)snprintf(text, sizeof(text), "%d",
		percent == CGROUP_NO_QUOTA ? -1 : period_us / 100 * percent);
	return cgroup_put(path, text);
}
