#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# http_keys.sh: HTTPS and tokens. Nothing is read or written without a token that allows it, on any path of
# openapi.yaml; tokens and certificates change without a restart; a write leaves a row that says who.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
work_begin
keys=$work/keys
said() { grep -qF -- "$2" "$work/$1"; }
# over TOKEN COMMAND...: the command line with this token file, over HTTPS.
over() {
	local token=$1
	shift
	"$build/lockstep" --server "https://127.0.0.1:$http_port" --ca-file "$keys/ca.pem" --token-file "$work/$token" "$@"
}
# exits STATUS TEXT COMMAND...: the exit status, and a text that it prints.
exits() {
	local want=$1 text=$2 got
	shift 2
	"$@" >"$work/said" 2>&1
	got=$?
	head -n 3 "$work/said"
	[ "$got" -eq "$want" ] && grep -qF -- "$text" "$work/said"
}

lockstep keys init "$keys" localhost 127.0.0.1
lockstep keys token "$keys" grafana read >"$work/read"
result $? "a token for reading"
lockstep keys token "$keys" alice write >"$work/write"
result $? "and one for writing"
! grep -qF "$(cat "$work/read")" "$keys/tokens"
result $? "only digests are kept"
check "a scope that is none" exits 2 'the scope read or write' "$build/lockstep" keys token "$keys" bob admin

check "beyond loopback there must be keys" exits 2 '--http-keys DIR' "$build/lockstep-collector" --http 0.0.0.0:0 --state-dir "$work/none"
collector_start --http-keys "$keys"
agent_start 0
workload_start --device 10 --batch 32 --ranks 1 --steps 100000 --slow none
check "the command line reads with its token" until_true over read hosts --job workload

# Who may.
check "every path without a token, with a wrong one, over plain HTTP: nothing" \
	"$top/tests/system/http_probe.py" "$http_port" "$keys/ca.pem" "$(cat "$work/read")" "$(cat "$work/write")"
check "no token: 4" exits 4 'Authorization: Bearer TOKEN' \
	"$build/lockstep" --server "https://127.0.0.1:$http_port" --ca-file "$keys/ca.pem" jobs
check "no token, of an export: 4, with the reason and the fix" exits 4 'Authorization: Bearer TOKEN' \
	"$build/lockstep" --server "https://127.0.0.1:$http_port" --ca-file "$keys/ca.pem" export --job workload
grep -q 'fix: give --token-file' "$work/said"
result $? "and the option that is missing"
check "no CA: 4" exits 4 'certificate of' "$build/lockstep" --server "https://127.0.0.1:$http_port" jobs
check "no CA, of an export: 4" exits 4 'certificate of' \
	"$build/lockstep" --server "https://127.0.0.1:$http_port" export --job workload
check "plain HTTP to it: 3, and a hint" exits 3 'https:// with --http-keys' \
	"$build/lockstep" --server "http://127.0.0.1:$http_port" jobs
check "the doctor asks it with the CA and the token" exits 1 'answers' over read --agent http://127.0.0.1:1 doctor
check "a token is not sent over plain HTTP to another host" exits 2 'https:// only' \
	"$build/lockstep" --server http://192.0.2.1:1 --token-file "$work/read" jobs
check "a token in --server is refused" exits 2 'a token belongs into --token-file' \
	"$build/lockstep" --server "https://127.0.0.1:$http_port/?token=x" --ca-file "$keys/ca.pem" jobs
check "a token in a URL of the API, too" exits 0 'Authorization: Bearer TOKEN' \
	curl -s --cacert "$keys/ca.pem" "https://127.0.0.1:$http_port/api/v1/jobs?token=x"
check "an empty file is no token" exits 2 'holds no token' \
	"$build/lockstep" --server "https://127.0.0.1:$http_port" --token-file /dev/null jobs
check "a token for reading does not write" exits 4 'for reading' over read zoom h0
check "one for writing does" over write zoom h0
check "the row of it says who" until_true exits 0 'asked by alice' over read export --job workload

# wrong_each COUNT: an unknown token, again and again: exit status 4, the rate reached or not.
wrong_each() {
	local i
	printf 'lockstep_%064d\n' 0 >"$work/wrong"
	for ((i = 0; i < $1; i++)); do
		over wrong jobs >"$work/said" 2>&1
		[ $? -eq 4 ] || { cat "$work/said"; return 1; }
	done
}
check "unknown tokens, more than a second may have: 4 each time" wrong_each 30

curl -s --cacert "$keys/ca.pem" -H "Authorization: Bearer $(cat "$work/read")" "https://127.0.0.1:$http_port/metrics" |
	awk -v now="$(date +%s)" '$1 == "lockstep_collector_keys_expiry_timestamp_seconds" { days = ($2 - now) / 86400 } END { print "# days: " days; exit !(days > 363 && days < 366) }'
result $? "the metric of the first expiry covers --http-keys alone"

# Tokens and certificates that change.
lockstep keys revoke "$keys" grafana
kill -HUP "$collector_pid"
check "a revoked token: 4" until_true exits 4 'not known here' over read jobs
lockstep keys token "$keys" grafana read >"$work/read"
kill -HUP "$collector_pid"
check "a new one of the name" until_true over read jobs
cp "$keys/tokens" "$work/tokens"
echo "what is this" >>"$keys/tokens"
kill -HUP "$collector_pid"
check "a bad line is told with its number" until_true said collector.log 'tokens, line 3: is not'
check "and those of before stay" over read jobs
cp "$work/tokens" "$keys/tokens"
lockstep keys init "$keys" 127.0.0.1
kill -HUP "$collector_pid"
check "a new certificate, without a restart" until_true said collector.log 'read changed keys'
check "is accepted" over read jobs
check "a server of another name: 4" exits 4 'mismatch' \
	"$build/lockstep" --server "https://localhost:$http_port" --ca-file "$keys/ca.pem" jobs
cp "$keys/crl.pem" "$work/crl.pem"
lockstep keys revoke "$keys" collector
check "a revoked certificate: 4" exits 4 'certificate revoked' over read jobs
echo truncated >"$keys/crl.pem"
check "a truncated list: 2" exits 2 'holds no list of revoked certificates' over read jobs
cp "$work/crl.pem" "$keys/crl.pem"
check "the list of before: accepted" over read jobs
program_end "$workload_pid" TERM
tap_end
