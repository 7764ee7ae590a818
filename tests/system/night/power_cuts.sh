#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# power_cuts.sh [SEED [CUTS]]: what the collector acknowledged survives 1,500 power cuts.
#
# `make check` makes 150 cuts with the same program. SEED is printed (default: 1; night/long gives the date); the same seed makes the same cuts.
set -u
top=$(cd "$(dirname "$0")/../../.." && pwd)
build=${LOCKSTEP_BUILD:-$top/build}
export top_srcdir=$top top_builddir=$build CK_DEFAULT_TIMEOUT=3600
export LS_POWER_SEED=${1:-1} LS_POWER_CUTS=${2:-1500}
make -C "$build" tests/unit/storage/write/check_power >/dev/null &&
	exec "$build/tests/unit/storage/write/check_power"
