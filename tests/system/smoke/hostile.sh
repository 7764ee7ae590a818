#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hostile.sh: invalid input at every door while a job runs. No program crashes or grows without bound,
# drops are counted, and every record of the job arrives.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
steps=1200

# metric_sum NAME...: sum of these on the collector's /metrics: families over all labels, or NAME{labels}.
metric_sum() {
	python3 -c '
import sys, urllib.request
text = urllib.request.urlopen(sys.argv[1] + "/metrics", timeout=5).read().decode()
print(int(sum(float(l.rsplit(" ", 1)[1]) for l in text.splitlines()
    if not l.startswith("#") and {l.rsplit(" ", 1)[0], l.split("{")[0]} & set(sys.argv[2:]))))' \
		"http://127.0.0.1:$http_port" "$@"
}

# drop_wait REASON: until the collector has dropped something for this reason; fails after 20 s.
drop_wait() {
	local deadline=$((SECONDS + 20))
	until [ "$(metric_sum "lockstep_collector_drops_total{reason=\"$1\"}")" -gt 0 ]; do
		[ "$SECONDS" -lt "$deadline" ] || return 1
		sleep 0.2
	done
}

rss_mib() { awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$1/status"; }

fresh 4
echo precious >"$work/steps/precious"
workload_start --device 10 --batch 32 --ranks 4 --steps "$steps" --slow none
check "the job runs" step_wait 100

# The step directory of h0. It has copies of a ring of h1, whose agent is late: h0 is first with its records.
real=$(find "$work/steps/h1" -type f | head -n 1)
kill -STOP "${agent_pids[1]}"
sleep 2
check "garbage in a steps directory" "$top/tests/system/hostile.py" rings "$work/steps/h0" "$work/steps/h2" "$real"
check "a copy of another host's ring is passed over" drop_wait other_host
kill -CONT "${agent_pids[1]}"
# The ports.
check "garbage on the ingest port" "$top/tests/system/hostile.py" port "$ingest_port"
check "garbage on the HTTP port" "$top/tests/system/hostile.py" http "$http_port"
sleep 2
alive "$collector_pid"
result $? "the collector lives"
alive "${agent_pids[0]}" && alive "${agent_pids[1]}"
result $? "the agents live"
[ "$(cat "$work/steps/precious")" = precious ]
result $? "a symbolic link in the steps directory does no harm"
[ "$(metric_sum lockstep_collector_drops_total)" -gt 0 ]
result $? "refused reports are counted"
note "collector $(rss_mib "$collector_pid") MiB, agent $(rss_mib "${agent_pids[0]}") MiB resident"
[ "$(rss_mib "$collector_pid")" -lt 256 ] && [ "$(rss_mib "${agent_pids[0]}")" -lt 32 ]
result $? "nobody has grown"
workload_wait
result "$ret_status" "the job ends well"
check "every record of the job arrives once" records_wait own 4 "$steps"

# Configuration.
printf 'collectr = tcp://127.0.0.1:1\n' >"$work/bad.conf"
head -c 3000 /dev/urandom >"$work/random.conf"
for program in lockstep-agent lockstep-collector; do
	for conf in bad.conf random.conf nowhere.conf; do
		"$build/$program" --config "$work/$conf" --check-config >"$work/out" 2>&1
		[ $? -eq 2 ] && [ -s "$work/out" ]
		result $? "$program refuses $conf with status 2 and a message"
	done
	"$build/$program" --no-such-option >"$work/out" 2>&1
	[ $? -eq 2 ] && grep -q no-such-option "$work/out"
	result $? "$program refuses an unknown option by name"
done

# Replay files.
head -c 100000 /dev/urandom >"$work/random.jsonl"
: >"$work/empty.jsonl"
printf '\037\213\010garbage' >"$work/bad.gz"
for file in random.jsonl bad.gz nowhere.jsonl; do
	lockstep replay "$work/$file" -o json >"$work/out" 2>"$work/err"
	[ $? -eq 1 ] && [ -s "$work/err" ]
	result $? "replay refuses $file with status 1 and a message"
done
head -c 20 /dev/urandom >"$work/mixed.jsonl"
{ printf '\n{"job":"x","step":-1}\n'; head -n 40 "$work/export.jsonl"; } >>"$work/mixed.jsonl"
lockstep replay "$work/mixed.jsonl" -o json >"$work/out" 2>"$work/err"
status=$?
[ "$status" -eq 0 ] && grep -q 'line 1' "$work/err" && grep -q '"digest"' "$work/out"
result $? "bad lines among good ones are reported with their number"
tap_end
