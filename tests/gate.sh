# shellcheck shell=bash disable=SC2034,SC2154
# gate.sh - what turns a run of tests/run red: how results are counted, the second try, the flaky tests.
#
# Sourced by tests/run and by tests/unit/check_gate.sh. Needs: logs (a directory), build.
# A system test that fails runs once more, alone, after all others. If it passes then, it counts as passed and is listed
# as flaky. Unit tests and sanitized programs get no second try.

system_limit_s=240 # of a system test without a line `# Limit: N s`
flaky_max=3        # more flaky tests in one run are a failure
flaky_runs=10      # a test that is flaky twice in so many runs of this machine is a failure
disk_min_mib=64    # less room below the build directory explains a failure

passed=0
failed=0
skipped=0
skips=()
failures=()
flaky=()       # lines: NAME (why, first log)
flaky_names=()
again=()       # scripts that have failed once
declare -A why_of=() # and why

fail() { failed=$((failed + 1)); failures+=("$1"); }

# run_lock FILE: one run at a time in a build directory. The lock ends with this shell, also by kill -9: no child has it.
run_lock() {
	exec 9>"$1"
	flock -n 9 && return
	say "Another tests/run uses ${1%/*}; waiting for its end. (LOCKSTEP_BUILD=DIR uses another directory.)"
	flock 9
}

# disk_room_mib: what is free below the build directory.
disk_room_mib() { df --output=avail -BM "$build" | tail -n 1 | tr -dc 0-9; }

# finish: second tries, then every skip, flaky test and failure by name, then the totals.
finish() {
	local script
	if [ $((${#again[@]} + failed)) -gt 0 ] && [ "$(disk_room_mib)" -lt "$disk_min_mib" ]; then
		fail "the disk is full: $(disk_room_mib) MiB are free below $build, the tests need $disk_min_mib MiB"
		for script in "${again[@]}"; do fail "$(name_of "$script"): ${why_of[$script]}"; done
		again=()
	fi
	second_tries
	flaky_judge
	[ "${#skips[@]}" -eq 0 ] || printf 'skipped: %s\n' "${skips[@]}"
	[ "${#flaky[@]}" -eq 0 ] || printf 'flaky: %s\n' "${flaky[@]}"
	[ "${#failures[@]}" -eq 0 ] || printf 'failed: %s\n' "${failures[@]}"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
	exit
}

# tap_read FILE: sets ret_ok (a count), ret_skips, ret_bad (lists) and ret_wrong: why the file is no complete TAP.
tap_read() {
	local line plan='' count=0
	ret_ok=0
	ret_skips=()
	ret_bad=()
	ret_wrong=''
	while IFS= read -r line; do
		case $line in
		'1..0 # SKIP'*) plan=0; ret_skips+=("${line#*# SKIP }") ;;
		1..[0-9]*) plan=${line#1..}; plan=${plan%%[!0-9]*} ;;
		'ok '*'# SKIP'*) count=$((count + 1)); ret_skips+=("${line#*# SKIP }") ;;
		'ok '*) count=$((count + 1)); ret_ok=$((ret_ok + 1)) ;;
		'not ok '*) count=$((count + 1)); ret_bad+=("${line#not ok }") ;;
		'Bail out!'*) ret_wrong=$line ;;
		esac
	done < <(grep -aE '^(ok |not ok |1\.\.[0-9]|Bail out!)' "$1")
	if [ -z "$plan" ]; then
		ret_wrong=${ret_wrong:-'no plan (1..N)'}
	elif [ "$count" -ne "$plan" ]; then
		ret_wrong=${ret_wrong:-"$count results, $plan planned"}
	fi
}

# tap_count NAME: adds what tap_read has read. A test without a failed line that is wrong all the same is one failure.
tap_count() {
	local line
	passed=$((passed + ret_ok))
	skipped=$((skipped + ${#ret_skips[@]}))
	for line in "${ret_skips[@]}"; do skips+=("$1: $line"); done
	for line in "${ret_bad[@]}"; do fail "$1: $line"; done
	[ "${#ret_bad[@]}" -gt 0 ] || [ -z "$ret_wrong" ] || fail "$1: $ret_wrong"
}

# report NAME WORD SECONDS: one line, and the end of the log of a stage that is not ok.
report() {
	printf '%-26s%s  %d s\n' "$1" "$2" "$3"
	[ "$2" = ok ] || tail -n 12 "$logs/$1.log" | sed 's/^/    /'
}

# stage NAME COMMAND...: runs it with its output in test-logs/NAME.log; sets ret_status.
stage() {
	local name=$1 start=$SECONDS
	shift
	("$@") >"$logs/$name.log" 2>&1 9>&-
	ret_status=$?
	report "$name" "$([ "$ret_status" -eq 0 ] && echo ok || echo FAILED)" $((SECONDS - start))
}

# single NAME COMMAND...: a stage that counts as one test.
single() {
	stage "$@"
	if [ "$ret_status" -eq 0 ]; then passed=$((passed + 1)); else fail "$1: $logs/$1.log"; fi
}

# checks NAME DIR TARGET [VARIABLE]...: make check or a part of it, counted by its TAP.
checks() {
	local file before=$failed error
	find "$2/tests" -name 'check_*.log' -delete
	stage "$1" make -C "$2" -j$(($(nproc) + 1)) "${@:3}"
	while read -r file; do
		tap_read "$file"
		# The driver saw a status that the lines do not show: a crash, a leak.
		error=$(sed -n 's/^:test-result: ERROR *-* *//p' "${file%.log}.trs" 2>/dev/null | head -n 1)
		ret_wrong=${ret_wrong:-$error}
		tap_count "$(basename "$file" .log)"
	done < <(find "$2/tests" -name 'check_*.log' | sort)
	[ "$ret_status" -eq 0 ] || [ "$failed" -gt "$before" ] || fail "$1: ended with status $ret_status: $logs/$1.log"
}

# --- system tests ---------------------------------------------------------------------------------

# limit_of SCRIPT: its greatest time in seconds.
limit_of() {
	local own
	own=$(sed -n 's/^# Limit: \([0-9]*\) s$/\1/p' "$1")
	echo "${own:-$system_limit_s}"
}

# name_of SCRIPT: TIER-NAME.
name_of() { echo "$(basename "$(dirname "$1")")-$(basename "$1" .sh)"; }

# attempt SCRIPT NAME: one try. At its limit, the whole process group is killed.
attempt() { timeout --kill-after=10 "$(limit_of "$1")" "$1" >"$logs/$2.log" 2>&1; }

# outcome SCRIPT NAME STATUS SECONDS: reads the log; sets ret_why to the reason of a failure, or empty.
outcome() {
	local limit
	limit=$(limit_of "$1")
	tap_read "$logs/$2.log"
	ret_why=''
	case $3 in
	124 | 137) [ "$4" -lt "$limit" ] || ret_why="no end within $limit s" ;;
	esac
	[ -n "$ret_why" ] || [ "${#ret_bad[@]}" -eq 0 ] || ret_why=${ret_bad[0]}
	[ -n "$ret_why" ] || [ "$3" -le 128 ] || ret_why="killed by signal $(($3 - 128))"
	[ -n "$ret_why" ] || [ -z "$ret_wrong" ] || ret_why=$ret_wrong
	[ -n "$ret_why" ] || [ "$3" -eq 0 ] || ret_why="ended with status $3"
	[ "${#ret_bad[@]}" -gt 0 ] || ret_wrong=$ret_why
}

# system LANES SCRIPT...: so many at a time. Each uses its own ports and directory. What fails is kept for a second try.
system() {
	local lanes=$1 script name pid i=0 status seconds
	local -A script_of=() start_of=()
	shift
	while [ "$i" -lt $# ] || [ "${#script_of[@]}" -gt 0 ]; do
		while [ "${#script_of[@]}" -lt "$lanes" ] && [ "$i" -lt $# ]; do
			i=$((i + 1))
			script=${!i}
			attempt "$script" "$(name_of "$script")" 9>&- &
			script_of[$!]=$script
			start_of[$!]=$SECONDS
		done
		wait -n -p pid "${!script_of[@]}"
		status=$?
		script=${script_of[$pid]}
		seconds=$((SECONDS - start_of[$pid]))
		name=$(name_of "$script")
		outcome "$script" "$name" "$status" "$seconds"
		if [ -z "$ret_why" ]; then
			report "$name" ok "$seconds"
			tap_count "$name"
		else
			report "$name" "FAILED (tried again at the end)" "$seconds"
			again+=("$script")
			why_of[$script]=$ret_why
		fi
		unset "script_of[$pid]" "start_of[$pid]"
	done
}

# second_tries: the scripts that failed, once more, one after the other. The first log stays as NAME.first.log.
second_tries() {
	local script name start status
	for script in "${again[@]}"; do
		name=$(name_of "$script")
		mv "$logs/$name.log" "$logs/$name.first.log"
		rm -rf "$logs/failed/${name#*-}.first"
		[ ! -d "$logs/failed/${name#*-}" ] || mv "$logs/failed/${name#*-}" "$logs/failed/${name#*-}.first"
		start=$SECONDS
		attempt "$script" "$name" 9>&-
		status=$?
		outcome "$script" "$name" "$status" $((SECONDS - start))
		if [ -z "$ret_why" ]; then
			report "$name" ok $((SECONDS - start))
			flaky+=("$name (${why_of[$script]}, $logs/$name.first.log)")
			flaky_names+=("$name")
		else
			report "$name" FAILED $((SECONDS - start))
		fi
		tap_count "$name"
	done
	again=()
}

# --- flaky tests ----------------------------------------------------------------------------------

# flaky_file: one line a run, the names that were flaky in it. Outside of the checkout: all clones of a machine share it.
flaky_file() {
	local state=${XDG_STATE_HOME:-${HOME:+$HOME/.local/state}}
	echo "${state:+$state/lockstep-tests/flaky}"
}

# flaky_remember: prints the lines of the runs before, and adds one for this run. Without a usable file it does nothing.
flaky_remember() {
	local file
	file=$(flaky_file)
	[ -n "$file" ] && mkdir -p "${file%/*}" 2>/dev/null && : 2>/dev/null >>"$file" || return 0
	(
		flock 8
		tail -n $((flaky_runs - 1)) "$file"
		{ tail -n $((flaky_runs - 1)) "$file"; echo "run ${flaky_names[*]}"; } >"$file.new" && mv "$file.new" "$file"
	) 2>/dev/null 8>>"$file.lock"
}

# flaky_judge: too many flaky tests in this run, or one that was flaky in an earlier run, are failures.
flaky_judge() {
	local before name
	[ "${#flaky_names[@]}" -le "$flaky_max" ] ||
		fail "${#flaky_names[@]} flaky system tests, at most $flaky_max are allowed"
	[ -z "${partial:-}" ] || [ "${#flaky_names[@]}" -gt 0 ] || return 0 # of a few tests that passed: nothing is known
	before=$(flaky_remember)
	for name in "${flaky_names[@]}"; do
		! grep -qE "^run (.* )?$name( |\$)" <<<"$before" ||
			fail "$name: flaky twice in $flaky_runs runs of this machine ($(flaky_file))"
	done
}
