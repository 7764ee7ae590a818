#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""restarts.py BUILD WORK HOSTS FINDINGS KILLS SEED: kill -9 of a collector while faults stand, for night/restarts.sh.

FINDINGS jobs share HOSTS simulated hosts; in each, one host is a tenth slower from step FROM on. After each kill and start every answer
must have the same open findings with the same id, kind, severity and onset, and a cost that is no less (causes are for unit tests:
counters of simulated hosts are noise). In the end a step must have cost as much as before the first kill. Prints a line a result:
`ok NAME` or `not NAME`; other lines are notes.
"""
import atexit
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request

FROM = 80
PATIENCE_S = 120  # how long a test waits for what must come; how fast it comes is the machine's affair
QUIET_S = 10      # the cost of a step is measured over so long
COST_ERROR = 0.1  # of what a step costs: steps without a record cost nothing
TOLD_RATIO = 1e-5  # costs are told with six digits, so one that is read again may be smaller by so much
DOWN_S = (0, 3)   # between a kill and the start
RATE = 8          # steps a second of each job; 1 where there are many hosts
MANY = 1000


class Restarts:
    """A collector, and simulated agents that outlive it."""

    def __init__(self, build, work, hosts, findings):
        self.build, self.work, self.hosts, self.count = build, work, hosts, findings
        self.address, self.programs, self.wrong = {}, [], {}
        os.makedirs(os.path.join(work, "state"))
        atexit.register(self.end)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def run(self, name, *argv):
        with open(os.path.join(self.work, name + ".log"), "ab") as log:
            p = subprocess.Popen([os.path.join(self.build, argv[0]), *argv[1:]], stdout=log, stderr=log)
        self.programs.append(p)
        return p

    def end(self):
        for p in self.programs:
            if p.poll() is None:
                p.kill()
                p.wait()

    def get(self, path):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.address["http"], path), timeout=30) as r:
            return json.load(r)

    def serve(self):
        """A collector on the same state and ports; the seconds until it is ready."""
        began, log = time.monotonic(), os.path.join(self.work, "collector.log")
        skip = os.path.getsize(log) if os.path.exists(log) else 0
        self.collector = self.run(
            "collector", "lockstep-collector", "--listen", "tcp://127.0.0.1:%d" % self.address.get("ingest", 0), "--http",
            "127.0.0.1:%d" % self.address.get("http", 0), "--state-dir", os.path.join(self.work, "state/collector"), "--patience", "5s")
        while True:
            with open(log, encoding="utf-8") as f:
                f.seek(skip)
                for line in f:
                    if "server: ready " in line:
                        self.address = {k: int(v) for k, v in (word.split("=") for word in line.split()[2:])}
                        return time.monotonic() - began
            if self.collector.poll() is not None or time.monotonic() - began > PATIENCE_S:
                raise SystemExit("not the collector serves\n%s" % open(log, encoding="utf-8").read()[-500:])
            time.sleep(0.01)

    def told(self):
        """The open findings: what may not change, what each has cost so far, its newest step, whether all is known."""
        same, cost, step, whole = {}, {}, {}, True
        for f in self.get("/api/v1/findings?status=open")["items"]:
            same[f["id"]] = (f["job"]["id"], f["subject"].get("host"), f["kind"], f["severity"], f["onset"]["step"])
            cost[f["id"]] = f["impact"]["chip_hours_lost_total"]
            step[f["id"]] = f["last_step"]
            whole = whole and "reference" not in f["data_quality"]
        return same, cost, step, whole

    def until(self, what, probe):
        began = time.monotonic()
        while not probe():
            if time.monotonic() > began + PATIENCE_S:
                raise SystemExit("not %s\nnothing within %d s: %s" % (what, PATIENCE_S, self.told()[0]))
            time.sleep(0.2)
        return time.monotonic() - began

    def kill(self, seed):
        """One kill and start: seconds until it serves, and until all is known and the steps of the present are judged."""
        same, cost, step, _ = self.told()
        self.collector.send_signal(signal.SIGKILL)
        self.collector.wait()
        time.sleep(seed.uniform(*DOWN_S))
        serving = self.serve()

        def whole():
            now, paid, at, known = self.told()
            if now != same:
                self.wrong.setdefault("changed", (same, now))
            for i in set(cost) & set(paid):
                if at[i] >= step[i] and paid[i] < cost[i] * (1 - TOLD_RATIO):
                    self.wrong.setdefault("cheaper", (i, cost[i], paid[i]))
            return known and all(at.get(i, 0) > step[i] for i in step)
        return serving, self.until("all is known again", whole)


def main(build, work, hosts, findings, kills, seed):
    """All of it."""
    def result(ok, name):
        print("ok" if ok else "not", name, flush=True)

    def each_costs(a, b):
        return {i: (b[1][i] - a[1][i]) / (b[2][i] - a[2][i]) for i in a[1] if b[2].get(i, 0) > a[2][i]}

    draw = random.Random(seed)
    r = Restarts(build, work, hosts, findings)
    r.serve()
    share = hosts // findings
    for k in range(findings):
        r.run("sim", "lockstep-sim", "--connect", "tcp://127.0.0.1:%d" % r.address["ingest"], "--hosts", str(share), "--first",
              str(1 + k * share), "--job", "job%d" % k, "--slow", "1:0.1@%d" % FROM, "--series", "0", "--steps-per-second",
              str(1 if hosts >= MANY else RATE))
    r.until("each fault is found", lambda: len(r.told()[0]) == findings)
    looks = [r.told()]

    def stands():
        time.sleep(QUIET_S)
        looks.append(r.told())
        return looks[-1][0] == looks[-2][0]
    r.until("each finding stays as it is", stands)
    first, before = looks[-2:]
    print("%d findings stand among %d hosts" % (findings, hosts))
    times = [r.kill(draw) for _ in range(kills)]
    print("%d kills: serves after at most %.2f s, all is known again after at most %.1f s more" % (
        kills, max(t[0] for t in times), max(t[1] for t in times)))
    result("changed" not in r.wrong, "each finding keeps id, kind, severity and onset, and stays open %s" % (r.wrong.get("changed", ""),))
    result("cheaper" not in r.wrong, "no finding gets cheaper %s" % (r.wrong.get("cheaper", ""),))
    time.sleep(QUIET_S)
    usual, after = each_costs(first, before), each_costs(before, r.told())
    ratios = {i: after.get(i, 0) / usual[i] for i in usual}
    print("cost of a step with the kills over that before:", " ".join("%.3f" % v for v in ratios.values()))
    result(len(ratios) == findings and all(abs(v - 1) < COST_ERROR for v in ratios.values()), "a step costs what it cost before the kills")


main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:7]))
