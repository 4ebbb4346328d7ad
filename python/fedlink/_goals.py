"""Goals of a study: a condition on the runs, and the cost until it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class GoalValue:
    """The value of a goal of one curve.

    Of a cost (``seconds until …``) ``value`` is the median over the seeds; a seed that did not reach the goal
    is censored at its end. Of a metric (``final accuracy``) it is the mean.
    """

    curve: str
    #: The median or the mean; None if too many seeds did not reach the goal.
    value: float | None
    #: The lower bound of the median where it has no value.
    beyond: float | None
    #: The ends of the 95 % interval; None if it is unknown or, of a cost, open.
    low: float | None
    high: float | None
    #: The number of seeds that reached the goal, of all.
    reached: int
    of: int
    #: The number of each seed; None where the goal was not reached.
    seeds: dict[int, float | None]

    @classmethod
    def _of(cls, found: dict[str, Any]) -> GoalValue:
        seeds = {int(seed): value for seed, value in found["seeds"].items()}
        median = found["median"]
        if median is None:
            value, low, high = found["mean"] or (None, None, None)
            return cls(found["curve"], value, None, low, high, len(seeds), len(seeds), seeds)
        ends = (median["value"], median["beyond"], median["low"], median["high"])
        return cls(found["curve"], *ends, median["reached"], median["of"], seeds)

    def __str__(self) -> str:
        number = f"> {self.beyond:g}" if self.value is None and self.beyond is not None else f"{self.value:g}"
        missed = "" if self.reached == self.of else f", reached {self.reached}/{self.of}"
        high = "open" if self.high is None else f"{self.high:g}"
        interval = "" if self.low is None else f" [{self.low:g}, {high}]"
        return f"{self.curve}: {number}{interval}{missed}"


@dataclass(frozen=True)
class Comparison:
    """Two curves compared by a goal, seed by seed."""

    left: str
    right: str
    goal: str
    #: Seeds that both have.
    seeds: int
    #: Of a cost: left over right (geometric mean, up to the cost at which the first run ended without the
    #: goal). Of a metric: left less right.
    value: float | None
    #: The ends of its 95 % interval.
    low: float | None
    high: float | None
    #: The two-sided p-value: of a cost that of the exact test, of a metric that of Student's.
    p: float | None
    #: Of a cost: seeds at which left reached the goal at the lower cost, at the higher one, at neither, and
    #: seeds at which one side ended before the other reached it.
    sooner: int | None = None
    later: int | None = None
    tied: int | None = None
    open: int | None = None

    @classmethod
    def _of(cls, left: str, right: str, goal: str, found: dict[str, Any]) -> Comparison:
        if "cost" not in found:
            ends = (found["difference"], found["low"], found["high"], found["p"])
            return cls(left, right, goal, found["seeds"], *ends)
        cost = found["cost"]
        ratio = cost["ratio"] or {"mean": None, "low": None, "high": None}
        counts = (cost["sooner"], cost["later"], cost["tied"], cost["open"])
        return cls(
            left, right, goal, found["seeds"], ratio["mean"], ratio["low"], ratio["high"], cost["p"], *counts
        )
