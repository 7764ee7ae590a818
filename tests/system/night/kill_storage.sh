#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kill_storage.sh [KILLS [HOSTS [SEED]]]: kill -9 of the collector at random moments (serving, packing, starting) under the
# load of simulated agents, over midnight (UTC) if libfaketime is there: it turns half-way. Every acknowledged record and
# chunk is stored exactly once, and the files are sound.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
[ -x "$build/lockstep-sim" ] || die "$build/lockstep-sim is not there: build first (tests/run does)"
kills=${1:-3}
hosts=${2:-200}
RANDOM=${3:-1}
ingest_port=0
http_port=0
slowest=0

# nap MILLISECONDS: a random time of at most so long.
nap() { sleep "$(printf '0.%03d' $((RANDOM % $1)))"; }

# A wall clock apart by a constant: midnight comes half-way. The monotonic clock stays the real one.
faketime_library=$(find /usr/lib -name libfaketimeMT.so.1 2>/dev/null | head -n 1)
turn_s=$((3 + kills * 19 / 20))
ahead_s=$((86400 - $(date +%s) % 86400 - turn_s))
# at_night COMMAND ARG...: runs what starts a collector with that clock.
at_night() {
	if [ -n "$faketime_library" ]; then
		LD_PRELOAD=$faketime_library FAKETIME=+${ahead_s}s DONT_FAKE_MONOTONIC=1 "$@"
	else
		"$@"
	fi
}

work_begin
state=$work/state/collector
at_night collector_start
run_behind "$work/sim.jsonl" "$build/lockstep-sim" --connect "tcp://127.0.0.1:$ingest_port" --hosts "$hosts" \
	--accelerate 20 --steps-per-second 1 --job sim-kills --ledger "$work/ledger" --report 10s --log-level err
sim_pid=$ret_pid
sleep 3
for ((i = 1; i <= kills; i++)); do
	[ $((RANDOM % 3)) -eq 0 ] || sleep 1
	nap 1000
	program_end "$collector_pid" KILL
	if [ $((i % 4)) -eq 0 ]; then # once more while it starts
		at_night run_behind "$work/collector.log" "$daemons/lockstep-collector" --listen "tcp://127.0.0.1:$ingest_port" \
			--http "127.0.0.1:$http_port" --state-dir "$state"
		nap 300
		program_end "$ret_pid" KILL
	fi
	began=$(date +%s%N)
	at_night collector_start
	took=$((($(date +%s%N) - began) / 1000000))
	[ "$took" -le "$slowest" ] || slowest=$took
	[ $((i % 20)) -ne 0 ] || note "kill $i: ready after $took ms"
done
note "$kills kills, at most $slowest ms until it served again"
alive "$sim_pid"
result $? "the agents live after $kills kills"
sleep 3
program_end "$sim_pid" TERM
result "$ret_status" "they end well at SIGTERM"
check "everything is acknowledged in the end, and no record was lost on the way" python3 -c '
import json, sys
t = [json.loads(l) for l in open(sys.argv[1])][-1]
print({k: t[k] for k in ("disconnects", "resent_items", "unacked_items", "lost_samples", "lost_step_records", "retries")})
sys.exit(t["event"] != "total" or t["unacked_items"] + t["lost_step_records"] != 0)' "$work/sim.jsonl"
lockstep export --job sim-kills >"$work/export.jsonl" 2>"$work/export.log"
check "every acknowledged record is stored exactly once" \
	"$top/tests/system/storage.py" steps "$work/ledger" <"$work/export.jsonl"
note "$(curl -s "http://127.0.0.1:$http_port/metrics" | grep -E '^lockstep_collector_(stored_unit|unit|keeper|storage_bytes|storage_damaged)' |
	tr '\n' ' ')"
program_end "$collector_pid" TERM
result "$ret_status" "the collector ends well"
check "every acknowledged chunk is stored exactly once" \
	"$top/tests/system/storage.py" chunks "$work/ledger" "$state" "$work/sim.jsonl"
check "the files are sound" "$build/lockstep-collector" --state-dir "$state" --check-db
days=$(find "$state/telemetry" -name '*.db' | wc -l)
if [ -n "$faketime_library" ]; then
	result $((days != 2)) "midnight passed: $days files of days"
else
	skip "midnight passed" "no libfaketime here (package faketime)"
fi
[ -z "$(find "$state" -name '*damaged*')" ]
result $? "none was set aside"
tap_end
