#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench.sh: each bench of tests/bench, with little work, ends within 120 s beside another and prints figures, so that none rots. The figures
# mean nothing. A bench that has no line below is a failure.
# Fetch: bench
# Limit: 600 s
# Alone: it runs two at a time.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
benches=$top/tests/bench

# What makes a bench short: its environment and its options. The others are short.
declare -A env_of=(
	[bench_agent.py]='BENCH_SECONDS=4 BENCH_STATIC=0'
	[bench_overhead.py]='BENCH_BLOCKS=1 BENCH_STRETCH_SECONDS=2'
	[bench_query]='LOCKSTEP_BENCH_HOSTS=20'
	[bench_start.py]='LOCKSTEP_BENCH_DAYS=1 LOCKSTEP_BENCH_HOSTS=2'
)
declare -A options_of=(
	[bench_chunk]='' [bench_engine]='' [bench_mark]='' [bench_mark.py]='' [bench_pack]='' [bench_query]='' [bench_rollup]=''
	[bench_rows]='' [bench_scales]='' [bench_store]='' [bench_whatif]='' [bench_wire]='' [bench_agent.py]='' [bench_overhead.py]='' [bench_start.py]=''
	[bench_causes.py]='--runs 10'
	[bench_detect]='--table contract --runs 1 --hosts 64'
	[bench_faults.py]='--runs 1 --list'
	[bench_ingest.py]='--hosts 50 --seconds 5 --settle 5'
	[bench_memory.py]='--jobs 2 --hosts 50 --seconds 10'
	[bench_noise.py]='--seed 1 --only iid --steps 300'
	[bench_peers.py]='--runs 1 --scale 0.02'
	[bench_sensitivity.py]='--values' # it builds the tree for each of them
	[bench_recorded.py]='--help' # it needs a recording: tests/unit/deploy/check_recorded.py makes one
)

# run NAME: the bench; its lines go to $work/NAME.
run() {
	local program=$build/tests/bench/$1
	local -a options env
	read -r -a options <<<"${options_of[$1]}"
	read -r -a env <<<"${env_of[$1]:-}"
	[[ $1 != *.py ]] || program="$benches/$1"
	(cd "$work" && env top_srcdir="$top" top_builddir="$build" LOCKSTEP_BUILD="$build" TMPDIR="$work" "${env[@]}" \
		timeout --kill-after=5 120 "$program" "${options[@]}") >"$work/$1" 2>"$work/$1.log" || { tail -n 5 "$work/$1" "$work/$1.log"; return 1; }
	[ "$(wc -l <"$work/$1")" -gt 0 ]
}

# measure NAME: runs it; its status and seconds go to $work/NAME.done.
measure() {
	local start=$SECONDS
	run "$1"
	printf '%d %d\n' $? $((SECONDS - start)) >"$work/$1.done"
}

work_begin
check "the benches build" make -s -j"$(nproc)" -C "$build" benches
names=()
for source in "$benches"/bench_*.{c,py}; do
	name=$(basename "$source" .c)
	[ "$name" != bench_lib.py ] || continue
	[ -n "${options_of[$name]+known}" ] || { result 1 "$name has a line in $(basename "$0")"; continue; }
	names+=("$name")
done
for name in "${names[@]}"; do # side by side: nobody reads the figures
	measure "$name" >"$work/$name.said" 2>&1 &
	[ "$(jobs -rp | wc -l)" -lt "$(nproc)" ] || wait -n
done
wait
for name in "${names[@]}"; do
	read -r status seconds <"$work/$name.done"
	result "$status" "$name"
	note "$name: $seconds s, $(wc -l <"$work/$name") lines"
	[ "$status" -eq 0 ] || note "$(cat "$work/$name.said")"
done
why=$("$top/tests/record/residuals.py" 2>&1 >"$work/residuals")
case $? in
0) check "bench_scales replays recorded workers" "$build/tests/bench/bench_scales" --recorded "$work/residuals" recorded-64/16/none recorded-64/16/least ;;
77) skip "bench_scales replays recorded workers" "$why" ;;
*) result 1 "residuals.py: $why" ;;
esac
tap_end
