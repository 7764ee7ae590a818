/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "deploy/demo/sim/offline.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "collector/history/lines.h"
#include "proto/base/json.h"
#include "proto/base/text.h"
#include "deploy/demo/sim/fault.h"

#define OFFLINE_LINE_BYTES 8192u
#define OFFLINE_COUNTERS_S 1.0

/* --- options -------------------------------------------------------------- */

/* "0.003" or "0.3%"; no sign, no words. */
static int
offline_ratio(const char *name, const char *text, double *ret_ratio, char *err,
	size_t size)
{
	char *end = NULL;
	double v = *text >= '0' && *text <= '9' ? strtod(text, &end) : -1;

	if (end != NULL && *end == '%') {
		v /= 100;
		end++;
	}
	if (!(v >= 0) || !isfinite(v) || end == NULL || *end != '\0') {
		ls_ignore(snprintf(err, size,
			"--%s: a ratio is wanted, as 0.003 or 0.3%%", name));
		return -LS_EPARSE;
	}
	*ret_ratio = v;
	return 0;
}

static int
offline_ratios(const struct sim_options *o, struct sim_world_options *w, char *err,
	size_t size)
{
	const struct {
		const char *name, *text;
		double *value;
	} ratios[] = {
		{ "noise", o->noise, &w->noise },
		{ "spread", o->spread, &w->spread },
		{ "missing", o->missing, &w->missing },
		{ "lost", o->lost, &w->lost },
		{ "clock-drift", o->clock_drift, &w->clock_drift },
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(ratios) / sizeof(ratios[0]); i++)
		rc = offline_ratio(ratios[i].name, ratios[i].text, ratios[i].value, err,
			size);
	return rc;
}

/* KIND,...; and what was recorded, which they replay. */
static int
offline_host_noise(const struct sim_options *o, struct sim_recorded *recorded,
	struct sim_world_options *w, char *err, size_t size)
{
	const char *at = strcmp(o->host_noise, "none") == 0 ? "" : o->host_noise;
	int rc = *o->recorded == '\0' ? 0 : sim_recorded_read(o->recorded, recorded);

	if (rc != 0) {
		ls_ignore(snprintf(err, size, "--recorded %s: %s", o->recorded,
			rc == -LS_EPARSE
				? "a line of two numbers or more for each worker is wanted"
				: ls_err_text(rc)));
		return rc;
	}
	while (rc == 0 && *at != '\0') {
		size_t len = strcspn(at, ",");

		rc = w->host_noises == SIM_HOST_NOISES_MAX
			? -LS_ELIMIT
			: sim_host_noise_parse(at, len, recorded,
				  &w->host_noise[w->host_noises++]);
		at += len + (at[len] == ',');
	}
	if (rc != 0)
		ls_ignore(snprintf(err, size,
			"--host-noise %s: %u of KIND[-NUMBER[-NUMBER]][@rack|@slice|@job] at most, with a KIND of the help; "
			"`recorded` needs --recorded",
			o->host_noise, SIM_HOST_NOISES_MAX));
	return rc;
}

int
sim_offline_options(const struct sim_options *o, struct sim_offline *ret_offline,
	char *err, size_t size)
{
	double step_s = (double)o->step_ns * 1e-9;
	struct sim_offline off = { .steps = (uint64_t)o->steps,
		.world = { .seed = (uint64_t)o->seed,
			.hosts = (uint32_t)o->hosts,
			.slices = (uint32_t)o->slices,
			.stages = (uint32_t)o->stages,
			.input_every = (uint32_t)o->input_every,
			.rack_hosts = (uint32_t)o->rack_hosts,
			.shards = (uint32_t)o->shards,
			.chips = (int32_t)o->chips,
			.step_s = step_s,
			.noise_kind = strcmp(o->noise_kind, "gauss") == 0
				? SIM_NOISE_GAUSS
				: SIM_NOISE_T4,
			.burst_steps = (uint32_t)o->burst_steps,
			.checkpoint_steps = (uint32_t)o->checkpoint_steps,
			.eval_steps = (uint32_t)o->eval_steps,
			.compile_steps = (uint32_t)o->compile_steps,
			.lost_from = (uint64_t)o->lost_from,
			.clock_err_s = (double)o->clock_error_ns * 1e-9,
			.clock_tick_ns = o->clock_tick_ns,
			.exit_spread_s =
				fmin((double)o->exit_spread_ns * 1e-9, 0.01 * step_s),
			.roles = o->roles,
			.clockless = !o->barrier_times,
			.peers = o->peers,
			.replicas = o->replicas } };
	struct sim_world_options *w = &off.world;
	struct sim_world *world = NULL;
	char why[SIM_FAULT_WHY_BYTES];
	const char *wrong = NULL;
	double lines = (double)o->hosts * (double)o->steps * (1 + fmin(step_s, 1));
	int rc;

	if (o->hosts > SIM_WORLD_HOSTS_MAX || lines > LS_REPLAY_MAX_RECORDS) {
		ls_ignore(snprintf(err, size,
			"--hosts %lld --steps %lld: %u hosts, and %u records and counter lines are the most",
			(long long)o->hosts, (long long)o->steps, SIM_WORLD_HOSTS_MAX,
			LS_REPLAY_MAX_RECORDS));
		return -LS_ERANGE;
	}
	if (strpbrk(o->job, "\"\\") != NULL ||
		ls_text_copy(w->job, sizeof(w->job), o->job) != 0) {
		ls_ignore(snprintf(err, size,
			"--job: short, without quotes or backslashes, with --offline"));
		return -LS_ERANGE;
	}
	rc = offline_ratios(o, w, err, size);
	if (rc == 0)
		rc = offline_host_noise(o, &off.recorded, w, err, size);
	if (rc != 0)
		goto out;
	rc = sim_fault_parse_list(o->fault, off.fault, &off.faults, why);
	if (rc != 0) {
		ls_ignore(snprintf(err, size, "--fault %s", why));
		goto out;
	}
	rc = sim_world_new(w, off.fault, off.faults, &world, &wrong);
	sim_world_free(world);
	if (rc != 0)
		ls_ignore(snprintf(err, size, "out of range: %s", wrong));
	else
		*ret_offline = off;
out:
	if (rc != 0)
		sim_recorded_free(&off.recorded);
	return rc;
}

/* --- replay file ---------------------------------------------------------- */

struct offline_out {
	gzFile file;
	struct ls_worker_info *workers; /* by rank */
	struct ls_lines lines; /* the next one */
	char text[OFFLINE_LINE_BYTES];
};

static int
offline_put(struct offline_out *out)
{
	size_t len = out->lines.len;
	int code;

	LS_ASSERT(!out->lines.full);
	out->lines.len = 0;
	if (gzwrite(out->file, out->text, (unsigned)len) == (int)len)
		return 0;
	(void)gzerror(out->file, &code); /* the code alone is wanted */
	return code == Z_ERRNO && errno != 0 ? -errno : -EIO;
}

static int
offline_head(const struct sim_offline *off, struct offline_out *out)
{
	int n = snprintf(out->text, sizeof(out->text),
		"{\"type\":\"job\",\"job\":\"%s\",\"simulated\":true,\"from\":%.6f,\"workers\":%u,"
		"\"seed\":%" PRIu64 "}\n",
		off->world.job, (double)SIM_WORLD_START_US * 1e-6, off->world.hosts,
		off->world.seed);

	out->lines.len = (size_t)n; /* a line of short fields */
	return offline_put(out);
}

static int
offline_clock(const struct sim_world *w, uint32_t rank, struct offline_out *out)
{
	ls_lines_clock(&out->lines, &out->workers[rank], SIM_WORLD_START_US + 1000,
		llround(sim_world_uncertainty(w, rank) * 1e9));
	return offline_put(out);
}

static int
offline_counters(const struct sim_world *w, uint32_t rank, int64_t t_us,
	struct offline_out *out)
{
	const struct ls_worker_info *who = &out->workers[rank];
	struct ls_store_counters c = { .read_us = t_us };

	memcpy(c.host, who->host, sizeof(c.host));
	c.count = sim_world_counters(w, rank, t_us, c.metric, c.value);
	ls_lines_counters(&out->lines, who->job, NULL, &c, t_us);
	return offline_put(out);
}

static const char *
offline_host(void *arg, int32_t attempt, uint32_t rank)
{
	const struct offline_out *out = arg;

	(void)attempt; /* there is one */
	return out->workers[rank].host;
}

static int
offline_record(uint32_t rank, const struct ls_record *r, struct offline_out *out)
{
	ls_lines_step(&out->lines, &out->workers[rank], r, offline_host, out);
	return offline_put(out);
}

static int
offline_step(const struct sim_offline *off, struct sim_world *w, double *next_s,
	struct offline_out *out)
{
	struct sim_world_step s;
	struct ls_record r;
	bool counters;
	int rc = 0;

	sim_world_next(w, &s);
	counters = (double)(s.end_us - SIM_WORLD_START_US) * 1e-6 >= *next_s;
	if (counters)
		*next_s = floor((double)(s.end_us - SIM_WORLD_START_US) * 1e-6) +
			OFFLINE_COUNTERS_S;
	for (uint32_t i = 0; rc == 0 && i < off->world.hosts; i++) {
		if (sim_world_lie(w, i, &r))
			rc = offline_record(i, &r, out);
		if (rc == 0 && sim_world_record(w, i, &r))
			rc = offline_record(i, &r, out);
		if (rc == 0 && counters)
			rc = offline_counters(w, i, s.end_us, out);
	}
	return rc;
}

static gzFile
offline_open(const char *path)
{
	size_t len = strlen(path);
	bool packed = len > 3 && strcmp(path + len - 3, ".gz") == 0;
	gzFile file;
	int fd;

	if (strcmp(path, "-") != 0)
		return gzopen(path, packed ? "wb6" : "wbT");
	fd = dup(STDOUT_FILENO);
	file = fd >= 0 ? gzdopen(fd, "wbT") : NULL;
	if (file == NULL && fd >= 0)
		ls_ignore(close(fd));
	return file;
}

/* --- truth ---------------------------------------------------------------- */

static json_t *
offline_culprits(const struct sim_world *w, const struct sim_fault *f, uint32_t hosts)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < hosts; i++) {
		struct ls_worker_info who;

		if (!sim_world_concerns(w, f, i))
			continue;
		sim_world_worker(w, i, &who);
		/* shows in the result */
		ls_ignore(json_array_append_new(list, json_string(who.host)));
	}
	return list;
}

/* As those who score runs know it: a rank, a link, or all (blame no host). */
static const char *
offline_scope(const struct sim_fault_info *info)
{
	if (info->scope == SIM_SCOPE_LINK || info->scope == SIM_SCOPE_DCN)
		return "link";
	return info->scope == SIM_SCOPE_HOST ? "rank" : "all";
}

static json_t *
offline_fault(const struct sim_offline *off, const struct sim_world *w, size_t k)
{
	char text[SIM_FAULT_TEXT_BYTES];
	struct sim_truth t;
	uint64_t last;

	sim_world_truth(w, k, &t);
	sim_fault_print(&t.fault, text);
	last = (t.fault.to < off->steps ? t.fault.to : off->steps) - 1;
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:{s:s}, s:o, s:o}",
		"cause", t.info->name, "kind", sim_truth_name(t.info->truth), "scope",
		offline_scope(t.info), "level", sim_scope_name(t.info->scope),
		"culprits", offline_culprits(w, &t.fault, off->world.hosts),
		"from_step", (json_int_t)t.fault.from, "to_step", (json_int_t)last,
		"args", "fault", text, "cost_s", ls_json_real(t.cost_s), "extra_s",
		ls_json_real(t.extra_s));
}

static json_t *
offline_truth(const struct sim_offline *off, const struct sim_world *w,
	const char *path)
{
	const char *slash = strrchr(path, '/'),
		   *file = slash != NULL ? slash + 1 : path, *dot = strchr(file, '.');
	int stem = (int)(dot != NULL ? (size_t)(dot - file) : strlen(file));
	json_t *faults = json_array(), *benign = json_array();

	for (size_t k = 0; k < off->faults; k++) {
		enum sim_truth_kind kind = sim_fault_info(off->fault[k].kind)->truth;
		bool none = kind == SIM_TRUTH_NONE || kind == SIM_TRUTH_BENIGN ||
			kind == SIM_TRUTH_PERIODIC;

		if (off->fault[k].from < off->steps) /* else it never came to be */
			ls_ignore(json_array_append_new(none ? benign : faults,
				offline_fault(off, w, k)));
	}
	return json_pack("{s:s%, s:s, s:I, s:I, s:s, s:s, s:b, s:I, s:o, s:o}", "run",
		file, (size_t)stem, "file", file, "hosts", (json_int_t)off->world.hosts,
		"steps", (json_int_t)off->steps, "collective", "sim", "note",
		off->faults == 0 ? "simulated; no fault" : "simulated", "simulated", 1,
		"seed", (json_int_t)off->world.seed, "faults", faults, "benign",
		benign);
}

static int
offline_write_truth(const struct sim_offline *off, const struct sim_world *w,
	const char *path, const char *truth)
{
	json_t *line = offline_truth(off, w, path);
	char *text = line != NULL ? ls_json_canonical(line) : NULL;
	FILE *f = NULL;
	int rc = text == NULL ? -ENOMEM : 0;

	if (rc == 0) {
		f = fopen(truth, "we");
		rc = f == NULL || fprintf(f, "%s\n", text) < 0 ? -errno : 0;
	}
	if (f != NULL && fclose(f) != 0 && rc == 0)
		rc = -errno;
	free(text);
	json_decref(line);
	return rc;
}

int
sim_offline_write(const struct sim_offline *off, const char *path, const char *truth,
	char *err, size_t size)
{
	struct offline_out *out = calloc(1, sizeof(*out));
	struct sim_world *w = NULL;
	double next_s = 0;
	int rc = -ENOMEM;

	if (out == NULL)
		goto out;
	out->lines = (struct ls_lines){ .text = out->text, .size = sizeof(out->text) };
	out->workers = calloc(off->world.hosts, sizeof(*out->workers));
	if (out->workers == NULL)
		goto out;
	rc = sim_world_new(&off->world, off->fault, off->faults, &w, NULL);
	if (rc != 0)
		goto out;
	for (uint32_t i = 0; i < off->world.hosts; i++)
		sim_world_worker(w, i, &out->workers[i]);
	errno = 0;
	out->file = offline_open(path);
	if (out->file == NULL)
		rc = errno != 0 ? -errno : -ENOMEM;
	if (rc == 0)
		rc = offline_head(off, out);
	for (uint32_t i = 0;
		rc == 0 && i < off->world.hosts && off->world.clock_err_s > 0; i++)
		rc = offline_clock(w, i, out);
	for (uint64_t step = 0; rc == 0 && step < off->steps; step++)
		rc = offline_step(off, w, &next_s, out);
	if (out->file != NULL && gzclose(out->file) != Z_OK && rc == 0)
		rc = errno != 0 ? -errno : -EIO;
	if (rc != 0)
		ls_ignore(snprintf(err, size, "%s: %s", path, ls_err_text(rc)));
	else if (*truth != '\0' && (rc = offline_write_truth(off, w, path, truth)) != 0)
		ls_ignore(snprintf(err, size, "%s: %s", truth, ls_err_text(rc)));
out:
	if (out == NULL || w == NULL)
		ls_ignore(snprintf(err, size, "%s", ls_err_text(rc)));
	if (out != NULL)
		free(out->workers);
	free(out);
	sim_world_free(w);
	return rc;
}
