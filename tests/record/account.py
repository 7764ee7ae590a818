# SPDX-License-Identifier: Apache-2.0
"""The kernel's account of a recorded run: how long each rank was on a CPU or waited for one, step by step.

A shared machine may slow a rank by itself. A finding that says so is right if the account shows at least
MACHINE_SHARE of the delay that the finding claims, in its own steps.
"""
import os
import statistics

EARLY_STEPS = 50      # an onset may lie this many steps before the fault
MACHINE_SHARE = 0.5   # share of the claimed delay that the account must show
BEFORE_STEPS = 200    # steps before the onset that growth is measured against
WARM_STEPS = 10       # first steps of a run, ignored


def onset_of(finding):
    """Its step, or None."""
    return (finding.get("onset") or {}).get("step")


def is_early(finding, step):
    """Did the finding begin well before this step?"""
    onset = onset_of(finding)
    return None not in (onset, step) and onset < step - EARLY_STEPS



def was_there(finding, step):
    """Did it begin before this step, and was it seen until then at least?"""
    onset = onset_of(finding)
    return onset is not None and onset < step <= onset + ((finding.get("persistence") or {}).get("steps_seen") or 0)


def read_truth(directory):
    """Host -> {step: seconds on a CPU or waiting for one}."""
    truth = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), encoding="ascii") as f:
            lines = (line.split() for line in f if line.endswith("\n"))
            truth[name] = {int(step): int(ns) / 1e9 for step, ns in lines}
    return truth


def growth(steps, first, last):
    """Mean need a step from first to last, and how much more that is than before; None: not known."""
    during = [s for n, s in steps.items() if first <= n <= last]
    before = [s for n, s in steps.items() if max(WARM_STEPS, first - BEFORE_STEPS) <= n < first]
    if not during:
        return None
    mean = statistics.fmean(during)
    return mean, mean - (statistics.fmean(before) if len(before) >= WARM_STEPS else 0)


def machine(finding, truth, until=None):
    """What the kernel's account says of a finding, of its steps before `until`; None if it does not bear it out."""
    host = finding["subject"].get("host")
    first = onset_of(finding)
    seen = (finding.get("persistence") or {}).get("steps_seen")  # that it was slow in, not since
    claimed = (finding.get("impact") or {}).get("blame_s")
    if host not in truth or None in (first, seen, claimed):
        return None
    last = (first + seen if until is None else min(first + seen, until)) - 1
    own = growth(truth[host], first, last)
    peers = [g for g in (growth(s, first, last) for h, s in truth.items() if h != host) if g]
    if not own or not peers:
        return None
    more = own[1] - statistics.median(g[1] for g in peers)
    if more < MACHINE_SHARE * claimed:
        return None
    return {"id": finding["id"], "host": host, "onset_step": first, "claimed_s": claimed,
            "more_s": round(more, 6), "own_s": round(own[0], 6),
            "peers_s": round(statistics.median(g[0] for g in peers), 6)}
