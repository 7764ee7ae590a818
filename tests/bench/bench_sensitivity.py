#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What changes if a decision constant of the engine is a fifth smaller or a quarter greater? A Markdown table, a row a constant.

usage: bench_sensitivity.py [--only NAME[,NAME]...] [--keep FILE] [--values]

For each row of collector/engine/params.def and each of the two values a copy of this tree is built and judges the same simulated jobs;
whole numbers change by 1 at least. --keep: answers are added to FILE, and those that it has are not measured again. About a
minute for each value, two hours in all. --values: only prints which values it would try.

found            recall and precision of `bench_detect --table grid --runs 2` (eleven causes, noise 0.3 %), %
steps            from the onset to the finding there, median
cost             error of its cost there, median, %
cause            first causes that are right there, of those named, %
kinds            kinds of faults of `bench_detect --table levels --runs 1 --hosts 64` that are found, without a false finding
healthy, culprit hosts that `bench_scales` names although they are healthy, and culprits that it names (noise that wanders and bursts)
recorded         recorded runs of ../shared that are right, if they are there (bench_recorded.py)

Cells: what is not as with the value of the table. `does not build`: another row or limit depends on it, and says so.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SHARED = os.environ.get("LOCKSTEP_SHARED") or os.path.join(TOP, "..", "shared")
PARAMS = "collector/engine/params.def"
PROGRAMS = ["lockstep", "tests/bench/bench_detect", "tests/bench/bench_scales"]
FACTORS = (0.8, 1.25)


def rows(text):
    """(name, value as written, is it a count) of each constant."""
    return [(name, value.strip(), bool(count)) for count, name, value in re.findall(r"^LS_PARAM(_COUNT)?\((\w+), ([^,]+),", text, re.M)]


def changed(value, count, factor):
    number = eval(value, {"__builtins__": {}})  # pylint: disable=eval-used
    if not count:
        return "%.6g" % (number * factor)
    return str(max(round(number * factor), number + 1) if factor > 1 else max(0, min(round(number * factor), number - 1)))


def cells(line):
    return [c.strip() for c in line.strip().strip("|").split("|")]


def measure(build):
    """The figures of one build; None: it does not build."""
    if subprocess.run(["make", "-s", *PROGRAMS], cwd=build, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return None

    def lines(*command):
        return subprocess.run(command, cwd=build, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.splitlines()

    grid = lines("tests/bench/bench_detect", "--table", "grid", "--runs", "2")
    total = cells([line for line in grid if line.startswith("|")][-1])
    levels = [cells(line) for line in lines("tests/bench/bench_detect", "--table", "levels", "--runs", "1", "--hosts", "64") if re.match(r"\| .*\| 1 \|", line)]
    scales = [cells(line) for line in lines("tests/bench/bench_scales") if re.match(r"\| \w+(-[\d.]+)*/", line)]
    figures = {"found": "%s, %s" % (total[2], total[3]), "steps": total[6], "cost": total[7], "cause": total[8].split(" ")[0],
               "kinds": "%d of %d" % (sum(r[2:4] == ["100.0", "100.0"] or (r[2] == "-" and r[4] == "0") for r in levels), len(levels)),
               "healthy": sum(int(r[3]) for r in scales), "culprit": "%d of %d" % (sum(int(r[5] or 0) for r in scales), sum(int(r[1]) for r in scales if not r[0].endswith("none")))}
    if os.path.isdir(os.path.join(SHARED, "data/runs")):
        told = lines(sys.executable, "-B", os.path.join(TOP, "tests/bench/bench_recorded.py"), "--late", "0", os.path.join(SHARED, "data/runs"))
        figures["recorded"] = next((m.group(0) for m in map(re.compile(r"\d+ of \d+").search, reversed(told)) if m), "-")
    return figures


def difference(base, figures):
    if figures is None:
        return "does not build"
    return "; ".join("%s %s" % (k, v) for k, v in figures.items() if v != base[k]) or "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda s: s.split(","))
    parser.add_argument("--keep")
    parser.add_argument("--values", action="store_true")
    a = parser.parse_args()
    with open(os.path.join(TOP, PARAMS), encoding="utf-8") as f:
        text = f.read()
    wanted = [row for row in rows(text) if a.only is None or row[0] in a.only]
    if a.values:
        for name, written, count in wanted:
            print(name, written, *(changed(written, count, f) for f in FACTORS))
        return
    known = {}
    if a.keep and os.path.exists(a.keep):
        with open(a.keep, encoding="utf-8") as f:
            known = {tuple(k): v for k, v in map(json.loads, f)}
    with tempfile.TemporaryDirectory() as scratch:
        tree, build = os.path.join(scratch, "tree"), os.path.join(scratch, "build")
        shutil.copytree(TOP, tree, ignore=shutil.ignore_patterns("build", ".git", "__pycache__"))
        os.mkdir(build)
        os.environ["LOCKSTEP_BUILD"] = build
        subprocess.run([os.path.join(tree, "configure")], cwd=build, stdout=subprocess.DEVNULL, check=True)

        def value(name, written, new):
            key = (name, new)
            if key not in known:
                with open(os.path.join(tree, PARAMS), "w", encoding="utf-8") as f:
                    f.write(text.replace("(%s, %s," % (name, written), "(%s, %s," % (name, new)))
                known[key] = measure(build)
                if a.keep:
                    with open(a.keep, "a", encoding="utf-8") as f:
                        f.write(json.dumps([key, known[key]]) + "\n")
            return known[key]

        base = value("", "", "")
        print("As it is: " + "; ".join("%s %s" % i for i in base.items()) + ".\n")
        print("| constant | value | x 0.8 | x 1.25 |\n|---|---|---|---|")
        for name, written, count in wanted:
            print("| %s | %s | %s |" % (name, written, " | ".join(difference(base, value(name, written, changed(written, count, f))) for f in FACTORS)), flush=True)


if __name__ == "__main__":
    main()
