/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "agent/tpu/tpu_decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is given out holds what tpu_decode.h and histogram.h promise, also when it is
 * used. */
static void
look(void *arg, const struct ls_tpu_point *p)
{
	struct ls_histogram_memory memory = { 0 };
	struct ls_histogram_delta delta;
	struct ls_histogram empty;
	size_t i, *seen = arg;
	double q;

	++*seen;
	for (i = 0; i < p->label_count; i++) {
		if (p->label[i].key[0] == '\0' ||
			(i > 0 && strcmp(p->label[i - 1].key, p->label[i].key) >= 0))
			abort();
	}
	if (p->shape == LS_TPU_VALUE) {
		if (!isfinite(p->value))
			abort();
		return;
	}
	if (ls_histogram_check(&p->histogram) != 0)
		abort();
	empty = p->histogram;
	memset(empty.count, 0, sizeof(empty.count));
	empty.total = 0;
	if (ls_histogram_step(&memory, &empty, &delta) != -LS_EABSENT)
		abort();
	if (ls_histogram_step(&memory, &p->histogram, &delta) != 0)
		return;
	for (q = 0; q <= 1; q += 0.25) {
		if (!isfinite(ls_histogram_quantile(&p->histogram, &delta, q)))
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ls_tpu_answer answer;
	size_t seen = 0;

	if (ls_tpu_decode_metric(data, size, look, &seen, &answer) != 0)
		answer.points = 0;
	if (answer.points != seen || seen > LS_TPU_POINTS_MAX)
		abort();
	return 0;
}
