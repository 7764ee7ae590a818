#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every text that a person can read, in one file, so that a change of words is reviewed like code.

tests/golden/words.txt holds the help of each program, and each string of two words or more in the C,
JavaScript and Python sources of the product: log lines, errors, findings, advice, doctor, page; and the
findings of simulated faults as a person reads them, with # for digits. SQL and test code are left out. After a change of words: tests/unit/check_words.py --update, and read the diff.
"""
import ast
import difflib
import glob
import json
import os
import re
import subprocess
import sys

TOP = os.environ.get("top_srcdir") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("top_builddir") or os.path.join(TOP, "build")
GOLDEN = os.path.join(TOP, "tests/golden/words.txt")
ROOMS = ("agent", "collector", "deploy", "proto", "storage", "web")
PROGRAMS = ("lockstep", "lockstep-agent", "lockstep-collector", "lockstep-sim", "lockstep-workload")
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|\'(?:[^\'\\\n]|\\.)+\'|^[ \t]*#include[^\n]*'
                     r'|%s(?:(?:\s|PRI\w+)*%s)*' % (LITERAL, LITERAL), re.S | re.M)
JS_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`(?:[^`\\]|\\.)*`', re.S)
SQL = re.compile(r"\s*(?:\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|BEGIN|DROP|ALTER|ATTACH|FROM|WHERE|ORDER BY|"
                 r"AND|SET|VALUES|GROUP BY|ON CONFLICT|REFERENCES)\b|/\*)")
FAULTS = ("compute:5:10%", "chip:5:10%", "cpu:5:10%", "quota:5:20%", "input:5:10%", "disk:5:10%", "h2d:5:10%",
          "pause:5:10%", "compile:5:10%", "every:5:100%", "saves:5:300%", "imbalance:5:10%", "embedding:5:10%", "hang:5:5000%",
          "ici:5:10%", "dcn:0+1:10%", "loss:0+1:10%", "slice:1:10%", "rack:1:10%", "shard:1:10%", "stage:1:10%",
          "sequence:all:20%", "moe:all:20%", "gc:all:10%", "starved:all:20%", "slower:all:20%")
WORDS = re.compile(r"[A-Za-z]{2,}[,;:.)]* +[(%]?[A-Za-z]")


def c_strings(text):
    for m in C_TOKEN.finditer(text):
        if m[0].startswith('"'):
            yield "".join(s[1:-1] for s in re.findall(LITERAL + r"|PRI\w+", m[0]) if s.startswith('"'))


def js_strings(text):
    for m in JS_TOKEN.finditer(text):
        if m[0][0] in "\"'`":
            yield re.sub(r"\s+", " ", m[0][1:-1])


def py_strings(text):
    tree = ast.parse(text)
    notes = {id(n.body[0].value) for n in ast.walk(tree)
             if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef)) and n.body and isinstance(n.body[0], ast.Expr)}
    for n in ast.walk(tree):
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in notes:
            yield n.value.replace("\n", "\\n")


def files():
    for room in ROOMS:
        for path in glob.glob(os.path.join(TOP, room, "**", "*.*"), recursive=True):
            kind = {".c": c_strings, ".h": c_strings, ".def": c_strings, ".js": js_strings, ".py": py_strings}.get(
                os.path.splitext(path)[1])
            if kind and not path.endswith(("pb-c.c", "pb-c.h")) and "ui_assets" not in path:
                yield os.path.relpath(path, TOP), kind


def sentences(value):
    if isinstance(value, dict):
        for key in sorted(value):
            yield from sentences(value[key])
    elif isinstance(value, list):
        for v in value:
            yield from sentences(v)
    elif isinstance(value, str) and WORDS.search(value):
        yield re.sub(r"[0-9]+(\.[0-9]+)?", "#", value)


def findings(fault):
    """The sentences of the findings of one simulated fault, each once. A fault of each 100th step needs more of them."""
    steps = "1000" if fault.startswith("every") else "500"
    made = subprocess.run([os.path.join(BUILD, "lockstep-sim"), "--offline", "-", "--hosts", "16", "--slices", "2", "--stages",
                           "2", "--steps", steps, "--rack-hosts", "4", "--shards", "4", "--fault", fault + "@200-"],
                          stdout=subprocess.PIPE, check=True)
    out = subprocess.run([os.path.join(BUILD, "lockstep"), "replay", "-", "-o", "json"], input=made.stdout,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return list(dict.fromkeys(sentences(json.loads(out.stdout)["findings"])))


def words():
    for fault in FAULTS:
        yield "== findings of %s" % fault
        yield from findings(fault) or ["no finding: it is benign"]
    for program in PROGRAMS:
        out = subprocess.run([os.path.join(BUILD, program), "--help"], stdout=subprocess.PIPE, text=True, check=True)
        yield "== %s --help" % program
        yield from out.stdout.splitlines()
    for path, strings in sorted(files()):
        with open(os.path.join(TOP, path), encoding="utf-8") as f:
            found = [s for s in strings(f.read()) if WORDS.search(s) and not SQL.match(s)]
        if found:
            yield "== " + path
            yield from found


def main():
    now = [w.rstrip() for w in words()]
    if sys.argv[1:] == ["--update"]:
        with open(GOLDEN, "w", encoding="utf-8") as f:
            f.write("\n".join(now) + "\n")
        return 0
    with open(GOLDEN, encoding="utf-8") as f:
        diff = list(difflib.unified_diff(f.read().splitlines(), now, "tests/golden/words.txt", "this build", lineterm=""))
    print("1..1")
    for line in diff:
        print("# " + line)
    print(("not ok" if diff else "ok") + " 1 - the words are those of tests/golden/words.txt (else: check_words.py --update)")
    return 1 if diff else 0


sys.exit(main())
