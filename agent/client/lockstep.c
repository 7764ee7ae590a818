/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/client/lockstep.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "agent/client/identity.h"
#include "agent/client/ring_file.h"

_Static_assert((int)LOCKSTEP_OTHER == (int)LS_PHASE_OTHER &&
		LS_PHASE_OTHER + 1 == LS_PHASE_COUNT,
	"phases of lockstep.h are those of the ring");
_Static_assert((int)LOCKSTEP_GC == (int)LS_PHASE_GC,
	"phases of lockstep.h are those of the ring");
_Static_assert((int)LOCKSTEP_BARRIER_OTHER == (int)LS_BARRIER_OTHER,
	"barriers of lockstep.h are those of the ring");
_Static_assert((int)LOCKSTEP_EXPERT_LOAD_MEAN == (int)LS_WORK_EXPERT_LOAD_MEAN,
	"kinds of work of lockstep.h are those of the ring");

#define CLIENT_RETRY_NS 10000000000ull
#define CLIENT_DEFAULT_DIR "/run/lockstep/steps"
#define CLIENT_NO_BARRIER UINT_MAX

/*
 * The ring of this process. It is the one mutable static of the library, because marks
 * take no handle: training code calls them from many places.
 */
static struct {
	struct ls_ring_file ring;
	/* the step being made */
	bool in_step;
	unsigned phase;
	unsigned open_barrier; /* index in slot.barrier, or CLIENT_NO_BARRIER */
	uint64_t since_ns; /* start of the phase */
	struct ls_ring_file_slot slot;
	/* negative: not measured */
	double recv_wait_s[LS_PEERS_MAX], send_wait_s[LS_PEERS_MAX];
	/* opening */
	struct ls_client_identity identity;
	char dir[PATH_MAX];
	bool known; /* identity and dir are set */
	/* closed, or a forked child: only lockstep_open brings marks back */
	bool silent;
	bool handlers;
	uint64_t retry_ns;
} client;

/* The vDSO's clock: no system call. The library stands alone, so it does not use
 * proto/base. */
static uint64_t
client_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A forked child, a data loader for example, makes no marks into its parent's ring. */
static void
client_forked(void)
{
	ls_ring_file_abandon(&client.ring);
	client.in_step = false;
	client.silent = true;
}

/* The program ends: a status that is not 0 is no clean end. */
static void
client_exited(int status, void *arg)
{
	(void)arg;
	if (status != 0)
		ls_ring_file_fail(&client.ring);
	lockstep_close();
}

static int
client_try_open(uint64_t now_ns)
{
	int rc;

	if (!client.handlers) {
		client.handlers = true;
		if (pthread_atfork(NULL, NULL, client_forked) != 0 ||
			on_exit(client_exited, NULL) != 0) {
			client.silent = true;
			return -ENOMEM;
		}
	}
	rc = ls_ring_file_open(&client.ring, client.dir, &client.identity, now_ns);
	if (rc != 0)
		client.retry_ns = now_ns + CLIENT_RETRY_NS;
	return rc;
}

static int
client_set_identity(const struct lockstep_options *options)
{
	const char *dir = options != NULL ? options->steps_dir : NULL;
	size_t len;

	if (dir == NULL || *dir == '\0')
		dir = getenv("LOCKSTEP_STEPS_DIR");
	if (dir == NULL || *dir == '\0')
		dir = CLIENT_DEFAULT_DIR;
	len = strlen(dir);
	if (len >= sizeof(client.dir)) {
		client.silent = true;
		return -ENAMETOOLONG;
	}
	memcpy(client.dir, dir, len + 1);
	ls_client_identity_resolve(options, &client.identity);
	client.known = true;
	return 0;
}

int
lockstep_open(const struct lockstep_options *options)
{
	int rc;

	lockstep_close();
	client.silent = false;
	rc = client_set_identity(options);
	return rc != 0 ? rc : client_try_open(client_now());
}

void
lockstep_close(void)
{
	ls_ring_file_close(&client.ring);
	client.in_step = false;
	client.silent = true;
}

/* A ring that is not open: tried at the first mark and then every 10 s. */
static bool
client_open_late(uint64_t now_ns)
{
	if (client.silent || now_ns < client.retry_ns)
		return false;
	if (!client.known && client_set_identity(NULL) != 0)
		return false;
	return client_try_open(now_ns) == 0;
}

static inline bool
client_ready(uint64_t now_ns)
{
	return client.ring.base != NULL || client_open_late(now_ns);
}

/* Ends the running phase and begins another. */
static inline void
client_switch(unsigned phase, uint64_t now_ns)
{
	client.slot.phase_ns[client.phase] += now_ns - client.since_ns;
	client.slot.phase_mask |= 1u << client.phase;
	client.phase = phase;
	client.since_ns = now_ns;
	ls_ring_file_live(&client.ring, client.slot.step, phase, now_ns);
}

static inline void
client_leave_barrier(uint64_t now_ns)
{
	if (client.open_barrier == CLIENT_NO_BARRIER)
		return;
	client.slot.barrier[client.open_barrier].exit_ns = now_ns;
	client.open_barrier = CLIENT_NO_BARRIER;
}

/* Seconds to whole microseconds of the ring; UINT32_MAX means not measured. */
static uint32_t
client_wait_us(double seconds)
{
	double us = seconds * 1e6 + 0.5;

	if (!(us >= 0.5))
		return UINT32_MAX;
	return us < (double)UINT32_MAX ? (uint32_t)us : UINT32_MAX - 1;
}

static void
client_end_step(uint64_t now_ns)
{
	client_leave_barrier(now_ns);
	client_switch(LS_PHASE_COUNT, now_ns);
	client.slot.duration_ns = now_ns - client.slot.t_begin_ns;
	for (unsigned i = 0; i < client.slot.peer_count; i++) {
		client.slot.peer[i].recv_wait_us =
			client_wait_us(client.recv_wait_s[i]);
		client.slot.peer[i].send_wait_us =
			client_wait_us(client.send_wait_s[i]);
	}
	ls_ring_file_push(&client.ring, &client.slot);
	client.in_step = false;
}

void
lockstep_step_begin(uint64_t n)
{
	uint64_t now_ns = client_now();

	if (!client_ready(now_ns))
		return;
	if (client.in_step)
		client_end_step(now_ns);
	memset(&client.slot, 0, sizeof(client.slot));
	client.slot.step = n;
	client.slot.t_begin_ns = now_ns;
	client.phase = LS_PHASE_OTHER;
	client.since_ns = now_ns;
	client.open_barrier = CLIENT_NO_BARRIER;
	client.in_step = true;
	ls_ring_file_live(&client.ring, n, LS_PHASE_OTHER, now_ns);
}

void
lockstep_phase(enum lockstep_phase phase)
{
	uint64_t now_ns = client_now();

	if ((unsigned)phase >= LS_PHASE_COUNT)
		return;
	if (client.in_step)
		client_switch((unsigned)phase, now_ns);
	else if (client_ready(now_ns))
		/* Between steps nothing is recorded, but a hang in a checkpoint can be
		 * seen. */
		ls_ring_file_live(&client.ring, client.slot.step, (unsigned)phase,
			now_ns);
}

void
lockstep_sync_enter(enum lockstep_barrier kind)
{
	uint64_t now_ns;
	unsigned n = client.slot.barrier_count;

	if (!client.in_step || (unsigned)kind >= LS_BARRIER_COUNT)
		return;
	now_ns = client_now();
	client_leave_barrier(now_ns);
	client_switch(LS_PHASE_SYNC_WAIT, now_ns);
	if (n >= LS_BARRIERS_MAX)
		return;
	client.slot.barrier_kind[n] = (uint8_t)kind;
	client.slot.barrier[n].enter_ns = now_ns;
	client.slot.barrier_count = (uint8_t)(n + 1);
	client.open_barrier = n;
}

void
lockstep_sync_exit(void)
{
	uint64_t now_ns;

	if (!client.in_step)
		return;
	now_ns = client_now();
	client_leave_barrier(now_ns);
	client_switch(LS_PHASE_OTHER, now_ns);
}

void
lockstep_work(enum lockstep_work_kind kind, double amount)
{
	if (!client.in_step || (unsigned)kind >= LS_WORK_COUNT)
		return;
	if (!isfinite(amount) || amount < 0 ||
		!isfinite(client.slot.work[kind] + amount))
		return;
	client.slot.work[kind] += amount;
	client.slot.work_mask |= (uint8_t)(1u << kind);
}

static void
client_add_wait(double *sum, double seconds)
{
	if (seconds >= 0) /* false for NaN too */
		*sum = (*sum < 0 ? 0 : *sum) + seconds;
}

void
lockstep_peer(uint32_t rank, double recv_wait_seconds, double send_wait_seconds)
{
	unsigned n = client.slot.peer_count, i;

	if (!client.in_step)
		return;
	for (i = 0; i < n && client.slot.peer[i].rank != rank; i++)
		;
	if (i == LS_PEERS_MAX)
		return;
	if (i == n) {
		client.slot.peer[i].rank = rank;
		client.slot.peer_count = (uint8_t)(n + 1);
		client.recv_wait_s[i] = client.send_wait_s[i] = -1;
	}
	client_add_wait(&client.recv_wait_s[i], recv_wait_seconds);
	client_add_wait(&client.send_wait_s[i], send_wait_seconds);
}

void
lockstep_step_end(void)
{
	if (client.in_step)
		client_end_step(client_now());
}
