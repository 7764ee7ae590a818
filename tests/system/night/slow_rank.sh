#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# slow_rank.sh [REPETITIONS]: one of four ranks is slowed by real contention; it must be named, in at
# least 19 of 20 repetitions, though the step times of the ranks do not differ.
# Alone: detection.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
n=${1:-2}

right=0
betrayed=0
for ((i = 1; i <= n; i++)); do
	rank=$((i % 4))
	fresh 4
	workload_start --ranks 4 --steps 900 --slow "$rank:cpu_hog:4@150"
	finding_wait --host "h$rank" --rank "$rank" --step 150
	note "$verdict"
	[ "$ret_status" -ne 0 ] || right=$((right + 1))
	lockstep hosts -o json | facts spread | sed 's/^/# /'
	[ "${PIPESTATUS[1]}" -ne 0 ] || betrayed=$((betrayed + 1))
done
result $((right * 20 < n * 19)) "the slowed rank is named: $right of $n"
result $((betrayed * 20 < n * 19)) "waits differ more than step times: $betrayed of $n"
tap_end
