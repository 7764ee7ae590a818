#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Of tests/bench/bench_noise.py: jobs that it makes, and how it judges what is found of them."""

import gzip
import json
import os
import sys
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(TOP, "tests/bench"))
import bench_noise  # pylint: disable=wrong-import-position

count = 0  # pylint: disable=invalid-name


def result(good, name):
    """One line of TAP."""
    global count  # pylint: disable=global-statement
    count += 1
    print("%s %d - %s" % ("ok" if good else "not ok", count, name))


def job(directory, case, seed):
    """The records of a job, and the truth about it."""
    path = os.path.join(directory, "job.gz")
    truth = bench_noise.write(path, case, 200, seed, 200, 200)
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines], truth


def finding(host, severity, second):
    """As replay prints it, as far as it is looked at."""
    return {"subject": {"scope": "host", "host": host}, "severity": severity, "kind": "straggler",
            "persistence": {"reopened": 1}, "impact": {"chip_hours_lost_total": 0.25}, "first_detected_at": "2027-01-15T08:00:%02d.000Z" % second}


def main():
    """Everything."""
    kinds = sorted({case[0] for case in bench_noise.CASES})
    with tempfile.TemporaryDirectory() as directory:
        for kind in kinds:
            records, truth = job(directory, (kind, 16, "none", 0.4), 1)
            result(len(records) == 3200 and truth[0] is None and records == job(directory, (kind, 16, "none", 0.4), 1)[0],
                   "%s: the same seed makes the same job" % kind)
        records, (culprit, onset, ends, cost) = job(directory, ("iid-0.3", 8, "20%", 0.4), 1)
        own = {after: [r["phases"]["compute"] for r in records if r["host"] == culprit and (r["step"] >= onset) == after]
               for after in (False, True)}
        excess = sum(own[True]) / len(own[True]) - sum(own[False]) / len(own[False])
        result(100 <= onset < 164 and abs(excess - 0.08) < 0.002, "the culprit works 20 % of a step longer from the middle on, or up to 63 steps later")
        result(abs(cost - (200 - onset) * 0.08 * 32 / 3600) < 0.004, "and that costs so many chip-hours: 8 hosts of 4 chips wait")
        result(job(directory, ("iid-0.3", 8, "8%-born", 0.4), 1)[1][1] == 0, "or from the first step on")
    ends = [bench_noise.START_S + 0.4 * (k + 1) for k in range(200)]
    of = bench_noise.outcome
    result(of([], (None, 0, ends, 0))["right"] and not of([finding("h1", "info", 9)], (None, 0, ends, 0))["right"],
           "a healthy job is right if nobody is named, not even by info")
    truth = ("h1", 10, ends, 0.5)
    alone, among = of([finding("h1", "warning", 9)], truth), of([finding("h1", "warning", 9), finding("h2", "info", 20)], truth)
    result(alone["right"] and alone["after"] == 12 and alone["first"], "the culprit alone is right, so many steps after the onset")
    result(not among["right"] and among["first"], "among others it is not, though it was first")
    result(not of([], truth)["right"], "nor is nobody")
    result((among["cost"], among["about"], among["reopened"]) == (0.5, 1, 1), "cost and changes of state are those of findings about the culprit")
    print("1..%d" % count)


main()
