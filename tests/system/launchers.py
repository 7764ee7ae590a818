#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""launchers.py run STEPS_ROOT SECONDS | names | check JOBS_JSON HOSTS_DIR FINDINGS_JSON

run: for each launcher a job of four real marked processes on hosts h0 to h3, with the environment that this launcher
gives; the last one works half as long again as the others, from the first step. A step is a sleep: the CPUs stay idle.
check: each job shows four workers with their ranks, hosts and slices, and the late one is named.

Sources of the variables: agent/client/python/lockstep/launchers.def.
"""
import json
import multiprocessing
import os
import sys
import threading
import time

STEP_S = 0.2
FAMILIES = ("LOCKSTEP_", "TPU_", "MEGASCALE_", "JOB", "JAX_", "SLURM_", "RANK", "WORLD", "LOCAL_", "OMPI_", "PMI_", "LWS_",
            "TORCHELASTIC_", "CLOUD_TPU_", "REPLICATED_", "GROUP_", "MASTER_")


def names(pattern, count):
    return ",".join(pattern % i for i in range(count))


def two_each(host_of, env_of):
    """Four processes, two on each of two hosts."""
    return [("h%d" % host_of(r), env_of(r)) for r in range(4)]


# What each worker has: its host, and its environment.
LAUNCHERS = {
    "jax": [("h%d" % r, {"JAX_PROCESS_ID": str(r), "JAX_NUM_PROCESSES": "4",
                         "JAX_COORDINATOR_ADDRESS": "h0:1234"}) for r in range(4)],
    "cloud-tpu": [("h%d" % r, {"TPU_WORKER_ID": str(r), "TPU_WORKER_HOSTNAMES": names("t1v-w-%d", 4)}) for r in range(4)],
    "megascale": [("h%d" % r, {"TPU_WORKER_ID": str(r % 2), "TPU_WORKER_HOSTNAMES": names("w%d", 2),
                               "MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": str(r // 2),
                               "MEGASCALE_COORDINATOR_ADDRESS": "h0"}) for r in range(4)],
    "xpk": [("h%d" % r, {"JOBSET_NAME": "xpk", "REPLICATED_JOB_NAME": "slice-job", "JOB_COMPLETION_INDEX": str(r % 2),
                         "JOBSET_RESTART_ATTEMPT": "0", "TPU_WORKER_ID": str(r % 2), "TPU_WORKER_HOSTNAMES": names("w%d", 2),
                         "MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": str(r // 2)}) for r in range(4)],
    "indexed-job": [("h%d" % r, {"JOB_COMPLETION_INDEX": str(r)}) for r in range(4)],
    "kubeflow-trainer": [("h%d" % r, {"JOBSET_NAME": "x", "REPLICATED_JOB_NAME": "node", "JOB_COMPLETION_INDEX": str(r % 2),
                                      "JAX_PROCESS_ID": str(r), "JAX_NUM_PROCESSES": "4"}) for r in range(4)],
    "kubeflow-pytorch": [("h%d" % r, {"RANK": str(r), "WORLD_SIZE": "4", "MASTER_ADDR": "h0"}) for r in range(4)],
    "torchrun": two_each(lambda r: r // 2, lambda r: {
        "RANK": str(r), "WORLD_SIZE": "4", "LOCAL_RANK": str(r % 2), "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": str(r // 2),
        "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0", "TPU_WORKER_ID": str(r // 2),
        "TPU_WORKER_HOSTNAMES": names("h%d", 2)}),
    "torch-xla": two_each(lambda r: r // 2, lambda r: {
        "CLOUD_TPU_TASK_ID": str(r), "TPU_PROCESS_ADDRESSES": "h0:8476,h0:8477,h1:8476,h1:8477", "TPU_VISIBLE_CHIPS": str(r % 2),
        "TPU_PROCESS_BOUNDS": "2,2,1", "TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1", "TPU_WORKER_ID": str(r // 2),
        "TPU_WORKER_HOSTNAMES": names("h%d", 2)}),
    "ray-train": two_each(lambda r: r // 2, lambda r: {
        "RANK": str(r), "WORLD_SIZE": "4", "LOCAL_RANK": str(r % 2), "LOCAL_WORLD_SIZE": "2", "NODE_RANK": str(r // 2)}),
    "slurm": two_each(lambda r: r // 2, lambda r: {
        "SLURM_JOB_ID": "17", "SLURM_JOB_NAME": "train", "SLURM_PROCID": str(r), "SLURM_NTASKS": "4", "SLURM_NODEID": str(r // 2)}),
    "open-mpi": two_each(lambda r: r // 2, lambda r: {
        "OMPI_COMM_WORLD_RANK": str(r), "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": str(r % 2)}),
    "mpich": two_each(lambda r: r // 2, lambda r: {"PMI_RANK": str(r), "PMI_SIZE": "4", "MPI_LOCALRANKID": str(r % 2)}),
    "lws": [("h%d" % r, {"LWS_WORKER_INDEX": str(r), "LWS_GROUP_SIZE": "4", "LWS_LEADER_ADDRESS": "serve-0.serve.default"})
            for r in range(4)],
    # A script that starts four processes and says nothing: each is counted, with a warning.
    "unknown": two_each(lambda r: r // 2, lambda r: {}),
}
LATE = 3


def work(launcher, rank, barrier, root, until):
    host, env = LAUNCHERS[launcher][rank]
    for name in [n for n in os.environ if n.startswith(FAMILIES)]:
        del os.environ[name]
    os.environ.update(env, LOCKSTEP_JOB=launcher, LOCKSTEP_HOST=host, LOCKSTEP_STEPS_DIR=os.path.join(root, host))
    import lockstep  # pylint: disable=import-outside-toplevel  # it reads the environment
    step = 0
    while time.monotonic() < until:
        with lockstep.step(step):
            with lockstep.phase("compute"):
                time.sleep(STEP_S * (1.5 if rank == LATE else 1))
            with lockstep.sync_wait():
                try:
                    barrier.wait(10)
                except threading.BrokenBarrierError:
                    return
        step += 1
    barrier.abort()


def run(root, seconds):
    context = multiprocessing.get_context("fork")
    until = time.monotonic() + seconds
    workers = []
    for launcher in LAUNCHERS:
        barrier = context.Barrier(4)
        workers += [context.Process(target=work, args=(launcher, r, barrier, root, until)) for r in range(4)]
    for p in workers:
        p.start()
    for p in workers:
        p.join()


def wrong_of(launcher, jobs, workers, findings):
    """What is wrong with a job, or nothing."""
    wanted = LAUNCHERS[launcher]
    job = next((j for j in jobs if j["id"] == launcher), {})
    if job.get("workers") != 4:
        return "%s workers" % job.get("workers")
    if job.get("hosts") != len({host for host, _ in wanted}):
        return "%s hosts" % job.get("hosts")
    got = sorted((w["host"], w["rank"]) for w in workers)
    if launcher == "unknown":
        ranks = [("h0", 0), ("h0", 1), ("h1", 0), ("h1", 1)]
        said = " ".join(job["data_quality"]["contradictions"])
        if "h0 and h1" not in said:
            return "no word of ranks that are claimed twice"
    else:
        ranks = sorted((host, r) for r, (host, _) in enumerate(wanted))
    if got != ranks:
        return "ranks %s" % got
    slices = len({env.get("MEGASCALE_SLICE_ID") for _, env in wanted})
    if job.get("slices") != slices:
        return "%s slices" % job.get("slices")
    named = {(f["subject"].get("host"), f["subject"].get("rank")) for f in findings if f["job"]["id"] == launcher and
             f["severity"] != "info" and f["kind"] == "straggler"}
    if launcher == "unknown":  # the agent gave the ranks, in the order in which it found the rings
        return "" if len(named) == 1 and named < {("h1", 0), ("h1", 1)} else "named: %s" % sorted(named, key=str)
    late = (wanted[LATE][0], LATE)
    return "" if named == {late} else "named: %s, not %s" % (sorted(named, key=str), late)


def check(jobs, folder, findings):
    status = 0
    for launcher in LAUNCHERS:
        with open(os.path.join(folder, launcher), encoding="utf-8") as f:
            workers = json.load(f)["items"]
        wrong = wrong_of(launcher, jobs, workers, findings)
        print("%s: %s" % (launcher, wrong or "4 workers, the late one is named"))
        status |= bool(wrong)
    return status


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], float(sys.argv[3]))
    elif sys.argv[1] == "names":
        print("\n".join(LAUNCHERS))
    else:
        with open(sys.argv[2], encoding="utf-8") as a, open(sys.argv[4], encoding="utf-8") as b:
            sys.exit(check(json.load(a)["items"], sys.argv[3], json.load(b)["items"]))
