#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Facts about a run, for the system tests. All input on standard input.

facts.py spread            hosts -o json: spread of step times over ranks beside that of waits;
                           exit 0 if the waits betray more than the step times
facts.py count             export lines: number of step records
facts.py once RANKS STEPS  export lines: exit 0 if each (rank, step) is there exactly once
facts.py own RANKS STEPS   as once, of the records that come from the rank's own host, h<rank>
facts.py gaps RANK         export lines: records of this rank that are told to be lost
facts.py lost RANKS STEPS  export lines: each (rank, step) at most once, and what is not there is told
                           to be lost, rank by rank
facts.py hang RANK STATUS   findings -o json: the hang in this status (open: also reopened): exit 0 if it is critical and
                           names host h<RANK>, 4 if it names the job, 1 if it names another, 3 if there is none
facts.py exact REPLAY EXPORT LOG  findings -o json against the same of a replay of this export: every byte. Both may have no
                           finding; the replay, which prints its records to LOG, must have the step records of EXPORT
"""
import collections
import json
import os
import re
import statistics
import sys


def lines():
    for line in sys.stdin:
        if line.strip():
            yield json.loads(line)


def steps():
    return [r for r in lines() if "type" not in r or r["type"] == "step"]


def spread():
    hosts = json.load(sys.stdin)["items"]

    def over(key):
        values = [h[key] for h in hosts if h[key] is not None]
        return max(values) / min(values)

    def ms(value):
        return "?" if value is None else "%.2f" % (1e3 * value)
    total, wait = over("step_time_s"), over("wait_s")
    print("spread over ranks: step times max/min %.3f, waits max/min %.2f" % (total, wait))
    for h in hosts:
        print("  %-6s rank %s  step %s ms  wait %s ms" %
              (h["host"], h["rank"], ms(h["step_time_s"]), ms(h["wait_s"])))
    return 0 if total < wait else 1


def once(ranks, count, only_own=False):
    seen = collections.Counter((r["rank"], r["step"]) for r in steps()
                               if not only_own or r["host"] == "h%d" % r["rank"])
    wanted = {(r, s) for r in range(ranks) for s in range(count)}
    missing = sorted(wanted - set(seen))
    strange = sorted(set(seen) - wanted)
    twice = sorted(k for k, n in seen.items() if n > 1)
    print("%d records: %d missing, %d twice, %d never made" %
          (sum(seen.values()), len(missing), len(twice), len(strange)))
    for name, found in (("missing", missing), ("twice", twice), ("never made", strange)):
        if found:
            print("  %s: (rank, step) %s%s" % (name, found[:5], " ..." if len(found) > 5 else ""))
    return 1 if missing or twice or strange else 0


def gaps_by_rank(records):
    gaps = collections.Counter()
    for r in records:
        if r.get("type") == "gap":
            gaps[r["rank"]] += r["count"]
    return gaps


def lost(ranks, count):
    records = list(lines())
    seen = collections.Counter((r["rank"], r["step"]) for r in records
                               if "type" not in r or r["type"] == "step")
    gaps = gaps_by_rank(records)
    wrong = sum(n > 1 for n in seen.values())
    for rank in range(ranks):
        here = sum(1 for r, _ in seen if r == rank)
        print("rank %d: %d stored, %d told lost" % (rank, here, gaps[rank]))
        wrong += here + gaps[rank] != count
    return wrong != 0


def hang(rank, status):
    wanted = ("open", "reopened") if status == "open" else (status,)
    found = [f for f in json.load(sys.stdin)["items"] if f["kind"] == "hang" and f["status"] in wanted]
    if not found:
        return 3
    for f in found:
        print("%s %s %s %s: %s, %s since step %s" %
              (f["id"], f["severity"], f["subject"].get("scope"), f["subject"].get("host"),
               f["hypotheses"][0]["cause"], f["status"], f["onset"]["step"]))
    if any(f["severity"] != "critical" or f["subject"].get("host") not in (None, "h%d" % rank) for f in found):
        return 1
    return 0 if any(f["subject"].get("host") for f in found) else 4


def exact(path, export, log):
    def text(finding):
        return json.dumps(finding, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def told(findings):
        return {f["id"]: f for f in findings if not f["kind"].startswith("self")}
    live = told(json.load(sys.stdin)["items"])
    with open(path, encoding="utf-8") as f:
        replayed = told(json.load(f)["findings"])
    differ = 0
    for i in sorted(set(live) | set(replayed)):
        one, other = live.get(i, {}), replayed.get(i, {})
        f = one or other
        print("%s %s %s onset step %s" % (i, f["kind"], text(f["subject"]), f["onset"]["step"]))
        differ += text(one) != text(other)
        for key in sorted(k for k in set(one) | set(other) if one.get(k) != other.get(k)):
            print("%s %s: live %.200s, replay %.200s" % (i, key, text(one.get(key)), text(other.get(key))))
    with open(export, encoding="utf-8") as f:
        exported = sum('"t_begin"' in line for line in f)
    with open(log, encoding="utf-8") as f:
        replayed = re.search(r"([0-9,]+) records", f.read())
    replayed = int(replayed[1].replace(",", "")) if replayed else 0
    print("%d findings, %d differ in a replay; %d step records, %d in the replay" % (len(live), differ, exported, replayed))
    return 0 if differ == 0 and exported == replayed > 0 else 1


def main():
    verb, numbers = sys.argv[1], sys.argv[2:]
    if verb == "spread":
        return spread()
    if verb == "count":
        print(len(steps()))
        return 0
    if verb == "exact":
        return exact(*numbers)
    if verb == "hang":
        return hang(int(numbers[0]), numbers[1])
    numbers = [int(n) for n in numbers]
    if verb == "gaps":
        print(gaps_by_rank(lines())[numbers[0]])
        return 0
    if verb == "own":
        return once(*numbers, only_own=True)
    return {"once": once, "lost": lost}[verb](*numbers)


sys.exit(main())
