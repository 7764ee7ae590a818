#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hang.sh [STOPS]: one of four ranks is stopped in mid-run. While it stands, a hang must be told that names its
# host; or the job, if it was stopped inside the collective: then it is stopped again. It clears
# when the rank goes on, and the replay of the export says the same. For a rank that is killed
# while the others wait, the finding is a hang of that rank with cause process_gone; and where cores stood, by a file of
# libtpu, is evidence of it.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
RANDOM=1
stops=${1:-6} # at most; long device steps make a stop inside the collective rare

# rank_pid RANK: the process that has the ring of this rank mapped; sets ret_pid.
rank_pid() {
	local p
	for p in $(pgrep -P "$workload_pid"); do
		ret_pid=$p
		! grep -q "/steps/h$1/" "/proc/$p/maps" 2>/dev/null || return 0
	done
	return 1
}

# is_stopped PID
is_stopped() { [ "$(awk '/^State:/ { print $2 }' "/proc/$1/status" 2>/dev/null)" = T ]; }

# hang_wait RANK STATUS SECONDS: until there is such a hang; sets said and ret_status as facts.py gives them.
hang_wait() {
	local deadline=$((SECONDS + $3))
	while
		said=$(lockstep findings --status all -o json | facts hang "$1" "$2")
		ret_status=$?
		[ "$ret_status" -eq 3 ] && [ "$SECONDS" -lt "$deadline" ]
	do
		sleep 0.3
	done
}

# over_wait SECONDS: until no hang is open.
over_wait() {
	local deadline=$((SECONDS + $1))
	while
		hang_wait 2 open 0
		[ "$ret_status" -ne 3 ] && [ "$SECONDS" -lt "$deadline" ]
	do
		sleep 0.3
	done
	[ "$ret_status" -eq 3 ]
}

fresh 4
workload_start --device 100 --ranks 4 --steps 0 --slow none
check "the job runs" step_wait 80
named=1
for ((i = 1; i <= stops && named != 0; i++)); do
	rank_pid 2 || die "rank 2 has no process"
	kill -STOP "$ret_pid"
	stopped=$ret_pid
	hang_wait 2 open "$patience_s"
	still=$(is_stopped "$stopped" && echo yes)
	named=$ret_status
	note "stop $i: $said"
	[ "$still" = yes ] && { [ "$named" -eq 0 ] || [ "$named" -eq 4 ]; }
	result $? "stop $i: a critical hang is told while the rank is stopped, and blames no other host"
	agree_wait
	is_stopped "$stopped"
	result $? "stop $i: the rank stood still all the while"
	kill -CONT "$stopped"
	over_wait "$patience_s"
	result $? "stop $i: it is over when the rank goes on"
	sleep 0.$((RANDOM % 10))
done
result "$named" "the host of the stopped rank is named"

program_end "$workload_pid" TERM
result "$ret_status" "the job ends well"
agree_wait
[ "$(grep -c '"type":"hang"' "$work/export.jsonl")" -ge 1 ]
result $? "what was seen of live slots is in the export"

export LOCKSTEP_STALL_DIR="$work/stalls"
fresh 4
mkdir -p "$LOCKSTEP_STALL_DIR"
workload_start --ranks 4 --steps 0 --slow none --hold 300s
check "the next job runs" step_wait 80
rank_pid 1 || die "rank 1 has no process"
kill -KILL "$ret_pid"
hang_wait 1 open "$patience_s"
note "$said"
result "$ret_status" "a critical hang of the killed rank is told while the others wait"
[[ $said == *" process_gone, open "* ]]
result $? "its process is gone, it says"
# Core 3 of chip 1 at all-reduce.7, core 1 of chip 0 at fusion.2 (check_source_stall.c).
python3 -c '
import sys
open(sys.argv[1], "wb").write(bytes.fromhex(
    "0a35080312310a08080310011a020801121d080118b424284d38b1094211616c6c2d7265647563652e37201b5b316d18012202010228050a2c"
    "080112280a08080110001a0208011214080118b424284d38b1094208667573696f6e2e321801220201022805"))' "$work/stalls/tpu_stall_summary_1.pb"
id=$(lockstep findings -o json | json_field items 0 id)
stall_told() { lockstep explain "$id" | grep -m 1 'h[0-3]: .*core 1 of chip 0 stalled in program .* at fusion.2 '; }
check "libtpu's summary of the stall is evidence of it" until_true stall_told
program_end "$workload_pid" TERM 2>/dev/null # not well: that is wanted
verdict=$(judged --hosts --host h1)
ret_status=$?
note "$verdict"
[ "$ret_status" -eq 0 ] || [ "$ret_status" -eq 3 ]
result $? "no other host is blamed"
tap_end
