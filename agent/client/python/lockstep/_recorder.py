# SPDX-License-Identifier: Apache-2.0
"""The step being made and the ring it goes to: what is behind the marks of the package.

Methods may raise; the package's functions see to it that none of that reaches the training loop.
All times are ns of CLOCK_MONOTONIC unless said.
"""

import atexit
import gc
import math
import os
import struct
import sys
from _thread import get_ident
from array import array
from time import monotonic_ns

from . import _ring
from ._identity import Identity

PHASES = {name: number for number, name in enumerate((
    "input_wait", "h2d", "dispatch", "compute", "sync_wait", "collective", "checkpoint", "compile",
    "gc", "eval", "other"))}
BARRIERS = {"ici": 0, "dcn": 1, "stage": 2, "other": 3}
WORK = {"tokens": 0, "sum_sq_len": 1, "batch": 2, "expert_load_max": 3, "expert_load_mean": 4}
_INPUT_WAIT, _SYNC_WAIT, _COMPILE, _GC, OTHER = (
    PHASES[name] for name in ("input_wait", "sync_wait", "compile", "gc", "other"))
BARRIERS_MAX, PEERS_MAX = 4, 4
_RETRY_NS = 10_000_000_000
_NOT_MEASURED = 0xFFFFFFFF
_LIVE = _ring.LIVE
_U64 = 2**64 - 1
_NO_REST = (0,) * (_ring.RECORD_WORDS - _ring.BARRIER)  # a record without barriers, work, peers
_COMPILE_EVENTS = frozenset((
    "/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration"))


_PACK_DOUBLE, _UNPACK_WORD = struct.Struct("<d").pack, struct.Struct("<Q").unpack


def _double(value):
    """The bits of a double as a word of the ring."""
    return _UNPACK_WORD(_PACK_DOUBLE(value))[0]


def _wait_us(seconds):
    """Seconds to the ring's microseconds; negative or not a number: not measured."""
    if not seconds >= 0:
        return _NOT_MEASURED
    return int(min(seconds * 1e6 + 0.5, _NOT_MEASURED - 1))


class Recorder:
    """The step being made and the ring it goes to; one a process."""

    def __init__(self):
        self.ring = None
        self.words = None      # of the ring, for the mark itself
        self.identity = None
        self.directory = None
        self.retry_ns = 0
        self.silent = False    # closed, or a forked child: only open() brings marks back
        self.owner = None      # ident of the thread that makes the marks
        self.hooked = False
        self.jax_hooked = False
        self.gc_since = 0
        self.in_step = False
        self.step = 0
        self.begin_ns = 0
        self.phase = OTHER
        self.since_ns = 0
        self.before = OTHER   # phase before the last mark, for a scope to restore
        self.scopes = []
        self.times = [0] * _ring.PHASES
        self.mask = 0
        self.barriers = []     # [kind, enter, exit or None]
        self.work = {}
        self.peers = {}        # rank: [recv, send], None: not measured
        self.compiled = []     # (start, counted ns) of compilations in this step
        self.input_begin_ns = 0  # input that was waited for before the step began
        self.input_ns = 0

    # --- opening ---------------------------------------------------------------

    def open(self, options):
        self.close()
        self.silent = False
        self.identity = Identity(options)
        self.directory = (options.get("steps_dir") or os.environ.get("LOCKSTEP_STEPS_DIR") or
                          "/run/lockstep/steps")
        return self.try_open(monotonic_ns())

    def try_open(self, now):
        if not self.hooked:
            self.hooked = True
            os.register_at_fork(after_in_child=self.forked)
            atexit.register(self.close)
            gc.callbacks.append(self.on_gc)
        try:
            self.ring = _ring.Ring(self.directory, self.identity, now)
        except OSError:
            self.retry_ns = now + _RETRY_NS
            return False
        self.words = self.ring.words
        self.owner = get_ident()
        self.reset()
        return True

    def ready(self, now):
        """Is there a ring, and is this the thread that marks? Opens it at the first mark."""
        if self.ring is not None:
            return self.owner == get_ident()
        if self.silent or now < self.retry_ns:
            return False
        if self.identity is None:
            return self.open({})
        return self.try_open(now)

    def close(self, ended=True):
        ring, self.ring, self.words = self.ring, None, None
        self.in_step = False
        self.silent = True
        if ring is not None:
            ring.close(ended)

    def forked(self):
        """In a forked child: file and lock stay the parent's."""
        try:
            self.close(ended=False)
        except Exception:  # pylint: disable=broad-except
            pass

    # --- marks -------------------------------------------------------------------

    def reset(self):
        self.in_step = False
        self.scopes.clear()
        self.input_begin_ns = self.input_ns = 0

    def switch(self, phase, now):
        """Ends the running phase and begins another; writes the live slot."""
        old = self.phase
        spent = now - self.since_ns
        if spent > 0:  # a collection may have run between the clock and here
            self.times[old] += spent
        self.mask |= 1 << old
        self.before = old
        self.phase = phase
        self.since_ns = now
        ring, words = self.ring, self.words
        ring.sequence = sequence = ring.sequence + 2
        words[_LIVE] = sequence - 1
        words[_LIVE + 4] = sequence
        words[_LIVE + 2] = phase
        words[_LIVE + 3] = now
        words[_LIVE] = sequence

    def mark(self, phase):
        now = monotonic_ns()
        if self.in_step:
            if self.owner == get_ident():
                self.switch(phase, now)
        elif self.ready(now):
            # Between steps nothing is recorded, but a hang in a checkpoint can be seen.
            self.before = _ring.BETWEEN_STEPS
            self.ring.live(self.step, phase, now)

    def scope_enter(self):
        if self.owner == get_ident():
            self.scopes.append(self.before)

    def scope_exit(self):
        """Back to the phase before the scope; between steps to none."""
        if self.ring is None or self.owner != get_ident():
            return
        before = self.scopes.pop() if self.scopes else OTHER
        if not self.in_step:
            self.ring.live(self.step, _ring.BETWEEN_STEPS, monotonic_ns())
        else:
            self.mark(before if before < _ring.PHASES else OTHER)

    def begin(self, step):
        now = monotonic_ns()
        if not self.ready(now):
            return
        if self.in_step:
            self.end(now)
        if not self.jax_hooked and "jax" in sys.modules:
            self.hook_jax()
        self.step = int(step) & _U64
        self.begin_ns = self.input_begin_ns or now
        self.times = times = [0] * _ring.PHASES
        self.mask = 0
        self.barriers = []
        if self.work:
            self.work = {}
        if self.peers:
            self.peers = {}
        if self.compiled:
            self.compiled = []
        self.scopes.clear()
        if self.input_begin_ns:
            # Input that the loop waited for before it entered the step belongs to the step.
            times[_INPUT_WAIT] = self.input_ns
            times[OTHER] = max(now - self.begin_ns - self.input_ns, 0)
            self.mask = 1 << _INPUT_WAIT
            self.input_begin_ns = self.input_ns = 0
        self.before = self.phase = OTHER
        self.since_ns = now
        self.in_step = True
        self.ring.live(self.step, OTHER, now)

    def leave_barrier(self, now):
        if self.barriers and self.barriers[-1][2] is None:
            self.barriers[-1][2] = now

    def end(self, now):
        self.leave_barrier(now)
        self.switch(_ring.BETWEEN_STEPS, now)
        self.in_step = False
        record = array("Q", (self.step, self.begin_ns, now - self.begin_ns, 0, self.mask,
                             *self.times, *_NO_REST))
        _fill(record, self.barriers, self.work, self.peers)
        self.ring.push(record)

    def finish(self, whole):
        """Ends the step; one that raised is none."""
        now = monotonic_ns()
        if not self.in_step or self.owner != get_ident():
            return
        if whole:
            self.end(now)
        else:
            self.in_step = False
            self.ring.live(self.step, _ring.BETWEEN_STEPS, now)

    def sync_enter(self, kind):
        now = monotonic_ns()
        if not self.in_step or self.owner != get_ident():
            return
        self.leave_barrier(now)
        self.switch(_SYNC_WAIT, now)
        if len(self.barriers) < BARRIERS_MAX:
            self.barriers.append([BARRIERS.get(kind, BARRIERS["other"]), now, None])

    def sync_exit(self, phase):
        now = monotonic_ns()
        if not self.in_step or self.owner != get_ident():
            return
        self.leave_barrier(now)
        self.switch(phase, now)

    def input_enter(self):
        now = monotonic_ns()
        if not self.ready(now):
            return 0
        if self.in_step:
            self.switch(_INPUT_WAIT, now)
        else:
            self.ring.live(self.step, _INPUT_WAIT, now)
        return now

    def input_exit(self, began, phase):
        now = monotonic_ns()
        if not began or self.ring is None or self.owner != get_ident():
            return
        if self.in_step:
            self.switch(phase, now)
            return
        self.input_begin_ns = self.input_begin_ns or began
        self.input_ns += now - began
        self.ring.live(self.step, _ring.BETWEEN_STEPS, now)

    def add_work(self, name, amount):
        if not self.in_step or self.owner != get_ident():
            return
        kind, amount = WORK[name], float(amount)
        total = self.work.get(kind, 0.0) + amount
        if amount >= 0 and math.isfinite(total):
            self.work[kind] = total

    def add_peer(self, rank, recv_wait, send_wait):
        rank = int(rank)
        if not self.in_step or self.owner != get_ident() or not 0 <= rank < 2**32:
            return
        waits = self.peers.get(rank)
        if waits is None:
            if len(self.peers) >= PEERS_MAX:
                return
            waits = self.peers[rank] = [None, None]
        for i, seconds in enumerate((recv_wait, send_wait)):
            if seconds is not None and seconds >= 0:
                waits[i] = (waits[i] or 0.0) + float(seconds)

    # --- what happens within a phase ----------------------------------------------

    def take_out(self, phase, spent):
        """Counts time of the running phase as another's."""
        if spent > 0:
            self.times[phase] += spent
            self.mask |= 1 << phase
            self.since_ns += spent

    def on_gc(self, when, _info):
        if not self.in_step or self.owner != get_ident():
            self.gc_since = 0
        elif when == "start":
            self.gc_since = monotonic_ns()
        elif self.gc_since:
            self.take_out(_GC, monotonic_ns() - max(self.gc_since, self.since_ns))
            self.gc_since = 0

    def hook_jax(self):
        self.jax_hooked = True
        try:
            from jax import monitoring  # pylint: disable=import-outside-toplevel,import-error
            monitoring.register_event_duration_secs_listener(self.on_jax)
        except Exception:  # pylint: disable=broad-except
            pass  # another version of jax: compilations stay in their phase

    def on_jax(self, event, duration, **_details):
        """Tracing, lowering and compiling; one may lie inside another, and then counts once."""
        try:
            if event not in _COMPILE_EVENTS or not self.in_step or self.owner != get_ident():
                return
            now = monotonic_ns()
            length = int(duration * 1e9)
            start = now - length
            inside = sum(spent for began, spent in self.compiled if began >= start)
            spent = min(length - inside, now - self.since_ns)
            if spent > 0:
                self.compiled.append((start, spent))
                self.take_out(_COMPILE, spent)
        except Exception:  # pylint: disable=broad-except
            pass


def _fill(record, barriers, work, peers):
    """Writes barriers, work and peers into a record's words."""
    counts = len(barriers)
    for i, (kind, enter, leave) in enumerate(barriers):
        counts |= kind << (32 + 8 * i)
        record[_ring.BARRIER + 2 * i] = enter
        record[_ring.BARRIER + 2 * i + 1] = leave
    for kind, amount in work.items():
        counts |= 1 << (8 + kind)
        record[_ring.WORK + kind] = _double(amount)
    for i, (rank, (recv, send)) in enumerate(peers.items()):
        counts += 1 << 16
        recv_us = _NOT_MEASURED if recv is None else _wait_us(recv)
        record[_ring.PEER + 2 * i] = rank | recv_us << 32
        record[_ring.PEER + 2 * i + 1] = _NOT_MEASURED if send is None else _wait_us(send)
    record[_ring.COUNTS] = counts


def _ns(seconds):
    value = float(seconds)
    if not math.isfinite(value) or value < 0:
        raise ValueError("a time is to be finite and not negative")
    return int(value * 1e9 + 0.5)


def record_of(values):
    """Words of a complete record from emit()'s dict."""
    record = array("Q", bytes(8 * _ring.RECORD_WORDS))
    record[_ring.STEP] = int(values["step"]) & _U64
    record[_ring.BEGIN] = _ns(values["t_begin"])
    record[_ring.DURATION] = _ns(values["duration"])
    for name, seconds in values.get("phases", {}).items():
        record[_ring.PHASE + PHASES[name]] = _ns(seconds)
        record[_ring.MASK] |= 1 << PHASES[name]
    barriers = [(BARRIERS[b.get("name", "ici")], _ns(b["enter"]), _ns(b["exit"]))
                for b in values.get("barriers", ())]
    if not barriers and "sync_enter" in values:
        barriers = [(BARRIERS["ici"], _ns(values["sync_enter"]), _ns(values["sync_exit"]))]
    amounts = {WORK[name]: float(amount) for name, amount in values.get("work", {}).items()}
    peers = {int(rank): (waits.get("recv_wait"), waits.get("send_wait"))
             for rank, waits in list(values.get("peers", {}).items())[:PEERS_MAX]}
    _fill(record, barriers[:BARRIERS_MAX], amounts, peers)
    return record
