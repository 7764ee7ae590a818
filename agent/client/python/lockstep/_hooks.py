# SPDX-License-Identifier: Apache-2.0
"""What happens to a training process besides its marks: compilations, collections, checkpoints.

Hooks count here, for the whole process, in the events block of the ring (proto/ring/ring.h), and give the
time to the step being made. They never raise: what fails in a hook is counted as an error.

JAX is never imported by us. jax.monitoring is looked for whenever a step begins, until it is there.
All times are ns of CLOCK_MONOTONIC unless said.
"""

import gc
import sys
from _thread import get_ident
from array import array
from time import monotonic_ns

from . import _ring
from ._identity import name_bytes

# Counters of the block; places never change.
(COMPILES, COMPILE_NS, CACHE_HITS, CACHE_MISSES, GC_PAUSES, GC_NS, CHECKPOINTS, CHECKPOINT_NS,
 UNNAMED, ERRORS) = range(10)
_COMPILER = (1 << COMPILES | 1 << COMPILE_NS | 1 << CACHE_HITS | 1 << CACHE_MISSES | 1 << UNNAMED)
_CHECKPOINTER = 1 << CHECKPOINTS | 1 << CHECKPOINT_NS
_COLLECTOR = 1 << GC_PAUSES | 1 << GC_NS | 1 << ERRORS

_AT_GC_PAUSES = _ring.EVENTS_COUNTER + GC_PAUSES
_AT_GC_NS = _ring.EVENTS_COUNTER + GC_NS
_IN_RING_GC_PAUSES, _IN_RING_GC_NS = _ring.EVENTS + _AT_GC_PAUSES, _ring.EVENTS + _AT_GC_NS

_PREFIX = "/jax/core/compile/"
_COMPILE = {_PREFIX + "jaxpr_trace_duration": False,
            _PREFIX + "jaxpr_to_mlir_module_duration": False,
            _PREFIX + "backend_compile_duration": True}  # True: with it a compilation is done
# Only those in which the caller waits, and which are told when the wait is over. Others are of
# threads that write behind the job's back, or no durations at all.
_CHECKPOINT = frozenset((
    "/jax/checkpoint/write/async/blocking_duration_secs",
    "/jax/checkpoint/write/wait_for_prev_duration_secs",
    "/jax/checkpoint/write/get_old_steps_duration_secs",
    "/jax/checkpoint/write/remove_steps_duration_secs",
    "/jax/checkpoint/sync_global_devices_duration_sec",
    "/jax/orbax/write/checkpoint_start_sync_duration_secs",
    "/jax/orbax/checkpoint_utils/wait_duration"))
_INNER_MAX = 64
_SLACK_NS = 1_000_000  # their clock is not ours
_CACHE = {"/jax/compilation_cache/cache_hits": CACHE_HITS,
          "/jax/compilation_cache/cache_misses": CACHE_MISSES}


def _bare(name):
    """jit(f), pmap(f) and jit_f are compilations of f."""
    name = str(name)
    head, bracket, rest = name.partition("(")
    if bracket and rest.endswith(")") and head.isidentifier():
        return rest[:-1]
    return name[4:] if name.startswith("jit_") else name


class Hooks:
    """The hooks of this process and what they counted; `marks` is its Recorder."""

    def __init__(self, marks):
        self.marks = marks
        self.block = array("Q", bytes(_ring.EVENTS_BYTES))
        self.places = {}       # function: its place in the block
        self.pending_ns = 0    # tracing and lowering since the last compilation
        self.inner = []        # (end, length) of what may lie within something that ends later
        self.gc_since = 0
        self.jax_since = 0     # when the hooks of JAX were put in

    def install(self):
        """Once a process."""
        self.measures(_ring.GC, _COLLECTOR)
        gc.callbacks.append(self.on_gc)

    def look_for_jax(self):
        """Hooks jax.monitoring if the job has imported it by now; True: need not be called again."""
        monitoring = sys.modules.get("jax.monitoring")
        if monitoring is None or getattr(getattr(monitoring, "__spec__", None), "_initializing",
                                         False):
            return False
        self.jax_since = monotonic_ns()
        try:
            monitoring.register_event_duration_secs_listener(self.on_duration)
            monitoring.register_event_listener(self.on_event)
            self.measures(_ring.COMPILE, _COMPILER)
        except Exception:  # pylint: disable=broad-except
            self.failed()  # a version that we do not know
        return True

    # --- counting --------------------------------------------------------------

    def set(self, at, value):
        """One word of the block, and of the ring if there is one."""
        self.block[at] = value
        words = self.marks.words
        if words is not None:
            words[_ring.EVENTS + at] = value

    def measures(self, phase, counters):
        """From now on these are seen whenever they happen: not seen means that they did not."""
        self.marks.measured |= 1 << phase
        self.set(_ring.EVENTS_MEASURED, self.block[_ring.EVENTS_MEASURED] | counters)

    def add(self, counter, amount=1):
        at = _ring.EVENTS_COUNTER + counter
        self.set(at, self.block[at] + amount)

    def failed(self):
        try:
            self.add(ERRORS)
        except Exception:  # pylint: disable=broad-except
            pass  # the ring is being closed by another thread

    def add_function(self, name, spent):
        """A compilation of a function; those that find no place are counted together."""
        place = self.places.get(name)
        if place is None:
            if len(self.places) >= _ring.FUNCTIONS:
                self.add(UNNAMED)
                return
            place = (_ring.EVENTS_FUNCTION + len(self.places) * _ring.FUNCTION_WORDS)
            self.places[name] = place
            text = array("Q", name_bytes(name or "?", _ring.FUNCTION_NAME_BYTES))
            for i, word in enumerate(text):
                self.set(place + 2 + i, word)
        self.set(place + 1, self.block[place + 1] + spent)
        self.set(place, self.block[place] + 1)  # last: a place with a count has its name

    def own(self, phase, start, now):
        """What of [start, now) is not already counted as something inside of it; the step gets it.

        Of what lies within each other the innermost counts: it ends, and is told, first.
        """
        inner, inside = self.inner, 0
        while inner and inner[-1][0] > start:
            inside += inner.pop()[1]
        self.cover(now, now - start)
        spent = max(now - start - inside, 0)
        self.marks.take_out(phase, spent, now)
        return spent

    def cover(self, now, length):
        """All of this is counted by now; of very many the oldest are taken for one."""
        inner = self.inner
        inner.append((now, length))
        if len(inner) > _INNER_MAX:
            inner[:2] = [(inner[1][0], inner[0][1] + inner[1][1])]

    # --- the hooks -------------------------------------------------------------

    def is_ours(self):
        """Is this the thread that makes the marks? Without any, whichever thread it is."""
        return self.marks.owner is None or self.marks.owner == get_ident()

    def on_gc(self, when, _info):
        """gc.callbacks. Young collections are many and short: no calls that can be spared."""
        try:
            now = monotonic_ns()
            if when == "start":
                self.gc_since = now
                return
            spent = now - self.gc_since
            if not self.gc_since:
                return  # it had begun before we were there
            self.gc_since = 0
            block, marks = self.block, self.marks
            block[_AT_GC_PAUSES] = pauses = block[_AT_GC_PAUSES] + 1
            block[_AT_GC_NS] = total = block[_AT_GC_NS] + spent
            words = marks.words
            if words is not None:
                words[_IN_RING_GC_PAUSES] = pauses
                words[_IN_RING_GC_NS] = total
            if marks.owner is None or marks.owner == get_ident():
                self.cover(now, spent)  # nothing lies within a collection
                if marks.counting:
                    marks.take_out(_ring.GC, spent, now)
        except Exception:  # pylint: disable=broad-except
            self.failed()

    def on_duration(self, event, duration, **details):
        """jax.monitoring: something that took so many seconds has just ended in this thread."""
        try:
            compiled = _COMPILE.get(event)
            if compiled is None and event not in _CHECKPOINT:
                return
            now = monotonic_ns()
            length = int(duration * 1e9)
            known = now - self.jax_since
            if not 0 <= length <= known + known // 64 + _SLACK_NS:
                raise ValueError("longer than we look at it: a clock was set")
            if self.is_ours():
                phase = _ring.CHECKPOINT if compiled is None else _ring.COMPILE
                length = self.own(phase, now - length, now)
            elif not compiled:
                return  # in another thread only what cannot lie in anything else counts
            if compiled is None:
                # Only now do we know that this job's checkpoints are told to us.
                self.measures(_ring.CHECKPOINT, _CHECKPOINTER)
                self.add(CHECKPOINTS)
                self.add(CHECKPOINT_NS, length)
                return
            self.pending_ns += length
            if compiled:
                spent, self.pending_ns = self.pending_ns, 0
                self.add(COMPILES)
                self.add(COMPILE_NS, spent)
                self.add_function(_bare(details.get("fun_name", "?")), spent)
        except Exception:  # pylint: disable=broad-except
            self.failed()

    def on_event(self, event, **_details):
        """jax.monitoring: something happened."""
        try:
            counter = _CACHE.get(event)
            if counter is not None:
                self.add(counter)
        except Exception:  # pylint: disable=broad-except
            self.failed()
