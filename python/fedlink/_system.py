"""Data, devices and channel of a run without its loop, for rounds on nodes of the user."""

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
    """Data, devices and channel of a configuration, without the loop. With ``Server`` and ``Device`` a
    distributed runtime makes the rounds of ``simulate`` of it, to the bit.

    Rounds are counted from 0: round t turns θ(t) into θ(t+1). A round:

    >>> system = fedlink.System({"schedule.policy": "bn2", "schedule.k": 2, "learn.state": "reset"})
    >>> server = fedlink.Server(system.config, system.theta0())
    >>> nodes = [fedlink.Device(system.config) for _ in range(system.devices)]
    >>> call = server.begin()
    >>> trained = {m: system.train(server.theta, call.t, m) for m in call.candidates}
    >>> answers = [nodes[m].report(call.asks, *trained[m], bits, call.t, m).answers
    ...            for m, bits in zip(call.candidates, call.alone_bits)]
    >>> grants = server.report(call.candidates, answers)
    >>> sent = [nodes[g.device].send(g.budget).upload(g.device) for g in grants]
    >>> server.deliver(sent, len(trained), sum(loss for _, loss in trained.values()) / len(trained))
    ['used', 'used']

    ``train`` needs ``learn.state = "reset"`` and no error feedback, or an update depends on earlier rounds.
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
