#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sim.sh [HOSTS]: the protocol between simulated agents and a real collector, which is killed and started again on the
# way. Everything is acknowledged, and what was acknowledged is stored once. What lies is refused.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
[ -x "$build/lockstep-sim" ] || die "$build/lockstep-sim is not there: build first (tests/run does)"
hosts=${1:-200}

# sim_start OPTION...: its lines go to $work/sim.jsonl; sets sim_pid.
sim_start() {
	run_behind "$work/sim.jsonl" "$build/lockstep-sim" --connect "tcp://127.0.0.1:$ingest_port" \
		--hosts "$hosts" --report 1s --log-level err "$@"
	sim_pid=$ret_pid
}

# sim_total EXPRESSION: of the total line (t) of the run before.
sim_total() {
	python3 -c '
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
t = [l for l in lines if l["event"] == "total"][-1]
storms = [l for l in lines if l["event"] == "reconnect"]
print({k: t[k] for k in t if k != "event"}, storms)
sys.exit(not eval("(" + sys.argv[2] + ")"))' "$work/sim.jsonl" "$1"
}

# sim_seen EXPRESSION: whether a line (t) of the simulator says so. Lines come once a second.
sim_seen() {
	python3 -c '
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1]) if l.endswith("\n")]
sys.exit(not any(eval("(" + sys.argv[2] + ")") for t in lines))' "$work/sim.jsonl" "$1"
}

ingest_port=0
http_port=0
collector_start
sim_start --steps-per-second 20 --accelerate 10 --ledger "$work/ledger"
check "samples and step records of $hosts agents are acknowledged" until_true sim_seen \
	't["event"] == "interval" and t["durable_samples"] > 0 and t["durable_step_records"] > 0'
program_end "$sim_pid" TERM
result "$ret_status" "the agents end well"
check "all of it is acknowledged" sim_total \
	't["unacked_items"] == 0 and t["durable_samples"] > 0 and t["durable_step_records"] > 0 and
	t["lost_samples"] == t["lost_step_records"] == t["rejects"] == t["bad_acks"] == 0'
check "hosts and job say that they are simulated" \
	python3 -c 'import sys; sys.exit("sim-job" not in sys.argv[1])' "$(lockstep jobs -o json)"

# A collector that is killed: agents come back and lose nothing. They keep two minutes of samples, here 30 s.
rm "$work/sim.jsonl"
sim_start --steps-per-second 10 --accelerate 4 --job sim-killed --ledger "$work/ledger2"
check "all are connected and have acknowledged records" until_true sim_seen \
	't["event"] == "interval" and t["connected"] == t["agents"] and t["durable_step_records"] > 0'
program_end "$collector_pid" KILL
sleep 1
collector_start
check "all come back" until_true sim_seen 't["event"] == "reconnect"'
program_end "$sim_pid" TERM
result "$ret_status" "agents outlive a killed collector, and end well at SIGTERM"
check "they come back once, and all of it is acknowledged" sim_total \
	't["unacked_items"] == 0 and t["disconnects"] >= t["agents"] and len(storms) == 1 and
	t["lost_samples"] == t["lost_step_records"] == 0'

# What was acknowledged is stored, once: the export has every record of the job up to the ledger's numbers.
lockstep export --job sim-killed >"$work/export.jsonl" 2>"$work/export.log"
check "every acknowledged record is stored exactly once" python3 -c '
import collections, json, sys
ledger = [json.loads(l) for l in open(sys.argv[1])]
stored = collections.defaultdict(list)
for line in open(sys.argv[2]):
    r = json.loads(line)
    if "t_begin" in r and "step" in r:
        stored[r["host"]].append(r["step"])
bad = [a["host"] for a in ledger if sorted(stored[a["host"]]) != list(range(a["records_acked"]))]
print("%d hosts, %d records, %d wrong" % (len(ledger), sum(map(len, stored.values())), len(bad)))
sys.exit(len(ledger) != int(sys.argv[3]) or bool(bad) or not stored)' \
	"$work/ledger2" "$work/export.jsonl" "$hosts"

# Some that lie: the collector lives, counts what it refused, and stores all of the others.
rm "$work/sim.jsonl"
sim_start --accelerate 10 --job sim-liars --ledger "$work/ledger3" \
	--hosts 60 --misbehave checksum:2,clock:2,dictionary:2,hash:2,twin:2,backwards:2
lies_counted() {
	python3 -c '
import re, sys, urllib.request
text = urllib.request.urlopen(sys.argv[1] + "/metrics", timeout=60).read().decode()
drops = {k: float(v) for k, v in re.findall(r"drops_total\{reason=\"(\w+)\"\} (\S+)", text) if float(v) > 0}
print(drops)
wanted = {"chunk_checksum", "chunk_shape", "clock", "bad_dictionary", "apart", "changed"}
sys.exit("not counted: %s" % (wanted - set(drops)) if wanted - set(drops) else 0)' "http://127.0.0.1:$http_port"
}
check "each lie is counted by its reason" until_true lies_counted
# Two chunks of each group: the first holds samples from before the job.
check "two minutes of the honest are acknowledged" until_true sim_seen \
	'sum(i["durable_chunks"] for i in lines if i["event"] == "interval") >= 2 * 2 * (60 - 12)'
program_end "$sim_pid" TERM
result "$ret_status" "60 agents, some that lie, end well"
alive "$collector_pid"
result $? "the collector lives"
for reason in chunk_checksum chunk_shape bad_dictionary "an impossible time"; do
	grep -q "$reason" "$work/collector.log"
	result $? "the log names $reason"
done
lockstep export --job sim-liars --counters >"$work/export3.jsonl" 2>"$work/export.log"
check "none of it is stored as truth" python3 -c '
import json, sys, time
names = [json.loads(l)["host"] for l in open(sys.argv[1])]
# From the end: two with wrong checksums, two a year ahead, two whose dictionary is short. (The next two lie of a
# hash; the others name their chunks.)
lied = {"chunks": set(names[-6:]), "records": set(names[-4:-2])}
now, future, bad, chunks, invalid = time.time(), 0, [], 0, set()
for line in open(sys.argv[2]):
    r = json.loads(line)
    if r.get("type") == "job":
        begin = r["from"]
    t = r.get("t", r.get("t_begin"))
    future += t is not None and t > now + 600
    if r.get("type") == "counters" and len(r["values"]) > 20 and t >= begin: # before: of other jobs
        chunks += 1
        bad += [r["host"]] if r["host"] in lied["chunks"] else []
    elif "step" in r and "t_begin" in r:
        bad += [r["host"]] if r["host"] in lied["records"] else []
    elif r.get("type") == "gap" and r["reason"] == "invalid":
        invalid.add(r["host"])
print(chunks, "rows of chunks,", future, "of the future, of liars:", sorted(set(bad)), "gaps:", sorted(invalid))
sys.exit(not chunks or bool(future) or bool(bad) or invalid != lied["records"])' "$work/ledger3" "$work/export3.jsonl"
check "the honest ones have all of theirs acknowledged" python3 -c '
import json, sys
honest = [json.loads(l) for l in open(sys.argv[1])][:-12]
bad = [a["host"] for a in honest
    if a["acked_seq"] + 1 != a["next_seq"] or a["acked_chunk_seq"] + 1 != a["next_chunk_seq"]]
print(len(honest), "honest,", len(bad), "wrong")
sys.exit(not honest or bool(bad))' "$work/ledger3"

# Usage.
"$build/lockstep-sim" >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q -- --connect "$work/out"
result $? "without an address: status 2 and a message"
"$build/lockstep-sim" --connect tcp://127.0.0.1:1 --slow 5:x >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q -- --slow "$work/out"
result $? "a fault that makes no sense: status 2 and a message"
"$build/lockstep-sim" --connect "tcp://127.0.0.1:$http_port" --hosts 2 --storm --duration 3s >"$work/out" 2>&1
[ $? -eq 1 ]
result $? "no collector there: status 1"
tap_end
