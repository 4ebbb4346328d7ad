"""Metrics of nodes: only those that can be aggregated reach the aggregate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from flwr.app import MetricRecord

from .protocol import MAX_TEXT, plain

#: The most metrics of a node.
MAX_METRICS = 64

#: The most numbers in a metric that is a list.
MAX_NUMBERS = 4096


def alike(metrics: Mapping[int, MetricRecord], weighted_by: str) -> tuple[list[MetricRecord], dict[int, str]]:
    """The metrics that can be aggregated, and for every other node the reason why its metrics are left out.

    The names and lengths that most nodes have are the rule; of equally frequent ones, those of the first
    node. Numbers are finite, and the weight ``weighted_by`` is above 0. Where no node of the majority has a
    weight, all count the same.
    """
    problems = {key: problem for key, record in metrics.items() if (problem := _problem(record, weighted_by))}
    sound = {key: record for key, record in metrics.items() if key not in problems}
    shapes = Counter(map(_shape, sound.values()))
    if not shapes:
        return [], problems
    rule = max(shapes, key=lambda shape: shapes[shape])
    kept = []
    for key, record in sound.items():
        if _shape(record) != rule:
            problems[key] = f"its metrics are {_names(record)}, those of most nodes {_named(rule)}"
        elif weighted_by in record:
            kept.append(record)
        else:
            kept.append(MetricRecord({**record, weighted_by: 1}))
    return kept, problems


#: The names of metrics with their lengths; None for a number.
Shape = tuple[tuple[str, int | None], ...]


def _shape(record: MetricRecord) -> Shape:
    return tuple(
        sorted((name, len(value) if isinstance(value, list) else None) for name, value in record.items())
    )


def _problem(record: MetricRecord, weighted_by: str) -> str | None:
    """The reason why a record fits no aggregate; None if it fits."""
    if len(record) > MAX_METRICS:
        return f"it has {len(record)} metrics, and {MAX_METRICS} are the most"
    for name, value in record.items():
        numbers = value if isinstance(value, list) else [value]
        if len(name) > MAX_TEXT or not name.isprintable():
            return f"the name {plain(name, 40)} of a metric is longer than {MAX_TEXT} or not printable"
        if len(numbers) > MAX_NUMBERS:
            return f"its metric {plain(name)} has {len(numbers)} numbers, and {MAX_NUMBERS} are the most"
        if not all(map(_is_finite, numbers)):
            return f"its metric {plain(name)} is not finite"
    weight = record.get(weighted_by, 1)
    if isinstance(weight, list) or not weight > 0:
        return f"its {plain(weighted_by)} must be above 0, not {plain(str(weight), 40)}"
    return None


def _is_finite(number: float) -> bool:
    """Whether it is a number of double precision; a whole number may be too large for one."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _names(record: MetricRecord) -> str:
    return _named(_shape(record))


def _named(shape: Shape) -> str:
    names = [name if length is None else f"{name}[{length}]" for name, length in shape]
    return plain(", ".join(names)) or "none"
