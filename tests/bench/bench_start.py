#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a collector takes from its start until it serves, with a week of 20 hosts in its state directory:

start_ms           from exec to the first 200 of /readyz; the median of five starts, of which the first is cold
start_worst_ms     the longest of them
start_cpu_ms       CPU time that it took until then, median
start_restored     step records that it fed back to the engine

LOCKSTEP_BENCH_DAYS (7) and LOCKSTEP_BENCH_HOSTS (20) change the week; it takes 500 MB a day.
"""

import http.client
import os
import re
import statistics
import subprocess
import time

import bench_lib as lib

DAYS, HOSTS = os.environ.get("LOCKSTEP_BENCH_DAYS", "7"), os.environ.get("LOCKSTEP_BENCH_HOSTS", "20")
STATE = os.path.join(lib.work, "week")


def ready(port):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        c.request("GET", "/readyz")
        return c.getresponse().status == 200
    except OSError:
        return False
    finally:
        c.close()


def once(port):
    """One start and end: ms until ready, ms of CPU until then, its log."""
    began = time.monotonic()
    p = lib.start(os.path.join(lib.BUILD, "lockstep-collector"), "--listen", "tcp://127.0.0.1:0", "--http",
                  "127.0.0.1:%d" % port, "--state-dir", STATE)
    while not ready(port):
        if p.poll() is not None or time.monotonic() - began > 120:
            raise SystemExit("the collector does not start: " + open(p.log).read())
        time.sleep(0.005)
    took, cpu = 1e3 * (time.monotonic() - began), lib.cpu_ns(p.pid) / 1e6
    p.terminate()
    p.wait(30)
    with open(p.log) as f:
        return took, cpu, f.read()


def main():
    os.mkdir(STATE)
    print(subprocess.run([os.path.join(lib.BUILD, "tests/bench", "feed_week"), STATE, DAYS, HOSTS], check=True,
                         stdout=subprocess.PIPE, text=True).stdout, end="")
    os.sync()  # the week was written just now: that is not what a start waits for
    port = lib.free_port()
    runs = [once(port) for _ in range(5)]
    lib.say("start_ms", "%.0f" % statistics.median(r[0] for r in runs), "ms")
    lib.say("start_worst_ms", "%.0f" % max(r[0] for r in runs), "ms")
    lib.say("start_cpu_ms", "%.0f" % statistics.median(r[1] for r in runs), "ms")
    lib.say("start_restored", re.search(r"(\d+) records", runs[-1][2]).group(1), "1")


main()
