#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the findings of a run against what was done to it.

usage: lockstep findings --status all -o json |
           judge.py [--host H --rank N [--slice S]] [--step N] [--hosts] [--truth DIR]

Prints one JSON object: the expected and the found culprit, and the finding's own times. The first
finding of warning or above counts, but for those that a job became slower as a whole: they answer no question of who.
Without --host nobody was slowed. With --step its onset may be EARLY_STEPS too early, no more: what it was slow
for before is not what was done to it, unless the kernel's account (below) bears that out and it was still so then.

On a shared machine a CPU may become slow without our doing, and a finding that says so is right. With
--truth DIR (what lockstep-workload --truth wrote: the kernel's own account of every rank and step)
a finding of another rank is set aside as `machine` if that rank really needed more time on a CPU or
waiting for one, by at least MACHINE_SHARE of the delay that the finding claims, in the steps that it saw.
Exit status: 0 right, 1 wrong, 3 no finding of warning or above yet, 2 input not understood.
"""
import argparse
import datetime
import json
import os
import statistics
import sys

EARLY_STEPS = 50      # that an onset may be before what was done
MACHINE_SHARE = 0.5   # of the claimed delay that the kernel's account must show
BEFORE_STEPS = 200    # before the onset, that growth is measured from
WARM_STEPS = 10       # at the start of a run, left out


def seconds_between(earlier, later):
    if not earlier or not later:
        return None
    a, b = (datetime.datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (earlier, later))
    return round((b - a).total_seconds(), 3)


def culprit(finding):
    subject = finding.get("subject") or {}
    return {
        "host": subject.get("host"),
        "rank": subject.get("rank"),
        "slice": (finding.get("slice") or {}).get("id"),
    }


def onset_of(finding):
    """Its step, or None."""
    return (finding.get("onset") or {}).get("step")


def is_early(finding, step):
    """Did what it tells begin well before this step?"""
    onset = onset_of(finding)
    return None not in (onset, step) and onset < step - EARLY_STEPS


def was_there(finding, step):
    """Did it begin before this step, and was it seen until then at least?"""
    onset = onset_of(finding)
    return onset is not None and onset < step <= onset + ((finding.get("persistence") or {}).get("steps_seen") or 0)


def read_truth(directory):
    """Host -> {step: seconds on a CPU or waiting for one}."""
    truth = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), encoding="ascii") as f:
            lines = (line.split() for line in f if line.endswith("\n"))
            truth[name] = {int(step): int(ns) / 1e9 for step, ns in lines}
    return truth


def growth(steps, first, last):
    """Mean need a step from first to last, and how much more that is than before; None: not known."""
    during = [s for n, s in steps.items() if first <= n <= last]
    before = [s for n, s in steps.items() if max(WARM_STEPS, first - BEFORE_STEPS) <= n < first]
    if not during:
        return None
    mean = statistics.fmean(during)
    return mean, mean - (statistics.fmean(before) if len(before) >= WARM_STEPS else 0)


def machine(finding, truth, until=None):
    """What the kernel's account says of a finding, of its steps before `until`; None if it does not bear it out."""
    host = finding["subject"].get("host")
    first = onset_of(finding)
    seen = (finding.get("persistence") or {}).get("steps_seen")  # that it was slow in, not since
    claimed = (finding.get("impact") or {}).get("blame_s")
    if host not in truth or None in (first, seen, claimed):
        return None
    last = (first + seen if until is None else min(first + seen, until)) - 1
    own = growth(truth[host], first, last)
    peers = [g for g in (growth(s, first, last) for h, s in truth.items() if h != host) if g]
    if not own or not peers:
        return None
    more = own[1] - statistics.median(g[1] for g in peers)
    if more < MACHINE_SHARE * claimed:
        return None
    return {"id": finding["id"], "host": host, "onset_step": first, "claimed_s": claimed,
            "more_s": round(more, 6), "own_s": round(own[0], 6),
            "peers_s": round(statistics.median(g[0] for g in peers), 6)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--host")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--slice")
    parser.add_argument("--step", type=int, help="step at which the culprit was slowed")
    parser.add_argument("--hosts", action="store_true", help="count only findings that blame a host")
    parser.add_argument("--truth", help="directory that lockstep-workload --truth wrote")
    expected = parser.parse_args()
    wanted = {k: v for k, v in (("host", expected.host), ("rank", expected.rank),
                                ("slice", expected.slice)) if v is not None}

    def matches(finding):
        found = culprit(finding)
        if not wanted or any(found[k] != v for k, v in wanted.items()):
            return False
        return not is_early(finding, expected.step) or \
            (was_there(finding, expected.step) and machine(finding, truth, expected.step) is not None)

    try:
        text = json.load(sys.stdin)
        findings = text["items"] if "items" in text else text["findings"]
        blaming = [f for f in findings
                   if f["severity"] in ("warning", "critical") and not f["kind"].startswith("self")
                   and f["kind"] != "job_slow"
                   and (f["subject"].get("host") or not expected.hosts)]
        truth = read_truth(expected.truth) if expected.truth else {}
        aside = {f["id"]: machine(f, truth) for f in blaming if not matches(f)}
    except (OSError, ValueError, KeyError, TypeError) as error:
        print("judge.py: findings not understood: %r" % error, file=sys.stderr)
        return 2
    blaming = [f for f in blaming if not aside.get(f["id"])]
    result = {"expected": wanted or None, "expected_step": expected.step, "found": None,
              "right": not wanted, "findings": len(blaming), "id": None, "kind": None,
              "severity": None, "title": None, "cause": None, "onset_step": None, "delay_s": None,
              "chips_lost": None, "machine": [m for m in aside.values() if m]}
    if blaming:
        first = min(blaming, key=lambda f: f["first_detected_at"])
        onset = first.get("onset") or {}
        result.update(
            found=culprit(first), id=first["id"], kind=first["kind"], severity=first["severity"],
            title=first["title"], cause=next((h["cause"] for h in first["hypotheses"]), None),
            right=matches(first),
            onset_step=onset_of(first),
            delay_s=seconds_between(onset.get("at"), first.get("first_detected_at")),
            chips_lost=(first.get("impact") or {}).get("chips_lost"))
    print(json.dumps(result))
    if not blaming:
        return 3
    return 0 if result["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
