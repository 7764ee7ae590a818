#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of deploy/judge.py: what counts as right, as wrong, and as the machine's own doing. TAP on stdout."""

import json
import os
import subprocess
import sys
import tempfile

TOP = os.environ.get("top_srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
RIGHT, WRONG, NONE, SENSELESS = 0, 1, 3, 2
STEPS = 400
CHANGE = 300


def finding(host, ident="F-1", first=CHANGE, claimed=0.010, at="10:00:02", seen=STEPS - CHANGE):
    return {"id": ident, "kind": "straggler", "severity": "warning", "title": "t", "last_step": STEPS - 1,
            "subject": {"host": host, "rank": int(host[1:]), "scope": "host"}, "slice": {"id": "0"},
            "onset": {"step": first, "at": "2026-01-01T10:00:00Z"}, "hypotheses": [],
            "first_detected_at": "2026-01-01T%sZ" % at, "impact": {"blame_s": claimed, "chips_lost": 1},
            "persistence": {"steps_seen": seen}}


def judge(findings, *options, slowed=None, by_s=0.0, since=CHANGE, until=STEPS, text=None):
    """Exit status and verdict; the truth tells that host `slowed` needs by_s more from `since` to `until`."""
    with tempfile.TemporaryDirectory() as truth:
        for host in ("h0", "h1", "h2"):
            with open(os.path.join(truth, host), "w", encoding="ascii") as f:
                for step in range(STEPS):
                    own = 0.040 + (by_s if host == slowed and since <= step < until else 0)
                    f.write("%d %d\n" % (step, own * 1e9))
                f.write("%d 12" % STEPS)  # a line that is being written
        done = subprocess.run(
            [sys.executable, os.path.join(TOP, "deploy", "judge.py"), "--truth", truth, *options],
            input=text if text is not None else json.dumps({"items": findings}),
            capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def early_cases(expect):
    early = CHANGE - 100
    yield "an onset that is a little early is right", judge([finding("h1", first=CHANGE - 20)], *expect)[0] == RIGHT
    yield "what it was slow for long before is wrong", \
        judge([finding("h1", first=early, seen=150)], *expect)[0] == WRONG
    machine = {"slowed": "h1", "by_s": 0.010, "since": early}
    yield "unless the machine slowed it, and did so still", \
        judge([finding("h1", first=early, seen=150)], *expect, **machine)[0] == RIGHT
    yield "that it was slowed later says nothing of before", \
        judge([finding("h1", first=early, seen=200)], *expect, slowed="h1", by_s=0.010)[0] != RIGHT
    gone = [finding("h1", first=early, seen=50)]
    machine["until"] = early + 50
    yield "if that was over, it is set aside, and the right one is waited for", \
        judge(gone, *expect, **machine)[0] == NONE and \
        judge([*gone, finding("h1", "F-2", at="10:00:09")], *expect, **machine)[0] == RIGHT


def cases():
    expect = ("--host", "h1", "--rank", "1")
    yield "the slowed rank is right", judge([finding("h1")], *expect)[0] == RIGHT
    yield "another rank is wrong", judge([finding("h2")], *expect)[0] == WRONG
    yield "anybody is wrong where nobody was slowed", judge([finding("h2")])[0] == WRONG
    yield "no finding is none", judge([], *expect)[0] == NONE
    status, verdict = judge([finding("h2")], *expect, slowed="h2", by_s=0.006)
    yield "a rank that the machine slowed is set aside", \
        status == NONE and verdict["machine"][0]["host"] == "h2"
    yield "not if it was slowed by much less than the finding claims", \
        judge([finding("h2")], *expect, slowed="h2", by_s=0.004)[0] == WRONG
    short = {"slowed": "h2", "by_s": 0.010, "until": CHANGE + 20}
    yield "what was slow for a while is held against that while", \
        judge([finding("h2", seen=20)], *expect, **short)[0] == NONE
    yield "and not against all that it should have been", \
        judge([finding("h2")], *expect, **short)[0] == WRONG
    yield "not if the machine slowed another one", \
        judge([finding("h2")], *expect, slowed="h0", by_s=0.020)[0] == WRONG
    status, verdict = judge([finding("h2"), finding("h1", "F-2", at="10:00:09")], *expect,
                            slowed="h2", by_s=0.010)
    yield "beside it the slowed rank is right", status == RIGHT and verdict["id"] == "F-2"
    yield "a wrong one that came first stays wrong", \
        judge([finding("h2"), finding("h1", "F-2", at="10:00:09")], *expect)[0] == WRONG
    yield "a finding about ourselves blames nobody", \
        judge([dict(finding("h2"), kind="self_down")])[0] == NONE
    slow = dict(finding("h2", at="10:00:01"), kind="job_slow", subject={"scope": "job"})
    yield "that the job became slower names nobody: it is waited for who", \
        judge([slow], *expect)[0] == NONE and judge([slow])[0] == NONE
    yield "nor does it stand before the one who is named", judge([slow, finding("h1", "F-2")], *expect)[0] == RIGHT
    yield from early_cases((*expect, "--step", str(CHANGE)))
    yield "what is not findings is refused", judge([], text="[]")[0] == SENSELESS


def main():
    failed = 0
    count = 0
    for count, (name, good) in enumerate(cases(), 1):
        failed += not good
        print("%sok %d - %s" % ("" if good else "not ", count, name))
    print("1..%d" % count)
    return failed > 0


sys.exit(main())
