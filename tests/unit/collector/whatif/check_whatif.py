#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of `lockstep whatif`: the public traces have the published answers (skipped where ../shared, or
LOCKSTEP_SHARED, has none), and bad files are refused with their line. TAP on stdout."""

import gzip
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.environ.get("top_srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../..")))
BUILD = os.path.abspath(os.environ.get("top_builddir", TOP))
TRACES = os.path.join(os.environ.get("LOCKSTEP_SHARED") or os.path.join(TOP, "..", "shared"), "data", "whatif")
NEAR = 0.001  # what is promised

HEAD = "step,rank,dp_rank,stage,optype,seq_id,start_ts,duration\n"
META = "trial_name: two\ndp_size: 2\npp_size: 1\n"
# dp 0 computes twice as long as dp 1, which waits in the reduce-scatter; tests/unit/collector/whatif/check_whatif.c says why 13 s.
TWO = HEAD + "".join("%d,%d,%d,0,%s,0,%s,%s\n" % (step, dp, dp, op, start, duration)
                     for step in (3, 4)
                     for dp, op, start, duration in (
                         (0, "params-all-gather", 0, 1), (0, "forward-compute", 1, 2),
                         (0, "backward-compute", 3, 4), (0, "grads-reduce-scatter", 7, 5), (0, "optimizer", 12, 1),
                         (1, "params-all-gather", 0, 1), (1, "forward-compute", 1.5, 1),
                         (1, "backward-compute", 2.5, 2), (1, "grads-reduce-scatter", 4.5, 7.5),
                         (1, "optimizer", 12, 1)))


def whatif(trace, meta, *options, text=None):
    """Exit status, stdout, stderr of the command."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("LOCKSTEP_")}
    done = subprocess.run([os.path.join(BUILD, "lockstep"), "whatif", trace, "--meta", meta, *options],
                          input=text, capture_output=True, env=env, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def load(name):
    with open(os.path.join(TRACES, name), encoding="utf-8") as f:
        return json.load(f)


def differences(name):
    """What of a public trace is further from its published answer than NEAR."""
    rc, out, err = whatif(os.path.join(TRACES, "trace-%s.csv.gz" % name),
                          os.path.join(TRACES, "meta-%s.yaml" % name), "-o", "json")
    if rc != 0:
        return [err]
    ours, result = json.loads(out), load("result-%s.json" % name)
    mw, ms = load("mw-%s.json" % name), load("ms-%s.json" % name)
    pairs = [("S", ours["S"], result["blocking_slowdown"]),
             ("launch_slowdown", ours["launch_slowdown"], result["launch_slowdown"]),
             ("M_W", ours["M_W"], mw["rem"]), ("M_W_added", ours["M_W_added"], mw["add"]),
             ("M_S", ours["M_S"], ms["rem"]), ("M_S_added", ours["M_S_added"], ms["add"]),
             ("no_delay_s", ours["no_delay_s"], mw["tori"]), ("ideal_s", ours["ideal_s"], mw["tideal"])]
    for mine, theirs in (("S_op", "optype"), ("S_dp", "dp_rank"), ("S_stage", "stage")):
        theirs = result["blocking_decompose_by_" + theirs]
        if sorted(ours[mine]) != sorted(theirs):
            return [mine + " has other members"]
        pairs += [(mine + " " + key, ours[mine][key], value) for key, value in theirs.items()]
    return ["%s is %.6f, published %.6f" % (key, is_, should)
            for key, is_, should in pairs if not abs(is_ - should) <= NEAR]


def blamed(name):
    rc, out, err = whatif(os.path.join(TRACES, "trace-%s.csv.gz" % name),
                          os.path.join(TRACES, "meta-%s.yaml" % name), "-o", "json")
    return json.loads(out) if rc == 0 else {"error": err}


def public_cases():
    for name in ("AR", "ST"):
        wrong = differences(name)
        yield "the answers to %s are the published ones" % name, wrong == [], "\n".join(wrong)
    ar, st = blamed("AR"), blamed("ST")
    yield "AR: dp 0 and stage 0, its slowed worker, are first in all 44 steps", \
        ar["first_dp"] == {"dp": 0, "steps": 44} and ar["first_stage"] == {"stage": 0, "steps": 44} and \
        ar["top"][0]["rank"] == 0 and ar["role_median"]["top"][0]["rank"] == 0, str(ar["top"])
    yield "ST: stage 3 is first in all 32 steps, and against its peers nobody is slow", \
        st["first_stage"] == {"stage": 3, "steps": 32} and st["role_median"]["S"] < 1.02, str(st["top"])


def refused(tmp, name, trace, meta, pattern):
    """Exit 2, and the pattern in one line of stderr; trace and meta are text or bytes."""
    paths = []
    for which, content in (("trace", trace), ("meta", meta)):
        paths.append(os.path.join(tmp, which))
        with open(paths[-1], "wb") as f:
            f.write(content.encode() if isinstance(content, str) else content)
    rc, out, err = whatif(*paths)
    return name, rc == 2 and out == "" and pattern in err and err.count("\n") == 1, "%d: %s" % (rc, err)


def cases(tmp):
    path, meta = os.path.join(tmp, "two.csv"), os.path.join(tmp, "two.yaml")
    with open(path, "w", encoding="ascii") as f:
        f.write(TWO)
    with open(meta, "w", encoding="ascii") as f:
        f.write(META)
    rc, out, err = whatif(path, meta, "-o", "json", "--top", "1")
    o = json.loads(out) if rc == 0 else {}
    yield "a trace by hand gives its numbers", \
        o.get("S") == round(13 / 11.5, 8) and o["S_w"] == {"0": round(13 / 11.5, 8), "1": 1.0} and \
        o["steps"] == 2 and o["operations"] == 20 and o["trial"] == "two" and len(o["top"]) == 1, out + err
    yield "the same from standard input, gzip", \
        whatif("-", meta, "-o", "json", "--top", "1", text=gzip.compress(TWO.encode())) == (0, out, err), ""
    rc, table, err = whatif(path, meta)
    golden = os.path.join(TOP, "tests", "golden", "cli", "whatif.txt")
    with open(golden, encoding="utf-8") as f:
        yield "in words it is the golden text", rc == 0 and table == f.read(), table + err
    yield "--meta is asked for", whatif(path, "")[0] == 2, ""
    rc, out, err = whatif(path, os.path.join(tmp, "none"))
    yield "a file that is not there is named", rc == 2 and "none: No such file" in err, err
    rc, out, err = whatif(os.path.join(tmp, "none.csv"), meta)
    yield "a trace that is not there is named", rc == 2 and "none.csv: No such file" in err, err
    rc, out, err = whatif(path, meta, "--top", "0")
    yield "--top is bounded", rc == 2, err

    def bad(name, trace, pattern, sizes=META):
        return refused(tmp, name, trace, sizes, pattern)

    yield bad("another header", "a,b\n1,2\n", "line 1: no column is named step")
    yield bad("a negative duration", TWO.replace(",1,2\n", ",1,-2\n", 1), "line 3: duration is '-2'")
    yield bad("no number", TWO.replace("1.5,1", "nan,1", 1), "line 8: start_ts is 'nan'")
    yield bad("an operation twice", TWO + "4,1,1,0,optimizer,0,12,1\n", "line 22: step 4, dp 1, stage 0: optimizer 0 is repeated")
    yield bad("a rank that is missing", TWO, "step 3, dp 2, stage 0: forward-compute 0 is missing",
              META.replace("dp_size: 2", "dp_size: 3"))
    yield bad("a dp beyond dp_size", TWO, "line 7: dp_rank is '1'", META.replace("dp_size: 2", "dp_size: 1"))
    yield bad("an operation nobody knows", TWO.replace("optimizer", "opti\033mizer", 1), "line 6: optype is 'opti\\x1bmizer'")
    yield bad("a row that is cut off", TWO[:-12], "line 21: ")
    yield bad("gzip that is cut off", gzip.compress(TWO.encode())[:-20], "checksum or structure")
    yield bad("an empty trace", "", "it is empty")
    yield bad("no YAML", TWO, "meta: line 2: no YAML", "dp_size: 2\n}\n")
    yield bad("sizes that do not multiply", TWO, "world_size is 9", META + "world_size: 9\n")
    yield bad("chunks of a pipeline", TWO, "several chunks", META + "vpp_size: 2\n")


def all_cases(tmp):
    yield from cases(tmp)
    if os.access(os.path.join(TRACES, "trace-AR.csv.gz"), os.R_OK):
        yield from public_cases()


def main():
    n = failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        for name, good, said in all_cases(tmp):
            n += 1
            failed += not good
            print("%s %d - %s" % ("ok" if good else "not ok", n, name))
            if not good:
                print("".join("# %s\n" % line for line in said.splitlines()), end="")
    if not os.access(os.path.join(TRACES, "trace-AR.csv.gz"), os.R_OK):
        n += 1
        print("ok %d - public traces # SKIP no data/whatif in LOCKSTEP_SHARED or ../shared" % n)
    print("1..%d" % n)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
