#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# restarts.sh [KILLS [SEED]]: kill -9 of the collector while faults stand: three faults among 64 hosts; with KILLS given, also one
# fault, 4 hosts and 3,000. Findings go on as they were (tests/system/restarts.py).
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
runs=('64 3')
[ $# -eq 0 ] || runs=('4 1' '64 1' '3000 1' '3000 3' '64 3')
ulimit -n "$(ulimit -Hn)"
work_begin
for run in "${runs[@]}"; do
	note "hosts, faults: $run"
	rm -rf "${work:?}"/*
	# shellcheck disable=SC2086  # two words
	results "$top/tests/system/restarts.py" "$build" "$work" $run "${1:-6}" "${2:-1}"
	result "$ret_status" "it came to its end: $SECONDS s"
done
tap_end
