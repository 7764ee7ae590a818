# SPDX-License-Identifier: Apache-2.0
"""Who this training process is: options, then environment, with the source of each field.

The rules are those of the C library (agent/client/identity.h); a test holds the two together.
"""

import os

# Sources of a field: enum ls_ring_from in proto/ring/ring.h.
NONE, API, LOCKSTEP, JOBSET, MEGASCALE, TPU, TORCH, SLURM, DEFAULT = range(9)

FIELDS = ("job", "attempt", "rank", "world", "role", "slice", "chips", "host")
JOB_BYTES, SLICE_BYTES, ROLE_BYTES, HOST_BYTES = 128, 64, 64, 128
ENV_BYTES = 2048
WORKERS_MAX, SLICES_MAX, CHIPS_MAX, INT_MAX = 65536, 4096, 4096, 2**31 - 1

# What of the environment goes into the header, which everybody can read: names, never secrets.
ENV_NAMES = (
    "LOCKSTEP_JOB", "LOCKSTEP_ATTEMPT", "LOCKSTEP_RANK", "LOCKSTEP_WORLD", "LOCKSTEP_ROLE",
    "LOCKSTEP_SLICE", "LOCKSTEP_CHIPS", "LOCKSTEP_HOST", "JOBSET_NAME",
    "JOBSET_RESTART_ATTEMPT", "REPLICATED_JOB_NAME", "JOB_COMPLETION_INDEX",
    "MEGASCALE_SLICE_ID", "MEGASCALE_NUM_SLICES", "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES",
    "TPU_ACCELERATOR_TYPE", "TPU_TOPOLOGY", "TPU_CHIPS_PER_HOST_BOUNDS",
    "TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_HOST_BOUNDS", "TPU_PROCESS_BOUNDS",
    "TPU_VISIBLE_CHIPS", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
    "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_JOB_NAME",
    "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NODEID", "SLURM_RESTART_COUNT", "NODE_NAME",
    "POD_NAME", "POD_NAMESPACE", "TPU_TOPOLOGY_WRAP", "TPU_RUNTIME_METRICS_PORTS",
    "TPU_SKIP_MDS_QUERY", "TPU_PROCESS_ADDRESSES", "LOCKSTEP_SHARD",
)


def name_bytes(text, size):
    """UTF-8 of a name, cut to whole characters and padded to `size` bytes with NULs.

    What may not stand in a name (control characters, bytes that are not UTF-8) becomes "_".
    """
    out = b""
    for char in str(text):
        code = ord(char)
        if 0xDC80 <= code <= 0xDCFF:  # an undecodable byte of the environment
            piece = b"_"
        elif code < 0x20 or code == 0x7F:
            piece = b"_"
        elif 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000:
            piece = b"_" * (2 if code < 0xA0 else 3)
        else:
            piece = char.encode("utf-8")
        if len(out) + len(piece) >= size:
            break
        out += piece
    return out.ljust(size, b"\0")


def _number(text, most):
    """The whole text as a number from 0 to `most`, or None."""
    if not text or not (text.isascii() and text.isdigit()):
        return None
    value = int(text[:20])
    return value if len(text) <= 20 and value <= most else None


def _bounds(text):
    """Product of "2,2,1", or None."""
    product = 1
    for part in (text or "").split(","):
        value = _number(part, CHIPS_MAX)
        if not value:
            return None
        product *= value
    return product if product <= CHIPS_MAX else None


class Identity:
    """Fields of a ring's header: attributes by the names of FIELDS; `source` by field."""

    def __init__(self, options=None, env=None):
        self._env = os.environ if env is None else env
        self.source = dict.fromkeys(FIELDS, NONE)
        self.job = self.role = self.slice = self.host = ""
        self.attempt = self.rank = self.world = self.chips = 0
        options = options or {}
        self._names(options)
        self._numbers(options)
        self.env = self._whitelisted()

    def _get(self, name):
        return self._env.get(name)

    def _offer(self, field, value, source):
        """Takes the value if it is one and no source before gave any."""
        if self.source[field] == NONE and value is not None and value != "":
            setattr(self, field, value)
            self.source[field] = source

    def _names(self, options):
        get, offer = self._get, self._offer
        offer("job", options.get("job"), API)
        offer("job", get("LOCKSTEP_JOB"), LOCKSTEP)
        offer("job", get("JOBSET_NAME"), JOBSET)
        if get("SLURM_JOB_ID"):
            # The number last, and never cut off: it is what makes the job unique.
            name = get("SLURM_JOB_NAME") or "slurm"
            half = JOB_BYTES // 2
            head = name_bytes(name, half).rstrip(b"\0").decode("utf-8")
            offer("job", head + "-" + get("SLURM_JOB_ID"), SLURM)
        offer("job", "default", DEFAULT)
        offer("role", options.get("role"), API)
        offer("role", get("LOCKSTEP_ROLE"), LOCKSTEP)
        offer("role", get("REPLICATED_JOB_NAME"), JOBSET)
        offer("slice", options.get("slice"), API)
        offer("slice", get("LOCKSTEP_SLICE"), LOCKSTEP)
        offer("slice", get("MEGASCALE_SLICE_ID"), MEGASCALE)
        offer("host", options.get("host"), API)
        offer("host", get("LOCKSTEP_HOST"), LOCKSTEP)
        offer("host", os.uname().nodename, DEFAULT)

    def _tpu_place(self):
        """Rank and world of a TPU job: TPU_WORKER_ID counts hosts within a slice."""
        names = self._get("TPU_WORKER_HOSTNAMES")
        hosts = len(names.split(",")) if names else None
        slices = _number(self._get("MEGASCALE_NUM_SLICES"), SLICES_MAX) or 1
        here = _number(self._get("MEGASCALE_SLICE_ID"), SLICES_MAX) or 0
        worker = _number(self._get("TPU_WORKER_ID"), WORKERS_MAX - 1)
        if worker is None or (_number(self._get("LOCAL_WORLD_SIZE"), INT_MAX) or 0) > 1:
            return
        source = TPU
        if slices > 1 and here > 0:
            if hosts is None or hosts > WORKERS_MAX // (here + 1):
                return  # where this slice begins is not known
            worker += here * hosts
            source = MEGASCALE
        self._offer("rank", worker, source)
        if hosts is not None and hosts <= WORKERS_MAX // slices:
            self._offer("world", hosts * slices, MEGASCALE if slices > 1 else TPU)

    def _numbers(self, options):
        offer, top = self._offer, WORKERS_MAX - 1

        def option(name, most):
            value = options.get(name)
            return value if isinstance(value, int) and 0 <= value <= most else None

        def env(name, most):
            return _number(self._get(name), most)

        offer("attempt", option("attempt", INT_MAX), API)
        offer("attempt", env("LOCKSTEP_ATTEMPT", INT_MAX), LOCKSTEP)
        offer("attempt", env("JOBSET_RESTART_ATTEMPT", INT_MAX), JOBSET)
        offer("attempt", env("TORCHELASTIC_RESTART_COUNT", INT_MAX), TORCH)
        offer("attempt", env("SLURM_RESTART_COUNT", INT_MAX), SLURM)
        offer("attempt", 0, DEFAULT)
        offer("rank", option("rank", top), API)
        offer("rank", env("LOCKSTEP_RANK", top), LOCKSTEP)
        offer("world", option("world", WORKERS_MAX), API)
        offer("world", env("LOCKSTEP_WORLD", WORKERS_MAX), LOCKSTEP)
        self._tpu_place()
        if (env("MEGASCALE_NUM_SLICES", INT_MAX) or 0) <= 1:
            offer("rank", env("JOB_COMPLETION_INDEX", top), JOBSET)
        offer("rank", env("RANK", top), TORCH)
        offer("rank", env("SLURM_PROCID", top), SLURM)
        offer("rank", 0, DEFAULT)
        offer("world", env("WORLD_SIZE", WORKERS_MAX), TORCH)
        offer("world", env("SLURM_NTASKS", WORKERS_MAX), SLURM)
        offer("chips", option("chips", CHIPS_MAX), API)
        offer("chips", env("LOCKSTEP_CHIPS", CHIPS_MAX), LOCKSTEP)
        offer("chips", _bounds(self._get("TPU_CHIPS_PER_PROCESS_BOUNDS")), TPU)
        offer("chips", _bounds(self._get("TPU_CHIPS_PER_HOST_BOUNDS")), TPU)
        if 0 < self.world <= self.rank:
            # The two come from different places and disagree: keep the one that names us.
            self.world = 0
            self.source["world"] = NONE

    def _whitelisted(self):
        """"KEY=VALUE\\n"...; what has control characters or does not fit is left out."""
        out = b""
        for name in ENV_NAMES:
            value = self._get(name)
            if value is None:
                continue
            data = os.fsencode(value)
            if any(byte < 0x20 or byte == 0x7F for byte in data):
                continue
            if len(name) + len(data) + 2 >= ENV_BYTES - len(out):
                continue
            out += name.encode() + b"=" + data + b"\n"
        return out
