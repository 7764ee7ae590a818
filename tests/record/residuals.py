#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Residuals of recorded workers for `bench_scales --recorded FILE`: a line of numbers for each worker, on standard output.

usage: residuals.py [--wait] [--only RUN[,RUN]...] [DIRECTORY] >FILE
       residuals.py --blocks [BLOCKS.csv] >FILE

A number is what the worker was late by in one step, against the median of the others of its job (blame.h: late_s; with --wait,
wait_s: what it waited less than they), less the mean of the same over the run, as a ratio to the median step time. The first steps
(64) are left out, and steps that not all workers report. DIRECTORY holds replay files and labels.jsonl, as tests/record/record.sh writes them; left out, it is data/runs of
../shared or of $LOCKSTEP_SHARED. Runs without a fault are read, or those of --only.

--blocks: data/mlperf/blocks.csv, time between two evaluations of whole jobs. No host is seen there: a number is what a
block is longer than the median of its job, a line is a job, without its first four blocks (compilation).

Exit status: 0; 77, after a line `SKIP ...` on standard error: nothing was recorded.
"""

import argparse
import csv
import gzip
import json
import os
import statistics
import sys

SHARED = os.environ.get("LOCKSTEP_SHARED") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared")
FIRST = 64  # LS_DETECT_WARM
FIRST_BLOCKS = 4


def against_others(values):
    """Each value less the median of the others."""
    return [v - statistics.median(values[:i] + values[i + 1:]) for i, v in enumerate(values)]


def residuals(path, wait):
    """Of each worker of a run, its residuals."""
    steps = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for record in map(json.loads, filter(str.strip, file)):
            if record.get("type", "step") != "step":
                continue
            for barrier in record.get("barriers", [])[:1]:  # as `lockstep export` writes it
                record.update(sync_enter=barrier["enter"], sync_exit=barrier["exit"])
            if "sync_enter" in record:
                steps.setdefault(record["step"], {})[record["rank"]] = record
    whole = max(len(of) for of in steps.values())
    usual = statistics.median(r["duration"] for of in steps.values() for r in of.values())
    rows = []
    for step in sorted(steps):
        if step < FIRST or len(steps[step]) < whole:
            continue
        of = [record for _, record in sorted(steps[step].items())]
        rows.append(against_others([r["sync_enter"] - r["sync_exit"] if wait else r["sync_enter"] for r in of]))
    usual_of = [statistics.fmean(worker) for worker in zip(*rows)]
    return [[(v - own) / usual for v in worker] for worker, own in zip(zip(*rows), usual_of)]


def blocks(path):
    """Of each job, its blocks against their median."""
    jobs = {}
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            jobs.setdefault((row["round"], row["system"], row["benchmark"], row["run"]), []).append(float(row["ms"]))
    late = [of[FIRST_BLOCKS:] for of in jobs.values()]
    return [[v / statistics.median(of) - 1 for v in of] for of in late if len(of) > FIRST_BLOCKS]


def main():
    """Reads, writes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("path", nargs="?")
    parser.add_argument("--wait", action="store_true", help="what workers wait less, instead of what they are late by")
    parser.add_argument("--only", default="", help="these runs alone")
    parser.add_argument("--blocks", action="store_true", help="whole jobs of MLPerf")
    options = parser.parse_args()
    path = options.path or os.path.join(SHARED, "data", "mlperf/blocks.csv" if options.blocks else "runs")
    if not os.path.exists(path if options.blocks else os.path.join(path, "labels.jsonl")):
        print("SKIP %s: nothing was recorded there" % path, file=sys.stderr)
        return 77
    if options.blocks:
        lines = blocks(path)
    else:
        with open(os.path.join(path, "labels.jsonl"), encoding="utf-8") as file:
            labels = [json.loads(line) for line in file if line.strip()]
        only = [word for word in options.only.split(",") if word]
        lines = [line for label in labels if (label["run"] in only if only else not label["faults"])
                 for line in residuals(os.path.join(path, label["file"]), options.wait)]
    for line in lines:
        print(" ".join("%.5g" % v for v in line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
