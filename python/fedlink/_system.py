"""The parts of a run one by one, for who runs rounds on nodes of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import _fedlink
from ._config import Config, read

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self


def digest(theta: npt.ArrayLike) -> str:
    """SHA-256 of a model's float32 entries, little-endian, in hexadecimal: equal only for equal bits."""
    import hashlib

    import numpy

    entries = numpy.ascontiguousarray(theta)
    if entries.dtype != numpy.float32:
        raise TypeError(f"theta: must be an array of float32, but is of {entries.dtype}")
    return hashlib.sha256(entries.astype("<f4", copy=False).tobytes()).hexdigest()


class System(_fedlink.System):
    """Data, devices and channel of a configuration, without the loop: what a distributed runtime needs to give the
    numbers of ``simulate`` to the bit.

    Rounds are counted from 0: round t turns θ(t) into θ(t+1). A round of BN2 with K = 2:

    >>> system = fedlink.System({"schedule.policy": "bn2", "schedule.k": 2, "learn.state": "reset"})
    >>> theta, t = system.theta0(), 0
    >>> updates = [system.train(theta, t, m) for m in range(system.devices)]
    >>> norms = [system.report("norm", update, t, m) for m, update in enumerate(updates)]
    >>> devices, weights = fedlink.select("bn2", system.k, system.gains(t), norms)
    >>> capacities = system.capacities(t)[devices]
    >>> slots = fedlink.split_slots(weights, capacities, system.symbols)
    >>> budgets = slots * capacities
    >>> sent = [system.compress(updates[m], bits, t, m)[1:] for m, bits in zip(devices, budgets)]
    >>> theta = system.aggregate(theta, devices, sent)

    ``train`` needs ``learn.state = "reset"`` and no error feedback: else an update depends on earlier rounds.
    """

    def __new__(cls, config: Config, seed: int | None = None) -> Self:
        settings = {} if seed is None else {"run.seed": seed}
        return super().__new__(cls, *read(config, settings))

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, every default written out."""
        config: dict[str, Any] = json.loads(self.config_json())
        return config

    def __reduce__(self) -> tuple[Any, ...]:
        return (System, (self.config,))

    @staticmethod
    def digest(theta: npt.ArrayLike) -> str:
        """``fedlink.digest``."""
        return digest(theta)
