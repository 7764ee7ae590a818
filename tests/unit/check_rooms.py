#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of tests/lint/rooms.py, with small trees of sources. TAP on stdout."""
import os
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.environ.get("top_srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")))
ROOMS = "proto/base/*\nagent/part.*\nagent/*\n"
GOOD = {
    "proto/base/text.h": "int ls_text(void);\n",
    "proto/base/text.c": '#include "proto/base/text.h"\nint\nls_text(void)\n{\n\treturn 0;\n}\n',
    "agent/part.c": '#include "proto/base/text.h"\nint\nls_part(void)\n{\n\treturn ls_text();\n}\n',
    "agent/part_more.c": "int\nls_part_more(void)\n{\n\treturn ls_part();\n}\n",
    "agent/main.c": "/* ls_main */\nint\nls_main(void)\n{\n\treturn ls_part();\n}\n",
}
CASES = [  # what is different, the rules, and what is said
    ("a tree without faults passes", {}, ROOMS, ""),
    ("an include against the road", {"proto/base/text.c": '#include "agent/main.h"\n'}, ROOMS,
     "fail: proto/base/text.c:1: includes agent/main.h against the road"),
    ("inside a folder, too", {"agent/part.c": '#include "agent/main.h"\n'}, ROOMS,
     "fail: agent/part.c:1: includes agent/main.h against the road"),
    ("a file without a room", {"web/page.c": ""}, ROOMS, "fail: web/page.c: no room in tests/lint/rooms.txt"),
    ("a library that proto/base may not know", {"proto/base/text.c": "#include <sqlite3.h>\n"}, ROOMS,
     "fail: proto/base/text.c:1: proto/base must not know this library"),
    ("a library that the engine may not know", {"collector/engine/find/one.c": '#include "proto/base/json.h"\n'},
     ROOMS + "collector/engine/*\n", "fail: collector/engine/find/one.c:1: collector/engine must not know this library"),
    ("a folder with too many files", {"agent/f%d.c" % i: "" for i in range(41)}, ROOMS, "fail: agent: 44 files, at most 40"),
    ("two files that use each other", {"agent/one.c": "int\nls_one(void)\n{\n\treturn ls_two();\n}\n",
                                       "agent/two.c": "int\nls_two(void)\n{\n\treturn ls_one();\n}\n"}, ROOMS,
     "fail: circle of files: agent/one agent/two"),
    ("a circle of three, closed by a part", {"agent/one.c": "int\nls_one(void)\n{\n\treturn ls_two();\n}\n",
                                             "agent/two.c": "int\nls_two(void)\n{\n\treturn ls_part();\n}\n",
                                             "agent/part_more.c": "int\nls_part_more(void)\n{\n\treturn ls_one();\n}\n"}, ROOMS,
     "fail: circle of files: agent/one agent/part agent/two"),
]


def said(files, rules):
    """The status and the words of rooms.py about these files."""
    with tempfile.TemporaryDirectory() as top:
        for path, text in {**GOOD, **files, "tests/lint/rooms.txt": rules}.items():
            os.makedirs(os.path.join(top, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(top, path), "w", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run([sys.executable, os.path.join(TOP, "tests/lint/rooms.py"), top], stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout.strip()


def main():
    """Everything."""
    failed = 0
    for n, (name, files, rules, wanted) in enumerate(CASES, 1):
        got = said(files, rules)
        good = got == (1 if wanted else 0, wanted)
        failed += not good
        print("%sok %d - %s" % ("" if good else "not ", n, name))
        if not good:
            print("# wanted %r, got %r" % (wanted, got))
    print("1..%d" % len(CASES))
    return failed > 0


sys.exit(main())
