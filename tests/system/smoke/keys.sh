#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# keys.sh: agents and collector with TLS. Strangers get nothing stored, each wrong certificate a clear line on both
# sides, and while certificates are replaced and revoked under a running job every record is stored once.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
steps=500
work_begin
keys=$work/keys

# said FILE TEXT: the log has this text.
said() { grep -qF -- "$2" "$work/$1"; }
# peer WORD ARGUMENT...: what tests/system/peer.py prints begins with this word.
peer() {
	local want=$1 got
	shift
	got=$("$top/tests/system/peer.py" "$ingest_port" "$@")
	echo "peer: $got"
	[ "${got%% *}" = "$want" ]
}
# agent_beside NAME OPTION...: one more agent, with rings of its own; sets beside_pid.
agent_beside() {
	local name=$1
	shift
	mkdir -p "$work/beside/$name/steps" "$work/beside/$name/state"
	run_behind "$work/$name.log" "$build/lockstep-agent" --steps-dir "$work/beside/$name/steps" \
		--state-dir "$work/beside/$name/state" --http 127.0.0.1:0 "$@"
	beside_pid=$ret_pid
}

check "init makes the authority and the collector's keys" lockstep keys init "$keys" localhost 127.0.0.1
check "agents get theirs" lockstep keys agent "$keys" h0 h1 h2
check "another authority" lockstep keys init "$work/foreign" 127.0.0.1
check "signs for the same name" lockstep keys agent "$work/foreign" h2
[ "$(stat -c %a "$keys/ca.key" "$keys/h0.key" "$keys/collector.key" | sort -u)" = 600 ]
result $? "keys are readable by their owner only"

collector_start --keys "$keys"
agent_start 0 --keys "$keys"
agent_start 1 --keys "$keys"
workload_start --device 10 --batch 32 --ranks 2 --steps "$steps" --slow none
check "records come over TLS" step_wait 50
check "both agents are connected" until_true metric_over 1 tls_handshakes_total

# Strangers.
before=$(metric hosts)
check "no certificate: refused" peer refused "$keys/ca.pem"
check "a foreign certificate: refused" peer refused "$keys/ca.pem" "$work/foreign/h2.pem" "$work/foreign/h2.key"
check "the certificate of a collector: refused" peer refused "$keys/ca.pem" "$keys/collector.pem" "$keys/collector.key"
check "a valid certificate: greeted" peer greeted "$keys/ca.pem" "$keys/h2.pem" "$keys/h2.key"
check "no TLS: an alert" peer alert plain
lockstep keys revoke "$keys" h2
kill -HUP "$collector_pid"
check "a reload reads the revoked ones" until_true said collector.log 'read changed keys'
check "a revoked certificate: refused" peer refused "$keys/ca.pem" "$keys/h2.pem" "$keys/h2.key"
for words in 'has no certificate: lockstep keys makes one' 'is not signed by ca.pem here' 'is for another use' \
	'"h2"' 'is revoked: issue a new one' 'does not speak TLS: give that agent --keys'; do
	check "the collector's log says: $words" said collector.log "$words"
done
check "each of them is counted" metric_over 3 'connections_refused_total{reason="certificate"}'
check "and who speaks plain" metric_over 0 'connections_refused_total{reason="plain"}'
[ "$(metric hosts)" = "$before" ]
result $? "no stranger became a host"

# Agents that are wrong.
to="tcp://127.0.0.1:$ingest_port"
agent_beside plain --collector "$to" --host-name h3
check "a plain agent says what is missing" until_true said plain.log 'speaks TLS only: give this agent --keys'
grep -q libc "/proc/$beside_pid/maps" && ! grep -q libssl "/proc/$beside_pid/maps"
result $? "and does not spend memory on libssl"
program_end "$beside_pid" TERM
agent_beside revoked --collector "$to" --host-name h2 --keys "$keys"
check "a revoked agent says so" until_true said revoked.log 'does not accept our certificate: certificate revoked'
program_end "$beside_pid" TERM
mkdir "$work/stolen"
cp "$keys/ca.pem" "$work/stolen/"
cp "$keys/h1.pem" "$work/stolen/agent.pem"
cp "$keys/h1.key" "$work/stolen/agent.key"
agent_beside stolen --collector "$to" --host-name h3 --keys "$work/stolen"
check "a host with the certificate of another is rejected" until_true said stolen.log 'the certificate is of host "h1"'
check "and its reports are counted" metric_over 0 'drops_total{reason="name"}'
program_end "$beside_pid" TERM
agent_beside named --collector "tcp://localhost:$ingest_port" --host-name h1 --keys "$work/foreign"
check "without its files an agent does not start" until_true said named.log 'agent.pem: No such file'
wait "$beside_pid"
[ $? -eq 1 ]
result $? "and exits 1"
unset "pids[-1]" "programs[-1]"
run_behind "$work/plain-collector.log" "$build/lockstep-collector" --listen tcp://127.0.0.1:0 --http 127.0.0.1:0 \
	--state-dir "$work/beside" --port-file "$work/plain-ports"
plain_pid=$ret_pid
until_true test -s "$work/plain-ports"
IFS='= ' read -r _ plain_port _ <"$work/plain-ports"
agent_beside toplain --collector "tcp://127.0.0.1:$plain_port" --host-name h0 --keys "$keys"
check "TLS to a plain collector: the agent says so" until_true said toplain.log 'does not speak TLS: give that collector --keys'
check "and the collector" until_true said plain-collector.log 'speaks TLS: give this collector --keys'
program_end "$beside_pid" TERM
program_end "$plain_pid" TERM

# While the job runs: new certificates, the old ones revoked, a restart.
before=$(metric 'connections_refused_total{reason="certificate"}')
lockstep keys revoke "$keys" h1
lockstep keys agent "$keys" h1
lockstep keys init "$keys" localhost 127.0.0.1
kill -HUP "$collector_pid"
check "the connection with the old certificate ends" until_true metric_over "$before" 'connections_refused_total{reason="certificate"}'
check "the agent comes back with the new one" until_true metric_over 3 tls_handshakes_total
check "the job goes on" step_wait 250
program_end "$collector_pid" TERM
collector_start --keys "$keys"
check "after a restart agents resume their sessions" until_true metric_over 0 tls_resumed_total
workload_wait
result "$ret_status" "the job ends well"
check "each record is stored exactly once" records_wait once 2 "$steps"
tap_end
