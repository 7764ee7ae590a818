#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# launchers.sh: for each launcher (tests/system/launchers.py) a job of four real processes with the environment that it
# gives. Each worker is counted with its rank, host and slice, and the one that is late is named.
# Alone: detection.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
seconds=60 # detection has a minute; each job is seen again every two seconds

# launchers_right: all jobs are as they should be; prints what is not.
launchers_right() {
	local name
	mkdir -p "$work/hosts"
	lockstep jobs -o json >"$work/jobs.json" && lockstep findings --limit 500 -o json >"$work/findings.json" || return 1
	while read -r name; do
		lockstep hosts --job "$name" -o json >"$work/hosts/$name" || return 1
	done < <("$top/tests/system/launchers.py" names)
	"$top/tests/system/launchers.py" check "$work/jobs.json" "$work/hosts" "$work/findings.json"
}

fresh 4
run_behind "$work/launchers.log" env PYTHONPATH="$top/agent/client/python" PYTHONDONTWRITEBYTECODE=1 \
	python3 "$top/tests/system/launchers.py" run "$work/steps" $((seconds + 5))
workload_pid=$ret_pid
deadline=$((SECONDS + seconds))
until said=$(launchers_right 2>&1) || [ "$SECONDS" -ge "$deadline" ]; do sleep 2; done
program_end "$workload_pid" TERM # its workers end with it
while IFS= read -r line; do
	[ "${line#*: }" = "4 workers, the late one is named" ]
	result $? "$line"
done <<<"$said"
check "the contradiction is told, also when the job has ended" test -n "$(lockstep status unknown | grep 'is claimed by h0 and h1')"
tap_end
