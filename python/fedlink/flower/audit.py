"""Whether what a node sent can be what it reported."""

from __future__ import annotations

import math

#: Reports are single-precision numbers, and so is the value that is sent.
SLACK = 1e-5


def audit(report: str, reported: float, value: float, entries: int, dim: int, q: int, q_alone: int) -> str | None:
    """Says what is wrong with an update, or None.

    ``value`` stands in ``entries`` places of Δ̂(q). Compression keeps, on each side, the mean of the largest (at most
    q) entries and sends the larger mean v. Means fall as q grows, so

    - for a reported ‖Δ‖: the kept entries add up to at most q·v a side and no other exceeds v, so
      v·√entries ≤ ‖Δ‖ ≤ v·√(2q² + d − 2q); the left half is the inequality of the quadratic mean;
    - for a reported ‖Δ̂(q*)‖ with q* ≥ q: its value is at most v and it has at most q* entries, so it is at most
      v·√q*; where q* = q it is what was sent, v·√entries.

    A node that reports more than it has, to be scheduled, is found out if it exceeds these bounds.
    """
    if not math.isfinite(value):
        return f"its value is {value}"
    if entries > q:
        return f"{entries} entries, but q = {q}"
    size = abs(value)
    sent = size * math.sqrt(entries)
    if report == "norm":
        low, high = sent, size * math.sqrt(2.0 * q * q + dim - 2.0 * q)
    elif report == "quantised-norm" and q == q_alone:
        low = high = sent
    elif report == "quantised-norm":
        low, high = 0.0, size * math.sqrt(q_alone)
    else:
        return None
    if reported > high * (1 + SLACK):
        return f"it reported {reported:.6g}, but what it sent allows at most {high:.6g}"
    if reported < low * (1 - SLACK):
        return f"it reported {reported:.6g}, but what it sent takes at least {low:.6g}"
    return None
