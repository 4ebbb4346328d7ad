"""Policies as the strategy asks them: the library's by name, or an object of your own."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

import fedlink

from . import protocol
from .uplink import Links

Devices = npt.NDArray[np.int64]


class Named(fedlink.Policy):
    """A policy of the library; ``kc`` goes with ``bc-bn2``."""

    def __init__(self, name: str, kc: int | None = None) -> None:
        self.name, self.kc = name, kc

    def report(self) -> str:
        """The kind that the library's policy asks for."""
        return fedlink.report_kind(self.name)

    def candidates(self, channels: fedlink.Channels, k: int) -> Devices:
        """Who must train, by the channel."""
        kc = None if self.kc is None else min(self.kc, channels.devices)
        return fedlink.candidates(self.name, k, channels.gains, kc=kc)

    def select(
        self, candidates: Devices, reports: npt.NDArray[np.float32], channels: fedlink.Channels, k: int
    ) -> tuple[Devices, npt.NDArray[np.float64]]:
        """Who sends, among the candidates alone: some of those whom the channel favours may have failed."""
        kc = None if self.kc is None else len(candidates)
        places, weights = fedlink.select(self.name, k, channels.gains[candidates], norms=reports, kc=kc)
        return candidates[places], weights


class Asked:
    """A policy whose answers are checked, as ``simulate`` checks them. Its exceptions come out as they are."""

    def __init__(self, policy: fedlink.Policy) -> None:
        self._policy = policy
        #: Asked for once: it is the same in all rounds.
        self.report = policy.report()
        if self.report not in protocol.REPORTS:
            raise ValueError(f"policy.report: must be one of {', '.join(protocol.REPORTS)}, but is {self.report!r}")

    def candidates(self, t: int, links: Links, k: int) -> list[int]:
        """The devices that must train before selection."""
        named = _devices("policy.candidates", self._policy.candidates(links.shown(), k))
        if unknown := [device for device in named if device >= links.devices]:
            raise _broken(t, f"candidate {unknown[0]} does not exist; devices are 0..{links.devices}")
        if twice := _twice(named):
            raise _broken(t, f"candidate {twice[0]} is named twice")
        if len(named) < k:
            raise _broken(t, f"{len(named)} candidates, but K = {k} are to be scheduled")
        return named

    def select(
        self, t: int, reports: dict[int, float], links: Links, k: int
    ) -> tuple[list[int], npt.NDArray[np.float64]]:
        """The devices that send, and their weights; ``reports`` are those of the candidates, in their order."""
        told = np.array(list(reports), dtype=np.int64), np.array(list(reports.values()), dtype=np.float32)
        answer = self._policy.select(*told, links.shown(), k)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise TypeError("policy.select: must return a pair (devices, weights)")
        chosen = _devices("policy.select: devices", answer[0])
        weights = np.asarray(answer[1], dtype=np.float64)
        if len(chosen) != k or weights.shape != (k,):
            raise _broken(t, f"{len(chosen)} devices and {weights.size} weights, but K = {k}")
        if twice := _twice(chosen):
            raise _broken(t, f"device {twice[0]} is scheduled twice")
        if strangers := [device for device in chosen if device not in reports]:
            raise _broken(t, f"device {strangers[0]} is scheduled but was no candidate")
        return chosen, weights


def _devices(name: str, answer: object) -> list[int]:
    devices = np.asarray(answer)
    if devices.ndim != 1 or (devices.size and devices.dtype.kind not in "iu"):
        raise TypeError(f"{name}: must be a list of whole numbers, but is {answer!r}")
    if (negative := devices[devices < 0]).size:
        raise ValueError(f"{name}: {negative[0]} is no device")
    return [int(device) for device in devices]


def _twice(devices: list[int]) -> list[int]:
    return [device for device, times in Counter(devices).items() if times > 1]


def _broken(t: int, problem: str) -> ValueError:
    return ValueError(f"the scheduling policy broke its contract in round {t + 1}: {problem}")
