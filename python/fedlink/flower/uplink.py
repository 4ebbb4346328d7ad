"""Where the state of the links comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import fedlink


Reals = npt.NDArray[np.float64]

#: A device number from a node is below this: arrays are as long as the largest.
MOST_DEVICES = 2**20


class Links(NamedTuple):
    """The links of all devices in a round, by their numbers; a device that is not there has a dead link."""

    gains: Reals
    """What candidates are judged by."""
    capacities: Reals
    """Bits in a unit of airtime."""
    alone: Reals
    """The bits of each device if it had all the airtime to itself."""
    airtime: int
    """The units that the scheduled share."""
    whole: bool
    """Whether shares are whole units."""
    unit: float
    """What a unit is in the terms of the record: a symbol is 1 symbol, a microsecond is 1e-6 s."""

    @property
    def devices(self) -> int:
        """M."""
        return len(self.gains)

    def shown(self) -> Links:
        """A copy for a policy to do with as it likes."""
        return self._replace(gains=self.gains.copy(), capacities=self.capacities.copy())


@dataclass(frozen=True)
class SimulatedUplink:
    """A fading channel that is drawn, not measured: the one of ``simulate``.

    Every round the gains of all M devices are drawn from ``seed`` alone, so the same seed schedules the same devices
    as ``simulate`` does. A scheduled device sends with power P = M·P̄/K, and its link carries
    C = log2(1 + g·P/σ²) bits in each of its symbols.
    """

    devices: int
    """M. A node is device m if its ``partition-id`` is m."""
    symbols: int = 5000
    """n, shared by all who send in a round."""
    power: float = 1.0
    """P̄."""
    noise: float = 1.0
    """σ²."""
    seed: int = 0
    whole: bool = False
    """Whether a device's share of the symbols is a whole number."""

    #: Nodes have nothing to measure.
    measured = False

    def __post_init__(self) -> None:
        if self.devices < 1 or self.symbols < 1:
            raise ValueError(f"devices and symbols must be at least 1, not {self.devices} and {self.symbols}")
        for name in ("power", "noise"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be above 0 and finite, not {value}")

    def links(self, t: int, there: list[int], k: int, rates: dict[int, float]) -> Links:
        """The links of round t (from 0) if the devices ``there`` are."""
        gains = np.zeros(self.devices)
        gains[there] = fedlink.gains(self.devices, t, seed=self.seed)[there]
        capacities = fedlink.capacity(gains, self.devices * self.power / k, self.noise)
        return Links(gains, capacities, self.symbols * capacities, self.symbols, self.whole, 1.0)

    def request(self, links: Links, device: int) -> dict[str, float]:
        """What a candidate is told of its link."""
        return {"bits": float(links.alone[device])}


@dataclass(frozen=True)
class MeasuredUplink:
    """Real links: every node measures its own rate, and all who send share ``deadline`` seconds.

    A node's budget is its rate in bit/s times its share of the deadline; the shares make bits proportional to the
    policy's weights, as the symbols of a simulated uplink do. Candidates are judged by the rate they told last, the
    scheduled by the one of this round.
    """

    deadline: float
    """Seconds of upload in a round, added up over all who send."""

    #: Nodes report their rate.
    measured = True
    #: Nobody knows how many there will be.
    devices = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.deadline) and self.deadline >= 1e-3):
            raise ValueError(f"deadline must be at least a millisecond and finite, not {self.deadline} s")

    def links(self, t: int, there: list[int], k: int, rates: dict[int, float]) -> Links:
        """The links by ``rates`` in bit/s if the devices ``there`` are; airtime is in microseconds."""
        gains = np.zeros(max(rates) + 1)
        gains[there] = [rates[device] for device in there]
        return Links(gains, gains * 1e-6, gains * self.deadline, round(self.deadline * 1e6), False, 1e-6)

    def request(self, links: Links, device: int) -> dict[str, float]:
        """What a candidate is told: how long it could send if it were alone."""
        return {"seconds": float(self.deadline)}


Uplink = SimulatedUplink | MeasuredUplink
