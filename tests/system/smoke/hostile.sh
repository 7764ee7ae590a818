#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hostile.sh: invalid input at every door while a job runs. No program crashes or grows without bound,
# drops are counted, and every record of the job arrives.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
steps=1200

# head_of RING: how many records it had so far.
head_of() { python3 -c 'import struct, sys; print(struct.unpack_from("<Q", open(sys.argv[1], "rb").read(4096), 3136)[0])' "$1"; }

# ring_over COUNT RING: whether it had more than so many.
ring_over() { [ "$(head_of "$2")" -gt "$1" ]; }

rss_mib() { awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$1/status"; }

fresh 4
echo precious >"$work/steps/precious"
workload_start --device 10 --batch 32 --ranks 4 --steps "$steps" --slow none
check "the job runs" step_wait 100

# The step directory of h0. It has copies of a ring of h1, whose agent is late: h0 is first with its records.
real=$(find "$work/steps/h1" -type f | head -n 1)
kill -STOP "${agent_pids[1]}"
check "its worker goes on" until_true ring_over $(($(head_of "$real") + 50)) "$real"
check "garbage in a steps directory" "$top/tests/system/hostile.py" rings "$work/steps/h0" "$work/steps/h2" "$real"
check "a copy of another host's ring is passed over" until_true metric_over 0 'drops_total{reason="other_host"}'
kill -CONT "${agent_pids[1]}"
# The ports.
check "garbage on the ingest port" "$top/tests/system/hostile.py" port "$ingest_port"
check "a flood waits for its answers, another peer does not" "$top/tests/system/hostile.py" flood "$ingest_port"
check "who floods is counted" metric_over 3 hosts_delayed
check "garbage on the HTTP port" "$top/tests/system/hostile.py" http "$http_port"
check "refused reports are counted" until_true metric_over 0 drops_total
alive "$collector_pid"
result $? "the collector lives"
alive "${agent_pids[0]}" && alive "${agent_pids[1]}"
result $? "the agents live"
[ "$(cat "$work/steps/precious")" = precious ]
result $? "a symbolic link in the steps directory does no harm"
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
