/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/client/identity.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Positions in from[]: those of the ring's header. */
enum { JOB, ATTEMPT, RANK, WORLD, ROLE, SLICE, CHIPS, HOST };

/* What of the environment goes into the header, which everybody can read: names, never
 * secrets. */
static const char *const identity_env_names[] = { "LOCKSTEP_JOB", "LOCKSTEP_ATTEMPT",
	"LOCKSTEP_RANK", "LOCKSTEP_WORLD", "LOCKSTEP_ROLE", "LOCKSTEP_SLICE",
	"LOCKSTEP_CHIPS", "LOCKSTEP_HOST", "JOBSET_NAME", "JOBSET_RESTART_ATTEMPT",
	"REPLICATED_JOB_NAME", "JOB_COMPLETION_INDEX", "MEGASCALE_SLICE_ID",
	"MEGASCALE_NUM_SLICES", "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES",
	"TPU_ACCELERATOR_TYPE", "TPU_TOPOLOGY", "TPU_CHIPS_PER_HOST_BOUNDS",
	"TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_HOST_BOUNDS", "TPU_PROCESS_BOUNDS",
	"TPU_VISIBLE_CHIPS", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
	"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID",
	"SLURM_JOB_NAME", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NODEID",
	"SLURM_RESTART_COUNT", "NODE_NAME", "POD_NAME", "POD_NAMESPACE",
	"TPU_TOPOLOGY_WRAP", "TPU_RUNTIME_METRICS_PORTS", "TPU_SKIP_MDS_QUERY",
	"TPU_PROCESS_ADDRESSES", "LOCKSTEP_SHARD", "JAX_PROCESS_ID",
	"JAX_NUM_PROCESSES", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
	"PMI_SIZE", "CLOUD_TPU_TASK_ID", "LWS_WORKER_INDEX", "LWS_GROUP_SIZE",
	"LWS_LEADER_ADDRESS" };

/* Bytes of the UTF-8 sequence at s, or 0 if it is none or a control character (RFC
 * 3629). */
static size_t
identity_utf8(const unsigned char *s)
{
	size_t len, i;
	uint32_t cp;

	if (s[0] < 0x80)
		return s[0] < 0x20 || s[0] == 0x7f ? 0 : 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		len = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		len = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		len = 4;
	else
		return 0;
	cp = s[0] & (0x7fu >> len);
	for (i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0; /* also stops at the terminator */
		cp = cp << 6 | (s[i] & 0x3fu);
	}
	if (cp < 0xa0 || (len == 3 && cp < 0x800) || (cp >= 0xd800 && cp < 0xe000) ||
		(len == 4 && cp < 0x10000) || cp > 0x10ffff)
		return 0;
	return len;
}

/* Copies a name, cut to whole characters; what may not stand in a name becomes '_'. */
static void
identity_copy(char *dst, size_t size, const char *src)
{
	const unsigned char *s = (const unsigned char *)src;
	size_t used = 0;

	while (*s != '\0') {
		size_t len = identity_utf8(s);
		size_t out = len > 0 ? len : 1;

		if (used + out >= size)
			break;
		if (len > 0)
			memcpy(dst + used, s, len);
		else
			dst[used] = '_';
		used += out;
		s += out;
	}
	memset(dst + used, 0, size - used);
}

/* The whole text as a number from 0 to max, or -1. */
static int
identity_number(const char *text, int max)
{
	char *end;
	long v;

	if (text == NULL || *text < '0' || *text > '9')
		return -1;
	errno = 0;
	v = strtol(text, &end, 10);
	if (errno != 0 || *end != '\0' || v > max)
		return -1;
	return (int)v;
}

/* Product of "2,2,1", or -1. */
static int
identity_bounds(const char *text)
{
	long product = 1;

	if (text == NULL)
		return -1;
	for (;;) {
		char *end;
		long v = strtol(text, &end, 10);

		if (*text < '0' || *text > '9' || v < 1 || v > LS_CHIPS_PER_WORKER_MAX)
			return -1;
		product *= v;
		if (product > LS_CHIPS_PER_WORKER_MAX)
			return -1;
		if (*end == '\0')
			return (int)product;
		if (*end != ',')
			return -1;
		text = end + 1;
	}
}

/* Number of names in a list with commas; -1 if there is none, or more than a job has workers. */
static int
identity_count(const char *list)
{
	int n = 1;

	if (list == NULL || *list == '\0')
		return -1;
	for (; *list != '\0'; list++)
		n += *list == ',';
	return n <= LS_WORKERS_MAX ? n : -1;
}

/* Takes the value if it is one and no source before gave any. */
static void
identity_offer_number(struct ls_client_identity *id, int32_t *field, int slot,
	int value, enum ls_ring_from from)
{
	if (id->from[slot] != LS_RING_FROM_NONE || value < 0)
		return;
	*field = value;
	id->from[slot] = (uint8_t)from;
}

static void
identity_offer_name(struct ls_client_identity *id, char *field, size_t size, int slot,
	const char *value, enum ls_ring_from from)
{
	if (id->from[slot] != LS_RING_FROM_NONE || value == NULL || *value == '\0')
		return;
	identity_copy(field, size, value);
	id->from[slot] = (uint8_t)from;
}

/*
 * The name of a run: torchrun's id, unless it is the default one; else the leader's pod of
 * a group of LeaderWorkerSet: each group is a job of its own. "": neither.
 */
static void
identity_run(char *text, size_t size)
{
	const char *id = getenv("TORCHELASTIC_RUN_ID");
	const char *leader = getenv("LWS_LEADER_ADDRESS");

	identity_copy(text, size,
		id != NULL && strcmp(id, "none") != 0 ? id
			: leader != NULL	      ? leader
						      : "");
	if (leader != NULL && (id == NULL || strcmp(id, "none") == 0))
		text[strcspn(text, ".")] = '\0';
}

static void
identity_names(struct ls_client_identity *id, const struct lockstep_options *o)
{
	struct ls_worker_info *w = &id->worker;
	char text[2 * LS_JOB_NAME_MAX_BYTES] = "";
	const char *name = getenv("SLURM_JOB_NAME"), *number = getenv("SLURM_JOB_ID");

#define NAME(field, slot, value, from)                                   \
	identity_offer_name(id, w->field, sizeof(w->field), slot, value, \
		LS_RING_FROM_##from)
	NAME(job, JOB, o->job, API);
	NAME(job, JOB, getenv("LOCKSTEP_JOB"), LOCKSTEP);
	NAME(job, JOB, getenv("JOBSET_NAME"), JOBSET);
	if (number != NULL) {
		/* The number last, and never cut off: it is what makes the job unique.
		 */
		size_t used;

		identity_copy(text, LS_JOB_NAME_MAX_BYTES / 2,
			name != NULL ? name : "slurm");
		used = strlen(text);
		text[used] = '-';
		identity_copy(text + used + 1, LS_JOB_NAME_MAX_BYTES / 2, number);
	}
	NAME(job, JOB, text, SLURM);
	identity_run(text, LS_JOB_NAME_MAX_BYTES);
	NAME(job, JOB, text, LWS);
	NAME(job, JOB, "default", DEFAULT);
	NAME(role, ROLE, o->role, API);
	NAME(role, ROLE, getenv("LOCKSTEP_ROLE"), LOCKSTEP);
	NAME(role, ROLE, getenv("REPLICATED_JOB_NAME"), JOBSET);
	NAME(slice, SLICE, o->slice, API);
	NAME(slice, SLICE, getenv("LOCKSTEP_SLICE"), LOCKSTEP);
	NAME(slice, SLICE, getenv("MEGASCALE_SLICE_ID"), MEGASCALE);
	NAME(host, HOST, o->host, API);
	NAME(host, HOST, getenv("LOCKSTEP_HOST"), LOCKSTEP);
	if (gethostname(text, LS_HOST_NAME_MAX_BYTES) == 0) {
		text[LS_HOST_NAME_MAX_BYTES - 1] = '\0';
		NAME(host, HOST, text, DEFAULT);
	}
#undef NAME
}

enum identity_form { WHOLE, SLICE_PART, HOST_PART, JOB_PART };

static const struct identity_launcher {
	enum ls_ring_from from;
	const char *rank, *world, *needs;
	enum identity_form form;
} identity_launchers[] = {
#define FORM_WHOLE WHOLE
#define FORM_SLICE SLICE_PART
#define FORM_HOST HOST_PART
#define FORM_JOB JOB_PART
#define LS_LAUNCHER(from, rank, world, needs, form) \
	{ LS_RING_FROM_##from, rank, world, needs, FORM_##form },
#include "agent/client/python/lockstep/launchers.def"
};

/* Does a host run several processes, each with chips of its own? */
static bool
identity_shares_host(void)
{
	int hosts = identity_count(getenv("TPU_WORKER_HOSTNAMES"));

	return identity_number(getenv("LOCAL_WORLD_SIZE"), INT_MAX) > 1 ||
		(hosts > 0 && identity_count(getenv("TPU_PROCESS_ADDRESSES")) > hosts);
}

/* Rank and world by one launcher's variables. Returns false if the variable is set and does
 * not tell the rank in the whole job. */
static bool
identity_launch(struct ls_client_identity *id, const struct identity_launcher *l)
{
	const char *text = getenv(l->rank);
	bool part = l->form == SLICE_PART || l->form == HOST_PART;
	int rank = identity_number(text, LS_WORKERS_MAX - 1);
	int world = part ? identity_count(getenv(l->world))
			 : identity_number(getenv(l->world), LS_WORKERS_MAX);
	int slices = identity_number(getenv("MEGASCALE_NUM_SLICES"), LS_SLICES_MAX);
	int slice = identity_number(getenv("MEGASCALE_SLICE_ID"), LS_SLICES_MAX);
	enum ls_ring_from from = l->from;

	if (text == NULL || *text == '\0' ||
		(l->needs[0] != '\0' && getenv(l->needs) == NULL))
		return true;
	if (rank < 0 ||
		((l->form == HOST_PART || l->form == JOB_PART) &&
			identity_shares_host()))
		return false;
	if (l->form != WHOLE && (slices > 1 || (slice >= 0 && slices != 1))) {
		if (!part || slice < 0 || (slices >= 0 && slice >= slices) ||
			(slice > 0 &&
				(world < 0 || world > LS_WORKERS_MAX / (slice + 1) ||
					rank >= LS_WORKERS_MAX - slice * world)))
			return false; /* where this slice begins is not known */
		if (slice > 0) {
			rank += slice * world;
			from = LS_RING_FROM_MEGASCALE;
		}
		world = slices > 1 && world <= LS_WORKERS_MAX / slices ? world * slices
								       : -1;
	}
	/* the world of the launcher that gives the rank; or that of any to a rank that a
	 * person gave */
	if (id->from[RANK] <= LS_RING_FROM_LOCKSTEP && world > 0)
		identity_offer_number(id, &id->worker.world, WORLD, world,
			part && slices > 1 ? LS_RING_FROM_MEGASCALE : l->from);
	identity_offer_number(id, &id->worker.rank, RANK, rank, from);
	return true;
}

/* Rank and world, unless options gave them: by the first launcher that knows. */
static void
identity_place(struct ls_client_identity *id)
{
	bool refused = false;

	for (size_t i = 0;
		i < sizeof(identity_launchers) / sizeof(identity_launchers[0]); i++)
		refused |= !identity_launch(id, &identity_launchers[i]);
	identity_offer_number(id, &id->worker.rank, RANK, 0,
		refused ? LS_RING_FROM_REFUSED : LS_RING_FROM_DEFAULT);
}

static void
identity_numbers(struct ls_client_identity *id, const struct lockstep_options *o)
{
	struct ls_worker_info *w = &id->worker;

#define NUMBER(field, slot, value, from) \
	identity_offer_number(id, &w->field, slot, value, LS_RING_FROM_##from)
#define ENV(name, max) identity_number(getenv(name), max)
	NUMBER(attempt, ATTEMPT, o->attempt, API);
	NUMBER(attempt, ATTEMPT, ENV("LOCKSTEP_ATTEMPT", INT_MAX), LOCKSTEP);
	NUMBER(attempt, ATTEMPT, ENV("JOBSET_RESTART_ATTEMPT", INT_MAX), JOBSET);
	NUMBER(attempt, ATTEMPT, ENV("TORCHELASTIC_RESTART_COUNT", INT_MAX), TORCH);
	NUMBER(attempt, ATTEMPT, ENV("SLURM_RESTART_COUNT", INT_MAX), SLURM);
	NUMBER(attempt, ATTEMPT, 0, DEFAULT);
	NUMBER(rank, RANK, o->rank < LS_WORKERS_MAX ? o->rank : -1, API);
	NUMBER(world, WORLD, o->world <= LS_WORKERS_MAX ? o->world : -1, API);
	NUMBER(world, WORLD, ENV("LOCKSTEP_WORLD", LS_WORKERS_MAX), LOCKSTEP);
	identity_place(id);
	NUMBER(chips, CHIPS, o->chips <= LS_CHIPS_PER_WORKER_MAX ? o->chips : -1, API);
	NUMBER(chips, CHIPS, ENV("LOCKSTEP_CHIPS", LS_CHIPS_PER_WORKER_MAX), LOCKSTEP);
	NUMBER(chips, CHIPS, identity_bounds(getenv("TPU_CHIPS_PER_PROCESS_BOUNDS")),
		TPU);
	NUMBER(chips, CHIPS, identity_bounds(getenv("TPU_CHIPS_PER_HOST_BOUNDS")), TPU);
#undef ENV
#undef NUMBER
	if (w->world > 0 && w->rank >= w->world) {
		/* The two come from different places and disagree: keep the one that
		 * names us. */
		w->world = 0;
		id->from[WORLD] = LS_RING_FROM_NONE;
	}
}

/* A value with a control character could pass for another variable: left out, as what
 * is too long. */
static void
identity_env(struct ls_client_identity *id)
{
	size_t used = 0, i;

	for (i = 0; i < sizeof(identity_env_names) / sizeof(identity_env_names[0]);
		i++) {
		const char *name = identity_env_names[i], *value = getenv(name), *p;
		size_t name_len = strlen(name), value_len;
		bool plain = true;

		if (value == NULL)
			continue;
		for (p = value; *p != '\0'; p++)
			plain = plain && (unsigned char)*p >= 0x20 && *p != 0x7f;
		value_len = (size_t)(p - value);
		if (!plain || name_len + value_len + 2 >= sizeof(id->env) - used)
			continue;
		memcpy(id->env + used, name, name_len);
		used += name_len;
		id->env[used++] = '=';
		memcpy(id->env + used, value, value_len);
		used += value_len;
		id->env[used++] = '\n';
	}
	id->env[used] = '\0';
}

void
ls_client_identity_resolve(const struct lockstep_options *options,
	struct ls_client_identity *ret)
{
	static const struct lockstep_options none = LOCKSTEP_OPTIONS_INIT;

	memset(ret, 0, sizeof(*ret));
	if (options == NULL)
		options = &none;
	identity_names(ret, options);
	identity_numbers(ret, options);
	identity_env(ret);
}
