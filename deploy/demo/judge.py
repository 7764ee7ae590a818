#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the findings of a run whose culprit is known.

usage: lockstep findings --status all -o json | judge.py [--host H --rank N [--slice S]] [--step N] [--hosts]

Prints one JSON object: the expected and the found culprit, and the finding's own times. Every finding of severity
warning or critical counts. Findings that a whole job became slower (job_slow) name nobody and do not count.
The first finding must name the culprit, and no finding may blame another host: the object then shows the wrong finding.
Without --host no worker was slowed, so any counted finding is wrong. With --step, an onset more than EARLY_STEPS
before that step is wrong. --hosts counts only findings that name a host.
Exit status: 0 right, 1 wrong, 3 no finding that counts, 2 input not understood.
"""
import argparse
import datetime
import json
import sys

EARLY_STEPS = 50      # an onset may lie this many steps before the fault


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
    """Did the finding begin well before this step?"""
    onset = onset_of(finding)
    return None not in (onset, step) and onset < step - EARLY_STEPS


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--host")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--slice")
    parser.add_argument("--step", type=int, help="step at which the culprit was slowed")
    parser.add_argument("--hosts", action="store_true", help="count only findings that blame a host")
    expected = parser.parse_args()
    wanted = {k: v for k, v in (("host", expected.host), ("rank", expected.rank),
                                ("slice", expected.slice)) if v is not None}

    def matches(finding):
        found = culprit(finding)
        if not wanted or any(found[k] != v for k, v in wanted.items()):
            return False
        return not is_early(finding, expected.step)

    def blames_healthy(finding):
        host = culprit(finding)["host"]
        return host is not None and (host != expected.host or is_early(finding, expected.step))

    try:
        text = json.load(sys.stdin)
        findings = text["items"] if "items" in text else text["findings"]
        blaming = [f for f in findings
                   if f["severity"] in ("warning", "critical") and not f["kind"].startswith("self")
                   and f["kind"] != "job_slow"
                   and (f["subject"].get("host") or not expected.hosts)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print("judge.py: findings not understood: %r" % error, file=sys.stderr)
        return 2
    result = {"expected": wanted or None, "expected_step": expected.step, "found": None,
              "right": not wanted, "findings": len(blaming), "id": None, "kind": None,
              "severity": None, "title": None, "cause": None, "onset_step": None, "delay_s": None,
              "chips_lost": None}
    if blaming:
        blaming.sort(key=lambda f: f["first_detected_at"])
        wrong = [f for f in blaming[:1] if not matches(f)] + [f for f in blaming if blames_healthy(f)]
        first = (wrong or blaming)[0]
        onset = first.get("onset") or {}
        result.update(
            found=culprit(first), id=first["id"], kind=first["kind"], severity=first["severity"],
            title=first["title"], cause=next((h["cause"] for h in first["hypotheses"]), None),
            right=not wrong,
            onset_step=onset_of(first),
            delay_s=seconds_between(onset.get("at"), first.get("first_detected_at")),
            chips_lost=(first.get("impact") or {}).get("chips_lost"))
    print(json.dumps(result))
    if not blaming:
        return 3
    return 0 if result["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
