#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is a named cause right as often as its confidence says? A reliability table of simulated faults, in Markdown.

usage: bench_causes.py [--runs N] [--seed S] [--list]

Each run is a job of the simulator (lockstep-sim --offline) with one fault from its middle on, replayed with the default patience:
the kind of fault, its amount (1 to 40 % of a step), the noise (0.1 to 3 %), constant differences between hosts (0 to 3 %), the number of hosts and the
length of a step are drawn from the seed, the first two evenly in their logarithm. Every cause that a finding names counts, also the second:
of causes with confidence c a share c should be right. Right: it is the cause that the fault has in
deploy/demo/sim/world_faults.def, and the finding is about nobody but the culprits. "unexplained" and "inside_program" name none: for them `right` is the
share of findings whose other causes are wrong, or are none. --list prints a line for each cause named. The programs are those
of $LOCKSTEP_BUILD or of ./build.
"""

import argparse
import collections
import json
import math
import os
import random
import re
import subprocess
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.environ.get("LOCKSTEP_BUILD", os.path.join(TOP, "build"))
STEPS = 400
SILENT = ("unexplained", "inside_program")
SCALE = {"drift": 10, "hang": 200}  # an hour, and the time of a step
WHO = {"RANK": "5", "SLICE": "1", "SLICES": "0+1", "RACK": "1", "SHARD": "1", "STAGE": "1", "ALL": "all"}


def faults():
    """Kinds of faults that have a cause and cost time: name, whom it concerns, cause."""
    with open(os.path.join(TOP, "deploy/demo/sim/world_faults.def"), encoding="utf-8") as f:
        found = re.findall(r'^SIM_FAULT\(\w+, "(\w+)", (\w+), (\w+), \w+, "(\w+)"', f.read(), re.M)
    return [(name, who, cause) for name, who, kind, cause in found if kind not in ("BENIGN", "NONE")]


def subject(finding):
    s = finding.get("subject") or {}
    return set(s.get("hosts") or ([s["host"]] if s.get("host") else []))


def claims(finding, about, causes):
    """(cause, confidence, right) of each cause that a finding names; about: it is about nobody but the culprits; causes: what was done."""
    told = [(h["cause"], h["confidence"], about and h["cause"] in causes) for h in finding.get("hypotheses") or []]
    named = any(right for _, _, right in told)
    return [(cause, confidence, not named if cause in SILENT else right) for cause, confidence, right in told]


def reliability(told):
    """Prints the table of (cause, confidence, right): of causes told with c a share c should be right."""
    cells = collections.defaultdict(list)
    for cause, confidence, right in told:
        for group in [cause] + [g for g in ("all named",) if cause not in SILENT]:
            cells[group, min(int(confidence * 10 + 1e-9), 9)].append((confidence, right))
    print("| cause | told with | findings | right | share right | mean told |")
    print("|---|---|---|---|---|---|")
    for (cause, low), of in sorted(cells.items()):
        right = sum(r for _, r in of)
        print("| %s | .%d to %s | %d | %d | %.2f | %.2f |" % (cause, low, ".%d" % (low + 1) if low < 9 else "1", len(of), right,
                                                           right / len(of), sum(c for c, _ in of) / len(of)))


def run(rng, kinds, path):
    """((cause, confidence, right), text) of each cause that is named in one run."""
    name, who, cause = rng.choice(kinds)
    amount, noise = math.exp(rng.uniform(math.log(0.01), math.log(0.4))), math.exp(rng.uniform(math.log(0.001), math.log(0.03)))
    fault = "%s:%s:%.4f@%d-" % (name, WHO[who], amount * SCALE.get(name.split("_")[-1], 1), STEPS // 2)
    job = ["--hosts", str(rng.choice([8, 16])), "--slices", "2", "--stages", "2" if who == "STAGE" else "1", "--rack-hosts", "4",
           "--shards", "4", "--steps", str(STEPS), "--step", rng.choice(["200ms", "1s", "3s"]), "--noise", "%.5f" % noise,
           "--spread", "%.5f" % rng.uniform(0, 0.03), "--seed", str(rng.randrange(1 << 30)), "--fault", fault]
    subprocess.run([os.path.join(BUILD, "lockstep-sim"), "--offline", path, "--truth", path + ".truth"] + job,
                   check=True, stdout=subprocess.DEVNULL)
    with open(path + ".truth", encoding="utf-8") as f:
        truth = json.load(f)["faults"][0]
    out = subprocess.run([os.path.join(BUILD, "lockstep"), "replay", path, "-o", "json"], check=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
    for finding in json.loads(out.stdout)["findings"]:
        about = subject(finding) <= set(truth["culprits"]) or truth["scope"] not in ("rank", "host", "group", "slice")
        for claim in claims(finding, about, (cause,)):
            yield claim, "%s noise %.4f: %s" % (fault, noise, " ".join(job[:10]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="print a line for each cause named")
    a = parser.parse_args()
    rng, kinds = random.Random(a.seed), faults()
    told = []
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(a.runs):
            for claim, text in run(rng, kinds, os.path.join(scratch, "job.jsonl")):
                told.append(claim)
                if a.list:
                    print(claim[0], claim[1], "right" if claim[2] else "wrong", text, flush=True)
    reliability(told)


if __name__ == "__main__":
    main()
