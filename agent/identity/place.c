/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/place.h"
#include "agent/identity/keyvalue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/collect/procfile.h"
#include "proto/base/json.h"
#include "proto/base/log.h"
#include "proto/base/loop.h"
#include "proto/base/text.h"

#define PLACE_AUTO "auto"
#define PLACE_DEVICE_MAX 999999999u
#define PLACE_OFF "off"
#define PLACE_LOOK_NS 10000000ull /* --once looks this often whether all was asked */

struct ls_place {
	struct ls_agent_config config;
	struct ls_loop *loop;
	struct ls_identity *identity;
	struct ls_chips *chips;
	struct ls_metadata *metadata;
	const char *why_not; /* the metadata server is not asked */
	struct ls_loop_timer *look;
	uint64_t opened_ns, next_find_ns, next_owners_ns;
	struct ls_identity_ring rings[LS_RINGS_MAX];
	/* LS_ENVIRON_MAX_BYTES: environments, the labels file */
	char *text;
};

/* --- options -------------------------------------------------------------- */

static const char *
place_metadata_problem(const char *address)
{
	if (address[0] == '\0' || strcmp(address, PLACE_AUTO) == 0 ||
		strcmp(address, PLACE_OFF) == 0 ||
		ls_metadata_address_is_valid(address))
		return NULL;
	return "--metadata-address must be auto, off or a numeric address (resolving "
	       "a name could block the agent)";
}

static bool
place_is_name(const char *name, size_t size)
{
	return name[0] == '\0' || ls_text_is_name(name, strlen(name), size - 1);
}

const char *
ls_place_check(const struct ls_agent_config *config)
{
	if (!place_is_name(config->job, LS_JOB_NAME_MAX_BYTES))
		return "--job is not a usable name";
	if (!place_is_name(config->slice, LS_SLICE_NAME_MAX_BYTES))
		return "--slice is not a usable name";
	if (!place_is_name(config->rack, LS_PLACE_NAME_MAX_BYTES))
		return "--rack is not a usable name";
	if (!ls_identity_is_valid(LS_IDENTITY_WORKER, config->worker_id))
		return "--worker-id is not a number";
	if (!ls_identity_is_valid(LS_IDENTITY_TOPOLOGY, config->topology))
		return "--topology is not valid: write 4x4x8 or 4x8";
	return place_metadata_problem(config->metadata_address);
}

static void
place_take_config(struct ls_place *p)
{
	const struct ls_agent_config *c = &p->config;
	const struct {
		enum ls_identity_field field;
		const char *value;
	} given[] = { { LS_IDENTITY_JOB, c->job }, { LS_IDENTITY_SLICE, c->slice },
		{ LS_IDENTITY_RACK, c->rack }, { LS_IDENTITY_WORKER, c->worker_id },
		{ LS_IDENTITY_TOPOLOGY, c->topology },
		{ LS_IDENTITY_ACCELERATOR, c->accelerator_type } };

	ls_identity_set(p->identity, LS_IDENTITY_HOST,
		c->host_name_is_given ? LS_IDENTITY_FROM_CONFIG
				      : LS_IDENTITY_FROM_MACHINE,
		c->host_name);
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
		ls_identity_set(p->identity, given[i].field, LS_IDENTITY_FROM_CONFIG,
			given[i].value);
}

/* --- the metadata server -------------------------------------------------- */

static void
place_answer(void *arg, enum ls_metadata_item item, const char *text, size_t len)
{
	struct ls_place *p = arg;

	ls_identity_metadata(p->identity, item, text, len);
}

static void
place_settle(void *arg)
{
	struct ls_place *p = arg;

	if (ls_identity_settle(p->identity))
		ls_log(LS_LOG_DEBUG, "place",
			"identity of this host changed (change %llu)",
			(unsigned long long)ls_identity_changes(p->identity));
}

/* True on a virtual machine of Google's, by its firmware: elsewhere the address is
 * another one's. */
static bool
place_is_google(const struct ls_place *p)
{
	static const char vendor[] = "Google";
	char path[LS_PATH_MAX_BYTES], text[128];
	size_t len;

	return ls_procfile_path(path, sizeof(path), p->config.sys_root,
		       "class/dmi/id/product_name") == 0 &&
		ls_procfile_read_once(AT_FDCWD, path, text, sizeof(text), &len) == 0 &&
		len >= sizeof(vendor) - 1 &&
		memcmp(text, vendor, sizeof(vendor) - 1) == 0;
}

/* The address to ask, or NULL and why not. */
static const char *
place_metadata_address(struct ls_place *p)
{
	const char *given = p->config.metadata_address,
		   *env = getenv("GCE_METADATA_IP");

	p->why_not = "not used: --metadata-address is off";
	if (given[0] == '\0' || strcmp(given, PLACE_OFF) == 0)
		return NULL;
	if (strcmp(given, PLACE_AUTO) != 0)
		return given;
	if (env != NULL && env[0] != '\0') {
		p->why_not = "not used: GCE_METADATA_IP is not a numeric address";
		return ls_metadata_address_is_valid(env) ? env : NULL;
	}
	p->why_not = "not used: this host has neither a TPU chip nor Google's firmware";
	return ls_chips_count(p->chips) > 0 || place_is_google(p) ? LS_METADATA_ADDRESS
								  : NULL;
}

static int
place_open_metadata(struct ls_place *p)
{
	struct ls_metadata_options o = { .deadline_ns = LS_METADATA_DEADLINE_NS,
		.retry_ns = LS_METADATA_RETRY_MIN_NS,
		.arg = p,
		.answer = place_answer,
		.done = place_settle };

	o.address = place_metadata_address(p);
	return o.address != NULL ? ls_metadata_new(p->loop, &o, &p->metadata) : 0;
}

/* --- life ----------------------------------------------------------------- */

static void
place_find_chips(struct ls_place *p)
{
	ls_ignore(ls_chips_find(p->chips)); /* the doctor says what failed */
	ls_identity_chips(p->identity, p->chips);
}

static void
place_read_labels(struct ls_place *p)
{
	size_t len = 0;
	int rc;

	if (p->config.labels_file[0] == '\0')
		return;
	rc = ls_procfile_read_once(AT_FDCWD, p->config.labels_file, p->text,
		LS_LABELS_FILE_MAX_BYTES, &len);
	if (rc != 0)
		ls_log(LS_LOG_WARN, "place",
			"cannot read --labels-file %s (%s); continuing without labels",
			p->config.labels_file, ls_err_text(rc));
	ls_identity_labels(p->identity, rc == 0 ? p->text : NULL, len);
}

int
ls_place_open(struct ls_loop *loop, const struct ls_agent_config *config,
	struct ls_place **ret_place)
{
	struct ls_place *p = calloc(1, sizeof(*p));
	int rc = -ENOMEM;

	if (p == NULL)
		return rc;
	p->config = *config;
	p->loop = loop;
	p->opened_ns = ls_loop_now(loop);
	p->identity = ls_identity_new();
	p->text = malloc(LS_ENVIRON_MAX_BYTES);
	if (p->identity != NULL && p->text != NULL)
		rc = ls_chips_new(config->proc_root, config->sys_root, config->dev_root,
			&p->chips);
	if (rc == 0) {
		place_take_config(p);
		place_find_chips(p);
		p->next_find_ns = p->opened_ns + LS_CHIPS_RESCAN_NS;
		place_read_labels(p);
		place_settle(p);
		rc = place_open_metadata(p);
	}
	if (rc == 0)
		*ret_place = p;
	else
		ls_place_close(p);
	return rc;
}

void
ls_place_close(struct ls_place *p)
{
	if (p == NULL)
		return;
	ls_metadata_free(p->metadata);
	ls_loop_timer_free(p->look);
	ls_chips_free(p->chips);
	ls_identity_free(p->identity);
	free(p->text);
	free(p);
}

/* --- reading -------------------------------------------------------------- */

static void
place_read_environ(struct ls_place *p, pid_t pid)
{
	char path[LS_PATH_MAX_BYTES + 32];
	size_t len;

	(void)snprintf(path, sizeof(path), "%s/%ld/environ", p->config.proc_root,
		(long)pid);
	if (ls_procfile_read_once(AT_FDCWD, path, p->text, LS_ENVIRON_MAX_BYTES,
		    &len) == 0)
		ls_identity_environ_add(p->identity, p->text, len);
	/* what was not wanted is not kept */
	explicit_bzero(p->text, LS_ENVIRON_MAX_BYTES);
}

/* The environment of each process that holds a chip, only where the site allows it. */
static void
place_read_environs(struct ls_place *p)
{
	pid_t read[LS_CHIPS_MAX * LS_CHIP_NODES_MAX];
	const struct ls_chip *c;
	size_t i, n, k, count = 0;

	if (!p->config.read_environ)
		return;
	ls_identity_environ_begin(p->identity);
	for (i = 0; (c = ls_chips_get(p->chips, i)) != NULL; i++) {
		for (n = 0; n < c->node_count; n++) {
			read[count] = c->node[n].owner;
			for (k = 0; read[k] != read[count]; k++)
				; /* ends at count: several nodes may have one owner */
			if (k == count && read[k] > 0)
				place_read_environ(p, read[count++]);
		}
	}
}

static void
place_read_rings(struct ls_place *p, const struct ls_source_step *steps)
{
	const struct ls_step_ring *r;
	size_t i, n = 0;

	for (i = 0; (r = ls_source_step_ring(steps, i)) != NULL && n < LS_RINGS_MAX;
		i++) {
		if (r->state != LS_RING_STATE_LIVE)
			continue;
		p->rings[n].info = &r->worker.info;
		p->rings[n].from = r->from;
		p->rings[n++].env = r->env;
	}
	ls_identity_rings(p->identity, p->rings, n);
}

void
ls_place_read(struct ls_place *p, const struct ls_source_step *steps,
	uint64_t now_mono_ns)
{
	if (now_mono_ns >= p->next_find_ns) {
		place_find_chips(p);
		place_read_labels(p);
		p->next_find_ns = now_mono_ns + LS_CHIPS_RESCAN_NS;
	}
	place_read_rings(p, steps);
	if (now_mono_ns >= p->next_owners_ns &&
		ls_chips_find_owners(p->chips, LS_OWNER_LINKS_PER_TURN)) {
		p->next_owners_ns = now_mono_ns + LS_OWNER_PASS_NS;
		place_read_environs(p);
	}
	place_settle(p);
}

bool
ls_place_is_settled(struct ls_place *p, uint64_t now_mono_ns)
{
	return p->metadata == NULL || ls_metadata_was_asked(p->metadata) ||
		now_mono_ns >= p->opened_ns + LS_PLACE_SETTLE_NS;
}

static void
place_look(void *arg)
{
	struct ls_place *p = arg;

	if (ls_place_is_settled(p, ls_loop_now(p->loop)))
		ls_loop_stop(p->loop);
}

int
ls_place_settle(struct ls_place *p)
{
	int rc = 0;

	p->look = ls_loop_timer_new(p->loop, place_look, p);
	if (p->look == NULL)
		return -ENOMEM;
	ls_loop_timer_start(p->look, 0, PLACE_LOOK_NS);
	rc = ls_loop_run(p->loop);
	ls_loop_timer_stop(p->look);
	while (!ls_chips_find_owners(p->chips, LS_OWNER_LINKS_PER_TURN))
		;
	place_read_environs(p);
	place_settle(p);
	return rc;
}

/* --- what others ask ------------------------------------------------------ */

/* Several slices, or one that an option names: only then a slice without name is not
 * "the only one". What a ring says of its slice is said of its job alone. */
static bool
place_slice_counts(const struct ls_place *p)
{
	const char *slices = ls_identity_get(p->identity, LS_IDENTITY_SLICES),
		   *from = ls_identity_source_of(p->identity, LS_IDENTITY_SLICE);

	return p->config.slice[0] != '\0' ||
		(slices != NULL && strcmp(slices, "0") != 0 &&
			strcmp(slices, "1") != 0 &&
			strcmp(from, ls_identity_source_name(LS_IDENTITY_FROM_RING)) !=
				0);
}

/* A cube of 4x4x4 chips is what one rack of torus-connected TPUs holds. */
#define PLACE_CUBE "subslice.4x4x4"

/* The job tells in its environment which shard of the input it reads, and how many slices
 * it has. */
static void
place_take_variable(void *arg, const struct ls_keyvalue *kv)
{
	struct ls_worker_info *info = arg;
	uint64_t slices;

	if (ls_keyvalue_is(kv, "MEGASCALE_NUM_SLICES") && kv->value_len > 0 &&
		ls_text_digits(kv->value, kv->value_len, LS_SLICES_MAX, &slices) ==
			kv->value_len)
		info->slices = (int32_t)slices;

	if (ls_keyvalue_is(kv, "LOCKSTEP_SHARD") &&
		ls_text_is_name(kv->value, kv->value_len, sizeof(info->shard) - 1)) {
		memcpy(info->shard, kv->value, kv->value_len);
		info->shard[kv->value_len] = '\0';
	}
}

/* What the worker shares with others, beside its slice. */
static void
place_complete_groups(const struct ls_place *p, const struct ls_step_ring *ring,
	struct ls_worker_info *info)
{
	const char *rack = ls_identity_get(p->identity, LS_IDENTITY_RACK);

	if (rack == NULL)
		rack = ls_identity_find(p->identity, PLACE_CUBE);
	if (rack != NULL && ls_text_is_name(rack, strlen(rack), sizeof(info->rack) - 1))
		(void)snprintf(info->rack, sizeof(info->rack), "%s", rack);
	if (ring->env != NULL)
		ls_ignore((int)ls_keyvalue_environ(ring->env, strlen(ring->env), '\n',
			place_take_variable, info)); /* others: not looked at */
}

void
ls_place_complete(const struct ls_place *p, const struct ls_step_ring *ring,
	struct ls_worker_info *info)
{
	const char *slice = ls_identity_get(p->identity, LS_IDENTITY_SLICE);
	int chips;

	/* As much of a long name as is one: the escaped text has no characters that may
	 * be cut. */
	if (info->slice[0] == '\0' && slice != NULL && place_slice_counts(p) &&
		ls_text_is_name(slice, strlen(slice), sizeof(info->slice) - 1))
		(void)snprintf(info->slice, sizeof(info->slice), "%s", slice);
	place_complete_groups(p, ring, info);
	if (info->chips != 0 || ring->pid <= 0 || ls_chips_count(p->chips) == 0)
		return;
	chips = ls_chips_owned_by(p->chips, ring->pid);
	if (chips > 0)
		info->chips = chips;
}

/* The device of a series of that metric; false if it is another one's. */
static bool
place_device(const char *text, uint64_t *ret_device)
{
	static const char label[] = "{device=\"";
	const char *name = ls_metric_info(LS_METRIC_CHIP_HBM_TOTAL)->name;
	size_t len = strlen(name);

	if (strncmp(text, name, len) != 0 ||
		strncmp(text + len, label, sizeof(label) - 1) != 0)
		return false;
	text += len + sizeof(label) - 1;
	len = ls_text_digits(text, SIZE_MAX, PLACE_DEVICE_MAX, ret_device);
	return len > 0 && text[len] == '"';
}

void
ls_place_devices(struct ls_place *p, const struct ls_series_table *series)
{
	uint64_t device[LS_CHIPS_MAX * 2 + 1]; /* one more than is believed */
	struct ls_series_group g;
	size_t i, k, m, n = 0;

	for (i = 0; i < LS_GROUPS_MAX; i++) {
		if (!ls_series_look(series, i, &g))
			continue;
		for (k = 0; k < g.count && n < sizeof(device) / sizeof(device[0]);
			k++) {
			if (!g.present[k] || !place_device(g.text[k], &device[n]))
				continue;
			for (m = 0; device[m] != device[n]; m++)
				; /* ends at n: several ports may name one device */
			n += m == n;
		}
	}
	if (n == 0)
		return;
	ls_identity_devices(p->identity, device, n);
	place_settle(p);
}

void
ls_place_stall(struct ls_place *p, unsigned n, const char *text)
{
	ls_identity_stall(p->identity, n, text);
}

const struct ls_identity *
ls_place_identity(const struct ls_place *p)
{
	return p->identity;
}

const struct ls_chips *
ls_place_chips(const struct ls_place *p)
{
	return p->chips;
}

static json_t *
place_node_json(const struct ls_chip_node *n)
{
	json_t *owner = n->owner > 0
		? json_pack("{s:i, s:s}", "pid", (int)n->owner, "command", n->command)
		: json_null();

	return json_pack("{s:s, s:b, s:o}", "path", n->path, "here", n->here, "owner",
		owner);
}

json_t *
ls_place_chips_json(const struct ls_place *p)
{
	json_t *all = json_array(), *nodes;
	const struct ls_chip *c;

	for (size_t i = 0; (c = ls_chips_get(p->chips, i)) != NULL; i++) {
		nodes = json_array();
		for (size_t n = 0; n < c->node_count; n++)
			ls_json_append(&nodes, place_node_json(&c->node[n]));
		ls_json_append(&all,
			json_pack("{s:s, s:s, s:I, s:o, s:o}", "pci", c->pci,
				"generation", c->name, "functions",
				(json_int_t)c->functions, "numa_node",
				c->numa_node >= 0 ? json_integer(c->numa_node)
						  : json_null(),
				"nodes", nodes));
	}
	return all;
}

void
ls_place_tell(const struct ls_place *p, struct ls_doctor *d)
{
	ls_chips_tell(p->chips, d);
	ls_metadata_tell(p->metadata, p->why_not, d);
	ls_identity_tell(p->identity, d);
}
