#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Noise that is not ours: jobs whose work wanders, comes and goes, or walks, replayed; a Markdown table of whom the engine names.

usage: bench_noise.py [--seed N[,N]...] [--only WORD[,WORD]...] [--case NOISE/HOSTS/FAULT/SECONDS]... [--steps N] [--lasts ON[/CYCLE]] [--patience S] [--keep DIR] [--runs]

These jobs are made here, by other code than that of the simulator (lockstep-sim --offline --host-noise), and of another shape. Each
kind of noise is replayed healthy and with one culprit, with fixed seeds; cases are named KIND/HOSTS/FAULT. A worker's own
work is 90 % of the step, times 1 + noise + 0.3 % of independent jitter; a step ends with the last worker. Hosts are in two slices
and racks of four. The noises:

  iid-P        independent steps, deviation P %
  wander-P-L   AR(1) for each host, deviation P %, half-life L steps
  racks-P      AR(1) for each rack of eight hosts, deviation P %, half-life 200 steps
  neighbours   two states for each host: 100 steps at 4 %, 900 steps without, on average
  bursts       8 % for 20 steps, 1,000 steps apart on average
  walks        a random walk for each host, 0.1 % a step, kept within 6 %
  sines        2 % for each host, 1,500 steps long, at a phase of its own
  days-P       the time of day: a sine of 24 hours, P % times .5 to 1.5 for each host, all at the same time but for two hours
  ticks-P      independent steps of .3 %; every clock reads whole ticks only, P % of a step long

Faults: `none`; N% from the middle on, or up to 63 steps later; `N%-born`: from the first step. Columns: `named`: hosts that a finding of warning or
above, or of info, is about; right: a healthy job without a finding, or the culprit alone. `found after`: steps from the
onset to the step in which the culprit was first named. `findings/reopened, cost`: for each run, findings about the culprit, how often
they were opened again, and what they cost in all as a ratio to the truth (what the step ends later by). With `--steps 10000` a fault
stands for 5,000 steps; with `--lasts 2000` it ends after 2,000, with `--lasts 100/500` it is there for 100 of every 500. The program is that of $LOCKSTEP_BUILD or of ./build.
"""

import argparse
import bisect
import datetime
import gzip
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
START_S = 1.8e9
OWN = 0.9  # of a step
COLLECTIVE = 0.02
CHIPS = 4  # of a host
DAY_S = 86400

# noise, hosts, fault, seconds a step
CASES = [
    *[(noise, hosts, fault, 0.4) for noise, hosts, fault in [
        ("iid-0.3", 16, "none"), ("iid-0.3", 16, "3%"), ("iid-5", 64, "none"), ("iid-5", 32, "20%"),
        ("iid-2", 4, "none"), ("iid-2", 4, "20%"), ("iid-0.3", 8, "8%-born"), ("iid-0.3", 32, "8%-born"),
        ("wander-2-50", 64, "none"), ("wander-2-50", 64, "8%"), ("wander-2-2000", 64, "none"),
        ("wander-5-50", 4, "none"), ("wander-5-200", 8, "none"), ("wander-5-50", 16, "none"), ("wander-5-50", 64, "15%"), ("wander-5-500", 64, "none"),
        ("wander-10-200", 64, "none"), ("wander-10-50", 4, "30%"), ("wander-10-200", 32, "30%"),
        ("racks-3", 32, "none"), ("racks-3", 32, "20%"),
        ("neighbours", 32, "none"), ("neighbours", 32, "15%"), ("neighbours", 4, "none"), ("neighbours", 8, "none"), ("neighbours", 64, "none"),
        ("bursts", 32, "none"), ("bursts", 32, "15%"), ("bursts", 4, "none"), ("bursts", 8, "none"),
        ("walks", 32, "none"), ("walks", 32, "20%"),
        ("sines", 32, "none"), ("sines", 32, "15%"), ("sines", 4, "none"),
        ("ticks-3", 16, "none"), ("ticks-3", 16, "8%")]],
    ("days-5", 16, "none", 10.0), ("days-5", 16, "8%", 10.0), ("iid-0.3", 16, "none", 10.0), ("iid-0.3", 16, "8%", 10.0), ("wander-5-50", 32, "none", 10.0), ("wander-5-50", 32, "20%", 10.0),
]


def ar1(rng, deviation, half_life):
    keep = 0.5 ** (1 / half_life)
    push, x = deviation * math.sqrt(1 - keep * keep), rng.gauss(0, deviation)
    while True:
        yield x
        x = keep * x + rng.gauss(0, push)


def iid(rng, deviation):
    while True:
        yield rng.gauss(0, deviation)


def two_states(rng, size, busy, away):
    on = rng.random() < busy / (busy + away)
    while True:
        yield size if on else 0.0
        on ^= rng.random() < 1 / (busy if on else away)


def bursts(rng, size, length, apart):
    while True:
        yield from [0.0] * int(1 + rng.expovariate(1 / apart))
        yield from [size] * length


def walk(rng, step, limit):
    x = rng.uniform(-limit / 2, limit / 2)
    while True:
        yield x
        x = max(-limit, min(limit, x + rng.gauss(0, step)))


def sine(size, length, k):
    while True:
        yield size * math.sin(2 * math.pi * k / length)
        k += 1


def noises(kind, hosts, step_s, rng):
    """Of each host, a generator of what its work is longer by, as a ratio."""
    name, *number = kind.split("-")
    number = [float(n) for n in number]
    if name == "racks":
        racks = [ar1(rng, number[0] / 100, 200) for _ in range(0, hosts, 8)]
        held = [[next(r) for _ in range(20000)] for r in racks]
        return [iter(held[h // 8]) for h in range(hosts)]
    make = {"iid": lambda: iid(rng, number[0] / 100), "wander": lambda: ar1(rng, number[0] / 100, number[1]),
            "neighbours": lambda: two_states(rng, 0.04, 100, 900), "bursts": lambda: bursts(rng, 0.08, 20, 1000),
            "walks": lambda: walk(rng, 0.001, 0.06), "sines": lambda: sine(0.02, 1500, rng.uniform(0, 1500)), "ticks": lambda: iid(rng, 0.003),
            "days": lambda: sine(number[0] / 100 * rng.uniform(0.5, 1.5), DAY_S / step_s, rng.uniform(0, DAY_S / 12 / step_s))}[name]
    return [make() for _ in range(hosts)]


def write(path, case, steps, seed, on, cycle):
    """Writes the job; returns culprit (None: healthy), its onset, the times at which steps end, and what it costs (chip-hours)."""
    kind, hosts, fault, step_s = case
    rng = random.Random("%s/%s/%s/%s/%d" % (*case, seed))
    each, jitter = noises(kind, hosts, step_s, rng), [random.Random(rng.random()).gauss for _ in range(hosts)]
    excess = 0.0 if fault == "none" else float(fault.split("%")[0]) / 100
    tick_s = float(kind[6:]) / 100 * step_s if kind.startswith("ticks") else 0
    onset = 0 if fault.endswith("born") else steps // 2
    culprit = rng.randrange(hosts) if excess > 0 else None
    onset += 0 if culprit is None or onset == 0 else rng.randrange(64)  # at any step of a window
    begin, ends, lost_s = START_S, [], 0.0
    with gzip.open(path, "wt", compresslevel=1) as out:
        for k in range(steps):
            own = [OWN * step_s * (1 + next(each[h]) + jitter[h](0, 0.003)) for h in range(hosts)]
            if culprit is not None and k >= onset and (k - onset) % cycle < on:
                without_s = max(own)
                own[culprit] += excess * step_s
                lost_s += max(own) - without_s
            last = begin + max(own)
            end = last + COLLECTIVE * step_s
            for h in range(hosts):
                t0, t1, t2 = [t if tick_s == 0 else t // tick_s * tick_s for t in (begin, begin + own[h], end)]
                out.write('{"job":"noise","host":"h%02d","rank":%d,"slice":"s%d","rack":"r%d","world":%d,"chips":%d,"step":%d,"t_begin":%.6f,"duration":%.6f,'
                          '"phases":{"compute":%.6f,"sync_wait":%.6f},"sync_enter":%.6f,"sync_exit":%.6f}\n'
                          % (h, h, 2 * h // hosts, h // 4, hosts, CHIPS, k, t0, t2 - t0, t1 - t0, t2 - t1, t1, t2))
            begin = end
            ends.append(end)
    return None if culprit is None else "h%02d" % culprit, onset, ends, lost_s * hosts * CHIPS / 3600


def names(finding):
    subject = finding["subject"]
    if subject["scope"] in ("job", "all", "self"):
        return []
    return subject.get("hosts") or [h for h in [subject.get("host")] if h]


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def judge(program, path, patience):
    command = [program, "replay", path, "-o", "json"] + (["--patience", patience] if patience else [])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("bench_noise: %s: %s" % (" ".join(command), done.stderr))
    return json.loads(done.stdout)["findings"]


def outcome(findings, truth):
    """Whom the findings name: by warning, by info; after how many steps the culprit; is it right?"""
    culprit, onset, ends, cost = truth
    named = {True: {}, False: {}}
    for f in findings:
        for host in names(f):
            step = bisect.bisect_left(ends, seconds(f["first_detected_at"]) - 1e-3)
            at = named[f["severity"] != "info"]
            at[host] = min(at.get(host, step), step)
    everybody = {**named[False], **named[True]}
    for host in set(named[False]) & set(named[True]):
        everybody[host] = min(named[False][host], named[True][host])
    after = everybody[culprit] - onset if culprit in everybody else None
    first = culprit is not None and after is not None and min(everybody.values()) == everybody[culprit]
    others = [f["kind"] for f in findings if not names(f)]
    right = not everybody and not others if culprit is None else set(everybody) == {culprit}
    about = [f for f in findings if culprit in names(f)]
    told = sum(f["impact"].get("chip_hours_lost_total") or 0 for f in about)
    return {"cost": round(told / cost, 2) if cost else None, "about": len(about), "reopened": sum(f["persistence"]["reopened"] for f in about),
            "warning": named[True], "info": named[False], "after": after, "first": first, "right": right, "culprit": culprit,
            "others": others}


def row(case, runs):
    kind, hosts, fault, step_s = case
    wrong = [len((set(r["warning"]) | set(r["info"])) - {r["culprit"]}) for r in runs]
    warned = [len(set(r["warning"]) - {r["culprit"]}) for r in runs]
    after = [r["after"] for r in runs if r["after"] is not None]
    print("| %s | %d | %g s | %s | %d of %d | %s | %s | %s | %s | %s |" % (
        kind, hosts, step_s, fault, sum(r["right"] for r in runs), len(runs), ", ".join(map(str, wrong)), ", ".join(map(str, warned)),
        "-" if fault == "none" else "%d of %d" % (sum(r["first"] for r in runs), len(runs)),
        "%d" % statistics.median(after) if after else "-",
        "; ".join("%d/%d, %.2f" % (r["about"], r["reopened"], r["cost"]) for r in runs if r["cost"] is not None) or "-"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1,2")
    parser.add_argument("--only", default="")
    parser.add_argument("--case", action="append", help="instead of those of the table, such as wander-5-500/32/15%%/0.4")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--lasts", default="", help="steps of a fault, or of each cycle of steps")
    parser.add_argument("--patience", default="")
    parser.add_argument("--keep", default="")
    parser.add_argument("--runs", action="store_true", help="print each run with everybody whom it names, and when")
    a = parser.parse_args()
    program = os.path.join(os.environ.get("LOCKSTEP_BUILD", os.path.join(TOP, "build")), "lockstep")
    on, _, cycle = a.lasts.partition("/")
    total = right = 0
    print("| noise | hosts | step | fault | right | others named | of them by warning | culprit first | found after | findings/reopened, cost |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for case in [(n, int(h), f, float(s)) for n, h, f, s in (c.split("/") for c in a.case or [])] or CASES:
            text = "%s/%d/%s/%g" % case
            if a.only and not any(word in text for word in a.only.split(",")):
                continue
            runs = []
            for seed in map(int, a.seed.split(",")):
                steps = int(2 * DAY_S / case[3]) if case[0].startswith("days") else min(a.steps, 600) if case[3] > 1 else a.steps
                path = os.path.join(a.keep or scratch, "-".join([text, str(seed), str(steps), *filter(None, [on, cycle])]).replace("/", "_") + ".jsonl.gz")
                side = path + ".truth"
                if not os.path.exists(side):
                    truth = write(path, case, steps, seed, int(on or steps), int(cycle or steps))
                    with open(side, "w", encoding="ascii") as out:
                        json.dump(truth, out)
                with open(side, encoding="ascii") as known:
                    runs.append(outcome(judge(program, path, a.patience), json.load(known)))
                if a.runs:
                    print(text, seed, json.dumps(runs[-1]), flush=True)
                if not a.keep:
                    os.unlink(path)
                    os.unlink(side)
            row(case, runs)
            total += len(runs)
            right += sum(r["right"] for r in runs)
    print("\nright %d of %d" % (right, total))


if __name__ == "__main__":
    main()
