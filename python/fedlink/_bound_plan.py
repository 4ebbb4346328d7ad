"""The K and τ that minimize the convergence bound."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from . import _fedlink


@dataclass(frozen=True)
class BoundPoint:
    """One point of the grid."""

    k: int
    tau: int
    #: The loss bound after the last round.
    loss: float
    #: With a target: the first round with a bound at most that.
    rounds_to_target: int | None


@dataclass(frozen=True)
class BoundHorizon:
    """The best point if training ends after so many rounds."""

    rounds: int
    k: int
    tau: int
    loss: float


@dataclass(frozen=True)
class BoundPlan:
    """The whole grid and its best point."""

    best: BoundPoint
    points: list[BoundPoint]
    by_horizon: list[BoundHorizon]
    #: The learning rate that was given, or the best of those tried.
    rate: str


def bound_plan(**parameters: Any) -> BoundPlan:
    """The K and τ with the lowest loss bound after ``rounds`` rounds, or with the fewest rounds to
    ``target``.

    Keywords: ``ks`` and ``taus``, pairs with the first and the last value to try (all K; τ from 1 to 20);
    ``devices``, ``rounds``, ``mu``, ``l``, ``g``, ``gamma``, ``distance0``, ``rate``, ``dim``, ``symbols``,
    ``power``, ``noise``, ``choice``, ``seed`` as for ``bound``; ``target``; ``samples``, rounds from which
    the mean of ρ is estimated. Without ``rate`` the best of 16 is taken. The numbers are those of
    ``fedlink bound plan``.

    >>> fedlink.bound_plan(devices=20, rounds=100).best
    """
    answer = json.loads(_fedlink.bound_plan(**parameters))
    found = answer["plan"]
    return BoundPlan(
        best=BoundPoint(**found["best"]),
        points=[BoundPoint(**point) for point in found["points"]],
        by_horizon=[BoundHorizon(**best) for best in found["by_horizon"]],
        rate=answer["rate"],
    )
