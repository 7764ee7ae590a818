#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""changed.py FILE...: the tests of these files, by tests/changes.txt; for `tests/run --changed`.

Prints a line each: `check PATH`, `system PATH`, `lint`, or `all` (make check). Exit status: 0; 1 if a file that exists
selects nothing, by name on standard error.
"""
import fnmatch
import glob
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def table():
    """Pattern and words of each line."""
    with open(os.path.join(TOP, "tests/changes.txt"), encoding="utf-8") as f:
        lines = [line.split("#")[0].split() for line in f]
    return [(line[0], line[1:]) for line in lines if line]


def program(path):
    """A check as make knows it: a C file stands for its program."""
    return path[:-2] if path.endswith(".c") else path


def checks(pattern):
    """The checks below tests/ that fit; a pattern of a folder covers the folders below it."""
    folder, name = os.path.split(pattern)
    found = glob.glob(os.path.join(TOP, "tests", folder, "**", name), recursive=True)
    return {program(os.path.relpath(p, TOP)) for p in found if re.search(r"/check_\w+[.](c|sh|py)$", p)}


def holding(pattern, suffixes=(".c", ".sh", ".py")):
    """The checks whose text has this."""
    found = set()
    for path in glob.glob(os.path.join(TOP, "tests/unit/**/check_*"), recursive=True):
        if path.endswith(suffixes):
            with open(path, encoding="utf-8") as f:
                if re.search(pattern, f.read()):
                    found.add(program(os.path.relpath(path, TOP)))
    return found


def selected(word, path):
    """The lines that a word selects for this file."""
    base, room = os.path.basename(path), os.path.dirname(path)
    if word in ("all", "lint"):
        return {word}
    if word == "room":
        room = room if room.startswith("tests/unit") else "tests/unit/" + room
        return {"check " + program(os.path.relpath(p, TOP)) for p in glob.glob(os.path.join(TOP, room, "check_*"))
                if p.endswith((".c", ".sh", ".py"))}
    if word == "users":
        return {"check " + c for c in holding(r'"%s/%s[.](h|def)"' % (re.escape(room), re.escape(os.path.splitext(base)[0])), (".c",))}
    if word == "named":
        return {"check " + c for c in holding(re.escape(base))}
    if word == "self":
        if not os.path.exists(os.path.join(TOP, path)):
            return set()
        return {"check " + c for c in checks(path[len("tests/"):])} or {"system " + path}
    if word.startswith(("unit/", "bench/")):
        return {"check " + c for c in checks(word)}
    return {"system tests/system/%s.sh" % word}


def tests_of(path):
    """The tests of a file, and whether it is known to have none."""
    found, none = set(), False
    for pattern, words in table():
        if fnmatch.fnmatchcase(path, pattern):
            none = none or words == ["-"]
            for word in words:
                found |= selected(word, path) if word != "-" else set()
    return found, none


def main():
    found, status = set(), 0
    for path in sys.argv[1:]:
        mine, none = tests_of(path)
        found |= mine
        if not mine and not none and os.path.exists(os.path.join(TOP, path)):
            print("%s selects no test: tests/changes.txt has no line for it" % path, file=sys.stderr)
            status = 1
    if "all" in found:
        found = {f for f in found if not f.startswith("check ")}
    print("".join(f + "\n" for f in sorted(found)), end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
