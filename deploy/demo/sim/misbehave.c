/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/sim/misbehave.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const misbehave_names[SIM_MISBEHAVIOURS] = {
	"none",
#define SIM_MISBEHAVE(id, name, help) name,
#include "deploy/demo/sim/misbehave.def"
#undef SIM_MISBEHAVE
};

/* One KIND:COUNT of len bytes. */
static int
misbehave_one(const char *text, size_t len, struct sim_misbehave *m)
{
	const char *colon = memchr(text, ':', len);
	size_t name_len = colon != NULL ? (size_t)(colon - text) : 0;
	char *end;
	long count;
	int i;

	for (i = 1; i < SIM_MISBEHAVIOURS; i++) {
		if (strlen(misbehave_names[i]) == name_len &&
			strncmp(misbehave_names[i], text, name_len) == 0)
			break;
	}
	if (i == SIM_MISBEHAVIOURS)
		return -LS_EUNKNOWN;
	if (colon[1] < '0' || colon[1] > '9')
		return -LS_EPARSE;
	count = strtol(colon + 1, &end, 10);
	if (end != text + len)
		return -LS_EPARSE;
	if (m->count[i] != 0 || count < 1 || count > SIM_HOSTS_MAX)
		return -LS_ERANGE;
	m->count[i] = (uint32_t)count;
	return 0;
}

int
sim_misbehave_parse(const char *text, int64_t hosts, struct sim_misbehave *ret_m)
{
	struct sim_misbehave m = { .hosts = (uint32_t)hosts };
	uint32_t sum = 0;
	size_t len;
	int i, rc = 0;

	while (strcmp(text, "none") != 0 && rc == 0) {
		len = strcspn(text, ",");
		rc = misbehave_one(text, len, &m);
		if (text[len] == '\0')
			break;
		text += len + 1;
	}
	for (i = 1; i < SIM_MISBEHAVIOURS; i++)
		sum += m.count[i];
	if (rc == 0 && sum > 0 && sum >= hosts)
		rc = -LS_ERANGE;
	if (rc == 0)
		*ret_m = m;
	return rc;
}

enum sim_misbehaviour
sim_misbehave_of(const struct sim_misbehave *m, uint32_t index)
{
	uint32_t from_end = m->hosts - 1 - index;

	for (int i = 1; i < SIM_MISBEHAVIOURS; i++) {
		if (from_end < m->count[i])
			return (enum sim_misbehaviour)i;
		from_end -= m->count[i];
	}
	return SIM_BEHAVES;
}
