#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# quickstart.sh: deploy/quickstart --once names the slowed rank, from any directory, and leaves nothing.
# Alone: detection.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
work_begin
export TMPDIR=$work

# nothing_left: no file, process or cgroup of a run of quickstart that has ended.
# shellcheck disable=SC2317  # called by name
nothing_left() {
	local dir pid left=0
	ls -d "$work"/lockstep.* 2>/dev/null && left=1
	grep -lsF "$work/lockstep." /proc/[0-9]*/cmdline && left=1
	while read -r dir; do
		pid=${dir##*/lockstep-workload-}
		kill -0 "${pid%%-*}" 2>/dev/null || { echo "$dir"; left=1; }
	done < <(find /sys/fs/cgroup -maxdepth 6 -type d -name 'lockstep-workload-*' \
		-newer "$work/before" 2>/dev/null)
	return "$left"
}

cd / || die "cannot go to /"
touch "$work/before"
"$top/deploy/quickstart" --once --json --no-install --no-build >"$work/out" 2>"$work/err"
status=$?
sed 's/^/# /' "$work/err" "$work/out"
result "$status" "the slowed rank is named"
[ "$(json_field right <"$work/out")" = True ] && [ "$(json_field delay_s <"$work/out")" != '?' ]
result $? "the summary says so, and how long it took"
check "nothing is left" nothing_left

run_behind "$work/second" "$top/deploy/quickstart" --no-install --no-build
quickstart=$ret_pid
for ((i = 0; i < 100; i++)); do
	grep -q '^Training' "$work/second" && break
	sleep 0.2
done
sleep 2
program_end "$quickstart" TERM
[ "$ret_status" -eq 143 ]
result $? "SIGTERM ends it"
check "nothing is left after it" nothing_left
"$top/deploy/quickstart" --slow 9:cpu_hog:1 >"$work/out" 2>&1
[ $? -eq 2 ]
result $? "a wrong option is refused with status 2"
tap_end
