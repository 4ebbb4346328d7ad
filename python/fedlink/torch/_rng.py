"""The global random generators: PyTorch's, NumPy's and Python's."""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections.abc import Iterator

import numpy
import torch


def seed_of(*key: object) -> int:
    """64 bits that depend on every part of ``key``."""
    text = "/".join(str(part) for part in key)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def seed_all(seed: int) -> None:
    """Seeds the global generators."""
    torch.manual_seed(seed)
    numpy.random.seed(seed % 2**32)
    random.seed(seed)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """The global generators seeded, and restored afterwards. Those of CUDA only if it is in use: reading
    their states would start it."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    before, states = random.getstate(), numpy.random.get_state()
    try:
        with torch.random.fork_rng(devices):
            seed_all(seed)
            yield
    finally:
        random.setstate(before)
        numpy.random.set_state(states)
