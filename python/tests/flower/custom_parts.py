"""Parts as users write them."""

from __future__ import annotations

import json

import numpy as np

import fedlink


class LongestWaiting(fedlink.Policy):
    """Of the better half of the channels the k that have waited longest; it has state of its own and needs no
    reports."""

    def __init__(self):
        self.waiting = np.zeros(0)

    def candidates(self, view):
        half = max(len(view.eligible) // 2, view.k)
        favored = np.sort(np.argsort(-view.gains, kind="stable")[:half])
        self.waiting = self.waiting if self.waiting.size else np.zeros(view.devices)
        chosen = favored[np.argsort(-self.waiting[favored], kind="stable")[: view.k]]
        self.waiting += 1
        self.waiting[chosen] = 0
        return np.sort(chosen)

    def asks(self):
        return []

    def select(self, view, reports):
        return reports.devices, np.ones(len(reports))

    def save(self):
        return json.dumps(self.waiting.tolist()).encode()

    def load(self, saved):
        self.waiting = np.array(json.loads(saved), dtype=float)


class LargestLast(fedlink.Policy):
    """The largest norms in no order of devices, from two thirds of the devices, with weights of its own.

    It writes into its arguments, as it may.
    """

    def candidates(self, view):
        view.gains[:] = -view.gains
        return np.argsort(view.gains, kind="stable")[: max(view.k, 2 * view.devices // 3)]

    def asks(self):
        return ["norm"]

    def select(self, view, reports):
        chosen = np.argsort(reports["norm"], kind="stable")[-view.k :]
        devices = reports.devices[chosen]
        weights = reports["norm"][chosen] * view.capacities[devices]
        view.capacities[:] = 0
        return devices, weights


class ByCompressedNorm(fedlink.Policy):
    """All devices that are there train; lists are accepted like arrays."""

    def candidates(self, view):
        return view.eligible

    def asks(self):
        return ["compressed-norm"]

    def select(self, view, reports):
        best = sorted(zip(reports["compressed-norm"].tolist(), reports.devices.tolist()), reverse=True)[
            : view.k
        ]
        return [device for _, device in best], [1 + norm for norm, _ in best]


class LowestLoss(fedlink.Policy):
    """The devices with the lowest training loss, or at random one of the others; it needs two numbers."""

    def candidates(self, view):
        return view.eligible

    def asks(self):
        return ["loss", "norm"]

    def select(self, view, reports):
        order = np.argsort(reports["loss"] + 0.1 * view.rng(3).random(len(reports)), kind="stable")[: view.k]
        return reports.devices[order], 1 + reports["norm"][order]


CUSTOM = [LongestWaiting, LargestLast, ByCompressedNorm, LowestLoss]


class EveryThird(fedlink.Compressor):
    """The last of every third entry, from a random one on, as many as 40 bits each allow."""

    def encode(self, update, budget, rng):
        count = int(budget // 40)
        if count == 0:
            return None, 0.0
        indices = np.arange(int(rng.integers(3)), len(update), 3)[-count:]
        return (indices, update[indices]), 40.0 * len(indices)
