#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# detection.sh [SHARE [RECORDINGS]...]: the figures of the detection sections of tests/MEASURED.md, from one command: who is found, after how many steps, with which
# cause and cost; how often healthy hosts, racks, slices and jobs are found; how small a slowdown is named. SHARE of the runs (0.01, and two hours instead of a week; 1
# takes many hours). RECORDINGS: directories that tests/record/record.sh made, beside ../shared/data/runs. Rows go to build/test-logs/long/detection-COMMIT, a file
# each, and `page` holds them all; those that are there are not run again. What is wanted of a row (judge, below) is a line of its own, which fails if it does not hold.
# Limit: 600 s
# Alone: it runs as many rows as there are CPUs.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
share=${1:-0.01}
recordings=(runs "${@:2}") # runs: those of ../shared
commit=$(git -C "$top" describe --always --abbrev=40 --exclude '*' --dirty 2>/dev/null || echo unknown)
kept=$build/test-logs/long/detection-$commit
work_begin
case $commit-$share in
unknown-* | *-dirty-* | *-0.*) kept=$work/rows ;; # not to be taken for the whole of a commit
esac
mkdir -p "$kept"
check "the benches build" make -s -C "$build" tests/bench/bench_scales tests/bench/bench_detect

# rows: NAME PROGRAM OPTION..., in order.
rows() {
	local noise hosts hours seconds trials name kind groups draw recorded=()
	echo "faults-mixed bench/bench_faults.py --draw mixed --seed 40 --runs 70"
	echo "blocks record/blocks.py"
	if [ "$share" = 1 ]; then # night/bench.sh tries all of these with little work
		for name in contract grid levels; do
			echo "$name bench/bench_detect --full --runs 20 --table $name"
		done
		for draw in again beside born early kinds; do
			echo "faults-$draw bench/bench_faults.py --draw $draw --seed 40 --runs 70"
		done
		echo "causes bench/bench_causes.py --runs 1100 --seed 2711"
		for name in "${recordings[@]}"; do
			[ "$name" != runs ] || name=''
			echo "recorded-$(basename "${name:-runs}") bench/bench_recorded.py${name:+ $name}" # no blank at its end: xargs would take the next line, too
		done
		echo "noise bench/bench_noise.py --seed 501,502,503"
		echo "noise-long bench/bench_noise.py --seed 501,502 --steps 20000"
		echo "noise-ends bench/bench_noise.py --seed 501 --steps 10000 --lasts 2000"
		for name in wander-5-50/{8,16,64}/15%/0.4 wander-10-50/{4,32}/30%/0.4 wander-10-200/32/30%/0.4 wander-2-{10,1000}/32/6%/0.4 wander-5-50/32/15%/{2,10}; do
			hours=1 # it begins in the middle, when the job is not young
			[[ $name != */[48]/* ]] || hours=2
			echo "culprit-${name//\//-} bench/bench_scales --found --seed 11 --hours $hours --runs 40 $name"
		done
		echo "healthy bench/bench_detect --full --weeks 3 --table null"
	fi
	[ ! -s "$work/late-runs" ] || recorded=(--recorded "$work/late-runs")
	for name in "${recordings[@]##*/}"; do
		for kind in late wait; do
			[ ! -s "$work/$kind-$name" ] ||
				echo "$kind-$name bench/bench_scales --found --recorded $work/$kind-$name --seed 2711 --hours 168 --runs 16 recorded-64/64/none/1"
		done
	done
	for noise in wander-{2,5,10}-{10,60,600} tails-2; do
		echo "$noise bench/bench_scales --found --seed 2711 --hours 168 --runs 16 $noise/64/none/1"
	done
	for noise in iid-{0.3,1,2,5}; do
		echo "$noise bench/bench_scales --found --seed 2711 --hours 168 --runs 470 $noise/64/none/10"
	done
	for groups in racks-4 slices-2 job; do
		for noise in wander-{2,5,10}-60; do
			echo "$noise-$groups bench/bench_scales --found --seed 2711 --hours 168 --runs 16 $noise/64/none/1/$groups"
		done
		for noise in iid-1 wander-2-50; do
			[ "$groups" = job ] || echo "least-$noise-$groups bench/bench_scales --seed 2711 --runs 100 $noise/64/least/1/$groups"
		done
	done
	for seconds in 1 10 0.02; do
		for hosts in 16 256 4096; do
			[ "$hosts" -eq 16 ] || [ "$share" = 1 ] || continue
			trials=$((hosts == 16 ? 200 : hosts == 256 ? 80 : 40))
			for noise in iid-{0.3,1,2,5} wander-{2,5,10}-{50,500} ${recorded:+recorded-64}; do
				echo "least-$noise-$hosts-$seconds bench/bench_scales ${recorded[*]} --seed 2711 --runs $trials $noise/$hosts/least/$seconds"
			done
		done
	done
}

# row NAME PROGRAM OPTION...: runs it, unless its line is there.
# shellcheck disable=SC2317  # called by xargs
row() {
	local name=$1 program=$build/tests/$2 k status
	local -a options=("${@:3}")
	[ ! -s "$kept/$name" ] || return 0
	[[ $2 != *.py ]] || program=$top/tests/$2
	for k in "${!options[@]}"; do
		[ "${options[k]}" != --hours ] || [ "$share" = 1 ] || options[k + 1]=2
		case ${options[k]} in
		--runs) options[k + 1]=$(awk "BEGIN { n = ${options[k + 1]} * $share; print (n > 1 ? int(n) : 1) }") ;;
		esac
	done
	LOCKSTEP_BUILD=$build TMPDIR=$work nice -n 19 "$program" "${options[@]}" >"$kept/.$name" 2>"$kept/.$name.log"
	status=$?
	case $name-$status in
	*-0 | recorded-*-1) ;; # which says that a recording is not judged right
	blocks-77 | recorded-*-2) return 0 ;; # there is no data
	*) tail -n 5 "$kept/.$name.log"; return 1 ;;
	esac
	mv "$kept/.$name" "$kept/$name"
}
export -f row
export kept share work build top

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
{
	printf 'Engine %s, commit %s, %s, %s of the runs.\n' "$(sed -n 's/#define LS_ENGINE_VERSION "\(.*\)"/\1/p' "$top/collector/engine/engine.h")" \
		"$commit" "$(date -u +%F)" "$share"
	last=''
	while read -r name program options; do
		[ -s "$kept/$name" ] || continue
		if [ "$program-$last" = bench/bench_scales-bench/bench_scales ]; then # one table
			tail -n +3 "$kept/$name"
		else
			# shellcheck disable=SC2016  # a command in Markdown
			printf '\n### %s\n`%s %s`\n\n%s\n' "$name" "$program" "$options" "$(cat "$kept/$name")"
		fi
		last=$program
	done < <(rows)
} >"$kept/page"
while read -r line; do note "$line"; done <"$kept/page"

# judge NAME: what is wanted of this row is a line that says so; rows of which nothing is wanted have none.
# Shares are wanted as far as so many jobs can tell: less two standard errors.
# shellcheck disable=SC2016  # programs of awk
judge() {
	local wanted test
	case $1 in
	blocks)
		wanted='public runs have no finding as they are; 12 of 21 on v5p have one when blocks are made longer by .3 %'
		test='/^\| v/ { as_is += $6; if ($2 ~ /v5p/) { split($7, of, " "); found += of[1] } } END { exit as_is > 0 || found < 12 }'
		;;
	iid-* | wander-*)
		wanted='of healthy hosts, groups and jobs, a week and 10,000 hosts, no more than one is found with a warning, and ten by info'
		test='NR > 2 { split($6, warning, " "); split($8, info, " "); rows++; many += warning[1] > 1 || info[1] > 10 } END { exit rows == 0 || many > 0 }'
		;;
	contract)
		wanted='noise of .1 and .3 %: 3 % in 40 steps and 2 % in 80 are named first in 95 % of the runs'
		test='/^\| [0-9]+ \| 0\.[13] % \| one culprit/ { rows++; few += $7 < 95 } END { exit rows == 0 || few > 0 }'
		;;
	causes)
		wanted='1,000 causes are told, and a share of them is right that is within .1 of what was told, for each tenth of which 50 are told'
		test='/ to / && !/all named/ { all += $4; n[$3] += $4; over[$3] += $5 - $4 * $7 }
			END { for (bin in n) off += n[bin] >= 50 && (over[bin] > n[bin] / 10 || -over[bin] > n[bin] / 10); exit all < 1000 || off > 0 }'
		;;
	culprit-*)
		wanted='the culprit is the first that is found in 95 % of the jobs, and no healthy host is found in more than 1 %'
		test='NR > 2 { rows++; bad += $9 < .95 * $3 - 2 * sqrt(.05 * .95 * $3) || $5 + $7 > .01 * $3 } END { exit rows == 0 || bad > 0 }'
		;;
	least-iid-*)
		[ "$share" = 1 ] || return 0 # too few trials
		wanted='no slowdown that is found is more than twice the least that is possible'
		test='{ bad += /none,/; if (sub(/.*ratio /, "")) { rows++; bad += $1 > 2 } } END { exit rows == 0 || bad > 0 }'
		;;
	noise | noise-ends | noise-long)
		wanted='95 % of the jobs are judged right'
		test='/^right / { split($0, of, " "); few = of[2] < .95 * of[4] - 2 * sqrt(.05 * .95 * of[4]) } END { exit few || of[4] == 0 }'
		;;
	recorded-runs)
		wanted='each recording is judged right'
		test='/^right / && !there++ { split($0, of, " ") } END { exit of[2] < of[4] || !there }'
		;;
	*) return 0 ;;
	esac
	awk -F'|' "$test" "$kept/$1"
	result $? "$1: $wanted"
}
while read -r name _; do
	[ ! -s "$kept/$name" ] || judge "$name"
done < <(rows)
tap_end
