"""The audit: no honest node is accused, and the bounds are met."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference import dsgd

import fedlink


def audit(ask, reported, value, entries, dim, q, q_alone):
    budget, alone_bits = fedlink.dsgd_bits(dim, q), fedlink.dsgd_bits(dim, q_alone)
    return fedlink.audit(ask, reported, np.arange(entries), value, dim, budget, alone_bits)


def honest(random: np.random.Generator) -> tuple[np.ndarray, int, int]:
    dim = int(random.integers(2, 60))
    update = random.standard_normal(dim) * 10 ** random.uniform(-6, 6)
    if random.random() < 0.5:
        update *= random.random(dim) < random.random()
    if random.random() < 0.3:
        update = np.abs(update)
    if random.random() < 0.3:
        update **= 3
    q_alone = int(random.integers(1, dim // 2 + 1))
    return update.astype(np.float32), int(random.integers(1, q_alone + 1)), q_alone


@pytest.mark.parametrize("seed", range(20))
def test_an_honest_node_is_never_accused(seed):
    random = np.random.default_rng(seed)
    for _ in range(200):
        update, q, q_alone = honest(random)
        sent, alone = dsgd(update, q), dsgd(update, q_alone)
        indices = np.flatnonzero(sent)
        value = float(sent[indices[0]]) if len(indices) else 0.0
        norm, compressed = (float(np.float32(np.linalg.norm(x.astype(np.float64)))) for x in (update, alone))
        arguments = (value, len(indices), len(update), q, q_alone)
        assert audit("norm", norm, *arguments) is None
        assert audit("compressed-norm", compressed, *arguments) is None
        assert audit("loss", norm, *arguments) is None


def test_the_bounds_are_sharp():
    # One entry: the norm is the absolute value of the upload.
    assert audit("norm", 2.0, 2.0, 1, 2, 1, 1) is None
    # All entries alike: ‖Δ‖ = v·√d with q = 1, where the bound is v·√(2 + d − 2).
    assert audit("norm", 3.0, 1.0, 1, 9, 1, 1) is None
    assert "at most 3" in audit("norm", 3.1, 1.0, 1, 9, 1, 1)
    assert "at least 2" in audit("norm", 1.9, 1.0, 4, 9, 4, 4)
    assert audit("compressed-norm", 2.0, 1.0, 2, 9, 2, 4) is None
    assert "at most 2" in audit("compressed-norm", 2.1, 1.0, 2, 9, 2, 4)
    assert "at least" in audit("compressed-norm", 1.0, 1.0, 4, 9, 4, 4)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match="value"):
        audit("norm", 0.0, value, 1, 9, 1, 1)


@pytest.mark.parametrize("reported", [math.nan, math.inf])
def test_a_report_that_is_not_finite_is_refused(reported):
    with pytest.raises(ValueError, match="reported"):
        audit("norm", reported, 1.0, 1, 9, 1, 1)


def test_indices_beyond_the_model_are_refused():
    with pytest.raises(ValueError, match="index 20 is out of range"):
        audit("norm", 0.0, 1.0, 21, 20, 4, 4)
