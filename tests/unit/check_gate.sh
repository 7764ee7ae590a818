#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/gate.sh, with system tests that are stubs: which failures get a second try, and what turns a run red. TAP on stdout.
set -u
src=$(cd "${top_srcdir:-.}" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0

result() { # STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/# /' "$tmp/out"
	fi
}

# A stub below $tmp/smoke: stub NAME BODY.
stub() {
	printf '#!/bin/bash\n# Limit: %d s\n%s\n' "${limit:-60}" "$2" >"$tmp/smoke/$1.sh"
	chmod +x "$tmp/smoke/$1.sh"
}

good='echo "ok 1 - it works"; echo 1..1'
bad='echo "not ok 1 - it is broken"; echo 1..1; exit 1'
# once NAME: a body that fails in its first try only.
once() { echo "if mkdir $tmp/$1 2>/dev/null; then $bad; fi; $good"; }

# gate LANES NAME...: a run of these stubs; its output is in $tmp/out. Variables of gate.sh and functions: $setting.
setting=
gate() {
	rm -rf "$tmp/build" && mkdir -p "$tmp/build/test-logs"
	(
		say() { echo "$*"; }
		build=$tmp/build
		logs=$build/test-logs
		export XDG_STATE_HOME=${state:-$tmp/state}
		# shellcheck source=tests/gate.sh
		. "$src/tests/gate.sh"
		disk_room_mib() { echo 1000; }
		run_lock "$build/lock"
		eval "$setting"
		lanes=$1
		shift
		system "$lanes" "${@/#/$tmp/smoke/}"
		finish
	) >"$tmp/out" 2>&1
	status=$?
}

# ends STATUS SUMMARY [LINE]...: the run ended so; the summary is its last line; each line is in the output.
ends() {
	local line wanted=$1 summary=$2
	shift 2
	[ "$status" -eq "$wanted" ] && [ "$(tail -n 1 "$tmp/out")" = "$summary" ] || return 1
	for line; do grep -qF -- "$line" "$tmp/out" || return 1; done
}

mkdir "$tmp/smoke"
stub good "$good"
stub red "$bad"
stub skipped 'echo "ok 1 - a # SKIP no lamp here"; echo 1..1'
stub none 'echo "1..0 # SKIP no sun here"'
gate 2 good.sh skipped.sh none.sh
ends 0 '1 passed, 0 failed, 2 skipped' 'skipped: smoke-skipped: no lamp here' 'skipped: smoke-none: no sun here' && ! grep -q flaky "$tmp/out"
result $? 'passes and skips are counted, skips by name'
[ "$(cat "$tmp/state/lockstep-tests/flaky")" = 'run ' ]
result $? 'a run without a flaky test is remembered, too'

stub first "$(once first)"
gate 2 first.sh good.sh
ends 0 '2 passed, 0 failed, 0 skipped' "flaky: smoke-first (1 - it is broken, $tmp/build/test-logs/smoke-first.first.log)"
result $? 'a test that passes at the second try is passed and flaky'
grep -q '^not ok 1' "$tmp/build/test-logs/smoke-first.first.log" && grep -q '^ok 1' "$tmp/build/test-logs/smoke-first.log"
result $? 'the first log is kept'
gate 2 red.sh good.sh
ends 1 '1 passed, 1 failed, 0 skipped' 'failed: smoke-red: 1 - it is broken'
result $? 'a test that fails twice is red'

limit=1 stub hangs 'sleep 1000 & echo $! >>'"$tmp"'/sleepers; wait'
gate 1 hangs.sh
ends 1 '0 passed, 1 failed, 0 skipped' 'failed: smoke-hangs: no end within 1 s'
result $? 'a test that hangs is red at its limit'
while read -r pid; do # dead, or a zombie that nobody has reaped yet
	! grep -s '^State:' "/proc/$pid/status" | grep -qv 'Z' || echo "$pid is left" >>"$tmp/out"
done <"$tmp/sleepers"
[ "$(wc -l <"$tmp/sleepers")" -eq 2 ] && ! grep -q 'is left' "$tmp/out"
result $? 'and its whole process group is killed'

stub killed "$good; kill -KILL \$\$"
stub planless 'echo "ok 1 - a"'
stub short 'echo 1..3; echo "ok 1 - a"; echo "ok 2 - b"'
stub silent 'exit 0'
stub status "$good; exit 3"
gate 1 killed.sh planless.sh short.sh silent.sh status.sh
ends 1 '5 passed, 5 failed, 0 skipped' 'smoke-killed: killed by signal 9' 'smoke-planless: no plan (1..N)' \
	'smoke-short: 2 results, 3 planned' 'smoke-silent: no plan (1..N)' 'smoke-status: ended with status 3'
result $? 'a killed test, a missing plan, missing results and a status are red'

# Programs of make check: what a complete one, one that ended early, and one that leaked leave behind.
mkdir -p "$tmp/made/tests"
cat >"$tmp/made/Makefile" <<'TEXT'
check:
	printf 'ok 1 - a\n1..1\n' >tests/check_good.log
	printf 'ok 1 - a\n' >tests/check_early.log
	printf 'ok 1 - a\n1..1\n' >tests/check_leaks.log
	printf ':test-result: ERROR - exited with status 23\n' >tests/check_leaks.trs
	printf '1..2\nok 1 - a\nnot ok 2 - b\n' >tests/check_red.log
	false
TEXT
touch "$tmp/made/tests/check_of_before.log"
setting='checks check $tmp/made check' gate 1
ends 1 '4 passed, 3 failed, 0 skipped' 'failed: check_early: no plan (1..N)' 'failed: check_leaks: exited with status 23' \
	'failed: check_red: 2 - b'
result $? 'a program of make check that ends early, or with a status, is red by name, and gets no second try'
printf 'check:\n\tfalse\n' >"$tmp/made/Makefile"
setting='checks check $tmp/made check' gate 1
ends 1 '0 passed, 1 failed, 0 skipped' 'failed: check: ended with status 2'
result $? 'make check that fails without a result is red'

rm -rf "$tmp/state"
for i in 1 2 3 4; do stub "f$i" "$(once "f$i")"; done
gate 2 f1.sh f2.sh f3.sh
ends 0 '3 passed, 0 failed, 0 skipped'
result $? 'three flaky tests are allowed'
rm -rf "$tmp"/f? "$tmp/state"
gate 2 f1.sh f2.sh f3.sh f4.sh
ends 1 '4 passed, 1 failed, 0 skipped' 'failed: 4 flaky system tests, at most 3 are allowed'
result $? 'four are red'

rm -rf "$tmp"/f? "$tmp/state"
gate 1 f1.sh
for i in 1 2 3 4 5 6 7 8; do gate 1 good.sh; done
rm -rf "$tmp/f1"
gate 1 f1.sh
ends 1 '1 passed, 1 failed, 0 skipped' 'failed: smoke-f1: flaky twice in 10 runs of this machine'
result $? 'a test that is flaky again in the tenth run is red'
rm -rf "$tmp"/f? "$tmp/state"
gate 1 f1.sh
for i in 1 2 3 4 5 6 7 8 9; do gate 1 good.sh; done
rm -rf "$tmp/f1"
gate 1 f1.sh
ends 0 '1 passed, 0 failed, 0 skipped' && [ "$(wc -l <"$tmp/state/lockstep-tests/flaky")" -eq 10 ]
result $? 'in the eleventh run it is not: ten runs are remembered'
touch "$tmp/file"
rm -rf "$tmp/f1"
state=$tmp/file gate 1 f1.sh
ends 0 '1 passed, 0 failed, 0 skipped'
result $? 'without a place for the memory a run goes on'

setting='disk_room_mib() { echo 3; }' gate 1 red.sh
ends 1 '0 passed, 2 failed, 0 skipped' "failed: the disk is full: 3 MiB are free below $tmp/build, the tests need 64 MiB"
result $? 'a full disk is named in one sentence'

# The lock of a run that was killed, while a test of that run still lives.
stub lives 'echo $$ >'"$tmp"'/lives; exec sleep 1000'
setting='echo "$BASHPID" >'"$tmp"'/holder' gate 1 lives.sh &
until [ -s "$tmp/lives" ]; do sleep 0.05; done
! flock -n "$tmp/build/lock" true
result $? 'a run holds the lock'
kill -KILL "$(cat "$tmp/holder")"
wait
kill -0 "$(cat "$tmp/lives")" && flock -n "$tmp/build/lock" true
result $? 'the lock of a killed run is free, though a test of that run still lives'
kill "$(cat "$tmp/lives")"

# night/long, in a repository of its own: each test a stub that notes its name.
if command -v git >/dev/null; then
	mkdir -p "$tmp/repo/system/night" "$tmp/repo/system/smoke" "$tmp/repo/system/real"
	cp "$src/tests/system/night/long" "$tmp/repo/system/night/"
	for name in $(sed -n 's/^\t"\([a-z]*\/[a-z_]*\).*/\1/p' "$src/tests/system/night/long") smoke/other; do
		printf '#!/bin/sh\necho "$0 $*" >>%s\n' "$tmp/noted" >"$tmp/repo/system/$name.sh"
	done
	printf 'mkdir %s 2>/dev/null && exit 1\nexit 0\n' "$tmp/tried" >>"$tmp/repo/system/real/clean.sh"
	chmod +x "$tmp"/repo/system/*/*.sh
	in_repo() { git -C "$tmp/repo" -c user.name=a -c user.email=a@b -c commit.gpgsign=false "$@" >/dev/null 2>&1; }
	in_repo init && in_repo add -A && in_repo commit -m one
	long() { LOCKSTEP_BUILD=$tmp/long "$tmp/repo/system/night/long" 3 >"$tmp/out" 2>&1; }
	long
	[ $? -eq 1 ] && grep -q '^== real/clean 3.*: FAILED' "$tmp/out" && grep -q 'smoke/other.sh' "$tmp/noted"
	result $? 'night/long runs each test, and is red when one fails'
	rm "$tmp/noted"
	long
	[ $? -eq 0 ] && [ "$(wc -l <"$tmp/noted")" -eq 1 ] && grep -q 'real/clean.sh 3' "$tmp/noted"
	result $? 'the next call runs only what has not passed'
	rm "$tmp/noted"
	in_repo commit --allow-empty -m two
	long
	[ $? -eq 0 ] && [ "$(wc -l <"$tmp/noted")" -gt 5 ]
	result $? 'of another commit nothing is done'
else
	n=$((n + 1))
	echo "ok $n - night/long continues # SKIP no git here"
fi
echo "1..$n"
