#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The training job that other tests lean on: it trains, reports, and leaves nothing behind.
set -u
program=${top_builddir:-.}/lockstep-workload
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
count=0

# Prints the TAP line of one test: is STATUS 0?
result() {
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - $2"
	else
		echo "not ok $count - $2"
	fi
}

skip() {
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

# Number of CPU cgroups of workloads that are left.
cgroups_left() {
	find /sys/fs/cgroup -maxdepth 4 -type d -name "lockstep-workload-$1-*" 2>/dev/null | wc -l
}

# A value of the report: a Python expression on `r`.
report() {
	"${PYTHON:-python3}" -c 'import json, sys
r = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$dir/report.json" "$1"
}

# Until the last rank of the job that was started has its step ring (so all have forked, and signals are
# handled).
begun() { # RANKS
	until ls "$dir/steps/h$(($1 - 1))"/*.ring >/dev/null 2>&1 || ! kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}

# The processes that the job has started.
children() {
	cat "/proc/$pid/task/$pid/children" 2>/dev/null
}

small="--width 64 --batch 64 --steps-root $dir/steps --report $dir/report.json --device 1"
export TMPDIR="$dir"

$program $small --ranks 2 --steps 60 --job check >"$dir/out" 2>"$dir/err" &
pid=$!
wait $pid
result $? "runs to its end"
sed 's/^/# /' "$dir/out" "$dir/err"
report 'r["steps"] == 60 and len(r["ranks"]) == 2 and r["fault"] is None'
result $? "writes its report"
report 'r["loss_last"] < 0.8 * r["loss_first"]'
result $? "loss goes down"
[ "$(ls "$dir"/steps/h0/*.ring "$dir"/steps/h1/*.ring | wc -l)" -eq 2 ]
result $? "every rank leaves a step ring"
[ "$(cgroups_left $pid)" -eq 0 ] && [ -z "$(ls -d "$dir"/lockstep-workload-* 2>/dev/null)" ]
result $? "removes its cgroups and input files"

$program $small --ranks 4 --slices 2 --steps 40 --slow 3:slow_input:2@10 >"$dir/out" 2>"$dir/err"
result $? "runs with two slices and slow input"
report 'r["fault"]["kind"] == "slow_input" and r["fault"]["rank"] == 3'
result $? "reports the fault"
report 'r["ranks"][3]["after"]["input_seconds"] > 5 * r["ranks"][0]["after"]["input_seconds"]'
result $? "slow input is input wait of that rank alone"
# On a busy machine one long step may fall into what one rank calls "after" and not into another's.
report '(lambda spread: spread("step_seconds") < spread("input_seconds") / 3)(lambda key:
	max(x["after"][key] for x in r["ranks"]) / min(x["after"][key] for x in r["ranks"]))'
result $? "step times do not betray it"

rm -rf "$dir/steps"
$program $small --ranks 2 --steps 0 --slow 1:pause:20@5 >"$dir/out" 2>"$dir/err" &
pid=$!
begun 2
# Until a rank stands still.
# shellcheck disable=SC2046  # a list of files
until grep -q '^State:.T' $(children | sed 's|[0-9][0-9]*|/proc/&/status|g') /dev/null 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -TERM $pid
wait $pid
status=$?
[ $status -eq 0 ] || { echo "# status $status"; sed 's/^/# /' "$dir/err"; }
result $status "ends cleanly at SIGTERM"
[ "$(cgroups_left $pid)" -eq 0 ]
result $? "removes its cgroups at SIGTERM"
report 'r["fault"]["pauses"] > 0'
result $? "stopped the rank now and then"

rm -rf "$dir/steps"
$program $small --ranks 2 --steps 0 --slow 1:cpu_hog:1@5 >"$dir/out" 2>"$dir/err" &
pid=$!
begun 2
rank=$(for p in $(children); do
	find "/proc/$p/fd" -lname "*/shard-1.bin" 2>/dev/null | grep -q . && echo "$p"
done)
kill -KILL ${rank:-$pid} 2>/dev/null
wait $pid
[ $? -eq 1 ] && grep -q 'rank 1 (h1) was ended by signal 9' "$dir/err"
result $? "a rank that dies ends the job with an error"
[ "$(cgroups_left $pid)" -eq 0 ]
result $? "removes its cgroups after an error"

rm -rf "$dir/steps"
$program $small --ranks 2 --steps 0 --slow 1:cpu_hog:1@5 >"$dir/out" 2>"$dir/err" &
pid=$!
begun 2
until [ "$(children | wc -w)" -ge 3 ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done # two ranks and a hog
hogs=$(children)
kill -KILL $pid
wait $pid 2>/dev/null
# How many of them live. A zombie that nobody has reaped yet is dead, too.
living() {
	for p in $hogs; do
		! [ -d "/proc/$p" ] || grep -q '^State:.Z' "/proc/$p/status" 2>/dev/null || echo "$p"
	done | wc -l
}
tries=0
until [ "$(living)" -eq 0 ] || [ $tries -ge 600 ]; do
	sleep 0.1
	tries=$((tries + 1))
done
[ "$(living)" -eq 0 ] && [ "$(cgroups_left $pid)" -eq 0 ]
result $? "nothing is left when the parent is killed"

if grep -q '"cgroup": "none' "$dir/report.json"; then
	skip "a quota throttles the rank" "no CPU cgroups for us here"
else
	# Enough work for the quota to bite; on a machine busy with other work it may take a second try.
	for attempt in 1 2 3; do
		$program $small --batch 320 --ranks 2 --steps 60 --slow 1:cpu_quota:5@20 \
			>"$dir/out" 2>"$dir/err"
		status=$?
		report 'r["ranks"][1]["after"]["work_seconds"] > 1.5 * r["ranks"][0]["after"]["work_seconds"]'
		throttled=$?
		[ $status -eq 0 ] && [ $throttled -ne 0 ] || break
		echo "# try $attempt: the quota did not show"
	done
	result $status "runs under a quota"
	result $throttled "a quota throttles the rank"
fi

rm -rf "$dir/steps"
$program $small --ranks 2 --steps 120 --slow 1:slow_input:2@30-60 >"$dir/out" 2>"$dir/err"
result $? "runs with a fault that ends"
report 'r["fault"]["step"] >= 30 and r["fault"]["step"] < 60 <= r["fault"]["end_step"] < 120'
result $? "reports when it began and ended"
report 'abs(r["ranks"][1]["after"]["steps"] - (r["fault"]["end_step"] - r["fault"]["step"])) <= 2'
result $? "and what it did meanwhile"

$program $small --ranks 2 --netns "no-such-$$-" >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && grep -q -- "--netns no-such-$$-: /run/netns/no-such-$$-0: " "$dir/err"
result $? "refuses network namespaces that are not there"

for bad in 9:cpu_hog:1 1:rust:1 1:pause:0 1:pause:5@x 1:pause:5@9-9 1:pause:5@3- 1; do
	$program $small --ranks 2 --slow $bad >"$dir/out" 2>"$dir/err"
	[ $? -eq 2 ] && grep -q -- "--slow $bad" "$dir/err"
	result $? "refuses --slow $bad"
done
echo "1..$count"
