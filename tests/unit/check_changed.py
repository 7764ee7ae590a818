#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of tests/changed.py: which tests a changed file selects. TAP on stdout."""
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.environ.get("top_srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")))
U = "check tests/unit/"
WORDS = U + "check_words.py"
CASES = {  # a file, and some of what it must select
    "agent/client/python/lockstep/_ring.py": [U + "agent/client/check_python.py", WORDS],
    "proto/lockstep.proto": [U + "proto/wire/check_wire", U + "collector/ingest/check_ingest", "system tests/system/smoke/sim.sh"],
    "web/api/openapi.yaml": [U + "web/api/check_api", "system tests/system/smoke/api_fuzz.sh"],
    "configure.ac": ["all"],
    "storage/Makefile.inc": ["all"],
    "proto/limits.h": ["all"],
    "deploy/quickstart": ["system tests/system/real/quickstart.sh"],
    "deploy/systemd/lockstep-agent.service.in": [U + "deploy/check_deploy.sh"],
    "deploy/kubernetes/base/agent.yaml": [U + "deploy/check_kubernetes.py"],
    "tests/golden/ring_v1.bin": [U + "proto/ring/check_ring"],
    "tests/golden/words.txt": [WORDS],
    "tests/system/smoke/backup.sh": ["system tests/system/smoke/backup.sh"],
    "tests/system/facts.py": ["system tests/system/smoke/export_replay.sh"],
    "tests/corpus/ring/seed": [U + "check_corpus.sh"],
    "tests/unit/proto/base/check_text.c": [U + "proto/base/check_text"],
    "tests/gate.sh": [U + "check_gate.sh"],
    "proto/base/text.h": [U + "proto/base/check_text", WORDS, U + "check_corpus.sh"],
    "web/ui/app.js": [U + "web/ui/check_page.sh", WORDS],
    "storage/db/schema_state.sql": [U + "storage/db/check_migrate"],
}


def changed(*files):
    return subprocess.run([sys.executable, os.path.join(TOP, "tests/changed.py"), *files], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)


def tracked():
    """The files of the repository; none in a tarball or without git."""
    if not shutil.which("git"):
        return []
    done = subprocess.run(["git", "-C", TOP, "ls-files"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def results():
    for path, wanted in CASES.items():
        lines = changed(path).stdout.split("\n")
        missing = [w for w in wanted if w not in lines]
        yield "%s selects what it concerns" % path, not missing, "missing: %s" % missing
    with tempfile.NamedTemporaryFile(suffix=".new") as new:
        done = changed(new.name)
        yield "a file that fits no line is red, by name", done.returncode == 1 and new.name in done.stderr, done.stderr
    done = changed("README", "agent/gone_away.xyz")
    yield "a file without a test and one that is gone select nothing", (done.returncode, done.stdout) == (0, ""), done.stderr
    done = changed(*tracked())
    yield "each file of the repository fits a line", done.returncode == 0, done.stderr


def main():
    failed = count = 0
    for count, (name, good, why) in enumerate(results(), 1):
        failed += not good
        print("%sok %d - %s" % ("" if good else "not ", count, name))
        if not good:
            print("# " + why.replace("\n", "\n# "))
    print("1..%d" % count)
    return failed > 0


sys.exit(main())
