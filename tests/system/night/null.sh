#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# null.sh [SHARE [RECORDINGS]...]: how often healthy hosts, racks and slices are found, and how small a slowdown is named: the tables of tests/MEASURED.md,
# "Noise that is not ours". SHARE of the runs (0.01, and two hours instead of a week; 1 takes hours). RECORDINGS: directories that tests/record/record.sh made, beside
# ../shared/data/runs. Rows go to build/test-logs/long/null-COMMIT; those that are there are not run again. A row of
# independent noise or wander in which more than one healthy host, or group, a week and 10,000 hosts is found with a warning is a failure.
# Limit: 600 s
# Alone: it runs as many rows as there are CPUs.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
share=${1:-0.01}
recordings=(runs "${@:2}") # runs: those of ../shared
commit=$(git -C "$top" describe --always --abbrev=40 --exclude '*' --dirty 2>/dev/null || echo unknown)
kept=$build/test-logs/long/null-$commit
work_begin
case $commit-$share in
unknown-* | *-dirty-* | *-0.*) kept=$work/rows ;; # not to be taken for the whole of a commit
esac
mkdir -p "$kept"
check "bench_scales builds" make -s -C "$build" tests/bench/bench_scales

# rows: NAME OPTION..., in order.
rows() {
	local noise hosts seconds trials name kind groups recorded=()
	[ ! -s "$work/late-runs" ] || recorded=(--recorded "$work/late-runs")
	for name in "${recordings[@]##*/}"; do
		for kind in late wait; do
			[ ! -s "$work/$kind-$name" ] ||
				echo "$kind-$name --found --recorded $work/$kind-$name --seed 2711 --hours 168 --runs 16 recorded-64/64/none/1"
		done
	done
	for noise in wander-{2,5,10}-{10,60,600} tails-2; do
		echo "$noise --found --seed 2711 --hours 168 --runs 16 $noise/64/none/1"
	done
	for noise in iid-{0.3,1,2,5}; do
		echo "$noise --found --seed 2711 --hours 168 --runs 470 $noise/64/none/10"
	done
	for groups in racks-4 slices-2; do
		for noise in wander-{2,5,10}-60; do
			echo "$noise-$groups --found --seed 2711 --hours 168 --runs 16 $noise/64/none/1/$groups"
		done
		for noise in iid-1 wander-2-50; do
			echo "least-$noise-$groups --seed 2711 --runs 100 $noise/64/least/1/$groups"
		done
	done
	for seconds in 1 10 0.02; do
		for hosts in 16 256 4096; do
			[ "$hosts" -eq 16 ] || [ "$share" = 1 ] || continue
			trials=$((hosts == 16 ? 200 : hosts == 256 ? 80 : 40))
			for noise in iid-{0.3,1,2,5} wander-{2,5,10}-{50,500} ${recorded:+recorded-64}; do
				echo "least-$noise-$hosts-$seconds ${recorded[*]} --seed 2711 --runs $trials $noise/$hosts/least/$seconds"
			done
		done
	done
}

# row NAME OPTION...: runs it, unless its line is there.
# shellcheck disable=SC2317  # called by xargs
row() {
	local name=$1 k
	local -a options=("${@:2}")
	[ ! -s "$kept/$name" ] || return 0
	for k in "${!options[@]}"; do
		[ "${options[k]}" != --hours ] || [ "$share" = 1 ] || options[k + 1]=2
		[ "${options[k]}" != --runs ] || options[k + 1]=$(awk "BEGIN { n = int(${options[k + 1]} * $share); print (n > 1 ? n : 1) }")
	done
	nice -n 19 "$build/tests/bench/bench_scales" "${options[@]}" >"$kept/.$name" || return
	tail -n +3 "$kept/.$name" >"$kept/.$name.new" && mv "$kept/.$name.new" "$kept/$name" && rm "$kept/.$name"
}
export -f row
export kept share work build

for directory in "${recordings[@]}"; do
	name=${directory##*/}
	[ "$directory" != runs ] || directory=''
	for kind in late wait; do
		option=''
		[ "$kind" != wait ] || option=--wait
		why=$("$top/tests/record/residuals.py" $option ${directory:+"$directory"} 2>&1 >"$work/$kind-$name")
		case $? in
		0) ;;
		77) skip "recorded workers: $kind, $name" "$why" ;;
		*) result 1 "residuals.py $option $directory: $why" ;;
		esac
	done
done
rows | xargs -P "$(nproc)" -L 1 bash -c 'row "$@"' row
result $? "all rows are made"
while read -r name _; do
	[ -s "$kept/$name" ] || continue
	sed 's/^/# /' "$kept/$name"
	case $name in
	iid-* | wander-*)
		awk -F'|' '{ split($6, rate, " "); many += rate[1] > 1 } END { exit many > 0 }' "$kept/$name"
		result $? "$name: no more than one healthy host, or group, a week and 10,000 hosts is found, with a warning"
		;;
	esac
done < <(rows)
tap_end
