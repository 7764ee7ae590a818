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

#define LS_PARAM(name, value, unit, source) static const double LS_##name = value;
#define LS_PARAM_COUNT(name, value, unit, source) enum { LS_##name = value };
#include "collector/engine/params.def"
#undef LS_PARAM
#undef LS_PARAM_COUNT

/* The same in microseconds. */
#define LS_ENGINE_US(s) ((int64_t)((s)*1e6))

#endif
