#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Block times of public TPU training runs, replayed as steps of a job of one worker: a Markdown table, a row a system.

usage: blocks.py [--more RATIO] [--list]

Reads data/mlperf/blocks.csv of ../shared or of $LOCKSTEP_SHARED: times between two evaluations, in ms, of runs of the MLPerf training rounds.
Columns: `found as it is`: findings of all runs, in which nobody knows of a lasting fault. Then every block from the middle on takes longer by RATIO (.003);
`found`: in so many runs a finding of the job begins within a block of the middle, in the first four blocks, or later. Runs of fewer than twenty blocks have
too short a past for that and count as they are only. --list prints each finding. The program is that of $LOCKSTEP_BUILD or of ./build. Exit status: 77 without the data.
"""

import argparse
import bisect
import csv
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SHARED = os.environ.get("LOCKSTEP_SHARED") or os.path.join(TOP, "..", "shared")
BUILD = os.environ.get("LOCKSTEP_BUILD", os.path.join(TOP, "build"))
START_S = 1.8e9
LEAST_BLOCKS = 20


def replay(blocks):
    """Findings of a job with these steps; each with the number of steps after which it was told."""
    begin, ends = START_S, []
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as out:
        for step, duration in enumerate(blocks):
            json.dump({"job": "run", "host": "h0", "rank": 0, "world": 1, "chips": 4, "step": step, "t_begin": begin,
                       "duration": duration, "phases": {"compute": duration}}, out)
            out.write("\n")
            begin += duration
            ends.append(begin)
        out.flush()
        done = subprocess.run([os.path.join(BUILD, "lockstep"), "replay", out.name, "-o", "json"], capture_output=True, text=True, check=True)
    for finding in json.loads(done.stdout)["findings"]:
        told = datetime.datetime.fromisoformat(finding["first_detected_at"].replace("Z", "+00:00")).timestamp()
        yield finding, bisect.bisect_left(ends, told - 1e-3) + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--more", type=float, default=.003)
    parser.add_argument("--list", action="store_true")
    a = parser.parse_args()
    path = os.path.join(SHARED, "data/mlperf/blocks.csv")
    if not os.path.exists(path):
        print("blocks: %s is not there" % path, file=sys.stderr)
        sys.exit(77)
    runs = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            runs.setdefault((row["round"], row["system"], row["benchmark"]), {}).setdefault(row["run"], []).append(float(row["ms"]) / 1000)
    print("| round, system, benchmark | runs | blocks | a block | found as it is | found in 4 blocks | later |\n|---|---|---|---|---|---|---|")
    for system, of in runs.items():
        as_is, told = [], []
        for name, blocks in of.items():
            middle = len(blocks) // 2
            as_is += [(name, f["title"], step) for f, step in replay(blocks)]
            if len(blocks) >= LEAST_BLOCKS:
                slower = [b * (1 + a.more * (k >= middle)) for k, b in enumerate(blocks)]
                told += [(name, f["title"], step - middle) for f, step in replay(slower)
                         if f["subject"]["scope"] == "job" and abs(f["onset"]["step"] - middle) <= 1]
        soon = len({name for name, _, after in told if after <= 4})
        long = any(len(blocks) >= LEAST_BLOCKS for blocks in of.values())
        print("| %s, %s, %s | %d | %d | %.0f s | %d | %s | %s |" % (
            *system, len(of), max(map(len, of.values())), statistics.median(statistics.median(b) for b in of.values()), len(as_is),
            "%d of %d" % (soon, len(of)) if long else "-", len({name for name, _, _ in told}) - soon if long else "-"), flush=True)
        if a.list:
            for finding in as_is + told:
                print("  ", *finding)


if __name__ == "__main__":
    main()
