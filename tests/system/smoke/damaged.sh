#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# damaged.sh: database files that are cut, zeroed or have flipped bits, of closed days and of the day itself, at the start
# and while the collector runs. It sets them aside and says so, and serves the rest.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
[ -x "$build/lockstep-sim" ] || die "$build/lockstep-sim is not there: build first (tests/run does)"
ingest_port=0
http_port=0

# spoil HOW FILE: cut to a half; zero: all of it; flip: bits of every page of its second half.
spoil() {
	python3 -c '
import os, sys
how, path = sys.argv[1:]
size = os.path.getsize(path)
with open(path, "r+b") as f:
    if how == "cut":
        f.truncate(size // 2)
    elif how == "zero":
        f.write(bytes(size))
    else:
        for at in range(size // 8192 * 4096, size, 4096):
            f.seek(at)
            b = bytearray(f.read(64))
            f.seek(at)
            f.write(bytes(x ^ 0x55 for x in b))' "$1" "$2"
}

# noted COUNT: /readyz is green and its note tells of so many files.
noted() {
	local answer
	answer=$(curl -s "http://127.0.0.1:$http_port/readyz")
	echo "$answer"
	case $answer in *'"status":"ready"'*"$1 damaged database files"*) ;; *) return 1 ;; esac
}

# records: host and step of all records of the job that are served.
records() {
	lockstep export --job sim-damaged 2>/dev/null | python3 -c '
import json, sys
seen = {(r["host"], r["step"]) for r in map(json.loads, sys.stdin) if "t_begin" in r}
print(*sorted(seen), sep="\n")'
}

collector_start
run_behind "$work/sim.jsonl" "$build/lockstep-sim" --connect "tcp://127.0.0.1:$ingest_port" --hosts 20 \
	--steps-per-second 10 --accelerate 20 --job sim-damaged --duration 8s --log-level err
wait "$ret_pid"
result $? "20 agents run for 8 s"
program_end "$collector_pid" TERM
result "$ret_status" "the collector ends well"
telemetry=$work/state/collector/telemetry
today=$(find "$telemetry" -name '????????.db' | sort | tail -n 1)

# At the start: three closed days, one cut, one zeroed, one with flipped bits.
for i in 2 3 4 5; do day[i]=$(date -u -d "-$i days" +%Y%m%d); done
for i in 2 3 4; do cp "$today" "$telemetry/${day[i]}.db"; done
spoil cut "$telemetry/${day[2]}.db"
spoil zero "$telemetry/${day[3]}.db"
spoil flip "$telemetry/${day[4]}.db"
collector_start
check "the two that cannot be opened are set aside, and told" until_true noted 2
[ ! -e "$telemetry/${day[2]}.db" ] && [ ! -e "$telemetry/${day[3]}.db" ] && [ -e "$telemetry/${day[4]}.db" ]
result $? "they are out of the way"
check "a metric tells of them" grep -x 'lockstep_collector_storage_damaged_files 2' \
	<(curl -s "http://127.0.0.1:$http_port/metrics")
records >"$work/before"
note "$(wc -l <"$work/before") records served beside flipped bits"
[ -s "$work/before" ]
result $? "a query that meets flipped bits serves the rest"
grep -q "day ${day[4]}" "$work/collector.log"
result $? "and the log tells what it met"
check "the day with bad pages is then set aside, too" until_true noted 3
check "a finding says so, and what to do" grep -E 'F-SE1F.*damaged, so it is set aside.*--salvage' <(lockstep findings)
lockstep explain F-SE1F >"$work/explained"
grep -q "Verdict    .*: damaged, so it is set aside" "$work/explained"
result $? "lockstep explain shows it"
aside=$(find "$telemetry" -name "${day[4]}.db.damaged-*" ! -name '*-wal' ! -name '*-shm')
check "what can be read of it is salvaged" "$build/lockstep-collector" --salvage "$aside"
"$build/lockstep-collector" --state-dir "$work/none" --salvage "$aside" 2>"$work/again"
grep -q "$aside.salvaged: File exists" "$work/again"
result $? "a salvaged file is not written over"

# While it runs: a closed day is torn under it.
cp "$today" "$telemetry/${day[5]}.db"
spoil cut "$telemetry/${day[5]}.db"
kill -HUP "$collector_pid"
check "a closed day that is torn while it runs is set aside, too" until_true noted 4
records | diff -q - "$work/before" >"$work/diff"
result $? "the rest is served as before"

# The day itself, at the start.
program_end "$collector_pid" TERM
rm -f "$telemetry/${day[4]}.db"
spoil zero "$today"
collector_start
check "the day itself is set aside at the start" until_true noted 5
run_behind "$work/sim.jsonl" "$build/lockstep-sim" --connect "tcp://127.0.0.1:$ingest_port" --hosts 5 \
	--steps-per-second 10 --job sim-after --duration 5s --log-level err
wait "$ret_pid"
result $? "agents run for 5 s"
check "all of theirs is acknowledged" python3 -c '
import json, sys
t = [json.loads(l) for l in open(sys.argv[1])][-1]
print({k: t[k] for k in ("durable_step_records", "unacked_items")})
sys.exit(t["unacked_items"] != 0 or t["durable_step_records"] == 0)' "$work/sim.jsonl"
program_end "$collector_pid" TERM
result "$ret_status" "the collector ends well"
check "the files that are left are sound" "$build/lockstep-collector" --state-dir "$work/state/collector" --check-db
tap_end
