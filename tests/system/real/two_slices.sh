#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# two_slices.sh [REPETITIONS]: two slices of two ranks; the finding names slice and rank. The fault is a quota: what busy
# processes take is decided by the scheduler, and on two CPUs the rank of the other slice on the same CPU was as late at times.
# Steps get longer on a busy machine, and a rank then needs 10 % of a CPU only: a quota of 5 % holds it back there, too.
# Alone: detection.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
n=${1:-1}

right=0
for ((i = 1; i <= n; i++)); do
	rank=$(((i + 1) % 4))
	fresh 4
	workload_start --ranks 4 --slices 2 --steps 900 --slow "$rank:cpu_quota:5@150"
	finding_wait --host "h$rank" --rank "$rank" --slice "$(slice_of "$rank" 4 2)" --step 150
	note "$verdict"
	[ "$ret_status" -ne 0 ] || right=$((right + 1))
done
result $((right * 20 < n * 19)) "slice and rank are named: $right of $n"
tap_end
