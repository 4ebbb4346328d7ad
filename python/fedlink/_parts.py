"""Parts of your own: subclass, and hand an object to ``simulate``; a policy also to ``fedlink.flower``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Union

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Devices = Union[Sequence[int], npt.NDArray[np.integer[Any]]]
    Weights = Union[Sequence[float], npt.NDArray[np.floating[Any]]]


class Channels(Protocol):
    """What the server knows of the uplink in one round, by device. A device that cannot send has a dead link: zeros."""

    @property
    def gains(self) -> npt.NDArray[np.float64]:
        """The power gain of every device; where rates are measured, its rate in bit/s."""

    @property
    def capacities(self) -> npt.NDArray[np.float64]:
        """Bits a symbol that every device's link carries; where rates are measured, bits a microsecond."""

    @property
    def devices(self) -> int:
        """M, the number of devices."""


class Policy:
    """A scheduling policy. It speaks twice, because a radio does: first the channel is known, then the candidates
    report one number each.

    >>> class LargestGain(fedlink.Policy):
    ...     def report(self):
    ...         return "nothing"
    ...     def candidates(self, channels, k):
    ...         return numpy.sort(numpy.argsort(-channels.gains, kind="stable")[:k])
    ...     def select(self, candidates, reports, channels, k):
    ...         return candidates, numpy.ones(k)
    >>> fedlink.simulate({"run.rounds": 20}, policy=LargestGain())
    """

    def candidates(self, channels: Channels, k: int) -> Devices:
        """The devices that must train before selection, at least ``k``; everybody, unless you say otherwise."""
        return range(channels.devices)

    def report(self) -> str:
        """What a candidate reports: "nothing", "norm" (‖Δ‖₂) or "quantised-norm" (‖Δ̂‖₂ as if it had all symbols).

        Asked once, before the first round.
        """
        return "norm"

    def select(
        self, candidates: npt.NDArray[np.int64], reports: npt.NDArray[np.float32], channels: Channels, k: int
    ) -> tuple[Devices, Weights]:
        """``k`` of the candidates, and the weight of each one's share of bits (finite, at least 0).

        ``reports[i]`` is what ``candidates[i]`` said, 0 where nothing is reported.
        """
        raise NotImplementedError(f"{type(self).__name__} must say whom it selects: define select")


class Compressor:
    """A compression scheme. It may be called from several threads at once.

    >>> class Signs(fedlink.Compressor):
    ...     "The first q entries by their signs."
    ...     def bits(self, dim, q):
    ...         return float(q)
    ...     def compress(self, update, q, chance):
    ...         return numpy.arange(q), 1e-3 * numpy.sign(update[:q])
    >>> fedlink.simulate({"run.rounds": 20}, compressor=Signs())
    """

    def bits(self, dim: int, q: int) -> float:
        """What an update of ``dim`` entries costs at parameter ``q``; it must not fall as ``q`` rises."""
        raise NotImplementedError(f"{type(self).__name__} must say what q entries cost: define bits")

    def largest_q(self, dim: int, budget: float) -> int:
        """The largest q in 0..dim whose cost is within ``budget``; 0 means that nothing can be sent."""
        low, high = 0, dim
        while low < high:
            middle = (low + high + 1) // 2
            if self.bits(dim, middle) <= budget:
                low = middle
            else:
                high = middle - 1
        return low

    def compress(
        self, update: npt.NDArray[np.float32], q: int, chance: int
    ) -> tuple[Devices, float | npt.NDArray[np.float32]]:
        """Ascending places and what stands there: one number for all, or a float32 array with one for each.

        ``chance`` is a random number of 64 bits that belongs to this device and round: seed a generator with it.
        """
        raise NotImplementedError(f"{type(self).__name__} must compress: define compress")


class Task:
    """A learning task: what devices learn and how one of them trains. ``fedlink.torch.Task`` is one for PyTorch.

    What ``train`` returns may depend on nothing but its arguments: an update that was not kept is computed again.
    Devices train one after the other.
    """

    #: M, how many devices there are; it goes before ``data.devices``.
    devices: int

    def theta0(self) -> npt.NDArray[np.float32]:
        """θ(0). Its length is d."""
        raise NotImplementedError(f"{type(self).__name__} must say where it starts: define theta0")

    def size_of(self, device: int) -> int:
        """How many samples a device has, at least 1; what it counts under ``learn.aggregate = "by-size"``."""
        return 1

    def train(
        self, theta: npt.NDArray[np.float32], round: int, device: int
    ) -> tuple[npt.NDArray[np.float32], float]:
        """Local training from ``theta``: Δ = θ_m − θ, and the training loss. Rounds are counted from 0."""
        raise NotImplementedError(f"{type(self).__name__} must train: define train")

    def evaluate(self, theta: npt.NDArray[np.float32]) -> tuple[float, float]:
        """Accuracy (a share) and loss of ``theta``."""
        raise NotImplementedError(f"{type(self).__name__} must judge a model: define evaluate")
