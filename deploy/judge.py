#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the findings of a run against what was done to it.

usage: lockstep findings --status all -o json |
           judge.py [--host H --rank N [--slice S]] [--step N] [--hosts]

Prints one JSON object: the expected and the found culprit, and the finding's own times. The first
finding of warning or above counts. Without --host nobody was slowed.
Exit status: 0 right, 1 wrong, 3 no finding of warning or above yet, 2 input not understood.
"""
import argparse
import datetime
import json
import sys


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--host")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--slice")
    parser.add_argument("--step", type=int, help="step at which the culprit was slowed")
    parser.add_argument("--hosts", action="store_true", help="count only findings that blame a host")
    expected = parser.parse_args()
    try:
        text = json.load(sys.stdin)
        findings = text["items"] if "items" in text else text["findings"]
        blaming = [f for f in findings
                   if f["severity"] in ("warning", "critical") and not f["kind"].startswith("self")
                   and (f["subject"].get("host") or not expected.hosts)]
    except (ValueError, KeyError, TypeError) as error:
        print("judge.py: findings not understood: %r" % error, file=sys.stderr)
        return 2
    wanted = {k: v for k, v in (("host", expected.host), ("rank", expected.rank),
                                ("slice", expected.slice)) if v is not None}
    result = {"expected": wanted or None, "expected_step": expected.step, "found": None,
              "right": not wanted, "findings": len(blaming), "id": None, "kind": None,
              "severity": None, "title": None, "cause": None, "onset_step": None, "delay_s": None, "chips_lost": None}
    if blaming:
        first = min(blaming, key=lambda f: f["first_detected_at"])
        found = culprit(first)
        onset = first.get("onset") or {}
        result.update(
            found=found, id=first["id"], kind=first["kind"], severity=first["severity"],
            title=first["title"], cause=next((h["cause"] for h in first["hypotheses"]), None),
            right=bool(wanted) and all(found[k] == v for k, v in wanted.items()),
            onset_step=onset.get("step"),
            delay_s=seconds_between(onset.get("at"), first.get("first_detected_at")),
            chips_lost=(first.get("impact") or {}).get("chips_lost"))
    print(json.dumps(result))
    if not blaming:
        return 3
    return 0 if result["right"] else 1


sys.exit(main())
