#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rooms.py: the rules of folders. Usage: rooms.py [SOURCE_TREE]

Fails on an include against the road (rooms.txt; so there is no circle of rooms), on a library that
proto/base or the engine may not know, on a product file without a room, and on a folder of more than 40 files.
Fails on a circle of files: each uses functions of the next one, and the last those of the first. X.c and
the X_*.c of its folder count as one file.
"""
import collections
import fnmatch
import os
import re
import sys

FOLDER_MAX = 40
PRODUCT = ("agent", "collector", "proto", "storage", "web", "deploy")
FORBIDDEN = {"proto/base": re.compile(r'#\s*include\s*[<"](nng/|sqlite3|protobuf-c|nghttp2|.*tpu)'),
             "collector/engine": re.compile(r'#\s*include\s*[<"](nng/|sqlite3|protobuf-c|jansson|openssl/|proto/base/json)')}
GENERATED = re.compile(r"\.pb-c\.h$|/ui_assets|/schema_\w+\.h$|^config\.h$")


def rooms(path):
    with open(path, encoding="utf-8") as f:
        return [line.split() for line in f if line.strip() and not line.startswith("#")]


def room_of(order, path):
    for i, patterns in enumerate(order):
        if any(fnmatch.fnmatch(path, p) for p in patterns):
            return i
    return None


def sources():
    for top in PRODUCT + ("tests",):
        for folder, dirs, names in os.walk(top):
            dirs[:] = [d for d in dirs if d not in ("corpus", "__pycache__")]
            yield folder, sorted(names)


def uses(paths):
    """Of each file, without suffix and with its parts, the files whose functions it uses."""
    stems = {p[:-2] for p in paths}

    def whole(stem):
        parts = os.path.basename(stem).split("_")
        starts = (os.path.join(os.path.dirname(stem), "_".join(parts[:n])) for n in range(1, len(parts) + 1))
        return next(s for s in starts if s in stems)
    text, owner = {}, {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            code = re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", "", f.read(), flags=re.S)
        here = whole(path[:-2])
        text[here] = text.get(here, "") + code
        for name in re.findall(r"^(\w+)\(", code, re.M):
            owner[name] = here
    return {here: {owner.get(w, here) for w in re.findall(r"(?<!struct )\b(?:ls|sim)_\w+", code)} - {here}
            for here, code in text.items()}


def circles(paths):
    """Lists of files that can be reached from each other."""
    graph = uses(paths)
    reached = {}
    for start in graph:
        seen, todo = set(), [start]
        while todo:
            new = graph[todo.pop()] - seen
            seen |= new
            todo += new
        reached[start] = seen
    return sorted({tuple(sorted(b for b in reached[a] if a in reached[b])) for a in graph if a in reached[a]})


def main():
    if len(sys.argv) > 1:
        os.chdir(sys.argv[1])
    order = rooms("tests/lint/rooms.txt")
    bad, files = [], []
    for folder, names in sources():
        kept = [n for n in names if not n.startswith(".") and not n.endswith((".o", ".pyc", "~"))]
        if len(kept) > FOLDER_MAX:
            bad.append("%s: %d files, at most %d" % (folder, len(kept), FOLDER_MAX))
        if folder.split("/")[0] == "tests":
            continue
        for name in names:
            path = os.path.join(folder, name)
            if not name.endswith((".c", ".h", ".def")) or GENERATED.search(path):
                continue
            here = room_of(order, path)
            if here is None:
                bad.append("%s: no room in tests/lint/rooms.txt" % path)
                continue
            files += [path] if name.endswith(".c") else []
            with open(path, encoding="utf-8") as f:
                for n, line in enumerate(f, 1):
                    for room, library in FORBIDDEN.items():
                        if (folder + "/").startswith(room + "/") and library.match(line):
                            bad.append("%s:%d: %s must not know this library" % (path, n, room))
                    m = re.match(r'\s*#\s*include "([^"]+/[^"]+)"', line)
                    there = room_of(order, m[1]) if m and not GENERATED.search(m[1]) else None
                    if there is not None and there > here:
                        bad.append("%s:%d: includes %s against the road" % (path, n, m[1]))
    bad += ["circle of files: " + " ".join(c) for c in circles(files)]
    for b in bad:
        print("fail: " + b)
    return 1 if bad else 0


sys.exit(main())
