#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a collector holds in memory at the most that README promises: jobs of many hosts, its budgets full.

Each host has an agent and a worker of its own that report every 4 s; there are no series but the hot ones.
Each line is "name value unit":

memory_peak_bytes    greatest resident memory so far, start and all connections included
memory_steady_bytes  resident memory at the end
memory_per_worker    of it, what came on top of the empty collector
memory_agents        agents connected at the end; fewer than asked for is a failure
memory_forgotten     old steps forgotten to stay within the budget: 0 means that it was not full
"""

import argparse
import os
import resource
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench_lib as lib  # noqa: E402  pylint: disable=wrong-import-position

FILES_BESIDE = 256  # descriptors of a process that are no agent's


def metric(port, name):
    """One number of the collector's own page."""
    page = lib.get(port, "/metrics").decode()
    return float(next(line.split()[1] for line in page.split("\n") if line.startswith(name + " ")))


def main():
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--hosts", type=int, default=1000, help="of each job")
    parser.add_argument("--steps", type=int, default=1, help="of each job, a second")
    parser.add_argument("--seconds", type=int, default=270, help="measured after so long")
    o = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if o.jobs * o.hosts + FILES_BESIDE > hard:
        lib.skip("memory", "the limit of open files is %d (soft %d): ulimit -Hn" % (hard, soft))
        return
    collector, _, ports = lib.collector_in("memory")
    empty = lib.rss_bytes(collector.pid)
    for i in range(o.jobs):
        lib.start(os.path.join(lib.BUILD, "lockstep-sim"), "--connect", "tcp://127.0.0.1:%d" % ports["ingest"],
                  "--hosts", str(o.hosts), "--first", str(1 + i * o.hosts), "--job", "sim-%02d" % i,
                  "--beat", "4s", "--series", "0", "--steps-per-second", str(o.steps))
    time.sleep(o.seconds)
    agents = metric(ports["http"], 'lockstep_collector_sessions{state="live"}')
    steady = lib.rss_bytes(collector.pid)
    lib.say("memory_peak_bytes", lib.peak_bytes(collector.pid), "bytes")
    lib.say("memory_steady_bytes", steady, "bytes")
    lib.say("memory_per_worker", (steady - empty) // (o.jobs * o.hosts), "bytes")
    lib.say("memory_agents", "%d" % agents, "agents")
    lib.say("memory_forgotten", "%d" % metric(ports["http"], "lockstep_collector_engine_steps_forgotten_total"), "steps")
    if agents < o.jobs * o.hosts:
        raise SystemExit("only %d of %d agents are connected" % (agents, o.jobs * o.hosts))


if __name__ == "__main__":
    main()
