/* SPDX-License-Identifier: Apache-2.0 */
/*
 * params - the engine's decision constants: LS_NAME of each row of params.def.
 *
 * Owner:   nobody: constants.
 * Units:   as each row says.
 * Errors:  none.
 * Limits:  none.
 * Source:  each row names its own.
 */
#ifndef LS_COLLECTOR_PARAMS_H
#define LS_COLLECTOR_PARAMS_H

#include <math.h>
#include <stdint.h>

#define LS_PARAM(name, value, unit, source) static const double LS_##name = value;
#define LS_PARAM_COUNT(name, value, unit, source) enum { LS_##name = value };
#include "collector/engine/params.def"
#undef LS_PARAM
#undef LS_PARAM_COUNT

/* A share that must be there everywhere where a half is there on average. */
#define LS_QUARTER (LS_HALF * LS_HALF)
/* What EXPLAINS leaves over: flat, rare, or a side matter. */
#define LS_FEW (1 - LS_EXPLAINS)
/* Two may share what is looked for: then each explains half of it. */
#define LS_SHARED (LS_HALF * LS_EXPLAINS)
/* A tenth of LEAST is not worth a sentence. */
#define LS_NOTHING (LS_LEAST / 10)
/* Steps that tell a mean, and calm ones before a finding is over. */
#define LS_DETECT_CLEAR_STEPS (LS_DETECT_WARM / 2)

/* What is usual is learned from so many steps: from LS_DETECT_WARM, or as many as three minutes have, but from LS_LOOK. */
static inline uint32_t
ls_warm_steps(double step_s)
{
	double steps = fmin(LS_DETECT_WARM, 3 * LS_SCALES_PATIENCE_S / step_s);

	return (uint32_t)fmax(steps, LS_LOOK); /* a NaN is not taken */
}

/* Linux, TCP_RTO_MIN: so long a segment that is sent again keeps its connection, or less. */
#define LS_RTO_S 0.2

/* The same in microseconds. */
#define LS_ENGINE_US(s) ((int64_t)((s)*1e6))

#endif
