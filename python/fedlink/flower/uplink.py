"""The source of the links' state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SimulatedUplink:
    """A fading channel that is drawn, not measured: the one of ``simulate``.

    Every round the gains of all M devices are drawn from the seed alone, so the same configuration schedules
    the same devices as ``simulate`` does. Arguments that are left out have the values in ``config`` of the
    strategy, or the defaults of that (``fedlink config`` prints every key).
    """

    devices: int
    """M (``data.devices``). A node is device m if its ``partition-id`` is m."""
    symbols: int | None = None
    """n, shared by all who send in a round (``radio.symbols``)."""
    power: float | None = None
    """P̄ (``radio.power``); a scheduled device sends with M·P̄/K."""
    noise: float | None = None
    """σ² (``radio.noise``)."""
    seed: int | None = None
    """The seed of the channel and of everything else that is drawn (``run.seed``)."""
    whole: bool | None = None
    """Whether a device's number of symbols is whole (``radio.slots``)."""
    fading: str | None = None
    """The fading law (``radio.fading``)."""

    #: Nodes do not declare rates.
    declared = False
    #: The size of a symbol in the record.
    unit = 1.0

    def settings(self) -> dict[str, Any]:
        """The keys of a configuration that it sets."""
        slots = None if self.whole is None else "whole" if self.whole else "real"
        keys = {
            "data.devices": self.devices,
            "radio.symbols": self.symbols,
            "radio.power": self.power,
            "radio.noise": self.noise,
            "radio.slots": slots,
            "radio.fading": self.fading,
            "run.seed": self.seed,
        }
        return {key: value for key, value in keys.items() if value is not None}


@dataclass(frozen=True)
class DeclaredUplink:
    """Real links whose rate every node declares; all senders share ``deadline`` seconds.

    A node's budget is its rate in bit/s times its part of the deadline; the parts make bits proportional to
    the policy's bit weights, as the symbols of a simulated uplink do. Candidates are judged by the rate that
    they declared last, the scheduled by the one of this round. Gains are rates in bit/s, a symbol is a
    microsecond, capacities are bits per microsecond.

    Nothing is measured here: a rate comes from the node's configuration or its own function. Nor is the
    deadline enforced: it divides bits among the nodes, while Flower carries their messages at its own pace,
    limited by the ``timeout`` of ``start`` alone.
    """

    devices: int
    """M. A node is device m if its ``partition-id`` is m."""
    deadline: float
    """Seconds of upload in a round, added up over all who send; from a millisecond on."""

    #: Nodes give their rate.
    declared = True
    #: A symbol is a microsecond.
    unit = 1e-6

    def __post_init__(self) -> None:
        if not (math.isfinite(self.deadline) and self.deadline >= 1e-3):
            raise ValueError(f"deadline must be at least a millisecond and finite, not {self.deadline} s")

    def settings(self) -> dict[str, Any]:
        """The keys of a configuration that it sets."""
        return {"data.devices": self.devices, "radio.symbols": round(self.deadline / self.unit)}

    def links(self, rates: Mapping[int, float]) -> tuple[Reals, Reals]:
        """Gains and capacities of all devices by ``rates`` in bit/s; a device that has given none cannot
        send."""
        gains = np.zeros(self.devices)
        for device, rate in rates.items():
            gains[device] = rate
        return gains, gains * self.unit


Uplink = SimulatedUplink | DeclaredUplink
