/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/ring/record.h"

#include "tests/support/harness.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define MS 1000000
#define MAX_NS ((int64_t)LS_PHASE_MAX_NS)

/* A step of 200 ms that began at 1 s, right in every way. */
static struct ls_record
good(void)
{
	return (struct ls_record){
		.step = 7,
		.t_begin_ns = 1000 * MS,
		.duration_ns = 200 * MS,
		.phase_ns[LS_PHASE_COMPUTE] = 120 * MS,
		.phase_ns[LS_PHASE_SYNC_WAIT] = 60 * MS,
		.phase_mask = 1u << LS_PHASE_COMPUTE | 1u << LS_PHASE_SYNC_WAIT |
			1u << LS_PHASE_GC,
		.barrier_count = 1,
		.barrier[0] = { LS_BARRIER_ICI, 1130 * MS, 1190 * MS },
		.work_mask = 1u << LS_WORK_TOKENS,
		.work[LS_WORK_TOKENS] = 4096,
		.peer_count = 1,
		.peer[0] = { 3, UINT64_MAX, 5 * MS },
	};
}

LS_CASE(record);

LS_TEST(record, good_record_passes)
{
	struct ls_record r = good();
	const char *why = "untouched";

	ck_assert_int_eq(ls_record_check(&r, &why), 0);
	ck_assert_str_eq(why, "untouched");
	ck_assert_int_eq(ls_record_check(&r, NULL), 0);
}

LS_TEST(record, empty_record_passes)
{
	struct ls_record r = { 0 };

	ck_assert_int_eq(ls_record_check(&r, NULL), 0);
}

/* What is spoiled in a good record, and what is said of it; NULL: it must still pass.
 */
#define CASES(X)                                                                      \
	X(r->t_begin_ns = -1, "t_begin is negative")                                  \
	X(r->t_begin_ns = INT64_MAX, "t_begin is too late")                           \
	X(r->t_begin_ns = INT64_MAX - 2 * MAX_NS + 1, "t_begin is too late")          \
	X(r->duration_ns = LS_PHASE_MAX_NS, "duration is too long")                   \
	X(r->duration_ns = UINT64_MAX, "duration is too long")                        \
	X(r->duration_ns = LS_PHASE_MAX_NS - 1, NULL)                                 \
	X(r->phase_mask |= 1u << LS_PHASE_COUNT, "unknown phase in phase_mask")       \
	X(r->phase_mask = UINT32_MAX, "unknown phase in phase_mask")                  \
	X(r->phase_ns[LS_PHASE_H2D] = 1, "a phase has time but is not in phase_mask") \
	X(r->phase_ns[LS_PHASE_COMPUTE] = LS_PHASE_MAX_NS, "a phase is too long")     \
	X(r->phase_ns[LS_PHASE_COMPUTE] = UINT64_MAX, "a phase is too long")          \
	X(r->phase_ns[LS_PHASE_COMPUTE] = 143 * MS, NULL)                             \
	X(r->phase_ns[LS_PHASE_COMPUTE] = 143 * MS + 1,                               \
		"phases add up to more than the duration")                            \
	X(r->barrier_count = LS_BARRIERS_MAX + 1, "too many barriers")                \
	X(r->barrier_count = 255, "too many barriers")                                \
	X(r->barrier[0].kind = LS_BARRIER_COUNT, "unknown kind of barrier")           \
	X(r->barrier[0].enter_ns = -1, "a barrier's time is negative")                \
	X(r->barrier[0].exit_ns = 1129 * MS,                                          \
		"a barrier was left before it was entered")                           \
	X(r->barrier[0].exit_ns = r->barrier[0].enter_ns, NULL)                       \
	X(r->barrier[0].enter_ns = 997 * MS, NULL)                                    \
	X(r->barrier[0].enter_ns = 997 * MS - 1, "a barrier lies outside the step")   \
	X(r->barrier[0].exit_ns = 1203 * MS, NULL)                                    \
	X(r->barrier[0].exit_ns = 1203 * MS + 1, "a barrier lies outside the step")   \
	X(r->barrier[0].exit_ns = INT64_MAX, "a barrier lies outside the step")       \
	X(r->work_mask |= 1u << LS_WORK_COUNT, "unknown kind of work in work_mask")   \
	X(r->work[LS_WORK_TOKENS] = -1, "work is negative or not finite")             \
	X(r->work[LS_WORK_TOKENS] = NAN, "work is negative or not finite")            \
	X(r->work[LS_WORK_TOKENS] = INFINITY, "work is negative or not finite")       \
	X(r->work[LS_WORK_BATCH] = NAN, NULL) /* not given */                         \
	X(r->peer_count = LS_PEERS_MAX + 1, "too many peers")                         \
	X(r->peer[0].send_wait_ns = LS_PHASE_MAX_NS, "a wait on a peer is too long")  \
	X(r->peer[0].recv_wait_ns = UINT64_MAX - 1, "a wait on a peer is too long")   \
	X(r->step = UINT64_MAX, NULL)

#define X(spoil, why) +1
enum { CASE_COUNT = 0 CASES(X) };
#undef X

static const char *
spoil_case(struct ls_record *r, int i)
{
	int n = 0;

#define X(spoil, why)       \
	if (n++ == i) {     \
		spoil;      \
		return why; \
	}
	CASES(X)
#undef X
	return NULL;
}

LS_TEST_LOOP(record, spoiled_record_is_refused_with_its_reason, 0, CASE_COUNT)
{
	struct ls_record r = good();
	const char *want = spoil_case(&r, _i);
	const char *why = NULL;

	ck_assert_int_eq(ls_record_check(&r, &why), want ? -LS_ERANGE : 0);
	ck_assert_pstr_eq(why, want);
}

/* xorshift64*: the same bytes on every run. */
static uint64_t
next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

/* What a record that passed must hold for those who use it. */
static void
assert_usable(const struct ls_record *r)
{
	ck_assert(r->t_begin_ns >= 0 && r->duration_ns < LS_PHASE_MAX_NS);
	ck_assert_int_ge(r->t_begin_ns + (int64_t)r->duration_ns, r->t_begin_ns);
	ck_assert_uint_le(r->barrier_count, LS_BARRIERS_MAX);
	ck_assert_uint_le(r->peer_count, LS_PEERS_MAX);
	for (unsigned b = 0; b < r->barrier_count; b++) {
		ck_assert_ptr_nonnull(ls_barrier_name(r->barrier[b].kind));
		ck_assert_int_le(r->barrier[b].enter_ns, r->barrier[b].exit_ns);
	}
}

LS_TEST(record, any_bytes_are_checked_safely)
{
	uint64_t state = 1;
	int passed = 0;

	for (int i = 0; i < 200000; i++) {
		struct ls_record r = good();
		uint64_t where = next_random(&state) % sizeof(r);
		uint64_t bytes = next_random(&state);
		size_t room = sizeof(r) - where;

		/* A few random bytes in a good record reach further than all at random.
		 */
		memcpy((char *)&r + where, &bytes,
			room < sizeof(bytes) ? room : sizeof(bytes));
		if (ls_record_check(&r, NULL) == 0) {
			assert_usable(&r);
			passed++;
		}
	}
	ck_assert_int_gt(passed, 0);
}

LS_TEST(record, names_and_back)
{
	for (unsigned i = 0; i < LS_PHASE_COUNT; i++)
		ck_assert_int_eq(ls_phase_by_name(ls_phase_name(i)), (int)i);
	for (unsigned i = 0; i < LS_BARRIER_COUNT; i++)
		ck_assert_int_eq(ls_barrier_by_name(ls_barrier_name(i)), (int)i);
	for (unsigned i = 0; i < LS_WORK_COUNT; i++)
		ck_assert_int_eq(ls_work_by_name(ls_work_name(i)), (int)i);
	ck_assert_str_eq(ls_phase_name(LS_PHASE_INPUT_WAIT), "input_wait");
	ck_assert_str_eq(ls_barrier_name(LS_BARRIER_DCN), "dcn");
	ck_assert_str_eq(ls_work_name(LS_WORK_TOKENS), "tokens");
}

LS_TEST(record, unknown_names_are_refused)
{
	ck_assert_ptr_null(ls_phase_name(LS_PHASE_COUNT));
	ck_assert_ptr_null(ls_barrier_name(LS_BARRIER_COUNT));
	ck_assert_ptr_null(ls_work_name(LS_WORK_COUNT));
	ck_assert_int_eq(ls_phase_by_name("sleep"), -LS_EUNKNOWN);
	ck_assert_int_eq(ls_barrier_by_name(""), -LS_EUNKNOWN);
	ck_assert_int_eq(ls_work_by_name("Tokens"), -LS_EUNKNOWN);
}
