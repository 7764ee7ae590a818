/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/torus.h"

#include <string.h>

/* Two or three numbers of 1 to LS_TORUS_SIDE_MAX with a character between; what is
 * absent is 1. */
static int
torus_parse_sides(const char *text, char between, uint32_t ret_sides[LS_TORUS_AXES])
{
	uint32_t sides[LS_TORUS_AXES] = { 1, 1, 1 };
	unsigned axis;

	for (axis = 0; axis < LS_TORUS_AXES; axis++) {
		uint32_t v = 0;

		if (*text < '0' || *text > '9')
			return -LS_EPARSE;
		for (; *text >= '0' && *text <= '9'; text++) {
			v = v * 10 + (uint32_t)(*text - '0');
			if (v > LS_TORUS_SIDE_MAX)
				return -LS_EPARSE;
		}
		if (v == 0)
			return -LS_EPARSE;
		sides[axis] = v;
		if (*text == '\0')
			break;
		if (*text++ != between)
			return -LS_EPARSE;
	}
	if (axis == 0 || axis == LS_TORUS_AXES)
		return -LS_EPARSE;
	memcpy(ret_sides, sides, sizeof(sides));
	return 0;
}

int
ls_torus_parse(const char *text, struct ls_torus *ret_torus)
{
	struct ls_torus t = { .wrap_known = false };
	int rc = torus_parse_sides(text, 'x', t.size);

	if (rc == 0)
		*ret_torus = t;
	return rc;
}

int
ls_torus_parse_bounds(const char *text, uint32_t ret_bounds[LS_TORUS_AXES])
{
	return torus_parse_sides(text, ',', ret_bounds);
}

int
ls_torus_parse_wrap(const char *text, struct ls_torus *t)
{
	bool wrap[LS_TORUS_AXES] = { false };
	unsigned axis;

	for (axis = 0; axis < LS_TORUS_AXES; axis++) {
		if (strncmp(text, "true", 4) == 0) {
			wrap[axis] = true;
			text += 4;
		} else if (strncmp(text, "false", 5) == 0) {
			text += 5;
		} else {
			return -LS_EPARSE;
		}
		if (*text == '\0')
			break;
		if (*text++ != ',')
			return -LS_EPARSE;
	}
	if (axis == LS_TORUS_AXES)
		return -LS_EPARSE;
	memcpy(t->wrap, wrap, sizeof(wrap));
	t->wrap_known = true;
	return 0;
}

void
ls_torus_wrap_by_rule(struct ls_torus *t, enum ls_generation g)
{
	enum ls_generation_wrap rule = ls_generation_info(g)->wrap;
	bool all = true;
	unsigned axis;

	for (axis = 0; axis < LS_TORUS_AXES; axis++)
		all = all && t->size[axis] >= 4;
	for (axis = 0; axis < LS_TORUS_AXES; axis++)
		t->wrap[axis] = rule == LS_WRAP_ALL4
			? all
			: rule == LS_WRAP_EACH16 && t->size[axis] == 16;
	t->wrap_known = rule != LS_WRAP_UNKNOWN;
}

uint64_t
ls_torus_volume(const uint32_t bounds[LS_TORUS_AXES])
{
	return (uint64_t)bounds[0] * bounds[1] * bounds[2];
}

int
ls_torus_place(const struct ls_torus *t, uint64_t device,
	uint32_t ret_at[LS_TORUS_AXES])
{
	if (device >= ls_torus_volume(t->size))
		return -LS_ERANGE;
	ret_at[0] = (uint32_t)(device % t->size[0]);
	device /= t->size[0];
	ret_at[1] = (uint32_t)(device % t->size[1]);
	ret_at[2] = (uint32_t)(device / t->size[1]);
	return 0;
}

static uint64_t
torus_device(const struct ls_torus *t, const uint32_t at[LS_TORUS_AXES])
{
	return at[0] + (uint64_t)t->size[0] * (at[1] + (uint64_t)t->size[1] * at[2]);
}

int
ls_torus_place_host(const struct ls_torus *t, const uint32_t block[LS_TORUS_AXES],
	const uint64_t *devices, size_t count, uint32_t (*ret_at)[LS_TORUS_AXES])
{
	uint32_t at[LS_CHIPS_MAX][LS_TORUS_AXES];
	unsigned axis;
	size_t i, k;

	if (count == 0 || count > LS_CHIPS_MAX || count != ls_torus_volume(block))
		return -LS_ERANGE;
	for (i = 0; i < count; i++) {
		if (ls_torus_place(t, devices[i], at[i]) != 0)
			return -LS_ERANGE;
		for (k = 0; k < i; k++) {
			if (devices[k] == devices[i])
				return -LS_ERANGE;
		}
	}
	/* As many different chips as a block has, all of one block: just that block. */
	for (axis = 0; axis < LS_TORUS_AXES; axis++) {
		if (t->size[axis] % block[axis] != 0)
			return -LS_ERANGE;
		for (i = 1; i < count; i++) {
			if (at[i][axis] / block[axis] != at[0][axis] / block[axis])
				return -LS_ERANGE;
		}
	}
	memcpy(ret_at, at, count * sizeof(at[0]));
	return 0;
}

/* Keeps the list in order, and each device once. */
static size_t
torus_insert(uint64_t *list, size_t count, uint64_t device)
{
	size_t i = 0;

	while (i < count && list[i] < device)
		i++;
	if (i < count && list[i] == device)
		return count;
	memmove(list + i + 1, list + i, (count - i) * sizeof(*list));
	list[i] = device;
	return count + 1;
}

size_t
ls_torus_neighbours(const struct ls_torus *t, const uint32_t at[LS_TORUS_AXES],
	uint64_t ret_devices[LS_TORUS_NEIGHBOURS_MAX])
{
	unsigned axis, way;
	size_t count = 0;

	if (!t->wrap_known)
		return 0;
	for (axis = 0; axis < LS_TORUS_AXES; axis++) {
		uint32_t size = t->size[axis];

		for (way = 0; way < 2; way++) {
			uint32_t next[LS_TORUS_AXES] = { at[0], at[1], at[2] };
			bool at_end = way == 0 ? at[axis] + 1 == size : at[axis] == 0;

			if (size == 1 || (at_end && !t->wrap[axis]))
				continue;
			next[axis] = (at[axis] + (way == 0 ? 1 : size - 1)) % size;
			count = torus_insert(ret_devices, count, torus_device(t, next));
		}
	}
	return count;
}

uint64_t
ls_torus_global_worker(uint64_t worker, uint64_t workers, uint64_t slice)
{
	return worker + slice * workers;
}
