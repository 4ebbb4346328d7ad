"""Policies as users write them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import fedlink

PAGE = Path(__file__).resolve().parents[3] / "docs" / "own-policy.md"


def of_the_page() -> type[fedlink.Policy]:
    """The policy that the guide writes: it remembers, and asks for no report."""
    (source,) = re.findall(r"^(class FairRoundRobin.*?)^result", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    names = {"fedlink": fedlink, "numpy": np}
    exec(compile(source, str(PAGE), "exec"), names)
    return names["FairRoundRobin"]


class LargestLast(fedlink.Policy):
    """The largest norms in no order of devices, from two thirds of the devices, with weights of its own.

    It writes into what it is shown, as it may.
    """

    def candidates(self, channels, k):
        channels.gains[:] = -channels.gains
        return np.argsort(channels.gains, kind="stable")[: max(k, 2 * channels.devices // 3)]

    def select(self, candidates, reports, channels, k):
        chosen = np.argsort(reports, kind="stable")[-k:]
        weights = reports[chosen] * channels.capacities[candidates[chosen]]
        channels.capacities[:] = 0
        return candidates[chosen], weights


class ByQuantisedNorm(fedlink.Policy):
    """Everybody trains; lists do as well as arrays."""

    def report(self):
        return "quantised-norm"

    def select(self, candidates, reports, channels, k):
        best = sorted(zip(reports.tolist(), candidates.tolist()), reverse=True)[:k]
        return [device for _, device in best], [1 + norm for norm, _ in best]


FairRoundRobin = of_the_page()
OWN = [FairRoundRobin, LargestLast, ByQuantisedNorm]
