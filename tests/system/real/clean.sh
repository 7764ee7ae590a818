#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# clean.sh [REPETITIONS] [STEPS]: no rank is slowed, so no host may be named.
# Alone: detection.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
n=${1:-1}
steps=${2:-600}

silent=0
for ((i = 1; i <= n; i++)); do
	fresh 4
	workload_start --ranks 4 --steps "$steps" --slow none
	# shellcheck disable=SC2119  # no culprit is expected
	finding_wait
	[ "$ret_status" -ne 3 ] || silent=$((silent + 1))
	note "$(job_field steps_closed) steps closed; $verdict"
done
result $((silent != n)) "no finding of warning or above: $silent of $n"
tap_end
