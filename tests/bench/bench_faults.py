#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs with one to three faults: is each found, is the end of each seen, is nobody else named? A Markdown table of simulated jobs, replayed.

usage: bench_faults.py [--draw NAME[,NAME]...] [--seed N] [--runs N] [--list] [--keep DIR]

Each seed draws a job of the simulator (lockstep-sim --offline): 16, 32 or 64 hosts in two slices and racks of four, noise of 0.3, 1 or 2 %, steps of 0.3 or
1 s, and one to three faults of 8, 10, 15 or 25 %. No two faults concern the same host at the same time. Half of the faults end after 200 or 300 steps. The job is replayed with the
default patience. --draw says how faults are drawn:

  mixed   of a host, a rack or a slice; they begin in steps 380 to 699; at most half of the hosts are slow, so a slice is alone
  early   the same faults, but they begin in steps 66 to 379, as soon as the baselines are known: most of these jobs have not seen four host-hours
  born    hosts and racks that are slow from steps 0 to 65 on, one in two from the first; of slices nobody knows whether one is slow or the other fast
  again   the fault of one host or rack ends; 250 to 350 steps later another fault begins there; every second job has a third fault elsewhere
  kinds   hosts and input shards, of ten kinds of faults
  beside  a slice, and a host or rack of the other slice: more than half of the hosts are slow

A finding of a host, rack, shard or slice has episodes: from its onset until it is cleared, and again if it is reopened. An episode belongs to a fault if it
names exactly the hosts of the fault, and both hold in a common step. These are mistakes, and a job with any of them is wrong:

  missed   a fault has no episode
  onset    an episode begins more than 40 steps before or after its fault; 66, if the fault begins in the first 66 steps, in which the baselines are learned; 100, if
           it is one of rare stalls (`disk`, `pause`, `compile`), which may begin with a pause
  open     a fault ended, and its finding is not cleared 250 steps later, or not before the next fault there
  cleared  an episode ends while its fault goes on
  twice    a fault has several episodes
  other    a finding or an episode that belongs to no fault, of severity `info`, too. A finding that became part of another one (`part_of`) is a mistake only if it names a
           host without a fault. A finding of another kind than `straggler` and `imbalance` is a mistake even if it names a slow host

When a fault is found, and with what cause, is no mistake here: bench_detect and bench_causes.py judge it. The shortest faults, 200 steps of 0.3 s, last for a minute, as long as the
default patience, so they must be found, too. Two slow racks are two racks, even if they are all of a slice: they begin and end apart. Columns: `wrong`: jobs; from `missed` to `other`: mistakes;
`found after`: steps from the onset until the finding was opened; `end seen after`: steps from the end until it was cleared (median, 95 %). `cost`: told over true
(median, 5 to 95 %), of found faults that share no step with another fault: the simulator's true cost of a fault beside others is what it adds to them. --list prints a line for each
wrong job, with its seed, and its mistakes. Equal seeds draw equal jobs: a change of `mixed` makes the figures of tests/MEASURED.md incomparable.
The programs are those of $LOCKSTEP_BUILD or of ./build; as many jobs run at a time as there are CPUs.
"""

import argparse
import bisect
import collections
import concurrent.futures
import datetime
import gzip
import json
import os
import random
import subprocess
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.environ.get("LOCKSTEP_BUILD", os.path.join(TOP, "build"))
RACK = 4
SHARDS = 4  # of the draw `kinds`
WARM = 66  # first steps, in which baselines are learned
RARE = {"disk", "pause", "compile"}
END = 250  # steps until an end must be seen
AMOUNTS = [.08, .1, .15, .25]
MIXED = ["compute", "input", "rack", "rack", "slice", "compute"]
KINDS = ["chip", "cpu", "quota", "h2d", "imbalance", "embedding", "disk", "pause", "compile", "shard"]
MISTAKES = ["missed", "onset", "open", "cleared", "twice", "other"]

Fault = collections.namedtuple("Fault", "kind who amount begin end hosts")
Job = collections.namedtuple("Job", "hosts steps step noise shards faults")
Episode = collections.namedtuple("Episode", "hosts begin end found cost finding")


def members(kind, who, hosts):
    """The numbers, from 0, of the hosts that a fault concerns."""
    if kind == "slice":
        return set(range(who * hosts // 2, (who + 1) * hosts // 2))
    if kind == "rack":
        return set(range(RACK * who, RACK * who + RACK))
    return set(range(who, hosts, SHARDS)) if kind == "shard" else {who}


def where(rng, kind, hosts):
    count = {"slice": 2, "rack": hosts // RACK, "shard": SHARDS}.get(kind, hosts)
    who = rng.randrange(count)
    return who, members(kind, who, hosts)


def separate(rng, hosts, kinds, begins):
    """One to three faults of different hosts, at most half of all. The order of these draws makes `mixed` what it is."""
    used, faults = set(), []
    for _ in range(rng.choice([1, 2, 2, 3])):
        kind = rng.choice(kinds)
        amount, begin = rng.choice(AMOUNTS), begins()
        end = rng.choice([None, begin + rng.choice([200, 300])])
        who, slow = where(rng, kind, hosts)
        if not slow & used and len(slow | used) <= hosts // 2:
            used |= slow
            faults.append(Fault(kind, who, amount, begin, end, slow))
    return faults


def draw(name, seed):
    rng = random.Random(seed if name == "mixed" else "%s/%d" % (name, seed))
    hosts, steps = rng.choice([16, 32, 64]), 1300

    def late():
        return rng.randrange(380, 700)

    if name == "mixed":
        faults = separate(rng, hosts, MIXED, late)
    elif name == "early":
        faults = separate(rng, hosts, MIXED, lambda: rng.randrange(WARM, 380))
    elif name == "born":
        faults = separate(rng, hosts, ["compute", "input", "rack"], lambda: rng.choice([0, 1]) * rng.randrange(WARM))
    elif name == "kinds":
        faults = separate(rng, hosts, KINDS, late)
    elif name == "beside":
        kind = rng.choice(["compute", "input", "rack"])
        who, slow = where(rng, kind, hosts)
        other = 1 - who // (hosts // (2 * RACK) if kind == "rack" else hosts // 2)
        faults = [Fault(k, w, rng.choice(AMOUNTS), begin, rng.choice([None, begin + rng.choice([200, 300])]), h) for k, w, h, begin in
                  [(kind, who, slow, late()), ("slice", other, members("slice", other, hosts), late())]]
    else:
        steps, begin, kinds = 1700, rng.randrange(300, 500), rng.choice([["compute", "input", "h2d"], ["rack"]])
        kind = rng.choice(kinds)
        who, slow = where(rng, kind, hosts)
        faults = [Fault(kind, who, rng.choice(AMOUNTS), begin, begin + 200, slow)]
        begin += 200 + rng.randrange(250, 350)
        faults.append(Fault(rng.choice(kinds), who, rng.choice(AMOUNTS), begin, rng.choice([None, begin + 300]), slow))
        third, elsewhere = where(rng, "rack", hosts)
        if rng.random() < .5 and not elsewhere & slow:
            faults.append(Fault("rack", third, rng.choice(AMOUNTS), late(), None, elsewhere))
    return Job(hosts, steps, rng.choice(["300ms", "1s"]), rng.choice([.003, .01, .02]), SHARDS if name == "kinds" else 16, faults)


def text(fault):
    return "%s:%d:%g@%d-%s" % (fault.kind, fault.who, fault.amount, fault.begin, fault.end or "")


def simulate(job, seed, path):
    if os.path.exists(path + ".truth"):
        return
    command = ["--hosts", job.hosts, "--slices", 2, "--rack-hosts", RACK, "--shards", job.shards, "--steps", job.steps, "--step", job.step,
               "--noise", job.noise, "--seed", seed, "--fault", ",".join(map(text, job.faults)), "--truth", path + ".truth"]
    subprocess.run([os.path.join(BUILD, "lockstep-sim"), "--offline", path] + [str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def seconds(time):
    return datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def step_ends(path):
    """When each step ended, as its first worker reports it."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines if '"rank":0,' in line]
    return [record["t_begin"] + record["duration"] for record in records]


def subject_hosts(subject, hosts):
    if subject["scope"] in ("host", "rank"):
        return {int(subject["host"][3:]) - 1}
    if subject["scope"] == "slice":
        return members("slice", int(subject["slice"]), hosts)
    if subject.get("by") == "rack":
        return members("rack", int(subject["name"][1:]), hosts)
    return {int(host[3:]) - 1 for host in subject.get("hosts") or []}


def episodes(finding, hosts, ends):
    """What the finding says of time: for each episode the first step, and the last (None: it is open)."""
    def step(time):
        return bisect.bisect_left(ends, seconds(time) - 2e-3)

    slow = subject_hosts(finding["subject"], hosts)
    over = finding["cleared_at"]
    alone = [{"from_step": finding["onset"]["step"], "to_step": finding["last_step"] if over else None,
              "chip_hours_lost": finding["impact"]["chip_hours_lost_total"]}]
    for n, e in enumerate(finding.get("episodes") or alone):
        yield Episode(slow, e["from_step"], e["to_step"], None if n > 0 else step(finding["first_detected_at"]), e["chip_hours_lost"] or 0, finding)


def together(begin, end, of):
    return (of.end is None or of.end > begin) and (end is None or of.begin < end)


def of_fault(fault, told):
    return [e for e in told if e.hosts == fault.hosts and e.finding["kind"] in ("straggler", "imbalance") and together(e.begin, e.end, fault)]


def mistakes_of_fault(fault, found, following):
    """(mistake, what) of one fault; following: the step in which the next fault of these hosts begins, or None."""
    name = text(fault)
    if not found:
        yield "missed", name
        return
    last = found[-1]
    if abs(last.begin - fault.begin) > (WARM if fault.begin < WARM else 100 if fault.kind in RARE else 40):
        yield "onset", "%s: told as %d" % (name, last.begin)
    if fault.end is not None and (last.end is None or last.end > min(fault.end + END, following or last.end)):
        yield "open", "%s: %s" % (name, "still open" if last.end is None else "cleared %d steps later" % (last.end - fault.end))
    if last.end is not None and last.end < (fault.end or last.end + 1):
        yield "cleared", "%s: in step %d, %s" % (name, last.end, last.finding.get("cleared_reason"))
    if len(found) > 1:
        yield "twice", "%s: from %s on" % (name, ", ".join(str(e.begin) for e in found))


def others(faults, told):
    """Episodes that belong to no fault, unless they are part of one that does."""
    slow = set().union(*[fault.hosts for fault in faults])
    for e in told:
        if any(e in of_fault(fault, told) for fault in faults) or (e.finding.get("cleared_reason") == "part_of" and e.hosts <= slow):
            continue
        f = e.finding
        yield "other", "%s, steps %d to %s: %s" % (f["severity"], e.begin, e.end, f["title"])


def judge(name, seed, folder):
    """What there is to count in one job."""
    job, path = draw(name, seed), os.path.join(folder, "%s-%d.jsonl.gz" % (name, seed))
    simulate(job, seed, path)
    done = subprocess.run([os.path.join(BUILD, "lockstep"), "replay", path, "-o", "json"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    ends = step_ends(path)
    findings = json.loads(done.stdout)["findings"]
    told = sorted((e for f in findings for e in episodes(f, job.hosts, ends)), key=lambda e: e.begin)
    with open(path + ".truth", encoding="utf-8") as f:
        truth = json.load(f)["faults"]
    out = {"seed": seed, "job": job, "mistakes": [], "after": [], "end": [], "cost": []}
    for fault, true in zip(job.faults, truth):
        found = of_fault(fault, told)
        following = min((f.begin for f in job.faults if f.hosts == fault.hosts and f.begin > fault.begin), default=None)
        out["mistakes"] += mistakes_of_fault(fault, found, following)
        if found and found[0].found is not None:
            out["after"].append(found[0].found - fault.begin)
        if found and fault.end is not None and (found[-1].end or 0) >= fault.end:
            out["end"].append(found[-1].end - fault.end)
        if found and not any(f != fault and together(fault.begin, fault.end, f) for f in job.faults):
            cost = true["cost_s"] * (true["to_step"] + 1 - true["from_step"]) * findings[0]["job"]["chips"] / 3600
            out["cost"].append(sum(e.cost for e in found) / cost)
    out["mistakes"] += others(job.faults, told)
    return out


def quantile(values, share):
    values = sorted(values)
    return values[min(int(share * len(values)), len(values) - 1)]


def row(name, runs):
    count = collections.Counter(mistake for run in runs for mistake, _ in run["mistakes"])
    after, end, cost = ([value for run in runs for value in run[key]] for key in ("after", "end", "cost"))
    print("| %s | %d, %d | %d | %s | %s | %s | %s |" % (
        name, len(runs), sum(len(run["job"].faults) for run in runs), sum(bool(run["mistakes"]) for run in runs), " | ".join(str(count[m]) for m in MISTAKES),
        *("%d, %d" % (quantile(v, .5), quantile(v, .95)) if v else "-" for v in (after, end)),
        "%.2f (%.2f to %.2f)" % tuple(quantile(cost, share) for share in (.5, .05, .95)) if cost else "-"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", default="mixed,early,born,again,kinds,beside")
    parser.add_argument("--seed", type=int, default=40, help="the first")
    parser.add_argument("--runs", type=int, default=70, help="seeds of each draw")
    parser.add_argument("--list", action="store_true", help="print each wrong job and its mistakes")
    parser.add_argument("--keep", help="directory in which jobs stay, and are not simulated again")
    a = parser.parse_args()
    print("| draw | jobs, faults | wrong | %s | found after | end seen after | cost |\n|%s" % (" | ".join(MISTAKES), "---|" * (6 + len(MISTAKES))))
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in a.draw.split(","):
            def one(seed):
                with tempfile.TemporaryDirectory(dir=scratch) as folder:
                    return judge(name, seed, a.keep or folder)

            runs = list(pool.map(one, range(a.seed, a.seed + a.runs)))
            row(name, runs)
            for run in runs if a.list else []:
                if run["mistakes"]:
                    job = run["job"]
                    print("%s seed %d: %d hosts, steps of %s, noise %g: %s" % (name, run["seed"], job.hosts, job.step, job.noise, " ".join(map(text, job.faults))))
                    for mistake in run["mistakes"]:
                        print("    %s %s" % mistake, flush=True)


if __name__ == "__main__":
    main()
