#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A data-parallel training job in JAX: one process a rank, one CPU device each, gloo collectives.

Trains a small network on made-up data; gradients are averaged over all processes in every step. All
that lockstep adds is the lines that say so.
"""

import argparse
import os
import tempfile
import time
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import NamedSharding, PartitionSpec

import lockstep

FEATURES, HIDDEN, CLASSES = 32, 64, 10


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--coordinator", default="127.0.0.1:7777", help="address of rank 0")
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=3072, help="examples a step and process")
    parser.add_argument("--fused", action="store_true",
                        help="all-reduce inside the program of the gradients")
    parser.add_argument("--odd-rank", type=int, default=-1, metavar="RANK",
                        help="this process does as --odd-kind tells ...")
    parser.add_argument("--odd-kind", choices=("compile", "input"), default="compile",
                        help="cuts its batches to varying sizes, each a new program; or reads "
                        "--odd-mib from a file, past the page cache, before every batch")
    parser.add_argument("--odd-mib", type=int, default=24, metavar="MIB")
    parser.add_argument("--odd-from", type=int, default=0, metavar="STEP", help="... from here on")
    parser.add_argument("--odd-to", type=int, default=1 << 62, metavar="STEP", help="... to here")
    parser.add_argument("--device", type=int, default=0, metavar="MS",
                        help="waits so long in the compute phase of each step, as for a device")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--truth", help="file that gets a line a step: its number, and how many ns "
                        "this process was on a CPU or waited for one, as the kernel tells")
    parser.add_argument("--progress", help="file that is written with the number of each step")
    return parser.parse_args()


def needed_ns():
    """How long the threads of this process were on a CPU or waited for one so far."""
    total = 0
    for thread in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/schedstat" % thread, encoding="ascii") as file:
                total += sum(int(word) for word in file.read().split()[:2])
        except OSError:
            pass  # it has ended meanwhile
    return total


class SlowFile:
    """A file of so many MiB that is read from the disk, whoever read it before."""

    def __init__(self, mib):
        self.file = tempfile.TemporaryFile()
        for _ in range(mib):
            self.file.write(os.urandom(1 << 20))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.checksum = 0

    def read(self):
        """Reads all of it."""
        os.posix_fadvise(self.file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        self.file.seek(0)
        while block := self.file.read(1 << 18):
            self.checksum = zlib.crc32(block, self.checksum)


def batches(options):
    """The input pipeline: made-up examples of classes that can be told apart."""
    rng = np.random.default_rng([options.seed, options.rank])
    slow = SlowFile(options.odd_mib) if options.odd_kind == "input" else None
    centres = np.random.default_rng(1).normal(size=(CLASSES, FEATURES)).astype(np.float32)
    for i in range(options.steps):
        labels = rng.integers(CLASSES, size=options.batch)
        inputs = centres[labels] + rng.normal(size=(options.batch, FEATURES)).astype(np.float32)
        odd = options.rank == options.odd_rank and options.odd_from <= i < options.odd_to
        if odd and slow:
            slow.read()
        elif odd:
            cut = options.batch - 1 - i % (options.batch // 2)  # every size is a new program
            inputs, labels = inputs[:cut], labels[:cut]
        yield inputs, labels


def initial_parameters():
    """The same on every process."""
    rng = np.random.default_rng(0)

    def layer(rows, columns):
        return rng.normal(scale=rows ** -0.5, size=(rows, columns)).astype(np.float32)

    return {"in": layer(FEATURES, HIDDEN), "mid": layer(HIDDEN, HIDDEN),
            "out": layer(HIDDEN, CLASSES)}


def loss_of(parameters, inputs, labels):
    """Cross entropy."""
    hidden = jnp.tanh(inputs @ parameters["in"])
    for _ in range(12):
        hidden = jnp.tanh(hidden @ parameters["mid"])
    logits = jax.nn.log_softmax(hidden @ parameters["out"])
    return -jnp.take_along_axis(logits, labels[:, None], axis=1).mean()


@jax.jit
def gradients(parameters, inputs, labels):
    """This process' own work, with no collective in it; the gradients as one vector."""
    loss, grads = jax.value_and_grad(loss_of)(parameters, inputs, labels)
    return loss, ravel_pytree(grads)[0]


@jax.jit
def update(parameters, stacked):
    """All-reduce and descent: the mean over the axis of processes is the collective."""
    flat, unravel = ravel_pytree(parameters)
    return unravel(flat - 0.1 * stacked.mean(axis=0))


def make_fused(mesh):
    """A whole step as one program, the all-reduce inside."""
    def body(parameters, inputs, labels):
        loss, grads = jax.value_and_grad(loss_of)(parameters, inputs, labels)
        grads = jax.lax.pmean(grads, "data")
        return loss[None], jax.tree.map(lambda p, g: p - 0.1 * g, parameters, grads)

    axis, whole = PartitionSpec("data"), PartitionSpec()
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=(whole, axis, axis),
                                 out_specs=(axis, whole)))


class Trainer:
    """Parameters over the mesh, and one step of them."""

    def __init__(self, options):
        self.mesh = jax.make_mesh((options.world,), ("data",))
        self.world = options.world
        self.sharded = NamedSharding(self.mesh, PartitionSpec("data"))
        self.parameters = jax.device_put(initial_parameters(),
                                         NamedSharding(self.mesh, PartitionSpec()))
        self.fused = make_fused(self.mesh) if options.fused else None
        self.device_s = options.device / 1000

    def spread(self, value):
        """A global array of which this process holds one part."""
        return jax.make_array_from_single_device_arrays(
            (self.world * value.shape[0],) + value.shape[1:], self.sharded, [value])

    def split_step(self, inputs, labels):
        """Two programs: where own work ends and waiting begins is known."""
        own = jax.tree.map(lambda p: p.addressable_data(0), self.parameters)
        with lockstep.phase("compute"):
            loss, grads = jax.block_until_ready(gradients(own, inputs, labels))
            time.sleep(self.device_s)
        stacked = self.spread(grads[None])
        with lockstep.sync_wait():
            self.parameters = jax.block_until_ready(update(self.parameters, stacked))
        return loss

    def fused_step(self, inputs, labels):
        """One program: own work and waiting lie in the same wait."""
        device = jax.local_devices()[0]
        inputs, labels = (self.spread(jax.device_put(v, device)) for v in (inputs, labels))
        loss, self.parameters = self.fused(self.parameters, inputs, labels)
        with lockstep.sync_wait():
            jax.block_until_ready(self.parameters)
        return loss.addressable_data(0)[0]


def main():
    """Trains."""
    options = arguments()
    jax.distributed.initialize(options.coordinator, options.world, options.rank)
    trainer = Trainer(options)
    one_step = trainer.fused_step if options.fused else trainer.split_step
    losses, begun, told = [], time.monotonic(), needed_ns()

    for i, (inputs, labels) in lockstep.loop(batches(options)):
        losses.append(float(one_step(inputs, labels)))
        lockstep.work(batch=options.batch)
        if options.truth:
            now = needed_ns()
            with open(options.truth, "a", encoding="ascii") as file:
                file.write("%d %d\n" % (i, max(0, now - told)))
            told = now
        if options.progress:
            with open(options.progress, "w", encoding="ascii") as file:
                file.write("%d\n" % i)

    lockstep.close()
    print("rank %d: %d steps in %.1f s, loss %.3f -> %.3f" %
          (options.rank, len(losses), time.monotonic() - begun, losses[0],
           sum(losses[-10:]) / len(losses[-10:])), flush=True)
    jax.distributed.shutdown()
    return 0 if losses[-1] < losses[0] else 1


if __name__ == "__main__":
    # A process that ends while others still talk to it makes them fail: no clean-up after main.
    status = main()
    os._exit(status)
