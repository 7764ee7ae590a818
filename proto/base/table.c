/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/table.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct ls_table_entry {
	uint64_t hash;
	void *item; /* NULL: free */
};

/* --- SipHash -------------------------------------------------------------- */

static uint64_t
table_rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void
table_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = table_rotate(v[1], 13) ^ v[0];
	v[3] = table_rotate(v[3], 16) ^ v[2];
	v[0] = table_rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = table_rotate(v[1], 17) ^ v[2];
	v[3] = table_rotate(v[3], 21) ^ v[0];
	v[2] = table_rotate(v[2], 32);
}

static void
table_mix(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	table_round(v);
	table_round(v);
	v[0] ^= word;
}

static uint64_t
table_word(const uint8_t *p, size_t len)
{
	uint64_t word = 0;

	memcpy(&word, p, len);
	return le64toh(word);
}

uint64_t
ls_table_hash(const uint8_t secret[16], const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t k0 = table_word(secret, 8), k1 = table_word(secret + 8, 8);
	uint64_t v[4] = { k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull,
		k0 ^ 0x6c7967656e657261ull, k1 ^ 0x7465646279746573ull };
	size_t at;

	for (at = 0; at + 8 <= len; at += 8)
		table_mix(v, table_word(p + at, 8));
	table_mix(v, table_word(p + at, len - at) | (uint64_t)len << 56);
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		table_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* --- the table ------------------------------------------------------------ */

void
ls_table_init(struct ls_table *t, size_t key_len)
{
	memset(t, 0, sizeof(*t));
	t->key_len = key_len;
	/* Without random bytes it works as well, only not against those who mean harm.
	 */
	ls_ignore((int)getrandom(t->secret, sizeof(t->secret), GRND_NONBLOCK));
}

void
ls_table_fini(struct ls_table *t)
{
	free(t->entries);
	t->entries = NULL;
	t->size = t->count = 0;
}

/*
 * The hash of a key without the zeros at its end: most of a name's field is zeros. Keys
 * have one length, so no two of them become the same.
 */
static uint64_t
table_hash(const struct ls_table *t, const void *key)
{
	const uint8_t *p = key;
	size_t len = t->key_len;

	while (len >= 8 && table_word(p + len - 8, 8) == 0)
		len -= 8;
	return ls_table_hash(t->secret, key, len);
}

/* Where an item with this key is, or the free place where it would be; the table is not
 * empty. */
static size_t
table_at(const struct ls_table *t, uint64_t hash, const void *key)
{
	size_t mask = t->size - 1, at = hash & mask;

	while (t->entries[at].item != NULL) {
		if (t->entries[at].hash == hash &&
			memcmp(t->entries[at].item, key, t->key_len) == 0)
			break;
		at = (at + 1) & mask;
	}
	return at;
}

static int
table_grow(struct ls_table *t)
{
	struct ls_table grown = *t;
	size_t i, at;

	grown.size = t->size == 0 ? 16 : 2 * t->size;
	grown.entries = calloc(grown.size, sizeof(*grown.entries));
	if (grown.entries == NULL)
		return -ENOMEM;
	for (i = 0; i < t->size; i++) {
		if (t->entries[i].item == NULL)
			continue;
		for (at = t->entries[i].hash & (grown.size - 1);
			grown.entries[at].item != NULL;)
			at = (at + 1) & (grown.size - 1);
		grown.entries[at] = t->entries[i];
	}
	free(t->entries);
	*t = grown;
	return 0;
}

void *
ls_table_find(const struct ls_table *t, const void *key)
{
	if (t->count == 0)
		return NULL;
	return t->entries[table_at(t, table_hash(t, key), key)].item;
}

int
ls_table_put(struct ls_table *t, void *item)
{
	uint64_t hash = table_hash(t, item);
	size_t at;
	int rc;

	if (2 * (t->count + 1) > t->size) {
		rc = table_grow(t);
		if (rc != 0)
			return rc;
	}
	at = table_at(t, hash, item);
	LS_ASSERT(t->entries[at].item == NULL);
	t->entries[at] = (struct ls_table_entry){ hash, item };
	t->count++;
	return 0;
}

void
ls_table_remove(struct ls_table *t, const void *item)
{
	size_t mask = t->size - 1, hole, at;

	LS_ASSERT(t->count > 0);
	hole = table_at(t, table_hash(t, item), item);
	LS_ASSERT(t->entries[hole].item == item);
	/* Close the gap: move back whoever could not be reached beyond it. */
	for (at = (hole + 1) & mask; t->entries[at].item != NULL;
		at = (at + 1) & mask) {
		size_t home = t->entries[at].hash & mask;

		if (((at - home) & mask) < ((at - hole) & mask))
			continue; /* its home lies behind the hole */
		t->entries[hole] = t->entries[at];
		hole = at;
	}
	t->entries[hole].item = NULL;
	t->count--;
}
