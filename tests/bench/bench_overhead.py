#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent costs the job: step time with the agent on against off. "name value unit" a line.

One lockstep-workload keeps every CPU of the machine busy, so that each thing the agent does is at the
cost of a rank: the hardest case there is. Within this one run the agent is let go and stopped (SIGCONT,
SIGSTOP) in blocks of on, off, off, on, so that whatever drifts falls on both alike. Of each stretch
of BENCH_STRETCH_SECONDS (2, after half a second that does not count) the median step period is taken,
of each block the ratio of the two means. The confidence interval is of the median over BENCH_BLOCKS
(12) blocks, by bootstrap. The collector runs on the same machine, so this is an upper bound.

step_time_agent_off_ms, step_time_agent_on_ms   medians over the stretches
step_time_effect_ratio                          median over blocks of on / off - 1
step_time_effect_ci95_low_ratio, ..._high_ratio its 95 % confidence interval
step_time_blocks, step_time_steps               how much went into it
"""

import os
import random
import signal
import statistics
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench_lib as lib  # noqa: E402  pylint: disable=wrong-import-position

BLOCKS = int(os.environ.get("BENCH_BLOCKS", "12"))
STRETCH = float(os.environ.get("BENCH_STRETCH_SECONDS", "2"))
SETTLE = 0.5
RESAMPLES = 10000
HEADER_BYTES_AT, SLOT, SLOTS = 12, 320, 4096  # proto/FORMAT.md, "Step ring"


def ring_of(directory):
    """The ring of the first worker that has one."""
    for _ in range(200):
        names = sorted(n for n in os.listdir(directory) if n.endswith(".ring"))
        if names:
            return os.path.join(directory, names[0])
        time.sleep(0.05)
    raise SystemExit("the workload marks no steps")


def periods(path, begin_ns, end_ns):
    """Times from step to step, ms, of the steps that began in this span."""
    with open(path, "rb") as f:
        ring = f.read()
    begins = []
    header, = struct.unpack_from("<I", ring, HEADER_BYTES_AT)
    for i in range(SLOTS):
        at = header + i * SLOT
        index, _, t_begin = struct.unpack_from("<QQQ", ring, at)
        if index != 0 and begin_ns <= t_begin < end_ns:
            begins.append((index, t_begin))
    begins.sort()
    return [(b[1] - a[1]) / 1e6 for a, b in zip(begins, begins[1:]) if b[0] == a[0] + 1]


def stretch(agent, on, ring):
    """Median step period, ms, and how many there were."""
    agent.send_signal(signal.SIGCONT if on else signal.SIGSTOP)
    time.sleep(SETTLE)
    begin = time.monotonic_ns()
    time.sleep(STRETCH)
    found = periods(ring, begin, time.monotonic_ns())
    if len(found) < 10:
        raise SystemExit("too few steps in a stretch: a longer BENCH_STRETCH_SECONDS")
    return statistics.median(found), len(found)


def interval(values):
    """95 % of the medians of resamples; the same for the same values."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values)))
                     for _ in range(RESAMPLES))
    return medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]


def main():
    """One job, BLOCKS blocks."""
    steps = os.path.join(lib.work, "steps")
    os.makedirs(os.path.join(steps, "h0"))
    ranks = max(2, len(os.sched_getaffinity(0)))
    for r in range(1, ranks):  # one host, one agent
        os.symlink("h0", os.path.join(steps, "h%d" % r))
    agent, _ = lib.agent(lib.collector(), os.path.join(steps, "h0"))
    job = lib.start(os.path.join(lib.BUILD, "lockstep-workload"), "--ranks", str(ranks), "--steps", "0",
                    "--steps-root", steps)
    ring = ring_of(os.path.join(steps, "h0"))
    time.sleep(2)
    on, off, effect, count = [], [], [], 0
    for _ in range(BLOCKS):
        block = [(state, stretch(agent, state, ring)) for state in (True, False, False, True)]
        count += sum(n for _, (_, n) in block)
        a = [ms for state, (ms, _) in block if state]
        b = [ms for state, (ms, _) in block if not state]
        on += a
        off += b
        effect.append(statistics.mean(a) / statistics.mean(b) - 1)
    if job.poll() is not None:
        raise SystemExit("the workload ended too early")
    low, high = interval(effect)
    lib.say("step_time_agent_off_ms", "%.4f" % statistics.median(off), "ms")
    lib.say("step_time_agent_on_ms", "%.4f" % statistics.median(on), "ms")
    lib.say("step_time_effect_ratio", "%.5f" % statistics.median(effect), "1")
    lib.say("step_time_effect_ci95_low_ratio", "%.5f" % low, "1")
    lib.say("step_time_effect_ci95_high_ratio", "%.5f" % high, "1")
    lib.say("step_time_blocks", BLOCKS, "1")
    lib.say("step_time_steps", count, "1")


main()
