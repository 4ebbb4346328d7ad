"""The K and τ that minimize the convergence bound."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from . import _fedlink


@dataclass(frozen=True)
class PlanPoint:
    """One point of the grid."""

    k: int
    tau: int
    #: The loss bound after the last round.
    loss: float
    #: With a target: the first round with a bound at most that.
    rounds_to_target: int | None


@dataclass(frozen=True)
class PlanHorizon:
    """The best point if training ends after this number of rounds."""

    rounds: int
    k: int
    tau: int
    loss: float


@dataclass(frozen=True)
class Plan:
    """The whole grid and its best point."""

    best: PlanPoint
    points: list[PlanPoint]
    by_horizon: list[PlanHorizon]
    #: The learning rate that was given, or the best of those tried.
    rate: str


def plan(**parameters: Any) -> Plan:
    """The K and τ with the lowest loss bound after ``rounds`` rounds, or with the fewest rounds to
    ``target``.

    Keywords: ``ks`` and ``taus``, pairs with the first and the last value to try (all K; τ from 1 to 20);
    ``devices``, ``rounds``, ``mu``, ``l``, ``g``, ``gamma``, ``distance0``, ``rate``, ``dim``, ``symbols``,
    ``power``, ``noise``, ``choice``, ``seed`` as for ``bound``; ``target``; ``samples``, rounds from which
    the mean of ρ is estimated. Without ``rate`` the best of 16 is taken. The numbers are those of
    ``fedlink plan``.

    >>> fedlink.plan(devices=20, rounds=100).best
    """
    answer = json.loads(_fedlink.plan(**parameters))
    found = answer["plan"]
    return Plan(
        best=PlanPoint(**found["best"]),
        points=[PlanPoint(**point) for point in found["points"]],
        by_horizon=[PlanHorizon(**best) for best in found["by_horizon"]],
        rate=answer["rate"],
    )
