#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recorded real runs, replayed and held against what was done to them: a Markdown table, a row a fault.

usage: bench_recorded.py [--late 0,150,350] [--only RUN[,RUN]...] [DIRECTORY...]

A directory holds replay files and labels.jsonl, as tests/record/record.sh writes them; left out, it is
data/runs of ../shared or of $LOCKSTEP_SHARED. The program is that of $LOCKSTEP_BUILD or of this directory.

Columns: `onset` and `found after` are steps from where the fault began to where the finding says it did,
and to the step in which it was first told; `cleared after`, from its end; `slower` is how much
longer a step became, as the finding says and as the recording shows (mean of the steps of the fault against
those before it); `others` are findings of warning or above that answer none of the faults. The
last columns: is it right, all of the run or with that many steps at its beginning left out (`-`: the fault
began less than 50 steps later, and there was nothing healthy to compare with; or the run had ended).

Right: each fault has a finding whose onset is 50 steps early to 200 late and whose subject is a culprit
(a link: a link of at most two hosts, one of them the culprit, or the job; a hang: the culprit or the
job), and no finding of warning or above names a host but where and when it was slow. On a shared machine a CPU may be slow without
our doing: a finding that the kernel's own account bears out (NAME.truth.json, tests/record/account.py) is no mistake, and is
marked `machine` among the others; if it names a culprit and is still open when the fault begins, it answers that, too.
At the end, of whole runs: is a named cause right as often as its confidence says (bench_causes.py)? Right: it is one of CAUSES of the
fault that the finding answers; what answers none, unless the machine gave reason for it, is wrong.
Exit status: 0 all whole runs are right, 1 some are not, 2 nothing could be judged.
"""

import argparse
import bisect
import datetime
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SHARED = os.environ.get("LOCKSTEP_SHARED") or os.path.join(TOP, "..", "shared")
sys.path.insert(0, os.path.join(TOP, "tests/record"))
import account  # pylint: disable=wrong-import-position
import bench_causes  # pylint: disable=wrong-import-position
from account import onset_of  # pylint: disable=wrong-import-position

BUILD = os.environ.get("LOCKSTEP_BUILD") or os.environ.get("top_builddir") or "."
LATE_STEPS = 200  # that an onset may be late
HEALTHY_STEPS = 50                 # that there must be before a fault
CAUSES = {"rank_hog": ("host_cpu_contention",), "quota": ("cpu_quota",), "slow_disk": ("input_stall",), "sigstop": ("process_stopped",),
          "imbalance": ("work_imbalance",), "recompilation": ("recompilation",), "hang": ("not_entered", "process_stopped"),
          "link_delay": ("communication",), "link_loss": ("communication",), "link_rate": ("communication",)}
NO_HOST = ("job", "all", "slice", "group", "self")
LOUD = ("warning", "critical")


class Run:
    """The lines of a recording."""

    def __init__(self, directory, label):
        self.label = label
        self.name = label["run"]
        with gzip.open(os.path.join(directory, label["file"]), "rt", encoding="utf-8") as file:
            self.lines = [(line, json.loads(line)) for line in file if line.strip()]
        first, self.durations = {}, {}
        for _, record in self.lines:
            if record.get("type", "step") == "step":
                step = record["step"]
                first[step] = min(record["t_begin"], first.get(step, record["t_begin"]))
                self.durations.setdefault(step, []).append(record["duration"])
        self.truth = {}
        truth = os.path.join(directory, self.name + ".truth.json")
        if os.path.exists(truth):
            with open(truth, encoding="ascii") as file:
                self.truth = {host: {int(step): need for step, need in steps.items()}
                              for host, steps in json.load(file).items()}
        self.steps = sorted(first)
        self.begins = [first[step] for step in self.steps]

    def step_at(self, when):
        """The step the job was in at this time, as findings write it; None if that is None."""
        if not when:
            return None
        t = datetime.datetime.fromisoformat(when.replace("Z", "+00:00")).timestamp()
        return self.steps[max(0, bisect.bisect_right(self.begins, t) - 1)]

    def slower(self, fault):
        """How much longer the steps of the fault are than those before."""
        def mean(first, end):
            return statistics.fmean(max(self.durations[s]) for s in self.steps if first <= s < end)
        try:
            return (mean(fault["from_step"], max(fault["to_step"], fault["from_step"] + 1)) /
                    mean(max(20, fault["from_step"] - 300), fault["from_step"]))
        except statistics.StatisticsError:
            return None

    def replay(self, late):
        """The findings of warning or above, when so many steps are left out; in the order of telling."""
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            begin = self.begins[bisect.bisect_left(self.steps, late)] if late else 0
            for line, record in self.lines:
                if record.get("step", late) >= late and record.get("t", begin) >= begin:
                    file.write(line)
            file.flush()
            done = subprocess.run([os.path.join(BUILD, "lockstep"), "replay", file.name, "-o", "json"],
                                  capture_output=True, text=True, timeout=600, check=False,
                                  env={"LOCKSTEP_PATIENCE": "5s", **os.environ})  # they are young
        if done.returncode:
            raise ValueError("replay ended with %d: %s" % (done.returncode, done.stderr.strip()[-200:]))
        found = [f for f in json.loads(done.stdout)["findings"]
                 if f["severity"] in LOUD and not f["kind"].startswith("self")]
        return sorted(found, key=lambda f: f.get("first_detected_at") or "")


def hosts_of(finding):
    """The hosts that it blames."""
    subject = finding["subject"]
    if subject.get("scope") in NO_HOST:
        return []
    return subject.get("hosts") or [h for h in [subject.get("host")] if h]


def answers(finding, fault):
    """Does it name what was done?"""
    onset, hosts, culprits = onset_of(finding), set(hosts_of(finding)), set(fault["culprits"])
    last = max(fault["to_step"], fault["from_step"] + LATE_STEPS)
    if onset is None or account.is_early(finding, fault["from_step"]) or onset > last:
        return False
    scope = finding["subject"].get("scope")
    if fault["scope"] == "link":
        return scope == "job" or (scope == "link" and len(hosts) <= 2 and bool(hosts & culprits))
    if fault["cause"] == "hang" and finding["kind"] == "hang" and scope == "job":
        return True
    return bool(hosts) and hosts <= culprits


def judge(label, found, truth=None):
    """
    What is wrong, a list of words; the findings that answer each of the faults; the others, and the ids of
    those that the machine itself gave reason for.
    """
    faults = [f for f in label["faults"] if f["scope"] != "all"]
    answered = [[f for f in found if answers(f, fault)] for fault in faults]
    used = [id(f) for each in answered for f in each]
    others = [f for f in found if id(f) not in used]
    machine = {id(f) for f in others if account.machine(f, truth or {})}
    open_then = {(fault["cause"], fault["from_step"]) for fault in faults for f in others
                 if account.machine(f, truth or {}, fault["from_step"]) and hosts_of(f) and set(hosts_of(f)) <= set(fault["culprits"]) and
                 account.was_there(f, fault["from_step"])}
    wrong = ["%s of %s missed" % (fault["cause"], ", ".join(fault["culprits"]))
             for fault, each in zip(faults, answered)
             if (fault["cause"], fault["from_step"]) not in open_then and
             not any(onset_of(f) <= fault["from_step"] + LATE_STEPS for f in each)]
    wrong += ["%s blamed" % name_of(f) for f in others if hosts_of(f) and id(f) not in machine]
    return wrong, answered, others, machine


def name_of(finding):
    """Kind and subject."""
    subject = finding["subject"]
    return "%s %s" % (finding["kind"], " ".join(subject.get("hosts") or
                                                [subject.get("host") or subject.get("scope") or "?"]))


def signed(value, origin):
    """A difference of steps, or a dash."""
    return "-" if value is None else "%+d" % (value - origin)


def cells(run, fault, first):
    """What is said of one fault by the finding that answered it first."""
    text = "%s %s, %d to %d" % (fault["cause"], " ".join(fault["culprits"]), fault["from_step"],
                                fault["to_step"])
    real = run.slower(fault)
    real = "?" if real is None else "%.2f" % real
    if not first:
        return [text, "nothing", "-", "-", "-", "-", "- / " + real]
    causes = first.get("hypotheses") or []
    said = (first.get("impact") or {}).get("slowdown_ratio")
    cleared = run.step_at(first.get("cleared_at"))
    return [text, "%s, %s" % (name_of(first), first["severity"]),
            signed(onset_of(first), fault["from_step"]),
            signed(run.step_at(first.get("first_detected_at")), fault["from_step"]),
            signed(cleared, fault["to_step"]) if cleared is not None else first["status"],
            causes[0]["cause"] if causes else "-",
            "%s / %s" % ("-" if said is None else "%.2f" % said, real)]


def row(*values):
    """A line of the table."""
    print("| %s |" % " | ".join(str(v) for v in values), flush=True)


def table(directory, labels, lates):
    """The rows of one directory; how often each column was right, and was judged; and causes that were named."""
    counts, told = {late: [0, 0] for late in lates}, []
    for label in labels:
        run = Run(directory, label)
        verdicts, whole = [], None
        for late in lates:
            if late and (late + HEALTHY_STEPS > run.steps[-1] or
                         any(f["from_step"] < late + HEALTHY_STEPS for f in label["faults"])):
                verdicts.append("-")
                continue
            judged = judge(label, run.replay(late), run.truth)
            whole = whole or judged
            counts[late][0] += not judged[0]
            counts[late][1] += 1
            verdicts.append("WRONG: " + "; ".join(judged[0]) if judged[0] else "right")
        _, answered, others, machine = whole
        faults = [f for f in label["faults"] if f["scope"] != "all"]
        for fault, each in zip(faults, answered):
            told += [claim for f in each for claim in bench_causes.claims(f, True, CAUSES.get(fault["cause"], ()))]
        told += [claim for f in others if id(f) not in machine for claim in bench_causes.claims(f, False, ())]
        rows = [cells(run, fault, (each or [None])[0]) for fault, each in zip(faults, answered)]
        rows = rows or [["none", "nothing" if not others else "see others"] + ["-"] * 5]
        rest = ", ".join("%s at %s%s" % (name_of(f), onset_of(f), " (machine)" if id(f) in machine else "")
                         for f in others) or "-"
        row(run.name, len(run.steps), *rows[0], rest, *verdicts)
        for more in rows[1:]:
            row("", "", *more, "", *[""] * len(verdicts))
    return counts, told


def read_labels(directory, only):
    """The labels of a directory; says why there are none."""
    path = os.path.join(directory, "labels.jsonl")
    if not os.path.exists(path):
        print("%s # SKIP no labels.jsonl: record some with tests/record/record.sh" % directory)
        return []
    with open(path, encoding="utf-8") as file:
        labels = [json.loads(line) for line in file if line.strip()]
    there = []
    for label in labels:
        if only and label["run"] not in only:
            continue
        if os.path.exists(os.path.join(directory, label["file"])):
            there.append(label)
        else:
            print("%s # SKIP its file %s is not there" % (label["run"], label["file"]))
    return there


def main():
    """All directories."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("directory", nargs="*")
    parser.add_argument("--late", default="0,150,350", help="steps left out at the beginning")
    parser.add_argument("--only", default="", help="these runs alone")
    options = parser.parse_args()
    lates = sorted({0} | {int(word) for word in options.late.split(",")})
    total, told = {late: [0, 0] for late in lates}, []
    for directory in options.directory or [os.path.join(SHARED, "data", "runs")]:
        labels = read_labels(directory, [word for word in options.only.split(",") if word])
        if not labels:
            continue
        row("run", "steps", "fault", "found first", "onset", "found after", "cleared after", "cause",
            "slower", "others", *["right" if not late else "%d left out" % late for late in lates])
        row(*["---"] * (10 + len(lates)))
        counts, causes = table(directory, labels, lates)
        told += causes
        for late, (right, judged) in counts.items():
            total[late][0] += right
            total[late][1] += judged
        print()
    if not total[0][1]:
        return 2
    for late, (right, judged) in total.items():
        print("right %d of %d%s" % (right, judged, ", %d steps left out" % late if late else ""))
    print()
    bench_causes.reliability(told)
    return 0 if total[0][0] == total[0][1] else 1


if __name__ == "__main__":
    sys.exit(main())
