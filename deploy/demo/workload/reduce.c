/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/workload/reduce.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "proto/base/clock.h"

int
reduce_init(struct reduce_ring *ring, unsigned size, unsigned place, int next_fd,
	int prev_fd, size_t count)
{
	*ring = (struct reduce_ring){ .size = size,
		.place = place,
		.next_fd = next_fd,
		.prev_fd = prev_fd,
		.room = malloc((count / size + 1) * sizeof(float)) };
	return ring->room == NULL ? -ENOMEM : 0;
}

void
reduce_fini(struct reduce_ring *ring)
{
	free(ring->room);
	ring->room = NULL;
}

/* Moves what can be moved now; 0 also when it would block. */
static int
reduce_send_some(int fd, const char **p, size_t *left)
{
	ssize_t n = send(fd, *p, *left, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	*p += n;
	*left -= (size_t)n;
	return 0;
}

static int
reduce_recv_some(int fd, char **p, size_t *left)
{
	ssize_t n = recv(fd, *p, *left, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	*p += n;
	*left -= (size_t)n;
	return 0;
}

/* Sends and receives at once, so that no two members wait for each other. */
static int
reduce_exchange(struct reduce_ring *ring, const void *out, size_t out_bytes, void *in,
	size_t in_bytes)
{
	const char *send_at = out;
	char *recv_at = in;
	int rc = 0;

	for (;;) {
		struct pollfd fds[2];
		uint64_t before;

		if (out_bytes > 0)
			rc = reduce_send_some(ring->next_fd, &send_at, &out_bytes);
		if (rc == 0 && in_bytes > 0)
			rc = reduce_recv_some(ring->prev_fd, &recv_at, &in_bytes);
		while (ring->hold && (rc == -ECONNRESET || rc == -EPIPE))
			(void)pause(); /* until the job is killed */
		if (rc != 0 || (out_bytes == 0 && in_bytes == 0))
			return rc;
		fds[0] = (struct pollfd){ .fd = in_bytes > 0 ? ring->prev_fd : -1,
			.events = POLLIN };
		fds[1] = (struct pollfd){ .fd = out_bytes > 0 ? ring->next_fd : -1,
			.events = POLLOUT };
		before = ls_clock_mono_ns();
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (in_bytes > 0)
			ring->recv_wait_ns += ls_clock_mono_ns() - before;
		else
			ring->send_wait_ns += ls_clock_mono_ns() - before;
	}
}

/* Piece i of a vector: the first count % size pieces are one longer. */
static float *
reduce_piece(const struct reduce_ring *ring, float *v, size_t count, unsigned i,
	size_t *ret_bytes)
{
	size_t base = count / ring->size, extra = count % ring->size;

	*ret_bytes = (base + (i < extra)) * sizeof(float);
	return v + base * i + (i < extra ? i : extra);
}

int
reduce_all(struct reduce_ring *ring, float *v, size_t count)
{
	const unsigned n = ring->size;
	int rc;

	for (unsigned k = 0; k + 1 < 2 * n - 1; k++) {
		/* The piece that goes out in one exchange is the one that came in
		 * before. */
		unsigned out_i = (ring->place + 2 * n - k) % n,
			 in_i = (out_i + n - 1) % n;
		size_t out_bytes, in_bytes, i;
		float *out = reduce_piece(ring, v, count, out_i, &out_bytes);
		float *in = reduce_piece(ring, v, count, in_i, &in_bytes);
		int adding = k + 1 < n;

		rc = reduce_exchange(ring, out, out_bytes, adding ? ring->room : in,
			in_bytes);
		if (rc != 0)
			return rc;
		for (i = 0; adding && i < in_bytes / sizeof(float); i++)
			in[i] += ring->room[i];
	}
	return 0;
}

int
reduce_broadcast(struct reduce_ring *ring, float *v, size_t count)
{
	int rc = 0;

	if (ring->place > 0)
		rc = reduce_exchange(ring, NULL, 0, v, count * sizeof(float));
	if (rc == 0 && ring->place + 1 < ring->size)
		rc = reduce_exchange(ring, v, count * sizeof(float), NULL, 0);
	return rc;
}
