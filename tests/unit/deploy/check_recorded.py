#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of bench_recorded.py: which findings answer a label, and what its table says. TAP on stdout."""

import gzip
import json
import os
import subprocess
import sys
import tempfile

TOP = os.environ.get("top_srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
sys.path.insert(0, os.path.join(TOP, "tests/bench"))
import bench_recorded  # pylint: disable=wrong-import-position

count = 0


def result(good, name):
    """A line of TAP."""
    global count
    count += 1
    print("%s %d - %s" % ("ok" if good else "not ok", count, name), flush=True)


def finding(scope, hosts, onset, kind="straggler"):
    """As the engine tells it."""
    subject = {"scope": scope}
    subject.update({"hosts": hosts} if len(hosts) > 1 else {"host": hosts[0]} if hosts else {})
    return {"kind": kind, "severity": "warning", "subject": subject, "onset": {"step": onset}}


def right(cause, scope, culprits, *findings, steps=(300, 600), truth=None):
    """Is this judged right?"""
    faults = [{"cause": cause, "scope": scope, "culprits": culprits, "from_step": steps[0],
               "to_step": steps[1]}] if cause else []
    return not bench_recorded.judge({"faults": faults}, list(findings), truth)[0]


def main():
    """Judging, then the program."""
    hog = ("rank_hog", "rank", ["h1"])
    result(right(*hog, finding("host", ["h1"], 250)) and right(*hog, finding("host", ["h1"], 500)),
           "the culprit, up to 50 steps early and 200 late, is right")
    result(not right(*hog, finding("host", ["h1"], 249)) and not right(*hog, finding("host", ["h1"], 501)),
           "earlier or later is not")
    result(not right(*hog) and not right(*hog, finding("job", [], 300)),
           "nothing, or the job, is not")
    result(not right(*hog, finding("host", ["h1"], 300), finding("host", ["h2"], 400)),
           "another host beside the culprit is wrong")
    result(right(*hog, finding("host", ["h1"], 300), finding("job", [], 400), finding("host", ["h1"], 550)),
           "the job beside it is not, nor the culprit once more while it lasts")
    result(not right(*hog, finding("host", ["h1"], 300), finding("host", ["h1"], 700)),
           "the culprit when the fault is over is")
    link = ("link_loss", "link", ["h1"])
    result(right(*link, finding("link", ["h0", "h1"], 310)) and right(*link, finding("job", [], 310)),
           "a link with the culprit at one end is right, and so is the job")
    result(not right(*link, finding("link", ["h2", "h3"], 310)) and
           not right(*link, finding("link", ["h0", "h1", "h2"], 310)) and
           not right(*link, finding("host", ["h1"], 310)), "another link, three hosts, or a host is not")
    stop = ("hang", "rank", ["h2"])
    result(right(*stop, finding("job", [], 300, "hang"), steps=(300, 300)) and
           right(*stop, finding("host", ["h2"], 300, "hang"), steps=(300, 300)) and
           not right(*stop, finding("job", [], 300, "job_slow"), steps=(300, 300)),
           "a hang of the job or of the culprit is right, a slow job is not")
    result(right(None, None, None) and right(None, None, None, finding("job", [], 10)) and
           not right(None, None, None, finding("host", ["h0"], 10)),
           "without a fault no host may be named")

    need = {"h%d" % i: {n: 0.12 if i == 1 and n >= 200 else 0.1 for n in range(600)} for i in range(4)}
    slow = finding("host", ["h1"], 200)
    slow.update(id="F-0000", impact={"blame_s": 0.02}, persistence={"steps_seen": 300})
    result(right(None, None, None, slow, truth=need) and not right(None, None, None, slow),
           "a host that the kernel says was slow may be named")
    result(right(*hog, slow, truth=need) and not right("rank_hog", "rank", ["h2"], slow, truth=need),
           "and answers a fault that begins while it is")
    slow["impact"]["blame_s"] = 0.05
    result(not right(None, None, None, slow, truth=need), "but not for much more than the kernel says")

    with tempfile.TemporaryDirectory() as directory:
        golden = os.path.join(TOP, "tests", "golden", "replay_small.jsonl")
        with open(golden, "rb") as plain, gzip.open(os.path.join(directory, "small.gz"), "wb") as packed:
            packed.write(plain.read())
        label = {"run": "small", "file": "small.gz",
                 "faults": [{"cause": "rank_hog", "scope": "rank", "culprits": ["h1"], "from_step": 72,
                             "to_step": 90}]}
        lost = {"run": "lost", "file": "lost.gz", "faults": []}

        def bench(*labels):
            with open(os.path.join(directory, "labels.jsonl"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(each) + "\n" for each in labels)
            done = subprocess.run([sys.executable, os.path.join(TOP, "tests/bench/bench_recorded.py"), "--late",
                                   "0,10,60", directory], capture_output=True, text=True, check=False,
                                  env={**os.environ, "LOCKSTEP_PATIENCE": "0"})
            print("\n".join("# " + line for line in (done.stdout + done.stderr).splitlines()))
            return done

        done = bench(label, lost)
        cells = [cell.strip() for cell in done.stdout.splitlines()[3].strip("|").split("|")]
        result(done.returncode == 0 and "right 1 of 1\n" in done.stdout, "a recording is replayed and judged right")
        result(cells[:4] == ["small", "100", "rank_hog h1, 72 to 90", "straggler h1, critical"] and
               cells[4] == "-2" and int(cells[5]) > 0, "its row tells what was found, and when")
        result(cells[-3:] == ["right", "right", "-"], "begun later, unless nothing healthy is left before it")
        result("lost # SKIP" in done.stdout, "a file that is not there is skipped and told")
        label["faults"][0]["culprits"] = ["h2"]
        done = bench(label)
        result(done.returncode == 1 and "WRONG: rank_hog of h2 missed; straggler h1 blamed" in done.stdout,
               "a wrong answer is told, with what is wrong")
        done = subprocess.run([sys.executable, os.path.join(TOP, "tests/bench/bench_recorded.py"),
                               os.path.join(directory, "nowhere")], capture_output=True, text=True, check=False)
        result(done.returncode == 2 and "# SKIP" in done.stdout, "a directory that is not there is skipped and told")
    print("1..%d" % count)


main()
