#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# full_disk.sh: the collector's disk runs full (a real small file system of its own). Nothing is acknowledged,
# /readyz says why, agents keep what they have; when there is room again all of it arrives, once.
if [ "${1:-}" != --inside ]; then
	[ "$(id -u)" -eq 0 ] || { echo '1..0 # SKIP mounting a small file system needs root'; exit 0; }
	unshare -m true 2>/dev/null || { echo '1..0 # SKIP no mount namespace of our own can be made here'; exit 0; }
	exec unshare -m --propagation private "$0" --inside
fi
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
steps=700
trap 'status=$?; stop_all; umount -l "${state:-/nowhere}" 2>/dev/null; (exit "$status"); system_end' EXIT

wait_ready() { "$top/tests/system/storage.py" wait "http://127.0.0.1:$http_port" "$@"; }

work_begin
state=$work/state/collector
mkdir -p "$state"
mount -t tmpfs -o size=24m lockstep-test "$state" 2>"$work/mount.log" ||
	skip_all "a small file system cannot be mounted: $(cat "$work/mount.log")"
ingest_port=0
http_port=0
collector_start
agents_start 4
workload_start --device 10 --batch 32 --ranks 4 --steps "$steps" --slow none
check "the job runs" step_wait 50
dd if=/dev/zero of="$state/filler" bs=64k status=none 2>/dev/null
check "/readyz turns red, and says why" wait_ready red "$patience_s"
stored=$(metric stored_records_total)
acks=$(metric items_total)
check "commits are refused, again and again" until_true metric_over $(($(metric commit_failures_total) + 1)) commit_failures_total
note "$(metric commit_failures_total) commits refused, $(metric retries_total) reports answered with: retry later"
[ "$(metric stored_records_total)" -eq "$stored" ]
result $? "nothing is stored while the disk is full ($stored records, $acks items before)"
alive "$collector_pid" && alive "${agent_pids[0]}"
result $? "collector and agents go on"
check "findings are served all the same" lockstep findings --status all -o json
rm "$state/filler"
check "/readyz is green again when there is room" wait_ready green "$patience_s"
workload_wait
result "$ret_status" "the job ends well"
check "every record of the job is there exactly once" records_wait once 4 "$steps"
program_end "$collector_pid" TERM
result "$ret_status" "the collector ends well"
check "the files are sound" "$build/lockstep-collector" --state-dir "$state" --check-db

# A disk that is there to be read only: said at once, and nothing is served that could not be stored.
if mount -o remount,ro "$state" 2>/dev/null; then
	timeout "$patience_s" "$build/lockstep-collector" --listen tcp://127.0.0.1:0 --http 127.0.0.1:0 --state-dir "$state" >"$work/out" 2>&1
	status=$?
	sed 's/^/# /' "$work/out"
	[ "$status" -eq 1 ] && grep -q -- --state-dir "$work/out"
	result $? "a file system that is read-only is refused at the start, by name"
	mount -o remount,rw "$state"
else
	skip "a read-only file system" "the file system cannot be remounted here"
fi
tap_end
