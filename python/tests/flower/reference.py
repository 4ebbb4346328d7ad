"""A round of BN2-C written down a second time, naively: exact binomials, full sorts, dense vectors."""

from __future__ import annotations

import math

import numpy as np


def bits(dim: int, q: int) -> float:
    """r(q) = log2 C(d,q) + 33, by whole numbers."""
    return math.log2(math.comb(dim, q)) + 33


def largest_q(dim: int, budget: float) -> int:
    """The largest q up to d/2 with r(q) within the budget."""
    return max((q for q in range(1, dim // 2 + 1) if bits(dim, q) <= budget), default=0)


def dsgd(update: np.ndarray, q: int) -> np.ndarray:
    """Δ̂(q) as a dense vector."""
    order = np.argsort(-update, kind="stable")
    top = [i for i in order[:q] if update[i] > 0]
    order = np.argsort(update, kind="stable")
    low = [i for i in order[:q] if update[i] < 0]
    a = math.fsum(float(update[i]) for i in top) / len(top) if top else 0.0
    b = math.fsum(float(update[i]) for i in low) / len(low) if low else 0.0
    dense = np.zeros_like(update)
    dense[top if a >= -b else low] = np.float32(a if a >= -b else b)
    return dense


def bn2_c(
    updates: dict[int, np.ndarray], capacities: np.ndarray, symbols: int, k: int
) -> tuple[list[int], np.ndarray]:
    """The scheduled devices and what is added to the model."""
    dim = len(next(iter(updates.values())))
    norms = {
        m: float(np.linalg.norm(dsgd(update, largest_q(dim, symbols * capacities[m])).astype(np.float64)))
        for m, update in updates.items()
    }
    chosen = sorted(sorted(norms, key=lambda m: (-norms[m], m))[:k])
    demand = {m: norms[m] / capacities[m] for m in chosen}
    total = sum(demand.values())
    step = np.zeros(dim, dtype=np.float64)
    for m in chosen:
        budget = symbols * demand[m] / total * capacities[m]
        step += dsgd(updates[m], largest_q(dim, budget)).astype(np.float64) / k
    return chosen, step
