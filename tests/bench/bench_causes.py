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
WHO = {"RANK": "5", "SLICE": "1", "SLICES": "0+1", "RACK": "1", "SHARD": "1", "STAGE": "1", "ALL": "all"}


def faults():
    """Kinds of faults that have a cause and cost time in every step or at random: name, whom it concerns, cause."""
    with open(os.path.join(TOP, "deploy/demo/sim/world_faults.def"), encoding="utf-8") as f:
        found = re.findall(r'^SIM_FAULT\(\w+, "(\w+)", (\w+), (\w+), \w+, "(\w+)"', f.read(), re.M)
    return [(name, who, cause) for name, who, kind, cause in found if kind not in ("HANG", "BENIGN", "NONE")]


def subject(finding):
    s = finding.get("subject") or {}
    return set(s.get("hosts") or ([s["host"]] if s.get("host") else []))


def run(rng, kinds, path):
    """(cause, confidence, right, text) of each cause that is named in one run."""
    name, who, cause = rng.choice(kinds)
    amount, noise = math.exp(rng.uniform(math.log(0.01), math.log(0.4))), math.exp(rng.uniform(math.log(0.001), math.log(0.03)))
    fault = "%s:%s:%.4f@%d-" % (name, WHO[who], amount * 10 if "drift" in name else amount, STEPS // 2)
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
        claims = [(h["cause"], h["confidence"], about and h["cause"] == cause) for h in finding["hypotheses"]]
        named = any(right for _, _, right in claims)
        for told, confidence, right in claims:
            yield told, confidence, not named if told in SILENT else right, "%s noise %.4f: %s" % (fault, noise, " ".join(job[:10]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="print a line for each cause named")
    a = parser.parse_args()
    rng, kinds = random.Random(a.seed), faults()
    cells = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(a.runs):
            for told, confidence, right, text in run(rng, kinds, os.path.join(scratch, "job.jsonl")):
                if a.list:
                    print(told, confidence, "right" if right else "wrong", text, flush=True)
                for group in (told, "all named" if told not in SILENT else None):
                    cells[group, min(int(confidence * 10 + 1e-9), 9)].append((confidence, right))
    print("| cause | told with | findings | right | share right | mean told |")
    print("|---|---|---|---|---|---|")
    for (told, low), claims in sorted((k, v) for k, v in cells.items() if k[0]):
        right = sum(r for _, r in claims)
        print("| %s | .%d to %s | %d | %d | %.2f | %.2f |" % (told, low, ".%d" % (low + 1) if low < 9 else "1", len(claims), right,
                                                           right / len(claims), sum(c for c, _ in claims) / len(claims)))


if __name__ == "__main__":
    main()
