#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of deploy/demo/judge.py (what counts as right and wrong) and of tests/record/account.py. TAP on stdout."""

import json
import os
import subprocess
import sys

TOP = os.environ.get("top_srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../.."))
sys.path.insert(0, os.path.join(TOP, "tests/record"))
import account  # noqa: E402  pylint: disable=wrong-import-position

RIGHT, WRONG, NONE, INVALID = 0, 1, 3, 2
STEPS = 400
CHANGE = 300


def finding(host, ident="F-1", first=CHANGE, claimed=0.010, at="10:00:02", seen=STEPS - CHANGE):
    return {"id": ident, "kind": "straggler", "severity": "warning", "title": "t", "last_step": STEPS - 1,
            "subject": {"host": host, "rank": int(host[1:]), "scope": "host"}, "slice": {"id": "0"},
            "onset": {"step": first, "at": "2026-01-01T10:00:00Z"}, "hypotheses": [],
            "first_detected_at": "2026-01-01T%sZ" % at, "impact": {"blame_s": claimed, "chips_lost": 1},
            "persistence": {"steps_seen": seen}}


def judge(findings, *options, text=None):
    """Exit status of judge.py, and its answer."""
    done = subprocess.run([sys.executable, os.path.join(TOP, "deploy/demo/judge.py"), *options],
                          input=text if text is not None else json.dumps({"items": findings}),
                          capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def slowed(host, by_s, until=STEPS):
    """An account in which `host` needs by_s more in each step from CHANGE to `until`."""
    return {h: {s: 0.040 + (by_s if h == host and CHANGE <= s < until else 0) for s in range(STEPS)}
            for h in ("h0", "h1", "h2")}


def cases():
    expect = ("--host", "h1", "--rank", "1")
    later = {"ident": "F-2", "at": "10:00:09"}
    slow = dict(finding("h2", at="10:00:01"), kind="job_slow", subject={"scope": "job"})
    at = (*expect, "--step", str(CHANGE))
    yield "the slowed rank is right", judge([finding("h1")], *expect)[0] == RIGHT
    yield "another rank is wrong", judge([finding("h2")], *expect)[0] == WRONG
    yield "any rank is wrong if none was slowed", judge([finding("h2")])[0] == WRONG
    yield "no finding is neither right nor wrong", judge([], *expect)[0] == NONE
    yield "a wrong first finding stays wrong", judge([finding("h2"), finding("h1", **later)], *expect)[0] == WRONG
    yield "a second finding that blames a healthy host is wrong, and shown", \
        (lambda done: (done[0], done[1]["id"]) == (WRONG, "F-2"))(judge([finding("h1"), finding("h2", **later)], *expect))
    yield "a second finding of the same host is right", judge([finding("h1"), finding("h1", **later)], *expect)[0] == RIGHT
    yield "a second finding that names no host is right", \
        judge([finding("h1"), dict(finding("h2", **later), subject={"scope": "job"})], *expect)[0] == RIGHT
    yield "a second finding of a healthy host below warning does not count", \
        judge([finding("h1"), dict(finding("h2", **later), severity="info")], *expect)[0] == RIGHT
    yield "a second finding with an onset long before the fault is wrong", \
        judge([finding("h1"), finding("h1", first=CHANGE - 100, **later)], *at)[0] == WRONG
    yield "a finding about lockstep itself does not count", judge([dict(finding("h2"), kind="self_down")])[0] == NONE
    yield "a slower job names nobody and does not count", \
        judge([slow], *expect)[0] == NONE and judge([slow])[0] == NONE
    yield "a slower job does not hide the culprit", judge([slow, finding("h1", "F-2")], *expect)[0] == RIGHT
    yield "an onset a few steps early is right", judge([finding("h1", first=CHANGE - 20)], *at)[0] == RIGHT
    yield "an onset long before the fault is wrong", judge([finding("h1", first=CHANGE - 100)], *at)[0] == WRONG
    yield "input that is no list of findings is refused", judge([], text="[]")[0] == INVALID
    yield "the account confirms a rank that the machine slowed", \
        account.machine(finding("h2"), slowed("h2", 0.006))["host"] == "h2"
    yield "not if it explains less than half of the delay", account.machine(finding("h2"), slowed("h2", 0.004)) is None
    yield "not if the machine slowed another rank", account.machine(finding("h2"), slowed("h0", 0.020)) is None
    yield "a short slowness confirms a short finding only", \
        account.machine(finding("h2", seen=20), slowed("h2", 0.010, CHANGE + 20)) is not None and \
        account.machine(finding("h2"), slowed("h2", 0.010, CHANGE + 20)) is None


def main():
    failed = 0
    count = 0
    for count, (name, good) in enumerate(cases(), 1):
        failed += not good
        print("%sok %d - %s" % ("" if good else "not ", count, name))
    print("1..%d" % count)
    return failed > 0


sys.exit(main())
