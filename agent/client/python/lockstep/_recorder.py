# SPDX-License-Identifier: Apache-2.0
"""The step being made and the ring it goes to: what is behind the marks of the package.

Methods may raise; the package's functions see to it that none of that reaches the training loop.
All times are ns of CLOCK_MONOTONIC unless said.
"""

import atexit
import math
import os
import struct
import sys
from _thread import get_ident
from array import array
from time import monotonic_ns

from . import _ring
from ._hooks import Hooks
from ._identity import Identity

PHASES = {name: number for number, name in enumerate((
    "input_wait", "h2d", "dispatch", "compute", "sync_wait", "collective", "checkpoint", "compile",
    "gc", "eval", "other"))}
BARRIERS = {"ici": 0, "dcn": 1, "stage": 2, "other": 3}
WORK = {"tokens": 0, "sum_sq_len": 1, "batch": 2, "expert_load_max": 3, "expert_load_mean": 4}
_INPUT_WAIT, _SYNC_WAIT, OTHER = (
    PHASES[name] for name in ("input_wait", "sync_wait", "other"))
BARRIERS_MAX, PEERS_MAX = 4, 4
_RETRY_NS = 10_000_000_000
_NOT_MEASURED = 0xFFFFFFFF
LIVE = _ring.LIVE
LIVE_PHASE, LIVE_SINCE, LIVE_AGAIN = LIVE + 2, LIVE + 3, LIVE + 4
_U64 = 2**64 - 1
_NO_REST = (0,) * (_ring.RECORD_WORDS - _ring.BARRIER)  # a record without barriers, work, peers
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
    """The step being made and the ring it goes to; one a process.

    Time has one owner at every moment: the phase marked last, but what happens within it (a collection,
    a compilation, a wait for a checkpoint) is taken out of it. So the phases of a step add up to it.
    """

    __slots__ = ("ring", "words", "sequence", "identity", "directory", "retry_ns", "silent",
                 "owner", "hooked", "jax_hooked", "hooks", "counting", "in_step", "step", "begin_ns",
                 "left_ns", "phase", "since_ns", "before", "scopes", "times", "mask", "measured",
                 "barriers", "work", "peers")

    def __init__(self):
        self.ring = None
        self.words = None      # of the ring, for the mark itself
        self.sequence = 0      # of the live slot
        self.identity = None
        self.directory = None
        self.retry_ns = 0
        self.silent = False    # closed, or a forked child: only open() brings marks back
        self.owner = None      # ident of the thread that makes the marks
        self.hooked = False
        self.jax_hooked = False
        self.hooks = Hooks(self)
        self.counting = False  # in a step, or waiting for the input of the next one
        self.in_step = False
        self.step = 0
        self.begin_ns = 0
        self.left_ns = None    # begin_ns of the step that sys.exit() left with a status
        self.phase = OTHER
        self.since_ns = 0
        self.before = OTHER   # phase before the last mark, for a scope to restore
        self.scopes = []
        self.times = [0] * _ring.PHASES
        self.mask = 0
        self.measured = 0      # phases that hooks see whenever they happen: else they took no time
        self.barriers = []     # [kind, enter, exit or None]
        self.work = {}
        self.peers = {}        # rank: [recv, send], None: not measured

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
            atexit.register(self.exit)
            self.hooks.install()
        self.look_for_jax()
        try:
            self.ring = _ring.Ring(self.directory, self.identity, now, events=self.hooks.block)
        except OSError:
            self.retry_ns = now + _RETRY_NS
            return False
        self.words = self.ring.words
        self.owner = get_ident()
        self.reset()
        return True

    def look_for_jax(self):
        if not self.jax_hooked:
            self.jax_hooked = self.hooks.look_for_jax()

    def ready(self, now):
        """Is there a ring, and is this the thread that marks? Opens it at the first mark."""
        if self.ring is not None:
            return self.owner == get_ident()
        if self.silent or now < self.retry_ns:
            return False
        if self.identity is None:
            return self.open({})
        return self.try_open(now)

    def close(self, end=_ring.ENDED):
        ring, self.ring, self.words = self.ring, None, None
        self.in_step = self.counting = False
        self.silent = True
        if ring is not None:
            ring.close(end)

    def exit(self):
        """At the exit of the interpreter: an uncaught exception is no clean end, nor is a status that left the last
        step. CPython shows the status of sys.exit() to nobody else, and no function of sys is replaced here."""
        raised = getattr(sys, "last_type", None) is not None and not hasattr(sys, "ps1")
        self.close(_ring.FAILED if raised or self.left_ns == self.begin_ns else _ring.ENDED)

    def forked(self):
        """In a forked child: file and lock stay the parent's."""
        try:
            self.close(_ring.NO_END)
        except Exception:  # pylint: disable=broad-except
            pass

    # --- marks -------------------------------------------------------------------

    def reset(self):
        self.in_step = self.counting = False
        self.scopes.clear()

    def start(self, phase, now):
        """Begins to count time."""
        self.begin_ns = self.since_ns = now
        self.times = [0] * _ring.PHASES
        self.mask = 0
        self.before = OTHER
        self.phase = phase
        self.counting = True

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
        words = self.words
        self.sequence = sequence = self.sequence + 2
        words[LIVE] = sequence - 1
        words[LIVE_AGAIN] = sequence
        words[LIVE_PHASE] = phase
        words[LIVE_SINCE] = now
        words[LIVE] = sequence

    def live(self, step, phase, now):
        """Writes the live slot alone."""
        self.sequence += 2
        self.ring.live(self.sequence, step, phase, now)

    def mark(self, phase):
        now = monotonic_ns()
        if self.in_step:
            if self.owner == get_ident():
                self.switch(phase, now)
        elif self.ready(now):
            # Between steps nothing is recorded, but a hang in a checkpoint can be seen.
            self.before = _ring.BETWEEN_STEPS
            self.live(self.step, phase, now)

    def scope_enter(self):
        if self.owner == get_ident():
            self.scopes.append(self.before)

    def scope_exit(self):
        """Back to the phase before the scope; between steps to none."""
        if self.ring is None or self.owner != get_ident():
            return
        before = self.scopes.pop() if self.scopes else OTHER
        if not self.in_step:
            self.live(self.step, _ring.BETWEEN_STEPS, monotonic_ns())
        else:
            self.mark(before if before < _ring.PHASES else OTHER)

    def begin(self, step):
        now = monotonic_ns()
        if not self.ready(now):
            return
        if self.in_step:
            self.end(now)
        if not self.jax_hooked:
            self.jax_hooked = self.hooks.look_for_jax()
        self.step = int(step) & _U64
        self.barriers = []
        if self.work:
            self.work = {}
        if self.peers:
            self.peers = {}
        self.scopes.clear()
        if not self.counting:
            self.start(OTHER, now)
        # Else: the wait for the input of this step belongs to it, and what lies between.
        self.before = OTHER
        self.in_step = True
        self.live(self.step, OTHER, now)

    def leave_barrier(self, now):
        if self.barriers and self.barriers[-1][2] is None:
            self.barriers[-1][2] = now

    def end(self, now):
        self.leave_barrier(now)
        self.switch(_ring.BETWEEN_STEPS, now)
        self.in_step = self.counting = False
        record = array("Q", (self.step, self.begin_ns, now - self.begin_ns, 0,
                             self.mask | self.measured,
                             *self.times, *_NO_REST))
        _fill(record, self.barriers, self.work, self.peers)
        self.ring.push(record)

    def finish(self, whole, raised=None):
        """Ends the step; one that raised is none."""
        now = monotonic_ns()
        if isinstance(raised, SystemExit) and raised.code not in (None, 0):
            self.left_ns = self.begin_ns
        if not self.in_step or self.owner != get_ident():
            return
        if whole:
            self.end(now)
        else:
            self.in_step = self.counting = False
            self.live(self.step, _ring.BETWEEN_STEPS, now)

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
        """The phase to go back to; None: nothing is counted."""
        now = monotonic_ns()
        if not self.ready(now):
            return None
        before = self.phase
        if self.counting:
            self.switch(_INPUT_WAIT, now)
        else:
            self.start(_INPUT_WAIT, now)
            self.live(self.step, _INPUT_WAIT, now)
        return before if self.in_step else OTHER

    def input_exit(self, before):
        now = monotonic_ns()
        if before is None or self.ring is None or self.owner != get_ident():
            return
        if self.counting:
            self.switch(before, now)
        if not self.in_step:
            self.live(self.step, _ring.BETWEEN_STEPS, now)

    def input_end(self):
        """No more input: what was waited for last belongs to no step."""
        if not self.in_step and self.owner == get_ident():
            self.counting = False

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

    def take_out(self, phase, spent, now):
        """Counts time of the running phase, at most all of it, as another's; the thread that marks."""
        if not self.counting:
            return
        spent = min(spent, now - self.since_ns)
        if spent > 0:
            self.times[phase] += spent
            self.mask |= 1 << phase
            self.since_ns += spent


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
